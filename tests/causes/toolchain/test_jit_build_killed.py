"""jit-build-killed: the compiler is the victim, and kills of others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "jit-build-killed"
SOURCE = "/root/.cache/flashinfer/0.6.14/90a/generated/fused_moe_90"

BUILD = f"""\
(EngineCore_DP0 pid=771) RuntimeError: Ninja build failed. Ninja output:
[11/63] /usr/local/cuda/bin/nvcc --generate-dependencies-with-compile --dependency-output gemm.cuda.o.d -c {SOURCE}/gemm.cu -o gemm.cuda.o
FAILED: [code=137] gemm.cuda.o
Killed
ninja: build stopped: subcommand failed.
"""


@pytest.mark.parametrize(
    "line",
    [
        "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
        "nvcc error   : 'cudafe++' died due to signal 9 (Kill signal)",
        "gcc: fatal error: Killed signal terminated program cc1plus",
        "c++: internal compiler error: Killed (program cc1plus)",
        "/bin/sh: line 1:  4521 Killed                  /usr/local/cuda/bin/nvcc -ccbin g++ -c flash.cu",
        "make[2]: *** [CMakeFiles/ggml-cuda.dir/build.make:1042: fattn.cu.o] Error 137",
        "subprocess.CalledProcessError: Command '['ninja', '-v']' died with <Signals.SIGKILL: 9>.",
        "error: command '/usr/local/cuda/bin/nvcc' failed with exit code 137",
        "cc1plus: out of memory allocating 65536 bytes after a total of 3123 bytes",
        "ninja: fatal: posix_spawn: Cannot allocate memory",
    ],
)
def test_wordings(judge_report: Judge, line: str) -> None:
    first = judge_report(line + "\n").findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert first.evidence[0].quote == line


def test_jobs_are_computed_from_memory(judge_report: Judge) -> None:
    first = judge_report(BUILD, {"mem_total_bytes": 50 << 30}).findings[0]
    assert (first.cause, first.component) == (CAUSE, "flashinfer")
    assert (first.remedies[0].kind, first.remedies[0].name, first.remedies[0].value) == ("env", "MAX_JOBS", "6")


def test_a_containers_limit_counts_before_the_hosts_memory(judge_report: Judge) -> None:
    first = judge_report(BUILD, {"mem_total_bytes": 512 << 30, "memory_limit_bytes": 16 << 30}).findings[0]
    assert first.remedies[0].value == "2"


def test_the_kernel_log_proves_it(judge_report: Judge) -> None:
    text = BUILD + (
        "Feb 11 09:20:41 node kernel: Out of memory: Killed process 4711 (cicc) total-vm:9918232kB, anon-rss:9401220kB, file-rss:0kB\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.PROVEN)


def test_the_server_as_victim_is_another_cause(judge_report: Judge) -> None:
    text = (
        "Feb 11 09:20:41 node kernel: Out of memory: Killed process 900 (python3) total-vm:99182320kB, anon-rss:94012200kB\n"
        "Feb 11 09:20:42 node systemd[1]: vllm.service: Main process exited, code=killed, status=9/KILL\n"
    )
    assert CAUSE not in [f.cause for f in judge_report(text).findings]


def test_a_bare_kill_outside_of_a_build_is_no_sign(judge_report: Judge) -> None:
    text = "Loading safetensors checkpoint shards:  62% Completed | 8/13\nKilled\n"
    assert CAUSE not in [f.cause for f in judge_report(text).findings]


def test_a_bare_kill_in_a_build_is_only_possible(judge_report: Judge, finding: Find) -> None:
    text = "Building wheel for flash-attn (setup.py): started\nKilled\n"
    found = finding(judge_report(text), CAUSE)
    assert (found.certainty, found.component) == (Certainty.POSSIBLE, "flash-attn")
    assert "kernel_log" in [m.key for m in found.missing]


def test_cuda_out_of_memory_is_no_sign(judge_report: Judge) -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert CAUSE not in [f.cause for f in judge_report(text).findings]


def test_a_compiler_that_crashed_is_no_sign(judge_report: Judge) -> None:
    text = "nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)\n"
    assert CAUSE not in [f.cause for f in judge_report(text).findings]


def test_the_kernel_s_word_on_the_server_is_not_a_compiler_s_death(judge_report: Callable[..., Judgement]) -> None:
    log = (
        "[ 91.0] Memory cgroup out of memory: Killed process 77 (python3) total-vm:190344kB, anon-rss:66710kB\n"
        "/usr/local/cuda/bin/nvcc --version: release 12.4\n"
    )
    assert "jit-build-killed" not in [f.cause for f in judge_report(log).findings]


def test_the_kernel_s_line_is_quoted_before_an_exit_status(judge_report: Judge, finding: Find) -> None:
    kernel = "Out of memory: Killed process 48122 (cicc) total-vm:6120344kB, anon-rss:5630112kB"
    text = f"FAILED: [code=137] fused_moe_120/moe.cuda.o\nKilled\n[84120.1] oom-kill:constraint=CONSTRAINT_NONE,task=cicc,pid=48122,uid=0\n[84120.2] {kernel}\n"
    found = finding(judge_report(text), CAUSE)
    assert kernel in found.evidence[0].quote
    assert found.component == "flashinfer"


def test_near_miss_mmap_failed_is_no_build(judge_report: Judge) -> None:
    text = "mmap failed: Cannot allocate memory\nKilled\n"
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


@pytest.mark.parametrize(
    ("text", "component"),
    [
        ("[12/40] nvcc -c flash_fwd_hdim128_bf16_sm80.cu -o flash_fwd_hdim128_bf16_sm80.o\nFAILED: [code=137] flash_fwd_hdim128_bf16_sm80.o\nKilled\n", "flash-attn"),
        ("FAILED: flash_bwd_hdim64_fp16_sm80.o\nnvcc error   : 'cicc' died due to signal 9 (Kill signal)\n", "flash-attn"),
        ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)\nmake: *** [flash_bwd_hdim64_fp16_sm80.o] Error 137\n", "flash-attn"),
        ("Building wheel for xformers (setup.py): started\nFAILED: [code=137] /t/build/third_party/flash-attention/csrc/flash_attn/src/flash_fwd_hdim64_fp16_sm80.o\nKilled\n", "xformers"),
        ("FAILED: [code=137] /t/xformers/build/third_party/flash-attention/csrc/flash_attn/src/flash_fwd_hdim64_fp16_sm80.o\nKilled\n", "xformers"),
    ],
)  # fmt: skip
def test_kernels_of_flash_attention_are_those_of_the_package_that_compiles_them(
    judge_report: Judge, finding: Find, text: str, component: str
) -> None:
    assert finding(judge_report(text), CAUSE).component == component


def test_headers_of_torch_do_not_hide_whose_wheel_is_built(judge_report: Judge, finding: Find) -> None:
    header = "  /opt/v/lib/python3.10/site-packages/torch/include/ATen/core/TensorBase.h:12:3: note: declared here\n"
    killed = "  g++: fatal error: Killed signal terminated program cc1plus\n  compilation terminated.\n"
    found = finding(judge_report("Building wheel for xformers (setup.py): started\n" + header * 90 + killed), CAUSE)
    assert found.component == "xformers"
    assert finding(judge_report(header * 3 + killed), CAUSE).component == "torch"
