"""Failures whose last words name something else than their cause: the symptom as it is printed, and what hides behind."""

from __future__ import annotations

from dataclasses import dataclass

Frames = tuple[tuple[str, str], ...]

FLASHINFER = ("flashinfer-python", "0.6.18.post1")
SGLANG = ("sglang", "0.5.23")
VLLM = ("vllm", "0.33.0")
TORCH = ("torch", "2.13.0")
TRITON = ("triton", "3.9.0")
SGL_KERNEL = ("sgl-kernel", "0.3.21")

SAMPLING: Frames = (
    ("flashinfer/sampling.py", "module = gen_sampling_module().build_and_load()"),
    ("flashinfer/jit/sampling.py", "return gen_jit_spec("),
    ("flashinfer/jit/core.py", "    check_cuda_arch()"),
    ("flashinfer/jit/core.py", 'raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")'),
)
TOO_OLD = "RuntimeError: FlashInfer requires GPUs with sm75 or higher"
CAPABILITY = "Failed to get device capability: "


@dataclass(frozen=True)
class Mask:
    """``seen``: what the swallowed exception said in a line of the log. ``raised``, ``swallowed``, ``switches`` and
    ``origin`` are texts that the answer must hold: of the hidden raises, of the handlers, among what reaches the
    condition, among where its value comes from. ``condition`` is part of the guard, ``what_if`` a value that leads there."""

    id: str
    releases: tuple[tuple[str, str], ...]
    frames: Frames
    error: str
    before: str = ""
    condition: str = ""
    what_if: str = ""
    seen: str = ""
    raised: str = ""
    swallowed: str = ""
    switches: tuple[str, ...] = ()
    origin: str = ""
    speaker: str = ""
    is_open: bool = False
    """The cause itself is not reached by what is known of the source so far."""


