"""Remedies: one intervention each, as data. Causes propose them, ``remedies`` orders them and writes the commands."""

from __future__ import annotations

import msgspec

KINDS = (
    "env", "flag", "config", "cache", "service", "container", "selection", "package", "files",
    "system-package", "toolkit", "driver", "kernel", "patch", "hardware",
)  # fmt: skip
"""Kinds from the smallest to the largest intervention (DESIGN: "Remedies, smallest first").

``selection``: another toolkit or library that is already on the host, chosen by other means than one variable.
"""


class Survives(msgspec.Struct, frozen=True):
    """What the change outlives. None: not known, or does not apply."""

    restart: bool | None = True
    upgrade: bool | None = True
    reboot: bool | None = True


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """One intervention.

    ``kind`` is one of :data:`KINDS`; ``name`` the variable, option, package, unit ...; ``value`` what it becomes
    (a value, ``unset``, ``remove``, ``lower``, ``>=0.7.1``, ``newer``). ``summary`` one sentence. ``commands`` are
    exact for the target; a cause leaves them empty for ``env``, ``flag``, ``package`` and ``cache``, because writing
    them for systemd, a container or a shell is the work of ``remedies``. ``limits`` says where it does not help.
    """

    kind: str
    name: str
    value: str = ""
    summary: str
    commands: tuple[str, ...] = ()
    cost: str = ""
    survives: Survives = Survives()
    undo: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    risk: str = "low"
    """``low``, ``medium`` or ``high``."""
    is_sure: bool = True
    """False: known to help in some such cases only."""
    rank: int = 0
    """Order among remedies of one kind: the one that cures more comes first (smaller is earlier)."""


class NotARemedy(msgspec.Struct, frozen=True):
    """Something that is known not to work here, and why."""

    what: str
    why: str
