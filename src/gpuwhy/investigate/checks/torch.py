"""torch's own kernels, and the assembler of its Triton, held against every GPU."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.investigate.checks.results import (
    Passed,
    Problem,
    Result,
    Unchecked,
    by_the_tables,
    first_unknown,
    shown,
    unchecked,
)
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge import toolkits, triton
from gpuwhy.knowledge import torch as wheels
from gpuwhy.knowledge.answers import Answer, unknown
from gpuwhy.knowledge.releases import public_version
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.model.finding import Certainty
from gpuwhy.model.host import Gpus, Resolution, Toolkits, Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

_TORCH_CHECK = "python -c 'import torch; print(torch.cuda.get_arch_list()); torch.ones(1, device=\"cuda\")'"


def torch_kernels(facts: Facts) -> Iterator[Result]:
    """Whether the build of torch holds code for each GPU."""
    torch, gpus = Torch.of(facts), Gpus.of(facts)
    if isinstance(gpus, Unknown) or isinstance(torch, Unknown):
        yield unchecked("torch has code for these GPUs", first_unknown(gpus, torch))
        return
    if torch.is_cpu_only:
        yield Problem(
            cause="no-device-visible", component="torch", certainty=Certainty.PROVEN,
            title=f"torch {torch.version} was built without CUDA: it sees no GPU", evidence=torch.evidence,
            remedies=(Remedy(kind="package", name="torch", value="CUDA build", summary="Install a build of torch with CUDA", cost="a download of 2 to 4 GB", check=(_TORCH_CHECK,)),),
        )  # fmt: skip
        return
    if not torch.version and not torch.arch_list:
        yield Unchecked("torch has code for these GPUs", "torch is not installed", "torch")
        return
    if not gpus.capabilities:
        yield Unchecked("torch has code for these GPUs", "the compute capability of the GPUs is not known", "cc", "nvidia-smi --query-gpu=index,name,compute_cap --format=csv")  # fmt: skip
    for capability in gpus.capabilities:
        yield _runs(torch, capability, _whose(gpus, capability), gpus, facts)


def _whose(gpus: Gpus, capability: str) -> str:
    """The GPU of a capability in words; its index too where others differ from it."""
    devices = [each for each in gpus.devices if each.compute_capability == capability]
    names = ", ".join(dict.fromkeys(each.name for each in devices if each.name))
    said = f"{names} ({capability})" if names else f"compute capability {capability}"
    indexes = [str(each.index) for each in devices if each.index is not None]
    return f"GPU {', '.join(indexes)}, {said}" if len(gpus.capabilities) > 1 and indexes else said


def _runs(torch: Torch, capability: str, whose: str, gpus: Gpus, facts: Facts) -> Result:
    name = f"torch {torch.version or ''}".rstrip() + (f" for CUDA {torch.cuda}" if torch.cuda else "")
    what = f"{name} has code for {whose}"
    answer = _of_list(torch.arch_list, capability) if torch.arch_list else None
    if answer is None or answer.value is None:
        answer = wheels.supports(str(torch.version or ""), torch.cuda, capability)
        if answer.value is False and _is_arm(capability, facts):
            answer = unknown("the tables are of the wheels for x86-64, and those for aarch64 have other targets")
    if answer.value is None:
        return Unchecked(what, answer.why, "torch_arch_list", "python -c 'import torch; print(torch.cuda.get_arch_list())'")  # fmt: skip
    if answer.value:
        return Passed(what, answer.why)
    return Problem(
        cause="torch-lacks-arch", component="torch", certainty=Certainty.PROVEN,
        title=f"{name} holds no code for {whose}",
        evidence=(by_the_tables(answer.why, answer.provenance), *torch.evidence, *gpus.evidence),
        remedies=_builds(str(torch.version or ""), gpus, facts),
        not_remedies=(
            NotARemedy("a newer system CUDA toolkit or driver", "the wheel brings its own CUDA libraries and kernels"),
            NotARemedy("reinstalling torch from the default index", "it fetches the same build again"),
        ),
    )  # fmt: skip


def _is_arm(capability: str, facts: Facts) -> bool:
    """Integrated GPUs sit beside an Arm processor; of other hosts the system's own words tell."""
    gpu = capabilities.parse(capability)
    named = f"{facts.value('os') or ''} {facts.value('kernel_release') or ''}"
    return (gpu is not None and (gpu.major, gpu.minor) in capabilities.TEGRA) or "aarch64" in named


def _of_list(targets: tuple[str, ...] | None, capability: str) -> Answer | None:
    """By the list that the installed torch itself names: PTX counts too."""
    listed = targets or ()
    ptx = {each.replace("compute_", "sm_") for each in listed if each.startswith("compute")}
    answers = [capabilities.runs_on(each, capability, has_ptx=each in ptx) for each in listed]
    if any(each.value for each in answers):
        return next(each for each in answers if each.value)
    if not answers or any(each.value is None for each in answers):
        return None
    return Answer(
        False, f"the installed torch was compiled for {' '.join(listed)}", "measured: its own list of targets"
    )


