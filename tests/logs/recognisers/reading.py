"""What the tests of the recognisers share: the events of a text, and of the real output of programs."""

from __future__ import annotations

import textwrap
from pathlib import Path

from gpuwhy.logs import find_events, find_incidents, open_log, read_bytes
from gpuwhy.model.event import Event
from gpuwhy.model.incident import Incident

SAMPLES = Path(__file__).parents[2] / "data" / "logs" / "events"
"""Output of real programs, made by running them; kernel and Kubernetes lines by their format strings."""


def events(text: str) -> tuple[Event, ...]:
    return find_events(read_bytes(textwrap.dedent(text).encode(), "x"))


def only(text: str) -> Event:
    found = events(text)
    assert len(found) == 1, [event.text for event in found]
    return found[0]


def incident(text: str) -> Incident:
    return find_incidents([read_bytes(textwrap.dedent(text).encode(), "x")])


def primary(text: str) -> Event:
    event = incident(text).primary_event
    assert event is not None
    return event


def sample(name: str) -> Incident:
    return find_incidents([open_log(SAMPLES / name)])
