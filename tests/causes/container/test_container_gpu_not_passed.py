"""container-gpu-not-passed: what tells a container without GPUs from an old driver and from a hidden device."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "container-gpu-not-passed"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


TORCH = "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver\n"
LIBCUDA = "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory\n"
INSUFFICIENT = "RuntimeError: CUDA driver version is insufficient for CUDA runtime version\n"


@pytest.mark.parametrize("text", [
    TORCH,
    LIBCUDA,
    INSUFFICIENT,
    "pynvml.nvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found\n",
    "RuntimeError: 0 active drivers ([]). There should only be one.\n",
    "RuntimeError: Failed to infer device type\n",
])  # fmt: skip
def test_the_text_alone_asks_how_the_container_was_started(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"container.gpus", "container.capabilities", "libcuda_path"} <= {missing.key for missing in found.missing}
    assert found.component == "container-engine"
    assert ("flag", "--gpus", "all") in proposed(found)


def test_without_the_compute_capability_there_is_no_libcuda(judge_report: Judge, finding: Find) -> None:
    facts = {"container.in_container": True, "container.capabilities": "utility", "libcuda_path": None, "nvidia_smi.container": "ok"}  # fmt: skip
    found = finding(judge_report(TORCH, facts), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert proposed(found)[0] == ("env", "NVIDIA_DRIVER_CAPABILITIES", "compute,utility")


def test_a_start_that_is_shown_without_gpus(judge_report: Judge, finding: Find) -> None:
    shown = "$ docker run -p 8000:8000 vllm/vllm-openai:latest --model x\n"
    found = finding(judge_report(shown + LIBCUDA), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert any("docker run" in (evidence.quote or "") for evidence in found.evidence)
    assert proposed(found)[0] == ("flag", "--gpus", "all")


def test_a_container_without_gpus_by_facts(judge_report: Judge) -> None:
    facts = {"container.in_container": True, "container.gpus": None, "nvidia_smi.host": "ok"}
    assert names(judge_report("RuntimeError: No CUDA GPUs are available\n", facts))[0] == CAUSE
    assert names(judge_report(INSUFFICIENT, facts))[0] == CAUSE


@pytest.mark.parametrize(("start", "remedy"), [
    ("$ kubectl logs vllm-0\n", ("config", "resources.limits", "nvidia.com/gpu: 1")),
    ("$ podman run --rm vllm\n", ("flag", "--device", "nvidia.com/gpu=all")),
    ("$ apptainer run vllm.sif\n", ("flag", "--nv", "")),
])  # fmt: skip
def test_gpus_are_asked_for_in_the_engines_own_way(judge_report: Judge, finding: Find, start: str, remedy: tuple[str, str, str]) -> None:  # fmt: skip
    assert proposed(finding(judge_report(start + LIBCUDA), CAUSE))[0] == remedy


def test_an_image_build_has_no_gpu(judge_report: Judge, finding: Find) -> None:
    text = LIBCUDA + "#12 ERROR: process \"/bin/sh -c python -c 'import vllm'\" did not complete successfully: exit code: 1\n"  # fmt: skip
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert ("config", "docker default-runtime", "nvidia") in proposed(found)


def test_a_warning_about_libcuda_explains_the_engines_own_error(judge_report: Judge) -> None:
    text = "WARNING 01-01 [interface.py:222] Failed to import from vllm._C: ImportError('libcuda.so.1: cannot open shared object file: No such file or directory')\nRuntimeError: Failed to infer device type\n"
    assert names(judge_report(text))[0] == CAUSE


def test_selinux_keeps_the_devices_closed(judge_report: Judge, finding: Find) -> None:
    text = "$ podman run --device nvidia.com/gpu=all ubuntu nvidia-smi\nFailed to initialize NVML: Insufficient Permissions\n"
    assert proposed(finding(judge_report(text), CAUSE))[0] == ("flag", "--security-opt", "label=disable")


@pytest.mark.parametrize(("text", "facts"), [
    (TORCH, {"container.in_container": False}),
    (TORCH, {"libcuda_path": "/usr/lib/x86_64-linux-gnu/libcuda.so.1"}),
    (INSUFFICIENT, {"driver": "470.82.01"}),
    ("RuntimeError: No CUDA GPUs are available\n", {"env.CUDA_VISIBLE_DEVICES": ""}),
])  # fmt: skip
def test_facts_rule_it_out(judge_report: Judge, text: str, facts: dict[str, object]) -> None:
    judgement = judge_report(text, facts)
    assert CAUSE not in names(judgement)
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


@pytest.mark.parametrize("text", [
    "/usr/bin/ld: warning: libcuda.so.1, needed by libx.so, not found (try using -rpath or -rpath-link)\n",
    "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file\n",
    "could not load NVML library: libnvidia-ml.so.1: cannot open shared object file\n",
    "AssertionError: Torch not compiled with CUDA enabled\n",
    "ImportError: libnuma.so.1: cannot open shared object file: No such file or directory\n",
    'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].\n',
])  # fmt: skip
def test_neighbours_are_left_alone(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


CODEC = "OSError: libnvcuvid.so.1: cannot open shared object file: No such file or directory\n"


def test_a_part_of_the_driver_needs_a_capability_of_its_own(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("docker run --gpus all IMAGE python decode.py\n" + CODEC), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert [(each.name, each.value) for each in found.remedies] == [("NVIDIA_DRIVER_CAPABILITIES", "compute,utility,video")]  # fmt: skip


def test_outside_a_container_that_part_is_a_missing_library(judge_report: Judge) -> None:
    assert CAUSE not in [found.cause for found in judge_report(CODEC).findings]


def test_a_part_of_the_driver_of_a_jetson(judge_report: Judge, finding: Find) -> None:
    text = "ImportError: libnvdla_compiler.so: cannot open shared object file: No such file or directory\n"
    judged = judge_report(text)
    assert judged.findings[0] is finding(judged, "container-gpu-not-passed")


_NO_DEVICE_TYPE = (
    "Traceback (most recent call last):\n"
    '  File "/usr/local/lib/python3.12/dist-packages/vllm/config/device.py", line 58, in __post_init__\n'
    "    raise RuntimeError(\n"
    "RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging to help debug the issue.\n"
)


@pytest.mark.parametrize(
    "said",
    [
        "nvidia-smi: command not found",
        "WARNING: nvidia-smi: command not found, continuing without",
        "/bin/bash: nvidia-smi: No such file or directory",
        "/entrypoint.sh: line 3: nvidia-smi: command not found",
        "zsh: command not found: nvidia-smi",
    ],
)
def test_tools_of_the_driver_that_are_absent_beside_an_engine_without_gpu(
    judge_report: Judge, finding: Find, said: str
) -> None:
    found = finding(judge_report(f"{said}\n{_NO_DEVICE_TYPE}"), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "nvidia-smi" in found.evidence[0].quote


def test_near_miss_an_absent_tool_beside_another_failure(judge_report: Judge) -> None:
    text = "nvidia-smi: command not found\n" + _NO_DEVICE_TYPE.replace("Failed to infer device type, please", "the model is unknown, please")  # fmt: skip
    assert CAUSE not in [found.cause for found in judge_report(text).findings]
