"""ulimit: a limit of the process (locked memory, open files, threads) is too low."""

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.container import _place as place
from gpuwhy.causes.storage import _pinning as pinning
from gpuwhy.causes.storage import _space as space
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_THREADS_OUT = lazy_pattern(r"\bulimit|RLIMIT_NPROC|max user processes|pids?[ .-]?(?:limit|max|cgroup)|TasksMax", re.IGNORECASE)  # fmt: skip


class Limit(Struct, frozen=True):
    """One limit: its name as ``ulimit.NAME``, the switch of the shell, of docker and of systemd, and what is enough."""

    name: str
    switch: str
    systemd: str
    enough: str
    what: str


_LIMITS = {
    "memlock": Limit("memlock", "-l", "LimitMEMLOCK", "unlimited", "locked memory"),
    "nofile": Limit("nofile", "-n", "LimitNOFILE", "1048576", "open files"),
    "nproc": Limit("nproc", "-u", "LimitNPROC", "unlimited", "processes and threads"),
    "inotify": Limit("inotify", "", "", "1048576", "inotify watches"),
}
_LOW = {"memlock": 1 << 30, "nofile": 4096, "nproc": 8192, "inotify": 0}
"""Below this a known limit explains the failure. RDMA pins whole buffers: less than a GiB is always short."""


@cause(
    "ulimit",
    family=space.FAMILY,
    leads_to=("rdma-link-fault", "startup-timeout",),
    signs=[
        *pinning.SIGNS,
        says(
            "locking",
            ("memlock", "mlock", "max locked memory", "limitmemlock"),
            r"RLIMIT_MEMLOCK|(?:failed to|unable to|cannot) mlock\b.{0,120}|mlock(?:all|2)?\b.{0,40}(?:failed|Cannot allocate|error)|max(?:imum)? locked memory.{0,80}(?:too (?:low|small)|unlimited|increase|exceed)|memlock (?:limit|ulimit).{0,60}(?:too|low|increase|insufficient)|set .{0,20}ulimit -l",
        ),
        says(
            "files",
            ("too many open files", "errno 24]", "os error 24", "emfile", "ancdata", "enfile"),
            r"[Tt]oo many open files|\[Errno 24\]|os error 24\b|\bEMFILE\b|\bENFILE\b|received \d items of ancdata|socket\.accept\(\) out of system resource",
        ),
        says(
            "threads",
            ("resource temporarily unavailable", "can't start new thread", "pthread_create", "thread creation failed", "create new os thread", "rlimit_nproc", "fork: retry"),
            r"can't start new thread|pthread_create.{0,60}(?:failed|Resource temporarily|error|EAGAIN)|[Tt]hread creation failed|failed to create new OS thread|RLIMIT_NPROC|fork: (?:retry: )?Resource temporarily unavailable|fork/exec .{0,120}resource temporarily unavailable|BlockingIOError: \[Errno 11\] Resource temporarily unavailable|what\(\):\s{1,3}Resource temporarily unavailable|std::system_error.{0,80}Resource temporarily unavailable|Cannot fork\b",
        ),
        says(
            "watches",
            ("file watchers", "inotify", "fsnotify", "file watch limit"),
            r"limit for number of file watchers reached|inotify\w{0,20}.{0,80}(?:[Nn]o space left|limit reached|[Tt]oo many)|(?:fsnotify|file watch(?:er)?).{0,60}(?:too many open files|limit|no space)|OS file watch limit reached",
        ),
    ],
)  # fmt: skip
def ulimit(case: Case) -> Judgement:
    """A limit of the process is too low: locked memory for RDMA, open files, or processes and threads.

    How it shows itself
      Locked memory: `NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory` (also ibv_create_cq, ibv_create_qp; UCX,
      NVSHMEM, Mooncake and libfabric in their own words), llama.cpp's `failed to mlock ... RLIMIT_MEMLOCK`. Open files: `[Errno 24] Too many
      open files`, torch's `received 0 items of ancdata`. Threads: `can't start new thread`, `pthread_create failed: Resource
      temporarily unavailable`, `fork: retry`.

    Why it happens
      Memory that a network card reads must be pinned, and pinned memory counts against `ulimit -l`: 64 kB or 8 MB by default. 1024
      open files do not last for a server with many connections, shards and ranks. A limit raised in limits.conf acts on new
      logins only: not on running sessions, nor on systemd units and containers.

    How to be sure
      `cat /proc/PID/limits` of the failing process; `ulimit -l` of a login shell says nothing about a unit or container.

    What helps
      Container: `--ulimit memlock=-1:-1` (`--ulimit nofile=1048576:1048576`, `--pids-limit -1`). systemd: LimitMEMLOCK=infinity, LimitNOFILE=,
      TasksMax=infinity. Elsewhere limits.conf and a new session.

    What does not help
      Editing limits.conf without a new session; more GPU memory or host memory; another NCCL.

    Not to be confused with
      host-kernel-bug (memlock is unlimited, and registration fails all the same), host-oom-kill (memory is really used up),
      rdma-link-fault, gpu-oom-*.
    """
    found = _decisive(case)
    if found is None:
        return None
    match, limit = found
    seen = case.evidence(match, f"the limit of {limit.what} is reached" if limit.name != "memlock" or match.sign == "locking" else "memory could not be pinned")  # fmt: skip
    value, known = _known(case, limit)
    if value == "unlimited":
        return RuledOut(f"the limit of {limit.what} of the process is unlimited", (*((known,) if known else ()), seen))
    certainty, strength = _certainty(case, match, limit, value)
    return Verdict(
        certainty=certainty,
        component="process-limits",
        title=f"The process may not have {'enough ' if value is None else ''}{limit.what}" + (f" beyond {_shown(limit, value)}" if value is not None else ""),
        chain=(
            Link(f"The limit of {limit.what} (ulimit {limit.switch}) of the process is low" if limit.switch else "The kernel's limit of inotify watches is low", known or (seen if certainty is Certainty.PROVEN else inferred("the limit of the failing process is not known"))),
            Link("A call beyond it is refused", seen),
        ),
        evidence=(seen, *((known,) if known is not None else ())),
        explains=case.explains(match, *case.all(*(sign.name for sign in pinning.SIGNS))) if limit.name == "memlock" else case.explains(match),
        missing=() if certainty is Certainty.PROVEN else _missing(case, limit),
        rivals=() if certainty is Certainty.PROVEN else ("host-kernel-bug", "host-oom-kill") if limit.name == "memlock" else ("host-oom-kill",) if limit.name == "nproc" else (),
        remedies=_remedies(case, limit),
        not_remedies=_in_vain(limit),
        strength=strength,
    )  # fmt: skip


