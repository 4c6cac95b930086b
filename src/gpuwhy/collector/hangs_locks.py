"""Lock files that builds wait for, and who holds them.

Two kinds. A ``flock`` stands in ``/proc/locks`` under the file's inode, with the process that took it, and an arrow in
front of those that wait in the kernel:

    12: FLOCK  ADVISORY  WRITE 77 fd:01:1311768 0 EOF
    12: -> FLOCK  ADVISORY  WRITE 99 fd:01:1311768 0 EOF

filelock (FlashInfer, Hugging Face) opens the file and tries again every 50 ms instead; see :mod:`hangs_watching`. A baton (torch.utils.cpp_extension) is a plain file called ``lock`` that exists
as long as somebody builds, and that he holds open: one that nobody has open is left over.
"""

import os
import re
import stat
import time
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from gpuwhy.collector.environment import home_of, of_process
from gpuwhy.collector.hangs_processes import brief
from gpuwhy.collector.probing import NoValue
from gpuwhy.collector.process import all_processes
from gpuwhy.collector.reading import try_list, try_text

MOST_CANDIDATES = 2000

MOST_TOLD = 20

MOST_OPEN_FILES = 4096

LOCK_FILE = re.compile(r"(?:^|[/.])(?:lock|[^/]{1,200}\.lock)$")


class Held:
    """A line of ``/proc/locks``."""

    def __init__(self, kind: str, pid: int, device: str, inode: int, waits: bool) -> None:
        self.kind = kind
        self.pid = pid
        self.device = device
        self.inode = inode
        self.waits = waits


def kernel_locks(text: str) -> List[Held]:
    """The lines of ``/proc/locks``; leases and such are left out."""
    found: List[Held] = []
    for line in text.splitlines()[:20000]:
        words = line.split()
        waits = "->" in words
        if waits:
            words.remove("->")
        if len(words) < 6 or words[1] not in ("FLOCK", "POSIX", "OFDLCK"):
            continue
        device, _, inode = words[5].rpartition(":")
        if inode.isdigit() and re.match(r"^-?\d{1,10}$", words[4]):
            found.append(Held(words[1], int(words[4]), device, int(inode), waits))
    return found


class Candidate:
    """A lock file that a build may wait for."""

    def __init__(self, path: str, shown: str, is_baton: bool) -> None:
        self.path = path
        self.shown = shown
        self.is_baton = is_baton
        self.first = _stat(path)

    @property
    def key(self) -> Optional[Tuple[str, int]]:
        if self.first is None:
            return None
        return "%02x:%02x" % (os.major(self.first.st_dev), os.minor(self.first.st_dev)), self.first.st_ino


def _stat(path: str) -> Optional[os.stat_result]:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def candidates(pids: Sequence[int]) -> List[Candidate]:
    """Lock files in the JIT caches of these processes, and those that they have open."""
    found: Dict[str, Candidate] = {}
    for pid in pids[:40]:
        root = _root_of(pid)
        for shown, is_baton in _in_caches(pid, root):
            if len(found) < MOST_CANDIDATES:
                found.setdefault(root + shown, Candidate(root + shown, shown, is_baton))
        for shown in _open_files(pid):
            if LOCK_FILE.search(shown) and not shown.endswith((".so.lock", "dpkg/lock")):
                found.setdefault(root + shown, Candidate(root + shown, shown, False))
    return [each for each in found.values() if each.first is not None]


def _root_of(pid: int) -> str:
    """What stands before a path of a process that lives in another file system than ours (a container); else nothing."""
    try:
        if os.stat("/proc/%d/ns/mnt" % pid).st_ino == os.stat("/proc/self/ns/mnt").st_ino:
            return ""
    except OSError:
        return ""
    root = "/proc/%d/root" % pid
    return root if os.access(root + "/", os.X_OK) else ""


