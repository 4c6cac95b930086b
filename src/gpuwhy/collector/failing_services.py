"""Who fails here? Units that failed or restart, containers that exited, programs of supervisord, recent core dumps."""

import json
import re
import time
from typing import Any, Dict, List, Optional

from gpuwhy.collector import commands
from gpuwhy.collector.probing import Absent, Notes, NoValue, Request
from gpuwhy.collector.process import ENGINE
from gpuwhy.collector.reading import key_values

PROPERTIES = "Id,Description,LoadState,ActiveState,SubState,Result,NRestarts,ExecStart,ExecMainStatus,ExecMainCode,StateChangeTimestamp,StateChangeTimestampMonotonic"

PYTHON = re.compile(r"(?:^|[/ ])python[0-9.]*(?:$|[ ;])")

NOT_OURS = re.compile(
    r"^(?:systemd-|user@|getty@|serial-getty@|snap|apt-|unattended|ssh|networkd|NetworkManager|cloud-|plymouth|fwupd|man-db|logrotate|dpkg|e2scrub|kdump|rpc|nfs)"
)


def failing_services(request: Request, notes: Notes) -> List[Dict[str, Any]]:
    """Candidates, those that look like inference first, then the most recent. ``when`` in seconds since the epoch."""
    if request.get("unit") or request.get("pid"):
        raise Absent("not asked: the unit was named")
    found: List[Dict[str, Any]] = []
    reasons: List[str] = []
    for look in (_units, _containers, _supervised):
        try:
            found += look(notes)
        except NoValue as why:
            reasons.append(why.reason)
    for reason in reasons:
        notes.remark(reason)
    if not found:
        raise Absent("no failing service was found: " + "; ".join(reasons or ["no unit or container has failed"]))
    return sorted(found, key=lambda each: (not each["is_engine"], -(each["when"] or 0)))[:50]


def _units(notes: Notes) -> List[Dict[str, Any]]:
    output = commands.run(
        "systemctl",
        ["list-units", "--all", "--type=service", "--no-legend", "--no-pager", "--plain", "--full"],
        timeout=3.0,
    )
    notes.source("systemctl list-units --all --type=service")
    if output.status != 0:
        raise Absent("systemd does not run here: " + " ".join(output.err.split())[:200])
    names: List[str] = []
    for line in output.out.splitlines():
        words = line.split()
        # UNIT LOAD ACTIVE SUB DESCRIPTION
        if len(words) >= 4 and not NOT_OURS.match(words[0]):
            names.append(words[0])
    if not names:
        return []
    shown = commands.run("systemctl", ["show", "--no-pager", "-p", PROPERTIES, "--"] + names[:400], timeout=3.0)
    found: List[Dict[str, Any]] = []
    for block in shown.out.split("\n\n"):
        properties = key_values(block)
        if _fails(properties):
            found.append(_candidate(properties))
    return found


def _fails(properties: Dict[str, str]) -> bool:
    """Failed for good, waiting for its next try, or up again after having been restarted."""
    if properties.get("ActiveState") == "failed" or properties.get("SubState") in (
        "auto-restart",
        "auto-restart-queued",
    ):
        return True
    restarts = properties.get("NRestarts", "0")
    return restarts.isdigit() and int(restarts) > 0


def _candidate(properties: Dict[str, str]) -> Dict[str, Any]:
    command = properties.get("ExecStart", "")
    argv = re.search(r"argv\[\]=(.*?) ; (?:ignore_errors|flags)=", command, re.DOTALL)
    words = argv.group(1) if argv else ""
    named = "%s %s %s" % (properties.get("Id", ""), properties.get("Description", ""), words)
    return {
        "kind": "systemd unit",
        "name": properties.get("Id", ""),
        "state": "%s (%s)" % (properties.get("ActiveState", ""), properties.get("SubState", "")),
        "result": properties.get("Result", ""),
        "restarts": int(properties.get("NRestarts", "0") or 0) if properties.get("NRestarts", "0").isdigit() else 0,
        "status": properties.get("ExecMainStatus", ""),
        "command": words[:1000],
        "is_engine": bool(ENGINE.search(named.lower()) or PYTHON.search(words)),
        "when": _when(properties),
    }


