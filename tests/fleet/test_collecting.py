"""Collecting from a fleet: every node ends as a row, in whatever order and state its answer comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpuwhy.collector.framing import Framer
from gpuwhy.fleet.collecting import Asked, Outcome, collect_fleet, payload
from gpuwhy.fleet.engines.interface import Ended, FleetError, Pace, Payload, Watcher
from gpuwhy.fleet.store import Node, Store

RESULT: dict[str, Any] = {"probe": "system", "status": "ok", "value": {"kernel": "6.1"}, "duration": 0.1}
END: dict[str, Any] = {"end": {"duration": 1.0, "redacted": {"by name": 2}, "python": "3.11.2"}}


def answer(*documents: dict[str, Any], is_cut: bool = False) -> bytes:
    framer = Framer()
    frames = b"".join(framer.pack(msgspec.json.encode(each) + b"\n") for each in documents)
    return frames if is_cut else frames + framer.finish()


class Answering:
    """An engine whose nodes end as they are told to; what real ones do is in tests/lab/test_fleet.py."""

    name = "clustershell"

    def __init__(self, ends: dict[str, Ended | Exception | BaseException]) -> None:
        self.ends = ends
        self.asked: list[str] = []

    def nodes(self) -> list[str]:
        return list(self.ends)

    def run(self, nodes: Sequence[str], payload: Payload, pace: Pace, watcher: Watcher) -> None:
        for node in nodes:
            self.asked.append(node)
            watcher.started(node)
            end = self.ends[node]
            if isinstance(end, BaseException):
                raise end
            watcher.ended(end)


@pytest.fixture
def collected(tmp_path: Path) -> Callable[..., tuple[Outcome, dict[str, Node], Store]]:
    def run(engine: Answering, **more: Any) -> tuple[Outcome, dict[str, Node], Store]:
        store = Store(tmp_path / "fleet", create=True)
        outcome = collect_fleet(engine, store, Asked(unit="sglang.service"), Pace(), **more)
        return outcome, {node.name: node for node in store.nodes()}, store

    return run


def test_a_whole_answer_becomes_a_snapshot(collected: Callable[..., Any]) -> None:
    outcome, rows, store = collected(Answering({"gpu1": Ended("gpu1", b"motd\n" + answer(RESULT, END))}))
    snapshot = store.snapshot(rows["gpu1"])
    assert (rows["gpu1"].status, rows["gpu1"].reason, rows["gpu1"].unit) == ("ok", "", "sglang.service")
    assert snapshot.value("system") == {"kernel": "6.1"}
    assert (snapshot.target.kind, snapshot.target.name, snapshot.target.unit) == ("ssh", "gpu1", "sglang.service")
    assert (snapshot.is_complete, snapshot.target_python, snapshot.redacted) == (True, "3.11.2", {"by name": 2})
    assert outcome == Outcome(1, 0, {"ok": 1})
    assert store.run()["engine"] == "clustershell"
    assert store.run()["ended"]


@pytest.mark.parametrize(
    ("end", "status", "reason"),
    [
        (Ended("n", b"", "refused", "nothing listens"), "refused", "nothing listens"),
        (Ended("n", b"Restricted access\n"), "failed", "Restricted access"),
        (Ended("n", answer(RESULT, is_cut=True), "timed out", "no answer in time"), "partial", "1 probes came"),
        (Ended("n", answer(RESULT, END)[:-30]), "partial", "not the end"),
        (Ended("n", answer({"probe": 5}, {"probe": "x", "status": []}, END), "failed", "odd"), "failed", "odd"),
        (Ended("n", answer({"probe": "x", "status": []}, END)), "failed", "form"),
        (Ended("n", answer(RESULT, {"end": {"redacted": "none"}})), "failed", "form"),
    ],
)
def test_everything_else_is_a_row_with_its_reason(
    collected: Callable[..., Any], end: Ended, status: str, reason: str
) -> None:
    _, rows, store = collected(Answering({"n": end}))
    assert rows["n"].status == status
    assert reason in rows["n"].reason
    assert bool(rows["n"].file) == (status == "partial")
    if rows["n"].file:
        assert not store.snapshot(rows["n"]).is_complete


def test_a_run_that_was_cut_goes_on_where_it_was(collected: Callable[..., Any]) -> None:
    whole = {name: Ended(name, answer(RESULT, END)) for name in ("a", "b", "c", "d")}
    cut = Answering({**whole, "b": Ended("b", b"", "unreachable", "no way to it"), "c": KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        collected(cut)
    with pytest.raises(FleetError, match="--resume"):
        collected(Answering(dict(whole)))
    again = Answering(dict(whole))
    outcome, rows, _ = collected(again, resume=True)
    assert again.asked == ["b", "c", "d"]
    assert {name: row.status for name, row in rows.items()} == dict.fromkeys("abcd", "ok")
    assert (outcome.nodes, outcome.kept) == (4, 1)


def test_half_an_answer_of_before_outlives_a_node_that_is_gone(collected: Callable[..., Any]) -> None:
    collected(Answering({"n": Ended("n", answer(RESULT, is_cut=True), "timed out", "slow")}))
    _, rows, store = collected(Answering({"n": Ended("n", b"", "unreachable", "no way to it")}), resume=True)
    assert rows["n"].status == "partial"
    assert store.snapshot(rows["n"]).value("system")
    assert "no way to it" in rows["n"].reason


def test_the_time_of_a_node_is_in_what_it_is_sent() -> None:
    asked = payload(Asked(deadline=8.0, timeout=10.0), "slurm")
    size, _, rest = asked.stdin.partition(b"\n")
    request = msgspec.json.decode(rest[int(size) :])
    assert (request["is_once"], request["deadline"], request["life"]) == (True, 7.5, 20.0)
    assert "signal.alarm(20)" in asked.line
    assert asked.limit == 10.0
    assert "'" not in asked.line
