"""Facts that a log or report states about the machine it comes from. A wrong fact is worse than none.

Statements about the same thing are weighed by how they were made; where equally good ones contradict each other, the
fact stays unknown and says so.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from gpuwhy.logs.stated import (
    arguments,
    asides,
    container_inspect,
    disks,
    environment,
    environment_lists,
    flashinfer_env,
    gpu_topology,
    gpus,
    images,
    launch,
    libraries,
    limits,
    manifests,
    memory,
    pci,
    pip_list,
    pods,
    python_engine,
    sglang_env,
    smi_csv,
    smi_nvlink,
    smi_query,
    smi_table,
    system,
    system_packages,
    template,
    told,
    typed,
    units,
    versions,
)
from gpuwhy.logs.stated._types import Block, Statement
from gpuwhy.model.event import Log, LogLine
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Fact, Facts, Unknown

LINES: tuple[Any, ...] = (
    gpus, versions, arguments, environment, launch, images, pip_list, smi_table, smi_query, smi_nvlink, system, container_inspect, libraries, memory, limits, pci, units, system_packages, template, typed, python_engine, manifests, told,
)  # fmt: skip
"""What reads a line by itself: ``LITERALS``, one of which the line must hold, and ``read``."""
OF_PEOPLE = frozenset({told})
"""What reads running text: no line that a logger wrote."""
BLOCKS: tuple[Any, ...] = (
    pip_list, launch, smi_table, smi_query, smi_csv, smi_nvlink, gpu_topology, sglang_env, flashinfer_env, environment_lists, container_inspect, pods, memory, disks, limits, units, typed, python_engine, manifests,
)  # fmt: skip
"""What reads dumps of several lines: ``OPENING``, one of which their first line must hold, and ``opened``."""
MAX_LINES = 20_000
"""Different lines looked at closely; an environment report has hundreds."""
MAX_BLOCKS = 2_000
MAX_BLOCK_LINES = 4_000
MAX_LISTED = 400
"""Items of one list."""
_TEXTS = frozenset({"pci_acs"})
"""Lists that the vocabulary has as one text."""
LONGEST = 4_000
"""Characters of a line that are searched for literals."""
_CHUNK = 4_096

Seen = tuple[Statement, LogLine]


def facts_in(log: Log) -> Facts:
    """What ``log`` states, in the vocabulary of ``--facts``, each with the line that says so.

    Beyond that vocabulary (docs/facts.md, "What logs state"): ``nvcc_path_version`` is what ``nvcc --version`` printed
    in some shell, ``server_args.NAME`` an argument that the engine echoed at its start or was started with.
    """
    seen: dict[str, list[Seen]] = {}
    for statement, line in _Reader(log.lines).statements():
        seen.setdefault(statement.key, []).append((statement, line))
    _settle_gpus(seen)
    _settle_lists(seen)
    facts: dict[str, Fact] = {}
    unknown: dict[str, Unknown] = {}
    for key, statements in seen.items():
        best = _best(statements)
        values = _different(best)
        if len(values) > 1:
            unknown[key] = Unknown(f"the text contradicts itself: {' and '.join(map(str, values[:3]))}", key)
        else:
            facts[key] = _fact(log, *best[0])
    return Facts(facts, unknown)


def _fact(log: Log, statement: Statement, line: LogLine) -> Fact:
    value = statement.value
    said = "none was found" if value is None else str(value)
    text = line.text.strip()[:1000]
    quote = _without_secrets(text) if value == environment.KEPT_BACK else text
    place = Place(log.kind, log.name, line.number)
    evidence = Evidence(f"{statement.key}: {said}", quote, place, Standing.OBSERVED)
    return Fact(statement.key, value, evidence)


def _without_secrets(text: str) -> str:
    """A variable whose value is kept back is not quoted with it either."""
    # most logs state no such variable, and need none of the patterns
    from gpuwhy.redaction import Redactor

    return Redactor().text(text)


def _best(statements: Sequence[Seen]) -> list[Seen]:
    strongest = max(statement.strength for statement, _ in statements)
    return [seen for seen in statements if seen[0].strength == strongest]


def _different(statements: Iterable[Seen]) -> list[object]:
    """The values that differ; one that only says more (``12.8.93`` for ``12.8``) does not."""
    values: list[object] = []
    for statement, _ in statements:
        value = statement.value
        if not any(_agree(value, known) for known in values):
            values.append(value)
    return values


def _agree(one: object, other: object) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one == other or one.startswith((other + ".", other + "+")) or other.startswith((one + ".", one + "+"))
    return one == other


def _settle_gpus(seen: dict[str, list[Seen]]) -> None:
    """``gpu@0``, ``gpu@1`` ... to ``gpu`` where all are alike, and to ``gpus`` where there are several; ``cc`` likewise."""
    for key in ("gpu", "cc"):
        indexed = {name: seen.pop(name) for name in list(seen) if name.startswith(key + "@")}
        if not indexed:
            continue
        everything = _best([one for statements in indexed.values() for one in statements])
        values = _gpu_names(everything) if key == "gpu" else _different(everything)
        if len(values) == 1:
            statement, line = max(everything, key=_length) if key == "gpu" else everything[0]
            seen[key] = [(Statement(key, statement.value, statement.strength), line)]
        if key == "gpu":
            seen.update(_several(indexed, everything, len(values) == 1))


def _gpu_names(statements: Iterable[Seen]) -> list[str]:
    """The models that differ: ``H100``, ``NVIDIA H100`` and ``NVIDIA H100 80GB HBM3`` may be the same."""
    names: list[str] = []
    for statement, _ in statements:
        name = " ".join(word for word in str(statement.value).lower().split() if word not in ("nvidia", "geforce"))
        if not any(name == known or name.startswith(known + " ") or known.startswith(name + " ") for known in names):
            names.append(name)
    return names


def _length(seen: Seen) -> int:
    return len(str(seen[0].value))


def _several(indexed: dict[str, list[Seen]], everything: list[Seen], is_alike: bool) -> dict[str, list[Seen]]:
    """``gpus``, when the strongest statements number each GPU and do not contradict each other about any."""
    numbered: dict[int, list[Seen]] = {}
    for name, statements in indexed.items():
        strongest = [one for one in statements if one in everything]
        if strongest and name == "gpu@":
            if not is_alike:
                return {}
        elif strongest:
            numbered[int(name[4:])] = strongest
    if len(numbered) < 2 or any(len(_gpu_names(statements)) > 1 for statements in numbered.values()):
        return {}
    listed = [f"{number}: {numbered[number][0][0].value}" for number in sorted(numbered)]
    first = numbered[min(numbered)][0]
    return {"gpus": [(Statement("gpus", listed, first[0].strength), first[1])]}


def _settle_lists(seen: dict[str, list[Seen]]) -> None:
    """``KEY[]`` statements to one list (or text) under ``KEY``, in the order of the text; it is cited by its first item."""
    for name in [name for name in seen if name.endswith("[]")]:
        statements = seen.pop(name)
        key = name.removesuffix("[]")
        values = list(dict.fromkeys(statement.value for statement, _ in statements))[:MAX_LISTED]
        first, line = statements[0]
        settled = "; ".join(values) if key in _TEXTS else values
        seen[key] = [(Statement(key, settled, first.strength), line)]


class _Reader:
    """One way through the lines: those that hold a literal, and those of the dumps that one of them opens."""

    def __init__(self, lines: Sequence[LogLine]) -> None:
        self._lines = lines
        self._known: set[str] = set()
        self._block: Block | None = None
        self._aside: asides.Aside | None = None
        self._blocks = 0
        self._block_lines: list[LogLine] = []

    def statements(self) -> Iterator[Seen]:
        for start in range(0, len(self._lines), _CHUNK):
            chunk = self._lines[start : start + _CHUNK]
            hits = _hits([line.text for line in chunk])
            at = 0
            for at_hit in [*sorted(hits), len(chunk)]:
                while at < at_hit and (self._block is not None or self._aside is not None):
                    yield from self._line(chunk[at], None)
                    at += 1
                if at_hit < len(chunk):
                    yield from self._line(chunk[at_hit], hits[at_hit])
                at = at_hit + 1

    def _line(self, line: LogLine, hit: _Hit | None) -> Iterator[Seen]:
        text = line.text
        if self._is_aside(text, hit):
            self._block = None
            return
        if self._block is not None:
            read = self._block.read(text[:LONGEST])
            self._block_lines.append(line)
            if read is None or len(self._block_lines) > MAX_BLOCK_LINES:
                self._block = None
            else:
                found = [(statement, self._block_lines[-1 - statement.back]) for statement in read]
                yield from found
                if found or not self._block.shares:
                    return
        if hit is None:
            return
        if hit.openers and self._blocks < MAX_BLOCKS:
            for opener in hit.openers:
                opened = opener.opened(text[:LONGEST])
                if opened is not None:
                    self._block, self._block_lines = opened, [line]
                    self._blocks += 1
                    break
        if not hit.readers or text in self._known or len(self._known) >= MAX_LINES:
            return
        self._known.add(text)
        is_logged = bool(line.level) or line.time is not None
        for reader in hit.readers:
            if is_logged and reader in OF_PEOPLE:
                continue
            for statement in reader.read(text):
                yield statement, line

    def _is_aside(self, text: str, hit: _Hit | None) -> bool:
        """Whether the line belongs to a proposal, a diff or another machine."""
        if self._aside is not None and not self._aside.covers(text):
            self._aside = None
        if self._aside is None and hit is not None and hit.may_be_aside:
            self._aside = asides.opened(text)
        return self._aside is not None


class _Hit:
    """What a line's literals call for."""

    __slots__ = ("may_be_aside", "openers", "readers")

    def __init__(self) -> None:
        self.readers: list[Any] = []
        self.openers: list[Any] = []
        self.may_be_aside = False