def _when(properties: Dict[str, str]) -> Optional[float]:
    """From the monotonic clock: the printed time is in the host's own time zone, by a name that may be ambiguous."""
    value = properties.get("StateChangeTimestampMonotonic", "")
    if not value.isdigit():
        return None
    return round(time.time() - time.clock_gettime(time.CLOCK_MONOTONIC) + int(value) / 1e6, 3)


def _containers(notes: Notes) -> List[Dict[str, Any]]:
    """Exited and restarting containers of docker or podman, where this user may ask."""
    found: List[Dict[str, Any]] = []
    for engine in ("docker", "podman"):
        if commands.find(engine) is None:
            continue
        try:
            output = commands.run(
                engine,
                [
                    "ps",
                    "--all",
                    "--no-trunc",
                    "--filter",
                    "status=exited",
                    "--filter",
                    "status=restarting",
                    "--filter",
                    "status=dead",
                    "--format",
                    "{{json .}}",
                ]
                if engine == "docker"
                else ["ps", "--all", "--no-trunc", "--filter", "status=exited", "--format", "{{json .}}"],
                timeout=3.0,
            )
        except NoValue as why:
            notes.remark(why.reason)
            continue
        notes.source(engine + " ps --all")
        if output.status != 0:
            notes.remark("%s: %s" % (engine, " ".join(output.err.split())[:200]))
            continue
        for line in output.out.splitlines()[:200]:
            candidate = _container(engine, line)
            if candidate is not None:
                found.append(candidate)
    return found


def _container(engine: str, line: str) -> Optional[Dict[str, Any]]:
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    if not isinstance(fields, dict):
        return None
    names = fields.get("Names") or ""
    name = names[0] if isinstance(names, list) and names else str(names)
    command = fields.get("Command") or ""
    words = " ".join(map(str, command)) if isinstance(command, list) else str(command).strip('"')
    state = str(fields.get("Status") or fields.get("State") or "")
    status = re.search(r"\((\d+)\)", state)
    code = fields.get("ExitCode", status.group(1) if status else "")
    if str(code) == "0":
        return None
    named = "%s %s %s" % (name, fields.get("Image", ""), words)
    exited = fields.get("ExitedAt")
    return {
        "kind": engine + " container",
        "name": name,
        "state": state,
        "result": "",
        "restarts": 0,
        "status": str(code),
        "command": words[:1000],
        "image": str(fields.get("Image", "")),
        "is_engine": bool(ENGINE.search(named.lower()) or PYTHON.search(words)),
        "when": float(exited) if isinstance(exited, (int, float)) and exited > 0 else _ago(state),
    }


def _ago(state: str) -> Optional[float]:
    """``Exited (1) 3 minutes ago``, ``Restarting (1) 20 seconds ago``: docker tells no time."""
    found = re.search(r"(\d+|an?|About an?|Less than a) (second|minute|hour|day|week|month|year)s? ago", state)
    if not found:
        return None
    count = int(found.group(1)) if found.group(1).isdigit() else 1
    seconds = {
        "second": 1,
        "minute": 60,
        "hour": 3600,
        "day": 86400,
        "week": 604800,
        "month": 2592000,
        "year": 31536000,
    }[found.group(2)]
    return round(time.time() - count * seconds, 0)


def _supervised(notes: Notes) -> List[Dict[str, Any]]:
    """Programs of supervisord: ``vllm   FATAL   Exited too quickly (process log may have details)``."""
    if commands.find("supervisorctl") is None:
        return []
    output = commands.run("supervisorctl", ["status"], timeout=2.5)
    notes.source("supervisorctl status")
    found: List[Dict[str, Any]] = []
    for line in output.out.splitlines():
        words = line.split(None, 2)
        if len(words) >= 2 and words[1] in ("FATAL", "BACKOFF", "EXITED"):
            state = " ".join(words[1:])
            found.append(
                {"kind": "supervisord program", "name": words[0], "state": state, "result": "", "restarts": 0, "status": "", "command": "", "is_engine": bool(ENGINE.search(words[0].lower())), "when": None}
            )  # fmt: skip
    return found
