"""jit-build-killed: the kernel ended a compiler because host memory ran out."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

GIB = 1 << 30
MEMORY_PER_JOB = 8 * GIB
"""What one nvcc with its cicc takes at the peak for templates such as CUTLASS and flash-attention (reported: 4 to 12 GiB)."""
_TOOLS = r"(?:nvcc|cicc|cudafe\+\+|ptxas|fatbinary|nvlink|cc1plus|cc1|lto1|g\+\+|gcc|c\+\+|clang\+\+|clang|ld|rustc|ninja|make|cmake|hipcc)"
_BUILD_NEAR = lazy_pattern(
    r"\bnvcc\b|\bcicc\b|\bninja\b|\[\d+/\d+\]|Building (?:CUDA|CXX|wheel|extension)|setup\.py|cmake|\.cu\.o\b|\.cuda\.o\b|(?-i:FAILED: )|cc1plus"
    r"|pip install|Compiling objects|Error building extension|allowing ninja to set|MAX_JOBS",
    re.IGNORECASE,
)
_CMAKE_NEAR = lazy_pattern(
    r"CMakeFiles|cmake --build|Building CUDA object|\[ *\d+%\]|gmake|make\[|build\.py|build\.sh", re.IGNORECASE
)
_OF_A_BUILD_TOOL = lazy_pattern(r"FAILED:|\*\*\* |(?:nvcc|gcc|g\+\+|c\+\+|ninja|cmake)['\"]", re.ASCII)
_NO_MEMORY = lazy_pattern(r"allocat|out of memory|memory exhausted|heap space|bad_alloc|paging file", re.IGNORECASE)


class Kill(msgspec.Struct, frozen=True):
    """What ended. ``tool`` as far as it is named; ``by_kernel`` the kernel's own line about a compiler."""

    match: Match
    tool: str
    by_kernel: Match | None
    is_in_build: bool
    is_named: bool
    """The line itself names a compiler that was killed, or says that it had no memory."""

    @property
    def is_named_by_compiler(self) -> bool:
        """Nothing is clearer than the compiler's own words; of an exit status the kernel's line is the reason."""
        return self.match.sign not in ("build-step-137", "bare-killed")


