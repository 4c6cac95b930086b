"""The ways in: bytes, a file, a pasted report, a kernel log."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec

from gpuwhy.logs import decoding, interest, journal, reports, sifting, unpacking
from gpuwhy.logs.decoding import UnreadableLog
from gpuwhy.logs.lines import split_lines
from gpuwhy.logs.patterns import Pattern
from gpuwhy.model.event import Log, LogLine

_BOOT_SECONDS = Pattern(r"\[ *(\d{1,8}\.\d{6})\]")
_KERNEL_SHARE = 0.8
_KERNEL_LINE = Pattern(r"(?:<\d+>)?\[ *\d{1,8}\.\d{6}\]|\S{0,40}kernel: ")
WHOLE = 8 << 20
"""Bytes up to which every line of a log is read closely; that takes a third of a second."""


def read_bytes(data: bytes, name: str, signs: Iterable[str] = ()) -> Log:
    """The log in ``data``, whatever it is wrapped in: compression, an encoding, a journal, a bug report.

    ``name`` is what the log is called in evidence: a path, a unit, ``-``; a large one is read as :func:`read_stream`
    does. Raises UnreadableLog for what is no text.
    """
    if len(data) > WHOLE or unpacking.compression(data):
        return read_stream(io.BytesIO(data), name, signs)
    return _whole(data, name)


def _whole(data: bytes, name: str) -> Log:
    if journal.is_export(data):
        return journal.journal_lines(journal.entries_of_export(data), name)
    text, notes = decoding.decode(data, name)
    if journal.is_export(text[:8192].encode("utf-8", "replace")):
        return _noted(journal.journal_lines(journal.entries_of_export(text.encode("utf-8", "replace")), name), notes)
    return _from_text(text, name, "", notes, None)


def open_log(path: str | os.PathLike[str], signs: Iterable[str] = ()) -> Log:
    """The log in a file, as :func:`read_stream` reads it.

    Raises UnreadableLog with the reason when it cannot be opened or is no text.
    """
    name = os.fspath(path)
    place = Path(path)
    try:
        if place.is_dir():
            raise UnreadableLog(f"{name}: a directory")
        if not place.is_file():
            raise UnreadableLog(f"{name}: {'no regular file' if place.exists() else 'no such file'}")
        with place.open("rb") as file:
            return read_stream(file, name, signs)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadableLog(f"{name}: {reason}") from error


def read_stream(stream: BinaryIO, name: str, signs: Iterable[str] = (), begun: bytes = b"") -> Log:
    """The log in a stream, in memory that does not grow with it.

    What fits into :data:`WHOLE` bytes is read whole. Of a longer one the lines are kept that can matter: those that
    hold what an event, a stated fact or one of ``signs`` (literals of causes) begins with, what stands around them, and
    both ends; a line's number is that in the whole log. ``begun`` is what was read of the stream already. Of a file that
    grows meanwhile, what was there at the beginning is read.

    Raises UnreadableLog for what is no text, and OSError.
    """
    blocks = _blocks(stream, begun)
    head = b""
    for block in blocks:
        head += block
        if len(head) > WHOLE:
            break
    if len(head) <= WHOLE and not unpacking.compression(head):
        return _whole(head, name)
    notes: list[str] = []
    try:
        unpacked = unpacking.plain(chain((head,), blocks), notes)
    except unpacking.NestedTooDeep as error:
        raise UnreadableLog(f"{name}: {error}") from error
    first: list[bytes] = []
    size = 0
    for block in unpacked:
        first.append(block)
        size += len(block)
        if size > WHOLE:
            break
    beginning = b"".join(first)
    if size <= WHOLE:
        return _noted(_whole(beginning, name), tuple(notes))
    return _sifted(beginning, chain((beginning,), unpacked), name, signs, notes)


def _sifted(beginning: bytes, blocks: Iterable[bytes], name: str, signs: Iterable[str], notes: list[str]) -> Log:
    is_export = journal.is_export(beginning)
    if not is_export:
        decoding.decode(beginning[: 1 << 16], name)  # refuses what is no text before all of it is searched
    separator = b"\n\n" if is_export else b"\n"
    wanted = interest.literals() | {sign.lower() for sign in signs if len(sign) >= interest.SHORTEST}
    sifted = sifting.sift(blocks, wanted, separator)
    text = separator.join(sifted.lines) + separator
    if is_export:
        log = journal.journal_lines(journal.entries_of_export(text), name)
    else:
        decoded, more = decoding.decode(text, name)
        log = _from_text(decoded, name, "", more, None)
    return Log(log.name, log.kind, _renumbered(log.lines, sifted.numbers), (*notes, *sifted.notes, *log.notes))


def _renumbered(lines: tuple[LogLine, ...], numbers: tuple[int, ...]) -> tuple[LogLine, ...]:
    last = len(numbers)
    return tuple(
        msgspec.structs.replace(line, number=numbers[min(line.number, last) - 1]) if numbers else line for line in lines
    )


def _blocks(stream: BinaryIO, begun: bytes) -> Iterator[bytes]:
    """The stream to the end that it has now: a log that is written meanwhile has no other."""
    left = _size_now(stream)
    if begun:
        yield begun
        left = None if left is None else left - len(begun)
    while left is None or left > 0:
        block = stream.read(unpacking.BLOCK if left is None else min(left, unpacking.BLOCK))
        if not block:
            return
        left = None if left is None else left - len(block)
        yield block


def _size_now(stream: BinaryIO) -> int | None:
    """The size of a regular file; None for a pipe, which ends when its writer does."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError, AttributeError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


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
