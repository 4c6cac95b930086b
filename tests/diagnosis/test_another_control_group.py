"""A kill for lack of memory in a control group that is no unit's is not the failure of a unit."""

from __future__ import annotations

import pytest

from gpuwhy.investigate.log import diagnose_logs
from gpuwhy.logs import read_bytes

UNIT = """\
2026-11-30T14:13:40+0000 gpu systemd[1]: Started sglang.service - SGLang.
2026-11-30T14:13:45+0000 gpu python[4711]: Traceback (most recent call last):
2026-11-30T14:13:45+0000 gpu python[4711]:   File "/opt/app/serve.py", line 3, in <module>
2026-11-30T14:13:45+0000 gpu python[4711]:     raise RuntimeError("the license has expired")
2026-11-30T14:13:45+0000 gpu python[4711]: RuntimeError: the license has expired
2026-11-30T14:13:46+0000 gpu systemd[1]: sglang.service: Main process exited, code=exited, status=1/FAILURE
2026-11-30T14:13:46+0000 gpu systemd[1]: sglang.service: Failed with result 'exit-code'.
"""
KILL = """\
2026-11-30T14:13:42+0000 gpu kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg={group},task_memcg={group},task=sglang::schedul,pid=29980,uid=0
2026-11-30T14:13:42+0000 gpu kernel: Memory cgroup out of memory: Killed process 29980 (sglang::schedul) total-vm:79564kB, anon-rss:67968kB, file-rss:5256kB, shmem-rss:0kB, UID:0 pgtables:196kB oom_score_adj:0
"""


def causes(group: str) -> tuple[list[str], str]:
    unit = read_bytes(UNIT.encode(), "journal of sglang.service")
    kernel = read_bytes(KILL.format(group=group).encode(), "kernel log")
    diagnosis = diagnose_logs([unit, kernel], "gpu", unit="sglang.service")
    primary = diagnosis.incident.primary_event
    return [finding.cause for finding in diagnosis.findings], primary.text if primary else ""


@pytest.mark.parametrize("group", ["/limited-by-hand", "/slurm/uid_0/job_7/step_0", "/system.slice/other.service"])
def test_a_kill_elsewhere_is_not_the_failure_of_the_unit(group: str) -> None:
    found, primary = causes(group)
    assert "host-oom-kill" not in found
    assert primary == "RuntimeError: the license has expired"


@pytest.mark.parametrize("group", ["/system.slice/sglang.service", "/system.slice", "/", "/docker/" + "a1" * 32])
def test_a_kill_in_the_unit_or_where_no_group_tells_is(group: str) -> None:
    found, primary = causes(group)
    assert found[:1] == ["host-oom-kill"]
    assert "Killed process 29980" in primary


def test_what_the_kernel_says_after_the_last_start_was_refused_is_no_life() -> None:
    refused = """\
2026-11-30T14:13:47+0000 gpu systemd[1]: sglang.service: Scheduled restart job, restart counter is at 3.
2026-11-30T14:13:47+0000 gpu systemd[1]: Stopped sglang.service - SGLang.
2026-11-30T14:13:47+0000 gpu systemd[1]: sglang.service: Start request repeated too quickly.
2026-11-30T14:13:47+0000 gpu systemd[1]: sglang.service: Failed with result 'exit-code'.
"""
    later = "2026-11-30T14:15:42+0000 gpu kernel: sglang::schedul invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
    logs = [read_bytes((UNIT + refused).encode(), "journal"), read_bytes(later.encode(), "kernel log")]
    primary = diagnose_logs(logs, "gpu", unit="sglang.service").incident.primary_event
    assert primary is not None
    assert primary.text == "RuntimeError: the license has expired"
