"""The syntax of systemd's unit files: quoting, and command lines edited in place (systemd.syntax, systemd.service)."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.remedies.command_line import extent_of, position_of
from gpuwhy.remedies.container_run import ENGINES, ContainerRun, read_run

_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")
_SHELLS = ("sh", "bash", "dash", "zsh")


class Word(msgspec.Struct, frozen=True):
    """One word of a command line: where it stands, and what it is without its quotes."""

    start: int
    end: int
    text: str


def quoted_assignment(name: str, value: str) -> str:
    """``NAME=value`` as ``Environment=`` and ``UnsetEnvironment=`` take it: a percent sign is a specifier there."""
    return '"' + _escaped(f"{name}={value}").replace("%", "%%") + '"'


def quoted_word(text: str) -> str:
    """A word of ``ExecStart=``, where percent signs are specifiers and dollar signs are variables."""
    if _PLAIN.fullmatch(text):
        return text
    return '"' + _escaped(text).replace("%", "%%").replace("$", "$$") + '"'


def environment_file_line(name: str, value: str) -> str:
    """A line of a file that ``EnvironmentFile=`` names; nothing is expanded in such a file."""
    escaped = re.sub(r'(["\\$`])', r"\\\1", value)
    return f'{name}="{escaped}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def words(command: str) -> list[Word]:
    """The words of an ``ExecStart=`` value with their positions; an unclosed quote runs to the end.

    >>> [word.text for word in words('/bin/serve --name "a b" --x=1')]
    ['/bin/serve', '--name', 'a b', '--x=1']
    """
    found: list[Word] = []
    at = 0
    while at < len(command):
        if command[at].isspace() or command.startswith("\\\n", at):
            at += 1
            continue
        start, at, text = at, *_one_word(command, at)
        found.append(Word(start, at, text))
    return found


def _one_word(command: str, at: int) -> tuple[int, str]:
    text: list[str] = []
    quote = ""
    while at < len(command):
        character = command[at]
        if character == "\\" and at + 1 < len(command):
            if command[at + 1] == "\n":
                break
            text.append(command[at + 1])
            at += 2
            continue
        if quote:
            if character == quote:
                quote = ""
            else:
                text.append(character)
        elif character in "\"'":
            quote = character
        elif character.isspace():
            break
        else:
            text.append(character)
        at += 1
    return at, "".join(text)


def program(command: str) -> str:
    """The name of the program that a command line starts, without its folder and systemd's prefixes (``-@:+!``)."""
    first = words(command)[:1]
    return first[0].text.lstrip("-@:+!|").rpartition("/")[2] if first else ""


def is_direct(command: str) -> bool:
    """True when the options of the engine stand in this line itself: no script, no ``sh -c``, no several commands, no ``docker compose``."""
    parts = words(command)
    if not parts or any(part.text == ";" for part in parts):
        return False
    name = program(command)
    if name.endswith(".sh"):
        return False
    if name in ENGINES and container_run(command) is None:  # compose up, start
        return False
    return name not in _SHELLS


def with_option(command: str, option: str, value: str) -> str:
    """The command line with the engine's option set, the rest kept to the letter (quotes, specifiers, variables)."""
    added = quoted_word(option) + (" " + quoted_word(value) if value else "")
    parts = words(command)
    texts = [part.text for part in parts]
    at = position_of(texts, option, _engine_start(command))
    if at is None:
        return f"{command.rstrip()} {added}"
    last = parts[at + extent_of(texts, at, option) - 1]
    return command[: parts[at].start] + added + command[last.end :]


def without_option(command: str, option: str) -> str:
    """The command line without the engine's option and its value."""
    parts = words(command)
    texts = [part.text for part in parts]
    at = position_of(texts, option, _engine_start(command))
    if at is None:
        return command
    last = parts[at + extent_of(texts, at, option) - 1]
    return command[: parts[at].start].rstrip() + command[last.end :]


def _engine_start(command: str) -> int:
    """The first word that can be an option of the engine: after the program, or after a container's image."""
    run = container_run(command)
    return 1 if run is None else run.image_at + 1


def container_run(command: str) -> ContainerRun | None:
    """A ``docker run`` or ``podman run`` command line by its words, None when it is no such line."""
    if program(command) not in ENGINES:
        return None
    first, *rest = (part.text for part in words(command))
    return read_run((first.lstrip("-@:+!|"), *rest))


def with_run_option(command: str, run: ContainerRun, option: str, value: str) -> str:
    """The command line with an option of ``run`` set, in place of the one that it replaces, else right after ``run``."""
    added = quoted_word(f"{option}={value}" if value else option)
    parts = words(command)
    span = run.span_of(option, value)
    if span is None:
        end = parts[run.run_at].end
        return f"{command[:end]} {added}{command[end:]}"
    first, last = span
    return command[: parts[first].start] + added + command[parts[last].end :]


def without_run_variable(command: str, run: ContainerRun, name: str) -> str:
    """The command line without the container's variable; set to nothing where only the image can have set it."""
    span = run.span_of("--env", name)
    if span is None:
        return with_run_option(command, run, "--env", f"{name}=")
    parts = words(command)
    first, last = span
    return command[: parts[first].start].rstrip() + command[parts[last].end :]