@cause(
    "jit-build-killed",
    family="Toolchain",
    leads_to=("jit-cache-stale",),
    signs=[
        says(
            "compiler-died",
            ("died due to signal 9", "died due to signal 6"),
            r"'?(?P<tool>[\w+.-]{2,40})'? died due to signal (?:9\b|6 \(Abort)",
        ),
        says(
            "compiler-killed",
            ("killed signal terminated program", "killed (program"),
            r"Killed(?: signal terminated program (?P<tool>[\w+.-]{2,40})| \(program (?P<tool2>[\w+.-]{2,40})\))",
        ),
        says(
            "shell-killed-compiler",
            ("killed", "signal: 9", "sigkill"),
            rf"\bKilled(?:: ?9)?\s(?!process \d).{{0,400}}?(?:/|\s|^)(?P<tool>{_TOOLS})(?:\s|$|\))|(?P<tool2>rustc|nvcc|ninja|cmake|make)\b.{{0,200}}\(signal: 9, SIGKILL"
            rf"|(?P<tool3>{_TOOLS})['\"\],].{{0,300}}died with <Signals\.SIGKILL: 9>",
        ),
        says(
            "compiler-without-memory",
            ("allocate memory", "out of memory", "memory exhausted", "heap space", "memory allocation fail", "bad_alloc", "allocating"),
            rf"(?:^|[\s/]){_TOOLS}(?:\.exe)?: (?:fatal |internal compiler )?(?:error: )?.{{0,120}}?(?:Cannot allocate memory|out of memory|memory exhausted|bad_alloc)"
            r"|virtual memory exhausted: Cannot allocate memory|LLVM ERROR: out of memory|nvcc (?:fatal|error)\s*:.{0,80}(?:memory allocation fail|out of memory)"
            r"|catastrophic error: out of memory|compiler is out of heap space|ninja: fatal: (?:posix_spawn|fork): Cannot allocate memory"
            r"|ptxas fatal\s*:\s*Memory allocation failure|cc1plus: out of memory allocating \d+ bytes",
        ),
        says(
            "kernel-killed-compiler",
            ("killed process", "oom-kill:", "oom_reaper"),
            r"(?:Killed process \d+ \(|oom-kill:.{0,1500}\btask=|oom_reaper: reaped process \d+ \()(?P<tool>nvcc|cicc|cudafe\+\+|ptxas|fatbinary|cc1plus|cc1|ninja|g\+\+|rustc|lto1|ld)\b",
        ),
        says(
            "build-step-137",
            ("code=137", "error 137", "code 137", "status 137", "code: 137", "code=-9", "code: -9", "code -9", "status -9", "sigkill", "signal 9"),
            r"FAILED: .{0,10}\[code=(?:137|-9)\]|\*\*\* .{0,500}\bError 137\b|command '[^']{1,1000}' (?:failed with exit (?:code|status) (?:137|-9)|(?:terminated by|died with) signal 9)"
            r"|non-zero exit status (?:137|-9).{0,20}$|died with <Signals\.SIGKILL: 9>|RUN .{0,400}exit code: 137|process \"/bin/.{1,2000}\" did not complete successfully: exit code: 137"
            r"|The command '/bin/.{1,2000}' returned a non-zero code: 137|executor failed running \[.{1,2000}\]: exit code: 137"
            r"|exit code: (?:-9|137)\s*$|Build(?:ing)? .{0,200}(?:exit code|exited with|returned) -?(?:137|9)\b",
        ),
        says("bare-killed", "killed", r"^\s*(?:/\S{1,200}: line \d+:\s+\d+ )?Killed(?:: 9)?\s*(?:\S.{0,300})?$"),
    ],
)  # fmt: skip
def jit_build_killed(case: Case) -> Judgement:
    """A compile job was killed because host memory ran out: too many compilers ran at the same time.

    How it shows itself
      `nvcc error : 'cicc' died due to signal 9`, `gcc: fatal error: Killed signal terminated program cc1plus`,
      `FAILED: [code=137]`, a bare `Killed` between compile lines, or exit status 137 of the step that builds. The engine
      then reports `Ninja build failed` or a CalledProcessError. The kernel log names the victim: cicc, cudafe++, cc1plus.

    Why it happens
      Torch, FlashInfer and most builds start one compiler per core. One nvcc for CUTLASS or attention templates takes
      several GiB, so a machine with 16 cores and 64 GB, or a container with a memory limit, runs out. It comes at the
      first start after an upgrade or after a cache was deleted, when all kernels are compiled again. Several ranks
      that compile at the same time multiply it.

    How to be sure
      `journalctl -k | grep -i 'killed process'` at that time; in a container the limit is that of the control group
      (memory.max), and `dmesg` of the host has the line. GPU memory has nothing to do with it.

    What helps
      MAX_JOBS = memory in GiB / 8, at least 1 (for CMake builds: --parallel with a number). NVCC_THREADS=1 where the build
      also starts threads inside nvcc. More memory or swap for the one build. Kernels that come compiled: a wheel,
      flashinfer-jit-cache. Objects that are done are kept, so a second attempt gets further.

    What does not help
      Another CUDA version, lower GPU memory fractions, a smaller model. A higher time-out.

    Not to be confused with
      host-oom-kill (the serving process is the victim), gpu-oom-* (messages of CUDA's allocator), disk-full. A compiler
      that ends with signal 11 crashed by itself. A start command that ends 137 may have been killed by its own launcher.
    """
    kill = _read(case)
    if kill is None:
        return None
    if kill.by_kernel is None and not kill.is_named and not kill.is_in_build:
        return None
    excluded = _excluded(case, kill)
    if excluded is not None:
        return excluded
    quoted = case.evidence(kill.match, _what_it_shows(kill))
    kernel = case.evidence(kill.by_kernel, "the kernel names the compiler as its victim") if kill.by_kernel else None
    memory = case.fact_evidence("mem_total_bytes")
    certainty = _certainty(kill)
    component = _component(case, kill)
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{kill.tool or 'A compiler'} was killed for lack of host memory while {component or 'a library'} was being built",
        chain=_chain(kill, quoted, kernel, memory),
        evidence=tuple(
            e for e in ((quoted, kernel, memory) if kill.is_named_by_compiler else (kernel, quoted, memory)) if e
        ),
        explains=case.explains(kill.match, kill.by_kernel, *case.all("build-step-137")),
        missing=_missing(case, kill),
        rivals=("host-oom-kill",) if certainty is Certainty.POSSIBLE else (),
        remedies=_remedies(case, kill, component),
        not_remedies=_IN_VAIN,
        notes=("Exit status 137 is SIGKILL. Who sent it stands in the kernel log only.",)
        if kill.by_kernel is None
        else (),
        strength=_strength(kill),
    )


