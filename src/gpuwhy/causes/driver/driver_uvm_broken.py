"""driver-uvm-broken: CUDA does not start after suspend or a fault of the unified-memory module, while NVML works."""

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.container import _place as place
from gpuwhy.causes.driver import _cuda_errors as errors
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.gpu_access import GpuAccess
from gpuwhy.model.remedy import NotARemedy, Remedy

_SLEPT = lazy_pattern(
    r"PM: suspend (?:entry|exit)|PM: hibernation|systemd-suspend|systemd-sleep|\b(?:after|from|since) (?:a |the )?(?:suspend|sleep|hibernat|resum|standby|wak)|(?:suspend(?:ed)?|sleep|slept|hibernat\w{1,4}|wak(?:e|ing) up|resume)\b.{0,60}(?:laptop|computer|machine|pc|host|server|system)|(?:laptop|computer|machine|pc|host|system) .{0,40}\b(?:sleeps?|slept|suspend(?:ed|s)?|hibernat\w{1,4}|woke|wakes|resumed)\b",
    re.IGNORECASE,
)  # fmt: skip
_KERNEL_SLEPT = lazy_pattern(r"PM: suspend|PM: hibernation|systemd-(?:suspend|sleep)")
_KERNEL_FAULT = lazy_pattern(r"nvidia[-_]uvm.{0,80}(?:fail|fatal|error|Unknown symbol|disagrees|not found)|uvm_\w{2,40}.{0,60}(?:fail|error|fatal)", re.IGNORECASE)  # fmt: skip
_NVML_UNKNOWN = lazy_pattern(r"Failed to initialize NVML: Unknown Error|NVMLError_Unknown", re.IGNORECASE)


@cause(
    "driver-uvm-broken",
    family="Driver, device and fabric",
    signs=[
        errors.UNKNOWN_ERROR,
        errors.START_FAILS,
        says(
            "uvm-module-fails",
            ("nvidia-uvm", "nvidia_uvm"),
            r"(?:could not insert|FATAL: Module|Error! |modprobe: \w{1,8}:).{0,40}nvidia[-_]uvm|nvidia[-_]uvm.{0,60}(?:not found in directory|disagrees about version|Unknown symbol|fatal error|failed to (?:load|initiali[sz]e)|No such device)|/dev/nvidia-uvm\S{0,10}:? (?:No such file|does not exist|not found|No such device)|(?:open|stat|cannot access|find|missing)\w{0,8}.{0,30}/dev/nvidia-uvm\b.{0,40}(?:No such|fail|Input/output|not permitted)",
        ),
    ],
)  # fmt: skip
def driver_uvm_broken(case: Case, access: GpuAccess | Unknown) -> Judgement:
    """nvidia-smi works, and CUDA fails with an unknown error: the driver's memory module does not answer.

    How it shows itself
      torch: `CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable
      CUDA_VISIBLE_DEVICES after program start`. Elsewhere `CUDA_ERROR_UNKNOWN`, `cuInit ... 999`, Ollama's `cuda driver
      library init failure: 999`, ggml's `failed to initialize CUDA: unknown error`. nvidia-smi lists the GPUs as ever.

    Why it happens
      NVML speaks with the module nvidia, CUDA also with nvidia_uvm. After suspend and resume the GPU's memory is gone
      and nvidia_uvm keeps a state that no longer holds; or the module was not loaded, or its device file is missing.

    How to be sure
      Call cuInit on the host, outside every container:
      `python3 -c "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"` prints 999, nvidia-smi works, and
      `journalctl -k | grep -e 'PM: suspend' -e uvm` shows a suspend or a fault of the module.

    What helps
      Stop everything on the GPUs and reload the module: `rmmod nvidia_uvm && modprobe nvidia_uvm`. A full power cycle
      when that fails. Against repetition: NVreg_PreserveVideoMemoryAllocations=1 with NVIDIA's suspend services, or no suspend.

    What does not help
      CUDA_VISIBLE_DEVICES (torch's hint is a guess), another container, reinstalling torch or CUDA, restarting only the service.

    Not to be confused with
      container-devices-lost (only the container fails, the host's cuInit works), no-device-visible (error 100),
      fabric-manager-state (error 802).
    """
    match = place.earliest(case, "uvm-module-fails") or place.earliest(
        case, errors.UNKNOWN_ERROR.name, errors.START_FAILS.name
    )
    if match is None:
        return None
    state = _state(case, access)
    # torch's guess about CUDA_VISIBLE_DEVICES follows, and misleads
    quoted = Evidence(_meaning(match), match.text.partition(", e.g. changing env")[0], match.place)
    excluded = _excluded(case, access, quoted)
    if excluded is not None:
        return excluded
    certainty, strength = _certainty(match, state)
    is_open = certainty is not Certainty.PROVEN
    return Verdict(
        certainty=certainty,
        component="driver",
        title="CUDA cannot start although nvidia-smi works: the driver's unified-memory module (nvidia_uvm) does not answer",
        chain=(
            Link("The machine was suspended" if state.slept else "nvidia_uvm is in a broken state, or not loaded", state.slept or state.fault or (quoted if match.sign == "uvm-module-fails" else inferred("suspend and resume is the usual reason"))),
            Link("nvidia_uvm does not answer, while the rest of the driver does", state.fails_on_host or state.smi or inferred("nobody tried cuInit on the host")),
            Link("CUDA fails with an unknown error", quoted),
        ),
        evidence=(quoted, *(e for e in (state.fails_on_host, state.smi, state.slept, state.fault) if e is not None)),
        explains=case.explains(match),
        missing=_missing(case) if is_open else (),
        rivals=("container-devices-lost", "no-device-visible") if is_open else (),
        remedies=_remedies(match, state),
        not_remedies=(
            NotARemedy("CUDA_VISIBLE_DEVICES", "the sentence in torch's message is a guess; error 999 does not come from it"),
            NotARemedy("changing or rebuilding the container, reinstalling torch", "the fault is in the host's kernel module"),
            NotARemedy("restarting only the service", "the module keeps its state"),
        ),
        strength=strength,
    )  # fmt: skip


