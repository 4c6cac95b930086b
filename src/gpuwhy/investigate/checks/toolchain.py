"""The toolkit that each JIT really takes, held against every GPU: its gates, its compiler, its host compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwhy.investigate.checks.results import (
    Passed,
    Problem,
    Result,
    Unchecked,
    by_the_tables,
    first_unknown,
    is_for_certain,
    shown,
    unchecked,
)
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge import flashinfer, pins, toolkits
from gpuwhy.knowledge.releases import cuda_release
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Facts, Unknown
from gpuwhy.model.finding import Certainty
from gpuwhy.model.host import Gpus, Resolution, ToolkitInstall, Toolkits
from gpuwhy.model.remedy import NotARemedy, Remedy

PACKAGE = "flashinfer-python"
_COMPILING = {"sglang": ("sglang", "SGLang's own JIT"), "deepgemm": ("deep-gemm", "DeepGEMM")}
"""Consumers of a toolkit beside FlashInfer: the package that must be there, and what compiles."""
_PARTS = {"headers": "cuda-cudart-dev", "cudart": "cuda-cudart-dev", "cicc": "cuda-nvcc", "curand": "libcurand-dev"}
"""Parts as the collector names them, and NVIDIA's packages that bring them. The sampling kernels include curand's."""
_OLDEST = capabilities.ComputeCapability(7, 5)
_MAJOR = re.compile(r"\D{0,40}(\d{1,2})(?:\.|$)")


def flashinfer_toolkit(facts: Facts) -> Iterator[Result]:
    """FlashInfer's own demand, its list of targets, and the options it passes, with the nvcc that it finds."""
    version, gpus = facts.value(f"packages.{PACKAGE}"), Gpus.of(facts)
    if version is None:
        return
    what = f"FlashInfer {version} compiles for these GPUs"
    tools = Toolkits.of(facts)
    found = tools.resolved_by("flashinfer") if isinstance(tools, Toolkits) else tools
    if isinstance(gpus, Unknown) or isinstance(found, Unknown) or isinstance(tools, Unknown):
        yield unchecked(what, first_unknown(gpus, found))
        return
    if found.by in ("torch.version.cuda", "none") or found.version is None:
        yield _without_nvcc(facts, str(version), found)
        return
    listed = facts.value(f"env.{flashinfer.ARCH_LIST_VARIABLE}")
    for capability in gpus.capabilities:
        if (gpu := capabilities.parse(capability)) is not None and gpu.plain < _OLDEST:
            continue  # no toolkit helps: FlashInfer does not serve it
        if listed is None:
            yield _gate(facts, str(version), capability, found, tools)
        else:
            yield _list(facts, str(version), capability, found.version, str(listed))
    yield from _options(facts, str(version), found.version)


def _without_nvcc(facts: Facts, version: str, found: Resolution) -> Result:
    what = f"FlashInfer {version} compiles for these GPUs"
    why = "it finds no nvcc, so it can only use kernels that were compiled before"
    if facts.value("packages.flashinfer-jit-cache"):
        return Unchecked(what, f"{why}; which ones flashinfer-jit-cache holds was not compared")
    if not facts.value("packages.sglang"):
        return Unchecked(what, f"{why}; whether the engine will call any others is not known")
    return Problem(
        cause="toolkit-missing", component="flashinfer", certainty=Certainty.LIKELY,
        title=f"FlashInfer {version} finds no nvcc, and SGLang makes it compile kernels at the first request",
        evidence=(*_of(found), *shown(facts, f"packages.{PACKAGE}", "packages.sglang")),
        remedies=(
            Remedy(kind="package", name="flashinfer-jit-cache", value=f"=={version}", summary="Install FlashInfer's precompiled kernels, of the same release", is_sure=False),
            Remedy(kind="toolkit", name="cuda", value="of torch's CUDA major", summary="Install a CUDA toolkit with nvcc, and point CUDA_HOME at it", cost="2 to 6 GB of disk", check=("nvcc --version",), risk="medium"),
        ),
    )  # fmt: skip


