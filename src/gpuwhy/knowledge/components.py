"""From a path, a module, a library or a wheel to the component that it belongs to.

Components go by their project's name, in lower case: "flash-attn", not "flash_attn" or "vllm_flash_attn".
"""

from __future__ import annotations

import functools
import re

#: component -> its module folders, distribution names and library name stems (all compared without - _ . and case)
_NAMES: dict[str, str] = {
    "torch": (
        "torch pytorch libtorch libtorch_cuda libtorch_cpu libtorch_python libc10 libc10_cuda c10 caffe2 functorch "
        "torchgen libtorch_cuda_linalg libtorch_nvshmem"
    ),
    "torchvision": "torchvision",
    "torchaudio": "torchaudio libtorchaudio",
    "torchao": "torchao",
    "torchcodec": "torchcodec libtorchcodec",
    "flashinfer": "flashinfer flashinfer_python flashinfer_jit_cache",
    "flashinfer-cubin": "flashinfer_cubin",
    "sgl-kernel": "sgl_kernel sglang_kernel common_ops flash_ops spatial_ops",
    "sglang": "sglang sglang_router",
    "vllm": "vllm vllm_c moe_c vllm_nccl",
    "flash-attn": (
        "flash_attn flash_attn_2_cuda flash_attn_3 flash_attn_interface vllm_flash_attn vllm_flash_attn_2_cuda vllm_fa2_c vllm_fa3_c "
        "fa2_c fa3_c flash_attn_3_cuda hopper_flash_attn"
    ),
    "triton": "triton pytorch_triton libtriton triton_kernels triton_windows",
    "deepgemm": "deep_gemm deepgemm deep_gemm_cpp",
    "deepep": "deep_ep deepep deep_ep_cpp",
    "flashmla": "flash_mla flashmla",
    "fastsafetensors": "fastsafetensors",
    "llama.cpp": (
        "llamacpp libllama libggml libggml_cuda libggml_base libggml_cpu ggml ggml_cuda llama_server llama_cli"
    ),
    "llama-cpp-python": "llama_cpp_python",
    "whisper.cpp": "whisper_cpp libwhisper pywhispercpp whisper.cpp",
    "llama-box": "llama_box",
    "ollama": "ollama",
    "koboldcpp": "koboldcpp",
    "gpustack": "gpustack",
    "localai": "localai local_ai",
    "invokeai": "invokeai",
    "funasr": "funasr",
    "openrlhf": "openrlhf",
    "xinference": "xinference",
    "fastchat": "fastchat fschat",
    "lightllm": "lightllm",
    "text-generation-webui": "text_generation_webui",
    "ms-swift": "ms_swift",
    "llamafactory": "llamafactory llama_factory",
    "axolotl": "axolotl",
    "xformers": "xformers",
    "lmcache": "lmcache lmc_ops",
    "transformer-engine": (
        "transformer_engine transformer_engine_torch transformer_engine_cu12 transformer_engine_cu13 "
        "transformer_engine_extensions libtransformer_engine"
    ),
    "bitsandbytes": "bitsandbytes libbitsandbytes libbitsandbytes_cuda libbitsandbytes_cpu",
    "exllama": "exllama exllama_ext",
    "exllamav2": "exllamav2 exllamav2_ext",
    "exllamav3": "exllamav3 exllamav3_ext",
    "autoawq": "awq autoawq autoawq_kernels awq_ext awq_inference_engine awq_v2_ext",
    "auto-gptq": "auto_gptq autogptq_cuda autogptq_cuda_64 autogptq_cuda_256 exllama_kernels exllamav2_kernels",
    "gptqmodel": "gptqmodel gptqmodel_kernels",
    "marlin": "marlin marlin_cuda autogptq_marlin_cuda",
    "mamba-ssm": "mamba_ssm mamba selective_scan_cuda",
    "causal-conv1d": "causal_conv1d causal_conv1d_cuda",
    "flash-linear-attention": "fla flash_linear_attention",
    "onnxruntime": (
        "onnxruntime onnxruntime_gpu libonnxruntime libonnxruntime_providers_cuda libonnxruntime_providers_shared "
        "libonnxruntime_providers_tensorrt onnxruntime_pybind11_state"
    ),
    "tensorrt": "tensorrt tensorrt_cu12 tensorrt_libs tensorrt_bindings libnvinfer libnvinfer_plugin libnvonnxparser",
    "tensorrt-llm": "tensorrt_llm libtensorrt_llm libth_common libnvinfer_plugin_tensorrt_llm trtllm tensorrtllm",
    "lmdeploy": "lmdeploy turbomind libturbomind",
    "transformers": "transformers",
    "tokenizers": "tokenizers",
    "safetensors": "safetensors",
    "huggingface-hub": "huggingface_hub",
    "accelerate": "accelerate",
    "diffusers": "diffusers",
    "peft": "peft",
    "trl": "trl",
    "datasets": "datasets",
    "optimum": "optimum",
    "sentence-transformers": "sentence_transformers",
    "unsloth": "unsloth",
    "unsloth-zoo": "unsloth_zoo",
    "deepspeed": "deepspeed",
    "apex": "apex amp_c fused_layer_norm_cuda fused_weight_gradient_mlp_cuda",
    "megatron": "megatron megatron_core",
    "nemo": "nemo nemo_toolkit",
    "verl": "verl",
    "nccl": "nccl libnccl nvidia_nccl_cu11 nvidia_nccl_cu12 nvidia_nccl_cu13 libnccl_net",
    "nvshmem": "nvshmem libnvshmem_host nvidia_nvshmem_cu12 nvidia_nvshmem_cu13 nvshmem4py",
    "cupy": "cupy cupy_backends cupy_cuda11x cupy_cuda12x cupy_cuda13x cupyx",
    "numba": "numba numba_cuda",
    "tilelang": "tilelang",
    "tvm": "tvm libtvm tvm_ffi apache_tvm_ffi libtvm_runtime",
    "jax": "jax jaxlib jax_cuda12_plugin jax_cuda12_pjrt jax_cuda13_plugin libjax",
    "tensorflow": "tensorflow tensorflow_gpu libtensorflow_framework libtensorflow_cc",
    "ktransformers": "ktransformers kt_kernel ktransformersops cpuinfer_ext",
    "cutlass": "cutlass nvidia_cutlass_dsl nvidia_cutlass cutlass_library",
    "quack": "quack quack_kernels",
    "humming": "humming humming_kernels",
    "aiter": "aiter",
    "flaggems": "flag_gems flaggems",
    "tilert": "tilert",
    "mlc-llm": "mlc_llm libmlc_llm",
    "text-generation-inference": "text_generation_server text_generation_launcher",
    "aphrodite": "aphrodite aphrodite_engine",
    "nixl": "nixl libnixl nixl_cu12 nixl_cu13",
    "mooncake": "mooncake mooncake_transfer_engine",
    "ray": "ray",
    "xgrammar": "xgrammar",
    "outlines": "outlines outlines_core",
    "llguidance": "llguidance",
    "compressed-tensors": "compressed_tensors",
    "llm-compressor": "llmcompressor",
    "modelopt": "modelopt nvidia_modelopt",
    "hqq": "hqq hqq_aten",
    "aqlm": "aqlm",
    "eetq": "eetq",
    "quanto": "quanto optimum_quanto",
    "sageattention": "sageattention sageattn3 sageattention_qk_int8_pv",
    "spargeattn": "spas_sage_attn",
    "natten": "natten libnatten",
    "liger-kernel": "liger_kernel",
    "pytorch3d": "pytorch3d",
    "detectron2": "detectron2",
    "mmcv": "mmcv mmcv_ext",
    "gsplat": "gsplat",
    "tiny-cuda-nn": "tinycudann",
    "nvdiffrast": "nvdiffrast",
    "torch-scatter": "torch_scatter",
    "torch-cluster": "torch_cluster",
    "torch-sparse": "torch_sparse",
    "pyg-lib": "pyg_lib libpyg",
    "dgl": "dgl libdgl",
    "spconv": "spconv cumm",
    "faiss": "faiss faiss_gpu swigfaiss",
    "ctranslate2": "ctranslate2 libctranslate2",
    "faster-whisper": "faster_whisper",
    "opencv-python": "cv2 opencv opencv_python opencv_python_headless opencv_contrib_python",
    "comfyui": "comfyui comfy comfy_extras",
    "lmms-eval": "lmms_eval",
    "cuda-compat": "cuda_compat",
    "fabric-manager": "nvidia_fabricmanager nv_fabricmanager fabricmanager",
    "nvidia-container-toolkit": (
        "nvidia_container_toolkit nvidia_container_cli nvidia_container_runtime libnvidia_container nvidia_ctk"
    ),
    "container-engine": "docker dockerd containerd podman cri_o crio",
    "driver": "libcuda libnvidia_ml libnvidia_ptxjitcompiler libcudadebugger nvidia_smi pynvml nvml nvidia_ml_py",
    "cuda-toolkit": (
        "nvcc cicc ptxas libcudart libnvrtc libnvrtc_builtins libcublas libcublaslt libcudnn libcusolver "
        "libcusparse libcurand libcufft libnvjitlink libcupti libnvtoolsext nvidia cuda_toolkit "
        "nvidia_cuda_runtime_cu12 nvidia_cuda_nvcc_cu12 nvidia_cuda_nvcc nvidia_cuda_runtime nvidia_cublas_cu12 "
        "nvidia_cudnn_cu12 nvidia_cuda_nvrtc_cu12 nvidia_nvjitlink_cu12"
    ),
}
#: folders inside a package that belong to another component; the longest match counts
_INNER_FOLDERS: tuple[tuple[str, str], ...] = (
    ("vllm/vllm_flash_attn", "flash-attn"),
    ("vllm/third_party/deep_gemm", "deepgemm"),
    ("vllm/utils/deep_gemm.py", "deepgemm"),
    ("llama_cpp", "llama-cpp-python"),
    ("sglang/srt/layers/deep_gemm_wrapper", "deepgemm"),
    ("sglang/srt/layers/quantization/deep_gemm_wrapper", "deepgemm"),
    ("xformers/third_party/flash-attention", "xformers"),
    ("apex/csrc/megatron", "apex"),
    ("csrc/megatron", "apex"),
    ("vllm/third_party/flashmla", "flashmla"),
    ("vllm/third_party/pynvml", "driver"),
    ("vllm/third_party/triton_kernels", "triton"),
    ("sgl_kernel/flash_mla", "flashmla"),
    ("torch/_inductor", "torch"),
    ("triton/backends/nvidia/bin", "triton"),
    ("nvidia/nccl", "nccl"),
    ("nvidia/nvshmem", "nvshmem"),
    ("nvidia/modelopt", "modelopt"),
    ("flashinfer/data/cutlass", "flashinfer"),
    ("flash_attn/cute", "flash-attn"),
    ("include/flashinfer", "flashinfer"),
    ("onnxruntime/contrib_ops", "onnxruntime"),
    ("onnxruntime/core", "onnxruntime"),
)
#: repository folders that sources are built in, for paths outside site-packages
_REPOSITORIES = {
    "flashattention": "flash-attn",
    "llamacpp": "llama.cpp",
    "llamacpppython": "llama-cpp-python",
    "whispercpp": "whisper.cpp",
    "transformerengine": "transformer-engine",
    "tensorrtllm": "tensorrt-llm",
    "deepgemm": "deepgemm",
    "deepep": "deepep",
    "causalconv1d": "causal-conv1d",
    "textgenerationinference": "text-generation-inference",
}
#: products that build llama.cpp under their own name, and are what a user must change
_BUNDLERS = {"ollama": "ollama", "whispercpp": "whisper.cpp", "llamabox": "llama-box", "koboldcpp": "koboldcpp"}
BUILDS_OF_LLAMA = frozenset(
    {"llama.cpp", "llama-cpp-python", "stable-diffusion.cpp", "ctransformers", "localai", *_BUNDLERS.values()}
)
"""llama.cpp, and the products that build or bundle it: all are compiled by CMake, without torch."""
_SITE_FOLDERS = re.compile(r"(?:site|dist)-packages/+", re.IGNORECASE)
_PYTHON_FOLDER = re.compile(r"(?:^|/)python\d(?:\.\d+)?/+", re.IGNORECASE)
_LIBRARY = re.compile(
    r"(?P<stem>[^/]+?)(?:\.(?:cpython|cp|pypy|abi3)[^/]*)?\.(?:so|pyd|dll|dylib)(?:\.[\d.]+)?", re.IGNORECASE
)
_WHEEL = re.compile(r"(?P<name>[A-Za-z0-9_.]+?)-\d[^/]*\.(?:whl|tar\.gz)", re.IGNORECASE)
_SOURCE_FILE = re.compile(r"\.(?:py|pyx|cu|cuh|cpp|cc|c|h|hpp|so)$", re.IGNORECASE)
_LONGEST = 1000