class State(Struct, frozen=True):
    """What speaks for the module: cuInit fails on the host, nvidia-smi works, the machine slept, the kernel complains."""

    fails_on_host: Evidence | None
    smi: Evidence | None
    slept: Evidence | None
    fault: Evidence | None


def _state(case: Case, access: GpuAccess | Unknown) -> State:
    fails = smi = None
    if isinstance(access, GpuAccess):
        if access.cuinit_host is False:
            fails = access.evidence["cuinit.host"]
        works = [key for key, ok in (("nvidia_smi.host", access.smi_host), ("nvidia_smi.container", access.smi_container)) if ok]  # fmt: skip
        smi = access.evidence[works[0]] if works else None
    return State(fails, smi or place.any_listing(case), _slept(case), _fault(case))


def _slept(case: Case) -> Evidence | None:
    told = _in_journal(case, _KERNEL_SLEPT, "the machine was suspended")
    return told or next((place.quoted(name, line, "the machine was suspended") for name, line in place.lines(case) if _SLEPT.search(line.text[:500])), None)  # fmt: skip


def _fault(case: Case) -> Evidence | None:
    """A fault of the module in the kernel log, or its device file looked for in vain."""
    device = case.fact("files./dev/nvidia-uvm")
    if isinstance(device, Fact) and (device.value is None or "No such" in str(device.value)):
        return device.evidence
    return _in_journal(case, _KERNEL_FAULT, "the module complains in the kernel log")


def _in_journal(case: Case, pattern: re.Pattern[str], statement: str) -> Evidence | None:
    for key in ("journal", "kernel_log"):
        fact = case.fact(key)
        if not isinstance(fact, Fact) or not isinstance(fact.value, list | tuple):
            continue
        for line in fact.value:
            if pattern.search(str(line)[:500]):
                return Evidence(statement, str(line)[:400], fact.evidence.place, fact.evidence.standing)
    return None


