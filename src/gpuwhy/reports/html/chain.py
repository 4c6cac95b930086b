"""The causal chain as a picture: what was seen on top, each box standing on the reason for it, the cause at the foot."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gpuwhy.model.evidence import Standing
from gpuwhy.model.finding import Link
from gpuwhy.reports.html.inert import inert
from gpuwhy.reports.html.text_width import width, wrapped
from gpuwhy.reports.sections import begun

WIDE, NARROW = 460, 320
"""Pixels of the picture beside its evidence, and on a phone."""
_SIZE, _LEADING = 14.0, 20
_SMALL = 11.0
_MARGIN = 16
_GAP = 34
"""Between two boxes: room for the arrow and the word beside it."""
_MOST_LINES = 5


class Node(msgspec.Struct, frozen=True):
    """A box. ``number`` counts from the cause, as the terminal's report does; ``lines`` stand on the base lines ``base``."""

    number: int
    kind: str
    """``cause``, ``symptom``, ``step``, ``swallowed`` or ``inferred``: how it is drawn."""
    tag: str
    title: str
    place: str
    lines: tuple[tuple[float, str], ...]
    y: float
    height: float


class Arrow(msgspec.Struct, frozen=True):
    """From the box above (an outcome) to the one below (its reason)."""

    top: float
    bottom: float


class Picture(msgspec.Struct, frozen=True):
    """All boxes, what was seen first."""

    name: str
    width: int
    height: float
    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]


def pictures(chain: Sequence[Link]) -> tuple[Picture, ...]:
    """The picture for a wide window and for a phone; nothing of a chain without links."""
    return tuple(_picture(name, size, chain) for name, size in (("wide", WIDE), ("narrow", NARROW)) if chain)


def is_inferred(link: Link) -> bool:
    """Whether nobody saw it."""
    return link.evidence is None or link.evidence.standing is Standing.INFERRED


def _picture(name: str, size: int, chain: Sequence[Link]) -> Picture:
    nodes: list[Node] = []
    arrows: list[Arrow] = []
    y = 1.0
    for number, link in reversed(tuple(enumerate(chain, 1))):
        if nodes:
            arrows.append(Arrow(y - _GAP + 2, y - 2))
        node = _node(number, link, len(chain), size, y)
        nodes.append(node)
        y += node.height + _GAP
    return Picture(name, size, y - _GAP + 1, tuple(nodes), tuple(arrows))


def _node(number: int, link: Link, length: int, size: int, y: float) -> Node:
    room = size - 2 * _MARGIN - 6
    said = wrapped(inert(begun(link.statement)), room, _SIZE, _MOST_LINES)
    shown = link.evidence if link.evidence is not None and link.evidence.place is not None else link.installed
    place = inert(str(shown.place)) if shown is not None and shown.place is not None else ""
    base = y + 24.0
    lines = []
    for line in said:
        base += _LEADING
        lines.append((base, line))
    height = base - y + (26 if place else 12)
    kind, tag = _kind(number, link, length)
    short = _ending(place, room)
    return Node(number, kind, tag, begun(link.statement), short, tuple(lines), y, height)


def _kind(number: int, link: Link, length: int) -> tuple[str, str]:
    role = "root cause" if number == 1 else "what was seen" if number == length else ""
    if link.is_swallowed:
        return "swallowed", f"{role}: swallowed by the program" if role else "swallowed by the program"
    if is_inferred(link):
        return "inferred", f"{role}: inferred, not seen" if role else "inferred, not seen"
    return ("cause" if number == 1 else "symptom" if number == length else "step"), role or "seen"


def _ending(place: str, room: float) -> str:
    """The end of a path says most: file and line."""
    if width(place, _SMALL) <= room:
        return place
    kept = place[-120:]
    while kept and width("…" + kept, _SMALL) > room:
        kept = kept[1:]
    return "…" + kept
