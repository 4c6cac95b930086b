"""What ``gpuwhy trace`` answers of a target: its packages are traced where they stand, over one connection.

    with a place or symbol      the condition there
    with a unit alone           the primary exception of its failure
    of a snapshot               from the files that it holds

Files come as they are missed, a round at a time; whether anything else in a package matters is found by searching it there.
What is not here and was not searched is never said to hold nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gpuwhy.diagnosis import completed
from gpuwhy.investigate.examined_service import expect_inside, expect_unit, expect_written
from gpuwhy.investigate.failing_condition import exception_of
from gpuwhy.investigate.installed_files import Clock
from gpuwhy.investigate.replay_facts import replayable
from gpuwhy.investigate.source import Questioner
from gpuwhy.investigate.tracing_cache import FetchedFiles
from gpuwhy.investigate.tracing_files import TargetFiles, needed_of
from gpuwhy.investigate.tracing_lines import want_writers
from gpuwhy.investigate.tracing_package import RemotePackage
from gpuwhy.investigate.tracing_places import (
    environment_of,
    kept_packages,
    packages_in,
    packages_of_frames,
)
from gpuwhy.logs import find_incidents, open_log
from gpuwhy.model.event import Log, RaisedException
from gpuwhy.model.fact import Facts
from gpuwhy.snapshot import Session, Snapshot, decode, facts_of, is_snapshot
from gpuwhy.source import Cache, Root, Trace
from gpuwhy.source.absence import reads_of
from gpuwhy.source.answering import Asked
from gpuwhy.source.answers import Absence, Fetched, Moved, Scope
from gpuwhy.source.asking import QuestionError, exceptions_in, question_of, roots_of, too_few
from gpuwhy.source.moved import where_is
from gpuwhy.source.places import PLACE, SYMBOL, below_packages
from gpuwhy.source.replay import Replay, Returned, replay
from gpuwhy.source.replay.trees_source import TreesSource
from gpuwhy.source.seen_in_log import seen_in
from gpuwhy.source.texts_asking import LogPlaces, places_of
from gpuwhy.source.tracing import FOLLOWED, Question, trace
from gpuwhy.source.trees import Trees, uncollected
from gpuwhy.targets import Ask, FileTarget, HostTarget, Reply, Target, TargetError

MOST_ROUNDS = 40
_WHERE = ("python_environments", "packages")
_FAILURE = (*_WHERE, "journal", "unit", "failing_services", "service_logs", "container_state", "container_log")
"""Probes that tell what failed. Names that a collector does not know bring nothing."""

OnProbe = Callable[[Any], None]
Answer = Trace | Absence | Moved | LogPlaces | Replay


class Wish(msgspec.Struct, frozen=True):
    """What is asked of a target: ``asked`` as on the command line, the unit, and an environment there when one is named."""

    asked: Asked
    unit: str = ""
    python: str = ""
    is_lines: bool = False
    is_replay: bool = False
    facts: Facts = Facts()

    @property
    def needs_failure(self) -> bool:
        """Whether the service's own log is needed: nothing else says what is meant."""
        asked = self.asked
        return asked.log is None and (self.is_lines or not (asked.question or asked.reads or asked.imported))


class Answered(msgspec.Struct, frozen=True):
    answer: Answer
    is_answered: bool
    fetched: Fetched = Fetched()


def answer_on(
    target: Target,
    wish: Wish,
    timeout: float,
    on_first: Callable[[Trace], None] | None = None,
    on_probe: OnProbe | None = None,
) -> Answered:
    """The answer of a live target or a snapshot.

    Raises :class:`gpuwhy.targets.TargetError`, QuestionError, :class:`gpuwhy.logs.UnreadableLog`,
    :class:`gpuwhy.snapshot.SnapshotError` and OSError.
    """
    clock = Clock(timeout)
    cache = Cache.of_user()
    if isinstance(target, FileTarget):
        snapshot = _snapshot_in(target)
        expect_written(snapshot, wish.unit, target.name)
        return _Tracing(snapshot, _Nothing(), target.name, wish, clock, cache, on_first, is_live=False).answer()
    if not isinstance(target, HostTarget):
        raise TargetError(f"{target.name} is no place that can be traced")
    with Session(target, wish.unit, timeout) as session:
        probes = () if wish.is_replay else _FAILURE if wish.needs_failure else _WHERE
        snapshot = session.collect(on_probe, probes=probes, python=wish.python)
        expect_inside(snapshot, target.name)
        if wish.needs_failure:
            expect_unit(snapshot, target.name)
        return _Tracing(snapshot, session, target.name, wish, clock, cache, on_first, is_live=True).answer()


def _snapshot_in(target: FileTarget) -> Snapshot:
    with target.stream() as stream:
        try:
            content = stream.read()
        except OSError as error:
            raise TargetError(f"{target.name}: {error.strerror or error}") from error
    if not is_snapshot(content):
        raise QuestionError(f"{target.name}: no snapshot; a log is given with --log {target.name}, its packages with --venv or WHERE")  # fmt: skip
    return decode(content, target.name)


