"""A snapshot as entries that can be compared one by one: its facts, its unit files, its caches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.model.host import Resolution, ToolkitInstall
from gpuwhy.snapshot import Probe, Snapshot, facts_of

_FOLLOW = {"gpu": "gpus", "cc": "gpus", "torch": "packages.torch", "service.exec_start": "command", "cuda_home": "toolkit_resolved.flashinfer", "cuda_toolkit": "toolkit_resolved.flashinfer", "ulimit.memlock": "memlock", "df./dev/shm": "shm_bytes"}  # fmt: skip
"""Facts that repeat another: compared only where that one is not known."""

_PROBES = {
    "env": "environment", "packages": "packages", "packages_shadowed": "packages", "toolkit_resolved": "resolutions", "nvcc_path": "resolutions",
    "files": "disks", "df": "disks", "mount": "disks", "fs": "disks", "ulimit": "limits", "service": "unit", "unit_file": "unit", "command": "unit",
    "container": "container", "assemblers": "assemblers", "nvidia_smi": "nvidia_smi", "toolkit": "toolkits", "jit_cache": "jit_cache",
    "gpu_errors": "gpus", "gpu_processes": "gpus", "driver_installed": "driver", "driver_library": "driver", "memory_limit_bytes": "memory",
    "memory_limit_kills": "memory", "unit_state": "unit", "hypervisor": "system", "net_interfaces": "system", "os": "system", "ninja_path": "compilers",
}  # fmt: skip
"""The probe that would have brought a key, or every key of a group: where it is ``ok`` and the key is not there, it is absent."""

_TOKEN = re.compile(r"<redacted:\d{1,9}>")

NOT_THERE = "not there"
"""In place of a value: looked for and absent."""


class Comparable:
    """``entries`` by key. An entry that is missing is absent or unknown: :meth:`get` tells which."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.facts: Facts = facts_of(snapshot)
        self.entries: dict[str, Fact] = {each.key: each for each in _entries(snapshot, self.facts)}

    def get(self, key: str) -> Any | Unknown:
        """The plain value of ``key``; None when it is absent; Unknown when nobody could tell."""
        found = self.entries.get(key)
        if found is not None:
            return _without_numbers(plain_value(found.value))
        why = self.facts.unknowns().get(key)
        if why is not None:
            return why
        group = key.partition(".")[0]
        if group == "env" and not self.facts.value("environment_complete", False):
            return Unknown("the environment of the service is not wholly known", key)
        probe = self._snapshot.probe(_PROBES.get(key) or _PROBES.get(group, ""))
        if probe is not None and (probe.status == "ok" or self._has_no_cache(probe)):
            return None
        return Unknown(f"{probe.reason} ({probe.status})" if probe is not None else "not asked", key)

    def _has_no_cache(self, probe: Probe) -> bool:
        """The caches are absent for want of one only where it was known where they would lie."""
        return (probe.name, probe.status) == ("jit_cache", "absent") and self._snapshot.value("environment") is not None


def plain_value(value: Any) -> Any:
    """A value that compares by content: GPUs and toolkits by what they are, a choice without the steps that led to it."""
    if isinstance(value, Resolution):
        return {"version": value.version, "root": value.root, "by": value.by}
    return msgspec.to_builtins(value)


def _without_numbers(value: Any) -> Any:
    """Tokens of redaction number the secrets of one snapshot: in another the same number means another secret."""
    if isinstance(value, str):
        return _TOKEN.sub("<redacted>", value)
    if isinstance(value, dict):
        return {key: _without_numbers(item) for key, item in value.items()}
    return [_without_numbers(item) for item in value] if isinstance(value, list) else value


def _entries(snapshot: Snapshot, facts: Facts) -> Iterator[Fact]:
    for fact in facts:
        original = _FOLLOW.get(fact.key)
        if fact.key == "toolkits":
            yield from _toolkits(fact)
        elif original is None or original not in facts:
            yield fact
    yield from _unit_files(snapshot)
    yield from _caches(snapshot)


def _toolkits(fact: Fact) -> Iterator[Fact]:
    for each in fact.value or ():
        if isinstance(each, ToolkitInstall):
            yield Fact(f"toolkit.{each.root}", {"version": each.version, "note": each.note}, fact.evidence)


def _unit_files(snapshot: Snapshot) -> Iterator[Fact]:
    unit = snapshot.value("unit")
    for each in _dicts(unit.get("files") if isinstance(unit, dict) else None):
        path, text = str(each.get("path")), str(each.get("text"))
        said = Evidence("as it stands on disk", "", Place("file", path))
        yield Fact(f"unit_file.{path}", [line for line in text.splitlines() if line.strip()], said)


def _caches(snapshot: Snapshot) -> Iterator[Fact]:
    """Each folder of a JIT cache with the state of its modules: a size alone is no difference."""
    caches = snapshot.value("jit_cache")
    for name, cache in caches.items() if isinstance(caches, dict) else ():
        if not isinstance(cache, dict):
            continue
        folders = _dicts(cache.get("levels")) if "levels" in cache else [cache]
        for folder in folders:
            path = str(folder.get("path") or folder.get("root"))
            states = {str(each.get("name")): str(each.get("state")) for each in _dicts(folder.get("modules"))}
            value = states if "modules" in folder else {"entries": folder.get("entries")}
            yield Fact(f"jit_cache.{path}", value, Evidence(f"cache of {name}", "", Place("file", path)))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def shown(value: Any) -> str:
    """A value in a line, for people."""
    if isinstance(value, dict) and "root" in value:
        by = f", by {value['by']}" if value.get("by") else ""
        return f"{value.get('version') or 'no version'} ({value.get('root') or 'no folder'}{by})"
    if isinstance(value, dict) and "version" in value:
        return " ".join(str(each) for each in (value["version"] or "unknown version", value.get("note")) if each)
    if isinstance(value, dict) and "avail_bytes" in value:
        return f"{_size(value['avail_bytes'])} of {_size(value.get('size_bytes'))} available"
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items()) or "empty"
    if isinstance(value, list) and value and all(isinstance(each, dict) and "name" in each for each in value):
        kinds = [f"{each['name']} ({each.get('compute_capability') or 'capability unknown'})" for each in value]
        return "; ".join(f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds))
    if isinstance(value, list):
        return ", ".join(str(each) for each in value) or "none"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1 << 20:
        return _size(value)
    return NOT_THERE if value is None else ("empty" if value == "" else str(value))


def _size(value: Any) -> str:
    """Bytes, with the exact number where a unit would round it away."""
    if not isinstance(value, int):
        return str(value)
    unit = next((each for each in ((1 << 30, "GiB"), (1 << 20, "MiB")) if value >= each[0]), None)
    if unit is None:
        return f"{value} bytes"
    whole, rest = divmod(value, unit[0])
    return f"{value / unit[0]:.2f} {unit[1]} ({value} bytes)" if rest else f"{whole} {unit[1]}"
