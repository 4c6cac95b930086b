"""Whose message a line is, which model was asked for, and with which options the program was started."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._component import GENERIC, components_in
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes.distributed import _log_lines
from gpuwhy.knowledge import components, switches
from gpuwhy.knowledge.engine_messages import engine_of_messages
from gpuwhy.model.evidence import Evidence

LOADERS = frozenset(
    {"transformers", "accelerate", "safetensors", "huggingface-hub", "peft", "tokenizers", "datasets", "diffusers", "torch", "triton", "ray", "nccl",
     "optimum", "sentence-transformers", "requests", "urllib3", "httpx", "httpcore", "aiohttp", "pydantic", "pydantic-core", "fsspec"}
)  # fmt: skip
"""Libraries that load models for other programs: they print the message, the program around them was configured."""
PYTHON_ENGINES = frozenset({"vllm", "sglang", "tensorrt-llm", "lmdeploy", "text-generation-inference", "aphrodite", "ktransformers", "mlc-llm"})  # fmt: skip
_PROGRAMS = PYTHON_ENGINES | {"ollama", "llama.cpp", "comfyui", "exllama", "exllamav2", "exllamav3", "gpustack", "koboldcpp", "unsloth", "lmms-eval", "verl", "nemo"}  # fmt: skip
_REPOSITORY = r"(?P<name>[\w.-]{1,96}/[\w.-]{1,96})"
_MODEL = lazy_pattern(
    r"(?:huggingface\.co|hf\.co|hf-mirror\.com|modelscope\.cn/models)/(?:api/models/)?"
    + _REPOSITORY
    + r"(?=[/.:\s)'\"]|$)"
)
_MODEL_OPTION = lazy_pattern(
    r"(?:--model(?:-path|-id|_path|_id)?[= ]{1,3}|vllm serve |sglang serve |\bmodel=|model_path=)['\"]?(?P<name>[\w./@+-]{2,200})"
)
_MODEL_FACTS = ("server_args.model", "server_args.model_path", "server_args.model_tag", "server_args.model_id")


def engine_of(case: Case, match: Match | None = None) -> str:
    """The engine the log belongs to, else the one whose words the match has; ``""`` when neither tells."""
    found = case.engine or engine_of_messages(line.raw for _, line in case.lines())
    found = (components.canonical(found) or found) if found else ""
    if found in _PROGRAMS or match is None:
        return found
    return _engine_by_words(match.text[:1600]) or found or _engine_by_options(match.text[:1600])


_OPTION = lazy_pattern(r"(?<![\w-])--[a-z][\w-]{3,60}|(?<=[`'\"])[a-z]{2,20}(?:_[a-z0-9]{1,20}){1,6}(?=[`'\"])")


def _engine_by_options(text: str) -> str:
    """The only server that has an option which the message names; ``""`` where none or several have it."""
    for option in _OPTION.findall(text)[:6]:
        spelled = option if option.startswith("--") else f"--{option.replace('_', '-')}"
        having = [server for server in switches.SERVERS if switches.is_option_of(server, spelled)]
        if len(having) == 1:
            return having[0]
    return ""


def program_of(case: Case, match: Match, default: str = "user-program") -> str:
    """The program that was configured: the engine, else the innermost caller of the loader, else the loader itself."""
    engine = engine_of(case, match)
    if engine == "llama.cpp":
        return _build_of_llama(match) or engine
    if engine:
        return engine
    loader = None
    for component in _components_near(case, match):
        if component in GENERIC:
            continue
        if component not in LOADERS:
            return component
        loader = loader or component
    return loader or default


def _build_of_llama(match: Match) -> str | None:
    """The product that carries llama.cpp under its own name, by the frames of the failure."""
    for frame in reversed(match.frames):
        for component in components_in(frame.path):
            if component in components.BUILDS_OF_LLAMA:
                return component
    return None


_BY_WORDS = (
    ("ollama", lazy_pattern(r"^Error: (?:unsupported|unknown) architecture|^Error: pull model|llama runner process|[Vv]ersion of Ollama")),
    ("sglang", lazy_pattern(r"allow-auto-truncate|radix[- _]cache|hierarchical[- _]cache|DeepEP MoE|trtllm_m[hl]a|page_size|dp[- _]attention|overlap schedule|mixed[- ]chunk|context_length \(|SGLANG_|SGLang|\bsglang\b")),
    ("vllm", lazy_pattern(r"max_model_len|\bV[01] engine\b|in LLM or using the `--trust-remote-code` flag|[Tt]he (?:decoder|encoder) prompt \(length|\bVLLM_|\bvLLM\b|\bvllm\b|maximum context length is \d{1,9} tokens\. However|quantization method \w{2,40} is not supported for|Supported dtypes: \[|SupportsPP|Selected backend|(?:Marlin|Machete|Exllama|AllSpark)LinearKernel|compressed-tensors compatible scheme|Quantization scheme is not supported|Marlin does not support|weight quantization is supported for|validation errors? for (?:Model|Cache|Parallel|Scheduler|Compilation|Speculative|Vllm|LoRA|Load)Config|enable-auto-tool-choice|invalid tool call parser|quantization` argument|max_num_batched_tokens|min_thread_[nk]|Current platform does not support|Unknown quantization method|in the model's quantization config|BitsAndBytes quantization|KV cache specs")),
    ("tensorrt-llm", lazy_pattern(r"default_max_tokens|max_num_tokens|Executor worker returned|splited_prompt_len|\[TRT-LLM\]|\btrtllm-|\btrtllm_(?!m[hl]a)")),
    ("tensorrt", lazy_pattern(r"\[TRT\]|kPLAN_MAGIC")),
    ("text-generation-inference", lazy_pattern(r"`inputs`|max_new_tokens` must be|ArgumentValidation")),
    ("llama.cpp", lazy_pattern(r"\.gguf\b|^error while handling argument|^error: (?:invalid|unknown) argument: |^(?:srv|slot|main|common_init) {1,6}\w|\bllama_\w|\bgguf_|exceed context window of|available context size")),
)  # fmt: skip
"""Who prints a message of this family, where the log names no engine; sub-strings of their format strings."""


def _engine_by_words(text: str) -> str:
    return next((engine for engine, pattern in _BY_WORDS if pattern.search(text)), "")


_SAYS_FAILED = lazy_pattern(r"^(?:Value error\b|Assertion failed\b|[\w.]{0,80}(?:Error|Exception)\b|Error\b|error\b|fatal\b|(?:gguf|llama|ggml|clip|common)_\w{2,60}: )|\[E\]|\bERROR\b|(?:^|[\s,])error[:=]|\bfailed to\b", re.I)  # fmt: skip


def is_failure(match: Match) -> bool:
    """Whether the line says that something failed: by its event, its level or its own words."""
    if in_event(match) or match.line.level in ("error", "critical", "fatal"):
        return True
    return match.line.level not in ("info", "debug", "warning") and _SAYS_FAILED.search(match.text[:300]) is not None


def loader_of(match: Match) -> str | None:
    """The library whose code raised: the innermost frame's component; None when the frames name none."""
    for frame in reversed(match.frames):
        for component in components_in(frame.path):
            if component not in GENERIC:
                return component
    return None


