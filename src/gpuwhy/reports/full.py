"""The answer of a report in full (``-v``): every remedy with its commands, all evidence, the facts and the questions."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.finding import Finding, Link, Missing
from gpuwhy.model.remedy import Remedy
from gpuwhy.reports import memory_chart
from gpuwhy.reports.condition import condition_rows
from gpuwhy.reports.fact_words import said
from gpuwhy.reports.remedy_words import change_of, survival_of
from gpuwhy.reports.row import Row
from gpuwhy.reports.sections import MANY, begun, begun_act, find_out, marks_of, section, to_find_out_first, typed_where


def answer_rows(diagnosis: Diagnosis, finding: Finding) -> Iterator[Row]:
    """How it happened with all evidence, and every remedy."""
    yield from section("How it happened")
    shown: set[Place | None] = set()
    for number, link in enumerate(finding.chain, 1):
        yield from _link(number, link, shown)
    yield from section("Evidence")
    for evidence in finding.evidence:
        yield Row(f"- {evidence.statement}", 2, hang=2)
        yield from quoted(evidence, 4)
    for evidence in finding.against:
        yield Row(f"- speaks against it: {evidence.statement}", 2, hang=2)
        yield from quoted(evidence, 4)
    for note in finding.notes:
        yield Row(note, 2, "note")
    if diagnosis.source is not None:
        yield from condition_rows(diagnosis.source)
    for use in finding.memory:
        yield Row("")
        yield from memory_chart.rows(use)
        yield from memory_chart.said_rows(use)
    yield from _remedies(finding, typed_where(diagnosis), to_find_out_first(diagnosis))


def _link(number: int, link: Link, shown: set[Place | None]) -> Iterator[Row]:
    """A link with its evidence; a line that was quoted for an earlier link is only pointed at."""
    yield Row(f"{number}. {begun(link.statement)}{marks_of(link)}", 2, "swallowed" if link.is_swallowed else "", 3)
    if link.installed is not None and link.installed != link.evidence:
        yield from quoted(link.installed, 5)
    if link.evidence is None or link.evidence.standing is Standing.INFERRED:
        return
    if link.evidence.place is not None and link.evidence.place.line is not None and link.evidence.place in shown:
        yield Row(f"shown by the same line, {link.evidence.place}", 5, "quote", 2)
    else:
        yield from quoted(link.evidence, 5)
    shown.add(link.evidence.place)


def quoted(evidence: Evidence, indent: int) -> Iterator[Row]:
    """Where a piece of evidence stands, and what stands there."""
    place = f"{evidence.place}: " if evidence.place is not None else ""
    quote = evidence.quote.partition("\n")[0]
    if place or quote:
        yield Row(f"{place}{quote[:240]}", indent, "quote", 2, evidence.place)


def _remedies(finding: Finding, where: str, asked: Missing | None) -> Iterator[Row]:
    if not finding.remedies:
        return
    first, *others = finding.remedies
    typed = f" ({where})" if where else ""
    if asked is not None:
        yield from section(f"What to do first{typed}")
        yield Row(begun_act(find_out(asked)), 2, "answer", 2)
        yield Row(asked.command, 7, "command")
    yield from section(
        ("Then, if that bears it out" if asked else "What to do first") + (typed if first.commands else "")
    )
    yield from _remedy(first, "", is_first=True)
    if others:
        yield from section("Other ways, from the smallest change to the largest")
        for number, remedy in enumerate(others, 2):
            yield from _remedy(remedy, f"{number}. ", is_first=False)
    if finding.not_remedies:
        yield from section("What does not help")
        for refused in finding.not_remedies:
            yield Row(f"- {refused.what}: {refused.why}", 2, hang=2)


def _remedy(remedy: Remedy, number: str, *, is_first: bool) -> Iterator[Row]:
    change = change_of(remedy)
    unsure = "" if remedy.is_sure else "  (helps in some such cases)"
    yield Row(f"{number}{change}{unsure}", 2, "answer" if is_first else "", 3)
    if change != remedy.summary:
        yield Row(remedy.summary, 5)
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


def other_rows(diagnosis: Diagnosis) -> Iterator[Row]:
    """What else it could be, what was ruled out and why, and what is not known."""
    yield from _rivals(diagnosis)
    yield from ruled_out_rows(diagnosis, is_full=True)
    yield from _unknown(diagnosis)


def _rivals(diagnosis: Diagnosis) -> Iterator[Row]:
    others = [each for each in diagnosis.findings[1:] if not each.is_independent and not each.consequence_of]
    named = {each.cause for each in diagnosis.findings[1:]}
    rivals = [each for each in diagnosis.findings[0].rivals if each not in named]
    if not others and not rivals:
        return
    yield from section("What else it could be")
    for finding in others:
        yield Row(f"- {finding.cause} ({finding.certainty.value}): {finding.title}", 2, hang=2)
    if rivals:
        yield Row(f"- not excluded either: {', '.join(rivals)}", 2, hang=2)


def ruled_out_rows(diagnosis: Diagnosis, *, is_full: bool) -> Iterator[Row]:
    """The causes whose signs were there and whose facts do not fit; ``is_full``: with the evidence."""
    if not diagnosis.ruled_out:
        return
    yield from section("Ruled out")
    for excluded in diagnosis.ruled_out[: None if is_full else MANY]:
        yield Row(f"- {excluded.cause}: {excluded.why}", 2, hang=2)
        if is_full:
            for evidence in excluded.evidence:
                yield from quoted(evidence, 4)


def _unknown(diagnosis: Diagnosis) -> Iterator[Row]:
    if diagnosis.decides is None:
        return
    yield from section("What is not known, and the one command that decides")
    for each in diagnosis.findings[0].missing:
        yield Row(f"- {each.key}" + (f": {each.why}" if each.why else ""), 2, hang=2)
    if diagnosis.decides.command:
        yield Row(diagnosis.decides.command, 4, "command")


def to_go_on_rows(diagnosis: Diagnosis) -> Iterator[Row]:
    """Without a finding: what to find out next, each with the command that gets it."""
    if diagnosis.decides is None:
        return
    yield from section("What is missing to go on, and the command that gets it")
    for each in diagnosis.to_go_on or (diagnosis.decides,):
        yield Row(f"- {each.key}: {each.why}", 2, hang=2)
        yield Row(each.command, 4, "command")


def fact_rows(diagnosis: Diagnosis) -> Iterator[Row]:
    if not diagnosis.facts:
        return
    yield from section("Facts used")
    for fact in diagnosis.facts:
        place = f"  [{fact.evidence.place}]" if fact.evidence.place is not None else ""
        shown = said(fact.key, fact.value)
        yield Row(f"{fact.key}: {shown[:160]}{place}", 2, hang=4)


def work_rows(diagnosis: Diagnosis) -> Iterator[Row]:
    yield from section("How it was found out")
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
