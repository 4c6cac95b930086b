"""Why a change is not made, or not made to its end: in words for the person who asked for it."""

import errno
from typing import Any, Dict


class Refused(Exception):  # noqa: N818 - an answer rather than an error
    """A change that must not be made here as it stands. ``advice`` says what a person can do about it."""

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice
        self.detail: Dict[str, Any] = {}


class Missing(Refused):
    """A folder on the way to a path is not there."""


_WORDS = {
    errno.EROFS: ("the file system is mounted read-only", "Mount it writable, or make the change where the host's configuration is kept (an image, a configuration manager)."),
    errno.ENOSPC: ("no space is left on the device", "Make room (df -h and df -i show where), then try again."),
    errno.EDQUOT: ("the disk quota is used up", "Make room in the account's quota, then try again."),
    errno.EACCES: ("permission denied", "Run it as root, or as the user whose unit it is."),
    errno.EPERM: ("the operation is not permitted", "Run it as root; lsattr shows whether the file is marked immutable."),
    errno.EIO: ("the disk gave an input/output error", "See the kernel's log (dmesg): the disk may be failing."),
}  # fmt: skip


def refused_by(error: OSError, act: str, path: str) -> Refused:
    """The system's own error in words; ``act`` is what was tried: ``write``, ``remove``."""
    known = _WORDS.get(error.errno or 0)
    if known is None:
        return Refused("cannot %s %s: %s" % (act, path, error.strerror or error))
    return Refused("cannot %s %s: %s" % (act, path, known[0]), known[1])
