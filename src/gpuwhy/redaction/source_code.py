"""Secrets in the source of installed packages: found by their own form alone.

Source is full of names that a secret could stand under (``token: Tensor``, ``password = other``) and holds none there:
what stands behind them is program text, and without it the file can no longer be parsed. What is published with a package
is no secret of the host either; what someone pasted into it (a key, a token, a login in a URL) has a form of its own.
"""

import re
from typing import Any, Callable, Dict, List, Pattern

from gpuwhy.redaction import contexts, patterns
from gpuwhy.redaction.randomness import looks_random

_INSTALLED = re.compile(
    r"/(?:site|dist)-packages/[^\n]{1,600}\.py$"
    r"|/(?P<package>[a-z_]{3,40})/(?:(?:python|src)/)?(?P=package)/[^\n]{1,600}\.py$"
)
"""Files of an installed package, or of a checkout laid out as one (``/sgl-workspace/sglang/python/sglang/srt/x.py``)."""

_KINDS = (
    "password in a URL",
    "JSON web token",
    "Hugging Face token",
    "API key",
    "code host token",
    "cloud key",
)

_FORMS = tuple((kind, patterns.FORMS[kind], patterns.FORM_HINTS[kind]) for kind in _KINDS) + (
    ("webhook", contexts.CONTEXTS["webhook"], contexts.CONTEXT_HINTS["webhook"]),
)

_LIKE_NAMES = ("Hugging Face token", "seen before")
"""Kinds that a name of the program can have the form of: ``hf_`` and letters."""

_KEY_BEGINS = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")

_KEY_ENDS = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY")

_KEY_BODY = re.compile(r"(?P<secret>[A-Za-z0-9+/]{16,4000}={0,2})")

_KEY_PART = re.compile(r"(?P<secret>[A-Za-z0-9+/]{2,4000}={0,2})")

_KEY_REST = re.compile(r"^[\s\"'#]{0,200}[A-Za-z0-9+/]{2,200}={0,2}(?:\\\\n)?[\s\"',)]{0,20}$")
"""The last line of a key is shorter than the others."""

_KEY_HEADER = re.compile(
    r"^[\s\"'#]{0,200}(?:(?:Proc-Type|DEK-Info|Version|Comment): [^\n]{0,200})?[\s\"'\\\\n,]{0,20}$"
)

_LONGEST_KEY = 200

_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$")


def is_installed_source(value: Dict[Any, Any]) -> bool:
    """Whether ``value`` is what a ``read`` of such a file brought: its path, and its text line by line."""
    path, lines = value.get("path"), value.get("lines")
    return (
        isinstance(path, str)
        and isinstance(lines, (list, tuple))
        and "first" in value
        and "count" in value
        and _INSTALLED.search(path) is not None
        and all(isinstance(line, str) for line in lines)
    )


def redacted_source(lines: List[str], replace: Callable[[str, str], str], learned: "Pattern[str] | None") -> List[str]:
    """The lines without their secrets, as many as before. ``replace`` gives the token for a secret of a kind, ``learned``
    finds those that other texts gave away."""
    text = "\n".join(lines)
    lowered = text.lower()
    for kind, pattern, hints in _FORMS:
        if any(hint in lowered for hint in hints):
            text = pattern.sub(lambda found, kind=kind: _without_group(kind, found, replace), text)  # type: ignore[misc]
    if learned is not None:
        text = learned.sub(lambda found: _without(found, 0, "seen before", replace), text)
    redacted = text.split("\n")
    return _without_private_keys(redacted, replace) if "PRIVATE KEY" in text else redacted


def _without_group(kind: str, found: Any, replace: Callable[[str, str], str]) -> str:
    groups = found.re.groupindex
    name = "secret2" if "secret2" in groups and found.group("secret") is None else "secret"
    return _without(found, name, kind, replace)


def _without(found: Any, group: Any, kind: str, replace: Callable[[str, str], str]) -> str:
    secret = found.group(group)
    start, end = found.start(group), found.end(group)
    whole = str(found.group())
    if (
        not secret
        or patterns.HARMLESS_VALUE.match(secret)
        or patterns.TOKEN.search(secret)
        or (kind in _LIKE_NAMES and _is_name(found.string, start, end))
    ):
        return whole
    return whole[: start - found.start()] + replace(kind, secret) + whole[end - found.start() :]


def _is_name(text: str, start: int, end: int) -> bool:
    """Whether what was found is a name of the program: it is written like one, not as a text of its own, nor drawn."""
    part = text[start:end]
    is_quoted = text[max(0, start - 1) : start] in ("'", '"') or text[end : end + 1] in ("'", '"')
    return bool(_NAME.match(part)) and not is_quoted and not looks_random(part)


def _without_private_keys(lines: List[str], replace: Callable[[str, str], str]) -> List[str]:
    """Private keys have lines of their own, or stand in one text. A line that only names the mark holds none."""
    redacted: List[str] = []
    left, has_body = 0, False
    for line in lines:
        begins = _KEY_BEGINS.search(line)
        if begins is not None:
            left, has_body = _LONGEST_KEY, False
            redacted.append(line[: begins.end()] + _without_body(line[begins.end() :], replace))
        elif left and (_KEY_BODY.search(line) or (has_body and _KEY_REST.match(line))):
            has_body = True
            redacted.append(_without_body(line, replace, _KEY_PART if has_body else _KEY_BODY))
        else:
            redacted.append(line)
            left = left if _KEY_HEADER.match(line) else 0
        left = 0 if _KEY_ENDS.search(line) else max(0, left - 1)
    return redacted


def _without_body(text: str, replace: Callable[[str, str], str], body: "Pattern[str]" = _KEY_BODY) -> str:
    # a line break that a text writes as two characters is none of the key's
    head, mark, tail = text.partition("-----END ")
    parts = head.split("\\n")
    without = "\\n".join(body.sub(lambda found: replace("private key", found.group("secret")), part) for part in parts)
    return without + mark + tail
