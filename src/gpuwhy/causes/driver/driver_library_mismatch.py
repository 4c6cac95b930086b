"""driver-library-mismatch: the driver's user-space libraries and the loaded kernel module are of different versions."""

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.container import _place as place
from gpuwhy.causes.container._place import Surroundings
from gpuwhy.causes.driver import _cuda_errors as errors
from gpuwhy.causes.driver import _libcuda as libcuda
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.gpu_access import GpuAccess
from gpuwhy.model.remedy import NotARemedy, Remedy

_V = r"\d{3}\.\d{1,4}(?:\.\d{1,4})?"
_REBOOTED = lazy_pattern(r"(?:after|tried|did|despite|even (?:after|with)|already) (?:a |the |several |multiple )?(?:re-?boot|restart)(?:ed|ing|s)? ?(?:the )?(?:host|machine|server|system|node|pc)?\b|re-?boot(?:ing|ed)? (?:does|did)(?: not|n't) (?:help|fix|solve|cure)|persists? after (?:a )?reboot", re.IGNORECASE)  # fmt: skip
_PACKAGE_ROW = lazy_pattern(
    r"^\W{0,3}ii?\s{1,4}(?P<package>(?:lib)?nvidia-[\w.+:-]{1,60}|libcuda1[\w.+:-]{0,30})\s{1,60}(?P<library>\d{3}\.\d{1,4}(?:\.\d{1,4})?)|^(?P<package2>nvidia-driver[\w.+-]{0,60}?|nvidia-utils|libnvidia-[\w-]{1,30})[- ](?:\d:)?(?P<library2>\d{3}\.\d{1,4}(?:\.\d{1,4})?)-"
)  # fmt: skip
"""A row of dpkg -l or rpm -qa. It states a fact and is no sign: every report has such rows."""
_MODULE_LINE = r"NVRM version:.{0,80}?\bKernel Module\b.{0,30}?\s(?P<module>\d{3}\.\d{1,4}(?:\.\d{1,4})?)\s"


@cause(
    "driver-library-mismatch",
    family="Driver, device and fabric",
    leads_to=("no-device-visible", "container-gpu-not-passed",),
    signs=[
        errors.NVML_MISMATCH,
        says(
            "api-mismatch",
            ("api mismatch", "this kernel module has the version"),
            rf"API mismatch: (?:the )?client.{{0,80}}?has (?:the )?version (?P<library>{_V}),? but.{{0,40}}?kernel module has (?:the )?version (?P<module>{_V})|API mismatch: (?:the )?client.{{0,80}}?has (?:the )?version (?P<library2>{_V})|this kernel module has the version (?P<module2>{_V})",
        ),
        says(
            "dso-mismatch",
            "does not match dso version",
            rf"kernel version (?P<module>{_V}) does not match DSO version (?P<library>{_V})",
        ),
        says("nvml-library-version", "nvml library version", r"NVML library version: (?P<library>\d{3}\.\d{1,4}(?:\.\d{1,4})?)"),
        says("module-version", "nvrm version", _MODULE_LINE),
        says(
            "driver-does-not-answer",
            ("couldn't communicate with the nvidia driver", "driver not loaded", "couldn’t communicate with the nvidia driver", "driver_not_loaded", "drivernotloaded", "init failure: 9"),
            r"couldn['’]t communicate with the NVIDIA driver|nvml error: driver not loaded|Failed to initialize NVML: Driver Not Loaded|NVML_ERROR_DRIVER_NOT_LOADED|NVMLError_DriverNotLoaded|nvml\w* (?:vram )?init failure: 9\b",
        ),
        errors.DRIVER_COMBINATION,
        errors.FORWARD_COMPATIBILITY,
        errors.SYMBOL_AT_START,
    ],
)  # fmt: skip
def driver_library_mismatch(case: Case, access: GpuAccess | Unknown) -> Judgement:
    """The NVIDIA libraries on disk and the kernel module in memory are of different driver versions.

    How it shows itself
      `Failed to initialize NVML: Driver/library version mismatch` from nvidia-smi, a device plugin or a container hook;
      NVMLError_LibRmVersionMismatch in Python; `NVRM: API mismatch: the client has the version X, but this kernel
      module has the version Y` in the kernel log; TensorFlow's `kernel version X does not match DSO version Y`. CUDA
      itself gives error 803, `system has unsupported display driver / cuda driver combination`, or 804.

    Why it happens
      A package update, often an unattended one, replaced the libraries while the old kernel module stayed loaded. Or
      the update is half done: the packages with the libraries moved on, the one with the kernel module was held back or
      could not be built, and every boot loads the old module again. Two installers (distribution packages and NVIDIA's
      .run file) on one machine do the same.

    How to be sure
      `cat /proc/driver/nvidia/version` is the loaded module, `modinfo -F version nvidia` the one on disk, and
      `ls -l /usr/lib/*-linux-gnu/libcuda.so.1` or dpkg the libraries. Loaded differs from disk: a reboot loads the new
      one. Loaded equals disk, and the libraries differ: the packages have to be repaired, a reboot changes nothing.

    What helps
      A reboot, or stopping everything that uses the GPUs and loading the module again; with held-back packages:
      `apt install --fix-broken`, one version for module and libraries. Hold the driver packages against unattended updates.

    What does not help
      A reboot when the module package was held back; reinstalling CUDA toolkits, torch or the container toolkit.

    Not to be confused with
      libcuda-shadowed (host consistent, one process or container loads another copy), driver-too-old.
    """
    where = place.read_surroundings(case)
    match = place.earliest(case, "api-mismatch", "dso-mismatch", errors.NVML_MISMATCH.name)
    if match is not None:
        return _plain(case, match, where, access)
    versions = _versions(case)
    match = place.earliest(
        case, errors.DRIVER_COMBINATION.name, errors.FORWARD_COMPATIBILITY.name, errors.SYMBOL_AT_START.name
    )
    if match is not None:
        return _by_cuda(case, match, where, access, versions)
    match = place.earliest(case, "driver-does-not-answer")
    return None if match is None else _no_answer(case, match, versions)


