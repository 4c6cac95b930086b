"""wrong-output: the server runs, and its answers are damaged."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._component import first_component
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.runtime import _faults as faults
from gpuwhy.causes.runtime._repetition import REPETITION
from gpuwhy.knowledge.known_faults import KnownFault
from gpuwhy.model.event import Event
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.experiments import Experiments
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.host import Gpus
from gpuwhy.model.remedy import NotARemedy, Remedy

_METRIC = r"(?:exact[_ -]match|flexible-extract|strict-match|accuracy|\bacc(?:_norm)?\b|gsm8k|mmlu|humaneval|pass@1|\bscore\b|quality|bleu|rouge)"
_METRIC_HEAD = lazy_pattern(_METRIC, re.IGNORECASE)
_ARM = lazy_pattern(r"^\s{0,8}\|?\s{0,4}([^|]{1,60}?)\s{0,20}\|\s{0,8}(\d\.\d{1,4}|\d{1,3}(?:\.\d{1,2})?%?)\s{0,8}\|")
_NANS_OF_WEBUI = lazy_pattern(r"NansException|A tensor with (?:all )?NaNs was produced")
_HALF = lazy_pattern(r"float16|\bfp16\b|\bhalf\b", re.IGNORECASE)


@cause(
    "wrong-output",
    family="Run time",
    signs=[
        says("not-a-number", ("probability tensor contains", "out of range float", "errors during sampling", "detected nan", "nan in the", "nans", "contains nan", "contain nan", "nan logits", "nan output", "nan value", "is nan", "are nan", "became nan", "all nan", "nansexception", "invalid value encountered in cast"), r"probability tensor contains either|NaN in the (?:logits|probs|probabilit)|Detected (?:errors during sampling|NaN|nan)|(?:logits|hidden[_ ]states?|logprobs?|outputs?|activations?)\b.{0,40}\b(?:contains?|are|is|became|all) (?:all )?nans?\b|Out of range float values are not JSON compliant|\bnan (?:logits|outputs?|values? in)|NansException|[Aa] tensor with (?:all )?NaNs was produced|invalid value encountered in cast"),
        says("runs-of-one-sign", "!!!!!!!!", r"!{12,}"),
        says("reserved-tokens", ("<unused", "<|reserved_special_token", "<pad><pad>", "<unk><unk>", "[pad"), r"(?:<unused\d{1,4}>|<\|reserved_special_token_\d{1,3}\|>|<pad>|<unk>|\[PAD\d{0,6}\]){4}"),
        says(
            "says-damaged",
            ("gibberish", "garbled", "garbage", "nonsens", "incoherent", "corrupted output", "corrupt output", "corrupted text", "wrong output", "wrong answer", "incorrect output", "incorrect result", "meaningless", "mojibake",
             "random tokens", "random characters", "damaged answer", "exclamation", "infinite repetition", "repeats itself", "repeating the same", "endless repetition", "answers damaged", "degraded accuracy", "accuracy drop", "accuracy regress", "different outputs", "inconsistent output", "accuracy", "not greater than"),
            r"gibberish|garbled|garbage (?:output|text|characters?|tokens?|response|answer|result)|(?:outputs?|outputting|generat\w{0,4}|responses?|repl(?:y|ies)|answers?|produces?|producing|returns?|returning|gives?|giving|prints?|spits? out)\b.{0,60}\b(?:garbage|nonsens\w{1,4}|incoherent|meaningless|mojibake)|nonsens(?:e|ical) (?:output|text|answers?|responses?)|answers nonsense|corrupt(?:ed)? (?:output|text|answers?|tokens?|generation)"
            r"|(?:wrong|incorrect) (?:output|answer|result)s?|random (?:tokens|characters)|exclamation marks|(?:infinite|endless) repetition|repeat(?:s|ing) (?:itself|the same)|answers? damaged|accuracy (?:drop|regress|degrad|loss|is (?:very )?low)|degraded accuracy|(?:different|inconsistent) outputs?|(?:accuracy|score)\W{1,4}0\.\d{1,4}\b.{0,30}(?:not greater|below|less than|lower than|<)|0\.\d{1,6} not greater than (?:or equal to )?0?\.\d",
        ),
        says("scores-nothing", ("| 0.0", "|0.0", "exact_match", "exact-match", "flexible-extract", "strict-match", "accuracy", "gsm8k"), r"\|\s{0,6}0\.0{1,4}\s{0,6}\||(?:exact[_ -]match|accuracy|flexible-extract|strict-match|gsm8k|score)\W{0,20}(?:\w{1,20}\W{1,10}){0,3}0\.0{1,4}\b"),
        REPETITION,
        says("undecodable", "\ufffd", r"(?:\ufffd ?){6,}|(?:\ufffd{1,4}[^\ufffd]{1,6}){6,}"),
        says("junk", ("____", "????", "####", "<unk>", "\ufffd\ufffd", "(((((", "@@@@", "00000000"), r"[\"'`].{0,200}(?:_{8,}[# |]|\?{12,}|#{12,}|@{8,}|\({12,}|(?:<unk>\s?){4,}|\ufffd{4,})|(?:content|text|response|output)\W{1,6}(?:_{12,}|\?{12,}|#{12,}|@{12,}|0{24,}|(?:<unk>\s?){4,})"),
    ],
)  # fmt: skip
def wrong_output(case: Case, gpus: Gpus | Unknown, experiments: Experiments | Unknown) -> Judgement:
    """The server runs and answers, and the answers are damaged: overflow, an ignored feature, a wrong code path.

    How it shows itself
      `!!!!!!!!` (token 0 again and again, as NaN logits give it), mixed scripts, endless repetition, an evaluation with 0.000 where
      another backend has 0.88. As a rule no error at all; sometimes `probability tensor contains either inf, nan or element < 0`,
      or `NaN in the logits`. Often only under load, only with long inputs, or only on one GPU generation.

    Why it happens
      float16 overflows where the model was trained in bfloat16; a kernel accepts an argument and ignores it (attention
      sinks, a sliding window, scales); PTX of another generation is compiled by the driver; a fused or captured path reads stale
      values; a quantised cache without its scales; a chat template that does not belong to the model.

    How to be sure
      A/B with a quality check, one change at a time: dtype, attention backend, graphs off, one request against many, the
      release before. Look at the GPU's capability and at which targets the kernel was built for.

    What helps
      What the comparison shows: bfloat16, another attention backend, eager mode, another kernel for the quantisation, the
      release with the fix.

    What does not help
      Another temperature or prompt, while the logits are damaged. More memory.

    Not to be confused with
      build-target-wrong and binary-lacks-arch (PTX of another generation can damage answers too), kernel-illegal-address
      (it stops), weights-missing-or-corrupt, and a wrong chat template.
    """
    match = _decisive(case)
    if match is None:
        return None
    fault = faults.fault_known(case, "wrong-output", gpus)
    arms = _arms(case, match)
    certainty = _certainty(match, fault, experiments, arms)
    component = _component(case, match, fault, experiments)
    quoted = case.evidence(match, _STATEMENT.get(match.sign, "the answer is damaged, and no error is printed"))
    known = derived(fault.mechanism, fault.provenance) if fault is not None else None
    tried = faults.tried(experiments)
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{component or 'The server'} answers, and the answers are damaged",
        chain=(
            Link(fault.mechanism if fault is not None else f"A code path of {component or 'the server'} computes wrong values", known or next(iter(tried), None) or inferred("which one is found by changing one thing at a time")),
            Link("Nothing checks the values, so nothing stops", inferred("kernels check no results")),
            Link("The answers are damaged", quoted),
        ),
        evidence=tuple(each for each in (quoted, *arms, known, *tried) if each is not None),
        explains=case.explains(match),
        missing=_missing(case),
        rivals=("build-target-wrong", "binary-lacks-arch", "weights-missing-or-corrupt") if certainty is Certainty.POSSIBLE else (),
        remedies=_remedies(case, match, component, fault, experiments, arms),
        not_remedies=(NotARemedy("another temperature or prompt", "the logits themselves are damaged"),),
        strength=45 if match.sign in ("not-a-number", "runs-of-one-sign", "reserved-tokens") else 36,
    )  # fmt: skip


_STATEMENT = {
    "not-a-number": "the values that are sampled from are not numbers",
    "scores-nothing": "an evaluation finds no right answer",
    REPETITION.name: "one token is repeated without end",
    "runs-of-one-sign": "one token is repeated without end",
    "reserved-tokens": "the answer is made of tokens that no text has",
}
_SIGNS = ("not-a-number", "runs-of-one-sign", "reserved-tokens", "scores-nothing", "says-damaged", REPETITION.name, "junk", "undecodable")  # fmt: skip
_RUN = lazy_pattern(r"!{12,400}")
_SPEAKS_OF_ANSWERS = lazy_pattern(
    r"\b(?:answer|output|response|repl(?:y|ies)|completion|generat\w{1,6}|returns?|turns? into|content|assistant|chat|token)",
    re.IGNORECASE,
)
"""Beside signs that cannot be decoded: without such a word they are a log in another character set."""


def _decisive(case: Case) -> Match | None:
    """The first line that shows damage. Where the program stopped by another error, only NaN is one: the rest is talk."""
    stopped = case.incident.primary_event
    for sign in _SIGNS:
        for match in _first_seen(sign, case.all(sign)[:10]):
            if match.is_code or match.line.level == "debug":
                continue
            own = _is_of(match, stopped) or (
                sign == "not-a-number" and any(_is_of(each, stopped) for each in case.all(sign))
            )
            if stopped is not None and not own and stopped.kind not in ("warning",):
                continue
            if sign == "undecodable" and not _is_an_answer(case, match):
                continue
            if sign == "scores-nothing" and not ("0.0" in match.text and _is_evaluation(case, match)):
                continue
            return match
    return None


def _is_of(match: Match, event: Event | None) -> bool:
    return match.event is not None and event is not None and match.event.id == event.id


def _first_seen(sign: str, matches: tuple[Match, ...]) -> list[Match]:
    """The engine's own warning of NaN before the exception that follows from it; the answer itself before a title that hints at it."""
    if sign == "runs-of-one-sign":
        return sorted(matches, key=lambda match: -max((len(run) for run in _RUN.findall(match.text[:4000])), default=0))
    if sign == "not-a-number":
        return sorted(matches, key=lambda match: (match.is_code, not _is_printed(match), match.line.number))
    return list(matches)


