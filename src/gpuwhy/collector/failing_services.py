"""Who fails here? Units that failed or restart, containers that exited, programs of supervisord, recent core dumps."""

import json
import re
import time
from typing import Any, Dict, List, Optional

from gpuwhy.collector import commands, supervisord
from gpuwhy.collector.allowing import joining
from gpuwhy.collector.choosing import SUPERVISOR, SYSTEM, USER, Chosen, is_named
from gpuwhy.collector.left_logs import left_logs
from gpuwhy.collector.probing import Absent, Notes, NoValue, Request
from gpuwhy.collector.process import ENGINE
from gpuwhy.collector.reading import key_values
from gpuwhy.collector.running import as_candidate, engines
from gpuwhy.collector.user_managers import Manager, managers, systemctl

PROPERTIES = "Id,Description,LoadState,ActiveState,SubState,Result,NRestarts,ExecStart,ExecMainStatus,ExecMainCode,StateChangeTimestamp,StateChangeTimestampMonotonic"

PYTHON = re.compile(r"(?:^|[/ ])python[0-9.]*(?:$|[ ;])")

NOT_OURS = re.compile(
    r"^(?:systemd-|user@|getty@|serial-getty@|snap|apt-|unattended|ssh|networkd|NetworkManager|cloud-|plymouth|fwupd|man-db|logrotate|dpkg|e2scrub|kdump|rpc|nfs)"
)


def failing_services(request: Request, notes: Notes) -> List[Dict[str, Any]]:
    """Candidates, those that look like inference first, then the most recent; then engines that merely run.

    ``when`` in seconds since the epoch. ``selector`` is what ``--unit`` takes to choose one, "" for a container.
    """
    if is_named(request):
        raise Absent("not asked: the unit was named")
    found: List[Dict[str, Any]] = []
    reasons: List[str] = []
    for look in (_units, _containers, _supervised, left_logs):
        try:
            found += look(notes)
        except NoValue as why:
            reasons.append(why.reason)
    for reason in reasons:
        notes.remark(reason)
    found.sort(key=lambda each: (not each["is_engine"], -(each["when"] or 0)))
    known = {each.get("selector") for each in found}
    found += [as_candidate(each) for each in engines(notes) if each.chosen.selector not in known]
    if not found:
        raise Absent("no failing service was found: " + "; ".join(reasons or ["no unit or container has failed"]))
    return found[:50]


def _units(notes: Notes) -> List[Dict[str, Any]]:
    """Units of the system's manager and of the users' own, as far as this account may ask."""
    reason = ""
    try:
        found = _units_of(None, notes)
    except NoValue as why:
        found, reason = [], why.reason
    for manager in managers(notes):
        try:
            found += _units_of(manager, notes)
        except NoValue as why:
            notes.remark("the systemd manager of %s: %s" % (manager.user, why.reason))
    if reason and not found:
        raise Absent(reason)
    return found


def _units_of(manager: Optional[Manager], notes: Notes) -> List[Dict[str, Any]]:
    output = systemctl(
        ["list-units", "--all", "--type=service", "--no-legend", "--no-pager", "--plain", "--full"], manager
    )
    notes.source("systemctl %slist-units --all --type=service" % ("--user " if manager else ""))
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
    shown = systemctl(["show", "--no-pager", "-p", PROPERTIES, "--"] + names[:400], manager)
    found: List[Dict[str, Any]] = []
    for block in shown.out.split("\n\n"):
        properties = key_values(block)
        if _fails(properties):
            found.append(_candidate(properties, manager))
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


def _candidate(properties: Dict[str, str], manager: Optional[Manager]) -> Dict[str, Any]:
    command = properties.get("ExecStart", "")
    argv = re.search(r"argv\[\]=(.*?) ; (?:ignore_errors|flags)=", command, re.DOTALL)
    words = argv.group(1) if argv else ""
    named = "%s %s %s" % (properties.get("Id", ""), properties.get("Description", ""), words)
    chosen = (
        Chosen(USER, properties.get("Id", ""), manager.user) if manager else Chosen(SYSTEM, properties.get("Id", ""))
    )
    return {
        "kind": chosen.kind,
        "name": chosen.name,
        "selector": chosen.selector,
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
            if "permission denied" in output.err.lower():
                notes.deny("the containers of %s" % engine, *joining(engine))
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
    """Programs of supervisord that gave up, keep failing, or ended by themselves."""
    found: List[Dict[str, Any]] = []
    for program in supervisord.programs(notes):
        if not program.is_failing:
            continue
        words = " ".join(program.command)
        named = "%s %s" % (program.full_name, words)
        found.append(
            {
                "kind": SUPERVISOR,
                "name": program.full_name,
                "selector": Chosen(SUPERVISOR, program.full_name).selector,
                "state": ("%s %s" % (program.state, program.detail)).strip(),
                "result": "",
                "restarts": program.crashes,
                "status": "",
                "command": words[:1000],
                "is_engine": bool(ENGINE.search(named.lower()) or PYTHON.search(words)),
                "when": program.changed,
            }
        )
    return found
