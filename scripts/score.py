"""Scores the diagnosis on a folder of labelled cases (``tests/cases/FORMAT.md``, "Scoring").

Run: ``python -m scripts.score [FOLDER] [--json] [--failures]``. Each case is diagnosed twice in this process: from its
report alone, and from its report with the facts of its ``given_host`` (without those it marks as synthetic). The first
table holds the cases whose cause is in the catalogue, the second all of them.

| column | counts |
| --- | --- |
| top-1 | the first finding is the cause; a ``needs_host`` case read from its report alone is also right when the cause is ranked and a missing fact names a key of its ``given_host`` |
| accepted | top-1, with the ids an expert could defend |
| top-3 | the cause or an accepted id among the first three |
| component | of the top-1: the finding of the cause names the part that a fix must name |
| false | said ``proven``, and the cause is neither the right one nor accepted; or a ``needs_host`` case ``proven`` by the report alone |
| evidence | the first quote of the first finding lies in the decisive line, or holds it (cases that have one) |
| secondary | that quote is one of the lines that must not be named as the cause |
| primary | the incident begins with the decisive line: the primary event, or the warning that was found to be the cause, holds it |
| prim.sec | the primary event's headline is one of the lines that must not be named as the cause |
| remedy@1, @3 | the first remedy, or one of the first three, matches a listed one by kind and name (values may not contradict each other) |
| applicable | the first remedy can be carried out as it is printed (``scripts.executable``); cases with a remedy |
| useless | one of the first three is a fix that the case calls wrong (``wrong_fixes``, see ``scripts.wrong_fixes``), and none that it lists |
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from gpuwhy.causes import catalogue
from gpuwhy.investigate import diagnose_log
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.fact import Facts
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import prescribe
from gpuwhy.snapshot.given import given
from scripts.executable import is_executable
from scripts.wrong_fixes import is_useless

CASES = Path(__file__).parents[1] / "tests" / "cases"
MODES = ("report", "facts")
"""From the report alone; from the report and the facts of ``given_host``."""
_DIRECTIONS = frozenset({"newer", "older", "rebuild", "remove", "lower", "higher", "unset", "reinstall"})


@dataclass(frozen=True)
class Score:
    """How one case went in one mode. None: does not apply (no decisive line, no remedy listed, cause not found)."""

    case: str
    mode: str
    quality: str
    cause: str
    family: str
    needs_host: bool
    got: tuple[str, ...]
    certainty: str
    top1: bool
    accepted: bool
    top3: bool
    component: bool | None
    false_certainty: bool
    evidence: bool | None
    secondary: bool
    remedy1: bool | None
    remedy3: bool | None
    primary: bool | None = None
    primary_secondary: bool = False
    useless: bool = False
    applicable: bool | None = None

    @property
    def in_catalogue(self) -> bool:
        return self.family != OUTSIDE


OUTSIDE = "not in the catalogue"


def read_cases(folder: Path) -> list[dict[str, Any]]:
    """The cases of a folder, by name. Raises ValueError when there is none, or when one is no case."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    cases = []
    for path in sorted(folder.glob("*.yaml")):
        case = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
        if not isinstance(case, dict) or not {"id", "report", "truth"} <= case.keys():
            raise ValueError(f"{path} is no case: it needs id, report and truth")
        cases.append(case)
    if not cases:
        raise ValueError(f"{folder} holds no case (*.yaml)")
    return cases


