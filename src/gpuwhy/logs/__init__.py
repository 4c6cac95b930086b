"""Raw text to lines, lines to events, events to incidents; and the plain facts that logs print. Knows of no causes."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuwhy.logs.decoding import UnreadableLog
    from gpuwhy.logs.events import find_events
    from gpuwhy.logs.incidents import find_incidents
    from gpuwhy.logs.journal import journal_lines
    from gpuwhy.logs.reading import kernel_lines, open_log, read_bytes, read_report, read_stream
    from gpuwhy.logs.stated_facts import facts_in

__all__ = [
    "UnreadableLog",
    "facts_in",
    "find_events",
    "find_incidents",
    "journal_lines",
    "kernel_lines",
    "open_log",
    "read_bytes",
    "read_report",
    "read_stream",
]

_HOMES = {
    "UnreadableLog": "decoding",
    "facts_in": "stated_facts",
    "find_events": "events",
    "find_incidents": "incidents",
    "journal_lines": "journal",
    "kernel_lines": "reading",
    "open_log": "reading",
    "read_bytes": "reading",
    "read_report": "reading",
    "read_stream": "reading",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