def _in_caches(pid: int, root: str) -> Iterator[Tuple[str, bool]]:
    try:
        variables = of_process(pid)
    except NoValue:
        variables = {}
    home = home_of(variables)
    cache = variables.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    flashinfer = os.path.join(variables.get("FLASHINFER_WORKSPACE_BASE") or home, ".cache", "flashinfer")
    for folder in _below(root, flashinfer, 3):
        if folder.endswith("/cached_ops/tmp"):
            for name in try_list(root + folder, 500):
                if name.endswith(".lock"):
                    yield os.path.join(folder, name), False
    torch = variables.get("TORCH_EXTENSIONS_DIR") or os.path.join(cache, "torch_extensions")
    for folder in [torch] + list(_below(root, torch, 2)):
        if os.path.exists(root + os.path.join(folder, "lock")):
            yield os.path.join(folder, "lock"), True
    hub = variables.get("HF_HUB_CACHE") or os.path.join(
        variables.get("HF_HOME") or os.path.join(cache, "huggingface"), "hub"
    )
    for folder in _below(root, os.path.join(hub, ".locks"), 1):
        for name in try_list(root + folder, 300):
            if name.endswith(".lock"):
                yield os.path.join(folder, name), False
    triton = variables.get("TRITON_CACHE_DIR") or os.path.join(variables.get("TRITON_HOME") or home, ".triton", "cache")
    for folder in _below(root, triton, 1):
        if os.path.exists(root + os.path.join(folder, "lock")):
            yield os.path.join(folder, "lock"), False


def _below(root: str, folder: str, depth: int) -> Iterator[str]:
    """The folders below ``folder``, at most ``depth`` levels down and a thousand of them; nothing when it is none."""
    ahead = [(folder, 0)]
    told = 0
    while ahead and told < 1000:
        current, level = ahead.pop(0)
        if level == depth:
            # FlashInfer's locks lie one level deeper than its modules, of which there can be hundreds
            names = ["tmp"] if current.endswith("/cached_ops") else []
        else:
            names = try_list(root + current, 400)
        for name in names:
            path = os.path.join(current, name)
            if os.path.isdir(root + path) and not os.path.islink(root + path):
                told += 1
                yield path
                if level < depth:
                    ahead.append((path, level + 1))


def _open_files(pid: int) -> List[str]:
    found: List[str] = []
    base = "/proc/%d/fd" % pid
    for name in try_list(base, MOST_OPEN_FILES):
        try:
            path = os.readlink(os.path.join(base, name))
        except OSError:
            continue
        if path.startswith("/"):
            found.append(path)
    return found


def holders_and_waiters(each: Candidate, locks: Sequence[Held]) -> Tuple[List[int], List[int]]:
    """By the kernel's list: who holds the file, and who waits for it in the kernel."""
    key = each.key
    if key is None:
        return [], []
    same = [lock for lock in locks if lock.inode == key[1] and lock.device == key[0]]
    if not same:
        # some file systems (btrfs, overlay) give the kernel's list another device than stat
        same = [lock for lock in locks if lock.inode == key[1] and each.shown in _open_files(lock.pid)]
    return (
        sorted({lock.pid for lock in same if not lock.waits}),
        sorted({lock.pid for lock in same if lock.waits}),
    )


def having_open(paths: Set[str]) -> Dict[str, List[int]]:
    """Which processes have these files open; of processes that this user may look into."""
    found: Dict[str, List[int]] = {}
    if paths:
        for pid in all_processes():
            if pid != os.getpid():
                for path in paths.intersection(_open_files(pid)):
                    found.setdefault(path, []).append(pid)
    return found


def told(
    files: Sequence[Candidate], locks: Sequence[Held], family: Sequence[int], openers: Dict[str, Optional[Set[int]]]
) -> List[Dict[str, Any]]:
    """The lock files that are held, waited for, or left over; ``family`` are the processes of the one asked about,
    ``openers`` who opened which file between the looks (None: somebody)."""
    batons = {each.shown for each in files if each.is_baton}
    open_in = having_open(batons)
    found: List[Dict[str, Any]] = []
    for each in files:
        holders, waiters = holders_and_waiters(each, locks)
        if each.is_baton:
            holders = sorted(set(holders).union(open_in.get(each.shown, [])))
        if not (holders or waiters or each.is_baton):
            continue
        assert each.first is not None
        found.append(
            {
                "path": each.shown,
                "kind": "baton" if each.is_baton else "flock",
                "age": round(max(0.0, time.time() - each.first.st_mtime), 1),
                "exists": _stat(each.path) is not None,
                "is_tried": each.path in openers,
                "openers": sorted(openers.get(each.path) or [])[:32],
                "all_seen": os.geteuid() == 0,
                "holders": [dict(brief(pid), own=pid in family) for pid in holders[:8]],
                "waiters": waiters[:32],
            }
        )
    return sorted(found, key=lambda lock: (not lock["waiters"], not lock["is_tried"]))[:MOST_TOLD]


def read_kernel_locks() -> List[Held]:
    return kernel_locks(try_text("/proc/locks", 4 << 20) or "")