def score_case(case: dict[str, Any], mode: str) -> Score:
    """Diagnose a case in a mode, and compare."""
    truth = case["truth"]
    facts = _given_facts(case) if mode == "facts" else None
    diagnosis = prescribe(diagnose_log(case["report"].encode(), "report", facts))
    cause, accept = truth["cause"], {truth["cause"], *(truth.get("accept") or ())}
    got = tuple(finding.cause for finding in diagnosis.findings)
    first = diagnosis.findings[0] if diagnosis.findings else None
    needs_host = bool(truth.get("needs_host"))
    asks = mode == "report" and needs_host and cause in got and _asks_for(diagnosis, case.get("given_host") or {})
    is_right = (bool(got) and got[0] == cause) or asks
    own = next((finding for finding in diagnosis.findings if finding.cause == cause), None)
    is_proven = first is not None and first.certainty is Certainty.PROVEN
    entry = catalogue().get(cause)
    remedies = truth.get("remedies") or ()
    proposed = first.remedies if first is not None else ()
    decisive = truth.get("decisive_line")
    return Score(
        case=case["id"],
        mode=mode,
        quality=case.get("quality", ""),
        cause=cause,
        family=entry.family if entry is not None else OUTSIDE,
        needs_host=needs_host,
        got=got[:3],
        certainty=first.certainty.value if first is not None else "",
        top1=is_right,
        accepted=is_right or (bool(got) and got[0] in accept),
        top3=any(each in accept for each in got[:3]) or asks,
        component=own.component == truth.get("component") if is_right and own is not None else None,
        false_certainty=is_proven and (got[0] not in accept or (mode == "report" and needs_host)),
        evidence=_cites(first, [decisive]) if decisive else None,
        secondary=_cites(first, truth.get("secondary_lines") or ()),
        remedy1=_matches_any(proposed[:1], remedies) if remedies else None,
        remedy3=_matches_any(proposed[:3], remedies) if remedies else None,
        primary=_begins_with(diagnosis, [decisive]) if decisive else None,
        applicable=is_executable(proposed[0]) if proposed else None,
        primary_secondary=_begins_with(diagnosis, truth.get("secondary_lines") or (), is_whole=True),
        useless=any(
            is_useless(remedy, map(str, truth.get("wrong_fixes") or ())) and not _matches_any([remedy], remedies)
            for remedy in proposed[:3]
        ),
    )


def _begins_with(diagnosis: Diagnosis, lines: Iterable[str], *, is_whole: bool = False) -> bool:
    """Whether the incident begins with one of ``lines``: its primary event holds it, or the warning that was found to be
    the cause. ``is_whole``: the headline itself is that line; a traceback also holds lines that are not its point."""
    incident = diagnosis.incident
    primary = incident.primary_event
    said = [] if primary is None else [primary.text.partition("\n")[0] if is_whole else primary.text]
    if primary is not None and not is_whole:
        log = next((log for log in incident.logs if log.name == primary.span.log), None)
        said += [
            line.text for line in (log.lines if log else ()) if primary.span.first <= line.number <= primary.span.last
        ]
    first = diagnosis.findings[0] if diagnosis.findings else None
    places = {evidence.place for evidence in first.evidence[:1]} if first else set()
    said += [event.text for event in incident.events if event.kind == "warning" and event.place in places]
    squeezed = [_squeezed(text) for text in said if text.strip()]
    wanted = [_squeezed(line) for line in lines if line.strip()]
    return any(line in text or text in line for line in wanted for text in squeezed)


def _given_facts(case: dict[str, Any]) -> Facts:
    """The facts of ``given_host``, through the interface of ``--facts``, without the keys marked as synthetic."""
    host = case.get("given_host") or {}
    synthetic = set(host.get("synthetic") or ())
    return given({key: value for key, value in host.items() if key != "synthetic" and key not in synthetic}).facts


def _asks_for(diagnosis: Diagnosis, host: dict[str, Any]) -> bool:
    """Whether a missing fact is one of the host's: the same key, or the same group (``packages.``, ``env.``)."""
    wanted = {key for key in host if key != "synthetic"}
    groups = {key.partition(".")[0] for key in wanted}
    asked = {missing.key for finding in diagnosis.findings for missing in finding.missing}
    return any(key in wanted or key.partition(".")[0] in groups for key in asked)


