"""What "no kernel image is available" and its other wordings show in one case: whose kernel it was, and what is known of it.

Several causes share the message. The launch of a kernel failed because the file that holds it has neither machine code
nor usable PTX for the GPU; nothing in the message says which file that is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._component import first_component
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import Sign, says
from gpuwhy.causes.architecture._examined_binaries import binaries_of, component_of_binary
from gpuwhy.causes.architecture._torch_warnings import TORCH_WARNED, read_torch_warning
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge import components
from gpuwhy.knowledge import torch as torch_builds
from gpuwhy.knowledge.answers import Answer, unknown
from gpuwhy.model.event import Frame
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.host import Gpus, Torch

NO_IMAGE = says(
    "no-kernel-image",
    (
        "no kernel image is available",
        "cudaerrornokernelimagefordevice",
        "cuda_error_no_binary_for_gpu",
        "cuda error 209",
        "cuda failure 209",
        "error code 209",
        "error code: 209",
    ),
    r"^(?!.{0,300}\bhip ?error)(?:.*?)(?:no kernel image is available|(?<!Search for .)cudaErrorNoKernelImageForDevice"
    r"|CUDA_ERROR_NO_BINARY_FOR_GPU|CUDA (?:error|failure):? \(?209\b|error code:? 209\b)",
)
NO_FUNCTION = says(
    "no-device-function",
    (
        "invalid device function",
        "cudaerrorinvaliddevicefunction",
        "named symbol not found",
        "cuda_error_invalid_source",
        "device kernel image is invalid",
    ),
    r"^(?!.{0,300}\bhip ?error)(?:.*?)(?:invalid device function|(?<!Search for .)cudaErrorInvalidDeviceFunction"
    r"|named symbol not found|CUDA_ERROR_INVALID_SOURCE|device kernel image is invalid)",
)
NO_DEVICE_CODE = says(
    "ggml-no-device-code",
    ("has no device code compatible with", "was not compiled with any cuda arch", "ggml-cuda.cu was compiled for"),
    r"has no device code compatible with CUDA arch (?P<arch>\d{3,4})(?:.{0,80}?compiled for:? ?(?P<built>\d{3,4}(?:,\d{3,4})*))?"
    r"|was not compiled with any CUDA arch <= (?P<arch2>\d{3,4})",
)
__all__ = ["NO_DEVICE_CODE", "NO_FUNCTION", "NO_IMAGE", "SIGNS", "TORCH_WARNED", "MissingImage", "read_missing_image"]
SIGNS: tuple[Sign, ...] = (NO_IMAGE, NO_FUNCTION, NO_DEVICE_CODE)

PURE_PYTHON = frozenset(
    [
        "transformers", "diffusers", "accelerate", "peft", "trl", "datasets", "sentence-transformers", "comfyui",
        "tokenizers", "safetensors", "optimum", "unsloth", "unsloth-zoo", "lmms-eval", "huggingface-hub", "ray",
        "verl", "nemo", "megatron", "torchao", "compressed-tensors", "llm-compressor",
    ]
)  # fmt: skip
"""Packages without kernels of their own: what fails in their frames is an operation of torch."""
WITHOUT_TORCH = components.BUILDS_OF_LLAMA | {
    "ctranslate2", "onnxruntime", "tensorrt", "tvm", "mlc-llm", "tensorflow", "jax", "cupy", "numba", "faiss", "paddle",
}  # fmt: skip
"""Programs and libraries that start their kernels without torch."""
_NATIVE_PARTS = {"faster-whisper": "ctranslate2", "whisperx": "ctranslate2"}
"""Python packages whose kernels are those of another one, whose frames no traceback shows."""
_OPERATION = lazy_pattern(r"\btorch\.ops\.(?P<space>\w+)|\b(?P<module>[a-z]\w{2,40})\.\w+\(")
_SPACES = {
    "_c": "vllm",
    "_moe_c": "vllm",
    "_c_cache_ops": "vllm",
    "_c_custom_ar": "vllm",
    "_rocm_c": "vllm",
    "_vllm_fa2_c": "vllm",
    "_vllm_fa3_c": "vllm",
}
_TORCH_CALL = lazy_pattern(r"\btorch\.(?!ops\b)\w+(?:\.\w+)*\(|\.(?:to|cuda|float|half|bfloat16|zero_|fill_)\(")
_PASSING = lazy_pattern(
    r"torch/(?:_ops|_library|utils/_contextlib|nn/modules/module|autograd/function|_dynamo|_inductor|compiler|fx|jit/_script)"
)
_JIT_PATH = lazy_pattern(
    r"/flashinfer/(?:\d[\w.+]{0,30}/)?(?P<targets>\d{2,3}[af]?(?:_\d{2,3}[af]?){0,9})/(?:cached_ops|generated)/"
    r"|/(?P<torch>torch_extensions)/|(?P<triton>Triton Error \[CUDA\])|/\.triton/cache/|/tvm-ffi/|/\.cache/sglang/jit"
)


class MissingImage(msgspec.Struct, frozen=True):
    """A failed launch. ``component`` whose kernel it was; ``is_named``: a frame, path or operation of the failure says so.

    ``built_for``: the targets of the component's binary, when somebody looked. ``has_code``: whether one of them runs
    on the GPU. ``jit_targets``: not None when the kernel was compiled on this machine: the targets, as far as the
    path tells. ``torch``: whether torch itself runs on this GPU. ``contrast``: an experiment in which something else
    of the same installation worked.
    """

    match: Match
    component: str | None
    is_named: bool
    capability: str | None
    is_mixed: bool
    built_for: tuple[str, ...] | None
    built_evidence: Evidence | None
    has_code: bool | None
    jit_targets: tuple[str, ...] | None
    torch: Answer
    torch_warning: Match | None
    contrast: Evidence | None

    @property
    def is_plain(self) -> bool:
        """The wording has no other meaning than that the code is missing."""
        return self.match.sign != NO_FUNCTION.name

    @property
    def is_owner_sure(self) -> bool:
        """Whether the binary that was looked at is the one that failed: the failure names it, or a person chose it.

        A diagnosis that reads binaries by itself also reads those of which only lines nearby speak.
        """
        told = self.built_evidence
        is_read_here = told is not None and told.place is not None and told.place.source == "binary"
        return self.is_named or not is_read_here or self.component in WITHOUT_TORCH

    @property
    def is_torch_own(self) -> bool:
        return self.is_named and self.component == "torch"


def read_missing_image(case: Case, gpus: Gpus | Unknown, torch: Torch | Unknown) -> MissingImage | None:
    """The failed launch of the case, None when no wording of it is here."""
    match = case.found(NO_DEVICE_CODE.name, NO_IMAGE.name, NO_FUNCTION.name)
    if match is None:
        return None
    capability = gpus.capability if isinstance(gpus, Gpus) else None
    component, is_named = _owner(case, match)
    component = _NATIVE_PARTS.get(component or "", component)
    if component is None:
        component = _only_examined(case)
    built = _binary(case, component, capability)
    targets = None if built is None else tuple(str(item) for item in built.value or ())
    return MissingImage(
        match=match,
        component=component,
        is_named=is_named,
        capability=capability or _ggml_capability(match),
        is_mixed=isinstance(gpus, Gpus) and len(gpus.capabilities) > 1,
        built_for=targets,
        built_evidence=None if built is None else built.evidence,
        has_code=None if targets is None or capability is None else any_runs(targets, capability),
        jit_targets=_jit_targets(case, match),
        torch=_torch_runs_here(case, torch, capability),
        torch_warning=_torch_warning(case, gpus),
        contrast=_contrast(case),
    )


def any_runs(targets: Iterable[str], capability: str) -> bool | None:
    """Whether code for one of these targets runs on a GPU; ``sm_80 PTX only`` and ``compute_80`` are PTX."""
    answers = []
    for target in targets:
        name = target.split()[0] if target.split() else ""
        if "ptx only" in target.lower():
            name = name.replace("sm_", "compute_")
        answers.append(capabilities.runs_on(name, capability, has_ptx="+ptx" in target.lower()).value)
    return True if any(answers) else (None if None in answers else False)


def _torch_runs_here(case: Case, torch: Torch | Unknown, capability: str | None) -> Answer:
    """Whether torch runs on the GPU; its libraries count where torch was not asked for its list itself."""
    examined = _binary(case, "torch", capability)
    if examined is None or capability is None or (isinstance(torch, Torch) and torch.arch_list):
        return torch_runs(torch, capability)
    targets = [str(item) for item in examined.value or ()]
    said = f"the libraries of this torch hold {' '.join(targets)}"
    return Answer(any_runs(targets, capability), said, "observed: the targets in torch's libraries")


def torch_runs(torch: Torch | Unknown, capability: str | None) -> Answer:
    """Whether the installed torch runs on the GPU: by its own list of targets, else by what its wheels hold."""
    if not isinstance(torch, Torch) or capability is None:
        return unknown("torch or the GPU was not examined")
    if torch.arch_list:
        runs = any_runs(torch.arch_list, capability)
        listed = " ".join(torch.arch_list)
        return Answer(runs, f"this torch was built for {listed}", "observed: torch.cuda.get_arch_list()")
    if torch.version is None:
        return unknown("the version of torch is not known")
    return torch_builds.supports(torch.version, torch.cuda, capability)


def _owner(case: Case, match: Match) -> tuple[str | None, bool]:
    """Whose kernel failed, and whether the failure itself says so (not only something in its neighbourhood)."""
    if match.sign == NO_DEVICE_CODE.name:
        return case.component_near(match, "llama.cpp"), True
    named = first_component([(match.text, False)]) or in_other_words(match.text)
    if named is not None:
        return (case.component_near(match, named) if named == "llama.cpp" else named), named != "llama.cpp"
    for frame in reversed(match.frames):
        component = _of_frame(frame)
        if component is not None:
            return component, True
    near = case.component_near(match)
    if near in PURE_PYTHON:
        return "torch", False
    return near or _engine_component(case), False


_SPEAKING_OPERATIONS = (
    ("sglang", lazy_pattern(r"\bSGLang\b|TRTLLM M[LH]A backend|FlashAttention v[34] Backend", re.I)),
    ("vllm", lazy_pattern(r"GPUs with compute capability (?:less than|below) \d\.\d are not supported|VLLM_USE_V1|\bvLLM\b|\bcutlass_scaled_(?:fp4_)?mm|\bcutlass_(?:fp4_|fp8_)?(?:moe|group)_?(?:mm|gemm)|\bget_cutlass_moe_mm|scaled_fp4_(?:quant|experts_quant)|nvfp4 quantization|rowwise_scaled_linear_cutlass", re.I)),
    ("sgl-kernel", lazy_pattern(r"\b(?:fp8_blockwise|fp8|int8|es_fp8_blockwise|mxfp8_blockscaled)_scaled_(?:grouped_)?mm\b|\bfp8_blockwise_scaled_grouped_mm|sgl_kernel", re.I)),
    ("flashinfer", lazy_pattern(r"\b(?:mm_fp4|bmm_fp8|bmm_mxfp8|mm_mxfp8|gemm_fp8_nt_groupwise|group_gemm_fp8|group_gemm_mxfp4|trtllm_(?:fp4|fp8|bf16|mxint4)_\w*moe|trtllm_batch_(?:decode|context)|cutlass_fused_moe|TllmGen\w+|tinygemm|tgv_gemm|xqa|nvfp4_quantize|fp4_quantize|mxfp8_quantize|cudnn_batch_prefill)\w*", re.I)),
    ("flash-attn", lazy_pattern(r"flash[ _-]?attention|flash[_-]attn|\bFA[234]\b", re.I)),
    ("flashmla", lazy_pattern(r"flash[_ -]?mla", re.I)),
    ("deepgemm", lazy_pattern(r"deep[_ -]?gemm|Unknown SF transformation|DG_HOST", re.I)),
    ("deepep", lazy_pattern(r"deep[_-]?ep\b", re.I)),
    ("transformer-engine", lazy_pattern(r"transformer[ _-]?engine|required for (?:FP8|MXFP8|NVFP4) (?:execution|block)|\bNVTE\b", re.I)),
    ("torch", lazy_pattern(r"\btorch\._scaled_(?:grouped_)?mm|\bPyTorch\b|\bat::native::", re.I)),
    ("onnxruntime", lazy_pattern(r"onnxruntime", re.I)),
    ("bitsandbytes", lazy_pattern(r"bitsandbytes|CUDA exception! Error code|/csrc/ops\.cu", re.I)),
    ("tensorflow", lazy_pattern(r"tensorflow", re.I)),
    ("ctranslate2", lazy_pattern(r"CUDA failed with error|ctranslate2", re.I)),
    ("text-embeddings-inference", lazy_pattern(r"compile time compute cap|^cuda compute cap \d|text[-_]embeddings[-_]", re.I)),
    ("lmdeploy", lazy_pattern(r"\bturbomind\b|\[TM\]\[(?:ERROR|FATAL)\]", re.I)),
    ("paddle", lazy_pattern(r"\bpaddle", re.I)),
    ("tensorrt-llm", lazy_pattern(r"TensorRT[-_ ]?LLM|\bTRT[-_]?LLM|tensorrt_llm", re.I)),
    ("tensorrt", lazy_pattern(r"TensorRT|\[TRT\]|engine plan file", re.I)),
    ("sageattention", lazy_pattern(r"sage[_ ]?attn|sage[_ ]?attention", re.I)),
    ("llama.cpp", lazy_pattern(r"\bggml", re.I)),
)  # fmt: skip
"""Operations and words by which libraries give themselves away in messages without a path."""


def in_other_words(text: str) -> str | None:
    """The library whose operation or way of speaking a message shows."""
    for component, pattern in _SPEAKING_OPERATIONS:
        if pattern.search(text[:2000]):
            return component
    return None


def _of_frame(frame: Frame) -> str | None:
    """The component whose kernel a frame calls; None when the frame only passes the call on."""
    for found in _OPERATION.finditer(frame.code or ""):
        space = (found["space"] or found["module"]).lower()
        component = _SPACES.get(space) or components.canonical(space)
        if component is not None and component not in PURE_PYTHON and component != "torch":
            return component
    if "/vllm/vllm_flash_attn/" in frame.path:
        return "vllm"  # a copy inside vLLM's own wheel
    component = components.component_of_module(frame.path)
    if component is None or component in ("python", "cuda-toolkit", "driver"):
        return None
    if component == "torch":
        return None if _PASSING.search(frame.path) else "torch"
    if component in PURE_PYTHON or _TORCH_CALL.search(frame.code or ""):
        return "torch"
    return "sgl-kernel" if "sgl_kernel" in (frame.code or "") else component


_ENGINES_WITH_KERNELS = {"vllm": "vllm", "sglang": "sgl-kernel", "lmdeploy": "lmdeploy", "ollama": "ollama",
                         "llama.cpp": "llama.cpp", "tensorrt-llm": "tensorrt-llm"}  # fmt: skip


def _engine_component(case: Case) -> str | None:
    return _ENGINES_WITH_KERNELS.get(case.engine)


def _only_examined(case: Case) -> str | None:
    """The one library whose binary or version was looked at; people look at the one that they suspect."""
    for prefix in ("binary_archs", "packages"):
        names = {component_of_binary(name) for name in case.facts.group(prefix)} - {"torch", "triton", *PURE_PYTHON}
        if len(names) == 1:
            return names.pop()
    return None


def _binary(case: Case, component: str | None, capability: str | None) -> Fact | None:
    """What the component's binary holds. Of several that differ in whether they have the GPU, none decides."""
    known = binaries_of(case, component)
    own = list(known.values())
    whole = known.get(component or "")
    if whole is not None or len(own) < 2 or capability is None:
        return whole or next(iter(own), None)
    answers = {any_runs(map(str, fact.value), capability) for fact in own}
    return own[0] if len(answers) == 1 else None


