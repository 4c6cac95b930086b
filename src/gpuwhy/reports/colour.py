"""Rows as a terminal shows them in colour, with places that lead to the file. Colour and link say nothing that the words do not."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from gpuwhy.model.evidence import Place
from gpuwhy.reports.neutral import plain
from gpuwhy.reports.row import Row

STYLES = {
    "answer": "1",
    "proven": "1;32",
    "likely": "1;33",
    "possible": "1;35",
    "heading": "1;36",
    "command": "32",
    "quote": "2",
    "note": "2",
    "swallowed": "33",
    "good": "32",
    "bad": "1;31",
    "unsure": "33",
}
"""The terminal's own colours (SGR), which follow its theme, by what a row is."""

_LINKING_PROGRAMS = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio", "Tabby")
_LINKING_TERMS = re.compile(r"xterm-kitty|xterm-ghostty|foot|alacritty|wezterm|contour|mintty")
_LINKING_VARIABLES = ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM")


def wants_colour(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a terminal is to be sent colours: https://no-color.org, and terminals that call themselves dumb."""
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def can_link(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal is one that is known to show OSC 8 hyperlinks; FORCE_HYPERLINK=1 or 0 decides.

    Multiplexers say nothing of the terminal that they run in, and pass links only when told to: they count as unable.
    """
    forced = environment.get("FORCE_HYPERLINK")
    if forced is not None:
        return forced not in ("", "0", "false")
    if environment.get("TMUX") or environment.get("STY"):
        return False
    if environment.get("TERM_PROGRAM") in _LINKING_PROGRAMS or any(
        environment.get(name) for name in _LINKING_VARIABLES
    ):
        return True
    if _LINKING_TERMS.match(environment.get("TERM", "")):
        return True
    version = environment.get("VTE_VERSION", "")
    # libvte shows them since 0.50
    return version.isdecimal() and int(version) >= 5000


def coloured(rows: Iterable[Row], width: int, *, with_links: bool = False) -> Iterator[str]:
    """The lines to print, each with its colours."""
    for row in rows:
        code = STYLES.get(row.style, "")
        address = _address(row.place) if with_links and row.place is not None else ""
        for line in row.wrapped(width):
            if address and row.place is not None:
                line, is_linked = _linked(line, row.place, address)
                address = "" if is_linked else address
            yield f"\x1b[{code}m{line}\x1b[0m" if code and line else line


def _address(place: Place) -> str:
    """The file of a place as an address, where it can be opened here; "" elsewhere."""
    path = Path(place.path)
    try:
        if place.source not in ("log", "report", "file", "binary") or not path.is_file():
            return ""
        return f"file://{quote(socket.gethostname())}{quote(str(path.resolve()))}"
    except (OSError, ValueError):
        return ""


def _linked(line: str, place: Place, address: str) -> tuple[str, bool]:
    """The line with the first mention of the place made a link, and whether there was one."""
    for text in (plain(str(place)), plain(str(place)).rpartition("/")[2]):
        before, found, after = line.partition(text)
        if found:
            return f"{before}\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\{after}", True
    return line, False
