"""Remedies for a gap between a program's CUDA and the driver's: another driver, another build, a bridge between them."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes.container._place import Surroundings
from gpuwhy.causes.driver import _program_cuda as cuda
from gpuwhy.causes.driver._program_cuda import DriverCuda
from gpuwhy.model.remedy import NotARemedy, Remedy

ENGINES_WITH_IMAGES = ("vllm", "sglang", "tensorrt-llm", "lmdeploy", "text-generation-inference", "ollama")
_TORCH_BUILDS = ("cu118", "cu121", "cu124", "cu126", "cu128", "cu129", "cu130", "cu132")
_IN_DATA_CENTRES = ("vllm", "sglang", "tensorrt-llm")
"""Engines that mostly run on the GPUs for which the compatibility libcuda is made."""
_FIRST_VLLM_WITH_SWITCH = (0, 16)
"""VLLM_ENABLE_CUDA_COMPATIBILITY is missing from 0.11's table of variables and present in 0.33's; merged after 0.15."""
_OLDER_ENGINE = lazy_pattern(r"[/\\]vllm[/\\](?:worker|executor|attention[/\\]backends)[/\\]|[/\\]vllm[/\\]executor")
"""Folders of vLLM's engine before V1, which was taken out before the variable came."""
_OF_TORCH = frozenset({"torch", "vllm", "sglang", "flash-attn", "flashinfer", "sgl-kernel", "comfyui", "lmdeploy"})


def newer_driver(branch: str | None, why: str) -> Remedy:
    """A driver of ``branch`` or later on the host."""
    wanted = f"{branch} or later" if branch else "a newer branch"
    return Remedy(
        kind="driver", name="nvidia", value=f">={branch}" if branch else "newer",
        summary=f"Install driver {wanted} on the host ({why})",
        cost="root on the host and a reboot; every program on its GPUs stops",
        check=("cat /proc/driver/nvidia/version",),
        limits=("in a container the host's driver counts; none is installed in the image", "a card whose last driver branch is older cannot take it"),
        risk="medium",
    )  # fmt: skip


def older_image(case: Case, driver: DriverCuda | None) -> Remedy:
    """An image of the engine for the CUDA that the driver has."""
    built = f"CUDA {driver.major}.x" if driver is not None and driver.major else "the driver's CUDA"
    whose = f" of {case.engine}" if case.engine in ENGINES_WITH_IMAGES else ""
    return Remedy(
        kind="container", name="image", value=f"built for {built}",
        summary=f"Run an image{whose} that was built for {built}", cost="a download of several GB",
    )  # fmt: skip


def torch_build(driver: DriverCuda | None) -> Remedy | None:
    """The torch wheel for the driver's CUDA; None when the driver's CUDA is not known."""
    if driver is None or driver.cuda is None:
        return None
    exact = f"cu{driver.cuda.replace('.', '')}"
    same_major = [build for build in _TORCH_BUILDS if build.startswith(f"cu{driver.major}")]
    build = exact if exact in _TORCH_BUILDS else same_major[-1] if same_major else None
    if build is None:
        return None
    return Remedy(
        kind="package", name="torch", value=f"{build} build",
        summary=f"Install the {build} build of torch (from PyTorch's package index of that name): driver {driver.version or f'for CUDA {driver.cuda}'} runs it",
        cost="a download of 2 to 4 GB", rank=1,
        limits=("what was compiled against the present torch has to be of the same build",),
        check=("python -c 'import torch; print(torch.version.cuda, torch.cuda.is_available())'",),
    )  # fmt: skip


def package_build(component: str, driver: DriverCuda | None) -> Remedy:
    """A build of the failing library for the CUDA that the driver has."""
    built = f"CUDA {driver.major}" if driver is not None and driver.major else "the driver's CUDA"
    return Remedy(
        kind="package", name=component, value=f"{built} build",
        summary=f"Install a build of {component} for {built}", is_sure=False, rank=2,
    )  # fmt: skip


def compatibility(case: Case, release: str | None) -> tuple[Remedy, ...]:
    """NVIDIA's forward-compatibility libcuda: for data-centre GPUs only, none where the card is known to be another.

    One way of it: vLLM's variable where the release knows it, else the package. The driver has to stay in sight.
    """
    is_consumer = cuda.is_consumer_gpu(case)
    if is_consumer or (is_consumer is None and case.engine not in _IN_DATA_CENTRES):
        return ()
    if case.engine != "vllm" or not _knows_the_switch(case):
        return bridge(release)
    switch = Remedy(
        kind="env", name="VLLM_ENABLE_CUDA_COMPATIBILITY", value="1",
        summary="Let vLLM load the compatibility libcuda (package cuda-compat), which its image carries", is_sure=is_consumer is False,
        limits=("data-centre GPUs only", "needs a vLLM release that knows the variable, and the compat folder in the image"),
    )  # fmt: skip
    return (switch,)


def bridge(release: str | None) -> tuple[Remedy, ...]:
    """The package with the compatibility libcuda of a CUDA release."""
    return (
        Remedy(
            kind="system-package", name="cuda-compat", value=f"match:CUDA {release}" if release else "match:program CUDA",
            summary="Put NVIDIA's compatibility libcuda in front of the driver's (package cuda-compat, its folder first on LD_LIBRARY_PATH)",
            is_sure=False, limits=("data-centre GPUs only: elsewhere CUDA then stops with error 804",),
        ),
    )  # fmt: skip


def _knows_the_switch(case: Case) -> bool:
    """Not where the vLLM release is known to be older than the variable."""
    blocks = (block for event in case.incident.events for block in event.exceptions)
    if any(_OLDER_ENGINE.search(frame.path) for block in blocks for frame in block.frames):
        return False
    stated = re.match(r"(\d{1,4})\.(\d{1,4})", str(case.facts.value("packages.vllm") or ""))
    return stated is None or (int(stated[1]), int(stated[2])) >= _FIRST_VLLM_WITH_SWITCH


def builds(case: Case, component: str | None, where: Surroundings, driver: DriverCuda | None) -> tuple[Remedy, ...]:
    """Another build of what fails, one way of it: the image when it runs in one, else the torch wheel or the library.

    An engine that is published as an image gets that as well, where no torch wheel is known to do.
    """
    if where.is_container:
        return (older_image(case, driver),)
    is_of_torch = component is None or component in _OF_TORCH
    wheel = torch_build(driver) if is_of_torch and case.engine not in ("ollama", "llama.cpp", "tensorrt-llm") else None
    if wheel is not None:
        return (wheel,)
    if case.engine == "ollama":
        return ()  # installed on the host, and its releases carry the builds of one CUDA or two, for all drivers
    if case.engine in ENGINES_WITH_IMAGES:
        return (older_image(case, driver),)
    named = component if component and component not in ("torch", "driver") else case.engine
    return (package_build(named, driver),) if named else ()


IN_VAIN = (
    NotARemedy("a CUDA toolkit of another version on the host", "programs bring their CUDA run time; what is short is the driver"),
    NotARemedy("a driver inside the container or image", "the kernel module of the host is what counts"),
)  # fmt: skip
