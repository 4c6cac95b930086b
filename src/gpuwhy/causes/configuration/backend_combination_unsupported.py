"""backend-combination-unsupported: two options that are fine alone cannot be combined."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.configuration import _features as features
from gpuwhy.causes.configuration import _program as program
from gpuwhy.causes.configuration._features import Feature
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_CAPTURE = says(
    "capture-refuses",
    ("capturing stream has unjoined work", "not permitted when stream is capturing", "during cuda graph capture", "cudaerrorstreamcapture", "cuda graph capture unless", "stream capture", "capture mode"),
    r"capturing stream has unjoined work|not permitted when stream is capturing|Cannot copy between CPU and CUDA tensors during CUDA graph capture|cudaErrorStreamCapture(?:Unjoined|Unsupported|Implicit|Isolation|Merge)"
    r"|(?:not (?:supported|allowed)|cannot be used) (?:during|in|inside) (?:CUDA )?(?:graph|stream) capture",
)  # fmt: skip
_TOGETHER = says(
    "not-together",
    ("not supported", "not compatible", "incompatible", "cannot be used", "can't be used", "can not be used", "not yet supported", "does not support", "doesn't support", "do not support", "mutually exclusive", "cannot be combined", "cannot be enabled", "cannot be set", "not allowed", "only supports", "only support", "only supported", "only works with", "only be used", "not implemented", "only compatible", "not currently supported", "currently not support", "cannot be specified", "cannot both", "cannot use", "can't use", "not available with", "isn't supported", "not work with", "doesn't work with", "not valid for this configuration", "unsupported combination", "conflicts with", "in conflict with", "at the same time", "not be used together", "is unsupported", "no valid attention backend", "one unified type", "cannot unify by"),
    r"(?:is|are|was|isn't|aren't)(?: currently| still| yet)?(?: not| n't)? ?(?:currently |yet |officially )?(?:supported|compatible|allowed|implemented|available|unsupported)(?: yet)?(?: \w{1,12}){0,2} (?:with|when|while|for|in|if|alongside|under|by|and|unless|without|on)\b"
    r"|not (?:currently |yet )?(?:supported|compatible|implemented|available)\b|\b(?:incompatible|conflicts?|in conflict) with\b|mutually exclusive|[Uu]nsupported combination"
    r"|(?:cannot|can not|can't|should not|must not)(?: both)? (?:be )?(?:used?|combined|enabled?|set|specif(?:y|ied)|run|work)\b"
    r"|(?:does not|doesn't|do not|don't|currently not)(?: yet| currently)? (?:support|work with|allow)\b"
    r"|only (?:be )?(?:supports?|supported|works?|compatible|available|implemented|used|enabled)\b"
    r"|failed to convert the KV cache specs|Cannot unify by adjusting|not valid for this configuration|No valid attention backend found|at the same time",
)  # fmt: skip
_REQUIRES = says(
    "requires-other",
    ("requires flash_attn", "requires flash attention", "requires flash-attn", "must be disabled", "must be enabled", "must be used with", "must be set when", "to be enabled", "to be disabled", "must set", "please disable", "please enable", "need to be disabled", "needs to be disabled", "requires --", "require --", "must be 1", "must be 0", "backend requires all", "must be equal", "please set ", "please use --", "must be greater than or equal to", "is smaller than max_", "is larger than max_", "is less than max_", "is greater than max_", "required when", "must be specified when", "must be true when", "must be false when", "is required to", "requires chunked", "requires page", "requires block", " requires ", "requires prefix", "requires eager", "must use", "requires the"),
    r"requires? \w{2,40}(?:[ _]size)?[= ](?:of |to be )?[\w.]{1,20} (?:when|with|for|if)\b|requires? (?:[Ff]lash[ _-]?[Aa]tt\w{0,7}|--[\w-]{2,60}|.{3,80} to be (?:enabled|disabled|set)|the \w{2,20} backend|chunked prefill|eager|all the modules to be on)|(?:must|needs? to|has to|should) be (?:disabled|enabled|used with|set|specified|1|equal|true|false|True|False)\b.{0,80}?(?:when|with|if|for|to)\b"
    r"|(?:[Pp]lease|must) (?:disable|enable|set|use) .{0,80}(?:when|with|for|if|to use|instead)\b|max_\w{3,40} \(\d{1,9}\) (?:is (?:smaller|larger|less|greater) than|must be (?:greater|less) than or equal to) max_\w{3,40}"
    r"|[Pp]lease (?:set|use|disable|enable) --[\w-]{2,60}|[Pp]lease set \w{2,40} ?(?:[<>=]{1,2}|to) ?\w",
)  # fmt: skip

_HARDWARE = lazy_pattern(
    r"(?i)\bsm_?\d{2}|compute capab|capability|current GPU|this GPU|your GPU|\bGPUs? (?:with|of|older|newer)|current device|this device|your device|\bCPU (?:backend|platform)|\bROCm\b|\bXPU\b|\bHPU\b|\bNPU\b|current platform|this platform|\bAMD\b|\bWindows\b|architecture|CUDA (?:version|toolkit|driver)|cuda arch|\bHopper\b|\bBlackwell\b|\bAmpere\b|\bTuring\b|\bnvcc\b|\bptxas\b|driver|compute_\d{2}|glibc|Python 3|torch version|unsupported data type|hardware|kernel image|NCCL|peer access|P2P"
)
_NOT_OPTIONS = lazy_pattern(
    r"(?i)model architectures? \[|greater than the derived|architectures are not supported|has no (?:vllm|sglang) implementation|model type|quantization method|(?<![_\w])tokens\b(?! \()|dtype for|head[ _]?(?:size|dim)|does not exist|unrecognized|invalid choice|is not divisible|out of memory|content type|message role|\bURL\b|endpoint|http|`?model`? does not support (?:chat|completion)|file type|media type"
)
_ADVICE = lazy_pattern(
    r"(?:(?i:use|set|try|add|pass|specify|consider|requires?|with|disable|enable|needs?|by)\b).{0,40}?(?P<option>--[a-z][\w-]{2,60})(?:[= ]['\"]?(?P<value>(?!when|with|to|for|and|or|if|is|in|flag|option|instead|as|on your|must|does|because|since|the)[\w.-]{1,40}))?"
)
_FALLS_BACK = lazy_pattern(
    r"(?i)fall(?:ing|s)? ?back|disabling|will be disabled|is disabled|has been disabled|turned off|ignored|ignoring|setting .{1,40} to|automatically|deprecated|will be ignored|using .{1,40} instead|defaulting|overrid|\bfor better performance|experimental"
)
_DISPATCH = lazy_pattern(
    r"--deepep-mode[= ]['\"]?(?P<mode>normal|auto|low_latency)|enable[-_]deepep[-_]moe|moe[-_]a2a[-_]backend['\"]?[= :]{1,3}['\"]?deepep|deep_ep",
    re.I,
)
_NORMAL = lazy_pattern(r"--deepep-mode[= ]['\"]?(?:normal)|deepep_mode['\"]?[=:] ?['\"]?(?:DeepEPMode\.)?normal", re.I)
_OTHER_FAULT = lazy_pattern(
    r"(?i)out of memory|illegal memory|no kernel image|illegal instruction|ptxas|nccl (?:error|WARN)|device-side assert|unspecified launch failure|unhandled cuda error|not compiled|invalid device function|named symbol"
)
_SPECULATIVE = lazy_pattern(
    r"speculative\.py|draft_model|SpeculativeConfig|create_draft|spec_decode|speculative_config"
)
_ONE_AGAINST_THE_MODEL = lazy_pattern(
    r"failed to convert the KV cache specs|Cannot unify by adjusting|not compatible with the target model"
)
"""One feature is named, the other is the model: its layers, or the target of a draft."""
_PIPELINE = lazy_pattern(r"Pipeline parallelism is not supported for this model")


class Clash(msgspec.Struct, frozen=True):
    """Two features that exclude each other, as far as the message names them."""

    match: Match
    features: tuple[Feature, ...]
    certainty: Certainty
    strength: int
    requires: bool = False
    shown: tuple[Evidence, ...] = ()


@cause("backend-combination-unsupported", family="Model and configuration", signs=[_CAPTURE, _TOGETHER, _REQUIRES])
def backend_combination_unsupported(case: Case) -> Judgement:
    """Two options that are fine alone cannot be combined in this release.

    How it shows itself
      `X is not supported with Y`, `Pipeline parallelism is not supported for this model` (which may mean the draft model),
      `Selected backend ... is not valid for this configuration. Reason: [...]`, `V cache quantization requires flash_attn`,
      `overlap schedule is not compatible with ...`. Behind `Capture cuda graph failed`: `capturing stream has unjoined work`, `operation not
      permitted when stream is capturing`.

    Why it happens
      Features are written one by one; some pairs were never made to work, or work with one backend only. A captured graph allows
      no waiting for the CPU, so a dispatch mode that reads a count on the CPU cannot be captured.

    How to be sure
      Read the text after the wrapper, and find both options in the start command. Take one of them back: the error is gone.

    What helps
      Give up one of the two, or choose the mode or backend that the message names. Some pairs work in a later release.

    What does not help
      A lower memory fraction or a smaller graph batch size, which SGLang prints as advice under every failed capture.

    Not to be confused with
      bad-argument (one option alone is wrong), gpu-oom-graph-or-activation (the same wrapper `Capture cuda graph failed`
      around an out-of-memory), arch-unsupported-by-library (the GPU is what excludes it), quantization-unsupported.
    """
    clash = _said(case) or _captured(case)
    if clash is None:
        return None
    engine = program.engine_of(case, clash.match)
    seen = case.evidence(clash.match, _statement(clash))
    missing = _missing(case, clash)
    return Verdict(
        certainty=clash.certainty,
        component=_component(case, clash),
        title=_title(clash),
        chain=(
            Link("Two options were given that exclude each other", clash.shown[0] if clash.shown else inferred("the start command is not known")),
            Link(_statement(clash), seen),
        ),
        evidence=(seen, *clash.shown),
        explains=case.explains(clash.match),
        missing=(missing,) if missing is not None else (),
        rivals=_rivals(clash),
        remedies=_remedies(case, clash, engine),
        not_remedies=_IN_VAIN if clash.match.sign == _CAPTURE.name else (),
        notes=_notes(clash),
        strength=clash.strength,
    )  # fmt: skip


def _said(case: Case) -> Clash | None:
    """A message that names the features itself."""
    matches = sorted(
        (m for m in case.all(_TOGETHER.name, _REQUIRES.name) if not m.is_code),
        key=lambda m: (not program.in_event(m), m.line.number),
    )
    lone: list[Clash] = []
    for match in matches:
        text = match.text[:1600]
        is_failure = program.is_failure(match)
        if not is_failure:
            continue
        told = _chosen_for(text)
        if (
            _HARDWARE.search(told)
            or _NOT_OPTIONS.search(told)
            or (_FALLS_BACK.search(text) and not program.in_event(match))
        ):
            continue
        named = features.features_in(text)
        is_pair = _ONE_AGAINST_THE_MODEL.search(text) is not None
        has_option = re.search(r"--[a-z][\w-]{3,60}", text) is not None
        if _PIPELINE.search(text):
            return _pipeline(case, match, named)
        if not named or (len(named) < 2 and not (has_option or is_pair or _is_refusal(match))):
            continue
        shown = tuple(evidence for feature in named[:2] if (evidence := _in_command(case, feature)) is not None)
        if len(named) < 2 and not (has_option or is_pair):
            lone.append(Clash(match, named, Certainty.POSSIBLE, 35, match.sign == _REQUIRES.name, shown))
            continue
        if told != text:  # what the GPU's own backends refuse decides
            return Clash(match, named, Certainty.LIKELY, 80, False, shown)
        sure = program.in_event(match) and len(shown) >= 2
        certainty = Certainty.PROVEN if sure else Certainty.LIKELY if is_failure else Certainty.POSSIBLE
        return Clash(
            match, named, certainty, 74 if program.in_event(match) else 55, match.sign == _REQUIRES.name, shown
        )
    return lone[0] if lone else None


_SELECTED_FOR = lazy_pattern(r"AttentionSelectorConfig\([^)]{1,600}\)")
_BACKEND_AND_WHY = lazy_pattern(r"\b[A-Z][A-Z0-9_]{3,40}: \[(?P<why>[^\]]{1,300})\]")


def _chosen_for(text: str) -> str:
    """The message without what vLLM chose a backend for, and without the backends that the GPU excludes, when others remain."""
    if "No valid attention backend" not in text:
        return text
    text = _SELECTED_FOR.sub("", text)
    refused = [found["why"] for found in _BACKEND_AND_WHY.finditer(text)]
    if refused and any("compute capability" not in why for why in refused):
        return _BACKEND_AND_WHY.sub(lambda found: "" if "compute capability" in found["why"] else found[0], text)
    return text


def _is_refusal(match: Match) -> bool:
    """An exception that is nothing but a refusal: the other half of the pair may be what the message leaves out."""
    return program.in_event(match) and re.match(r"(?:\w{1,20}\.){0,6}(?:NotImplementedError|ValueError|AssertionError): ", match.text) is not None  # fmt: skip


def _pipeline(case: Case, match: Match, named: tuple[Feature, ...]) -> Clash:
    """vLLM says "this model"; below the configuration of a draft it means the draft."""
    speculative = next(feature for feature in features.FEATURES if feature.name == "speculative decoding")
    is_draft = any(_SPECULATIVE.search(f"{frame.path} {frame.function} {frame.code}") for frame in match.frames) or any(
        _SPECULATIVE.search(line.text[:400]) for line in case.lines_around(match, 30, 4)
    )
    both = (speculative, *named) if is_draft else named
    return Clash(match, both, Certainty.PROVEN if program.in_event(match) else Certainty.LIKELY, 84)


def _captured(case: Case) -> Clash | None:
    """A capture that the work inside does not allow."""
    graphs = next(feature for feature in features.FEATURES if feature.name == "CUDA graphs")
    for match in sorted((m for m in case.all(_CAPTURE.name) if not m.is_code), key=lambda m: m.line.number):
        if _is_echo(case, match):
            return None
        dispatch = _dispatch(case)
        is_normal = dispatch is not None and _NORMAL.search(f"{dispatch.quote}") is not None
        is_unjoined = "unjoined" in match.text
        certainty = (
            Certainty.PROVEN
            if is_normal and is_unjoined
            else Certainty.LIKELY
            if dispatch is not None
            else Certainty.POSSIBLE
        )
        deepep = next(feature for feature in features.FEATURES if feature.name == "DeepEP")
        return Clash(
            match,
            (graphs, deepep) if dispatch is not None else (graphs,),
            certainty,
            78 if is_unjoined else 52,
            shown=(dispatch,) if dispatch is not None else (),
        )
    return None


def _is_echo(case: Case, match: Match) -> bool:
    """An earlier CUDA failure broke the capture; this message only follows."""
    before = (
        event
        for event in case.incident.events
        if event.span.first < match.line.number and event.id != (match.event.id if match.event else -1)
    )
    if any(_OTHER_FAULT.search(event.text[:600]) for event in before):
        return True
    return _OTHER_FAULT.search(match.text) is not None


def _dispatch(case: Case) -> Evidence | None:
    return program.option_in_use(case, _DISPATCH, "deepep", "deep_ep", "DeepEP")


def _is_usual_dispatch(case: Case, clash: Clash) -> bool:
    """In SGLang work that is not joined at the end of a capture is usually that of DeepEP's normal kernels."""
    return "unjoined" in clash.match.text and program.engine_of(case, clash.match) == "sglang"


