"""Text that a terminal would act on, made harmless: escape sequences go, other control characters are replaced."""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern

ESCAPE_SEQUENCE = Pattern(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC: titles, links
    r"|\x1b[ -/]*[0-~]"  # two-character sequences
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI as one C1 byte
    r"|\x1b"
)
HARMFUL = Pattern(
    "[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
"""Control characters, line separators, marks that turn the writing direction, lone surrogates. Not TAB, LF, CR."""
PROGRESS = Pattern(r"\d+%\|| ?\d+(?:\.\d+)?(?:it/s|s/it|[kMG]?B/s)|^\s*\S{0,80}\s*\d+%")


def without_controls(text: str) -> str:
    """``text`` without escape sequences, other control characters replaced by U+FFFD. LF, CR and TAB stay."""
    if HARMFUL.search(text) is None:
        return text
    return HARMFUL.sub("\ufffd", ESCAPE_SEQUENCE.sub("", text.replace("\x00", "")))


def without_overwritten(line: str) -> str:
    """What a reader is meant to see of a line that a progress bar wrote over itself with carriage returns."""
    parts = [part for part in line.split("\r") if part.strip()]
    if not parts:
        return ""
    return " ".join([part for part in parts if not PROGRESS.search(part)]) or parts[-1]
