"""Slurm: one task a node through srun, in a partition, in the allocation that it is called in, or beside a running job.

    0: gpuwhy-node gpu017;
    0: gpuwhy:eNq...
    0: gpuwhy-end 0;

srun marks every line with the number of its task (``--label``); which node that is the task itself says first. Not every
line is one that the task wrote: what a node's slurmstepd still holds when the task ends it sends in pieces of 1,024 bytes,
and srun ends each piece with a newline of its own (measured with Slurm 22.05.8: one task in twenty on a busy machine). So
lines of srun's are put together again, and taken apart where gpuwhy's own words stand, which Base64 cannot contain.
"""

from __future__ import annotations

import math
import os
import re
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO

import msgspec

from gpuwhy.collector.framing import MARK
from gpuwhy.fleet.engines.interface import Ended, FleetError, Pace, Payload, Watcher
from gpuwhy.fleet.engines.words import of_task
from gpuwhy.fleet.store import FAILED, REFUSED, TIMED_OUT, UNREACHABLE

_LABELLED = re.compile(rb"^ {0,9}(\d{1,9}): ?(.*)\Z", re.DOTALL)

_NODE, _END = re.compile(rb"gpuwhy-node ([^;\s]{1,255});"), re.compile(rb"gpuwhy-end (\d{1,3});\Z")
"""What each task says first and last; the semicolon tells where it is whole."""

_LONGEST_WORD = 300
"""Bytes: more than any of the two takes."""

_UNUSABLE = re.compile(
    r"^(?:down|drain|drng|fail|unk|boot|power|inval|perf|plan|maint|reboot|no_respond)|\*$", re.IGNORECASE
)
"""States of ``sinfo`` in which no task of ours would start; the asterisk says that the node does not respond."""

_ASKING = 30.0
"""Seconds for squeue, sinfo and scontrol: a controller that answers later is in trouble."""

_IMMEDIATE = 10
"""Seconds that an allocation may wait for its nodes."""


