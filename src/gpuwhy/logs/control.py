"""Text that a terminal would act on, made harmless: escape sequences go, other control characters are replaced."""

from __future__ import annotations

import re

from gpuwhy.logs.patterns import Pattern

ESCAPE_SEQUENCE = Pattern(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC: titles, links
    r"|\x1b[ -/]*[0-~]"  # two-character sequences
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI as one C1 byte
    r"|\x1b"
)
HARMFUL = Pattern(
    "[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\xa0\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ud800-\udfff\ufeff]"
)
"""Control characters, line separators, marks that turn the writing direction, lone surrogates, no-break and invisible spaces. Not TAB, LF, CR."""
_TYPOGRAPHIC = Pattern("[\xa0\u200b\u200c\u2060\ufeff]")
"""What chats, wikis and web pages put into a pasted log: no-break spaces for its indentation, and invisible marks.
Files joined together have the byte order mark of each somewhere in their middle."""
_RESIDUE = Pattern(
    r"(?:\^\[|ESC|\\x1[bB]|\\0?33|\\u001[bB]|\\e|\u241b|\u2190|\ufffd)?\[(?:\d{1,3}(?:;\d{1,3}){0,4})?(?:m|(?<=\[)K)"
)
PROGRESS = Pattern(r"\d+%\|| ?\d+(?:\.\d+)?(?:it/s|s/it|[kMG]?B/s)|^\s*\S{0,80}\s*\d+%")

_BAR_END = Pattern(r"(?:\d|\?)(?:it/s|s/it|[kMGT]?i?B/s)(?:, [^\]\n]{0,80})?\] {0,2}")


def without_controls(text: str) -> str:
    """``text`` without escape sequences, other control characters replaced by U+FFFD. LF, CR and TAB stay."""
    if HARMFUL.search(text) is None:
        return text
    if not text.isascii():
        text = _TYPOGRAPHIC.sub(_plain, text)
    return HARMFUL.sub("\ufffd", ESCAPE_SEQUENCE.sub("", text.replace("\x00", "")))


def without_residues(text: str) -> str:
    """``text`` without colours whose escape character was lost or spelt out where it was copied.

    Browsers and issue trackers drop the character: ``[0;36m(EngineCore_DP0 pid=88)[0;0m``. Without any end of a colour
    in the text, what looks like the beginning of one is left alone.
    """
    if "0m" in text and ("[0m" in text or "[0;0m" in text):
        return _RESIDUE.sub("", text)
    return text


def _plain(found: re.Match[str]) -> str:
    return " " if found.group() == "\xa0" else ""


def without_bar(line: str) -> str:
    """What another writer put behind a progress bar on the same line: a bar leaves the cursor at its end.

    ``Loading shards:  50%|##  | 1/2 [00:01<00:01,  1.2s/it]Traceback (most recent call last):`` gives the traceback's
    first line. A line that ends with its bar stays as it is.
    """
    end = 0
    for found in _BAR_END.finditer(line):
        end = found.end()
    rest = line[end:]
    return rest if end and rest.strip() else line


def without_overwritten(line: str) -> str:
    """What a reader is meant to see of a line that a progress bar wrote over itself with carriage returns."""
    parts = [part for part in line.split("\r") if part.strip()]
    if not parts:
        return ""
    return " ".join([part for part in parts if not PROGRESS.search(part)]) or parts[-1]
