"""A diagnosis as a page: the answer, how it happened, what to do, when it happened, and all that it rests on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Event
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Finding, Link
from gpuwhy.remedies import setting_of
from gpuwhy.reports.fact_words import said
from gpuwhy.reports.html.architectures import matrix_of_facts
from gpuwhy.reports.html.chain import is_inferred, pictures
from gpuwhy.reports.html.excerpt import excerpt_of
from gpuwhy.reports.html.inert import shortened
from gpuwhy.reports.html.log_lines import ShownLogs
from gpuwhy.reports.html.memory import drawn
from gpuwhy.reports.html.page import written
from gpuwhy.reports.html.remedy import Step, step_of
from gpuwhy.reports.html.timeline import timeline_of
from gpuwhy.reports.interface import Detail
from gpuwhy.reports.sections import to_find_out_first

MOST_FACTS = 400
LONGEST_FACT = 400

_SURE = {
    Certainty.PROVEN: "The mechanism itself was seen.",
    Certainty.LIKELY: "It fits, and one link is inferred.",
    Certainty.POSSIBLE: "It fits, and the deciding fact is not known.",
}
_STATES = {
    "stuck": "It is stuck.",
    "progressing": "It is not stuck: it gets on.",
    "idle": "It is not stuck: it has nothing to do.",
    "unclear": "Whether it is stuck, one look does not tell.",
}


class Answer(msgspec.Struct, frozen=True):
    """The head of the page. ``level`` is a certainty, or ``unknown``, ``fine``, ``waiting``."""

    level: str
    headline: str
    remark: str = ""
    cause: str = ""
    component: str = ""


class FactGroup(msgspec.Struct, frozen=True):
    """Facts whose keys begin alike."""

    name: str
    facts: tuple[tuple[str, str, Evidence, str], ...]
    """Key, value, what shows it, whose it is ("" for the host)."""


class Others(msgspec.Struct, frozen=True):
    """Further findings under one heading."""

    title: str
    findings: tuple[Finding, ...]


def render(diagnosis: Diagnosis, detail: Detail) -> str:
    """The page. Details do not change it: what a reader may not want is folded."""
    del detail
    finding = diagnosis.findings[0] if diagnosis.findings else None
    logs = ShownLogs(diagnosis.incident.logs, cited(diagnosis))
    parts: dict[str, Any] = {
        "answer": answer_of(diagnosis),
        "known": tuple(_known(diagnosis)),
        "finding": finding,
        "pictures": pictures(finding.chain) if finding is not None else (),
        "links": tuple(reversed(tuple(enumerate(finding.chain, 1)))) if finding is not None else (),
        "steps": steps_of(finding) if finding is not None else (),
        "asked": to_find_out_first(diagnosis),
        "memory": tuple(map(drawn, finding.memory)) if finding is not None else (),
        "typed_where": _typed_where(diagnosis),
        "primary": diagnosis.incident.primary_event if diagnosis.incident.is_failure else None,
        "timeline": timeline_of(diagnosis.incident, logs),
        "excerpt": excerpt_of(diagnosis),
        "matrix": matrix_of_facts(diagnosis.facts),
        "others": tuple(_others(diagnosis)),
        "rivals": _rivals(diagnosis),
        "facts": grouped(diagnosis.facts),
        "facts_left_out": max(0, len(diagnosis.facts) - MOST_FACTS),
        "logs": logs,
    }
    return written(
        "diagnosis.html.jinja",
        subject=subject_of(diagnosis),
        diagnosis=diagnosis,
        is_inferred=is_inferred,
        sections=tuple(_sections(diagnosis, parts)),
        **parts,
    )


def subject_of(diagnosis: Diagnosis) -> str:
    """What the page is about: the unit and where it ran, or the file."""
    unit = diagnosis.incident.unit
    return f"{unit} on {diagnosis.where}" if unit and unit not in diagnosis.where else diagnosis.where


def answer_of(diagnosis: Diagnosis) -> Answer:
    """The first thing to read."""
    waiting = diagnosis.waiting
    if diagnosis.findings:
        finding = diagnosis.findings[0]
        seen = f"Seen: {waiting.headline}. " if waiting is not None else ""
        return Answer(
            finding.certainty.value, finding.title, seen + _SURE[finding.certainty], finding.cause,
            finding.component or "",
        )  # fmt: skip
    if waiting is not None:
        return Answer("waiting", waiting.headline, _STATES.get(waiting.state, waiting.state))
    event = diagnosis.incident.primary_event
    if diagnosis.incident.is_failure and event is not None:
        remark = (
            f"This is a failure of {diagnosis.outside}, which the catalogue does not cover: it knows NVIDIA GPUs."
            if diagnosis.outside
            else "The cause is not in the catalogue; this is the first fatal event, and not necessarily the root."
        )
        return Answer("unknown", shortened(event.text.partition("\n")[0], 300), remark)
    if not diagnosis.is_examined:
        return Answer("unknown", "Not enough could be examined to say anything")
    return Answer("fine", "No failure in what was examined")


def steps_of(finding: Finding) -> tuple[Step, ...]:
    """The remedies, as they are to be carried out."""
    return tuple(map(step_of, finding.remedies))


def cited(diagnosis: Diagnosis) -> Iterator[Place]:
    """Every place that the page points at."""
    for evidence in _evidence(diagnosis):
        if evidence.place is not None:
            yield evidence.place
    incident = diagnosis.incident
    for event in incident.events:
        if event.id == incident.primary or (event.is_fatal and not event.is_echo):
            yield event.place
            yield Place(event.place.source, event.span.log, event.span.first)
    for swallowed in diagnosis.source.swallowed if diagnosis.source is not None else ():
        for seen in swallowed.seen:
            yield seen.place


def _evidence(diagnosis: Diagnosis) -> Iterator[Evidence]:
    for finding in diagnosis.findings:
        for link in finding.chain:
            yield from _of_link(link)
        yield from finding.evidence
        yield from finding.against
    for excluded in diagnosis.ruled_out:
        yield from excluded.evidence
    yield from diagnosis.before
    if diagnosis.waiting is not None:
        yield from diagnosis.waiting.evidence
    for fact in diagnosis.facts[:MOST_FACTS]:
        yield fact.evidence


def _of_link(link: Link) -> Iterator[Evidence]:
    for evidence in (link.evidence, link.installed):
        if evidence is not None:
            yield evidence


def _known(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    """The facts that a reader wants beside the answer."""
    incident = diagnosis.incident
    by_key = {fact.key: fact.value for fact in diagnosis.facts}
    if incident.engine:
        version = by_key.get(f"packages.{incident.engine}")
        yield "Engine", f"{incident.engine} {version}" if version else incident.engine
    if incident.unit:
        yield "Unit", incident.unit
    gpu, capability = by_key.get("gpu"), by_key.get("cc")
    if gpu or capability:
        yield "GPU", f"{gpu} ({capability})" if gpu and capability else str(gpu or f"compute capability {capability}")
    for key, name in (("driver", "Driver"), ("cuda_toolkit", "CUDA toolkit"), ("torch", "torch")):
        if by_key.get(key):
            yield name, str(by_key[key])
    event = incident.primary_event
    if event is not None and event.time is not None:
        yield "Failed at", _moment(event)
    if incident.lives > 1:
        yield "Lives in the log", f"{incident.lives}; this is the last complete one"


def _moment(event: Event) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(event.time))


def _typed_where(diagnosis: Diagnosis) -> str:
    """Where the commands are to be typed, when that is not plainly this shell."""
    setting = setting_of(diagnosis)
    is_for_root = setting.kind == "systemd" and not setting.is_user_unit
    return ", ".join(filter(None, (f"on {setting.host}" if setting.host else "", "as root" if is_for_root else "")))


def _others(diagnosis: Diagnosis) -> Iterator[Others]:
    others = diagnosis.findings[1:]
    groups = (
        ("A second problem, beside this one", tuple(each for each in others if each.is_independent)),
        ("What follows from it", tuple(each for each in others if each.consequence_of)),
        (
            "What else it could be",
            tuple(each for each in others if not each.is_independent and not each.consequence_of),
        ),
    )
    for title, findings in groups:
        if findings:
            yield Others(title, findings)


def _rivals(diagnosis: Diagnosis) -> tuple[str, ...]:
    if not diagnosis.findings:
        return ()
    named = {each.cause for each in diagnosis.findings}
    return tuple(each for each in diagnosis.findings[0].rivals if each not in named)


def grouped(facts: tuple[Fact, ...]) -> tuple[FactGroup, ...]:
    """Facts by the first part of their keys, those without one first."""
    groups: dict[str, list[tuple[str, str, Evidence, str]]] = {}
    for fact in facts[:MOST_FACTS]:
        first, dot, _ = fact.key.partition(".")
        whose = "" if fact.subject == "host" else fact.subject
        row = (shortened(fact.key, 200), shortened(said(fact.key, fact.value), LONGEST_FACT), fact.evidence, whose)
        groups.setdefault(first if dot else "", []).append(row)
    return tuple(FactGroup(name, tuple(rows)) for name, rows in sorted(groups.items()))


def _sections(diagnosis: Diagnosis, parts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What the page holds: anchor and title."""
    if parts["pictures"] or diagnosis.waiting is not None or (parts["primary"] is not None and not parts["finding"]):
        yield "how", "How it happened" if parts["finding"] is not None else "What was seen"
    if parts["steps"]:
        yield "remedies", "What to do"
    if parts["memory"]:
        yield "memory", "Where the memory goes"
    if parts["timeline"] is not None:
        yield "timeline", "Time line"
    if parts["excerpt"] is not None:
        yield "source", "In the source"
    if parts["matrix"] is not None:
        yield "binaries", "Binaries and GPUs"
    if parts["others"] or parts["rivals"] or diagnosis.ruled_out or diagnosis.decides is not None:
        yield "doubts", "What else, and what is not known"
    if diagnosis.facts:
        yield "environment", "Environment"
    if diagnosis.investigation.steps:
        yield "investigation", "How it was found out"
    if any(log.lines for log in parts["logs"].logs):
        yield "log", "Log"
