"""Runs a listed argument vector: never a shell, never longer than its deadline, its output kept short."""

import os
import signal
import subprocess
from typing import Dict, List, Optional, Sequence, Tuple

from gpuwhy.applier.refusing import Refused

DIRECTORIES = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

MOST_OUTPUT = 8000
"""Characters of a command's output that are kept, from its end: that is where errors stand."""


_OF_INSTALLERS = ("PIP_", "UV_")
"""Where pip and uv fetch from: a host behind a mirror installs nothing without it."""


def environment(more: Optional[Dict[str, str]] = None) -> Dict[str, str]:
    """What a command is given: nothing of a login shell but what tells it who and where the user is."""
    kept = ("HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "PATH", "DOCKER_HOST")
    given = {name: value for name, value in os.environ.items() if name in kept or name.startswith(_OF_INSTALLERS)}
    given["PATH"] = ":".join([each for each in (given.get("PATH"), *DIRECTORIES) if each])
    given["LC_ALL"] = "C.UTF-8"
    if "XDG_RUNTIME_DIR" not in given and os.path.isdir("/run/user/%d" % os.geteuid()):
        # systemctl --user needs it, and a command over ssh does not always have it
        given["XDG_RUNTIME_DIR"] = "/run/user/%d" % os.geteuid()
    given.update(more or {})
    return given


def run(
    argv: Sequence[str],
    deadline: float,
    folder: str = "/",
    more: Optional[Dict[str, str]] = None,
    keeps: int = MOST_OUTPUT,
) -> Tuple[int, str]:
    """The exit status and the end of both outputs, ``keeps`` characters of it.

    Raises Refused when it cannot be started or does not end.
    """
    words: List[str] = list(argv)
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment(more),
            start_new_session=True,
        )
    except OSError as error:
        raise Refused("%s could not be started: %s" % (words[0], error.strerror))
    try:
        output, _ = process.communicate(timeout=deadline)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Refused("%s did not end in %g s" % (" ".join(words[:3]), deadline))
    return process.returncode, output.decode("utf-8", "replace")[-keeps:].strip()
