"""What was seen of a live process, as the lines of a log: causes find their signs in them, and evidence quotes them.

process 4711 (python serve.py): state S (sleeping), 3 threads, started 6 min 52 s ago; in 1.0 s: 0.00 s of CPU, 0 bytes read
lock file /root/.cache/flashinfer/.../tmp/sampling.lock (flock): held by process 77 (python build.py), state T (stopped), ...
Python thread 4711 (MainThread) of process 4711:
    acquire (/opt/venv/lib/python3.11/site-packages/filelock/_api.py:312)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import msgspec

from gpuwhy.model.event import Log, LogLine
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.hang import (
    BuildProgress,
    Connection,
    GpuActivity,
    LockFile,
    Observation,
    OtherProcess,
    PythonThread,
    RunningCompiler,
    WatchedProcess,
    WatchedThread,
    WeightFile,
)

KIND = "process"
"""The kind of such a log, and the source of places in it."""

STATES = {
    "R": "running", "S": "sleeping", "D": "in the kernel, not to be interrupted", "T": "stopped", "t": "stopped by a debugger",
    "Z": "ended, not collected by its parent", "X": "dead", "I": "idle", "P": "parked",
}  # fmt: skip

FRAME = "    "
"""What stands in front of a frame of a Python stack."""

MOST_PROCESSES = 24
SHOWN_THREADS = 4
LONGEST_NAME = 80

SPINS_AT = 99
IDLE_MEMORY = 3
"""A GPU in use at 99 % with its memory in use at 3 % or less runs a kernel that only asks for a flag."""
SPINNING_POWER = 0.6
"""Share of the power limit below which such a kernel stays; real work takes more."""

Key = tuple[str, Hashable]


class ProcessLog(msgspec.Struct, frozen=True):
    """The lines, and where each thing that was seen stands among them."""

    log: Log
    numbers: dict[Key, int]

    def evidence(self, kind: str, of: Hashable, statement: str) -> Evidence | None:
        """Evidence that quotes the line of a thing; None when it has none."""
        number = self.numbers.get((kind, of))
        if number is None:
            return None
        return Evidence(statement, self.log.lines[number - 1].text.strip(), Place(KIND, self.log.name, number))


def log_of(seen: Observation, time: float | None) -> ProcessLog:
    """The lines for an observation that was made at ``time`` (seconds since the epoch)."""
    lines: list[LogLine] = []
    numbers: dict[Key, int] = {}
    for key, text in _lines(seen):
        lines.append(LogLine(len(lines) + 1, text, text, time=time))
        if key is not None:
            numbers.setdefault(key, len(lines))
    return ProcessLog(Log(f"process {seen.pid}", KIND, tuple(lines)), numbers)


def _lines(seen: Observation) -> Iterator[tuple[Key | None, str]]:
    for process in seen.own[:MOST_PROCESSES]:
        yield ("process", process.pid), _process(process)
    for lock in seen.locks:
        yield ("lock", lock.path), _lock(lock, seen)
    for compiler in seen.compilers[:MOST_PROCESSES]:
        yield ("compiler", compiler.pid), _compiler(compiler)
        if compiler.build is not None:
            yield ("build", compiler.build.folder), _build(compiler.build)
    for file in seen.files[:MOST_PROCESSES]:
        yield ("file", file.path), _file(file)
    for connection in seen.connections:
        yield ("connection", connection.inode), _connection(connection)
    for gpu in seen.gpus:
        yield ("gpu", gpu.index), _gpu(gpu)
    for process in seen.own[:MOST_PROCESSES]:
        for thread in process.threads[:SHOWN_THREADS]:
            yield ("thread", (process.pid, thread.tid)), _thread(process, thread)
    for stacks in seen.stacks:
        if stacks.problem:
            yield None, f"no Python stack of process {stacks.pid}: {stacks.problem}"
        for python in stacks.threads:
            yield ("stack", (stacks.pid, python.tid)), f"{_python_thread(python)} of process {stacks.pid}:"
            for frame in python.frames:
                yield None, f"{FRAME}{frame.function} ({frame.path}:{frame.line})"


def _process(process: WatchedProcess) -> str:
    read = process.read_bytes if process.read_bytes is not None else process.rchar
    amount = "" if read is None else f", {amount_of(max(read, process.rchar or 0))} read"
    threads = f"{process.thread_count} thread{'s' * (process.thread_count != 1)}"
    return (
        f"process {process.pid} ({named(process.command, process.name)}): {state_of(process.state)}, {threads}, started "
        f"{duration(process.age)} ago; in {process.seconds:.1f} s: {process.cpu_used:.2f} s of CPU{amount}"
    )


def _lock(lock: LockFile, seen: Observation) -> str:
    kind = "baton of torch" if lock.kind == "baton" else "flock"
    if not lock.holders:
        who = "no process" if lock.all_seen else "none of the processes that this user may look into"
        held = f"there for {duration(lock.age)}, and {who} has it open" if lock.kind == "baton" else "held by nobody"
        return f"lock file {lock.path} ({kind}): {held}"
    held = "; ".join(f"held by {holder_of(each, seen)}" for each in lock.holders)
    return f"lock file {lock.path} ({kind}): {held}{_wanted(lock, seen)}"


def _wanted(lock: LockFile, seen: Observation) -> str:
    """Who wants the lock: one of these processes, another, or somebody."""
    own = {each.pid for each in seen.own}
    waiting = [str(pid) for pid in lock.waiters if pid in own]
    opening = [str(pid) for pid in lock.openers if pid in own]
    if waiting:
        return f"; waited for in the kernel by process {', '.join(waiting)}"
    if opening:
        return f"; opened again and again by process {', '.join(opening)}"
    others = (*lock.waiters, *lock.openers)
    if others:
        return f"; wanted by another, process {others[0]}"
    return "; some process opens it again and again" if lock.is_tried else ""


def holder_of(holder: OtherProcess, seen: Observation) -> str:
    """A process that holds something: whether it lives, in which state, and whether it gets on."""
    if not holder.alive:
        return f"process {holder.pid}, which is no longer there"
    said = (
        f"process {holder.pid} ({named(holder.command)}), {state_of(holder.state)}, started {duration(holder.age)} ago"
    )
    process = seen.process(holder.pid)
    if process is None:
        return said
    compiling = [each for each in seen.compilers if each.pid in seen.below(holder.pid)]
    below = f"{compiling[0].tool} runs below it" if compiling else "no compiler runs below it"
    return f"{said}, {process.cpu_used:.2f} s of CPU in {process.seconds:.1f} s, {below}"


def _compiler(compiler: RunningCompiler) -> str:
    output = f", writes {compiler.output}" if compiler.output else ""
    state = state_of(compiler.state)
    return f"compiler {compiler.tool}, process {compiler.pid}: runs for {duration(compiler.age)}, {compiler.cpu:.1f} s of CPU, {state}{output}"


def _build(build: BuildProgress) -> str:
    last = f", the last {duration(build.last_finished)} ago" if build.last_finished is not None else ""
    return f"ninja in {build.folder}: {build.finished} of {build.steps} steps finished{last}"


def _file(file: WeightFile) -> str:
    at = "mapped" if file.position is None else f"read up to {amount_of(file.position)}"
    row = (
        f", file {file.number} of {file.count} beside it" if file.number is not None and file.count is not None else ""
    )
    return f"weights {file.path}: {amount_of(file.size)}, {at}{row}"


def _connection(connection: Connection) -> str:
    if connection.state == "LISTEN":
        waiting = f", {connection.unread} connections not accepted" if connection.unread else ""
        return f"process {connection.pid} listens on {connection.local}{waiting}"
    parts = [f"connection of process {connection.pid} to {connection.peer}: {connection.state}"]
    if connection.retransmits:
        parts.append(f"sent again {connection.retransmits} times without an answer")
    if connection.unsent:
        parts.append(f"{connection.unsent} bytes not acknowledged")
    if connection.unread:
        parts.append(f"{connection.unread} bytes not read")
    peer = connection.peer_process
    if peer is not None:
        parts.append(f"at its other end process {peer.pid} ({named(peer.command)}), {state_of(peer.state)}")
    if connection.accepted is False:
        parts.append("which has not accepted it" if peer is not None else "nobody there has accepted it")
    return ", ".join(parts)


def spins(gpu: GpuActivity) -> bool:
    """Whether a kernel runs all the time that moves no data: it asks for a flag, as a collective does that waits."""
    is_busy = len(gpu.gpu) >= 2 and min(gpu.gpu) >= SPINS_AT
    is_still = bool(gpu.memory) and max(gpu.memory) <= IDLE_MEMORY
    is_cool = not gpu.power or not gpu.power_limit or max(gpu.power) <= SPINNING_POWER * gpu.power_limit
    return is_busy and is_still and is_cool


def _gpu(gpu: GpuActivity) -> str:
    watts = max(gpu.power, default=None)
    limit = f" of {gpu.power_limit:.0f} W" if gpu.power_limit else ""
    power = f", {watts:.0f} W{limit}" if watts is not None else ""
    busy = "/".join(map(str, gpu.gpu)) or "?"
    memory = "/".join(map(str, gpu.memory)) or "?"
    if spins(gpu):
        return f"GPU{gpu.index}: busy 100% in each of {len(gpu.gpu)} looks and moves no data, its memory busy {memory} %{power}"
    return f"GPU{gpu.index}: in use {busy} percent, its memory {memory} percent{power}"


def _thread(process: WatchedProcess, thread: WatchedThread) -> str:
    parts = [f"thread {thread.tid} ({thread.name}) of process {process.pid}: {state_of(thread.state)}"]
    if thread.cpu_used:
        parts.append(f"{thread.cpu_used:.2f} s of CPU")
    if thread.call:
        parts.append(f"in the system call {thread.call}" + (f" on {thread.on}" if thread.on else ""))
    if thread.wchan:
        parts.append(f"sleeps in {thread.wchan}")
    if thread.kernel_stack:
        parts.append(f"kernel: {' < '.join(thread.kernel_stack[:6])}")
    return ", ".join(parts)


def _python_thread(thread: PythonThread) -> str:
    gil = ", holds the GIL" if thread.holds_gil else ""
    return f"Python thread {thread.tid} ({thread.name}{gil})"


def named(command: Iterable[str], name: str = "") -> str:
    """A command line in a few words: the program, and the script or module that it runs."""
    words = list(command)
    if not words or not words[0]:
        return name or "unknown"
    shown = [_base(words[0])]
    for at, word in enumerate(words[1:], 1):
        if word in ("-m", "-c") and at + 1 < len(words):
            shown += [word, words[at + 1]]
            break
        if not word.startswith("-"):
            shown.append(_base(word))
            break
    text = " ".join(" ".join(shown).split())
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 3] + "..."


def _base(word: str) -> str:
    return word.rstrip("/").rpartition("/")[2]


def state_of(state: str) -> str:
    return f"state {state} ({STATES[state]})" if state in STATES else f"state {state or '?'}"


def duration(seconds: float) -> str:
    """``45 s``, ``6 min 52 s``, ``2 h 3 min``, ``3 d 4 h``."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s" if whole or not seconds else f"{seconds:.1f} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def amount_of(count: float) -> str:
    """``0 bytes``, ``64.0 KiB``, ``1.5 GiB``."""
    if count < 1024:
        return f"{int(count)} bytes"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"
