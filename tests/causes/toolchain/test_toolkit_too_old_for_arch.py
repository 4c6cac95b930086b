"""toolkit-too-old-for-arch: FlashInfer's hidden check, refused targets, and what must not be taken for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "toolkit-too-old-for-arch"
BLAMES_GPU = """\
Traceback (most recent call last):
  File "/srv/llm/env/lib/python3.12/site-packages/flashinfer/sampling.py", line 68, in get_sampling_module
    module = gen_sampling_module().build_and_load()
  File "/srv/llm/env/lib/python3.12/site-packages/flashinfer/jit/core.py", line 413, in gen_jit_spec
    check_cuda_arch()
  File "/srv/llm/env/lib/python3.12/site-packages/flashinfer/jit/core.py", line 108, in check_cuda_arch
    raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")
RuntimeError: FlashInfer requires GPUs with sm75 or higher
"""
GATE = "Failed to get device capability: SM 12.x requires CUDA >= 12.9.\n"
HOST: dict[str, Any] = {"cc": "12.0", "cuda_toolkit": "12.8", "packages.flashinfer-python": "0.6.12"}


def remedies(found: Finding) -> list[tuple[str, str, str]]:
    return [(r.kind, r.name, r.value) for r in found.remedies]


def test_the_message_alone_is_only_possible_and_names_its_rivals_and_the_deciding_command(
    judge_report: Judge, finding: Find
) -> None:
    judgement = judge_report(BLAMES_GPU)
    found = finding(judgement, CAUSE)
    assert judgement.findings[0] is found
    assert found.certainty is Certainty.POSSIBLE
    assert {"toolkit-path-wrong", "toolkit-missing", "no-device-visible", "arch-list-override", "gpu-too-old"} <= set(
        found.rivals
    )
    assert {"cuda_toolkit", "cc"} <= {m.key for m in found.missing}
    assert judgement.decides is not None
    assert judgement.decides.command.startswith("/srv/llm/env/bin/python -c ")
    assert "_normalize_cuda_arch" in judgement.decides.command


def test_every_link_nobody_saw_says_that_it_is_inferred(judge_report: Judge, finding: Find) -> None:
    chain = finding(judge_report(BLAMES_GPU), CAUSE).chain
    assert [link.evidence is not None and link.evidence.standing.value for link in chain] == ["inferred"] * 5 + [
        "observed"
    ]
    assert [link.is_swallowed for link in chain] == [False, False, False, True, False, False]


def test_the_swallowed_warning_makes_it_likely_and_is_the_leading_evidence(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(GATE + BLAMES_GPU), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert found.evidence[0].quote == GATE.strip()
    assert found.component == "flashinfer"


def test_with_the_host_searched_and_no_better_toolkit_it_is_proven(judge_report: Judge, finding: Find) -> None:
    host = {**HOST, "toolkits": [{"root": "/usr/local/cuda-12.8", "version": "12.8"}]}
    found = finding(judge_report(GATE + BLAMES_GPU, host), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert not found.missing


def test_the_order_and_the_values_of_the_remedies(judge_report: Judge, finding: Find) -> None:
    log = "[2026-11-29 10:04:09] server_args=ServerArgs(model_path='/m', tp_size=8)\n" + GATE + BLAMES_GPU
    found = finding(judge_report(log, HOST), CAUSE)
    assert remedies(found) == [
        ("env", "FLASHINFER_CUDA_ARCH_LIST", "12.0a"),
        ("flag", "--sampling-backend", "pytorch"),
        ("package", "sglang", ">=0.5.22"),
        ("package", "flashinfer-python", ">=0.7.1"),
        ("toolkit", "cuda", ">=12.9"),
        ("patch", "flashinfer/compilation_context.py", found.remedies[-1].value),
    ]
    assert any("EAGLE" in limit for limit in found.remedies[1].limits)
    assert any("temperature > 0" in limit for limit in found.remedies[1].limits)
    assert any("FP4" in limit for limit in found.remedies[0].limits)
    refused = {n.what for n in found.not_remedies}
    assert {"FLASHINFER_CUDA_ARCH_LIST=12.0", "FLASHINFER_CUDA_ARCH_LIST=12.0f"} <= refused


def test_vllm_gets_its_own_switch(judge_report: Judge, finding: Find) -> None:
    log = "(EngineCore pid=41) INFO 08-03 17:45:53 [gpu_worker.py:378] Using V2 Model Runner\n" + GATE + BLAMES_GPU
    names = [r.name for r in finding(judge_report(log, HOST), CAUSE).remedies]
    assert "VLLM_USE_FLASHINFER_SAMPLER" in names
    assert "--sampling-backend" not in names


@pytest.mark.parametrize(("toolkit", "is_offered"), [("12.8", True), ("12.4", False), ("11.5", False)])
def test_the_arch_list_is_only_offered_where_nvcc_can_compile_for_it(
    judge_report: Judge, finding: Find, toolkit: str, is_offered: bool
) -> None:
    found = finding(judge_report(GATE + BLAMES_GPU, {**HOST, "cuda_toolkit": toolkit}), CAUSE)
    assert any(r.name == "FLASHINFER_CUDA_ARCH_LIST" for r in found.remedies) is is_offered
    assert any(n.what == "FLASHINFER_CUDA_ARCH_LIST=12.0a" for n in found.not_remedies) is not is_offered


def test_no_arch_list_without_any_nvcc(judge_report: Judge, finding: Find) -> None:
    host = {"cc": "12.0", "cuda_toolkit": None, "torch": "2.9.1+cu128", "packages.flashinfer-python": "0.6.14"}
    found = finding(judge_report(BLAMES_GPU, host), CAUSE)
    assert not any(r.name == "FLASHINFER_CUDA_ARCH_LIST" for r in found.remedies)
    assert any("torch.version.cuda, 12.8" in link.statement for link in found.chain)


def test_a_mixed_host_gets_an_entry_for_each_gpu(judge_report: Judge, finding: Find) -> None:
    host = {**HOST, "gpus": ["0: NVIDIA RTX PRO 6000 Blackwell (12.0)", "1: NVIDIA H100 (9.0)"]}
    del host["cc"]
    assert remedies(finding(judge_report(GATE + BLAMES_GPU, host), CAUSE))[0][2] == "12.0a 9.0a"


def test_a_gpu_that_nvcc_12_8_has_no_target_for_gets_no_arch_list(judge_report: Judge, finding: Find) -> None:
    log = "Failed to get device capability: SM 12.1+ requires CUDA >= 12.9.\n" + BLAMES_GPU
    found = finding(judge_report(log, {"cc": "12.1", "cuda_toolkit": "12.8"}), CAUSE)
    assert remedies(found)[-2:] == [("toolkit", "cuda", ">=12.9"), ("patch", *remedies(found)[-1][1:])]
    assert not any(r.kind == "env" and r.name == "FLASHINFER_CUDA_ARCH_LIST" for r in found.remedies)


@pytest.mark.parametrize(("facts", "reason"), [
    ({"cc": "12.0", "cuda_toolkit": "12.9", "packages.flashinfer-python": "0.6.12"}, "passes its check"),
    ({"cc": "9.0", "cuda_toolkit": "12.4"}, "no GPU here"),
    ({"cc": "7.0", "cuda_toolkit": "12.8"}, "no GPU here"),
    ({"cc": "12.0", "cuda_toolkit": "12.8", "packages.flashinfer-python": "0.6.6"}, "no such check"),
    ({"cc": "12.0", "cuda_toolkit": "12.8", "packages.flashinfer-python": "0.7.2"}, "passes its check"),
])  # fmt: skip
def test_facts_that_contradict_rule_it_out(judge_report: Judge, facts: dict[str, Any], reason: str) -> None:
    judgement = judge_report(BLAMES_GPU, facts)
    assert CAUSE not in [f.cause for f in judgement.findings]
    assert any(x.cause == CAUSE and reason in x.why for x in judgement.ruled_out)


def test_another_swallowed_exception_rules_it_out(judge_report: Judge) -> None:
    log = "Failed to get device capability: Cannot re-initialize CUDA in forked subprocess.\n" + BLAMES_GPU
    assert CAUSE not in [f.cause for f in judge_report(log).findings]


def test_a_module_for_other_generations_is_not_a_toolkit_fault(judge_report: Judge) -> None:
    log = "RuntimeError: No supported CUDA architectures found for major versions [9, 10]."
    assert CAUSE not in [f.cause for f in judge_report(log, {"cc": "12.0", "cuda_toolkit": "12.8"}).findings]


def test_the_dropped_target_of_this_gpu_is(judge_report: Judge) -> None:
    log = "RuntimeError: No supported CUDA architectures found for major versions [12]."
    assert judge_report(log, {"cc": "12.0", "cuda_toolkit": "12.8"}).findings[0].cause == CAUSE


@pytest.mark.parametrize(("line", "first"), [
    ("nvcc fatal   : Unsupported gpu architecture 'compute_120'", ">=12.8"),
    ("nvcc fatal : Unsupported gpu architecture 'sm_121'", ">=12.9"),
    ("nvcc fatal   : Value 'sm_90a' is not defined for option 'gpu-architecture'", ">=12.0"),
    ("nvcc fatal   : Unsupported gpu architecture 'compute_89'", ">=11.8"),
])  # fmt: skip
def test_a_refused_target_names_the_first_toolkit_that_knows_it(
    judge_report: Judge, finding: Find, line: str, first: str
) -> None:
    assert remedies(finding(judge_report(line), CAUSE))[0] == ("toolkit", "cuda", first)


def test_a_refused_target_of_another_gpu_is_not_this_cause(judge_report: Judge) -> None:
    judgement = judge_report(
        "nvcc fatal   : Unsupported gpu architecture 'compute_103'", {"cc": "8.6", "cuda_toolkit": "12.6"}
    )
    assert any(x.cause == CAUSE for x in judgement.ruled_out)


def test_a_target_that_newer_toolkits_dropped_is_not_this_cause(judge_report: Judge) -> None:
    judgement = judge_report("nvcc fatal   : Unsupported gpu architecture 'compute_70'", {"cuda_toolkit": "13.0"})
    assert CAUSE not in [f.cause for f in judgement.findings]


def test_a_native_build_asks_for_the_gpu_of_the_machine(judge_report: Judge, finding: Find) -> None:
    log = "-- Using CUDA architectures: native\nnvcc fatal   : Unsupported gpu architecture 'compute_120'\n"
    assert finding(judge_report(log), CAUSE).certainty is Certainty.LIKELY


def test_a_paste_of_shell_characters_never_enters_a_command(judge_report: Judge) -> None:
    log = BLAMES_GPU.replace("/srv/llm/env", "/srv/$(reboot);x")
    decides = judge_report(log).decides
    assert decides is not None
    assert "reboot" not in decides.command


def test_an_exception_of_tvm_s_is_of_the_library_that_compiles(judge_report: Judge, finding: Find) -> None:
    text = "Traceback (most recent call last):\n  File \"/usr/local/lib/python3.12/dist-packages/flashinfer/jit/cpp_ext.py\", line 311, in run_ninja\n    raise error\ntvm.error.InternalError: nvcc fatal   : Unsupported gpu architecture 'compute_103a'\n"
    assert finding(judge_report(text), CAUSE).component == "flashinfer"


def test_cmake_s_targets_are_no_way_out_for_a_build_that_asks_torch() -> None:
    from gpuwhy.investigate import diagnose_log

    log = b"""-- CUDA target architectures: 12.0
