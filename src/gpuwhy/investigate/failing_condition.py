"""The condition under which the primary exception is raised, from the source that is installed on the target.

Works for failures that nobody has written a rule for, and confirms or contradicts the rule where there is one. It
adds a few requests over the open connection, and never costs the diagnosis: what goes wrong here is recorded.
"""

from __future__ import annotations

import ctypes
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gpuwhy.diagnosis import Judgement
from gpuwhy.investigate.installed_files import Fetching, OutOfTimeError, packages_of, want_frames
from gpuwhy.investigate.mending import HIDDEN, STAND_IN
from gpuwhy.investigate.record import Record
from gpuwhy.investigate.source import Questioner
from gpuwhy.investigate.stated_files import StatedFiles, want_stated
from gpuwhy.investigate.tying import Line, lines_of_logs, place_of, seen
from gpuwhy.model.event import RaisedException
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.model.incident import Incident
from gpuwhy.model.source import (
    HiddenRaise,
    SearchedPackage,
    SeenInLog,
    SourceAnswer,
    SourceCondition,
    SourceLine,
    SourceStep,
    SourceSwitch,
    SourceWhatIf,
    Speaker,
    SwallowedException,
)
from gpuwhy.source import Cache, Root, Step, Swallow, Switch, Template, Trace
from gpuwhy.source.answers import Requirement, Spot
from gpuwhy.source.texts import Catalogue, PackageTexts, Written
from gpuwhy.source.texts_fit import fit
from gpuwhy.source.texts_scanning import by_line
from gpuwhy.source.tracing import FOLLOWED, Question, trace

SECONDS = 2.3
"""For fetching and working it out."""
GRACE = 0.35
"""Seconds for writing down what was found when the time is over; the same again for a search that has to be ended."""
NAMES_ITS_FILES = ("vllm",)
"""Packages whose log lines name the file they come from."""
ROUNDS = 7
STEPS = 500
"""Of the search; on the files of a few rounds it ends before that."""
_FRAMES = 40
_SHOWN_STEPS = 40
_SHOWN_SWITCHES = 24
_SHOWN_SPEAKERS = 12
_OF_PYTHON = ("exception", "warning", "build")
"""Events that an exception is the surface of. After a kill or a crash in native code it is a consequence."""
_VALUES = 3
_UNDEFINED = re.compile(r"name '([A-Za-z_]\w{0,100})' is not defined")
_CALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w{0,100})\(")
_TELLING_LEVELS = ("warning", "error", "critical")
_PUBLISHED_AS = {"flashinfer": "flashinfer-python"}


def examined(
    incident: Incident, facts: Facts, judgement: Judgement, source: Questioner, record: Record, seconds: float = SECONDS
) -> SourceAnswer | None:
    """What the installed source says of the primary exception; None where there is no exception, or no source.

    Never raises: what fails is recorded, and the diagnosis goes on without it.
    """
    raised = exception_of(incident)
    if raised is None:
        return None
    question = "under which condition is it raised, and what was swallowed"
    begun = time.monotonic()
    box: list[SourceAnswer | Exception | None] = []
    examination = _Examination(incident, facts, judgement, source, raised, seconds)

    def work() -> None:
        try:
            box.append(examination.answer())
        except Exception as error:  # noqa: BLE001 - whatever stands in foreign source must not cost the diagnosis
            box.append(error)

    # a thread, so that source which is made to take for ever can be left where it stands
    worker = threading.Thread(target=work, name="failing condition", daemon=True)
    worker.start()
    worker.join(seconds + GRACE)
    if worker.is_alive():
        _cut_off(worker)
    duration = round(time.monotonic() - begun, 4)
    where = ", ".join(dict.fromkeys(frame.path for frame in reversed(raised.frames)))[:300]
    if not box:
        record.add(question, where, "timed out", f"no answer in {duration:.1f} s", duration=duration)
        return None
    result = box[0]
    if isinstance(result, Exception):
        record.add(question, where, "failed", f"{type(result).__name__}: {result}"[:300], duration=duration)
        return None
    if result is None:
        record.add(question, where, "absent", "the source of its frames cannot be read here", duration=duration)
        return None
    record.add(question, where, "ok" if result.place else "absent", told(result), duration=duration)
    return result


def _cut_off(worker: threading.Thread) -> None:
    """Ends a search where it stands. What it has found until then is its answer."""
    # no other way ends a computation that never asks for a file; a process of its own would cost more than it saves
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident or 0), ctypes.py_object(OutOfTimeError))
    worker.join(GRACE)


