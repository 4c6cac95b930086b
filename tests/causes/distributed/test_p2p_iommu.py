"""Peer traffic that does not arrive: the first collective, the kernel's faults, tests with and without the direct path."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

HANG = """\
(Worker_TP0 pid=2210) INFO [pynccl.py:111] vLLM is using nccl==2.27.5
worker-0:2210:2210 [0] NCCL INFO ncclCommInitRank rank 0 nranks 2 - Init COMPLETE
(no further output; both GPUs at 100% utilisation)
"""
FAULT = """\
nvidia 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0021 address=0xd2000000 flags=0x0020]
RuntimeError: CUDA error: an illegal memory access was encountered
"""
FIRST_COLLECTIVE = "[rank0]:[E817 10:00:00.0 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
WRONG_DATA = """\
[./simpleP2P] - Starting...
> Peer access from NVIDIA RTX 4090 (GPU0) -> NVIDIA RTX 4090 (GPU1) : Yes
Verification error @ element 1: val = 0.000000, ref = 4.000000
Test failed!
"""
CURES = {"p2p_test": "all-reduce hangs; completes with NCCL_P2P_DISABLE=1"}


def test_a_hang_alone_is_possible_and_asks_for_the_test(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(HANG), "p2p-iommu")
    assert found.certainty is Certainty.POSSIBLE
    assert found.component == "iommu"
    assert [each.key for each in found.missing] == ["p2p_test", "pci_acs", "iommu"]
    assert (found.remedies[0].name, found.remedies[0].value) == ("NCCL_P2P_DISABLE", "1")


def test_the_test_makes_it_likely_and_the_bridges_prove_it(judge_report: Judge, finding: Find) -> None:
    assert finding(judge_report(HANG, CURES), "p2p-iommu").certainty is Certainty.LIKELY
    proven = finding(judge_report(HANG, {**CURES, "pci_acs": "root ports: ReqRedir+ CmpltRedir+"}), "p2p-iommu")
    assert proven.certainty is Certainty.PROVEN
    assert "ReqRedir+" in proven.chain[0].evidence.quote  # type: ignore[union-attr]


@pytest.mark.parametrize("report", [FAULT, WRONG_DATA])
def test_the_mechanism_seen_in_the_log(judge_report: Judge, finding: Find, report: str) -> None:
    judgement = judge_report(report)
    assert judgement.findings[0].cause == "p2p-iommu"
    assert finding(judgement, "p2p-iommu").certainty is Certainty.LIKELY


def test_the_first_tiny_collective(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(FIRST_COLLECTIVE), "p2p-iommu")
    assert "ALLREDUCE of 1 elements" in found.evidence[0].statement
    assert "startup-timeout" in found.rivals


def test_a_cure_that_the_reporter_names(judge_report: Judge, finding: Find) -> None:
    report = "tensor parallel 2 hangs after init. Setting NCCL_P2P_DISABLE=1 fixes it.\n"
    assert finding(judge_report(report), "p2p-iommu").certainty is Certainty.LIKELY


def test_with_the_iommu_off_nothing_is_switched_off_again(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(HANG, {**CURES, "iommu": "off", "pci_acs": "none"}), "p2p-iommu")
    assert found.certainty is Certainty.LIKELY
    assert found.against
    assert not [each for each in found.remedies if each.kind == "kernel"]


def test_a_boot_parameter_that_is_set_is_not_proposed(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(HANG, {**CURES, "kernel_cmdline": "ro quiet intel_iommu=off"}), "p2p-iommu")
    assert "intel_iommu" not in [each.name for each in found.remedies]


def test_no_difference_without_the_direct_path_rules_it_out(judge_report: Judge) -> None:
    judgement = judge_report(HANG, {"p2p_test": "hangs with and without NCCL_P2P_DISABLE=1, both hang"})
    assert "p2p-iommu" in [each.cause for each in judgement.ruled_out]


@pytest.mark.parametrize(
    "report",
    [
        # the bootstrap was not over
        "worker-0:1:1 [0] NCCL INFO Bootstrap : Using eth0:192.0.2.8<0>\n(hangs here, no further output)\n",
        # another step of the order decides
        FIRST_COLLECTIVE.replace("SeqNum=1,", "SeqNum=9000,"),
        "mlx5_core 0000:5e:00.0: Port module event: module 0, Cable unplugged\n" + FIRST_COLLECTIVE.replace("SeqNum=1,", "SeqNum=9000,"),
        # it did not hang, and a fault of another device is none of a GPU
        HANG + 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: x\n',
        "ahci 0000:00:17.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0001 address=0x0 flags=0x0020]\n",
        # a warning of a hang, and a hang of something else
        "NCCL WARN Using too few CUDA connections may hang with tensor parallel\n",
        "NCCL version 2.21.5\nDownloading shards hangs at 0%\n",
    ],
)  # fmt: skip
def test_near_misses(judge_report: Judge, report: str) -> None:
    assert "p2p-iommu" not in [each.cause for each in judge_report(report).findings]


def test_an_intel_fault_before_the_mmu_fault_of_the_gpu(judge_report: Judge, finding: Find) -> None:
    report = (
        "[ 1234.5] DMAR: [DMA Write NO_PASID] Request device [41:00.0] fault addr 0xd0000000 [fault reason 0x05] PTE Write access is not set\n"
        "[ 1234.6] NVRM: Xid (PCI:0000:41:00): 31, pid=77, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE CE2\n"
    )
    judgement = judge_report(report)
    assert judgement.findings[0].cause == "p2p-iommu"
    assert "intel_iommu" in [each.name for each in finding(judgement, "p2p-iommu").remedies]


def test_acs_bits_and_a_test_in_the_report_prove_it(judge_report: Judge, finding: Find) -> None:
    report = (
        "all_reduce_perf -g 2 hangs on two GPUs. all_reduce_perf with NCCL_P2P_DISABLE=1 completes.\n"
        "00:01.1 PCI bridge: ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
    )
    assert finding(judge_report(report), "p2p-iommu").certainty is Certainty.PROVEN


def test_an_experiment_given_as_a_fact(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(HANG, {"tests.NCCL_P2P_DISABLE=1": "completes"}), "p2p-iommu")
    assert found.certainty is Certainty.LIKELY


def test_busy_gpus_in_the_table_of_nvidia_smi(judge_report: Judge, finding: Find) -> None:
    report = (
        "INFO 03-03 10:00:00 pynccl.py:63] vLLM is using nccl==2.20.5\n"
        "|   0  NVIDIA GeForce RTX 4090        On  | 00000000:01:00.0 Off |                  Off |\n"
        "| 30%   45C    P2              70W / 450W |   1234MiB / 24564MiB |    100%      Default |\n"
    )
    assert finding(judge_report(report), "p2p-iommu").certainty is Certainty.POSSIBLE


def test_a_hang_told_in_chinese(judge_report: Judge, finding: Find) -> None:
    report = "使用两张 RTX 4090，tensor_parallel_size=2 启动时卡住不动\nINFO pynccl.py:69] vLLM is using nccl==2.20.5\n"
    assert finding(judge_report(report), "p2p-iommu").certainty is Certainty.POSSIBLE


DMAR = "[98231.12] DMAR: [DMA Write NO_PASID] Request device [17:00.0] fault addr 0x3e1fe0000 [fault reason 0x05] PTE Write access is not set\n"


@pytest.mark.parametrize(
    "beside",
    [
        "With peer access on, two GPUs give garbage.\n",
        "|   0  NVIDIA RTX A4000               Off | 00000000:17:00.0 Off |                  Off |\n",
    ],
)
def test_a_fault_of_a_bare_address_is_a_gpus_where_something_says_so(judge_report: Judge, finding: Find, beside: str) -> None:  # fmt: skip
    found = finding(judge_report(beside + DMAR), "p2p-iommu")
    assert "DMAR: [DMA Write" in found.evidence[0].quote


def test_a_fault_of_another_device_is_not(judge_report: Judge) -> None:
    report = "|   0  NVIDIA RTX A4000               Off | 00000000:65:00.0 Off |                  Off |\n" + DMAR
    assert "p2p-iommu" not in [found.cause for found in judge_report(report).findings]


@pytest.mark.parametrize(
    "words",
    [
        "It just sits there, both GPUs are busy.",
        "With tensor parallel 2 the server never starts.",
        "The log stops here and nothing happens.",
        "It does not proceed after that.",
    ],
)
def test_people_say_in_many_words_that_nothing_goes_on(judge_report: Judge, finding: Find, words: str) -> None:
    report = (
        words
        + "\nn:91:91 [0] NCCL INFO comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x3f - Init COMPLETE\n"
    )
    found = finding(judge_report(report), "p2p-iommu")
    assert found.certainty is Certainty.POSSIBLE
    assert "p2p_test" in [each.key for each in found.missing]


def test_the_words_are_found_amid_thousands_of_healthy_lines(judge_report: Judge, finding: Find) -> None:
    healthy = "".join(f'INFO: 192.0.2.9:{40000 + i} - "GET /health HTTP/1.1" 200 OK\n' for i in range(2500))
    words = "Serving with tensor parallel 2, it just sits there with both GPUs busy:\nINFO utils.py:841] Found nccl from library libnccl.so.2\n"
    assert finding(judge_report(healthy + words + healthy), "p2p-iommu").certainty is Certainty.POSSIBLE


def test_a_fault_whose_device_is_given_as_amd_writes_it(judge_report: Judge, finding: Find) -> None:
    text = (
        "all_reduce_perf hangs on 2x RTX 4090\n"
        "[ 8123.110] AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:41:00.0 domain=0x0021 address=0x3fff80000000 flags=0x0030]\n"
    )
    assert finding(judge_report(text), "p2p-iommu").certainty is Certainty.LIKELY


def test_the_driver_refuses_peers(judge_report: Judge, finding: Find) -> None:
    text = "bare:18:33 [1] transport/p2p.cc:275 NCCL WARN Cuda failure 217 'peer access is not supported between these two devices'\n"
    assert finding(judge_report(text), "p2p-iommu").certainty is Certainty.POSSIBLE


_INITIALISED = "worker-0:{pid}:{pid} [{rank}] NCCL INFO ncclCommInitRank rank {rank} nranks {of} cudaDev {rank} nvmlDev {rank} busId 41000 - Init COMPLETE\n"


def _ending(of: int, after: str = "") -> str:
    lines = "".join(_INITIALISED.format(pid=2210 + rank, rank=rank, of=of) for rank in range(of))
    return "(Worker_TP0 pid=2210) INFO [pynccl.py:111] vLLM is using nccl==2.27.5\n" + lines + after


def test_a_paste_that_ends_with_the_initialisation_may_be_a_hang(judge_report: Judge) -> None:
    first = judge_report(_ending(2)).findings[0]
    assert (first.cause, first.certainty) == ("p2p-iommu", Certainty.POSSIBLE)


@pytest.mark.parametrize(
    "text",
    [
        _ending(1),
        _ending(2, "(Worker_TP0 pid=2210) INFO [gpu_model_runner.py:2602] Starting to load model x...\n"),
        _ending(2, "ValueError: the model has no such layer\n"),
    ],
)
def test_near_miss_one_rank_or_more_words_after_it(judge_report: Judge, text: str) -> None:
    assert "p2p-iommu" not in [found.cause for found in judge_report(text).findings]
