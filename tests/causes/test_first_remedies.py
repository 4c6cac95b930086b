"""What a reader sees first: the act with which threads of this kind end, among the first three remedies.

The names are those of the labelled cases: the same act has the same kind and name under every cause.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding
from gpuwhy.remedies import order

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

PTX = "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.\n"
VLLM = '  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_worker.py", line 190, in init_device\n'
TOO_OLD = "RuntimeError: The NVIDIA driver on your system is too old (found version 12040).\n"
COMBINATION = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination\n"  # fmt: skip
LOST = "Failed to initialize NVML: Unknown Error\n"
IOMMU = "nvidia 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0021 address=0xf0003000 flags=0x0030]\n"
DMAR = "DMAR: [DMA Write NO_PASID] Request device [41:00.0] fault addr 0x3e1fe0000 [fault reason 0x05] PTE Write access is not set\nNVRM: Xid (PCI:0000:41:00): 31, pid=77, name=python3, MMU Fault\n"  # fmt: skip
COMPILER = "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.\n"
UVM = "nvidia-uvm: uvm_global.c: encountered a global fatal error: RM_ERROR\nRuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment\n"  # fmt: skip
LMDEPLOY = "lmdeploy serve api_server m --server-port 23333\nERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 23333): address already in use\n"  # fmt: skip
RAY = "ConnectionError: Ray is trying to start at 192.0.2.11:6379, but is already running at 192.0.2.11:6379. Please specify a different port using the `--port` flag of `ray start` command.\n"  # fmt: skip
TAKEN = "ValueError: Free memory on device (3.2/79.1 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"  # fmt: skip
POD = "oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/kubepods.slice/kubepods-burstable.slice\nMemory cgroup out of memory: Killed process 29110 (VLLM::Worker_TP) total-vm:182311112kB, anon-rss:61212212kB\n"  # fmt: skip
ROUTE = "[W socket.cpp:697] [c10d] The client socket has failed to connect to [gpu-node-0.local]:29400 (errno: 113 - No route to host).\n"  # fmt: skip
CDI = "docker: Error response from daemon: CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all\n"


@pytest.mark.parametrize(
    ("report", "facts", "cause", "kind", "name"),
    [
        (PTX, {}, "ptx-newer-than-driver", "driver", "nvidia"),
        (PTX + VLLM, {}, "ptx-newer-than-driver", "driver", "nvidia"),
        (PTX + VLLM, {"gpu": "NVIDIA H100 80GB HBM3"}, "ptx-newer-than-driver", "driver", "nvidia"),
        (TOO_OLD, {}, "driver-too-old", "driver", "nvidia"),
        (TOO_OLD + VLLM, {"gpu": "NVIDIA H100 80GB HBM3"}, "driver-too-old", "driver", "nvidia"),
        (TOO_OLD + VLLM, {"container.in_container": True}, "driver-too-old", "driver", "nvidia"),
        (COMBINATION, {}, "driver-library-mismatch", "env", "LD_LIBRARY_PATH"),
        (IOMMU, {}, "p2p-iommu", "kernel", "amd_iommu"),
        (DMAR, {}, "p2p-iommu", "kernel", "intel_iommu"),
        (IOMMU, {}, "p2p-iommu", "env", "NCCL_P2P_DISABLE"),
        (UVM, {}, "driver-uvm-broken", "service", "host"),
        (CDI, {}, "container-toolkit-missing", "config", "CDI specification"),
    ],
)
def test_it_is_among_the_first_three(
    judge_report: Judge, finding: Find, report: str, facts: dict[str, object], cause: str, kind: str, name: str
) -> None:
    first = order(finding(judge_report(report, facts), cause).remedies)[:3]
    assert (kind, name) in [(each.kind, each.name) for each in first]


@pytest.mark.parametrize(
    ("report", "cause", "kind", "name", "value"),
    [
        (LOST, "container-devices-lost", "container", "restart", "recreate the container"),
        (COMPILER, "host-compiler", "system-package", "gcc", ""),
        (LMDEPLOY, "port-in-use", "flag", "--server-port", "a free port"),
        (RAY, "port-in-use", "service", "ray", "stop"),
        (TAKEN, "gpu-memory-taken", "service", "other process", "stop"),
        (POD, "host-oom-kill", "config", "resources.limits.memory", "higher"),
        (ROUTE, "bootstrap-network", "env", "MASTER_ADDR", "address of the first node"),
    ],
)
def test_it_comes_first(
    judge_report: Judge, finding: Find, report: str, cause: str, kind: str, name: str, value: str
) -> None:
    first = order(finding(judge_report(report), cause).remedies)[0]
    assert (first.kind, first.name, first.value) == (kind, name, value)


@pytest.mark.parametrize("cause_and_text", [("ptx-newer-than-driver", PTX + VLLM), ("driver-too-old", TOO_OLD + VLLM)])
def test_the_compatibility_library_is_not_for_cards_of_consumers(
    judge_report: Judge, finding: Find, cause_and_text: tuple[str, str]
) -> None:
    cause, text = cause_and_text
    for report, facts in ((text, {"gpu": "NVIDIA GeForce RTX 4090"}), (f"on my RTX 4090\n{text}", {})):
        names = {each.name for each in finding(judge_report(report, facts), cause).remedies}
        assert not names & {"cuda-compat", "LD_LIBRARY_PATH", "VLLM_ENABLE_CUDA_COMPATIBILITY"}


SHADOWED = """Traceback (most recent call last):
  File "/srv/app/serve.py", line 1, in <module>
    import queue
  File "/srv/app/queue.py", line 3, in <module>
    from queue import Queue
ImportError: cannot import name 'Queue' from partially initialized module 'queue' (most likely due to a circular import) (/srv/app/queue.py)
"""
OLD_VLLM = '  File "/opt/venv/lib/python3.9/site-packages/vllm/worker/worker.py", line 66, in init_model\n    torch.cuda.set_device(self.device)\n'
FP8 = 'Traceback (most recent call last):\n  File "/usr/local/lib/python3.10/dist-packages/transformer_engine/pytorch/fp8.py", line 463, in fp8_autocast_enter\n    assert fp8_available, reason_for_no_fp8\nAssertionError: Device compute capability 8.9 or higher required for FP8 execution.\n'


@pytest.mark.parametrize(
    ("report", "cause", "kind", "name"),
    [
        (SHADOWED, "import-shadowed", "files", "queue.py"),
        (FP8, "dtype-unsupported-by-gpu", "config", "fp8"),
        ("ValueError: The following weights were not initialized from checkpoint: {'lm_head.weight'}\n", "weights-missing-or-corrupt", "files", "weights"),
        ("TimeoutError: RPC call to sample_tokens timed out.\n", "startup-timeout", "env", "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS"),
        ("AssertionError: DeepEP only supports Hopper GPUs (SM90), got SM80\n", "arch-unsupported-by-library", "env", "VLLM_ALL2ALL_BACKEND"),
    ],
)  # fmt: skip
def test_it_is_the_first(judge_report: Judge, finding: Find, report: str, cause: str, kind: str, name: str) -> None:
    first = order(finding(judge_report(report), cause).remedies)[0]
    assert (first.kind, first.name) == (kind, name)


def test_a_vllm_of_before_the_variable_is_not_told_to_set_it(judge_report: Judge, finding: Find) -> None:
    report = "Traceback (most recent call last):\n" + OLD_VLLM + TOO_OLD
    names = [each.name for each in finding(judge_report(report), "driver-too-old").remedies]
    assert "VLLM_ENABLE_CUDA_COMPATIBILITY" not in names
