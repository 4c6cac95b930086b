"""The driver held against the GPUs, the CUDA of what runs on it, and its own parts."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.investigate.checks.results import Passed, Problem, Result, Unchecked, by_the_tables, shown, unchecked
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge import drivers, toolkits
from gpuwhy.knowledge import gpus as models
from gpuwhy.knowledge import torch as wheels
from gpuwhy.knowledge.answers import Answer
from gpuwhy.knowledge.releases import cuda_release
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.model.finding import Certainty
from gpuwhy.model.host import Driver, Gpus, Resolution, Toolkits, Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

_IN_VAIN = (NotARemedy("a CUDA toolkit of another version on the host", "programs bring their CUDA run time; what is short is the driver"),)  # fmt: skip
_COMMAND = "cat /proc/driver/nvidia/version"


def driver_is_there(facts: Facts) -> Iterator[Result]:
    """Whether a driver is loaded, and whether the one on disk and its library are of the same version."""
    found = facts.get("driver")
    if isinstance(found, Unknown):
        return
    if found.value is None:
        yield Problem(
            cause="no-device-visible", component="driver", certainty=Certainty.PROVEN,
            title="No NVIDIA driver is loaded: no program sees a GPU", evidence=(found.evidence,),
            remedies=(Remedy(kind="driver", name="nvidia", value="install", summary="Install the NVIDIA driver, or load it (modprobe nvidia)", cost="root", check=(_COMMAND,), risk="medium"),),
        )  # fmt: skip
        return
    for key, what in (("driver_library", "libcuda on disk"), ("driver_installed", "the kernel module on disk")):
        other = facts.value(key)
        if other is None:
            continue
        if str(other) == str(found.value):
            yield Passed(f"{what} is of the loaded driver's version", str(other))
        else:
            yield Problem(
                cause="driver-library-mismatch", component="driver",
                certainty=Certainty.PROVEN if key == "driver_library" else Certainty.LIKELY,
                title=f"The loaded driver is {found.value}, and {what} is of {other}",
                evidence=shown(facts, "driver", key),
                remedies=(Remedy(kind="driver", name="nvidia", value="reload", summary="Load the driver that is installed: reboot, or stop every program on the GPUs and reload the module", commands=("reboot",), cost="every program on the GPUs stops", check=(_COMMAND,)),),
            )  # fmt: skip


def driver_knows_gpus(facts: Facts) -> Iterator[Result]:
    """Whether the driver is new enough for each model."""
    gpus, driver = Gpus.of(facts), Driver.of(facts)
    if isinstance(gpus, Unknown) or isinstance(driver, Unknown) or not driver.version:
        return
    if any(
        fact.evidence.standing.value == "observed" for key in ("gpus", "cc") if isinstance(fact := facts.get(key), Fact)
    ):
        return  # the driver itself named them
    have = drivers.driver_version(driver.version)
    for device in {(each.name, each.compute_capability): each for each in gpus.devices}.values():
        model = models.by_name(device.name) if device.name else None
        first = model.first_open_driver if model else None
        target = capabilities.parse(device.compute_capability)
        cuda = toolkits.first_release_for(target) if target else None
        first = first or (drivers.shipped_with(cuda) if cuda else None)
        whose = device.name or f"compute capability {device.compute_capability}"
        wanted = drivers.driver_version(first or "")
        if have is None or wanted is None or first is None:
            yield Unchecked(f"driver {driver.version} knows {whose}", "the first driver for it is not in the tables")
        elif have[0] >= wanted[0]:
            yield Passed(f"driver {driver.version} knows {whose}", f"drivers of branch {wanted[0]} do")
        else:
            yield Problem(
                cause="driver-too-old", component="driver", certainty=Certainty.LIKELY,
                title=f"Driver {driver.version} is older than the first one known to drive {whose}, {first}",
                evidence=(*driver.evidence, *gpus.evidence), remedies=(_newer(str(wanted[0]), f"{whose} needs it"),), not_remedies=_IN_VAIN,
            )  # fmt: skip


def driver_runs_torch(facts: Facts) -> Iterator[Result]:
    """Whether the driver starts programs of the CUDA that torch was built for, and compiles the PTX that it needs."""
    torch, driver, gpus = Torch.of(facts), Driver.of(facts), Gpus.of(facts)
    if isinstance(torch, Unknown) or torch.is_cpu_only:
        return
    cuda = torch.cuda or wheels.default_cuda(torch.version or "")
    if cuda is None:
        if torch.version:
            yield Unchecked("the driver runs torch", "the CUDA that torch was built for is not known", "torch_cuda", "python -c 'import torch; print(torch.version.cuda)'")  # fmt: skip
        return
    what = f"the driver runs torch for CUDA {cuda}"
    if isinstance(driver, Unknown):
        yield unchecked(what, driver)
        return
    if driver.version is None and driver.cuda is None:
        return
    answer = _runs(driver, cuda)
    if answer.value is None:
        yield Unchecked(what, answer.why)
    elif answer.value is False:
        yield _too_old(facts, driver, cuda, "torch", answer)
    else:
        yield Passed(what, answer.why)
        if isinstance(gpus, Gpus):
            yield from _ptx(torch, driver, cuda, gpus)


def _runs(driver: Driver, cuda: str) -> Answer:
    if driver.version:
        return drivers.runs(driver.version, cuda)
    have, want = cuda_release(driver.cuda or ""), cuda_release(cuda)
    if have is None or want is None:
        return Answer(None, f"{driver.cuda} or {cuda} is no CUDA version", "unchecked")
    why = f"the driver supports CUDA {driver.cuda}, the program is of {cuda}"
    return Answer(have[0] >= want[0], why, "documented:NVIDIA, CUDA minor version compatibility")


def _too_old(facts: Facts, driver: Driver, cuda: str, component: str, answer: Answer) -> Problem:
    floor = drivers.required_for(cuda)
    branch = floor.partition(".")[0] if floor else None
    is_bridged = "compat" in str(facts.value("libcuda_path") or "")
    remedies = [_newer(branch, f"CUDA {cuda} needs it")]
    have = cuda_release(driver.cuda or drivers.cuda_of(driver.version or "") or "")
    torch = str(facts.value("torch") or facts.value("packages.torch") or "")
    fitting = [
        row.build for row in wheels.builds_of(torch) if have and (cuda_release(row.build) or (99, 0))[0] <= have[0]
    ]
    if component == "torch" and fitting:
        remedies.append(Remedy(kind="package", name="torch", value=f"{fitting[-1]} build", summary=f"Install the {fitting[-1]} build of torch, which this driver runs", cost="a download of 2 to 4 GB", limits=("check the GPUs against that build too: `gpuwhy check --package`",), rank=1))  # fmt: skip
    return Problem(
        cause="driver-too-old", component=component, certainty=Certainty.LIKELY if is_bridged else Certainty.PROVEN,
        title=f"Driver {driver.version or f'for CUDA {driver.cuda}'} does not run programs of CUDA {cuda}" + (f" (needs {floor})" if floor else ""),
        evidence=(by_the_tables(answer.why, answer.provenance), *driver.evidence, *shown(facts, "torch", "torch_cuda", "libcuda_path")),
        remedies=tuple(remedies), not_remedies=_IN_VAIN,
    )  # fmt: skip


def _newer(branch: str | None, why: str) -> Remedy:
    return Remedy(
        kind="driver", name="nvidia", value=f">={branch}" if branch else "newer",
        summary=f"Install driver {branch} or later on the host ({why})" if branch else f"Install a newer driver on the host ({why})",
        cost="root on the host and a reboot; every program on its GPUs stops", check=(_COMMAND,), risk="medium",
        limits=("in a container the host's driver counts; none is installed in the image",),
    )  # fmt: skip


def _ptx(torch: Torch, driver: Driver, cuda: str, gpus: Gpus) -> Iterator[Result]:
    """Where torch has only PTX for a GPU, the driver must compile it, and so be of that CUDA or newer."""
    listed = torch.arch_list or wheels.arch_list(torch.version or "", torch.cuda) or ()
    have = cuda_release(driver.cuda or drivers.cuda_of(driver.version or "") or "")
    want = cuda_release(cuda)
    for capability in gpus.capabilities:
        answers = [capabilities.runs_on(each, capability) for each in listed if not each.startswith("compute")]
        supported = wheels.supports(torch.version or "", torch.cuda, capability).value
        if not answers or any(each.value is not False for each in answers) or not supported:
            continue
        if have is None or want is None:
            yield Unchecked(f"the driver compiles torch's PTX for {capability}", "the driver's CUDA is not known", "driver_cuda", "nvidia-smi")  # fmt: skip
        elif have < want:
            yield Problem(
                cause="ptx-newer-than-driver", component="torch", certainty=Certainty.LIKELY,
                title=f"torch has only PTX of CUDA {cuda} for compute capability {capability}, and the driver compiles PTX up to CUDA {have[0]}.{have[1]}",
                evidence=(*driver.evidence, *torch.evidence), remedies=(_newer((drivers.shipped_with(cuda) or "").partition(".")[0] or None, f"for the PTX of CUDA {cuda}"),),
            )  # fmt: skip


def driver_runs_compiled_modules(facts: Facts) -> Iterator[Result]:
    """What the toolkit compiles at run time is of the toolkit's CUDA, and the driver must start that."""
    driver, tools = Driver.of(facts), Toolkits.of(facts)
    found = tools.resolved_by("flashinfer") if isinstance(tools, Toolkits) else tools
    if not facts.value("packages.flashinfer-python") or not isinstance(found, Resolution) or not found.version:
        return
    if isinstance(driver, Unknown) or found.by == "torch.version.cuda" or not (driver.version or driver.cuda):
        return
    answer = _runs(driver, found.version)
    what = f"the driver runs what nvcc {found.version} compiles"
    if answer.value is None:
        yield Unchecked(what, answer.why)
    elif answer.value:
        yield Passed(what, answer.why)
    else:
        yield _too_old(facts, driver, found.version, "flashinfer", answer)
