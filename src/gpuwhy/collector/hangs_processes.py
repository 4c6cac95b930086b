"""What a process and those below it do: state, wait channel, system call, kernel stack, and what moved between two looks.

``/proc/PID/stat`` holds state, parent, CPU time and start; ``/proc/PID/task/TID/wchan`` the kernel function in which a
thread sleeps; ``/proc/PID/task/TID/syscall`` the call it is in, with its arguments:

    202 0x7f3a5c000b60 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd5e2c0a30 0x7f3a6f2b1f5d
"""

import os
import re
import time
from typing import Any, Dict, List, Optional, Tuple

from gpuwhy.collector.process import all_processes, arguments
from gpuwhy.collector.reading import try_line, try_list, try_text

MOST_PROCESSES = 200

MOST_THREADS = 512
"""Threads of one process that are looked at; the most telling :data:`SHOWN_THREADS` are told of."""

SHOWN_THREADS = 16

MOST_KERNEL_FRAMES = 12

TICKS = float(os.sysconf("SC_CLK_TCK"))

CALLS = {
    "x86_64": {
        0: "read", 7: "poll", 16: "ioctl", 17: "pread64", 19: "readv", 23: "select", 24: "sched_yield", 26: "msync", 34: "pause", 35: "nanosleep",
        42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 61: "wait4", 72: "fcntl", 73: "flock", 74: "fsync",
        202: "futex", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 257: "openat", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait",
        288: "accept4",
    },
    "aarch64": {
        22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 56: "openat", 63: "read", 65: "readv", 67: "pread64", 72: "pselect6", 73: "ppoll",
        82: "fsync", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 124: "sched_yield", 202: "accept", 203: "connect",
        206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 227: "msync", 242: "accept4", 260: "wait4",
    },
}  # fmt: skip
"""System calls in which a program waits, by machine; from the kernel's unistd.h and syscall_64.tbl."""

ON_A_FILE = frozenset(
    ("read", "ioctl", "pread64", "readv", "connect", "accept", "accept4", "sendto", "recvfrom", "sendmsg", "recvmsg", "fcntl", "flock", "fsync")
)  # fmt: skip
"""Calls whose first argument is the number of an open file."""


class Stat:
    """The fields of ``/proc/PID/stat`` that matter. ``cpu`` in seconds, ``started`` in seconds since the boot."""

    def __init__(self, state: str, parent: int, cpu: float, started: float, major_faults: int) -> None:
        self.state = state
        self.parent = parent
        self.cpu = cpu
        self.started = started
        self.major_faults = major_faults


def stat_of(path: str) -> Optional[Stat]:
    """Reads ``PATH/stat`` of a process or a thread; None when it is gone."""
    text = try_text(path + "/stat", 4096)
    # The name stands in parentheses and may hold blanks and parentheses itself.
    fields = text.rpartition(")")[2].split() if text else []
    if len(fields) < 20:
        return None
    try:
        cpu = (int(fields[11]) + int(fields[12])) / TICKS
        return Stat(fields[0], int(fields[1]), cpu, int(fields[19]) / TICKS, int(fields[9]))
    except ValueError:
        return None


def uptime() -> float:
    """Seconds since the boot."""
    line = try_line("/proc/uptime")
    try:
        return float((line or "").split()[0])
    except (IndexError, ValueError):
        return time.monotonic()


def tree(pid: int, parents: Dict[int, int]) -> List[int]:
    """``pid`` and all below it, nearest first; not the looking program's own branch."""
    below: Dict[int, List[int]] = {}
    for child, parent in parents.items():
        below.setdefault(parent, []).append(child)
    found, ahead = [pid], [pid]
    while ahead and len(found) < MOST_PROCESSES:
        children = [child for child in sorted(below.get(ahead.pop(0), [])) if child not in (os.getpid(), pid)]
        found += children
        ahead += children
    return found[:MOST_PROCESSES]


def parents_of_all() -> Dict[int, int]:
    """The parent of every process that can be seen."""
    found: Dict[int, int] = {}
    for pid in all_processes():
        stat = stat_of("/proc/%d" % pid)
        if stat is not None:
            found[pid] = stat.parent
    return found


