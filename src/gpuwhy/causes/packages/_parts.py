"""The parts of an installation: which component a binary is, what is installed, and what the engine asks for."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.knowledge import components, pins
from gpuwhy.model.event import Frame, LogLine
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty
from gpuwhy.model.remedy import Remedy

ENGINES = frozenset(
    {"vllm", "sglang", "tensorrt-llm", "lmdeploy", "text-generation-inference", "aphrodite", "ktransformers", "mlc-llm", "ollama", "llama.cpp", "comfyui", "gpustack", "triton-server"}
)  # fmt: skip
"""Programs that decide which releases of other packages fit: what disagrees with them is out of step."""
DISTRIBUTIONS = {
    "flashinfer": "flashinfer-python",
    "deepgemm": "deep_gemm",
    "deepep": "deep_ep",
    "llama.cpp": "llama-cpp-python",
    "cutlass": "nvidia-cutlass-dsl",
    "modelopt": "nvidia-modelopt",
    "tvm": "apache-tvm-ffi",
    "megatron": "megatron-core",
    "nemo": "nemo-toolkit",
    "llm-compressor": "llmcompressor",
    "spargeattn": "spas-sage-attn",
    "onnxruntime": "onnxruntime-gpu",
    "cupy": "cupy-cuda12x",
    "mooncake": "mooncake-transfer-engine",
}
"""Names under which components are installed with pip, where they differ."""
_EGG = lazy_pattern(r"packages/[\w.+-]{1,120}\.egg/")
"""The folder that an installation of setup.py puts around a package, named after its release."""
_IMPORT = lazy_pattern(r"\s*(?:from|import) +(?P<module>[A-Za-z_][\w.]{1,80})")
PARTS_OF_ENGINES = frozenset({"sgl-kernel", "flashinfer", "flashinfer-cubin", "flash-attn"})
"""Packages that an engine brings along in one fixed release."""


def distribution_of(component: str, case: Case | None = None) -> str:
    """The package to install for a component. sgl-kernel is called sglang-kernel in later releases."""
    if component == "sgl-kernel" and case is not None and "packages.sglang-kernel" in case.facts:
        return "sglang-kernel"
    return DISTRIBUTIONS.get(component, component)


def component_of(text: str | None) -> str | None:
    """The component of a path, module or library; None when the text is empty or names none."""
    return components.component_of_module(_EGG.sub("packages/", text)) if text else None


def imported_by_last_frame(match: Match) -> str | None:
    """The component that the innermost frame imports: its compiled part is what does not load.

    Of the exception that the line belongs to; None when that frame imports nothing that is known.
    """
    for frame in reversed(frames_of(match)):
        found = _IMPORT.match(frame.code)
        if found is not None:
            return components.canonical(found["module"].partition(".")[0]) or components.canonical(found["module"])
        if "importlib" not in frame.path and "<frozen" not in frame.path:
            return None
    return None


def frames_of(match: Match) -> tuple[Frame, ...]:
    """The frames of the exception block that the line belongs to."""
    if match.event is None:
        return ()
    for block in match.event.exceptions:
        if match.text and match.text[:200] in f"{block.type}: {block.message}":
            return block.frames
    return match.frames


def component_of_binary(case: Case, match: Match, path: str | None) -> str | None:
    """The component of a shared library by its path, else of what is named around the line."""
    own = component_of(path)
    if own in ("cuda-toolkit", "driver"):  # libraries that others load: who loads them is what counts
        own = "torch" if path and ("/torch/" in path or "packages/nvidia/" in path) else None
    return own or imported_by_last_frame(match) or case.component_near(match, case.engine or None)


def version_of(case: Case, distribution: str) -> str | None:
    """The installed version, as far as the facts know it."""
    keys = ["torch"] if distribution == "torch" else []
    keys += [f"packages.{distribution}", f"packages.{distribution.replace('-', '_')}"]
    for key in keys:
        found = case.fact(key)
        if isinstance(found, Fact) and isinstance(found.value, str) and found.value[:1].isdigit():
            return found.value
    return None


def evidence_of(case: Case, distribution: str, statement: str) -> tuple[Evidence, ...]:
    """The evidence of an installed version; empty when nobody knows it."""
    keys = (*(["torch"] if distribution == "torch" else []), f"packages.{distribution}")
    for key in keys:
        found = case.fact_evidence(key, statement)
        if found is not None:
            return (found,)
    return ()


def required_by_engine(case: Case, distribution: str) -> pins.Pin | None:
    """What the engine's installed release asks of a package; None when either is not known."""
    engine = case.engine
    version = version_of(case, engine) if engine in pins.engines() else None
    return pins.pin_of(engine, version, distribution) if version else None


def constraint_for(case: Case, distribution: str) -> str:
    """The release of a package that fits here: as the engine's release pins it, else ``match:ENGINE``, else ``""``."""
    pin = required_by_engine(case, distribution)
    if pin is not None and pin.specifier:
        return pin.specifier
    return f"match:{case.engine}" if case.engine in ENGINES else ""


def whole_engine(case: Case, rank: int = 8) -> tuple[Remedy, ...]:
    """Take the engine with everything it pins, or its image: for engines that are tested as one set."""
    engine = case.engine
    if engine not in ("vllm", "sglang", "tensorrt-llm", "lmdeploy"):
        return ()
    return (
        Remedy(
            kind="package",
            name=engine,
            value="whole set, in a fresh environment",
            summary=f"Install {engine} with all that it pins into a fresh environment, or run its official image",
            cost="a download of several GB",
            check=("python -m pip check",),
            rank=rank,
        ),
    )


def is_failure(case: Case, match: Match) -> bool:
    """Whether the line belongs to something that failed, and is no remark in passing."""
    event = match.event
    return event is not None and (event.kind in ("exception", "crash", "build") or event.id == case.incident.primary)


def capped(case: Case, match: Match, certainty: Certainty, *consequences: Match | None) -> Certainty:
    """``certainty``, less where the incident failed at something else than this line and what follows from it.

    Programs try imports and downloads that they can do without, and print why they failed; such a line is true, and
    proves nothing about a crash of another kind.
    """
    primary = case.incident.primary
    explained = {each.event.id for each in (match, *consequences) if each is not None and each.event is not None}
    if primary is None or primary in explained or certainty is Certainty.POSSIBLE:
        return certainty
    is_failure = match.event is not None and match.event.kind in ("exception", "crash", "build")
    return Certainty.LIKELY if is_failure and certainty is Certainty.PROVEN else Certainty.POSSIBLE


def says_around(case: Case, match: Match, pattern: str, before: int = 60, after: int = 40) -> LogLine | None:
    """The nearest line around the match that has the pattern."""
    searched = re.compile(pattern)
    for line in (match.line, *case.lines_around(match, before, after)):
        if searched.search(line.text[:1000]):
            return line
    return None
