"""build-target-wrong: builds of one's own for another GPU, and binaries that came compiled."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "build-target-wrong"

JIT = """\
(Worker_TP0 pid=311) RuntimeError: BatchPrefillWithPagedKVCache failed with error no kernel image is available for execution on the device
(Worker_TP0 pid=311)   at /home/app/.cache/flashinfer/0.6.5/120a/generated/batch_prefill/batch_prefill.cu:201
"""


def ruled_out(judged: Judgement) -> list[str]:
    return [x.cause for x in judged.ruled_out]


def test_the_path_of_a_jit_build_shows_its_target(judge_report: Judge) -> None:
    first = judge_report(JIT, {"cc": "12.1"}).findings[0]
    assert (first.cause, first.certainty, first.component) == (CAUSE, Certainty.PROVEN, "flashinfer")
    assert [(r.kind, r.name, r.value) for r in first.remedies[:2]] == [
        ("env", "FLASHINFER_CUDA_ARCH_LIST", "12.1a"),
        ("cache", "flashinfer", "delete"),
    ]


def test_a_jit_build_for_the_gpu_itself_is_another_cause(judge_report: Judge) -> None:
    assert CAUSE in ruled_out(judge_report(JIT, {"cc": "12.0"}))


def test_a_jit_build_on_an_unknown_gpu_is_possible(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(JIT), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "cc" in [m.key for m in found.missing]


MIXED = "[rank1] RuntimeError: flashinfer norm: CUDA error: no kernel image is available for execution on the device\n"


def test_the_other_kind_of_gpu_fails(judge_report: Judge) -> None:
    facts = {"gpus": ["0: RTX 4090 (8.9)", "1: RTX 3090 (8.6)"], "failing_gpu": 1}
    first = judge_report(MIXED, facts).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert first.remedies[0].name == "CUDA_VISIBLE_DEVICES"


def test_code_of_the_first_gpu_that_runs_on_the_other_is_another_cause(judge_report: Judge) -> None:
    facts = {"gpus": ["0: RTX 3090 (8.6)", "1: RTX 4090 (8.9)"], "failing_gpu": 1}
    assert CAUSE in ruled_out(judge_report(MIXED, facts))


GGML = "ggml_cuda_compute_forward: ERROR: CUDA kernel flash_attn_ext_vec has no device code compatible with CUDA arch 1200. ggml-cuda.cu was compiled for: {}\n"


def test_cmakes_default_target(judge_report: Judge) -> None:
    first = judge_report("-- Building CUDA object ggml-cuda\n" + GGML.format("520")).findings[0]
    assert (first.cause, first.certainty, first.component) == (CAUSE, Certainty.LIKELY, "llama.cpp")
    assert (first.remedies[0].kind, first.remedies[0].name) == ("config", "CMAKE_CUDA_ARCHITECTURES")


def test_a_published_program_has_many_targets(judge_report: Judge) -> None:
    text = "llama-box\n" + GGML.format("500,610,700,750,800,860,890")
    assert judge_report(text).findings[0].cause == "binary-lacks-arch"


NOT_COMPILED = "NotImplementedError: No compiled cutlass_scaled_mm for a compute capability less than CUDA device capability: 121\n"


def test_a_source_build_without_the_kernels(judge_report: Judge) -> None:
    facts = {
        "cc": "12.1",
        "packages.vllm": "0.14.0rc1.dev3+g1a2b3c4d5 (built from source)",
        "binary_archs.vllm _C": ["sm_75"],
        "env.TORCH_CUDA_ARCH_LIST": None,
    }
    first = judge_report(NOT_COMPILED, facts).findings[0]
    assert (first.cause, first.certainty, first.component) == (CAUSE, Certainty.PROVEN, "vllm")
    assert ("env", "TORCH_CUDA_ARCH_LIST", "12.1a") in [(r.kind, r.name, r.value) for r in first.remedies]


def test_nothing_known_of_the_build_is_possible(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(NOT_COMPILED), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"binary_archs.vllm", "env.TORCH_CUDA_ARCH_LIST"} <= {m.key for m in found.missing}


def test_a_list_that_leaves_it_out_is_the_lists(judge_report: Judge) -> None:
    facts = {"cc": "12.1", "packages.vllm": "built from source", "env.TORCH_CUDA_ARCH_LIST": "8.0;9.0"}
    judged = judge_report(NOT_COMPILED, facts)
    assert judged.findings[0].cause == "arch-list-override"
    assert CAUSE in ruled_out(judged)


TOO_LOW = """\
[4/12] /usr/local/cuda/bin/nvcc -I/build/awq/csrc -c /build/awq/csrc/gemm_cuda_gen.cu -o gemm_cuda_gen.o
ptxas /tmp/tmpxft_0001.ptx, line 812; error   : Feature '.m16n8k16' requires .target sm_80 or higher
ptxas fatal   : Ptx assembly aborted due to errors
"""


@pytest.mark.parametrize(("facts", "first"), [
    ({"cc": "8.9", "env.TORCH_CUDA_ARCH_LIST": None}, CAUSE),
    ({"cc": "8.9", "env.TORCH_CUDA_ARCH_LIST": "7.0 7.5 8.9"}, "arch-list-override"),
])  # fmt: skip
def test_code_compiled_for_too_low_a_target(judge_report: Judge, facts: dict[str, object], first: str) -> None:
    assert judge_report(TOO_LOW, facts).findings[0].cause == first


def test_a_gpu_that_really_is_too_old_for_the_code(judge_report: Judge) -> None:
    assert CAUSE in ruled_out(judge_report(TOO_LOW, {"cc": "7.5"}))


def test_tritons_number_formats_are_no_build_of_ones_own(judge_report: Judge) -> None:
    text = (
        "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error\n"
        "ptxas /tmp/tmpq.ptx, line 99; error   : Feature '.e4m3x2' requires .target sm_89 or higher\n"
    )
    judged = judge_report(text, {"cc": "8.6"})
    assert CAUSE not in [f.cause for f in judged.findings]


def test_torch_without_the_gpu_is_another_cause(judge_report: Judge) -> None:
    text = (
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    )
    judged = judge_report(text)
    assert judged.findings[0].cause == "torch-lacks-arch"
    assert CAUSE in ruled_out(judged)


def test_a_source_build_that_its_user_tells_of(judge_report: Judge) -> None:
    text = (
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
        "I built sageattention from source inside docker build\n"
    )
    facts = {"cc": "12.0", "binary_archs.sageattention": ["sm_80", "sm_90"]}
    assert judge_report(text, facts).findings[0].cause == CAUSE
    published = judge_report(text.splitlines()[0] + "\n", facts).findings[0]
    assert published.cause == "binary-lacks-arch"


def test_a_build_that_sees_no_gpu_and_is_told_no_target(judge_report: Callable[..., Judgement]) -> None:
    frame = (
        'File "/opt/venv/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 2360, in _get_cuda_arch_flags'
    )
    log = f"Building wheel for my_ops (setup.py): started\n  {frame}\n    arch_list[-1] += '+PTX'\nIndexError: list index out of range\n"
    first = judge_report(log).findings[0]
    assert (first.cause, first.evidence[0].quote) == ("build-target-wrong", "IndexError: list index out of range")
    assert ("env", "TORCH_CUDA_ARCH_LIST") in [(r.kind, r.name) for r in first.remedies]


def test_another_index_error_is_not_about_targets(judge_report: Callable[..., Judgement]) -> None:
    log = 'File "/srv/app.py", line 3, in pick\n    return names[5]\nIndexError: list index out of range\n'
    assert judge_report(log).findings == ()


def test_an_engine_file_of_another_gpu(judge_report: Judge) -> None:
    text = "[TRT] [E] 6: The engine plan file is generated on an incompatible device, expecting compute 8.0 got compute 8.6, please rebuild.\n"
    judged = judge_report(text)
    assert [found.cause for found in judged.findings] == ["build-target-wrong", "binary-lacks-arch"]
    assert (judged.findings[0].component, judged.findings[0].remedies[0].name) == ("tensorrt", "engine")


def test_a_failed_launch_after_a_kernel_without_code_is_its_echo(judge_report: Judge) -> None:
    text = "ERROR: CUDA kernel mul_mat_q has no device code compatible with CUDA arch 610. ggml-cuda.cu was compiled for: 750,800,860\nCUDA error: unspecified launch failure\n  current device: 1, in function ggml_backend_cuda_synchronize at ggml/src/ggml-cuda.cu:2446\n"
    first = judge_report(text).findings[0]
    assert first.cause in (CAUSE, "binary-lacks-arch")
    assert "no device code" in first.evidence[0].quote


def test_one_s_own_build_under_another_spelling_of_its_name(judge_report: Judge) -> None:
    text = 'I built AutoGPTQ from source on another machine.\nTraceback (most recent call last):\n  File "/usr/local/lib/python3.10/dist-packages/auto_gptq/nn_modules/qlinear/qlinear_exllama.py", line 27, in ext_q4_matmul\n    q4_matmul(x, q4, output)\nRuntimeError: CUDA error: no kernel image is available for execution on the device\n'
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == (CAUSE, "auto-gptq")
