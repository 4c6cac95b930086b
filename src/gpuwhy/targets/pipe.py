"""The collector at the other end of a pipe: how the program gets there, and how its answers come back.

Every kind of live target is a command that gives a shell or a Python somewhere; from there on all are alike.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any

import msgspec

from gpuwhy.targets.interface import Ask, Reply, TargetError

BOOTSTRAP = "import sys,zlib;exec(zlib.decompress(sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))))"
"""Reads a program from its input (see :func:`framed`) and leaves the rest of the input to it. Free of quotes, so that it
needs no escaping."""

PYTHON_OPTIONS = ("-I", "-S", "-B")
"""Nothing of the account's own Python is read, and no compiled module is left behind: ``-I`` alone would ignore
PYTHONDONTWRITEBYTECODE and let root's Python fill its ``__pycache__``."""

INTERPRETERS = (
    "python3",
    "/usr/bin/python3",
    "/usr/local/bin/python3",
    "/usr/libexec/platform-python",
    "/opt/conda/bin/python3",
    "/usr/bin/python3.12",
    "/usr/bin/python3.11",
    "/usr/bin/python3.9",
    "/usr/bin/python3.6",
    "python",
)

NO_PYTHON = "gpuwhy: no python3 here"

NO_PYTHON_STATUS = 127

NO_SUDO = "gpuwhy: no sudo here"

_OPTIONS = " ".join(PYTHON_OPTIONS)

_SUDO = (
    "if test $(id -u) -gt 0; then "
    f"if command -v sudo >/dev/null; then s=sudo; n=-n; else echo {NO_SUDO} >&2; exit {NO_PYTHON_STATUS}; fi; fi; "
)
"""Sets the words that go before the interpreter: none for who is root already. ``-n``: a password is never asked for."""


def shell_line(sudo: bool = False, life: int = 0) -> str:
    """For ``sh``: finds an interpreter, and starts the program in it, with sudo's rights or those of the account.

    After ``life`` seconds (0: never) the system itself ends it, also one that still waits for its own text.
    Holds no single quote, backslash, exclamation mark or newline: in single quotes it means the same to every login
    shell (bash, zsh, fish, csh), which only has to start ``sh`` with it.
    """
    before, words = (_SUDO, "$s $n ") if sudo else ("", "")
    bootstrap = f"import signal;signal.alarm({life});{BOOTSTRAP}" if life else BOOTSTRAP
    return (
        f"{before}for p in {' '.join(INTERPRETERS)}; do "
        f'if "$p" {_OPTIONS} -c "import sys;sys.exit(sys.version_info[:2]<(3,6))" </dev/null >/dev/null 2>/dev/null; '
        f'then exec {words}"$p" {_OPTIONS} -c "{bootstrap}"; fi; done; echo {NO_PYTHON} >&2; exit {NO_PYTHON_STATUS}'
    )


SHELL_LINE = shell_line()


def remote_command(sudo: bool = False) -> str:
    """One line for the login shell of a remote account."""
    return f"exec sh -c '{shell_line(sudo)}'"


REMOTE_COMMAND = remote_command()


def framed(program: str) -> bytes:
    """The text of a program as :data:`BOOTSTRAP` reads it: its compressed size on a line, then as many bytes."""
    packed = zlib.compress(program.encode(), 9)
    return b"%d\n" % len(packed) + packed


MOST_BYTES = 256 << 20

MOST_ERRORS = 1 << 16

PATIENCE, HURRY = 1.0, 0.2
"""Seconds that the process is given to end by itself: after a conversation, and after it gave no answer in time."""


