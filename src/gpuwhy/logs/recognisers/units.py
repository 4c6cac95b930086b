"""Lines of service managers about a unit or container.

Started sglang.service - SGLang Kimi K2.6.
sglang.service: Main process exited, code=killed, status=9/KILL
sglang.service: Scheduled restart job, restart counter is at 2.
"""

from __future__ import annotations

import re

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised
from gpuwhy.logs.recognisers.kernel import is_of_desktop, unit_of_cgroup

LITERALS = (
    ".service", ".scope", "Started ", "Starting ", "Stopped ", "supervisord", "exited: ", "Scheduled restart", "oomd", "dumped core", "entered FATAL state",
)  # fmt: skip
_UNIT = r"(?P<unit>[\w@.:\\-]{1,200}\.(?:service|scope|slice|socket|mount|timer))"
_STARTED = Pattern(
    rf"(?P<verb>Started|Starting|Stopped|Stopping|Failed to start) {_UNIT}(?: - (?P<description>.{{0,300}}?))?\.*$"
)
_ABOUT = Pattern(rf"{_UNIT}: (?P<what>.{{1,500}})$")
_EXITED = Pattern(
    r"(?P<which>Main|Control|Unit) process(?: .{1,80})? exited, code=(?P<code>\w{1,20}), status=(?P<status>\d{1,4})(?:/(?P<name>[\w-]{1,40}))?"
)
_RESULT = Pattern(r"Failed with result '(?P<result>[\w-]{1,60})'")
_RESTART = Pattern(r"Scheduled restart job, restart counter is at (?P<restarts>\d{1,9})")
_OOM = Pattern(r"killed by the OOM killer|systemd-oomd")
_TOO_QUICKLY = Pattern(r"Start request repeated too quickly|Start-limit-hit|start-limit-hit")
_SUPERVISOR = Pattern(
    r"exited: (?P<unit>\S{1,200}) \((?P<status>exit status (?P<code>\d+)|terminated by (?P<signal>SIG\w+))"
)
_OOMD = Pattern(r"^Killed (?P<cgroup>/\S{1,400}) due to (?P<why>.{1,300})$")
_DUMPED = Pattern(r"^Process (?P<pid>\d{1,10}) \((?P<process>[^)]{1,60})\) of user .{1,40} dumped core")
_FATAL_STATE = Pattern(r"\b(?P<unit>\S{1,200}) entered FATAL state")
_STEP = Pattern(
    r"Failed at step (?P<step>[A-Z_]{1,30}) spawning (?P<path>.{1,300}?): (?P<error>.{1,200})$|Failed to locate executable (?P<missing>.{1,300}?): (?P<why>.{1,200})$"
)
_TIMED_OUT = Pattern(
    r"^[Ss]tart(?:-\w{1,20})? operation timed out|^State 'start\S{0,20}' timed out|Watchdog timeout \(limit (?P<limit>[\w ]{1,30})\)"
)
LONGEST = 1000


def recognise(text: str) -> Recognised | None:
    shown = text[:LONGEST]
    found = _STARTED.match(shown)
    if found is not None:
        state = {"Started": "started", "Starting": "starting", "Stopped": "stopped", "Stopping": "stopping"}.get(
            found["verb"], "failed"
        )
        return Recognised("unit", "systemd", {"state": state}, unit=found["unit"])
    found = _ABOUT.match(shown)
    if found is not None:
        return _about(found["unit"], found["what"])
    found = _SUPERVISOR.search(shown)
    if found is not None:
        detail = {"state": "exited", "status": found["code"] or found["signal"]}
        return Recognised("unit", "supervisord", detail, is_echo=True, is_fatal=True, unit=found["unit"])
    return _other(shown)


def _other(text: str) -> Recognised | None:
    found = _OOMD.match(text)
    if found is not None:
        detail = {"state": "oom", "result": "oom-kill", "cgroup": found["cgroup"], "why": found["why"]}
        return Recognised("unit", "systemd-oomd", detail, is_fatal=True, unit=unit_of_cgroup(found["cgroup"]))
    found = _DUMPED.match(text)
    if found is not None:
        detail = {"state": "dumped", "pid": found["pid"], "process": found["process"]}
        is_fatal = not is_of_desktop(found["process"])
        return Recognised("unit", "systemd-coredump", detail, is_echo=True, is_fatal=is_fatal)
    found = _FATAL_STATE.search(text)
    if found is not None:
        detail = {"state": "failed", "result": "start-limit-hit"}
        return Recognised("unit", "supervisord", detail, is_echo=True, is_fatal=True, unit=found["unit"])
    return None


def _about(unit: str, what: str) -> Recognised | None:
    found = _EXITED.match(what)
    if found is not None:
        detail = {"state": "exited", "code": found["code"], "status": found["status"]}
        if found["name"]:
            detail["status_name"] = found["name"]
        failed = not (found["code"] == "exited" and found["status"] == "0")
        return Recognised(
            "unit", "systemd", detail, is_echo=True, is_fatal=failed and found["which"] == "Main", unit=unit
        )
    found = _RESULT.match(what)
    if found is not None:
        return Recognised(
            "unit", "systemd", {"state": "failed", "result": found["result"]}, is_echo=True, is_fatal=True, unit=unit
        )
    found = _RESTART.match(what)
    if found is not None:
        return Recognised("unit", "systemd", {"state": "restarting", "restarts": found["restarts"]}, unit=unit)
    if _OOM.search(what):
        return Recognised("unit", "systemd", {"state": "oom"}, is_echo=True, is_fatal=True, unit=unit)
    if _TOO_QUICKLY.search(what):
        return Recognised("unit", "systemd", {"state": "failed", "result": "start-limit-hit"}, is_echo=True, unit=unit)
    found = _STEP.search(what)
    if found is not None:
        detail = {"state": "failed", "path": found["path"] or found["missing"], "error": found["error"] or found["why"]}
        return Recognised("unit", "systemd", detail | {"step": found["step"] or "EXEC"}, is_fatal=True, unit=unit)
    found = _TIMED_OUT.search(what)
    if found is not None:
        detail = {"state": "trouble", "result": "watchdog" if found["limit"] else "timeout"}
        return Recognised("unit", "systemd", detail, is_fatal=True, unit=unit)
    if "Processes still around after SIGKILL" in what:
        return Recognised("unit", "systemd", {"state": "unkillable"}, is_fatal=True, unit=unit)
    if re.search(r"timed out|[Ff]ailed|SIGKILL|Killing process", what):
        return Recognised("unit", "systemd", {"state": "trouble"}, unit=unit)
    return None
