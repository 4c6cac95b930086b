"""A labelled case for ``tests/cases`` from what was examined and the right answer; the format is that of tests/cases/FORMAT.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import yaml

from gpuwhy.causes import catalogue
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Log
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Finding
from gpuwhy.redaction import Redactor
from gpuwhy.reports.neutral import plain
from gpuwhy.snapshot.anonymising import stand_ins

MOST_LINES = 400
"""Lines of a case: more is cut to what stands around the events and what states a fact."""
_BEFORE, _AFTER = 8, 3
"""Lines that are kept around an event."""
_COLLECTED_ONLY = ("environment_complete", "toolkit_resolved.", "loading.", "server_args.", "release_range.", "service.", "files.", "binary_runs.", "failing_services")  # fmt: skip
"""Facts that a person would not give, or that say more of a machine than of the failure."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The right answer, by a person. Empty fields are filled from what the diagnosis found for this cause, where it did."""

    id: str
    cause: str
    why: str
    title: str = ""
    source: str = ""
    component: str = ""
    decisive_line: str = ""
    host_fact: str = ""
    remedies: tuple[dict[str, str], ...] = ()
    fixes: tuple[str, ...] = ()
    wrong_fixes: tuple[str, ...] = ()
    confirmed_by: str = "reporter"


class CaseError(ValueError):
    """The case would not be one. The message says what to change."""


def case_of(diagnosis: Diagnosis, answer: Answer, *, needs_host: bool) -> dict[str, Any]:
    """The case as a mapping, its keys in order, without secrets and names. ``needs_host``: the report alone does not decide.

    Raises CaseError when there is no text, or the decisive line is not in it.
    """
    lines = list(_kept_lines(diagnosis))
    if not lines:
        raise CaseError("there is no line of a log in it, so there is nothing to label")
    finding = next((each for each in diagnosis.findings if each.cause == answer.cause), None)
    facts = {fact.key: fact.value for fact in diagnosis.facts if _can_be_given(fact)}
    clean = _cleaner([*lines, *_texts(facts)], diagnosis, facts)
    report = "\n".join(clean(line) for line in lines) + "\n"
    decisive = clean(answer.decisive_line) if answer.decisive_line else _decisive(finding, report, clean)
    if decisive and decisive not in report:
        raise CaseError(f"the decisive line is not in the report as it is kept: {decisive}")
    known: dict[str, Any] = _value(facts, clean)
    entry = catalogue().get(answer.cause)
    return {
        "id": answer.id,
        "source": answer.source or "own report",
        "title": answer.title or (finding.title if finding is not None else entry.summary if entry is not None else answer.cause),
        "quality": "message-only" if len(lines) <= 3 else "verbatim",
        "rebuilt": False,
        "gpu": known.get("gpu"),
        "cc": known.get("cc"),
        "environment": {key.removeprefix("packages."): value for key, value in known.items() if key in ("driver", "cuda_toolkit", "torch", "python") or key.startswith("packages.")},
        "report": report,
        "truth": {
            "cause": answer.cause,
            "accept": [],
            "component": answer.component or (finding.component if finding is not None else None),
            "why": answer.why,
            "decisive_line": decisive or None,
            "secondary_lines": _secondary(diagnosis, report, decisive, clean),
            "needs_host": needs_host,
            "host_fact": answer.host_fact or None,
            "remedies": [dict(each) for each in answer.remedies] or _remedies(finding),
            "fixes": list(answer.fixes),
            "wrong_fixes": list(answer.wrong_fixes),
            "confirmed_by": answer.confirmed_by,
        },
        **({"given_host": known} if needs_host else {}),
    }  # fmt: skip


def written(case: dict[str, Any]) -> str:
    """The case as YAML, its report as a block that can be read."""
    text: str = yaml.dump(case, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return text


def _kept_lines(diagnosis: Diagnosis) -> Iterator[str]:
    for log in diagnosis.incident.logs:
        numbers = _kept_numbers(log, diagnosis)
        seen: set[tuple[int, str]] = set()
        for line in log.lines:
            if line.number in numbers and (line.number, line.raw) not in seen:
                seen.add((line.number, line.raw))
                yield plain(line.raw).rstrip()


def _kept_numbers(log: Log, diagnosis: Diagnosis) -> set[int]:
    numbers = {line.number for line in log.lines}
    if len(numbers) <= MOST_LINES:
        return numbers
    spans = [event.span for event in diagnosis.incident.events if event.span.log == log.name]
    wanted = [number for span in spans for number in range(span.first - _BEFORE, span.last + _AFTER + 1)]
    wanted += [fact.evidence.place.line for fact in diagnosis.facts if fact.evidence.place is not None and fact.evidence.place.path == log.name and fact.evidence.place.line is not None]  # fmt: skip
    # where even that is too much the end of it is what failed
    return set(sorted(numbers & set(wanted))[-MOST_LINES:])


class _Cleaner:
    """Takes secrets and names out of a text."""

    def __init__(self, texts: Sequence[str], hosts: Iterable[str], versions: Iterable[str]) -> None:
        self._redactor = Redactor()
        for text in texts:
            self._redactor.text(text)
        self._without_names = stand_ins(texts, hosts=hosts, versions=versions)

    def __call__(self, text: str) -> str:
        return self._without_names(self._redactor.text(text))


def _cleaner(texts: Sequence[str], diagnosis: Diagnosis, facts: dict[str, Any]) -> _Cleaner:
    hosts = {
        event.process.host for event in diagnosis.incident.events if event.process is not None and event.process.host
    }
    versions = [value for key, value in facts.items() if isinstance(value, str) and not key.startswith("env.")]
    return _Cleaner(texts, hosts, versions)


def _can_be_given(fact: Fact) -> bool:
    if fact.key.startswith(_COLLECTED_ONLY):
        return False
    is_plain = fact.value is None or isinstance(fact.value, (str, int, float, bool))
    return is_plain or (isinstance(fact.value, list) and all(isinstance(each, str) for each in fact.value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _value(value: Any, clean: _Cleaner) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: _value(each, clean) for key, each in value.items()}
    return [_value(each, clean) for each in value] if isinstance(value, list) else value


def _decisive(finding: Finding | None, report: str, clean: _Cleaner) -> str:
    """The first line that the finding quotes and the report holds."""
    for evidence in finding.evidence if finding is not None else ():
        quote = clean(plain(evidence.quote.partition("\n")[0])).strip()
        if quote and quote in report:
            return quote
    return ""


def _secondary(diagnosis: Diagnosis, report: str, decisive: str, clean: _Cleaner) -> list[str]:
    """The headlines of echoes: they stand in the log and are no cause."""
    lines = [
        clean(plain(event.text.partition("\n")[0])).strip() for event in diagnosis.incident.events if event.is_echo
    ]
    return [line for line in dict.fromkeys(lines) if line and line in report and line not in decisive and decisive not in line]  # fmt: skip


def _remedies(finding: Finding | None) -> list[dict[str, str]]:
    found = [each for each in (finding.remedies if finding is not None else ()) if each.is_sure][:3]
    return [{"kind": each.kind, "name": each.name, **({"value": each.value} if each.value else {})} for each in found]


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
