from __future__ import annotations

import pytest

from gpuwhy.knowledge import components

SITE = "/opt/venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("name", "component"),
    [
        (f"{SITE}/vllm/v1/engine/core.py", "vllm"),
        ("/usr/local/lib/python3.12/dist-packages/sglang/srt/server.py", "sglang"),
        (f"{SITE}/sgl_kernel/sm100/common_ops.abi3.so", "sgl-kernel"),
        ("common_ops.abi3.so", "sgl-kernel"),
        ("sglang-kernel", "sgl-kernel"),
        (f"{SITE}/flashinfer/jit/core.py", "flashinfer"),
        ("flashinfer_python-0.6.17-py3-none-any.whl", "flashinfer"),
        ("flashinfer-cubin", "flashinfer-cubin"),
        ("/root/.cache/flashinfer/0.6.17/120f/cached_ops/sampling/sampling.so", "flashinfer"),
        (f"{SITE}/vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so", "flash-attn"),
        ("flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so", "flash-attn"),
        ("vllm.third_party.deep_gemm.jit", "deepgemm"),
        ("deep_ep_cpp", "deepep"),
        (f"{SITE}/triton/backends/nvidia/bin/ptxas-blackwell", "triton"),
        (f"{SITE}/torch-2.8.0.dist-info/METADATA", "torch"),
        ("libc10_cuda.so", "torch"),
        (f"{SITE}/nvidia/nccl/lib/libnccl.so.2", "nccl"),
        (f"{SITE}/nvidia/cublas/lib/libcublas.so.12", "cuda-toolkit"),
        ("libnvrtc.so.12", "cuda-toolkit"),
        ("libcuda.so.1", "driver"),
        ("/usr/local/cuda-12.8/compat/libcuda.so.1", "cuda-compat"),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "driver"),
        ("nvidia-container-cli", "nvidia-container-toolkit"),
        ("nv-fabricmanager", "fabric-manager"),
        ("ggml-cuda.cu", "llama.cpp"),
        ("/app/llama.cpp/ggml/src/ggml-cuda/common.cuh", "llama.cpp"),
        ("/src/ollama/ml/backend/ggml/ggml/src/ggml-cuda/ggml-cuda.cu", "ollama"),
        ("/tmp/whisper.cpp/ggml/src/ggml-cuda/ggml-cuda.cu", "whisper.cpp"),
        ("llama-cpp-python", "llama-cpp-python"),
        (f"{SITE}/llama_cpp/lib/libllama.so", "llama-cpp-python"),
        ("/home/u/xformers/third_party/flash-attention/csrc/flash_attn/src/x.cu", "xformers"),
        ("csrc/megatron/scaled_masked_softmax_cuda.cu", "apex"),
        (f"{SITE}/vllm/utils/deep_gemm.py", "deepgemm"),
        (f"{SITE}/exllamav3_ext.so", "exllamav3"),
        ("selective_scan_cuda", "mamba-ssm"),
        ("transformer_engine_torch", "transformer-engine"),
        ("awq_inference_engine.cpython-310-x86_64-linux-gnu.so", "autoawq"),
        ("exllamav2_ext", "exllamav2"),
        ("onnxruntime-gpu", "onnxruntime"),
        ("cupy-cuda12x", "cupy"),
        ("unsloth_zoo.compiler", "unsloth-zoo"),
        ("lmc_ops.so", "lmcache"),
        (f"{SITE}/Some_New.Kernels/x.py", "some-new-kernels"),
        (f"{SITE}/my_pkg/_C.so", "my-pkg"),
    ],
)
def test_component_of_a_path_module_or_library(name: str, component: str) -> None:
    assert components.component_of_module(name) == component


@pytest.mark.parametrize(
    "name", ["", "main.py", "/usr/lib/python3.11/subprocess.py", "libnuma.so.1", "subprocess", "two words", "a\nb", "/"]
)
def test_what_names_no_component(name: str) -> None:
    assert components.component_of_module(name) is None


def test_every_component_maps_to_itself() -> None:
    for name in components.component_names():
        assert components.canonical(name) == name
