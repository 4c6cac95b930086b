"""driver-not-loaded: no NVIDIA kernel module is in the host's kernel: not installed, not built for it, refused, displaced."""

from __future__ import annotations

from msgspec import Struct

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.container import _place as place
from gpuwhy.causes.driver._module_remedies import remedies_for
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.gpu_access import GpuAccess
from gpuwhy.model.remedy import NotARemedy

_REASONS = ("module-not-signed", "module-not-built", "displaced", "gpu-not-supported", "module-not-there")
"""Signs that say why no module is loaded, the most telling first."""
_SYMPTOMS = ("no-answer", "no-version-file", "tool-not-installed", "no-driver-on-system")


@cause(
    "driver-not-loaded",
    family="Driver, device and fabric",
    leads_to=("no-device-visible", "container-gpu-not-passed", "container-toolkit-missing"),
    signs=[
        says(
            "module-not-signed",
            ("key was rejected by service", "required key not available", "unavailable key is rejected", "unsigned module loading", "unsigned modules"),
            r"(?:could not insert|insmod|modprobe|finit_module|init_module).{0,80}nvidia.{0,60}(?:Key was rejected by service|Required key not available)|(?:Key was rejected by service|Required key not available).{0,60}nvidia|(?:nvidia|NVRM).{0,80}unavailable key is rejected|Loading of module with unavailable key is rejected|unsigned module loading is restricted",
        ),
        says(
            "module-not-built",
            ("dkms", "bad return status for module build", "kernel source tree", "kernel headers for kernel", "building kernel modules", "load the kernel module", "kernel source path"),
            r"Bad return status for module build on kernel: ?(?P<kernel>[\w.+-]{3,60})|(?:dkms autoinstall|autoinstall for kernel).{0,60}fail|dkms (?:apport|build).{0,80}nvidia.{0,80}(?:fail|error)|nvidia[\w./-]{0,40}.{0,60}dkms.{0,40}(?:fail|exited with error|error processing)|error processing package nvidia-(?:kernel-)?dkms\S{0,20}|Unable to (?:find|locate) the kernel source (?:tree|path)|kernel headers for kernel (?P<kernel2>[\w.+-]{3,60}).{0,30}(?:cannot be found|could not be found|not found)|performing the step: [\"']Building kernel modules|Unable to load the kernel module '?nvidia",
        ),
        says(
            "displaced",
            ("nouveau", "conflicting kernel module", "vfio-pci", "probe routine was not called"),
            r"already bound to (?P<other>nouveau|vfio-pci|nova_core|nvidiafb|rivafb)|probe routine was not called for \d{1,3} device|unloading the conflicting kernel module|Nouveau kernel driver is currently in use",
        ),
        says(
            "gpu-not-supported",
            "is not supported by the nvidia",
            r"is not supported by the NVIDIA (?P<release>\d{3}\.[\d.]{1,12}) driver release|installed in this system is not supported by the NVIDIA driver",
        ),
        says(
            "module-not-there",
            ("module nvidia", "insert 'nvidia", "insert ‘nvidia", "insert nvidia", "nvidia not found", "nvidia.ko", "module nvidia-current"),
            r"Module nvidia(?:-current)? not found(?: in directory \S{0,40}/(?P<kernel>[\w.+-]{3,60}))?|(?:could not|can't|cannot|unable to) insert (?:module )?['‘]?nvidia(?:_current|-current)?['’]?\s?:.{0,60}(?:No such device|Exec format error|Unknown symbol|Invalid argument|not found)|nvidia\.ko\S{0,8}.{0,40}(?:not found|No such file|does not exist)|version magic .{0,80}nvidia|nvidia.{0,20}: version magic",
        ),
        says(
            "no-answer",
            ("communicate with the nvidia driver", "driver not loaded", "driver_not_loaded", "drivernotloaded", "init failure: 9", "driver is not loaded"),
            r"couldn['’]t communicate with the NVIDIA driver|nvml error: driver not loaded|Failed to initialize NVML: Driver Not Loaded|NVML_ERROR_DRIVER_NOT_LOADED|NVMLError_DriverNotLoaded|nvml\w* (?:vram )?init failure: 9\b|nvidia driver is not loaded",
        ),
        says("no-version-file", "/proc/driver/nvidia", r"/proc/driver/nvidia(?:/version)?['’\"]?:? {0,2}(?:No such file|does not exist|not found|cannot)|(?:cannot access|can't open|No such file or directory:) ['‘\"]?/proc/driver/nvidia"),
        says(
            "tool-not-installed",
            "nvidia-smi",
            r"Command ['‘]nvidia-smi['’] not found, but can be installed|nvidia-smi\\?[\"']?: (?:command )?not found(?:$|\s)|command not found: nvidia-smi|which: no nvidia-smi in \(|nvidia-smi.{0,4} is not recognized as",
        ),
        says("no-driver-on-system", "found no nvidia driver", r"Found no NVIDIA driver on your system"),
    ],
)  # fmt: skip
def driver_not_loaded(case: Case, access: GpuAccess | Unknown) -> Judgement:
    """The host has no NVIDIA driver at work: no kernel module is loaded, so every program finds a machine without GPUs.

    How it shows itself
      `NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver`, `NVML: Driver Not Loaded`, or
      nvidia-smi is not installed at all; torch: `Found no NVIDIA driver on your system`. The kernel's side says why:
      `modprobe: FATAL: Module nvidia not found in directory /lib/modules/...`, `could not insert 'nvidia': Key was rejected by
      service`, DKMS's `Bad return status for module build on kernel`, `already bound to nouveau`, `is not supported by the
      NVIDIA ... driver release`.

    Why it happens
      The module is built for one kernel. After an update of the kernel it has to be built again, which needs that
      kernel's headers and a driver that compiles against it. With Secure Boot the kernel refuses a module that nobody
      signed. nouveau or vfio-pci may hold the card. A card newer (or much older) than the driver is left alone by it.

    How to be sure
      On the host: `cat /proc/driver/nvidia/version` (absent: not loaded), `modprobe nvidia; journalctl -k -b | grep -iE
      'nvidia|nvrm|nouveau'` says why, `dkms status; uname -r; mokutil --sb-state`.

    What helps
      The headers of the running kernel and `dkms autoinstall`; a newer driver when it does not compile; enrolling the
      module's key or switching Secure Boot off; a blacklist for nouveau; installing a driver where there is none.

    What does not help
      CUDA toolkits, torch builds, containers: all of them use the host's module. A driver inside an image.

    Not to be confused with
      container-gpu-not-passed (nvidia-smi works on the host), driver-library-mismatch (a module is loaded, of another
      version), driver-uvm-broken (nvidia-smi works), gpu-lost (the module is loaded and has lost the card), gpu-too-old
      (`supported through the NVIDIA 470.xx Legacy drivers`).
    """
    reason = next((m for name in _REASONS if (m := place.earliest(case, name)) is not None), None)
    symptom = next((m for name in _SYMPTOMS if (m := place.earliest(case, name)) is not None), None)
    match = reason or symptom
    if match is None:
        return None
    where = place.read_surroundings(case)
    quoted = case.evidence(match, _MEANING[match.sign])
    excluded = _excluded(case, access, quoted)
    if excluded is not None:
        return excluded
    is_weak = match.sign in ("tool-not-installed", "no-driver-on-system", "no-version-file")
    if is_weak and (where.is_container or _is_a_remark(case, match)):
        return None
    told = _Told(reason, symptom, _shown_absent(case, access), where.is_container is False)
    certainty, strength = _certainty(told)
    return Verdict(
        certainty=certainty,
        component="driver",
        title=_TITLES.get(match.sign, "No NVIDIA kernel module is loaded on the host"),
        chain=(
            Link(_TITLES.get(match.sign, "The module is not installed, not built for this kernel, or was refused"), quoted if reason is not None else inferred("the kernel log tells which")),
            Link("No NVIDIA kernel module is in the kernel", told.absent or inferred("nothing answers")),
            Link("nvidia-smi, CUDA and the container toolkit find no driver", case.evidence(symptom, _MEANING[symptom.sign]) if symptom is not None else None),
        ),
        evidence=tuple(dict.fromkeys(e for e in (quoted, case.evidence(symptom, _MEANING[symptom.sign]) if symptom is not None else None, told.absent) if e is not None)),
        explains=case.explains(match, symptom, *case.all(*_REASONS)),
        missing=_missing(case, reason),
        rivals=_rivals(told),
        remedies=remedies_for(reason),
        not_remedies=(
            NotARemedy("another CUDA toolkit, torch build or container image", "all of them use the kernel module of the host"),
            NotARemedy("installing a driver in the image", "the module belongs to the host's kernel"),
        ),
        strength=strength,
    )  # fmt: skip


