"""The journal of the unit: its own lines and systemd's lines about it.

``journalctl -o json`` prints an object a line. ``MESSAGE`` is a text; a list of byte numbers when it holds control
characters or a newline; null when it is longer than 4 KB and ``--all`` was not given.
"""

import json
import os
import re
from collections import deque
from typing import Any, Deque, Dict, List, Optional

from gpuwhy.collector import commands
from gpuwhy.collector.allowing import joining
from gpuwhy.collector.choosing import USER, chosen
from gpuwhy.collector.probing import Absent, Denied, Failed, Notes, NoValue, Request, first_of
from gpuwhy.collector.user_managers import manager_of

FIELDS = ("time", "pid", "process", "priority", "origin", "text")
"""The columns of an entry. ``time`` in seconds since the epoch; ``origin`` is ``systemd`` for
its own lines about the unit, else the transport that brought the line: ``stdout``, ``journal``, ``syslog``, ``kernel``."""

MOST_LINES = 20000

MOST_BYTES = 4 << 20

HEAD_LINES = 2500
"""How many lines from the start of the last life are fetched when the newest lines do not reach back to it."""

LONGEST = 1 << 16

STARTING = "7d4958e842da4a758f6c1cdc7b36dcc5"
"""MESSAGE_ID of systemd's "Starting UNIT..."."""

STARTED = "39f53479d3a045ac8e11786248231fbf"
"""MESSAGE_ID of systemd's "Started UNIT."."""

OUTPUT_FIELDS = "MESSAGE,PRIORITY,_PID,SYSLOG_PID,SYSLOG_IDENTIFIER,_COMM,_TRANSPORT,MESSAGE_ID,UNIT,USER_UNIT,_SYSTEMD_UNIT,_BOOT_ID"


def journal(
    request: Request, notes: Notes, unit: Optional[Dict[str, Any]], candidates: Optional[List[Dict[str, Any]]]
) -> Dict[str, Any]:
    """The newest lines of the unit's journal, and those of the start of its last life; ``cut`` says what is missing."""
    choice = chosen(request, candidates)
    if not choice.is_unit:
        raise Absent("%s is no unit of systemd: it has no journal of its own" % choice.name)
    name = choice.name
    notes.subject = "unit:" + name
    owner = first_of(unit, "uid")
    if choice.kind == USER and owner is None:
        owner = manager_of(choice.user).uid
    select = ["--unit", name] if owner is None else of_user_unit(name, owner)
    most_lines = int(request.get("journal_lines") or MOST_LINES)
    most_bytes = int(request.get("journal_bytes") or MOST_BYTES)
    tail: Deque[List[Any]] = deque()
    size, left_out = 0, 0
    last_start: Optional[float] = None

    def keep(entry: List[Any], message_id: str) -> bool:
        nonlocal size, left_out, last_start
        if message_id in (STARTING, STARTED):
            last_start = entry[0]
        tail.append(entry)
        size += _size(entry)
        while size > most_bytes:
            size -= _size(tail.popleft())
            left_out += 1
        return True

    read_entries(["--lines", str(most_lines)] + select, request, notes, keep, timeout=6.0)
    if not tail:
        raise Absent(
            "the journal has no line of %s%s" % (name, "; " + "; ".join(notes.remarks) if notes.remarks else "")
        )
    reached_limit = left_out > 0 or len(tail) >= most_lines
    cut: List[str] = []
    head: List[List[Any]] = []
    if reached_limit:
        cut.append("only the newest %d lines were taken" % len(tail))
        start = last_start if last_start is not None else _last_start(name, owner, request, notes)
        if start is not None and start < tail[0][0]:
            head = _head(select, start, tail[0][0], request, notes)
            cut.append("and %d lines from the start of the last life" % len(head))
    return {
        "unit": name,
        "fields": list(FIELDS),
        "entries": head + list(tail),
        "gap_after": len(head) if head else None,
        "cut": " ".join(cut),
    }


def of_user_unit(name: str, uid: int) -> List[str]:
    """What ``journalctl --user-unit`` looks for, for an account that need not be one's own."""
    owner = "_UID=%d" % uid
    return [
        "_SYSTEMD_USER_UNIT=" + name,
        owner,
        "+",
        "USER_UNIT=" + name,
        owner,
        "+",
        "COREDUMP_USER_UNIT=" + name,
        owner,
    ]


def _last_start(unit: str, owner: Optional[int], request: Request, notes: Notes) -> Optional[float]:
    """When systemd last started the unit; lies before the newest lines when the service writes much."""
    found: List[float] = []

    def keep(entry: List[Any], _message_id: str) -> bool:
        found.append(entry[0])
        return True

    about = ["UNIT=" + unit] if owner is None else ["USER_UNIT=" + unit, "_UID=%d" % owner]
    matches = ["MESSAGE_ID=" + STARTING] + about + ["+", "MESSAGE_ID=" + STARTED] + about
    try:
        read_entries(["--lines", "4"] + matches, request, notes, keep, timeout=3.0)
    except NoValue as why:
        notes.remark(why.reason)
    return found[-1] if found else None


