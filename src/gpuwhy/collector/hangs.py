"""What a live process waits for: two looks a second apart at it and at all below it, and what it could be waiting for.

Nothing is sent to the process, no signal and no request; it is not stopped or traced. The answer is bounded in size
and takes about a second and a half, a little more with py-spy.
"""

import os
import threading
import time
from typing import Any, Callable, Dict, List

from gpuwhy.collector import (
    hangs_compilers,
    hangs_files,
    hangs_gpus,
    hangs_locks,
    hangs_processes,
    hangs_sockets,
    hangs_stacks,
)
from gpuwhy.collector.hangs_processes import Look
from gpuwhy.collector.hangs_watching import Watch
from gpuwhy.collector.probing import Absent, NoValue

INTERVAL = 1.0
"""Seconds between the two looks."""

MOST_STACKS = 12
"""Python processes whose stacks are dumped."""

LONGEST = 7.0
"""Seconds after which what has not answered is left out."""


def look(pid: int) -> Dict[str, Any]:
    """``processes`` (the one asked about first), ``stacks``, ``compilers``, ``locks``, ``files``, ``connections``, ``gpus``;
    ``remarks`` say what could not be seen. Raises Absent when there is no such process."""
    if not os.path.isdir("/proc/%d" % pid):
        raise Absent("there is no process %d here (a container numbers its processes by itself)" % pid)
    started = time.monotonic()
    remarks: List[str] = []
    family = hangs_processes.tree(pid, hangs_processes.parents_of_all())
    lock_files = hangs_locks.candidates(family)
    kernel_locks = hangs_locks.read_kernel_locks()
    watched = family + _strangers(family, lock_files, kernel_locks)
    watch = Watch(each.path for each in lock_files if hangs_locks.holders_and_waiters(each, kernel_locks)[0])
    first = {each: Look(each) for each in watched}
    box: Dict[str, Any] = {"gpus": [], "stacks": []}
    workers = [
        _started(_gpus, box, remarks, family),
        _started(_stacks, box, remarks, family),
    ]
    time.sleep(max(0.0, INTERVAL - (time.monotonic() - first[pid].at)))
    second = {each: Look(each) for each in watched}
    openers = watch.openers()
    processes = [hangs_processes.described(first[each], second[each]) for each in watched]
    for each in processes:
        if each is not None:
            each["own"] = each["pid"] in family
    found: Dict[str, Any] = {
        "pid": pid,
        "processes": [each for each in processes if each is not None],
        "compilers": hangs_compilers.compilers(_now_below(pid, watched)),
        "locks": hangs_locks.told(lock_files, kernel_locks, family, openers),
        "files": hangs_files.weight_files(family),
        "connections": hangs_sockets.connections(family),
    }
    if not found["processes"] or found["processes"][0]["pid"] != pid:
        raise Absent("process %d ended while it was looked at" % pid)
    if "rchar" not in found["processes"][0]:
        remarks.append("the open files, memory and system calls of process %d are only for its user and for root" % pid)
    for worker in workers:
        worker.join(max(0.0, started + LONGEST - time.monotonic()))
    if any(worker.is_alive() for worker in workers):
        remarks.append("py-spy or the NVIDIA driver gave no answer in %.0f s" % LONGEST)
    found.update({name: list(value) for name, value in box.items()})
    found["remarks"] = list(remarks)
    return found


def _strangers(family: List[int], files: List[hangs_locks.Candidate], locks: List[hangs_locks.Held]) -> List[int]:
    """Processes elsewhere that hold a lock which these could wait for, and all below them: do they get on?"""
    holders: List[int] = []
    for each in files:
        for pid in hangs_locks.holders_and_waiters(each, locks)[0]:
            if pid > 0 and pid not in family and pid not in holders and os.path.isdir("/proc/%d" % pid):
                holders.append(pid)
    for pids in hangs_locks.having_open({each.shown for each in files if each.is_baton}).values():
        holders += [pid for pid in pids if pid not in family and pid not in holders]
    parents = hangs_processes.parents_of_all() if holders else {}
    found: List[int] = []
    for pid in holders[:8]:
        found += [each for each in hangs_processes.tree(pid, parents) if each not in found and each not in family]
    return found[: hangs_processes.MOST_PROCESSES]


def _now_below(pid: int, watched: List[int]) -> List[int]:
    """The watched processes and what was started meanwhile: a compiler often lives for less than a second."""
    now = hangs_processes.tree(pid, hangs_processes.parents_of_all())
    return watched + [each for each in now if each not in watched]


def _started(function: Callable[..., None], *arguments: Any) -> threading.Thread:
    worker = threading.Thread(target=function, args=arguments)
    worker.daemon = True
    worker.start()
    return worker


def _gpus(box: Dict[str, Any], remarks: List[str], family: List[int]) -> None:
    try:
        found = hangs_gpus.activity()
    except NoValue as why:
        remarks.append("what the GPUs do: " + why.reason)
        return
    for each in found:
        each["own"] = any(pid in family for pid in each["pids"])
    box["gpus"] = found


def _stacks(box: Dict[str, Any], remarks: List[str], family: List[int]) -> None:
    for pid in [each for each in family if hangs_stacks.is_python(each)][:MOST_STACKS]:
        py_spy = hangs_stacks.find(pid)
        if py_spy is None:
            remarks.append("py-spy is not on this target: what Python waits for is told from /proc alone")
            return
        box["stacks"].append(hangs_stacks.dump(pid, py_spy))