def _read(case: Case) -> Kill | None:
    kernels = case.all("kernel-killed-compiler")
    kernel = next((match for match in kernels if "killed process" in match.text.lower()), next(iter(kernels), None))
    match = case.found(
        "compiler-died", "compiler-killed", "compiler-without-memory", "shell-killed-compiler", "build-step-137"
    )
    match = match or kernel or _killed_in_build(case)
    if match is None:
        return None
    tool = match.group("tool") or match.group("tool2") or match.group("tool3") or ""
    if not tool and kernel is not None:
        tool = kernel.group("tool") or ""
    is_named = match.sign not in ("build-step-137", "bare-killed") or _OF_A_BUILD_TOOL.search(match.text) is not None
    return Kill(match, tool, kernel, _is_in_build(case, match), is_named)


def _killed_in_build(case: Case) -> Match | None:
    return next((match for match in case.all("bare-killed") if _is_in_build(case, match)), None)


def _is_in_build(case: Case, match: Match) -> bool:
    """The lines just before are those of a build. What comes after is the launcher's report of it."""
    if _BUILD_NEAR.search(match.text):
        return True
    return any(_BUILD_NEAR.search(line.text[:1000]) for line in case.lines_around(match, 12, 3))


def _excluded(case: Case, kill: Kill) -> RuledOut | None:
    """A kernel log that was read and holds no kill, and memory that no number of compilers fills."""
    log = case.fact("kernel_log")
    if kill.by_kernel is not None or not isinstance(log, Fact) or _NO_MEMORY.search(kill.match.text):
        return None
    lines = [str(line) for line in log.value or ()]
    victim = next((line for line in lines if re.search(r"killed process|oom-kill", line, re.IGNORECASE)), None)
    if victim is not None and not re.search(rf"[(=]{_TOOLS}\b", victim) and not kill.is_named:
        return RuledOut(
            "the kernel killed another process than a compiler", (msgspec.structs.replace(log.evidence, quote=victim),)
        )
    return None


def _certainty(kill: Kill) -> Certainty:
    if kill.by_kernel is not None:
        return Certainty.PROVEN
    return Certainty.LIKELY if kill.is_named else Certainty.POSSIBLE


def _strength(kill: Kill) -> int:
    if kill.match.sign == "compiler-died" and "signal 6" in kill.match.text:
        return 45
    if kill.is_named:
        return 80
    return 60 if kill.is_in_build and kill.match.sign == "build-step-137" else 50


def _component(case: Case, kill: Kill) -> str | None:
    """The library that was being built; the JIT of the engine when a bare ninja line is all there is."""
    near = case.component_near(kill.match)
    if near is not None and near not in ("vllm", "sglang", "torch"):
        return near
    is_jit = "FAILED:" in kill.match.text or any("ninja" in line.text for line in case.lines_around(kill.match, 10, 10))
    if near is None:
        return "flashinfer" if is_jit and not _CMAKE_NEAR.search(kill.match.text) else None
    return near


def _what_it_shows(kill: Kill) -> str:
    if kill.match.sign == "compiler-without-memory":
        return "the compiler itself says that it gets no memory"
    if kill.match.sign in ("build-step-137", "bare-killed"):
        return "a build step ended by SIGKILL"
    if kill.match.sign == "kernel-killed-compiler":
        return "the kernel killed a compiler for lack of memory"
    return f"{kill.tool or 'the compiler'} was ended by a signal from outside"


