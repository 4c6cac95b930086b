"""libcuda-shadowed: the process loads a libcuda other than the driver's own."""

from __future__ import annotations

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.container import _place as place
from gpuwhy.causes.container._place import Surroundings
from gpuwhy.causes.driver import _cuda_errors as errors
from gpuwhy.causes.driver import _libcuda as libcuda
from gpuwhy.causes.driver import _program_cuda as cuda
from gpuwhy.causes.driver._driver_remedies import newer_driver
from gpuwhy.causes.driver._libcuda import Libcuda
from gpuwhy.knowledge import drivers
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.gpu_access import ContainerSetup, GpuAccess
from gpuwhy.model.remedy import NotARemedy, Remedy

_COMMAND = "ldconfig -p | grep libcuda.so.1; grep libcuda /proc/PID/maps; echo $LD_LIBRARY_PATH"


@cause(
    "libcuda-shadowed",
    family="Driver, device and fabric",
    signs=[
        says(
            "stub-library",
            ("is a stub library", "cudaerrorstublibrary", "cuda_error_stub_library", "error 34:", "cuinit()=34", "init failure: 34"),
            r"CUDA driver is a stub library|cudaErrorStubLibrary|CUDA_ERROR_STUB_LIBRARY|\bError 34: |cuInit\(\)=34\b|init failure: ?34\b",
        ),
        errors.DRIVER_COMBINATION,
        errors.FORWARD_COMPATIBILITY,
        errors.SYMBOL_AT_START,
        errors.INSUFFICIENT,
        errors.NO_DEVICE,
        errors.NVML_MISMATCH,
        says("torch-says-too-old", "driver on your system is too old", r"driver on your system is too old(?: ?\(found version (?P<number>\d{4,5})\))?"),
    ],
)  # fmt: skip
def libcuda_shadowed(case: Case, access: GpuAccess | Unknown, setup: ContainerSetup | Unknown) -> Judgement:
    """The driver is fine, and the process loads another libcuda than the driver's: a compat, stub or copied one.

    How it shows itself
      `Error 803: system has unsupported display driver / cuda driver combination`, on a new driver, in one image only.
      `Error 804: forward compatibility was attempted on non supported HW` on GeForce and RTX cards, when the image
      puts NVIDIA's compatibility libcuda in front. `CUDA driver is a stub library` (34) when the toolkit's stubs folder is
      on LD_LIBRARY_PATH. torch: `driver ... too old (found version N)` with an N below what nvidia-smi prints. On WSL:
      no device, because a Linux driver was installed over Windows' libcuda.

    Why it happens
      The loader takes the first libcuda.so.1 of LD_LIBRARY_PATH and of its cache. Images for new CUDA releases carry a
      compatibility libcuda (/usr/local/cuda/compat) and some register its folder; conda environments and images
      carry copies; builds leave the stubs folder on the path. The copy fits one kernel module and not yours.

    How to be sure
      `ldconfig -p | grep libcuda.so.1` and `grep libcuda /proc/PID/maps`, in the place that fails: a path with compat,
      stubs, conda or the home directory is not the driver's. The host's version stands in /proc/driver/nvidia/version.

    What helps
      The driver's folder first: LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/nvidia/lib in a container; take compat
      and stubs off the path; start with `--gpus all` instead of `--runtime nvidia` where the hook rebuilds the cache.

    What does not help
      Updating the driver (a newer one parts further from the copy), reinstalling torch.

    Not to be confused with
      driver-library-mismatch (the host itself is inconsistent), driver-too-old (804 because the image needs more than
      the driver has), libcuda-not-linkable (at build time).
    """
    where = place.read_surroundings(case)
    stub = place.earliest(case, "stub-library")
    if stub is not None:
        return _stub(case, stub, access)
    match = place.earliest(
        case, errors.DRIVER_COMBINATION.name, errors.FORWARD_COMPATIBILITY.name, errors.SYMBOL_AT_START.name
    )
    if match is not None:
        return _combination(case, match, where, access, setup)
    match = place.earliest(case, "torch-says-too-old", errors.INSUFFICIENT.name)
    if match is not None:
        return _older_than_driver(case, match, access)
    match = place.earliest(case, errors.NVML_MISMATCH.name)
    if match is not None:
        return _other_nvml(case, match, where, access)
    match = place.earliest(case, errors.NO_DEVICE.name)
    copy = libcuda.foreign(case, access) if match is not None else None
    if match is None or copy is None:
        return None
    quoted = case.evidence(match, "this libcuda finds no device")
    return _verdict(case, match, quoted, copy, Certainty.LIKELY, 70)