def _decisive(case: Case) -> tuple[Match, Limit] | None:
    """The first call that a limit refuses; of warnings that only advise, none."""
    order = (
        (tuple(sign.name for sign in pinning.SIGNS), "memlock"),
        (("locking",), "memlock"),
        (("watches",), "inotify"),
        (("files",), "nofile"),
        (("threads",), "nproc"),
    )  # fmt: skip
    candidates: list[tuple[Match, Limit]] = []
    for signs, name in order:
        for match in case.all(*signs):
            if not match.is_code and match.line.level not in ("info", "debug") and not _is_advice(match):
                candidates.append((match, _LIMITS[name]))
                break
    primary = case.incident.primary
    return min(
        candidates,
        key=lambda found: (found[0].event is None or found[0].event.id != primary, found[0].line.number),
        default=None,
    )


def _is_advice(match: Match) -> bool:
    """vLLM warns of 1024 open files at every start; other programs explain their options."""
    return re.search(r"Found ulimit of|can cause (?:fd limit )?errors|Consider increasing with ulimit|may (?:lead to|cause)", match.text, re.IGNORECASE) is not None  # fmt: skip


def _known(case: Case, limit: Limit) -> tuple[int | str | None, Evidence | None]:
    """The limit of the process in bytes or pieces, or ``unlimited``; None when nobody looked."""
    keys = ("memlock", "ulimit.memlock", "ulimit.l", "ulimit.-l") if limit.name == "memlock" else (f"ulimit.{limit.name}", f"ulimit.{limit.switch}", f"ulimit.{limit.switch.lstrip('-')}")  # fmt: skip
    for key in keys:
        fact = case.fact(key)
        if isinstance(fact, Fact) and fact.value is not None:
            value = pinning.limit_in_bytes(str(fact.value)) if limit.name == "memlock" else pinning.limit_in_pieces(str(fact.value))  # fmt: skip
            if value is not None:
                return value, fact.evidence
    return None, None


def _shown(limit: Limit, value: int | str) -> str:
    if isinstance(value, int) and limit.name == "memlock":
        return space.shown(value) if value >= space.MIB else f"{value >> 10} KiB"
    return str(value)


