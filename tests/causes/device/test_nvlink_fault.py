"""nvlink-fault: the links between GPUs fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "nvlink-fault"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


LINK = "NVRM: Xid (PCI:0000:0f:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 8(0x10000, 0x0, 0x0)\n"


@pytest.mark.parametrize("text", [
    LINK,
    "kernel: nvidia-nvswitch3: SXid (PCI:0000:c8:00.0): 20034, Fatal, Link 61 LTSSM Fault Up\n",
    "kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149\n",
    "NVRM: Xid (PCI:0000:dc:00): 145, RLW_CTRL Nonfatal XC0 i0 Link 05\n",
    "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution\n",
    "nv-fabricmanager[2900]: detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:C4:00.0 physical id 9 port 36\n",
])  # fmt: skip
def test_every_wording(judge_report: Judge, finding: Find, text: str) -> None:
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.certainty is Certainty.PROVEN
    assert found.component == "nvlink"
    assert ("hardware", "NVLink link", "diagnose") in proposed(found)


def test_the_first_of_the_lines_is_quoted(judge_report: Judge, finding: Find) -> None:
    text = LINK + "NVRM: Xid (PCI:0000:10:00): 119, pid=2, name=nvidia-smi, Timeout waiting for RPC from GSP!\n"
    assert "): 74," in finding(judge_report(text), CAUSE).evidence[0].quote


def test_the_links_of_a_lost_card_only_follow(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report("NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.\n" + LINK)
    assert names(judgement)[0] == "gpu-lost"
    found = finding(judgement, CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert found.rivals == ("gpu-lost",)


STUCK = "ollama.service: State 'stop-sigterm' timed out. Killing.\nollama.service: Processes still around after SIGKILL. Ignoring.\n"  # fmt: skip


def test_work_that_never_returns_asks_for_the_counters(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(STUCK), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"kernel_log", "nvlink_errors"} == {missing.key for missing in found.missing}


def test_counters_that_grow_make_it_likely(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(STUCK, {"nvlink_errors": "replay and CRC errors on the links of one board"}), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert ("hardware", "NVLink board", "replace") in proposed(found)


def test_a_reboot_that_was_tried_in_vain_is_not_proposed(judge_report: Judge, finding: Find) -> None:
    facts = {"gpu": "A100 (4x)", "tests.reboot": "works again, then comes back"}
    found = finding(judge_report(STUCK, facts), CAUSE)
    assert ("service", "host", "reboot") not in proposed(found)


@pytest.mark.parametrize("errors", ["0", "none", "no errors on any link"])
def test_clean_counters_leave_it_possible(judge_report: Judge, finding: Find, errors: str) -> None:
    assert finding(judge_report(STUCK, {"nvlink_errors": errors}), CAUSE).certainty is Certainty.POSSIBLE


def test_a_packet_that_was_sent_again_is_no_fault(judge_report: Judge, finding: Find) -> None:
    text = "nvidia-nvswitch0: SXid (PCI:0000:c8:00.0): 20001, Non-fatal, Link 12 TX Replay Error\n"
    assert finding(judge_report(text), CAUSE).certainty is Certainty.POSSIBLE


def test_counters_of_zero_in_a_listing_are_healthy(judge_report: Judge) -> None:
    text = "\t Link 0: Replay Errors: 0\n\t Link 0: CRC Errors: 0\nNVML:Unable to retrieve Nvlink information as all links are inActive\nImportError: x\n"  # fmt: skip
    assert CAUSE not in names(judge_report(text))


def test_a_time_out_of_a_collective_is_not_enough(judge_report: Judge) -> None:
    text = "[rank0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=4194304) ran for 600000 milliseconds before timing out.\n"  # fmt: skip
    assert CAUSE not in names(judge_report(text))
    assert names(judge_report(text, {"kernel_log": [LINK.strip()]}))[0] == CAUSE


def test_counters_that_the_log_shows_are_read(judge_report: Judge, finding: Find) -> None:
    text = (
        "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n\t Link 0: Replay Errors: 0\n"
        "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\n\t Link 3: CRC Errors: 88\n"
        "RuntimeError: NCCL error: unhandled cuda error\n"
    )
    found = finding(judge_report(text), "nvlink-fault")
    assert found.certainty is Certainty.LIKELY


def test_a_collective_that_fails_on_linked_gpus_asks_for_the_counters(judge_report: Judge, finding: Find) -> None:
    text = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\nRuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled cuda error, NCCL version 2.18.5\n"
    found = finding(judge_report(text), "nvlink-fault")
    assert found.certainty is Certainty.POSSIBLE
    assert "nvlink_errors" in {each.key for each in found.missing}
