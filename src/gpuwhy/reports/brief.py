"""The answer of a report on one screen: the chain with its places, the first thing to do, the rest by name.

What is left out here is counted, and ``-v`` shows it (:mod:`gpuwhy.reports.full`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.finding import Finding, Link
from gpuwhy.model.remedy import Remedy
from gpuwhy.reports import memory_chart
from gpuwhy.reports.columns import cut_inside
from gpuwhy.reports.condition import brief_rows
from gpuwhy.reports.neutral import plain
from gpuwhy.reports.remedy_words import change_of
from gpuwhy.reports.row import Row
from gpuwhy.reports.sections import begun, begun_act, find_out, marks_of, section, to_find_out_first, typed_where

_QUOTE = 200
"""Columns of a quoted line."""
_ASKED = ("command", "file", "binary", "facts", "knowledge")
"""Sources of evidence that are no line of a log."""
_LINE = 76
"""Columns of a line on a screen of 80."""
_LISTED = 3
_REASONS = 2
_CHECK = 160
"""Characters of a check that is shown whatever shorter ones there are."""
_NAMES = 60
"""Characters of a list of names: what a line takes."""


def answer_rows(diagnosis: Diagnosis, finding: Finding) -> Iterator[Row]:
    """How it happened, and what to do first."""
    yield from section("How it happened")
    told: list[Place] = []
    for number, link in enumerate(finding.chain, 1):
        yield from _link(number, link, told)
    for evidence in () if finding.chain else finding.evidence[:_LISTED]:
        yield Row(f"- {evidence.statement}", 2, hang=2)
        yield from _quoted(evidence, 4)
    for evidence in finding.against:
        yield Row(f"- speaks against it: {evidence.statement}{_at(evidence)}", 2, hang=2, place=evidence.place)
    if diagnosis.source is not None:
        yield from brief_rows(diagnosis.source, {str(each.installed.place) for each in finding.chain if each.installed})
    if finding.remedies:
        yield from _first(diagnosis, finding)
    if finding.memory:
        first = finding.memory[0]
        yield from section("Where the memory goes" + (" (-v: in parts)" if first.basis == "computed" else ""))
        yield from memory_chart.short_rows(first)


def _link(number: int, link: Link, told: list[Place]) -> Iterator[Row]:
    """A link on one line with the place in the program; the line of the log is quoted where it is another than before."""
    seen = link.evidence if link.evidence is not None and link.evidence.standing is not Standing.INFERRED else None
    is_line = seen is not None and (seen.place is None or seen.place.source not in _ASKED)
    installed = link.installed.place if link.installed is not None and link.installed != link.evidence else None
    place = installed or (seen.place if seen is not None and not is_line else None)
    text = f"{number}. {begun(link.statement)}{marks_of(link)}"
    at = f" ({short(place)})" if place is not None else ""
    if place is not installed and len(text) + len(at) > _LINE:
        at = ""  # what was asked on the host is said in the sentence; -v names the question
    yield Row(f"{text}{at}", 2, "swallowed" if link.is_swallowed else "", 3, place)
    if seen is None or not is_line or (seen.place is not None and told[-1:] == [seen.place]):
        return
    yield from _quoted(seen, 5)
    if seen.place is not None:
        told.append(seen.place)


def _quoted(evidence: Evidence, indent: int) -> Iterator[Row]:
    quote = evidence.quote.partition("\n")[0]
    place = f"{short(evidence.place)}: " if evidence.place is not None else ""
    if place or quote:
        yield Row(f"{place}{cut_inside(plain(quote), _QUOTE)}", indent, "quote", 2, evidence.place)


def short(place: Place) -> str:
    """``sglang.log:67``, ``journal:26``, ``flashinfer/jit/core.py:109``: as far as it takes to find it; -v has the whole of it."""
    text = str(place)
    if text.startswith("journal of "):
        return f"journal:{place.line}" if place.line is not None else "journal"
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in text:
            return text.rpartition(folder)[2]
    return text.rpartition("/")[2] if place.source == "log" else text


def _at(evidence: Evidence) -> str:
    return f" ({short(evidence.place)})" if evidence.place is not None else ""


def _first(diagnosis: Diagnosis, finding: Finding) -> Iterator[Row]:
    first = finding.remedies[0]
    where = typed_where(diagnosis)
    typed = f" ({where})" if where else ""
    asked = to_find_out_first(diagnosis)
    if asked is not None:
        yield from section(f"What to do first{typed}")
        yield Row(begun_act(find_out(asked)), 2, "answer", 2)
        yield Row(asked.command, 4, "command")
    yield from section(
        ("Then, if that bears it out" if asked else "What to do first") + (typed if first.commands else "")
    )
    change = change_of(first)
    yield Row(f"{change}{_doubt(first)}", 2, "answer", 2)
    if change != first.summary:
        yield Row(_clause(first.summary), 2, hang=2)
    for command in first.commands:
        yield Row(command, 4, "command")
    if first.cost:
        yield Row(f"risk {first.risk}; cost: {_clause(first.cost)}", 2, "note", 2)
    if first.check:
        number = f" (one of {len(first.check)}, -v: all)" if len(first.check) > 1 else ""
        yield Row(f"check that it helped{number}:", 2, "note")
        yield Row(_telling(first.check), 4, "command")


def _telling(checks: Sequence[str]) -> str:
    """The last is the one that shows most, unless it is long; a line that starts with # is not run as it stands."""
    typed = [each for each in checks if not each.startswith("#")] or list(checks)
    return typed[-1] if len(typed[-1]) <= _CHECK else min(typed, key=len)