def _in_command(case: Case, feature: Feature) -> Evidence | None:
    """What shows that the start asked for a feature: its option in the command, else in the options the engine echoed."""
    names = [name for name, _ in (*feature.options.values(), *feature.turns_on.values()) if name.startswith("--")]
    command = str(case.facts.value("command") or "")[:8000]
    if any(name in command for name in names):
        return case.fact_evidence("command", f"the command asks for {feature.name}")
    for name in names:
        key = f"server_args.{name.strip('-').replace('-', '_')}"
        if case.facts.value(key) not in _SWITCHED_OFF:
            return case.fact_evidence(key, f"the options ask for {feature.name}")
    return None


_SWITCHED_OFF = (None, False, 0, 1, "", "None", "auto", "none", "null")
"""Values of options that ask for nothing; 1 is the size of no parallelism."""


def _component(case: Case, clash: Clash) -> str:
    if clash.match.sign == _CAPTURE.name and (len(clash.features) > 1 or _is_usual_dispatch(case, clash)):
        return "deepep"
    return program.program_of(case, clash.match)


def _statement(clash: Clash) -> str:
    if clash.match.sign == _CAPTURE.name:
        return "the work inside the capture waits for the CPU or another stream, which a captured stream may not do"
    names = [feature.name for feature in clash.features[:2]]
    return (
        f"{names[0]} {'needs' if clash.requires else 'excludes'} {names[1]}"
        if len(names) == 2
        else "the engine says that these options exclude each other"
    )


