"""The facts of all nodes, by key and value: which nodes have which, without holding any snapshot."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

from gpuwhy.fleet.node_facts import NodeFacts

NOT_THERE = "not there"
NEAR = 1.02
"""Amounts of memory within two in a hundred are called the same: firmware keeps another share on every board."""


class Columns:
    """Nodes are known by their number, in the order in which they were added."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.pools: list[tuple[str, str]] = []
        self.judged_as: list[str] = []
        self.values: dict[str, dict[str, list[int]]] = {}
        """By key and value the nodes."""
        self.unknown: dict[str, dict[str, list[int]]] = {}
        """By key or group of keys, and by reason, the nodes."""
        self._measures: dict[str, dict[int, int]] = {}

    def add(self, facts: NodeFacts) -> int:
        """Keeps the facts of a node and returns its number."""
        node = len(self.names)
        self.names.append(facts.name)
        self.pools.append((sys.intern(facts.pool[0]), sys.intern(facts.pool[1])))
        self.judged_as.append(facts.judged_as)
        for key, value in facts.values.items():
            nodes = self.values.setdefault(key, {})
            nodes.setdefault(value, []).append(node)
        for key, why in facts.unknown.items():
            self.unknown.setdefault(key, {}).setdefault(why, []).append(node)
        for key, amount in facts.measures.items():
            self._measures.setdefault(key, {})[node] = amount
        return node

    def close(self) -> None:
        """Calls amounts that are nearly the same the same. After the last node."""
        for key, amounts in self._measures.items():
            self.values[key] = _near(self.values[key], amounts)

    def why_unknown(self, key: str) -> Iterator[tuple[str, list[int]]]:
        """By reason the nodes on which ``key`` could not be looked at, some of which may know it all the same."""
        for name in {key, key.partition(".")[0]}:
            yield from self.unknown.get(name, {}).items()


def _near(values: dict[str, list[int]], amounts: dict[int, int]) -> dict[str, list[int]]:
    """The values with those joined whose amounts lie close together, each under its commonest text."""
    text_of = {node: text for text, nodes in values.items() for node in nodes}
    joined: dict[str, list[int]] = {}
    cluster: list[int] = []

    def close() -> None:
        if cluster:
            text = Counter(text_of[node] for node in cluster).most_common(1)[0][0]
            joined.setdefault(text, []).extend(sorted(cluster))
            cluster.clear()

    first = 0
    for node, amount in sorted(amounts.items(), key=lambda item: item[1]):
        if cluster and amount > first * NEAR:
            close()
        if not cluster:
            first = amount
        cluster.append(node)
    close()
    # what is no amount ("no limit") stays as it is
    for text, nodes in values.items():
        others = [node for node in nodes if node not in amounts]
        if others:
            joined.setdefault(text, []).extend(others)
    return joined