def _chain(kill: Kill, quoted: Evidence, kernel: Evidence | None, memory: Evidence | None) -> tuple[Link, ...]:
    return (
        Link("The build starts as many compilers as there are cores, several GiB each", inferred("the default of ninja, torch and FlashInfer without MAX_JOBS")),
        Link("Their sum exceeds the memory of the host or of the container's limit", memory or inferred("follows from the kill")),
        Link(f"The kernel ends {kill.tool or 'one of them'} with SIGKILL", kernel or inferred("nothing else sends SIGKILL to a compiler as a rule")),
        Link("The build stops at that file", quoted),
    )  # fmt: skip


def _missing(case: Case, kill: Kill) -> tuple[Missing, ...]:
    wanted = [
        case.missing("kernel_log", "whether the kernel killed a compiler") if kill.by_kernel is None else None,
        case.missing("mem_total_bytes", "how many compile jobs fit", "grep MemTotal /proc/meminfo"),
    ]
    return tuple(m for m in wanted if m is not None)


def jobs_for(memory: int) -> int:
    """How many compile jobs fit into ``memory`` bytes: one per 8 GiB, at least one."""
    return max(1, memory // MEMORY_PER_JOB)


_SET_UP_BY_PYTHON = frozenset({"torch", "vllm", "sglang", "flash-attn", "flashinfer", "xformers", "deepspeed"})
"""Their builds may run CMake, started by a setup.py that reads MAX_JOBS."""


def _remedies(case: Case, kill: Kill, component: str | None) -> tuple[Remedy, ...]:
    known = [case.facts.value(key) for key in ("memory_limit_bytes", "mem_total_bytes")]
    sizes = [size for size in known if isinstance(size, int) and not isinstance(size, bool) and size > 0]
    jobs = str(jobs_for(min(sizes))) if sizes else "4"
    why = f"{min(sizes) / GIB:.0f} GiB of memory / 8 GiB" if sizes else "memory in GiB / 8; 4 fits into 32 GiB"
    near = [kill.match.text, *(line.text[:1000] for line in case.lines_around(kill.match, 30, 20))]
    is_pythons = component in _SET_UP_BY_PYTHON or any("site-packages" in text for text in near[:3]) or any("MAX_JOBS" in text for text in near)  # fmt: skip
    is_cmake = not is_pythons and any(_CMAKE_NEAR.search(text) for text in near)
    limit = Remedy(
        kind="env",
        name="MAX_JOBS",
        value=jobs,
        summary=f"Compile {jobs} files at a time ({why})",
        cost="the build takes longer; finished objects are kept",
        limits=("read by torch's extension builder, FlashInfer and vLLM; not by a plain cmake or make",),
        is_sure=not is_cmake,
        rank=0,
    )
    parallel = Remedy(
        kind="flag",
        name="--parallel",
        value=jobs,
        summary=f"Give cmake --build (or build.sh) a number: {jobs} ({why})",
        cost="the build takes longer; finished objects are kept",
    )
    remedies = [parallel, limit] if is_cmake else [limit]
    remedies += _thread_remedies(near, is_cmake)
    if component == "flashinfer":
        remedies.append(Remedy(kind="package", name="flashinfer-jit-cache", value="match:flashinfer-python", summary="Install the compiled kernels of the same release instead of compiling them", is_sure=False))  # fmt: skip
    remedies.append(Remedy(kind="hardware", name="host-memory", value="more RAM or swap", summary="More memory, a higher container limit, or swap for the time of the build"))  # fmt: skip
    return tuple(remedies)


def _thread_remedies(near: list[str], is_cmake: bool) -> list[Remedy]:
    if is_cmake and any("onnxruntime" in text for text in near):
        return [Remedy(kind="flag", name="--nvcc_threads", value="1", summary="One thread inside each nvcc")]
    threaded = any(re.search(r"--threads[ =]\d|NVCC_THREADS|-t\d\b", text) for text in near)
    return [Remedy(kind="env", name="NVCC_THREADS", value="1", summary="One thread inside each nvcc", is_sure=threaded, rank=5)]  # fmt: skip


_IN_VAIN = (
    NotARemedy("another CUDA version", "every nvcc needs the memory"),
    NotARemedy("a lower GPU memory fraction, a smaller batch", "it is host memory, and the model is not loaded by the compiler"),
    NotARemedy("raising time-outs", "the job was killed, it was not slow"),
)  # fmt: skip
