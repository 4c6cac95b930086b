"""A column at the left edge that names each line's writer, known for one only from the text as a whole.

vllm-1           | INFO ...             docker compose; vllm_1 in its first version, vllm.1.x7k2@node in swarm services
vllm-0 server INFO ...                  stern, which says ``+ vllm-0 › server`` when it begins to follow a container
node07: Traceback ...                   pdsh and DeepSpeed's launcher
 3: Traceback ...                       srun --label
 118: Traceback ...                     grep -n and nl, or ``118 | `` and two blanks: line numbers, which name nobody
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import pairwise

from gpuwhy.logs.patterns import Pattern
from gpuwhy.model.event import Process

Column = Callable[[str], "tuple[str, Process | None] | None"]
"""What stands behind the column and who wrote it; None for a line without the column."""

SAMPLE = 400
"""Lines looked at before it is decided what the text is."""
_SHARE = 0.8
_FEWEST = 3
_MOST_HOSTS = 64
_WIDEST_GAP = 1000
"""Between the numbers of two lines that somebody picked out of a log."""

_COMPOSE = Pattern(r"(?P<name>(?=[\w.-]{0,80}[A-Za-z])[A-Za-z0-9][\w.@-]{0,120}) {1,60}\| ?")
_COMPOSE_NUMBERED = Pattern(r"(?P<name>[A-Za-z0-9][\w.-]{0,80}[-_]\d{1,4}) {1,60}\| ?")
_STERN_BEGINS = Pattern(
    r"\+ (?:[a-z0-9-]{1,63} › )?(?P<pod>[a-z0-9][a-z0-9.-]{0,252}) › (?P<container>[a-z0-9-]{1,63})$"
)
_STERN = Pattern(r"(?:[a-z0-9-]{1,63} )?(?P<pod>[a-z0-9][a-z0-9.-]{0,252}-[a-z0-9]{1,10}) (?P<container>[a-z][a-z0-9-]{0,62})(?: |$)")  # fmt: skip
_HOST = Pattern(r"(?P<host>[a-z][\w.-]{0,60}?\d{1,5}(?:\.[\w.-]{1,60})?):(?: |$)")
_LABEL = Pattern(r" {0,8}(?P<number>\d{1,7}):(?: |$)")
_NUMBERS = (
    Pattern(r" {0,8}(?P<number>\d{1,7}): "),
    Pattern(r" {0,8}(?P<number>\d{1,7}):(?!\d\d:\d\d)"),
    Pattern(r" {0,8}(?P<number>\d{1,7})(?:\t| {0,2}\| ?)"),
    Pattern(r" {0,8}(?P<number>\d{1,7})  "),
)


def column_of(raws: Sequence[str]) -> Column | None:
    """The column that the lines of a text have in common; None when they have none."""
    sample = [raw for raw in raws[:SAMPLE] if raw.strip()]
    if not sample:
        return None
    numbered = _numbered(sample) if _mostly(sample, str.isdigit) else None
    if numbered is not None:
        return numbered
    if any(" | " in raw or raw.endswith("|") for raw in sample):
        compose = _compose(sample)
        if compose is not None:
            return compose
    begins_low = any("\u203a" in raw for raw in sample) or _mostly(sample, str.islower)
    return (_stern(sample) or _hosts(sample)) if begins_low else None


def _mostly(sample: list[str], is_such: Callable[[str], bool]) -> bool:
    """Whether most lines begin with such a character: spares most logs the patterns."""
    return sum(is_such(raw.lstrip(" ")[:1]) for raw in sample) >= _SHARE * len(sample)


@functools.lru_cache(maxsize=4096)
def within(writer: Process, process: Process) -> Process:
    """What a program says of itself, and where it runs: two services may each have a ``TP0``."""
    return Process(
        name=process.name or writer.name,
        pid=process.pid,
        rank=process.rank if process.rank is not None else writer.rank,
        host=process.host or writer.host or writer.name,
    )


def _compose(sample: list[str]) -> Column | None:
    """A name without a number is believed when most lines have one."""
    if len(sample) >= _FEWEST and sum(_COMPOSE.match(raw) is not None for raw in sample) >= _SHARE * len(sample):
        return functools.partial(_behind_name, _COMPOSE)
    if any(_COMPOSE_NUMBERED.match(raw) for raw in sample):
        return functools.partial(_behind_name, _COMPOSE_NUMBERED)
    return None


def _behind_name(pattern: Pattern, raw: str) -> tuple[str, Process | None] | None:
    found = pattern.match(raw)
    return (raw[found.end() :], _named(found["name"])) if found is not None else None


def _stern(sample: list[str]) -> Column | None:
    """Its own announcements name what it follows; without them most lines must begin with one of few containers."""
    if sum("›" in raw and _STERN_BEGINS.match(raw) is not None for raw in sample):
        return _behind_container
    containers = [found.group() for raw in sample if (found := _STERN.match(raw)) is not None and "-" in found["pod"]]
    if len(containers) < max(_FEWEST, _SHARE * len(sample)) or len(set(containers)) * 2 > len(containers):
        return None
    return _behind_container


def _behind_container(raw: str) -> tuple[str, Process | None] | None:
    found = _STERN.match(raw[:400])
    return (raw[found.end() :], _container(found["pod"], found["container"])) if found is not None else None


def _hosts(sample: list[str]) -> Column | None:
    hosts = [found["host"] for raw in sample if (found := _HOST.match(raw)) is not None]
    distinct = set(hosts)
    if len(hosts) < max(_FEWEST, 0.95 * len(sample)) or len(distinct) > min(_MOST_HOSTS, len(hosts) // 2):
        return None
    return functools.partial(_behind_host, frozenset(distinct))


def _behind_host(known: frozenset[str], raw: str) -> tuple[str, Process | None] | None:
    found = _HOST.match(raw[:140])
    if found is None or found["host"] not in known:
        return None
    return raw[found.end() :], _on_host(found["host"])


def _numbered(sample: list[str]) -> Column | None:
    """Ranks come back again and again; numbers of lines only grow."""
    for pattern in _NUMBERS:
        numbers = [int(found["number"]) for raw in sample if (found := pattern.match(raw)) is not None]
        if len(numbers) < max(_FEWEST, 0.95 * len(sample)):
            continue
        if all(0 < after - before <= _WIDEST_GAP for before, after in pairwise(numbers)):
            return functools.partial(_behind_number, pattern)
    if sum(_LABEL.match(raw) is not None for raw in sample) >= max(_FEWEST, _SHARE * len(sample)):
        return _behind_rank
    return None


def _behind_number(pattern: Pattern, raw: str) -> tuple[str, Process | None] | None:
    found = pattern.match(raw)
    return (raw[found.end() :], None) if found is not None else None


def _behind_rank(raw: str) -> tuple[str, Process | None] | None:
    found = _LABEL.match(raw)
    return (raw[found.end() :], _ranked(int(found["number"]))) if found is not None else None


@functools.lru_cache(maxsize=1024)
def _named(name: str) -> Process:
    return Process(name=name)


@functools.lru_cache(maxsize=1024)
def _container(pod: str, container: str) -> Process:
    return Process(name=container, host=pod)


@functools.lru_cache(maxsize=1024)
def _on_host(host: str) -> Process:
    return Process(host=host)


@functools.lru_cache(maxsize=1024)
def _ranked(rank: int) -> Process:
    return Process(name=f"task {rank}", rank=rank)
