"""SGLang, vLLM and PyTorch: from the failing line back to flags and variables, with no rule involved."""

from __future__ import annotations

from tests.source.asking import names, switch, traced

from gpuwhy.source.tracing import Question

SGLANG = "sglang==0.5.10.post1"
VLLM, FLASHINFER = "vllm==0.33.0", "flashinfer-python==0.6.18.post1"
TORCH = "torch==2.13.0"
SAMPLING = Question(
    symbol="sglang.srt.layers.sampler:Sampler._sample_from_probs", call="top_k_top_p_sampling_from_probs"
)


def test_sglang_from_the_sampling_call_to_its_flag() -> None:
    answer = traced(SAMPLING, SGLANG)
    assert answer.guard is not None
    assert "backend" in " ".join(each.text for each in answer.guard.requires)
    flag = switch(answer, "flag", "--sampling-backend")
    assert flag.default == "None"
    assert set(flag.accepts) >= {"flashinfer", "pytorch", "ascend"}
    assert flag.spots[0].path == "sglang/srt/server_args.py"


def test_the_newest_sglang_through_the_class_that_declares_where_its_fields_are_kept() -> None:
    answer = traced(SAMPLING, "sglang==0.5.23")
    flag = switch(answer, "flag", "--sampling-backend")
    assert flag.default == "None"
    assert set(flag.accepts) >= {"flashinfer", "pytorch", "ascend", "intel_xpu", "token_oracle"}
    assert not flag.is_by_name
    steps = [(each.kind, each.spot.path.removeprefix("sglang/srt/")) for each in flag.witness if each.spot]
    assert steps == [
        ("definition", "layers/sampler.py"),
        ("projection", "arg_groups/fields/exec_.py"),
        ("field", "arg_groups/fields/exec_.py"),
        ("flag", "server_args.py"),
    ]
    assert "ExecKernel is collected at sglang/srt/server_args.py:" in flag.note


def test_what_decides_in_the_newest_sglang_when_the_flag_is_not_given() -> None:
    answer = traced(SAMPLING, "sglang==0.5.23")
    found = switch(answer, "environment", "SGLANG_IS_FLASHINFER_AVAILABLE")
    assert found.default == '"true"'
    assert "--enable-deterministic-inference" in names(answer, "flag")


def test_vllm_why_the_sampler_is_refused() -> None:
    answer = traced(Question(place="vllm/v1/sample/ops/topk_topp_sampler.py:152"), VLLM, FLASHINFER)
    assert answer.guard is not None
    assert answer.guard.message.startswith("FlashInfer top-p/top-k sampling unavailable: {}")
    assert names(answer, "environment") >= {"VLLM_USE_FLASHINFER_SAMPLER", "CUDA_HOME", "FLASHINFER_CUDA_ARCH_LIST"}
    hidden = {each.spot.path: each for swallow in answer.swallowed for each in swallow.hides}
    assert "FlashInfer requires GPUs with sm75 or higher" in hidden["flashinfer/jit/core.py"].message.shown
    assert {(package.name, package.version) for package in answer.scope.packages} >= {("vllm", "0.33.0"), ("flashinfer", "0.6.18.post1")}  # fmt: skip


def test_torch_version_check_back_to_the_toolkit() -> None:
    answer = traced(Question(place="torch/utils/cpp_extension.py:646"), TORCH)
    assert answer.guard is not None
    assert next(each.text for each in answer.guard.requires) == "cuda_ver.major != torch_cuda_version.major"
    assert names(answer, "environment") >= {"CUDA_HOME", "CUDA_PATH"}
    assert names(answer, "subprocess") >= {"{nvcc} --version", "which nvcc"}
    assert switch(answer, "environment", "CUDA_HOME").read_when == "on import of torch.utils.cpp_extension"


def test_torch_architecture_flags() -> None:
    answer = traced(Question(place="torch/utils/cpp_extension.py:2714"), TORCH)
    assert "TORCH_CUDA_ARCH_LIST" in names(answer, "environment")
