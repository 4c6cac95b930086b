"""context-too-long: more positions are asked for than the model, or the server's limit, has."""

from __future__ import annotations

import msgspec

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.configuration import _program as program
from gpuwhy.causes.memory import _options as engine_options
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_CONFIGURED = says(
    "configured-above-the-model",
    ("greater than the derived max_model_len", "greater than the derived context_length", "is greater than the derived", "larger than the derived", "exceeds the model's max_position_embeddings", "larger than max_position_embeddings", "exceeds max_position_embeddings", "greater than max_position_embeddings", "longer than the model's context", "n_ctx_train"),
    r"(?:max_model_len|context[_ -]length|length)['\"]? \(?(?P<asked>\d{2,9})\)? is (?:greater|larger) than the (?:derived|model's) (?P<what>\w{3,40}) \((?:[^\d\n]{0,60}?=)?(?P<limit>\d{2,9})"
    r"|(?:max_seq_len|max_input_len|seq_length|session_len|max_model_len)\D{0,60}(?P<asked2>\d{2,9})\D{0,60}(?:larger|greater|exceeds?)\D{0,60}max_position_embeddings\D{0,20}(?P<limit2>\d{2,9})"
    r"|n_ctx(?:_per_seq|_seq)? \((?P<asked3>\d{2,9})\) > n_ctx_train \((?P<limit3>\d{2,9})\)"
    r"|is (?:greater|larger) than the derived (?:max_model_len|context_length)",
)  # fmt: skip
_REQUEST = says(
    "request-above-the-limit",
    ("maximum context length", "is longer than the maximum model length", "longer than the model's context length", "exceed context window", "exceeds the available context size", "exceeds the limit of", "is too long and exceeds limit", "exceeds maximum input length", "must be <= ", "exceeds the maximum allowed length", "exceed_context_size", "prompt is too long", "context window of", "exceeds max_seq_len", "exceeds max_model_len", "input_length_error", "exceeds session_len", "exceeds `session_len`", "exceeds the model's maximum context", "should not exceed max_num_tokens", "exceeds the model's predefined maximum", "exceed the model's predefined maximum length", "context size has been exceeded", "exceeds cache size", "longer than the specified maximum sequence length", "must be less than max_position_embeddings", "inputs must have less than", "must have less than", "default_max_tokens", "exceeds dimension size", "exceeds the maximum model length", "context length exceeded"),
    r"maximum context length (?:is|of) (?P<limit>\d{2,9}) tokens.{0,120}?(?:requested|request has|contains?|prompt contains)(?: a total of| at least)? (?P<asked>\d{2,9})"
    r"|maximum context length (?:is|of) (?P<limit2>\d{2,9})"
    r"|(?:length|prompt|input)\D{0,40}?(?P<asked3>\d{2,9})?\)?(?: tokens)?\)? is longer than the (?:maximum model length|model's context length)(?: of)? \(?(?P<limit3>\d{2,9})"
    r"|\(?(?P<asked4>\d{2,9})\)?(?: tokens)?\)? (?:is too long and )?exceeds? (?:the )?(?:available |maximum |model's |max )?(?:context (?:size|window|length)|limit|maximum input length|allowed length|input length|max_seq_len|session_len|max_model_len|maximum model length)(?: of|,)? \(?(?P<limit4>\d{2,9})?"
    r"|must be <= (?P<limit5>\d{2,9})\. Given: (?P<asked5>\d{1,9})|must have less than (?P<limit6>\d{2,9}) tokens\. Given: (?P<asked6>\d{1,9})"
    r"|prompt is too long \((?P<asked7>\d{2,9}) tokens, max (?P<limit7>\d{1,9})\)"
    r"|exceed(?:s|_)?(?:the )?_?context[_ ](?:size|window)|[Cc]ontext size has been exceeded|context length exceeded|exceeds the (?:available context|maximum allowed length|model's maximum context)|input_length_error|exceeds session_len|\((?P<asked14>\d{2,9})(?: \+ \d{1,9})?\) exceeds `session_len` \((?P<limit14>\d{2,9})\)"
    r"|longer than the specified maximum sequence length for this model \((?P<asked8>\d{2,9}) > (?P<limit8>\d{2,9})\)|exceed the model's predefined maximum length \((?P<limit9>\d{2,9})\)"
    r"|default_max_tokens \((?P<asked10>-?\d{1,9})\) must be greater than 0|must be less than max_position_embeddings \(got `?sequence length`?: (?P<asked11>\d{2,9}) and max_position_embeddings: (?P<limit11>\d{2,9})"
    r"|[Ss]um of prompt length \((?P<asked13>\d{2,9})(?:\.0)?\),? query length \(\d{1,9}\) should not exceed max_num_tokens \((?P<limit13>\d{2,9})\)"
        r"|exceeds cache size in model|start \((?P<asked12>\d{1,9})\) \+ length \(\d{1,9}\) exceeds dimension size \((?P<limit12>\d{2,9})\)",
)  # fmt: skip
_TRUNCATED = says(
    "request-cut",
    "truncating input prompt",
    r"truncating input prompt\W{1,4}limit=(?P<limit>\d{1,9}) prompt=(?P<asked>\d{1,9})",
)
_BOUND = says(
    "device-assertion",
    ("index out of bounds", "srcselectdimsize", "srcindex <", "indexselect", "out of bounds: 0 <="),
    r"index out of bounds: 0 <= \w{1,20} < (?P<bound>\d{1,9})|srcIndex < srcSelectDimSize|(?:vectorized_gather_kernel|index(?:ing)?_\w{3,40}).{0,120}index out of bounds|-sizes\[i\] <= index",
)  # fmt: skip

