"""cpu-lacks-instruction: a program for the CPU was compiled with instructions (AVX, AVX512 ...) that this CPU does not have."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.finding import Certainty, Link, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_SETS = r"AVX512\w{0,8}|AVX-512|AVX_VNNI|AVX2?|AMX\w{0,6}|F16C|FMA3?|BMI2|SSE4[._]\d|SSSE3|X86_V\d|x86-64-v\d|SVE2?|NEON|ASIMDDP|dotprod|i8mm"
_VIRTUAL = lazy_pattern(r"Proxmox|\bQEMU\b|\bKVM\b|kvm64|qemu64|common kvm processor|virtual machine|\b(?-i:VM)\b|VirtualBox|Hyper-V", re.IGNORECASE)  # fmt: skip
_CMAKE_OF_GGML = frozenset({"llama.cpp", "llama-cpp-python", "whisper.cpp", "ktransformers", "stable-diffusion.cpp"})


@cause(
    "cpu-lacks-instruction",
    family="Binary and architecture limits",
    signs=[
        says(
            "instruction-named",
            ("avx", "sse4", "baseline optimizations", "fma", "f16c", "amx", "x86_v", "x86-64-v", "missing required cpu features"),
            rf"compiled (?:to use|with|for) (?P<set>{_SETS})[^\n]{{0,60}}(?:aren't|are not|isn't|is not|not) (?:available|supported)|(?:CPU|machine|processor|host) (?:does not|doesn't|do not|don't) (?:support|have) (?:all features in )?(?P<set2>{_SETS})|baseline optimizations[^\n]{{0,80}}your machine doesn't support|(?:requires?|needs?) (?:a CPU with |CPU support for |support for |the )?(?P<set3>AVX512\w{{0,8}}|AVX-512|AMX\w{{0,6}}|AVX2?)\b[^\n]{{0,60}}(?:not|CPU|instruction)|no (?P<set4>AVX2?|AVX512\w{{0,8}}) support (?:detected|found)|Missing required CPU features",
        ),
        says("trap", "invalid opcode", r"trap(?:s:|:)? .{0,120}invalid opcode.{0,160}?(?: in (?P<library>[\w.+-]{2,80})\[)?|trap invalid opcode.{0,120} in (?P<library2>[\w.+-]{2,80})\["),
        says(
            "illegal-instruction",
            ("illegal instruction", "sigill", "0xc000001d", "-1073741795", "signal 4", "exit code 132", "status 132"),
            r"(?<!an )(?<!warp )\bIllegal instruction\b(?! (?:was encountered|encoding|parameter))|\bSIGILL\b|0xc000001d|-1073741795|signal:? 4\b|(?:exit code|status|code)[ =:]{1,3}132\b",
        ),
    ],
)  # fmt: skip
def cpu_lacks_instruction(case: Case) -> Judgement:
    """A program was compiled with CPU instructions (AVX, AVX512, AMX ...) that the CPU of this machine does not have.

    How it shows itself
      The process is gone with `Illegal instruction (core dumped)`, SIGILL, exit status 132 or -4, on Windows 0xc000001d
      (-1073741795), often at import or with the first layer on the CPU. The kernel log: `trap invalid opcode ... in
      libggml-cpu.so`. Polite programs check first: `compiled to use AVX instructions, but these aren't available`,
      NumPy's `built with baseline optimizations ... but your machine doesn't support`.

    Why it happens
      The binary was compiled with -march=native (GGML_NATIVE, vLLM's CPU back end) on a newer machine than the one it runs on; a wheel
      demands AVX512 or AVX2; or a virtual machine hides them (Proxmox's and QEMU's default CPU kvm64 has no AVX).
      It has nothing to do with the GPU or with CUDA.

    How to be sure
      `grep -o -w -E 'avx|avx2|avx512f|f16c|fma|bmi2|amx_tile' /proc/cpuinfo | sort -u` against what the library needs; the kernel log
      names the library that trapped.

    What helps
      In a virtual machine: the CPU type "host". Else a build for this CPU (built here, or GGML_NATIVE=OFF with the sets that the CPU has), or
      a release whose wheel picks its code at run time.

    What does not help
      Other drivers, CUDA versions or torch builds; more layers on the GPU when it fails at import.

    Not to be confused with
      kernel-illegal-instruction (`CUDA error: an illegal instruction was encountered`: the GPU's).
    """
    match = next(
        (m for name in ("instruction-named", "trap", "illegal-instruction") for m in case.all(name) if not m.is_code),
        None,
    )
    if match is None or (match.sign == "instruction-named" and _is_only_advice(case, match)):
        return None
    component = _component(case, match)
    named = next((value for name, value in match.groups.items() if name.startswith("set")), "")
    quoted = case.evidence(match, _MEANING[match.sign])
    crash = case.found("illegal-instruction")
    virtual = _virtual(case)
    flags = case.missing("cpu_flags", "which instruction sets this CPU has", "grep -o -w -E 'avx|avx2|avx512f|f16c|fma|bmi2|amx_tile' /proc/cpuinfo | sort -u; lscpu | grep -i model")  # fmt: skip
    library = match.group("library") or match.group("library2")
    trap = case.missing("kernel_log", "which library holds the instruction", "journalctl -k -b | grep 'invalid opcode'") if library is None else None  # fmt: skip
    return Verdict(
        certainty=Certainty.PROVEN if match.sign == "instruction-named" and match.event is not None else Certainty.LIKELY,
        component=component,
        title=f"{component} needs {named}, which the CPU of this machine does not have" if named else f"{component} was compiled for instructions that the CPU of this machine does not have",
        chain=(
            Link(f"{library or component} was compiled for a newer CPU, or the virtual machine hides what the CPU can", virtual or inferred("which instruction it was is not printed")),
            Link("The CPU does not know an instruction of it", quoted),
            Link("The process is ended by SIGILL", case.evidence(crash, "how the process ended") if crash is not None else None),
        ),
        evidence=tuple(dict.fromkeys(each for each in (quoted, virtual) if each is not None)),
        explains=case.explains(match, crash),
        missing=tuple(each for each in (flags, trap) if each is not None),
        remedies=_remedies(component, is_virtual=virtual is not None),
        not_remedies=(
            NotARemedy("another driver, CUDA or torch build", "the GPU has no part in it"),
            NotARemedy("more layers on the GPU", "the library fails at load, or for what stays on the CPU"),
        ),
        notes=() if virtual is not None else ("In a virtual machine, give it the host's CPU type first: generic ones hide AVX.",),
        strength=82 if match.sign != "illegal-instruction" else 64,
    )  # fmt: skip


_MEANING = {
    "instruction-named": "the program looked at the CPU before it went on",
    "trap": "the CPU refused an instruction; the kernel names where",
    "illegal-instruction": "the CPU refused an instruction",
}


def _is_only_advice(case: Case, match: Match) -> bool:
    """Programs tell of the CPU in passing; it counts when it is the failure, or when the process was ended by it."""
    is_failure = match.event is not None and match.event.is_fatal
    is_refusal = match.group("set") is not None or "baseline optimizations" in match.text
    return (
        not is_failure
        and not is_refusal
        and case.incident.primary is not None
        and case.found("illegal-instruction", "trap") is None
    )


def _component(case: Case, match: Match) -> str:
    library = match.group("library") or match.group("library2")
    near = case.component_near(match)
    if library is None and near in (None, "torch") and case.engine:
        return case.engine
    return near or case.engine or "user-program"


def _virtual(case: Case) -> Evidence | None:
    for log, line in case.lines():
        if _VIRTUAL.search(line.text[:400]):
            return Evidence("it runs in a virtual machine", line.text.strip()[:300], Place("log", log.name, line.number))  # fmt: skip
    return None


def _remedies(component: str, *, is_virtual: bool) -> tuple[Remedy, ...]:
    machine = Remedy(
        kind="config", name="CPU type of the virtual machine", value="host",
        summary="In a virtual machine: give it the host's CPU (QEMU and Proxmox: cpu type host) instead of a generic one without AVX",
        cost="the virtual machine has to be stopped and started", check=("grep -c -w avx2 /proc/cpuinfo",),
    )  # fmt: skip
    how = " (CMAKE_ARGS=-DGGML_NATIVE=OFF, with GGML_AVX512=OFF or GGML_AVX2=OFF as the CPU wants it)" if component in _CMAKE_OF_GGML else ""  # fmt: skip
    rebuild = Remedy(
        kind="package", name=component, value="rebuild",
        summary=f"Build {component} on this machine, or for the instructions that its CPU has{how}", cost="minutes of compiling",
    )  # fmt: skip
    newer = Remedy(
        kind="package", name=component, value="newer", rank=1, is_sure=False,
        summary=f"A release of {component} that chooses its code for the CPU at run time",
    )  # fmt: skip
    cpu = Remedy(kind="hardware", name="cpu", value="with the instructions", summary="A machine whose CPU has them", is_sure=False)  # fmt: skip
    return (machine, rebuild, newer, cpu) if is_virtual else (rebuild, newer, cpu)
