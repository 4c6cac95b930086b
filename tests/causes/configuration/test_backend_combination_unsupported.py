"""Options that are fine alone and exclude each other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

ID = "backend-combination-unsupported"

UNJOINED = "Exception: Capture cuda graph failed: CUDA error: capturing stream has unjoined work\nPossible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"


@pytest.mark.parametrize(
    "text",
    [
        "NotImplementedError: Pipeline parallelism is not supported for this model. Supported models implement the `SupportsPP` interface.\n",
        "AssertionError: Pipeline parallelism is not compatible with overlap schedule, speculative decoding, mixed chunked prefill.\n",
        "ValueError: Selected backend FLASHINFER is not valid for this configuration. Reason: ['kv_cache_dtype not supported', 'sinks not supported']\n",
        "llama_init_from_model: V cache quantization requires flash_attn\n",
        "ValueError: BitsAndBytes quantization with TP or PP is not supported yet. Please use prequantized BNB models with TP 1.\n",
        "NotImplementedError: VLLM_USE_V1=1 is not supported with --num-scheduler-steps.\n",
        "ValueError: max_num_batched_tokens (2048) is smaller than max_model_len (32768). Please increase max_num_batched_tokens or decrease max_model_len.\n",
        "ValueError: Cannot use FlashAttention-2 backend for FP8 KV cache. Please use FLASHINFER.\n",
        "ValueError: Prefix caching is not supported with sliding window. Run with --disable-sliding-window to use prefix caching.\n",
        "AssertionError: fa3 attention backend requires page_size of 128 when speculative decoding topk > 1\n",
        "RuntimeError: [TensorRT-LLM][ERROR] Assertion failed: Paged Context FMHA doesn't work with fp8/int8 kv cache currently\n",
    ],
)
def test_engines_name_both_features(judge_report: Judge, text: str) -> None:
    assert judge_report(text).findings[0].cause == ID


def test_a_capture_that_is_not_joined_asks_for_the_options(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(UNJOINED), ID)
    assert found.certainty.value == "possible"
    assert [missing.key for missing in found.missing] == ["command"]
    assert "gpu-oom-graph-or-activation" in found.rivals
    assert "unjoined" in found.evidence[0].quote


def test_the_dispatch_mode_settles_it(judge_report: Judge) -> None:
    command = "python -m sglang.launch_server --model-path acme/M --enable-deepep-moe --deepep-mode normal"
    first = judge_report(UNJOINED, {"command": command}).findings[0]
    assert (first.cause, first.certainty.value, first.component) == (ID, "proven", "deepep")
    names = [remedy.name for remedy in first.remedies]
    assert names == ["--deepep-mode", "--disable-cuda-graph"]


def test_memory_is_no_remedy_for_a_capture(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(UNJOINED), ID)
    assert "a smaller memory fraction" in [vain.what for vain in found.not_remedies]
    assert all("mem-fraction" not in remedy.name for remedy in found.remedies)


def test_the_draft_model_is_meant_where_the_frame_says_so(judge_report: Judge, finding: Find) -> None:
    text = """Traceback (most recent call last):
  File "/usr/local/lib/python3.12/dist-packages/vllm/config/speculative.py", line 300, in __post_init__
    self.draft_model_config.verify_with_parallel_config(self.draft_parallel_config)
  File "/usr/local/lib/python3.12/dist-packages/vllm/config/model.py", line 900, in verify_with_parallel_config
    raise NotImplementedError(
NotImplementedError: Pipeline parallelism is not supported for this model. Supported models implement the `SupportsPP` interface.
"""
    found = finding(judge_report(text), ID)
    assert found.certainty.value == "proven"
    assert "speculative" in found.title.lower()
    assert {"--speculative-config", "--pipeline-parallel-size"} <= {remedy.name for remedy in found.remedies}


def test_the_message_names_the_option_to_set(judge_report: Judge, finding: Find) -> None:
    text = "ValueError: Prefix caching is not supported with sliding window. Run with --disable-sliding-window to use prefix caching.\n"
    found = finding(judge_report(text), ID)
    assert "--disable-sliding-window" in [remedy.name for remedy in found.remedies]


def test_what_is_required_is_switched_on_in_the_engines_spelling(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("llama_init_from_model: V cache quantization requires flash_attn\n"), ID)
    assert ("--flash-attn", "on") in [(remedy.name, remedy.value) for remedy in found.remedies]


def test_both_options_in_the_command_prove_it(judge_report: Judge, finding: Find) -> None:
    text = "ValueError: Speculative decoding is not supported with pipeline parallelism.\n"
    command = "vllm serve acme/M --pipeline-parallel-size 2 --speculative-config '{}'"
    assert finding(judge_report(text), ID).certainty.value == "likely"
    assert finding(judge_report(text, {"command": command}), ID).certainty.value == "proven"


def test_both_options_among_those_the_engine_echoed_prove_it(judge_report: Judge, finding: Find) -> None:
    text = """[2025-07-01 10:00:00] server_args=ServerArgs(model_path='acme/M', tp_size=16, pp_size={size}, speculative_algorithm='EAGLE')
ValueError: Pipeline parallelism is incompatible with speculative decoding.
"""
    assert finding(judge_report(text.format(size=2)), ID).certainty.value == "proven"
    assert finding(judge_report(text.format(size=1)), ID).certainty.value == "likely"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 23.64 GiB of which 100.00 MiB is free.\n", "gpu-oom-graph-or-activation"),
        ("usage: vllm [-h]\nvllm: error: unrecognized arguments: --no-such-option\n", "bad-argument"),
        ("ValueError: The quantization method awq is not supported for the current GPU. Minimum capability: 75. Current capability: 70.\n", "quantization-unsupported"),
    ],
)  # fmt: skip
def test_near_misses_belong_to_their_own_causes(judge_report: Judge, text: str, cause: str) -> None:
    causes = [found.cause for found in judge_report(text).findings]
    assert causes[0] == cause
    assert ID not in causes


def test_a_capture_that_an_earlier_fault_broke_is_an_echo(judge_report: Judge) -> None:
    text = """torch.AcceleratorError: CUDA error: an illegal memory access was encountered
RuntimeError: CUDA error: operation not permitted when stream is capturing
"""
    assert judge_report(text).findings[0].cause == "kernel-illegal-address"


@pytest.mark.parametrize(
    "text",
    [
        "WARNING 01-01 [config.py:300] Chunked prefill is not supported with sliding window, disabling it.\n",
        "WARNING 01-01 [arg_utils.py:1300] Speculative Decoding is not supported by the V1 Engine. Falling back to V0.\n",
        "INFO 01-01 [cuda.py:300] Cannot use FlashAttention-2 backend for Volta and Turing GPUs.\n",
        "ValueError: The model does not support the chat endpoint because it has no chat template\n",
    ],
)
def test_what_the_program_settles_itself_is_no_fault(judge_report: Judge, text: str) -> None:
    assert ID not in [found.cause for found in judge_report(text).findings]


def test_a_refusal_that_names_one_feature_only_stays_open(judge_report: Judge, finding: Find) -> None:
    text = "NotImplementedError: Speculative decoding with draft model is not supported yet. Please consider another speculative method.\n"
    found = finding(judge_report(text), ID)
    assert found.certainty.value == "possible"
    assert [missing.key for missing in found.missing] == ["command"]


def test_expandable_segments_and_a_memory_pool(judge_report: Judge, finding: Find) -> None:
    text = "AssertionError: Expandable segments are not compatible with memory pool. Please track the issue of vLLM.\n"
    remedies = [(remedy.kind, remedy.name, remedy.value) for remedy in finding(judge_report(text), ID).remedies]
    assert ("env", "PYTORCH_CUDA_ALLOC_CONF", "unset") in remedies


def test_one_option_that_wants_a_value_of_another(judge_report: Judge) -> None:
    text = "AssertionError: Please set dp_size > 1. You can use 1 < dp_size <= tp_size to enable DP attention.\n"
    assert judge_report(text).findings[0].cause == "backend-combination-unsupported"


def test_the_engine_is_told_by_an_option_that_only_it_has(judge_report: Judge) -> None:
    first = judge_report("ValueError: Setting `swap_space` and `cpu_offload_gb` together is not supported with prefix caching.\n").findings[0]  # fmt: skip
    assert (first.cause, first.component) == ("backend-combination-unsupported", "vllm")


@pytest.mark.parametrize(
    "text",
    [
        "AssertionError: page_size must be 1 with eagle and topk > 1 on this attention backend\n",
        "ValueError: Found modules on cpu/disk. Using Exllama backend requires all the modules to be on GPU.You can deactivate exllama backend by setting `disable_exllama=True` in the quantization config object\n",
    ],
)
def test_a_value_or_a_place_that_another_option_demands(judge_report: Judge, text: str) -> None:
    assert judge_report(text).findings[0].cause == "backend-combination-unsupported"


SELECTED = (
    "ValueError: No valid attention backend found for cuda with AttentionSelectorConfig(head_size=576, dtype=torch.bfloat16, kv_cache_dtype=fp8, block_size=None, use_mla=True). "
    "Reasons: {FLASHMLA: [compute capability not supported], TRITON_MLA: [%s]}.\n"
)


def test_a_format_that_the_backends_of_this_gpu_refuse_is_a_combination(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report(SELECTED % "kv_cache_dtype not supported")
    assert judgement.findings[0].cause == "backend-combination-unsupported"
    assert "--kv-cache-dtype" in [remedy.name for remedy in judgement.findings[0].remedies]


def test_backends_that_all_want_another_gpu_are_no_combination(judge_report: Judge) -> None:
    causes = [found.cause for found in judge_report(SELECTED % "compute capability not supported").findings]
    assert "backend-combination-unsupported" not in causes


def test_what_the_message_proposes_is_not_given_up(judge_report: Judge, finding: Find) -> None:
    text = "ValueError: Prequant BitsAndBytes models with TP is not supported.Please try with PP.\n"
    found = finding(judge_report("vllm serve m --tensor-parallel-size 2\n" + text), ID)
    names = [remedy.name for remedy in found.remedies]
    assert names[0] == "--tensor-parallel-size"
    assert "--pipeline-parallel-size" not in names