def _is_printed(match: Match) -> bool:
    """By a program: a logger put something in front of the line, or the line is part of a failure."""
    return match.event is not None or match.line.process is not None or match.line.time is not None or match.line.level != ""  # fmt: skip


def _is_an_answer(case: Case, match: Match) -> bool:
    """Whether the text around speaks of what a model answered; a whole log that cannot be decoded does not."""
    near = case.lines_around(match, 8, 8)
    undecodable = sum("\ufffd" in line.text[:400] for line in near)
    return undecodable <= 5 and any(_SPEAKS_OF_ANSWERS.search(text[:400]) for text in (match.text, *(line.text for line in near)))  # fmt: skip


def _is_evaluation(case: Case, match: Match) -> bool:
    """A zero is a score only beside the name of one."""
    return _METRIC_HEAD.search(match.text) is not None or any(
        _METRIC_HEAD.search(line.text[:400]) for line in case.lines_around(match, 6, 6)
    )


def _arms(case: Case, match: Match) -> tuple[Evidence, ...]:
    """Rows of the same table with another result: the comparison is in the report already."""
    if match.sign != "scores-nothing" or not _ARM.search(match.text):
        return ()
    rows = [
        line
        for line in case.lines_around(match, 8, 8)
        if (arm := _ARM.search(line.text[:400])) and re.search(r"[1-9]", arm[2])
    ]
    place = match.place
    return tuple(Evidence("the other arm of the comparison", line.text.strip()[:300], place) for line in rows[:1])


