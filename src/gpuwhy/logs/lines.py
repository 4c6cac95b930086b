"""Text -> lines without their prefixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from gpuwhy.logs import continued, partial, powershell, rich_columns, stamps, verbose
from gpuwhy.logs.columns import Column, column_of, within
from gpuwhy.logs.control import without_bar, without_controls, without_overwritten, without_residues
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes import peel
from gpuwhy.logs.prefixes._types import Peeled
from gpuwhy.logs.prefixes.parentheses import more_specific
from gpuwhy.model.event import LogLine, Process

MAX_LINE = 64 << 10
"""Characters kept of a line: its beginning and its end. No message needs more; dumps of tensors and base64 do."""
_ESCAPED = "(most recent call last):\\n"
_FRAME_BEHIND = Pattern(r"(?P<label>\S.{0,80}?)  File \"[^\"]{1,400}\", (?:line \d|in )")


def split_lines(text: str, reference: float | None = None) -> tuple[tuple[LogLine, ...], tuple[str, ...]]:
    """The lines of ``text`` and notes. ``reference`` is a time not long after the last line was written.

    Numbers are those of an editor (a line ends at LF, or at CR in a text without any LF). A record that holds a
    message of several lines (JSON) gives several lines of the same number.
    """
    whole = without_residues(without_controls(text))
    if "\n" not in whole and "\r" in whole:
        whole = whole.replace("\r", "\n")
    raws = whole.replace("\r\n", "\n").split("\n")
    if raws and not raws[-1]:
        raws.pop()
    notes = _shorten(raws)
    if "\r" in whole:
        raws = [without_overwritten(raw) if "\r" in raw else raw for raw in raws]
    if "%|" in whole:
        raws = [without_bar(raw) if "%|" in raw else raw for raw in raws]
    if powershell.SIGN not in whole:
        return read_lines(raws, reference), notes
    raws, numbers = powershell.without_error_records(raws)
    lines = read_lines(raws, reference)
    return tuple(msgspec.structs.replace(line, number=numbers[line.number - 1]) for line in lines), notes


def read_lines(raws: Sequence[str], reference: float | None = None) -> tuple[LogLine, ...]:
    """Lines (already harmless, one each) without their prefixes."""
    reference = stamps.today() if reference is None else reference
    if verbose.is_verbose(raws):
        return tuple(verbose.read(raws, reference))
    if rich_columns.is_rich(raws):
        return tuple(rich_columns.read(raws))
    lines = continued.inherited(_peeled(raws, reference), reference)
    suspects = [line for line in lines if "  File " in line.text and line.text[0] != " "]
    if any(_ESCAPED in line.text for line in suspects):
        lines = [part for line in lines for part in _unescaped(line, reference)]
    labels = _labels(suspects)
    if labels:
        return tuple(msgspec.structs.replace(line, text=_without_label(line.text, labels)) for line in lines)
    return tuple(lines)


def _peeled(raws: Sequence[str], reference: float) -> list[LogLine]:
    column = column_of(raws)
    lines: list[LogLine] = []
    add = lines.append
    for number, raw in partial.whole_lines(raws) or enumerate(raws, 1):
        text, process, time, level = peel(raw, reference) if column is None else _behind(column, raw, reference)
        if "\n" in text:
            lines.extend(_inner(part, number, raw, process, time, level, reference) for part in text.split("\n"))
        else:
            add(LogLine(number, text, raw, process, time, level))
    return lines


def _behind(column: Column, raw: str, reference: float) -> Peeled:
    found = column(raw)
    if found is None:
        return peel(raw, reference)
    text, process, time, level = peel(found[0], reference)
    writer = found[1]
    if writer is not None:
        process = writer if process is None else within(writer, process)
    return text, process, time, level


def _inner(
    part: str, number: int, raw: str, process: Process | None, time: float | None, level: str, reference: float
) -> LogLine:
    """One line of a message that its record holds whole; what the record tells holds where the line tells nothing."""
    text, own, own_time, own_level = peel(part, reference)
    if own is not None and process is not None:
        own = more_specific(process, own)
    return LogLine(number, text, raw, own or process, own_time or time, own_level or level)


def _shorten(raws: list[str]) -> tuple[str, ...]:
    long = [at for at, raw in enumerate(raws) if len(raw) > MAX_LINE]
    for at in long:
        raw = raws[at]
        raws[at] = f"{raw[: MAX_LINE // 2]} [...] {raw[-MAX_LINE // 2 :]}"
    if not long:
        return ()
    first = long[0] + 1
    return (f"{len(long)} lines longer than {MAX_LINE >> 10} KiB shortened in their middle, the first is line {first}",)


def _labels(suspects: Iterable[LogLine]) -> tuple[str, ...]:
    """Prefixes of a kind we do not know, given away by tracebacks behind them (``ComfyUI error:   File "...``)."""
    seen: Counter[str] = Counter()
    for line in suspects:
        found = _FRAME_BEHIND.match(line.text[:600])
        if found is not None:
            seen[found["label"]] += 1
    return tuple(label for label, times in seen.most_common(8) if times > 1)


def _unescaped(line: LogLine, reference: float) -> Iterable[LogLine]:
    """A traceback in one line, its line ends spelt out: a field of JSON, a pod's termination message, a `repr`."""
    if _ESCAPED not in line.text:
        return (line,)
    parts = line.text.replace("\\n", "\n").replace('\\"', '"').split("\n")
    return [_inner(part, line.number, line.raw, line.process, line.time, line.level, reference) for part in parts]


def _without_label(text: str, labels: Iterable[str]) -> str:
    for label in labels:
        if text.startswith(label):
            return text[len(label) :]
    return text
