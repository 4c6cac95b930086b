"""Packages of one environment held against each other: what engines pin, what belongs to a torch, parts of one release."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from gpuwhy.investigate.checks.results import Passed, Problem, Result, Unchecked, by_the_tables, shown
from gpuwhy.knowledge import pins, torch_companions
from gpuwhy.knowledge import torch as wheels
from gpuwhy.knowledge.releases import public_version
from gpuwhy.model.fact import Facts, Unknown
from gpuwhy.model.finding import Certainty
from gpuwhy.model.host import Packages
from gpuwhy.model.remedy import Remedy

PINNED = ("torch", "flashinfer-python", "sgl-kernel", "transformers", "xgrammar", "torchvision", "torchaudio", "xformers", "flashinfer-cubin", "outlines-core", "compressed-tensors", "numpy", "triton")  # fmt: skip
"""Packages whose releases engines are held to. Others are pip's business, and break no kernel."""
_PARTS = ("flashinfer-cubin", "flashinfer-jit-cache")


def engine_pins(facts: Facts) -> Iterator[Result]:
    """What each engine requires, against what is installed."""
    packages = Packages.of(facts)
    if isinstance(packages, Unknown):
        yield Unchecked("the packages fit each other", packages.why, packages.key, packages.command)
        return
    for engine in pins.engines():
        version = packages.version(engine)
        if not version:
            continue
        compared = 0
        for name in PINNED:
            installed = packages.version(name) or (packages.version("sglang-kernel") if name == "sgl-kernel" else None)
            pin = pins.pin_of(engine, version, name)
            if not installed or pin is None or pin.extra:
                continue
            answer = pins.admits(pin, installed)
            if answer is not None:
                compared += 1
            if answer is False:
                yield _conflict(facts, engine, pin, installed)
        if compared:
            yield Passed(
                f"{engine} {version} and the packages that it requires", f"{compared} requirements were compared"
            )
        else:
            yield Unchecked(f"{engine} {version} and the packages that it requires", "this release is not in the table of pins, or none of them is installed", "packages", "python -m pip check")  # fmt: skip


def _conflict(facts: Facts, engine: str, pin: pins.Pin, installed: str) -> Problem:
    is_kernel = pin.package in ("torch", "sgl-kernel", "sglang-kernel", "flashinfer-python")
    return Problem(
        cause="package-conflict", component=pin.package, certainty=Certainty.LIKELY if is_kernel else Certainty.POSSIBLE,
        title=f"{pin.why}, and {installed} is installed",
        evidence=(by_the_tables(pin.why, pin.provenance), *shown(facts, f"packages.{engine}", f"packages.{pin.package}")),
        remedies=(Remedy(kind="package", name=pin.package, value=pin.specifier or "", summary=f"Install the {pin.package} that {engine} {pin.engine_version} requires", check=("python -m pip check",)),),
    )  # fmt: skip


def parts_of_flashinfer(facts: Facts) -> Iterator[Result]:
    """FlashInfer refuses to start with parts of another release."""
    own = facts.value("packages.flashinfer-python")
    for part in _PARTS:
        other = facts.value(f"packages.{part}")
        if not own or not other:
            continue
        if public_version(str(own)) == public_version(str(other)):
            yield Passed(f"{part} is of FlashInfer's release", str(own))
        else:
            yield Problem(
                cause="package-conflict", component="flashinfer", certainty=Certainty.PROVEN,
                title=f"flashinfer-python is {own} and {part} {other}: it refuses parts of another release",
                evidence=shown(facts, "packages.flashinfer-python", f"packages.{part}"),
                remedies=(Remedy(kind="package", name=part, value=f"=={own}", summary=f"Install {part} {own}"),),
            )  # fmt: skip


def companions_of_torch(facts: Facts) -> Iterator[Result]:
    """Extensions that belong to one torch release, and the Triton that torch requires."""
    torch = str(facts.value("packages.torch") or facts.value("torch") or "")
    if not torch:
        return
    wanted = {name: torch_companions.release_for(name, torch) for name in torch_companions.COMPANIONS}
    triton = wheels.triton_of(torch)
    wanted["triton"] = triton if triton is None or not triton[:1].isdigit() else f"=={triton}"
    for name, constraint in wanted.items():
        installed = facts.value(f"packages.{name}")
        if not installed or not constraint:
            continue
        version = public_version(str(installed))
        try:
            fits = SpecifierSet(constraint).contains(version, prereleases=True) if version is not None else None
        except InvalidSpecifier:
            continue
        if fits is None:
            yield Unchecked(
                f"{name} belongs to torch {torch}", f"{str(installed)[:80]} is no version", f"packages.{name}"
            )
        elif fits:
            yield Passed(f"{name} {installed} belongs to torch {torch}", constraint)
        else:
            yield Problem(
                cause="package-conflict", component=name, certainty=Certainty.POSSIBLE if name == "triton" else Certainty.LIKELY,
                title=f"{name} {installed} does not belong to torch {torch}, which goes with {name}{constraint}",
                evidence=shown(facts, f"packages.{name}", "packages.torch", "torch"),
                remedies=(Remedy(kind="package", name=name, value=constraint, summary=f"Install {name}{constraint}", check=("python -m pip check",)),),
            )  # fmt: skip