def _certainty(
    match: Match, fault: KnownFault | None, experiments: Experiments | Unknown, arms: tuple[Evidence, ...]
) -> Certainty:
    compared = isinstance(experiments, Experiments) and bool(experiments.good) and bool(experiments.bad)
    if fault is not None or compared or arms or match.sign == "not-a-number":
        return Certainty.LIKELY
    return Certainty.POSSIBLE


def _component(case: Case, match: Match, fault: KnownFault | None, experiments: Experiments | Unknown) -> str | None:
    if fault is not None:
        return fault.component
    if _NANS_OF_WEBUI.search(match.text):
        return "stable-diffusion-webui"
    named = faults.component_of(case, match, experiments, is_synchronous=False)
    if named != "torch":
        return named
    built = first_component((name, True) for name in case.facts.group("binary_archs"))
    return built or _backend(case)


_LLAMA = ("llama.cpp", "ollama")


def _llama_switches(engine: str) -> tuple[Remedy, ...]:
    """llama.cpp has no choice of backends, but kernels that can be left out."""
    if engine not in _LLAMA:
        return ()
    if engine == "ollama":
        return (Remedy(kind="env", name="OLLAMA_FLASH_ATTENTION", value="0", summary="Without the fused attention kernel", is_sure=False, rank=1),)  # fmt: skip
    return (
        Remedy(kind="flag", name="--flash-attn", value="off", summary="Without the fused attention kernel", is_sure=False, rank=1),
        Remedy(kind="flag", name="--cache-type-k", value="f16", summary="A cache that is not quantised", is_sure=False, rank=2),
    )  # fmt: skip


_LOADED_IN_PYTHON = frozenset({"transformers", "torch", "auto-gptq", "autoawq", "gptqmodel", "peft", "diffusers", "unsloth", "text-generation-webui"})  # fmt: skip
"""Programs in which the number format is an argument of ``from_pretrained``, and not an option."""


def _wider_range(engine: str, *, is_sure: bool) -> tuple[Remedy, ...]:
    """bfloat16 in the spelling of the program."""
    if engine in _LLAMA:
        return ()
    kind, name = ("config", "torch_dtype") if engine in _LOADED_IN_PYTHON else ("flag", "--dtype")
    return (Remedy(kind=kind, name=name, value="bfloat16", summary="bfloat16 has the range that float16 lacks", is_sure=is_sure, rank=0),)  # fmt: skip


