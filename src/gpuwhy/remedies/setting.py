"""Where the service runs and who starts it: what decides how a remedy is typed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Literal

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.fact import Fact
from gpuwhy.remedies import unit_file
from gpuwhy.remedies.typed_command import read_command, read_words, words_of

Kind = Literal["systemd", "docker", "compose", "kubernetes", "shell", "unknown"]

_CONTAINER_ENGINES = ("docker", "podman", "nerdctl")
_UNIT_NAME = re.compile(r"[A-Za-z0-9:_.\\@-]{1,255}\.service")
_CONTAINER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,253}")
_DEFAULT_PORTS = {"sglang": 30000, "vllm": 8000, "llama.cpp": 8080, "ollama": 11434}


class Setting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a service runs, as far as it is known; ``""``, None and empty tuples mean not known.

    ``exec_start`` is the unit's ``ExecStart=`` as the unit file has it (systemd's quoting, specifiers and variables);
    ``command`` the words of the failing process, or of the command that a person typed. ``container`` is a name or id; for Kubernetes ``namespace/pod``.
    ``engine`` is the container engine (``docker``, ``podman``, ``nerdctl``). ``variables`` and ``packages`` are those
    of the failing process: they make an exact undo possible. ``arguments``: values of the engine's options, as its log
    shows them, by their names with underscores; an engine that prints all of them prints its defaults too.
    """

    kind: Kind = "unknown"
    host: str = ""
    unit: str = ""
    is_user_unit: bool = False
    fragment: str = ""
    exec_start: str = ""
    environment_files: tuple[str, ...] = ()
    drop_ins: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    container: str = ""
    engine: str = "docker"
    compose_service: str = ""
    compose_directory: str = ""
    python: str = ""
    is_uv_managed: bool = False
    home: str = ""
    os: str = ""
    variables: Mapping[str, str | None] = {}
    packages: Mapping[str, str | None] = {}
    arguments: Mapping[str, str] = {}
    port: int | None = None

    @property
    def is_container(self) -> bool:
        """Whether the service runs in a container: what is installed on the host is not what it uses."""
        if self.kind in ("docker", "compose", "kubernetes"):
            return True
        if self.kind == "systemd":
            return unit_file.container_run(self.exec_start) is not None
        command = read_words(self.command)
        return command is not None and command.run is not None


def setting_of(diagnosis: Diagnosis) -> Setting:
    """What a diagnosis tells of the place: its target, its unit, and facts of the service.

    Reads the facts ``command``, ``env.NAME``, ``packages.NAME``, ``server_args.NAME``, ``container.NAME`` and the collector's
    ``service.exec_start``, ``service.fragment``, ``service.drop_ins``, ``service.environment_files``,
    ``service.is_user``, ``service.python`` and ``service.is_uv_managed``.
    """
    facts = {fact.key: fact for fact in diagnosis.facts}
    scheme, _, rest = diagnosis.where.partition(":")
    unit = _unit(diagnosis)
    command = _words(_value(facts, "command"))
    common: dict[str, Any] = {
        "command": command,
        "python": _text(facts, "service.python") or _interpreter(command) or _interpreter_of_frames(diagnosis),
        "is_uv_managed": bool(_value(facts, "service.is_uv_managed")),
        "variables": {
            key[len("env.") :]: None if fact.value is None else str(fact.value)
            for key, fact in facts.items()
            if key.startswith("env.")
        },
        "packages": {
            key[len("packages.") :]: None if fact.value is None else str(fact.value)
            for key, fact in facts.items()
            if key.startswith("packages.")
        },
        "arguments": {
            key[len("server_args.") :]: str(fact.value)
            for key, fact in facts.items()
            if key.startswith("server_args.") and isinstance(fact.value, int | float | str)
        },
        "home": _text(facts, "env.HOME"),
        "os": _text(facts, "os"),
        "port": _port(command, diagnosis.incident.engine),
    }
    if scheme in _CONTAINER_ENGINES and _CONTAINER_NAME.fullmatch(rest):
        return _in_container(facts, scheme, rest, common)
    if scheme == "k8s" and rest:
        return Setting(kind="kubernetes", container=rest, **common)
    host = "" if _is_here(diagnosis) else diagnosis.where
    if unit:
        return Setting(
            kind="systemd",
            host=host,
            unit=unit,
            is_user_unit=bool(_value(facts, "service.is_user")),
            fragment=_text(facts, "service.fragment"),
            exec_start=_text(facts, "service.exec_start"),
            environment_files=_texts(facts, "service.environment_files"),
            drop_ins=_texts(facts, "service.drop_ins"),
            **common,
        )
    return Setting(kind="shell", host=host, **common)


