"""Ansible inventories as a source of hosts: INI and YAML files are read here, everything else by ansible-inventory.

    [gpu]                                    all:
    gpu[001:064] ansible_user=ops              children:
    [gpu:vars]                                   gpu:
    ansible_port=2222                              hosts:
                                                     gpu[001:064]:

Of a host's variables those are taken that say how ssh reaches it. A program as an inventory, a folder, and an inventory of
a plugin are Ansible's own business: its ``ansible-inventory --list`` is asked, where it is installed.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from gpuwhy.fleet.engines.interface import FleetError

_RANGE = re.compile(r"\[(\w{1,9}):(\w{1,9})(?::(\d{1,9}))?\]")

MOST_HOSTS = 100_000

_ASKING = 120.0
"""Seconds for ansible-inventory: a dynamic inventory asks a cloud."""

_PLUGIN = re.compile(r"^plugin\s*:", re.MULTILINE)


class InventoryHost(msgspec.Struct, frozen=True):
    """A host, and how ssh reaches it where the inventory says so: empty strings where it does not."""

    name: str
    address: str = ""
    user: str = ""
    port: str = ""
    key: str = ""
    common: str = ""


class Inventory:
    """Groups with their hosts and children, and variables of both."""

    def __init__(self) -> None:
        self.hosts: dict[str, dict[str, str]] = {}
        self.members: dict[str, list[str]] = {}
        self.children: dict[str, list[str]] = {}
        self.variables: dict[str, dict[str, str]] = {}

    def add(self, group: str, host: str, variables: Mapping[str, Any]) -> None:
        own = self.hosts.setdefault(host, {})
        own |= {str(key): str(value) for key, value in variables.items() if isinstance(value, (str, int, float))}
        members = self.members.setdefault(group, [])
        members.append(host)
        if len(members) > MOST_HOSTS:
            raise FleetError(f"group {group} of the inventory has more than {MOST_HOSTS} hosts")

    def of_group(self, group: str, seen: frozenset[str] = frozenset()) -> Iterator[str]:
        """The hosts of a group and of the groups in it."""
        if group == "all":
            yield from self.hosts
            return
        yield from self.members.get(group, [])
        for child in self.children.get(group, []):
            if child not in seen:
                yield from self.of_group(child, seen | {group})

    def groups(self) -> set[str]:
        return {*self.members, *self.children, "all"}

    def chosen(self, asked: str) -> list[str]:
        """``asked`` as ansible's patterns go: names, groups and wildcards by ``,`` or ``:``, ``!`` takes away, ``&`` keeps only."""
        found: dict[str, None] = {}
        words = [word for word in re.split(r"[,:](?![^\[]*\])", asked or "all") if word]
        plain = [word for word in words if word[0] not in "!&"] or ["all"]
        for word in plain:
            matched = list(self._matching(word))
            if not matched:
                raise FleetError(
                    f"the inventory has no host or group {word!r}",
                    f"Its groups: {', '.join(sorted(self.groups()))[:500]}",
                )
            found |= dict.fromkeys(matched)
        for word in words:
            if word[0] in "!&":
                others = set(self._matching(word[1:]))
                found = {host: None for host in found if (host in others) == (word[0] == "&")}
        return list(found)

    def _matching(self, word: str) -> Iterator[str]:
        for name in expanded(word):
            for group in sorted(self.groups()):
                if fnmatch.fnmatchcase(group, name):
                    yield from self.of_group(group)
            yield from (host for host in self.hosts if fnmatch.fnmatchcase(host, name))

    def described(self, host: str) -> InventoryHost:
        """A host with its variables and those of its groups, of which the inner ones count."""
        merged: dict[str, str] = dict(self.variables.get("all", {}))
        above = sorted(
            (group for group in self.groups() - {"all"} if host in set(self.of_group(group))), key=self._depth
        )
        for group in above:
            merged |= self.variables.get(group, {})
        merged |= self.hosts.get(host, {})
        return InventoryHost(
            host,
            merged.get("ansible_host", merged.get("ansible_ssh_host", "")),
            merged.get("ansible_user", merged.get("ansible_ssh_user", "")),
            merged.get("ansible_port", merged.get("ansible_ssh_port", "")),
            merged.get("ansible_ssh_private_key_file", merged.get("ansible_private_key_file", "")),
            " ".join(merged[key] for key in ("ansible_ssh_common_args", "ansible_ssh_extra_args") if merged.get(key)),
        )

    def _depth(self, group: str) -> tuple[int, str]:
        """How many groups a group is in, one in another."""
        depth, above, seen = 0, {group}, {group}
        while above := {parent for parent, children in self.children.items() if above & set(children)} - seen:
            seen |= above
            depth += 1
        return depth, group


def read_inventory(path: str, asked: str = "") -> list[InventoryHost]:
    """The hosts of an inventory that ``asked`` names (all by default). Raises FleetError."""
    inventory = _read(path)
    names = inventory.chosen(asked) if inventory.hosts else []
    if not names:
        raise FleetError(f"{path} names no hosts" + (f" for {asked!r}" if asked else ""))
    return [inventory.described(name) for name in names]