_BACKENDS = (("TRITON_ATTN", "vllm"), ("FLASH_ATTN", "vllm"), ("FLASHINFER", "flashinfer"), ("VLLM_", "vllm"), ("SGLANG_", "sglang"), ("text-generation-", "text-generation-inference"), ("TGI ", "text-generation-inference"), ('"generated_text"', "text-generation-inference"))  # fmt: skip


def _backend(case: Case) -> str | None:
    """The engine whose backend names stand in the report."""
    text = "\n".join(line.text[:300] for _, line in case.lines())
    return next((engine for word, engine in _BACKENDS if word in text), None)


def _missing(case: Case) -> tuple[Missing, ...]:
    return faults.asked(
        case.missing("tests", "whether another backend, dtype, release or a single request gives clean answers", "run a quality check with one thing changed at a time"),
        case.missing("cc", "which generation of kernels runs"),
        case.missing("command", "the backend, dtype and options in use", "tr '\\0' ' ' < /proc/PID/cmdline"),
        case.missing("binary_archs", "for which targets the kernels were built", "cuobjdump --list-elf FILE.so"),
        case.missing("model", "features of the model that a kernel may ignore", "cat MODEL_DIRECTORY/config.json"),
    )  # fmt: skip


_FULL_PRECISION = (
    Remedy(kind="flag", name="--no-half", summary="Compute in float32: this GPU, or this model, does not bear float16", cost="more GPU memory, slower"),
    Remedy(kind="flag", name="--no-half-vae", summary="Where the message names the VAE, its own precision alone", rank=1),
    Remedy(kind="config", name="Upcast cross attention layer to float32", value="on", summary="Or only the layer that overflows (models of Stable Diffusion 2)", rank=2, is_sure=False),
)  # fmt: skip
"""What the web interfaces of Stable Diffusion offer where float16 overflows; --disable-nan-check only hides it."""


_SMALL_CACHE = lazy_pattern(
    r"kv[-_]cache[-_]dtype[\"']?[= :]{1,3}[\"']?(?:fp8|int8|fp4|nvfp4|turboquant)", re.IGNORECASE
)
_PLAIN_CACHE = Remedy(kind="flag", name="--kv-cache-dtype", value="auto", summary="A cache in the model's own number format: an 8-bit one needs scales that many checkpoints do not bring", cost="twice the memory for the cache", is_sure=False, rank=0)  # fmt: skip
_ATTENTION = lazy_pattern(r"attention[-_ ]?backend|flash[-_ ]?att|flash_?infer|TRITON_ATTN|FLASH_ATTN|\bfa[234]\b|\bmla\b|\bsinks?\b|sliding[-_ ]window", re.IGNORECASE)  # fmt: skip


def _is_named(component: str | None, engine: str) -> bool:
    """Whether a newer release of something can be proposed."""
    return component is not None or engine in faults.ENGINES


def _remedies(
    case: Case, match: Match, component: str | None, fault: KnownFault | None, experiments: Experiments | Unknown,
    arms: tuple[Evidence, ...],
) -> tuple[Remedy, ...]:  # fmt: skip
    if _NANS_OF_WEBUI.search(match.text):
        return _FULL_PRECISION
    engine = faults.engine_in_log(case) or _backend(case) or component or ""
    backend = faults.BACKEND_FLAG.get(
        engine if engine in faults.BACKEND_FLAG else component or "", "--attention-backend"
    )
    value = "TRITON_ATTN" if any("TRITON_ATTN" in arm.quote for arm in arms) else "another"
    near = [match.text, *(line.text[:600] for line in case.lines_around(match, 200, 20))]
    half = any(_HALF.search(text) for text in near)
    command = str(case.facts.value("command") or "")
    scaled = any(_SMALL_CACHE.search(text) for text in (command, *near))
    is_open = (
        bool(arms) or any(_ATTENTION.search(text) for text in (command, *near)) or not _is_named(component, engine)
    )
    built = bool(case.facts.group("binary_archs"))
    package = component if component in faults.ENGINES else engine if engine in faults.ENGINES else component
    return faults.unique(
        (
            *faults.remedies_known(fault),
            *faults.remedies_tried(experiments),
            *(_wider_range(engine, is_sure=half) if half or match.sign == "not-a-number" else ()),
            *_llama_switches(engine),
            *((_PLAIN_CACHE,) if scaled and engine in faults.BACKEND_FLAG else ()),
            *(() if not is_open or built or engine in _LLAMA or engine in _LOADED_IN_PYTHON else (Remedy(kind="flag", name=backend, value=value, summary="Another attention backend", is_sure=bool(arms), rank=1),)),
            *((faults.newer(package, rank=2),) if package else ()),
        )
    )  # fmt: skip
