"""driver-too-old: the NVIDIA driver is older than the CUDA run time of the program or image requires."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.container import _place as place
from gpuwhy.causes.container._place import Surroundings
from gpuwhy.causes.driver import _cuda_errors as errors
from gpuwhy.causes.driver import _driver_remedies as remedies
from gpuwhy.causes.driver import _program_cuda as cuda
from gpuwhy.causes.driver._program_cuda import DriverCuda, ProgramCuda
from gpuwhy.knowledge import drivers
from gpuwhy.knowledge.releases import cuda_release
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.gpu_access import GpuAccess
from gpuwhy.model.remedy import Remedy

_DRIVER = r"\d{3}(?:\.\d{1,4}){0,2}"
_DRIVER_COMMAND = "cat /proc/driver/nvidia/version"
_LIBCUDA_COMMAND = "ldconfig -p | grep libcuda.so.1; grep libcuda /proc/PID/maps"


@cause(
    "driver-too-old",
    family="Driver, device and fabric",
    signs=[
        says("torch-says-too-old", "driver on your system is too old", r"driver on your system is too old(?: ?\(found version (?P<number>\d{4,5})\))?"),
        says(
            "image-requirement",
            ("unsatisfied condition", "please update your driver to a newer version"),
            rf"requirement error: (?:unsatisfied condition: )?(?:(?:cuda|CUDA) ?>= ?(?P<cuda>\d{{1,2}}\.\d{{1,2}})|driver ?[<>=]{{1,2}} ?(?P<driver>{_DRIVER})|[^\n]{{0,80}}?please update your driver)"
            r"|unsatisfied condition: (?:cuda ?>= ?(?P<cuda2>\d{1,2}\.\d{1,2})|driver ?[<>=])",
        ),
        says(
            "image-banner",
            "this container was built for",
            rf"This container was built for (?:NVIDIA )?(?:Driver Release|CUDA Driver Release|CUDA) ?(?P<need>{_DRIVER}|\d{{1,2}}\.\d) or later, but\s{{0,8}}(?:version )?(?P<have>{_DRIVER}) was detected(?: and compatibility mode is (?P<mode>\w+))?",
        ),
        says(
            "minimum-driver",
            ("driver version", "nvidia driver", "cuda driver", "gpu driver"),
            rf"(?:requires?|needs?|minimum(?: required)?|at least)[^\n]{{0,60}}\bdriver(?: version)? ?(?:>=|is|of|:|at least|version)? ?[v\"']?(?P<need>{_DRIVER})\b[^\n]{{0,80}}\b(?:found|detected|installed|have|current|but|got)\b[^\n]{{0,40}}?(?P<have>{_DRIVER})\b"
            rf"|\bdriver(?: version)? [(\"']?(?P<have2>{_DRIVER})[)\"']? (?:is )?(?:too old|older than|lower than|less than|insufficient|not supported|unsupported|does not meet)[^\n]{{0,100}}?(?P<need2>{_DRIVER})\b",
        ),
        says(
            "driver-cuda-behind",
            ("driver version", "driver api version", "cuda driver"),
            r"(?:CUDA driver(?:'s)?|driver) (?:API )?version ?[:=(]? ?(?P<has>\d{1,2}\.\d|\d{5})\)? ?(?:is )?(?:lower than|older than|less than|<)[^\n]{0,40}?(?:CUDA )?runtime(?: version)? ?[:=(]? ?(?P<wants>\d{1,2}\.\d|\d{5})",
        ),
        says(
            "symbol-of-newer-driver",
            ("undefined symbol: cu", "from libcuda.so"),
            r"[Ff]ailed to (?:retrieve|find|load|dlsym) (?P<asked>cu[A-Z]\w{2,60}) (?:from|in) libcuda\.so|libcuda\.so(?:\.1)?(?:\.[\d.]{1,12})?: undefined symbol: (?P<symbol>cu[A-Z]\w{2,60})|symbol lookup error: \S{0,300}libcudart\S{0,40}: undefined symbol: (?P<symbol2>cu[A-Z]\w{2,60})",
        ),
        says(
            "call-needs-newer-driver",
            ("not supported in the installed cuda driver", "callrequiresnewerdriver"),
            r"API call is not supported in the installed CUDA driver|cudaErrorCallRequiresNewerDriver",
        ),
        errors.INSUFFICIENT,
        errors.FORWARD_COMPATIBILITY,
    ],
)  # fmt: skip
def driver_too_old(case: Case, access: GpuAccess | Unknown) -> Judgement:
    """The NVIDIA driver is older than the CUDA release that the program or the image was built for.

    How it shows itself
      torch: `The NVIDIA driver on your system is too old (found version 12080)`. The CUDA run time, in every other
      program: `CUDA driver version is insufficient for CUDA runtime version` (error 35). Before anything starts, from
      NVIDIA's container hook: `requirement error: unsatisfied condition: cuda>=12.9, please update your driver`. In
      the banner of NVIDIA's images: `This container was built for NVIDIA Driver Release 580.82 or later, but version
      535.104.05 was detected and compatibility mode is UNAVAILABLE`. Ollama: `your nvidia driver is too old or missing`.

    Why it happens
      A driver runs programs of its own CUDA release, of older ones, and of newer minor releases of the same major
      version (CUDA 12.x from driver 525 on, 13.x from 580 on). A new wheel or image often crosses to the next major
      version silently: `pip install torch` fetches the newest CUDA build.

    How to be sure
      `cat /proc/driver/nvidia/version` on the host, against the CUDA version of the program
      (`python -c 'import torch; print(torch.version.cuda)'`, the tag of the image). torch's number is the driver's CUDA:
      12080 is 12.8. The toolkit that `nvcc --version` shows has no part in it. Error 35 is also printed where no driver
      library is visible at all: look for libcuda.so.1 in the place that fails.

    What helps
      A driver of the branch that the CUDA major version needs, or a wheel or image built for the driver's CUDA. On
      data-centre GPUs NVIDIA's compatibility libcuda bridges the gap without a new driver.

    What does not help
      Another CUDA toolkit, a driver inside the container, reinstalling torch without naming a build (it fetches the
      same one again).

    Not to be confused with
      ptx-newer-than-driver (CUDA starts, one kernel fails), libcuda-shadowed (the driver is new enough, the process
      loads another libcuda), container-gpu-not-passed (error 35 in a container that has no libcuda).
    """
    where = place.read_surroundings(case)
    driver, program = cuda.read_driver(case), cuda.read_program_cuda(case)
    match = place.earliest(case, "torch-says-too-old")
    if match is not None:
        return _torch(case, match, where, driver, program)
    match = place.earliest(case, "image-requirement", "image-banner")
    if match is not None:
        return _image(case, match, where, driver)
    match = place.earliest(case, "minimum-driver", "driver-cuda-behind")
    if match is not None:
        return _stated_minimum(case, match, where, driver)
    match = place.earliest(case, "call-needs-newer-driver")
    if match is not None:
        quoted = case.evidence(match, "the run time calls what this driver does not have yet")
        return _verdict(case, match, quoted, where, driver, program, Certainty.LIKELY, 76)
    match = place.earliest(case, errors.INSUFFICIENT.name, errors.FORWARD_COMPATIBILITY.name, "symbol-of-newer-driver")
    return None if match is None else _unspecific(case, match, where, access, driver, program)


def _torch(case: Case, match: Match, where: Surroundings, driver: DriverCuda | None, program: ProgramCuda | None) -> Judgement:  # fmt: skip
    number = match.group("number")
    found = drivers.decode_cuda_version_number(int(number)) if number else None
    quoted = case.evidence(match, f"torch asked the driver: it supports CUDA {found}" if found else "torch's own check")
    loaded = drivers.cuda_of(driver.version) if driver is not None and driver.version else None
    if found and loaded and driver is not None and _is_newer(loaded, found):
        return RuledOut(f"the driver supports CUDA {loaded}, and the libcuda that was asked only {found}: it is another copy", (*driver.evidence, quoted))  # fmt: skip
    shown = driver if found is None else DriverCuda(driver.version if driver else None, found, (quoted,))
    wanted = program.major if program is not None else None
    if wanted is None and shown is not None and shown.major:
        wanted = shown.major + 1
    return _verdict(case, match, quoted, where, shown, program, Certainty.PROVEN, 92, wanted)


def _is_newer(one: str, other: str) -> bool:
    first, second = cuda_release(one), cuda_release(other)
    return first is not None and second is not None and first > second


def _image(case: Case, match: Match, where: Surroundings, driver: DriverCuda | None) -> Judgement:
    """The hook or the banner of the image compared its own need with the host's driver."""
    needed = match.group("cuda") or match.group("cuda2")
    need, have = match.group("need") or match.group("driver"), match.group("have")
    if match.sign == "image-banner":
        if (match.group("mode") or "").upper() == "ENABLED" or not have:
            return None
        driver = DriverCuda(have, drivers.cuda_of(have), ())
    quoted = case.evidence(match, "the image's own requirement, compared with the host's driver")
    program = cuda.ProgramCuda(needed, quoted) if needed else None
    certainty, strength = Certainty.PROVEN, 92
    if program is not None and cuda.has_full_release(driver, program):
        return RuledOut(f"the driver supports CUDA {driver.cuda if driver else ''}, more than the image asks for", (quoted,))  # fmt: skip
    if needed is None and need is None:
        certainty, strength = Certainty.LIKELY, 75
    branch = need.partition(".")[0] if need and re.fullmatch(_DRIVER, need) else None
    return _verdict(case, match, quoted, where, driver, program, certainty, strength, None, branch)


def _stated_minimum(case: Case, match: Match, where: Surroundings, driver: DriverCuda | None) -> Judgement:
    """Some program states the version it needs and the one that it found."""
    need, have = match.group("need") or match.group("need2"), match.group("have") or match.group("have2")
    quoted = case.evidence(match, "the program compared both versions itself")
    if need and have:
        wanted, present = drivers.driver_version(need), drivers.driver_version(have)
        if wanted is None or present is None or present >= wanted:
            return None
        driver = DriverCuda(have, drivers.cuda_of(have), (quoted,))
        return _verdict(case, match, quoted, where, driver, None, Certainty.LIKELY, 80, None, need.partition(".")[0])
    wants = match.group("wants") or ""
    release = drivers.decode_cuda_version_number(int(wants)) if wants.isdigit() else wants or None
    program = cuda.ProgramCuda(release, quoted) if release else None
    return _verdict(case, match, quoted, where, driver, program, Certainty.LIKELY, 80)


def _unspecific(case: Case, match: Match, where: Surroundings, access: GpuAccess | Unknown, driver: DriverCuda | None, program: ProgramCuda | None) -> Judgement:  # fmt: skip
    """Error 35 and 804: also printed when no libcuda is there, or when a wrong one is loaded. The driver decides."""
    is_compat = match.sign == errors.FORWARD_COMPATIBILITY.name
    quoted = case.evidence(match, "the run time finds the driver too old, or none" if not is_compat else "a libcuda newer than the kernel module, on a GPU that may not use one")  # fmt: skip
    loaded = case.fact("driver")
    if isinstance(loaded, Fact) and loaded.value is None:
        return RuledOut("no NVIDIA driver is loaded at all", (loaded.evidence, quoted))
    if isinstance(access, GpuAccess) and access.is_libcuda_known and access.libcuda is None and not is_compat:
        return RuledOut("there is no libcuda in this place: the driver was never asked", (*access.shown("libcuda_path"), quoted))  # fmt: skip
    enough = cuda.is_enough(driver, program)
    is_same_release = cuda.has_full_release(driver, program)
    if (
        driver is not None
        and program is not None
        and (is_same_release or (enough and not is_compat and "." in program.cuda))
    ):
        return RuledOut(f"driver {driver.version or f'for CUDA {driver.cuda}'} runs programs of CUDA {program.cuda}", (*driver.evidence, program.evidence, quoted))  # fmt: skip
    if enough is False:
        return _verdict(case, match, quoted, where, driver, program, Certainty.LIKELY if is_compat else Certainty.PROVEN, 80)  # fmt: skip
    if driver is not None and driver.major is not None and (is_compat or driver.major <= 12):
        strength = 62 if not is_compat else 55
        return _verdict(case, match, quoted, where, driver, program, Certainty.LIKELY if not is_compat or where.is_container else Certainty.POSSIBLE, strength)  # fmt: skip
    if match.group("asked"):  # Triton opened the driver's libcuda by name and asked it for a function
        return _verdict(case, match, quoted, where, driver, program, Certainty.LIKELY, 66, 12)
    strength = 30 if match.sign == "symbol-of-newer-driver" else 46 if is_compat else 50
    if not is_compat and (where.asks_for_gpu is False or "too old or missing" in match.text):
        strength -= 10
    return _verdict(case, match, quoted, where, driver, program, Certainty.POSSIBLE, strength)


def _verdict(
    case: Case, match: Match, quoted: Evidence, where: Surroundings, driver: DriverCuda | None, program: ProgramCuda | None,
    certainty: Certainty, strength: int, major: int | None = None, branch: str | None = None,
) -> Verdict:  # fmt: skip
    wanted = program.major if program is not None else major
    if wanted is None and driver is not None and driver.major is not None and certainty is not Certainty.POSSIBLE:
        wanted = driver.major + 1  # within a major version the run time starts on every driver
    if branch is None:
        is_minor_gap = program is not None and driver is not None and driver.major == program.major
        branch = cuda.branch_for(program.release) if is_minor_gap and program is not None else None
    branch = branch or (cuda.floor_for(wanted) if wanted else None)
    name = (driver.version or f"for CUDA {driver.cuda}") if driver is not None else ""
    needs = f"CUDA {program.cuda}" if program is not None else f"CUDA {wanted}" if wanted else "the program"
    is_open = certainty is not Certainty.PROVEN
    return Verdict(
        certainty=certainty,
        component="driver",
        title=f"The NVIDIA driver {name + ' ' if name else ''}is too old for {needs}",
        chain=(
            Link(f"The program was built for {needs if needs != 'the program' else 'a newer CUDA'}", program.evidence if program is not None else inferred("its CUDA release is not in the log")),
            Link(f"The driver {f'supports CUDA {driver.cuda} at most' if driver is not None and driver.cuda else 'supports an older one'}", driver.evidence[0] if driver is not None and driver.evidence else quoted),
            Link("CUDA does not start", quoted),
        ),
        evidence=(quoted, *(e for e in (driver.evidence if driver is not None else ()) if e != quoted), *_floor_evidence(wanted)),
        explains=case.explains(match),
        missing=_missing(case, match) if is_open else (),
        rivals=_rivals(match) if is_open else (),
        remedies=_remedies(case, match, where, driver, program, branch, wanted),
        not_remedies=remedies.IN_VAIN,
        notes=_notes(driver, match),
        strength=strength,
    )  # fmt: skip


def _floor_evidence(major: int | None) -> tuple[Evidence, ...]:
    branch = cuda.floor_for(major) if major else None
    return (derived(f"CUDA {major}.x needs driver {branch} or later", "NVIDIA's table of drivers and CUDA releases"),) if branch else ()  # fmt: skip


def _missing(case: Case, match: Match) -> tuple[Missing, ...]:
    asked = (
        case.missing("driver", "which CUDA the driver supports", _DRIVER_COMMAND),
        case.missing("libcuda_path", "whether a driver library is visible to the process, and which", _LIBCUDA_COMMAND),
        case.missing("torch_cuda", "which CUDA the program was built for"),
        case.missing("container.gpus", "whether the container was given GPUs", "docker inspect NAME | grep -i -A8 DeviceRequests") if match.sign == errors.INSUFFICIENT.name else None,
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _rivals(match: Match) -> tuple[str, ...]:
    if match.sign == errors.FORWARD_COMPATIBILITY.name:
        return ("libcuda-shadowed", "driver-library-mismatch")
    return ("container-gpu-not-passed", "libcuda-shadowed")


def _notes(driver: DriverCuda | None, match: Match) -> tuple[str, ...]:
    notes = ["The CUDA version of the toolkit (nvcc) takes no part: torch and most wheels bring their own run time."]
    if match.sign == errors.FORWARD_COMPATIBILITY.name:
        notes.append("On a host, 804 is also what a driver update without a reboot gives: new libraries, old kernel module.")  # fmt: skip
    if driver is not None and driver.version and driver.version.startswith(("470", "390", "340")):
        notes.append(f"Branch {driver.version[:3]} is the last one for some old cards (Kepler for 470): check before upgrading.")  # fmt: skip
    return tuple(notes)


def _remedies(
    case: Case, match: Match, where: Surroundings, driver: DriverCuda | None, program: ProgramCuda | None, branch: str | None, major: int | None
) -> tuple[Remedy, ...]:  # fmt: skip
    component = case.component_near(match, case.engine or None)
    is_image = match.sign in ("image-requirement", "image-banner")
    proposed = list(remedies.compatibility(case, program.cuda if program else str(major) if major else None))
    if is_image:
        proposed.append(remedies.older_image(case, driver))
        if program is not None and driver is not None and cuda.is_enough(driver, program):
            proposed.append(Remedy(
                kind="env", name="NVIDIA_DISABLE_REQUIRE", value="1", is_sure=False,
                summary="Let the hook start the container all the same: the driver runs machine code of this CUDA major version",
                limits=("kernels that are only there as PTX still fail (ptx-newer-than-driver)",),
            ))  # fmt: skip
    else:
        proposed += remedies.builds(case, component, where, driver)
    why = f"CUDA {program.cuda if program else f'{major}.x'} needs it" if branch else "the program's CUDA needs it"
    proposed.append(remedies.newer_driver(branch, why))
    return tuple(proposed)