def _read(path: str) -> Inventory:
    file = Path(path)
    try:
        text = "" if file.is_dir() else file.read_text(encoding="utf-8")
    except OSError as error:
        raise FleetError(f"{path} cannot be read as an inventory: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FleetError(f"{path} cannot be read as an inventory: {error}") from error
    if (
        file.is_dir()
        or text.startswith("#!")
        or (os.access(path, os.X_OK) and file.stat().st_mode & 0o100)
        or _PLUGIN.search(text)
    ):
        return _from_ansible(path)
    if file.suffix in (".yml", ".yaml", ".json") or text.lstrip().startswith(("---", "all:")):
        return _from_yaml(path, text)
    return _from_ini(path, text)


def _from_ini(path: str, text: str) -> Inventory:
    inventory = Inventory()
    group, kind = "ungrouped", ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            name = line[1:].partition("]")[0].strip()
            group, _, kind = name.partition(":")
            if not group or kind not in ("", "children", "vars"):
                raise FleetError(f"{path}:{number}: {line[:100]!r} is no section of an inventory")
            inventory.members.setdefault(group, [])
            continue
        if kind == "children":
            inventory.children.setdefault(group, []).append(line.split()[0])
        elif kind == "vars":
            key, _, value = line.partition("=")
            inventory.variables.setdefault(group, {})[key.strip()] = _unquoted(value)
        else:
            try:
                words = shlex.split(line, comments=True)
            except ValueError as error:
                raise FleetError(f"{path}:{number}: {error}") from error
            variables = dict(word.split("=", 1) for word in words[1:] if "=" in word)
            for host in expanded(words[0]):
                inventory.add(group, _without_port(host, variables), variables)
    return inventory


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def _without_port(host: str, variables: dict[str, str]) -> str:
    """``gpu1:2222``, the old way to write a port."""
    name, colon, port = host.rpartition(":")
    if colon and port.isdigit() and ":" not in name:
        variables.setdefault("ansible_port", port)
        return name
    return host


def _from_yaml(path: str, text: str) -> Inventory:
    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe one
    except (yaml.YAMLError, RecursionError) as error:
        raise FleetError(f"{path} is no YAML: {' '.join(str(error).split())[:300]}") from error
    inventory = Inventory()
    if isinstance(document, dict):
        for name, body in document.items():
            _take_group(inventory, str(name), body, 0)
    return inventory


def _take_group(inventory: Inventory, name: str, body: Any, depth: int) -> None:
    inventory.members.setdefault(name, [])
    if not isinstance(body, dict) or depth > 40:
        return
    hosts, children, variables = body.get("hosts"), body.get("children"), body.get("vars")
    if isinstance(variables, dict):
        own = inventory.variables.setdefault(name, {})
        own |= {str(key): str(value) for key, value in variables.items() if isinstance(value, (str, int, float))}
    named: Iterable[Any] = hosts if isinstance(hosts, (dict, list)) else ()
    for host in named:
        of_host = hosts.get(host) if isinstance(hosts, dict) else None
        for each in expanded(str(host)):
            inventory.add(name, each, of_host if isinstance(of_host, dict) else {})
    for child, inner in children.items() if isinstance(children, dict) else ():
        inventory.children.setdefault(name, []).append(str(child))
        _take_group(inventory, str(child), inner, depth + 1)


def _from_ansible(path: str) -> Inventory:
    """What ``ansible-inventory --list`` makes of it: groups with ``hosts`` and ``children``, variables under ``_meta``."""
    program = shutil.which("ansible-inventory")
    if program is None:
        raise FleetError(
            f"{path} is a dynamic inventory, which only Ansible can read, and there is no ansible-inventory here",
            "pip install ansible-core; or name the hosts: gpuwhy fleet collect 'gpu[001-064]' ...",
        )
    try:
        ended = subprocess.run([program, "-i", path, "--list"], capture_output=True, text=True, errors="replace", timeout=_ASKING, check=False, stdin=subprocess.DEVNULL)  # fmt: skip
        document = msgspec.json.decode(ended.stdout) if ended.returncode == 0 else None
    except (subprocess.TimeoutExpired, msgspec.DecodeError) as error:
        raise FleetError(f"ansible-inventory -i {path} --list gave no answer that can be read: {error}") from error
    if not isinstance(document, dict):
        raise FleetError(f"ansible-inventory -i {path} --list failed: {' '.join(ended.stderr.split())[-300:]}")
    inventory = Inventory()
    meta = document.pop("_meta", {})
    of_hosts = meta.get("hostvars", {}) if isinstance(meta, dict) else {}
    for group, body in document.items():
        if not isinstance(body, dict):
            continue
        inventory.members.setdefault(group, [])
        inventory.children.setdefault(group, []).extend(map(str, body.get("children") or []))
        for host in body.get("hosts") or []:
            inventory.add(group, str(host), of_hosts.get(host) or {})
    return inventory


def expanded(pattern: str) -> Iterator[str]:
    """``gpu[001:064]``, ``rack[a:c]-[1:9:2]`` with both ends, as Ansible has it; a name without a range as it is."""
    found = _RANGE.search(pattern)
    if found is None:
        yield pattern
        return
    first, last, step = found[1], found[2], int(found[3] or 1)
    for value in _between(first, last, max(step, 1)):
        yield from expanded(pattern[: found.start()] + value + pattern[found.end() :])


def _between(first: str, last: str, step: int) -> Iterator[str]:
    if first.isdigit() and last.isdigit():
        width = len(first) if first.startswith("0") else 0
        numbers = range(int(first), int(last) + 1, step)
        if len(numbers) > MOST_HOSTS:
            raise FleetError(f"[{first}:{last}] of the inventory are more than {MOST_HOSTS} hosts")
        yield from (f"{number:0{width}d}" for number in numbers)
    elif len(first) == len(last) == 1:
        yield from (chr(code) for code in range(ord(first), ord(last) + 1, step))
    else:
        raise FleetError(f"[{first}:{last}] is no range of an inventory")
