"""Which part stands behind an Xid or SXid number, whose fault it usually is, and what to do first.

Facts of NVIDIA's public table of Xid errors and of the Fabric Manager's manual, in our own words, with what public threads
added: which numbers only follow others. What a number means is told by the log reader; this is what it calls for.
"""

from __future__ import annotations

from msgspec import Struct

LOST = "gpu-lost"
LINK = "nvlink-fault"
MEMORY = "ecc"
OTHER = "gpu-xid-other"
PROGRAM = "program"
"""Raised for what a program asked of the GPU; seldom the hardware."""
ECHO = "echo"
"""Never first: a clean-up, or the driver's verdict about recovery."""


class Origin(Struct, frozen=True):
    """``part``: id of the cause that the number belongs to, or PROGRAM or ECHO.

    ``owner`` is whose fault it usually is: ``hardware``, ``link``, ``driver``, ``firmware``, ``program``; ``step`` what to do
    first: ``reset`` (of the GPU), ``reboot``, ``replace`` (after NVIDIA's field diagnostics), ``power`` (power, slot, cooling),
    ``driver`` (another release), ``program`` (look at the kernel that ran), ``nothing``. ``is_mild``: reported for the
    record; the GPU goes on.
    """

    part: str
    owner: str
    step: str
    is_mild: bool = False


_HARDWARE_STOP = Origin(OTHER, "hardware", "reset")
_DRIVER_STOP = Origin(OTHER, "driver", "driver")
_LINK = Origin(LINK, "link", "reset")
_DISPLAY = Origin(OTHER, "driver", "driver")

XID_ORIGINS: dict[int, Origin] = {
    8: Origin(OTHER, "driver", "reset"),
    13: Origin(PROGRAM, "program", "program"),
    31: Origin(PROGRAM, "program", "program"),
    32: Origin(OTHER, "link", "power"),
    37: _DRIVER_STOP,
    38: _DRIVER_STOP,
    43: Origin(PROGRAM, "program", "program"),
    45: Origin(ECHO, "program", "nothing"),
    46: _DRIVER_STOP,
    48: Origin(MEMORY, "hardware", "reset"),
    54: Origin(OTHER, "hardware", "power"),
    56: _DISPLAY,
    57: Origin(OTHER, "hardware", "reset"),
    58: Origin(OTHER, "hardware", "reset"),
    61: Origin(OTHER, "firmware", "reset"),
    62: Origin(OTHER, "firmware", "reset"),
    63: Origin(MEMORY, "hardware", "reset", is_mild=True),
    64: Origin(MEMORY, "hardware", "replace"),
    66: _DRIVER_STOP,
    67: _DRIVER_STOP,
    68: Origin(OTHER, "driver", "driver"),
    69: Origin(OTHER, "driver", "driver"),
    74: _LINK,
    78: _DRIVER_STOP,
    79: Origin(LOST, "hardware", "power"),
    80: Origin(OTHER, "link", "power"),
    92: Origin(MEMORY, "hardware", "reset", is_mild=True),
    93: Origin(OTHER, "firmware", "nothing", is_mild=True),
    94: Origin(MEMORY, "hardware", "reset"),
    95: Origin(MEMORY, "hardware", "reset"),
    109: _DRIVER_STOP,
    110: _HARDWARE_STOP,
    119: Origin(OTHER, "firmware", "reset"),
    120: Origin(OTHER, "firmware", "reset"),
    121: Origin(LINK, "link", "reset", is_mild=True),
    122: _HARDWARE_STOP,
    123: _HARDWARE_STOP,
    124: _HARDWARE_STOP,
    125: _HARDWARE_STOP,
    136: _LINK,
    137: Origin(LINK, "program", "program"),
    140: Origin(MEMORY, "hardware", "reset"),
    143: Origin(OTHER, "driver", "reset"),
    144: _LINK,
    145: _LINK,
    146: _LINK,
    147: _LINK,
    148: _LINK,
    149: _LINK,
    150: _LINK,
    151: _DRIVER_STOP,
    154: Origin(ECHO, "hardware", "nothing"),
    155: _LINK,
    156: Origin(MEMORY, "hardware", "reset", is_mild=True),
    157: Origin(MEMORY, "hardware", "replace"),
    158: _HARDWARE_STOP,
    160: Origin(MEMORY, "hardware", "reset", is_mild=True),
    161: Origin(MEMORY, "hardware", "replace"),
    171: Origin(MEMORY, "hardware", "reset"),
    172: Origin(MEMORY, "hardware", "reset"),
}
GSP_TIMEOUTS = frozenset({119, 120})
"""The system processor of the GPU (GSP) does not answer, or failed: its firmware can be left unused on some drivers."""
WORN_OUT = frozenset({64, 157, 161})
"""No spare memory is left: only another card helps."""
UNCONTAINED = frozenset({48, 95})
"""The damaged data may have gone anywhere: everything on that GPU must stop before the reset."""


def origin_of_xid(number: int) -> Origin:
    """What stands behind an Xid; a number that is not in the table counts as another fault of the GPU."""
    return XID_ORIGINS.get(number, _HARDWARE_STOP)


def is_harmless_sxid(number: int, severity: str) -> bool:
    """Whether an NVSwitch message is only one of the record: not fatal, and nothing was lost."""
    return severity == "Non-fatal" and number in _REPAIRED


_REPAIRED = frozenset({20001, 22013})
"""A packet that was sent again, and a request of the link's controller: neither stops a program."""
