"""The service as its manager knows it, whichever that is: systemd's, a user's own, or supervisord."""

import os
from typing import Any, Dict, List, Optional

from gpuwhy.collector import environment, supervisord, unit
from gpuwhy.collector.choosing import SUPERVISOR, chosen
from gpuwhy.collector.probing import Notes, NoValue, Request
from gpuwhy.collector.reading import read_text


def service(request: Request, notes: Notes, candidates: Optional[List[Dict[str, Any]]]) -> Dict[str, Any]:
    """What :func:`unit.unit` gives, in the same words also for a program of supervisord."""
    choice = chosen(request, candidates)
    if choice.kind != SUPERVISOR:
        return unit.unit(request, notes, candidates)
    program = supervisord.program_named(choice.name, notes)
    notes.subject = "service:" + program.full_name
    options = program.options
    properties = {
        "Id": program.full_name,
        "Description": "program of supervisord (%s)" % program.installation.configuration,
        "ActiveState": {"RUNNING": "active", "STARTING": "activating", "STOPPED": "inactive"}.get(
            program.state, "failed"
        ),  # fmt: skip
        "SubState": ("%s %s" % (program.state, program.detail)).strip() or "unknown",
        "User": options.get("user", ""),
        "WorkingDirectory": options.get("directory", ""),
        "Restart": options.get("autorestart", "unexpected"),
        "MainPID": str(program.pid),
    }
    inherited = _inherited(program.installation.pid, notes)
    given = supervisord.variables_of(program)
    return {
        "name": program.full_name,
        "manager": "supervisord",
        "properties": {key: value for key, value in properties.items() if value},
        "commands": [program.command] if program.command else [],
        "environment": dict(inherited, **given),
        "environment_files": [],
        "manager_environment": {"PATH": inherited["PATH"]} if "PATH" in inherited else {},
        "files": _files(program.installation.configuration, notes),
        "logs": program.logs,
    }


def _inherited(pid: Optional[int], notes: Notes) -> Dict[str, str]:
    """supervisord hands its whole environment on to its programs."""
    if pid is None:
        notes.remark("supervisord does not run: what it would hand on is not known")
        return {}
    try:
        return environment.of_process(pid)
    except NoValue as why:
        notes.remark(why.reason)
        notes.deny("the environment that supervisord (process %d) hands on" % pid)
        return {}


def _files(configuration: str, notes: Notes) -> List[Dict[str, str]]:
    try:
        text = read_text(configuration, 1 << 16)
    except NoValue as why:
        notes.remark(why.reason)
        return []
    return [{"path": os.path.normpath(configuration), "text": text}]
