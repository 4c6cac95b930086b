"""The section on the failing condition: what the installed source says of the exception, for a person."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from gpuwhy.model.source import (
    HiddenRaise,
    ReplayedSource,
    SourceAnswer,
    SourceCondition,
    SourceLine,
    SourceStep,
    SourceSwitch,
    SwallowedException,
)
from gpuwhy.reports.row import Row

_MANY = 8
_FEW = 3
_TOLD_STEPS = ("write", "default", "definition", "return", "argument", "caught", "table")
_STEP_DEPTH = 2
_DECIDED = ("same", "partly", "other")
"""Agreements of a replay that say something."""
_SWITCH_KINDS = {
    "environment": "environment variable",
    "flag": "option",
    "field": "setting",
    "subprocess": "command",
    "file": "file",
    "external": "call",
}


def condition_rows(source: SourceAnswer) -> Iterator[Row]:
    """The whole section: the condition in plain words, where its value comes from, what was swallowed, what reaches it,
    what does not fit, and how far was looked."""
    yield from _heading("The failing condition, in the source that is installed there")
    if source.place is None:
        yield Row(source.problem or "no frame of the traceback was found in it", 2)
    else:
        yield from _condition(source)
        if source.replay is not None:
            yield from _replay(source.replay)
        yield from _origin(source)
        yield from _swallowed(source)
        yield from _switches(source)
    yield from _speakers(source)
    yield from _list("What does not fit", source.disagreements, _MANY)
    yield from _list("How far was looked", source.limits, _MANY)


def brief_rows(source: SourceAnswer, told: Collection[str] = ()) -> Iterator[Row]:
    """For a failure that the catalogue explains: what the installed source confirms, and what in it does not fit.
    ``told`` are places that the reader has seen already."""
    places = list(_telling_places(source, told))
    agreement = source.replay.agreement if source.replay is not None else ""
    if places:
        replayed = "; replayed with the facts of this host: it is reached" if agreement == "same" else ""
        yield Row(f"installed source: {'; '.join(places)}{replayed}", 2, "note", 2)
    if source.replay is not None and agreement in _DECIDED and agreement != "same":
        yield Row(_verdict(source.replay), 2, hang=2)
    for sentence in source.disagreements[:_FEW]:
        yield Row(f"does not fit: {sentence}", 2, "possible", 2)


def _telling_places(source: SourceAnswer, told: Collection[str]) -> Iterator[str]:
    for each in [swallowed for swallowed in source.swallowed if swallowed.seen][:1]:
        hidden = next((hides.place for hides in each.hides), None)
        if hidden is not None and not (_is_told(hidden, told) and _is_told(each.place, told)):
            yield f"{hidden} raises what {each.place} swallows"
    if source.place is not None and not _is_told(source.place, told):
        strong = next((each.text for each in source.conditions if not each.is_weak), "")
        yield f"{source.place} raises {source.raises or 'it'}" + (f" when {strong}" if strong else "")


def _is_told(line: SourceLine, told: Collection[str]) -> bool:
    """Whether one of the places is this line, or next to it; places on a host have their whole path."""
    near = [f"{line.path}:{line.line + step}" for step in (-1, 0, 1)]
    return any(each == one or each.endswith(f"/{one}") for each in told for one in near)


def _heading(title: str) -> Iterator[Row]:
    yield Row("")
    yield Row(title, style="heading")


def _condition(source: SourceAnswer) -> Iterator[Row]:
    place = source.place
    if place is None:
        return
    does = f"raises {source.raises}" if source.raises else "calls what failed"
    strong = [each for each in source.conditions if not each.is_weak]
    ending = (
        ", when all of this holds:" if len(strong) > 1 else ", when this holds:" if strong else ", whenever it runs"
    )
    yield Row(f"{_where(place)} {does}{ending}", 2, hang=2)
    for each in strong[:_MANY]:
        yield Row(f"{each.text}  (line {each.line})", 4, "quote", 2)
    if len(strong) > _MANY:
        yield Row(f"and {len(strong) - _MANY} more", 4)
    for what in source.what_ifs[:_FEW]:
        words = "it always comes to this" if what.outcome == "always" else "it cannot come to this"
        yield Row(f"If {what.value} is {' or '.join(what.values)}, {words}.", 2, hang=2)


def _replay(replay: ReplayedSource) -> Iterator[Row]:
    """What the code does with the facts of the host: the reason where it is decided, what is missing where it is not."""
    yield Row(_verdict(replay), 2, hang=2)
    if replay.agreement not in _DECIDED:
        if replay.command:
            yield Row(f"to decide it: {replay.command}", 4, "quote", 2)
        return
    for caught in replay.swallowed[:_FEW]:
        said = f"{caught.type}: {caught.message[:160]}"
        yield Row(f"{caught.raised_at} raises {said}, and {caught.place} goes on", 4, "swallowed", 2)
    for line in replay.lines[:_FEW]:
        seen = f"in the log at {line.seen}" if line.seen is not None else "not in the log"
        yield Row(f"{line.at} logs: {line.text[:160]}  ({seen})", 4, hang=2)
    for branch in replay.branches[-_FEW:]:
        yield Row(f"{branch.place}: {branch.condition[:160]}  is {'true' if branch.holds else 'false'}", 4, hang=2)
    if replay.assumed:
        yield Row(f"assumed: {replay.assumed[-1]}" + (f", and {len(replay.assumed) - 1} more" if len(replay.assumed) > 1 else ""), 4, hang=2)  # fmt: skip


def _verdict(replay: ReplayedSource) -> str:
    return f"Replayed with the facts of this host ({replay.entry}): {replay.why}"


def _origin(source: SourceAnswer) -> Iterator[Row]:
    steps = [each for each in source.origin if each.kind in _TOLD_STEPS and each.depth <= _STEP_DEPTH and each.place]
    steps.sort(key=lambda each: each.kind not in ("write", "default"))
    different = list({(step.place.path, step.place.line): step for step in steps if step.place}.values())
    if not different:
        return
    yield Row("Where the value comes from:", 2)
    for step in different[:_MANY]:
        yield Row(_step(step), 4, hang=2)
    if len(different) > _MANY:
        yield Row(f"and {len(different) - _MANY} more steps", 4)


def _step(step: SourceStep) -> str:
    note = f" ({step.note})" if step.note else ""
    return f"{step.place}: {step.text}{_when(step.conditions)}{note}"


def _swallowed(source: SourceAnswer) -> Iterator[Row]:
    shown = [each for each in source.swallowed if each.seen]
    others = [each for each in source.swallowed if not each.seen]
    if shown:
        yield Row("An exception was swallowed on the way:", 2)
        for each in shown[:_FEW]:
            yield from _one_swallowed(each)
    if others:
        yield Row("Could be swallowed on the way (the log shows nothing of it):" if not shown else "Could be, too:", 2)
        for each in others[:_FEW]:
            yield Row(f"{each.place}: {_catches(each)}; {_could_hide(each)}{_silent(each)}", 4, hang=2)
        if len(others) > _FEW:
            yield Row(f"and {len(others) - _FEW} more handlers", 4)


def _one_swallowed(swallowed: SwallowedException) -> Iterator[Row]:
    for seen in swallowed.seen[:_FEW]:
        times = f"  ({seen.times} times)" if seen.times > 1 else ""
        yield Row(f"{seen.place}: {seen.text}{times}", 4, "quote", 2)
        yield Row(f"written at {swallowed.place}, {_catches(swallowed)}, which then goes on", 4, hang=2)
        if seen.raised_at is not None:
            yield Row(f"raised at {_raise(seen.raised_at)}", 4, "swallowed", 2)
    if swallowed.skips:
        yield Row(f"so this is not done: {swallowed.skips}", 4, hang=2)


def _catches(swallowed: SwallowedException) -> str:
    return f"except {', '.join(swallowed.catches)}" if swallowed.catches else "a bare except"


def _could_hide(swallowed: SwallowedException) -> str:
    names = [
        f"{each.type}: {each.message[:80]}" if each.message.strip("{} ") else each.type for each in swallowed.hides
    ]
    hidden = [*names[:_FEW], *swallowed.may_hide[: max(0, _FEW - len(names))]]
    rest = len(swallowed.hides) + len(swallowed.may_hide) - len(hidden) + swallowed.more
    return "hides " + "; ".join(hidden or ["whatever fails below"]) + (f" and {rest} more" if rest > 0 else "")


def _silent(swallowed: SwallowedException) -> str:
    return "" if swallowed.logs else "; it logs nothing"


def _raise(hidden: HiddenRaise) -> str:
    return f"{_where(hidden.place)}: {hidden.type}: {hidden.message[:160]}{_when(hidden.conditions)}"


def _switches(source: SourceAnswer) -> Iterator[Row]:
    if not source.switches:
        yield Row("No variable, option, file or command was found that reaches it.", 2, hang=2)
        return
    yield Row("What reaches it from outside, the nearest of each kind first:", 2)
    for switch in source.switches[: 2 * _MANY]:
        yield Row(_switch(switch), 4, hang=2)
    if len(source.switches) > 2 * _MANY:
        yield Row(f"and {len(source.switches) - 2 * _MANY} more", 4)


def _switch(switch: SourceSwitch) -> str:
    parts = [_SWITCH_KINDS.get(switch.kind, switch.kind)]
    if switch.value is not None:
        parts.append(f"here {switch.value!r}")
    if switch.default:
        parts.append(f"default {switch.default}")
    if switch.accepts:
        parts.append(f"one of {', '.join(switch.accepts[:8])}")
    if switch.read_when:
        parts.append(f"read {switch.read_when}" if not switch.read_when.startswith("read") else switch.read_when)
    if switch.cached_by:
        parts.append(switch.cached_by)
    if switch.is_by_name:
        parts.append("a step on the way was matched by name only")
    place = f"  {switch.places[0]}" if switch.places else ""
    return f"{switch.name} ({'; '.join(parts)}){place}{_when(switch.consulted_if[:2])}"


def _speakers(source: SourceAnswer) -> Iterator[Row]:
    tied = {seen.text for each in source.swallowed for seen in each.seen}
    lines = [each for each in source.speakers if each.text not in tied]
    if not lines:
        return
    yield Row("Who wrote the warnings and errors of the log, among the files that were read:", 2)
    for each in lines[:_MANY]:
        went_on = ", in a handler that goes on" if each.is_swallowed else ""
        yield Row(f"{each.place}: {each.text[:160]}", 4, "quote", 2)
        yield Row(f"{_where(each.at)}{went_on}", 6)


def _list(title: str, sentences: Sequence[str], most: int) -> Iterator[Row]:
    if not sentences:
        return
    yield Row(f"{title}:", 2)
    for sentence in sentences[:most]:
        yield Row(f"- {sentence}", 4, hang=2)
    if len(sentences) > most:
        yield Row(f"and {len(sentences) - most} more", 4)


def _when(conditions: Sequence[SourceCondition]) -> str:
    strong = [each.text for each in conditions if not each.is_weak]
    return f"   if {' and '.join(strong[:_FEW])}" if strong else ""


def _where(place: SourceLine) -> str:
    return f"{place} in {place.function}" if place.function else str(place)