class Look:
    """One look at a process: its counters and those of its threads, at a time."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.at = time.monotonic()
        self.stat = stat_of("/proc/%d" % pid)
        self.io = io_of(pid)
        self.wakes = wakes_of(pid)
        self.threads: Dict[int, Stat] = {}
        for name in try_list("/proc/%d/task" % pid, MOST_THREADS):
            stat = stat_of("/proc/%d/task/%s" % (pid, name)) if name.isdigit() else None
            if stat is not None:
                self.threads[int(name)] = stat


def io_of(pid: int) -> Optional[Dict[str, int]]:
    """``rchar`` (bytes read by calls), ``read_bytes`` (from storage) ...; None when this user may not read it."""
    text = try_text("/proc/%d/io" % pid, 4096)
    if not text:
        return None
    pairs = re.findall(r"^(\w{1,30}): (\d{1,20})$", text, re.M)
    return {name: int(value) for name, value in pairs}


def wakes_of(pid: int) -> Optional[int]:
    """How often the main thread has slept until now: by the difference one who polls is known."""
    told = re.search(
        r"^voluntary_ctxt_switches:\s{1,8}(\d{1,20})$",
        try_text("/proc/%d/task/%d/status" % (pid, pid), 8192) or "",
        re.M,
    )
    return int(told.group(1)) if told else None


def described(first: Look, second: Look) -> Optional[Dict[str, Any]]:
    """What the process is and what moved between the two looks; None when it is gone."""
    if first.stat is None or second.stat is None:
        return None
    pid = first.pid
    seconds = max(0.001, second.at - first.at)
    found: Dict[str, Any] = {
        "pid": pid,
        "parent": second.stat.parent,
        "name": try_line("/proc/%d/comm" % pid) or "",
        "command": [word[:300] for word in arguments(pid)[:24]],
        "state": second.stat.state,
        "age": round(max(0.0, uptime() - second.stat.started), 1),
        "cpu": round(second.stat.cpu, 2),
        "seconds": round(seconds, 3),
        "cpu_used": round(second.stat.cpu - first.stat.cpu, 3),
        "major_faults": second.stat.major_faults - first.stat.major_faults,
        "thread_count": len(second.threads),
        "threads": threads(pid, first, second),
    }
    if first.wakes is not None and second.wakes is not None:
        found["wakes"] = second.wakes - first.wakes
    if first.io is not None and second.io is not None:
        for name in ("rchar", "wchar", "read_bytes", "write_bytes"):
            found[name] = second.io.get(name, 0) - first.io.get(name, 0)
    return found


def threads(pid: int, first: Look, second: Look) -> List[Dict[str, Any]]:
    """The main thread first, then those that ran, then those in a state that tells more than sleep."""
    ranked: List[Tuple[Tuple[bool, float, bool, int], int]] = []
    for number, stat in second.threads.items():
        earlier = first.threads.get(number)
        used = stat.cpu - earlier.cpu if earlier is not None else stat.cpu
        ranked.append(((number != pid, -used, stat.state == "S", number), number))
    return [thread(pid, number, first, second) for _, number in sorted(ranked)[:SHOWN_THREADS]]


def thread(pid: int, number: int, first: Look, second: Look) -> Dict[str, Any]:
    base = "/proc/%d/task/%d" % (pid, number)
    stat, earlier = second.threads[number], first.threads.get(number)
    found: Dict[str, Any] = {
        "tid": number,
        "name": try_line(base + "/comm") or "",
        "state": stat.state,
        "cpu_used": round(stat.cpu - (earlier.cpu if earlier is not None else 0.0), 3),
    }
    channel = try_line(base + "/wchan")
    if channel and channel != "0":
        found["wchan"] = channel[:80]
    found.update(call_of(pid, try_line(base + "/syscall")))
    stack = re.findall(r"^\[<[^>]{0,40}>\] ([\w.]{1,80})", try_text(base + "/stack", 8192) or "", re.M)
    if stack:
        found["kernel_stack"] = stack[:MOST_KERNEL_FRAMES]
    return found


def call_of(pid: int, line: Optional[str]) -> Dict[str, Any]:
    """The system call of a ``syscall`` line, and the file that it is about."""
    words = (line or "").split()
    if not words or not words[0].isdigit():
        return {}
    number = int(words[0])
    name = CALLS.get(os.uname().machine, {}).get(number, "call %d" % number)
    found: Dict[str, Any] = {"call": name}
    if name in ON_A_FILE and len(words) > 1:
        try:
            found["on"] = os.readlink("/proc/%d/fd/%d" % (pid, int(words[1], 16)))[:500]
        except (OSError, ValueError):
            pass
    return found


def brief(pid: int) -> Dict[str, Any]:
    """A process in a line: number, command, state, age. ``alive`` False when there is none of that number."""
    stat = stat_of("/proc/%d" % pid)
    if stat is None:
        return {"pid": pid, "alive": False}
    return {
        "pid": pid,
        "alive": True,
        "command": [word[:300] for word in arguments(pid)[:12]] or [try_line("/proc/%d/comm" % pid) or ""],
        "state": stat.state,
        "age": round(max(0.0, uptime() - stat.started), 1),
        "cpu": round(stat.cpu, 2),
    }
