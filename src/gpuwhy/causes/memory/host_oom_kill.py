"""host-oom-kill: the host's memory, or a control group's limit, is used up, and a process is killed for it."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import PurePosixPath

import msgspec
from msgspec import Struct

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.memory import _allocation as allocations
from gpuwhy.causes.memory import _estimated as estimates
from gpuwhy.causes.memory import _options as engine_options
from gpuwhy.causes.memory import _use as uses
from gpuwhy.causes.memory._allocation import GIB, gib
from gpuwhy.causes.memory._unified import is_unified
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.experiments import Experiments
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_COMPILERS = r"nvcc|cicc|cudafe\+\+|ptxas|fatbinary|nvlink|cc1plus|cc1|lto1|g\+\+|gcc|c\+\+|clang(?:\+\+)?|ld|rustc|ninja|make|cmake|hipcc"
_IS_COMPILER = lazy_pattern(rf"(?:Killed process \d{{1,10}} \(|task=|reaped process \d{{1,10}} \()(?:{_COMPILERS})\b")
_BUILD = lazy_pattern(
    r"\bnvcc\b|\bcicc\b|\bninja\b|\[\d{1,5}/\d{1,5}\]|Building (?:CUDA|CXX|wheel|extension)|setup\.py|\bcmake\b|\.cu\.o\b|\.cuda\.o\b|(?-i:FAILED: )|cc1plus|pip3? install|Compiling objects|Ninja build|RUN pip|docker build|MAX_JOBS",
    re.IGNORECASE,
)
_LOADING = lazy_pattern(
    r"loading (?:blk|weights|model|safetensors|checkpoint)|Loading (?:safetensors|pt|checkpoint|weights|model|drafter)|checkpoint shards|Load weight begin|Starting to load model|Fetching \d{1,5} files|Downloading shards|load_tensors|from_pretrained|offloading|swap_space|pin_memory|cpu[-_ ]offload|HiCache|hicache|hierarchical cache|to cuda:\d|to cpu\b",
    re.IGNORECASE,
)
_ANON = lazy_pattern(r"(anon|file|shmem)-rss:(\d{1,15})kB")
_VICTIM = lazy_pattern(r"Killed process (?:\d{1,10} )?\(([^)]{1,60})\)|Kill process \d{1,10} \(([^)]{1,60})\)|task=([^,\s]{1,60})")  # fmt: skip
_CODE_FOR_SIGKILL = r"(?:exit ?code|exitcode|exit status|exited with(?: code)?|return(?:ed)? code|Exit Code|status)\W{1,6}(?:code\W{1,3})?(?:-9|137)\b"


_ON_PURPOSE = lazy_pattern(
    r"after SIGKILL|stop-sigterm|timed out\. Killing|[Ss]ending (?:a )?SIGKILL|with SIGKILL|force[- ]?kill|[Ll]iveness probe (?:failed|errored)|failed liveness probe|docker (?:stop|kill)|preempt|scancel|CANCELLED AT|DUE TO TIME LIMIT",
)
"""A supervisor or a person that sends the signal itself; it may say so before or after."""
_KILLS_THE_REST = lazy_pattern(r"[Kk]illing (?:local|all|remaining|child)|kill_process_tree")
"""What an engine does to the others when one has died: what ends after such a line was ended by it."""


class Kill(Struct, frozen=True):
    """What ended for lack of memory. ``kind``: the strength of what says so (see ``_STRENGTH``)."""

    match: Match
    kind: str
    victim: str = ""
    is_group: bool = False
    sizes: dict[str, int] = {}


MOST_READ = 10
"""Deaths that are looked at: each costs a pass over the log, and a crash loop repeats them."""
_KERNEL = ("kernel-killed", "kernel-constraint", "kernel-oom")
_MANAGER = ("supervisor", "ray", "daemon")
_ALLOCATION = ("host-allocation", "refused", "pinned")
_BARE = ("killed-by-signal", "bare-killed")


@cause(
    "host-oom-kill",
    family="Memory, storage, limits",
    leads_to=("startup-timeout", "jit-cache-stale", "gpu-memory-taken",),
    signs=[
        says("kernel-killed", ("out of memory: kill", "killed process"), r"[Oo]ut of memory(?: \(oom_kill_allocating_task\))?: Kill(?:ed)? process (?:\d{1,10} )?\(|Killed process \d{1,10} \([^)]{1,60}\).{0,40}(?:total-vm|vsz)|out of memory: OOM victim|out of memory: Killed"),
        says("kernel-constraint", "oom-kill:constraint", r"oom-kill:constraint="),
        says("kernel-oom", ("oom_reaper", "invoked oom-killer"), r"oom_reaper: reaped process|invoked oom-killer"),
        says(
            "supervisor",
            ("oomkilled", "oom killer", "oom-kill", "oom_kill", "oom killed", "out-of-memory killer", "low on resource: memory"),
            r"low on resource: memory|OOMKilled\b(?!\W{1,4}(?:false|no)\b)|killed by the OOM[ -]killer|result 'oom-kill'|oom[-_]kill event|OOM Killed|Result: ?oom-kill|Memory limit exceeded.{0,40}kill",
        ),
        says(
            "ray",
            ("memory pressure", "running low on memory", "memory usage threshold"),
            r"killed due to (?:memory pressure|the node running low on memory)|node running low on memory|exceeds the memory usage threshold|Workers? .{0,60}killed due to memory",
        ),
        says("daemon", ("earlyoom", "systemd-oomd", "oomd", "due to memory pressure", "low memory! at or below"), r"earlyoom.{0,60}(?:sending|kill)|systemd-oomd.{0,40}[Kk]illed|oomd.{0,40}[Kk]ill(?:ed|ing)|Killed /\S{1,300} due to memory pressure|low memory! at or below SIG(?:TERM|KILL) limits"),
        says(
            "host-allocation",
            ("defaultcpuallocator", "cannot allocate memory", "bad_alloc", "memoryerror", "unable to mmap", "paging file is too small", "os error 1455", "failed to allocate cpu", "cudahostalloc", "cudamallochost", "unable to allocate", "failed to pin", "failed to allocate pinned", "unable to allocate cpu", "cuda_host", "cpu_buffer_type", "ggml_aligned_malloc", "memory allocation of", "runtime: out of memory", "runtime: cannot allocate"),
            r"DefaultCPUAllocator: (?:can't|not enough) (?:allocate )?memory|(?:\[Errno 12\]|OSError.{0,40}) ?Cannot allocate memory|^(?:RuntimeError|MemoryError|OSError)?:? ?.{0,80}unable to mmap \d{1,20} bytes|what\(\):\s{1,3}std::bad_alloc|^(?:\S{1,40}\.)?_?(?:Array)?MemoryError\b"
            r"|\bmmap\b.{0,60}Cannot allocate memory|paging file is too small|os error 1455|Unable to allocate \d[\d.]{0,9} [GT]iB for an array|(?:cudaHostAlloc|cudaMallocHost|cudaHostRegister).{0,60}(?:fail|out of memory)|failed to allocate (?:a )?(?:pinned|CPU\w{0,10} ?buffer|CUDA_Host)|unable to allocate (?:CPU|CUDA_Host)\w{0,12} ?buffer|failed to allocate buffer of type CPU|cpu_buffer_type_alloc_buffer: failed|ggml_aligned_malloc: insufficient memory|^memory allocation of \d{4,16} bytes failed|fatal error: runtime: (?:out of|cannot allocate) memory",
        ),
        says(
            "refused",
            ("more system memory", "too large for system", "enough host memory", "too large swap space", "enough cpu memory", "enough system memory", "insufficient host memory"),
            r"requires more system memory|request too large for system|[Nn]ot enough (?:host|CPU|system) memory|Too large swap space|[Ii]nsufficient (?:host|system|CPU) memory",
        ),
        says(
            "killed-by-signal",
            ("exit code", "exitcode", "exit status", "core proc(s)", "sigkill", "signal 9", "exited with", "return code", "status=9/kill", "code=killed", "signal: killed", "exited (137)", "code 137", "code: 137", "code=137", "exit-code", "with signal 9", "by signal 9", "signal: killed"),
            rf"{_CODE_FOR_SIGKILL}|core proc\(s\): \{{[^{{}}]{{0,200}}: -9\b|\bSIGKILL\b|[Ss]ignal[: ]{{1,2}}(?:9\b|killed)|(?:shutdown|terminated|killed) (?:with|by) signal 9\b|code=killed, status=9/KILL|Exited \(137\)|exit-?code:? ?137|\berror code:? 137",
        ),
        says("bare-killed", "killed", r"^\s{0,8}(?:/?\S{1,200}: line \d{1,7}:\s{1,6}\d{1,10} )?(?:\[\d\]\s{1,6}\d{1,10}\s{1,6})?[Kk]illed(?:: 9)?\s{0,40}(?:\S.{0,300})?$"),
        allocations.SIGN,
        says("loads-on-host", ("loading blk.", "kt-kernel", "ktransformers", "numa=", "numa build", "use_numa"), r"loading blk\.\d|ktransformers|kt[-_]kernel|NUMA"),
    ],
)  # fmt: skip
def host_oom_kill(case: Case, experiments: Experiments | Unknown) -> Judgement:
    """Host memory, or the memory limit of a container, is used up, and the kernel or a supervisor kills a process.

    How it shows itself
      A bare `Killed`, exit code -9 or 137 without a traceback, `OOMKilled`, `Failed with result 'oom-kill'`, `Worker proc died
      unexpectedly`; Ray says `killed due to memory pressure`. The kernel log has the only exact line: `Out of memory: Killed process
      N (name) total-vm:..., anon-rss:...`. Before it comes to that: `DefaultCPUAllocator: can't allocate memory`, `Cannot allocate memory`,
      ollama's `model requires more system memory`.

    Why it happens
      Sizes given per worker multiply by the number of GPUs (swap space, offload, HiCache, readers that do not map their
      files), experts on the CPU by the number of NUMA nodes. A tmpfs or /dev/shm counts as memory. In a container the limit
      counts, and not what the host has. On boards with unified memory (GB10, Jetson) the GPU's weights are the same memory,
      and the kernel may kill an innocent small process, on which another waits long after.

    How to be sure
      `journalctl -k -b | grep -iE 'killed process|oom-kill'`: which process, which constraint (CONSTRAINT_MEMCG is a limit). High anon-rss:
      the process's own memory; high shmem-rss: tmpfs or shared memory. A compiler as victim is jit-build-killed.

    What helps
      Remove the multiplication (NUMA copies, per-worker buffers, reader threads). A higher limit of the container or pod. Swap
      for the peak while loading. A checkpoint that needs no conversion. On unified memory a LOWER GPU memory fraction.

    What does not help
      More GPU memory, a longer time-out. Twice the memory, where the need is a multiple of the model. Restarting: it dies at the same place.

    Not to be confused with
      jit-build-killed (the victim is a compiler), gpu-oom-* (messages of CUDA's allocator), shm-too-small, disk-full.
    """
    kill = _read(case)
    if kill is None:
        return None
    excluded = _excluded(case, kill)
    if excluded is not None:
        return excluded
    need = _need(case)
    told = _told_by_facts(case) if kill.kind in _BARE else None
    certainty = Certainty.PROVEN if told is not None else _certainty(kill, need)
    quoted = case.evidence(
        kill.match, _STATEMENT.get(kill.kind, "a process ended by SIGKILL, and nothing here says who sent it")
    )
    facts = tuple(e for key in ("mem_total_bytes", "memory_limit_bytes", "model_bytes", "numa_nodes", "memory_limit_kills") if (e := case.fact_evidence(key)))  # fmt: skip
    return Verdict(
        certainty=certainty,
        component="host-memory",
        title=_title(kill, need),
        chain=_chain(kill, need, quoted, facts),
        evidence=(quoted, *((told,) if told is not None else ()), *_other_lines(case, kill), *facts[:3]),
        explains=case.explains(kill.match, *(m for m in case.all(*_KERNEL, *_MANAGER, *_BARE) if not _IS_COMPILER.search(m.text))),
        missing=_missing(case, kill, certainty),
        rivals=_rivals(kill, certainty),
        remedies=(*engine_options.tried(experiments), *_remedies(case, kill, need)),
        not_remedies=_IN_VAIN,
        notes=_notes(case, kill),
        strength=_STRENGTH[kill.kind],
        memory=uses.host_uses(case, case.engine, min((size for key in ("mem_total_bytes", "memory_limit_bytes") if (size := _bytes(case, key))), default=None)),
    )  # fmt: skip


_STRENGTH = {"kernel-killed": 92, "kernel-constraint": 90, "kernel-oom": 88, "supervisor": 85, "ray": 85, "daemon": 85, "host-allocation": 60, "refused": 75, "pinned": 58, "killed-by-signal": 36, "bare-killed": 40}  # fmt: skip
_STATEMENT = {
    "kernel-killed": "the kernel killed it for lack of memory",
    "kernel-constraint": "the kernel names its victim and the limit that was reached",
    "kernel-oom": "the kernel's OOM killer was at work",
    "supervisor": "the supervisor saw the OOM killer's work",
    "ray": "Ray ends workers before the node is full",
    "daemon": "a daemon ends processes before memory is full",
    "host-allocation": "the host has no memory for the allocation",
    "refused": "the program finds too little host memory",
    "pinned": "CUDA cannot pin that much memory of the host, and says so in the words of the GPU's",
}


def _read(case: Case) -> Kill | None:
    for told in case.all(*_KERNEL):
        if not _IS_COMPILER.search(told.text) and not _is_gpu_only(told.text):
            return _kernel_kill(case, told)
    if case.all(*_KERNEL):
        return None  # compilers only
    # A daemon that watches the pressure ends a unit long before its limit, and the unit's result is oom-kill as well.
    match = next((m for m in case.all("daemon", *_MANAGER) if not m.is_code), None)
    if match is not None:
        return Kill(match, match.sign, is_group=match.sign == "supervisor")
    match = next((m for m in case.all("refused", "host-allocation") if not m.is_code and not _is_build(case, m)), None)
    if match is not None:
        return Kill(match, match.sign)
    pinned = allocations.pinned_allocation(case)
    if pinned is not None:
        return Kill(pinned, "pinned")
    return _bare(case)


def _is_gpu_only(text: str) -> bool:
    return "NVRM" in text


def _kernel_kill(case: Case, match: Match) -> Kill:
    victim = _VICTIM.search(match.text)
    name = next((group for group in victim.groups() if group), "") if victim else ""
    sizes = {kind: int(size) << 10 for kind, size in _ANON.findall(match.text)}
    is_group = any("MEMCG" in m.text or "Memory cgroup" in m.text for m in case.all(*_KERNEL))
    return Kill(match, match.sign, name, is_group, sizes)


def _bare(case: Case) -> Kill | None:
    """A kill that nobody explains: of a server, not of a build, and not what a supervisor did after another failure."""
    primary = case.incident.primary_event
    for match in (*case.all("bare-killed")[:MOST_READ], *case.all("killed-by-signal")[:MOST_READ]):
        if match.is_code or _is_build(case, match) or match.line.level in ("info", "debug"):
            continue
        if _is_on_purpose(case, match):
            continue
        is_own = primary is None or (match.event is not None and match.event.id == primary.id) or primary.is_echo or primary.kind in ("death", "unit", "warning")  # fmt: skip
        if is_own or match.place.line is None or match.place.line < (primary.span.first if primary else 0):
            return Kill(match, match.sign)
    return None


def _is_on_purpose(case: Case, match: Match) -> bool:
    near = (match.line, *case.lines_around(match, 15, 5))
    return any(
        _ON_PURPOSE.search(line.text[:600])
        or (line.number <= match.line.number and _KILLS_THE_REST.search(line.text[:600]))
        for line in near
    )


def _is_build(case: Case, match: Match) -> bool:
    if _BUILD.search(match.text[:1000]):
        return True
    return any(_BUILD.search(line.text[:1000]) for line in case.lines_around(match, 12, 3))


def _excluded(case: Case, kill: Kill) -> RuledOut | None:
    """A kernel log that was read and holds no kill."""
    log = case.fact("kernel_log")
    if kill.kind not in _BARE or not isinstance(log, Fact) or not isinstance(log.value, list | tuple):
        return None
    told = [str(line) for line in log.value if re.search(r"killed process|oom-kill", str(line), re.IGNORECASE)]
    if not told:
        return RuledOut("the kernel log was read, and holds no kill for lack of memory", (log.evidence,))
    if all(_IS_COMPILER.search(line) for line in told):
        return RuledOut("the kernel killed a compiler", (log.evidence,))
    return None


def _told_by_facts(case: Case) -> Evidence | None:
    """The kernel's line about a kill of something else than a compiler, in a log that was given beside the report."""
    for key in ("kernel_log", "journal"):
        log = case.fact(key)
        if not isinstance(log, Fact) or not isinstance(log.value, list | tuple):
            continue
        for line in map(str, log.value):
            if _VICTIM.search(line[:2000]) and not _IS_COMPILER.search(line[:2000]):
                return msgspec.structs.replace(log.evidence, statement="the kernel killed it for lack of memory", quote=line)  # fmt: skip
    return None


class Need(Struct, frozen=True):
    """What the model needs on the host against what there is, in bytes. ``copies``: how often the weights are held."""

    weights: int
    copies: int
    there: int
    variable: str = ""

    @property
    def is_too_much(self) -> bool:
        return self.weights * self.copies > self.there


_NUMA_VARIABLES = ("USE_NUMA", "NUMA")


def _need(case: Case) -> Need | None:
    """The weights times their copies, against memory and swap or the limit. Copies: one per NUMA node where a variable says so."""
    weights, total = _bytes(case, "model_bytes"), _bytes(case, "mem_total_bytes")
    limit = _bytes(case, "memory_limit_bytes")
    if weights is None or (total is None and limit is None):
        return None
    variable = _numa_variable(case)
    nodes = case.facts.value("numa_nodes")
    copies = int(nodes) if variable and isinstance(nodes, int) and nodes > 1 else 1
    there = min(size for size in (limit, None if total is None else total + (_bytes(case, "swap_total_bytes") or 0)) if size is not None)  # fmt: skip
    return Need(weights, copies, there, variable)


def _numa_variable(case: Case) -> str:
    for name in _NUMA_VARIABLES:
        if str(case.facts.value(f"env.{name}") or "0") not in ("0", "", "false", "off"):
            return name
        if any(re.search(rf"\b{name}=1\b", line.text) for _, line in case.lines()):
            return name
    return ""


def _bytes(case: Case, key: str) -> int | None:
    value = case.facts.value(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _certainty(kill: Kill, need: Need | None) -> Certainty:
    if kill.kind in (*_KERNEL, "supervisor", "ray", "daemon"):
        return Certainty.PROVEN
    if kill.kind in _ALLOCATION:
        return Certainty.LIKELY
    return Certainty.LIKELY if need is not None and need.is_too_much else Certainty.POSSIBLE


def _title(kill: Kill, need: Need | None) -> str:
    if need is not None and need.copies > 1:
        return f"{gib(need.weights)} of weights are held {need.copies} times on a host with {gib(need.there)}: host memory ran out"
    where = "The memory limit of the container or unit" if kill.is_group else "Host memory"
    if kill.kind in _BARE:
        return "A process was killed from outside, as the kernel does when host memory runs out"
    return f"{where} ran out" + (f", and {kill.victim} was killed" if kill.victim else "")


def _chain(kill: Kill, need: Need | None, quoted: Evidence, facts: tuple[Evidence, ...]) -> tuple[Link, ...]:
    wants = f"{need.copies} x {gib(need.weights)} are to be held in {gib(need.there)}" if need is not None else "More host memory is asked for than there is"  # fmt: skip
    known = next(iter(facts), None)
    return (
        Link(wants, known or inferred("nobody measured it")),
        Link("The limit of the control group is reached" if kill.is_group else "Memory and swap are used up", inferred("follows from the kill")),
        Link(f"{kill.victim or 'A process'} is ended", quoted),
    )  # fmt: skip


def _other_lines(case: Case, kill: Kill) -> tuple[Evidence, ...]:
    """What else in the log tells of the same: the shell's word, the constraint."""
    others = [
        m
        for m in case.all("kernel-constraint", "kernel-oom", "supervisor", "bare-killed")
        if m.line is not kill.match.line
    ]
    return tuple(case.evidence(match, "seen of the same kill") for match in others[:2])


def _missing(case: Case, kill: Kill, certainty: Certainty) -> tuple[Missing, ...]:
    if certainty is Certainty.PROVEN:
        return ()
    asked = (
        case.missing("kernel_log", "which process the kernel killed, if it did", "journalctl -k -b | grep -iE 'killed process|oom-kill'"),
        *(_who_sent_it(case) if kill.kind in _BARE else ()),
        *(_whose_code_sends_it(case) if kill.kind in _BARE else ()),
        case.missing("mem_total_bytes", "how much memory there is", "grep -E 'MemTotal|SwapTotal' /proc/meminfo"),
        case.missing("model_bytes", "how much the weights take", "du -sbL MODEL_DIRECTORY"),
        case.missing("memory_limit_bytes", "whether the container has a limit", "cat /sys/fs/cgroup/memory.max"),
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


_IN_CONTAINER = lazy_pattern(
    r"Exited \(137\)|docker|podman|containerd|nerdctl|compose|State\W{1,4}Status", re.IGNORECASE
)
_IN_POD = lazy_pattern(r"kubepods|kubectl|Last State|Exit Code: {1,12}137|\bpods?\b", re.IGNORECASE)


def _who_sent_it(case: Case) -> tuple[Missing | None, ...]:
    """What tells a kill by a limit from a kill by somebody: the runtime's word, the counter of the group, the unit's result."""
    text = "\n".join(line.text[:300] for _, line in case.lines())
    if _IN_POD.search(text):
        runtime = "kubectl get pod POD -o jsonpath='{.status.containerStatuses[*].lastState.terminated.reason}'"
        return (case.missing("container.oom_killed", "whether the limit of the container killed it: OOMKilled, or Error", runtime),)  # fmt: skip
    if _IN_CONTAINER.search(text):
        runtime = "docker inspect -f '{{.State.OOMKilled}} {{.HostConfig.Memory}}' CONTAINER"
        return (case.missing("container.oom_killed", "whether the limit of the container killed it", runtime),)
    unit = case.incident.unit
    result = f"systemctl show -p Result {unit}; " if _UNIT_NAME.fullmatch(unit or "") else ""
    why = "whether anything was killed for lack of memory since the boot, and what the unit's result is (oom-kill, or signal)"  # fmt: skip
    return (case.missing("memory_limit_kills", why, f"{result}grep oom_kill /proc/vmstat"),)


def _whose_code_sends_it(case: Case) -> tuple[Missing | None, ...]:
    """The question for the source that is installed, where an engine is known to be there."""
    if case.engine not in ("sglang", "vllm"):
        return ()
    python = str(case.facts.value("service.python") or "")
    folder = shlex.quote(str(PurePosixPath(python).parent.parent)) if python.startswith("/") else "DIR"
    why = "which code of the service sends SIGKILL, and when (DIR: its Python environment)"
    return (case.missing("tests.sender", why, f"gpuwhy trace SIGKILL --venv {folder}"),)


_UNIT_NAME = lazy_pattern(r"[\w@.:-]{1,120}", re.ASCII)


def _rivals(kill: Kill, certainty: Certainty) -> tuple[str, ...]:
    if certainty is Certainty.PROVEN:
        return ()
    return ("jit-build-killed", "shm-too-small") if kill.kind in _BARE else ()


def _higher_limit(case: Case, kill: Kill) -> Remedy:
    """The limit of the group that was full, by the name under which it was set."""
    value = _limit_needed(case, kill)
    near = " ".join(line.text[:500] for line in (kill.match.line, *case.lines_around(kill.match, 12, 6)))
    if re.search(r"kubepods|\bpods?\b|Reason: {1,20}OOMKilled", near):
        return Remedy(kind="config", name="resources.limits.memory", value=value, summary="Raise the memory limit of the pod's container (resources.limits.memory)")  # fmt: skip
    if re.search(r"\.service\b|\.slice/(?!docker)", near) and "docker" not in near:
        return Remedy(kind="config", name="MemoryMax", value=value, summary="Raise the memory limit of the unit (MemoryMax)")  # fmt: skip
    return Remedy(kind="container", name="memory limit", value=value, summary="Raise the memory limit of the container, pod or unit (--memory, limits.memory, MemoryMax)")  # fmt: skip


_LIMIT_OF_GROUP = lazy_pattern(r"memory: usage \d{1,15}kB, limit (\d{1,15})kB|^\s{0,20}memory:\s{1,20}(\d{1,9})([KMGT]i?)\s{0,4}$|--memory[= ](\d{1,9})([kmgt])b?\b")  # fmt: skip
_UNIT_BYTES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def _limit(case: Case, kill: Kill) -> int | None:
    """Bytes of the limit that was reached: of the facts, else as kernel, kubectl or the command have it."""
    known = _bytes(case, "memory_limit_bytes")
    if known:
        return known
    texts = (str(case.facts.value("command") or "")[:8000], *(line.text[:600] for line in (kill.match.line, *case.lines_around(kill.match, 60, 20))))  # fmt: skip
    for text in texts:
        found = _LIMIT_OF_GROUP.search(text)
        if found and found[1]:
            return int(found[1]) << 10
        if found and (found[2] or found[4]):
            return int(found[2] or found[4]) * _UNIT_BYTES[(found[3] or found[5])[0].lower()]
    return None


def _limit_needed(case: Case, kill: Kill) -> str:
    """What the limit has to be: what loading takes where the model is known, else more than it is; ``higher`` without either."""
    limit, needs = _limit(case, kill), estimates.host_need(case, case.engine)
    if needs is not None and (limit is None or needs[1] * 1e9 > limit):
        return f"{math.ceil(needs[1] * 1e9 / GIB)}Gi"
    return f">{limit // GIB}Gi" if limit is not None and limit >= GIB else "higher"


def _is_shared_memory(kill: Kill) -> bool:
    return kill.sizes.get("shmem", 0) > max(4 * GIB, kill.sizes.get("anon", 0))


def _is_small_victim(case: Case, kill: Kill) -> bool:
    """A small process of another program was killed while an engine took the memory."""
    anonymous = kill.sizes.get("anon", 0)
    return 0 < anonymous < 4 * GIB and bool(case.engine) and not kill.is_group


def _remedies(case: Case, kill: Kill, need: Need | None) -> tuple[Remedy, ...]:
    engine = case.engine
    options = engine_options.options_of(engine)
    unified = is_unified(case) or _is_small_victim(case, kill)
    remedies: list[Remedy] = [*_numa_remedies(case, need)]
    if kill.kind == "ray":
        remedies.append(Remedy(kind="env", name="RAY_memory_usage_threshold", value="0.98", summary="Let Ray end workers later: free space, not the percentage, is what counts on large hosts", is_sure=False, rank=3))  # fmt: skip
    if unified:
        remedies += engine_options.change(options, options.fraction, "lower", "Leave room for the host: both share one memory", rank=0)  # fmt: skip
    if kill.kind == "refused" and engine == "ollama":
        remedies += engine_options.change(options, options.length, "lower", "A shorter context: the cache is in host memory too", rank=2)  # fmt: skip
    remedies += _per_worker(case, kill, engine)
    if _is_shared_memory(kill):
        remedies.append(Remedy(kind="files", name="checkpoint", value="on a disk, not on tmpfs or /dev/shm", summary=f"Keep files off memory: {gib(kill.sizes['shmem'])} of the victim were on a tmpfs or shared, which stays when processes end", is_sure=False, rank=0))  # fmt: skip
    if kill.is_group:
        remedies.append(_higher_limit(case, kill))
    # Pages that are pinned are never swapped out.
    if not kill.is_group and kill.kind not in ("refused", "pinned") and not _is_shared_memory(kill):
        remedies.append(Remedy(kind="config", name="swap", value="add", summary="Swap for the peak while the weights are loaded", is_sure=False, rank=4 if kill.kind in _BARE else 2))  # fmt: skip
    if kill.kind == "daemon" and re.search(r"oomd|due to memory pressure", kill.match.text):
        remedies.append(Remedy(kind="config", name="ManagedOOMPreference", value="avoid", summary="Tell systemd-oomd to spare this unit: it ends what waits for memory long, limit or not", is_sure=False, rank=3))  # fmt: skip
    if _is_small_victim(case, kill):
        remedies.append(Remedy(kind="config", name="oom_score_adj", value="protect the small process", summary="Tell the kernel to spare the process that others wait for", is_sure=False, rank=3))  # fmt: skip
        remedies.append(Remedy(kind="service", name=kill.victim or "killed service", value="start after the engine", summary="Start it again, after the engine has loaded its weights"))  # fmt: skip
    remedies.append(_more_memory(need))
    remedies.append(Remedy(kind="files", name="checkpoint", value="smaller or more quantised", summary="A smaller checkpoint, or one that needs no conversion while it is loaded", is_sure=False))  # fmt: skip
    return tuple(remedies)


def _more_memory(need: Need | None) -> Remedy:
    value = f">={need.weights * need.copies * 11 // (10 * GIB)} GiB" if need is not None and need.is_too_much else "more RAM"  # fmt: skip
    return Remedy(kind="hardware", name="host-memory", value=value, summary="More memory: above the weights times their copies, and a tenth")  # fmt: skip


def _numa_remedies(case: Case, need: Need | None) -> tuple[Remedy, ...]:
    """Where weights are copied once per NUMA node."""
    variable = need.variable if need is not None else _numa_variable(case)
    is_known = bool(variable)
    if not is_known and case.engine != "ktransformers" and case.found("loads-on-host") is None:
        return ()
    copies = Remedy(
        kind="env", name=variable or "USE_NUMA", value="unset",
        summary="Build and run without a copy of the weights per NUMA node", is_sure=is_known, rank=0,
    )  # fmt: skip
    if not is_known:
        return (copies,)
    bios = Remedy(
        kind="config", name="BIOS NUMA nodes per socket (SNC)", value="disable",
        summary="One NUMA node per socket: fewer copies", is_sure=False, rank=5,
    )  # fmt: skip
    return copies, bios


def _per_rank(case: Case, kill: Kill) -> str:
    """GB that each rank may hold of the host: half of its memory, less what a rank needs itself; ``lower`` when unknown.

    A refusal says what is free: all ranks share that.
    """
    ranks = engine_options.ranks(case)
    if ranks is None:
        return "lower"
    free = _FREE_OF_HOST.search(kill.match.text)
    if free is not None:
        each = int(float(free[1]) / ranks)
        return str(each) if each > 0 else "lower"
    total, limit = _bytes(case, "mem_total_bytes"), _bytes(case, "memory_limit_bytes")
    there = min((size for size in (total, limit) if size), default=None)
    if there is None:
        return "lower"
    each = int(there / 1e9 / 2 / ranks) - _RANK_GB
    return str(each) if each > 0 else "lower"


_FREE_OF_HOST = lazy_pattern(r"only have (\d{1,6}(?:\.\d{1,3})?) ?GB free")
_RANK_GB = 6
"""torch, CUDA's libraries, kernels that are compiled at run time, buffers: of one rank."""
_SWAP_SPACE = lazy_pattern(r"swap[-_ ]space", re.IGNORECASE)
_HICACHE = lazy_pattern(r"hicache|hierarchical cache", re.IGNORECASE)
_OFFLOAD = lazy_pattern(r"cpu[-_ ]offload|kv[-_ ]offloading", re.IGNORECASE)
_THREADS = lazy_pattern(r"disable[-_]mmap|multithread_load|num_threads", re.IGNORECASE)


_ECHO = lazy_pattern(r"ServerArgs\(|Namespace\(|non-default args|server_args=")


def _is_on(value: object) -> bool:
    return value is True or (isinstance(value, int | float) and value > 0)


def _per_worker(case: Case, kill: Kill, engine: str) -> tuple[Remedy, ...]:
    """Options that take host memory once per worker, where the log or the command names them."""
    near = [str(case.facts.value("command") or ""), kill.match.text, *(line.text[:2000] for line in case.lines_around(kill.match, 300, 10))]  # fmt: skip
    # an echo of all arguments names every option, whether it is on or not
    told = [text for text in near if not _ECHO.search(text)]

    def named(pattern: re.Pattern[str], *arguments: str) -> bool:
        return any(pattern.search(text) for text in told) or any(_is_on(case.facts.value(f"server_args.{name}")) for name in arguments)  # fmt: skip

    found: list[Remedy] = []
    if engine in ("vllm", "") and named(_SWAP_SPACE, "swap_space"):
        found.append(Remedy(kind="flag", name="--swap-space", value="0", summary="No swap space: it is taken once per GPU", rank=1))  # fmt: skip
    if named(_HICACHE, "enable_hierarchical_cache", "hicache_size"):
        found.append(Remedy(kind="flag", name="--hicache-size", value=_per_rank(case, kill), summary="A smaller hierarchical cache: the size counts once per rank", rank=1))  # fmt: skip
    if named(_OFFLOAD, "cpu_offload_gb", "kv_offloading_size"):
        found.append(Remedy(kind="flag", name="--cpu-offload-gb", value="lower", summary="Offload less: the size counts once per GPU", rank=2))  # fmt: skip
    if engine == "sglang":
        found.append(Remedy(kind="config", name="weight-loading threads", value="num_threads 1", summary="Read fewer weight files at once (model loader extra config: num_threads)", rank=1 if named(_THREADS, "weight_loader_disable_mmap") else 4, is_sure=named(_THREADS, "weight_loader_disable_mmap")))  # fmt: skip
    return tuple(found)


_IN_VAIN = (
    NotARemedy("more GPU memory or another GPU memory fraction", "it is the host's memory (on unified memory a lower fraction does help)"),
    NotARemedy("a restart", "the same start needs the same memory"),
)  # fmt: skip


def _notes(case: Case, kill: Kill) -> tuple[str, ...]:
    notes = []
    needs = estimates.host_need(case, case.engine)
    if needs is not None:
        notes.append(f"Computed for this model and command: loading takes {needs[0]:.0f} to {needs[1]:.0f} GB that the kernel cannot take back; pages of files that are read through mmap are not among them.")  # fmt: skip
    if kill.kind in _BARE:
        notes.append(
            "137 and -9 are SIGKILL, and the exit status does not say who sent it: the kernel (its log names the victim), the limit of a group (memory.events, OOMKilled), a supervisor, or the engine's own code when its parent is gone."
        )
    elif kill.sizes:
        largest = max(kill.sizes, key=lambda kind: kill.sizes[kind])
        notes.append(f"The victim held {gib(kill.sizes[largest])} as {largest}-rss. It is not always the one that took the memory.")  # fmt: skip
    return tuple(notes)
