"""Lines that are records: JSON loggers, docker's json-file, logfmt.

{"log":"Traceback (most recent call last):\\n","stream":"stderr","time":"2024-01-01T00:00:00.1Z"}
{"level": "error", "message": "Worker proc VllmWorker-6 died unexpectedly", "timestamp": "..."}
time=2024-08-01T10:00:00.000Z level=ERROR source=sched.go:455 msg="error loading llama server" error="..."
"""

from __future__ import annotations

from gpuwhy.logs import stamps
from gpuwhy.logs.control import without_controls
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes._types import Peeled
from gpuwhy.logs.prefixes.levels import NAMES

MAX_RECORD = 64 << 10
_MESSAGES = ("log", "message", "msg", "MESSAGE", "event", "text")
_TIMES = ("time", "timestamp", "ts", "@timestamp", "asctime")
_LEVELS = ("level", "levelname", "severity", "lvl")
_ISO = Pattern(stamps.ISO)
_LOGFMT = Pattern(
    r"(?:(?:time|ts)=\"?(?P<time>[^\s\"]+)\"? )?(?:level|lvl)=(?P<level>[A-Za-z]+) (?:(?:source|caller|logger)=\S+ )?(?=msg=|\S)"
)
_MSG = Pattern(r'msg="((?:[^"\\]|\\.)*)"|msg=(\S*)')


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
    message = next((record[key] for key in _MESSAGES if isinstance(record.get(key), str)), None)
    if message is None:
        return None
    time = next((record[key] for key in _TIMES if key in record), None)
    level = next((record[key] for key in _LEVELS if isinstance(record.get(key), str)), "")
    trace = next(
        (record[key] for key in ("exc_info", "exception", "stacktrace", "error") if isinstance(record.get(key), str)),
        "",
    )
    whole = message.rstrip("\r\n") + (f"\n{trace}" if trace else "")
    whole = without_controls(whole).replace("\r\n", "\n").replace("\r", "\n")
    return whole, None, _time(time), NAMES.get(level.upper(), "")


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