def _gate(facts: Facts, version: str, capability: str, found: Resolution, tools: Toolkits) -> Result:
    """Without a list FlashInfer detects the GPUs, and asks the toolkit's release for each."""
    toolkit = str(found.version)
    what = f"FlashInfer {version} compiles for compute capability {capability}"
    passes = flashinfer.passes_gate(version, capability, toolkit)
    if passes.value is None:
        return Unchecked(what, passes.why)
    target = flashinfer.detected_target(version, capability, toolkit) or toolkits.best_target(toolkit, capability)
    knows = toolkits.accepts(toolkit, target) if target else toolkits.accepts(toolkit, capability)
    if passes.value and knows.value is None:
        return Unchecked(what, knows.why)
    if passes.value and knows.value:
        return Passed(what, f"{passes.why}; {knows.why}")
    refusal = knows if passes.value else passes
    evidence = (
        by_the_tables(refusal.why, refusal.provenance),
        *_of(found),
        *shown(facts, "cc", "gpus", f"packages.{PACKAGE}"),
    )
    if better := _better(version, capability, tools):
        return _not_chosen(f"FlashInfer {version} for {capability}", "flashinfer", toolkit, better, evidence)
    gate = flashinfer.gate(version, capability)
    needed = (gate.minimum_toolkit if gate else None) or toolkits.first_release_for(target or capability) or "newer"
    is_sure = is_for_certain(facts, flashinfer.ARCH_LIST_VARIABLE)
    return Problem(
        cause="toolkit-too-old-for-arch", component="flashinfer",
        certainty=Certainty.PROVEN if is_sure else Certainty.LIKELY,
        title=f"FlashInfer {version} wants CUDA {needed} for compute capability {capability} and finds {toolkit}: it has no target to compile for",
        evidence=evidence, remedies=_gate_remedies(facts, version, capability, toolkit, needed),
        not_remedies=(NotARemedy(f"{flashinfer.ARCH_LIST_VARIABLE}={capability}", "an entry without a suffix goes through the same check"),),
    )  # fmt: skip


def _gate_remedies(facts: Facts, version: str, capability: str, toolkit: str, needed: str) -> tuple[Remedy, ...]:
    found = []
    gpus = Gpus.of(facts)
    found_for = gpus.capabilities if isinstance(gpus, Gpus) else ()
    entries = [flashinfer.arch_list_value(version, each, toolkit) for each in found_for]
    value = " ".join(each for each in entries if each)
    if (
        entries
        and None not in entries
        and flashinfer.arch_list_problem(value, version, toolkit) is None
        and _options_known(version, toolkit)
    ):
        found.append(Remedy(
            kind="env", name=flashinfer.ARCH_LIST_VARIABLE, value=value,
            summary=f"Name the target yourself: an entry with a suffix is taken as it is, and nvcc {toolkit} knows it",
            cost="nothing is installed; kernels are compiled once more",
            limits=("FP4 quantisation goes by torch.version.cuda, not by the list",),
        ))  # fmt: skip
    engine = next((each for each in pins.engines() if facts.value(f"packages.{each}")), "")
    accepting = flashinfer.first_release_accepting(capability, toolkit)
    newer = pins.first_release_with(engine, PACKAGE, accepting) if engine and accepting else None
    if newer:
        found.append(Remedy(kind="package", name=engine, value=f">={newer}", summary=f"{engine} {newer} and later require a FlashInfer that accepts CUDA {toolkit}", cost="an upgrade of the engine and of all that it pins", risk="medium"))  # fmt: skip
    elif accepting:
        found.append(Remedy(kind="package", name=PACKAGE, value=f">={accepting}", summary=f"FlashInfer {accepting} and later accept CUDA {toolkit} for this GPU", risk="medium", is_sure=not engine, rank=1))  # fmt: skip
    found.append(_newer_toolkit(needed))
    return tuple(found)


