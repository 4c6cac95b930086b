"""wrong-output: damaged answers without an error, and what only looks like them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.causes.runtime._faults import remedies_known
from gpuwhy.diagnosis import Judgement
from gpuwhy.knowledge.known_faults import KnownFault
from gpuwhy.model.finding import Certainty
from gpuwhy.remedies.ordering import order

Judge = Callable[..., Judgement]
CAUSE = "wrong-output"
TABLE = "| arm | flexible-extract | errors |\n| stock | 0.000 | 196 |\n| TRITON_ATTN | 0.880 | 0 |\n"


@pytest.mark.parametrize(
    "line",
    [
        'The model outputs "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!" for every prompt.',
        '{"choices":[{"message":{"role":"assistant","content":"!!!!!!!!!!!!!!!!!!!!!!!!!!"}}]}',
        "vllm 0.9 generates gibberish when two requests run at the same time.",
        "With fp8 KV cache the model starts repeating the same sentence, output is garbled.",
        "|gsm8k|      3|flexible-extract|     5|exact_match|0.0000|",
    ],
)
def test_descriptions_are_only_possible_and_ask_for_a_comparison(judge_report: Judge, line: str) -> None:
    first = judge_report(line + "\n").findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.POSSIBLE)
    assert {"tests", "cc"} <= {missing.key for missing in first.missing}
    assert "build-target-wrong" in first.rivals


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
        "[TP0] Detected errors during sampling! NaN in the logits.",
        "ValueError: Out of range float values are not JSON compliant: nan",
    ],
)
def test_values_that_are_no_numbers(judge_report: Judge, line: str) -> None:
    first = judge_report(line + "\n").findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert "--dtype" in [remedy.name for remedy in first.remedies]


def test_a_comparison_in_the_report_makes_it_likely(judge_report: Judge) -> None:
    first = judge_report(TABLE).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert first.evidence[0].quote == "| stock | 0.000 | 196 |"
    assert (order(first.remedies)[0].name, order(first.remedies)[0].value) == ("--attention-backend", "TRITON_ATTN")


def test_sinks_on_sm_12_are_a_known_fault(judge_report: Judge) -> None:
    first = judge_report(TABLE, {"cc": "12.1", "gpu": "GB10", "model.attention_sinks": True}).findings[0]
    assert (first.cause, first.component) == (CAUSE, "flashinfer")


def test_sinks_on_hopper_are_not(judge_report: Judge) -> None:
    assert judge_report(TABLE, {"cc": "9.0", "model.attention_sinks": True}).findings[0].component != "flashinfer"


def test_the_comparison_of_the_operator_counts(judge_report: Judge) -> None:
    facts = {"tests.concurrency 1": "clean answers", "tests.concurrent requests": "14 of 30 answers damaged"}
    first = judge_report("sglang: the answers are gibberish under load\n", facts).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert any("clean" in evidence.quote for evidence in first.evidence)


def test_near_miss_words_of_a_report_about_a_crash(judge_report: Judge) -> None:
    text = (
        "The output was garbage before, now it crashes.\nTraceback (most recent call last):\n"
        "  File \"/opt/app/serve.py\", line 3, in <module>\nKeyError: 'rope_scaling'\n"
    )
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


@pytest.mark.parametrize(
    "line",
    [
        "| GPU | utilisation | 0.0 |",
        "# !!! WARNING !!!",
        "Python garbage collector ran 3 times",
        "Speed: 0.000 s, info: 0.0",
        "nanobind: leaked 3 instances!",
    ],
)
def test_near_miss_zeros_and_signs(judge_report: Judge, line: str) -> None:
    assert CAUSE not in [found.cause for found in judge_report(line + "\n").findings]


def test_an_answer_of_signs_that_cannot_be_decoded(judge_report: Judge) -> None:
    text = "llama-server, flash attention on. After 4k tokens the answer turns into\n\n\ufffd\ufffd\ufffd\ufffd\ufffd \ufffd\ufffd\ufffd\ufffd \ufffd\ufffd\ufffd\n"
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.POSSIBLE)


def test_a_log_in_another_character_set_is_no_answer(judge_report: Judge) -> None:
    line = "INFO: \ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd \ufffd\ufffd\ufffd 12 MB\n"
    assert not judge_report("generating\n" + line * 12).findings


def test_the_number_format_is_spelled_as_the_program_does(judge_report: Judge) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.10/site-packages/transformers/generation/utils.py", line 2897, in sample\n'
        "    next_tokens = torch.multinomial(probs, num_samples=1)\n"
        "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0\n"
    )
    first = judge_report(text).findings[0]
    assert ("config", "torch_dtype") in [(remedy.kind, remedy.name) for remedy in first.remedies]
    assert "--attention-backend" not in [remedy.name for remedy in first.remedies]


def test_the_backend_that_gives_clean_answers_is_not_at_fault(judge_report: Judge) -> None:
    tests = {"tests.--attention-backend triton": "correct answers", "tests.--attention-backend fa3": "gibberish"}
    first = judge_report("After the upgrade sglang 0.5.1 generates gibberish, no crash.\n", tests).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert first.component != "triton"
    assert order(first.remedies)[0].value == "triton"


def test_a_model_that_overflows_float16_is_known(judge_report: Judge) -> None:
    text = "vllm serve google/gemma-3-12b-it --dtype float16\nThe output is gibberish for every prompt.\n"
    first = judge_report(text).findings[0]
    assert (first.cause, first.component, first.certainty) == (CAUSE, "vllm", Certainty.LIKELY)
    assert ("flag", "--dtype", "bfloat16") in [(remedy.kind, remedy.name, remedy.value) for remedy in first.remedies]


@pytest.mark.parametrize("said", ["outputs nonsense", "returns garbage", "is producing incoherent text"])
def test_verbs_in_front_of_what_is_wrong(judge_report: Judge, said: str) -> None:
    first = judge_report(f"[Bug]: Qwen3-30B-A3B-FP8 {said} with vLLM 0.9.0 on L40S\n").findings[0]
    assert first.cause == CAUSE


def test_pictures_that_are_not_numbers(judge_report: Judge) -> None:
    text = (
        "    raise NansException(message)\nmodules.devices.NansException: A tensor with all NaNs was produced in Unet. "
        "This could be either because there's not enough precision to represent the picture, or because your video card does not support half type.\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == (CAUSE, "stable-diffusion-webui")
    assert (first.remedies[0].kind, first.remedies[0].name) == ("flag", "--no-half")


@pytest.mark.parametrize(
    "said",
    [
        "The output is just GGGG with Qwen3-30B on one card.",
        "I only get '!!!!' as the answer.",
        "the model answers <unk><unk><unk>",
        "output is only [PAD][PAD][PAD] since the upgrade",
        "it generates the the the the the until max_tokens",
        '{"choices":[{"text":"GGGGGGGGGGGGGGGGGGGG","finish_reason":"length"}]}',
        "The model outputs the same token over and over.",
        "It gets stuck in a repetition loop after 200 tokens.",
        "The answer is a single repeated character.",
        "模型输出全是感叹号",
    ],
)
def test_one_sign_or_word_without_end_in_a_reporter_s_words(judge_report: Judge, said: str) -> None:
    first = judge_report(f"vLLM 0.11.0 serves Qwen3.\n{said}\n").findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.POSSIBLE)


@pytest.mark.parametrize(
    "line",
    [
        "the output is ==========",
        "What is the output????",
        "Please answer!!!!!",
        "The above warning is repeated endlessly in the log",
        "my path is /xxxx/yyyy, and it returns only xxxx",
        "it is stuck in an infinite loop and prints the same line over and over",
        "returns 0 0 0 0, output is 1111111",
        "Special tokens: <unk> <s> </s>, <unk> token id is 0",
    ],
)
def test_near_miss_rulers_and_exclamations(judge_report: Judge, line: str) -> None:
    assert CAUSE not in [found.cause for found in judge_report(f"vLLM 0.11.0. {line}\n").findings]


def test_a_fix_that_is_in_no_release_is_built_from_the_repository() -> None:
    fault = KnownFault("wrong-output", "vllm", "decodes wrongly", words="x", package="vllm", fixed_in="rebuild", provenance="vllm-project/vllm PR 1")  # fmt: skip
    (remedy,) = remedies_known(fault)
    assert "python3 -m pip install git+https://github.com/vllm-project/vllm" in remedy.commands
    assert not any("--no-binary" in command for command in remedy.commands)
    assert remedy.undo


def test_the_answer_itself_is_cited_and_not_the_title(judge_report: Judge) -> None:
    answer = '{"message":{"role":"assistant","content":"' + "!" * 60 + '"}}'
    text = 'vLLM prints only "!!!!!!!!!!!!!!" for a GPTQ model\n\nvllm serve m\n' + answer + "\n"
    assert judge_report(text).findings[0].evidence[0].quote == answer
    answer = "Hello" + "<unused32>" * 8
    text = f"llama.cpp: the model gives garbage with flash attention\n\n./llama-cli -m m.gguf -fa\n{answer}\n"
    assert judge_report(text).findings[0].evidence[0].quote == answer


def test_the_engine_s_warning_of_nan_comes_before_the_exception(judge_report: Judge) -> None:
    text = (
        "[2025-04-12 10:22:10 TP0] Detected errors during sampling! NaN in the logits.\n"
        "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0\n"
    )
    assert judge_report(text).findings[0].evidence[0].quote.startswith("Detected errors during sampling")


def test_a_quantised_cache_is_taken_back_before_anything_else(judge_report: Judge) -> None:
    text = "vLLM: answers are gibberish\n\nvllm serve m --kv-cache-dtype fp8\n"
    first = order(judge_report(text).findings[0].remedies)[0]
    assert (first.kind, first.name, first.value) == ("flag", "--kv-cache-dtype", "auto")


def test_another_attention_backend_only_where_the_report_points_to_attention(judge_report: Judge) -> None:
    plain = "sglang: long answers turn into garbage characters\n\npython -m sglang.launch_server --model m\n"
    names = [remedy.name for remedy in judge_report(plain).findings[0].remedies]
    assert names == ["sglang"]
    named = plain.replace("--model m", "--model m --attention-backend fa3")
    assert "--attention-backend" in [remedy.name for remedy in judge_report(named).findings[0].remedies]


def test_what_starts_the_server_computes_nothing(judge_report: Judge) -> None:
    text = (
        'TGI 2.2.0 gives only "!!!!!!!!!!!!!!"\n\ndocker run --gpus all img --quantize awq\n{"generated_text":"'
        + "!" * 40
        + '"}\n'
    )
    first = judge_report(text).findings[0]
    assert first.component == "text-generation-inference"
    assert all("container" not in remedy.name for remedy in first.remedies)
