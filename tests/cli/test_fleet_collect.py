"""What a collection shows while it runs and at its end, and its exit statuses."""

from __future__ import annotations

import io
from pathlib import Path

from tests.cli.running import gpuwhy
from tests.patience import until

from gpuwhy.cli.fleet_progress import FleetProgress
from gpuwhy.cli.fleet_told import collected
from gpuwhy.fleet.collecting import Outcome
from gpuwhy.fleet.store import Node


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_counts_and_the_slowest_are_shown() -> None:
    stream = io.StringIO()
    progress = FleetProgress(5, stream, 0.05)
    for name in ("gpu1", "gpu\x1b[2J2", "gpu3"):
        progress.on_node(name, None)
    progress.on_node("gpu1", Node(name="gpu1", status="ok"))
    progress.on_node("gpu9", Node(name="gpu9", status="refused"))
    line = progress.line()
    assert line.startswith("2 of 5 done (1 ok, 1 refused), 2 under way, slowest gpu")
    assert "\x1b" not in line
    progress.start()
    until(lambda: stream.getvalue().count("\n") >= 2, "it is told twice")
    progress.stop()
    shown = stream.getvalue().splitlines()
    assert len(shown) >= 2
    assert all(each.startswith("gpuwhy: 2 of 5 done") for each in shown)


def test_on_a_terminal_one_line_is_overwritten_and_wiped() -> None:
    stream = Terminal()
    progress = FleetProgress(500, stream, 0.05)
    for number in range(300):
        progress.on_node("n" * 100 + str(number), None)
    progress.start()
    until(lambda: stream.getvalue().count("\r") >= 2, "it is told twice")
    progress.stop()
    shown = stream.getvalue()
    assert "\n" not in shown
    assert shown.endswith("\r\x1b[2K")
    assert max(map(len, shown.split("\r\x1b[2K"))) <= 160


def test_the_end_names_every_node_without_a_whole_snapshot() -> None:
    rows = [Node(name="a", status="ok"), Node(name="b", status="timed out", reason="no answer\x1b[1m in time")]
    text = collected("out", Outcome(2, 1, {}), rows)
    assert text.splitlines()[0] == "gpuwhy: out: 2 nodes: 1 ok, 1 timed out; 1 were there already"
    assert "  b  timed out: no answer" in text
    assert "\x1b" not in text
    assert "--resume" in text
    many = [Node(name=f"n{number}", status="failed") for number in range(100)]
    assert "and 60 more, in out/index.sqlite" in collected("out", Outcome(100, 0, {}), many)
    assert "--resume" not in collected("out", Outcome(1, 0, {}), rows[:1])


def test_nothing_that_answers_is_exit_status_3(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host *\n  ProxyCommand sleep 0.3\n")
    out = tmp_path / "fleet"
    ended = gpuwhy("fleet", "collect", "a,b", "-o", str(out), env={"GPUWHY_SSH_OPTIONS": f"-F {tmp_path}/config"})
    assert ended.status == 3
    assert "2 nodes: 2 refused" in ended.err


def test_what_cannot_be_done_is_exit_status_2(tmp_path: Path) -> None:
    assert gpuwhy("fleet", "collect", "gpu[1-", "-o", str(tmp_path / "x")).status == 2
    assert not (tmp_path / "x").exists()
    (tmp_path / "file").write_text("")
    ended = gpuwhy("fleet", "collect", "a", "-o", str(tmp_path / "file"))
    assert ended.status == 2
    assert "cannot be used" in ended.err


def test_a_rate_is_kept(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    proxy = tmp_path / "proxy"
    proxy.write_text(f"#!/bin/sh\ndate +%s.%N >> {begun}\nexec sleep 0.3\n")
    proxy.chmod(0o755)
    (tmp_path / "config").write_text(f"Host *\n  ProxyCommand {proxy}\n")
    ssh = {"GPUWHY_SSH_OPTIONS": f"-F {tmp_path}/config"}
    ended = gpuwhy("fleet", "collect", "n[1-4]", "-o", str(tmp_path / "fleet"), "--rate", "4", env=ssh)
    assert "4 nodes: 4 refused" in ended.err
    times = sorted(map(float, begun.read_text().split()))
    assert len(times) == 4
    assert times[-1] - times[0] >= 0.6


def test_a_group_without_nodes_and_an_inventory_that_is_not_there_are_said_so(tmp_path: Path) -> None:
    out = tmp_path / "incident"
    done = gpuwhy("fleet", "collect", "@no_such_group", "-o", str(out))
    assert (done.status, done.out) == (2, "")
    assert "'@no_such_group' holds no nodes" in done.err
    assert not out.exists()
    absent = gpuwhy("fleet", "collect", "--inventory", str(tmp_path / "absent.ini"), "-o", str(out))
    assert absent.status == 2
    assert absent.err.endswith("absent.ini cannot be read as an inventory: No such file or directory\n")
    assert absent.err.count("absent.ini") == 1


def test_one_node_is_not_several_and_the_way_on_is_named() -> None:
    rows = [Node(name="gpu1", status="ok", file="nodes/gpu1.gpuwhy")]
    told = collected("my fleet", Outcome(1, 0, {"ok": 1}), rows)
    assert told.splitlines()[0] == "gpuwhy: my fleet: 1 node: 1 ok"
    assert "gpuwhy fleet report 'my fleet'" in told
