"""The report for a person: the answer first, then how it happened, what to do, what was ruled out, what is unknown.

Rows are built once and rendered plainly here, or in colour by :mod:`gpuwhy.reports.colour`. What is known of a cause is
shown on one screen (:mod:`gpuwhy.reports.brief`), or with ``-v`` in full (:mod:`gpuwhy.reports.full`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Event
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.reports import brief, full
from gpuwhy.reports.condition import condition_rows
from gpuwhy.reports.fact_words import said
from gpuwhy.reports.full import quoted
from gpuwhy.reports.interface import Detail
from gpuwhy.reports.row import Row
from gpuwhy.reports.sections import MANY, section, subject_of
from gpuwhy.reports.waiting import stack_rows, waiting_rows

_SURE = {
    Certainty.PROVEN: "proven: the mechanism itself was seen",
    Certainty.LIKELY: "likely: it fits, one link is inferred",
    Certainty.POSSIBLE: "possible: it fits, the deciding fact is not known",
}


def render(diagnosis: Diagnosis, detail: Detail) -> str:
    """The report as plain text."""
    return "\n".join(line for row in rows(diagnosis, detail) for line in row.wrapped(detail.width)) + "\n"


def rows(diagnosis: Diagnosis, detail: Detail) -> Iterator[Row]:
    """The report, row by row."""
    if diagnosis.waiting is not None:
        yield from waiting_rows(diagnosis, diagnosis.waiting, subject_of(diagnosis))
    if diagnosis.findings:
        yield from _answered(diagnosis, diagnosis.findings[0], detail)
    elif diagnosis.waiting is not None:
        yield from stack_rows(diagnosis.waiting)
    elif diagnosis.incident.is_failure and diagnosis.incident.primary is not None:
        yield from _unrecognised(diagnosis)
    elif not diagnosis.is_examined:
        yield Row(f"{subject_of(diagnosis)}: not enough could be examined to say anything", style="answer")
    else:
        yield Row(f"{subject_of(diagnosis)}: no failure in what was examined", style="answer")
    if diagnosis.findings and not detail.verbose:
        yield from brief.other_rows(diagnosis)
    elif diagnosis.findings:
        yield from _before(diagnosis)
        yield from _others(diagnosis)
        yield from full.other_rows(diagnosis)
    else:
        yield from _before(diagnosis)
        yield from full.ruled_out_rows(diagnosis, is_full=detail.verbose)
        yield from full.to_go_on_rows(diagnosis)
    yield from _notes(diagnosis, detail)
    if detail.verbose:
        yield from full.fact_rows(diagnosis)
    if detail.show_work:
        yield from full.work_rows(diagnosis)


def _answered(diagnosis: Diagnosis, finding: Finding, detail: Detail) -> Iterator[Row]:
    yield Row(f"{subject_of(diagnosis)}: {finding.certainty.value}: {finding.title}", style="answer")
    component = f", in {finding.component}" if finding.component else ""
    yield Row(f"{finding.cause}{component}: {_SURE[finding.certainty]}", style=finding.certainty.value)
    yield from (full if detail.verbose else brief).answer_rows(diagnosis, finding)


def _unrecognised(diagnosis: Diagnosis) -> Iterator[Row]:
    event = diagnosis.incident.primary_event
    if event is None:
        return
    headline = event.text.partition("\n")[0]
    yield Row(f"{subject_of(diagnosis)}: {headline[:300]}", style="answer")
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
    yield from section("What was said before it failed" if surfaced else "The first fatal event")
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
    yield from section("What died because of it, or after it")
    for event in after[:MANY]:
        headline = event.text.partition("\n")[0]
        yield Row(f"- {event.place}: {headline[:200]}{_by_whom(event)}", 2, hang=2)
    if len(after) > MANY:
        yield Row(f"- and {len(after) - MANY} more", 2)


def _seen(diagnosis: Diagnosis) -> Iterator[Row]:
    """What the text tells of the machine: the reader of an unknown failure needs it first."""
    if not diagnosis.facts:
        return
    yield from section("What is known of the machine")
    for fact in diagnosis.facts[: 2 * MANY]:
        place = f"  [{fact.evidence.place}]" if fact.evidence.place is not None else ""
        shown = said(fact.key, fact.value)
        yield Row(f"{fact.key}: {shown[:160]}{place}", 2, hang=4)
    if len(diagnosis.facts) > 2 * MANY:
        yield Row(f"and {len(diagnosis.facts) - 2 * MANY} more (-v)", 2)


def _before(diagnosis: Diagnosis) -> Iterator[Row]:
    if not diagnosis.before:
        return
    yield from section("What came before, and is not the cause of this")
    for evidence in diagnosis.before:
        yield Row(f"- {evidence.statement}", 2, hang=2)
        yield from quoted(evidence, 4)


def _others(diagnosis: Diagnosis) -> Iterator[Row]:
    for title, members in (
        ("A second problem, beside this one", [each for each in diagnosis.findings[1:] if each.is_independent]),
        ("What follows from it", [each for each in diagnosis.findings[1:] if each.consequence_of]),
    ):
        if members:
            yield from section(title)
            for finding in members:
                yield Row(f"- {finding.cause} ({finding.certainty.value}): {finding.title}", 2, hang=2)
                for evidence in finding.evidence[:1]:
                    yield from quoted(evidence, 4)


def _notes(diagnosis: Diagnosis, detail: Detail) -> Iterator[Row]:
    if not diagnosis.notes:
        return
    if diagnosis.findings and not detail.verbose and len(diagnosis.notes) == 1:
        yield Row(f"Note: {diagnosis.notes[0]}", style="note", hang=2)
        return
    yield from section("Notes")
    for note in diagnosis.notes[: None if detail.verbose else MANY]:
        yield Row(f"- {note}", 2, "note", 2)