def _meaning(match: Match) -> str:
    return "the module or its device file is missing" if match.sign == "uvm-module-fails" else "CUDA fails inside the driver; the message names no reason"  # fmt: skip


def _excluded(case: Case, access: GpuAccess | Unknown, quoted: Evidence) -> RuledOut | None:
    if isinstance(access, GpuAccess):
        if access.cuinit_host:
            return RuledOut("CUDA starts on the host: its module is fine", (*access.shown("cuinit.host"), quoted))
        if access.smi_host and access.smi_container is False:
            return RuledOut("nvidia-smi fails too, and only in the container", (*access.shown("nvidia_smi.host", "nvidia_smi.container"), quoted))  # fmt: skip
        if access.smi_host is False:
            return RuledOut("nvidia-smi fails on the host as well: it is not this module alone", (*access.shown("nvidia_smi.host"), quoted))  # fmt: skip
    for name, line in place.lines(case):
        if _NVML_UNKNOWN.search(line.text[:500]):
            return RuledOut("NVML does not work either", (place.quoted(name, line, "NVML fails in the same place"), quoted))  # fmt: skip
    return None


def _certainty(match: Match, state: State) -> tuple[Certainty, int]:
    if state.fails_on_host and state.smi and (state.slept or state.fault):
        return Certainty.PROVEN, 85
    if state.fails_on_host or state.fault or (state.slept and match.sign != "uvm-module-fails"):
        return Certainty.LIKELY, 72
    if match.sign == "uvm-module-fails":
        return Certainty.LIKELY, 66
    if match.sign == errors.START_FAILS.name:
        return Certainty.POSSIBLE, 40
    if not _is_at_start(match):
        return Certainty.POSSIBLE, 22
    return Certainty.POSSIBLE, 55 if state.smi else 48


def _is_at_start(match: Match) -> bool:
    """CUDA's very first call, and not "unknown error" of a kernel that ran: that is a fault of the card or a crash."""
    text = match.text.lower()
    if any(word in text for word in ("unknown error - this may be", "cuinit", "init failure", "initializ", "initialis", "at driver init", "getdevicecount", "device count", "_cuda_init", "get device context")):  # fmt: skip
        return True
    return any("_lazy_init" in frame.function or "_cuda_init" in frame.code for frame in match.frames)


def _missing(case: Case) -> tuple[Missing, ...]:
    asked = (
        case.missing("cuinit.host", "whether CUDA fails on the host too, outside every container", "python3 -c \"import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))\""),
        case.missing("nvidia_smi.host", "whether the rest of the driver works", "nvidia-smi"),
        case.missing("journal", "whether the machine was suspended", "journalctl -b | grep -e 'PM: suspend' -e nvidia-uvm"),
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _remedies(match: Match, state: State) -> tuple[Remedy, ...]:
    is_absent = match.sign == "uvm-module-fails" and "fatal error" not in match.text
    load = Remedy(
        kind="kernel", name="nvidia_uvm", value="load" if is_absent else "reload",
        summary="Load the module and make its device files" if is_absent else "Stop what uses the GPUs, then unload and load the module",
        commands=("modprobe nvidia_uvm", "nvidia-modprobe -u -c=0") if is_absent else ("lsof /dev/nvidia-uvm", "rmmod nvidia_uvm", "modprobe nvidia_uvm"),
        cost="root" if is_absent else "root; every CUDA program on the machine must stop first",
        check=("python3 -c \"import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))\"",),
    )  # fmt: skip
    reboot = Remedy(
        kind="service", name="host", value="reboot",
        summary="Power cycle the machine (off and on, not only a restart) when the module cannot be reloaded", cost="everything on the machine stops",
    )  # fmt: skip
    keep = Remedy(
        kind="kernel", name="NVreg_PreserveVideoMemoryAllocations", value="1", rank=5, is_sure=state.slept is not None,
        summary="So that it does not come back: keep GPU memory over suspend (with nvidia-suspend and nvidia-resume enabled), or do not suspend",
    )  # fmt: skip
    return (load,) if is_absent and not state.slept else (reboot, load, keep)