def _components_near(case: Case, match: Match) -> Iterator[str]:
    for frame in reversed(match.frames):
        yield from components_in(frame.path)
    around = case.lines_around(match, 60, 25)
    for line in around:
        yield from components_in(line.text)
    for line in around:  # messages name features after other projects; only a program's own name counts
        yield from (named for named in components_in(line.text, with_names=True) if named in _PROGRAMS)


def model_of(case: Case, match: Match | None = None) -> str | None:
    """The model that was asked for: from the message, the options, the command; None when nothing names it."""
    if match is not None:
        for line in (match.line, *case.lines_around(match, 6, 6)):
            named = _MODEL.search(line.text[:2000])
            if named is not None:
                return named["name"].rstrip(".")
    for key in _MODEL_FACTS:
        value = case.facts.value(key)
        if isinstance(value, str) and value:
            return value
    command = _MODEL_OPTION.search(str(case.facts.value("command") or "")[:8000])
    return command["name"] if command is not None else None


def option_in_use(
    case: Case, pattern: re.Pattern[str], *literals: str, besides: Match | None = None
) -> Evidence | None:
    """What shows that an option was given: the command, else a line of the log other than the message itself."""
    command = str(case.facts.value("command") or "")[:8000]
    found = pattern.search(command)
    if found is not None:
        return case.fact_evidence("command", f"the command has {found.group(0).strip()}")
    for seen in _log_lines.matching(case, pattern, literals):
        if besides is None or seen.line is not besides.line:
            return seen.evidence("the option is in use")
    return None


def in_event(match: Match) -> bool:
    """Whether the line belongs to something that failed.

    Pydantic's line of a validation error is often all that is pasted of it; nothing else begins so.
    """
    if match.text.startswith(("Value error, ", "Assertion failed, ")):
        return True
    return match.event is not None and match.event.kind in ("exception", "crash", "build", "death")


def best(case: Case, *signs: str) -> Match | None:
    """The first match outside quoted source: in a failure before elsewhere, then the earliest."""
    matches = [match for match in case.all(*signs) if not match.is_code]
    return min(matches, key=lambda match: (not in_event(match), match.line.number), default=None)
