"""What a container or pod printed, on both its outputs: the newest lines, and the first ones of its last life.

``docker logs --timestamps`` and ``kubectl logs --timestamps`` put a time before each line:

    2026-05-08T14:02:11.123456789Z ERROR 05-08 14:02:11 [core.py:708] EngineCore failed to start.
"""

import re
from collections import deque
from datetime import datetime, timezone
from typing import Any, Deque, Dict, List, Optional

from gpuwhy.collector import commands
from gpuwhy.collector.engines import KUBERNETES, Client, Container, outcome
from gpuwhy.collector.journal import FIELDS, HEAD_LINES, LONGEST, MOST_BYTES, MOST_LINES
from gpuwhy.collector.probing import Absent, Notes, NoValue

_STAMP = re.compile(r"^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d) ?")

_MERGED = ["-c", 'exec "$@" 2>&1', "sh"]
"""Both outputs on one: an error and the progress around it keep their order."""


def log_of(container: Container, started: Optional[str], notes: Notes) -> Dict[str, Any]:
    """Entries as a journal has them (see ``fields``), oldest first; ``cut`` says what is missing.

    ``started`` is when the last life began, as the engine writes it. Of a pod's container the life before is read too.
    """
    if container.engine == KUBERNETES:
        return _of_pod(container, notes)
    tail = _read(container, ["--tail", str(MOST_LINES)], notes)
    if not tail:
        raise Absent("%s printed nothing" % container.name)
    entries, cut = _bounded(tail), ""
    head: List[List[Any]] = []
    if len(tail) >= MOST_LINES or len(entries) < len(tail):
        since = ["--since", started] if started else []
        end = entries[0][0]
        first = _read(container, since, notes, HEAD_LINES)
        head = [entry for entry in first if entry[0] is not None and end is not None and entry[0] < end]
        cut = "only the newest %d lines were taken, and %d from the start of the last life" % (len(entries), len(head))
    return _value(head + entries, len(head), cut, [])


def _of_pod(container: Container, notes: Notes) -> Dict[str, Any]:
    """The life before (``--previous``) and the present one: a pod that restarts has died in the former."""
    reasons: List[str] = []
    lives: List[List[List[Any]]] = []
    for options in (["--previous"], []):
        try:
            lives.append(_read(container, options + ["--tail", str(MOST_LINES)], notes))
        except NoValue as why:
            lives.append([])
            if options:
                notes.remark("no life before this one is kept: " + why.reason)
            else:
                reasons.append(why.reason)
    before, now = lives
    if not before and not now:
        raise Absent("; ".join(reasons) or "%s printed nothing" % container.name)
    entries = _bounded(before + now)
    cut = "" if len(entries) == len(before) + len(now) else "only the newest %d lines were taken" % len(entries)
    return _value(entries, 0, cut, ["previous"] if before else [])


def _value(entries: List[List[Any]], gap: int, cut: str, lives: List[str]) -> Dict[str, Any]:
    return {"fields": list(FIELDS), "entries": entries, "gap_after": gap or None, "cut": cut, "lives": lives}


def _read(container: Container, options: List[str], notes: Notes, most: int = 0) -> List[List[Any]]:
    """The lines that the client prints, the first ``most`` of them where a number is given."""
    arguments = ["logs", "--timestamps"] + options
    if container.engine == KUBERNETES:
        arguments += container.scope() + (["--container", container.inner] if container.inner else [])
    arguments.append(container.name)
    client = Client(container)
    lines: Deque[str] = deque(maxlen=most or MOST_LINES)

    def keep(raw: bytes) -> bool:
        lines.append(raw[:LONGEST].decode("utf-8", "replace").rstrip("\r"))
        return not most or len(lines) < most

    words = _MERGED + client.words + arguments
    output = commands.run("sh", words, timeout=6.0, environment=client.environment, on_line=keep)
    notes.source(" ".join([container.client] + arguments)[:300])
    if output.status > 0 and len(lines) < 20:
        # its own words are among the lines, as both outputs are one
        raise outcome("\n".join(lines), "%s logs ended with status %d" % (container.client, output.status))
    return [entry(line) for line in lines]


def entry(line: str) -> List[Any]:
    """A line as a journal entry; without a time where the client wrote none."""
    found = _STAMP.match(line)
    time = None if found is None else _seconds(found.groups())
    text = line if found is None or time is None else line[found.end() :]
    return [time, None, "", None, "stdout", text]


def seconds(stamp: Any) -> Optional[float]:
    """Seconds since the epoch of a time as engines write it; None for none and for Go's year 1 ("never")."""
    found = _STAMP.match(stamp) if isinstance(stamp, str) else None
    return None if found is None else _seconds(found.groups())


def _seconds(parts: Any) -> Optional[float]:
    zone = parts[7]
    try:
        year, month, day, hour, minute, second = (int(part) for part in parts[:6])
        moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:
        return None
    if moment.year < 1980:
        return None
    offset = 0 if zone == "Z" else (int(zone[1:3]) * 3600 + int(zone[4:6]) * 60) * (-1 if zone[0] == "-" else 1)
    return round(moment.timestamp() + float(parts[6] or 0) - offset, 6)


def _bounded(entries: List[List[Any]]) -> List[List[Any]]:
    """The newest entries that fit."""
    size, first = 0, len(entries)
    while first and size + len(entries[first - 1][5]) + 60 <= MOST_BYTES:
        first -= 1
        size += len(entries[first][5]) + 60
    return entries[first:]