def _key(name: str) -> str:
    return re.sub(r"[-_.\s]+", "", name.lower())


@functools.cache
def _by_key() -> dict[str, str]:
    table = {_key(name): component for component, names in _NAMES.items() for name in names.split()}
    table.update({_key(component): component for component in _NAMES})
    return table


def component_names() -> frozenset[str]:
    """The components that are known by name."""
    return frozenset(_NAMES)


def canonical(name: str) -> str | None:
    """The component of a distribution, module or library name ("sglang-kernel" -> "sgl-kernel"); None if unknown."""
    key = _key(name[:_LONGEST])
    table = _by_key()
    if key in table:
        return table[key]
    # distributions carry the CUDA release in their name (cupy-cuda12x, onnxruntime-gpu), libraries a version or arch
    shorter = re.sub(r"(?:cu|cuda)\d+x?$|\d+$|gpu$|nightly$", "", key)
    return table.get(shorter) or (table.get("lib" + key) if key else None)


def component_of_module(name: str) -> str | None:
    """The component of a dotted module, file path, shared library, wheel or distribution name.

    An unknown package below site-packages gives its own name, normalised ("my_pkg/x.py" -> "my-pkg"). None for
    anything that names no package: standard library files, scripts, other text.
    """
    text = name.strip().strip("\"'").replace("\\", "/")
    if not text or len(text) > _LONGEST or "\n" in text:
        return None
    wheel = _WHEEL.fullmatch(text.rpartition("/")[2])
    if wheel:
        return canonical(wheel["name"]) or _normalised(wheel["name"])
    if "/" in text:
        return _of_path(text)
    library = _LIBRARY.fullmatch(text)
    if library:
        return canonical(library["stem"])
    if _SOURCE_FILE.search(text):
        return None if text.endswith(".py") else canonical(text.rpartition(".")[0])
    return _of_dotted(text)


