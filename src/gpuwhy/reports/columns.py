"""Columns that text takes in a terminal, and lines that fit into a number of them.

A Chinese, Japanese or Korean character and most emoji take two columns, a combining mark none: counted as characters, a
path with such a name runs over the edge of the pane. The properties are those of the Unicode data that Python brings.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_JAMO = range(0x1160, 0x1200)
"""Vowels and finals of Hangul, which are drawn into the syllable that they belong to."""
_PIECES = re.compile(r"( *)([^ ]+)")
_MARK = re.compile(r"\d{1,4}\.|-")
"""What a paragraph of a list begins with; it is no line of its own."""


def columns_of(text: str) -> int:
    """The columns that a text without control characters takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    if unicodedata.category(character) in ("Mn", "Me", "Cf") and character != "\xad":
        return 0
    return 0 if ord(character) in _JAMO else 1


def cut(text: str, most: int, mark: str = "...") -> str:
    """The text, or as much of its beginning as ``most`` columns hold together with ``mark``."""
    return text if columns_of(text) <= most else _begin(text, max(most - len(mark), 0)) + mark[: max(most, 0)]


def cut_inside(text: str, most: int, mark: str = " ... ") -> str:
    """The text with its middle left out where it is wider than ``most``: what a line of a log is about stands at either end."""
    if columns_of(text) <= most:
        return text
    room = max(most - len(mark), 2)
    end = _begin(text[::-1], room // 2)[::-1].lstrip()
    return _begin(text, room - columns_of(end)).rstrip() + mark + end


def cut_apart(one: str, other: str, most: int) -> tuple[str, str]:
    """Two texts cut to ``most`` columns so that where they begin to differ can still be seen."""
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    left_out = same - most // 3 if same > most // 2 and max(columns_of(one), columns_of(other)) > most else 0
    if left_out > 0:
        one, other = f"...{one[left_out:]}", f"...{other[left_out:]}"
    return cut(one, most), cut(other, most)


def _begin(text: str, most: int) -> str:
    if text.isascii():
        return text[:most]
    used = 0
    for at, character in enumerate(text):
        used += _columns(character)
        if used > most:
            return text[:at]
    return text


def padded(text: str, width: int) -> str:
    """The text filled up with blanks to ``width`` columns, as ``str.ljust`` does it with characters."""
    return text + " " * (width - columns_of(text))


def filled(text: str, width: int, margin: str, hang: str) -> Iterator[str]:
    """The lines of a paragraph of one line, broken at blanks; the first begins with ``margin``, the others with ``hang``.

    A word that is wider than a line stands whole, so that a path or a name can be copied; only running text in a script that is
    written without blanks is broken inside.
    """
    line, used, is_begun = margin, len(margin), False
    for blank, word in _PIECES.findall(text):
        taken = columns_of(word)
        if is_begun and used + len(blank) + taken > width and not _MARK.fullmatch(line.strip()):
            yield line
            line, used, is_begun = hang, len(hang), False
            blank = ""
        line, used = line + blank, used + len(blank)
        *whole, word = _broken(word, taken, width - used, width - len(hang))
        for part in whole:
            yield line + part
            line, used = hang, len(hang)
        line, used, is_begun = line + word, used + columns_of(word), True
    if is_begun:
        yield line


def _broken(word: str, taken: int, first: int, others: int) -> Iterator[str]:
    """A word of wide characters that no line holds, in parts that lines hold; any other word as it is."""
    if taken <= others or taken < 1.5 * len(word) or others < 2:
        yield word
        return
    room = first
    while columns_of(word) > room:
        part = _begin(word, max(room, 2))
        yield part
        word, room = word[len(part) :], others
    yield word
