"""Lines that are records: JSON loggers, docker's json-file, logfmt.

{"log":"Traceback (most recent call last):\\n","stream":"stderr","time":"2024-01-01T00:00:00.1Z"}
{"level": "error", "message": "Worker proc VllmWorker-6 died unexpectedly", "timestamp": "..."}
{"level":50,"time":1796024477414,"pid":10411,"hostname":"gpu-host","err":{"stack":"Error: ..."},"msg":"engine died"}
time=2024-08-01T10:00:00.000Z level=ERROR source=sched.go:455 msg="error loading llama server" error="..."
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuwhy.logs import stamps
from gpuwhy.logs.control import without_controls, without_overwritten
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes._types import Peeled
from gpuwhy.logs.prefixes.levels import NAMES
from gpuwhy.model.event import Process

MAX_RECORD = 64 << 10
_MESSAGES = ("log", "message", "msg", "MESSAGE", "event", "text", "M", "body")
_NESTED = ("fields", "record")
"""Where Rust's tracing puts the message, and loguru all but the text."""
_LOGURU = ("text", "message")
"""Only its text holds the exception."""
_TIMES = ("time", "timestamp", "ts", "@timestamp", "asctime", "T")
_LEVELS = ("level", "levelname", "severity", "lvl", "log.level", "severityText", "L")
_DOCKER_STREAMS = ("stdout", "stderr")
_NUMBERED = {10: "debug", 20: "debug", 30: "info", 40: "warning", 50: "error", 60: "critical"}
"""pino's and bunyan's; Python's own numbers never stand alone in a record."""
_TRACES = ("exc_info", "exception", "stacktrace", "stack", "err", "error")
_MOST_BLOCKS = 50
_ISO = Pattern(stamps.ISO)
_LOGFMT = Pattern(
    r"(?:(?:timestamp|time|ts)=\"?(?P<time>[^\s\"]+)\"? )?(?:level|lvl)=(?P<level>[A-Za-z]+) (?:(?:source|caller|logger)=\S+ )?(?=msg=|event=|\S)"
)
_MSG = Pattern(r'(?:msg|event)="((?:[^"\\]|\\.)*)"|(?:msg|event)=(\S*)')


def peel_json(text: str, _reference: float) -> Peeled | None:
    """A JSON object whose message is a string; other JSON is left as it is. The message may hold several lines."""
    stripped = text.rstrip()
    if not stripped.endswith("}") or len(stripped) > MAX_RECORD or '"' not in stripped[:3]:
        return None
    import json  # most logs hold none

    try:
        record = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    if record.get("stream") in _DOCKER_STREAMS and isinstance(record.get("log"), str):
        return _plain(record["log"]), None, _time(record.get("time")), ""
    inner = next((record[key] for key in _NESTED if isinstance(record.get(key), dict)), None)
    if inner is not None:
        record = {**inner, **record}
    messages = _LOGURU if "record" in record else _MESSAGES
    message = next((record[key] for key in messages if isinstance(record.get(key), str)), None)
    if message is None:
        return None
    time = next((record[key] for key in _TIMES if key in record), None)
    trace = _trace(record)
    whole = _plain(message.rstrip("\r\n") + (f"\n{trace}" if trace else ""))
    return whole, _writer(record), _time(time), _level(record)


def _plain(text: str) -> str:
    whole = without_controls(text.rstrip("\r\n")).replace("\r\n", "\n")
    return "\n".join(map(without_overwritten, whole.split("\n"))) if "\r" in whole else whole


def _level(record: dict[str, Any]) -> str:
    for key in _LEVELS:
        value = record.get(key)
        if isinstance(value, str):
            return NAMES.get(value.upper(), "")
        if isinstance(value, int) and value in _NUMBERED:
            return _NUMBERED[value]
        if isinstance(value, dict) and isinstance(value.get("name"), str):  # loguru
            return NAMES.get(value["name"].upper(), "")
    return ""


def _writer(record: dict[str, Any]) -> Process | None:
    pid = next((record[key] for key in ("pid", "process") if key in record), None)
    if isinstance(pid, dict):  # loguru, Elastic Common Schema
        pid = pid.get("id", pid.get("pid"))
    host = record.get("hostname")
    number = pid if isinstance(pid, int) and not isinstance(pid, bool) and 0 < pid < 1 << 32 else None
    named = without_controls(host)[:255].strip() if isinstance(host, str) and "\n" not in host else ""
    return Process(pid=number, host=named) if number is not None or named else None


def _trace(record: dict[str, Any]) -> str:
    """The exception that a record tells of, as its program would have printed it."""
    for key in _TRACES:
        value = record.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, dict) and isinstance(value.get("stack"), str):  # pino's ``err``
            return str(value["stack"])
        if key == "exception" and isinstance(value, list):
            return "\n".join(_chain([block for block in value[:_MOST_BLOCKS] if isinstance(block, dict)]))
    return ""


def _chain(blocks: list[dict[str, Any]]) -> Iterator[str]:
    """structlog's `dict_tracebacks`: the exceptions of a chain as objects, the one that surfaced first."""
    for at, block in reversed(list(enumerate(blocks))):
        yield "Traceback (most recent call last):"
        frames = block.get("frames")
        for frame in frames if isinstance(frames, list) else ():
            if isinstance(frame, dict):
                yield f'  File "{frame.get("filename")}", line {frame.get("lineno")}, in {frame.get("name")}'
        yield f"{block.get('exc_type')}: {block.get('exc_value')}"
        if at > 0 and block.get("is_cause"):
            yield "\nThe above exception was the direct cause of the following exception:\n"
        elif at > 0:
            yield "\nDuring handling of the above exception, another exception occurred:\n"


def peel_logfmt(text: str, _reference: float) -> Peeled | None:
    found = _LOGFMT.match(text[:300])
    if found is None:
        return None
    rest = text[found.end() :]
    message = _MSG.match(rest)
    if message is not None:
        quoted = message.group(1)
        said = quoted.replace('\\"', '"').replace("\\n", " ") if quoted is not None else message.group(2)
        rest = said + rest[message.end() :]
    return rest, None, _time(found["time"]), NAMES.get(found["level"].upper(), "")


def _time(value: object) -> float | None:
    if isinstance(value, dict):  # loguru, protobuf
        value = value.get("timestamp", value.get("seconds"))
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        seconds = float(value)
        while seconds > 1e11:  # milli-, micro- or nanoseconds
            seconds /= 1000
        return seconds if seconds > 1e8 else None
    if isinstance(value, str):
        found = _ISO.match(value)
        return stamps.from_iso(found.group()) if found else None
    return None
