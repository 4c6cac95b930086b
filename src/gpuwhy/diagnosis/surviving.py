"""Findings about what the service survived: signs before it served, or before it worked on.

Every start has warnings that would be the cause if the start had failed. Once the program answers, what was said before
has not stopped it; and where nothing failed at all, a mere possibility answers no question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuwhy.logs.beginnings import PASTED_LINES
from gpuwhy.logs.working import Work
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.model.incident import Incident


def parted(findings: Sequence[Finding], incident: Incident) -> tuple[list[Finding], list[str]]:
    """The findings that can be why something failed, and the causes of those that were survived."""
    if not findings or _is_told(incident):
        return list(findings), []
    work = Work(incident.logs)
    kept: list[Finding] = []
    survived: list[str] = []
    for finding in findings:
        is_idle = not incident.is_failure and finding.certainty is Certainty.POSSIBLE and _is_whole_log(incident)
        if is_idle or _is_of_before(finding, incident) or _was_survived(finding, incident, work):
            survived.append(finding.cause)
        else:
            kept.append(finding)
    return kept, survived


def _is_told(incident: Incident) -> bool:
    """Whether somebody says that it hangs or answers wrongly: then the program may seem at work."""
    primary = incident.primary_event
    return primary is not None and primary.tool in ("hang", "output")


def _is_whole_log(incident: Incident) -> bool:
    """Whether there is more than somebody pastes who means the warning in it."""
    return sum(bool(line.text.strip()) for log in incident.logs for line in log.lines) > PASTED_LINES or any(
        event.kind in ("start", "ready") for event in incident.events
    )


def _is_of_before(finding: Finding, incident: Incident) -> bool:
    """Whether it only explains what came before a life in which nothing failed."""
    return not incident.is_failure and bool(finding.explains) and set(finding.explains) <= set(incident.before)


def _was_survived(finding: Finding, incident: Incident, work: Work) -> bool:
    """Whether all that the finding rests on lies before the program's last work, and none of it ended anything."""
    explained = [event for event in incident.events if event.id in finding.explains]
    if any(event.is_fatal or event.id == incident.primary for event in explained):
        return False
    lines = list(_lines(finding, incident))
    return bool(lines) and all(0 < line < work.last(log) for log, line in lines)


def _lines(finding: Finding, incident: Incident) -> Iterator[tuple[str, int]]:
    """Log and number of the last lines of the events that a finding explains, and of what it quotes first."""
    names = {log.name for log in incident.logs}
    for event in incident.events:
        if event.id in finding.explains:
            yield event.span.log, event.span.last
            yield from ((place.path, place.line or 0) for place in event.repeats if place.path in names)
    quoted = finding.evidence[:1] if finding.explains else finding.evidence
    for evidence in quoted:
        if evidence.place is not None and evidence.place.path in names:
            yield evidence.place.path, evidence.place.line or 0
