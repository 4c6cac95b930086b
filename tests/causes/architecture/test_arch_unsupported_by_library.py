"""arch-unsupported-by-library: checks that refuse a GPU, and refusals that have another cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "arch-unsupported-by-library"


@pytest.mark.parametrize(("line", "component", "remedy"), [
    ("RuntimeError: Error in function 'TllmGenFmhaRunner' at /build/include/flashinfer/trtllm/fmha/fmhaRunner.cuh:41: Unsupported architecture", "flashinfer", "--attention-backend"),
    ("[TensorRT-LLM][ERROR] Assertion failed: Unsupported architecture (/src/tensorrt_llm/kernels/contextFusedMultiHeadAttention/fmhaRunner.cpp:91)", "tensorrt-llm", "--enable_context_fmha"),
    ("RuntimeError: Assertion error (/w/deepgemm-src/csrc/apis/gemm.hpp:80): Unsupported architecture or scaling factor types", "deepgemm", "VLLM_USE_DEEP_GEMM"),
    ("flashinfer.utils.BackendSupportedError: mm_fp4 does not support backend 'cudnn' with capability 89", "flashinfer", "FP4 GEMM backend"),
    ("NotImplementedError: No implemented fp8_blockwise_scaled_mm for current compute capability: 86", "sgl-kernel", "GEMM backend"),
    ("AssertionError: FlashAttention v3 Backend requires SM>=80 and SM<=90. Please use `--attention-backend flashinfer`.", "sglang", "--attention-backend"),
    ("ValueError: FlashMLA is only supported on Hopper devices.", "flashmla", "--attention-backend"),
])  # fmt: skip
def test_a_refusal_names_the_library_and_the_switch(
    judge_report: Judge, finding: Find, line: str, component: str, remedy: str
) -> None:
    judgement = judge_report(line + "\n")
    found = finding(judgement, CAUSE)
    assert judgement.findings[0] is found
    assert found.component == component
    assert found.certainty is not Certainty.POSSIBLE
    assert remedy in [r.name for r in found.remedies]
    assert not any(r.kind in ("toolkit", "driver") for r in found.remedies)


def test_the_bracketed_list_without_the_gpu_is_this_cause(judge_report: Judge, finding: Find) -> None:
    log = "RuntimeError: No supported CUDA architectures found for major versions [9, 10].\n"
    found = finding(judge_report(log), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"cc", "jit_targets"} <= {m.key for m in found.missing}
    known = judge_report(log, {"cc": "12.0"})
    assert (known.findings[0].cause, known.findings[0].certainty) == (CAUSE, Certainty.LIKELY)
    proven = finding(judge_report(log, {"cc": "12.0", "jit_targets": ["12.0f"]}), CAUSE)
    assert proven.certainty is Certainty.PROVEN


def test_the_bracketed_list_with_the_gpu_is_the_toolkit(judge_report: Judge) -> None:
    log = "RuntimeError: No supported CUDA architectures found for major versions [12].\n"
    judgement = judge_report(log, {"cc": "12.0", "cuda_toolkit": "12.8"})
    assert judgement.findings[0].cause == "toolkit-too-old-for-arch"
    assert any(x.cause == CAUSE for x in judgement.ruled_out)


@pytest.mark.parametrize(
    ("facts", "certainty"), [({}, Certainty.POSSIBLE), ({"cc": "12.0", "torch": "2.9.1+cu128"}, Certainty.LIKELY)]
)
def test_a_library_of_another_generation_has_no_image(
    judge_report: Judge, finding: Find, facts: dict[str, Any], certainty: Certainty
) -> None:
    log = "Failed: CUDA error /build/DeepEP/csrc/kernels/hopper/x.cu:33 /DeepGEMM/csrc/jit.hpp 'no kernel image is available for execution on the device'\n"
    assert finding(judge_report(log, facts), CAUSE).certainty is certainty  # fmt: skip


def test_a_gpu_that_the_sentence_accepts_rules_it_out(judge_report: Judge) -> None:
    judgement = judge_report("RuntimeError: This kernel requires compute capability 8.0 or higher\n", {"cc": "9.0"})
    assert any(x.cause == CAUSE for x in judgement.ruled_out)


def test_a_number_format_is_another_cause(judge_report: Judge) -> None:
    log = "AssertionError: Device compute capability 8.9 or higher required for FP8 execution.\n"
    assert CAUSE not in [f.cause for f in judge_report(log).findings]


def test_a_library_that_ends_above_the_gpu_is_too_old(judge_report: Judge) -> None:
    judgement = judge_report("RuntimeError: FlashAttention only supports Ampere GPUs or newer.\n")
    assert judgement.findings[0].cause == "gpu-too-old"


@pytest.mark.parametrize("line", [
    "ValueError: Unsupported architecture: Qwen3NextForCausalLM",
    "error: Unsupported architecture aarch64",
    "nvcc fatal   : Unsupported gpu architecture 'compute_120a'",
    "INFO 01-01 10:00:00 [cuda.py:300] FlashMLA is only supported on Hopper devices, falling back to Triton MLA.",
    "INFO 04-19 17:25:13 selector.py:51] Cannot use FlashAttention-2 backend for Volta and Turing GPUs.",
])  # fmt: skip
def test_what_only_sounds_like_it(judge_report: Judge, line: str) -> None:
    assert CAUSE not in [f.cause for f in judge_report(line + "\n").findings]


def test_a_quantisation_scheme_is_at_most_possible(judge_report: Judge, finding: Find) -> None:
    log = "ValueError: The quantization method gptq_marlin is not supported for the current GPU. Minimum capability: 80. Current capability: 75.\n"
    judgement = judge_report(log)
    found = finding(judgement, CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "quantization-unsupported" in found.rivals
    assert "dtype-unsupported-by-gpu" not in [f.cause for f in judgement.findings]


def test_an_operator_list_of_an_xformers_that_did_not_load_is_not_it(judge_report: Judge) -> None:
    log = (
        "NotImplementedError: No operator found for `memory_efficient_attention_forward` with inputs:\n"
        "`fa3F@0.0.0` is not supported because:\n    xFormers wasn't build with CUDA support\n"
        "    requires device with capability < (9, 0) but your GPU has capability (12, 0) (too new)\n"
    )
    assert CAUSE not in [f.cause for f in judge_report(log).findings]


def test_a_kernel_of_another_flash_attention_release(judge_report: Judge) -> None:
    first = judge_report("AssertionError: Sinks are only supported in FlashAttention 3\n").findings[0]
    assert (first.cause, first.component, first.certainty) == (CAUSE, "vllm", Certainty.LIKELY)
    assert first.remedies[0].name == "--attention-backend"


def test_an_engine_without_a_backend_for_the_gpu_refuses_itself(judge_report: Judge) -> None:
    text = "ValueError: No valid attention backend found for cuda with AttentionSelectorConfig(head_size=576, kv_cache_dtype=auto, use_mla=True). Reasons: {FLASH_ATTN_MLA: [compute capability not supported], FLASHMLA: [compute capability not supported]}.\n"
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == (CAUSE, "vllm")
    assert first.remedies[0].name == "--attention-backend"


def test_nim_has_no_profile_for_the_gpu(judge_report: Judge, finding: Find) -> None:
    text = "ERROR utils.py:21] Could not find a profile that is currently runnable with the detected hardware. Please check the system information below and make sure you have enough GPUs.\n"
    assert finding(judge_report(text), "arch-unsupported-by-library").component == "nim"


def test_a_kernel_whose_blocks_do_not_fit(judge_report: Judge, finding: Find) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.12/site-packages/vllm/attention/ops/prefix_prefill.py", line 812, in context_attention_fwd\n    _fwd_kernel[grid](\n'
        '  File "/opt/venv/lib/python3.12/site-packages/triton/compiler/compiler.py", line 401, in _init_handles\n    raise OutOfResources(\n'
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.\n"
    )
    found = finding(judge_report(text), "arch-unsupported-by-library")
    assert (found.component, found.certainty) == ("vllm", Certainty.LIKELY)


def test_turbomind_has_no_kernel_for_the_gpu(judge_report: Judge, finding: Find) -> None:
    text = "[TM][FATAL] [Gemm2] No feasible kernel found for the problem: sm70_f16_u4g128_f16_tnn_1x10240x8192_1\nAborted (core dumped)\n"
    found = finding(judge_report(text), "arch-unsupported-by-library")
    assert found.component == "lmdeploy"
    assert "7.0" in found.title


def test_cublaslt_that_refuses(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("Exception: cublasLt ran into an error!\n"), "arch-unsupported-by-library")
    assert found.component == "bitsandbytes"


def test_an_assertion_of_deepgemm_is_known_by_its_place(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: Assertion error (csrc/apis/gemm.hpp:12): Unsupported architecture\n"
    assert finding(judge_report(text), CAUSE).component == "deepgemm"


def test_the_verb_may_stand_behind_the_list(judge_report: Judge, finding: Find) -> None:
    assert finding(judge_report("RuntimeError: Only SM90 and SM100 are supported\n", {"cc": "12.0"}), CAUSE)