class Slurm:
    """``asked`` is a host list of Slurm's (``gpu[001-064]``), by default all nodes of the job or partition.

    Without both the allocation that gpuwhy runs in is used, or, outside of one, the default partition.
    """

    name = "slurm"

    def __init__(self, asked: str = "", partition: str = "", job: str = "") -> None:
        """Raises FleetError without Slurm's commands, and for names that cannot be any."""
        for what, word in (("a partition", partition), ("a job", job), ("a list of hosts", asked)):
            if word and not re.match(r"^[\w][\w.,:\[\]-]{0,65535}\Z", word):
                raise FleetError(f"{word!r} is no name of {what} in Slurm")
        if shutil.which("srun") is None:
            raise FleetError(
                "there is no srun on this machine",
                "Run gpuwhy where Slurm's commands are: on a login or submit host (package slurm-client).",
            )
        self._asked, self._partition = asked, partition
        self._job = job or ("" if partition else os.environ.get("SLURM_JOB_ID", ""))

    def nodes(self) -> list[str]:
        if self._asked:
            listed = self._asked
        elif self._job:
            listed = _said(
                "squeue", "--noheader", f"--jobs={self._job}", "--states=RUNNING", "--Format=NodeList:65535"
            ).strip()
        else:
            return list(self._states())
        if not listed:
            raise FleetError(f"job {self._job} has no nodes", "Does it run? squeue --jobs=ID")
        return list(dict.fromkeys(_said("scontrol", "show", "hostnames", listed).split()))

    def run(self, nodes: Sequence[str], payload: Payload, pace: Pace, watcher: Watcher) -> None:
        states = {} if self._job else self._states()
        able = [node for node in nodes if self._job or self._may_start(node, watcher, states)]
        with tempfile.TemporaryFile() as stdin:
            stdin.write(payload.stdin)
            stdin.flush()
            for slice_, pause in _slices(able, pace):
                begun = time.monotonic()
                for node in slice_:
                    watcher.started(node)
                self._run_slice(slice_, payload, stdin, watcher)
                time.sleep(max(0.0, begun + pause - time.monotonic()))

    def _may_start(self, node: str, watcher: Watcher, states: dict[str, State]) -> bool:
        state = states.get(node)
        if state is None:
            watcher.ended(Ended(node, b"", UNREACHABLE, "Slurm has no such node" + (" in this partition" if self._partition else "")))  # fmt: skip
        elif _UNUSABLE.search(state.name):
            why = f" ({state.reason})" if state.reason not in ("", "none") else ""
            watcher.ended(Ended(node, b"", UNREACHABLE, f"Slurm has it as {state.name}{why}"))
        elif not state.idle_cores:
            watcher.ended(Ended(node, b"", REFUSED, "all its cores belong to jobs; --job ID looks beside one of them"))
        else:
            return True
        return False

    def _states(self) -> dict[str, State]:
        chosen = [f"--partition={self._partition}"] if self._partition else []
        found: dict[str, State] = {}
        for line in _said("sinfo", "--noheader", "--Node", *chosen, "--format=%N|%T|%C|%P|%E").splitlines():
            name, state, cores, partition, reason = (line.split("|", 4) + [""] * 5)[:5]
            # without a name the default partition, which sinfo marks, is meant
            if (chosen or self._asked or partition.endswith("*")) and name not in found:
                found[name] = State(state, _idle(cores), reason.strip())
        return found

    def _run_slice(self, nodes: Sequence[str], payload: Payload, stdin: IO[bytes], watcher: Watcher) -> None:
        """One srun for all ``nodes``; where it could begin on none of them, each half is tried for itself."""
        step = _Step(self._command(nodes, payload), stdin, payload.limit + _IMMEDIATE)
        kept: set[str] = set()

        def keep(task: _Task) -> None:
            if task.node in nodes and task.node not in kept:
                kept.add(task.node)
                watcher.ended(Ended(task.node, task.output()))

        step.run(keep)
        if not step.tasks and len(nodes) > 1 and not step.is_over:
            half = len(nodes) // 2
            self._run_slice(nodes[:half], payload, stdin, watcher)
            self._run_slice(nodes[half:], payload, stdin, watcher)
            return
        by_node = {task.node: task for task in step.tasks.values() if task.node}
        for node in nodes:
            if node not in kept:
                watcher.ended(_ended(node, by_node.get(node), step))

    def _command(self, nodes: Sequence[str], payload: Payload) -> list[str]:
        count = len(nodes)
        line = f'echo "gpuwhy-node $SLURMD_NODENAME;"; ({payload.line}); echo "gpuwhy-end $?;"'
        minutes = math.ceil((payload.limit + 60) / 60)
        placed = (
            [f"--jobid={self._job}", "--overlap"]
            if self._job
            else [
                f"--immediate={_IMMEDIATE}",
                "--cpus-per-task=1",
                *([f"--partition={self._partition}"] if self._partition else []),
            ]
        )
        return [
            "srun", *placed, "--job-name=gpuwhy", f"--time={minutes}", f"--nodes={count}", f"--ntasks={count}",
            "--ntasks-per-node=1", f"--nodelist={','.join(nodes)}", "--label", "--input=all", "--no-kill",
            "--kill-on-bad-exit=0", "--wait=0", "sh", "-c", line,
        ]  # fmt: skip


class State(msgspec.Struct, frozen=True):
    """A node as ``sinfo`` has it: its state in Slurm's words, how many cores no job has, and the administrator's reason."""

    name: str
    idle_cores: int
    reason: str


class _Task(msgspec.Struct):
    """What one task of a step wrote until now. ``exit_status`` is None until it said that it ended."""

    node: str = ""
    pieces: list[bytes] = []
    recent: bytes = b""
    errors: list[bytes] = []
    exit_status: int | None = None

    def take(self, piece: bytes) -> None:
        """One line of srun's, which may be the end of one that the task wrote, or its middle."""
        self.recent = self.recent[-_LONGEST_WORD:] + piece
        self.pieces.append(piece)
        if not self.node and (named := _NODE.search(self.recent)):
            self.node = named[1].decode("utf-8", "replace")
            self.recent = self.recent[named.end() :]
            self.pieces = [self.recent]
        if ended := _END.search(self.recent):
            self.exit_status = int(ended[1])

    def output(self) -> bytes:
        """What the task wrote, line by line as it did."""
        before, *framed = _END.sub(b"", b"".join(self.pieces)).split(MARK)
        return b"\n".join([*filter(None, [before]), *(MARK + line for line in framed)])


