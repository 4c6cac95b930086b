"""Which component a piece of log text speaks of: paths, packages that pip builds, names in a message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.knowledge import components

GENERIC = frozenset({"python", "user-program", "python-env", "cuda-toolkit", "driver", "cuda-compat", "ninja", "cmake"})
"""What a path may name without telling whose build or code it is."""
WEAK = frozenset({"torch", "tvm", "nccl", "ray", "setuptools", "pip", "uvicorn", "fastapi", "numpy"})
"""Carriers: their frames lie around other components' failures. They count when nothing else is named."""

_PATH = lazy_pattern(r"(?:[\w.@+~-]{0,80}/){1,40}[\w.@+~-]{1,120}", re.ASCII)
_PIP_FOLDER = lazy_pattern(
    r"/(?:pip-install-\w+|pip-req-build-\w+|pip-wheel-\w+|build-via-sdist-\w+|pip-build-\w+)/([A-Za-z][\w.-]*?)(?:_[0-9a-f]{2,40})?/"
)
_FOLDERS_OF_SOURCES = frozenset(
    {
        "build",
        "build_tools",
        "csrc",
        "src",
        "python",
        "setup.py",
        "cmake",
        "third_party",
        "lib",
        "kernels",
        "cpp",
        "ops",
    }
)
"""What stands below a checkout that pip builds in place: parts of the project, not its name."""
_BUILT_BY_PIP = lazy_pattern(
    r"(?:Failed building wheel for|Building wheels? for(?: collected packages)?|Failed to build(?: installable wheels for)?|Running setup\.py \w+ for"
    r"|could not build wheels for|Failed to build `?|Building editable for)\s*:?\s*`?([A-Za-z][\w.-]{1,60})",
    re.IGNORECASE,
)
_ASKED_OF_PIP = lazy_pattern(r"\bpip3? install (?:-\S+ )*['\"]?([A-Za-z][\w.-]{1,60})")
_TORCH_EXTENSION = lazy_pattern(
    r"torch_extensions/(?:py\d+_\w{1,12}/)?(\w{2,60})/|TORCH_EXTENSION_NAME=(\w{2,60})"
    r"|(?:Error building extension|Loading extension module|Building extension module) '?(\w{2,60})"
)
_BUILD_TARGETS = (
    ("vllm", lazy_pattern(r"CMakeFiles/(?:_(?:moe_)?C(?:_stable_libtorch)?|cumem_allocator)\.dir/|--target=_(?:moe_)?C\b")),
    ("sgl-kernel", lazy_pattern(r"CMakeFiles/common_ops\w{0,30}\.dir/")),
    ("llama.cpp", lazy_pattern(r"CMakeFiles/ggml[\w-]{0,20}\.dir/")),
    ("flashinfer", lazy_pattern(
        r"(?<![\w./-])(?:batch_(?:prefill|decode|mla|attention|pod)|single_(?:prefill|decode)|sampling|norm|rope|page|cascade|quantization|fused_moe_\d{2,3}\w{0,8}"
        r"|fp4_(?:gemm|quantization)|fp8_gemm|gemm_sm\d|fmha_(?:gen|cutlass)|trtllm_\w{3,40}|mxfp8_quantization|cutlass_fused_moe|tgv_gemm|xqa)\w{0,200}/\w{1,200}(?:\.cuda)?\.s?o\b"
    )),
    ("flash-attn", lazy_pattern(r"(?<![\w./-])flash_(?:fwd|bwd)_\w{1,100}\.(?:cuda\.)?(?:cu|o)\b")),
    ("deepgemm", lazy_pattern(r"Assertion error \(\S{0,100}csrc/(?:\S{0,60}/)?(?:jit|apis/)|DeepGEMM JIT|\.deep_gemm/")),
    ("xformers", lazy_pattern(r"\bmemory_efficient_attention|\b(?:cutlass|flshatt|fmha_cutlass)[FB](?:@|-blackwell|_f16|_bf16|_f32|`)|\bxformers/.{0,300}\bflash_(?:fwd|bwd)_")),
    ("flashinfer", lazy_pattern(r"\[TensorRT-LLM\].{0,400}(?:flashinfer|nv_internal)/")),  # it carries kernels of TensorRT-LLM, and their messages
    ("tensorrt-llm", lazy_pattern(r"\[TensorRT-LLM\]|\[TRT-LLM\]")),
    ("tensorrt", lazy_pattern(r"\[TRT\]")),
    ("stable-diffusion-webui", lazy_pattern(r"\bmodules\.devices\.NansException|\bstable-diffusion-webui[/\\]|COMMANDLINE_ARGS variable")),
    ("flashmla", lazy_pattern(r"\bFLASH_MLA_|\bFlash MLA\b")),
    ("localai", lazy_pattern(r"\bGRPC\([\w.-]{1,80}-127\.0\.0\.1:\d{2,5}\): std(?:err|out)")),
    ("triton", lazy_pattern(r"__triton_launcher|/cuda_utils\.c\b|\bptxas(?:-blackwell)? /tmp/tmp\w{4,16}\.ptx\b")),
    ("deepspeed", lazy_pattern(r"DeepSpeed Op Builder|\bds_report\b")),
)  # fmt: skip
"""Files and modules that builds print without the project's name, and what names one project only."""
_EXTENSIONS_OF = {
    "deepspeed": (
        "fused_adam", "cpu_adam", "cpu_adagrad", "cpu_lion", "fused_lamb", "fused_lion", "async_io", "transformer_inference", "utils",
        "quantizer", "random_ltd", "sparse_attn", "spatial_inference", "ragged_device_ops", "inference_core_ops",
    ),
    "exllama": ("exllama_ext",),
    "exllamav2": ("exllamav2_ext",),
    "exllamav3": ("exllamav3_ext",),
}  # fmt: skip
"""Modules that torch builds at run time, by the package that asks for them; their folder has the module's name only."""
_LIBRARY = lazy_pattern(r"\b([\w.-]{2,80}\.so)\b", re.ASCII)
_WORD = lazy_pattern(r"[A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)*", re.ASCII)
_ORDINARY_WORDS = frozenset(
    [
        "error",
        "fatal",
        "failed",
        "build",
        "building",
        "native",
        "current",
        "model",
        "kernel",
        "python",
        "cuda",
        "gpu",
        "nvcc",
        "compute",
        "device",
        "value",
        "option",
        "unsupported",
        "architecture",
        "torch",
        "pytorch",
        "the",
        "for",
        "of",
        "is",
        "not",
        "in",
        "code",
        "file",
        "line",
        "apex",
        "outlines",
        "modules",
        "guidance",
        "marlin",
    ]
)
"""Words of messages that are also names of packages, or that a message uses for anything."""


