"""Whether a library was built here, and not published by its project: what a fix has to change depends on it."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import Sign, says
from gpuwhy.causes.architecture._examined_binaries import binaries_of
from gpuwhy.knowledge import components
from gpuwhy.model.evidence import Evidence, Standing
from gpuwhy.model.fact import Fact

BUILT_HERE = says(
    "built-here",
    (
        "building wheel", "pip install -e", "no-build-isolation", "setup.py", "cmake -b", "cmake --build", "building cuda object",
        "from source", "building extension", "editable", "compiled it myself", "i built", "-dggml_cuda", "-dllama_cuda", "docker build",
        "build.sh",
    ),
    r"[Bb]uilding wheel|pip3? install (?:-\S+ )*-e\b|no-build-isolation|setup\.py (?:install|develop|build|bdist)|cmake (?:-B|--build|-S|\.\.)|Building CUDA object"
    r"|(?:built|compiled|installed|building|compiling) (?:\S+ ){0,4}from source|Building extension|editable (?:install|project)|\bI (?:have )?(?:built|compiled)|-D(?:GGML|LLAMA)_CUDA\w*=ON|docker build",
)  # fmt: skip
SIGNS: tuple[Sign, ...] = (BUILT_HERE,)
_SOURCE = lazy_pattern(
    r"source|built|editable|\bgit\b|\+g[0-9a-f]{6,}|\.dev\d|checkout|local build|/\S+", re.IGNORECASE
)
_FEW_TARGETS = 2
"""Published binaries hold code for several generations; a build for one machine has one or two targets."""


def evidence_of_own_build(case: Case, match: Match, component: str | None) -> Evidence | None:
    """What shows that the library was built here; None when nothing does."""
    named = evidence_naming_component(case, component)
    if named is not None:
        return named
    for frame in match.frames:
        if frame.path.startswith("/") and "-packages/" not in frame.path and "/python3" not in frame.path:
            owner = components.component_of_module(frame.path)
            if owner is not None and owner == component and owner not in ("python", "user-program"):
                return Evidence(f"{component} runs out of a source tree", frame.path, match.place)
    stated = case.found(BUILT_HERE.name)
    if stated is not None:
        return case.evidence(stated, "a build on this machine")
    binary = binary_of(case, component)
    # of a library that was examined as a whole; single files of a published wheel have one target often
    is_told = binary is not None and binary.evidence.standing is Standing.GIVEN
    return binary.evidence if binary is not None and is_told and 0 < len(binary.value) <= _FEW_TARGETS else None


def evidence_naming_component(case: Case, component: str | None) -> Evidence | None:
    """What says of this very component that it was built here: its version or origin, or a line that names it."""
    for name, fact in case.facts.group("packages").items():
        if _belongs(name, component) and fact.value is not None and _SOURCE.search(str(fact.value)):
            return fact.evidence
    for match in case.all(BUILT_HERE.name):
        if component is not None and _squeezed(component) in _squeezed(match.text):
            return case.evidence(match, f"{component} was built on this machine")
    return None


def _squeezed(name: str) -> str:
    """AutoGPTQ, auto-gptq and auto_gptq are one name."""
    return re.sub(r"[-_.]", "", name.lower())


def binary_of(case: Case, component: str | None) -> Fact | None:
    """The list of targets in the component's binary, when somebody looked."""
    return next(iter(binaries_of(case, component).values()), None)


def _belongs(name: str, component: str | None) -> bool:
    words = name.replace("/", " ").split() or [name]
    return component is not None and component in (components.canonical(name), components.canonical(words[0]), name)