def _head(select: List[str], start: float, end: float, request: Request, notes: Notes) -> List[List[Any]]:
    head: List[List[Any]] = []

    def keep(entry: List[Any], _message_id: str) -> bool:
        if entry[0] < end:
            head.append(entry)
        return entry[0] < end and len(head) < HEAD_LINES

    try:
        read_entries(["--since", "@%d" % int(start)] + select, request, notes, keep, timeout=3.0)
    except NoValue as why:
        notes.remark(why.reason)
    return head


def directory(request: Request) -> Optional[str]:
    """A folder of journal files to read in place of the host's own."""
    chosen = request.get("journal_directory") or os.environ.get("GPUWHY_JOURNAL_DIRECTORY")
    return str(chosen) if chosen else None


def read_entries(arguments: List[str], request: Request, notes: Notes, keep: Any, timeout: float) -> None:
    """Gives ``keep(entry, message_id)`` each journal entry until it returns False. Raises Absent, Denied, TimedOut, Failed."""
    place = directory(request)
    base = ["--output", "json", "--all", "--no-pager", "--quiet"] + (["--directory", place] if place else [])
    count = 0
    stopped = False

    def line(raw: bytes) -> bool:
        nonlocal count, stopped
        parsed = parse(raw)
        if parsed is None:
            return True
        count += 1
        goes_on = bool(keep(*parsed))
        stopped = stopped or not goes_on
        return goes_on

    output = commands.run(
        "journalctl", base + ["--output-fields", OUTPUT_FIELDS] + arguments, timeout=timeout, on_line=line
    )
    if output.status > 0 and not count and "output-fields" in output.err:
        # systemd before 236
        output = commands.run("journalctl", base + arguments, timeout=timeout, on_line=line)
    notes.source(output.command[:300])
    if count or stopped:
        return
    said = " ".join(output.err.split())[:300]
    if re.search(r"ermission denied|not permitted|insufficient permissions", said):
        raise Denied("%s (root, or a member of group systemd-journal, may read it)" % said, *joining("systemd-journal"))
    if output.status > 0 and said:
        raise Failed("journalctl: " + said)
    if _lacks_permission():
        raise Denied(
            "this user sees only its own journal (root, or a member of group systemd-journal, may read all)",
            *joining("systemd-journal"),
        )


def _lacks_permission() -> bool:
    """``--quiet`` also silences journalctl's hint that most of the journal is hidden from this user."""
    for place in ("/var/log/journal", "/run/log/journal"):
        if os.path.isdir(place) and not os.access(place, os.R_OK | os.X_OK):
            return True
    import grp

    if os.geteuid() == 0:
        return False
    groups = set(os.getgroups())
    for name in ("systemd-journal", "adm", "wheel"):
        try:
            if grp.getgrnam(name).gr_gid in groups:
                return False
        except KeyError:
            continue
    return True


def parse(raw: bytes) -> "Optional[tuple[List[Any], str]]":
    """One line of ``journalctl -o json`` as an entry (see :data:`FIELDS`) and its message id; None when it is none."""
    try:
        fields = json.loads(raw.decode("utf-8", "replace"))
        time = int(fields["__REALTIME_TIMESTAMP"]) / 1e6
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    text = _text(fields.get("MESSAGE"))
    if text is None:
        return None
    origin = _text(fields.get("_TRANSPORT")) or ""
    is_manager = _text(fields.get("_PID")) == "1" if fields.get("UNIT") else _text(fields.get("_COMM")) == "systemd" and fields.get("USER_UNIT")  # fmt: skip
    if origin != "kernel" and is_manager:
        origin = "systemd"
    pid = _text(fields.get("_PID")) or _text(fields.get("SYSLOG_PID")) or ""
    priority = _text(fields.get("PRIORITY")) or ""
    entry: List[Any] = [
        round(time, 6),
        int(pid) if pid.isdigit() else None,
        _text(fields.get("SYSLOG_IDENTIFIER")) or _text(fields.get("_COMM")) or "",
        int(priority) if priority.isdigit() else None,
        origin,
        text[:LONGEST],
    ]
    return entry, _text(fields.get("MESSAGE_ID")) or ""


def _text(value: Any) -> Optional[str]:
    """A field as text: it may come as bytes, or several times over."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if value and all(isinstance(each, int) and 0 <= each < 256 for each in value):
            return bytes(value).decode("utf-8", "replace")
        parts = [_text(each) for each in value]
        return "\n".join(part for part in parts if part is not None) if parts else ""
    return None


def _size(entry: List[Any]) -> int:
    return len(entry[5]) + 60
