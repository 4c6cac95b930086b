"""Running the tools of the target: by absolute path, with a deadline, and gone for certain afterwards."""

import os
import select
import signal
import subprocess
import threading
import time
from typing import Callable, Dict, List, Optional, Sequence, Set

from gpuwhy.collector.probing import Absent, Denied, Failed, TimedOut

DIRECTORIES = (
    "/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin",
    "/usr/lib/wsl/lib", "/run/current-system/sw/bin", "/opt/bin", "/snap/bin",
)  # fmt: skip
"""Where tools are looked for first. A login shell's PATH is no truth; it is only asked when none of these has the tool."""

MOST_OUTPUT = 64 * 1024 * 1024

_running: Set[int] = set()
_lock = threading.Lock()
_closed = False


class Output:
    """What a command gave: its exit status (negative: the signal) and its two outputs as text."""

    def __init__(self, command: str, status: int, out: str, err: str) -> None:
        self.command = command
        self.status = status
        self.out = out
        self.err = err


def find(name: str, directories: Sequence[str] = DIRECTORIES) -> Optional[str]:
    """The absolute path of a tool, None when the target has none."""
    searched = list(directories) + [d for d in os.environ.get("PATH", "").split(":") if d.startswith("/")]
    for directory in searched:
        path = os.path.join(directory, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def run(
    name: str,
    arguments: Sequence[str] = (),
    timeout: float = 3.0,
    environment: Optional[Dict[str, str]] = None,
    most: int = MOST_OUTPUT,
    on_line: Optional[Callable[[bytes], bool]] = None,
) -> Output:
    """Runs a tool (a name, or an absolute path) and returns its output, whatever its exit status.

    ``on_line`` is given each line of the standard output instead of it being kept; once it returns False the tool is
    ended. Raises Absent (no such tool), Denied, TimedOut, Failed (no memory or processes left to start it).
    """
    path = name if name.startswith("/") else find(name)
    if path is None:
        raise Absent("there is no %s on this host" % name)
    argv = [path] + list(arguments)
    command = " ".join(argv)
    process = _start(argv, environment)
    try:
        out, err, is_late = _read(process, time.monotonic() + timeout, most, on_line)
    finally:
        status = _end(process)
    if is_late:
        raise TimedOut("%s gave no answer in %.1f s" % (command[:200], timeout))
    return Output(command, status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def _start(argv: List[str], environment: Optional[Dict[str, str]]) -> "subprocess.Popen[bytes]":
    inherited = {
        key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "PYTHONPATH", "PYTHONHOME")
    }
    # Tools that are written in Python (supervisorctl, ubuntu-drivers) would leave compiled modules behind.
    inherited.update({"LC_ALL": "C", "PATH": ":".join(DIRECTORIES), "PYTHONDONTWRITEBYTECODE": "1"})
    try:
        with _lock:
            if _closed:
                raise TimedOut("the collection was ending")
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env=inherited if environment is None else environment,
            )
            _running.add(process.pid)
    except FileNotFoundError:
        raise Absent("there is no %s on this host" % argv[0])
    except PermissionError:
        raise Denied("%s may not be run by this user" % argv[0])
    except (OSError, ValueError) as error:
        raise Failed("%s could not be started: %s" % (argv[0], error))
    return process


def _read(
    process: "subprocess.Popen[bytes]", deadline: float, most: int, on_line: Optional[Callable[[bytes], bool]]
) -> "tuple[bytes, bytes, bool]":
    assert process.stdout is not None
    assert process.stderr is not None
    outputs = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    standard = process.stdout.fileno()
    poll = select.poll()
    for descriptor in outputs:
        poll.register(descriptor, select.POLLIN)
    is_open = set(outputs)
    unfinished = b""
    while is_open:
        left = deadline - time.monotonic()
        if left <= 0:
            return bytes(outputs[standard]), b"", True
        for descriptor, _ in poll.poll(min(left, 0.5) * 1000):
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                poll.unregister(descriptor)
                is_open.discard(descriptor)
            elif on_line is not None and descriptor == standard:
                lines = (unfinished + chunk).split(b"\n")
                unfinished = lines.pop()
                if not all(on_line(line) for line in lines) or len(unfinished) > most:
                    return b"", bytes(outputs[process.stderr.fileno()]), False
            elif len(outputs[descriptor]) < most:
                outputs[descriptor] += chunk
        if process.poll() is not None and not poll.poll(0):
            # A grandchild may hold the pipes open for ever: the tool itself has ended and said all it had to say.
            break
    if on_line is not None and unfinished:
        on_line(unfinished)
    return bytes(outputs[standard]), bytes(outputs[process.stderr.fileno()]), False


def _end(process: "subprocess.Popen[bytes]") -> int:
    """Kills what is left of the tool and its children, and collects it. A tool stuck in a driver is not waited for."""
    exited = process.poll()
    if exited is None:
        # With its pipes closed by itself it is about to end; a moment keeps its own exit status.
        exited = _wait(process, 0.2)
    _kill_group(process.pid)
    status = _wait(process, 0.5)
    with _lock:
        _running.discard(process.pid)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    return -signal.SIGKILL if status is None else status


def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> Optional[int]:
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass


def note_running(group: int) -> None:
    """Has :func:`end_all` end a process that was started elsewhere, as the leader of a group of its own."""
    with _lock:
        _running.add(group)


def end_all() -> None:
    """Kills every tool that still runs, and lets no new one start: the program is about to end."""
    global _closed
    with _lock:
        _closed = True
        for group in _running:
            _kill_group(group)
