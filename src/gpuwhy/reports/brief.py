"""The answer of a report on one screen: the chain with its places, the first thing to do, the rest by name.

What is left out here is counted, and ``-v`` shows it (:mod:`gpuwhy.reports.full`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.finding import Finding, Link
from gpuwhy.model.remedy import Remedy
from gpuwhy.reports.condition import brief_rows
from gpuwhy.reports.remedy_words import change_of
from gpuwhy.reports.row import Row
from gpuwhy.reports.sections import marks_of, section, typed_where

_QUOTE = 150
"""Characters of a quoted line."""
_LISTED = 3
_WAYS = 2
_NAMES = 60
"""Characters of a list of names; at least one is shown."""


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
        yield from _other_ways(finding.remedies[1:])


def _link(number: int, link: Link, told: list[Place]) -> Iterator[Row]:
    """A link on one line with the place in the program; the line of the log is quoted where it is another than before."""
    seen = link.evidence if link.evidence is not None and link.evidence.standing is not Standing.INFERRED else None
    installed = link.installed.place if link.installed is not None and link.installed != link.evidence else None
    at = f" ({short(installed)})" if installed is not None else ""
    style = "swallowed" if link.is_swallowed else ""
    yield Row(f"{number}. {link.statement}{marks_of(link)}{at}", 2, style, 3, installed)
    if seen is None or (seen.place is not None and told[-1:] == [seen.place]):
        return
    yield from _quoted(seen, 5)
    if seen.place is not None:
        told.append(seen.place)


def _quoted(evidence: Evidence, indent: int) -> Iterator[Row]:
    quote = evidence.quote.partition("\n")[0]
    cut = quote if len(quote) <= _QUOTE else quote[: _QUOTE - 3] + "..."
    place = f"{short(evidence.place)}: " if evidence.place is not None else ""
    if place or cut:
        yield Row(f"{place}{cut}", indent, "quote", 2, evidence.place)


def short(place: Place) -> str:
    """``sglang.log:67``: of a log that was read only the file's name, as the answer above names it in full."""
    text = str(place)
    return text.rpartition("/")[2] if place.source == "log" else text


def _at(evidence: Evidence) -> str:
    return f" ({short(evidence.place)})" if evidence.place is not None else ""


def _first(diagnosis: Diagnosis, finding: Finding) -> Iterator[Row]:
    first = finding.remedies[0]
    where = typed_where(diagnosis)
    yield from section("What to do first" + (f" ({where})" if where and first.commands else ""))
    change = change_of(first)
    yield Row(f"{change}{_doubt(first)}", 2, "answer", 2)
    if change != first.summary:
        yield Row(first.summary, 2, hang=2)
    for command in first.commands:
        yield Row(command, 4, "command")
    if first.cost:
        yield Row(f"cost: {first.cost}; risk {first.risk}", 2, "note", 2)
    if first.check:
        number = f" (one of {len(first.check)}, -v: all)" if len(first.check) > 1 else ""
        yield Row(f"check that it helped{number}:", 2, "note")
        yield Row(_telling(first.check), 4, "command")


def _telling(checks: Sequence[str]) -> str:
    """The last is the one that shows most; a line that starts with # is not run as it stands."""
    return next((each for each in reversed(checks) if not each.startswith("#")), checks[-1])


def _other_ways(remedies: Sequence[Remedy]) -> Iterator[Row]:
    if remedies:
        more = f"{_WAYS} of {len(remedies)}; " if len(remedies) > _WAYS else ""
        yield Row(f"Other ways, by size ({more}-v: with commands):", 0, "heading")
    for number, remedy in enumerate(remedies[:_WAYS], 2):
        yield Row(f"{number}. {change_of(remedy)}{_doubt(remedy)}", 2, hang=3)


def _doubt(remedy: Remedy) -> str:
    return "" if remedy.is_sure else "  (helps in some such cases)"


def _some(names: Sequence[str]) -> str:
    """The first names, as many as a line takes, and how many more."""
    shown: list[str] = []
    for name in names:
        if shown and sum(len(each) + 2 for each in shown) + len(name) > _NAMES:
            break
        shown.append(name)
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def other_rows(diagnosis: Diagnosis) -> Iterator[Row]:
    """What does not help, what was ruled out, what was not, and what would decide: a paragraph each."""
    rows = list(_others(diagnosis, diagnosis.findings[0]))
    if rows:
        yield Row("")
    yield from rows


def _others(diagnosis: Diagnosis, finding: Finding) -> Iterator[Row]:
    if finding.not_remedies:
        yield Row(f"Does not help: {_some([each.what for each in finding.not_remedies])}", hang=2)
    for excluded in diagnosis.ruled_out[:_LISTED]:
        yield Row(f"Ruled out: {excluded.cause}: {excluded.why}", hang=2)
    if len(diagnosis.ruled_out) > _LISTED:
        yield Row(f"Ruled out too: {_some([each.cause for each in diagnosis.ruled_out[_LISTED:]])}", hang=2)
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
    has_command = decides is not None and bool(decides.command)
    yield Row(f"Not known: {unknown}" + ("; the command that decides:" if has_command else ""), hang=2)
    if decides is not None and has_command:
        yield Row(decides.command, 4, "command")