def _cites(finding: Finding | None, lines: Iterable[str]) -> bool:
    if finding is None or not finding.evidence:
        return False
    quote = _squeezed(finding.evidence[0].quote)
    squeezed = [_squeezed(line) for line in lines if line.strip()]
    return bool(quote) and any(quote in line or line in quote for line in squeezed)


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _matches_any(proposed: Sequence[Remedy], listed: Iterable[dict[str, Any]]) -> bool:
    wanted = list(listed)
    return any(
        remedy.kind == each.get("kind")
        and _name(remedy.name) == _name(str(each.get("name")))
        and is_compatible(remedy.value, str(each["value"]) if each.get("value") is not None else "")
        for remedy in proposed
        for each in wanted
    )


def _name(name: str) -> str:
    return name.lower().replace("_", "-").lstrip("-")


def is_compatible(proposed: str, listed: str) -> bool:
    """False when both are directions that differ, or version constraints without a common version.

    Other values are not compared: kind and name decide, and two numbers or two paths may both be right.
    """
    if proposed in _DIRECTIONS and listed in _DIRECTIONS:
        return proposed == listed
    ranges = _constraint(proposed), _constraint(listed)
    if ranges[0] is None or ranges[1] is None:
        return True
    both = ranges[0] & ranges[1]
    named = {Version(spec.version.removesuffix(".*")) for spec in both}
    return any(both.contains(version, prereleases=True) for version in (*named, *_between(named)))


def _constraint(value: str) -> SpecifierSet | None:
    """``>=12.9`` as a constraint; None for anything that is none."""
    try:
        return SpecifierSet(value) if re.match(r"\s*[<>=!~]", value) else None
    except InvalidSpecifier:
        return None


def _between(versions: Iterable[Version]) -> Iterator[Version]:
    """Versions just below and above the named ones, where an open range could have its only members."""
    for version in versions:
        *head, last = version.release
        yield Version(f"{version.base_version}.1")
        if last:
            yield Version(".".join(map(str, [*head, last - 1])) + ".999")


COLUMNS: tuple[tuple[str, Callable[[Score], bool | None]], ...] = (
    ("top-1", lambda score: score.top1),
    ("accepted", lambda score: score.accepted),
    ("top-3", lambda score: score.top3),
    ("component", lambda score: score.component),
    ("false", lambda score: score.false_certainty),
    ("evidence", lambda score: score.evidence),
    ("secondary", lambda score: score.secondary),
    ("primary", lambda score: score.primary),
    ("prim.sec", lambda score: score.primary_secondary),
    ("remedy@1", lambda score: score.remedy1),
    ("remedy@3", lambda score: score.remedy3),
    ("applicable", lambda score: score.applicable),
    ("useless", lambda score: score.useless),
)
COUNTED = frozenset({"false", "secondary", "prim.sec", "useless"})
"""Errors: shown as a number, since a share would flatter."""


def rate(scores: Iterable[Score], column: str) -> tuple[int, int]:
    """How many of the scores to which a column applies have it, and how many it applies to."""
    value = dict(COLUMNS)[column]
    values = [answer for answer in map(value, scores) if answer is not None]
    return sum(values), len(values)


def groups(scores: Sequence[Score]) -> Iterator[tuple[str, list[Score]]]:
    """The scores as the table shows them: all, by need of the host, by quality, by family."""
    yield "all", list(scores)
    yield "needs host", [score for score in scores if score.needs_host]
    for quality in sorted({score.quality for score in scores}):
        yield f"quality: {quality}", [score for score in scores if score.quality == quality]
    for family in sorted({score.family for score in scores}):
        yield f"family: {family}", [score for score in scores if score.family == family]


def table(scores: Sequence[Score], title: str) -> str:
    """One table: a row per group and mode."""
    lines = [title, f"{'':<40}{'mode':<8}{'cases':>6}" + "".join(f"{name:>11}" for name, _ in COLUMNS)]
    for name, members in groups(scores):
        for mode in MODES:
            chosen = [score for score in members if score.mode == mode]
            if chosen:
                label = name if mode == MODES[0] else ""
                lines.append(
                    f"{label[:39]:<40}{mode:<8}{len(chosen):>6}"
                    + "".join(f"{_cell(chosen, c):>11}" for c, _ in COLUMNS)
                )
    return "\n".join(lines)


