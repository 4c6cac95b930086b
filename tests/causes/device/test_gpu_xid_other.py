"""gpu-xid-other: another fault of the GPU came first in the kernel log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "gpu-xid-other"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


GSP = "NVRM: Xid (PCI:0000:61:00): 119, pid=1365232, name=nvidia-smi, Timeout waiting for RPC from GSP! Expected function 76 (GSP_RM_CONTROL) (0x20801348 0x410).\n"


@pytest.mark.parametrize("text", [
    GSP,
    "NVRM: Xid (PCI:0000:03:00): 120, pid='<unknown>', name=<unknown>, GSP task exception: NVRISCV_EXCEPTION\n",
    "NVRM: Xid (PCI:0000:3b:00): 62, pid=4721, name=python, 2027(3d88) 00000000 00000000\n",
    "NVRM: Xid (PCI:0000:65:00): 109, pid=99, name=VLLM::EngineCor, Ch 0000000a, errorString CTX SWITCH TIMEOUT, Info 0x2c00a\n",
    "NVRM: Xid (PCI:0000:2d:00): 69, pid=1, name=python, Class Error: ChId 0004\n",
    "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x40:2393)\n",
    "XidCriticalError: Xid=119 on Device=GPU-aaaa-bbbb, the device will go unhealthy.\n",
])  # fmt: skip
def test_the_first_fault_of_the_kernel_log(judge_report: Judge, finding: Find, text: str) -> None:
    judgement = judge_report(text)
    assert names(judgement)[0] == CAUSE
    assert finding(judgement, CAUSE).certainty is Certainty.PROVEN


def test_a_gsp_that_does_not_answer_is_the_drivers(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(GSP), CAUSE)
    assert found.component == "driver"
    assert proposed(found)[0] == ("config", "NVreg_EnableGpuFirmware", "0")
    assert ("driver", "nvidia", "newer") in proposed(found)


def test_a_damaged_stream_of_commands_is_the_hardwares(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("NVRM: Xid (PCI:0000:01:00): 32, pid=1203, name=ollama, Channel ID 00000010\n"), CAUSE)  # fmt: skip
    assert found.component == "gpu-hardware"
    assert ("hardware", "slot or riser", "reseat") in proposed(found)


def test_the_gpu_that_is_lost_later_follows_from_it(judge_report: Judge, finding: Find) -> None:
    text = "NVRM: Xid (PCI:0000:3b:00): 62, pid=4721\nNVRM: Xid (PCI:0000:3b:00): 45, pid=4721\nNVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"  # fmt: skip
    judgement = judge_report(text)
    assert names(judgement)[0] == CAUSE
    assert finding(judgement, "gpu-lost").certainty is Certainty.POSSIBLE
    assert finding(judgement, "gpu-lost").rivals == (CAUSE,)


@pytest.mark.parametrize(("first", "cause"), [
    ("NVRM: Xid (PCI:0000:61:00): 145, pid=1, RLW_CTRL", "nvlink-fault"),
    ("nvidia-nvswitch3: SXid (PCI:0000:c8:00.0): 20034, Fatal, Link 61 LTSSM Fault Up", "nvlink-fault"),
    ("NVRM: Xid (PCI:0000:61:00): 79, GPU has fallen off the bus.", "gpu-lost"),
    ("NVRM: Xid (PCI:0000:61:00): 95, pid=8, Uncontained: LTC TAG (0x2)", "ecc"),
])  # fmt: skip
def test_a_time_out_of_the_gsp_can_follow_another_fault(judge_report: Judge, finding: Find, first: str, cause: str) -> None:  # fmt: skip
    judgement = judge_report(first + "\n" + GSP)
    assert names(judgement)[0] == cause
    assert finding(judgement, CAUSE).certainty is Certainty.POSSIBLE


def test_times_count_and_not_the_order_of_the_paste(judge_report: Judge) -> None:
    text = f"Jul  4 02:11:20 n1 kernel: {GSP}Jul  4 02:11:09 n1 kernel: NVRM: Xid (PCI:0000:61:00): 79, GPU has fallen off the bus.\n"  # fmt: skip
    assert names(judge_report(text))[0] == "gpu-lost"


def test_a_kernel_log_given_as_a_fact_decides(judge_report: Judge, finding: Find) -> None:
    text = "torch.AcceleratorError: CUDA error: unspecified launch failure\n"
    assert finding(judge_report(text), CAUSE).certainty is Certainty.POSSIBLE
    assert [missing.key for missing in finding(judge_report(text), CAUSE).missing] == ["kernel_log"]
    found = finding(judge_report(text, {"kernel_log": [GSP.strip()]}), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert found.explains


@pytest.mark.parametrize("number", [13, 31, 43])
def test_what_programs_raise_stays_possible(judge_report: Judge, finding: Find, number: int) -> None:
    judgement = judge_report(f"NVRM: Xid (PCI:0000:01:00): {number}, pid=1123, name=python, Ch 00000008\n")
    found = finding(judgement, CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "kernel-illegal-address" in found.rivals
    if number != 43:
        assert names(judgement)[0] == "kernel-illegal-address"


@pytest.mark.parametrize("text", [
    "NVRM: Xid (PCI:0000:2d:00): 45, pid=1, name=python, Ch 00000008\nImportError: x\n",
    "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)\n",
    "There is no Xid 119 in the kernel log.\nImportError: cannot import name 'x' from 'vllm'\n",
    "Hint: if you see Xid 79 or Xid 48 errors contact NVIDIA.\nImportError: x\n",
])  # fmt: skip
def test_echoes_and_advice_are_nothing(judge_report: Judge, text: str) -> None:
    assert not {CAUSE, "gpu-lost", "ecc", "nvlink-fault"} & set(names(judge_report(text)))


def test_somebodys_words_are_likely_at_most(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("vLLM hangs under load and nvidia-smi hangs forever. dmesg shows Xid 119.\n"), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert "kernel_log" in [missing.key for missing in found.missing]


def test_a_fault_of_last_week_is_not_todays(judge_report: Judge, finding: Find) -> None:
    text = f"2025-03-03 04:44:24 n1 kernel: {GSP}2025-03-12 10:00:00 ERROR torch.AcceleratorError: CUDA error: unspecified launch failure\n"  # fmt: skip
    assert finding(judge_report(text), CAUSE).certainty is Certainty.POSSIBLE


def test_numbers_of_other_programs_are_none(judge_report: Judge) -> None:
    assert CAUSE not in names(judge_report("LOG: recovery of xid 731 done\nImportError: x\n"))


def test_a_card_that_runs_with_the_open_modules_only(judge_report: Judge) -> None:
    text = (
        "[   12.004] NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2b85) installed in this system requires use of the NVIDIA open kernel modules.\n"
        "[   12.005] NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:884)\n"
    )
    first = judge_report(text).findings[0]
    assert first.cause == "gpu-xid-other"
    assert "open kernel modules" in first.evidence[0].quote
    assert (first.remedies[0].kind, first.remedies[0].name) == ("system-package", "nvidia-open")


def test_an_excerpt_of_the_journal_that_begins_with_the_kernel_s_word(judge_report: Judge) -> None:
    """Somebody quotes the program's error, then pastes the journal: the kernel's line before the unit's first one counts."""
    text = (
        'The server freezes, then "CUDA error: unspecified launch failure".\n\n'
        "Mar 20 19:44:02 ws kernel: NVRM: Xid (PCI:0000:01:00): 109, pid=5120, name=llama-server, Ch 00000018, errorString CTX SWITCH TIMEOUT, Info 0x2c014\n"
        "Mar 20 19:44:08 ws llama-server[5120]: CUDA error: unspecified launch failure\n"
        "Mar 20 19:44:09 ws systemd[1]: llama.service: Main process exited, code=dumped, status=6/ABRT\n"
    )
    first = judge_report(text).findings[0]
    assert first.cause == CAUSE
    assert "109" in first.evidence[0].quote
