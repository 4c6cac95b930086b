"""What the frames of an incident tell of the releases that ran: facts where nothing else tells, notes where it differs.

A traceback from a wheel stands on lines that few releases have. A fork, an editable checkout or a build from a branch
matches none, and then nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, structs
from packaging.version import InvalidVersion, Version

from gpuwhy.investigate.record import Record
from gpuwhy.knowledge.releases_by_frames import Match, releases_of
from gpuwhy.model.event import Event, Frame
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.model.incident import Incident

FRAMES_FOR_RANGE = 2
FRAMES_FOR_RELEASE = 3
"""So many distinct frames must agree before a range, or one release, is stated.

One frame can stand by chance where another release has the same line; a build between two releases can differ from both
in files of which there is no frame.
"""
_SHOWN = 6


class Dating(Struct, frozen=True):
    """The facts with what the frames add, and notes on what they contradict."""

    facts: Facts
    notes: tuple[str, ...] = ()


def dated(incident: Incident, facts: Facts, record: Record) -> Dating:
    """Add what the frames tell to ``facts``; what is known already stays as it is."""
    matches = _matches(incident)
    if not matches:
        return Dating(facts)
    found: dict[str, Fact] = {}
    notes = []
    with record.step("which releases are the frames of", "tables of published wheels") as step:
        for match in matches.values():
            known = _known(match.package, facts)
            if known is None:
                fact = _fact(match, incident)
                found |= {fact.key: fact} if fact is not None else {}
            elif _contradicts(match, known):
                notes.append(_note(match, known))
        step.found = "; ".join(f"{match.package}: {described(match) or 'none'}" for match in matches.values())
        step.changed = "; ".join(notes) or ", ".join(found)
    return Dating(Facts(found).merged(facts), tuple(notes))


def described(match: Match) -> str:
    """The releases in words: `0.6.11.post1 to 0.6.12`, `0.5.15`, `0.33.0 or newer`; empty when they say nothing.

    A pre-release is named only where no final release fits.
    """
    finals = [release for release in match.known if not Version(release).is_prerelease]
    fitting = [release for release in match.releases if release in finals]
    order = finals if fitting else list(match.known)
    runs: list[list[str]] = []
    for release in fitting or match.releases:
        if runs and order.index(release) == order.index(runs[-1][-1]) + 1:
            runs[-1].append(release)
        else:
            runs.append([release])
    if not runs or (match.is_oldest and match.is_newest):
        return ""
    words = [run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    if match.is_oldest:
        words[0] = f"{runs[0][-1]} or older"
    if match.is_newest:
        words[-1] = f"{runs[-1][0]} or newer"
    return ", ".join(words[:_SHOWN]) + (" and others" if len(words) > _SHOWN else "")


def _matches(incident: Incident) -> dict[str, Match]:
    """The packages of which every frame of this life fits one release; else, of the first fatal event."""
    primary = incident.primary_event
    everywhere = releases_of(_frames(_of_this_life(incident)))
    if primary is None or all(match.releases for match in everywhere.values()):
        return everywhere
    return releases_of(_frames([primary])) | {name: match for name, match in everywhere.items() if match.releases}


def _of_this_life(incident: Incident) -> Iterator[Event]:
    earlier = set(incident.before)
    return (event for event in incident.events if event.id not in earlier)


def _frames(events: Iterable[Event]) -> Iterator[Frame]:
    return (frame for event in events for exception in event.exceptions for frame in exception.frames)


def _known(package: str, facts: Facts) -> Fact | None:
    """What is known of a package, also that it is absent."""
    for key in _keys(package):
        fact = facts.get(key)
        if isinstance(fact, Fact):
            return fact
    return None


def _keys(package: str) -> tuple[str, ...]:
    """The keys of its version, first the one that a new fact gets."""
    return ("torch", "packages.torch") if package == "torch" else (f"packages.{package}",)


def _fact(match: Match, incident: Incident) -> Fact | None:
    words = described(match)
    if not words or len(match.agreeing) < FRAMES_FOR_RANGE:
        return None
    is_one = _is_one(match, words)
    others = [release for release in match.releases if release != words] if is_one else []
    only = f" (or {' or '.join(others)}) only" if others else " only" if is_one else ""
    of_how_many = f"of the {len(match.known)} releases from {match.known[0]} to {match.known[-1]}"
    statement = f"{len(match.agreeing)} frames match {match.package} {words}{only}, {of_how_many}"
    quote, place = _shown(match.agreeing[0], incident)
    evidence = Evidence(statement, quote, place, Standing.DERIVED)
    if is_one and len(match.agreeing) >= FRAMES_FOR_RELEASE:
        return Fact(_keys(match.package)[0], words, evidence)
    return Fact(f"release_range.{match.package}", words, evidence)


def _is_one(match: Match, words: str) -> bool:
    """Whether one release is left, its own pre-releases aside, and none that the table lacks can fit as well."""
    if match.is_oldest or match.is_newest or words not in match.releases:
        return False
    return all(Version(release).base_version == Version(words).base_version for release in match.releases)


def _shown(frame: Frame, incident: Incident) -> tuple[str, Place | None]:
    """The line of a frame as Python prints it, and where its event stands."""
    quote = f'File "{frame.path}", line {frame.line}, in {frame.function}'
    for event in incident.events:
        if frame in _frames([event]):
            return quote, _line_of(quote, event, incident)
    return quote, None


def _line_of(quote: str, event: Event, incident: Incident) -> Place:
    for log in incident.logs:
        if log.name == event.span.log:
            for line in log.lines:
                if event.span.first <= line.number <= event.span.last and quote in line.text:
                    return structs.replace(event.place, line=line.number)
    return event.place


def _contradicts(match: Match, known: Fact) -> bool:
    """Whether a stated version is a release of the table that the frames exclude, in favour of others."""
    version = _release(known.value)
    return (
        version is not None
        and len(match.agreeing) >= FRAMES_FOR_RANGE
        and bool(match.releases)
        and version in [Version(release) for release in match.known]
        and version not in [Version(release) for release in match.releases]
    )


def _release(value: object) -> Version | None:
    """A whole version number without its local part (`+cu128`); None for a shortened one, a range, or none."""
    if not isinstance(value, str):
        return None
    try:
        version = Version(Version(value).public)
    except InvalidVersion:
        return None
    return version if len(version.release) >= 3 else None


def _note(match: Match, known: Fact) -> str:
    source = known.evidence.place.source if known.evidence.place is not None else ""
    is_given = known.evidence.standing is Standing.GIVEN or source == "facts"
    how = "given" if is_given else "installed" if source in ("file", "command") else "stated"
    return (
        f"{len(match.agreeing)} frames of the traceback are not those of {match.package} {known.value} as {how}; "
        f"they match {described(match) or ', '.join(match.releases[:_SHOWN])}"
    )
