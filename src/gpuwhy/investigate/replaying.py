"""Replay as a proof: what the code on the path of the primary exception does with the facts of the case.

    answer = examined(...)                      # the failing condition
    answer = with_replay(answer, incident, facts, source, record)

and for a change that is only planned, touching nothing:

    installed = installed_source(incident, source)
    verdict = replayed_with(facts, installed, "flashinfer.jit.core:check_cuda_arch", {"env.FLASHINFER_CUDA_ARCH_LIST": "12.0a"})
    verdict.kind    # "reached", "not reached", "other exception", "needs a fact", "not modelled"
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from gpuwhy.investigate.failing_condition import exception_of
from gpuwhy.investigate.installed_files import OutOfTimeError
from gpuwhy.investigate.record import Record
from gpuwhy.investigate.replay_comparing import Failure, compared
from gpuwhy.investigate.replay_entry import entry_of
from gpuwhy.investigate.replay_facts import asked_for, changed, replayable
from gpuwhy.investigate.replay_source import InstalledSource
from gpuwhy.investigate.shared_values import left_alone
from gpuwhy.investigate.source import Questioner
from gpuwhy.investigate.tying import lines_of_logs
from gpuwhy.model.event import RaisedException
from gpuwhy.model.fact import Facts
from gpuwhy.model.incident import Incident
from gpuwhy.model.source import ReplayedSource, SourceAnswer
from gpuwhy.source.replay import (
    NeedsFact,
    NotModelled,
    Place,
    Raised,
    Replay,
    Returned,
    SourceOfModules,
    replay,
)

CPU_SECONDS = 0.5
"""Of one replay, all its rounds together."""
SECONDS = 1.5
"""For fetching what it needs."""
_FACTS = 6
"""That the target is asked for, one after the other."""
QUESTION = "what does the code there do with the facts of this host"

Kind = Literal["reached", "not reached", "other exception", "needs a fact", "not modelled"]


class Verdict(msgspec.Struct, frozen=True):
    """How the code ends when the facts are otherwise, compared with the failure.

    ``needs`` is the key of the fact that would decide, ``command`` gets it. ``rests_on`` is what was assumed.
    ``replay`` holds the whole trail.
    """

    kind: Kind
    why: str
    replay: Replay
    needs: str = ""
    command: str = ""

    @property
    def rests_on(self) -> tuple[str, ...]:
        return tuple(each.what for each in self.replay.assumed())


def replayed_with(
    facts: Facts,
    source: SourceOfModules,
    function: str,
    changes: Mapping[str, Any] | None = None,
    failure: Failure | None = None,
    *,
    target: Questioner | None = None,
    seconds: float = CPU_SECONDS,
) -> Verdict:
    """Whether ``function`` (``module:name``, see :func:`gpuwhy.source.replay.replay`) still fails with some facts changed.

    ``changes`` are keys of docs/facts.md with their new values, None for what is no longer there:
    ``{"env.CUDA_HOME": "/usr/local/cuda-12.4"}``. The source stays as it is, so another version of a package is no
    change that can be judged here. ``failure`` is the exception that is meant; without it, the one that the function
    raises with the facts as they are. ``target`` is asked for files that a fact is wanted of. Takes ``seconds`` of
    processor time at most (twice that when the failure has to be found), and raises nothing but ValueError for a
    ``function`` that is no expression.
    """
    known = replayable(facts)
    if failure is None:
        before, known = _replayed(known, source, function, target, seconds)
        raised = before.outcome if isinstance(before.outcome, Raised) else None
        failure = Failure(raised.type, raised.place.file, raised.place.line) if raised else Failure()
    result, _ = _replayed(changed(known, changes or {}), source, function, target, seconds)
    return _verdict(result, failure)


def _verdict(result: Replay, failure: Failure) -> Verdict:
    outcome = result.outcome
    if isinstance(outcome, Returned):
        return Verdict("not reached", f"{result.entry} returns {outcome.value}", result)
    if isinstance(outcome, NeedsFact):
        why = f"it depends on {outcome.key}, asked at {outcome.place}"
        return Verdict("needs a fact", why, result, outcome.key, outcome.command)
    if isinstance(outcome, NotModelled):
        return Verdict("not modelled", f"{outcome.what} is not modelled, at {outcome.place}", result)
    said = f"{outcome.type}: {outcome.message[:200]} at {outcome.place}"
    return Verdict("reached" if failure.is_reached(outcome) else "other exception", said, result)


def installed_source(incident: Incident, source: Questioner, seconds: float = SECONDS) -> InstalledSource | None:
    """The installed source that the primary exception stands in; None where there is no exception with frames."""
    raised = exception_of(incident)
    return InstalledSource(raised.frames, source, seconds) if raised is not None else None


def with_replay(
    answer: SourceAnswer | None,
    incident: Incident,
    facts: Facts,
    source: Questioner,
    record: Record,
    seconds: float = SECONDS,
) -> SourceAnswer | None:
    """The answer with what a replay says of it; as it was where there is nothing to replay.

    Never raises: what fails is recorded, and the diagnosis goes on without it.
    """
    raised = exception_of(incident) if answer is not None and answer.place is not None else None
    if answer is None or raised is None:
        return answer
    begun = time.monotonic()
    try:
        found, entry, outcome = _proof(answer, raised, incident, facts, source, seconds)
    except OutOfTimeError:
        found, entry, outcome = None, "", ("timed out", "its modules could not be fetched in time")
    except Exception as error:  # noqa: BLE001 - whatever stands in foreign source must not cost the diagnosis
        found, entry, outcome = None, "", ("failed", f"{type(error).__name__}: {error}"[:300])
    record.add(QUESTION, entry or str(answer.place), *outcome, duration=round(time.monotonic() - begun, 4))
    return answer if found is None else msgspec.structs.replace(answer, replay=found)


def _proof(
    answer: SourceAnswer,
    raised: RaisedException,
    incident: Incident,
    facts: Facts,
    source: Questioner,
    seconds: float,
) -> tuple[ReplayedSource | None, str, tuple[str, str]]:
    """The replay beside the log, its entry, and the outcome for the record."""
    installed = InstalledSource(raised.frames, source, seconds)
    entry = entry_of(raised.frames, installed)
    if not entry:
        return None, "", ("absent", "no function on the path can be called without arguments that are not known")
    result, _ = _replayed(replayable(facts), installed, entry, source, CPU_SECONDS)
    result = left_alone(result, installed)
    found = compared(result, _failure(raised, installed), lines_of_logs(incident.logs), answer)
    outcome = "ok" if found.agreement != "open" else "absent"
    notes = [found.why]
    if found.agreement == "open":
        notes += [f"{path} was not replayed: {reason}" for path, reason in list(installed.refused.items())[:3]]
        if installed.missed:
            notes.append(f"not here: {', '.join(installed.missed[:6])}")
    return found, entry, (outcome, "; ".join(notes))


def _failure(raised: RaisedException, installed: InstalledSource) -> Failure:
    """The exception at the innermost line that can be replayed: below it is Python's own library, or compiled code."""
    for frame in reversed(raised.frames):
        path = installed.path_of(frame)
        if path:
            return Failure(raised.type, path, frame.line or 0)
    return Failure(raised.type)


