"""driver-too-old: what torch, the run time, the container hook and the image's banner say, and what decides."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "driver-too-old"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


TORCH = (
    "RuntimeError: The NVIDIA driver on your system is too old (found version 12080). Please update your GPU driver\n"
)
INSUFFICIENT = "CUDA error 35 at ggml-cuda.cu:4236: CUDA driver version is insufficient for CUDA runtime version\n"
COMPAT = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW\n"
HOOK = "docker: Error response from daemon: OCI runtime create failed: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.9, please update your driver to a newer version, or use an earlier cuda container: unknown.\n"
BANNER = """\
ERROR: This container was built for NVIDIA Driver Release 545.23 or later, but
       version 470.182.03 was detected and compatibility mode is UNAVAILABLE.
"""


@pytest.mark.parametrize(("text", "driver", "branch"), [
    (TORCH, "for CUDA 12.8", ">=580"),
    (TORCH.replace("12080", "11040"), "for CUDA 11.4", ">=525"),
    (BANNER, "470.182.03", ">=545"),
    ("RuntimeError: requires NVIDIA driver version >= 535.104 but found 470.82.01\n", "470.82.01", ">=535"),
])  # fmt: skip
def test_the_message_names_both_sides(judge_report: Judge, finding: Find, text: str, driver: str, branch: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty in (Certainty.PROVEN, Certainty.LIKELY)
    assert driver in found.title
    assert ("driver", "nvidia", branch) in proposed(found)
    assert found.component == "driver"


def test_the_wheel_for_the_drivers_cuda_comes_before_a_new_driver(judge_report: Judge, finding: Find) -> None:
    assert proposed(finding(judge_report(TORCH), CAUSE)) == [
        ("package", "torch", "cu128 build"),
        ("driver", "nvidia", ">=580"),
    ]


def test_the_hook_refuses_before_anything_starts(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(HOOK), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert "unsatisfied condition" in found.evidence[0].quote
    assert proposed(found)[0][:2] == ("container", "image")


def test_a_requirement_within_the_major_version_can_be_waived(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(HOOK, {"driver": "535.183.01"}), CAUSE)
    assert ("env", "NVIDIA_DISABLE_REQUIRE", "1") in proposed(found)
    assert ("driver", "nvidia", ">=575") in proposed(found)
    other_major = finding(judge_report(HOOK, {"driver": "470.82.01"}), CAUSE)
    assert "NVIDIA_DISABLE_REQUIRE" not in [name for _, name, _ in proposed(other_major)]


@pytest.mark.parametrize("text", [INSUFFICIENT, "cudaErrorInsufficientDriver: x\n", "[TRT] [E] CUDA initialization failure with error: 35. Please check\n"])  # fmt: skip
def test_error_35_alone_asks_for_the_driver(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"driver", "libcuda_path"} <= {missing.key for missing in found.missing}
    assert "container-gpu-not-passed" in found.rivals


def test_error_35_with_both_versions_is_proven(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(INSUFFICIENT, {"driver": "550.54.15", "container.image_cuda": "13.0"}), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert "550.54.15" in found.title
    assert "CUDA 13.0" in found.title


@pytest.mark.parametrize(("said", "needs"), [
    ("$ docker run --gpus all nvidia/cuda:13.0.1-runtime-ubuntu24.04 ./serve\n", "CUDA 13.0"),
    ("image: registry.example/serve:1.2-cu130\n", "CUDA 13.0"),
    ("torch==2.11.0\n", "CUDA 13.0"),
    ("loaded /usr/local/lib/libcudart.so.13\n", "CUDA 13"),
])  # fmt: skip
def test_the_programs_cuda_is_read_from_what_names_it(
    judge_report: Judge, finding: Find, said: str, needs: str
) -> None:
    found = finding(judge_report(said + INSUFFICIENT, {"driver": "550.54.15"}), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert found.title.endswith(needs)
    assert ("driver", "nvidia", ">=580") in proposed(found)


def test_the_fatal_line_is_quoted_and_not_the_warning_before_it(judge_report: Judge, finding: Find) -> None:
    text = "WARNING: failed to allocate 0.08 MB of pinned memory: CUDA driver version is insufficient for CUDA runtime version\n"
    found = finding(judge_report(text + INSUFFICIENT, {"driver": "470.182.03"}), CAUSE)
    assert found.evidence[0].quote.startswith("CUDA error 35 at")


@pytest.mark.parametrize("facts", [
    {"driver": "580.95.05", "torch_cuda": "12.8"},
    {"libcuda_path": None, "container.in_container": True},
    {"driver": None},
])  # fmt: skip
def test_error_35_is_not_the_drivers_age_when_it_is_new_or_absent(
    judge_report: Judge, facts: dict[str, object]
) -> None:
    judgement = judge_report(INSUFFICIENT, facts)
    assert CAUSE not in names(judgement)
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


def test_804_is_the_driver_when_the_image_needs_more(judge_report: Judge) -> None:
    facts = {"driver": "535.183.01", "torch_cuda": "12.8", "container.in_container": True}
    assert names(judge_report(COMPAT, facts))[0] == CAUSE


def test_804_is_not_the_driver_when_it_covers_the_program(judge_report: Judge) -> None:
    assert CAUSE not in names(judge_report(COMPAT, {"driver": "570.86.10", "torch_cuda": "12.4"}))


def test_a_number_below_the_drivers_own_is_another_libcuda(judge_report: Judge) -> None:
    judgement = judge_report(TORCH.replace("12080", "11040"), {"driver": "550.54.15"})
    assert names(judgement)[0] == "libcuda-shadowed"
    assert CAUSE not in names(judgement)


def test_vllm_has_a_switch_for_the_compatibility_library_on_data_centre_gpus(
    judge_report: Judge, finding: Find
) -> None:
    text = "INFO 08-03 17:45:41 [api_server.py:1] vLLM API server version 0.20.0\n" + TORCH
    switch = ("env", "VLLM_ENABLE_CUDA_COMPATIBILITY", "1")
    assert proposed(finding(judge_report(text, {"gpu": "NVIDIA A100-SXM4-80GB"}), CAUSE))[0] == switch
    assert switch not in proposed(finding(judge_report(text, {"gpu": "NVIDIA GeForce RTX 4090"}), CAUSE))
    assert switch not in proposed(finding(judge_report(text.replace("0.20.0", "0.11.0")), CAUSE))


@pytest.mark.parametrize("text", [
    "NOTE: CUDA Forward Compatibility mode ENABLED.\n  Using CUDA 12.4 driver version 550.54.14 with kernel driver version 535.161.07.\n",
    "torch.AcceleratorError: CUDA error: the provided PTX was compiled with an unsupported toolchain.\n",
    "RuntimeError: Found no NVIDIA driver on your system.\n",
    "RuntimeError: Error 802: system not yet initialized\n",
])  # fmt: skip
def test_neighbours_are_left_alone(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_triton_asks_the_driver_for_a_function_that_came_later(judge_report: Judge, finding: Find) -> None:
    report = "SystemError: Failed to retrieve cuOccupancyMaxActiveClusters from libcuda.so.1\n"
    assert finding(judge_report(report), CAUSE).certainty is Certainty.LIKELY


def test_a_program_of_the_host_is_not_sent_to_an_image(judge_report: Judge) -> None:
    text = (
        'time=2025-10-10T10:10:10.000Z level=INFO source=runner.go:80 msg="discovering available GPUs..."\n'
        "ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for CUDA runtime version\n"
        "load_backend: loaded CUDA backend from /usr/lib/ollama/cuda_v12/libggml-cuda.so\n"
        "| NVIDIA-SMI 470.223.02   Driver Version: 470.223.02   CUDA Version: 11.4     |\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, [remedy.kind for remedy in first.remedies]) == ("driver-too-old", ["driver"])