class _Nothing:
    """Of a snapshot nothing more can be asked."""

    def ask(self, asks: list[Ask], deadline: float = 10.0) -> list[Reply]:
        del deadline
        return [Reply(status="absent", reason="not in this snapshot")] * len(asks)


class _Tracing:
    def __init__(
        self,
        snapshot: Snapshot,
        source: Questioner,
        name: str,
        wish: Wish,
        clock: Clock,
        cache: Cache,
        on_first: Callable[[Trace], None] | None,
        *,
        is_live: bool,
    ) -> None:
        self.snapshot = snapshot
        self.wish = wish
        self.asked = wish.asked
        self.clock = clock
        self.cache = cache
        self.on_first = on_first
        self.name = name
        self.is_live = is_live
        self.known = FetchedFiles(cache, name)
        self.files = TargetFiles(source, self.known, clock)
        self.roots: dict[str, Root] = {}
        self.environment = environment_of(snapshot)

    @property
    def remote(self) -> dict[str, RemotePackage]:
        return {name: root for name, root in self.roots.items() if isinstance(root, RemotePackage)}

    def answer(self) -> Answered:
        log = self._log() if self.wish.is_lines else None
        raised = self._raised() if log is None and not (self.asked.question or self.asked.reads or self.asked.imported) else None  # fmt: skip
        self._find_packages(raised)
        key = self._key(raised)
        self._ask_as_before(key)
        answer: Answer
        with uncollected(is_last=True):
            if log is not None:
                answer, is_answered = self._lines(log)
            else:
                answer, is_answered = self._until_settled(lambda: self._once(raised))
        if self.is_live:
            self.known.note_needed(key, needed_of(self.remote))
        return Answered(self._with_limits(answer), is_answered, self.files.fetched)

    def _once(self, raised: RaisedException | None) -> tuple[Answer, bool]:
        asked = self.asked
        if self.wish.is_replay:
            return self._replayed()
        if asked.reads:
            if asked.question not in self.roots:
                raise QuestionError(f"{asked.question or '--reads'}: name a package that is there: {self._there()}")
            return reads_of(self.roots, asked.reads, asked.question, self.cache), True
        if asked.imported:
            module, _, name = asked.imported.partition(":")
            if not SYMBOL.fullmatch(f"{module}:{name or 'x'}"):
                raise QuestionError(f"{asked.imported}: not MODULE:NAME")
            others = {folder.name: roots_of((), (folder,)) for folder in asked.earlier}
            moved = where_is(self.roots, module, name, others, self.cache)
            return moved, bool(moved.here or moved.elsewhere or moved.is_module_there)
        question = (
            Question(raised=raised, follow=self._followed())
            if raised is not None
            else question_of(asked.question, asked.call, asked.number - 1, self._followed())
        )
        logs = self._told() if raised is not None else ()
        found = trace(self.roots, question, self.cache, lambda first: self._first(seen_in(first, logs)))
        return seen_in(found, logs), not found.problem

    def _first(self, found: Trace) -> None:
        if self.on_first is not None:
            on_first, self.on_first = self.on_first, None
            on_first(found)

    def _told(self) -> Sequence[Log]:
        return [open_log(self.asked.log)] if self.asked.log is not None else self._logs()

    def _until_settled(self, work: Callable[[], tuple[Answer, bool]]) -> tuple[Answer, bool]:
        while True:
            found = work()
            if self.files.fetched.trips >= MOST_ROUNDS:
                self.files.limits[f"after {MOST_ROUNDS} rounds nothing more was asked for"] = None
                return found
            if not self.files.fetch(self.remote):
                return found

    # the question

    def _log(self) -> Log:
        if self.asked.log is not None:
            return open_log(self.asked.log)
        logs = self._logs()
        if not logs:
            raise QuestionError(f"{self.name}: no log of {self.wish.unit or 'a failing service'} could be read; name one with --log FILE")  # fmt: skip
        return logs[0]

    def _logs(self) -> list[Log]:
        from gpuwhy.investigate.collected_logs import collected_logs
        from gpuwhy.investigate.log_files import log_files

        return [*collected_logs(self.snapshot, self._unit()), *log_files(self.snapshot)]

    def _unit(self) -> str:
        """As the logs call it: ``sglang.service`` where ``sglang`` was asked for."""
        journal = self.snapshot.value("journal")
        unit = str(journal.get("unit", "")) if isinstance(journal, dict) else ""
        return unit or self.wish.unit

    def _raised(self) -> RaisedException:
        number = self.asked.number
        if self.asked.log is not None:
            found = exceptions_in(self.asked.log)
            if number > len(found):
                raise QuestionError(f"{self.asked.log}: {too_few(len(found))}")
            return found[number - 1]
        logs = self._logs()
        incident = find_incidents(logs, self._unit())
        raised = exception_of(incident)
        others = [each for event in incident.events for each in event.exceptions if each.frames]
        if number > 1 and number <= len(others):
            return others[number - 1]
        if raised is None or number > 1:
            what = self.wish.unit or "the failing service"
            said = f"{len(others)} exceptions with frames" if others else "no Python exception with frames"
            raise QuestionError(f"{self.name}: the failure of {what} has {said}; name a place or a symbol after it")
        return raised

    def _key(self, raised: RaisedException | None) -> str:
        shown = (
            "\n".join([raised.type, *(f"{frame.path}:{frame.line}" for frame in raised.frames)])
            if raised is not None
            else ""
        )
        asked = self.asked
        parts = (asked.question, asked.call, asked.reads, asked.imported, *asked.follow, self.wish.unit, shown)
        return "\n".join([*parts, str(asked.number), "lines" if self.wish.is_lines else "", "replay" if self.wish.is_replay else ""])  # fmt: skip

    # the packages

    def _named(self) -> tuple[str, ...]:
        """Packages that the question names, besides those that are always followed."""
        asked = self.asked
        named = list(asked.follow)
        if asked.imported:
            named.append(asked.imported.partition(":")[0].partition(".")[0])
        if PLACE.fullmatch(asked.question):
            named.append(below_packages(asked.question).lstrip("./").partition("/")[0].partition(".py")[0])
        elif asked.question:
            named.append(asked.question.partition(":")[0].partition(".")[0])
        return tuple(dict.fromkeys(named))

    def _followed(self) -> tuple[str, ...]:
        return tuple(name for name in self.roots if name not in FOLLOWED)

    def _find_packages(self, raised: RaisedException | None) -> None:
        if not self.is_live:
            self.roots.update(kept_packages(self.snapshot, self.name, self.environment.versions))
            if not self.roots:
                raise QuestionError(f"{self.name}: the snapshot holds no source; gpuwhy collect keeps what a diagnosis asks for")  # fmt: skip
            return
        folders = self.environment.folders
        replies = self.files.ask([Ask("list", folder) for folder in folders])
        known = {*FOLLOWED, *self._named()}
        of_frames = packages_of_frames(raised.frames, known, self.name) if raised is not None else {}
        named = (*self._named(), *of_frames)
        of_folders = packages_in(folders, replies, self.environment, named, self.name)
        for name, package in of_frames.items():
            there = of_folders.get(name)
            if there is None or there.folder != package.folder:
                of_folders[name] = package
        self.roots.update(of_folders)
        if not self.roots:
            why = self.environment.reason or f"none of its folders ({', '.join(folders[:4])}) has the package"
            raise QuestionError(f"{self.name}: no Python packages to trace: {why}; name an environment there with --venv DIR")  # fmt: skip

    def _there(self) -> str:
        return ", ".join(sorted(self.roots)[:8])

    def _ask_as_before(self, key: str) -> None:
        before = [each for each in self.known.needed(key) if self.is_live]
        for needed in before:
            package = self.remote.get(needed.package)
            if package is not None and package.folder == needed.folder:
                package.ask_again(needed.queries, needed.paths)
        if before:
            self.files.fetch(self.remote)

    # the other answers

    def _lines(self, log: Log) -> tuple[LogPlaces, bool]:
        frames = {name for name in self.roots if any(f"-packages/{name}" in line.text for line in log.lines)}
        for name in frames or set(self.roots):
            self.roots[name].files()
        # the texts of files are worked out when all of them are here
        for _ in range(MOST_ROUNDS):
            want_writers(self.roots, log)
            if not self.files.fetch(self.remote):
                break
        there = {name: root for name, root in self.roots.items() if root.files()}
        found = places_of(log, there, self.asked.follow, self.cache)
        return found, any(each.origins for each in found.lines)

    def _replayed(self) -> tuple[Replay, bool]:
        follow = {*FOLLOWED, *self._followed()}
        trees = Trees(self.roots, lambda package: package in follow, self.cache)
        folders = {name: package.folder for name, package in self.remote.items()}
        # what --facts gives is in the replay's words already; what was collected is put into them
        facts = replayable(completed(facts_of(self.snapshot))).merged(self.wish.facts)
        found = replay(TreesSource(trees, folders), self.asked.question, facts)
        return found, isinstance(found.outcome, Returned)

    # what limits the answer

    def _with_limits(self, answer: Answer) -> Answer:
        limits = [*self.files.limits, *(limit for package in self.remote.values() for limit in package.limits)]
        fetched = self.files.fetched if self.is_live else None
        if isinstance(answer, Trace):
            return msgspec.structs.replace(answer, scope=_limited(answer.scope, limits, fetched))
        if isinstance(answer, Absence):
            scope = _limited(answer.scope, [], fetched)
            return msgspec.structs.replace(answer, caveats=(*answer.caveats, *limits), scope=scope)
        if isinstance(answer, Moved) and answer.scope is not None:
            return msgspec.structs.replace(answer, scope=_limited(answer.scope, limits, fetched))
        return answer


def _limited(scope: Scope, limits: list[str], fetched: Fetched | None) -> Scope:
    return msgspec.structs.replace(scope, cuts=(*limits, *scope.cuts), fetched=fetched)
