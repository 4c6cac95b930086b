"""The systemd journal: entries as JSON objects, the export format, and text that holds either."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpuwhy.logs.control import without_controls, without_overwritten
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes import peel
from gpuwhy.logs.prefixes.parentheses import more_specific
from gpuwhy.logs.stamps import today
from gpuwhy.model.event import Log, LogLine, Process

LEVELS = {
    "0": "critical",
    "1": "critical",
    "2": "critical",
    "3": "error",
    "4": "warning",
    "5": "info",
    "6": "info",
    "7": "debug",
}
MAX_FIELD = 1 << 20
_UNIT_FIELDS = ("UNIT", "USER_UNIT", "OBJECT_SYSTEMD_UNIT", "COREDUMP_UNIT", "_SYSTEMD_UNIT", "_SYSTEMD_USER_UNIT")
_EXPORT_SIGN = re.compile(rb"(?:\A|\n)__REALTIME_TIMESTAMP=\d+\n")
_JSON_SIGN = Pattern(r'\A\s*(?:\x1e|data: )?\{[^\n]*"(?:__REALTIME_TIMESTAMP|_BOOT_ID)"')
_PRETTY_SIGN = Pattern(r'\A\s*\{(?:\n\t[^\n]{0,65536}){0,80}?\n\t"(?:__REALTIME_TIMESTAMP|_BOOT_ID)"')


def journal_lines(entries: Iterable[Mapping[str, Any]], name: str = "journal") -> Log:
    """Entries of ``journalctl -o json`` as a log; a line's number is that of its entry.

    ``MESSAGE`` is a string, a list of byte numbers (journalctl writes text with control characters so), or null
    (longer than journalctl prints without ``-a``). The time is the journal's own, in UTC. A line that was too long for
    one entry is put together again under the number of its last.
    """
    lines: list[LogLine] = []
    left_out = 0
    reference = today()
    begun: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, Mapping):
            continue
        message = _text(entry.get("MESSAGE"))
        if message is None:
            left_out += 1
            message = ""
        stream = _cut_stream(entry)
        whole = begun.pop(stream, "") + message if stream else message
        if stream and _is_cut(entry) and len(whole) < MAX_FIELD:
            begun[stream] = whole
            continue
        lines.extend(entry_lines(number, entry, whole, reference))
    for whole in begun.values():
        lines.extend(entry_lines(number, {}, whole, reference))
    notes = (
        (f"{left_out} entries without their text (journalctl leaves out long ones unless -a is given)",)
        if left_out
        else ()
    )
    return Log(name, "journal", tuple(lines), notes)


def entry_lines(number: int, entry: Mapping[str, Any], message: str, reference: float) -> Iterator[LogLine]:
    """The lines of one entry's message; ``number`` is where the entry stands in its source."""
    time = _seconds(entry)
    writer = _writer(entry)
    unit = "" if writer is not None and writer.name == "kernel" else _unit(entry)
    outer_level = _level(entry)
    for part in without_controls(message).replace("\r\n", "\n").split("\n"):
        if "\r" in part:
            part = without_overwritten(part)
        text, process, inner_time, level = peel(part, time or reference)
        if process is None:
            process = writer
        elif writer is not None:
            process = more_specific(writer, process)
        yield LogLine(number, text, part, process, time if time is not None else inner_time, level or outer_level, unit)


def _cut_stream(entry: Mapping[str, Any]) -> str:
    """What the pieces of a cut line have in common: docker's own id of the message, or the stream to the journal."""
    if "CONTAINER_PARTIAL_ID" in entry:
        return _field(entry, "CONTAINER_PARTIAL_ID")
    return _field(entry, "_STREAM_ID") if entry.get("_TRANSPORT") == "stdout" else _field(entry, "CONTAINER_ID_FULL")


def _is_cut(entry: Mapping[str, Any]) -> bool:
    """Whether the line goes on in the next entry of its stream."""
    if "CONTAINER_PARTIAL_LAST" in entry:
        return _field(entry, "CONTAINER_PARTIAL_LAST") == "false"
    return entry.get("_LINE_BREAK") == "line-max" or entry.get("CONTAINER_PARTIAL_MESSAGE") == "true"


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if value and isinstance(value[0], (str, list)):  # a field that occurs several times
            return _text(value[0])
        return bytes(byte for byte in value if isinstance(byte, int) and 0 <= byte < 256).decode("utf-8", "replace")
    return None


