"""Which deviations matter: how rare they are, times what the diagnosis says that they can cause."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gpuwhy.fleet.grouping import Compared, Differing
from gpuwhy.fleet.judging import Judged
from gpuwhy.investigate.change_kinds import KINDS, ChangeKind, kind_of
from gpuwhy.model.fleet import Deviation, FleetFinding, NodeGroup, Outlier

WITHOUT_CAUSE, OF_A_CAUSE, MOST_DANGEROUS = 0.3, 1.0, 2.0
"""Weights of a fact that no cause rests on, and of one that some do: more, the earlier its kind stands in ``KINDS``."""
SUSPECTED = 3.0
"""How much more a deviation counts whose cause was found on its nodes and not on the majority."""
COMPANIONS = 0.02
"""What each further deviation of the same nodes adds: packages of one release come by the dozen."""
_SURE = {"proven": 2.5, "likely": 1.8, "possible": 1.0}


class Ranked(msgspec.Struct, frozen=True):
    """The outliers of one pool, and its groups; ``alike`` nodes do not deviate at all."""

    outliers: tuple[Outlier, ...]
    groups: tuple[NodeGroup, ...]
    alike: int


def ranked(compared: Compared, names: Sequence[str], judged: Mapping[int, Judged]) -> Ranked:
    """The deviations of a pool in the order in which they deserve a look. ``judged`` is by number of node."""
    nodes = compared.members.nodes
    usual = _usual_findings(nodes, judged)
    own = {node: _own(judged.get(node), usual) for node in nodes}
    together: dict[tuple[int, ...], list[Differing]] = {}
    for each in compared.differing:
        together.setdefault(each.nodes, []).append(each)
    outliers = [_outlier(compared, names, members, differing, own) for members, differing in together.items()]
    deviating = {node for members in together for node in members}
    outliers += _failing_alone(compared, names, own, deviating)
    outliers.sort(key=lambda each: (-each.score, each.nodes))
    groups = _groups(compared, names, judged, own)
    return Ranked(tuple(outliers), groups, len(groups[0].nodes) if groups and groups[0].is_majority else 0)


_Cause = tuple[str, str]


def _cause(finding: FleetFinding) -> _Cause:
    return finding.cause, finding.component


def _usual_findings(nodes: Sequence[int], judged: Mapping[int, Judged]) -> frozenset[_Cause]:
    """What is found on most nodes is no mark of a few."""
    counted: Counter[_Cause] = Counter()
    for node in nodes:
        if node in judged:
            counted.update({_cause(each) for each in judged[node].findings})
    return frozenset(cause for cause, count in counted.items() if count * 2 > len(nodes))


def _own(judged: Judged | None, usual: frozenset[_Cause]) -> tuple[FleetFinding, ...]:
    return () if judged is None else tuple(each for each in judged.findings if _cause(each) not in usual)


def _outlier(
    compared: Compared,
    names: Sequence[str],
    members: tuple[int, ...],
    differing: list[Differing],
    own: Mapping[int, tuple[FleetFinding, ...]],
) -> Outlier:
    findings = _shared(members, own)
    causes = {each.cause for each in findings}
    deviations = sorted((_deviation(each, causes) for each in differing), key=lambda each: (-each.score, each.key))
    score = deviations[0].score * (1 + COMPANIONS * min(len(deviations) - 1, 10))
    return Outlier(
        compared.members.name, tuple(names[node] for node in members), tuple(deviations), findings, round(score, 3)
    )


def _deviation(differing: Differing, causes: set[str]) -> Deviation:
    kind = kind_of(differing.key)
    is_suspected = bool(causes.intersection(kind.causes))
    # a value that few have, of a fact in which few differ: what is changed everywhere bit by bit is no accident
    share = math.sqrt(len(differing.nodes) * differing.differing) / differing.seen
    score = rarity(share) * _weight(kind) * (SUSPECTED if is_suspected else 1.0)
    return Deviation(
        differing.key,
        kind.name,
        differing.value,
        differing.usual,
        differing.usual_nodes,
        differing.differing,
        kind.causes,
        is_suspected,
        round(score, 3),
    )


def rarity(share: float) -> float:
    """How much a share of the nodes stands out: 1 for a half, 6 for one in 64."""
    return max(0.0, -math.log2(max(share, 1e-9)))


@functools.cache
def _weight(kind: ChangeKind) -> float:
    if not kind.causes or kind.is_outcome:
        return WITHOUT_CAUSE
    return OF_A_CAUSE + (MOST_DANGEROUS - OF_A_CAUSE) * (1 - KINDS.index(kind) / len(KINDS))


def _shared(members: tuple[int, ...], own: Mapping[int, tuple[FleetFinding, ...]]) -> tuple[FleetFinding, ...]:
    """What is found on at least half of these nodes: the rest of them has it for another reason, or not."""
    return tuple(each for each in counted(own[node] for node in members) if each.nodes * 2 >= len(members))


def counted(findings: Iterable[Sequence[FleetFinding]]) -> list[FleetFinding]:
    """Each finding once, with the number of nodes that have it, the surest and commonest first."""
    first: dict[_Cause, FleetFinding] = {}
    numbers: Counter[_Cause] = Counter()
    for each in findings:
        for finding in each:
            first.setdefault(_cause(finding), finding)
            numbers[_cause(finding)] += 1
    found = [msgspec.structs.replace(finding, nodes=numbers[cause]) for cause, finding in first.items()]
    return sorted(found, key=lambda each: (each.source != "diagnose", -_SURE.get(each.certainty, 0), -each.nodes, each.cause))  # fmt: skip


def _failing_alone(
    compared: Compared,
    names: Sequence[str],
    own: Mapping[int, tuple[FleetFinding, ...]],
    deviating: set[int],
) -> list[Outlier]:
    """Nodes that are alike in every fact, and of which something is found all the same."""
    by_cause: dict[tuple[_Cause, ...], list[int]] = {}
    for node in compared.members.nodes:
        if node not in deviating and own[node]:
            by_cause.setdefault(tuple(sorted(map(_cause, own[node]))), []).append(node)
    found = []
    for members in by_cause.values():
        findings = counted(own[node] for node in members)
        weight = max(_SURE.get(each.certainty, 1.0) for each in findings)
        score = rarity(len(members) / len(compared.members.nodes)) * weight
        found.append(Outlier(compared.members.name, tuple(names[node] for node in members), (), tuple(findings), round(score, 3)))  # fmt: skip
    return found


def _groups(
    compared: Compared,
    names: Sequence[str],
    judged: Mapping[int, Judged],
    own: Mapping[int, tuple[FleetFinding, ...]],
) -> tuple[NodeGroup, ...]:
    """Nodes with the same deviations and the same findings of their own, the majority first."""
    of_node: dict[int, list[tuple[str, str]]] = {}
    for each in compared.differing:
        for node in each.nodes:
            of_node.setdefault(node, []).append((each.key, each.value))
    alike: dict[tuple[object, ...], list[int]] = {}
    for node in compared.members.nodes:
        alike.setdefault((*of_node.get(node, ()), *sorted(map(_cause, own[node]))), []).append(node)
    ordered = sorted(alike.items(), key=lambda item: (bool(item[0]), -len(item[1]), item[1]))
    return tuple(
        NodeGroup(
            number,
            tuple(names[node] for node in members),
            is_majority=not signature,
            keys=tuple(key for key, _ in of_node.get(members[0], ())),
            findings=tuple(counted(judged[node].findings for node in members if node in judged)),
        )
        for number, (signature, members) in enumerate(ordered)
    )
