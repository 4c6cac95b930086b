"""cpu-lacks-instruction: the CPU's illegal instruction, not the GPU's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.remedies import order

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "cpu-lacks-instruction"
TRAP = "[ 1234.567] traps: llama-server[2211] trap invalid opcode ip:7f33d21c3f20 sp:7ffd70001000 error:0 in libggml-cpu.so[7f33d2100000+d0000]\n"


@pytest.mark.parametrize(
    "text",
    [
        "Illegal instruction (core dumped)\n",
        "Fatal Python error: Illegal instruction\n\nCurrent thread 0x00007f (most recent call first):\n",
        'time=2025-03-01T10:00:00Z level=ERROR source=sched.go:456 msg="error loading llama server" error="llama runner process has terminated: signal: illegal instruction (core dumped)"\n',
        "OSError: [WinError -1073741795] Windows Error 0xc000001d\n",
        "The TensorFlow library was compiled to use AVX512F instructions, but these aren't available on your machine.\nAborted (core dumped)\n",
        "RuntimeError: NumPy was built with baseline optimizations: \n(X86_V2) but your machine doesn't support:\n(X86_V2).\n",
        TRAP,
    ],
)
def test_it_leads(judge_report: Judge, text: str) -> None:
    first = judge_report(text).findings[0]
    assert first.cause == CAUSE
    assert next((r.kind, r.value) for r in order(first.remedies)) == ("package", "rebuild")


def test_the_kernel_names_the_library(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("Illegal instruction (core dumped)\n" + TRAP), CAUSE)
    assert found.component == "llama.cpp"
    assert "libggml-cpu.so" in found.evidence[0].quote
    assert found.certainty is Certainty.LIKELY


def test_in_a_virtual_machine_its_cpu_type_comes_first(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("Ollama in a Proxmox guest\nIllegal instruction (core dumped)\n"), CAUSE)
    assert next((r.kind, r.value) for r in order(found.remedies)) == ("config", "host")


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA error: an illegal instruction was encountered\n",
        "CUDA Exception: Warp Illegal Instruction\n",
        "NVRM: Xid (PCI:0000:01:00): 13, pid=7, name=python3, Graphics SM Warp Exception on (GPC 0, TPC 1, SM 0): Illegal Instruction Encoding\n",
        "CPU : AVX = 1 | AVX2 = 1 | AVX512 = 0 | FMA = 1 | F16C = 1\nCUDA error: out of memory\n",
        "This TensorFlow binary is optimized to use available CPU instructions in performance-critical operations.\nTo enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow with the appropriate compiler flags.\n",
    ],
)
def test_near_misses(judge_report: Judge, text: str) -> None:
    assert CAUSE not in [found.cause for found in judge_report(text).findings]
