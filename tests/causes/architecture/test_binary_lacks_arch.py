"""binary-lacks-arch: whose kernel it was, what proves it, and what must not be taken for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "binary-lacks-arch"
MESSAGE = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"


def traceback_in(*frames: tuple[str, str]) -> str:
    lines = "".join(
        f'  File "/opt/v/lib/python3.11/site-packages/{path}", line 7, in forward\n    {code}\n'
        for path, code in frames
    )
    return "Traceback (most recent call last):\n" + lines + MESSAGE  # fmt: skip


@pytest.mark.parametrize(("log", "component"), [
    (traceback_in(("mamba_ssm/ops/selective_scan.py", "out, *rest = selective_scan_cuda.fwd(u, delta)")), "mamba-ssm"),
    (traceback_in(("vllm/model_executor/layers/layernorm.py", "ops.rms_norm(out, x)"), ("torch/_ops.py", "return self._op(*args, **kwargs)")), "vllm"),
    (traceback_in(("sglang/srt/layers/activation.py", "sgl_kernel.silu_and_mul(x, out)"), ("torch/_ops.py", "return self._op(*args)")), "sgl-kernel"),
    (traceback_in(("flash_attn/flash_attn_interface.py", "out = flash_attn_gpu.varlen_fwd(")), "flash-attn"),
    ("Error no kernel image is available for execution on the device at line 167 in file /src/csrc/ops.cu\n", "bitsandbytes"),
    ("onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException: [ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : CUDA failure 209: no kernel image is available for execution on the device ; GPU=0 ; expr=cudaGetLastError();\n", "onnxruntime"),
    ("mmq.cuh:2589: ERROR: CUDA kernel mul_mat_q has no device code compatible with CUDA arch 520. ggml-cuda.cu was compiled for: 610,700,750\nCUDA error: unspecified launch failure\n", "llama.cpp"),
])  # fmt: skip
def test_the_failing_library_is_named_and_makes_it_likely(
    judge_report: Judge, finding: Find, log: str, component: str
) -> None:
    judgement = judge_report(log)
    found = finding(judgement, CAUSE)
    assert judgement.findings[0] is found
    assert found.component == component
    assert found.certainty is Certainty.LIKELY
    assert "rebuild" in [r.value for r in found.remedies]


def test_the_list_of_the_binary_proves_it(judge_report: Judge, finding: Find) -> None:
    host: dict[str, Any] = {"cc": "12.0", "binary_archs.lmdeploy": ["sm_70", "sm_80", "sm_90"]}
    found = finding(
        judge_report("no kernel image is available for execution on the device\nAborted (core dumped)\n", host), CAUSE
    )
    assert found.certainty is Certainty.PROVEN
    assert found.component == "lmdeploy"
    assert found.missing == ()  # fmt: skip


def test_a_list_that_has_the_gpu_rules_it_out(judge_report: Judge) -> None:
    log = traceback_in(("lmcache/v1/gpu_connector.py", "lmc_ops.multi_layer_kv_transfer("))
    judgement = judge_report(log, {"cc": "8.9", "binary_archs.lmcache": ["sm_80", "sm_90"]})
    assert any(x.cause == CAUSE for x in judgement.ruled_out)


def test_something_that_works_on_the_same_card_makes_it_likely(judge_report: Judge, finding: Find) -> None:
    host = {
        "cc": "9.0",
        "packages.vllm": "0.9.1",
        "tests.a bf16 model": "works",
        "tests.an fp8 model": "no kernel image",
    }
    found = finding(judge_report(MESSAGE, host), CAUSE)
    assert (found.certainty, found.component) == (Certainty.LIKELY, "vllm")


def test_the_message_alone_stays_possible_and_asks(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(MESSAGE), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "cc" in {m.key for m in found.missing}
    assert any(m.key.startswith("binary_archs") for m in found.missing)


def test_llama_cpp_needs_the_gpu_to_be_more_than_possible(judge_report: Judge, finding: Find) -> None:
    log = (
        "ggml_cuda_compute_forward: MUL_MAT failed\nCUDA error: no kernel image is available for execution on the device\n"
        "  current device: 0, in function ggml_cuda_compute_forward at /build/ollama/llama/ggml-cuda.cu:2366\n"
    )
    assert finding(judge_report(log), CAUSE).certainty is Certainty.POSSIBLE
    found = finding(judge_report(log, {"gpu": "NVIDIA GeForce RTX 5070"}), CAUSE)
    assert (found.certainty, found.component) == (Certainty.LIKELY, "ollama")


def test_torchs_own_warning_above_it_gives_it_to_torch(judge_report: Judge) -> None:
    warning = (
        "NVIDIA GeForce RTX 5060 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
    )
    judgement = judge_report(warning + traceback_in(("xformers/ops/fmha/flash.py", "out = _C_flashattention.fwd(q)")))
    assert judgement.findings[0].cause == "torch-lacks-arch"
    assert any(x.cause == CAUSE for x in judgement.ruled_out)


def test_a_kernel_from_a_jit_cache_was_built_here(judge_report: Judge) -> None:
    log = "/home/u/.cache/flashinfer/0.6.4/120a/cached_ops/rope/rope.cu:41: RuntimeError: Check failed: error: no kernel image is available for execution on the device\n"
    judgement = judge_report(log, {"cc": "12.1"})
    assert judgement.findings[0].cause == "build-target-wrong"
    assert any(x.cause == CAUSE for x in judgement.ruled_out)


def test_a_library_for_another_generation_cannot_be_rebuilt(judge_report: Judge) -> None:
    log = traceback_in(("flash_mla/flash_mla_interface.py", "out = flash_mla_cuda.fwd_kvcache_mla("))
    judgement = judge_report(log, {"cc": "12.0", "torch": "2.9.1+cu128"})
    assert judgement.findings[0].cause == "arch-unsupported-by-library"


def test_ptx_of_a_newer_toolkit_is_another_failure(judge_report: Judge) -> None:
    log = "CUDA error: the provided PTX was compiled with an unsupported toolchain.\n"
    assert CAUSE not in [f.cause for f in judge_report(log).findings]


def test_an_illegal_instruction_is_another_failure(judge_report: Judge) -> None:
    log = "RuntimeError: CUDA error: an illegal instruction was encountered\n"
    assert CAUSE not in [f.cause for f in judge_report(log).findings]


def test_an_engine_file_is_built_again_on_its_gpu(judge_report: Judge, finding: Find) -> None:
    log = "[TRT] [E] 6: The engine plan file is generated on an incompatible device, expecting compute 8.0 got compute 8.6, please rebuild.\n"
    found = finding(judge_report(log), CAUSE)
    assert found.component == "tensorrt"
    assert found.remedies[0].kind == "files"


def test_a_run_time_arch_list_is_named_as_useless(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(MESSAGE), CAUSE)
    assert any("TORCH_CUDA_ARCH_LIST" in refused.what for refused in found.not_remedies)


@pytest.mark.parametrize("own", [
    {"packages.mamba-ssm": "2.2.4 (built from source)"},
    {"env.TORCH_CUDA_ARCH_LIST": "8.0;9.0"},
])  # fmt: skip
def test_what_was_built_here_is_never_proven_to_be_published(
    judge_report: Callable[..., Judgement], own: dict[str, str]
) -> None:
    log = (
        '  File "/opt/v/lib/python3.11/site-packages/mamba_ssm/ops/selective_scan_interface.py", line 81, in forward\n'
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    )
    torch = {"torch_arch_list": ["sm_80", "sm_90", "sm_120"]}
    facts = {"cc": "12.0", "binary_archs.selective_scan_cuda": ["sm_80", "sm_90"], **torch, **own}
    judgement = judge_report(log, facts)
    assert judgement.findings[0].cause in ("arch-list-override", "build-target-wrong")
    said = {f.cause: f.certainty.value for f in judgement.findings}
    assert said.get("binary-lacks-arch", "possible") == "possible"


def test_an_image_for_another_generation(judge_report: Judge, finding: Find) -> None:
    text = "Could not start backend: Runtime compute cap 75 is not compatible with compile time compute cap 80\n"
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.certainty) == ("text-embeddings-inference", Certainty.PROVEN)
    assert (found.remedies[0].kind, found.remedies[0].name) == ("container", "image")
    assert "7.5" in found.remedies[0].value


def test_the_kernels_of_a_python_package_are_its_engines(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(traceback_in(("faster_whisper/transcribe.py", "self.model.encode(features)"))), CAUSE)
    assert found.component == "ctranslate2"


def test_flash_attention_inside_vllm_s_wheel_is_vllm_s(judge_report: Judge, finding: Find) -> None:
    frames = ("vllm/vllm_flash_attn/flash_attn_interface.py", "out, lse = torch.ops._vllm_fa2_C.varlen_fwd(")
    assert finding(judge_report(traceback_in(frames)), CAUSE).component == "vllm"


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("libggml-cuda.so", "llama.cpp"),
        ("/usr/lib/ollama/cuda_v12/libggml-cuda.so", "ollama"),
        ("vllm/_C.abi3.so", "vllm"),
        ("/opt/v/lib/python3.11/site-packages/sgl_kernel/sm100/common_ops.abi3.so", "sgl-kernel"),
        ("libbitsandbytes_cuda126.so", "bitsandbytes"),
        ("vllm _C", "vllm"),
    ],
)
def test_a_list_is_read_under_the_name_of_the_file(
    judge_report: Judge, finding: Find, name: str, component: str
) -> None:
    host = {"cc": "12.0", f"binary_archs.{name}": ["sm_70", "sm_80", "sm_90"]}
    found = finding(judge_report(MESSAGE + "Aborted (core dumped)\n", host), CAUSE)
    assert (found.component, found.certainty) == (component, Certainty.PROVEN)


def test_a_file_of_llama_cpp_is_that_of_the_product_around_it(judge_report: Judge, finding: Find) -> None:
    log = "llama runner started\nCUDA error: no kernel image is available for execution on the device\n  in function ggml_cuda_compute_forward at /go/src/github.com/ollama/ollama/ml/backend/ggml/ggml/src/ggml-cuda/ggml-cuda.cu:2366\n"  # fmt: skip
    found = finding(judge_report(log, {"cc": "5.0", "binary_archs.libggml-cuda.so": ["sm_60", "sm_70"]}), CAUSE)
    assert (found.component, found.certainty) == ("ollama", Certainty.PROVEN)


def test_the_file_of_torch_is_no_extension(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report(MESSAGE, {"cc": "12.0", "binary_archs.libtorch_cuda.so": ["sm_80", "sm_90"]})
    assert judgement.findings[0].cause == "torch-lacks-arch"
    assert any(ruled.cause == CAUSE for ruled in judgement.ruled_out)


def test_a_file_that_belongs_to_anybody_names_no_component(judge_report: Judge, finding: Find) -> None:
    log = traceback_in(("vllm/model_executor/layers/layernorm.py", "ops.rms_norm(out, x)"))
    found = finding(judge_report(log, {"cc": "12.0", "binary_archs._C.abi3.so": ["sm_80"]}), CAUSE)
    assert (found.component, found.certainty) == ("vllm", Certainty.LIKELY)


def test_an_option_of_vllm_is_not_proposed_to_another_program() -> None:
    from gpuwhy.investigate import diagnose_log

    log = b"Starting ComfyUI\nUsing xformers attention in VAE\nCUDA error (/__w/xformers/xformers/third_party/flash-attention/hopper/flash_fwd_launch_template.h:175): no kernel image is available for execution on the device\n"
    found = next(f for f in diagnose_log(log, "report").findings if f.cause == "binary-lacks-arch")
    assert "--attention-backend" not in {remedy.name for remedy in found.remedies}
