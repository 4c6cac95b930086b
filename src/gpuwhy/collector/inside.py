"""This program once more, inside the container that is examined, over the engine's own ``exec``.

Its answers pass through here, marked, and are redacted together with those of the host: one secret has one token. It
writes nothing inside and ends when its input is closed, at the latest when its own time is over.
"""

import json
import os
import select
import signal
import subprocess
import threading
import time
import zlib
from typing import Any, Callable, Dict, Optional

from gpuwhy.collector import commands
from gpuwhy.collector.containers import known
from gpuwhy.collector.engines import Client, Container, last_words, mapping
from gpuwhy.collector.probing import OK, Absent, Failed, NoValue, TimedOut

LEAST = 1.0
"""Seconds below which starting there is not tried."""

WAY = 0.7
"""Seconds of the time that are kept for starting there and for the way back."""

MOST_LINE = 64 << 20


def program() -> bytes:
    """The text of this program, as its loader knows it. Raises Failed where it was not sent as one."""
    import gpuwhy.collector

    loader = getattr(getattr(gpuwhy.collector, "__spec__", None), "loader", None)
    text = getattr(loader, "program", None)
    if text is None:
        raise Failed("this program was not sent as one text")
    return zlib.compress(str(text()).encode("utf-8"), 6)


class Inside:
    """A collector inside a container. ``on_line`` is given each answer that is not a reply to a request."""

    def __init__(self, container: Container, shell: str, request: Dict[str, Any]) -> None:
        """Starts it. Raises Absent, Failed."""
        client = Client(container)
        sent = program()
        self._buffer = b""
        self._errors = b""
        self._lock = threading.Lock()
        try:
            self._process = subprocess.Popen(
                client.words + container.executing(["sh", "-c", shell]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env=client.environment,
            )
        except (OSError, ValueError) as error:
            raise Failed("%s could not be started: %s" % (container.client, error))
        commands.note_running(self._process.pid)
        self._outgoing = b"%d\n" % len(sent) + sent + json.dumps(request).encode("utf-8") + b"\n"
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)

    def collect(self, on_result: Callable[[Dict[str, Any]], None], until: float) -> Dict[str, Any]:
        """Hands on each result until the end comes. Raises Absent, Failed, TimedOut when not one came."""
        count = 0
        with self._lock:
            while True:
                answer = self._next(until)
                if answer is None:
                    break
                if isinstance(answer.get("end"), dict):
                    return dict(answer["end"])
                count += "probe" in answer
                on_result(answer)
            if count:
                return {}
            raise self._reason(until)

    def ask(self, request: Dict[str, Any], timeout: float) -> Optional[Dict[str, Any]]:
        """The reply to a request; None when the container is gone, restarted, or gave none in time."""
        with self._lock:
            self._outgoing += json.dumps(request).encode("utf-8") + b"\n"
            until = time.monotonic() + timeout
            while True:
                answer = self._next(until)
                if answer is None or answer.get("id") == request.get("id"):
                    return answer

    def close(self) -> None:
        """Ends the client, and with it the input of the program inside."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except OSError:
            pass

    def _next(self, until: float) -> Optional[Dict[str, Any]]:
        while True:
            line, separator, rest = self._buffer.partition(b"\n")
            if separator:
                self._buffer = rest
                try:
                    answer = json.loads(line.decode("utf-8", "replace"))
                except (ValueError, RecursionError):
                    continue
                if isinstance(answer, dict):
                    return answer
            elif len(self._buffer) > MOST_LINE or not self._exchange(until):
                return None

    def _exchange(self, until: float) -> bool:
        """Sends and receives what is ready. False at the end of the answers or of the time."""
        left = until - time.monotonic()
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        if left <= 0:
            return False
        errors = [] if stderr.closed else [stderr]
        writing = [stdin] if self._outgoing and not stdin.closed else []
        readable, writable, _ = select.select([stdout] + errors, writing, [], left)
        if writable:
            try:
                self._outgoing = self._outgoing[os.write(stdin.fileno(), self._outgoing[: 1 << 16]) :]
            except BlockingIOError:
                pass
            except OSError:
                stdin.close()
        if stderr in readable:
            chunk = os.read(stderr.fileno(), 1 << 16)
            self._errors = (self._errors + chunk)[-(1 << 14) :]
            if not chunk:
                stderr.close()
        if stdout in readable:
            chunk = os.read(stdout.fileno(), 1 << 18)
            self._buffer += chunk
            return bool(chunk)
        return True

    def _reason(self, until: float) -> NoValue:
        """Why nothing came: the client's status and last words."""
        try:
            status = self._process.wait(timeout=max(0.1, min(1.0, until - time.monotonic())))
        except subprocess.TimeoutExpired:
            return TimedOut("nothing inside answered in time")
        stderr = self._process.stderr
        if stderr is not None and not stderr.closed:
            try:
                self._errors += stderr.read() or b""
            except (OSError, ValueError):
                pass
        return why_not(status, self._errors.decode("utf-8", "replace"))