def _stub(case: Case, match: Match, access: GpuAccess | Unknown) -> Verdict:
    quoted = case.evidence(match, "the loaded libcuda says itself that it is the toolkit's stub")
    copy = libcuda.foreign(case, access)
    if copy is None or copy.component != "cuda-toolkit":
        copy = Libcuda("the toolkit's stubs folder", "cuda-toolkit", quoted, True)
    return _verdict(case, match, quoted, copy, Certainty.PROVEN, 92)


def _combination(case: Case, match: Match, where: Surroundings, access: GpuAccess | Unknown, setup: ContainerSetup | Unknown) -> Judgement:  # fmt: skip
    """803 and 804: which libcuda the process loads decides."""
    is_compat = match.sign == errors.FORWARD_COMPATIBILITY.name
    quoted = case.evidence(match, "the loaded libcuda and the kernel module do not go together")
    copy = libcuda.foreign(case, access)
    driver, program = cuda.read_driver(case), cuda.read_program_cuda(case)
    covers = cuda.has_full_release(driver, program)
    if copy is not None:
        if is_compat and covers is False and copy.component == "cuda-compat":
            # the hook chose the bridge because the driver is too old for the image: the driver is to blame
            return _verdict(case, match, quoted, copy, Certainty.POSSIBLE, 50)
        certainty = Certainty.PROVEN if copy.is_seen_loaded else Certainty.LIKELY
        return _verdict(case, match, quoted, copy, certainty, 84)
    if isinstance(access, GpuAccess) and access.libcuda is not None:
        return RuledOut(f"the process loads the driver's own {access.libcuda}", (*access.shown("libcuda_path"), quoted))
    versions = {str(case.facts.value(key) or "") for key in ("driver", "driver_library")} - {""}
    if len(versions) == 2 and not where.is_container:
        return RuledOut("module and libraries of the host differ already", (quoted,))
    if covers or (driver is not None and isinstance(setup, ContainerSetup) and setup.is_inside and (driver.major or 0) >= 13):  # fmt: skip
        return _verdict(case, match, quoted, None, Certainty.LIKELY, 60, where)
    host_works = isinstance(access, GpuAccess) and access.smi_host is True
    if where.is_container:
        strength = 44 if is_compat and driver is not None else 58
        return _verdict(case, match, quoted, None, Certainty.LIKELY if host_works and not is_compat else Certainty.POSSIBLE, strength, where)  # fmt: skip
    return _verdict(
        case,
        match,
        quoted,
        None,
        Certainty.POSSIBLE,
        42 if is_compat else 54 if match.sign == errors.SYMBOL_AT_START.name else 48,
        where,
    )


def _older_than_driver(case: Case, match: Match, access: GpuAccess | Unknown) -> Judgement:
    """Another answer than the host's driver would give: the libcuda that was asked is not its own."""
    quoted = case.evidence(match, "what the loaded libcuda said of itself")
    copy = libcuda.foreign(case, access)
    driver, program = cuda.read_driver(case), cuda.read_program_cuda(case)
    number = match.group("number")
    said = drivers.decode_cuda_version_number(int(number)) if number else None
    own = drivers.cuda_of(driver.version) if driver is not None and driver.version else None
    if said is not None and own is not None and _release(own) > _release(said):
        certainty = Certainty.PROVEN if copy is not None and copy.is_seen_loaded else Certainty.LIKELY
        return _verdict(case, match, quoted, copy, certainty, 80)
    if match.sign == errors.INSUFFICIENT.name and copy is not None and cuda.has_full_release(driver, program):
        return _verdict(case, match, quoted, copy, Certainty.LIKELY, 75)
    is_open = match.sign == errors.INSUFFICIENT.name and driver is None and not isinstance(access, GpuAccess)
    return _verdict(case, match, quoted, copy, Certainty.POSSIBLE, 45 if copy is not None else 24) if is_open or copy is not None else None  # fmt: skip


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _other_nvml(case: Case, match: Match, where: Surroundings, access: GpuAccess | Unknown) -> Judgement:
    """NVML refuses in the container and works on the host: the container has driver libraries of its own."""
    host_works = isinstance(access, GpuAccess) and access.smi_host is True
    listed = place.listing_on_host(case)
    if not (host_works or listed is not None):
        return None
    quoted = case.evidence(match, "the libraries of this place do not belong to the host's module")
    return _verdict(case, match, quoted, None, Certainty.LIKELY, 70, where)


