"""no-device-visible: CUDA_VISIBLE_DEVICES, Ray, and the order in which CUDA is asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "no-device-visible"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


TORCH = "RuntimeError: No CUDA GPUs are available\n"


@pytest.mark.parametrize("value", ["", "-1"])
def test_a_variable_that_hides_all_proves_it(judge_report: Judge, finding: Find, value: str) -> None:
    judgement = judge_report(TORCH, {"env.CUDA_VISIBLE_DEVICES": value, "nvidia_smi.host": "ok"})
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.certainty is Certainty.PROVEN
    assert proposed(found)[0] == ("env", "CUDA_VISIBLE_DEVICES", "unset")


def test_an_index_that_does_not_exist(judge_report: Judge, finding: Find) -> None:
    facts = {"env.CUDA_VISIBLE_DEVICES": "0,2", "gpus": ["0: NVIDIA A10 (8.6)", "1: NVIDIA A10 (8.6)"]}
    found = finding(judge_report("RuntimeError: CUDA error: invalid device ordinal\n", facts), CAUSE)
    assert "GPU 2" in found.title
    assert proposed(found)[0] == ("env", "CUDA_VISIBLE_DEVICES", "existing indices")


@pytest.mark.parametrize("text", [
    TORCH,
    "E cuda_driver.cc:271] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\n",
    "RuntimeError: Failed to infer device type\n",
    "RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) is available.\n",
    "RuntimeError: Unable to initialize backend 'cuda': No visible GPU devices.\n",
    "RuntimeError: CUDA error: invalid device ordinal\n",
    'RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED at "../aten/src/ATen/cuda/CUDAContext.cpp":50, device=1, num_gpus=1\n',
    "ValueError: The number of required GPUs exceeds the total number of available GPUs in the placement group.\n",
])  # fmt: skip
def test_every_wording_asks_for_the_variable(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"env.CUDA_VISIBLE_DEVICES", "nvidia_smi.host"} <= {missing.key for missing in found.missing}


@pytest.mark.parametrize("text", [
    "I cuda_diagnostics.cc:168] possibly because CUDA_VISIBLE_DEVICES is set to -1\nfailed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\n",
    "ERROR: CUDA_VISIBLE_DEVICES is set to empty string, which means GPU support is disabled.\nRuntimeError: Failed to infer device type\n",
    "ValueError: invalid literal for int() with base 10: 'MIG-GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f/7/0'\n",
])  # fmt: skip
def test_a_program_that_names_the_variable(judge_report: Judge, finding: Find, text: str) -> None:
    assert finding(judge_report(text), CAUSE).certainty is Certainty.LIKELY


def test_an_actor_of_ray_lost_them(judge_report: Judge, finding: Find) -> None:
    text = "(_MapWorker pid=158704, ip=192.0.2.7) ERROR worker_base.py:382] RuntimeError: No CUDA GPUs are available\n"
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.component == "ray"
    assert ("patch", "user program", "no torch.cuda call before the engine exists") in proposed(found)


def test_too_many_ranks_for_the_visible_gpus(judge_report: Judge, finding: Find) -> None:
    text = "INFO [api_server.py:1] vLLM API server version 0.11.0\nRuntimeError: CUDA error: invalid device ordinal\n"
    assert ("flag", "--tensor-parallel-size", "lower") in proposed(finding(judge_report(text), CAUSE))


@pytest.mark.parametrize("facts", [
    {"container.gpus": None, "container.in_container": True},
    {"libcuda_path": None},
    {"nvidia_smi.host": "No devices were found"},
])  # fmt: skip
def test_without_driver_or_device_the_environment_is_not_to_blame(judge_report: Judge, facts: dict[str, object]) -> None:  # fmt: skip
    judgement = judge_report(TORCH, facts)
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


@pytest.mark.parametrize("text", [
    "AssertionError: Torch not compiled with CUDA enabled\n",
    "ImportError('libcuda.so.1: cannot open shared object file: No such file or directory')\nRuntimeError: Failed to infer device type\n",
    "RuntimeError: Found no NVIDIA driver on your system.\n",
    "INFO no GPUs detected, the CPU is used\nValueError: something else broke\n",
    "ValueError: invalid literal for int() with base 10: ''\n",
])  # fmt: skip
def test_neighbours_are_left_alone(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_two_ranks_on_one_gpu(judge_report: Judge, finding: Find) -> None:
    report = "h:12:90 [0] init.cc:795 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000\n"
    found = finding(judge_report(report), CAUSE)
    assert (found.certainty, found.component) == (Certainty.LIKELY, "user-program")
    assert proposed(found)[0][:2] == ("patch", "user program")


def test_vllms_own_process_prefix_is_not_rays(judge_report: Judge, finding: Find) -> None:
    report = "(Worker_TP1 pid=5533) ERROR 10-09 05:44:12 torch.AcceleratorError: CUDA error: invalid device ordinal\n"
    assert finding(judge_report(report), CAUSE).component == "user-program"


def test_more_ranks_than_ray_has_gpus(judge_report: Judge, finding: Find) -> None:
    report = (
        "ValueError: The number of required GPUs exceeds the total number of available GPUs in the placement group.\n"
    )
    found = finding(judge_report(report), CAUSE)
    assert (found.component, found.remedies[0].value) == ("ray", "lower")


def test_the_program_that_cannot_read_the_variable_is_named(judge_report: Judge, finding: Find) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.12/site-packages/vllm/platforms/cuda.py", line 41, in device_id_to_physical_device_id\n'
        "    return int(physical_device_id)\nValueError: invalid literal for int() with base 10: 'MIG-4c9cd9ad-8a0a-5f3c-9b1d-3bd8b1e0a1f2'\n"
    )
    assert finding(judge_report(text), "no-device-visible").component == "vllm"


def test_the_web_interface_finds_no_gpu(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: Torch is not able to use GPU; add --skip-torch-cuda-test to COMMANDLINE_ARGS variable to disable this check\n"
    assert finding(judge_report(text), "no-device-visible").missing


def test_unsloth_finds_no_accelerator(judge_report: Judge, finding: Find) -> None:
    text = "NotImplementedError: Unsloth cannot find any torch accelerator? You need a GPU.\n"
    told = {"env.CUDA_VISIBLE_DEVICES": "", "nvidia_smi.host": "ok"}
    judged = judge_report(text, told)
    assert judged.findings[0] is finding(judged, "no-device-visible")


@pytest.mark.parametrize(
    "error",
    ["Error 804: forward compatibility was attempted on non supported HW", "Error 802: system not yet initialized"],
)
def test_what_torch_told_of_cuda_before_is_the_lead(judge_report: Judge, error: str) -> None:
    text = f"UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before? {error} (Triggered internally at CUDAFunctions.cpp:108.)\nRuntimeError: No CUDA GPUs are available\n"
    causes = [found.cause for found in judge_report(text).findings]
    assert causes
    assert CAUSE not in causes
    assert "container-gpu-not-passed" not in causes


def test_gpus_are_counted_from_zero_in_a_container_that_was_given_some(judge_report: Judge) -> None:
    start = "docker run --gpus '\"device=4,5\"' -e CUDA_VISIBLE_DEVICES={} lmsysorg/sglang:latest python3 -m sglang.launch_server\n"
    error = "RuntimeError: No CUDA GPUs are available\n"
    first = judge_report(start.format("4,5") + error).findings[0]
    assert (first.cause, first.certainty, first.remedies[0].value) == (CAUSE, Certainty.LIKELY, "existing indices")
    assert judge_report(start.format("0,1") + error).findings[0].certainty is Certainty.POSSIBLE