@functools.cache
def _automaton() -> tuple[Any, tuple[tuple[tuple[ModuleType, ...], tuple[ModuleType, ...], bool], ...]]:
    """The automaton over all literals, and for each: who reads the line, whose dump it may open, whether an aside."""
    import ahocorasick_rs

    literals = sorted(
        {
            *(literal for module in LINES for literal in module.LITERALS),
            *(literal for module in BLOCKS for literal in module.OPENING),
            *asides.OPENING,
        }
    )
    calls = tuple(
        (
            tuple(module for module in LINES if literal in module.LITERALS),
            tuple(module for module in BLOCKS if literal in module.OPENING),
            literal in asides.OPENING,
        )
        for literal in literals
    )
    return ahocorasick_rs.AhoCorasick(literals), calls


def _hits(texts: Sequence[str]) -> dict[int, _Hit]:
    """The lines that hold a literal, by their place in ``texts``."""
    automaton, calls = _automaton()
    shown = [text if len(text) <= LONGEST else text[:LONGEST] for text in texts]
    joined = "\n".join(shown)
    matches = automaton.find_matches_as_indexes(joined, overlapping=True)
    if not matches:
        return {}
    ends = list(itertools.accumulate(len(text) + 1 for text in shown))
    hits: dict[int, _Hit] = {}
    at = 0
    done: set[tuple[int, int]] = set()
    for literal, start, _ in sorted(matches, key=_start):
        while ends[at] <= start:
            at += 1
        if (at, literal) in done:
            continue
        done.add((at, literal))
        hit = hits.get(at)
        if hit is None:
            hit = hits[at] = _Hit()
        readers, openers, may_be_aside = calls[literal]
        hit.readers.extend(one for one in readers if one not in hit.readers)
        hit.openers.extend(one for one in openers if one not in hit.openers)
        hit.may_be_aside = hit.may_be_aside or may_be_aside
    return hits


def _start(match: tuple[int, int, int]) -> int:
    return match[1]
