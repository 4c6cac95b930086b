"""driver-not-loaded: no kernel module, and why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.remedies import order

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "driver-not-loaded"
NO_ANSWER = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n"
FOUND_NONE = "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx\n"


def first_remedy(found: Finding) -> tuple[str, str, str]:
    first = order(found.remedies)[0]
    return first.kind, first.name, first.value


def test_nothing_answers(judge_report: Judge) -> None:
    first = judge_report(NO_ANSWER).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert first_remedy(first) == ("kernel", "nvidia", "load")


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-60-generic\n", ("system-package", "linux-headers", "match:kernel")),
        ("Error! Bad return status for module build on kernel: 6.14.0-27-generic (x86_64)\nConsult /var/lib/dkms/nvidia/550.120/build/make.log for more information.\n", ("system-package", "linux-headers", "match:kernel")),
        ("Error! Your kernel headers for kernel 6.1.0-18-amd64 cannot be found at /lib/modules/6.1.0-18-amd64/build.\n", ("system-package", "linux-headers", "match:kernel")),
        ("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service\n", ("config", "Secure Boot", "enrol the module's key, or off")),
        ("[    3.141592] NVRM: GPU 0000:01:00.0 is already bound to nouveau.\n", ("kernel", "nouveau", "blacklist")),
        ("[    3.141592] NVRM: The NVIDIA probe routine was not called for 1 device(s).\n", ("kernel", "nouveau", "blacklist")),
        ("ERROR: The Nouveau kernel driver is currently in use by your system.  This driver is incompatible with the NVIDIA driver\n", ("kernel", "nouveau", "blacklist")),
        ("[    4.413000] NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2684) installed in this system is not supported by the NVIDIA 470.256.02 driver release.\n", ("driver", "nvidia", "newer")),
    ],
)  # fmt: skip
def test_the_kernel_says_why(judge_report: Judge, reason: str, remedy: tuple[str, str, str]) -> None:
    first = judge_report(reason + NO_ANSWER).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.PROVEN)
    assert first_remedy(first) == remedy
    assert judge_report(reason).findings[0].certainty is Certainty.LIKELY


def test_ubuntu_offers_the_driver_s_package(judge_report: Judge) -> None:
    text = (
        "Command 'nvidia-smi' not found, but can be installed with:\nsudo apt install nvidia-utils-535\n" + FOUND_NONE
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)


def test_without_a_word_about_containers_both_stay_possible(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report(FOUND_NONE)
    assert finding(judgement, CAUSE).certainty is Certainty.POSSIBLE
    assert finding(judgement, "container-gpu-not-passed").certainty is Certainty.POSSIBLE


def test_a_fact_that_it_is_no_container_decides(judge_report: Judge) -> None:
    first = judge_report(FOUND_NONE, {"container.in_container": False}).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (NO_ANSWER, {"nvidia_smi.host": "ok"}),
        (NO_ANSWER, {"driver": "550.54.15"}),
        ("docker run -it vllm/vllm-openai:v0.8.5 --model m\n" + FOUND_NONE, {}),
        ("Failed to initialize NVML: Driver/library version mismatch\n", {}),
        ("nvidia: module verification failed: signature and/or required key missing - tainting kernel\nRuntimeError: CUDA error: out of memory\n", {}),
        ("modprobe: FATAL: Module nvidia-uvm not found in directory /lib/modules/6.8.0-60-generic\n", {}),
        ("which: no nvidia-smi in (/usr/bin:/bin)\nRuntimeError: FlashInfer requires GPUs with sm75 or higher\n", {}),
    ],
)  # fmt: skip
def test_near_misses(judge_report: Judge, text: str, facts: dict[str, object]) -> None:
    assert CAUSE not in [found.cause for found in judge_report(text, facts).findings]