def exception_of(incident: Incident) -> RaisedException | None:
    """The exception of the primary event that was raised first, with frames to follow; of a warning that says why, the
    one that it surfaced as."""
    primary = incident.primary_event
    if primary is None or primary.kind not in _OF_PYTHON:
        return None
    after = [event for event in incident.events if event.id > primary.id]
    for event in (primary, *sorted(after, key=lambda event: (event.is_echo, event.id))):
        raised = next((each for each in event.exceptions if each.frames), None)
        if raised is not None:
            return raised
    return None


def _followed(raised: RaisedException) -> RaisedException:
    """The innermost frames. A quoted line that redaction cut would not be found in the source."""
    frames = tuple(
        msgspec.structs.replace(frame, code="") if HIDDEN.search(frame.code) else frame
        for frame in raised.frames[-_FRAMES:]
    )
    return msgspec.structs.replace(raised, frames=frames)


def told(answer: SourceAnswer) -> str:
    """The answer in one line, for the record."""
    if answer.place is None:
        return answer.problem
    parts = [f"{answer.place}: " + ("; ".join(each.text for each in answer.conditions) or "always")]
    cause = answer.shown_cause
    if cause is not None:
        parts.append(f"swallowed: {cause.value or cause.text}")
    parts.append(f"{len(answer.switches)} switches reach it")
    parts.append(f"{sum(each.files for each in answer.packages)} files of {len(answer.packages)} packages read")
    return "; ".join(parts)