def why_not(status: int, errors: str) -> NoValue:
    """The outcome that an ``exec`` which gave no answer stands for."""
    said = last_words(errors)
    if "gpuwhy: no python3 here" in errors:
        return Absent("there is no python3 (3.6 or later) inside")
    if 'exec: "sh"' in errors or ("sh" in said and ("not found" in said or "no such file" in said.lower())):
        return Absent("there is neither a shell nor python3 inside")
    if "is not running" in said or "state improper" in said or "is restarting" in said or "is paused" in said:
        return Absent("it does not run: " + said)
    return Failed("exec ended with status %d: %s" % (status, said or "it said nothing"))


def look_inside(state: Dict[str, Any], request: Dict[str, Any], until: float, output: Any) -> Optional[Inside]:
    """Collects inside the container of ``state`` and hands each answer to ``output``, marked as one from inside.

    Last comes the probe ``inside``: whether that was possible, and if not, why. Where it was not, the environment is
    the one that the container is started with. Returns what further requests go to; None where the inside is closed.
    """
    container = known(state)
    started = time.monotonic()
    opened: Optional[Inside] = None
    status, reason, value = OK, "", None

    def hand_on(answer: Dict[str, Any]) -> None:
        for secret in answer.get("secrets", ()):
            output.learn(str(secret))
        if "probe" in answer:
            # its unit and environment name secrets: they are learned before anything else of it is printed
            output.redactor.learn_from(answer.get("value"))
            output.write(dict(answer, inside=True))

    try:
        if not mapping(state.get("state")).get("is_running"):
            raise Absent("it does not run: it is %s" % mapping(state.get("state")).get("status"))
        left = until - started - WAY
        if left < LEAST:
            raise TimedOut("no time was left to look inside")
        opened = Inside(container, str(request.get("shell") or ""), _request_of(request, left))
        end = opened.collect(hand_on, until)
        value = {"python": end.get("python"), "is_complete": bool(end)}
    except NoValue as why:
        status, reason = why.status, why.reason
        if opened is not None:
            opened.close()
        opened = None
        output.write(_given_environment(container, state))
    output.write(
        {
            "probe": "inside",
            "status": status,
            "reason": reason,
            "duration": round(time.monotonic() - started, 4),
            "subject": container.subject,
            "sources": [" ".join([container.client] + container.executing(["sh"]))],
            "value": value,
        }
    )
    return opened


def _request_of(request: Dict[str, Any], left: float) -> Dict[str, Any]:
    # a unit or process that was named beside a container is one in it; without, it is the host's that led here
    names = ("life", "idle") + (("unit", "pid") if request.get("container") else ())
    passed: Dict[str, Any] = {name: request[name] for name in names if name in request}
    passed.update(deadline=left, is_inside=True)
    return passed


def _given_environment(container: Container, state: Dict[str, Any]) -> Dict[str, Any]:
    """What is known of the environment from outside: an entry script may set more."""
    value = {
        "source": "container",
        "complete": False,
        "variables": state.get("variables") or {},
        "other_names": state.get("other_names") or [],
        "steps": [],
    }
    remark = "as the container is started with; what its entry script sets is not known"
    return {
        "probe": "environment",
        "status": OK,
        "reason": "",
        "subject": container.subject,
        "remarks": [remark],
        "value": value,
        "inside": True,
    }
