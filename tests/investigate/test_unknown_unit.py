"""A unit that is not there did not fail, whatever else failed on its host."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.investigate import examine
from gpuwhy.investigate.examined_service import expect_unit
from gpuwhy.snapshot import Snapshot, encode
from gpuwhy.snapshot.document import Probe, Subject
from gpuwhy.targets import PathTarget, TargetError

KILL = [1795946270.0, None, "kernel", 3, "kernel", "Memory cgroup out of memory: Killed process 23 (sglang::schedul) total-vm:79564kB, anon-rss:67968kB, file-rss:5596kB, shmem-rss:0kB, UID:0 pgtables:196kB oom_score_adj:0"]  # fmt: skip
REASON = "systemd knows no unit sglan.service; it knows sglang.service"


def snapshot(unit: Probe, *more: Probe) -> Snapshot:
    killed = Probe(name="kernel_log", status="ok", value={"entries": [KILL], "scanned": 1})
    return Snapshot(target=Subject("ssh", "gpu-host", "sglan"), started=1795946290.0, probes=(unit, killed, *more))


def examined(seen: Snapshot, folder: Path) -> tuple[list[str], bool, str]:
    file = folder / "host.gpuwhy"
    file.write_bytes(encode(seen))
    diagnosis = examine(PathTarget(file)).diagnosis
    return [finding.cause for finding in diagnosis.findings], diagnosis.is_examined, "\n".join(diagnosis.notes)


def test_the_kernel_s_kill_of_another_is_not_its_failure(tmp_path: Path) -> None:
    seen = snapshot(Probe(name="unit", status="absent", reason=REASON))
    assert examined(seen, tmp_path) == ([], False, f"Nothing of sglan was seen: {REASON}.")
    with pytest.raises(TargetError, match=r"^gpu-host: Nothing of sglan was seen: systemd knows no unit"):
        expect_unit(seen, "gpu-host")


def test_what_the_kernel_says_counts_where_the_manager_could_not_be_asked(tmp_path: Path) -> None:
    seen = snapshot(Probe(name="unit", status="timed out", reason="systemctl took too long"))
    assert examined(seen, tmp_path)[0] == ["host-oom-kill"]
    expect_unit(seen, "gpu-host")


def test_a_service_that_systemd_does_not_run_is_there_all_the_same(tmp_path: Path) -> None:
    log = Probe(name="journal", status="ok", value={"unit": "sglan.service", "entries": []})
    seen = snapshot(Probe(name="unit", status="absent", reason=REASON), log)
    assert examined(seen, tmp_path)[0] == ["host-oom-kill"]
    expect_unit(seen, "gpu-host")
