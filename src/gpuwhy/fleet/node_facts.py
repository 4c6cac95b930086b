"""One node, reduced to what is compared with other nodes: its facts as text, and keys that say which nodes are judged alike."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from gpuwhy.fleet import harmless
from gpuwhy.investigate.comparable import Comparable, plain_value, shown
from gpuwhy.model.fact import Unknown
from gpuwhy.snapshot import Snapshot, journal_entries, kernel_entries, service_logs
from gpuwhy.snapshot.containers import container_entries, engine_entries

_PROBED = ("env", "packages", "toolkit_resolved", "files", "df", "mount", "fs", "ulimit", "service", "unit_file", "container", "assemblers", "nvidia_smi", "toolkit", "jit_cache", "unit_state", "packages_shadowed", "nvcc_path", "command", "gpu_errors", "driver_installed", "driver_library", "memory_limit_bytes", "hypervisor", "net_interfaces", "os")  # fmt: skip
"""Groups of facts, and facts, of which :class:`Comparable` knows whether a missing one is absent."""

_MOST_TEXT = 8 << 20
"""Bytes of logs of one node that its key is made of."""
_EXACT = re.compile(r" \(\d{1,20} bytes\)")
_MEASURES = frozenset({"mem_total_bytes", "swap_total_bytes", "shm_bytes", "memory_limit_bytes"})


class NodeFacts(msgspec.Struct, frozen=True):
    """``values`` by key, each as text; ``measures`` are those whose number counts about, not exactly.

    ``unknown`` says why a key, or every key of a group (``packages``), could not be looked at; a key that stands in neither
    is absent. ``judged_as`` is equal for nodes that ``check`` and ``diagnose`` answer the same for.
    """

    name: str
    pool: tuple[str, str]
    values: dict[str, str]
    measures: dict[str, int]
    unknown: dict[str, str]
    judged_as: str

    def why_unknown(self, key: str) -> str | None:
        """Why nobody can tell ``key``; None when it is known, or known to be absent."""
        if key in self.values:
            return None
        return self.unknown.get(key) or self.unknown.get(key.partition(".")[0])


def node_facts(name: str, snapshot: Snapshot) -> NodeFacts:
    """What is compared of the node called ``name``."""
    comparable = Comparable(snapshot)
    system = snapshot.value("system")
    own_name = str(system.get("host") or "") if isinstance(system, dict) else ""
    node = harmless.Node(name, snapshot.target.name, own_name)
    values: dict[str, str] = {}
    measures: dict[str, int] = {}
    for key in comparable.entries:
        value = harmless.told(key, comparable.get(key))
        if value is ...:
            continue
        if key in _MEASURES and isinstance(value, int) and not isinstance(value, bool):
            measures[key] = value
        text = node.unnamed(_text(value))
        # an address of its own is another on every node, and has no majority; of a text it is a part to be left out
        values[node.neutral(key)] = text if harmless.is_address(key, text) else harmless.neutralised(text)
    unknown = {
        key: why.why
        for key, why in comparable.facts.unknowns().items()
        if not harmless.IGNORED.match(key) and not _is_absence(why)
    }
    for group in _PROBED:
        told = comparable.get(f"{group}.?")
        if isinstance(told, Unknown) and not _is_absence(told):
            unknown.setdefault(group, told.why)
    lines = sorted(set(_telling_lines(snapshot, node)))
    judged = {key: harmless.neutralised(value) for key, value in values.items()}
    judged |= {key: f"{amount:.1e}" for key, amount in measures.items()}
    return NodeFacts(
        name=name,
        pool=_pool(comparable, snapshot),
        values=values,
        measures=measures,
        unknown=unknown,
        judged_as=_digest([*sorted(judged.items()), *sorted(unknown.items()), *lines, *_excerpts(snapshot)]),
    )


def _text(value: Any) -> str:
    """A value in a line; amounts without the exact number of bytes."""
    return _EXACT.sub("", shown(list(value) if isinstance(value, tuple) else value))


def _is_absence(unknown: Unknown) -> bool:
    """Whether it was looked for and not found, in a place that was known: no driver, no Python environment."""
    return unknown.why.endswith("(absent)") and "known" not in unknown.why


def _pool(comparable: Comparable, snapshot: Snapshot) -> tuple[str, str]:
    """The models of the GPUs, and the unit: nodes that differ in these do different work."""
    gpus = plain_value(comparable.facts.value("gpus"))
    names = {str(each.get("name")) for each in gpus or () if isinstance(each, dict)}
    return " and ".join(sorted(names)), snapshot.target.unit


def _telling_lines(snapshot: Snapshot, node: harmless.Node) -> Iterator[str]:
    """The lines of the logs that hold anything by which an event, a stated fact or a cause is found."""
    find = _finder()
    size = 0
    for text in _texts(snapshot):
        size += len(text)
        if size > _MOST_TEXT:
            return
        lowered = text.lower()
        end = told_to = 0
        for _, begin, _ in find(lowered):
            if begin < end:
                continue
            start, end = text.rfind("\n", 0, begin + 1) + 1, text.find("\n", begin + 1)
            end = end if end >= 0 else len(text)
            line = text[start : min(end, start + 1000)]
            # of a statistic or a request no number decides anything; of a complaint, a version or an argument each may
            if _TELLING.search(line):
                told_to = end
                yield _PROCESS.sub("<process>", node.neutral(line))
        yield "at work after that" if _AT_WORK.search(text, told_to) else "silent after that"


_AT_WORK = re.compile(r"throughput|\" 200\b|tokens/s|\bloss\b")
"""What a program says at its work: what it complained of before has not stopped it."""
_TELLING = re.compile(
    r"(?i)error|fail|exception|traceback|fatal|warn|critical|abort|assert|kill|signal|exit|denied|refus|cannot|can't|unable|not |no |version|requires|cuda|driver|nccl|xid|nvrm|oom|memory|args|arguments|argv|--\w|file \"|time[d ]{0,2}out|\w\(\w{1,40}=|==|^\s"
)
"""What makes a line more than news of the day."""
_PROCESS = re.compile(
    r"(?i)\b(?:pid|process|tid|thread)[ =:#]{1,2}\d{1,9}\b|\[\d{2,9}\]|\b0x[0-9a-f]{4,16}\b|\b\d{1,9}\.\d{3,12}\b"
)


def _texts(snapshot: Snapshot) -> Iterator[str]:
    for entries in (
        journal_entries(snapshot),
        container_entries(snapshot),
        engine_entries(snapshot),
        kernel_entries(snapshot),
    ):
        text = "\n".join(_messages(entries))
        if text:
            yield text
    yield from (log.text for log in service_logs(snapshot))


def _messages(entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    for each in entries:
        message = each.get("MESSAGE")
        if isinstance(message, str):
            yield message


def _excerpts(snapshot: Snapshot) -> Iterator[str]:
    """Files that were asked for: binaries that differ are judged differently, also where the facts are the same."""
    for each in snapshot.excerpts:
        yield f"{each.ask} {each.path} {each.status} {_digest([msgspec.json.encode(each.value).decode('utf-8', 'replace')])}"


@functools.cache
def _finder() -> Any:
    import ahocorasick_rs

    from gpuwhy.diagnosis import sign_literals
    from gpuwhy.logs.interest import literals

    wanted = sorted({*literals(), *sign_literals()})
    # one search for all: a line without any of them tells neither of an event nor of a cause
    return ahocorasick_rs.AhoCorasick(wanted, store_patterns=False).find_matches_as_indexes


def _digest(parts: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(repr(part).encode("utf-8", "replace"))
    return digest.hexdigest()[:24]
