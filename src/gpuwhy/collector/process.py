"""The failing process itself, when it is alive: what it runs, in which cgroup, with which limits and libraries."""

import os
import re
from typing import Any, Dict, List, Optional

from gpuwhy.collector.choosing import LOG, PROCESS, chosen
from gpuwhy.collector.probing import Absent, Denied, Notes, NoValue, Request, first_of
from gpuwhy.collector.reading import read_bytes, try_line, try_list, try_text

ENGINE = re.compile(
    r"vllm|sglang|lmdeploy|tritonserver|tensorrt_llm|trtllm|text-generation|tgi|llama[-_.]?(?:server|cpp|box)|ollama|ktransformers|aphrodite|"
    r"exllama|tabbyapi|mlc_llm|xinference|fastchat|lightllm|deepspeed|comfyui|infinity_emb|whisper|diffusers|text-embeddings|tei|gpustack|ray::"
)
"""What names an inference engine in a command line or in the name of a unit or container."""

LIBRARY = re.compile(
    r"/(?:libcuda|libcudart|libnvrtc|libcublas|libcublasLt|libcudnn|libnccl|libnvidia-ml|libnvidia-ptxjitcompiler|libtorch_cuda|libc10_cuda|"
    r"libstdc\+\+|libc|libnvshmem_host|libcupti|libnvJitLink)[.-][^/]*$"
)


def process(
    request: Request,
    notes: Notes,
    unit: Optional[Dict[str, Any]],
    candidates: Optional[List[Dict[str, Any]]] = None,
) -> Dict[str, Any]:
    """The unit's own process, preferably the Python one in its cgroup; without a unit a running inference engine."""
    pid = _pid(request, unit, candidates)
    notes.subject = "process:%d" % pid
    notes.source("/proc/%d" % pid)
    base = "/proc/%d/" % pid
    found: Dict[str, Any] = {
        "pid": pid,
        "command": arguments(pid),
        "executable": _link(base + "exe"),
        "directory": _link(base + "cwd"),
        "root": _link(base + "root"),
        "state": status_of(pid),
        "limits": try_text(base + "limits", 8192) or "",
        "cgroup": try_text(base + "cgroup", 8192) or "",
        "libraries": _libraries(base + "maps", notes),
        "others": _others(pid, unit),
    }
    oom = try_line(base + "oom_score_adj")
    if oom is not None:
        found["oom_score_adj"] = oom
    return found


def arguments(pid: int) -> List[str]:
    """The command line of a process as its arguments; empty for a kernel thread or a process that is gone."""
    try:
        raw = read_bytes("/proc/%d/cmdline" % pid, 1 << 16)
    except Exception:
        return []
    return raw.rstrip(b"\0").decode("utf-8", "replace").split("\0") if raw.strip(b"\0") else []


def status_of(pid: int) -> Dict[str, str]:
    """The lines of ``/proc/PID/status`` that matter: state, owner, memory, threads, parent."""
    text = try_text("/proc/%d/status" % pid, 8192) or ""
    wanted = (
        "Name",
        "State",
        "PPid",
        "Uid",
        "VmRSS",
        "VmHWM",
        "VmPeak",
        "VmLck",
        "Threads",
        "NSpid",
        "CapEff",
        "Seccomp",
        "Cpus_allowed_list",
        "Mems_allowed_list",
    )
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs if name in wanted}


def _pid(request: Request, unit: Optional[Dict[str, Any]], candidates: Optional[List[Dict[str, Any]]]) -> int:
    named = _named_pid(request, candidates)
    if named is not None:
        pid = named
        if not os.path.isdir("/proc/%d" % pid):
            raise Absent("there is no process %d" % pid)
        return pid
    if unit is not None:
        main = int(first_of(unit["properties"], "MainPID", "0") or 0)
        if main <= 0:
            raise Absent(
                "%s has no process: it is %s" % (unit["name"], unit["properties"].get("ActiveState", "not running"))
            )
        members = cgroup_members(unit["properties"].get("ControlGroup", "")) or [main]
        if not _is_python(main):
            for member in sorted(members):
                if _is_python(member):
                    return member
        return main
    if request.get("unit"):
        raise Absent("the unit is not known")
    if request.get("is_inside"):
        # a container is made for its first process
        return 1
    raise Absent("no unit was named, and no inference engine runs")


def _named_pid(request: Request, candidates: Optional[List[Dict[str, Any]]]) -> Optional[int]:
    """The process that was named, or that is the first of the candidates."""
    try:
        choice = chosen(request, candidates)
    except NoValue:
        return None
    if choice.kind == LOG:
        raise Absent("a log was named, and no process")
    return int(choice.name) if choice.kind == PROCESS else None


def all_processes() -> List[int]:
    return sorted(int(name) for name in try_list("/proc", 100000) if name.isdigit())


def cgroup_members(group: str) -> List[int]:
    """The processes of a control group and the groups below it, on either version of the hierarchy."""
    if not group.startswith("/") or ".." in group:
        return []
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"):
        base = root + group
        if not os.path.isdir(base):
            continue
        members: List[int] = []
        for directory, below, _ in os.walk(base):
            members.extend(
                int(word) for word in (try_text(directory + "/cgroup.procs") or "").split() if word.isdigit()
            )
            del below[200:]
        if members:
            return members
    return []


def _is_python(pid: int) -> bool:
    executable = os.path.basename(_link("/proc/%d/exe" % pid) or "")
    return executable.startswith("python")


def _link(path: str) -> Optional[str]:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _libraries(path: str, notes: Notes) -> List[str]:
    """The CUDA and C libraries that the process has mapped, by path."""
    try:
        text = read_bytes(path, 8 << 20).decode("utf-8", "replace")
    except Denied as error:
        notes.remark(error.reason + " (root may read it)")
        notes.deny("which libraries the process has mapped: %s" % error.reason)
        return []
    except Exception:
        return []
    paths = {line.split(None, 5)[5] for line in text.splitlines() if line.count("/") and len(line.split(None, 5)) == 6}
    return sorted(path for path in paths if LIBRARY.search(path))[:100]


def _others(pid: int, unit: Optional[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """The other processes of the unit: workers, schedulers, a compiler that is still busy."""
    members = cgroup_members(first_of(first_of(unit, "properties"), "ControlGroup", ""))
    found: List[Dict[str, Any]] = []
    for member in members[:64]:
        if member != pid:
            found.append({"pid": member, "command": arguments(member)[:8], "state": status_of(member).get("State", "")})
    return found
