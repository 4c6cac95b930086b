"""Whether a text was drawn by a generator: what tells a key from a word where the name alone is no proof."""

import base64
import binascii
import math
import re

_ALPHABET = re.compile(r"^[A-Za-z0-9+/=_~.%-]{16,600}$")

_WORD = re.compile(r"(?:^|[-_.])[A-Za-z][a-z]{3,40}(?=[-_.]|$)")
"""A whole word between separators, as in ``Qwen3-Coder-30B-Instruct``: drawn texts do not have them."""

_CLASSES = re.compile(r"[a-z]+|[A-Z]+|[0-9]+|[^a-zA-Z0-9]+")

LEAST_BITS = 3.2
"""Entropy per character. Sixteen characters drawn from 62 have 3.7 on average, words with a number about 3."""

LEAST_CHANGES = 0.35
"""Of two neighbours, how often they are of different classes (small, capital, digit, other). Drawn texts have 0.62; names
of models, functions and files have long runs of small letters and stay below."""


def looks_random(text: str) -> bool:
    """Whether ``text`` has the letters, the spread and the disorder of a generated key. No hash in hexadecimal does."""
    if not _ALPHABET.match(text) or text.startswith(("/", ".", "_Z")) or "://" in text or _WORD.search(text):
        return False
    has_all = any(c.islower() for c in text) and any(c.isupper() for c in text) and any(c.isdigit() for c in text)
    return has_all and _changes(text) >= LEAST_CHANGES and _bits(text) >= LEAST_BITS


def is_encoded_pair(text: str) -> bool:
    """Whether ``text`` is ``user:password`` in base64, as docker keeps its logins."""
    if len(text) < 8 or len(text) > 8000:
        return False
    try:
        plain = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return False
    return plain.isprintable() and 0 < plain.find(":") < len(plain) - 1


def _changes(text: str) -> float:
    return (len(_CLASSES.findall(text)) - 1) / (len(text) - 1)


def _bits(text: str) -> float:
    counts = [text.count(each) for each in set(text)]
    return -sum(count / len(text) * math.log(count / len(text), 2) for count in counts)
