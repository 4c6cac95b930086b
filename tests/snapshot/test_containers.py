"""Whose an answer is, which lines of the kernel belong to a container, and what its engine says as text."""

from __future__ import annotations

from typing import Any

import pytest

from gpuwhy.snapshot import Snapshot, facts_of
from gpuwhy.snapshot.containers import arranged, container_notes, engine_entries, kernel_entries_for
from gpuwhy.snapshot.file import from_document

ID = "ab" * 32
OTHER = "cd" * 32
ENDED = 1_778_248_931.0
STATE: dict[str, Any] = {
    "engine": "docker",
    "name": "vllm",
    "id": ID,
    "found_by": "",
    "image": "vllm:1",
    "state": {
        "status": "exited",
        "is_running": False,
        "exit_code": 137,
        "oom_killed": True,
        "error": None,
        "finished_at": ENDED,
        "restarts": 0,
    },
    "command": ["vllm", "serve"],
    "mounts": [],
    "gpus": {"requests": [], "devices": [], "runtime": "runc", "visible": None, "driver_capabilities": None},
    "limits": {"memory": 1 << 30, "shm": 64 << 20, "ulimits": {"memlock": [-1, -1]}},
    "ipc": "private",
}


def probe(name: str, value: Any = None, status: str = "ok", **more: Any) -> dict[str, Any]:
    return {"probe": name, "status": status, "value": value, "subject": "host", **more}


def state(**more: Any) -> dict[str, Any]:
    value = {**STATE, **more, "state": {**STATE["state"], **more.get("state", {})}}
    return probe("container_state", value, subject="container:docker:vllm", sources=["docker container inspect vllm"])


def snapshot(*results: dict[str, Any]) -> Snapshot:
    target = {"kind": "docker", "name": "docker:vllm"}
    return from_document({"target": target, "started": ENDED, "probes": arranged(list(results))})


def test_without_a_container_everything_stays_as_it_came() -> None:
    results = [probe("packages", [1]), probe("container_state", status="absent")]
    assert arranged(results) == results


def test_what_the_inside_told_holds_and_the_hosts_stands_beside_it() -> None:
    results = [state(), probe("packages", ["host"]), probe("packages", ["inside"], inside=True), probe("gpus", [8]), probe("gpus", [2], inside=True)]  # fmt: skip
    placed = {each["probe"]: each for each in arranged(results)}
    assert (placed["packages"]["value"], placed["host.packages"]["value"]) == (["inside"], ["host"])
    assert placed["packages"]["subject"] == "container:docker:vllm"
    assert (placed["gpus"]["value"], placed["host.gpus"]["value"]) == ([2], [8])


def test_what_the_inside_could_not_see_is_the_hosts_where_both_share_it() -> None:
    results = [state(), probe("kernel_log", {"entries": []}), probe("kernel_log", status="denied", inside=True), probe("toolkits", ["/usr/local/cuda"]), probe("toolkits", status="absent", inside=True)]  # fmt: skip
    placed = {each["probe"]: each for each in arranged(results)}
    assert placed["kernel_log"]["status"] == "ok"
    assert placed["toolkits"]["status"] == "absent", "the host's toolkit is not in the container"
    assert placed["host.toolkits"]["value"] == ["/usr/local/cuda"]


def test_the_hosts_memory_comes_without_the_limits_of_the_collector() -> None:
    found = facts_of(snapshot(state(), probe("memory", {"total": 8 << 30, "group": {"limit": 1, "folder": "/x"}})))
    assert found.value("mem_total_bytes") == 8 << 30
    assert found.value("memory_limit_bytes") == 1 << 30


def test_facts_of_an_ended_container_come_from_its_engine() -> None:
    found = facts_of(snapshot(state()))
    assert found.value("container.exit_code") == 137
    assert found.value("container.oom_killed") is True
    assert found.value("container.device_requests") is None
    assert found.value("command") == "vllm serve"
    assert (found.value("shm_bytes"), found.value("memlock")) == (64 << 20, "unlimited")


