"""Lengths beyond the model's positions or the server's limit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

ID = "context-too-long"

VLLM = "ValueError: User-specified max_model_len (65536) is greater than the derived max_model_len (max_position_embeddings=32768 or model_max_length=None in model's config.json). To allow overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.\n"
SGLANG = "ValueError: User-specified context_length (131072) is greater than the derived context_length (40960). This may lead to incorrect model outputs or CUDA errors. To allow overriding this maximum, set the env var SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1\n"
ASSERTED = """WARNING [model.py] User-specified max_model_len (131072) is greater than the derived max_model_len (max_position_embeddings=40960.0 or model_max_length=None in model's config.json). VLLM_ALLOW_LONG_MAX_MODEL_LEN must be used with extreme caution.
INFO:     Application startup complete.
Assertion `index out of bounds: 0 <= tmp16 < {bound}` failed.
terminate called after throwing an instance of 'c10::AcceleratorError'
  what():  CUDA error: device-side assert triggered
"""


@pytest.mark.parametrize(
    ("text", "component"),
    [
        (VLLM, "vllm"),
        (SGLANG, "sglang"),
        ("ValueError: The decoder prompt (length 40211) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.\n", "vllm"),
        ("ValueError: Requested tokens (2301) exceed context window of 2048\n", "llama.cpp"),
        ("2024-02-01T00:00:00Z ERROR generate: text_generation_router::validation: Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1900 `inputs` tokens and 512 `max_new_tokens`\n", "text-generation-inference"),
        ("srv    operator(): got exception: {\"code\":400,\"message\":\"request (9012 tokens) exceeds the available context size (8192 tokens), try increasing it\",\"type\":\"exceed_context_size_error\"}\n", "llama.cpp"),
        ("openai.BadRequestError: Error code: 400 - {'message': \"This model's maximum context length is 4096 tokens. However, you requested 4512 tokens (4000 in the messages, 512 in the completion).\"}\n", "vllm"),
    ],
)  # fmt: skip
def test_each_engine_says_it_in_its_own_words(judge_report: Judge, text: str, component: str) -> None:
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == (ID, component)


def test_the_start_is_cured_by_the_length_that_the_model_has(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(VLLM), ID)
    assert found.certainty.value == "proven"
    assert ("--max-model-len", "32768") in [(remedy.name, remedy.value) for remedy in found.remedies]
    other = finding(judge_report(SGLANG), ID)
    assert ("--context-length", "40960") in [(remedy.name, remedy.value) for remedy in other.remedies]


def test_the_override_is_never_advised(judge_report: Judge, finding: Find) -> None:
    for text in (VLLM, SGLANG):
        found = finding(judge_report(text), ID)
        assert all("ALLOW" not in remedy.name or remedy.value == "unset" for remedy in found.remedies)
        assert any("ALLOW" in vain.what for vain in found.not_remedies)


def test_the_messages_own_advice_is_no_sign_that_the_check_was_switched_off(judge_report: Judge, finding: Find) -> None:
    assert all(remedy.kind != "env" for remedy in finding(judge_report(VLLM), ID).remedies)
    forced = "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve acme/M\n" + VLLM
    assert "VLLM_ALLOW_LONG_MAX_MODEL_LEN" in [r.name for r in finding(judge_report(forced), ID).remedies]


def test_an_assertion_with_the_models_bound_is_the_length(judge_report: Judge) -> None:
    judgement = judge_report(ASSERTED.format(bound=40960))
    first = judgement.findings[0]
    assert (first.cause, first.certainty.value) == (ID, "proven")
    assert first.evidence[0].quote.startswith("Assertion")
    assert "VLLM_ALLOW_LONG_MAX_MODEL_LEN" in [remedy.name for remedy in first.remedies]


def test_an_assertion_with_another_bound_is_a_kernels(judge_report: Judge) -> None:
    causes = [found.cause for found in judge_report(ASSERTED.format(bound=151936)).findings]
    assert causes[0] == "kernel-illegal-address"


def test_an_assertion_alone_asks_for_the_number_of_positions(judge_report: Judge, finding: Find) -> None:
    text = "Assertion `index out of bounds: 0 <= tmp16 < 40960` failed.\nRuntimeError: CUDA error: device-side assert triggered\n"
    facts = {"command": "vllm serve acme/Model --max-model-len 131072"}
    found = finding(judge_report(text, facts), ID)
    assert found.certainty.value == "possible"
    assert [missing.key for missing in found.missing] == ["model.max_position_embeddings"]
    settled = judge_report(text, {**facts, "model.max_position_embeddings": 40960}).findings[0]
    assert (settled.cause, settled.certainty.value) == (ID, "proven")
    others = judge_report(text, {**facts, "model.max_position_embeddings": 262144}).findings
    assert ID not in [found.cause for found in others]


def test_a_full_cache_is_another_cause(judge_report: Judge) -> None:
    text = "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (52000). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
    causes = [found.cause for found in judge_report(text).findings]
    assert causes[0] == "gpu-oom-kv-cache"
    assert ID not in causes


@pytest.mark.parametrize(
    "text",
    [
        "llama_context: n_ctx_per_seq (4096) < n_ctx_train (131072) -- the full capacity of the model will not be utilized\n",
        "llama_context: n_ctx_per_seq (65536) > n_ctx_train (32768) -- possible training context overflow\n",
    ],
)
def test_a_server_that_goes_on_has_no_fault(judge_report: Judge, text: str) -> None:
    assert ID not in [found.cause for found in judge_report(text).findings]


def test_a_request_is_cured_by_less_text_or_a_higher_limit(judge_report: Judge, finding: Find) -> None:
    text = "ValueError: Requested tokens (2301) exceed context window of 2048\n"
    remedies = [(remedy.name, remedy.value) for remedy in finding(judge_report(text), ID).remedies]
    assert ("--ctx-size", "higher") in remedies
    assert ("max_tokens", "lower") in remedies


def test_a_refused_request_is_not_why_a_server_died(judge_report: Judge, finding: Find) -> None:
    text = """ERROR 01-01 [serving_chat.py:200] Error in preprocessing prompt inputs
Traceback (most recent call last):
  File "/usr/local/lib/python3.12/dist-packages/vllm/entrypoints/openai/serving_engine.py", line 500, in _validate_input
ValueError: This model's maximum context length is 8192 tokens. However, your request has 9120 input tokens.
torch.AcceleratorError: CUDA error: an illegal memory access was encountered
"""
    judgement = judge_report(text)
    assert judgement.findings[0].cause == "kernel-illegal-address"
    assert finding(judgement, ID).certainty.value == "possible"


@pytest.mark.parametrize(
    ("text", "component"),
    [
        (
            (
                'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.11/site-packages/llama_cpp/llama.py", line 1151, in _create_completion\n'
                "    raise ValueError(\nValueError: Requested tokens (2311) exceed context window of 2048\n"
            ),
            "llama-cpp-python",
        ),
        (
            (
                '  File "/opt/venv/lib/python3.11/site-packages/exllamav2/model.py", line 683, in forward\n'
                "AssertionError: Total sequence length exceeds cache size in model.forward\n"
            ),
            "exllamav2",
        ),
    ],
)
def test_the_product_that_was_configured_is_named(
    judge_report: Judge, finding: Find, text: str, component: str
) -> None:
    assert finding(judge_report(text), "context-too-long").component == component


def test_a_prompt_that_ollama_cuts(judge_report: Judge, finding: Find) -> None:
    text = (
        "The answers ignore most of my document, it only gives gibberish.\n"
        'time=2025-02-01T12:00:00.000Z level=WARN source=runner.go:129 msg="truncating input prompt" limit=2048 prompt=7312 keep=4 new=2048\n'
    )
    found = finding(judge_report(text), "context-too-long")
    assert (found.component, found.certainty.value) == ("ollama", "possible")