MASKS = (
    Mask(
        "M01",
        (FLASHINFER,),
        SAMPLING,
        TOO_OLD,
        CAPABILITY + "SM 12.x requires CUDA >= 12.9.\n",
        condition="not eligible",
        what_if="empty",
        seen="SM 12.x requires CUDA >= 12.9",
        raised="flashinfer/compilation_context.py:83",
        swallowed="flashinfer/compilation_context.py:107",
        switches=("FLASHINFER_CUDA_ARCH_LIST", "CUDA_HOME", "CUDA_PATH", "which nvcc"),
    ),
    Mask(
        "M02",
        (FLASHINFER,),
        SAMPLING,
        TOO_OLD,
        condition="not eligible",
        what_if="empty",
        switches=("torch.cuda.device_count()",),
    ),
    Mask(
        "M03",
        (FLASHINFER,),
        SAMPLING,
        TOO_OLD,
        CAPABILITY
        + "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' "
        "start method.\n",
        what_if="empty",
        seen="Cannot re-initialize CUDA in forked subprocess",
        swallowed="flashinfer/compilation_context.py:107",
        switches=("torch.cuda.get_device_capability()",),
    ),
    Mask(
        "M04",
        (FLASHINFER,),
        SAMPLING,
        TOO_OLD,
        CAPABILITY + "[Errno 13] Permission denied: '/usr/local/cuda/bin/nvcc'.\n",
        what_if="empty",
        seen="[Errno 13] Permission denied: '/usr/local/cuda/bin/nvcc'",
        swallowed="flashinfer/compilation_context.py:107",
        switches=("{nvcc} --version",),
    ),
    Mask(
        "M05",
        (FLASHINFER,),
        (
            ("flashinfer/jit/gemm/core.py", "nvcc_flags = current_compilation_context.get_nvcc_flags_list("),
            ("flashinfer/compilation_context.py", 'f"No supported CUDA architectures found for major versions'),
        ),
        "RuntimeError: No supported CUDA architectures found for major versions [12].",
        CAPABILITY + "SM 12.x requires CUDA >= 12.9.\n",
        condition="len(supported_cuda_archs) == 0",
        seen="SM 12.x requires CUDA >= 12.9",
        raised="flashinfer/compilation_context.py:83",
        switches=("FLASHINFER_CUDA_ARCH_LIST",),
    ),
    Mask(
        "M09",
        (FLASHINFER,),
        (
            ("flashinfer/jit/core.py", "current_compilation_context = CompilationContext()"),
            ("flashinfer/compilation_context.py", 'major, minor = arch.split(".")'),
        ),
        "ValueError: too many values to unpack (expected 2)",
        condition='"FLASHINFER_CUDA_ARCH_LIST" in os.environ',
        switches=("FLASHINFER_CUDA_ARCH_LIST",),
    ),
    Mask(
        "M11",
        (FLASHINFER,),
        (
            ("flashinfer/jit/core.py", "run_ninja(self.build_dir, self.ninja_path, verbose)"),
            ("flashinfer/jit/cpp_ext.py", "raise RuntimeError(msg) from e"),
        ),
        "RuntimeError: Ninja build failed. Ninja output:\nninja: build stopped: subcommand failed.",
        "Failed to load AOT artifact /opt/venv/lib/python3.12/site-packages/flashinfer_jit_cache/x.so: undefined symbol: "
        "_ZN3c10. Falling back to JIT build.\n",
        speaker="flashinfer/jit/core.py:405",
    ),
    Mask(
        "M13",
        (SGLANG,),
        (
            ("sglang/srt/models/registry.py", "return self._raise_for_unsupported(architectures)"),
            ("sglang/srt/models/registry.py", "are not supported for now. "),
        ),
        "ValueError: Model architectures ['KimiK25ForConditionalGeneration'] are not supported for now. Supported "
        "architectures: dict_keys(['LlamaForCausalLM'])",
        "[2026-11-29 10:04:20 TP0] Ignore import error when loading sglang.srt.models.kimi_k25: No module named 'tvm_ffi'\n",
        seen="No module named 'tvm_ffi'",
        swallowed="sglang/srt/models/registry.py:129",
    ),
    Mask(
        "M14",
        (SGLANG,),
        (("sglang/srt/layers/quantization/modelopt_quant.py", "x_fp4, x_scale_interleaved = fp4_quantize("),),
        "TypeError: 'NoneType' object is not callable",
        swallowed="sglang/srt/layers/quantization/fp4_utils.py",
        origin="fp4_quantize = None",
    ),
    Mask(
        "M15",
        (SGLANG,),
        (
            (
                "sglang/srt/layers/moe/token_dispatcher/deepep.py",
                '"DeepEP is not available. Please install DeepEP package from "',
            ),
        ),
        "ImportError: DeepEP is not available. Please install DeepEP package from https://github.com/deepseek-ai/deepep.",
        condition="not use_deepep",
        what_if="False",
        swallowed="sglang/srt/layers/moe/token_dispatcher/deepep.py:62",
        origin="use_deepep = False",
    ),
    Mask(
        "M17",
        (SGLANG, FLASHINFER),
        (("sglang/srt/model_executor/runner/decode_cuda_graph_runner.py", 'f"Capture cuda graph failed: {e}'),),
        "Exception: Capture cuda graph failed: FlashInfer requires GPUs with sm75 or higher\nPossible solutions:\n1. set "
        "--mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
        condition="RuntimeError",
    ),
    Mask(
        "M21",
        (SGL_KERNEL,),
        (
            ("sgl_kernel/__init__.py", "common_ops = _load_architecture_specific_ops()"),
            ("sgl_kernel/load_utils.py", "raise ImportError(error_msg)"),
        ),
        "ImportError: \n[sgl_kernel] CRITICAL: Could not load any common_ops library!",
        swallowed="sgl_kernel/load_utils.py",
        is_open=True,
    ),
    Mask(
        "M22",
        (SGLANG,),
        (
            (
                "sglang/srt/distributed/device_communicators/custom_all_reduce_ops.py",
                "return _custom_ar.init_custom_ar(ipc_tensors",
            ),
        ),
        "NameError: name '_custom_ar' is not defined",
        "[2026-11-29 10:04:20 TP0] Failed to import from custom_ar with ImportError('libcudart.so.12: cannot open shared "
        "object file')\n",
        speaker="sglang/srt/distributed/device_communicators/custom_all_reduce_ops.py:24",
        swallowed="sglang/srt/distributed/device_communicators/custom_all_reduce_ops.py:22",
    ),
    Mask(
        "M24",
        (VLLM, TORCH),
        (
            ("vllm/_custom_ops.py", "torch.ops._C.rms_norm("),
            ("torch/_ops.py", "f\"'_OpNamespace' '{self.name}' object has no attribute '{op_name}'\""),
        ),
        "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
        "WARNING 11-29 10:04:20 [cuda.py:244] Failed to import from vllm._C_stable_libtorch: ImportError('libcudart.so.12: "
        "cannot open shared object file')\n",
        speaker="vllm/platforms/cuda.py:244",
    ),
    Mask(
        "M26",
        (VLLM,),
        (("vllm/config/device.py", '"Failed to infer device type, please set "'),),
        "RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG` to turn "
        "on verbose logging to help debug the issue.",
        "DEBUG 11-29 10:04:20 [__init__.py:84] CUDA platform is not available because: NVML Shared Library Not Found\n",
        condition="not self.device_type",
        swallowed="vllm/platforms/__init__.py",
        speaker="vllm/platforms/__init__.py",
    ),
    Mask(
        "M29",
        (VLLM,),
        (
            ("vllm/model_executor/models/registry.py", "return self._raise_for_unsupported(architectures)"),
            ("vllm/model_executor/models/registry.py", "failed "),
        ),
        "ValueError: Model architectures ['LlamaForCausalLM'] failed to be inspected. Please check the logs for more details.",
        "ERROR 11-29 10:04:20 [registry.py:1163] Error in inspecting model architecture 'LlamaForCausalLM'\n",
        speaker="vllm/model_executor/models/registry.py",
    ),
    Mask(
        "M30",
        (VLLM,),
        (
            ("vllm/utils/flashinfer.py", "return fallback_fn(*args, **kwargs)"),
            ("vllm/utils/flashinfer.py", '"FlashInfer backend is not available. Please install the package "'),
        ),
        "RuntimeError: FlashInfer backend is not available. Please install the package to enable FlashInfer kernels: "
        "https://github.com/flashinfer-ai/flashinfer",
        swallowed="vllm/utils/flashinfer.py",
        switches=("which ninja",),
    ),
    Mask(
        "M31",
        (VLLM,),
        (("vllm/platforms/cuda.py", 'f"No valid attention backend found for {cls.device_name} "'),),
        "ValueError: No valid attention backend found for NVIDIA RTX PRO 6000 with AttentionSelectorConfig(head_size=128). "
        "Reasons: {FLASH_ATTN: [ImportError: libcudart.so.12: cannot open shared object file]}.",
        condition="len(valid_backends_priorities) == 0",
        swallowed="vllm/platforms/cuda.py",
    ),
    Mask(
        "M33",
        (TORCH,),
        (("torch/utils/cpp_extension.py", "arch_list[-1] += '+PTX'"),),
        "IndexError: list index out of range",
        condition="_arch_list",
        switches=("TORCH_CUDA_ARCH_LIST",),
        origin="torch.cuda.device_count()",
        is_open=True,
    ),
    Mask(
        "M35",
        (TORCH,),
        (("torch/utils/cpp_extension.py", "raise OSError('CUDA_HOME environment variable is not set. '"),),
        "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
        condition="CUDA_HOME is None",
        what_if="None",
        switches=("CUDA_HOME", "CUDA_PATH"),
    ),
    Mask(
        "M36",
        (TRITON,),
        (
            ("triton/runtime/driver.py", "self._active = self.default"),
            ("triton/runtime/driver.py", "self._default = _create_driver()"),
            ("triton/runtime/driver.py", "active drivers ({active_drivers}). There should only be one."),
        ),
        "RuntimeError: 0 active drivers ([]). There should only be one.",
        condition="len(active_drivers) != 1",
        swallowed="triton/backends/",
        is_open=True,
    ),
    Mask(
        "M39",
        (TORCH,),
        (("torch/_inductor/runtime/triton_heuristics.py", 'f"No valid triton configs. {type(exc).__name__}: {exc}"'),),
        "torch._inductor.runtime.triton_heuristics.NoTritonConfigsError: No valid triton configs. PTXASError: PTXAS error: "
        "Internal Triton PTX codegen error",
        condition="len(compile_results) == 0",
        swallowed="torch/_inductor/runtime/triton_heuristics.py:688",
    ),
)
