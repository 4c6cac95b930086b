"""What to do when a library refuses a GPU: another backend, a release that knows it, or another GPU."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes.architecture._extension_remedies import package_of
from gpuwhy.model.remedy import NotARemedy, Remedy

_OTHER_BACKEND = "Use a backend that has kernels for this GPU"
_RULES: tuple[tuple[re.Pattern[str], tuple[tuple[str, str, str, str], ...]], ...] = (
    (
        lazy_pattern(r"contextFusedMultiHeadAttention|context_fmha|fmhaRunner\.cpp", re.I),
        (("flag", "--enable_context_fmha", "remove", "Build the engine without fused context attention"),),
    ),
    (
        lazy_pattern(r"attention backend|AttentionBackendEnum", re.I),
        (("flag", "--attention-backend", "flashinfer or triton", _OTHER_BACKEND),),
    ),
    (
        lazy_pattern(r"kv[-_ ]?cache", re.I),
        (("flag", "--kv-cache-dtype", "auto", "Keep the KV cache in the model's own format"),),
    ),
    (
        lazy_pattern(r"deep[_-]?gemm|Unknown SF transformation", re.I),
        (("env", "{deepgemm}", "0", "Switch DeepGEMM off; the engine has other block-FP8 kernels"),),
    ),
    (
        lazy_pattern(r"mm_fp4|fp4[_ ]gemm|scaled_fp4_mm|nvfp4.{0,20}gemm", re.I),
        (("config", "FP4 GEMM backend", "cutlass or cudnn", "Select an FP4 GEMM backend that has code for this GPU"),),
    ),
    (
        lazy_pattern(r"moe|major versions", re.I),
        (("config", "MoE backend", "flashinfer cutlass or marlin", "Select a MoE backend that has code for this GPU"),),
    ),
    (
        lazy_pattern(r"VLLM_USE_V1", re.I),
        (("env", "VLLM_USE_V1", "0", "Use the older engine, as far as this release still has it"),),
    ),
    (
        lazy_pattern(r"sage[-_ ]?attn|attention_sage|sageattention", re.I),
        (("flag", "--use-sage-attention", "remove", "Start without SageAttention: another attention is used then"),),
    ),
    (
        lazy_pattern(r"fmha|attention|attn|\bmla\b|\bmha\b|FlashMLA|\bFA[234]\b", re.I),
        (("flag", "--attention-backend", "flashinfer or triton", _OTHER_BACKEND),),
    ),
    (
        lazy_pattern(r"scaled_mm|gemm|linear", re.I),
        (("config", "GEMM backend", "triton or cutlass", _OTHER_BACKEND),),
    ),
)  # fmt: skip


def for_refusal(case: Case, match: Match, component: str | None, accepted: str = "") -> tuple[Remedy, ...]:
    """``accepted`` says in words what the library accepts (``compute capability >= 8.0``)."""
    frames = " ".join(f"{frame.function} {frame.path.rpartition('/')[2]} {frame.code}" for frame in match.frames[-8:])
    remedies = list(_switches(case, match.text[:2000]) or _switches(case, frames))
    remedies += _releases(
        case, component, is_engine_too=component in ("flashinfer", "deepgemm", "flash-attn", "sgl-kernel")
    )
    remedies.append(
        Remedy(
            kind="hardware",
            name="gpu",
            value=accepted or "one that the library supports",
            summary=f"Run it on a GPU with {accepted}" if accepted else "Run it on a GPU that the library supports",
            risk="high",
        )
    )
    return tuple(remedies)


def _switches(case: Case, text: str) -> tuple[Remedy, ...]:
    if _DEEPEP.search(text):
        return (_WITHOUT_DEEPEP_SGLANG if case.engine == "sglang" else _WITHOUT_DEEPEP,)
    for pattern, rows in _RULES:
        if pattern.search(text):
            return tuple(
                Remedy(kind=kind, name=_named(case, name), value=_valued(case, name, value), summary=summary)
                for kind, name, value, summary in rows
            )
    return ()


_DEEPEP = lazy_pattern(r"deep[_-]?ep\b", re.IGNORECASE)
_WITHOUT_DEEPEP_SGLANG = Remedy(kind="flag", name="--moe-a2a-backend", value="none", summary="Exchange tokens between experts without DeepEP (older releases: leave out --enable-deepep-moe)")  # fmt: skip
_WITHOUT_DEEPEP = Remedy(kind="env", name="VLLM_ALL2ALL_BACKEND", value="allgather_reducescatter", summary="vLLM: exchange tokens between experts without DeepEP (newer releases: --all2all-backend)")  # fmt: skip
_TGI = "text-generation-inference"


def _valued(case: Case, name: str, value: str) -> str:
    """text-generation-inference has an attention of its own for GPUs without flash attention."""
    return "paged" if name == "--attention-backend" and case.engine == _TGI else value


def _named(case: Case, name: str) -> str:
    if name == "--attention-backend" and case.engine == _TGI:
        return "--attention"
    if name == "{deepgemm}":
        return "SGLANG_ENABLE_JIT_DEEPGEMM" if case.engine == "sglang" else "VLLM_USE_DEEP_GEMM"
    return name


def _releases(case: Case, component: str | None, *, is_engine_too: bool) -> list[Remedy]:
    names = [component] if component and component not in ("torch", "deepgemm") else []
    engine = case.engine if case.engine in ("vllm", "sglang", "tensorrt-llm", "lmdeploy") else ""
    if is_engine_too:
        names += [engine or ("vllm" if component == "deepgemm" else "sglang")]
    return [
        Remedy(
            kind="package",
            name=package_of(name),
            value="newer",
            summary=f"A newer {name} may have an implementation, or choose another one by itself, for this GPU",
            is_sure=False,
            rank=rank,
        )
        for rank, name in enumerate(dict.fromkeys(names))
    ]


IN_VAIN = (
    NotARemedy("another CUDA toolkit, driver or torch", "the library itself has no code for this GPU or refuses it"),
    NotARemedy(
        "an architecture list (TORCH_CUDA_ARCH_LIST, FLASHINFER_CUDA_ARCH_LIST)",
        "the refusal comes before any compilation",
    ),
    NotARemedy("--enforce-eager, a shorter context, a lower memory fraction", "the kernel is refused all the same"),
)