def _field(entry: Mapping[str, Any], key: str) -> str:
    return " ".join(without_controls(_text(entry.get(key)) or "").split())


def _seconds(entry: Mapping[str, Any]) -> float | None:
    for key in ("__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP"):
        value = entry.get(key)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 18:
            return int(value) / 1e6
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e17:
            return value / 1e6
    return None


def _writer(entry: Mapping[str, Any]) -> Process | None:
    host = _field(entry, "_HOSTNAME")
    if entry.get("_TRANSPORT") == "kernel":
        return Process(name="kernel", host=host)
    name = _field(entry, "SYSLOG_IDENTIFIER") or _field(entry, "_COMM")
    pid = _field(entry, "_PID") or _field(entry, "SYSLOG_PID")
    number = int(pid) if pid.isascii() and pid.isdigit() and len(pid) < 12 else None
    return Process(name=name, pid=number, host=host) if name or number is not None or host else None


def _unit(entry: Mapping[str, Any]) -> str:
    for key in _UNIT_FIELDS:
        value = _field(entry, key)
        if value and value != "init.scope":
            return value
    return ""


def _level(entry: Mapping[str, Any]) -> str:
    """The priority, except where it says only which of its two outputs a program used."""
    if entry.get("_TRANSPORT") == "stdout" or "CONTAINER_NAME" in entry:
        return ""
    return LEVELS.get(str(entry.get("PRIORITY", "")), "")


def is_export(data: bytes) -> bool:
    """Whether ``data`` is in the journal export format (``journalctl -o export``)."""
    return _EXPORT_SIGN.search(data[:8192]) is not None


def is_json(text: str) -> bool:
    """Whether ``text`` holds entries as ``journalctl -o json``, ``json-pretty``, ``json-sse`` or ``json-seq`` prints them."""
    if not text[:200].lstrip("\x1e \t\r\n").startswith(("{", "data: {")):
        return False
    return _JSON_SIGN.match(text[:65536]) is not None or _PRETTY_SIGN.match(text[:65536]) is not None


def entries_of_json(text: str) -> Iterator[dict[str, Any]]:
    """The entries, one a line or (``json-pretty``) over several; what is no JSON object is passed over."""
    import json

    if _PRETTY_SIGN.match(text[:65536]) is not None:
        yield from _entries_of_pretty(text)
        return
    for line in text.split("\n"):
        stripped = line.strip("\x1e \r\t").removeprefix("data: ")
        if not stripped.startswith("{"):
            continue
        try:
            entry = json.loads(stripped)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            yield entry


def _entries_of_pretty(text: str) -> Iterator[dict[str, Any]]:
    """An entry begins with ``{`` and ends with ``}``, each alone at the left edge of a line."""
    import json

    at = 0 if text.startswith("{") else text.find("\n{\n") + 1
    while at >= 0 and text.startswith("{", at):
        end = text.find("\n}", at)
        piece = text[at : end + 2] if end > 0 else text[at:]
        try:
            entry = json.loads(piece)
        except (ValueError, RecursionError):
            entry = None
        if isinstance(entry, dict):
            yield entry
        following = text.find("\n{\n", at)
        at = following + 1 if following >= 0 else len(text)


def entries_of_export(data: bytes) -> Iterator[dict[str, Any]]:
    """``KEY=value`` lines, or ``KEY``, a length in 8 bytes and that many bytes; an empty line ends an entry.

    A damaged length ends the reading of that entry only.
    """
    entry: dict[str, Any] = {}
    at = 0
    while at < len(data):
        end = data.find(b"\n", at)
        if end < 0:
            end = len(data)
        line = data[at:end]
        at = end + 1
        if not line:
            if entry:
                yield entry
            entry = {}
            continue
        key, equals, value = line.partition(b"=")
        if not equals:
            length = int.from_bytes(data[at : at + 8], "little")
            if length > len(data) - at - 8:
                continue
            value = data[at + 8 : at + 8 + length]
            at += 8 + length + 1
        name = key.decode("ascii", "replace")
        if len(value) <= MAX_FIELD and name not in entry:
            entry[name] = value.decode("utf-8", "replace")
    if entry:
        yield entry
