"""The service as a process of ours would be started in its place: interpreter, environment, account."""

import os
import pwd
from typing import Any, Dict, List, Optional

from gpuwhy.applier.refusing import Refused
from gpuwhy.collector.environment import of_process, of_unit
from gpuwhy.collector.launching import launch_of
from gpuwhy.collector.probing import Notes, NoValue, first_of
from gpuwhy.collector.unit import unit as read_unit

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Service:
    """``variables`` is the whole environment; ``account`` None: it runs as us."""

    def __init__(self, variables: Dict[str, str], interpreter: str, user: str = "") -> None:
        self.variables = variables
        self.interpreter = interpreter
        self.account = _account(user)

    def with_changes(self, changes: Dict[str, Optional[str]]) -> Dict[str, str]:
        """The environment with the change; ``None`` takes a variable out."""
        changed = dict(self.variables)
        for name, value in changes.items():
            changed.pop(name, None)
            if value is not None:
                changed[name] = value
        return changed


def service_of(request: Dict[str, Any]) -> Service:
    """The named unit's, else that of the process which the container was started for. Raises Refused."""
    name = str(request.get("unit") or "")
    interpreter = str(request.get("python") or "")
    if not name:
        try:
            variables = of_process(1)
        except NoValue as error:
            raise Refused("the service's environment is not known: %s" % error.reason)
        return Service(variables, _found(interpreter or "python3", variables))
    try:
        unit = read_unit({"unit": name}, Notes(), None)
    except NoValue as error:
        raise Refused("the unit's environment is not known: %s" % error.reason)
    unread = [each["path"] for each in unit["environment_files"] if "error" in each and not each.get("optional")]
    if unread:
        raise Refused("the environment file %s cannot be read" % unread[0])
    variables = of_unit(unit)
    variables.setdefault("PATH", PATH)
    command: List[str] = unit["commands"][-1] if unit["commands"] else []
    launch = launch_of(command, variables, _folder(unit))
    if launch.container is not None:
        raise Refused("the service runs in a container that %s starts" % launch.container)
    variables.update(launch.variables)
    found = _found(launch.interpreter or interpreter, variables)
    return Service(variables, found, _property(unit, "User"))


def _folder(unit: Dict[str, Any]) -> str:
    return _property(unit, "WorkingDirectory").lstrip("!-")


def _property(unit: Dict[str, Any], name: str) -> str:
    return str(first_of(unit["properties"], name, ""))


def _found(interpreter: str, variables: Dict[str, str]) -> str:
    folders = [""] if "/" in interpreter else variables.get("PATH", PATH).split(":")
    for folder in folders:
        path = os.path.join(folder, interpreter) if folder else interpreter
        if interpreter and os.path.isabs(path) and os.access(path, os.X_OK):
            return path
    raise Refused(
        "no Python interpreter of the service is known" if not interpreter else "%s cannot be run" % interpreter
    )


def _account(user: str) -> Optional["pwd.struct_passwd"]:
    """Whom the process is started as; None: as us. Raises Refused where we may not."""
    if not user:
        return None
    try:
        entry = pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)
    except (KeyError, OverflowError):
        raise Refused("the unit's user %s is not known here" % user)
    if entry.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise Refused("the service runs as %s, and only root may start a process of that user" % entry.pw_name)
    return entry
