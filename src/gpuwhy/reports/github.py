"""GitHub's Markdown with text of others in it: nothing in a log becomes a link, a mention, a reference, an image or HTML.

Escapes do not keep GitHub from linking ``@name``, ``#123``, a commit or an address, as it looks for them after rendering;
inside code it does not look. So every word that is not plainly a word is written as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gpuwhy.reports.neutral import plain

LONGEST = 400
"""Characters of a text in one place: a log may hold lines of a megabyte."""

_PLAIN_WORD = re.compile(r"[^\W_]+(?:['’\-/.][^\W_]+)*(?:%)?\Z")
"""Letters and digits, with a hyphen, an apostrophe, a slash or a point inside."""
_ADDRESS = re.compile(r"(?i)www\.|\.(?:com|org|net|io|ai|dev|co|cn|de|edu|gov|app|me|ly|gg|sh|info|xyz|cloud)\b")
_REFERENCE = re.compile(r"(?i)[0-9a-f]{7,64}\Z|gh-\d")
_FRAMED = re.compile(r"([(\"'“]{0,3})(.*?)([)\"'”,.;:!?]{0,4})\Z", re.DOTALL)


def code(text: str) -> str:
    """One line as code, whatever stands in it."""
    shown = cut(plain(text)).strip() or " "
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{space}{shown}{space}{fence}"


def prose(text: str) -> str:
    """One paragraph of words; names, values and whatever could mean something to GitHub as code."""
    pieces: list[str] = []
    pending: list[str] = []
    for position, word in enumerate(cut(plain(text)).split()):
        opening, core, closing = _FRAMED.fullmatch(word).groups()  # type: ignore[union-attr]
        # at the front "1." would begin a list
        is_word = _is_word(core) and not (position == 0 and core.isdecimal() and closing[:1] in (".", ")"))
        if not is_word and not opening and not closing:
            pending.append(core)
            continue
        if pending:
            pieces.append(code(" ".join(pending)))
            pending = []
        pieces.append(word if is_word else f"{opening}{code(core)}{closing}" if core else code(word))
    if pending:
        pieces.append(code(" ".join(pending)))
    return " ".join(pieces)


def _is_word(core: str) -> bool:
    return bool(_PLAIN_WORD.match(core)) and not _ADDRESS.search(core) and not _REFERENCE.match(core)


def cut(text: str) -> str:
    """Not longer than :data:`LONGEST`."""
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def block(lines: Iterable[str], language: str = "") -> str:
    """Lines as a block of code, which nothing in them can end."""
    shown = [cut(plain(line)) for line in lines]
    longest = max((len(run) for line in shown for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{language}", *shown, fence])


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    written = [list(heading), ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in written)


def folded(summary: str, content: str) -> str:
    """A part that opens when it is clicked. ``summary`` is a text of ours."""
    return f"<details>\n<summary>{summary}</summary>\n\n{content}\n\n</details>"


def bullets(items: Iterable[str], *, is_numbered: bool = False) -> str:
    """A list of items that are Markdown already."""
    return "\n".join(f"{f'{number}.' if is_numbered else '-'} {item}" for number, item in enumerate(items, 1))
