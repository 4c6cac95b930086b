"""arch-list-override: lists that break a build or leave out the GPU, and targets that no list names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.causes.architecture._arch_lists import ArchList
from gpuwhy.diagnosis import Judgement
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "arch-list-override"


def found_or_ruled_out(judged: Judgement) -> tuple[list[str], list[str]]:
    return [f.cause for f in judged.findings], [x.cause for x in judged.ruled_out]


@pytest.mark.parametrize(("value", "capability", "covers"), [
    ("7.0 7.5 8.0+PTX", "12.0", True),
    ("7.0;7.5;8.0", "12.0", False),
    ("12.0a", "12.1", False),
    ("8.0", "8.6", True),
    ("Blackwell", "12.0", None),
])  # fmt: skip
def test_what_a_list_covers(value: str, capability: str, covers: bool | None) -> None:
    assert ArchList("TORCH_CUDA_ARCH_LIST", value, Evidence("")).covers(capability) is covers


IMPORT_ERROR = """\
Traceback (most recent call last):
  File "/opt/sgl/lib/python3.11/site-packages/flashinfer/jit/core.py", line 140, in <module>
    current_compilation_context = CompilationContext()
  File "/opt/sgl/lib/python3.11/site-packages/flashinfer/compilation_context.py", line 92, in __init__
    major, minor = arch.split(".")