def _in_container(facts: Mapping[str, Fact], engine: str, name: str, common: dict[str, Any]) -> Setting:
    service = _text(facts, "container.compose_service")
    return Setting(
        kind="compose" if service else "docker",
        container=name,
        engine=engine,
        compose_service=service,
        compose_directory=_text(facts, "container.compose_directory"),
        **common,
    )


def _is_here(diagnosis: Diagnosis) -> bool:
    """A file or this machine, as opposed to a host reached over SSH."""
    where = diagnosis.where
    if where in ("", "-", "local", "standard input") or "/" in where or where.endswith(".gpuwhy"):
        return True
    return any(log.name == where or log.name.endswith("/" + where) for log in diagnosis.incident.logs)


def _unit(diagnosis: Diagnosis) -> str:
    """The unit's full name; ``""`` when there is none or its name is not one that systemd would take."""
    unit = diagnosis.incident.unit
    if unit and not re.search(r"\.[a-z]+$", unit):
        unit += ".service"
    return unit if _UNIT_NAME.fullmatch(unit) else ""


def _interpreter(command: tuple[str, ...]) -> str:
    """The interpreter of a start command, when the command names it by its path."""
    for word in command[:3]:
        path = PurePosixPath(word)
        if path.is_absolute() and re.fullmatch(r"python(3(\.\d+)?)?", path.name):
            return word
        if path.is_absolute() and path.parent.name == "bin" and path.name in ("vllm", "sglang"):
            return str(path.parent / "python")
    return ""


def _interpreter_of_frames(diagnosis: Diagnosis) -> str:
    """The interpreter of the virtual environment in which the frames of the failure stand."""
    event = diagnosis.incident.primary_event
    for block in event.exceptions if event is not None else ():
        for frame in reversed(block.frames):
            found = re.match(r"(/[\w./+@-]{1,300}?)/lib/python3\.\d+t?/(?:site|dist)-packages/", frame.path)
            if found and found.group(1) not in ("/usr", "/usr/local"):
                return found.group(1) + "/bin/python"
    return ""


def _port(command: tuple[str, ...], engine: str) -> int | None:
    for word, following in itertools.zip_longest(command, command[1:], fillvalue=""):
        option, _, joined = word.partition("=")
        if option == "--port" and (joined or following).isdigit():
            return int(joined or following)
    return _DEFAULT_PORTS.get(engine)


def _value(facts: Mapping[str, Fact], key: str) -> Any:
    return facts[key].value if key in facts else None


def _text(facts: Mapping[str, Fact], key: str) -> str:
    value = _value(facts, key)
    return value if isinstance(value, str) else ""


def _texts(facts: Mapping[str, Fact], key: str) -> tuple[str, ...]:
    value = _value(facts, key)
    return tuple(map(str, value)) if isinstance(value, (list, tuple)) else ()


def _words(command: Any) -> tuple[str, ...]:
    if isinstance(command, (list, tuple)):
        return tuple(map(str, command))
    if not isinstance(command, str):
        return ()
    found = read_command(command)
    return words_of(command) if found is None else found.words