FAILED: CMakeFiles/_moe_C.dir/csrc/moe/align.cu.o
/opt/cuda-12.6/bin/nvcc -DTORCH_EXTENSION_NAME=_moe_C --generate-code=arch=compute_120,code=[sm_120] -c /build/vllm/csrc/moe/align.cu
nvcc fatal   : Unsupported gpu architecture 'compute_120'
  File "/build/vllm/setup.py", line 266, in build_extensions
"""
    found = next(f for f in diagnose_log(log, "report").findings if f.cause == "toolkit-too-old-for-arch")
    assert [(r.kind, r.value) for r in found.remedies] == [("toolkit", ">=12.8")]


def test_an_extension_for_ada_is_built_for_its_elder_brother_and_never_for_the_refused_target_again() -> None:
    from gpuwhy.investigate import diagnose_log

    log = b"""running build_ext
/opt/conda/envs/t/bin/nvcc -DTORCH_EXTENSION_NAME=quant_cuda -gencode=arch=compute_89,code=sm_89 -c quant_cuda_kernel.cu
nvcc fatal   : Unsupported gpu architecture 'compute_89'
error: command '/opt/conda/envs/t/bin/nvcc' failed with exit code 1
"""
    found = next(f for f in diagnose_log(log, "report").findings if f.cause == "toolkit-too-old-for-arch")
    assert [(r.name, r.value) for r in found.remedies] == [("cuda", ">=11.8"), ("TORCH_CUDA_ARCH_LIST", "8.6")]


def test_the_older_target_of_cmake_is_older_than_the_refused_one() -> None:
    from gpuwhy.investigate import diagnose_log

    log = b"/build/llama.cpp/ggml/src/ggml-cuda/CMakeLists.txt\nnvcc fatal   : Unsupported gpu architecture 'compute_89'\n"
    found = next(f for f in diagnose_log(log, "report").findings if f.cause == "toolkit-too-old-for-arch")
    assert ("CMAKE_CUDA_ARCHITECTURES", "86") in [(r.name, r.value) for r in found.remedies]
