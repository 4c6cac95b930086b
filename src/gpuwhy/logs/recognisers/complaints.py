"""Warnings and error lines that are none of the other kinds.

Failed to get device capability: SM 12.x requires CUDA >= 12.9.      a swallowed exception: no level, no prefix
/opt/.../torch/cuda/__init__.py:287: UserWarning:                    Python's warnings; the text can follow below
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    "Warning", "WARN", "warning", "Failed", "failed", "Error", "ERROR", "error", "annot ", "ould not", "Unable", "unable", "not found", "No such", "denied", "refused", "imed out", "imeout",
    "nsupported", "not supported", "ncompatible", "not compatible", "mismatch", "nvalid", "orrupt", "issing", "nsufficient", "ut of memory", "No space", "xception", "don't match",
    "No available", "Could NOT", "too old", "too long", "not available", "unavailable", "Read-only", "SIGTERM", "not divisible", "must be divisible", "larger than", "requires ",
    "trust_remote_code", "hang", "hung", "stuck", "no further output", "was built for", "wasn't build",
)  # fmt: skip
PYTHON_WARNING = Pattern(
    r"(?P<path>\S{1,500}|<\w{1,40}>):(?P<line>\d{1,9}): (?P<category>(?:[\w.]{1,100}\.)?\w{0,60}Warning): ?(?P<message>.*)$"
)
_UNLEVELLED = Pattern(
    r"\b(?:[Ff]ail(?:ed|ure)|[Ee]rror|ERROR|WARN(?:ING)?|[Ww]arning:|[Cc]annot|[Cc]ould not|[Uu]nable to|not found|No such file|[Dd]enied|refused|[Tt]imed out|[Uu]nsupported|not supported|"
    r"[Ii]ncompatible|not compatible|[Mm]ismatch\w*|[Ii]nvalid|[Cc]orrupt\w*|[Mm]issing|[Ii]nsufficient|[Oo]ut of memory|No space left|don't match|too old|Read-only file|not divisible|must be divisible|"
    r"larger than|was built for|wasn't build|trust_remote_code=True|\bhangs?\b|\bhung\b|\bstuck\b|no further output)"
)
_FRAME = Pattern(r"frame #\d{1,4}: ")
_CALM = Pattern(
    r"(?i)no errors?\b|error[_-]?(?:rate|count|log)|0 (?:errors|failed|failures)|(?:failed|failures|errors)\b[\w ]{0,20}[:=] {0,40}0$|(?:failed|errors)=0|if (?:you|this)|^Output: |^\[\d\d:\d\d[:.\d]{0,12} --> |\"GET |\"POST |HTTP/1\.1\" 200"
)
LONGEST = 2000


def recognise(text: str, level: str = "") -> Recognised | None:
    if not text.strip():
        return None
    shown = text[:LONGEST]
    if level in ("warning", "error", "critical"):
        return Recognised("warning", "", {"level": level}, takes_more=True)
    if level in ("info", "debug"):
        return None
    if shown[:1] in (" ", "\t") or _FRAME.match(shown) or _CALM.search(shown) or _UNLEVELLED.search(shown) is None:
        return None
    return Recognised("warning", takes_more=True)


def recognise_python_warning(text: str) -> Recognised | None:
    """``path:line: UserWarning: message``; the message may begin on the next line."""
    if "Warning" not in text:
        return None
    found = PYTHON_WARNING.search(text[:1500])
    return Recognised("warning", "python", {"category": found["category"]}, takes_more=True) if found else None