def _replayed(
    facts: Facts, source: SourceOfModules, entry: str, target: Questioner | None, seconds: float
) -> tuple[Replay, Facts]:
    """Replayed again as long as modules come, or a fact that the target's files give; with the facts at the end."""
    begun = time.thread_time()
    asked = 0
    if isinstance(source, InstalledSource):
        source.extend(SECONDS)
    try:
        while True:
            left = seconds - (time.thread_time() - begun)
            result = replay(source, entry, facts, seconds=max(left, 0.01))
            if time.thread_time() - begun >= seconds:
                break
            if isinstance(source, InstalledSource) and source.fetch():
                continue
            more = _asked(result, source, facts, target) if asked < _FACTS else None
            if more is None:
                break
            asked += 1
            facts = more
    except OutOfTimeError:
        return Replay(entry, NotModelled("the code that did not come in time", Place("", 0))), facts
    if isinstance(source, InstalledSource) and source.missed:
        # a module that is not here counts as one outside the source, and this one is not
        missed = NotModelled(f"the source of {source.missed[0]}, which was not fetched,", Place("", 0))
        result = msgspec.structs.replace(result, outcome=missed)
    return result, facts


def _asked(result: Replay, source: SourceOfModules, facts: Facts, target: Questioner | None) -> Facts | None:
    """The facts with the one that the replay stopped for, or with those that it assumed, if the target's files give them."""
    if target is None:
        return None
    stopped = [result.outcome.key] if isinstance(result.outcome, NeedsFact) else []
    wanted = stopped or list(dict.fromkeys(each.key for each in result.assumed() if each.key))
    folders: Sequence[str] = source.folders if isinstance(source, InstalledSource) else ()
    # a file that is known to be there may be of a kind that is not
    asked = [key for key in wanted if key not in facts or (key.startswith("files.") and not _is_kind(facts.value(key)))]
    found = (asked_for(key, folders, facts, target) for key in asked[:_FACTS])
    new = {fact.key: fact for fact in found if fact is not None}
    return facts.merged(Facts(new)) if new else None


def _is_kind(value: object) -> bool:
    return value is None or value is True or value in ("file", "directory") or isinstance(value, dict)