def _cell(scores: Sequence[Score], column: str) -> str:
    hits, of = rate(scores, column)
    if column in COUNTED:
        return str(hits)
    return f"{100 * hits / of:.0f}%" if of else "-"


def calibration(scores: Sequence[Score]) -> str:
    """How often a first finding is right (or accepted) at each certainty."""
    lines = [f"{'Certainty of the first finding':<40}{'mode':<8}{'said':>6}{'right':>11}{'accepted':>11}"]
    for certainty in Certainty:
        for mode in MODES:
            said = [score for score in scores if score.mode == mode and score.certainty == certainty.value]
            right = sum(score.got[0] == score.cause for score in said)
            accepted = sum(score.accepted for score in said)
            label = certainty.value if mode == MODES[0] else ""
            shares = [f"{100 * count / len(said):.0f}%" if said else "-" for count in (right, accepted)]
            lines.append(f"{label:<40}{mode:<8}{len(said):>6}{shares[0]:>11}{shares[1]:>11}")
    return "\n".join(lines)


def failure(score: Score) -> str:
    """One line that says what went wrong, ``""`` when nothing did."""
    faults = [] if score.accepted else ["cause"]
    faults += ["false certainty"] if score.false_certainty else []
    faults += ["component"] if score.component is False else []
    faults += ["evidence"] if score.evidence is False else []
    faults += ["secondary line cited"] if score.secondary else []
    faults += ["remedy"] if score.remedy3 is False else []
    faults += ["useless remedy"] if score.useless else []
    got = ", ".join(score.got) or "nothing"
    return (
        f"{score.case} ({score.mode}): {', '.join(faults)}; is {score.cause}, got {got} {score.certainty}"
        if faults
        else ""
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="score", description="Score the diagnosis on a folder of labelled cases.")
    parser.add_argument("folder", nargs="?", type=Path, default=CASES)
    parser.add_argument("--json", action="store_true", help="one JSON document with the rates and every score")
    parser.add_argument("--failures", action="store_true", help="what went wrong, case by case")
    options = parser.parse_args(arguments)
    try:
        cases = read_cases(options.folder)
    except (OSError, ValueError, yaml.YAMLError) as error:
        sys.stderr.write(f"score: {error}\n")
        return 2
    scores = [score_case(case, mode) for case in cases for mode in MODES]
    ours = [score for score in scores if score.in_catalogue]
    if options.json:
        print(json.dumps(_document(scores, ours), indent=1))
        return 0
    print(
        table(ours, f"Causes in the catalogue ({len(catalogue())})") if ours else "no case of a cause in the catalogue"
    )
    print("\n" + table(scores, "All causes"))
    print("\n" + calibration(scores))
    if options.failures:
        print("\nFailures, causes in the catalogue")
        print("\n".join(line for line in map(failure, ours) if line) or "none")
        outside = [score for score in scores if not score.in_catalogue and score.got and not score.accepted]
        print("\nOther causes, taken for one in the catalogue")
        print("\n".join(map(failure, outside)) or "none")
    return 0


def _document(scores: Sequence[Score], ours: Sequence[Score]) -> dict[str, Any]:
    def rates(members: Sequence[Score]) -> dict[str, dict[str, dict[str, int]]]:
        found: dict[str, dict[str, dict[str, int]]] = {}
        for mode in MODES:
            chosen = [score for score in members if score.mode == mode]
            found[mode] = {name: dict(zip(("hits", "of"), rate(chosen, name), strict=True)) for name, _ in COLUMNS}
        return found

    return {
        "catalogue": {name: rates(members) for name, members in groups(ours)},
        "all": {name: rates(members) for name, members in groups(scores)},
        "scores": [vars(score) for score in scores],
    }


if __name__ == "__main__":
    sys.exit(main())
