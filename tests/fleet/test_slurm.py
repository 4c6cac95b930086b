"""What Slurm's commands print becomes nodes, states and parts of work; a real Slurm is in tests/lab/test_fleet.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.fleet.engines.interface import Ended, FleetError, Pace, Payload
from gpuwhy.fleet.engines.slurm import Slurm, _slices

# what Slurm 22.05 and 23.11 print for: sinfo --noheader --Node --format=%N|%T|%C|%P|%E
SINFO = """\
gpu1|idle|0/64/0/64|gpu*|none
gpu2|mixed|60/4/0/64|gpu*|none
gpu3|allocated|64/0/0/64|gpu*|none
gpu4|drained*|0/0/64/64|gpu*|Xid 79 | replace it
gpu5|down*|0/0/64/64|gpu*|Not responding
gpu1|idle|0/64/0/64|debug|none
cpu1|idle|0/8/0/8|debug|none
"""


class Kept:
    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ends: dict[str, Ended] = {}

    def started(self, node: str) -> None:
        self.begun.append(node)

    def ended(self, ended: Ended) -> None:
        assert ended.node not in self.ends
        self.ends[ended.node] = ended


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for stand-ins of Slurm's commands, first in PATH; those of this machine are out of the way."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    stand_in(tmp_path, "sinfo", f"cat <<'END'\n{SINFO}END")
    stand_in(tmp_path, "srun", "exit 1")
    return tmp_path


def stand_in(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_without_words_the_default_partition_is_meant(commands: Path) -> None:
    assert Slurm().nodes() == ["gpu1", "gpu2", "gpu3", "gpu4", "gpu5"]
    assert "cpu1" in Slurm(partition="debug").nodes()


def test_nodes_that_would_only_wait_are_rows(commands: Path) -> None:
    stand_in(commands, "srun", "cat > /dev/null; echo '0: gpuwhy-node gpu1;'; echo '0: hello'; echo '0: gpuwhy-end 0;'; echo '1: gpuwhy-node gpu2;'; echo '1: half'; echo 'srun: error: gpu2: task 1: Killed' >&2; exit 137")  # fmt: skip
    kept = Kept()
    slurm = Slurm()
    slurm.run([*slurm.nodes(), "gpu9"], Payload("true", b"program", 5.0), Pace(), kept)
    assert kept.begun == ["gpu1", "gpu2"]
    assert kept.ends["gpu1"] == Ended("gpu1", b"hello")
    assert (kept.ends["gpu2"].output, kept.ends["gpu2"].status) == (b"half", "failed")
    assert kept.ends["gpu2"].reason == "gpu2: task 1: Killed"
    assert (kept.ends["gpu3"].status, kept.ends["gpu9"].status) == ("refused", "unreachable")
    assert kept.ends["gpu4"].reason == "Slurm has it as drained* (Xid 79 | replace it)"
    assert kept.ends["gpu5"].status == "unreachable"


def test_one_node_that_fails_the_step_does_not_take_the_others_along(commands: Path) -> None:
    script = 'case "$*" in *gpu2*) echo "srun: error: Unable to create step: gpu2 is not there" >&2; exit 1;; esac\nfor n in 1; do echo "0: gpuwhy-node gpu1;"; echo "0: gpuwhy-end 0;"; done'
    stand_in(commands, "srun", script)
    kept = Kept()
    Slurm().run(["gpu1", "gpu2"], Payload("true", b"", 5.0), Pace(), kept)
    assert kept.ends["gpu1"].status == "ok"
    assert (kept.ends["gpu2"].status, "gpu2 is not there" in kept.ends["gpu2"].reason) == ("failed", True)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 12, 19, 64, 727, 728, 1024])
def test_what_srun_cuts_into_pieces_is_whole_again(commands: Path, tmp_path: Path, size: int) -> None:
    """As Slurm 22.05 sends what a task left behind at its end: pieces of one size, a newline after each that has none."""
    sent = b"".join(b"gpuwhy:" + bytes([65 + index]) * (720 - index) + b"\n" for index in range(4))
    said = b"gpuwhy-node gpu1;\n" + sent + b"gpuwhy-end 0;\n"
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    lines = [line for piece in pieces for line in piece.removesuffix(b"\n").split(b"\n")]
    (tmp_path / "said").write_bytes(b"".join(b"0: " + line + b"\n" for line in lines))
    stand_in(commands, "srun", f"cat {tmp_path}/said")
    kept = Kept()
    Slurm().run(["gpu1"], Payload("true", b"", 5.0), Pace(), kept)
    assert kept.ends == {"gpu1": Ended("gpu1", sent.rstrip(b"\n"))}


def test_a_step_that_hangs_is_given_up(commands: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuwhy.fleet.engines.slurm._IMMEDIATE", 0)
    stand_in(commands, "srun", "echo '0: gpuwhy-node gpu1;'; exec sleep 60")
    kept = Kept()
    Slurm().run(["gpu1", "gpu2"], Payload("true", b"", 1.0), Pace(), kept)
    assert {name: end.status for name, end in kept.ends.items()} == {"gpu1": "timed out", "gpu2": "timed out"}


def test_a_controller_that_fails_ends_the_run_in_its_words(commands: Path) -> None:
    stand_in(commands, "sinfo", "echo 'slurm_load_partitions: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(FleetError, match="Unable to contact slurm controller"):
        Slurm().nodes()


def test_a_rate_makes_parts_that_last() -> None:
    nodes = [f"n{number}" for number in range(10)]
    assert [(len(part), pause) for part, pause in _slices(nodes, Pace(64, 4.0))] == [(4, 1.0), (4, 1.0), (2, 0.0)]
    assert [(len(part), pause) for part, pause in _slices(nodes, Pace(6, 0.0))] == [(6, 0.0), (4, 0.0)]
    assert [(len(part), pause) for part, pause in _slices(nodes[:2], Pace(64, 0.5))] == [(1, 2.0), (1, 0.0)]
