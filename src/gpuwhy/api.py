"""What a program calls: the verbs of the command line as functions, which the command line and the MCP server call too.

    import gpuwhy
    diagnosis = gpuwhy.diagnose("root@gpu-host", unit="sglang.service")
    print(diagnosis.findings[0].cause, diagnosis.findings[0].remedies[0].commands)

Every function raises UnusableError for what was given to it, and UnreachableError for a place that cannot be examined.
Modules that cost time are imported where they are needed: a program that only diagnoses logs loads nothing else.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from gpuwhy.fleet.collecting import OnNode
    from gpuwhy.fleet.query import Answer as QueryAnswer
    from gpuwhy.fleet.store import Node
    from gpuwhy.investigate.binaries import Question
    from gpuwhy.investigate.checks.results import Forecast
    from gpuwhy.investigate.tracing_target import Answer
    from gpuwhy.knowledge.capability import ComputeCapability
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.model.fact import Facts
    from gpuwhy.model.fleet import FleetReport
    from gpuwhy.model.inspection import Inspection
    from gpuwhy.snapshot import Probe, Snapshot
    from gpuwhy.source.answering import Asked
    from gpuwhy.source.answers import Trace
    from gpuwhy.targets import Target

TIMEOUT = 30.0
"""Seconds from the first connection to the last answer, after which what was found so far is the answer."""

PROBES = 8.0
"""Seconds that the probes of a diagnosis or a collection are given."""

FORECAST = 4.0
"""Seconds that the probes of a check are given."""

Outcome: TypeAlias = Literal["failure", "no failure", "not examined"]
"""What came of looking: something failed (or will), nothing did, or not enough could be seen to say so."""


class GpuwhyError(Exception):
    """What every function here raises. The text is for a person: what failed, on what, and what to try."""


class UnusableError(GpuwhyError):
    """The arguments, or a file that they name, cannot be used. The command line ends with 2."""


class UnreachableError(GpuwhyError):
    """A live place could not be examined or gave no answer. The command line ends with 3."""


class LogText:
    """A log that is in memory already, as a target: ``gpuwhy.diagnose(gpuwhy.LogText(text))``."""

    kind = "text"

    def __init__(self, text: str | bytes, name: str = "log") -> None:
        self.name = name
        self._content = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text

    def stream(self) -> BinaryIO:
        return io.BytesIO(self._content)


Where: TypeAlias = "str | Path | LogText | Target"
"""WHERE as on the command line (a host, ``local``, ``docker:NAME``, a file), a path, a text, or a target."""

GivenFacts: TypeAlias = "str | Path | Mapping[str, Any] | Facts | None"
"""Facts given by hand: a YAML or JSON file, a mapping in the vocabulary of docs/facts.md, or facts."""

OnProbe: TypeAlias = "Callable[[Probe], None] | None"
"""Is told of each probe as it comes."""


def target_of(where: Where, *, via: str = "", sudo: bool = False) -> Target:
    """What WHERE means. ``via`` is the host of a container's engine, ``sudo`` reads with root's rights there."""
    from gpuwhy.targets import PathTarget, TargetError, parse_where

    if isinstance(where, Path):
        return PathTarget(where)
    if not isinstance(where, str):
        return where
    try:
        return parse_where(where, via=via, sudo=sudo)
    except TargetError as error:
        raise UnusableError(str(error)) from error


def facts_of(given: GivenFacts, on_warning: Callable[[str], None] | None = None) -> Facts:
    """Facts given by hand. ``on_warning`` hears of keys that nothing asks for."""
    from gpuwhy.model.fact import Facts
    from gpuwhy.snapshot import SnapshotError
    from gpuwhy.snapshot.given import given as from_mapping
    from gpuwhy.snapshot.given import read_given

    if given is None:
        return Facts()
    if isinstance(given, Facts):
        return given
    try:
        found = from_mapping(dict(given)) if isinstance(given, Mapping) else read_given(given)
    except SnapshotError as error:
        raise UnusableError(str(error)) from error
    if on_warning is not None:
        for warning in found.warnings:
            on_warning(warning)
    return found.facts


def diagnose(
    where: Where | None = None,
    *,
    unit: str = "",
    logs: Iterable[str | Path] = (),
    facts: GivenFacts = None,
    pid: int | None = None,
    via: str = "",
    sudo: bool = False,
    deadline: float = PROBES,
    timeout: float = TIMEOUT,
    on_probe: OnProbe = None,
) -> Diagnosis:
    """Why the service at ``where`` failed, with remedies in order and written for the place.

    ``unit`` is a systemd unit; without it the failing one is looked for. ``logs`` are further logs of the same failure;
    without ``where`` the first of them is what is diagnosed. ``pid`` is a process of a live place that does not get on.
    ``deadline`` seconds are given to the probes, ``timeout`` to all of it.
    """
    from gpuwhy.diagnosis import sign_literals
    from gpuwhy.investigate import investigate
    from gpuwhy.logs import open_log
    from gpuwhy.remedies import prescribe
    from gpuwhy.targets import FileTarget

    more = [Path(each) for each in logs]
    if where is None and not more:
        raise UnusableError("name what to examine: a log, a snapshot, local, an SSH destination, or --log FILE")
    target = target_of(more.pop(0) if where is None else where, via=via, sudo=sudo)
    if pid is not None and isinstance(target, FileTarget):
        raise UnusableError("--pid names a process of a live target: local, an SSH destination, a container")
    with _explained(target):
        found = investigate(
            target,
            unit=unit,
            logs=[open_log(path, sign_literals()) for path in more],
            facts=facts_of(facts) if facts is not None else None,
            on_probe=on_probe,
            deadline=deadline,
            timeout=timeout,
            pid=pid,
        )
    return prescribe(found)


def outcome_of(diagnosis: Diagnosis) -> Outcome:
    """What a diagnosis comes to; the exit status of ``gpuwhy diagnose`` follows it."""
    if diagnosis.findings or (diagnosis.incident.is_failure and diagnosis.incident.primary is not None):
        return "failure"
    return "no failure" if diagnosis.is_examined else "not examined"


def collect(
    where: Where,
    *,
    unit: str = "",
    pid: int | None = None,
    via: str = "",
    sudo: bool = False,
    deadline: float = PROBES,
    timeout: float = TIMEOUT,
    on_probe: OnProbe = None,
) -> Snapshot:
    """A snapshot of a live place, with secrets taken out there; ``gpuwhy.snapshot.write`` makes a file of it.

    It holds every file that a diagnosis asked for, so that the diagnosis can be repeated from it.
    """
    from gpuwhy.investigate import examine
    from gpuwhy.targets import HostTarget

    target = target_of(where, via=via, sudo=sudo)
    if not isinstance(target, HostTarget):
        raise UnusableError(f"{target.name} is a file: there is nothing to collect")
    with _explained(target):
        examined = examine(target, unit=unit, on_probe=on_probe, deadline=deadline, timeout=timeout, pid=pid)
    if examined.snapshot is None:
        raise UnreachableError(f"{target.name}: nothing was collected")
    return examined.snapshot


def check(
    where: Where | None = None,
    *,
    gpus: Sequence[str] = (),
    driver: str = "",
    cuda: str = "",
    packages: Sequence[str] = (),
    env: Sequence[str] = (),
    requirements: str = "",
    facts: GivenFacts = None,
    unit: str = "",
    via: str = "",
    sudo: bool = False,
    deadline: float = FORECAST,
    timeout: float = TIMEOUT,
    on_probe: OnProbe = None,
) -> Forecast:
    """Whether the environment at ``where`` will run on its GPUs, before anything failed.

    ``gpus`` (``"8 x H100"``, ``"12.0"``), ``driver``, ``cuda``, ``packages`` (``"torch==2.9.1"``), ``env`` (``"NAME=VALUE"``)
    and ``requirements`` (a file) stand in the place of what is there; without ``where`` they are all that is judged.
    """
    from gpuwhy.investigate.checks.forecasting import check_plan, check_target
    from gpuwhy.investigate.checks.plan import Plan, PlanError
    from gpuwhy.reports.check import prescribed

    plan = Plan(tuple(gpus), driver, cuda, tuple(packages), tuple(env), requirements)
    if where is None and plan.is_empty and facts is None:
        raise UnusableError(
            "name what to check: local, a host, a snapshot, or a plan with --gpu, --requirements and so on"
        )
    given = facts_of(facts) if facts is not None else None
    target = None if where is None else target_of(where, via=via, sudo=sudo)
    try:
        if target is None:
            return prescribed(check_plan(plan, given))
        with _explained(target):
            found = check_target(
                target, plan, unit=unit, facts=given, on_probe=on_probe, deadline=deadline, timeout=timeout
            )
    except PlanError as error:
        raise UnusableError(str(error)) from error
    return prescribed(found)


def inspect(
    paths: Iterable[str | Path],
    *,
    gpu: str = "",
    capability: str = "",
    driver: str = "",
    kernel: str = "",
    needs: bool = False,
    library_path: str = "",
    preload: str = "",
    requirements: bool = False,
    deep: bool = False,
    details: bool = True,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Inspection:
    """Which GPUs the binaries at ``paths`` (files, folders, wheels) have code for, and whether one runs them.

    ``gpu`` (``"H100"``) or ``capability`` (``"9.0"``) asks for a verdict, ``driver`` limits PTX, ``kernel`` finds its
    container. ``needs`` adds what would come of loading, with LD_LIBRARY_PATH ``library_path`` and LD_PRELOAD ``preload``.
    ``requirements`` reads only what wheels say of themselves. Nothing is loaded or run.
    """
    from gpuwhy.investigate.binaries import Question, inspect_binaries, inspect_requirements

    name, target = _gpu_of(gpu, capability, driver)
    wanted = [Path(path) for path in paths]
    missing = [path for path in wanted if not path.exists()]
    if not wanted or missing:
        raise UnusableError(f"{missing[0]}: no such file or folder" if missing else "name a file, a folder, or a wheel")
    question: Question = Question(target, name, driver, kernel, deep, details, needs, library_path, preload)
    return (inspect_requirements if requirements else inspect_binaries)(wanted, question, on_progress)


def _gpu_of(gpu: str, capability: str, driver: str) -> tuple[str, ComputeCapability | None]:
    """The name and the compute capability that are asked for; a name that means several is unusable."""
    if not gpu and not capability:
        if driver:
            raise UnusableError("--driver is for a verdict: name the GPU too, with --gpu or --for")
        return "", None
    from gpuwhy.knowledge import capability as capabilities
    from gpuwhy.knowledge import drivers, gpus

    if driver and drivers.driver_version(driver) is None:
        raise UnusableError(f"{driver}: not a driver version such as 570.86")
    target = capabilities.parse(capability or gpu)
    model = gpus.by_name(gpu) if gpu and not target else None
    target = target or (capabilities.parse(model.compute_capability) if model else None)
    if target is None:
        known = ", ".join(f"{each.name} ({each.compute_capability})" for each in gpus.candidates(gpu)[:5])
        raise UnusableError(
            f"{gpu or capability}: " + (f"can mean {known}" if known else "unknown; give its capability, --for 12.0")
        )
    return gpu if model else "", target.plain


class Traced(msgspec.Struct, frozen=True):
    """The answer of :func:`trace`, and whether it says anything."""

    answer: Answer
    is_answered: bool


def trace(
    question: str = "",
    *,
    where: Where | None = None,
    unit: str = "",
    log: str | Path | None = None,
    number: int = 1,
    venvs: Iterable[str | Path] = (),
    folders: Iterable[str | Path] = (),
    call: str = "",
    reads: str = "",
    imported: str = "",
    earlier: Iterable[str | Path] = (),
    follow: Iterable[str] = (),
    lines: bool = False,
    replay: bool = False,
    facts: GivenFacts = None,
    via: str = "",
    sudo: bool = False,
    timeout: float = TIMEOUT,
    is_last: bool = False,
    on_first: Callable[[Trace], None] | None = None,
    on_probe: OnProbe = None,
) -> Traced:
    """The condition under which a line fails, where its values come from, and which switches reach it.

    ``question`` is a place (``flashinfer/jit/core.py:109``), a symbol (``flashinfer.jit.core:check_cuda_arch``), or empty: then
    the traceback of ``log``, or the failure of ``unit``, is meant. The packages are in ``venvs`` or ``folders`` of this machine,
    or at ``where``, and there in its one environment ``venvs``. ``reads`` (a variable), ``imported`` (``module:name``), ``lines``
    and ``replay`` ask what the options of the same name of ``gpuwhy trace`` do. ``is_last``: the process ends with the answer.
    Nothing of the packages is imported or run.
    """
    from gpuwhy.source.answering import Asked

    asked = Asked(
        question,
        Path(log) if log is not None else None,
        number,
        tuple(Path(each) for each in venvs),
        tuple(Path(each) for each in folders),
        call,
        reads,
        imported,
        tuple(Path(each) for each in earlier),
        tuple(follow),
    )
    if replay and ":" not in question:
        raise UnusableError("--replay needs a symbol: gpuwhy trace --replay flashinfer.jit.core:check_cuda_arch ...")
    if where is None:
        return _traced_here(asked, lines, facts_of(facts) if replay else None, is_last, on_first)
    if asked.folders:
        raise UnusableError("--source is a folder of this machine, and WHERE is another place; --venv names an environment there")  # fmt: skip
    if len(asked.environments) > 1:
        raise UnusableError("name one --venv of WHERE")
    from gpuwhy.investigate.tracing_target import Wish, answer_on

    python = str(asked.environments[0]) if asked.environments else ""
    wish = Wish(asked, unit, python, lines, replay, facts_of(facts))
    target = target_of(where, via=via, sudo=sudo)
    with _explained(target), _questioned(asked):
        answered = answer_on(target, wish, timeout, on_first, on_probe)
    return Traced(answered.answer, answered.is_answered)


def _traced_here(
    asked: Asked, is_lines: bool, replayed_with: Facts | None, is_last: bool, on_first: Callable[[Trace], None] | None
) -> Traced:
    with _questioned(asked):
        if replayed_with is not None:
            return _replayed(asked, replayed_with)
        if is_lines and asked.log is not None:
            from gpuwhy.source import Cache
            from gpuwhy.source.asking import roots_of
            from gpuwhy.source.texts_asking import places_in

            roots = roots_of(asked.environments, asked.folders)
            places = places_in(asked.log, roots, asked.follow, Cache.of_user())
            return Traced(places, any(each.origins for each in places.lines))
        from gpuwhy.source.answering import answer

        return Traced(*answer(asked, on_first, is_last=is_last))


def _replayed(asked: Asked, facts: Facts) -> Traced:
    """What a function would do on a host with these facts."""
    from gpuwhy.source.replay import FolderSource, Returned, replay
    from gpuwhy.source.roots import site_packages

    searched = [
        inner for folder in (*asked.environments, *asked.folders) for inner in (site_packages(folder) or (folder,))
    ]
    replayed = replay(FolderSource(searched), asked.question, facts)
    return Traced(replayed, isinstance(replayed.outcome, Returned))


@contextmanager
def _questioned(asked: Asked) -> Iterator[None]:
    """What is wrong with a question about source."""
    from gpuwhy.logs import UnreadableLog
    from gpuwhy.source.asking import QuestionError

    try:
        yield
    except UnreadableLog as error:
        raise UnusableError(str(error)) from error
    except (QuestionError, ValueError) as error:
        raise UnusableError(str(error)) from error
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise UnusableError(f"{error.filename or asked.log or asked.question}: {error.strerror}") from error


@contextmanager
def _explained(target: Target) -> Iterator[None]:
    """Errors of a target: a file is unusable, a live place unreachable."""
    from gpuwhy.logs import UnreadableLog
    from gpuwhy.snapshot import SnapshotError
    from gpuwhy.targets import FileTarget, TargetError

    try:
        yield
    except (UnreadableLog, SnapshotError) as error:
        raise UnusableError(str(error)) from error
    except TargetError as error:
        raise (UnusableError if isinstance(target, FileTarget) else UnreachableError)(str(error)) from error


class Fleet:
    """A folder of ``gpuwhy fleet collect``: one snapshot a node, and what became of the nodes that gave none."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.nodes()

    @classmethod
    def collect(
        cls,
        nodes: str,
        folder: str | Path,
        *,
        unit: str = "",
        concurrency: int = 64,
        rate: float = 0.0,
        sudo: bool = False,
        deadline: float = PROBES,
        timeout: float = TIMEOUT,
        resume: bool = False,
        on_node: OnNode | None = None,
        **engine: Any,
    ) -> Fleet:
        """Collects ``nodes`` (``"gpu[001-064]"``) into ``folder``; ``resume`` goes on with what is missing or failed.

        ``engine`` takes the fields of :class:`gpuwhy.fleet.choosing.Choice` (``slurm=True``, ``ray="auto"``, ``inventory=FILE``). ``on_node``
        is told of each node as it begins and ends. A node that fails is a row with its reason, never an error.
        """
        from gpuwhy.fleet.choosing import Choice, engine_of
        from gpuwhy.fleet.collecting import Asked, collect_fleet
        from gpuwhy.fleet.engines.interface import FleetError, Pace
        from gpuwhy.fleet.store import Store, StoreError

        try:
            chosen = engine_of(Choice(nodes=nodes, **engine))
            with Store(folder, create=True) as store:
                asked = Asked(unit, deadline, timeout, sudo)
                collect_fleet(chosen, store, asked, Pace(concurrency, rate), resume, on_node)
        except (FleetError, StoreError, TypeError) as error:
            raise UnusableError(str(error)) from error
        return cls(folder)

    def nodes(self, *statuses: str) -> tuple[Node, ...]:
        """The nodes in the order of their names; all, or those with one of ``statuses`` (``ok``, ``partial``, ``refused`` ...)."""
        from gpuwhy.fleet.store import Store, StoreError

        try:
            with Store(self.folder) as store:
                return tuple(store.nodes(*statuses))
        except StoreError as error:
            raise UnusableError(str(error)) from error

    def diagnose(self, node: str, **asked: Any) -> Diagnosis:
        """As :func:`diagnose`, of the snapshot of one node."""
        return diagnose(self._file(node), **asked)

    def check(self, node: str, **asked: Any) -> Forecast:
        """As :func:`check`, of the snapshot of one node."""
        return check(self._file(node), **asked)

    def snapshot(self, node: str) -> Snapshot:
        """The snapshot of one node."""
        from gpuwhy.snapshot import SnapshotError, read

        try:
            return read(self._file(node))
        except SnapshotError as error:
            raise UnusableError(str(error)) from error

    def report(self) -> FleetReport:
        """What is alike and what is different among the nodes, as ``gpuwhy fleet report`` shows it."""
        from gpuwhy.fleet.analysing import analyse
        from gpuwhy.fleet.store import StoreError

        try:
            return analyse(self.folder)
        except StoreError as error:
            raise UnusableError(str(error)) from error

    def query(self, sql: str, *, timeout: float = 20.0, limit: int = 100_000) -> QueryAnswer:
        """The answer to a question in SQL, of ``gpuwhy fleet query``'s tables; what was not analysed yet is analysed first."""
        from gpuwhy.fleet.query import QueryError, is_analysed, query
        from gpuwhy.fleet.store import StoreError

        try:
            if not is_analysed(self.folder):
                self.report()
            return query(self.folder, sql, timeout, limit)
        except (StoreError, QueryError) as error:
            raise UnusableError(str(error)) from error

    def _file(self, name: str) -> Path:
        named = {node.name: node for node in self.nodes()}
        node = named.get(name)
        if node is None:
            raise UnusableError(f"{self.folder} has no node {name}; it has {', '.join(list(named)[:8])}")
        if not node.file:
            raise UnusableError(f"{name} gave no snapshot: {node.status}: {node.reason}")
        return self.folder / node.file
