"""Quantisation methods whose kernels cannot serve the GPU, the shapes or the weights."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding
from gpuwhy.remedies.ordering import order

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

ID = "quantization-unsupported"

CAPABILITY = "ValueError: The quantization method gptq_marlin is not supported for the current GPU. Minimum capability: 80. Current capability: 75.\n"
SHARE = "ValueError: Weight input_size_per_partition = {share} is not divisible by min_thread_k = 128. Consider reducing tensor_parallel_size or running with --quantization gptq.\n"


@pytest.mark.parametrize(
    "text",
    [
        CAPABILITY,
        "(VllmWorker rank=0 pid=5) ERROR 03-01 [multiproc_executor.py:500] RuntimeError: Quantization scheme is not supported for the current GPU. Min capability: 80. Current capability: 75.\n",
        "ValueError: torch.bfloat16 is not supported for quantization method awq. Supported dtypes: [torch.float16]\n",
        "ValueError: Unknown quantization method: fp4. Must be one of ['aqlm', 'awq'].\n",
        "ValueError: Failed to find a kernel that can implement the WNA16 linear layer. Reasons: \n MacheteLinearKernel requires capability 90, current compute capability is 75\n",
        "ValueError: Your GPU does not support Int8 Matmul!\n",
        "NotImplementedError: No compressed-tensors compatible scheme was found.\n",
        "ValueError: Currently, only 4-bit weight quantization is supported for AWQ, but got 8 bits.\n",
        "ValueError: Marlin does not support weight_bits = uint4. Only types = [] are supported (for group_size = 128, device_capability = 75, zp = True).\n",
        "AssertionError: AWQ kernels only support SM75 and later GPUs\n",
    ],
)
def test_engines_refuse_in_many_words(judge_report: Judge, text: str) -> None:
    assert judge_report(text).findings[0].cause == ID


def test_a_stated_minimum_and_the_gpus_capability_prove_it(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(CAPABILITY), ID)
    assert (found.certainty.value, found.component) == ("proven", "vllm")
    assert "compute capability >= 8.0" in [remedy.value for remedy in found.remedies]
    assert ("flag", "--quantization", "gptq") in [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


def test_a_scheme_named_after_its_format_is_refused_as_a_scheme(judge_report: Judge, finding: Find) -> None:
    text = "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89. Current capability: 86.\n"
    found = finding(judge_report(text), ID)
    assert found.certainty.value == "proven"
    assert "compute capability >= 8.9" in [remedy.value for remedy in found.remedies]


def test_a_gpu_that_is_good_enough_rules_it_out(judge_report: Judge) -> None:
    text = "ValueError: The quantization method awq is not supported for the current GPU. Minimum capability: 75.\n"
    judgement = judge_report(text, {"cc": "8.0"})
    assert ID in [excluded.cause for excluded in judgement.ruled_out]
    assert judge_report(text, {"cc": "7.0"}).findings[0].cause == ID


def test_a_type_that_the_method_lacks_is_replaced(judge_report: Judge, finding: Find) -> None:
    text = (
        "ValueError: torch.bfloat16 is not supported for quantization method awq. Supported dtypes: [torch.float16]\n"
    )
    assert tuple(getattr(finding(judge_report(text), ID).remedies[0], key) for key in ("name", "value")) == ("--dtype", "float16")  # fmt: skip


def test_what_does_not_divide_on_one_gpu_is_the_models_shape(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(SHARE.format(share=10944), {"command": "vllm serve acme/M-AWQ"}), ID)
    assert found.certainty.value == "proven"
    assert ("patch", "64") in [(remedy.kind, remedy.value) for remedy in found.remedies]
    assert "reducing the tensor-parallel size" in [vain.what for vain in found.not_remedies]


def test_arithmetic_tells_the_shape_from_the_parallel_size(judge_report: Judge) -> None:
    command = {"command": "vllm serve acme/M-GPTQ --tensor-parallel-size 8"}
    assert judge_report(SHARE.format(share=3700), command).findings[0].cause == ID
    causes = [found.cause for found in judge_report(SHARE.format(share=3696), command).findings]
    assert causes[0] == "parallel-size-invalid"
    assert ID not in causes


def test_a_share_without_a_known_size_stays_open(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(SHARE.format(share=3696)), ID)
    assert found.certainty.value == "possible"
    assert [missing.key for missing in found.missing] == ["command"]
    assert "parallel-size-invalid" in found.rivals


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5.\n", "dtype-unsupported-by-gpu"),
        ("triton.compiler.errors.CompilationError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')\n", "dtype-unsupported-by-gpu"),
        ("ValueError: BitsAndBytes quantization with TP or PP is not supported yet. Please use prequantized BNB models with TP 1.\n", "backend-combination-unsupported"),
        ("ValueError: Quantization method specified in the model config (compressed-tensors) does not match the quantization method specified in the `quantization` argument (awq).\n", "bad-argument"),
    ],
)  # fmt: skip
def test_near_misses_belong_to_their_own_causes(judge_report: Judge, text: str, cause: str) -> None:
    causes = [found.cause for found in judge_report(text).findings]
    assert causes[0] == cause
    assert ID not in causes


def test_remarks_of_a_start_that_goes_on_are_no_fault(judge_report: Judge) -> None:
    text = "WARNING 04-19 17:25:10 config.py:211] awq quantization is not fully optimized yet. The speed can be slower than non-quantized models.\n"
    assert ID not in [found.cause for found in judge_report(text).findings]


NONE = (
    "ValueError: Failed to find a kernel that can implement the WNA16 linear layer. Reasons: \n"
    " MacheteLinearKernel requires capability 90, current compute  capability is 86\n"
    " AllSparkLinearKernel cannot implement due to: For Ampere GPU, AllSpark does not support group_size = 32. Only group_size = -1 are supported.\n"
    " MarlinLinearKernel cannot implement due to: Weight input_size = 3420 is not divisible by min_thread_k = 128\n"
)


def test_the_capability_of_one_kernel_among_several_is_no_limit(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report(NONE)
    first = judgement.findings[0]
    assert first.cause == "quantization-unsupported"
    assert first.evidence[0].quote.startswith("ValueError: Failed to find a kernel")
    assert first.certainty.value == "likely"


def test_a_division_among_the_reasons_is_the_parallel_sizes_where_the_whole_divides(judge_report: Judge) -> None:
    text = "vllm serve x-awq --tensor-parallel-size 8\n" + NONE.replace("3420", "3440")
    assert judge_report(text).findings[0].cause == "parallel-size-invalid"


def test_a_checkpoint_without_what_the_method_needs(judge_report: Judge) -> None:
    text = "ValueError: Cannot find any of ['adapter_name_or_path'] in the model's quantization config.\n"
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == ("quantization-unsupported", "vllm")


def test_an_assertion_without_words_is_read_by_its_statement(judge_report: Judge) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.10/site-packages/awq/modules/linear/gemm.py", line 139, in __init__\n'
        "    assert self.in_features % self.group_size == 0\nAssertionError\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == ("quantization-unsupported", "autoawq")


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: w8a8_int8 quantization is currently not supported for MoE\n",
        "ValueError: BitsAndBytes quantization is not supported yet for Qwen3NextForCausalLM\n",
    ],
)
def test_a_method_without_kernels_for_a_kind_of_layer(judge_report: Judge, text: str) -> None:
    assert judge_report(text).findings[0].cause == "quantization-unsupported"


def test_a_method_that_the_release_does_not_know_yet_asks_for_a_release(judge_report: Judge) -> None:
    text = "  Value error, Unknown quantization method: mxfp4. Must be one of ['awq', 'fp8', 'gguf'].\n"
    first = judge_report("vllm serve m\n" + text).findings[0]
    remedy = order(first.remedies)[0]
    assert (first.cause, remedy.kind, remedy.name, remedy.value) == (ID, "package", "vllm", "newer")