def _ggml_capability(match: Match) -> str | None:
    """``1200`` and ``610`` as ggml writes 12.0 and 6.1."""
    arch = match.group("arch") or match.group("arch2")
    return f"{arch[:-2]}.{arch[-2]}" if arch else None


def _jit_targets(case: Case, match: Match) -> tuple[str, ...] | None:
    texts = [match.text, *(frame.path for frame in match.frames)]
    texts += [line.text[:2000] for line in case.lines_around(match, 2, 4)]
    for text in texts:
        found = _JIT_PATH.search(text)
        if found is not None:
            return tuple((found["targets"] or "").split("_")) if found["targets"] else ()
    listed = case.facts.value("jit_targets")
    return tuple(map(str, listed)) if isinstance(listed, (list, tuple)) and listed else None


def _torch_warning(case: Case, gpus: Gpus | Unknown) -> Match | None:
    """Torch's own warning about the GPU, when the judging cause declares it and it is not a harmless one."""
    warning = read_torch_warning(case, gpus)
    return None if warning is None or warning.is_harmless else warning.match


def _contrast(case: Case) -> Evidence | None:
    """An experiment that worked on the same card with the same installation."""
    for fact in case.facts.group("tests").values():
        if re.match(r"(?:it )?(?:works|ok|fine|passes|runs)\b", str(fact.value), re.IGNORECASE):
            return fact.evidence
    return None
