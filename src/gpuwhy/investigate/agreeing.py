"""Weighs what a rule says against the source that is really installed; where they disagree the finding is less sure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gpuwhy.diagnosis import Judgement
from gpuwhy.investigate.source import LINES_READ, Questioner, lines_of
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.finding import Certainty, Finding, Link
from gpuwhy.model.source import SourceAnswer
from gpuwhy.targets import Ask

_LESS = {Certainty.PROVEN: Certainty.LIKELY, Certainty.LIKELY: Certainty.POSSIBLE}


def weighed(judgement: Judgement, answer: SourceAnswer | None, source: Questioner) -> Judgement:
    """The judgement with what speaks against its first finding in the installed source.

    A link that nobody saw, and that the installed file does not have, lowers the certainty by a step. One that the log
    shows stays as it was: the file was changed since, and that is told. Files were read before; nothing is fetched.
    """
    if not judgement.findings:
        return judgement
    first, *others = judgement.findings
    contradicted = list(_contradicted(first, source))
    unseen = [link for link in contradicted if not _is_seen(link)]
    is_current = not (answer and answer.disagreements)
    against = [_evidence(link, is_current) for link in contradicted]
    notes = list(_of_other_files(answer))
    if not against and not notes:
        return judgement
    certainty = _LESS.get(first.certainty, first.certainty) if unseen and is_current else first.certainty
    changed = msgspec.structs.replace(
        first, certainty=certainty, against=(*first.against, *against), notes=(*first.notes, *notes)
    )
    return msgspec.structs.replace(judgement, findings=(changed, *others))


def _of_other_files(answer: SourceAnswer | None) -> Iterator[str]:
    """What the innermost frame says that differs."""
    for each in answer.disagreements[-1:] if answer else ():
        yield f"The log is not of the source that is installed now: {each}"


def _contradicted(finding: Finding, source: Questioner) -> Iterator[Link]:
    """The links whose file could be read to its end, and which it does not show."""
    open_links = [link for link in finding.chain if link.source is not None and link.installed is None]
    paths = sorted({link.source.path for link in open_links if link.source is not None})
    replies = source.ask([Ask("read", path, 1, LINES_READ) for path in paths]) if paths else []
    whole = {
        path for path, reply in zip(paths, replies, strict=False) if reply.status == "ok" and _is_whole(reply.value)
    }
    yield from (link for link in open_links if link.source is not None and link.source.path in whole)


def _is_whole(value: object) -> bool:
    return 0 < len(lines_of(value)) < LINES_READ


def _is_seen(link: Link) -> bool:
    return link.evidence is not None and link.evidence.standing is not Standing.INFERRED


def _evidence(link: Link, is_current: bool) -> Evidence:
    check = link.source
    path, text = (check.path, check.text) if check is not None else ("", "")
    when = "" if is_current else ", and the traceback is not of these files either"
    return Evidence(
        f"the installed source has no line with {text[:120]!r}: it is another release, or was changed{when}",
        place=Place("file", path),
    )
