"""Who opens a file while it is watched: a lock that is held is opened again and again by those who want it.

fanotify tells the process, and is only for root; inotify tells that somebody did. A watch changes nothing of the file.
"""

import ctypes
import os
import struct
from typing import Any, Dict, Iterable, List, Optional, Set

OPENED = 0x00000020
"""IN_OPEN and FAN_OPEN."""

INOTIFY_FLAGS = 0o2004000
"""IN_NONBLOCK | IN_CLOEXEC."""

FANOTIFY_FLAGS = 0x00000003
"""FAN_CLOEXEC | FAN_NONBLOCK, class FAN_CLASS_NOTIF: told afterwards, nobody is kept waiting."""

MARK_ADD = 0x00000001

CURRENT_FOLDER = -100
"""AT_FDCWD."""

MOST_WATCHES = 128

MOST_BYTES = 1 << 18

INOTIFY_EVENT = struct.Struct("iIII")
"""watch, mask, cookie, length of the name that follows."""

FANOTIFY_EVENT = struct.Struct("=IBBHQii")
"""length, version, reserved, length of the head, mask, an open descriptor of the file, process."""


class Watch:
    """A watch over some files from its creation to :meth:`openers`. Where the kernel refuses, nothing is seen opened."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = list(paths)[:MOST_WATCHES]
        self._by_number: Dict[int, str] = {}
        self._inotify = -1
        self._fanotify = -1
        if not self._paths:
            return
        try:
            library = ctypes.CDLL(None, use_errno=True)
            self._watch_who(library)
            if self._fanotify < 0:
                self._watch_whether(library)
        except (OSError, AttributeError, ValueError):
            pass

    def _watch_who(self, library: Any) -> None:
        self._fanotify = library.fanotify_init(ctypes.c_uint(FANOTIFY_FLAGS), ctypes.c_uint(os.O_RDONLY | os.O_CLOEXEC))
        for path in self._paths if self._fanotify >= 0 else []:
            failed = library.fanotify_mark(
                self._fanotify, ctypes.c_uint(MARK_ADD), ctypes.c_uint64(OPENED), CURRENT_FOLDER, os.fsencode(path)
            )
            if failed:
                os.close(self._fanotify)
                self._fanotify = -1
                return

    def _watch_whether(self, library: Any) -> None:
        self._inotify = library.inotify_init1(INOTIFY_FLAGS)
        for path in self._paths if self._inotify >= 0 else []:
            number = library.inotify_add_watch(self._inotify, os.fsencode(path), OPENED)
            if number >= 0:
                self._by_number[number] = path

    def openers(self) -> Dict[str, Optional[Set[int]]]:
        """The files that were opened, each with the processes that did, None where nobody tells which; ends the watch."""
        found: Dict[str, Optional[Set[int]]] = {}
        if self._fanotify >= 0:
            for path, pid in _who(_drained(self._fanotify)):
                if pid != os.getpid():
                    found.setdefault(path, set()).add(pid)  # type: ignore[union-attr]
        elif self._inotify >= 0:
            for number in _whether(_drained(self._inotify)):
                if number in self._by_number:
                    found[self._by_number[number]] = None
        self._fanotify = self._inotify = -1
        return _by_watched_path(found, self._paths)


def _drained(descriptor: int) -> bytes:
    parts: List[bytes] = []
    try:
        while sum(map(len, parts)) < MOST_BYTES:
            part = os.read(descriptor, 1 << 14)
            if not part:
                break
            parts.append(part)
    except OSError:
        # no more events
        pass
    finally:
        os.close(descriptor)
    return b"".join(parts)


def _who(data: bytes) -> "List[tuple[str, int]]":
    """Paths and processes of fanotify's events; the descriptors that come with them are closed."""
    found = []
    at = 0
    while at + FANOTIFY_EVENT.size <= len(data):
        length, _, _, _, mask, descriptor, pid = FANOTIFY_EVENT.unpack_from(data, at)
        at += max(length, FANOTIFY_EVENT.size)
        if descriptor < 0:
            continue
        try:
            if mask & OPENED and pid > 0:
                found.append((os.readlink("/proc/self/fd/%d" % descriptor), pid))
        except OSError:
            pass
        finally:
            os.close(descriptor)
    return found


def _whether(data: bytes) -> "List[int]":
    found = []
    at = 0
    while at + INOTIFY_EVENT.size <= len(data):
        number, mask, _, length = INOTIFY_EVENT.unpack_from(data, at)
        at += INOTIFY_EVENT.size + length
        if mask & OPENED:
            found.append(number)
    return found


def _by_watched_path(found: Dict[str, Optional[Set[int]]], paths: List[str]) -> Dict[str, Optional[Set[int]]]:
    """The same under the paths as they were given: the kernel tells them without links, and without ``/proc/PID/root``."""
    by_real = {os.path.realpath(path): path for path in paths}
    by_tail = {path.partition("/root/")[2]: path for path in paths if path.startswith("/proc/")}
    named: Dict[str, Optional[Set[int]]] = {}
    for path, pids in found.items():
        given = path if path in paths else by_real.get(path) or by_tail.get(path.lstrip("/"))
        if given is not None:
            named[given] = pids
    return named
