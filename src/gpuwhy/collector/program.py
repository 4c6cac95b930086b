"""Runs the probes, prints one JSON line per result, then answers requests until nobody asks any more.

    {"probe": "memory", "status": "ok", "reason": "", "duration": 0.002, "subject": "host", "sources": [...], "value": {...}}
    {"end": {"duration": 1.31, "redacted": {"by name": 2}, "python": "3.11.2"}}

It reads its first request from standard input, as one line of JSON. It ends itself when its time is over, when its
output is closed, or when its input is; it writes nothing but its output, and leaves no process behind. Of many nodes each
is asked once: ``{"is_once": true}`` has the answers framed (see framing), and the program end after them.
"""

import io
import json
import os
import select
import signal
import sys
import threading
import time
from typing import Any, Dict, List, Optional

from gpuwhy.collector import (
    at_work,
    commands,
    container,
    containers,
    cuda_start,
    disks,
    driver,
    environment,
    fabric,
    failing_services,
    gpus,
    inside,
    jit_cache,
    journal,
    kernel_log,
    limits,
    memory,
    packages,
    pci_bridges,
    process,
    python_environments,
    ray_logs,
    resolutions,
    service,
    service_log,
    serving,
    system,
    toolkits,
    torch_targets,
)
from gpuwhy.collector.framing import LINE, Framer
from gpuwhy.collector.probing import FAILED, OK, TIMED_OUT, Denied, Notes, NoValue, Probe, Request
from gpuwhy.redaction import Redactor

PROBES = (
    Probe("failing_services", failing_services.failing_services, deadline=4.0),
    Probe("unit", service.service, needs=("failing_services",)),
    Probe("process", process.process, needs=("unit", "failing_services")),
    Probe("environment", environment.environment, needs=("unit", "process")),
    Probe("gpus", gpus.gpus, deadline=7.0),
    Probe("nvidia_smi", gpus.nvidia_smi),
    Probe("pci", gpus.pci),
    Probe("pci_bridges", pci_bridges.pci_bridges),
    Probe("cuda_start", cuda_start.cuda_start, deadline=7.0),
    Probe("driver", driver.driver),
    Probe("gpu_services", driver.gpu_services),
    Probe("fabric", fabric.fabric, needs=("gpus", "gpu_services", "pci")),
    Probe("at_work", at_work.at_work, needs=("unit",)),
    Probe("python_environments", python_environments.python_environments, needs=("unit", "process", "environment")),
    Probe("packages", packages.packages, needs=("python_environments",)),
    Probe("torch_targets", torch_targets.torch_targets, needs=("packages",)),
    Probe("toolkits", toolkits.toolkits, needs=("environment", "python_environments")),
    Probe("resolutions", resolutions.resolutions, needs=("environment", "packages", "python_environments")),
    Probe("assemblers", resolutions.assemblers, needs=("python_environments",)),
    Probe("journal", journal.journal, needs=("unit", "failing_services"), deadline=7.0),
    Probe("service_log", service_log.service_log, needs=("failing_services", "unit", "process")),
    Probe("kernel_log", kernel_log.kernel_log, deadline=6.0),
    Probe("system", system.system),
    Probe("compilers", system.compilers, needs=("environment",)),
    Probe("memory", memory.memory, needs=("unit", "process")),
    Probe("disks", disks.disks, needs=("unit", "process", "environment")),
    Probe("limits", limits.limits, needs=("unit", "process")),
    Probe("jit_cache", jit_cache.jit_cache, needs=("environment",)),
    Probe("container", container.container),
    Probe("container_state", containers.container_state, needs=("unit", "failing_services"), deadline=7.0),
    Probe("container_log", containers.container_log, needs=("container_state",), deadline=7.0),
    Probe("container_events", containers.container_events, needs=("container_state",), deadline=6.0),
)

OF_RAY = (Probe("ray_log", ray_logs.ray_log),)
"""Asked of a node of Ray alone: elsewhere its logs are those of one service among others, and found as such."""

