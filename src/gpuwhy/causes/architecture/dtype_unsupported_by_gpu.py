"""dtype-unsupported-by-gpu: the requested number format has no hardware support on this GPU."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, derived
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.architecture import _missing_image as images
from gpuwhy.causes.architecture import _stated_limit as limits
from gpuwhy.causes.architecture._host_evidence import of_gpus
from gpuwhy.knowledge import dtypes
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, RuledOut, Verdict
from gpuwhy.model.host import Gpus
from gpuwhy.model.remedy import NotARemedy, Remedy

_TRITON = says(
    "triton-type",
    ("not supported in this architecture", "data type is not supported on cuda arch", "conversion from/to f8"),
    r"type (?P<dtype>fp8e4nv|fp8e5|fp8e4b15|bf16) not supported in this architecture"
    r"|(?P<dtype2>fp8e4nv|fp8e5|bf16) data type is not supported on CUDA arch"
    r"|Conversion from/to (?P<dtype3>f8e4m3nv|f8e4m3fn|f8e5m2) is only supported on compute capability",
)
_SCALED_MM = says(
    "torch-scaled-mm", "_scaled_mm is only supported", r"(?:torch\._)?_?scaled_mm is only supported on CUDA devices"
)
_ASSEMBLER = says(
    "assembler-feature",
    "requires .target",
    r"Feature '(?P<feature>[^']{2,80})' requires \.target '?(?P<target>sm_\d{2,3})",
)
_WORDS = says(
    "device-without-format",
    ("bf16", "bfloat16", "fp8", "fp4", "float8", "cuda_r_16bf"),
    r"CUBLAS_STATUS_NOT_SUPPORTED[^\n]{0,300}CUDA_R_16(?P<dtype6>BF)|"
    r"\b(?P<dtype>bf16|bfloat16|fp8|float8|nvfp4|mxfp8|fp4)\b[^.\n]{0,60}\b(?:not (?:natively )?supported|unsupported|isn't supported)\b[^.\n]{0,40}\b(?:device|GPU|hardware|card)"
    r"|\b(?:device|GPU|hardware|setup|platform|card)\b[^.\n]{0,40}\b(?:does(?: not|n't)|cannot|do not|don't) (?:\w+ )?support (?:for )?(?P<dtype2>bf16|bfloat16|fp8|float8|nvfp4|mxfp8|fp4)\b"
    r"|\b(?P<dtype5>bf16|bfloat16|fp8|float8|nvfp4|mxfp8|fp4)\b[^.\n]{0,40}\brequires? (?:a )?(?:hardware|GPUs?|devices?) with \w{2,12} support"
    r"|\bno (?:hardware|HW|native) (?P<dtype3>bf16|fp8|fp4) support"
    r"|(?P<dtype4>bf16) is only supported on A100\+? GPUs",
)  # fmt: skip
_COMPUTE_TYPE = says(
    "compute-type",
    "compute type, but the target device",
    r"Requested (?P<dtype>\w{3,20}) compute type, but the target device or backend do(?:es)? not support efficient",
)
"""CTranslate2, which knows fast float16 from 7.0 on, and on the CPU no float16 at all."""
_KV_CACHE = lazy_pattern(r"kv[-_ ]?cache", re.IGNORECASE)
_FP8_CACHE_ASKED = lazy_pattern(
    r"(?:--kv-cache-dtype[= ]|[\"']?kv_cache_dtype[\"']?\s{0,2}[=:]\s{0,2})[\"']?(?:torch\.)?(?:fp8(?!_e5m2)|float8_e4m3)",
    re.IGNORECASE,
)
"""A command or the printed settings that ask for the cache in fp8."""
_ATTENTION = lazy_pattern(r"\bfmha\b|\battention\b", re.IGNORECASE)
_RAISED_BY_VLLM = lazy_pattern(r"Bfloat16 is only supported on GPUs with compute capability of at least", re.IGNORECASE)


@cause(
    "dtype-unsupported-by-gpu",
    family="Binary and architecture limits",
    signs=[_TRITON, _SCALED_MM, _ASSEMBLER, _COMPUTE_TYPE, _WORDS, *limits.SIGNS],
)
def dtype_unsupported_by_gpu(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """The requested number format (bf16, fp8 e4m3, fp4 ...) has no hardware support on this GPU.

    How it shows itself
      `Bfloat16 is only supported on GPUs with compute capability of at least 8.0`; Triton's `type fp8e4nv not supported
      in this architecture`; `torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9`;
      `Device compute capability 8.9 or higher required for FP8 execution`; from ptxas, `Feature '.bf16' requires
      .target sm_80 or higher`.

    Why it happens
      bf16 exists from 8.0 (A100, RTX 30) on, fp8 e4m3 and e5m2 from 8.9 (L4, L40, RTX 40, H100) on, block-scaled fp8
      and fp4 from 10.0 (Blackwell) on. The checkpoint, a default (`torch_dtype` in config.json is mostly bfloat16) or
      an option such as an fp8 KV cache asks for one that the GPU does not have. `fp8e4nv` is Triton's name of e4m3.

    How to be sure
      Compare the compute capability (`nvidia-smi --query-gpu=name,compute_cap --format=csv`) with the number in the
      message. On a host with several kinds of GPUs look which one the process was given.

    What helps
      bf16: --dtype half. fp8: a checkpoint in BF16, INT8 or AWQ, or an engine that keeps fp8 weights and computes in
      16 bits (the Marlin kernels of vLLM, from 8.0 on). fp8 KV cache: --kv-cache-dtype auto. fp4: an fp8 or int4
      checkpoint. Else a GPU that has the format.

    What does not help
      A newer Triton, torch, toolkit or driver; an architecture list; building from source. A model trained in bf16 can
      overflow in half: if it answers nonsense, float32 or another model is needed.

    Not to be confused with
      quantization-unsupported (`quantization method gptq_marlin ... Minimum capability: 80`: the kernels of a scheme),
      arch-unsupported-by-library (the GPU has the format, one kernel does not), gpu-too-old.
    """
    match = _named(case)
    if match is not None:
        return _judge(case, match, _format(match), gpus, None)
    limit = limits.read_stated_limit(case, gpus)
    if limit is None or limit.kind != "dtype":
        return None
    return _judge(case, limit.match, limit.dtype, gpus, limit)


def _named(case: Case) -> Match | None:
    """The first message of a wording of its own that is about a number format, and is not a remark in passing."""
    for match in case.all(_TRITON.name, _SCALED_MM.name, _ASSEMBLER.name, _COMPUTE_TYPE.name, _WORDS.name):
        if match.sign == _ASSEMBLER.name and not limits.names_number_format(match.group("feature") or ""):
            continue
        if match.sign == _WORDS.name and not _is_about_format(case, match):
            continue
        return match
    return None


def _is_about_format(case: Case, match: Match) -> bool:
    """Not a remark in passing, not the limit of a scheme's kernels, not an operator of an xformers that did not load."""
    is_unloaded = any("wasn't build with" in line.text for line in case.lines_around(match, 30, 30))
    return not (limits.is_remark(match) or limits.is_about_scheme(match) or is_unloaded)


def _format(match: Match) -> str:
    groups = [match.group(name) for name in ("dtype", "dtype2", "dtype3", "dtype4", "dtype5")]
    named = next((group for group in groups if group), None)
    if match.sign == _WORDS.name and match.group("dtype6"):
        return "bf16"
    if named is None:
        named = limits.number_format_in(match.group("feature") or match.text) or "fp8"
    if match.sign == _COMPUTE_TYPE.name:  # float16 itself is older; what makes it efficient came with the tensor cores
        return "bf16" if "bfloat16" in named else "fp16-tensor-core"
    return named.lower().replace("f8e4m3nv", "e4m3").replace("f8e4m3fn", "e4m3").replace("f8e5m2", "e5m2")


def _judge(
    case: Case, match: Match, dtype: str | None, gpus: Gpus | Unknown, limit: limits.StatedLimit | None
) -> Judgement:
    dtype = dtype or "fp8"
    capability = limit.own if limit is not None else None
    capability = capability or (gpus.capability if isinstance(gpus, Gpus) else None)
    quoted = case.evidence(match, "the number format that is refused")
    support = dtypes.supports(dtype, capability) if capability else None
    if support is not None and support.value is True:
        return RuledOut(f"the GPU has this format: {support.why}", (quoted,))
    minimum = dtypes.minimum_capability(dtype) or (limit.minimum if limit is not None else None)
    lacks = derived(support.why, support.provenance) if support is not None and support.value is False else None
    component = _component(case, match, limit)
    missing = case.missing("cc", f"whether the GPU has {dtype}") if capability is None else None
    certainty = _certainty(match, limit, is_known=lacks is not None)
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{_spoken(dtype)} needs compute capability {minimum or 'of a newer GPU'}"
        + (f"; the GPU has {capability}" if capability else ""),
        chain=(
            Link(f"The GPU has no hardware for {_spoken(dtype)}", lacks or quoted),
            Link(f"{component or 'The program'} is asked for it and refuses", quoted),
        ),
        evidence=(quoted, *((lacks,) if lacks else ()), *of_gpus(gpus, quoted)),
        explains=case.explains(match),
        missing=(missing,) if missing else (),
        rivals=() if certainty is Certainty.PROVEN else ("arch-unsupported-by-library", "quantization-unsupported"),
        remedies=_remedies(case, match, dtype, component, minimum),
        not_remedies=_IN_VAIN,
        strength=80,
    )


def _certainty(match: Match, limit: limits.StatedLimit | None, *, is_known: bool) -> Certainty:
    is_said = match.sign in (_TRITON.name, _SCALED_MM.name) or (limit is not None and limit.is_raised)
    if is_known and (is_said or match.event is not None):
        return Certainty.PROVEN
    if is_said or (match.event is not None and match.event.kind != "warning"):
        return Certainty.LIKELY
    return Certainty.POSSIBLE


def _component(case: Case, match: Match, limit: limits.StatedLimit | None) -> str | None:
    if match.sign == _TRITON.name:
        return "triton"
    if match.sign == _SCALED_MM.name:
        return "torch"
    if match.sign == _COMPUTE_TYPE.name:
        return "ctranslate2"
    if match.sign == _ASSEMBLER.name:
        return case.component_near(match, "triton")
    if _RAISED_BY_VLLM.search(match.text):
        return "vllm"
    if limit is not None and limit.component is not None:
        return limit.component
    return images.in_other_words(match.text) or case.component_near(match, case.engine or "torch")


def _spoken(dtype: str) -> str:
    known = dtypes.number_format(dtype)
    return dtype if known is None or known.name.replace("-", "") == dtype.lower() else f"{dtype} ({known.name})"


def _remedies(case: Case, match: Match, dtype: str, component: str | None, minimum: str | None) -> tuple[Remedy, ...]:
    known = dtypes.number_format(dtype)
    family = known.name if known is not None else "fp8-e4m3"
    remedies: list[Remedy] = []
    if match.sign == _COMPUTE_TYPE.name:
        return (
            Remedy(kind="flag", name="--compute_type", value="int8", summary="Compute in int8 (CTranslate2: compute_type=\"int8\"), which every GPU and CPU has"),
            Remedy(kind="flag", name="--compute_type", value="float32", summary="Or in float32 (compute_type=\"float32\"; more memory)", rank=1),
        )  # fmt: skip
    if family == "bf16":
        remedies += _half(case, component)
    elif _KV_CACHE.search(match.text) or (family.startswith("fp8") and _asks_for_fp8_cache(case)):
        remedies.append(
            Remedy(
                kind="flag",
                name="--kv-cache-dtype",
                value="auto",
                summary="Keep the KV cache in the model's own format",
            )
        )
    elif family.startswith("fp8") and component == "transformer-engine":
        remedies.append(
            Remedy(
                kind="config",
                name="fp8",
                value="off",
                summary="Compute in bf16: fp8_autocast(enabled=False), without the program's --fp8 options",
            )
        )
    elif family.startswith("fp8") and component == "tensorrt-llm" and _ATTENTION.search(match.text):
        remedies.append(
            Remedy(
                kind="flag",
                name="--use_fp8_context_fmha",
                value="disable",
                summary="Build the engine without attention in fp8 (trtllm-build --use_fp8_context_fmha disable)",
            )
        )
    elif family.startswith("fp8"):
        remedies.append(
            Remedy(
                kind="package",
                name="vllm",
                value="newer"
                if case.engine == "vllm"
                else "instead: its Marlin kernels keep fp8 weights and compute in 16 bits",
                summary="Use a vLLM whose Marlin path serves fp8 weights on GPUs from 8.0 on",
                is_sure=False,
            )
        )
    if family != "bf16":
        other = "BF16, INT8 or AWQ" if family.startswith("fp8") else "FP8, INT4 or BF16"
        remedies.append(Remedy(kind="files", name="checkpoint", value=other, summary=f"Serve a checkpoint in {other}"))
    if minimum:
        remedies.append(
            Remedy(
                kind="hardware",
                name="gpu",
                value=f"compute capability >= {minimum}",
                summary=f"Run it on a GPU with compute capability {minimum} or higher",
                risk="high",
            )
        )
    return tuple(remedies)  # fmt: skip


def _asks_for_fp8_cache(case: Case) -> bool:
    """Whether the report shows that the cache was asked for in fp8; a kernel of it names the format and not the cache."""
    return any(_FP8_CACHE_ASKED.search(line.text[:4000]) for _, line in case.lines())


def _half(case: Case, component: str | None) -> list[Remedy]:
    limits_of_half = ("values above 65504 overflow: check the answers of models trained in bf16",)
    if component in ("transformers", "trl", "accelerate", "peft"):
        return [
            Remedy(kind="config", name="bf16", value="false", summary="Train or evaluate with bf16 off (TrainingArguments(bf16=False), --bf16 False)", limits=limits_of_half),
            Remedy(kind="flag", name="--fp16", value="True", summary="Use half precision instead", limits=limits_of_half),
        ]  # fmt: skip
    if case.engine in ("vllm", "sglang") or component in ("vllm", "sglang"):
        return [
            Remedy(
                kind="flag", name="--dtype", value="half", summary="Compute in half precision", limits=limits_of_half
            )
        ]
    return [
        Remedy(kind="flag", name="--dtype", value="float16", summary="Compute in half precision", limits=limits_of_half),
        Remedy(kind="config", name="dtype", value="float16", summary="Load the model with torch_dtype=float16 (bf16 off)", limits=limits_of_half),
    ]  # fmt: skip


_IN_VAIN = (
    NotARemedy("a newer Triton, torch, toolkit or driver", "the hardware does not have the format"),
    NotARemedy("an architecture list or a build from source", "there is no such instruction to compile to"),
)