class _Examination:
    def __init__(
        self,
        incident: Incident,
        facts: Facts,
        judgement: Judgement,
        source: Questioner,
        raised: RaisedException,
        seconds: float,
    ) -> None:
        self.facts = facts
        self.judgement = judgement
        self.raised = _followed(raised)
        self.source = source
        self.fetching = Fetching(source, seconds)
        self.lines = lines_of_logs(incident.logs)
        self.cache = Cache.of_user()
        versions = {name: _version(facts, name) for name in FOLLOWED}
        self.packages = packages_of(self.raised.frames, FOLLOWED, versions, self.fetching)
        self.best: Trace | None = None
        self.stated = StatedFiles()
        self.is_cut = False

    def answer(self) -> SourceAnswer | None:
        want_frames(self.packages, self.raised.frames)
        if not self.packages or not self.fetching.fetch(self.packages):
            return None
        try:
            self._trace(Question(raised=self.raised, follow=self._named(), most=STEPS))
            for symbol in _values_that_failed(self.raised, self.best):
                self._trace(Question(symbol=symbol, follow=self._named(), most=STEPS))
            # what else was swallowed: the log may name files that no step led to
            said = (line for _, line in self.lines)
            self.stated = want_stated(self.packages, said, NAMES_ITS_FILES, self.source, self.fetching)
            if self.stated.is_new:
                self.fetching.fetch(self.packages)
            return self._as_answer(self.best)
        except OutOfTimeError:
            self.is_cut = True
            self.fetching.extend(GRACE)
            return self._as_answer(self.best)

    def _named(self) -> tuple[str, ...]:
        return tuple(package for package in self.packages if package not in FOLLOWED)

    def _trace(self, question: Question) -> None:
        """Traced again with each round of files, until no more are missed. The best answer so far is kept: a search
        that is cut off has one too."""
        before = self.best
        while True:
            there: Mapping[str, Root] = dict(self.packages)
            found = trace(there, question, self.cache, self._first if before is None else None)
            self.best = found if before is None else _joined(before, found)
            if self.fetching.rounds >= ROUNDS or not self.fetching.fetch(self.packages):
                return

    def _first(self, found: Trace) -> None:
        if self.best is None:
            self.best = found

    def _as_answer(self, found: Trace | None) -> SourceAnswer | None:
        if found is None:
            return None
        switches = tuple(_switch(each, self.facts) for each in found.switches[:_SHOWN_SWITCHES])
        swallowed = tuple(_swallowed(each, self.lines) for each in found.swallowed)
        guard = found.guard
        written = [] if self.is_cut else list(self._written())
        return SourceAnswer(
            place=_line(guard.spot) if guard else None,
            raises=guard.raises if guard else "",
            message=guard.message if guard else "",
            problem=found.problem,
            conditions=_conditions(guard.requires) if guard else (),
            what_ifs=tuple(SourceWhatIf(each.source, each.values, each.outcome) for each in guard.what_ifs)
            if guard
            else (),
            origin=tuple(_steps(found.origin, 0))[:_SHOWN_STEPS],
            # those that the log shows are the news
            swallowed=tuple(sorted(swallowed, key=lambda each: not each.seen)),
            switches=switches,
            speakers=tuple(self._speakers(written)),
            confirmed=tuple(self._confirmed(switches)),
            disagreements=(*self._misfits(written), *self._disagreements(found)),
            packages=tuple(
                SearchedPackage(each.package, each.version, each.folder, each.count)
                for each in self.packages.values()
                if each.is_there
            ),
            limits=tuple(self._limits(found)),
        )

    def _written(self) -> Iterator[tuple[Line, Written]]:
        """The lines of the log with their places in the files that were fetched."""
        catalogue = Catalogue([PackageTexts(each, self.cache) for each in self.packages.values() if each.is_there])
        yield from zip(self.lines, catalogue.read(line for _, line in self.lines), strict=True)

    def _misfits(self, written: Sequence[tuple[Line, Written]]) -> Iterator[str]:
        """Where the log names a file of which all that are installed are here, and none of them writes the line."""
        stated = [each for _, each in written if each.stated.rpartition(":")[0] in self.stated.known]
        owners = [PackageTexts(self.packages[name], self.cache) for name in NAMES_ITS_FILES if name in self.packages]
        for each in fit(owners, stated):
            if each.is_other_release:
                first = each.misplaced[0]
                yield (
                    f"{each.differing} of {each.stated} places that the log names write something else in the installed "
                    f"{each.package}, [{first.stated}] for one: another release or changed files"
                )

    def _speakers(self, found: Sequence[tuple[Line, Written]]) -> Iterator[Speaker]:
        """The warnings and errors of the log that files which were fetched have written."""
        told: dict[str, None] = {}
        for (log, line), written in found:
            origin = next((each for each in written.origins if each.kind == "log" and each.is_whole), None)
            if origin is None or line.text in told or (not origin.handler and origin.name not in _TELLING_LEVELS):
                continue
            told[line.text] = None
            yield Speaker(line.text[:300], place_of(log, line), origin.name, _line(origin.spot), origin.is_swallowed)
            if len(told) >= _SHOWN_SPEAKERS:
                return

    def _confirmed(self, switches: Sequence[SourceSwitch]) -> Iterator[str]:
        names = {each.name for each in switches}
        for finding in self.judgement.findings[:1]:
            for remedy in finding.remedies:
                if remedy.kind in ("env", "flag") and remedy.name in names:
                    yield remedy.name

    def _disagreements(self, found: Trace) -> Iterator[str]:
        differing = [frame for frame in found.frames if frame.differs and not STAND_IN.search(frame.spot.code)]
        for frame in differing[-3:]:
            yield f"{frame.spot.path}: {frame.differs}"
        guard = found.guard
        if guard is not None and not differing and guard.message and self.raised.message:
            lines = [line for line in by_line(Template(tuple(guard.message.split("{}")))) if line.literal_size]
            said = self.raised.message.split("\n")
            if lines and all(line.values_in(text) is None for line in lines for text in said):
                yield f"{guard.spot.path}:{guard.spot.line} raises {guard.message[:120]!r}, which is not what the log says"

    def _limits(self, found: Trace) -> Iterator[str]:
        files = self.fetching.files
        yield (
            f"{files} files were read, in {self.fetching.rounds} requests: those that the frames name and those that lead "
            "on from there; a use elsewhere in the package was not looked for (gpuwhy trace does)"
        )
        if self.is_cut:
            yield "the search was cut off for want of time: what comes later on the way is not in the answer"
        missed = [f"{each.folder}/{path}" for each in self.packages.values() for path in each.wanted if each.is_there]
        if missed:
            yield f"not fetched: {', '.join(missed[:6])}" + (f" and {len(missed) - 6} more" if len(missed) > 6 else "")
        yield from self.fetching.limits
        yield from found.scope.cuts[:6]
        if found.scope.outside:
            yield f"not followed into {', '.join(found.scope.outside[:12])}: what they answer is a fact of the host"
        for package in found.scope.packages:
            yield from (f"not understood: {each}" for each in package.not_understood[:3])