def _title(clash: Clash) -> str:
    names = [feature.name for feature in clash.features[:2]]
    if clash.match.sign == _CAPTURE.name:
        return f"CUDA graphs cannot capture {'DeepEP in this dispatch mode' if len(names) > 1 else 'what this combination of options runs'}"
    return f"{names[0][0].upper()}{names[0][1:]}{f' and {names[1]}' if len(names) > 1 else ' and another option'} cannot be combined this way"


def _missing(case: Case, clash: Clash) -> Missing | None:
    if clash.certainty is Certainty.PROVEN:
        return None
    return case.missing(
        "command",
        "which options were given together (backend, dispatch mode, cache, speculation)",
        "tr '\\0' ' ' < /proc/PID/cmdline",
    )


def _rivals(clash: Clash) -> tuple[str, ...]:
    if clash.certainty is Certainty.PROVEN:
        return ()
    return (
        ("gpu-oom-graph-or-activation", "kernel-illegal-address")
        if clash.match.sign == _CAPTURE.name
        else ("bad-argument", "arch-unsupported-by-library")
    )


def _remedies(case: Case, clash: Clash, engine: str) -> tuple[Remedy, ...]:
    if clash.match.sign == _CAPTURE.name:
        return _of_capture(clash, engine)
    chosen: list[Remedy] = []
    for advice in list(_ADVICE.finditer(clash.match.text[:1600]))[:2]:
        option, value = advice["option"], advice["value"] or "set"
        chosen.append(
            Remedy(
                kind="flag",
                name=option,
                value=value,
                rank=-1,
                summary=f"As the message says: {option} {'' if value == 'set' else value}".rstrip(),
            )
        )
    if clash.requires:
        for feature in clash.features:
            chosen += features.with_(feature, engine or "llama.cpp", rank=0)
    for number, feature in enumerate(_given_up(clash)[:3]):
        chosen += features.without(
            feature,
            engine or ("llama.cpp" if clash.match.text.startswith("llama_") else "vllm"),
            rank=number + 1,
            is_sure=number == 0,
        )
    unique = tuple({(remedy.kind, remedy.name): remedy for remedy in reversed(chosen)}.values())[::-1]
    who = program.program_of(case, clash.match)
    return (
        *unique,
        Remedy(
            kind="package",
            name=who,
            value="newer",
            is_sure=False,
            summary=f"Some pairs work in a later release of {who}",
        ),
    )