def kernel(time: float, text: str) -> dict[str, Any]:
    return {"MESSAGE": text, "__REALTIME_TIMESTAMP": str(round(time * 1e6)), "_TRANSPORT": "kernel"}


def kill(time: float, container: str, pid: int) -> list[dict[str, Any]]:
    return [
        kernel(time, "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"),
        kernel(time, f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,oom_memcg=/docker/{container},task_memcg=/docker/{container},task=python3,pid={pid},uid=0"),
        kernel(time, f"Memory cgroup out of memory: Killed process {pid} (python3) total-vm:423380kB"),
    ]  # fmt: skip


def kept(lines: list[dict[str, Any]], *more: dict[str, Any], **changes: Any) -> list[str]:
    return [each["MESSAGE"] for each in kernel_entries_for(snapshot(state(**changes), *more), iter(lines))]


def test_only_the_kill_in_this_container_is_kept() -> None:
    lines = [*kill(ENDED - 500, OTHER, 7), *kill(ENDED, ID, 8), kernel(ENDED - 900, "NVRM: Xid (PCI:0000:3b:00): 79")]
    found = kept(lines)
    assert len(found) == 4
    assert not [text for text in found if OTHER in text or "process 7" in text]
    assert "Xid" in found[-1], "a fault of the hardware is everybody's"


def test_an_older_kernel_names_no_group_and_the_moment_decides() -> None:
    lines = [kernel(ENDED - 1, "Out of memory: Kill process 8 (python3) score 900"), kernel(ENDED - 99, "Out of memory: Kill process 7 (other) score 1")]  # fmt: skip
    assert kept(lines) == [lines[0]["MESSAGE"]]


def test_a_segmentation_fault_belongs_to_the_container_that_ended_with_it() -> None:
    lines = [kernel(ENDED - 1, "python3[8]: segfault at 0 ip 0"), kernel(ENDED - 60, "a[7]: segfault at 0 ip 0")]
    assert kept(lines) == [lines[0]["MESSAGE"]]
    died = probe("container_events", [{"time": ENDED - 60, "reason": "die", "message": "exit code 139"}])
    assert len(kept(lines, died)) == 2


def said(*results: dict[str, Any]) -> list[str]:
    return [each["MESSAGE"] for each in engine_entries(snapshot(*results))]


def test_the_engine_says_how_it_ended_in_the_words_of_inspect() -> None:
    assert said(state()) == ['"OOMKilled": true,', '"ExitCode": 137,']
    assert said(state(state={"is_running": True})) == []
    assert said(state(state={"oom_killed": False, "exit_code": 0})) == []
    refused = state(state={"oom_killed": False, "exit_code": 128, "error": 'could not select device driver "" with capabilities: [[gpu]]'})  # fmt: skip
    assert (
        said(refused)[0] == 'Error response from daemon: could not select device driver "" with capabilities: [[gpu]]'
    )


def test_notes_say_how_it_was_found_and_what_was_not_visible() -> None:
    found = container_notes(snapshot(state(found_by="vllm.service runs it"), probe("inside", status="absent", reason="it does not run: it is exited")))  # fmt: skip
    assert found[0] == "docker container vllm was examined: vllm.service runs it."
    assert "inside of docker container vllm was not visible (it does not run: it is exited)" in found[1]


@pytest.mark.parametrize("value", [None, [], "text", {"state": None}, {"state": []}, {"id": 5, "state": {}}, {"state": {"finished_at": "x"}, "id": ID}])  # fmt: skip
def test_a_state_of_any_shape_breaks_nothing(value: Any) -> None:
    taken = snapshot(probe("container_state", value, subject="container:docker:vllm"), probe("container_events", value), probe("memory", value))  # fmt: skip
    list(engine_entries(taken))
    list(kernel_entries_for(taken, iter(kill(ENDED, ID, 1))))
    container_notes(taken)
    facts_of(taken)
