"""The users' own systemd managers (``systemctl --user``): which run, and asking one with its owner's rights.

root may not speak to another user's manager (its bus turns root away), and the tools that can would open a session there.
So the question is asked by a process that has given up its rights for those of the owner.
"""

import os
import pwd
import sys
from typing import Dict, List, Optional, Sequence

from gpuwhy.collector import commands
from gpuwhy.collector.probing import Absent, Denied, Notes

RUNTIME = "/run/user"

MOST_MANAGERS = 20

AS_OWNER = (
    "import os,sys;u,g=int(sys.argv[1]),int(sys.argv[2]);os.setgroups([g]);os.setgid(g);os.setuid(u);"
    "os.execv(sys.argv[3],sys.argv[3:])"
)


class Manager:
    """The systemd manager of one account."""

    def __init__(self, uid: int, gid: int, user: str) -> None:
        self.uid = uid
        self.gid = gid
        self.user = user

    @property
    def runtime(self) -> str:
        return "%s/%d" % (RUNTIME, self.uid)


def managers(notes: Optional[Notes] = None) -> List[Manager]:
    """Those that run and that this account may ask: its own, all of them for root."""
    own = os.geteuid()
    found: List[Manager] = []
    others = 0
    try:
        names = os.listdir(RUNTIME)
    except OSError:
        return []
    for name in sorted((name for name in names if name.isdigit()), key=int)[:MOST_MANAGERS]:
        uid = int(name)
        if own not in (0, uid):
            others += 1
        elif os.path.exists("%s/%d/systemd/private" % (RUNTIME, uid)):
            found.append(_manager(uid))
    if others and notes is not None:
        notes.deny("the units of %d other users" % others, "--sudo")
    return found


def _manager(uid: int) -> Manager:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Manager(uid, uid, str(uid))
    return Manager(uid, entry.pw_gid, entry.pw_name)


def manager_of(user: str) -> Manager:
    """The manager of an account; of who asks when no account is named. Raises Absent and Denied."""
    if not user:
        user = _manager(os.geteuid()).user
    try:
        uid = int(user) if user.isdigit() else pwd.getpwnam(user).pw_uid
    except KeyError:
        raise Absent("there is no account %s here" % user)
    if os.geteuid() not in (0, uid):
        raise Denied("only %s and root may ask the systemd manager of %s" % (user, user))
    if not os.path.exists("%s/%d/systemd/private" % (RUNTIME, uid)):
        raise Absent("no systemd manager of %s runs (it ends with the last login, unless loginctl enable-linger was run)" % user)  # fmt: skip
    return _manager(uid)


def systemctl(arguments: Sequence[str], manager: Optional[Manager] = None, timeout: float = 3.0) -> commands.Output:
    """Asks the system's manager, or a user's. Raises as :func:`commands.run` does."""
    if manager is None:
        return commands.run("systemctl", list(arguments), timeout=timeout)
    words = ["--user"] + list(arguments)
    environment: Dict[str, str] = {
        "PATH": ":".join(commands.DIRECTORIES),
        "LC_ALL": "C",
        "XDG_RUNTIME_DIR": manager.runtime,
    }
    if manager.uid == os.geteuid():
        return commands.run("systemctl", words, timeout=timeout, environment=environment)
    tool = commands.find("systemctl")
    if tool is None:
        raise Absent("there is no systemctl on this host")
    rights = [str(manager.uid), str(manager.gid)]
    return commands.run(
        sys.executable or "/usr/bin/python3",
        ["-I", "-S", "-B", "-c", AS_OWNER] + rights + [tool] + words,
        timeout=timeout,
        environment=environment,
    )