SECRETS_FROM = ("unit", "environment", "container_state")
"""Nothing of the service is printed before these ended: the secrets they name are then known in every other text."""

COLLECTION_DEADLINE = 8.0

IDLE_DEADLINE = 120.0
"""How long the program waits for the next request."""

ASK_DEADLINE = 60.0
"""How long a container is waited for when it is asked something."""

LONGEST_LIFE = 900.0


class Output:
    """Standard output: one JSON object a line, without secrets, whole lines also from several threads.

    Inside a container they stay in (``is_raw``): the other end of the pipe is this program on the engine's host, which
    takes them out together with those of its own answers.
    """

    def __init__(self, redactor: Redactor, is_raw: bool = False, framing: int = 0) -> None:
        self.redactor = redactor
        self._is_raw = is_raw
        self._framer = Framer(framing) if framing else None
        self._lock = threading.Lock()

    def learn(self, secret: str) -> None:
        """From now on ``secret`` is taken out wherever it stands."""
        if self._is_raw:
            self.write({"secrets": [secret]})
        else:
            self.redactor.learn(secret)

    def write(self, document: Dict[str, Any]) -> None:
        # Redacting a long journal takes a second: whoever began first is also printed first, so "end" stays the last.
        with self._lock:
            printable = _printable(document)
            shown = printable if self._is_raw else self.redactor.value(printable)
            line = json.dumps(shown, ensure_ascii=True, separators=(",", ":"), default=str)
            data = line.encode("ascii") + b"\n"
            self._send(data if self._framer is None else self._framer.pack(data))

    def finish(self) -> None:
        """Says that nothing more comes, where that is part of the form."""
        if self._framer is not None:
            self._send(self._framer.finish())

    def _send(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(1, data) :]
        except OSError:
            end(0)


