"""Options and values that a release does not have, and commands that do not fit the image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

ID = "bad-argument"


@pytest.mark.parametrize(
    ("text", "component"),
    [
        ("usage: api_server.py [-h] [--host HOST]\napi_server.py: error: unrecognized arguments: --enable-reasoning\n", "vllm"),
        ("launch_server.py: error: argument --attention-backend: invalid choice: 'flash3' (choose from 'triton', 'fa3', 'flashinfer')\n", "sglang"),
        ("launch_server.py: error: the following arguments are required: --model-path/--model\n", "sglang"),
        ("error: unexpected argument '--max-model-len' found\n\n  tip: a similar argument exists: '--model-id'\n\nUsage: text-generation-launcher <--model-id <MODEL_ID>>\n", "text-generation-inference"),
        ("error: invalid argument: --flash-attn-x\nusage: llama-server [options]\n", "llama.cpp"),
        ('error while handling argument "-fa": error: unknown value for --flash-attn: \'-ngl\'\n', "llama.cpp"),
        ("Usage: trtllm-serve [OPTIONS] MODEL\nTry 'trtllm-serve --help' for help.\n\nError: No such option: --tensor_parallel_size (Possible options: --tp_size)\n", "tensorrt-llm"),
        ("unknown flag: --gpus\nSee 'docker run --help'.\n", "container-engine"),
        ("start.sh: line 4: --max-model-len: command not found\n", "vllm"),
        ("ValueError: VLLM_PORT 'tcp://10.96.12.34:8000' appears to be a URI. This may be caused by a Kubernetes service discovery issue\n", "vllm"),
        ("/usr/bin/python3: No module named sglang.__main__; 'sglang' is a package and cannot be directly executed\n", "sglang"),
        ("TypeError: EngineArgs.__init__() got an unexpected keyword argument 'speculative_model'\n", "vllm"),
        ("pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\nquantization\n  Input should be 'awq' or 'fp8' [type=literal_error, input_value='int4', input_type=str]\n", "vllm"),
        ("KeyError: 'invalid tool call parser: qwen3 (chose from { deepseek_v3,granite,hermes })'\n", "vllm"),
        ("vllm  | vllm serve: error: argument --speculative-config: Value {method: mtp} cannot be converted to <function loads at 0x7f>.\n", "vllm"),
        ('Error: ArgumentValidation("`max_input_tokens` must be < `max_total_tokens`")\n', "text-generation-inference"),
    ],
)  # fmt: skip
def test_parsers_complain_in_many_words(judge_report: Judge, text: str, component: str) -> None:
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == (ID, component)


def test_a_command_that_names_the_program_again(judge_report: Judge, finding: Find) -> None:
    text = "usage: vllm [-h] [-v] {chat,complete,serve} ...\nvllm: error: unrecognized arguments: serve /models/acme --max-model-len 4096\n"
    found = finding(judge_report(text), ID)
    assert found.certainty.value == "proven"
    assert [(remedy.kind, remedy.name) for remedy in found.remedies] == [("container", "command"), ("flag", "--entrypoint")]  # fmt: skip
    assert "without 'vllm serve'" in [remedy.value for remedy in found.remedies]


@pytest.mark.parametrize(
    "text",
    [
        'docker: Error response from daemon: OCI runtime create failed: unable to start container process: exec: "--model": executable file not found in $PATH: unknown.\n',
        "/opt/nvidia/nvidia_entrypoint.sh: line 67: exec: --: invalid option\n",
        'Error: unable to start container process: exec: "vllm serve --model /models/x": stat vllm serve --model /models/x: no such file or directory: unknown\n',
    ],
)
def test_an_image_that_starts_no_program_needs_one_named(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), ID)
    assert (found.remedies[0].kind, found.remedies[0].name) == ("container", "command")
    assert "program" in found.remedies[0].summary


@pytest.mark.parametrize(
    ("option", "program", "instead"),
    [
        ("--disable-log-requests", "vllm", "--no-enable-log-requests"),
        ("--enable-ep-moe", "launch_server.py", "--ep-size"),
        ("--gpu-memory-utilization", "launch_server.py", "--mem-fraction-static"),
        ("--mem_fraction_static", "vllm", "--gpu-memory-utilization"),
    ],
)
def test_a_renamed_option_or_one_of_another_engine_has_its_successor(
    judge_report: Judge, finding: Find, option: Any, program: Any, instead: Any
) -> None:
    found = finding(judge_report(f"{program}: error: unrecognized arguments: {option}\n"), ID)
    assert found.remedies[0].name == instead


def test_a_dropped_option_is_left_out(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("vllm: error: unrecognized arguments: --swap-space 4\n"), ID)
    assert [(remedy.name, remedy.value) for remedy in found.remedies] == [("--swap-space", "remove")]


def test_a_service_of_kubernetes_is_renamed_or_its_variable_unset(judge_report: Judge, finding: Find) -> None:
    text = "ValueError: VLLM_PORT 'tcp://10.96.12.34:8000' appears to be a URI.\n"
    found = finding(judge_report(text), ID)
    assert ("env", "VLLM_PORT", "unset") in [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]
    assert "enableServiceLinks" in [remedy.name for remedy in found.remedies]


def test_a_keyword_that_one_package_passes_to_another_is_not_the_users(judge_report: Judge) -> None:
    text = """Traceback (most recent call last):
  File "/usr/local/lib/python3.12/dist-packages/unsloth/models/llama.py", line 20, in load
    engine = LLM(**arguments)
