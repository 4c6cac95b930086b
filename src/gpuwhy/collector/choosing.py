"""Which service is examined: the one that was named, else the failing one that was found.

A name is that of a unit of the system's manager, or says whose it is:

    vllm, vllm.service           a unit of the system
    user:vllm, user:alice/vllm   a unit of a user's own manager (without a name: of who asks, else the only one that has it)
    supervisor:vllm              a program of supervisord, as supervisorctl names it
    pid:4711                     a process
    /var/log/vllm.log            a log file, of whatever wrote it
"""

import os
import re
from typing import Any, Dict, List, Optional

from gpuwhy.collector.probing import Absent, Failed, Request
from gpuwhy.collector.unit_of_process import unit_of_process

SYSTEM, USER, SUPERVISOR, PROCESS, LOG = "systemd unit", "user unit", "supervisord program", "process", "log"

UNIT = re.compile(r"^[A-Za-z0-9:_.@\\][A-Za-z0-9:_.@\\-]{0,250}\Z")

SUFFIXES = (".service", ".socket", ".timer", ".target", ".scope", ".slice", ".mount", ".path")

ACCOUNT = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,64}\Z")

BOOTED = "/run/systemd/system"
"""There where systemd is process 1: sd_booted(3)."""

PROGRAM = re.compile(r"^[^\s/\x00-\x1f'\"-][^\s/\x00-\x1f'\"]{0,200}\Z")


class Chosen:
    """A service by its name. ``kind`` is one of those above; ``user`` is the account of a user's unit, "" when not said."""

    def __init__(self, kind: str, name: str, user: str = "") -> None:
        self.kind = kind
        self.name = name
        self.user = user

    @property
    def selector(self) -> str:
        """What ``--unit`` takes to choose this one."""
        if self.kind == USER:
            return "user:%s/%s" % (self.user, self.name) if self.user else "user:" + self.name
        return {SUPERVISOR: "supervisor:", PROCESS: "pid:"}.get(self.kind, "") + self.name

    @property
    def is_unit(self) -> bool:
        return self.kind in (SYSTEM, USER)


def parse(text: str) -> Chosen:
    """The service that a name means. Raises Failed for what can be no name."""
    scheme, colon, rest = text.partition(":")
    if text.startswith("/"):
        if "\0" in text:
            raise Failed("%r is no path" % text[:100])
        return Chosen(LOG, text)
    if colon and scheme == "user":
        user, slash, name = rest.rpartition("/")
        if (slash and not ACCOUNT.match(user)) or not UNIT.match(name):
            raise Failed("%r is not the name of a user's unit: write user:NAME or user:ACCOUNT/NAME" % text[:100])
        return Chosen(USER, with_suffix(name), user)
    if colon and scheme == "supervisor":
        if not PROGRAM.match(rest):
            raise Failed("%r is not the name of a program of supervisord" % rest[:100])
        return Chosen(SUPERVISOR, rest)
    if colon and scheme == "pid":
        if not re.match(r"^[0-9]{1,9}\Z", rest):
            raise Failed("%r is not the number of a process" % rest[:100])
        return Chosen(PROCESS, rest)
    if not UNIT.match(text):
        raise Failed("%r is not the name of a unit" % text[:100])
    return Chosen(SYSTEM, with_suffix(text))


def with_suffix(name: str) -> str:
    return name if name.endswith(SUFFIXES) else name + ".service"


def chosen(request: Request, candidates: Optional[List[Dict[str, Any]]]) -> Chosen:
    """The named service, else the first candidate; a container is examined in its own way. Raises Absent and Failed."""
    if request.get("pid") and not request.get("unit"):
        return parse(unit_of_process(int(request["pid"])) or "pid:%s" % request["pid"])
    if request.get("unit"):
        named = parse(str(request["unit"]))
        if named.kind == SYSTEM and request.get("is_inside") and not os.path.isdir(BOOTED):
            # a plain name can only be a program of supervisord where no systemd runs
            return Chosen(SUPERVISOR, str(request["unit"]))
        return named
    if not candidates:
        raise Absent("no unit was named, and no failing one was found")
    first = candidates[0]
    if not first.get("selector"):
        raise Absent(
            "no unit was named; what failed most recently is the %s %s" % (first.get("kind"), first.get("name"))
        )
    return parse(str(first["selector"]))


def is_named(request: Request) -> bool:
    """Whether who asks has said which service is meant."""
    return bool(request.get("unit") or request.get("pid"))
