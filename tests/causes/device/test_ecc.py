"""ecc: memory of a GPU that cannot be corrected."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "ecc"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


CUDA = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"


@pytest.mark.parametrize("text", [
    CUDA,
    "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: uncorrectable ECC error encountered\n",
    "failed to synchronize: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered\n",
    "node:1:2 [5] NCCL WARN Cuda failure 'uncorrectable ECC error encountered'\n",
    "NVRM: Xid (PCI:0000:8a:00): 48, pid=1, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6\n",
    "NVRM: Xid (PCI:0000:07:00): 95, pid=8, name=sglang, Uncontained: LTC TAG (0x2). RST: Yes, D-RST: No\n",
])  # fmt: skip
def test_every_wording(judge_report: Judge, finding: Find, text: str) -> None:
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.certainty is Certainty.PROVEN
    assert found.component == "gpu-hardware"
    assert proposed(found)[0][:2] == ("driver", "gpu-reset")
    assert ("hardware", "gpu", "replace") in proposed(found)


def test_the_error_is_quoted_without_its_wrapper(judge_report: Judge, finding: Find) -> None:
    text = '{"error":{"message":"timed out waiting for llama runner to start:CUDA error: uncorrectable ECC error encountered\\n  current device: 0, in function ggml_cuda_compute_forward at ggml-cuda.cu:2300\\n  err","type":"api_error"}}\n'  # fmt: skip
    found = finding(judge_report(text), CAUSE)
    assert found.evidence[0].quote == "CUDA error: uncorrectable ECC error encountered"


def test_no_spare_rows_means_another_card(judge_report: Judge, finding: Find) -> None:
    text = CUDA + "        Remapping Failure Occurred        : Yes\n"
    found = finding(judge_report(text), CAUSE)
    assert proposed(found)[0] == ("hardware", "gpu", "replace")
    assert next(remedy for remedy in found.remedies if remedy.kind == "hardware").is_sure


def test_a_retired_row_alone_is_of_the_record(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("NVRM: Xid (PCI:0000:8a:00): 63, Row Remapper: New row (0x1) marked for remapping, reset gpu to activate.\n"), CAUSE)  # fmt: skip
    assert found.certainty is Certainty.LIKELY


def test_an_illegal_access_beside_an_ecc_error_is_not_the_programs(judge_report: Judge) -> None:
    text = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"
    facts = {"kernel_log": ["NVRM: Xid (PCI:0000:8a:00): 94, pid=31, name=python3, Contained: SM (0x1). RST: No", "NVRM: Xid (PCI:0000:8a:00): 31, pid=31"]}  # fmt: skip
    assert names(judge_report(text, facts))[0] == CAUSE
    assert CAUSE not in names(judge_report(text))
    assert names(judge_report(text))[0] == "kernel-illegal-address"


def test_counters_of_zero_are_healthy(judge_report: Judge) -> None:
    text = "    ECC Errors\n        Volatile\n            SRAM Uncorrectable            : 0\n            DRAM Uncorrectable            : 0\nImportError: x\n"  # fmt: skip
    assert CAUSE not in names(judge_report(text))


def test_a_lost_card_that_comes_first_leads(judge_report: Judge, finding: Find) -> None:
    text = "NVRM: Xid (PCI:0000:8a:00): 79, GPU has fallen off the bus.\nNVRM: Xid (PCI:0000:8b:00): 48, DBE\n"
    judgement = judge_report(text)
    assert names(judgement)[0] == "gpu-lost"
    assert finding(judgement, CAUSE).certainty is Certainty.POSSIBLE


def test_it_asks_what_the_driver_counts(judge_report: Judge, finding: Find) -> None:
    assert "gpu_errors" in [missing.key for missing in finding(judge_report(CUDA), CAUSE).missing]


@pytest.mark.parametrize(("counted", "is_ecc"), [("GPU 2: DRAM Uncorrectable: 12", True), ("GPU 2: DRAM Uncorrectable: 0", False)])  # fmt: skip
def test_counters_given_as_a_fact(judge_report: Judge, counted: str, is_ecc: bool) -> None:
    judgement = judge_report("RuntimeError: CUDA error: unspecified launch failure\n", {"gpu_errors": [counted]})
    assert (names(judgement)[:1] == [CAUSE]) is is_ecc


TABLE = (
    "|   1  NVIDIA H100 PCIe               On  |   00000000:02:00.0 Off |                    2 |\n"
    "| N/A   36C    P0             48W /  350W |       1MiB /  81559MiB |      0%      Default |\n"
)


def test_a_count_beside_a_failure_on_the_gpu_is_likely(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report(TABLE + "RuntimeError: CUDA error: unspecified launch failure\n")
    assert names(judgement)[0] == CAUSE
    assert finding(judgement, CAUSE).certainty is Certainty.LIKELY


def test_a_count_alone_is_a_record(judge_report: Judge) -> None:
    judgement = judge_report(
        TABLE + "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (192.0.2.5, 29500).\n"
    )  # fmt: skip
    assert names(judgement)[0] == "bootstrap-network"


def test_an_unnamed_failure_asks_for_the_counters(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable\n"
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {each.key for each in found.missing} == {"gpu_errors", "kernel_log"}
    assert CAUSE not in names(
        judge_report("0: NVIDIA GeForce RTX 4090\nGPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-1)\n" + text)
    )


@pytest.mark.parametrize("text", [
    "GPU 5 has uncontained errors. Drain the GPU and reset it or reboot the node. (DCGM_FR_UNCONTAINED_ERROR)\n",
    "Detected 3 volatile double-bit ECC errors in GPU 2. Drain the GPU and reset it or reboot the node.\n",
    "GPU 4 had row remap failures. Drain the GPU and contact support: DCGM_FR_ROW_REMAP_FAILURE\n",
])  # fmt: skip
def test_the_diagnostics_of_dcgm(judge_report: Judge, text: str) -> None:
    assert names(judge_report(text + "torch.AcceleratorError: CUDA error: unspecified launch failure\n"))[0] == CAUSE
