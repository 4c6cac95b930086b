"""What the ranks of a process group were in when their watchdogs ended them, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from gpuwhy.model.event import Event


def compared(events: Sequence[Event]) -> list[Event]:
    """``events`` with what every rank was in (``ranks``) on each watchdog's event of a group, and who differs (``odd``).

    Ranks of one group at one sequence number must be in the same collective with the same sizes; at different numbers
    the one with the lowest is behind.
    """
    groups: dict[str, list[Event]] = {}
    for event in events:
        if event.tool == "nccl" and {"sequence", "rank"} <= event.detail.keys() and event.kind == "crash":
            groups.setdefault(event.detail.get("group", ""), []).append(event)
    told: dict[int, dict[str, str]] = {}
    for members in groups.values():
        if len({event.detail["rank"] for event in members}) > 1:
            detail = _comparison(members)
            told.update({id(event): detail for event in members})
    return [
        msgspec.structs.replace(event, detail={**event.detail, **told[id(event)]}) if id(event) in told else event
        for event in events
    ]


def _comparison(members: Sequence[Event]) -> dict[str, str]:
    by_rank = {event.detail["rank"]: _state(event) for event in reversed(members)}
    ranks = sorted(by_rank, key=int)
    detail = {"ranks": "; ".join(f"{rank}: {_worded(by_rank[rank])}" for rank in ranks)}
    counts = Counter(by_rank.values())
    if len(counts) == 1:
        return detail
    sequences = {int(state[0]) for state in counts}
    if len(sequences) > 1:
        odd = [rank for rank in ranks if int(by_rank[rank][0]) == min(sequences)]
    else:
        usual, times = counts.most_common(1)[0]
        odd = [rank for rank in ranks if by_rank[rank] != usual] if times * 2 > len(ranks) else []
    return detail | ({"odd": ", ".join(odd)} if odd else {}) | {"differ": "yes"}


def _state(event: Event) -> tuple[str, str, str]:
    return event.detail["sequence"], event.detail.get("collective", ""), event.detail.get("numel_in", "")


def _worded(state: tuple[str, str, str]) -> str:
    sequence, collective, numel = state
    return f"#{sequence} {collective}" + (f" of {numel}" if numel else "")


def odd_one(failure: Event, life: Sequence[Event]) -> Event | None:
    """The rank that is in another collective than the rest, when ``failure`` is another rank's word on that."""
    odd = failure.detail.get("odd", "").split(", ")[0]
    if not odd or odd == failure.detail.get("rank"):
        return None
    group = failure.detail.get("group")
    for event in life:
        if event.detail.get("rank") == odd and event.detail.get("group") == group and "odd" in event.detail:
            return event
    return None