class _Told(Struct, frozen=True):
    """What is known: the reason, what programs see, a fact that no driver is loaded, and whether a fact says "no container"."""

    reason: Match | None
    symptom: Match | None
    absent: Evidence | None
    is_on_host: bool


_MEANING = {
    "module-not-signed": "the kernel refuses a module whose signature it does not know",
    "module-not-built": "the module could not be built for this kernel",
    "displaced": "another kernel module holds the card",
    "gpu-not-supported": "the module leaves this card alone",
    "module-not-there": "the kernel has no such module, or does not take it",
    "no-answer": "the libraries are installed, and no kernel module answers them",
    "no-version-file": "a loaded module would have made this file",
    "tool-not-installed": "the driver's own tool is not installed",
    "no-driver-on-system": "torch finds no driver",
}
_TITLES = {
    "module-not-signed": "The kernel refuses the NVIDIA module: Secure Boot is on and its signature is not enrolled",
    "module-not-built": "The NVIDIA kernel module was not built for the running kernel",
    "displaced": "Another kernel module holds the card, so the NVIDIA driver does not get it",
    "gpu-not-supported": "The installed NVIDIA driver does not know this GPU",
    "module-not-there": "The running kernel has no NVIDIA module that it could load",
    "tool-not-installed": "No NVIDIA driver is installed on the host",
    "no-driver-on-system": "No NVIDIA driver is installed, or none is loaded, on the host",
}


