"""NCCL libraries that do not fit: too old, mixed, faulty, not there; and NCCL's messages about others' faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

OLD = """\
torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, invalid argument, NCCL version 2.14.3
ncclInvalidArgument: Invalid value for an argument.
Last error:
Invalid config blocking attribute value -2147483648
"""
FAULTY = """\
torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.18.1
ncclUnhandledCudaError: Call to CUDA function failed.
Last error:
Cuda failure 'invalid argument'
"""
LACKS = "ImportError: /opt/conda/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister\n"
LACKS_WINDOW = "AttributeError: /usr/lib/x86_64-linux-gnu/libnccl.so.2: undefined symbol: ncclCommWindowRegister\n"
MIXED = "node1:1:1 [0] init.cc:1000 NCCL WARN Mismatched NCCL version detected : rank 0 version 22005 rank 8 version 21805\n"
ABSENT = "ERROR pynccl.py:44] Failed to load NCCL library from libnccl.so.2 . If you already have the library, please set the environment variable VLLM_NCCL_SO_PATH to point to the correct nccl library path.\n"


@pytest.mark.parametrize(
    ("report", "certainty", "value"),
    [
        (OLD, Certainty.PROVEN, "match:torch"),
        (FAULTY, Certainty.LIKELY, ">=2.18.3"),
        (LACKS, Certainty.PROVEN, ">=2.19"),
        (LACKS_WINDOW, Certainty.PROVEN, ">=2.27"),
        (MIXED, Certainty.PROVEN, "match:torch"),
        (ABSENT, Certainty.POSSIBLE, "match:torch"),
    ],
)
def test_each_way_not_to_fit(judge_report: Judge, finding: Find, report: str, certainty: Certainty, value: str) -> None:
    found = finding(judge_report(report), "nccl-version")
    assert (found.certainty, found.component) == (certainty, "nccl")
    assert value in [each.value for each in found.remedies if each.name == "nvidia-nccl"]


def test_the_release_that_torch_requires_is_named(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(OLD, {"torch": "2.1.2+cu121"}), "nccl-version")
    assert any("2.18.1" in each.statement for each in found.evidence)
    assert found.remedies[0].value == ">=2.18.1"


def test_two_packages_are_quoted(judge_report: Judge, finding: Find) -> None:
    facts = {"packages.nvidia-nccl-cu11": "2.14.3", "packages.nvidia-nccl-cu12": "2.18.1"}
    found = finding(judge_report(OLD, facts), "nccl-version")
    assert any("nvidia-nccl-cu11 2.14.3" in each.statement for each in found.evidence)
    assert not found.missing


def test_mixed_releases_want_one_image(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(MIXED), "nccl-version")
    assert "image" in [each.name for each in found.remedies]


def test_a_refused_call_of_another_release_asks(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(FAULTY.replace("2.18.1", "2.28.9")), "nccl-version")
    assert found.certainty is Certainty.POSSIBLE
    assert found.missing[0].key.startswith("packages")


@pytest.mark.parametrize(
    "report",
    [
        FAULTY.replace("invalid argument", "out of memory"),
        FAULTY.replace("Cuda failure 'invalid argument'", "transport/nvls.cc:244 NCCL WARN Cuda failure 1 'invalid argument'"),
        "$ export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n" + FAULTY,
        "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:164 'invalid argument'\n",
        "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory\n",
        "ImportError: a.so: undefined symbol: _ZN3c104cuda9SetDeviceEi\n",
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:219, unhandled system error, NCCL version 2.20.5\n",
    ],
)  # fmt: skip
def test_near_misses(judge_report: Judge, report: str) -> None:
    assert "nccl-version" not in [each.cause for each in judge_report(report).findings]


CUT = "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/{}, NCCL version {}\n"


@pytest.mark.parametrize(
    "line",
    [
        CUT.format("NCCLUtils.hpp:219, invalid argument", "2.14.3"),
        CUT.format("ProcessGroupNCCL.cpp:1333, unhandled cuda error (run with NCCL_DEBUG=INFO for details)", "2.18.1"),
    ],
)
def test_a_paste_that_ends_at_the_version_asks_for_the_packages(judge_report: Judge, finding: Find, line: str) -> None:
    found = finding(judge_report(line), "nccl-version")
    assert found.certainty is Certainty.POSSIBLE
    assert found.evidence[0].quote.startswith("torch.distributed.DistBackendError")
    assert "packages.nvidia-nccl-cu12" in [each.key for each in found.missing]


@pytest.mark.parametrize(
    "report",
    [
        CUT.format("ProcessGroupNCCL.cpp:1333, unhandled cuda error (run with NCCL_DEBUG=INFO for details)", "2.21.5"),
        CUT.format("ProcessGroupNCCL.cpp:1333, unhandled cuda error (run with NCCL_DEBUG=INFO for details)", "2.18.1")
        + "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'\n",
    ],
)
def test_a_sound_release_or_a_failure_with_another_reason_is_not_suspected(judge_report: Judge, report: str) -> None:
    assert "nccl-version" not in [found.cause for found in judge_report(report).findings]


GREETING = "gpu01:412:441 [2] misc/socket.cc:518 NCCL WARN Message truncated : received 1104 bytes instead of 256\n"
PRINTED = "gpu0{}:41:41 [0] NCCL INFO NCCL version {}+cuda12.4\n"


def test_greetings_of_different_size_come_from_different_releases(judge_report: Judge, finding: Find) -> None:
    judged = judge_report(GREETING)
    assert finding(judged, "nccl-version").certainty is Certainty.LIKELY
    assert "collective-mismatch" not in [found.cause for found in judged.findings]


def test_the_releases_that_two_hosts_print_prove_it(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(PRINTED.format(1, "2.21.5") + PRINTED.format(2, "2.18.3") + GREETING), "nccl-version")
    assert found.certainty is Certainty.PROVEN
    assert any("2.18.3 here, 2.21.5 elsewhere" in each.statement for each in found.evidence)


def test_two_releases_without_a_failing_meeting_say_nothing(judge_report: Judge) -> None:
    judged = judge_report(PRINTED.format(1, "2.21.5") + PRINTED.format(2, "2.18.3"))
    assert "nccl-version" not in [found.cause for found in judged.findings]


def test_a_build_for_a_newer_cuda_than_torch_s(judge_report: Judge) -> None:
    text = "NCCL version 2.27.7+cuda13.0\ngpu1:77:90 [0] init.cc:433 NCCL WARN Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'\n"
    assert judge_report(text).findings[0].cause == "nccl-version"


def test_torch_s_own_word_on_the_driver_is_not_nccl_s(judge_report: Judge) -> None:
    text = "RuntimeError: CUDA driver version is insufficient for CUDA runtime version\n"
    assert "nccl-version" not in [found.cause for found in judge_report(text).findings]