def _verdict(
    case: Case, match: Match, quoted: Evidence, copy: Libcuda | None, certainty: Certainty, strength: int, where: Surroundings | None = None
) -> Verdict:  # fmt: skip
    driver = cuda.read_driver(case)
    shown = copy.evidence if copy is not None else None
    component = copy.component if copy is not None else "cuda-compat"
    is_open = certainty is not Certainty.PROVEN
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"The process loads {copy.path if copy is not None else 'another libcuda'} instead of the driver's own libcuda",
        chain=(
            Link("Another copy of libcuda.so.1 stands in front of the driver's on the loader's search path", shown or inferred("nobody looked which file is loaded")),
            Link(f"It does not belong to the loaded kernel module{f' ({driver.version})' if driver and driver.version else ''}", driver.evidence[0] if driver and driver.evidence else quoted),
            Link("CUDA does not start", quoted),
        ),
        evidence=(quoted, *((shown,) if shown is not None and shown != quoted else ()), *(driver.evidence if driver else ())),
        explains=case.explains(match),
        missing=_missing(case) if is_open else (),
        rivals=("driver-library-mismatch", "driver-too-old") if is_open else (),
        remedies=_remedies(case, match, copy, where or place.read_surroundings(case)),
        not_remedies=(
            *(() if _may_be_old(case, match) else (NotARemedy("a newer driver", "the copy stays in front of it"),)),
            NotARemedy("reinstalling torch or the engine", "libcuda belongs to the driver and comes with no wheel of theirs"),
        ),
        strength=strength,
    )  # fmt: skip


def _missing(case: Case) -> tuple[Missing, ...]:
    asked = (
        case.missing("libcuda_path", "which libcuda.so.1 the process loads", _COMMAND),
        case.missing("driver", "the version of the kernel module", "cat /proc/driver/nvidia/version"),
        case.missing("container.runtime", "how the container gets its GPUs", "docker inspect --format '{{.HostConfig.Runtime}} {{json .HostConfig.DeviceRequests}}' NAME"),
        case.missing("env.LD_LIBRARY_PATH", "which folders come before the driver's"),
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _remedies(case: Case, match: Match, copy: Libcuda | None, where: Surroundings) -> tuple[Remedy, ...]:
    if copy is not None and copy.component == "cuda-toolkit":
        return _without("stubs", "the toolkit's stubs folder; it is for linking only")
    found = []
    if where.is_container or copy is None:
        found.append(Remedy(
            kind="env", name="LD_LIBRARY_PATH", value=libcuda.DRIVER_FIRST,
            summary="Search the folders into which the host's driver is mounted first",
            check=("python -c 'import torch; print(torch.cuda.is_available())'",),
            limits=("the folder is that of the host's libcuda in the container: look with find / -name 'libcuda.so.1'",),
        ))  # fmt: skip
    else:
        found += _without("compat" if "/compat" in copy.path else "foreign", "the folder of that copy")
    if case.engine == "vllm":
        found.append(Remedy(
            kind="env", name="VLLM_ENABLE_CUDA_COMPATIBILITY", value="0", rank=1, is_sure=False,
            summary="Keep vLLM from loading the compatibility libcuda of its image",
        ))  # fmt: skip
    is_wrong_card = match.sign == errors.FORWARD_COMPATIBILITY.name
    if (where.is_container or copy is None) and not is_wrong_card:
        found.append(Remedy(
            kind="flag", name="--gpus", value="all", is_sure=False,
            summary="Start with --gpus all instead of --runtime nvidia with NVIDIA_VISIBLE_DEVICES",
            limits=("for Docker; elsewhere put the driver's folder first",),
        ))  # fmt: skip
    if copy is not None and copy.component in ("cuda-compat", "python-env", "driver"):
        found.append(Remedy(
            kind="files", name="libcuda.so", value="remove the copy", is_sure=False, risk="medium",
            summary=f"Remove or rename {copy.path} (in an image: its line in /etc/ld.so.conf.d, then ldconfig)",
        ))  # fmt: skip
    if copy is None or copy.component == "cuda-compat":
        found.append(Remedy(
            kind="system-package", name="cuda-compat", value="remove", is_sure=False,
            summary="Remove the package cuda-compat-* from the image: on this driver or card it is not needed, or cannot work",
        ))  # fmt: skip
    if is_wrong_card:
        found.append(
            newer_driver(
                None, "the image asked for the compatibility libcuda because the driver is older than its CUDA"
            )
        )
    return tuple(found)


def _may_be_old(case: Case, match: Match) -> bool:
    """804: the image took the compatibility libcuda because it found the driver too old, and nobody compared the two."""
    is_refused = match.sign == errors.FORWARD_COMPATIBILITY.name
    return is_refused and cuda.has_full_release(cuda.read_driver(case), cuda.read_program_cuda(case)) is not True


def _without(folder: str, what: str) -> tuple[Remedy, ...]:
    return (
        Remedy(
            kind="env", name="LD_LIBRARY_PATH", value=f"without {folder}", summary=f"Take {what} off LD_LIBRARY_PATH",
            check=("ldconfig -p | grep libcuda.so.1",),
        ),
    )  # fmt: skip
