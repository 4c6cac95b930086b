"""Models that do not divide by the parallel size; the arithmetic, and what does not divide for one GPU either."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.remedies.ordering import order

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

HEADS = "ValueError: Total number of attention heads (52) must be divisible by tensor parallel size (8).\n"
BLOCK = """\
  File "/opt/vllm/vllm/model_executor/models/qwen3_moe.py", line 113, in __init__
    self.experts = FusedMoE(num_experts=config.num_experts,
ValueError: The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128.
"""
TILE = "ValueError: Weight input_size_per_partition = 10944 is not divisible by min_thread_k = 128. Consider reducing tensor_parallel_size or running with --quantization gptq.\n"
SGLANG = '  File "/opt/sglang/python/sglang/srt/model_executor/model_runner.py", line 300, in __init__\nValueError: For quantized MoE models, please make sure (moe_intermediate_size=1536 / moe_tp_size=8) % weight_block_size_n=128 == 0 where moe_tp_size is equal to tp_size (8) divided by ep_size (1).\n'
ASSERT = """\
Traceback (most recent call last):
  File "/usr/lib/python3.12/site-packages/vllm/model_executor/models/llama.py", line 120, in __init__
    assert self.total_num_heads % tp_size == 0
AssertionError
"""
TGI = "ValueError: `num_heads` must be divisible by `num_shards` (got `num_heads`: 71 and `num_shards`: 2\n"


def names(found: Finding) -> dict[str, str]:
    return {each.name: each.value for each in found.remedies}


@pytest.mark.parametrize(
    ("report", "certainty"),
    [
        (HEADS, Certainty.PROVEN),
        (ASSERT, Certainty.PROVEN),
        (TGI, Certainty.PROVEN),
        (SGLANG, Certainty.PROVEN),
        ("AssertionError: 151936 is not divisible by 7\n", Certainty.PROVEN),
        ("AssertionError: num_attention_heads 40 must be divisible by tp_size 16\n", Certainty.PROVEN),
        ("AssertionError: The chosen size 32003 is not compatible with sharding on 2 shards\n", Certainty.PROVEN),
        ("ValueError: Tensor parallel size (4) cannot be larger than the number of available GPUs (2).\n", Certainty.LIKELY),
        (BLOCK, Certainty.POSSIBLE),
        ("ValueError: The input size is not aligned with the quantized weight shape. This can be caused by too large tensor parallel size.\n", Certainty.POSSIBLE),
        ("RuntimeError: size_n = 9496 is not divisible by tile_n_size = 64\n", Certainty.POSSIBLE),
    ],
)  # fmt: skip
def test_wordings(judge_report: Judge, finding: Find, report: str, certainty: Certainty) -> None:
    assert finding(judge_report(report), "parallel-size-invalid").certainty is certainty


def test_heads_are_divided_by_the_largest_power_of_two_and_the_rest_becomes_a_pipeline(
    judge_report: Judge, finding: Find
) -> None:
    found = finding(judge_report("$ vllm serve x --tensor-parallel-size 8\n" + HEADS), "parallel-size-invalid")
    assert names(found)["--tensor-parallel-size"] == "4"
    assert names(found)["--pipeline-parallel-size"] == "2 with --tensor-parallel-size 4"
    assert "52 / 8 leaves a rest of 4" in found.evidence[0].statement


def test_blocks_are_multiplied_out(judge_report: Judge, finding: Find) -> None:
    report = "INFO engine config: tensor_parallel_size=8, pipeline_parallel_size=1\n" + BLOCK
    found = finding(judge_report(report), "parallel-size-invalid")
    assert found.certainty is Certainty.PROVEN
    assert "1536 / 8 = 192" in found.evidence[0].statement
    assert names(found)["--enable-expert-parallel"] == ""
    assert names(found)["--tensor-parallel-size"] == "4"


def test_sglang_spells_its_options_so(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(SGLANG), "parallel-size-invalid")
    assert names(found)["--ep-size"] == "8"
    assert names(found)["--tp-size"] == "4"


def test_the_highest_rank_bounds_the_size(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("(VllmWorker rank=6 pid=1) ERROR 05-02 07:54:19 [x.py:435] " + BLOCK.splitlines()[-1] + "\n"), "parallel-size-invalid")  # fmt: skip
    assert found.certainty is Certainty.LIKELY
    assert found.missing[0].key == "command"


@pytest.mark.parametrize(
    "start",
    [
        "$ python -m vllm.entrypoints.openai.api_server --model x --max-model-len 8192\n",
        "$ vllm serve x --tensor-parallel-size 1\n",
        "INFO engine config: tensor_parallel_size=1\n",
    ],
)
def test_what_does_not_divide_for_one_gpu_is_ruled_out(judge_report: Judge, start: str) -> None:
    judgement = judge_report(start + TILE)
    assert "parallel-size-invalid" not in [each.cause for each in judgement.findings]
    assert "parallel-size-invalid" in [each.cause for each in judgement.ruled_out]


def test_a_command_that_goes_on_says_nothing_of_the_size(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report("$ vllm serve x --max-model-len 8192 \\\n  ...\n" + TILE)
    assert finding(judgement, "parallel-size-invalid").certainty is Certainty.POSSIBLE


@pytest.mark.parametrize(
    "report",
    [
        "ValueError: block_size must be divisible by 16\n",
        "ValueError: max_num_batched_tokens must be divisible by the number of chunks 4\n",
        "RuntimeError: Invalid thread config: thread_k = -1, thread_n = -1, num_threads = -1 for MKN = [16, 4096, 4096]\n",
        "ValueError: image width must be divisible by 28\n",
        'Traceback (most recent call last):\n  File "/opt/vllm/a.py", line 1, in f\n    assert num_heads % tp_size == 0\nKeyError: 3\n',
    ],
)
def test_near_misses(judge_report: Judge, report: str) -> None:
    assert "parallel-size-invalid" not in [each.cause for each in judge_report(report).findings]


def test_the_models_dimension_gives_the_size(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(BLOCK, {"model.moe_intermediate_size": 1536}), "parallel-size-invalid")
    assert found.certainty is Certainty.PROVEN
    assert names(found)["--tensor-parallel-size"] == "4"


def test_other_engines_and_other_sizes(judge_report: Judge) -> None:
    for report in (
        "[TensorRT-LLM][ERROR] Assertion failed: numKvHeads must be divisible by tpSize (/src/x.cpp:1)\n",
        "AssertionError: tp_size must be divisible by dp_size\n",
        "AssertionError: Tensor parallel world size must divide num heads.\n",
        "ValueError: Tensor parallel size 16 is greater than the number of experts 8.\n",
    ):
        assert [each.cause for each in judge_report(report).findings][:1] == ["parallel-size-invalid"], report


def test_dimensions_among_themselves_are_no_parallel_size(judge_report: Judge) -> None:
    for report in (
        "ValueError: num_experts must be divisible by num_expert_group\n",
        "AssertionError: embed_dim must be divisible by num_heads (got `embed_dim`: 100 and `num_heads`: 3).\n",
        "ValueError: hidden_size must be divisible by 128\n",
    ):
        assert "parallel-size-invalid" not in [each.cause for each in judge_report(report).findings], report


def test_a_prime_number_of_heads_leaves_one_gpu_and_a_pipeline(judge_report: Judge, finding: Find) -> None:
    report = (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig\n"
        "  Value error, Total number of attention heads (25) must be divisible by tensor parallel size (2). [type=value_error]\n"
    )
    found = finding(judge_report(report), "parallel-size-invalid")
    assert found.component == "vllm"
    assert (names(found)["--tensor-parallel-size"], names(found)["--pipeline-parallel-size"]) == (
        "1",
        "2 with --tensor-parallel-size 1",
    )


def test_another_number_of_processes_than_the_engine_was_built_for(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("AssertionError: Engine world size (2) != Runtime world size (1)\n"), "parallel-size-invalid")  # fmt: skip
    assert found.certainty is Certainty.LIKELY
    assert (found.remedies[0].name, found.remedies[0].value) == ("mpirun -n", "2")


def test_a_rank_of_an_unknown_kind_does_not_outweigh_a_whole_command(judge_report: Judge) -> None:
    text = (
        "$ python -m vllm.entrypoints.openai.api_server --model x/DeepSeek-Coder-V2-Lite-Instruct-AWQ --dtype float16\n"
        "ValueError: Weight input_size_per_partition = 10944 is not divisible by min_thread_k = 128. Consider reducing tensor_parallel_size or running with --quantization gptq.\n"
    )
    ranked = "".join(f"[rank3]: {line}\n" for line in text.splitlines())
    assert judge_report(ranked).findings[0].cause == "quantization-unsupported"
    tensor = text.replace("ValueError", "(Worker_TP3 pid=7) ERROR 11-29 10:00:00 [x.py:1] ValueError")
    assert judge_report(tensor).findings[0].cause == "parallel-size-invalid"


def test_the_proposed_size_divides_all_that_the_model_has(judge_report: Judge, finding: Find) -> None:
    """40 heads divide by 8; the blocks of 128 in 2816 columns only by 2: the next start would fail there."""
    report = "ValueError: Total number of attention heads (40) must be divisible by tensor parallel size (16).\n"
    assert names(finding(judge_report(report), "parallel-size-invalid"))["--tensor-parallel-size"] == "8"
    model = {
        "model.architectures": ["Qwen2ForCausalLM"], "model.model_type": "qwen2", "model.num_hidden_layers": 4, "model.hidden_size": 5120,
        "model.num_attention_heads": 40, "model.num_key_value_heads": 8, "model.intermediate_size": 2816, "model.vocab_size": 1000,
        "model.quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    }  # fmt: skip
    assert names(finding(judge_report(report, model), "parallel-size-invalid"))["--tensor-parallel-size"] == "2"


def test_a_pipeline_uses_all_the_gpus(judge_report: Judge, finding: Find) -> None:
    """40 heads on 6 GPUs: 4 divides and leaves two idle, 2 ranks in 3 stages use all of them."""
    text = "$ vllm serve m --tensor-parallel-size 6\nTotal number of attention heads (40) must be divisible by tensor parallel size (6).\n"
    found = finding(judge_report(text), "parallel-size-invalid")
    assert names(found)["--tensor-parallel-size"] == "4"
    assert names(found)["--pipeline-parallel-size"] == "3 with --tensor-parallel-size 2"


def test_more_ranks_than_experts_are_cut_to_their_number(judge_report: Judge, finding: Find) -> None:
    text = "[2025-12-10 10:00:00] server_args=ServerArgs(model_path='m', tp_size=64)\nValueError: Tensor parallel size 64 is greater than the number of experts 32.\n"
    found = finding(judge_report(text), "parallel-size-invalid")
    assert names(found)["--tp-size"] == "32"


@pytest.mark.parametrize(
    ("text", "flag", "value"),
    [
        ("INFO [utils.py:328] non-default args: {'model_tag': 'm', 'tensor_parallel_size': 8, 'decode_context_parallel_size': 3}\nAssertionError: tp_size=8 must be divisible by dcp_size=3.\n", "--decode-context-parallel-size", "2"),
        ("[2025-12-10 10:00:00] server_args=ServerArgs(model_path='m', tp_size=8, dp_size=3)\nTraceback (most recent call last):\n  File \"/x/sglang/srt/server_args.py\", line 600, in check\n    assert self.tp_size % self.dp_size == 0\nAssertionError\n", "--dp-size", "2"),
        ("[2025-12-10 10:00:00] server_args=ServerArgs(model_path='m', tp_size=6, ep_size=6)\nTraceback (most recent call last):\n  File \"/x/sglang/srt/eplb/expert_location.py\", line 256, in _init_common\n    assert num_physical_experts % ep_size == 0\nAssertionError\n", "--ep-size", "lower"),
    ],
)  # fmt: skip
def test_groups_that_do_not_go_into_the_ranks_name_their_own_option(judge_report: Judge, finding: Find, text: str, flag: str, value: str) -> None:  # fmt: skip
    found = finding(judge_report(text), "parallel-size-invalid")
    assert [(each.name, each.value) for each in found.remedies] == [(flag, value)]
    assert found.certainty is Certainty.PROVEN


def test_no_odd_number_of_ranks_where_the_heads_are_unknown(judge_report: Judge, finding: Find) -> None:
    """29,568 columns in tiles of 128 divide by 7, which no usual number of heads does: stages of a pipeline then."""
    text = (
        "INFO [utils.py:328] non-default args: {'model_tag': 'm', 'tensor_parallel_size': 8}\n"
        "ValueError: Weight input_size_per_partition = 3696 is not divisible by min_thread_k = 128. Consider reducing tensor_parallel_size or running with --quantization gptq.\n"
    )
    found = finding(judge_report(text), "parallel-size-invalid")
    first = order(found.remedies)[0]
    assert (first.name, first.value) == ("--pipeline-parallel-size", "8 with --tensor-parallel-size 1")
