"""How far a message reaches below its first line.

Python's warnings end at the source line they quote, a panic of Rust has its message in the next line, an error of
PyTorch's C++ brings its advice and its frames along, others take the indented lines below them.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.logs import tracebacks
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers import complaints, containers
from gpuwhy.logs.recognisers._types import Recognised
from gpuwhy.model.event import LogLine

MORE_LINES = 12
FRAME_LINES = 80
"""Frames of a native backtrace that are read as part of its error."""
_CUDA_ADVICE = ("CUDA kernel errors", "For debugging", "Compile with", "Search for `cuda", "Device-side assertion")
_WARN_CALL = Pattern(r"\s{2,}(?:\w+\.)*_?warn(?:ing|_once)?\(")
_RAISED_FROM = Pattern(r"Exception raised from |frame #\d{1,4}: ")
_NCCL_FILE = Pattern(r"(?P<file>[\w/]{1,60}\.(?:cc|h|cu)):\d{1,6} .{0,80}NCCL WARN")
_PANIC_ENDS = Pattern(r"(?:stack backtrace:|note: |thread ')")


def end_of(lines: Sequence[LogLine], at: int, found: Recognised, quoted: set[int]) -> int:
    """The position after the message that begins at ``lines[at]``; ``quoted`` lines are a traceback's."""
    first = lines[at]
    shape = _shape(first)
    end = at + 1
    while end < len(lines) and end - at <= MORE_LINES and end not in quoted and _shape(lines[end]) == shape:
        if found.tool == "python" and found.kind == "warning":
            if _WARN_CALL.match(lines[end].text):
                return end + 1
            if not _continues_warning(lines, at, end):
                break
        elif not _continues(lines, at, end, found):
            break
        end += 1
    return _after_frames(lines, end, shape, quoted)


def _shape(line: LogLine) -> tuple[str, bool]:
    """Lines of one message are alike: all with a logger's prefix, or all without."""
    return line.level, len(line.raw) > len(line.text)


def _continues(lines: Sequence[LogLine], at: int, here: int, found: Recognised) -> bool:
    text = lines[here].text
    if found.tool == "rust":
        return bool(text.strip()) and _PANIC_ENDS.match(text) is None
    if lines[at].text.startswith("|"):
        return text.startswith("|")  # the rows of a table are one statement
    if found.tool == "kubernetes":
        return containers.is_part_of_state(text)
    if found.tool == "container":
        return text.startswith(("nvidia-container-cli: ", " ", "\t"))
    if found.tool == "nvrm":
        return text.startswith("NVRM: ") and "Xid" not in text
    if found.kind == "warning" and found.tool == "nccl":
        return _is_next_layer(lines, at, here)
    return text.startswith((" ", "\t", *_CUDA_ADVICE))


def _is_next_layer(lines: Sequence[LogLine], at: int, here: int) -> bool:
    """NCCL tells of one failure at each layer of a source file that it passes through."""
    text = lines[here].text
    if lines[here].process != lines[at].process or here - at > 4 or text == lines[here - 1].text:
        return False
    file = _NCCL_FILE.search(lines[at].text)
    return file is not None and file["file"] in text and ("NCCL WARN" in text or " -> " in text)


def _after_frames(lines: Sequence[LogLine], end: int, shape: tuple[str, bool], quoted: set[int]) -> int:
    """Past ``Exception raised from ...`` and the frames below it, when they come next."""
    here = end
    while here < len(lines) and not lines[here].text.strip() and here - end < 3:
        here += 1
    start = here
    while (
        here < len(lines)
        and here - start < FRAME_LINES
        and here not in quoted
        and _shape(lines[here]) == shape
        and _RAISED_FROM.match(lines[here].text)
    ):
        here += 1
    return here if here > start else end


def _continues_warning(lines: Sequence[LogLine], at: int, here: int) -> bool:
    text = lines[here].text
    if text.startswith("  "):
        return True
    if not text.strip():
        return here + 1 < len(lines) and lines[here + 1].text.startswith("  ")
    if tracebacks.starts_exception(text) or complaints.PYTHON_WARNING.search(text[:1500]) or not text[0].isalnum():
        return False
    return lines[at].text.rstrip().endswith("Warning:")  # the whole message stands below
