"""A fleet as its analysis sees it: who is alike, who deviates in what, and what that can cause. No logic."""

from __future__ import annotations

import msgspec


class FleetFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What ``check`` or ``diagnose`` (``source``) say of nodes; ``do`` is the smallest change that they propose.

    ``nodes`` counts those of the group or outlier that have it.
    """

    source: str
    cause: str
    certainty: str
    title: str
    component: str = ""
    do: str = ""
    nodes: int = 0


class Deviation(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact in which nodes differ from the majority of their pool.

    ``kind`` and ``causes`` are those of :mod:`gpuwhy.investigate.change_kinds`; ``usual`` is the majority's value, which
    ``usual_nodes`` have; ``differing`` nodes have any other. ``is_suspected``: a cause that such a fact can bring about was
    found on these nodes and not on the majority.
    """

    key: str
    kind: str
    value: str
    usual: str
    usual_nodes: int
    differing: int
    causes: tuple[str, ...] = ()
    is_suspected: bool = False
    score: float = 0.0


class Outlier(msgspec.Struct, frozen=True, omit_defaults=True):
    """Nodes that deviate together, in the same facts. ``findings`` are those that the majority of the pool does not have.

    ``score`` orders outliers: how rare the deviations are times what they can cause. It has no unit.
    """

    pool: str
    nodes: tuple[str, ...]
    deviations: tuple[Deviation, ...] = ()
    findings: tuple[FleetFinding, ...] = ()
    score: float = 0.0


class NodeGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """Nodes of a pool that are equal in all that matters. ``keys`` are the facts in which they deviate; none: the majority."""

    number: int
    nodes: tuple[str, ...]
    is_majority: bool = False
    keys: tuple[str, ...] = ()
    findings: tuple[FleetFinding, ...] = ()


class UsualFact(msgspec.Struct, frozen=True):
    """What the majority of a pool has, and how many nodes that is."""

    key: str
    kind: str
    value: str
    nodes: int


class Mixed(msgspec.Struct, frozen=True):
    """A fact for which no value has a majority: ``values`` with their counts, the commonest first."""

    key: str
    kind: str
    distinct: int
    values: tuple[tuple[str, int], ...]


class Unseen(msgspec.Struct, frozen=True):
    """Facts that could not be looked at on some nodes, which is no difference: the reason, once."""

    why: str
    nodes: tuple[str, ...]
    keys: tuple[str, ...]


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that are comparable: the same models of GPU and the same examined service. ``alike`` of them do not deviate."""

    name: str
    nodes: int
    alike: int
    groups: tuple[NodeGroup, ...]
    usual: tuple[UsualFact, ...] = ()
    mixed: tuple[Mixed, ...] = ()
    unseen: tuple[Unseen, ...] = ()


class NotCollected(msgspec.Struct, frozen=True):
    """Nodes without a usable snapshot, by what became of them."""

    status: str
    reason: str
    nodes: tuple[str, ...]


class RankFailure(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one node of a job failed: ``time`` in seconds since the epoch by the clock of all, ``moved`` by how many seconds
    the node's own clock was corrected."""

    node: str
    text: str
    time: float | None = None
    place: str = ""
    moved: float = 0.0


class JobFailure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Nodes that failed together, as one incident. ``first`` is where it began; the others, in time, are what followed.

    ``is_sure`` false: the clocks of the nodes could not be compared, and the order rests on each node's own.
    """

    unit: str
    nodes: int
    first: RankFailure
    followed: tuple[RankFailure, ...] = ()
    findings: tuple[FleetFinding, ...] = ()
    is_sure: bool = True
    notes: tuple[str, ...] = ()


class FleetReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a folder of snapshots says of a fleet. ``outliers`` come in the order of their score.

    ``compared`` nodes had a snapshot that could be read, ``failing`` of them a failure in their logs; ``judged`` is how many
    different hosts ``check`` and ``diagnose`` had to look at for that.
    """

    folder: str
    nodes: int
    compared: int
    failing: int
    judged: int
    facts: int
    pools: tuple[Pool, ...]
    outliers: tuple[Outlier, ...]
    not_collected: tuple[NotCollected, ...] = ()
    jobs: tuple[JobFailure, ...] = ()
    notes: tuple[str, ...] = ()
