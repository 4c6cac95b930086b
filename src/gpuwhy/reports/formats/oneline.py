"""One line for scripts and chat: what, how sure, which cause, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuwhy.reports.counting import counted
from gpuwhy.reports.neutral import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuwhy.investigate.checks.results import Forecast
    from gpuwhy.investigate.differences import Comparison
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.model.fleet import FleetReport
    from gpuwhy.model.inspection import Inspection
    from gpuwhy.reports.fit_answer import FitAnswer
    from gpuwhy.reports.interface import Detail

_LONGEST = 160
"""Characters of a sentence of others; our own are shorter."""
_NAMED = 3


def diagnosis(answer: Diagnosis, detail: Detail) -> str:  # noqa: ARG001
    """``WHERE: CERTAINTY CAUSE (COMPONENT): TITLE; do: CHANGE``, or what is known without a finding."""
    from gpuwhy.reports.remedy_words import change_of
    from gpuwhy.reports.sections import find_out, subject_of, to_find_out_first

    subject = subject_of(answer)
    primary = answer.incident.primary_event
    if answer.findings:
        first = answer.findings[0]
        component = f" ({first.component})" if first.component else ""
        asked = to_find_out_first(answer)
        act = find_out(asked) if asked is not None else change_of(first.remedies[0]) if first.remedies else ""
        do = f"; do: {act}" if act else ""
        return _line(f"{subject}: {first.certainty.value} {first.cause}{component}: {first.title}{do}")
    if answer.waiting is not None:
        return _line(f"{subject}: {answer.waiting.state}: {answer.waiting.headline}")
    if answer.incident.is_failure and primary is not None:
        return _line(f"{subject}: unrecognised: {_cut(primary.text.partition(chr(10))[0])}")
    if not answer.is_examined:
        return _line(f"{subject}: not examined: not enough could be examined to say anything")
    return _line(f"{subject}: ok: no failure in what was examined")


def forecast(answer: Forecast, detail: Detail) -> str:  # noqa: ARG001
    """``WHERE: N problems: CAUSE (CERTAINTY), …; N in order, N not checked``."""
    if not answer.is_examined:
        return _line(f"{answer.where}: not examined: not enough could be examined to say anything")
    causes = [f"{each.cause} ({each.certainty.value})" for each in answer.problems]
    found = counted(len(causes), "problem") + f": {_some(causes)}" if causes else "ok: no problem found"
    return _line(f"{answer.where}: {found}; {len(answer.passed)} in order, {len(answer.unchecked)} not checked")


def inspection(answer: Inspection, detail: Detail) -> str:  # noqa: ARG001
    """``N files for COMPUTE CAPABILITY: N do not run there: FILE, …``; those that would not load, where that was asked."""
    wanted = f" for compute capability {answer.compute_capability}" if answer.compute_capability else ""
    failing = [each.path for each in answer.files if each.verdict is not None and each.verdict.runs is False]
    unloadable = [each.path for each in answer.files if each.loading is not None and each.loading.loads is False]
    parts = [
        f"{counted(len(paths), 'file')} {what}: {_some(paths)}"
        for paths, what in ((failing, "cannot run there"), (unloadable, "cannot be loaded"))
        if paths
    ]
    if answer.unreadable:
        parts.append(f"{counted(len(answer.unreadable), 'path')} unreadable: {_some(answer.unreadable)}")
    return _line(f"{counted(len(answer.files), 'file')} inspected{wanted}: {'; '.join(parts) or 'ok'}")


def comparison(answer: Comparison, detail: Detail) -> str:  # noqa: ARG001
    """``BEFORE to AFTER: N of N facts differ: KEY, …``."""
    keys = [each.key for each in answer.changes]
    found = f"{len(keys)} of {counted(answer.compared, 'fact')} differ" + (f": {_some(keys)}" if keys else "")
    return _line(f"{answer.before.name} to {answer.after.name}: {found}")


def fleet(answer: FleetReport, detail: Detail) -> str:  # noqa: ARG001
    """``N of N alike; NODE: FACT VALUE (others VALUE); TITLE; N more outliers``."""
    from gpuwhy.reports.fleet import headline

    more = f"; {counted(len(answer.outliers) - 1, 'more outlier')}" if len(answer.outliers) > 1 else ""
    return _line(f"{answer.folder}: {headline(answer)}{more}")


def estimate(answer: FitAnswer, detail: Detail) -> str:  # noqa: ARG001
    """``MODEL on N x GPU, ENGINE: VERDICT: REASON``."""
    from gpuwhy.reports.fit import subject_of

    return _line(f"{subject_of(answer.estimate)}: {answer.estimate.verdict.value}: {answer.estimate.reason}")


def _line(text: str) -> str:
    return plain(text) + "\n"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(_cut(name) for name in names[:_NAMED]) + more
