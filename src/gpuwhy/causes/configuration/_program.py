"""Whose message a line is, which model was asked for, and with which options the program was started."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._component import GENERIC, components_in
from gpuwhy.causes.distributed import _log_lines
from gpuwhy.knowledge import components
from gpuwhy.knowledge.engine_messages import engine_of_messages
from gpuwhy.model.evidence import Evidence

LOADERS = frozenset(
    {"transformers", "accelerate", "safetensors", "huggingface-hub", "peft", "tokenizers", "datasets", "diffusers", "torch", "triton", "ray", "nccl",
     "optimum", "sentence-transformers"}
)  # fmt: skip
"""Libraries that load models for other programs: they print the message, the program around them was configured."""
PYTHON_ENGINES = frozenset({"vllm", "sglang", "tensorrt-llm", "lmdeploy", "text-generation-inference", "aphrodite", "ktransformers", "mlc-llm"})  # fmt: skip
_LONGEST_LOG = 20000
_REPOSITORY = r"(?P<name>[\w.-]{1,96}/[\w.-]{1,96})"
_MODEL = re.compile(
    r"(?:huggingface\.co|hf\.co|hf-mirror\.com|modelscope\.cn/models)/(?:api/models/)?"
    + _REPOSITORY
    + r"(?=[/.:\s)'\"]|$)"
)
_MODEL_OPTION = re.compile(
    r"(?:--model(?:-path|-id|_path|_id)?[= ]{1,3}|vllm serve |sglang serve |\bmodel=|model_path=)['\"]?(?P<name>[\w./@+-]{2,200})"
)
_MODEL_FACTS = ("server_args.model", "server_args.model_path", "server_args.model_tag", "server_args.model_id")


def engine_of(case: Case) -> str:
    """The engine the log belongs to, by its own name; ``""`` when the log does not tell."""
    found = case.engine or engine_of_messages(
        line.raw for log in case.incident.logs for line in log.lines[:_LONGEST_LOG]
    )
    return (components.canonical(found) or found) if found else ""


def program_of(case: Case, match: Match, default: str = "user-program") -> str:
    """The program that was configured: the engine, else the innermost caller of the loader, else the loader itself."""
    engine = engine_of(case)
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
    for line in (match.line, *around):
        yield from components_in(line.text, with_names=True)


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
    """Whether the line belongs to something that failed."""
    return match.event is not None and match.event.kind in ("exception", "crash", "build", "death")


def best(case: Case, *signs: str) -> Match | None:
    """The first match outside quoted source: in a failure before elsewhere, then the earliest."""
    matches = [match for match in case.all(*signs) if not match.is_code]
    return min(matches, key=lambda match: (not in_event(match), match.line.number), default=None)
