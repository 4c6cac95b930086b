"""Text -> lines without their prefixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from gpuwhy.logs import continued, partial, powershell, rich_columns, stamps, verbose
from gpuwhy.logs.columns import column_of, within
from gpuwhy.logs.control import without_bar, without_controls, without_overwritten
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes import peel
from gpuwhy.logs.prefixes.parentheses import more_specific
from gpuwhy.model.event import LogLine

MAX_LINE = 64 << 10
"""Characters kept of a line: its beginning and its end. No message needs more; dumps of tensors and base64 do."""
_FRAME_BEHIND = Pattern(r"(?P<label>\S.{0,80}?)  File \"[^\"]{1,400}\", (?:line \d|in )")


def split_lines(text: str, reference: float | None = None) -> tuple[tuple[LogLine, ...], tuple[str, ...]]:
    """The lines of ``text`` and notes. ``reference`` is a time not long after the last line was written.

    Numbers are those of an editor (a line ends at LF, or at CR in a text without any LF). A record that holds a
    message of several lines (JSON) gives several lines of the same number.
    """
    whole = without_controls(text)
    if "\n" not in whole and "\r" in whole:
        whole = whole.replace("\r", "\n")
    raws = whole.replace("\r\n", "\n").split("\n")
    if raws and not raws[-1]:
        raws.pop()
    notes = _shorten(raws)
    if "\r" in whole:
        raws = [without_overwritten(raw) if "\r" in raw else raw for raw in raws]
    if "it/s]" in whole or "s/it]" in whole:
        raws = [without_bar(raw) if "it" in raw else raw for raw in raws]
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
    labels = _labels(lines)
    if labels:
        return tuple(msgspec.structs.replace(line, text=_without_label(line.text, labels)) for line in lines)
    return tuple(lines)


def _peeled(raws: Sequence[str], reference: float) -> list[LogLine]:
    column = column_of(raws)
    lines: list[LogLine] = []
    add = lines.append
    for number, raw in partial.whole_lines(raws) or enumerate(raws, 1):
        text = raw
        writer = None
        if column is not None:
            found = column(raw)
            if found is not None:
                text, writer = found
        text, process, time, level = peel(text, reference)
        if writer is not None:
            process = writer if process is None else within(writer, process)
        if "\n" in text:
            for part in text.split("\n"):
                inner, inner_process, inner_time, inner_level = peel(part, reference)
                if inner_process is not None and process is not None:
                    inner_process = more_specific(process, inner_process)
                add(LogLine(number, inner, raw, inner_process or process, inner_time or time, inner_level or level))
        else:
            add(LogLine(number, text, raw, process, time, level))
    return lines


def _shorten(raws: list[str]) -> tuple[str, ...]:
    long = [at for at, raw in enumerate(raws) if len(raw) > MAX_LINE]
    for at in long:
        raw = raws[at]
        raws[at] = f"{raw[: MAX_LINE // 2]} [...] {raw[-MAX_LINE // 2 :]}"
    if not long:
        return ()
    first = long[0] + 1
    return (f"{len(long)} lines longer than {MAX_LINE >> 10} KiB shortened in their middle, the first is line {first}",)


def _labels(lines: Iterable[LogLine]) -> tuple[str, ...]:
    """Prefixes of a kind we do not know, given away by tracebacks behind them (``ComfyUI error:   File "...``)."""
    seen: Counter[str] = Counter()
    for line in lines:
        if '  File "' in line.text and line.text[0] != " ":
            found = _FRAME_BEHIND.match(line.text[:600])
            if found is not None:
                seen[found["label"]] += 1
    return tuple(label for label, times in seen.most_common(8) if times > 1)


def _without_label(text: str, labels: Iterable[str]) -> str:
    for label in labels:
        if text.startswith(label):
            return text[len(label) :]
    return text
