"""A container as its engine knows it: how it was started, who manages it, whether it runs."""

import json
import re
from typing import Any, Dict, List

from gpuwhy.applier import commands
from gpuwhy.applier.refusing import Refused
from gpuwhy.applier.speaking import Answer

ENGINES = ("docker", "podman", "nerdctl")

TOOLS = {
    "docker compose": ["docker", "compose"],
    "docker-compose": ["docker-compose"],
    "podman compose": ["podman", "compose"],
    "podman-compose": ["podman-compose"],
}
"""What may manage a compose project."""

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,200}$")

_OF_HOST = (
    "Binds", "PortBindings", "RestartPolicy", "Privileged", "IpcMode", "NetworkMode", "PidMode", "ShmSize", "Memory", "Runtime",
    "DeviceRequests", "Devices", "CapAdd", "SecurityOpt", "Ulimits", "GroupAdd", "ExtraHosts", "AutoRemove", "Init",
)  # fmt: skip
_OF_CONTAINER = ("Image", "Cmd", "Entrypoint", "Env", "User", "WorkingDir", "Labels", "Hostname", "Tty")


def container(request: Dict[str, Any]) -> Answer:
    """What ``inspect`` says of it and of its image, and with ``tools`` which compose programs answer. Raises Refused."""
    engine, name = str(request["engine"]), str(request["name"])
    if engine not in ENGINES or not _NAME.match(name):
        raise Refused("%r is not the name of a container" % name[:200])
    found = _inspected(engine, ["inspect", "--type", "container", name])
    config = found.get("Config") or {}
    host = found.get("HostConfig") or {}
    image = str(found.get("Image") or config.get("Image") or "")
    own = (_inspected(engine, ["inspect", "--type", "image", image], True).get("Config") or {}) if image else {}
    state = found.get("State") or {}
    return {
        "status": "ok",
        "container": {
            "name": str(found.get("Name") or name).lstrip("/"),
            "config": {key: config.get(key) for key in _OF_CONTAINER},
            "host": {key: host.get(key) for key in _OF_HOST},
            "image": {key: own.get(key) for key in ("Cmd", "Entrypoint", "Env", "User", "WorkingDir")},
            "id": str(found.get("Id") or "")[:64],
            "is_running": bool(state.get("Running")),
            "is_restarting": bool(state.get("Restarting")),
            "exit_code": state.get("ExitCode"),
            "restarts": int(found.get("RestartCount") or 0),
        },
        "tools": [each for each, argv in TOOLS.items() if _answers(argv)] if request.get("tools") else [],
    }


def _inspected(engine: str, arguments: List[str], may_fail: bool = False) -> Dict[str, Any]:
    status, output = commands.run([engine, *arguments], 30.0, keeps=1 << 20)
    if status:
        if may_fail:
            return {}
        raise Refused("%s %s: %s" % (engine, " ".join(arguments), output[-300:]))
    try:
        found = json.loads(output)[0]
    except (ValueError, IndexError, TypeError, KeyError):
        found = None
    if not isinstance(found, dict):
        raise Refused("what %s says of the container cannot be read" % engine)
    return found


def _answers(argv: List[str]) -> bool:
    try:
        return commands.run([*argv, "version"], 10.0)[0] == 0
    except Refused:
        return False