_SUGGESTED = lazy_pattern(
    r"(?i)\b(?:please|instead,?|consider) (?:try |use |using |switch(?:ing)? )(?:with |to )?(?P<what>[^.\n]{2,60})"
)


def _given_up(clash: Clash) -> list[Feature]:
    """What can be left out: not what the message proposes; the weights' own format last, which is no option of the start."""
    proposed = [f.name for found in _SUGGESTED.finditer(clash.match.text[:1600]) for f in features.features_in(found["what"])]  # fmt: skip
    rest = _SUGGESTED.sub("", clash.match.text[:1600])
    still = [feature.name for feature in features.features_in(rest)]
    kept = [f for f in clash.features if f.name not in proposed or f.name in still]
    return sorted(kept or clash.features, key=lambda feature: feature.name == "quantization")


def _of_capture(clash: Clash, engine: str) -> tuple[Remedy, ...]:
    graphs = clash.features[0]
    plain = features.without(graphs, engine or "sglang", rank=1)
    if len(clash.features) > 1 or engine == "sglang":
        dispatch = Remedy(
            kind="flag",
            name="--deepep-mode",
            value="low_latency or auto",
            rank=0,
            summary="With DeepEP: take its low-latency kernels for decoding, which can be captured",
            is_sure=len(clash.features) > 1,
        )
        return (dispatch, *plain)
    return plain


def _notes(clash: Clash) -> tuple[str, ...]:
    if _PIPELINE.search(clash.match.text) and clash.features and clash.features[0].name == "speculative decoding":
        return ('"This model" is the draft model: the failing frame is in the speculative configuration',)
    return ()


_IN_VAIN = (
    NotARemedy(
        "a smaller memory fraction", "SGLang prints this advice under every failed capture; no memory is lacking"
    ),
    NotARemedy("a smaller largest batch for graphs", "each batch size runs the same operation that cannot be captured"),
)