class _Step:
    """One srun with its output taken apart by task."""

    def __init__(self, command: Sequence[str], stdin: IO[bytes], limit: float) -> None:
        self.tasks: dict[int, _Task] = {}
        self.complaints: list[str] = []
        self.is_over = False
        self._on_success: Callable[[_Task], None] = lambda _task: None
        self._end = time.monotonic() + limit
        stdin.seek(0)
        # without these srun would take them for wishes about this step
        environment = {key: value for key, value in os.environ.items() if key not in ("SLURM_NTASKS", "SLURM_NNODES", "SLURM_NPROCS", "SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NTASKS_PER_NODE", "SLURM_CPU_BIND", "SLURM_DISTRIBUTION")}  # fmt: skip
        self._process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )

    def run(self, on_success: Callable[[_Task], None]) -> None:
        """Returns when srun has ended, or was ended when the time was over; hands on each task that is well as it ends."""
        self._on_success = on_success
        try:
            with selectors.DefaultSelector() as selector:
                rests = {stream: b"" for stream in (self._process.stdout, self._process.stderr) if stream is not None}
                for stream in rests:
                    selector.register(stream, selectors.EVENT_READ)
                while selector.get_map() and not self.is_over:
                    self.is_over = time.monotonic() > self._end
                    for key, _ in selector.select(max(0.0, min(1.0, self._end - time.monotonic()))):
                        stream = key.fileobj  # type: ignore[assignment]
                        chunk = os.read(key.fd, 1 << 18)
                        if not chunk:
                            selector.unregister(stream)
                        *lines, rest = (rests[stream] + chunk).split(b"\n")
                        rests[stream] = rest if chunk else b""
                        for line in lines if chunk else [*lines, rest]:
                            self._take(line, stream is self._process.stdout)
        finally:
            self._close()

    def _take(self, line: bytes, is_output: bool) -> None:
        labelled = _LABELLED.match(line)
        if labelled is None:
            text = line.decode("utf-8", "replace").strip()
            if text and not is_output and len(self.complaints) < 1000:
                self.complaints.append(text[:500])
            return
        task = self.tasks.setdefault(int(labelled[1]), _Task())
        said = labelled[2]
        if is_output:
            task.take(said)
            if task.exit_status == 0:
                self._on_success(task)
                task.pieces.clear()
        elif len(task.errors) < 100:
            task.errors.append(said)

    def _close(self) -> None:
        """Ends srun, and through it the step: what it started on a node that is silent ends there by itself."""
        for end in (self._process.terminate, self._process.kill):
            if self._process.poll() is not None:
                break
            end()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                continue
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._process.wait()


def _ended(node: str, task: _Task | None, step: _Step) -> Ended:
    about = [text for text in step.complaints if re.search(rf"\b{re.escape(node)}\b", text)] or step.complaints
    said = re.sub(r"^srun: (?:error: )?", "", about[-1]) if about else ""
    if task is None:
        status = TIMED_OUT if step.is_over else UNREACHABLE if "ode fail" in said else FAILED
        return Ended(node, b"", status, f"its task did not start: {said}" if said else "its task did not start")
    output = task.output()
    if task.exit_status is None:
        return Ended(node, output, TIMED_OUT if step.is_over else FAILED, said or "its task did not end in time")
    return Ended(node, output, *of_task(task.exit_status, b"\n".join(task.errors).decode("utf-8", "replace")))


def _slices(nodes: Sequence[str], pace: Pace) -> Iterator[tuple[Sequence[str], float]]:
    """Parts of at most ``concurrency`` nodes, each with the seconds that it has to last so that the rate is kept."""
    size = pace.concurrency if pace.rate <= 0 else max(1, min(pace.concurrency, math.floor(pace.rate)))
    for at in range(0, len(nodes), size):
        part = nodes[at : at + size]
        is_last = at + size >= len(nodes)
        yield part, len(part) / pace.rate if pace.rate > 0 and not is_last else 0.0


def _idle(cores: str) -> int:
    """The second of sinfo's ``allocated/idle/other/total``."""
    parts = cores.split("/")
    return int(parts[1]) if len(parts) == 4 and parts[1].isdigit() else 1


def _said(*command: str) -> str:
    """What one of Slurm's commands prints. Raises FleetError with its words."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_ASKING, check=False, stdin=subprocess.DEVNULL)  # fmt: skip
    except FileNotFoundError as error:
        raise FleetError(f"there is no {command[0]} on this machine", "It comes with srun: package slurm-client.") from error  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise FleetError(f"{command[0]} gave no answer in {_ASKING:.0f} s", "Does the controller answer? scontrol ping") from error  # fmt: skip
    if ended.returncode:
        words = " ".join(ended.stderr.split())[:300]
        raise FleetError(f"{' '.join(command)[:200]} failed: {words}", "Does the controller answer? scontrol ping")
    return ended.stdout
