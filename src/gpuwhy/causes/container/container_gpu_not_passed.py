"""container-gpu-not-passed: the container was started without GPUs, or without the part of the driver that CUDA needs."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.container import _place as place
from gpuwhy.causes.container._place import Surroundings
from gpuwhy.causes.driver import _cuda_errors as errors
from gpuwhy.causes.driver import _program_cuda as cuda
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.gpu_access import ContainerSetup, GpuAccess
from gpuwhy.model.host import Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

_BUILD = lazy_pattern(r"docker(?:x)? (?:buildx? )?build\b|Dockerfile:\d|^#\d{1,3} \[|executor failed running|buildkit|Step \d{1,3}/\d{1,3} :|ERROR: failed to (?:solve|build)|process \"/bin/sh -c", re.IGNORECASE)  # fmt: skip


@cause(
    "container-gpu-not-passed",
    family="Container",
    leads_to=("no-device-visible",),
    signs=[
        says("no-driver-detected", ("nvidia driver was not detected", "failed to detect nvidia driver version", "no nvidia driver detected"), r"NVIDIA Driver was not detected|Failed to detect NVIDIA driver version|No NVIDIA driver detected"),
        says("torch-finds-no-driver", "found no nvidia driver", r"Found no NVIDIA driver on your system"),
        says(
            "no-libcuda",
            ("libcuda.so", "libnvidia-ml.so", "libnvdla_", "libnvos.so", "libnvrm_", "libnvbuf", "libnvcudla.so", "libcudla.so", "nvml shared library not found", "nvmlerror_librarynotfound", "cuda driver library", "cuda driver not found"),
            r"(?P<library>libcuda\.so(?:\.1)?|libnvidia-ml\.so(?:\.1)?|(?:libnvdla_compiler|libnvdla_runtime|libnvos|libnvrm_gpu|libnvrm_mem|libnvbufsurface|libnvbufsurftransform|libnvbuf_utils|libnvcudla|libcudla)\.so(?:\.\d{1,2})?)\W{0,3}:? ?(?:cannot open shared object file|not found\b|No such file)|(?:Could not|Unable to|Failed to|cannot)\s(?:load|find|open|locate|dlopen)[^\n]{0,60}(?P<library2>libcuda\.so(?:\.1)?|libnvidia-ml\.so(?:\.1)?)|NVML Shared Library Not Found|NVMLError_LibraryNotFound|CUDA driver (?:library )?(?:not found|could not be (?:found|loaded))|(?:find|load)[^\n]{0,20}CUDA driver library|couldn['’]t find libnvidia-ml\.so",
        ),
        says(
            "part-of-driver-absent",
            ("libnvcuvid.so", "libnvidia-encode.so", "libnvidia-opticalflow.so", "libnvoptix.so", "libglx_nvidia.so", "libegl_nvidia.so", "libnvidia-fbc.so"),
            r"(?P<library>libnvcuvid|libnvidia-encode|libnvidia-opticalflow|libnvoptix|libGLX_nvidia|libEGL_nvidia|libnvidia-fbc)\.so(?:\.\d{1,2})?\W{0,3}:? ?(?:cannot open shared object file|not found\b|No such file)|(?:Could not|Unable to|Failed to|Cannot) (?:load|open|find|dlopen)[^\n]{0,60}(?P<library2>libnvcuvid|libnvidia-encode|libnvidia-opticalflow)\.so",
        ),
        says("no-nvidia-smi", "nvidia-smi", r"nvidia-smi\\?[\"']?:? ?(?:executable file not found in \$?PATH|command not found|not found(?:$|\s)|No such file or directory)|No such file or directory: '?nvidia-smi|command not found: nvidia-smi|which: no nvidia-smi in \("),
        says("triton-has-no-driver", "active drivers", r"\b0 active drivers ?\(\[\]\)"),
        says("nvml-not-permitted", ("failed to initialize nvml: insufficient permissions", "nvmlerror_nopermission", "nvml: insufficient permissions", "nvml error: insufficient permissions"), r"initialize NVML: Insufficient Permissions|NVMLError_NoPermission|NVML(?: error)?: Insufficient Permissions"),
        says("unknown-device", ("device error", "unknown device"), r"nvidia-container-cli(?:\.real)?: device error: [^\n]{0,60}unknown device|failed to (?:get|construct) [^\n]{0,60}unknown device id"),
        says("apptainer-finds-nothing", "could not find any nv files", r"Could not find any nv files on this host"),
        says(
            "engine-finds-no-gpu",
            ("failed to infer device type", "no accelerator (", "no usable gpu found", "no gpu detected", "no gpus found", "cuda is not available", "torch.cuda.is_available() is false", "no compatible gpus were discovered", "no cuda runtime is found", "no supported device detected", "device string must not be empty", "no nvidia gpu detected", "no nvidia gpu", "cannot find any torch accelerator"),
            r"Failed to infer device type|No accelerator \([^)]{1,80}\) is available|no usable GPU found|no (?:NVIDIA )?GPUs? (?:detected|found)|no compatible GPUs were discovered|No CUDA runtime is found|No supported device detected|Device string must not be empty|torch\.cuda\.is_available\(\) is False|(?:Error|Exception)\b[^\n]{0,40}CUDA is not available|cannot find any torch accelerator",
        ),
        says("built-without-cuda", ("built with cpu", "not compiled with cuda", "compiled without gpu", "+cpu"), r"built with CPU|not compiled with CUDA|compiled without (?:GPU|CUDA)|vllm\W{1,12}\d[\w.]{1,20}\+cpu"),
        errors.INSUFFICIENT,
        errors.NO_DEVICE,
        errors.TOLD_BY_TORCH,
    ],
)  # fmt: skip
def container_gpu_not_passed(
    case: Case, access: GpuAccess | Unknown, setup: ContainerSetup | Unknown, torch: Torch | Unknown
) -> Judgement:
    """The container has no GPU: it was started without the devices, or without the driver capability "compute".

    How it shows itself
      torch: `Found no NVIDIA driver on your system`. `libcuda.so.1: cannot open shared object file`, `NVML Shared Library
      Not Found`, `exec: "nvidia-smi": executable file not found`. NVIDIA's images: `WARNING: The NVIDIA Driver was not
      detected`. vLLM: `Failed to infer device type`; Triton: `0 active drivers ([])`; every CUDA program: `CUDA driver
      version is insufficient for CUDA runtime version`, because a driver that is not there counts as version 0.

    Why it happens
      libcuda.so.1 and the devices are not part of an image: NVIDIA's hook mounts them when they are asked for. Without
      `--gpus` (compose: deploy.resources, Kubernetes: nvidia.com/gpu) there are none. With NVIDIA_DRIVER_CAPABILITIES=utility
      there is nvidia-smi and no libcuda. During `docker build` there is no GPU at all.

    How to be sure
      In the container: `nvidia-smi -L; ldconfig -p | grep libcuda; echo $NVIDIA_VISIBLE_DEVICES $NVIDIA_DRIVER_CAPABILITIES`.
      On the host: `docker inspect NAME` and its DeviceRequests, and nvidia-smi, which has to work there.

    What helps
      `--gpus all` (podman: --device nvidia.com/gpu=all, apptainer: --nv, Kubernetes: a limit of nvidia.com/gpu and the
      RuntimeClass nvidia); NVIDIA_DRIVER_CAPABILITIES=compute,utility. With SELinux: --security-opt label=disable.

    What does not help
      Installing a driver or libcuda in the image: it collides with the host's later (container-driver-files-in-image).

    Not to be confused with
      container-toolkit-missing (the engine refuses to start), driver-too-old (libcuda is there and too old),
      no-device-visible (CUDA_VISIBLE_DEVICES), library-missing, libcuda-not-linkable (a linker says it).
    """
    specific = ("no-driver-detected", "torch-finds-no-driver", "no-libcuda", "unknown-device", "nvml-not-permitted", "triton-has-no-driver", "no-nvidia-smi", "apptainer-finds-nothing")  # fmt: skip
    shared = (errors.INSUFFICIENT.name, errors.NO_DEVICE.name)
    match = (
        place.earliest(case, *specific) or place.earliest(case, *shared) or place.earliest(case, "engine-finds-no-gpu")
    )
    if match is None:
        return _part_is_absent(case)
    if _belongs_to_neighbour(case, match):
        return None
    told = case.found(errors.TOLD_BY_TORCH.name)
    if told is not None and match.sign in (errors.NO_DEVICE.name, "engine-finds-no-gpu"):
        return RuledOut("libcuda is there and failed, and torch says with which error", (case.evidence(told, "why CUDA did not start"),))  # fmt: skip
    where = place.read_surroundings(case)
    quoted = case.evidence(match, _MEANING.get(match.sign, "CUDA finds no driver or no device"))
    excluded = _excluded(case, match, where, access, setup, torch, quoted)
    if excluded is not None:
        return excluded
    certainty, strength = _certainty(case, match, where, access, setup)
    shown = _shown(where, access, setup)
    lacks_compute = _lacks_compute(case, access, setup)
    is_open = certainty is not Certainty.PROVEN
    return Verdict(
        certainty=certainty,
        component="container-engine",
        title="The container has the GPU without the driver's compute part (libcuda)" if lacks_compute else "The container was started without access to the GPU",
        chain=(
            Link("The driver capability 'compute' was not asked for" if lacks_compute else "The container's start asks for no GPU", shown[0] if shown else inferred("how the container was started is not known")),
            Link("NVIDIA's hook mounts no libcuda.so.1" if lacks_compute else "No device and no libcuda.so.1 is in the container", _absent(access) or inferred("they are no part of an image")),
            Link("The program finds no driver", quoted),
        ),
        evidence=(quoted, *shown),
        explains=case.explains(match, case.found("engine-finds-no-gpu"), case.found(errors.NO_DEVICE.name)),
        missing=_missing(case, match) if is_open else (),
        rivals=_rivals(match) if is_open else (),
        remedies=_remedies(case, match, where, lacks_compute),
        not_remedies=(
            NotARemedy("installing a driver, libcuda or nvidia-smi in the image", "they come from the host; copies collide with its mounts"),
            NotARemedy("another torch or CUDA version", "no driver is there to be asked"),
        ),
        notes=("Outside a container the same texts mean that no NVIDIA driver is installed or loaded.",) if not where.is_container else (),
        strength=strength,
    )  # fmt: skip


def _part_is_absent(case: Case) -> Judgement:
    """CUDA works, and a part of the driver for which another capability has to be asked was not mounted."""
    match = place.earliest(case, "part-of-driver-absent")
    where = place.read_surroundings(case)
    if match is None or not where.is_container:
        return None
    library = match.group("library") or match.group("library2") or ""
    wanted = "compute,utility,video" if library in _OF_VIDEO else "compute,utility,graphics"
    quoted = case.evidence(match, f"{library}, a part of the driver, is not in the container")
    asked = case.missing("container.capabilities", "which parts of the driver were asked for", "docker exec NAME printenv NVIDIA_DRIVER_CAPABILITIES")  # fmt: skip
    return Verdict(
        certainty=Certainty.LIKELY,
        component="container-engine",
        title=f"The container has the GPU without the part of the driver that holds {library}",
        chain=(
            Link(f"The driver capability '{wanted.rpartition(',')[2]}' was not asked for", inferred("the default of the hook is compute and utility")),
            Link(f"NVIDIA's hook does not mount {library}", quoted),
        ),
        evidence=(quoted,),
        explains=case.explains(match),
        missing=(asked,) if asked is not None else (),
        rivals=("library-missing",),
        remedies=(
            Remedy(
                kind="env", name="NVIDIA_DRIVER_CAPABILITIES", value=wanted,
                summary=f"Ask for that part of the driver as well ({wanted}, or all) when the container is created", check=(f"ldconfig -p | grep {library}",),
            ),
        ),
        not_remedies=(NotARemedy("installing the library in the image", "it must be of the host's driver, which the hook mounts"),),
        strength=70,
    )  # fmt: skip


_OF_VIDEO = frozenset({"libnvcuvid", "libnvidia-encode", "libnvidia-opticalflow", "libnvidia-fbc"})
_MEANING = {
    "no-driver-detected": "the image's start script finds no driver",
    "torch-finds-no-driver": "torch finds no libcuda that answers",
    "no-libcuda": "the driver's library is not there",
    "no-nvidia-smi": "the driver's tools were not mounted",
    "triton-has-no-driver": "Triton finds no usable driver",
    "nvml-not-permitted": "the devices are there and may not be opened",
    "unknown-device": "the start asks for a device that does not exist",
    "apptainer-finds-nothing": "no driver library was found to bind",
    errors.INSUFFICIENT.name: "the driver counts as version 0 where libcuda is missing",
}


def _belongs_to_neighbour(case: Case, match: Match) -> bool:
    """A linker's message, the container hook's own failure on the host, a device plugin, or a remark beside another failure."""
    text = match.text
    if match.sign == "no-libcuda":
        if re.search(r"\bld: |needed by|cannot find -l|collect2|libcuda\.so cannot found", text):
            return True
        if re.search(
            r"nvidia-container-cli|load library failed|could not load NVML library|device plugin|init failure", text
        ):
            return True
    if match.sign == "no-nvidia-smi" and _ends_without_gpu(case):
        return False
    if match.sign == "no-nvidia-smi" and case.incident.primary is not None and (match.event is None or match.event.id != case.incident.primary):  # fmt: skip
        return True
    return match.sign in ("engine-finds-no-gpu", "no-nvidia-smi") and match.event is None and case.incident.primary is not None  # fmt: skip


def _ends_without_gpu(case: Case) -> bool:
    """Whether the program itself ended for want of a GPU: a missing nvidia-smi beside it is no remark about something else."""
    primary = case.incident.primary
    return primary is not None and any(match.event is not None and match.event.id == primary for match in case.all("engine-finds-no-gpu"))  # fmt: skip


def _excluded(
    case: Case, match: Match, where: Surroundings, access: GpuAccess | Unknown, setup: ContainerSetup | Unknown, torch: Torch | Unknown, quoted: Evidence
) -> RuledOut | None:  # fmt: skip
    if where.is_container is False and where.is_sure:
        return RuledOut("it did not happen in a container", (*(setup.shown("container.in_container") if isinstance(setup, ContainerSetup) else ()), quoted))  # fmt: skip
    if case.found("built-without-cuda") is not None and match.sign == "engine-finds-no-gpu":
        return RuledOut("the program was built without CUDA", (quoted,))
    if isinstance(torch, Torch) and torch.is_cpu_only and match.sign == "engine-finds-no-gpu":
        return RuledOut("this torch was built without CUDA", (*torch.evidence, quoted))
    if isinstance(access, GpuAccess):
        if access.libcuda is not None and match.sign not in ("nvml-not-permitted", "unknown-device") and access.smi_container is not False:  # fmt: skip
            return RuledOut(f"libcuda is there: {access.libcuda}", (*access.shown("libcuda_path"), quoted))
        if access.cuinit_container:
            return RuledOut("CUDA starts in the container", (*access.shown("cuinit.container"), quoted))
    hidden = case.facts.value("env.CUDA_VISIBLE_DEVICES", "unknown")
    if hidden in ("", "-1") and match.sign in (errors.NO_DEVICE.name, "engine-finds-no-gpu"):
        return RuledOut("CUDA_VISIBLE_DEVICES hides the GPUs from the process", (quoted,))
    driver = cuda.read_driver(case)
    is_old = driver is not None and not cuda.is_enough(driver, cuda.read_program_cuda(case))
    if match.sign == errors.INSUFFICIENT.name and is_old and driver is not None and not where.is_container:
        return RuledOut(f"a driver is there: {driver.version or driver.cuda}", (*driver.evidence, quoted))
    return None


def _lacks_compute(case: Case, access: GpuAccess | Unknown, setup: ContainerSetup | Unknown) -> bool:
    """The GPU was passed, and CUDA's part of the driver was not asked for."""
    if isinstance(setup, ContainerSetup) and setup.lacks_compute:
        return True
    capabilities = case.facts.value("env.NVIDIA_DRIVER_CAPABILITIES")
    if isinstance(capabilities, str) and capabilities and "compute" not in capabilities and "all" not in capabilities:
        return True
    return isinstance(access, GpuAccess) and access.smi_container is True and access.is_libcuda_known and access.libcuda is None  # fmt: skip


def _certainty(
    case: Case, match: Match, where: Surroundings, access: GpuAccess | Unknown, setup: ContainerSetup | Unknown
) -> tuple[Certainty, int]:  # fmt: skip
    is_absent = isinstance(access, GpuAccess) and access.is_libcuda_known and access.libcuda is None
    is_unasked = (isinstance(setup, ContainerSetup) and (setup.has_no_gpus or setup.lacks_compute)) or _is_void(case)
    if is_unasked or _lacks_compute(case, access, setup):
        return (Certainty.PROVEN if is_absent else Certainty.LIKELY), 84
    if is_absent and where.is_container:
        return Certainty.LIKELY, 78
    if match.sign == "unknown-device":
        return Certainty.LIKELY, 80
    if match.sign == "nvml-not-permitted":
        return (Certainty.LIKELY if where.is_container else Certainty.POSSIBLE), 64
    fails_inside = isinstance(access, GpuAccess) and access.smi_container is False and access.smi_host is True
    if where.asks_for_gpu is False or _is_image_build(case):
        return Certainty.LIKELY, 74
    if fails_inside and where.is_container:
        return Certainty.LIKELY, 66
    if match.sign == "no-driver-detected":
        return Certainty.LIKELY, 72
    if match.sign in ("no-libcuda", "torch-finds-no-driver", "triton-has-no-driver", "no-nvidia-smi"):
        is_likely = where.is_container is True and match.sign == "no-libcuda"
        return (Certainty.LIKELY if is_likely else Certainty.POSSIBLE), 62 if where.is_container else 54
    strength = 46 if match.sign == errors.INSUFFICIENT.name else 40
    if where.is_container and place.any_listing(case) is None:
        strength += 14
    return Certainty.POSSIBLE, strength


def _is_void(case: Case) -> bool:
    """NVIDIA_VISIBLE_DEVICES asks for nothing, or the device files were looked for in vain."""
    asked = case.facts.value("env.NVIDIA_VISIBLE_DEVICES", "unknown")
    if asked is None or str(asked).strip().lower() in ("", "void", "none"):
        return True
    devices = [fact.value for path, fact in case.facts.group("files").items() if path.startswith("/dev/nvidia")]
    return bool(devices) and all(value is None or "absent" in str(value) or "No such" in str(value) for value in devices)  # fmt: skip


def _is_image_build(case: Case) -> bool:
    return any(_BUILD.search(line.text[: place.LONGEST]) for _, line in place.lines(case))


def _shown(where: Surroundings, access: GpuAccess | Unknown, setup: ContainerSetup | Unknown) -> tuple[Evidence, ...]:
    shown = list(setup.shown("container.capabilities", "container.gpus") if isinstance(setup, ContainerSetup) else ())
    if where.asks_for_gpu is False and where.start is not None:
        shown.append(where.start)
    if isinstance(access, GpuAccess):
        shown += access.shown("libcuda_path", "nvidia_smi.container", "nvidia_smi.host")
    return tuple(shown)


def _absent(access: GpuAccess | Unknown) -> Evidence | None:
    is_absent = isinstance(access, GpuAccess) and access.is_libcuda_known and access.libcuda is None
    return access.evidence["libcuda_path"] if is_absent and isinstance(access, GpuAccess) else None


def _missing(case: Case, match: Match) -> tuple[Missing, ...]:
    inspect = "docker inspect --format '{{json .HostConfig.DeviceRequests}} {{.HostConfig.Runtime}} {{json .Config.Env}}' NAME"  # fmt: skip
    asked = (
        case.missing("container.gpus", "whether the container was given GPUs", inspect),
        case.missing("container.capabilities", "whether the compute part of the driver was asked for", "docker exec NAME printenv NVIDIA_DRIVER_CAPABILITIES"),
        case.missing("libcuda_path", "whether libcuda is in the container", "docker exec NAME ldconfig -p | grep libcuda.so.1"),
        case.missing("nvidia_smi.host", "whether the driver works on the host", "nvidia-smi"),
        case.missing("env.CUDA_VISIBLE_DEVICES", "whether a variable hides the GPUs") if match.sign in (errors.NO_DEVICE.name, "engine-finds-no-gpu") else None,
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _rivals(match: Match) -> tuple[str, ...]:
    if match.sign == errors.INSUFFICIENT.name:
        return ("driver-too-old",)
    if match.sign in (errors.NO_DEVICE.name, "engine-finds-no-gpu"):
        return ("no-device-visible", "driver-too-old")
    return ("driver-library-mismatch", "libcuda-shadowed")


def _remedies(case: Case, match: Match, where: Surroundings, lacks_compute: bool) -> tuple[Remedy, ...]:
    capability = Remedy(
        kind="env", name="NVIDIA_DRIVER_CAPABILITIES", value="compute,utility",
        summary="Ask for the compute part of the driver: the hook then mounts libcuda.so.1", check=("ldconfig -p | grep libcuda.so.1",),
        is_sure=lacks_compute,
    )  # fmt: skip
    devices = Remedy(
        kind="env", name="NVIDIA_VISIBLE_DEVICES", value="all", rank=1,
        summary="Ask for the GPUs by the variable, where the NVIDIA runtime is the container's runtime", is_sure=False,
    )  # fmt: skip
    if lacks_compute or (where.asks_for_gpu and place.any_listing(case) is not None):
        return (capability, devices, *_passing(where, is_sure=False))
    if match.sign == "nvml-not-permitted":
        return (
            Remedy(kind="flag", name="--security-opt", value="label=disable", summary="Let the container open the devices in spite of SELinux"),
            Remedy(kind="container", name="user", value="in the group that owns /dev/nvidia*", summary="Run it as a user that may open /dev/nvidia*", is_sure=False),
        )  # fmt: skip
    if match.sign == "unknown-device":
        return (Remedy(kind="env", name="NVIDIA_VISIBLE_DEVICES", value="all", summary="Name GPUs that exist: indices or UUIDs of nvidia-smi -L"), *_passing(where, is_sure=True))  # fmt: skip
    if _is_image_build(case):
        return (
            Remedy(kind="config", name="docker default-runtime", value="nvidia", summary="Let image builds see the GPU: default-runtime nvidia in /etc/docker/daemon.json (classic builder)", is_sure=False),
            Remedy(kind="patch", name="Dockerfile", value="no GPU code at build time", summary="Move the step that needs the GPU from the image's build to the container's start"),
        )  # fmt: skip
    is_hooked = where.asks_for_gpu or where.kind not in ("kubernetes", "podman", "apptainer")
    return (*_passing(where, is_sure=True), *((capability,) if is_hooked else ()))


def _passing(where: Surroundings, *, is_sure: bool) -> tuple[Remedy, ...]:
    """How GPUs are asked for, by the kind of container."""
    if where.kind == "kubernetes":
        return (
            Remedy(kind="config", name="resources.limits", value="nvidia.com/gpu: 1", is_sure=is_sure, summary="Give the pod a limit of nvidia.com/gpu"),
            Remedy(kind="config", name="runtimeClassName", value="nvidia", rank=1, is_sure=is_sure, summary="Run the pod with the RuntimeClass nvidia, where that is not the node's default"),
        )  # fmt: skip
    if where.kind == "podman":
        return (Remedy(kind="flag", name="--device", value="nvidia.com/gpu=all", is_sure=is_sure, summary="Give the container the GPUs by CDI"),)  # fmt: skip
    if where.kind == "apptainer":
        return (Remedy(kind="flag", name="--nv", is_sure=is_sure, summary="Bind the host's driver into the container"),)  # fmt: skip
    return (
        Remedy(
            kind="flag", name="--gpus", value="all", is_sure=is_sure, summary="Start the container with its GPUs",
            check=("docker exec NAME nvidia-smi -L",), cost="the container has to be created again",
        ),
        Remedy(
            kind="config", name="deploy.resources.reservations.devices", value="driver: nvidia, capabilities: [gpu]", is_sure=False,
            summary="In a compose file: reserve the GPUs for the service",
        ),
    )  # fmt: skip
