"""Nodes that are comparable, what the majority of them has, and who has something else."""

from __future__ import annotations

from collections import Counter

import msgspec

from gpuwhy.fleet.columns import NOT_THERE, Columns

LEAST_SHARE, LEAST_NODES = 0.08, 4
"""A pool of its own needs so many nodes, and such a share of the fleet; rarer ones deviate from the largest pool."""
MANY_KINDS = 8
"""So many different values without a majority are the nature of the fact, and none of them is told."""


class Members(msgspec.Struct, frozen=True):
    """The nodes of a pool, by number. ``name`` says in what they are comparable."""

    name: str
    nodes: tuple[int, ...]


class Differing(msgspec.Struct, frozen=True):
    """Nodes with a ``value`` of ``key`` that is not the majority's; ``seen`` nodes have any, ``differing`` another."""

    key: str
    value: str
    nodes: tuple[int, ...]
    usual: str
    usual_nodes: int
    seen: int
    differing: int


class Compared(msgspec.Struct, frozen=True):
    """A pool, fact by fact: the majority's value with its nodes, who differs, what has no majority, what nobody could see."""

    members: Members
    usual: dict[str, tuple[str, int]]
    differing: tuple[Differing, ...]
    mixed: dict[str, tuple[tuple[str, int], ...]]
    unseen: dict[tuple[str, tuple[int, ...]], list[str]]


def pools(columns: Columns) -> list[Members]:
    """The pools, the largest first: by the models of the GPUs and the examined unit."""
    by_key: dict[tuple[str, str], list[int]] = {}
    for node, pool in enumerate(columns.pools):
        by_key.setdefault(pool, []).append(node)
    ordered = sorted(by_key.items(), key=lambda item: (not item[0][0], -len(item[1]), item[0]))
    if not ordered:
        return []
    (first_key, first), *others = ordered
    kept: list[tuple[tuple[str, str], list[int]]] = [(first_key, list(first))]
    for key, nodes in others:
        if key[0] and len(nodes) >= max(LEAST_NODES, LEAST_SHARE * len(columns.names)):
            kept.append((key, nodes))
        else:
            _home(kept, key)[1].extend(nodes)
    return [Members(_named(key, len(kept) > 1), tuple(sorted(nodes))) for key, nodes in kept]


def _home(kept: list[tuple[tuple[str, str], list[int]]], key: tuple[str, str]) -> tuple[tuple[str, str], list[int]]:
    """Where nodes that are too few for a pool belong: with the same GPUs, else the same service, else the largest."""
    return next((each for each in kept if key[0] and each[0][0] == key[0]), None) or next(
        (each for each in kept if key[1] and each[0][1] == key[1]), kept[0]
    )


def _named(key: tuple[str, str], is_one_of_several: bool) -> str:
    gpus, unit = key
    parts = [gpus, unit.removesuffix(".service")]
    return ", ".join(part for part in parts if part) or ("without a GPU that answers" if is_one_of_several else "all")


def compare_pool(columns: Columns, members: Members) -> Compared:
    """What the majority of ``members`` has, and who differs."""
    pool = frozenset(members.nodes)
    usual: dict[str, tuple[str, int]] = {}
    differing: list[Differing] = []
    mixed: dict[str, tuple[tuple[str, int], ...]] = {}
    unseen: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for key, values in columns.values.items():
        held = _held(values, pool, len(columns.names))
        if not held:
            continue
        missing = _missing(columns, key, held, pool, unseen)
        if missing:
            held[NOT_THERE] = tuple(sorted({*held.get(NOT_THERE, ()), *missing}))
        seen = sum(map(len, held.values()))
        value, nodes = max(held.items(), key=lambda item: (len(item[1]), item[0]))
        if len(nodes) * 2 <= seen:
            if seen > 1:
                mixed[key] = tuple(
                    Counter({each: len(having) for each, having in held.items()}).most_common(MANY_KINDS)
                )
            continue
        usual[key] = (value, len(nodes))
        for each, having in held.items():
            if each != value:
                differing.append(Differing(key, each, having, value, len(nodes), seen, seen - len(nodes)))
    return Compared(members, usual, tuple(differing), mixed, unseen)


def _held(values: dict[str, list[int]], pool: frozenset[int], total: int) -> dict[str, tuple[int, ...]]:
    if len(pool) == total:
        return {value: tuple(nodes) for value, nodes in values.items()}
    found = ((value, tuple(node for node in nodes if node in pool)) for value, nodes in values.items())
    return {value: nodes for value, nodes in found if nodes}


def _missing(
    columns: Columns,
    key: str,
    held: dict[str, tuple[int, ...]],
    pool: frozenset[int],
    unseen: dict[tuple[str, tuple[int, ...]], list[str]],
) -> set[int]:
    """The nodes that looked for ``key`` and do not have it; those that could not look are noted in ``unseen``."""
    if sum(map(len, held.values())) == len(pool):
        return set()
    missing = set(pool)
    for nodes in held.values():
        missing.difference_update(nodes)
    for why, unable in columns.why_unknown(key):
        blind = missing.intersection(unable)
        if blind:
            missing -= blind
            unseen.setdefault((why, tuple(sorted(blind))), []).append(key)
    return missing