ValueError: not enough values to unpack (expected 2, got 1)
"""


def test_flashinfer_cannot_read_an_entry(judge_report: Judge) -> None:
    first = judge_report(IMPORT_ERROR, {"env.FLASHINFER_CUDA_ARCH_LIST": "sm_120a", "cc": "12.0"}).findings[0]
    assert (first.cause, first.certainty, first.component) == (CAUSE, Certainty.PROVEN, "flashinfer")
    assert (first.remedies[0].name, first.remedies[0].value) == ("FLASHINFER_CUDA_ARCH_LIST", "12.0a")
    assert first.evidence[0].quote == "ValueError: not enough values to unpack (expected 2, got 1)"


def test_the_same_exception_of_other_code_is_no_sign(judge_report: Judge) -> None:
    text = 'Traceback (most recent call last):\n  File "/app/serve.py", line 3, in <module>\n    a, b = line.split(",")\nValueError: not enough values to unpack (expected 2, got 1)\n'
    assert found_or_ruled_out(judge_report(text)) == ([], [])


@pytest.mark.parametrize("value", ["12.0f", "9.0,12.0", "sm_90", "120", ""])
def test_spellings_that_only_a_person_writes(judge_report: Judge, value: str) -> None:
    text = f"ValueError: Unknown CUDA arch ({value}) or GPU not supported\n"
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)


def test_a_plain_target_torch_does_not_know_is_possible_until_the_variable_is_seen(judge_report: Judge) -> None:
    text = "ValueError: Unknown CUDA arch (12.0) or GPU not supported\n"
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.POSSIBLE)
    assert "env.TORCH_CUDA_ARCH_LIST" in [m.key for m in first.missing]
    seen = judge_report(text, {"env.TORCH_CUDA_ARCH_LIST": "9.0 12.0", "cc": "9.0"}).findings[0]
    assert (seen.cause, seen.certainty, seen.remedies[0].value) == (CAUSE, Certainty.PROVEN, "9.0")


SHORT = "RuntimeError: FlashInfer requires sm75+\n"


def test_flashinfers_old_check_needs_the_variable(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(SHORT), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"env.TORCH_CUDA_ARCH_LIST", "cc"} <= {m.key for m in found.missing}


def test_flashinfers_old_check_on_an_old_gpu_is_another_cause(judge_report: Judge) -> None:
    assert CAUSE in found_or_ruled_out(judge_report(SHORT, {"cc": "7.0"}))[1]


def test_flashinfers_old_check_with_a_clean_list_is_another_cause(judge_report: Judge) -> None:
    facts = {"env.TORCH_CUDA_ARCH_LIST": "8.0;9.0", "cc": "9.0"}
    assert CAUSE in found_or_ruled_out(judge_report(SHORT, facts))[1]


def test_the_long_wording_is_the_toolkits_first(judge_report: Judge, finding: Find) -> None:
    judged = judge_report("RuntimeError: FlashInfer requires GPUs with sm75 or higher\n", {"cc": "12.0"})
    assert judged.findings[0].cause != CAUSE
    assert finding(judged, CAUSE).certainty is Certainty.POSSIBLE


def test_the_long_wording_with_an_old_list(judge_report: Judge) -> None:
    facts = {"cc": "12.0", "env.FLASHINFER_CUDA_ARCH_LIST": "7.0"}
    first = judge_report("RuntimeError: FlashInfer requires GPUs with sm75 or higher\n", facts).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.PROVEN)


OLD_TARGET = """\
Building wheels for collected packages: causal-conv1d
/usr/local/cuda/bin/nvcc -gencode arch=compute_70,code=sm_70 -gencode arch=compute_90,code=sm_90 -c csrc/causal_conv1d_fwd.cu
nvcc fatal   : Unsupported gpu architecture 'compute_70'
"""


def test_a_foreign_target_that_the_variable_names(judge_report: Judge) -> None:
    facts = {"cc": "9.0", "cuda_toolkit": "13.0", "env.TORCH_CUDA_ARCH_LIST": "7.0;9.0"}
    first = judge_report(OLD_TARGET, facts).findings[0]
    assert (first.cause, first.certainty, first.component) == (CAUSE, Certainty.PROVEN, "causal-conv1d")


def test_a_foreign_target_without_the_variable_is_the_librarys(judge_report: Judge) -> None:
    facts = {"cc": "9.0", "cuda_toolkit": "13.0", "env.TORCH_CUDA_ARCH_LIST": None}
    assert CAUSE in found_or_ruled_out(judge_report(OLD_TARGET, facts))[1]


def test_a_foreign_target_with_the_variable_unknown_is_possible(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(OLD_TARGET, {"cc": "9.0", "cuda_toolkit": "13.0"}), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "env.TORCH_CUDA_ARCH_LIST" in [m.key for m in found.missing]


def test_the_gpus_own_target_is_the_toolkits(judge_report: Judge) -> None:
    text = "nvcc fatal   : Unsupported gpu architecture 'compute_120'\n"
    judged = judge_report(text, {"cc": "12.0", "cuda_toolkit": "12.4", "env.TORCH_CUDA_ARCH_LIST": "12.0"})
    assert judged.findings[0].cause == "toolkit-too-old-for-arch"


def test_the_family_form_of_the_own_target(judge_report: Judge) -> None:
    text = "nvcc fatal   : Unsupported gpu architecture 'compute_120f'\n"
    facts = {"cc": "12.0", "cuda_toolkit": "12.8", "env.FLASHINFER_CUDA_ARCH_LIST": "12.0f"}
    first = judge_report(text, facts).findings[0]
    assert (first.cause, first.remedies[0].value) == (CAUSE, "12.0a")


@pytest.mark.parametrize("line", [
    "nvcc fatal   : Unsupported gpu architecture 'compute_120+PTX'",
    "CMake Error: CMAKE_CUDA_ARCHITECTURES must be non-empty if set.",
    "CMAKE_CUDA_ARCHITECTURES: sm_89 is not one of the following:",
    "  Unknown CUDA Architecture Name 12.0a in CUDA_SELECT_NVCC_ARCH_FLAGS",
    "nvcc fatal   : The same GPU code (`sm_120f`) generated for non family-specific and family-specific GPU arch",
])  # fmt: skip
def test_misspelt_targets(judge_report: Judge, line: str) -> None:
    first = judge_report(line + "\n").findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)


LEFT_OUT = """\
File "/home/app/.cache/flashinfer/0.6.14/80/generated/sampling/sampling.cu", line 88
RuntimeError: CUDA error: no kernel image is available for execution on the device /home/app/.cache/flashinfer/0.6.14/80/generated/sampling/sampling.cu:88
"""


def test_a_list_that_leaves_out_the_gpu(judge_report: Judge) -> None:
    first = judge_report(LEFT_OUT, {"cc": "12.0", "env.FLASHINFER_CUDA_ARCH_LIST": "8.0"}).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.PROVEN)


def test_the_same_without_a_list_is_the_builds(judge_report: Judge) -> None:
    first = judge_report(LEFT_OUT, {"cc": "12.0", "env.FLASHINFER_CUDA_ARCH_LIST": None}).findings[0]
    assert first.cause == "build-target-wrong"


def test_a_list_at_run_time_says_nothing_of_a_published_wheel(judge_report: Judge) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/v/lib/python3.11/site-packages/lmcache/c_ops.py", line 3, in move\n'
        "    lmc_ops.multi_layer_kv_transfer(a)\n"
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    )
    facts = {"cc": "12.0", "env.TORCH_CUDA_ARCH_LIST": "8.0;9.0"}
    assert judge_report(text, facts).findings[0].cause == "binary-lacks-arch"


def test_kernels_left_out_by_the_list_of_the_build(judge_report: Judge) -> None:
    text = "NotImplementedError: No compiled cutlass_scaled_mm for CUDA device capability: 89\n"
    first = judge_report(text, {"cc": "8.9", "env.TORCH_CUDA_ARCH_LIST": "9.0a"}).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)


def test_a_list_of_which_vllm_supports_nothing(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: None of the CUDA architectures in `TORCH_CUDA_ARCH_LIST` env variable (5.2 6.0 6.1) is supported. Supported CUDA architectures are: {'8.6', '7.5'}.\n"
    found = finding(judge_report(text), CAUSE)
    assert (found.certainty, found.component) == (Certainty.PROVEN, "vllm")
    assert {remedy.name for remedy in found.remedies} == {"TORCH_CUDA_ARCH_LIST"}


BUILT = "RUN pip install git+https://example.org/exllamav2 --no-build-isolation\n"
NO_IMAGE = '  File "/v/lib/python3.10/site-packages/exllamav2/linear.py", line 2, in load\n    self.q_handle = ext_c.make_q_matrix(\nRuntimeError: CUDA error: no kernel image is available for execution on the device\n'


@pytest.mark.parametrize("shown", [
    'ENV TORCH_CUDA_ARCH_LIST="8.0;8.6"\n',
    "docker build --build-arg TORCH_CUDA_ARCH_LIST=8.0 -t ours .\n",
    "$ echo $TORCH_CUDA_ARCH_LIST\n9.0\n",
    "$ printenv TORCH_CUDA_ARCH_LIST\n9.0\n",
])  # fmt: skip
def test_a_list_that_the_report_shows_beside_a_build_of_its_own(judge_report: Judge, shown: str) -> None:
    first = judge_report(shown + BUILT + NO_IMAGE).findings[0]
    assert (first.cause, first.component, first.certainty) == (CAUSE, "exllamav2", Certainty.LIKELY)
    assert first.remedies[0].name == "TORCH_CUDA_ARCH_LIST"


def test_a_build_of_its_own_makes_a_list_possible(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(BUILT + NO_IMAGE), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "env.TORCH_CUDA_ARCH_LIST" in [missing.key for missing in found.missing]


def test_near_miss_a_list_says_nothing_of_a_published_wheel(judge_report: Judge) -> None:
    judged = judge_report('docker run -e TORCH_CUDA_ARCH_LIST="8.9" vllm/vllm-openai\n' + NO_IMAGE)
    assert judged.findings[0].cause == "binary-lacks-arch"
    assert CAUSE not in [found.cause for found in judged.findings if found.certainty is not Certainty.POSSIBLE]
