"""quantization-unsupported: the kernels of the quantisation cannot serve this GPU, or this model's shapes."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.configuration import _program as program
from gpuwhy.causes.distributed import _parallel
from gpuwhy.causes.distributed._parallel import Size
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Gpus
from gpuwhy.model.remedy import NotARemedy, Remedy

_CAPABILITY = says(
    "capability",
    ("is not supported for the current gpu", "scheme is not supported for", "current platform does not support", "requires capability", "device_capability =", "int8 matmul", "quantized models is only supported", "quantized models are only supported", "quantization is only supported", "quantization is not supported", "quantization requires", "not support nvfp4", "not support mxfp4", "not supported on this gpu", "kernel is not supported on", "kernels require", "kernels only support", "only supports compute capability", "not supported on current device", "quantization isn't supported", "quantization only supports", "is only supported on gpus with compute capability"),
    r"[Qq]uantization (?:method|scheme) ?(?P<scheme>[\w-]{2,40})? ?is not supported for the current GPU\.? *(?:Minimum|Min) capability: (?P<need>\d{1,3})\.? *(?:Current capability: (?P<have>\d{1,3}))?"
    r"|Quantization scheme is not supported for.{0,60}?Min capability: (?P<need4>\d{2,3}).{0,20}?Current capability: (?P<have4>\d{2,3})|Quantization scheme is not supported for"
    r"|[Cc]urrent platform does not support (?P<scheme2>\w{3,20}) quantization"
    r"|(?P<kernel>\w{2,40}(?:Linear)?Kernel) requires capability (?P<need2>\d{2,3}), (?:current compute {1,3})?capability is (?P<have2>\d{2,3})"
    r"|(?P<scheme3>Marlin|\w{0,20}Marlin) does not support .{0,160}?device_capability = (?P<have3>\d{2,3})"
    r"|[Gg][Pp][Uu] does (?:\*\*)?not(?:\*\*)? support Int8 Matmul"
    r"|(?P<scheme4>\w{2,30})[- ]quantized models? (?:is|are) only supported on GPUs? with compute capability ?>?=? ?(?P<need3>\d{1,2}\.\d)"
    r"|(?P<scheme5>AWQ|GPTQ|Marlin|Machete|EETQ|AQLM|HQQ|SqueezeLLM|QQQ|BitBLAS|NVFP4|MXFP4|bitsandbytes|FP6|W4A8|W8A8|INT8|gptq|awq|marlin|nvfp4|mxfp4|w8a8_int8|w8a8_fp8|smoothquant|SmoothQuant)\b[^.\n]{0,60}\b(?:kernels?|quantization|quantized|models?|method)?[^.\n]{0,40}\b(?:only support|only supports|is only supported|are only supported|requires?|require|not supported|is not supported|isn't supported)\b[^\n]{0,60}\b(?:compute capability|capability|sm_?\d{2}|GPUs?|devices?|Turing|Ampere|Ada|Hopper|Blackwell)",
)  # fmt: skip
_SHAPE = says(
    "shape",
    ("is not divisible by", "not divisible by", "not aligned with the quantized weight", "min_thread_", "must be divisible by", "must be a multiple of", "invalid thread config", "% (32 // self.w_bit)", "% self.group_size", "% group_size", "not a multiple of", "tile_n_size", "tile_k_size", "% qk_k", "failed to find a kernel that can implement", "no kernel can implement", "num_rows_bytes"),
    r"(?P<part>\d{1,9}) is not divisible by +(?:weight quantization )?(?:min_thread_[nk]|tile_[nk]_size|block_[nk]|group_?size|pack_factor) ?=? ?(?P<tile>\d{1,6})"
    r"|not aligned with the quantized weight shape|Invalid thread config"
    r"|assert .{0,60}% \(?(?:32 // self\.w_bit|self\.group_size|group_size)|(?:in|out)_?features .{0,60}(?:divisible by|multiple of) (?:the )?(?:group_?size|(?P<tile2>\d{2,6}))"
    r"|Failed to find a kernel that can implement the \w{2,40} linear layer|ne\w{0,3} % (?:QK|qk)|Number of bytes for rows and cols must be a multiple of"
    r"|(?P<part2>\d{1,9}) must be (?:divisible by|a multiple of) (?:the )?group_?size \(?(?P<tile3>\d{1,6})",
)  # fmt: skip
_FORMAT = says(
    "format",
    ("unknown quantization method", "invalid quantization method", "is not supported for quantization method", "not supported for quantization", "compatible scheme was found", "weight quantization is supported for", "does not support weight_bits", "unsupported quantization", "unsupported quant", "quantization config is not supported", "unknown quantization type", "unsupported fusedmoe scheme", "no moe backend", "moe backend supports", "quantization method", "does not support group size", "unsupported weight type", "group_size !=", "unsupported weight strategy", "no compressed-tensors", "'s quantization config", "not support quantization", "not a supported quantization", "quant_method", "quant method", "does not support quantization", "unsupported qtype", "can't be quantized", "only symmetric quantization", "asymmetric", "desc_act", "act_order", "is not supported with quantization", "quantization bits", "not support bitsandbytes", "not support gptq", "not support awq", "not support fp8 quantization", "not support gguf", "not supported by marlin", "unknown quant type", "quantization is not supported", "quantization is currently not supported", "only support gptq", "bits quantization"),
    r"(?:[Uu]nknown|[Ii]nvalid|[Uu]nsupported) (?:weight )?quant(?:i[sz]ation)?[ _]?(?:method|type|config|scheme|mode|algo)?[:=]? ?['\"`]?(?P<scheme>[\w.-]{1,59}\w)?"
    r"|torch\.(?P<dtype>\w{4,12}) is not supported for quantization method (?P<scheme2>[\w-]{2,40})\. Supported dtypes: \[(?P<dtypes>[\w., ]{0,80})\]?"
    r"|No compressed-tensors compatible scheme was found|[Cc]urrently,? only .{0,40}-bit weight quantization is supported for (?P<scheme3>[\w -]{2,30}?), but got (?P<bits>\d{1,2}) bits"
    r"|(?P<scheme4>\w{0,20}Marlin|GPTQ\w{0,12}|AWQ\w{0,12}) does not support (?:weight_bits|group_size)"
    r"|No (?P<scheme5>\w{2,12}) (?:\w{2,10} )?[Mm][Oo][Ee] backend supports|Unsupported FusedMoe scheme|[Uu]nsupported weight strategy"
    r"|(?P<scheme9>\w{3,20}|\d-?bit) quantization is (?:currently )?not (?:yet )?supported(?: yet)? (?:for|by|with|in) (?:AutoModel|this model|(?:fused )?MoE\b|\w{3,60}(?:ForCausalLM|ForConditionalGeneration|Model|MoE))|[Qq]uantization method (?P<scheme6>\w{2,30}) (?:is )?(?:currently )?not supported|(?P<scheme7>\w{2,30}) is not a supported quantization|does(?: not|n't) support (?P<scheme8>\w{2,20}) quantization"
    r"|Cannot find any of \[.{0,120}\] in the model's quantization config|(?:desc_act|act_order|asymmetric quantization|group_size).{0,80}(?:is|are) not (?:yet )?supported|[Oo]nly symmetric quantization is supported",
)  # fmt: skip

_PASSED = lazy_pattern(
    r"(?i)falling back|not fully optimized|can be slower|using fallback|fallback quantization|will (?:be )?(?:use|leverage|default)|we will default|\bINFO\b"
)
_SCHEME_WORDS = lazy_pattern(
    r"(?i)awq|gptq|marlin|quant|bitsandbytes|int4|int8|w4a|w8a|nvfp4|mxfp4|eetq|aqlm|hqq|machete|exllama|group_?size|min_thread|tile_[nk]|block_[nk]|min capability|w_bit"
)
_COMBINED = lazy_pattern(r"(?i)tensor parallelism|pipeline parallel|with TP|lora|speculative|cpu offload|enforce_eager")
_NUMBER_FORMAT = lazy_pattern(r"(?i)^(?:fp8|float8|bf16|bfloat16)$")


class Limit(msgspec.Struct, frozen=True):
    """What the kernels cannot do. ``kind``: ``capability``, ``shape`` or ``format``. ``need`` and ``have`` as ``"8.0"``."""

    match: Match
    kind: str
    certainty: Certainty
    strength: int
    scheme: str = ""
    need: str | None = None
    have: str | None = None
    part: int | None = None
    tile: int | None = None
    shown: tuple[Evidence, ...] = ()


@cause("quantization-unsupported", family="Model and configuration", signs=[_CAPABILITY, _SHAPE, _FORMAT])
def quantization_unsupported(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """The kernels of the quantisation method cannot serve this GPU, this model's shapes, or this kind of weights.

    How it shows itself
      `The quantization method awq is not supported for the current GPU. Minimum capability: 75. Current capability: 70`,
      `Quantization scheme is not supported for the current GPU`, `MarlinLinearKernel requires capability 80`, `Your GPU does not
      support Int8 Matmul`; `Weight input_size_per_partition = 10944 is not divisible by min_thread_k = 128` on ONE GPU; `Unknown
      quantization method`, `No compressed-tensors compatible scheme was found`, `torch.bfloat16 is not supported for
      quantization method awq`.

    Why it happens
      Each method has kernels of its own, written for some GPU generations, for blocks of a fixed size and for some widths.
      Marlin needs 8.0, AWQ's first kernels 7.5, Machete 9.0, NVFP4 Blackwell; a tile of 64 or 128 columns must divide the matrix.

    How to be sure
      The minimum in the message against `nvidia-smi --query-gpu=compute_cap --format=csv`. For a shape: whole dimension
      (share of a rank x parallel size) modulo the tile. If that leaves a rest, no parallel size helps.

    What helps
      Weights of another method (GPTQ instead of AWQ on 7.0), unquantised ones, `--quantization gptq` or `awq` in place of the
      Marlin kernels, `--dtype float16` where the method has no bfloat16, a release with the kernel, another GPU.

    What does not help
      Reducing a tensor-parallel size that is 1 already. A toolkit, an architecture list, more memory.

    Not to be confused with
      parallel-size-invalid (it divides at size 1), dtype-unsupported-by-gpu (the number format itself has no hardware),
      arch-unsupported-by-library, backend-combination-unsupported (a method together with tensor parallelism, LoRA ...).
    """
    limit = _limit(case, gpus)
    if limit is None or isinstance(limit, RuledOut):
        return limit
    who = program.program_of(case, limit.match)
    seen = case.evidence(limit.match, _statement(limit))
    missing = _missing(case, limit)
    return Verdict(
        certainty=limit.certainty,
        component=who,
        title=_title(limit, who),
        chain=(
            Link(f"The weights are quantised by {limit.scheme or 'a method'}{' that has kernels for some shapes, GPUs and kinds of weights only' if limit.kind != 'capability' else f', whose kernels need capability {limit.need}' if limit.need else ''}", limit.shown[0] if limit.shown else inferred("the method's own limits")),
            Link(_statement(limit), seen),
            Link("The check ends the start"),
        ),
        evidence=(seen, *limit.shown),
        explains=case.explains(limit.match),
        missing=(missing,) if missing is not None else (),
        rivals=_rivals(limit),
        remedies=_remedies(case, limit, who),
        not_remedies=_in_vain(limit),
        strength=limit.strength,
    )  # fmt: skip


def _limit(case: Case, gpus: Gpus | Unknown) -> Limit | RuledOut | None:
    for read in (_of_all_kernels, _of_gpu, _of_shape, _of_format):
        found = read(case, gpus)
        if found is not None:
            return found
    return None


def _in_order(case: Case, sign: str) -> list[Match]:
    matches = [m for m in case.all(sign) if not m.is_code and (program.in_event(m) or not _PASSED.search(m.text))]
    return sorted(matches, key=lambda m: (not program.in_event(m), m.line.number))


def _group(match: Match, kind: str) -> str | None:
    return next((value for name, value in match.groups.items() if name.rstrip("0123456789") == kind and value), None)


_NONE_IMPLEMENTS = lazy_pattern(r"Failed to find a kernel that can implement the (?P<scheme>\w{2,40}) linear layer")
_REASON_OF_SIZE = lazy_pattern(
    r"Weight \w{0,6}put_size(?:_per_partition)? = (?P<part>\d{1,9}) is not divisible by +min_thread_[nk] = (?P<tile>\d{1,6})"
)


_REASON_OF_GPU = lazy_pattern(
    r"Kernel requires capability (?P<need>\d{2,3}), (?:current compute {1,3})?capability is (?P<have>\d{2,3})"
)
_OTHER_REASON = lazy_pattern(r"Kernel (?:cannot implement|disabled)")


def _of_all_kernels(case: Case, gpus: Gpus | Unknown) -> Limit | RuledOut | None:
    """vLLM asks its kernels one after another, and prints why each refuses: the capability that one wants is no limit of the method."""
    del gpus
    for match in _in_order(case, _SHAPE.name):
        found = _NONE_IMPLEMENTS.search(match.text[:1600])
        if found is None:
            continue
        size = _parallel.tensor(case)
        reasons = (match.line, *case.lines_around(match, 0, 12))
        shape = next((reason for line in reasons if (reason := _REASON_OF_SIZE.search(line.text[:600]))), None)
        part, tile = (int(shape["part"]), int(shape["tile"])) if shape is not None else (None, None)
        wanted = [reason for line in reasons if (reason := _REASON_OF_GPU.search(line.text[:600])) is not None]
        if wanted and not any(_OTHER_REASON.search(line.text[:600]) for line in reasons):
            least = min(int(reason["need"]) for reason in wanted)
            return Limit(match, "capability", Certainty.LIKELY, 86, found["scheme"], _capability(str(least)), _capability(wanted[0]["have"]))  # fmt: skip
        limit = Limit(
            match, "shape" if shape else "format", Certainty.LIKELY, 84, found["scheme"], part=part, tile=tile
        )
        if shape is not None and size is not None and (size.at_least or size.value > 1):
            return _divided(case, limit, size)
        return limit
    return None


def _of_gpu(case: Case, gpus: Gpus | Unknown) -> Limit | RuledOut | None:
    for match in _in_order(case, _CAPABILITY.name):
        text = match.text[:1600]
        if not _SCHEME_WORDS.search(text) or match.line.level in ("info", "debug"):
            continue
        scheme = _group(match, "scheme") or _group(match, "kernel") or _scheme_in_use(case) or ""
        if (_NUMBER_FORMAT.match(scheme) and match.group("scheme") is None) or (
            match.group("scheme5") and _COMBINED.search(text)
        ):
            continue  # the format itself: dtype-unsupported-by-gpu; or two options: backend-combination-unsupported
        need, have = _capability(_group(match, "need")), _capability(_group(match, "have"))
        shown: list[Evidence] = []
        if isinstance(gpus, Gpus) and gpus.capability is not None and need is not None:
            if _as_number(gpus.capability) >= _as_number(need):
                return RuledOut(
                    f"the GPU has capability {gpus.capability}, and {need} is enough",
                    (case.evidence(match, "the limit"), *gpus.evidence[:1]),
                )
            have = have or gpus.capability
            shown.append(derived(f"{have} is below {need}", "the GPU's capability and the message"))
        is_both = need is not None and have is not None
        if is_both and have is not None and need is not None and _as_number(have) >= _as_number(need):
            continue
        certainty = (
            Certainty.PROVEN
            if is_both and program.in_event(match)
            else Certainty.LIKELY
            if program.in_event(match)
            else Certainty.POSSIBLE
        )
        return Limit(match, "capability", certainty, 88 if is_both else 72, scheme, need, have, shown=tuple(shown))
    return None


def _of_shape(case: Case, gpus: Gpus | Unknown) -> Limit | RuledOut | None:
    del gpus
    for match in _in_order(case, _SHAPE.name):
        if not program.in_event(match) and match.line.level not in ("error", "critical"):
            continue
        around = " ".join(f"{frame.path} {frame.function}" for frame in match.frames[-6:])
        if not (_SCHEME_WORDS.search(match.text[:1600]) or _SCHEME_WORDS.search(around)):
            continue
        part, tile = _group(match, "part"), _group(match, "tile")
        size = _parallel.tensor(case)
        limit = Limit(
            match,
            "shape",
            Certainty.POSSIBLE,
            50,
            _scheme_in_use(case) or "",
            part=int(part) if part else None,
            tile=int(tile) if tile else None,
        )
        return _divided(case, limit, size)
    return None


def _divided(case: Case, limit: Limit, size: Size | None) -> Limit | RuledOut | None:
    """Whether the whole dimension divides: then the parallel size is at fault, and not the model."""
    alone = size is not None and not size.at_least and size.value == 1
    shown = (size.evidence,) if size is not None and size.evidence is not None else ()
    if alone:
        return msgspec.structs.replace(
            limit,
            certainty=Certainty.PROVEN if limit.part and limit.tile else Certainty.LIKELY,
            strength=84,
            shown=shown,
        )
    if "Failed to find a kernel" in limit.match.text or "% (32" in limit.match.text:
        return msgspec.structs.replace(
            limit, certainty=Certainty.LIKELY if size is None or size.value == 1 else Certainty.POSSIBLE, strength=60
        )
    if size is None or size.at_least or limit.part is None or limit.tile is None:
        return limit
    whole = limit.part * size.value
    if whole % limit.tile:
        calculated = derived(
            f"{whole} = {limit.part} x {size.value} leaves a rest of {whole % limit.tile} by {limit.tile}", "arithmetic"
        )
        return msgspec.structs.replace(limit, certainty=Certainty.LIKELY, strength=80, shown=(calculated, *shown))
    return RuledOut(
        f"{whole} is a multiple of {limit.tile}: it divides at size 1",
        (case.evidence(limit.match, "the division"), *shown),
    )


def _of_format(case: Case, gpus: Gpus | Unknown) -> Limit | None:
    del gpus
    for match in _in_order(case, _FORMAT.name):
        text = match.text[:1600]
        if match.line.level in ("info", "debug") or _COMBINED.search(text) or re.search(r"(?i)kv[-_ ]?cache", text):
            continue
        if not program.in_event(match):
            continue
        scheme = _group(match, "scheme") or _scheme_in_use(case) or ""
        is_backend = match.group("scheme5") is not None
        return Limit(match, "format", Certainty.LIKELY, 56 if is_backend else 76, scheme)
    return None


_IN_USE = lazy_pattern(
    r"(?:--quantization|-q|quantization)['\"]?[= :]{1,3}['\"]?(?P<scheme>(?:awq|gptq|marlin|bitsandbytes|compressed|fp8|modelopt|mxfp4|nvfp4|squeezellm|aqlm|hqq|w8a8)[\w-]{0,30})"
)
_IN_NAME = lazy_pattern(r"(?i)[-_/](?P<scheme>awq|gptq|nvfp4|mxfp4|w8a8|w4a16|int4|int8|fp8)\b")


def _scheme_in_use(case: Case) -> str | None:
    for key in ("server_args.quantization", "model.quantization"):
        value = case.facts.value(key)
        if isinstance(value, str) and value:
            return value
    command = str(case.facts.value("command") or "")[:8000]
    found = _IN_USE.search(command) or _IN_NAME.search(command)
    return found["scheme"].lower() if found is not None else None


def _capability(text: str | None) -> str | None:
    """``75`` or ``7.5`` as ``7.5``."""
    if text is None:
        return None
    return text if "." in text else f"{text[:-1]}.{text[-1]}" if len(text) > 1 else text


def _as_number(capability: str) -> float:
    return float(capability) if re.fullmatch(r"\d{1,2}(?:\.\d)?", capability) else 0.0


def _statement(limit: Limit) -> str:
    if limit.kind == "capability":
        return (
            f"the kernels need capability {limit.need}, the GPU has {limit.have}"
            if limit.need and limit.have
            else "the kernels do not serve this GPU"
        )
    if limit.kind == "shape":
        return (
            f"{limit.part} is no multiple of the kernel's {limit.tile}"
            if limit.part and limit.tile
            else "a matrix has no shape that the kernel can take"
        )
    return "the engine has no kernel for weights quantised this way"


def _title(limit: Limit, who: str) -> str:
    named = f" {limit.scheme}" if limit.scheme else ""
    what = {"capability": "this GPU", "shape": "this model's shapes", "format": "these weights"}[limit.kind]
    return f"The quantisation method{named} in {who} cannot serve {what}"


def _missing(case: Case, limit: Limit) -> Missing | None:
    if limit.certainty is Certainty.PROVEN:
        return None
    if limit.kind == "shape":
        return case.missing(
            "command", "the parallel size: whether it divides at size 1", "tr '\\0' ' ' < /proc/PID/cmdline"
        )
    return (
        case.missing("cc", "the compute capability of the GPU")
        if limit.kind == "capability"
        else case.missing(
            "model.quantization", "how the weights are quantised", "grep -A20 quantization_config MODEL/config.json"
        )
    )


def _rivals(limit: Limit) -> tuple[str, ...]:
    if limit.certainty is Certainty.PROVEN:
        return ()
    return {
        "capability": ("dtype-unsupported-by-gpu", "arch-unsupported-by-library"),
        "shape": ("parallel-size-invalid",),
        "format": ("arch-unsupported-by-library", "bad-argument"),
    }[limit.kind]


def _remedies(case: Case, limit: Limit, who: str) -> tuple[Remedy, ...]:
    scheme = limit.scheme.lower()
    plain = "GPTQ or unquantised FP16" if "awq" in scheme else "AWQ, GPTQ (4 or 8 bit) or unquantised FP16"
    checkpoint = Remedy(
        kind="files",
        name="checkpoint",
        value=plain,
        summary=f"Take weights of another kind: {plain}",
        cost="another download; unquantised weights need more memory",
    )
    newer = Remedy(
        kind="package", name=who, value="newer", summary=f"A release of {who} with kernels for it", is_sure=False
    )
    if limit.kind == "capability":
        gpu = Remedy(
            kind="hardware",
            name="gpu",
            value=f"compute capability >= {limit.need}" if limit.need else "a generation that the method serves",
            summary="Or a GPU of a later generation",
        )
        slower = _plain_kernels(case, limit)
        return (*slower, checkpoint, gpu)
    if limit.kind == "shape":
        smaller = () if limit.tile is None or "min_thread_k" not in limit.match.text else (
            Remedy(kind="patch", name="GPTQ_MARLIN_MIN_THREAD_K", value=str(limit.tile // 2), summary=f"Where the kernel has a variant of it: lower the constant from {limit.tile} to {limit.tile // 2} in {who}", is_sure=False),
        )  # fmt: skip
        return (*_plain_kernels(case, limit), *(smaller or (newer,)), checkpoint)
    dtypes = limit.match.group("dtypes")
    if dtypes is not None:
        wanted = (
            "float16"
            if "float16" in dtypes.replace("bfloat16", "")
            else dtypes.split(",")[0].removeprefix("torch.").strip()
        )
        return (
            Remedy(
                kind="flag",
                name="--dtype",
                value=wanted,
                summary=f"Compute in a type that the method has: --dtype {wanted}",
            ),
            checkpoint,
        )
    own = (
        Remedy(
            kind="flag",
            name="--quantization",
            value="remove",
            summary="Leave --quantization out: the method is in the model's own config.json",
            is_sure=False,
        )
        if _IN_USE.search(str(case.facts.value("command") or "")[:8000])
        else None
    )
    if (
        "unknown" in limit.match.text[:400].lower()
    ):  # the weights are as published: a later release has the method's name
        newer = msgspec.structs.replace(newer, summary=f"A release of {who} that knows the method", is_sure=True)
    return (*((own,) if own else ()), newer, checkpoint)


def _plain_kernels(case: Case, limit: Limit) -> tuple[Remedy, ...]:
    """The method's older kernels, which have smaller blocks and need less of the GPU."""
    text = f"{limit.match.text} {limit.scheme}".lower()
    engine = program.engine_of(case, limit.match)
    if ("marlin" not in text and "min_thread" not in text and "tile_" not in text) or engine not in (
        "",
        "vllm",
        "sglang",
    ):
        return ()
    method = (
        "gptq"
        if "gptq" in f"{text} {str(case.facts.value('command') or '').lower()}"
        and "awq" not in str(case.facts.value("command") or "").lower()
        else "awq"
    )
    return (
        Remedy(
            kind="flag",
            name="--quantization",
            value=method,
            summary=f"Take the plain kernels of the method in place of Marlin: --quantization {method}",
            cost="slower",
            is_sure=False,
        ),
    )


def _in_vain(limit: Limit) -> tuple[NotARemedy, ...]:
    general = NotARemedy(
        "another toolkit, driver or architecture list",
        "the check compares numbers of the kernel with the GPU and the model",
    )
    if limit.kind == "shape":
        return (NotARemedy("reducing the tensor-parallel size", "at size 1 it leaves a rest, too"), general)
    return (general,)