def _newer_toolkit(needed: str) -> Remedy:
    return Remedy(
        kind="toolkit", name="cuda", value=f">={needed}", summary=f"Install a CUDA toolkit of at least {needed}, and point CUDA_HOME at it",
        cost="2 to 6 GB of disk; the driver is not touched", check=("nvcc --version",), risk="medium",
    )  # fmt: skip


def _list(facts: Facts, version: str, capability: str, toolkit: str, listed: str) -> Result:
    """With FLASHINFER_CUDA_ARCH_LIST set, the list must be readable, known to nvcc, and fit the GPU."""
    what = f"{flashinfer.ARCH_LIST_VARIABLE}={listed} serves compute capability {capability}"
    problem = flashinfer.arch_list_problem(listed, version, toolkit)
    if problem is None:
        targets = [each for entry in listed.split() if (each := capabilities.parse(entry)) is not None]
        answers = [capabilities.runs_on(each, capability) for each in targets]
        if any(each.value for each in answers):
            return Passed(what, f"nvcc {toolkit} knows every entry")
        if any(each.value is None for each in answers) or not answers:
            return Unchecked(what, answers[0].why if answers else "no entry of it can be read")
        problem = f"none of its entries runs on {capability}"
    value = flashinfer.arch_list_value(version, capability, toolkit)
    remedy = (
        Remedy(kind="env", name=flashinfer.ARCH_LIST_VARIABLE, value=value, summary=f"Name a target that nvcc {toolkit} knows and this GPU runs")
        if value
        else Remedy(kind="env", name=flashinfer.ARCH_LIST_VARIABLE, value="unset", summary="Let FlashInfer detect the GPUs again", is_sure=False)
    )  # fmt: skip
    return Problem(
        cause="arch-list-override", component="flashinfer", certainty=Certainty.PROVEN,
        title=f"{flashinfer.ARCH_LIST_VARIABLE}={listed} does not work here: {problem}",
        evidence=shown(facts, f"env.{flashinfer.ARCH_LIST_VARIABLE}", "cuda_toolkit", "toolkit_resolved.flashinfer"),
        remedies=(remedy,),
    )  # fmt: skip


def _options_known(version: str, toolkit: str) -> bool:
    asked = flashinfer.build_requirements(version) or ()
    return all(toolkits.supports_option(toolkit, each.option).value is not False for each in asked)


def _options(facts: Facts, version: str, toolkit: str) -> Iterator[Result]:
    for each in flashinfer.build_requirements(version) or ():
        knows = toolkits.supports_option(toolkit, each.option)
        if knows.value is False:
            yield Problem(
                cause="toolkit-too-old-for-library", component="flashinfer", certainty=Certainty.PROVEN,
                title=f"FlashInfer {version} passes {each.option} to nvcc, which {toolkit} does not know",
                evidence=(by_the_tables(knows.why, knows.provenance), *shown(facts, f"packages.{PACKAGE}", "cuda_toolkit")),
                remedies=(_newer_toolkit(each.minimum_toolkit),),
            )  # fmt: skip


def _better(version: str, capability: str, tools: Toolkits) -> ToolkitInstall | None:
    """An installed toolkit that would do, where the one that is found does not."""
    for each in tools.installs:
        if each.has_nvcc and each.version and flashinfer.passes_gate(version, capability, each.version).value:
            target = flashinfer.detected_target(version, capability, each.version)
            if toolkits.accepts(each.version, target or capability).value and _options_known(version, each.version):
                return each
    return None


def _not_chosen(
    what: str, component: str, toolkit: str, better: ToolkitInstall, evidence: tuple[Evidence, ...]
) -> Problem:
    return Problem(
        cause="toolkit-path-wrong", component=component, certainty=Certainty.PROVEN,
        title=f"CUDA {toolkit} is found and does not do ({what}); {better.version} at {better.root} would, and is not chosen",
        evidence=evidence,
        remedies=(Remedy(kind="env", name="CUDA_HOME", value=better.root, summary=f"Point the service at the toolkit of CUDA {better.version}", cost="kernels are compiled once more", check=(f"{better.root}/bin/nvcc --version",)),),
    )  # fmt: skip


