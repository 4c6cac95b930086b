"""What a probe is: a function that looks at one subject and returns a JSON value, or raises why there is none."""

import os
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

OK, ABSENT, DENIED, TIMED_OUT, FAILED = "ok", "absent", "denied", "timed out", "failed"

SUDO = "--sudo"
"""The way that always helps: the option of ours that gives the collector root's rights."""

Request = Dict[str, Any]


class NoValue(Exception):  # noqa: N818 - an outcome, not an error
    """A probe has nothing to tell, and says why. The classes below are the ways in which that happens."""

    status = FAILED

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Absent(NoValue):
    """Looked for, and not there."""

    status = ABSENT


class Denied(NoValue):
    """There, but this user may not read it. ``allow`` are commands that would let it, ``--sudo`` an option of ours."""

    status = DENIED

    def __init__(self, reason: str, *allow: str) -> None:
        super().__init__(reason)
        self.allow = allow


class TimedOut(NoValue):
    """No answer before the deadline."""

    status = TIMED_OUT


class Failed(NoValue):
    """An answer that cannot be used."""

    status = FAILED


def why_unreadable(error: OSError, path: str) -> NoValue:
    """The outcome that an error of the operating system stands for."""
    text = "%s: %s" % (path, error.strerror or error)
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return Absent(text)
    if isinstance(error, PermissionError):
        return Denied(text)
    return Failed(text)


class Notes:
    """What a probe says about its own work: where it looked, whose the value is, what it could not see."""

    def __init__(self) -> None:
        self.subject = "host"
        self.sources: List[str] = []
        self.remarks: List[str] = []
        self.secrets: List[str] = []
        self.denied: List[Dict[str, Any]] = []
        self._lock = threading.Lock()

    def source(self, source: str) -> None:
        """Names a file or a command that the value comes from."""
        with self._lock:
            if source not in self.sources and len(self.sources) < 100:
                self.sources.append(source)

    def secret(self, secret: str) -> None:
        """Hands over a secret that was seen on the way, so that it is taken out of every other text. Never printed."""
        with self._lock:
            self.secrets.append(secret)

    def remark(self, remark: str) -> None:
        """Says what a reader of the value should know: cut, partly denied, taken from a fallback."""
        with self._lock:
            if remark not in self.remarks and len(self.remarks) < 100:
                self.remarks.append(remark)

    def deny(self, what: str, *allow: str) -> None:
        """Names what this user may not read, and the commands that would let it; ``--sudo`` alone where none is known.

        Whoever is root already is told no way: what stands between is then a container or a security module.
        """
        ways = [] if os.geteuid() == 0 else list(dict.fromkeys(allow + (SUDO,)))
        with self._lock:
            if len(self.denied) < 50 and all(each["what"] != what for each in self.denied):
                self.denied.append({"what": what, "allow": ways})


class Probe:
    """One question. ``function(request, notes, *values of needs)`` runs in a thread of its own once its needs ended.

    A need that gave no value is passed as None. ``deadline`` is in seconds from its start.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        needs: Sequence[str] = (),
        deadline: float = 5.0,
    ) -> None:
        self.name = name
        self.function = function
        self.needs: Tuple[str, ...] = tuple(needs)
        self.deadline = deadline


def first_of(value: Optional[Dict[str, Any]], key: str, default: Any = None) -> Any:
    """``value[key]`` where ``value`` may be None because its probe gave nothing."""
    if value is None:
        return default
    found = value.get(key)
    return default if found is None else found
