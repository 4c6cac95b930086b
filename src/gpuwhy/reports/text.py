"""The report for a person: the answer first, then how it happened, what to do, what was ruled out, what is unknown.

Rows are built once and rendered plainly here, or in colour by :mod:`gpuwhy.reports.colour`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Event
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.finding import Certainty, Finding, Link
from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import setting_of
from gpuwhy.reports.condition import condition_rows, installed_rows
from gpuwhy.reports.interface import Detail
from gpuwhy.reports.remedy_words import change_of, survival_of
from gpuwhy.reports.row import Row
from gpuwhy.reports.waiting import stack_rows, waiting_rows

MANY = 12
"""Rows of a list that are shown without -v."""

_SURE = {
    Certainty.PROVEN: "proven: the mechanism itself was seen",
    Certainty.LIKELY: "likely: it fits, and one link is inferred",
    Certainty.POSSIBLE: "possible: it fits, and the deciding fact is not known",
}


def render(diagnosis: Diagnosis, detail: Detail) -> str:
    """The report as plain text."""
    return "\n".join(line for row in rows(diagnosis, detail) for line in row.wrapped(detail.width)) + "\n"


def rows(diagnosis: Diagnosis, detail: Detail) -> Iterator[Row]:
    """The report, row by row."""
    if diagnosis.waiting is not None:
        yield from waiting_rows(diagnosis, diagnosis.waiting, _subject(diagnosis))
    if diagnosis.findings:
        yield from _answered(diagnosis, diagnosis.findings[0], detail)
    elif diagnosis.waiting is not None:
        yield from stack_rows(diagnosis.waiting)
    elif diagnosis.incident.is_failure and diagnosis.incident.primary is not None:
        yield from _unrecognised(diagnosis)
    elif not diagnosis.is_examined:
        yield Row(f"{_subject(diagnosis)}: not enough could be examined to say anything", style="answer")
    else:
        yield Row(f"{_subject(diagnosis)}: no failure in what was examined", style="answer")
    yield from _before(diagnosis)
    yield from _alternatives(diagnosis, detail)
    yield from _ruled_out(diagnosis, detail)
    yield from _unknown(diagnosis)
    if diagnosis.notes:
        yield from _section("Notes")
        for note in diagnosis.notes[: None if detail.verbose else MANY]:
            yield Row(f"- {note}", 2, "note", 2)
    if detail.verbose:
        yield from _facts(diagnosis)
    if detail.show_work:
        yield from _work(diagnosis)


def _subject(diagnosis: Diagnosis) -> str:
    unit = diagnosis.incident.unit
    return f"{unit} on {diagnosis.where}" if unit and unit not in diagnosis.where else diagnosis.where


def _section(title: str) -> Iterator[Row]:
    yield Row("")
    yield Row(title, style="heading")


def _answered(diagnosis: Diagnosis, finding: Finding, detail: Detail) -> Iterator[Row]:
    yield Row(f"{_subject(diagnosis)}: {finding.certainty.value}: {finding.title}", style="answer")
    component = f", in {finding.component}" if finding.component else ""
    yield Row(f"{finding.cause}{component}: {_SURE[finding.certainty]}", style=finding.certainty.value)
    yield from _section("How it happened")
    shown: set[Place | None] = set()
    for number, link in enumerate(finding.chain, 1):
        yield from _link(number, link, shown)
    if detail.verbose or not finding.chain:
        yield from _section("Evidence")
        for evidence in finding.evidence:
            yield Row(f"- {evidence.statement}", 2, hang=2)
            yield from _quoted(evidence, 4)
    for evidence in finding.against:
        yield Row(f"- speaks against it: {evidence.statement}", 2, hang=2)
        yield from _quoted(evidence, 4)
    for note in finding.notes:
        yield Row(note, 2, "note")
    if diagnosis.source is not None:
        yield from (condition_rows if detail.verbose else installed_rows)(diagnosis.source)
    yield from _remedies(finding, detail, _typed_where(diagnosis))


def _typed_where(diagnosis: Diagnosis) -> str:
    """Where the commands are to be typed, when that is not plainly this shell."""
    setting = setting_of(diagnosis)
    is_for_root = setting.kind == "systemd" and not setting.is_user_unit
    parts = [f"on {setting.host}" if setting.host else "", "as root" if is_for_root else ""]
    return ", ".join(part for part in parts if part)


def _link(number: int, link: Link, shown: set[Place | None]) -> Iterator[Row]:
    """A link with its evidence; a line that was quoted for an earlier link is only pointed at."""
    marks = []
    if link.is_swallowed:
        marks.append("swallowed")
    if link.evidence is None or link.evidence.standing is Standing.INFERRED:
        marks.append("inferred")
    mark = f"  [{', '.join(marks)}]" if marks else ""
    yield Row(f"{number}. {link.statement}{mark}", 2, "swallowed" if link.is_swallowed else "", 3)
    if link.installed is not None and link.installed != link.evidence:
        yield from _quoted(link.installed, 5)
    if link.evidence is None or link.evidence.standing is Standing.INFERRED:
        return
    if link.evidence.place is not None and link.evidence.place.line is not None and link.evidence.place in shown:
        yield Row(f"shown by the same line, {link.evidence.place}", 5, "quote", 2)
    else:
        yield from _quoted(link.evidence, 5)
    shown.add(link.evidence.place)


def _quoted(evidence: Evidence, indent: int) -> Iterator[Row]:
    place = f"{evidence.place}: " if evidence.place is not None else ""
    quote = evidence.quote.partition("\n")[0]
    if place or quote:
        yield Row(f"{place}{quote[:240]}", indent, "quote", 2)


def _remedies(finding: Finding, detail: Detail, where: str) -> Iterator[Row]:
    if not finding.remedies:
        return
    first, *others = finding.remedies
    yield from _section("What to do first" + (f" ({where})" if where and first.commands else ""))
    yield from _remedy(first, "", full=True)
    if others:
        yield from _section("Other ways, from the smallest change to the largest")
        for number, remedy in enumerate(others, 2):
            yield from _remedy(remedy, f"{number}. ", full=detail.verbose)
    if finding.not_remedies:
        yield from _section("What does not help")
        for refused in finding.not_remedies:
            yield Row(f"- {refused.what}: {refused.why}", 2, hang=2)


def _remedy(remedy: Remedy, number: str, *, full: bool) -> Iterator[Row]:
    change = change_of(remedy)
    unsure = "" if remedy.is_sure else "  (helps in some such cases)"
    yield Row(f"{number}{change}{unsure}", 2, "answer" if full and not number else "", 3)
    if change != remedy.summary:
        yield Row(remedy.summary, 5)
    if not full:
        return
    for command in remedy.commands:
        yield Row(command, 7, "command")
    if remedy.cost:
        yield Row(f"cost: {remedy.cost}; risk {remedy.risk}", 5, "note", 2)
    survives = survival_of(remedy.survives)
    if survives:
        yield Row(survives, 5, "note", 2)
    for limit in remedy.limits:
        yield Row(f"limit: {limit}", 5, "note", 2)
    if remedy.check:
        yield Row("check:", 5, "note")
        for command in remedy.check:
            yield Row(command, 7, "command")
    if remedy.undo:
        yield Row("undo:", 5, "note")
        for command in remedy.undo:
            yield Row(command, 7, "command")


def _unrecognised(diagnosis: Diagnosis) -> Iterator[Row]:
    event = diagnosis.incident.primary_event
    if event is None:
        return
    headline = event.text.partition("\n")[0]
    yield Row(f"{_subject(diagnosis)}: {headline[:300]}", style="answer")
    if diagnosis.outside:
        yield Row(
            f"This is a failure of {diagnosis.outside}, which the catalogue does not cover: it knows NVIDIA GPUs.",
            style="possible",
        )
    else:
        yield Row(
            "The cause is not in the catalogue; this is the first fatal event, and not necessarily the root.",
            style="possible",
        )
    surfaced = event.detail.get("surfaced_as", "")
    yield from _section("What was said before it failed" if surfaced else "The first fatal event")
    for line in event.text.split("\n")[:8]:
        yield Row(line[:300], 2, "quote", 2)
    yield Row(f"at {event.place}{_by_whom(event)}", 2, "note")
    if surfaced:
        yield Row(f"It surfaced as: {surfaced}", 2, hang=2)
    for block in event.exceptions[:1]:
        for frame in block.frames[-4:]:
            yield Row(f"{frame.path}:{frame.line or '?'} in {frame.function}", 4, hang=2)
            if frame.code:
                yield Row(frame.code[:200], 6, "quote")
    if diagnosis.source is not None:
        yield from condition_rows(diagnosis.source)
    yield from _consequences(diagnosis, event)
    yield from _seen(diagnosis)


def _by_whom(event: Event) -> str:
    """When it happened, in which process, and how often."""
    parts = []
    if event.process is not None:
        process = event.process
        named = process.name or (f"rank {process.rank}" if process.rank is not None else "a process")
        parts.append(f"in {named}" + (f", pid {process.pid}" if process.pid is not None else ""))
    if event.time is not None:
        parts.append(time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(event.time)))
    if event.repeats:
        parts.append(f"{len(event.repeats) + 1} times")
    return "".join(f", {part}" for part in parts)


def _consequences(diagnosis: Diagnosis, primary: Event) -> Iterator[Row]:
    """What ended after the primary event: its echoes, and other failures of the same life."""
    after = [
        event
        for event in diagnosis.incident.events
        if event.is_fatal and event.id != primary.id and event.id not in diagnosis.incident.before
    ]
    if not after:
        return
    yield from _section("What died because of it, or after it")
    for event in after[:MANY]:
        headline = event.text.partition("\n")[0]
        yield Row(f"- {event.place}: {headline[:200]}{_by_whom(event)}", 2, hang=2)
    if len(after) > MANY:
        yield Row(f"- and {len(after) - MANY} more", 2)


def _seen(diagnosis: Diagnosis) -> Iterator[Row]:
    """What the text tells of the machine: the reader of an unknown failure needs it first."""
    if not diagnosis.facts:
        return
    yield from _section("What is known of the machine")
    for fact in diagnosis.facts[: 2 * MANY]:
        place = f"  [{fact.evidence.place}]" if fact.evidence.place is not None else ""
        shown = "not set, or not there" if fact.value is None else str(fact.value)
        yield Row(f"{fact.key}: {shown[:160]}{place}", 2, hang=4)
    if len(diagnosis.facts) > 2 * MANY:
        yield Row(f"and {len(diagnosis.facts) - 2 * MANY} more (-v)", 2)


def _before(diagnosis: Diagnosis) -> Iterator[Row]:
    if not diagnosis.before:
        return
    yield from _section("What came before, and is not the cause of this")
    for evidence in diagnosis.before:
        yield Row(f"- {evidence.statement}", 2, hang=2)
        yield from _quoted(evidence, 4)


def _alternatives(diagnosis: Diagnosis, detail: Detail) -> Iterator[Row]:
    others = diagnosis.findings[1:]
    for title, members in (
        ("A second problem, beside this one", [each for each in others if each.is_independent]),
        ("What follows from it", [each for each in others if each.consequence_of]),
    ):
        if members:
            yield from _section(title)
            for finding in members[: None if detail.verbose else 4]:
                yield Row(f"- {finding.cause} ({finding.certainty.value}): {finding.title}", 2, hang=2)
                for evidence in finding.evidence[:1]:
                    yield from _quoted(evidence, 4)
    rest = [each for each in others if not each.is_independent and not each.consequence_of]
    named = {each.cause for each in others}
    rivals = [each for each in diagnosis.findings[0].rivals if each not in named] if diagnosis.findings else []
    if not rest and not rivals:
        return
    yield from _section("What else it could be")
    for finding in rest[: None if detail.verbose else 4]:
        yield Row(f"- {finding.cause} ({finding.certainty.value}): {finding.title}", 2, hang=2)
    if rivals:
        yield Row(f"- not excluded either: {', '.join(rivals)}", 2, hang=2)


def _ruled_out(diagnosis: Diagnosis, detail: Detail) -> Iterator[Row]:
    if not diagnosis.ruled_out:
        return
    yield from _section("Ruled out")
    for excluded in diagnosis.ruled_out[: None if detail.verbose else MANY]:
        yield Row(f"- {excluded.cause}: {excluded.why}", 2, hang=2)
        if detail.verbose:
            for evidence in excluded.evidence:
                yield from _quoted(evidence, 4)


def _unknown(diagnosis: Diagnosis) -> Iterator[Row]:
    if diagnosis.decides is None:
        return
    if not diagnosis.findings:
        yield from _section("What is missing to go on, and the command that gets it")
        for each in diagnosis.to_go_on or (diagnosis.decides,):
            yield Row(f"- {each.key}: {each.why}", 2, hang=2)
            yield Row(each.command, 4, "command")
        return
    yield from _section("What is not known, and the one command that decides")
    for each in diagnosis.findings[0].missing:
        yield Row(f"- {each.key}" + (f": {each.why}" if each.why else ""), 2, hang=2)
    if diagnosis.decides.command:
        yield Row(diagnosis.decides.command, 4, "command")


def _facts(diagnosis: Diagnosis) -> Iterator[Row]:
    if not diagnosis.facts:
        return
    yield from _section("Facts used")
    for fact in diagnosis.facts:
        place = f"  [{fact.evidence.place}]" if fact.evidence.place is not None else ""
        shown = "not set, or not there" if fact.value is None else str(fact.value)
        yield Row(f"{fact.key}: {shown[:160]}{place}", 2, hang=4)


def _work(diagnosis: Diagnosis) -> Iterator[Row]:
    yield from _section("How it was found out")
    for step in diagnosis.investigation.steps:
        duration = f" in {step.duration:.2f} s" if step.duration is not None else ""
        found = f": {step.found}" if step.found else ""
        yield Row(f"- {step.question} ({step.where}): {step.outcome}{duration}{found}", 2, hang=2)
        if step.assumes:
            yield Row(f"assumes: {step.assumes}", 4, "note", 2)
        if step.changed:
            yield Row(f"so {step.changed}", 4, "note", 2)
    for question in diagnosis.investigation.open_questions:
        yield Row(f"- open: {question}", 2, hang=2)
