"""Facts: something true of the target, always with the evidence that shows it; and what is not known, with its reason.

Facts are kept flat, under the keys that ``--facts`` files use (see ``docs/facts.md``): ``cc``, ``cuda_toolkit``,
``packages.flashinfer-python``, ``env.CUDA_HOME``. A dotted key is split at the first dot; the rest is a name or path.
Typed views over them (:mod:`gpuwhy.model.host`) are what causes are given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from gpuwhy.model.evidence import Evidence


class Unknown(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact that is not known: why, under which key it would be given, and the command that gets it."""

    why: str
    key: str = ""
    command: str = ""

    def __bool__(self) -> bool:
        return False


class Fact(msgspec.Struct, frozen=True):
    """One fact. ``value`` None means looked for and absent (not: unknown); ``""`` set to the empty string."""

    key: str
    value: Any
    evidence: Evidence
    subject: str = "host"
    """Whose fact it is: ``host``, ``container:NAME``, ``process:PID``, ``unit:NAME``, ``environment:PATH``."""


class Facts:
    """All facts of one target, by key. Immutable; :meth:`merged` makes a new one."""

    __slots__ = ("_by_key", "_unknown")

    def __init__(self, facts: Mapping[str, Fact] | None = None, unknown: Mapping[str, Unknown] | None = None) -> None:
        self._by_key = dict(facts or {})
        self._unknown = dict(unknown or {})

    def get(self, key: str) -> Fact | Unknown:
        """The fact under ``key``; else why it is not known (looked for in vain, denied, timed out, or never asked)."""
        found = self._by_key.get(key)
        if found is not None:
            return found
        return self._unknown.get(key, Unknown("not examined", key))

    def value(self, key: str, default: Any = None) -> Any:
        """The bare value under ``key``, or ``default`` when it is unknown. None is also a known absence."""
        found = self._by_key.get(key)
        return default if found is None else found.value

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def group(self, prefix: str) -> dict[str, Fact]:
        """Facts whose key starts with ``prefix.``, by the rest of the key."""
        start = prefix + "."
        return {key[len(start) :]: fact for key, fact in self._by_key.items() if key.startswith(start)}

    def unknowns(self) -> Mapping[str, Unknown]:
        """What was looked for and could not be known, by key."""
        return self._unknown

    def merged(self, stronger: Facts) -> Facts:
        """These facts and ``stronger``, which wins where both know a key."""
        unknown = {k: v for k, v in {**self._unknown, **stronger._unknown}.items() if k not in stronger._by_key}
        return Facts({**self._by_key, **stronger._by_key}, unknown)