class Versions(Struct, frozen=True):
    """Of the loaded kernel module and of the libraries, with what shows each; None: not known."""

    module: str | None
    module_evidence: Evidence | None
    library: str | None
    library_evidence: Evidence | None

    @property
    def differ(self) -> bool:
        return self.module is not None and self.library is not None and not _same(self.module, self.library)

    @property
    def is_other_branch(self) -> bool:
        return self.differ and (self.module or "").partition(".")[0] != (self.library or "").partition(".")[0]


def _package_row(case: Case) -> tuple[str, Evidence] | None:
    """The version of the driver's packages, from the first row of a list that names one."""
    for name, line in place.lines(case):
        text = line.text[:400]
        row = _PACKAGE_ROW.search(text) if "nvidia" in text or "libcuda1" in text else None
        if row is not None:
            version = row["library"] or row["library2"]
            return version, place.quoted(name, line, f"the libraries are of {version}")
    return None


def _same(one: str, other: str) -> bool:
    """NVML prints two numbers of a version that has three ("535.161" of 535.161.08)."""
    return one.startswith(other) or other.startswith(one)


def _versions(case: Case) -> Versions:
    module, library = case.fact("driver"), case.fact("driver_library")
    found: dict[str, tuple[str, Evidence]] = {}
    for match in case.all("api-mismatch", "dso-mismatch", "module-version", "nvml-library-version"):
        for name, value in match.groups.items():
            side = name.rstrip("2")
            if side in ("module", "library") and side not in found:
                found[side] = (value, case.evidence(match, f"the {'kernel module' if side == 'module' else 'libraries'} are of {value}"))  # fmt: skip
    row = _package_row(case)
    if row is not None:
        found.setdefault("library", row)
    if isinstance(module, Fact) and module.value:
        found["module"] = (str(module.value), module.evidence)
    if isinstance(library, Fact) and library.value:
        found["library"] = (str(library.value), library.evidence)
    first, second = found.get("module"), found.get("library")
    return Versions(first[0] if first else None, first[1] if first else None, second[0] if second else None, second[1] if second else None)  # fmt: skip


