"""One failed job over many nodes is one incident, and the node that failed first is named."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.fleet import generating
from tests.fleet.generating import Place, base, say, snapshot

from gpuwhy.fleet.analysing import analyse
from gpuwhy.fleet.store import Node, Store
from gpuwhy.model.fleet import JobFailure
from gpuwhy.reports import render

FAULT = (
    "Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 3210, in run_scheduler_process',
    "    scheduler.event_loop_overlap()",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
)
REMOTE = (
    "Traceback (most recent call last):",
    '  File "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", line 2936, in all_reduce',
    "    work.wait()",
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:41234",
)
SHARED = (
    "Receive: obj=GenerateReqInput(rid='4f1c0a9be77d42d1a7c3e2f90b1d5566')",
    "Receive: obj=GenerateReqInput(rid='0b8e44f2c61a4b0f9d7741aa35ce9021')",
)


class Written:
    """A node whose service wrote lines at seconds after a common beginning, by a clock that is ``off`` by some."""

    def __init__(self, name: str, off: float = 0.0) -> None:
        self.name, self.off = name, off
        self.values = base()
        self.at = 0.0

    def say(self, at: float, lines: Sequence[str]) -> Written:
        say(self.values, lines, after=at - self.at)
        self.at = at + (len(lines) - 1) / 1000
        return self

    def put(self, store: Store) -> None:
        for entry in self.values["journal"]["entries"]:
            entry[0] += self.off
        place = Place(self.name, 1, random.Random(1))
        store.keep(Node(name=self.name, status="ok"), snapshot(self.values, place))


def job(folder: Path, *nodes: Written) -> list[JobFailure]:
    with Store(folder, create=True) as store:
        for node in nodes:
            node.put(store)
    return list(analyse(folder).jobs)


def test_the_node_that_failed_first_is_named_and_the_others_follow(tmp_path: Path) -> None:
    (found,) = job(tmp_path, Written("gpu1").say(72, REMOTE), Written("gpu2").say(60, FAULT), Written("gpu3").say(73, REMOTE))  # fmt: skip
    assert (found.first.node, found.nodes, found.unit) == ("gpu2", 3, generating.UNIT)
    assert "illegal memory access" in found.first.text
    assert [each.node for each in found.followed] == ["gpu1", "gpu3"]
    assert found.is_sure
    text = render(analyse(tmp_path), "text")
    assert "sglang.service failed on 3 nodes together; the first was gpu2:" in text
    assert "+12.0 s  gpu1: " in text


def test_a_node_that_only_complains_of_another_is_not_the_first(tmp_path: Path) -> None:
    (found,) = job(tmp_path, Written("gpu1").say(60, REMOTE), Written("gpu2").say(60.5, FAULT))
    assert found.first.node == "gpu2"
    assert found.notes == ("gpu1 complains earlier, but only of the end of another node",)


def test_clocks_are_compared_by_lines_that_two_nodes_share(tmp_path: Path) -> None:
    late = Written("gpu1", off=-300).say(20, SHARED).say(65, FAULT)
    first = Written("gpu2").say(20, SHARED).say(60, FAULT)
    (found,) = job(tmp_path, late, first)
    assert found.first.node == "gpu2"
    moved = next(each for each in (found.first, *found.followed) if each.moved)
    assert abs(moved.moved) == pytest.approx(300, abs=1)


def test_what_every_node_says_at_its_start_moves_no_clock(tmp_path: Path) -> None:
    later = Written("gpu1", off=20).say(60, FAULT)
    (found,) = job(tmp_path, later, Written("gpu2").say(70, FAULT))
    assert found.first.node == "gpu2"
    assert found.first.moved == 0


def test_within_the_tolerance_of_clocks_the_order_is_not_sure(tmp_path: Path) -> None:
    (found,) = job(tmp_path, Written("gpu1").say(60, FAULT), Written("gpu2").say(60.4, FAULT))
    assert not found.is_sure
    assert "no line of the logs tells whose clock is right" in render(analyse(tmp_path), "text")


def test_failures_a_day_apart_are_two(tmp_path: Path) -> None:
    assert job(tmp_path, Written("gpu1").say(60, FAULT), Written("gpu2", off=86400).say(60, FAULT)) == []


def test_services_that_nothing_ties_together_have_no_first(tmp_path: Path) -> None:
    alone = [Written(name).say(60, FAULT) for name in ("gpu1", "gpu2")]
    for each in alone:
        for name in ("MASTER_ADDR", "MASTER_PORT"):
            del each.values["environment"]["variables"][name]
        each.values["unit"]["commands"] = [["sglang", "--port", "1"]]
    assert job(tmp_path, *alone) == []
