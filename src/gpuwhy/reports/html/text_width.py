"""How wide text is when a browser draws it, for pictures that are laid out before any browser sees them.

The widths are those of DejaVu Sans, the widest of the usual interface fonts: with another font the text has room to
spare, and never runs out of its box.
"""

from __future__ import annotations

import unicodedata

_ASCII = (
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636,
    636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863,
    748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635,
    615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636,
    337, 636, 838,
)  # fmt: skip
"""Thousandths of the font size, of the characters from blank to tilde."""
_OTHER = 1000
_WIDE = 1250
"""What is not Latin; East Asian characters are as wide as high, and a fallback font may be a little larger."""


def width(text: str, size: float) -> float:
    """Pixels that ``text`` takes at font size ``size``, at most."""
    return sum(map(_thousandths, text)) * size / 1000


def wrapped(text: str, room: float, size: float, most: int) -> tuple[str, ...]:
    """``text`` in at most ``most`` lines that are no wider than ``room``; the last ends with … where more would follow."""
    lines: list[str] = []
    line = ""
    for word in _pieces(text[: most * 400].split(), room, size):
        longer = f"{line} {word}".strip()
        if line and width(longer, size) > room:
            lines.append(line)
            line = word
        else:
            line = longer
        if len(lines) > most:
            break
    lines.append(line)
    if len(lines) <= most and len(text) <= most * 400:
        return tuple(lines)
    last = lines[most - 1] if len(lines) >= most else lines.pop()
    while last and width(last + " …", size) > room:
        last = last[:-1]
    return (*lines[: most - 1], f"{last.rstrip()} …")


def _pieces(words: list[str], room: float, size: float) -> list[str]:
    """Words, those that are wider than a line cut where it ends."""
    pieces: list[str] = []
    for word in words:
        rest = word
        while width(rest, size) > room:
            fits = _fitting(rest, room, size)
            pieces.append(rest[:fits])
            rest = rest[fits:]
        pieces.append(rest)
    return pieces


def _fitting(word: str, room: float, size: float) -> int:
    """How many characters fit, at least one; preferably up to a mark that a path or name is divided by."""
    taken, fits = 0.0, 0
    for character in word:
        taken += _thousandths(character) * size / 1000
        if taken > room:
            break
        fits += 1
    divided = max(word.rfind(mark, 0, fits) for mark in "/._-,:=")
    return max(1, divided + 1 if divided >= fits // 2 else fits)


def _thousandths(character: str) -> int:
    code = ord(character)
    if 32 <= code < 127:
        return _ASCII[code - 32]
    return _WIDE if unicodedata.east_asian_width(character) in "WF" else _OTHER