def _plain(case: Case, match: Match, where: Surroundings, access: GpuAccess | Unknown) -> Judgement:
    """NVML or the kernel compared the two versions itself."""
    versions = _versions(case)
    quoted = case.evidence(match, "the library and the kernel module are of different versions")
    host_works = isinstance(access, GpuAccess) and access.smi_host is True
    listed = place.listing_on_host(case)
    if (host_works or listed is not None) and match.sign == errors.NVML_MISMATCH.name:
        shown = access.shown("nvidia_smi.host") if isinstance(access, GpuAccess) else ()
        return RuledOut("nvidia-smi works on the host: its module and libraries belong together", (*shown, *((listed,) if listed else ()), quoted))  # fmt: skip
    is_module_seen = match.sign == errors.NVML_MISMATCH.name and case.found("module-version") is not None
    decisive = versions.module_evidence if is_module_seen and versions.differ and versions.module_evidence else quoted
    is_foreign = where.is_container and "nvidia-container-cli" not in match.text and not versions.differ
    certainty = Certainty.LIKELY if is_foreign else Certainty.PROVEN
    return _verdict(case, match, decisive, quoted, versions, certainty, 88)


def _by_cuda(case: Case, match: Match, where: Surroundings, access: GpuAccess | Unknown, versions: Versions) -> Judgement:  # fmt: skip
    """803 and 804 do not tell which libcuda was loaded: the driver's own, or another copy."""
    quoted = case.evidence(match, "libcuda and the kernel module do not go together")
    copy = libcuda.foreign(case, access)
    if copy is not None:
        return RuledOut(f"the process loads {copy.path}, which is not the driver's own", (copy.evidence, quoted))
    if isinstance(access, GpuAccess) and access.smi_host is True and where.is_container:
        return RuledOut("nvidia-smi works on the host, and the failure is in a container", (*access.shown("nvidia_smi.host"), quoted))  # fmt: skip
    if versions.module is not None and versions.library is not None and not versions.differ and case.facts.value("driver_library"):  # fmt: skip
        return RuledOut(f"module and libraries are both of {versions.module}", (quoted,))
    if versions.differ:
        return _verdict(case, match, quoted, quoted, versions, Certainty.PROVEN, 80)
    is_compat = match.sign == errors.FORWARD_COMPATIBILITY.name
    strength = 40 if where.is_container else 44 if is_compat else 52
    return _verdict(case, match, quoted, quoted, versions, Certainty.POSSIBLE, strength)


def _is_said_by_cuda(case: Case) -> bool:
    return any(case.found(sign.name) is not None for sign in (errors.DRIVER_COMBINATION, errors.FORWARD_COMPATIBILITY))


def _no_answer(case: Case, match: Match, versions: Versions) -> Judgement:
    """No kernel module answers: not loaded, not built for the running kernel, or of a version that was refused."""
    quoted = case.evidence(match, "the libraries are installed, and no kernel module answers them")
    certainty = Certainty.LIKELY if versions.differ else Certainty.POSSIBLE
    return _verdict(case, match, quoted, quoted, versions, certainty, 60 if versions.differ else 42)


def _verdict(
    case: Case, match: Match, decisive: Evidence, quoted: Evidence, versions: Versions, certainty: Certainty, strength: int
) -> Verdict:  # fmt: skip
    module, library = versions.module_evidence, versions.library_evidence
    others = tuple(e for e in (quoted, module, library) if e is not None and e != decisive)
    pair = f" ({versions.library} against {versions.module})" if versions.differ else ""
    return Verdict(
        certainty=certainty,
        component="driver",
        title=f"The driver's libraries and its loaded kernel module are of different versions{pair}",
        chain=(
            Link("An update changed one part of the driver and not the other", inferred("how the two usually part")),
            Link(f"The loaded kernel module is {versions.module or 'of one version'}", module or quoted),
            Link(f"The libraries are {versions.library or 'of another'}", library or quoted),
            Link("The module refuses them: neither nvidia-smi nor CUDA starts", quoted),
        ),
        evidence=(decisive, *dict.fromkeys(others)),
        explains=case.explains(match, *case.all(errors.NVML_MISMATCH.name)[:1]),
        missing=_missing(case, versions, certainty),
        rivals=("libcuda-shadowed",) if certainty is not Certainty.PROVEN else (),
        remedies=_remedies(case, versions, is_open=certainty is Certainty.POSSIBLE and _is_said_by_cuda(case)),
        not_remedies=_in_vain(case, versions),
        strength=strength,
    )  # fmt: skip


