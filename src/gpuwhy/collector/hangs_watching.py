"""Which files somebody opens while they are watched, by inotify: who polls a lock opens it again and again.

A watch changes nothing of the file. Who opens it is not told; a lock that is held is opened by those who want it.
"""

import ctypes
import os
import struct
from typing import Dict, Iterable, Set

OPENED = 0x00000020
"""IN_OPEN."""

NONBLOCK_CLOEXEC = 0o2004000
"""IN_NONBLOCK | IN_CLOEXEC."""

MOST_WATCHES = 128

MOST_BYTES = 1 << 20

HEAD = struct.Struct("iIII")
"""struct inotify_event: watch, mask, cookie, length of the name that follows."""


class Watch:
    """A watch over some files from its creation to :meth:`opened`. Where the kernel refuses, nothing is seen opened."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths: Dict[int, str] = {}
        self._descriptor = -1
        try:
            library = ctypes.CDLL(None, use_errno=True)
            self._descriptor = library.inotify_init1(NONBLOCK_CLOEXEC)
            for path in list(paths)[:MOST_WATCHES]:
                number = library.inotify_add_watch(self._descriptor, os.fsencode(path), OPENED)
                if number >= 0:
                    self._paths[number] = path
        except (OSError, AttributeError, ValueError):
            pass

    def opened(self) -> Set[str]:
        """The files that were opened since, and ends the watch."""
        found: Set[str] = set()
        if self._descriptor < 0:
            return found
        try:
            data = os.read(self._descriptor, MOST_BYTES)
        except OSError:
            # nothing happened
            data = b""
        finally:
            os.close(self._descriptor)
            self._descriptor = -1
        at = 0
        while at + HEAD.size <= len(data):
            number, mask, _, length = HEAD.unpack_from(data, at)
            at += HEAD.size + length
            if mask & OPENED and number in self._paths:
                found.add(self._paths[number])
        return found
