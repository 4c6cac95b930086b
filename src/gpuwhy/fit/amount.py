"""A quantity that is not exactly known: what is expected, and between which bounds it lies."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

GIB = 1 << 30
MIB = 1 << 20


class Amount(Struct, frozen=True):
    """``expected`` with ``low`` <= expected <= ``high``; in GiB unless a name says otherwise."""

    low: float
    expected: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Amount:
        return cls(value, value, value)

    @classmethod
    def about(cls, expected: float, below: float, above: float) -> Amount:
        """``about(10, 0.02, 0.05)``: 2 % less to 5 % more."""
        return cls(expected * (1 - below), expected, expected * (1 + above))

    def __add__(self, other: Amount) -> Amount:
        return combined((self, other))

    def __sub__(self, other: Amount) -> Amount:
        return combined((self, other.negated()))

    def negated(self) -> Amount:
        return Amount(-self.high, -self.expected, -self.low)

    def scaled(self, factor: float) -> Amount:
        """Times a factor that is exactly known and not negative."""
        return Amount(self.low * factor, self.expected * factor, self.high * factor)

    def at_least(self, floor: float) -> Amount:
        return Amount(max(self.low, floor), max(self.expected, floor), max(self.high, floor))

    @property
    def is_exact(self) -> bool:
        return self.low == self.high


NOTHING = Amount(0.0, 0.0, 0.0)


def combined(amounts: Iterable[Amount]) -> Amount:
    """The sum. The errors are taken as independent of each other: their squares add up, not they themselves."""
    expected = below = above = 0.0
    for each in amounts:
        expected += each.expected
        below += (each.expected - each.low) ** 2
        above += (each.high - each.expected) ** 2
    return Amount(expected - math.sqrt(below), expected, expected + math.sqrt(above))