def other_compilers(facts: Facts) -> Iterator[Result]:
    """The nvcc that the other libraries with kernels in source take must know every GPU."""
    gpus, tools = Gpus.of(facts), Toolkits.of(facts)
    for consumer, (package, name) in _COMPILING.items():
        if not facts.value(f"packages.{package}"):
            continue
        found = tools.resolved_by(consumer) if isinstance(tools, Toolkits) else tools
        if not isinstance(found, Resolution) or not isinstance(gpus, Gpus):
            yield unchecked(f"the toolkit of {name} knows these GPUs", first_unknown(gpus, found))
            continue
        if found.version is None or found.by == "torch.version.cuda":
            yield Unchecked(f"the toolkit of {name} knows these GPUs", "it finds no nvcc; whether it must compile anything is not known")  # fmt: skip
            continue
        for capability in gpus.capabilities:
            yield _compiles(facts, name, consumer, capability, found)


def _compiles(facts: Facts, name: str, consumer: str, capability: str, found: Resolution) -> Result:
    what = f"the nvcc of {name} knows compute capability {capability}"
    knows = toolkits.accepts(str(found.version), capability)
    if knows.value is None:
        return Unchecked(what, knows.why)
    if knows.value:
        return Passed(what, knows.why)
    needed = toolkits.first_release_for(capability)
    last = toolkits.last_release_for(capability)
    if last and needed is None:
        return Unchecked(what, knows.why)
    return Problem(
        cause="toolkit-too-old-for-arch", component=consumer, certainty=Certainty.LIKELY,
        title=f"{name} finds nvcc {found.version}, which does not know compute capability {capability}",
        evidence=(by_the_tables(knows.why, knows.provenance), *_of(found), *shown(facts, "cc", "gpus")),
        remedies=(_newer_toolkit(needed or "newer"),),
    )  # fmt: skip


def toolkit_parts(facts: Facts) -> Iterator[Result]:
    """The toolkit that FlashInfer takes has the parts that compiling its kernels needs."""
    tools = Toolkits.of(facts)
    if not facts.value(f"packages.{PACKAGE}") or not isinstance(tools, Toolkits):
        return
    found = tools.resolved_by("flashinfer")
    if not isinstance(found, Resolution) or not found.root:
        return
    root = found.root.rstrip("/")
    install = next((each for each in tools.installs if each.root.rstrip("/") == root or f"also {root}" in each.note), None)  # fmt: skip
    if install is None:
        return
    lacks = [name for name in _PARTS if re.search(rf"lacks [\w, ]{{0,80}}\b{name}\b", install.note[:300])]
    if not lacks:
        yield Passed(f"the toolkit at {install.root} is complete", "compiler, headers and libraries are there")
        return
    suffix = f"-{install.version.replace('.', '-')}" if install.version else ""
    packages = list(dict.fromkeys(_PARTS[name] + suffix for name in lacks))
    yield Problem(
        cause="toolkit-incomplete", component="cuda-toolkit", certainty=Certainty.LIKELY,
        title=f"The toolkit at {install.root}, which FlashInfer takes, lacks {', '.join(lacks)}",
        evidence=(*_of(found), *shown(facts, "toolkits")),
        remedies=(
            Remedy(kind="system-package", name=packages[0], value="install", summary=f"Install {', '.join(packages)}", commands=(f"apt-get install {' '.join(packages)}",), cost="root; some 100 MB"),
            Remedy(kind="toolkit", name="cuda", value=install.version or "match:torch", summary="Install the complete toolkit, and point CUDA_HOME at it", cost="2 to 6 GB of disk", risk="medium"),
        ),
    )  # fmt: skip