TypeError: EngineArgs.__init__() got an unexpected keyword argument 'device'
"""
    causes = [found.cause for found in judge_report(text).findings]
    assert causes[0] == "api-drift"
    assert ID not in causes


@pytest.mark.parametrize(
    "text",
    [
        "nvcc fatal   : Unknown option '-compress-mode=size'\n",
        "gcc: error: unrecognized command-line option '-fno-foo'\n",
        "ERROR: pip: error: no such option: --foo\n",
        'INFO: "POST /v1/chat/completions HTTP/1.1" 400 Bad Request\npydantic_core._pydantic_core.ValidationError: 1 validation error for ChatCompletionRequest\nmessages\n  Input should be a valid list [type=list_type]\n',
    ],
)
def test_compilers_installers_and_requests_are_not_meant(judge_report: Judge, text: str) -> None:
    assert ID not in [found.cause for found in judge_report(text).findings]


def test_options_that_exclude_each_other_are_another_cause(judge_report: Judge) -> None:
    text = "NotImplementedError: VLLM_USE_V1=1 is not supported with --num-scheduler-steps.\n"
    causes = [found.cause for found in judge_report(text).findings]
    assert causes[0] == "backend-combination-unsupported"
    assert ID not in causes


def test_an_option_that_no_release_has_is_checked_by_the_help(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("vllm: error: unrecognized arguments: --no-such-option 1\n"), ID)
    assert found.remedies[0].check == ("vllm serve --help=all",)
    assert {remedy.kind for remedy in found.remedies} == {"flag"}


def test_of_an_engine_without_recorded_options_another_release_may_have_it(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("error: invalid argument: --new-sampler\nusage: llama-server [options]\n"), ID)
    assert [remedy.kind for remedy in found.remedies] == ["flag", "package"]


def test_a_refused_value_is_the_users_where_the_command_has_the_option(judge_report: Judge, finding: Find) -> None:
    text = "ValueError: 'FLASH' is not a valid AttentionBackend\n"
    assert finding(judge_report(text), ID).certainty.value == "likely"
    given = {"command": "vllm serve acme/M --attention-backend FLASH"}
    assert finding(judge_report(text, given), ID).certainty.value == "proven"


def test_a_type_that_a_kernel_refuses_is_not_yet_an_argument(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("ValueError: Unknown dtype: int3\n"), ID)
    assert found.certainty.value == "possible"


def test_a_value_that_a_variable_does_not_take(judge_report: Judge, finding: Find) -> None:
    text = (
        "ValueError: Invalid value 'FLASH' for VLLM_ATTENTION_BACKEND. Valid options: ['FLASH_ATTN', 'FLASHINFER'].\n"
    )
    found = finding(judge_report(text), ID)
    assert (found.remedies[0].kind, found.remedies[0].name) == ("env", "VLLM_ATTENTION_BACKEND")


def test_an_option_that_came_later_names_the_release(judge_report: Judge, finding: Find) -> None:
    text = "vLLM API server version 0.9.2\nvllm: error: unrecognized arguments: --async-scheduling\n"
    found = finding(judge_report(text, {"packages.vllm": "0.9.2"}), "bad-argument")
    assert ("package", "vllm", ">=0.10.0") in {(r.kind, r.name, r.value) for r in found.remedies}


def test_of_an_option_that_is_gone_no_newer_release_is_proposed(judge_report: Judge, finding: Find) -> None:
    text = "vllm: error: unrecognized arguments: --multi-step-stream-outputs-x --num-scheduler-steps 8\n"
    found = finding(judge_report("vllm: error: unrecognized arguments: --enable-lora-bias\n", {"packages.vllm": "0.12.0"}), "bad-argument")  # fmt: skip
    assert "package" not in {r.kind for r in found.remedies}
    assert any("was the last with it" in each.statement for each in found.evidence)
    assert "package" not in {r.kind for r in finding(judge_report(text), "bad-argument").remedies}


def test_a_misspelled_option_leads_to_the_one_that_exists(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("vllm: error: unrecognized arguments: --max-model-length 4096\n"), "bad-argument")
    assert found.remedies[0].name == "--max-model-len"


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("vllm serve: error: argument --kv-transfer-config: Invalid JSON string: {kv_connector:X,kv_role:kv_both}\n", "--kv-transfer-config"),
        ("Usage: vllm-deploy [OPTIONS]\nTry 'vllm-deploy --help' for help.\n\nError: Invalid value for '--tensor-parallel-size': 'auto' is not a valid integer.\n", "--tensor-parallel-size"),
    ],
)  # fmt: skip
def test_a_value_that_no_release_takes_is_not_upgraded_away(
    judge_report: Judge, finding: Find, text: str, option: Any
) -> None:
    found = finding(judge_report(text), ID)
    assert [(remedy.kind, remedy.name) for remedy in found.remedies] == [("flag", option)]


def test_every_option_that_was_not_understood_has_its_own_way_out(judge_report: Judge) -> None:
    text = "launch_server.py: error: unrecognized arguments: --tensor-parallel 4 --gpu-memory-utilization 0.9\n"
    first = judge_report("python -m sglang.launch_server\n" + text).findings[0]
    named = [remedy.name for remedy in first.remedies]
    assert named[0] == "--tp-size"
    assert "--mem-fraction-static" in named


def test_a_bound_that_is_too_small_for_what_is_loaded(judge_report: Judge) -> None:
    first = judge_report("vllm serve m\nValueError: LoRA rank 128 is greater than max_lora_rank 16.\n").findings[0]
    remedy = first.remedies[0]
    assert (first.cause, remedy.kind, remedy.name, remedy.value) == ("bad-argument", "flag", "--max-lora-rank", "128")


def test_near_miss_a_length_beyond_the_limit_is_no_bound_of_this_kind(judge_report: Judge) -> None:
    text = "vllm serve m\nValueError: Prompt length 9000 is greater than max_model_len 8192.\n"
    assert "bad-argument" not in [found.cause for found in judge_report(text).findings]
