"""Lines of service managers about a unit or container.

Started sglang.service - SGLang Kimi K2.6.
sglang.service: Main process exited, code=killed, status=9/KILL
sglang.service: Scheduled restart job, restart counter is at 2.
"""

from __future__ import annotations

import re

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    ".service", ".scope", "Started ", "Starting ", "Stopped ", "supervisord", "exited: ", "CrashLoopBackOff", "OOMKilled", "Back-off restarting",
    "Scheduled restart", "oomd",
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
_KUBERNETES = Pattern(r"(?P<reason>CrashLoopBackOff|OOMKilled|Back-off restarting failed container)")
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
    found = _KUBERNETES.search(shown)
    if found is not None:
        reason = found["reason"]
        killed = reason == "OOMKilled"
        return Recognised(
            "unit",
            "kubernetes",
            {"state": "failed", "result": "oom-kill" if killed else reason},
            is_echo=not killed,
            is_fatal=True,
        )
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
    if "Processes still around after SIGKILL" in what:
        return Recognised("unit", "systemd", {"state": "unkillable"}, is_fatal=True, unit=unit)
    if re.search(r"timed out|[Ff]ailed|SIGKILL|Killing process", what):
        return Recognised("unit", "systemd", {"state": "trouble"}, unit=unit)
    return None
