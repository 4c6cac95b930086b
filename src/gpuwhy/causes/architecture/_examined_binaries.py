"""Whose library a fact ``binary_archs.NAME`` is about: people give the component, its part, the file, or its path."""

from __future__ import annotations

from gpuwhy.causes._case import Case
from gpuwhy.knowledge import components
from gpuwhy.model.fact import Fact


def component_of_binary(name: str) -> str:
    """The component of ``lmdeploy turbomind``, ``libggml-cuda.so``, ``vllm/_C.abi3.so`` or ``/opt/x/libtorch_cuda.so``.

    A name that says nothing of its owner (``_C.abi3.so`` without its folder) is returned in lower case.
    """
    known = components.canonical(name) or components.component_of_module(name)
    if known is not None:
        return known
    words = [word.strip("()[],;:'\"`") for word in name.split()]
    return next((c for word in words if (c := components.component_of_module(word)) is not None), name.lower())


def is_binary_of(name: str, component: str | None) -> bool:
    """Whether the library called ``name`` is the component's; products that bundle llama.cpp use its file names."""
    if component is None:
        return False
    owner = component_of_binary(name)
    return component in (owner, name) or (owner == "llama.cpp" and component in components.BUILDS_OF_LLAMA)


def binaries_of(case: Case, component: str | None) -> dict[str, Fact]:
    """The lists of targets of the component's libraries that somebody looked at, by the name they were given."""
    known = case.facts.group("binary_archs")
    return {
        name: fact
        for name, fact in known.items()
        if isinstance(fact.value, (list, tuple)) and is_binary_of(name, component)
    }