def _excluded(case: Case, access: GpuAccess | Unknown, quoted: Evidence) -> RuledOut | None:
    if isinstance(access, GpuAccess) and access.smi_host is True:
        return RuledOut("nvidia-smi works on the host", (*access.shown("nvidia_smi.host"), quoted))
    driver = case.fact("driver")
    if isinstance(driver, Fact) and driver.value:
        return RuledOut(f"a driver is loaded: {driver.value}", (driver.evidence, quoted))
    listed = place.any_listing(case)
    return RuledOut("nvidia-smi lists GPUs", (listed, quoted)) if listed is not None else None


def _is_a_remark(case: Case, match: Match) -> bool:
    """A line beside another failure (a script that looks for nvidia-smi) is no finding."""
    primary = case.incident.primary
    if primary is None or (match.event is not None and match.event.id == primary):
        return False
    return not any(other.event is not None and other.event.id == primary for other in case.all(*_SYMPTOMS))


def _shown_absent(case: Case, access: GpuAccess | Unknown) -> Evidence | None:
    driver = case.fact("driver")
    if isinstance(driver, Fact) and not driver.value:
        return driver.evidence
    if isinstance(access, GpuAccess) and access.smi_host is False and "nvidia_smi.host" in access.evidence:
        return access.evidence["nvidia_smi.host"]
    return None


def _certainty(told: _Told) -> tuple[Certainty, int]:
    """Proven: what the kernel or the build says, and nothing answers. One of the two alone leaves a link open."""
    if told.reason is not None:
        is_whole = told.symptom is not None or told.absent is not None
        return (Certainty.PROVEN if is_whole else Certainty.LIKELY), 84
    sign = told.symptom.sign if told.symptom is not None else ""
    if sign == "no-answer":
        return Certainty.LIKELY, 70
    is_told_by_shell = told.symptom is not None and "can be installed" in told.symptom.text
    if told.absent is not None or told.is_on_host or is_told_by_shell:
        return Certainty.LIKELY, 66
    return Certainty.POSSIBLE, 50 if sign == "no-version-file" else 44


def _missing(case: Case, reason: Match | None) -> tuple[Missing, ...]:
    kernel_log = case.missing("kernel_log", "why the module is not in the kernel", "modprobe nvidia; journalctl -k -b | grep -iE 'nvidia|nvrm|nouveau' | tail -20")  # fmt: skip
    host = case.missing("nvidia_smi.host", "whether the host, outside every container, has a driver at work", "nvidia-smi; cat /proc/driver/nvidia/version")  # fmt: skip
    kernel = case.missing("kernel_release", "for which kernel the module has to be there", "uname -r; dkms status; mokutil --sb-state")  # fmt: skip
    wanted = (kernel,) if reason is not None else (host, kernel_log, kernel)
    return tuple(each for each in wanted if each is not None)


def _rivals(told: _Told) -> tuple[str, ...]:
    if told.reason is not None:
        return ()
    if told.symptom is not None and told.symptom.sign == "no-answer":
        return ("driver-library-mismatch", "gpu-lost")
    return ("container-gpu-not-passed",)
