"""What the kernel or the manager says of another unit is no sign of this one's failure."""

from __future__ import annotations

from gpuwhy.diagnosis.belonging import of_others
from gpuwhy.model.event import Event, Span
from gpuwhy.model.evidence import Place
from gpuwhy.model.incident import Incident


def event(identity: int, line: int, unit: str = "", tool: str = "oom", kind: str = "kernel") -> Event:
    return Event(id=identity, kind=kind, text="x", place=Place("log", "k", line), span=Span("k", line, line), tool=tool, unit=unit)  # fmt: skip


def others(*events: Event, unit: str = "sglang.service") -> frozenset[int]:
    return of_others(Incident(logs=(), events=events, unit=unit))


def test_kills_of_another_service_are_its_own() -> None:
    assert others(event(0, 5, "eagle.service"), event(1, 9, "sglang.service")) == {0}


def test_lines_of_a_kill_without_a_unit_go_with_the_nearest_one() -> None:
    told = (event(0, 5), event(1, 6, "eagle.service"), event(2, 40, "sglang.service"), event(3, 41))
    assert others(*told) == {0, 1}


def test_a_kill_of_nobody_s_and_a_container_s_scope_may_be_this_one_s() -> None:
    assert others(event(0, 5), event(1, 6, tool="xid")) == frozenset()
    assert others(event(0, 5, "docker-0123.scope")) == frozenset()


def test_starts_and_exits_of_other_units_are_theirs() -> None:
    assert others(event(0, 5, "eagle.service", "", "unit"), event(1, 6, "sglang.service", "", "unit")) == {0}
    assert others(event(0, 5, "eagle.service"), unit="") == frozenset()
