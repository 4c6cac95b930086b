"""jit-cache-stale: locks and left-overs, and builds that are merely slow or broken elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "jit-cache-stale"

HANG = """\
Thread 0x7F2A11FFF740 (active): "MainThread"
    wait (torch/utils/file_baton.py:49)
    _jit_compile (torch/utils/cpp_extension.py:2012)
    load (torch/utils/cpp_extension.py:1623)
    jit_load (deepspeed/ops/op_builder/builder.py:559)
    load (deepspeed/ops/op_builder/builder.py:524)
"""


def test_a_wait_without_a_compiler_is_proven(judge_report: Judge) -> None:
    first = judge_report(HANG, {"processes": ["python train.py", "nvidia-smi"]}).findings[0]
    assert (first.cause, first.certainty, first.component) == (CAUSE, Certainty.PROVEN, "deepspeed")
    assert (first.remedies[0].kind, first.remedies[0].name, first.remedies[0].value) == (
        "cache",
        "torch_extensions",
        "delete",
    )


def test_a_wait_with_compilers_is_a_build(judge_report: Judge) -> None:
    judged = judge_report(HANG, {"processes": ["python train.py", "/usr/local/cuda/nvvm/bin/cicc --c++17"]})
    assert CAUSE in [x.cause for x in judged.ruled_out]


def test_a_lock_that_nobody_looked_at_is_only_possible(judge_report: Judge, finding: Find) -> None:
    text = "[aiter] waiting for baton release at /root/.aiter/jit/build/lock_module_quant\n"
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert [m.key for m in found.missing] == ["processes"]


@pytest.mark.parametrize(
    ("line", "component"),
    [
        ("ImportError: /root/.triton/cache/9c1d/cuda_utils.so: file too short", "triton"),
        ("OSError: /root/.cache/flashinfer/0.6.9/90a/cached_ops/norm/norm.so: invalid ELF header", "flashinfer"),
        ("OSError: /root/.cache/flashinfer/0.2.14/90/cached_ops/sampling/sampling.so: undefined symbol: _ZN3c104impl8GPUTrace13gpuTraceStateE", "flashinfer"),
        ("ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /home/u/.triton/cache/1f/cuda_utils.so)", "triton"),
    ],
)  # fmt: skip
def test_broken_and_foreign_files(judge_report: Judge, finding: Find, line: str, component: str) -> None:
    found = finding(judge_report(line + "\n"), CAUSE)
    is_proof = "GLIBC" in line
    assert (found.certainty, found.component) == (Certainty.PROVEN if is_proof else Certainty.LIKELY, component)
    assert found.evidence[0].quote == line


def test_a_garbled_entry(judge_report: Judge, finding: Find) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/v/lib/python3.11/site-packages/triton/compiler/compiler.py", line 268, in compile\n'
        "    metadata = json.loads(Path(metadata_path).read_text())\n"
        '  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode\n'
        '    raise JSONDecodeError("Expecting value", s, err.value) from None\n'
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n"
    )
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.remedies[0].name) == ("triton", "triton")


OLD_RULES = """\
RuntimeError: Ninja build failed. Ninja output:
FAILED: sampling.cuda.o
/usr/local/cuda-12.4/bin/nvcc --generate-dependencies-with-compile -gencode=arch=compute_120a,code=sm_120a -c /root/.cache/flashinfer/0.6.9/120a/generated/sampling.cu
nvcc fatal   : Unsupported gpu architecture 'compute_120a'
ninja: build stopped: subcommand failed.
"""


def test_old_build_rules_after_the_toolkit_was_changed(judge_report: Judge, finding: Find) -> None:
    facts = {"env.CUDA_HOME": "/usr/local/cuda-12.9", "packages.flashinfer-python": "0.6.9", "cc": "12.0"}
    assert finding(judge_report(OLD_RULES, facts), CAUSE).certainty is Certainty.LIKELY


def test_a_release_that_rewrites_its_rules_is_not_blamed(judge_report: Judge) -> None:
    facts = {"env.CUDA_HOME": "/usr/local/cuda-12.9", "packages.flashinfer-python": "0.6.14", "cc": "12.0"}
    assert CAUSE not in [f.cause for f in judge_report(OLD_RULES, facts).findings]


def test_a_module_missing_after_a_failed_build_is_an_echo(judge_report: Judge) -> None:
    text = (
        "/usr/bin/ld: cannot find -lcurand: No such file or directory\n"
        "collect2: error: ld returned 1 exit status\n"
        "ninja: build stopped: subcommand failed.\n"
        "ImportError: /root/.cache/torch_extensions/py311_cu124/cpu_adam/cpu_adam.so: cannot open shared object file: No such file or directory\n"
    )
    assert CAUSE not in [f.cause for f in judge_report(text).findings]


@pytest.mark.parametrize(
    "line",
    [
        "ImportError: /opt/v/lib/python3.11/site-packages/vllm/_C.abi3.so: undefined symbol: _ZN3c105ErrorC2E",
        "OSError: /opt/v/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2: file too short",
        "PermissionError: [Errno 13] Permission denied: '/root/.triton/cache'",
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    ],
)
def test_near_misses(judge_report: Judge, line: str) -> None:
    assert CAUSE not in [f.cause for f in judge_report(line + "\n").findings]


def test_rules_that_name_files_of_a_toolkit_that_is_gone(judge_report: Judge, finding: Find) -> None:
    text = "ninja: error: '/usr/local/cuda-12.4/include/cuda_fp8.h', needed by '/root/.cache/flashinfer/0.2.5/90/cached_ops/norm/norm.cuda.o', missing and no known rule to make it\n"
    found = finding(judge_report(text), CAUSE)
    assert (found.certainty, found.component) == (Certainty.LIKELY, "flashinfer")


@pytest.mark.parametrize(
    "path",
    [
        "/opt/v/lib/python3.12/site-packages/vllm/third_party/triton_kernels/matmul.so",
        "/opt/v/lib/python3.12/site-packages/deep_gemm/deep_gemm_cpp.so",
        "/opt/v/lib/python3.12/site-packages/sglang/jit_kernel/build.so",
    ],
)
def test_installed_libraries_are_no_cache(judge_report: Judge, path: str) -> None:
    judged = judge_report(f"OSError: {path}: cannot open shared object file: No such file or directory\n")
    assert CAUSE not in [f.cause for f in judged.findings]


def test_vllm_says_that_an_earlier_compilation_failed(judge_report: Judge, finding: Find) -> None:
    text = "AssertionError: vLLM failed to compile the model. The most likely reason for this is that a previous compilation failed, leading to a corrupted compilation artifact.\n"
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.remedies[0].name) == ("vllm", "torch_compile_cache")


def test_the_inductor_folder_inside_vllm_s_cache_is_vllm_s(judge_report: Judge, finding: Find) -> None:
    text = "FileNotFoundError: [Errno 2] No such file or directory: '/root/.cache/vllm/torch_compile_cache/0a1b/rank_0_0/inductor_cache/zk/czk.py'\n"
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.remedies[0].name) == ("vllm", "torch_compile_cache")


def test_an_environment_s_older_cpp_run_time_makes_no_stale_cache(judge_report: Judge) -> None:
    text = "ImportError: /opt/miniconda3/envs/v/bin/../lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by /root/.cache/flashinfer/0.2.5/90/cached_ops/batch_prefill/batch_prefill.so)\n"
    judgement = judge_report(text)
    assert judgement.findings[0].cause == "libc-too-old"
    assert CAUSE not in [found.cause for found in judgement.findings]


def test_a_compile_cache_that_asks_to_be_removed() -> None:
    from gpuwhy.investigate import diagnose_log

    log = b"""Traceback (most recent call last):
  File "/srv/env/lib/python3.12/site-packages/vllm/compilation/compiler_interface.py", line 300, in load
    assert inductor_compiled_graph is not None, (
AssertionError: Inductor cache lookup failed. Please remove the cache directory and try again.
"""
    first = diagnose_log(log, "report").findings[0]
    assert (first.cause, first.evidence[0].quote.partition(":")[0]) == ("jit-cache-stale", "AssertionError")
    assert first.remedies[0].kind == "cache"