def _missing(case: Case, versions: Versions, certainty: Certainty) -> tuple[Missing, ...]:
    asked = [
        case.missing("driver_installed", "whether a reboot would load the right module", "modinfo -F version nvidia"),
    ]
    if certainty is not Certainty.PROVEN:
        asked = [
            case.missing("libcuda_path", "which libcuda the process loads", "ldconfig -p | grep libcuda.so.1; grep libcuda /proc/PID/maps"),
            case.missing("nvidia_smi.host", "whether the host itself is consistent", "nvidia-smi"),
            case.missing("driver", "the version of the loaded module", "cat /proc/driver/nvidia/version"),
            case.missing("driver_library", "the version of the libraries", "ls -l /usr/lib/*-linux-gnu/libcuda.so.*") if versions.library is None else None,
            *asked,
        ]  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _is_held_back(case: Case, versions: Versions) -> bool:
    """A reboot loads the old module again: it is the one on disk, or the text says that a reboot was tried.

    Packages of another branch than the module are the mark of an update that moved only some of them: a security
    update within a branch moves all.
    """
    installed = case.facts.value("driver_installed")
    if isinstance(installed, str) and versions.module is not None:
        return versions.differ and _same(installed, versions.module)
    if any(_REBOOTED.search(line.text[:500]) for _, line in place.lines(case)):
        return True
    return versions.is_other_branch and _package_row(case) is not None


def _remedies(case: Case, versions: Versions, *, is_open: bool) -> tuple[Remedy, ...]:
    version = versions.library or ""
    repair = Remedy(
        kind="system-package", name="nvidia driver packages", value="repair",
        summary="Bring all driver packages to one version (Debian, Ubuntu: apt update, apt install --fix-broken; see dpkg -l '*nvidia*')",
        commands=("dpkg -l '*nvidia*' 'libcuda*' | grep ^ii", "apt install --fix-broken"), check=("dpkg -l '*nvidia*' 'libcuda*' | grep ^ii", "cat /proc/driver/nvidia/version", "nvidia-smi"), cost="root; then the new module is loaded by a reboot",
    )  # fmt: skip
    again = Remedy(
        kind="driver", name="nvidia", value="reinstall",
        summary=f"Install one version{f' ({version})' if version else ''} of the driver for module and libraries, by one installer only",
        cost="root and a reboot", risk="medium",
    )  # fmt: skip
    if _is_held_back(case, versions):
        return (repair, again)
    reboot = Remedy(
        kind="service", name="host", value="reboot", summary="Reboot: the module that belongs to the new libraries is loaded",
        cost="everything on the machine stops", check=("nvidia-smi",),
    )  # fmt: skip
    reload = Remedy(
        kind="kernel", name="nvidia", value="reload",
        summary="Without a reboot: stop what uses the GPUs, then unload and load the module",
        commands=("lsof /dev/nvidia*", "rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia", "modprobe nvidia"),
        cost="every program on the GPUs must stop first, the display manager and nvidia-persistenced too", check=("nvidia-smi",),
    )  # fmt: skip
    hold = Remedy(
        kind="system-package", name="nvidia driver packages", value="hold", rank=5, is_sure=False,
        summary="So that it does not come back: exclude the driver packages from unattended upgrades (apt-mark hold)",
    )  # fmt: skip
    if is_open:
        return (reboot, _drivers_first(), reload, repair, again)
    return (reboot, reload, repair, hold, again)


def _drivers_first() -> Remedy:
    """The same words also come from a copy of libcuda that the image carries (libcuda-shadowed)."""
    return Remedy(
        kind="env", name="LD_LIBRARY_PATH", value=libcuda.DRIVER_FIRST, is_sure=False,
        summary="When the host's own nvidia-smi works: let the container search the folders into which the host's driver is mounted before /usr/local/cuda/compat",
        check=("ldconfig -p | grep libcuda.so.1",),
    )  # fmt: skip


def _in_vain(case: Case, versions: Versions) -> tuple[NotARemedy, ...]:
    general = (
        NotARemedy("reinstalling torch, the CUDA toolkit or the container toolkit", "none of them is part of the driver"),
    )  # fmt: skip
    if _is_held_back(case, versions):
        return (NotARemedy("a reboot alone", "the old kernel module is the one on disk: every boot loads it again"), *general)  # fmt: skip
    return general
