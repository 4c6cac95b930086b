"""Weighs what a rule says against the source that is really installed; where they disagree the finding is less sure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gpuwhy.diagnosis import Judgement
from gpuwhy.investigate.source import LINES_READ, Questioner, lines_of
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.finding import Certainty, Finding, Link, Missing
from gpuwhy.model.incident import Incident
from gpuwhy.model.source import ReplayedSource, SourceAnswer
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


def with_proof(judgement: Judgement, answer: SourceAnswer | None, incident: Incident) -> Judgement:
    """The judgement with what the replay of the installed source says of its first finding.

    Where source, facts and log say the same, what was inferred on that way is so no longer, and the finding is proven if
    nothing was assumed and nothing speaks against it. Where the facts do not lead to the failure, that speaks against
    it, and it is a step less sure. A fact that the replay lacks is missing.
    """
    replay = answer.replay if answer is not None else None
    if replay is None:
        return judgement
    missing = _missing(replay)
    if not judgement.findings:
        return msgspec.structs.replace(judgement, decides=judgement.decides or missing)
    first, *others = judgement.findings
    if incident.primary not in first.explains:
        return judgement
    if replay.agreement in ("same", "partly"):
        first = _proven(first, replay)
    elif replay.agreement == "other":
        against = (
            *first.against,
            Evidence(f"{_REPLAYED}, {replay.why}", _facts(replay), _place(replay), Standing.DERIVED),
        )
        certainty = _LESS.get(first.certainty, first.certainty)
        first = msgspec.structs.replace(first, certainty=certainty, against=against)
    elif missing is not None and first.certainty is not Certainty.PROVEN:
        known = {each.key for each in first.missing}
        first = msgspec.structs.replace(
            first, missing=(*first.missing, *([missing] if missing.key not in known else []))
        )
    return msgspec.structs.replace(judgement, findings=(first, *others))


_REPLAYED = "replayed from the installed source with the facts of this host"


def _proven(finding: Finding, replay: ReplayedSource) -> Finding:
    evidence = Evidence(f"{_REPLAYED}: {replay.why}", _facts(replay), _place(replay), Standing.DERIVED)
    places = [
        *(each.place for each in replay.branches),
        *(each.place for each in replay.swallowed),
        *(each.at for each in replay.lines),
    ]
    files = {place.path for place in places}
    if replay.place is not None:
        files.add(replay.place.path)
    chain = tuple(
        msgspec.structs.replace(link, evidence=evidence) if not _is_seen(link) and _is_in(link, files) else link
        for link in finding.chain
    )
    is_proven = replay.is_proof and not finding.against and bool(chain) and all(map(_is_seen, chain))
    certainty = Certainty.PROVEN if is_proven else finding.certainty
    return msgspec.structs.replace(finding, chain=chain, certainty=certainty, evidence=(*finding.evidence, evidence))


def _facts(replay: ReplayedSource) -> str:
    return "; ".join(f"{each.what} = {' '.join(each.value.split())[:80]}" for each in replay.facts[-4:])


def _is_in(link: Link, files: set[str]) -> bool:
    """Whether the link is about a file that the replay went through, and the installed file shows it."""
    check = link.source
    return check is not None and link.installed is not None and any(check.path.endswith(f"/{path}") for path in files)


def _place(replay: ReplayedSource) -> Place | None:
    return Place("file", replay.place.path, replay.place.line) if replay.place is not None else None


def _missing(replay: ReplayedSource) -> Missing | None:
    """The fact that the replay stopped for, where a user can say how to get it."""
    if not replay.needs or not replay.command:
        return None
    where = f", asked at {replay.place}" if replay.place is not None else ""
    return Missing(replay.needs, replay.command, f"it decides whether the code comes to this failure{where}")