def first_component(texts: Iterable[tuple[str, bool]]) -> str | None:
    """The first component named in ``texts``, given as (text, whether bare names in it count).

    A weak carrier is only taken when no text names anything else.
    """
    weak: str | None = None
    for text, with_names in texts:
        for component in components_in(text, with_names=with_names):
            if component in GENERIC:
                continue
            if component not in WEAK:
                return component
            weak = weak or component
    return weak


def built_by_pip(texts: Iterable[str]) -> str | None:
    """The package of which the first text that speaks of one says that pip builds it."""
    for text in texts:
        found = _BUILT_BY_PIP.search(text[:2000])
        if found and found.group(1).lower() not in _FOLDERS_OF_SOURCES:
            return components.canonical(found.group(1)) or found.group(1).lower().replace("_", "-")
    return None


def components_in(text: str, *, with_names: bool = False) -> Iterator[str]:
    """Components that one line names, the most telling first: what pip builds, paths, libraries, then bare names."""
    text = text[:2000]
    for pattern in (_BUILT_BY_PIP, _PIP_FOLDER):
        found = pattern.search(text)
        if found and found.group(1).lower() not in _FOLDERS_OF_SOURCES:
            yield components.canonical(found.group(1)) or found.group(1).lower().replace("_", "-")
    extension = _TORCH_EXTENSION.search(text)
    if extension:
        module = next(group for group in extension.groups() if group)
        yield from (name for name, modules in _EXTENSIONS_OF.items() if module in modules)
    yield from (name for name, pattern in _BUILD_TARGETS if pattern.search(text))
    for path in _PATH.findall(text):
        component = components.component_of_module(path)
        if component:
            yield component
    for library in _LIBRARY.findall(text):
        component = components.component_of_module(library)
        if component:
            yield component
    asked = _ASKED_OF_PIP.search(text)
    if asked:
        component = components.canonical(asked.group(1))
        if component:
            yield component
    if with_names:
        yield from _named(text)


def _named(text: str) -> Iterator[str]:
    """Names of known components among the words of a message."""
    for word in _WORD.findall(text):
        if word.lower() in _ORDINARY_WORDS or len(word) < 4 or word.endswith((".h", ".hpp", ".cuh")):
            continue
        component = components.canonical(word) or components.canonical(word.partition(".")[0])
        if component:
            yield component