def _values_that_failed(raised: RaisedException, found: Trace | None) -> Iterator[str]:
    """The names that were None, or nothing, where the exception says no more: as symbols of the module they stand in."""
    guard = found.guard if found is not None else None
    if guard is None or guard.raises:
        return
    undefined = _UNDEFINED.match(raised.message)
    names = [undefined[1]] if undefined else []
    if not names and "'NoneType' object" in raised.message:
        names = [each[1] for each in _CALLED.finditer(guard.spot.code)]
    module = guard.spot.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    yield from (f"{module}:{name}" for name in names[:_VALUES])


def _joined(first: Trace, value: Trace) -> Trace:
    """The guard of the first with the origin of a value before its own."""
    return msgspec.structs.replace(
        first,
        scope=value.scope,
        origin=(*value.origin, *first.origin),
        swallowed=tuple(dict.fromkeys((*value.swallowed, *first.swallowed))),
        switches=(*value.switches, *(each for each in first.switches if each not in value.switches)),
    )


def _version(facts: Facts, package: str) -> str:
    for name in (_PUBLISHED_AS.get(package, package), package.replace("_", "-"), package):
        fact = facts.get(f"packages.{name}")
        if isinstance(fact, Fact) and isinstance(fact.value, str):
            return fact.value
    return ""


def _line(spot: Spot) -> SourceLine:
    return SourceLine(spot.path, spot.line, spot.function, spot.code[:240])


def _conditions(requires: Sequence[Requirement]) -> tuple[SourceCondition, ...]:
    return tuple(SourceCondition(each.text, each.line, each.is_weak) for each in requires)


def _steps(steps: Sequence[Step], depth: int) -> Iterator[SourceStep]:
    for step in steps:
        place = _line(step.spot) if step.spot is not None else None
        yield SourceStep(step.kind, step.text[:240], depth, place, _conditions(step.requires), step.note)
        yield from _steps(step.steps, depth + 1)


def _switch(switch: Switch, facts: Facts) -> SourceSwitch:
    fact = facts.get(f"env.{switch.name}") if switch.kind == "environment" else None
    return SourceSwitch(
        kind=switch.kind,
        name=switch.name,
        places=tuple(map(_line, switch.spots[:4])),
        default=switch.default,
        accepts=switch.accepts,
        consulted_if=_conditions(switch.consulted_if),
        read_when=switch.read_when,
        cached_by=switch.cached_by,
        note=switch.note,
        value=str(fact.value) if isinstance(fact, Fact) and fact.value is not None else None,
        is_by_name=switch.is_by_name,
        way=tuple(
            f"{step.spot.path}:{step.spot.line} {step.text[:120]}" for step in switch.witness if step.spot is not None
        ),
    )


def _swallowed(swallow: Swallow, lines: Sequence[Line]) -> SwallowedException:
    hides = [
        (
            HiddenRaise(each.type, each.message.shown, _line(each.spot), _conditions(each.requires), each.via),
            each.message,
        )
        for each in swallow.hides
    ]
    shown: list[SeenInLog] = []
    for log in swallow.logs:
        shown += seen(log.message, hides, lines)
    return SwallowedException(
        place=_line(swallow.spot),
        catches=swallow.catches,
        skips=swallow.skips,
        logs=tuple(f"{each.level}: {each.message.shown}" for each in swallow.logs),
        hides=tuple(each for each, _ in hides),
        may_hide=swallow.may_hide,
        more=swallow.more,
        seen=tuple(shown),
    )