def _builds(version: str, gpus: Gpus, facts: Facts) -> tuple[Remedy, ...]:
    """A build of this release for all of the GPUs, else one of another release."""
    needed = [{build.build for build in wheels.builds_for(each)} for each in gpus.capabilities]
    fitting = set.intersection(*needed) if needed else set()
    of_release = [build.build for build in wheels.builds_of(version) if build.build in fitting]
    engine = next((name for name in ("sglang", "vllm") if facts.value(f"packages.{name}")), "")
    limits = (f"{engine} has to be a build for that torch",) if engine else ()
    if of_release:
        return (Remedy(kind="package", name="torch", value=f"{of_release[0]} build", summary=f"Install the {of_release[0]} build of torch {version.partition('+')[0]}, with torchvision and torchaudio of the same build", cost="a download of 2 to 4 GB", check=(_TORCH_CHECK,), limits=limits),)  # fmt: skip
    others = sorted((row for gpu in gpus.capabilities[:1] for row in wheels.builds_for(gpu) if row.build in fitting), key=lambda row: public_version(row.first) or row.first)  # fmt: skip
    if others:
        first = others[0]
        until = f" to {first.last}" if first.last != first.first else ""
        return (Remedy(kind="package", name="torch", value=f"{first.build} build", summary=f"Install a {first.build} build of torch ({first.first}{until}), with torchvision and torchaudio of the same build", cost="a download of 2 to 4 GB", check=(_TORCH_CHECK,), limits=limits, risk="medium"),)  # fmt: skip
    return (Remedy(kind="hardware", name="gpu", value="one generation for each environment", summary="No published build of torch has code for all of these GPUs: give each kind an environment of its own (CUDA_VISIBLE_DEVICES)"),)  # fmt: skip


def triton_assembler(facts: Facts) -> Iterator[Result]:
    """Whether the ptxas that Triton runs knows each GPU."""
    version, gpus = facts.value("packages.triton"), Gpus.of(facts)
    if version is None:
        return
    if isinstance(gpus, Unknown):
        yield unchecked(f"the assembler of Triton {version} knows these GPUs", gpus)
        return
    for capability in gpus.capabilities:
        yield _assembles(facts, str(version), capability)


def _assembles(facts: Facts, version: str, capability: str) -> Result:
    variable = triton.override_variable(version, capability) or "TRITON_PTXAS_PATH"
    what = f"the assembler of Triton {version} knows compute capability {capability}"
    named = facts.value(f"env.{variable}")
    if named:
        return _named(facts, version, capability, variable, str(named))
    refused = triton.refuses(version, capability)
    if refused.value is None:
        return Unchecked(what, refused.why)
    if not refused.value:
        return Passed(what, refused.why)
    return Problem(
        cause="ptxas-too-old-for-arch", component="triton", certainty=Certainty.PROVEN,
        title=f"The assembler that Triton {version} brings does not know compute capability {capability}",
        evidence=(by_the_tables(refused.why, refused.provenance), *shown(facts, "packages.triton", "cc", "gpus")),
        remedies=_assembler_remedies(facts, version, capability, variable),
        not_remedies=(NotARemedy("a newer driver or system toolkit alone", "Triton asks its own assembler, and looks for no other without the variable"),),
    )  # fmt: skip


def _named(facts: Facts, version: str, capability: str, variable: str, path: str) -> Result:
    """The variable names another assembler: what counts is that one's release, where it is known."""
    what = f"{variable}={path} knows compute capability {capability}"
    consumer = "triton-blackwell" if variable == "TRITON_PTXAS_BLACKWELL_PATH" else "triton"
    fact = facts.get(f"toolkit_resolved.{consumer}")
    release = fact.value.version if isinstance(fact, Fact) and isinstance(fact.value, Resolution) else None
    target = triton.target_for(version, capability)
    if release is None or target is None:
        return Unchecked(what, "the release of that assembler is not known", f"toolkit_resolved.{consumer}", f"{path} --version")  # fmt: skip
    knows = toolkits.accepts(release, target)
    if knows.value is None:
        return Unchecked(what, knows.why)
    if knows.value:
        return Passed(what, knows.why)
    return Problem(
        cause="ptxas-too-old-for-arch", component="triton", certainty=Certainty.PROVEN,
        title=f"{variable} names an assembler of CUDA {release}, which does not know {target}",
        evidence=(by_the_tables(knows.why, knows.provenance), *shown(facts, f"env.{variable}")),
        remedies=(Remedy(kind="env", name=variable, value="unset", summary="Let Triton use its own assembler", is_sure=triton.refuses(version, capability).value is False),),
    )  # fmt: skip


def _assembler_remedies(facts: Facts, version: str, capability: str, variable: str) -> tuple[Remedy, ...]:
    found = []
    target = triton.target_for(version, capability) or capability
    tools = Toolkits.of(facts)
    for each in tools.installs if isinstance(tools, Toolkits) else ():
        if each.version and toolkits.accepts(each.version, target).value and triton.agrees_to_use(version, each.version).value is not False:  # fmt: skip
            found.append(Remedy(kind="env", name=variable, value=f"{each.root}/bin/ptxas", summary=f"Let Triton assemble with the ptxas of CUDA {each.version}, which is installed", check=(f"{each.root}/bin/ptxas --version",)))  # fmt: skip
            break
    first = triton.first_release_for(capability)
    found.append(Remedy(kind="package", name="torch", value="newer", summary=f"Move to a torch whose Triton is {first} or newer" if first else "Move to a torch with a newer Triton", cost="the engine pins torch: take the engine release that goes with it", risk="medium", rank=10))  # fmt: skip
    return tuple(found)