def _clause(sentence: str) -> str:
    """The sentence where it fits a line, else what stands before its first explanation."""
    return sentence if len(sentence) <= _LINE - 10 else re.split(r": |; | \(", sentence, maxsplit=1)[0]


def _doubt(remedy: Remedy) -> str:
    return "" if remedy.is_sure else " (may help)"


def _some(names: Sequence[str], between: str = ", ", most: int = _NAMES) -> str:
    """The first names, of ``most`` characters in all but at least one, and how many more."""
    shown: list[str] = []
    for name in names:
        if shown and sum(len(each) + 2 for each in shown) + len(name) > most:
            break
        shown.append(name)
    more = len(names) - len(shown)
    return between.join(shown) + (f" and {more} more" if more else "")


def other_rows(diagnosis: Diagnosis) -> Iterator[Row]:
    """What does not help, what was ruled out, what was not, and what would decide: a paragraph each."""
    rows = list(_others(diagnosis, diagnosis.findings[0]))
    if rows:
        yield Row("")
    yield from rows


def _beside(diagnosis: Diagnosis) -> Iterator[Row]:
    """Other findings that are no rivals of the first, and what came before and is no cause."""
    for title, members in (
        ("A second problem", [each for each in diagnosis.findings[1:] if each.is_independent]),
        ("Follows from it", [each for each in diagnosis.findings[1:] if each.consequence_of]),
    ):
        for other in members[:1]:
            more = f" (and {_some([each.cause for each in members[1:]])})" if members[1:] else ""
            yield Row(f"{title}: {other.cause} ({other.certainty.value}): {other.title}{more}", hang=2)
    if diagnosis.before:
        first, *earlier = diagnosis.before
        yield Row(f"Not the cause: {first.statement}" + (f" (+{len(earlier)})" if earlier else _at(first)), hang=2)


def _others(diagnosis: Diagnosis, finding: Finding) -> Iterator[Row]:
    ways = [f"{number}. {change_of(each)}{_doubt(each)}" for number, each in enumerate(finding.remedies[1:], 2)]
    if ways:
        yield Row(f"Other ways (-v: with commands): {_some(ways, '; ', 2 * _NAMES)}", hang=2)
    if finding.not_remedies:
        yield Row(f"Does not help: {_some([each.what for each in finding.not_remedies])}", hang=2)
    yield from _beside(diagnosis)
    if diagnosis.ruled_out:
        number = 1 if len(diagnosis.ruled_out) > _REASONS else _REASONS
        reasons = "; ".join(f"{each.cause}: {each.why}" for each in diagnosis.ruled_out[:number])
        rest = [each.cause for each in diagnosis.ruled_out[number:]]
        yield Row(f"Ruled out: {reasons}" + (f"; and {_some(rest)}" if rest else ""), hang=2)
    others = [each for each in diagnosis.findings[1:] if not each.is_independent and not each.consequence_of]
    named = {each.cause for each in diagnosis.findings}
    possible = [f"{each.cause} ({each.certainty.value})" for each in others]
    possible += [each for each in finding.rivals if each not in named]
    if possible:
        yield Row(f"Could still be: {_some(possible)}", hang=2)
    decides = diagnosis.decides
    if not finding.missing and decides is None:
        return
    unknown = _some([each.key for each in finding.missing] or [decides.key if decides is not None else ""])
    has_command = decides is not None and bool(decides.command) and to_find_out_first(diagnosis) is None
    yield Row(f"Not known: {unknown}" + ("; the command that decides:" if has_command else ""), hang=2)
    if decides is not None and has_command:
        yield Row(decides.command, 4, "command")