def host_compiler(facts: Facts) -> Iterator[Result]:
    """nvcc refuses a gcc that is newer than it, unless nothing is compiled."""
    compilers = facts.get("gcc")
    tools = Toolkits.of(facts)
    found = tools.resolved_by("flashinfer") if isinstance(tools, Toolkits) else tools
    if not facts.value(f"packages.{PACKAGE}") or not isinstance(found, Resolution) or not found.version:
        return
    if found.by == "torch.version.cuda":
        return
    what = f"nvcc {found.version} accepts the host compiler"
    if isinstance(compilers, Unknown):
        yield Unchecked(what, "the service's compiler was not examined", "gcc", "gcc --version")
        return
    if compilers.value is None:
        yield Problem(
            cause="host-compiler", component="gcc", certainty=Certainty.LIKELY,
            title="There is no C++ compiler on the service's PATH, and nvcc needs one", evidence=(compilers.evidence,),
            remedies=(Remedy(kind="system-package", name="g++", value="install", summary="Install a C++ compiler", commands=("apt-get install g++",), cost="root"),),
        )  # fmt: skip
        return
    read, newest = _MAJOR.match(str(compilers.value)[:60]), toolkits.gcc_max(found.version)
    if read is None or newest.value is None:
        yield Unchecked(what, newest.why if newest.value is None else f"{compilers.value} is no version of gcc", "gcc")
    elif int(read[1]) <= newest.value:
        yield Passed(what, f"gcc {read[1]}, and {found.version} accepts up to {newest.value}")
    else:
        yield Problem(
            cause="host-compiler", component="gcc", certainty=Certainty.PROVEN,
            title=f"nvcc {found.version} refuses gcc {read[1]}: it accepts up to {newest.value}",
            evidence=(by_the_tables(newest.why, newest.provenance), compilers.evidence, *_of(found)),
            remedies=(
                Remedy(kind="env", name="NVCC_PREPEND_FLAGS", value=f"-ccbin g++-{newest.value}", summary=f"Let nvcc use g++-{newest.value}, where it is installed", check=(f"g++-{newest.value} --version",)),
                Remedy(kind="system-package", name=f"g++-{newest.value}", value="install", summary=f"Install g++-{newest.value}", commands=(f"apt-get install g++-{newest.value}",), cost="root"),
            ),
        )  # fmt: skip


def toolkit_against_torch(facts: Facts) -> Iterator[Result]:
    """What nvcc of another major release compiles needs a CUDA runtime that this torch does not bring."""
    tools = Toolkits.of(facts)
    found = tools.resolved_by("flashinfer") if isinstance(tools, Toolkits) else tools
    built = cuda_release(str(facts.value("torch_cuda") or ""))
    if not facts.value(f"packages.{PACKAGE}") or not isinstance(found, Resolution) or found.by == "torch.version.cuda":
        return
    release = cuda_release(found.version or "")
    if release is None or built is None:
        return
    what = f"nvcc {found.version} and torch's CUDA {facts.value('torch_cuda')} are of one major release"
    if release[0] == built[0]:
        yield Passed(what)
        return
    yield Problem(
        cause="toolkit-torch-mismatch", component="flashinfer", certainty=Certainty.LIKELY,
        title=f"nvcc is of CUDA {found.version} and torch was built for CUDA {facts.value('torch_cuda')}: modules that are compiled here need libcudart.so.{release[0]}",
        evidence=(*_of(found), *shown(facts, "torch_cuda", "torch")),
        remedies=(Remedy(kind="toolkit", name="cuda", value=f"{built[0]}.x", summary=f"Point CUDA_HOME at a toolkit of CUDA {built[0]}.x", check=("nvcc --version",), risk="medium"),),
    )  # fmt: skip


def _of(found: Resolution) -> tuple[Evidence, ...]:
    return (found.evidence,) if found.evidence is not None else ()
