"""The ways in: bytes, a file, a pasted report, a kernel log."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from gpuwhy.logs import decoding, journal, reports
from gpuwhy.logs.decoding import UnreadableLog
from gpuwhy.logs.lines import split_lines
from gpuwhy.logs.patterns import Pattern
from gpuwhy.model.event import Log, LogLine

_BOOT_SECONDS = Pattern(r"\[ *(\d{1,8}\.\d{6})\]")
_KERNEL_SHARE = 0.8
_KERNEL_LINE = Pattern(r"(?:<\d+>)?\[ *\d{1,8}\.\d{6}\]|\S{0,40}kernel: ")
MAX_INPUT = 4 << 30


def read_bytes(data: bytes, name: str) -> Log:
    """The log in ``data``, whatever it is wrapped in: compression, an encoding, a journal, a bug report.

    ``name`` is what the log is called in evidence: a path, a unit, ``-``. Raises UnreadableLog for what is no text.
    """
    if journal.is_export(data):
        return journal.journal_lines(journal.entries_of_export(data), name)
    text, notes = decoding.decode(data, name)
    if journal.is_export(text[:8192].encode("utf-8", "replace")):
        return _noted(journal.journal_lines(journal.entries_of_export(text.encode("utf-8", "replace")), name), notes)
    return _from_text(text, name, "", notes, None)


def open_log(path: str | os.PathLike[str]) -> Log:
    """The log in a file. Raises UnreadableLog with the reason when it cannot be opened or is no text."""
    name = os.fspath(path)
    place = Path(path)
    try:
        if place.is_dir():
            raise UnreadableLog(f"{name}: a directory")
        if not place.is_file():
            raise UnreadableLog(f"{name}: {'no regular file' if place.exists() else 'no such file'}")
        if place.stat().st_size > MAX_INPUT:
            raise UnreadableLog(f"{name}: larger than {MAX_INPUT >> 30} GiB; cut out the part around the crash")
        data = place.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadableLog(f"{name}: {reason}") from error
    return read_bytes(data, name)


def read_report(text: str, name: str = "report") -> Log:
    """The text of a bug report: Markdown, quotes and HTML taken off. A bare log passes through unchanged."""
    return _from_text(text, name, "report", (), None)


def kernel_lines(lines: str | Iterable[str], name: str = "dmesg", boot_time: float | None = None) -> Log:
    """What ``dmesg`` prints. ``boot_time`` (seconds since the epoch) turns its seconds since boot into times."""
    text = lines if isinstance(lines, str) else "\n".join(lines)
    read, notes = split_lines(text)
    if boot_time is not None:
        read = tuple(_with_boot_time(line, boot_time) for line in read)
    return Log(name, "kernel log", read, notes)


def _with_boot_time(line: LogLine, boot_time: float) -> LogLine:
    found = _BOOT_SECONDS.match(line.raw)
    if line.time is not None or found is None:
        return line
    return msgspec.structs.replace(line, time=boot_time + float(found.group(1)))


def _from_text(text: str, name: str, kind: str, notes: tuple[str, ...], reference: float | None) -> Log:
    if journal.is_json(text):
        return _noted(journal.journal_lines(journal.entries_of_json(text), name), notes)
    if reports.is_report(text):
        kind = "report"
        text = reports.unwrapped(text)
    lines, more = split_lines(reports.dedented(text), reference)
    if not kind:
        kind = "kernel log" if _is_kernel_log(lines) else "log"
    return Log(name, kind, lines, notes + more)


def _noted(log: Log, notes: tuple[str, ...]) -> Log:
    return msgspec.structs.replace(log, notes=notes + log.notes) if notes else log


def _is_kernel_log(lines: tuple[LogLine, ...]) -> bool:
    sample = [line for line in lines[:200] if line.raw.strip()]
    return bool(sample) and sum(_KERNEL_LINE.match(line.raw) is not None for line in sample) >= _KERNEL_SHARE * len(
        sample
    )