def _printable(value: Any) -> Any:
    """File names and variables may hold bytes that are no text: Python marks them by lone surrogates, JSON has none."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogateescape" if _is_escaped(value) else "replace").decode(
                "utf-8", "replace"
            )
        return value
    if isinstance(value, dict):
        return {_printable(key): _printable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_printable(item) for item in value]
    return value


def _is_escaped(text: str) -> bool:
    return all(not 0xD800 <= ord(character) <= 0xDFFF or 0xDC80 <= ord(character) <= 0xDCFF for character in text)


class Collection:
    """The probes of one run: which have ended, and in ``values`` what they gave to those that need them."""

    def __init__(self, request: Request, output: Output) -> None:
        self._request = request
        self._output = output
        self._probes = _chosen(request)
        self.values: Dict[str, Any] = {}
        self.inside: Optional[inside.Inside] = None
        self._ended = {probe.name: threading.Event() for probe in self._probes}
        self._printed: Dict[str, bool] = {}
        self._lock = threading.Lock()
        self._secrets_known = threading.Event()
        self._started = time.monotonic()

    def run(self) -> None:
        """Returns when every probe has been printed, at the latest when the deadline of the collection is over."""
        limit = seconds(self._request.get("deadline"), COLLECTION_DEADLINE)
        threads: List[threading.Thread] = []
        for probe in self._probes:
            thread = threading.Thread(target=self._run, args=(probe, limit), name=probe.name)
            thread.daemon = True
            thread.start()
            threads.append(thread)
        relay = threading.Thread(target=self._look_inside, args=(limit,), name="inside")
        relay.daemon = True
        relay.start()
        if self._has_no_container(limit):
            return
        for thread in threads + [relay]:
            thread.join(max(0.0, self._started + limit - time.monotonic()))
        for probe, thread in zip(self._probes, threads):
            # One that has its answer may still be printing it; one that hangs is given up.
            thread.join(1.0 if self._ended[probe.name].is_set() else 0.0)
            reason = "no answer in the %.1f s of the whole collection" % limit
            self._print(probe, TIMED_OUT, reason, None, Notes(), limit)

    def _has_no_container(self, limit: float) -> bool:
        """Whether a container was named that cannot be examined: nothing else is of interest then."""
        if not self._request.get("container"):
            return False
        state = next(probe for probe in self._probes if probe.name == "container_state")
        if not self._ended[state.name].wait(limit):
            self._print(
                state, TIMED_OUT, "no answer in the %.1f s of the whole collection" % limit, None, Notes(), limit
            )
        if self.values.get(state.name) is not None:
            return False
        until = time.monotonic() + 1.0
        while not self._printed.get("container_state") and time.monotonic() < until:
            time.sleep(0.01)
        return True

    def _look_inside(self, limit: float) -> None:
        """Once the engine has described a container: what it looks like from inside."""
        if "container_state" not in self._ended:
            return
        self._ended["container_state"].wait(limit)
        state = self.values.get("container_state")
        if state is not None:
            self.inside = inside.look_inside(state, self._request, self._started + limit, self._output)

    def answer(self, asked: Request) -> Dict[str, Any]:
        """The reply to one request; the files of a container are in the container."""
        if self.inside is None:
            if self.values.get("container_state") is not None:
                reason = "the inside of the container cannot be asked"
                return {"id": asked.get("id"), "status": "absent", "reason": reason, "value": None}
            return serving.answer(asked, self.values)
        reply = self.inside.ask(asked, ASK_DEADLINE)
        if reply is not None:
            return reply
        reason = "the container gave no answer: it has ended or was restarted"
        return {"id": asked.get("id"), "status": "failed", "reason": reason, "value": None}

    def _run(self, probe: Probe, limit: float) -> None:
        for need in probe.needs:
            if need in self._ended:
                self._ended[need].wait(max(0.0, self._started + limit - time.monotonic()))
        started = time.monotonic()
        notes = Notes()
        box: Dict[str, Any] = {}
        worker = threading.Thread(target=self._look, args=(probe, notes, box))
        worker.daemon = True
        worker.start()
        worker.join(probe.deadline)
        took = time.monotonic() - started
        if worker.is_alive():
            status, reason, value = TIMED_OUT, "no answer in %.1f s" % probe.deadline, None
        else:
            status, reason, value = box["status"], box["reason"], box["value"]
        for secret in notes.secrets:
            self._output.learn(secret)
        self.values[probe.name] = value if status == OK else None
        self._note_secrets()
        self._ended[probe.name].set()
        if probe.name not in SECRETS_FROM:
            self._wait_for_secrets(limit)
        self._print(probe, status, reason, value, notes, took)

    def _look(self, probe: Probe, notes: Notes, box: Dict[str, Any]) -> None:
        status, reason, value = OK, "", None
        try:
            value = probe.function(self._request, notes, *[self.values.get(need) for need in probe.needs])
        except NoValue as why:
            status, reason = why.status, why.reason
            if isinstance(why, Denied):
                notes.deny(why.reason, *why.allow)
        except Exception as error:
            status, reason = FAILED, "%s: %s" % (type(error).__name__, str(error)[:500])
        box.update(status=status, reason=reason, value=value)

    def _note_secrets(self) -> None:
        for name in SECRETS_FROM:
            if name in self.values and isinstance(self.values[name], dict):
                self._output.redactor.learn_from(self.values[name])
        if all(name in self.values for name in SECRETS_FROM if name in self._ended):
            self._secrets_known.set()

    def _wait_for_secrets(self, limit: float) -> None:
        self._secrets_known.wait(max(0.0, self._started + limit - time.monotonic()))

    def _print(self, probe: Probe, status: str, reason: str, value: Any, notes: Notes, took: float) -> None:
        with self._lock:
            if self._printed.get(probe.name):
                return
            self._printed[probe.name] = True
        self._output.write(
            {
                "probe": probe.name,
                "status": status,
                "reason": reason,
                "duration": round(took, 4),
                "subject": notes.subject,
                "sources": list(notes.sources),
                "remarks": list(notes.remarks),
                "denied": list(notes.denied),
                "value": value,
            }
        )


def _chosen(request: Request) -> List[Probe]:
    """All, those that are asked for with what they need, or what belongs to a container that was named."""
    container = request.get("container")
    if isinstance(container, dict):
        of_host = () if container.get("engine") == "k8s" else containers.OF_HOST
        return [probe for probe in PROBES if probe.name in containers.OUTSIDE + of_host]
    if request.get("is_inside"):
        return [probe for probe in PROBES if probe.name not in containers.OUTSIDE]
    wanted = request.get("probes")
    probes = PROBES + (OF_RAY if request.get("is_ray_node") else ())
    return [probe for probe in probes if not wanted or probe.name in _with_needs(wanted)]


def _with_needs(names: List[str]) -> List[str]:
    wanted = list(names)
    by_name = {probe.name: probe for probe in PROBES}
    for name in wanted:
        if name in by_name:
            wanted.extend(need for need in by_name[name].needs if need not in wanted)
    return wanted


class Input:
    """Standard input, a line at a time, with a deadline; unbuffered, so that nothing of a later request is lost."""

    def __init__(self) -> None:
        self._buffer = b""

    def take_buffered(self) -> None:
        """Takes what Python's own reader holds beyond the text of this program, which came over the same input."""
        reader = sys.stdin.buffer
        if not isinstance(reader, io.BufferedReader):
            return
        os.set_blocking(0, False)
        try:
            self._buffer += reader.read1(1 << 22) or b""
        finally:
            os.set_blocking(0, True)

    def line(self, timeout: float) -> Optional[bytes]:
        """The next line; None at the end of the input or when nothing came in time."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([0], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(0, 1 << 16) if ready else b""
            if not chunk:
                last, self._buffer = self._buffer, b""
                return last or None
            self._buffer += chunk
            if len(self._buffer) > 1 << 22:
                return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line


class Watch:
    """Ends the program when nobody reads its output any more, or when it has lived too long (``life``, in seconds)."""

    def __init__(self) -> None:
        self.life = LONGEST_LIFE
        self._born = time.monotonic()

    def run(self) -> None:
        poll = select.poll()
        poll.register(1, 0)
        while time.monotonic() - self._born < self.life:
            if poll.poll(500):
                break
        end(0)


def end(status: int) -> None:
    """Kills what still runs and leaves at once, also when a thread hangs in a system call."""
    commands.end_all()
    os._exit(status)


def parse_request(line: Optional[bytes]) -> Request:
    if not line or not line.strip():
        return {}
    try:
        request = json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return {"error": "the request is not JSON"}
    return request if isinstance(request, dict) else {"error": "the request is not a mapping"}


def _framing(request: Request) -> int:
    """How long the lines of framed answers may be."""
    wanted = request.get("line")
    return wanted if isinstance(wanted, int) and 4 <= wanted <= 1 << 20 else LINE


def seconds(value: Any, default: float) -> float:
    """A number of seconds from a request; ``default`` for anything else."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return min(float(value), LONGEST_LIFE) if is_number and value > 0 else default


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, lambda _number, _frame: end(0))
    watch = Watch()
    watcher = threading.Thread(target=watch.run)
    watcher.daemon = True
    watcher.start()
    source = Input()
    source.take_buffered()
    request = parse_request(source.line(30.0))
    is_once = request.get("is_once") is True
    output = Output(Redactor(), bool(request.get("is_inside")), _framing(request) if is_once else 0)
    watch.life = seconds(request.get("life"), LONGEST_LIFE)
    started = time.monotonic()
    collection = Collection(request, output)
    collection.run()
    output.write(
        {
            "end": {
                "duration": round(time.monotonic() - started, 4),
                "redacted": dict(output.redactor.counts),
                "python": ".".join(map(str, sys.version_info[:3])),
            }
        }
    )
    if is_once:
        output.finish()
        end(0)
    idle = seconds(request.get("idle"), IDLE_DEADLINE)
    while True:
        line = source.line(idle)
        if line is None or line.strip() == b"quit":
            end(0)
        asked = parse_request(line)
        if asked:
            output.write(collection.answer(asked))