class PipeConnection:
    """A collector that is spoken to over the standard streams of a local process (``ssh``, ``docker exec``, Python).

    ``explain`` turns an exit status and the process's own error output into a TargetError.
    """

    def __init__(self, command: Sequence[str], program: str, explain: Callable[[int | None, str], TargetError]) -> None:
        self._explain = explain
        self._buffer = bytearray()
        self._errors = bytearray()
        self._received = 0
        self._count = 0
        self._is_open = True
        self._patience = PATIENCE
        self._outgoing = memoryview(framed(program))
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=_is_unattended(),
            )
        except OSError as error:
            raise TargetError(f"{command[0]} could not be started: {error.strerror}") from error
        self._stdin, self._stdout, self._stderr = _streams(self._process)
        self._selector = selectors.DefaultSelector()
        for stream in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(stream.fileno(), False)
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._selector.register(self._stderr, selectors.EVENT_READ)

    def collect(
        self, request: Mapping[str, Any], on_result: Callable[[dict[str, Any]], None], deadline: float
    ) -> dict[str, Any]:
        self._send(request)
        end = time.monotonic() + deadline
        has_any = False
        while (answer := self._next(end)) is not None:
            if isinstance(answer.get("end"), dict):
                return dict(answer["end"])
            if isinstance(answer.get("probe"), str):
                has_any = True
                on_result(answer)
        if not has_any:
            raise self._reason()
        return {}

    def ask(self, asks: Iterable[Ask], deadline: float = 10.0) -> list[Reply]:
        wanted: list[int] = []
        for each in asks:
            self._count += 1
            wanted.append(self._count)
            self._send({"id": self._count, **msgspec.to_builtins(each)})
        replies: dict[int, Reply] = {}
        end = time.monotonic() + deadline
        while len(replies) < len(wanted) and (answer := self._next(end)) is not None:
            identity = answer.get("id")
            if isinstance(identity, int) and identity in wanted:
                status, reason = str(answer.get("status", "failed")), str(answer.get("reason", ""))
                replies[identity] = Reply(status=status, reason=reason, value=answer.get("value"))
        lost = Reply(status="timed out" if self._is_open else "failed", reason="the target gave no answer")
        return [replies.get(identity, lost) for identity in wanted]

    def close(self) -> None:
        if not self._stdin.closed:
            with contextlib.suppress(OSError, ValueError):
                if not self._outgoing:
                    os.write(self._stdin.fileno(), b"quit\n")
            with contextlib.suppress(OSError, ValueError):
                self._stdin.close()
        self._outgoing = memoryview(b"")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=self._patience)
        if self._process.poll() is None:
            # The collector also ends by itself as soon as this closes its output.
            for end in (self._process.terminate, self._process.kill):
                # sudo is root's process: it ends with the collector, not at a signal of ours
                with contextlib.suppress(subprocess.TimeoutExpired, PermissionError):
                    end()
                    self._process.wait(timeout=1.0)
                if self._process.poll() is not None:
                    break
        self._is_open = False
        self._selector.close()
        for stream in (self._stdout, self._stderr):
            stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1.0)

    def _send(self, document: Mapping[str, Any]) -> None:
        self._outgoing = memoryview(bytes(self._outgoing) + msgspec.json.encode(document) + b"\n")
        stream = self._stdin
        if not stream.closed and stream not in self._selector.get_map():
            self._selector.register(stream, selectors.EVENT_WRITE)

    def _next(self, end: float) -> dict[str, Any] | None:
        """The next answer; None when the connection ended or ``end`` has come."""
        while True:
            line = self._line()
            if line is None:
                if not self._is_open or not self._exchange(end):
                    return None
                continue
            try:
                answer = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                # A banner that a login script prints, or a line that was cut: neither is an answer.
                continue
            if isinstance(answer, dict):
                return answer

    def _line(self) -> bytes | None:
        at = self._buffer.find(b"\n")
        if at < 0:
            return None
        line = bytes(self._buffer[:at])
        del self._buffer[: at + 1]
        return line

    def _exchange(self, end: float) -> bool:
        """Send and receive what is ready. False when the time is over or the answers are too long to be ours."""
        left = end - time.monotonic()
        if left <= 0:
            self._patience = HURRY
            return False
        for key, _ in self._selector.select(left):
            stream = key.fileobj
            if stream is self._stdin:
                self._write()
            else:
                self._read(stream)
        return self._received <= MOST_BYTES

    def _write(self) -> None:
        stream = self._stdin
        try:
            sent = os.write(stream.fileno(), self._outgoing[: 1 << 16])
        except BlockingIOError:
            return
        except OSError:
            # The other end is gone: its output says why.
            self._selector.unregister(stream)
            with contextlib.suppress(OSError):
                stream.close()
            return
        self._outgoing = self._outgoing[sent:]
        if not self._outgoing:
            self._selector.unregister(stream)

    def _read(self, stream: Any) -> None:
        try:
            chunk = os.read(stream.fileno(), 1 << 18)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._selector.unregister(stream)
            if stream is self._stdout:
                self._is_open = False
        elif stream is self._stdout:
            self._received += len(chunk)
            self._buffer += chunk
        else:
            self._errors += chunk
            del self._errors[:-MOST_ERRORS]

    def _reason(self) -> TargetError:
        """Why nothing came: the process's exit status and last words."""
        end = time.monotonic() + self._patience
        while self._stderr in self._selector.get_map() and time.monotonic() < end:
            self._exchange(end)
        if not self._is_open:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=1.0)
        return self._explain(self._process.poll(), self._errors.decode("utf-8", "replace"))


def _streams(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    """The three pipes to the process."""
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise TargetError("the process has no pipes")
    return process.stdin, process.stdout, process.stderr


def _is_unattended() -> bool:
    """Whether nobody is there to type a passphrase: only then may the process be cut off from the terminal."""
    return sys.stdin is None or not sys.stdin.isatty()
