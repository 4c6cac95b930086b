"""host-kernel-bug: the kernel refuses although no limit stands against it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "host-kernel-bug"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


REFUSED = "spark-1:771:980 [0] misc/ibvwrap.cc:217 (wrap_ibv_reg_mr_iova2) NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory errno 12\nRuntimeError: NCCL error: unhandled system error\n"
CMA = "$ grep Cma /proc/meminfo\nCmaTotal:        0 kB\nCmaFree:    940604 kB\n"


def test_more_free_than_there_is_proves_it(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report(REFUSED + "$ ulimit -l\nunlimited\n" + CMA)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.certainty is Certainty.PROVEN
    assert found.component == "kernel-linux"
    assert "CmaFree" in found.evidence[0].quote
    assert proposed(found)[0] == ("kernel", "kho", "off")


def test_a_healthy_count_is_no_contradiction(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(REFUSED + "CmaTotal:   262144 kB\nCmaFree:    240604 kB\n"), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert ("kernel", "kho", "off") not in proposed(found)


def test_unlimited_memory_locks_make_it_likely_and_rule_the_limit_out(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report(REFUSED, {"memlock": "unlimited", "kernel_release": "7.0.0-1019-nvidia"})
    assert names(judgement)[0] == CAUSE
    assert finding(judgement, CAUSE).certainty is Certainty.LIKELY
    assert "ulimit" in [excluded.cause for excluded in judgement.ruled_out]


def test_a_low_limit_explains_it_without_the_kernel(judge_report: Judge) -> None:
    judgement = judge_report(REFUSED, {"memlock": "8192 kB"})
    assert names(judgement)[0] == "ulimit"
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


def test_the_message_alone_asks_and_stays_behind_the_limit(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report(REFUSED)
    assert names(judgement)[0] == "ulimit"
    found = finding(judgement, CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"memlock", "kernel_release"} <= {missing.key for missing in found.missing}


def test_a_kernel_that_works_proves_it(judge_report: Judge, finding: Find) -> None:
    facts = {"memlock": "unlimited", "tests.kernel 6.11 instead of 6.14": "works"}
    assert finding(judge_report(REFUSED, facts), CAUSE).certainty is Certainty.PROVEN


def test_words_about_another_kernel_make_it_likely(judge_report: Judge, finding: Find) -> None:
    text = "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Bad address\nIt works fine with the older kernel 5.15.0-113.\n"
    assert finding(judge_report(text), CAUSE).certainty is Certainty.LIKELY


OOPS = "kernel: BUG: unable to handle page fault for address: ffffea0000000008\nkernel: RIP: 0010:hmm_range_fault+0x120\nkernel: Call Trace: uvm_hmm_va_block_service_locked [nvidia_uvm]\n"


def test_an_oops_on_the_way_through_hmm(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(OOPS), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert ("kernel", "uvm_disable_hmm", "1") in proposed(found)


@pytest.mark.parametrize("text", [
    "kernel: BUG: unable to handle page fault for address: ffffea0000000008\nkernel: RIP: 0010:ext4_writepages+0x120\n",
    "RuntimeError: CUDA error: cudaHostRegister failed: invalid argument\n",
    "CmaTotal:        0 kB\nCmaFree:         0 kB\nImportError: x\n",
])  # fmt: skip
def test_other_failures_are_none(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))