def _of_path(path: str) -> str | None:
    inside = _SITE_FOLDERS.split(path)
    if len(inside) > 1:
        return _of_package_path(inside[-1])
    if _PYTHON_FOLDER.search(path):
        return None  # the standard library
    for folder, component in _INNER_FOLDERS:
        if f"/{folder}/" in f"/{path}":
            return component
    if re.search(r"/compat/(?:[^/]+/)*libcuda\.so", path):
        return "cuda-compat"
    for part in path.split("/"):
        if _key(part) in _BUNDLERS:
            return _BUNDLERS[_key(part)]
    library = _LIBRARY.fullmatch(path.rpartition("/")[2])
    if library and canonical(library["stem"]):
        return canonical(library["stem"])
    # the innermost known folder: /build/vllm/vllm/model.py, /home/app/.cache/flashinfer/0.6.17/cached_ops
    parts = path.split("/")
    folders = parts if parts[-1].startswith(".") else parts[:-1]
    for part in reversed(folders):
        name = _key(part.lstrip(".").removesuffix("-src").removesuffix("-build"))
        known = _REPOSITORIES.get(name) or _by_key().get(name)
        if known:
            return known
    last = path.rpartition("/")[2]
    return _by_key().get(_key(last)) if "." not in last else None


def _of_package_path(path: str) -> str | None:
    """For a path below site-packages."""
    for folder, component in sorted(_INNER_FOLDERS, key=lambda row: -len(row[0])):
        if path == folder or path.startswith(folder + "/"):
            return component
    first, _, rest = path.partition("/")
    if not first:
        return None
    info = re.fullmatch(r"(.+?)-\d[^/]*\.(?:dist-info|egg-info|data)|(.+)\.libs", first)
    if info:
        first = info[1] or info[2]
    library = _LIBRARY.fullmatch(first)
    if library and not rest:
        return canonical(library["stem"]) or _normalised(library["stem"])
    if first == "nvidia" and rest:
        inner = rest.partition("/")[0]
        return _by_key().get(_key(inner), "cuda-toolkit")
    return canonical(first.removesuffix(".py")) or _normalised(first.removesuffix(".py"))


def _of_dotted(name: str) -> str | None:
    if not re.fullmatch(r"[A-Za-z_][\w.-]*(?:\[[\w,-]*\])?", name, re.ASCII):
        return None
    name = name.partition("[")[0]
    known = canonical(name)
    if known:
        return known
    parts = name.split(".")
    for folder, component in _INNER_FOLDERS:
        if "/".join(parts).startswith(folder):
            return component
    return canonical(parts[0])


def _normalised(name: str) -> str | None:
    name = re.sub(r"[-_.]+", "-", name).strip("-").lower()
    return name if re.fullmatch(r"[a-z0-9][a-z0-9-]*", name, re.ASCII) else None
