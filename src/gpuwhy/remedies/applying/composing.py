"""Plans for containers: an override file where compose manages them; else the command that makes the container anew."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies.applying.plan import ABSENT, FileChange, NotApplied, Plan, RunCommand, WriteFile
from gpuwhy.remedies.applying.recreating import recreated
from gpuwhy.remedies.applying.site import Inspected, Site
from gpuwhy.remedies.container_run import is_option_of_run
from gpuwhy.remedies.containers import compose_line
from gpuwhy.remedies.setting import Setting
from gpuwhy.remedies.values import is_literal, is_option, is_variable

OVERRIDE = "compose.gpuwhy.yaml"

STARTS = 600.0
"""Seconds for ``up``: an image may have to be unpacked."""

_LABEL = "com.docker.compose."
_VERSION = re.compile(r"^version:[ \t]{0,8}(['\"]?[0-9.]{1,8}['\"]?)[ \t]{0,8}(?:#.{0,200})?$", re.MULTILINE)
_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


def plan_container(remedy: Remedy, setting: Setting, site: Site) -> Plan | NotApplied:
    """A variable or an option of a service in a container."""
    found = site.container(setting.engine, setting.container)
    if found.status != "ok":
        return NotApplied(f"{found.reason} {found.advice}".strip(), remedy.commands)
    line = _line(remedy, found)
    service = found.label(_LABEL + "service")
    if not _SERVICE.fullmatch(service):
        anew = recreated(found, setting.engine, remedy)
        why = (
            f"{setting.container} is not managed by compose: it would have to be made anew, which gpuwhy leaves to you"
        )
        return NotApplied(why, anew or remedy.commands)
    if line is None:
        return NotApplied("it cannot be said in an override file of compose", remedy.commands)
    return _overridden(remedy, setting, found, service, line, site)


def _line(remedy: Remedy, found: Inspected) -> str | None:
    """The line of the override file below the service's name; None where there is none that says it."""
    name, value = remedy.name, remedy.value
    if remedy.kind == "env":
        if value == "unset" or not is_variable(name) or not is_literal(name, value):
            return None
        return f"environment: {{{name}: {_quoted(value)}}}"
    if remedy.kind == "container" or is_option_of_run(name, value):
        return compose_line(name, "" if value == "set" else value) or None
    if remedy.kind != "flag" or not is_option(name):
        return None
    words = _with_option(found.command, name, value)
    return None if words is None else f"command: [{', '.join(map(_quoted, words))}]"


def _with_option(command: Sequence[str], name: str, value: str) -> list[str] | None:
    """The container's own command with an option set or removed; None for a command that is a shell's."""
    if not command or command[0].rpartition("/")[2] in ("sh", "bash", "dash") or not is_literal(name, value or "set"):
        return None
    words = list(command)
    while True:
        at = next((at for at, word in enumerate(words) if word == name or word.startswith(f"{name}=")), None)
        if at is None:
            break
        is_joined = "=" in words[at]
        has_value = not is_joined and at + 1 < len(words) and not words[at + 1].startswith("-")
        del words[at : at + 1 + has_value]
    if value in ("remove", "unset"):
        return words
    return [*words, name, *([value] if value not in ("", "set") else [])]


def _overridden(
    remedy: Remedy, setting: Setting, found: Inspected, service: str, line: str, site: Site
) -> Plan | NotApplied:
    folder, project = found.label(_LABEL + "project.working_dir"), found.label(_LABEL + "project")
    given = [each for each in found.label(_LABEL + "project.config_files").split(",") if each]
    files = [each if each.startswith("/") else f"{folder}/{each}" for each in given]
    tool = next((each for each in found.tools if each.startswith(setting.engine)), None)
    if not folder.startswith("/") or not files or not project:
        return NotApplied("the container does not say which compose project it belongs to", remedy.commands)
    if tool is None:
        return NotApplied(f"compose made this container, and is not installed for {setting.engine} there", remedy.commands)  # fmt: skip
    path = f"{folder}/{OVERRIDE}"
    own = [each for each in files if each != path]
    seen = site.look((path, *own)).files
    objection = seen[path].refused
    if objection is not None:
        return NotApplied(f"{objection.reason}. {objection.advice}".strip(), remedy.commands)
    content = _content(service, line, [seen[each].text for each in own])
    if seen[path].kind == "file" and seen[path].text != content:
        return NotApplied(f"{path} holds an earlier change already: take that back first (gpuwhy undo), or add to it by hand: {line}", remedy.commands)  # fmt: skip
    before, after = (_up(tool, project, folder, each, service) for each in (own, [*own, path]))
    return Plan(
        title=f"{service}: {line}"[:200],
        steps=(
            WriteFile(path, content, seen[path].sha256 or ABSENT),
            RunCommand(argv=after, undo=before, deadline=STARTS, folder=folder),
        ),
        files=(FileChange(path, seen[path].text if seen[path].kind == "file" else None, content),),
        notes=(
            f"compose makes the container of {service} anew: what was written inside it and in no volume is lost",
            f"from now on name {OVERRIDE} too (-f), or its next `up` without it takes the change back",
        ),
    )


def _content(service: str, line: str, others: Sequence[str]) -> str:
    """The override; old releases of compose want its version to be that of the other files."""
    versions = [found.group(1) for text in others if (found := _VERSION.search(text[:4000])) is not None]
    first = [f"version: {versions[0]}"] if versions else []
    return "\n".join(["# made by gpuwhy fix", *first, "services:", f"  {_quoted(service)}:", f"    {line}", ""])


def _up(tool: str, project: str, folder: str, files: Sequence[str], service: str) -> tuple[str, ...]:
    named = [word for each in files for word in ("-f", each)]
    return (*tool.split(" "), "-p", project, "--project-directory", folder, *named, "up", "-d", "--no-deps", service)


def _quoted(value: str) -> str:
    """YAML's double quotes take JSON's escapes; compose expands ``$`` and takes ``$$`` for one."""
    return json.dumps(value).replace("$", "$$")
