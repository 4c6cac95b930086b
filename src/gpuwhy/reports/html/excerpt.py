"""The source excerpt: the lines of installed code that are known to matter, file by file, in their order.

What the page has of a file are those lines, not the file: the guard that raised, the conditions on the way to it, the
handler that swallowed, the raise that it swallowed, and where the value comes from.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Frame
from gpuwhy.model.source import HiddenRaise, SourceAnswer, SourceLine, SwallowedException

_ORDER = ("guard", "swallow", "raise", "condition", "origin", "frame")
"""What a line is called when it is several things: the first of these."""
MOST_LINES = 60
_FRAMES = 8


class ExcerptLine(msgspec.Struct, frozen=True):
    """A line; ``number`` 0 where it is not known which. ``role`` is one of ``guard``, ``condition``, ``swallow``, ``raise``, ``origin``, ``frame``; ``has_gap``:
    lines between it and the one before are not here. ``is_quoted`` False: ``code`` says what the line does in our words."""

    number: int
    role: str
    code: str
    notes: tuple[str, ...] = ()
    function: str = ""
    is_quoted: bool = True
    has_gap: bool = False


class ExcerptFile(msgspec.Struct, frozen=True):
    """A file and its known lines."""

    path: str
    lines: tuple[ExcerptLine, ...]


class Excerpt(msgspec.Struct, frozen=True):
    """``is_installed``: read from the installed source; else it is what the traceback printed."""

    files: tuple[ExcerptFile, ...]
    is_installed: bool

    @property
    def has_told(self) -> bool:
        """Whether a line is of the releases that a rule knows, and was not seen here."""
        return not self.is_installed and any(not line.is_quoted for file in self.files for line in file.lines)


def excerpt_of(diagnosis: Diagnosis) -> Excerpt | None:
    """From the installed source where it was reached, else from the traceback; None where neither has a line."""
    source = diagnosis.source
    if source is not None and source.place is not None:
        return Excerpt(_files(tuple(_installed(source))), True)
    lines = [*_shown_links(diagnosis), *_frames(diagnosis)]
    return Excerpt(_files(tuple(lines)), False) if lines else None


def _installed(source: SourceAnswer) -> Iterator[tuple[str, ExcerptLine]]:
    place = source.place
    if place is None:
        return
    raised = f"raise {source.raises}(…)" if source.raises else ""
    yield _line(place, "guard", raised, "this is what failed" if not source.raises else "raises what was seen")
    for condition in source.conditions:
        if not condition.is_weak:
            yield place.path, ExcerptLine(condition.line, "condition", condition.text, ("must hold to come here",), place.function, False)  # fmt: skip
    for swallowed in source.swallowed[:6]:
        yield from _swallowed(swallowed)
    for step in source.origin:
        if step.place is not None and step.kind in ("write", "default", "definition", "return") and step.depth <= 2:
            yield _line(step.place, "origin", step.text, step.note or "the value comes from here")


def _swallowed(swallowed: SwallowedException) -> Iterator[tuple[str, ExcerptLine]]:
    caught = f"except {', '.join(swallowed.catches)}:" if swallowed.catches else "except:"
    seen = [f"logged, and seen at {seen.place}: {seen.text[:200]}" for seen in swallowed.seen[:2]]
    notes = [
        "swallows the exception and goes on" if seen else "could swallow; nothing in the log shows that it did",
        *seen,
        *((f"so this is not done: {swallowed.skips[:200]}",) if swallowed.skips else ()),
    ]
    yield _line(swallowed.place, "swallow" if seen else "origin", caught, *notes)
    shown = [each.raised_at for each in swallowed.seen if each.raised_at is not None]
    for hidden in shown[:3]:
        yield _hidden(hidden)


def _hidden(hidden: HiddenRaise) -> tuple[str, ExcerptLine]:
    why = " and ".join(each.text for each in hidden.conditions if not each.is_weak)
    said = ("the exception that was swallowed", *((f"raised when {why[:200]}",) if why else ()))
    return _line(hidden.place, "raise", f'raise {hidden.type}("{hidden.message}")', *said)


def _line(place: SourceLine, role: str, otherwise: str, *notes: str) -> tuple[str, ExcerptLine]:
    return place.path, ExcerptLine(
        place.line, role, (place.code or otherwise).strip(), tuple(notes), place.function, bool(place.code)
    )  # fmt: skip


def _shown_links(diagnosis: Diagnosis) -> Iterator[tuple[str, ExcerptLine]]:
    """Lines of the installed source that show a link of the chain; of one that was not reached, the text to look for."""
    for finding in diagnosis.findings[:1]:
        for link in finding.chain:
            shown = link.installed
            if shown is not None and shown.place is not None and shown.place.line is not None:
                role = "swallow" if link.is_swallowed else "origin"
                yield shown.place.path, ExcerptLine(shown.place.line, role, shown.quote.strip(), (link.statement,))
            elif link.source is not None:
                role = "swallow" if link.is_swallowed else "origin"
                yield link.source.path, ExcerptLine(0, role, link.source.text, (link.statement,), is_quoted=False)


def _frames(diagnosis: Diagnosis) -> Iterator[tuple[str, ExcerptLine]]:
    """The innermost frames of the exception that surfaced, the last one being the guard."""
    incident = diagnosis.incident
    events = [event for event in incident.events if event.exceptions and event.id not in incident.before]
    primary = next((event for event in events if event.id == incident.primary), events[0] if events else None)
    if primary is None:
        return
    raised = primary.exceptions[-1]
    frames: list[Frame] = [frame for frame in raised.frames if frame.line is not None][-_FRAMES:]
    for position, frame in enumerate(frames, 1 - len(frames)):
        role, notes = ("frame", ()) if position else ("guard", (f"raises {raised.type}",))
        yield (
            frame.path,
            ExcerptLine(frame.line or 0, role, frame.code.strip(), notes, frame.function, bool(frame.code)),
        )


def _files(lines: tuple[tuple[str, ExcerptLine], ...]) -> tuple[ExcerptFile, ...]:
    """Lines by file; a line that is several things once, with all that is said of it."""
    by_file: dict[str, dict[int, list[ExcerptLine]]] = {}
    for path, line in lines[:MOST_LINES]:
        home = next((known for known in by_file if _is_same(known, path)), path)
        by_file.setdefault(home, {}).setdefault(line.number, []).append(line)
    return tuple(ExcerptFile(path, tuple(_merged(_placed(found)))) for path, found in by_file.items())


def _placed(found: dict[int, list[ExcerptLine]]) -> dict[int, list[ExcerptLine]]:
    """The lines with those whose number is not known at the line that has their text, where one is here."""
    placed = {number: list(lines) for number, lines in found.items() if number}
    for line in found.get(0, ()):
        home = next(
            (
                number
                for number, lines in placed.items()
                if any(line.code and line.code in each.code for each in lines if each.is_quoted)
            ),
            0,
        )
        placed.setdefault(home, []).append(msgspec.structs.replace(line, number=home))
    return placed


def _merged(found: dict[int, list[ExcerptLine]]) -> Iterator[ExcerptLine]:
    previous = None
    for number in sorted(found):
        if not number:
            yield from found[number]
            continue
        same = sorted(found[number], key=lambda each: (_ORDER.index(each.role), not each.is_quoted))
        quoted = next((each for each in same if each.is_quoted and each.code), same[0])
        notes = tuple(dict.fromkeys(note for each in same for note in each.notes))
        function = next((each.function for each in same if each.function), "")
        gap = previous is not None and number > previous + 1
        yield ExcerptLine(number, same[0].role, quoted.code, notes, function, quoted.is_quoted, gap)
        previous = number


def _is_same(one: str, other: str) -> bool:
    """Whether two paths mean one file: one may be whole, the other as below site-packages."""
    return one == other or one.endswith("/" + other) or other.endswith("/" + one)
