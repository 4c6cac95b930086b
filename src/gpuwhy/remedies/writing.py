"""A remedy as a cause proposes it, written for one place: the commands, how to undo them, how to check them."""

from __future__ import annotations

import re
import shlex

import msgspec

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies.caches import change_cache
from gpuwhy.remedies.change import Change, ServicePlace
from gpuwhy.remedies.container_run import is_option_of_run
from gpuwhy.remedies.containers import ComposeService, Container, Pod
from gpuwhy.remedies.packages import change_package
from gpuwhy.remedies.setting import Setting
from gpuwhy.remedies.shell import Shell
from gpuwhy.remedies.systemd import SystemdUnit
from gpuwhy.remedies.toolkits import change_toolkit
from gpuwhy.remedies.typed_command import read_words
from gpuwhy.remedies.typed_container import TypedContainer
from gpuwhy.remedies.values import is_literal, is_option, is_variable

_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.@-]{0,200}")
_UNIT_VERBS = ("start", "restart", "stop", "enable", "disable", "reload")
_ASKS_THE_SERVICE = re.compile(r"(?:^|[\s/])python3?(?:\.\d+)?\s|\$\{?[A-Z]")
"""A command that runs the service's Python, or reads a variable that the service has and a shell may not."""
_SENTENCE = re.compile(r"(?:the|a|an|no) ")
_UNIT_LIMIT = re.compile(r"Limit[A-Z]{2,12}|TasksMax")
_UNIT_LIMIT_VALUE = re.compile(r"infinity|\d{1,15}[KMGT]?")
_BUILD_OPTIONS = frozenset({"--nvcc_threads", "--nvcc-threads", "--jobs"})


def written_for(remedy: Remedy, setting: Setting) -> Remedy:
    """The remedy with ``commands``, ``undo`` and ``check`` exact for ``setting``.

    What the cause wrote stays; what it left empty is filled in. Commands are for a POSIX shell on the target, every
    value quoted. They stay empty when the value only describes what to look for, or when the place gives no way.
    """
    place = place_of(setting)
    change = change_of(remedy, setting, place)
    checks = [*change.check, *(_check(line, setting, place) for line in remedy.check)]
    return msgspec.structs.replace(
        remedy,
        commands=remedy.commands or change.commands,
        undo=remedy.undo or (() if remedy.commands else change.undo),
        check=tuple(dict.fromkeys(checks)),
        limits=(*remedy.limits, *change.limits),
    )


def place_of(setting: Setting) -> ServicePlace:
    """What knows how the service of this setting is changed."""
    match setting.kind:
        case "systemd":
            return SystemdUnit(setting)
        case "docker":
            return Container(setting)
        case "compose":
            return ComposeService(setting)
        case "kubernetes":
            return Pod(setting)
        case _:
            command = read_words(setting.command)
            run = None if command is None else command.run
            return Shell(setting) if command is None or run is None else TypedContainer(command, run)


def change_of(remedy: Remedy, setting: Setting, place: ServicePlace) -> Change:
    """What a remedy means at a place, apart from the commands that its cause may have written itself."""
    name, value = remedy.name, remedy.value
    match remedy.kind:
        case "env" if is_variable(name):
            return _variable(name, value, setting, place)
        case "flag" if is_option(name):
            return _option(name, value, place)
        case "config" if _UNIT_LIMIT.fullmatch(name) and _UNIT_LIMIT_VALUE.fullmatch(value):
            return place.set_property(name, value) if isinstance(place, SystemdUnit) else Change()
        case "package":
            return change_package(setting, place, name, value)
        case "cache":
            return change_cache(setting, place, name, value)
        case "service":
            return _service(name, value, setting)
        case "toolkit" if name == "cuda":
            return change_toolkit(setting, place, value)
        case _:
            return Change()


def _variable(name: str, value: str, setting: Setting, place: ServicePlace) -> Change:
    if value == "unset":
        return place.unset_variable(name)
    if not is_literal(name, value):
        return Change()
    change = place.set_variable(name, value)
    if name in ("CUDA_HOME", "CUDA_PATH"):
        there = f"test -x {shlex.quote(value + '/bin/nvcc')}"
        is_apart = setting.is_container
        return msgspec.structs.replace(change, check=(place.inside(there) if is_apart else there, *change.check))
    return change


def _option(option: str, value: str, place: ServicePlace) -> Change:
    if value in ("remove", "unset"):
        return place.remove_option(option)
    if value == "set":
        value = ""
    if not is_literal(option, value):
        return Change()
    if option in _BUILD_OPTIONS:
        typed = shlex.join([option, value] if value else [option])
        return Change(commands=(f"# give {typed} to the command that builds",))
    if isinstance(place, SystemdUnit) and is_option_of_run(option, value):
        typed = shlex.quote(f"{option}={value}" if value else option)
        by_hand = Change(
            commands=(f"# add to the command that starts the container, before the image's name: {typed}",)
        )
        return place.set_container_option(option, value) or by_hand
    return place.set_option(option, value)


def _service(name: str, value: str, setting: Setting) -> Change:
    if name == "host" and value == "reboot":
        return Change(commands=("systemctl reboot",))
    if setting.kind not in ("systemd", "shell") or value not in _UNIT_VERBS or not _UNIT.fullmatch(name):
        return Change()
    back = {"start": "stop", "stop": "start", "enable": "disable", "disable": "enable"}.get(value)
    return Change(
        commands=(f"systemctl {value} {name}",),
        undo=(f"systemctl {back} {name}",) if back else (),
        check=(f"systemctl status --no-pager {name}",),
    )


def _check(line: str, setting: Setting, place: ServicePlace) -> str:
    """A cause's check, run in the service's own environment where it asks the service's Python, with its port.

    What still needs a value that nobody knows is left as a comment, so that pasting it does no harm.
    """
    if setting.port is not None:
        line = re.sub(r"\bPORT\b", str(setting.port), line)
    if re.search(r"\b(?:PORT|MODEL)\b", line):
        return f"# with its port and model: {line}"
    if _SENTENCE.match(line):
        return f"# {line}"
    if setting.python:
        line = re.sub(r"^python3?(?= )", lambda _: shlex.quote(setting.python), line)
    is_apart = setting.kind not in ("shell", "unknown") or setting.is_container
    if is_apart and _ASKS_THE_SERVICE.search(line):
        return place.inside(line)
    return line