def _certainty(case: Case, match: Match, limit: Limit, value: int | str | None) -> tuple[Certainty, int]:
    is_low = isinstance(value, int) and value <= _LOW[limit.name]
    if limit.name == "memlock":
        if match.sign == "locking":
            is_warning = match.line.level == "warning" or "warning" in match.text[:20].lower()
            return (Certainty.LIKELY, 40) if is_warning and case.incident.primary is not None else (Certainty.PROVEN, 74)  # fmt: skip
        if is_low:
            return Certainty.PROVEN, 82
        says_so = case.found("locking") is not None
        return (Certainty.LIKELY, 70) if says_so or value is not None else (Certainty.POSSIBLE, 60)
    if limit.name in ("nofile", "inotify"):
        is_literal = "ancdata" not in match.text
        return (Certainty.PROVEN, 70) if is_literal else (Certainty.LIKELY, 62)
    is_told = _THREADS_OUT.search(" ".join((match.text, *(line.text[:300] for line in case.lines_around(match, 3, 3))))) is not None  # fmt: skip
    return (Certainty.LIKELY, 66) if is_told or is_low else (Certainty.POSSIBLE, 52)


def _missing(case: Case, limit: Limit) -> tuple[Missing, ...]:
    key = "memlock" if limit.name == "memlock" else f"ulimit.{limit.name}"
    asked = [case.missing(key, f"the limit of {limit.what} of the failing process, not of a login shell", "cat /proc/PID/limits")]  # fmt: skip
    if limit.name == "memlock":
        asked.append(case.missing("kernel_release", "an unlimited process on a new kernel points at the kernel", "uname -r"))  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _remedies(case: Case, limit: Limit) -> tuple[Remedy, ...]:
    where = place.read_surroundings(case)
    check = ("grep -iE 'locked|open files|processes' /proc/PID/limits",)
    if limit.name == "inotify":
        return (
            Remedy(kind="kernel", name="fs.inotify.max_user_watches", value=limit.enough, summary="Raise the kernel's limits of inotify", commands=("sysctl fs.inotify.max_user_watches=1048576 fs.inotify.max_user_instances=8192",), cost="root"),
        )  # fmt: skip
    number = "-1:-1" if limit.enough == "unlimited" else f"{limit.enough}:{limit.enough}"
    container = Remedy(
        kind="flag", name="--ulimit", value=f"{limit.name}={number}", rank=0 if where.is_container else 2,
        summary=f"In a container: start it with --ulimit {limit.name}={number}", cost="the container is made anew", check=check,
        is_sure=bool(where.is_container),
    )  # fmt: skip
    pids = Remedy(kind="flag", name="--pids-limit", value="-1", summary="In a container: start it with --pids-limit -1", is_sure=False)  # fmt: skip
    is_unit = bool(case.incident.unit) and not where.is_container
    file = f"/etc/security/limits.d/50-gpuwhy-{limit.name}.conf"
    shell = Remedy(
        kind="config", name=f"/etc/security/limits.conf {limit.name}", value=limit.enough, rank=3 if is_unit else 0, is_sure=not is_unit,
        commands=(f"printf '%s\\n' '* soft {limit.name} {limit.enough}' '* hard {limit.name} {limit.enough}' > {file}", "# log in again, and start the service from there"),
        undo=(f"rm {file}", "# log in again, and start the service from there"),
        summary=f"`* soft {limit.name} {limit.enough}` and the same for hard in /etc/security/limits.conf, then a new login",
        cost="root", check=check, limits=("acts on new logins only, not on units or containers",),
    )  # fmt: skip
    unit = Remedy(
        kind="config", name=limit.systemd, value="infinity" if limit.enough == "unlimited" else limit.enough, rank=0 if is_unit else 1,
        summary=f"In a unit (also that of docker, slurmd or ray): {limit.systemd}={'infinity' if limit.enough == 'unlimited' else limit.enough}",
        cost="root; the unit restarts", check=check,
    )  # fmt: skip
    found = [container, shell, unit]
    if limit.name == "nproc":
        tasks = Remedy(kind="config", name="TasksMax", value="infinity", rank=2, summary="In a unit: TasksMax=infinity", is_sure=False)  # fmt: skip
        threads = Remedy(kind="env", name="OMP_NUM_THREADS", value="1", is_sure=False, summary="Fewer threads per process, where libgomp or OpenBLAS asks for them")  # fmt: skip
        found = [threads, pids, container, shell, unit, tasks]
    return tuple(found)


def _in_vain(limit: Limit) -> tuple[NotARemedy, ...]:
    session = NotARemedy("editing limits.conf without a new session", "limits are inherited when a session starts; units and containers never read the file")  # fmt: skip
    if limit.name == "memlock":
        return (session, NotARemedy("more memory, or a lower GPU memory fraction", "pinning is refused, not memory"))
    return (session,)
