"""The schema of a snapshot: what was asked of a target, and what each question brought, also when it brought nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy.targets import Query

SCHEMA_VERSION = "0.1"


class Subject(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was examined: the kind of target, what the user called it, and the unit or process when one was named."""

    kind: str
    name: str
    unit: str = ""
    pid: int | None = None


class Denial(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that the account of the collection may not read; ``allow`` are commands that would let it, each one enough.

    ``--sudo`` among them is the option of gpuwhy. Empty for root, whom nothing of this host's own stands in the way.
    """

    what: str
    allow: tuple[str, ...] = ()


class Probe(msgspec.Struct, frozen=True, omit_defaults=True):
    """One question and its answer.

    ``status`` is ``ok``, ``absent`` (looked for, not there), ``denied``, ``timed out`` or ``failed``; all but ``ok``
    come with a ``reason``. ``duration`` is in seconds. ``subject`` is whose the value is: ``host``, ``unit:NAME``,
    ``process:PID``, ``environment:PATH``. ``sources`` are the files and commands looked at; ``remarks`` what limits
    the value (cut, partly denied). ``denied`` names what the account may not read, also where the rest was read.
    """

    name: str = msgspec.field(name="probe")
    status: str
    value: Any = None
    reason: str = ""
    duration: float = 0.0
    subject: str = "host"
    sources: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    denied: tuple[Denial, ...] = ()


class Excerpt(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a further request (``read``, ``list``, ``stat``, ``bytes``, ``inspect``, ``loading``, ``waiting``, ``search``) brought: kept,
    so that a diagnosis can be repeated."""

    ask: str
    path: str
    status: str
    value: Any = None
    reason: str = ""
    first: int | None = None
    last: int | None = None
    offset: int | None = None
    length: int | None = None
    queries: tuple[Query, ...] = ()


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All that was collected from one target at one time, free of secrets.

    ``started`` is in seconds since the epoch by our clock, ``duration`` in seconds. ``is_complete`` is false when the
    connection or the time ended before the last probe. ``redacted`` counts the secrets taken out, by kind.
    """

    schema_version: str = SCHEMA_VERSION
    gpuwhy_version: str = ""
    target: Subject
    started: float
    duration: float = 0.0
    is_complete: bool = True
    probes: tuple[Probe, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    redacted: dict[str, int] = {}
    target_python: str = ""

    def probe(self, name: str) -> Probe | None:
        """The probe of that name, None when it was not asked."""
        return next((probe for probe in self.probes if probe.name == name), None)

    def value(self, name: str) -> Any:
        """What a probe brought, None when it brought nothing (its status says why)."""
        probe = self.probe(name)
        return probe.value if probe is not None and probe.status == "ok" else None
