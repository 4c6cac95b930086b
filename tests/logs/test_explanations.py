"""Which line says why: warnings and plain statements that outrank the error that reports the failure."""

from __future__ import annotations

import pytest
from tests.logs.recognisers.reading import incident, primary


@pytest.mark.parametrize(
    ("reason", "failure"),
    [
        ("Failed to get device capability: SM 12.x requires CUDA >= 12.9.", "RuntimeError: No supported CUDA architectures found for major versions [12]."),
        ("/x/torch/cuda/__init__.py:326: UserWarning:\nNVIDIA GTX 1080 with CUDA capability sm_61 is not compatible with the current PyTorch installation.", "CUDA error: no kernel image is available for execution on the device"),
        ("INFO 02-26 09:54:05 worker.py:267] the rest of the memory reserved for KV Cache is -1.05GiB.", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"),
        ("worker-3:1958:1958 [3] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth2", "torch.distributed.DistBackendError: NCCL error: ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) nor AF_INET6(10)"),
        ("INFO - Fetching cubin 2905357/fmha/x from https://host.example//2905357/fmha/x.cubin", "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"),
        ("Failed to create NCCL communicator: invalid usage. Last NCCL warning(error) log entry: 'Bootstrap : no socket interface found'", "jax.errors.JaxRuntimeError: INTERNAL: NCCL operation ncclCommInitRankConfig failed: invalid usage"),
        ("INFO 04-15 10:21:07 pynccl.py:58] Loading nccl from library /home/user/.config/vllm/nccl/cu12/libnccl.so.2.18.1", "Bus error (core dumped)"),
    ],
)  # fmt: skip
def test_the_reason_is_the_primary_and_says_what_it_surfaced_as(reason: str, failure: str) -> None:
    event = primary(f"{reason}\n{failure}\n")
    assert event.text.partition("\n")[0] in reason
    if "surfaced_as" in event.detail:
        assert event.detail["surfaced_as"] in failure


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("No operator found for `memory_efficient_attention_forward`", "WARNING[XFORMERS]: xFormers was built for:\n    PyTorch 2.3.0 (you have 2.1.0)"),
        ("UserWarning: Error 802: system not yet initialized", "nv-fabricmanager: fabric manager NVIDIA GPU driver interface version 535.183.01 don't match with driver version"),
    ],
)  # fmt: skip
def test_a_state_of_the_host_explains_wherever_it_stands(first: str, second: str) -> None:
    event = primary(f"NotImplementedError: {first}\n\n{second}\n")
    assert second.partition("\n")[0].endswith(event.text.partition("\n")[0])


def test_a_warning_after_the_failure_explains_nothing() -> None:
    event = primary(
        "RuntimeError: No supported CUDA architectures found for major versions [12].\n"
        "Failed to get device capability: SM 12.x requires CUDA >= 12.9.\n"
    )
    assert event.kind == "exception"


def test_the_reason_takes_the_frames_of_the_failure_along() -> None:
    found = incident(
        """\
        Failed to get device capability: SM 12.x requires CUDA >= 12.9.
        Traceback (most recent call last):
          File "/opt/venv/lib/python3.12/site-packages/flashinfer/compilation_context.py", line 95, in get_nvcc_flags_list
            raise RuntimeError(
        RuntimeError: No supported CUDA architectures found for major versions [12].
        """
    )
    event = found.primary_event
    assert event is not None
    assert event.exceptions[0].frames[-1].function == "get_nvcc_flags_list"
    assert found.event(event.id) == event


def test_something_begun_explains_only_what_took_long_and_never_came_up() -> None:
    begun = "[2025-08-28 21:09:10 TP0] Entering DeepGEMM JIT Pre-Compile session. It may take a long time\n"
    ready = "[2025-08-28 21:12:00] The server is fired up and ready to roll!\n"
    failure = "[2025-08-28 21:19:34 TP0] ERROR: Watchdog timeout\nRuntimeError: Watchdog timed out\n"
    soon = failure.replace("21:19:34", "21:09:12")
    assert "Pre-Compile" in primary(begun + failure).text
    assert "Pre-Compile" not in primary(begun + ready + failure).text
    assert "Pre-Compile" not in primary(begun + soon).text


@pytest.mark.parametrize(
    "line",
    [
        "worker-3:1958:1958 [3] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth2",
        "INFO 04-15 10:21:07 pynccl.py:58] Found nccl from library /home/user/.config/vllm/nccl/cu12/libnccl.so.2.18.1",
        "[2025-08-28 21:09:10 TP0] Entering DeepGEMM JIT Pre-Compile session. It may take a long time",
    ],
)
def test_a_statement_alone_is_no_failure(line: str) -> None:
    assert not incident(line).is_failure