_PASSED = lazy_pattern(
    r"(?i)possible training context overflow|\bwarn|will be truncated|truncating|full capacity of the model will not be utilized|\"(?:POST|GET) /"
)
_LENGTH = lazy_pattern(
    r"(?:--max-model-len|--context-length|--max[-_]seq[-_]len|--ctx-size|-c|--session-len|max_model_len|context_length|max_seq_len)['\"]?[= :]{1,3}['\"]?(?P<length>\d{2,9})\b"
)
_POSITIONS = lazy_pattern(r"max_position_embeddings['\"]?\s{0,2}[=:]\s{0,2}(?P<limit>\d{2,9})")
_FORCED = lazy_pattern(
    r"(?:VLLM_ALLOW_LONG_MAX_MODEL_LEN|SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN)['\"]?\s{0,2}[=:]\s{0,2}['\"]?(?:1|true|True)"
)
OVERRIDES = {"vllm": "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "sglang": "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"}
_SERVED = frozenset(
    {
        "llama.cpp",
        "ollama",
        "koboldcpp",
        "text-generation-inference",
        "lmdeploy",
        "tensorrt-llm",
        "exllama",
        "exllamav2",
        "exllamav3",
    }
)
"""Engines whose limit is mostly the server's own setting, below what the model has."""


class Length(msgspec.Struct, frozen=True):
    """``asked`` positions against ``limit``. ``stage``: ``start``, ``request`` or ``device`` (an assertion of a kernel)."""

    match: Match
    stage: str
    asked: int | None
    limit: int | None
    evidence: tuple[Evidence, ...] = ()
    is_shown: bool = True


@cause("context-too-long", family="Model and configuration", signs=[_CONFIGURED, _REQUEST, _TRUNCATED, _BOUND])
def context_too_long(case: Case) -> Judgement:
    """More positions are asked for than the model has, or than the server was set to.

    How it shows itself
      At the start: `User-specified max_model_len (131072) is greater than the derived max_model_len (max_position_embeddings=40960)`.
      With a request: `This model's maximum context length is 8192 tokens. However, you requested 9000`, `the request exceeds
      the available context size`, `` `inputs` tokens + `max_new_tokens` must be <= 4096``. Forced past the check it becomes a
      device-side assertion, `index out of bounds: 0 <= tmp < 40960`, that looks like a bug of a kernel.

    Why it happens
      Tables of positions (rotary, learned embeddings) have max_position_embeddings rows. A longer length indexes past them,
      unless the positions are scaled (YaRN). Servers keep a limit of their own, up to that number.

    How to be sure
      max_position_embeddings and rope_scaling in config.json against --max-model-len or --context-length. In an assertion:
      its bound equals max_position_embeddings.

    What helps
      The length that the model has. For more: scaled positions as the model card gives them (`--rope-scaling`,
      `--hf-overrides`), or a model with a longer context. For requests: shorter input, fewer new tokens, or a higher limit of
      the server where model and memory allow it.

    What does not help
      VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 or SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1: they remove the check, not the limit. Less
      memory for the cache, another attention backend.

    Not to be confused with
      gpu-oom-kv-cache (the length is the model's own, and the cache has no room for it), kernel-illegal-address (an
      assertion with another bound: token ids outside the vocabulary, a kernel's bug).
    """
    length = _on_device(case) or _configured(case) or _requested(case)
    if length is None:
        return None
    if (
        length.asked is not None
        and length.limit is not None
        and length.asked <= length.limit
        and length.stage != "request"
    ):
        return RuledOut(
            f"{length.asked} positions are within {length.limit}", (case.evidence(length.match, "the length"),)
        )
    seen = case.evidence(length.match, _arithmetic(length))
    telling = next(
        (m for m in (length.match, *case.all(_CONFIGURED.name)[:3]) if program.engine_of(case, m)), length.match
    )
    engine, who = program.engine_of(case, telling), program.program_of(case, telling)
    certainty = _certainty(length)
    calculated = derived(f"{length.asked} > {length.limit}", "arithmetic") if length.asked and length.limit else None
    return Verdict(
        certainty=certainty,
        component=who,
        title=_title(length),
        chain=(
            Link("A length was set or sent that the model or the server does not have", length.evidence[0] if length.evidence else calculated or inferred("the length in use is not known")),
            Link(_arithmetic(length), seen),
            *((Link("A kernel reads past the table of positions, and the engine dies"),) if length.stage == "device" else ()),
        ),
        evidence=(seen, *length.evidence, *((calculated,) if calculated else ())),
        explains=case.explains(length.match, *_asserted(case, length)),
        missing=_missing(case, length, certainty),
        rivals=_rivals(length, certainty),
        remedies=_remedies(case, length, engine, who),
        not_remedies=_in_vain(engine),
        strength=_strength(length),
    )  # fmt: skip


def _number(match: Match, kind: str) -> int | None:
    found = next((value for name, value in match.groups.items() if name.startswith(kind)), None)
    return int(found) if found is not None else None


def _on_device(case: Case) -> Length | None:
    """A kernel's assertion, with what says how many positions there are and how many were asked for."""
    match = program.best(case, _BOUND.name)
    if match is None:
        return None
    warned = next((m for m in case.all(_CONFIGURED.name, _REQUEST.name) if not m.is_code), None)
    bound = _number(match, "bound")
    asked, limit, shown = _asked_length(case), _positions(case), []
    if warned is not None:
        asked, limit = _number(warned, "asked") or asked, _number(warned, "limit") or limit
        shown.append(case.evidence(warned, "the length in use is above what the model has"))
    if (
        limit is None
        and asked is not None
        and bound is not None
        and bound < asked
        and bound >= 512
        and bound % 256 == 0
    ):
        return Length(match, "device", asked, bound, (), is_shown=False)
    if limit is None or (bound is not None and bound not in (limit, limit + 1, limit + 2)):
        return None
    if asked is None or asked <= limit:
        return None
    forced = _forced(case)
    return Length(
        match,
        "device",
        asked,
        limit,
        (*shown, *((forced,) if forced else ())),
        is_shown=bound is not None or bool(shown),
    )


def _configured(case: Case) -> Length | None:
    """The start refuses the length. A warning of a start that went on shows nothing yet."""
    for match in sorted(
        (m for m in case.all(_CONFIGURED.name) if not m.is_code), key=lambda m: (not program.in_event(m), m.line.number)
    ):
        is_refusal = program.is_failure(match) and not (match.group("asked3") and _PASSED.search(match.text))
        if not is_refusal and (case.incident.primary is not None or _PASSED.search(match.text)):
            continue
        return Length(match, "start", _number(match, "asked"), _number(match, "limit"), is_shown=is_refusal)
    return None


def _requested(case: Case) -> Length | None:
    for match in sorted(
        (m for m in case.all(_REQUEST.name) if not m.is_code), key=lambda m: (not program.in_event(m), m.line.number)
    ):
        is_failure = program.is_failure(match)
        if _PASSED.search(match.text) and not is_failure:
            continue
        if match.line.level == "info":
            continue
        shown = is_failure and not _is_beside_a_failure(case, match)
        return Length(match, "request", _number(match, "asked"), _number(match, "limit"), is_shown=shown)
    return _cut(case)


def _cut(case: Case) -> Length | None:
    """Ollama takes what fits and answers, as if the rest of the prompt had not been there."""
    match = next((m for m in case.all(_TRUNCATED.name) if not m.is_code), None)
    if match is None or _is_beside_a_failure(case, match):
        return None
    return Length(match, "request", _number(match, "asked"), _number(match, "limit"), is_shown=False)


def _is_beside_a_failure(case: Case, match: Match) -> bool:
    """A refused request does not stop a server: what failed beside it is what the report is about."""
    own = {other.event.id for other in case.all(_REQUEST.name) if other.event is not None}
    own.add(match.event.id if match.event is not None else -1)
    return any(
        event.id not in own and not event.is_echo and event.kind in ("exception", "crash", "death", "kernel")
        for event in case.incident.events
    )


def _asked_length(case: Case) -> int | None:
    for key in ("server_args.max_model_len", "server_args.context_length"):
        value = case.facts.value(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    found = _LENGTH.search(str(case.facts.value("command") or "")[:8000])
    return int(found["length"]) if found is not None else None


def _positions(case: Case) -> int | None:
    value = case.facts.value("model.max_position_embeddings")
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    for _, line in case.lines():
        if "max_position_embeddings" in line.text:
            found = _POSITIONS.search(line.text[:4000])
            if found is not None:
                return int(found["limit"])
    return None


def _forced(case: Case) -> Evidence | None:
    for name in OVERRIDES.values():
        if str(case.facts.value(f"env.{name}") or "").lower() in ("1", "true"):
            return case.fact_evidence(f"env.{name}", "the check was switched off")
    shown = program.option_in_use(case, _FORCED, "ALLOW_LONG", "ALLOW_OVERWRITE")
    return None if shown is None or "set the env var" in shown.quote else shown


def _asserted(case: Case, length: Length) -> tuple[Match, ...]:
    """What the assertion leads to: CUDA's device-side assert, whose event is another one."""
    if length.stage != "device":
        return ()
    after = [event for event in case.incident.events if "device-side assert" in event.text]
    return tuple(msgspec.structs.replace(length.match, event=event) for event in after)


def _certainty(length: Length) -> Certainty:
    if not length.is_shown:
        return Certainty.POSSIBLE
    if length.asked is not None and length.limit is not None:
        return Certainty.PROVEN
    return Certainty.LIKELY


def _strength(length: Length) -> int:
    return {"device": 86, "start": 84, "request": 70}[length.stage] - (0 if length.is_shown else 30)


def _arithmetic(length: Length) -> str:
    if length.stage == "device":
        return f"an index beyond the {length.limit} positions of the model"
    if length.asked is not None and length.limit is not None:
        return f"{length.asked} tokens against a limit of {length.limit}"
    return "the length is above the limit"


def _title(length: Length) -> str:
    limit = f" {length.limit}" if length.limit else ""
    if length.stage == "request":
        return f"A request is longer than the server's limit{f' of{limit} tokens' if limit else ''}"
    return f"The length{f' {length.asked}' if length.asked else ''} exceeds the model's{limit} positions"


def _missing(case: Case, length: Length, certainty: Certainty) -> tuple[Missing, ...]:
    if certainty is Certainty.PROVEN or (length.limit is not None and length.stage != "device"):
        return ()
    asked = case.missing("model.max_position_embeddings", "how many positions the model has", "grep -E 'max_position_embeddings|rope_scaling' MODEL/config.json")  # fmt: skip
    return (asked,) if asked is not None else ()


def _rivals(length: Length, certainty: Certainty) -> tuple[str, ...]:
    if certainty is Certainty.PROVEN:
        return ()
    return ("kernel-illegal-address",) if length.stage == "device" else ("gpu-oom-kv-cache",)


def _remedies(case: Case, length: Length, engine: str, who: str) -> tuple[Remedy, ...]:
    name = engine_options.options_of(engine or who).length or "--max-model-len"
    kind = "env" if name.isupper() else "flag" if name.startswith("-") else "config"
    if length.stage == "request":
        is_raisable = (engine or who) in _SERVED
        shorter = Remedy(
            kind="config",
            name="max_tokens",
            value="lower",
            summary="Shorten the input, or ask for fewer new tokens: both count against the limit",
            rank=1,
        )
        raised = Remedy(kind=kind, name=name, value="higher", summary=f"Raise the server's limit ({name}), up to the model's positions and as far as memory allows", cost="more memory for the cache", is_sure=is_raisable)  # fmt: skip
        return (raised, shorter)
    value = str(length.limit) if length.limit else "lower"
    remedies = [
        Remedy(kind=kind, name=name, value=value, summary=f"Use the length that the model has: {name} {value}", rank=-1)
    ]
    if engine in ("", "vllm", "sglang"):
        override = "--json-model-override-args" if engine == "sglang" else "--hf-overrides"
        remedies.append(Remedy(kind="config", name="rope_scaling", value="yarn", summary="Or scale the positions as the model card gives it (rope_scaling of type yarn)", cost="quality on short texts", is_sure=False))  # fmt: skip
        remedies.append(Remedy(kind="flag", name="--rope-scaling" if engine != "sglang" else override, value="yarn", rank=1, summary=f"The same by an option (in later releases inside {override})", is_sure=False))  # fmt: skip
    variable = OVERRIDES.get(engine)
    if variable is not None and (length.stage == "device" or _forced(case) is not None):
        remedies.append(
            Remedy(
                kind="env",
                name=variable,
                value="unset",
                summary="So that the check stops such a start again",
                rank=1,
                is_sure=False,
            )
        )
    return tuple(remedies)


def _in_vain(engine: str) -> tuple[NotARemedy, ...]:
    variable = OVERRIDES.get(engine, OVERRIDES["vllm"])
    return (
        NotARemedy(f"{variable}=1", "it removes the check, and the model still has no rows for these positions: damaged text, or an assertion later"),
        NotARemedy("another memory fraction or attention backend", "the limit is one of the model"),
    )  # fmt: skip
