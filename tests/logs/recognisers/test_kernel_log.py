"""Kernel messages: kills with victim, memory, group; Xid and SXid with their meaning; faults with their device."""

from __future__ import annotations

from tests.logs.recognisers.reading import events, only, sample

from gpuwhy.logs.recognisers import xids
from gpuwhy.model.event import Event


def by_tool(tool: str) -> list[Event]:
    return [event for event in sample("kernel.txt").events if event.tool == tool]


def test_a_kill_in_a_pod_names_victim_memory_container_and_pod() -> None:
    event = next(event for event in by_tool("oom") if event.is_fatal)
    assert (event.span.first, event.span.last) == (2, 3)
    assert event.unit.startswith("cri-containerd-0123456789abcdef")
    detail = event.detail
    assert (detail["process"], detail["pid"], detail["scope"]) == ("python3", "4711", "cgroup")
    assert detail["anon_rss_bytes"] == str(431992012 * 1024)
    assert detail["total_vm_bytes"] == str(702345120 * 1024)
    assert detail["shmem_rss_bytes"] == str(4096 * 1024)
    assert detail["container"] == "0123456789abcdef" * 4
    assert detail["pod"] == "1b2c3d4e-5f60-7182-93a4-b5c6d7e8f901"


def test_a_kill_in_a_real_podman_container() -> None:
    (event,) = sample("kernel-oom-podman.txt").events
    assert event.detail["container"].startswith("9769992dadc2")
    assert event.detail["anon_rss_bytes"] == str(65024 * 1024)


def test_a_global_kill_of_a_unit() -> None:
    event = only(
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
        "task_memcg=/system.slice/vllm.service,task=python3,pid=18,uid=0\n"
        "Out of memory: Killed process 18 (python3) total-vm:7023kB, anon-rss:4319kB, file-rss:1kB, shmem-rss:0kB"
    )
    assert (event.unit, event.detail["scope"], event.detail["process"]) == ("vllm.service", "host", "python3")


def test_xids_and_sxids_say_what_they_mean() -> None:
    assert [(event.detail["number"], event.detail["meaning"]) for event in by_tool("xid")] == [
        ("79", "the GPU has fallen off the bus"),
        ("13", "a kernel raised an exception in the graphics engine: address out of range, bad instruction"),
    ]
    (event,) = by_tool("sxid")
    assert (event.detail["severity"], event.detail["link"], event.is_fatal) == ("Non-fatal", "32", False)
    event = only("nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 22013, Fatal, Link 30 Minion Link DLREQ interrupt")
    assert event.detail["meaning"] == "Minion Link DLREQ interrupt", "an SXid that we do not know explains itself"
    assert xids.meaning_of_xid(4711) == ""


def test_faults_name_their_device() -> None:
    assert [event.detail["device"] for event in by_tool("iommu")] == ["0000:41:00.0", "41:00.0"]
    assert [(event.detail["device"], event.is_fatal) for event in by_tool("aer")] == [
        ("0000:01:00.0", False),
        ("0000:01:00.0", False),
        ("0000:40:01.1", True),
    ]
    (event,) = by_tool("pcie")
    assert "Link Down" in event.text


def test_faults_of_processes_name_process_and_module() -> None:
    assert [(event.detail["pid"], event.detail["module"]) for event in by_tool("segfault")] == [
        ("4711", "libcuda.so.570.86"),
        ("4711", "libggml-cpu.so"),
        ("4711", "libnccl.so.2"),
    ]


def test_a_mismatch_of_versions_is_told_in_several_lines() -> None:
    event = by_tool("nvrm")[1]
    assert "535.183.01" in event.text
    assert "535.161.08" in event.text


def test_what_is_only_slow_or_corrected_ends_nothing() -> None:
    for tool in ("hung-task", "mce"):
        assert all(not event.is_fatal for event in by_tool(tool))


def test_accelerators_of_others() -> None:
    assert [event.kind for event in [*by_tool("rocm"), *by_tool("xpu")]] == ["kernel", "kernel", "kernel"]


def test_ordinary_kernel_lines_say_nothing() -> None:
    assert events("nvidia-nvlink: Nvlink Core is being initialized, major device number 509\nusb 1-1: new device") == ()


def test_what_others_pass_on_of_the_kernel() -> None:
    event = only("XidCriticalError: Xid=79 on Device=GPU-0123abcd, the device will be marked as unhealthy.")
    assert (event.tool, event.detail["number"], event.detail["meaning"]) == (
        "xid",
        "79",
        "the GPU has fallen off the bus",
    )
    event = only("Aug 12 10:00:00 host kernel: amdgpu 0000:03:00.0: amdgpu: GPU reset begin!")
    assert (event.kind, event.tool) == ("kernel", "rocm")
