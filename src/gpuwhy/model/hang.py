"""A live process that may hang: what was seen of it (:class:`Observation`), and what that comes to (:class:`Waiting`)."""

from __future__ import annotations

import msgspec

from gpuwhy.model.evidence import Evidence


class WatchedThread(msgspec.Struct, frozen=True, omit_defaults=True):
    """A thread: its state (``S``, ``R``, ``D``, ``T`` ...), the kernel function it sleeps in (``wchan``), the system call
    it is in and the file that is about (``on``), CPU seconds used between the two looks, the kernel's stack (root only)."""

    tid: int
    name: str = ""
    state: str = ""
    cpu_used: float = 0.0
    wchan: str = ""
    call: str = ""
    on: str = ""
    kernel_stack: tuple[str, ...] = ()


class WatchedProcess(msgspec.Struct, frozen=True, omit_defaults=True):
    """A process, looked at twice: ``seconds`` lie between the looks, ``cpu_used`` and the bytes moved in them.

    ``age`` and ``cpu`` are in seconds since its start. ``rchar`` are bytes read by calls, ``read_bytes`` those that came
    from storage; None where this user may not know. ``wakes`` counts how often the main thread slept between the looks. ``own``: the one asked about, or below it.
    """

    pid: int
    parent: int = 0
    name: str = ""
    command: tuple[str, ...] = ()
    state: str = ""
    age: float = 0.0
    cpu: float = 0.0
    seconds: float = 1.0
    cpu_used: float = 0.0
    wakes: int = 0
    major_faults: int = 0
    thread_count: int = 0
    threads: tuple[WatchedThread, ...] = ()
    rchar: int | None = None
    wchar: int | None = None
    read_bytes: int | None = None
    write_bytes: int | None = None
    own: bool = False


class PythonFrame(msgspec.Struct, frozen=True):
    """A frame of a running Python thread."""

    function: str
    path: str
    line: int = 0


class PythonThread(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Python thread and its frames, innermost first."""

    tid: int | None = None
    name: str = ""
    active: bool = False
    holds_gil: bool = False
    frames: tuple[PythonFrame, ...] = ()


class PythonStacks(msgspec.Struct, frozen=True, omit_defaults=True):
    """The Python stacks of a process, or ``problem``: why py-spy has none."""

    pid: int
    threads: tuple[PythonThread, ...] = ()
    problem: str = ""


class BuildProgress(msgspec.Struct, frozen=True, omit_defaults=True):
    """A build of ninja: ``finished`` of ``steps``; the last finished ``last_finished`` seconds ago."""

    folder: str
    steps: int
    finished: int
    last_finished: float | None = None


class RunningCompiler(msgspec.Struct, frozen=True, omit_defaults=True):
    """A compiler, assembler, linker or build tool that runs; ``age`` and ``cpu`` in seconds."""

    pid: int
    tool: str
    folder: str = ""
    output: str = ""
    source: str = ""
    state: str = ""
    age: float = 0.0
    cpu: float = 0.0
    build: BuildProgress | None = None


class OtherProcess(msgspec.Struct, frozen=True, omit_defaults=True):
    """A process at the other end of a lock or a connection. ``alive`` False: there is none of that number."""

    pid: int
    alive: bool = True
    command: tuple[str, ...] = ()
    state: str = ""
    age: float = 0.0
    own: bool = False


class LockFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A lock file of a build. ``kind`` is ``flock`` or ``baton`` (torch's: it locks by being there).

    ``age`` is in seconds since its last change. ``is_tried``: somebody opened it between the looks, to take it; ``openers``
    are the processes that did (only root is told). ``waiters`` wait for it in the kernel. ``all_seen``: every process was asked whether it has the file open (only root may).
    """

    path: str
    kind: str
    age: float = 0.0
    exists: bool = True
    is_tried: bool = False
    openers: tuple[int, ...] = ()
    all_seen: bool = False
    holders: tuple[OtherProcess, ...] = ()
    waiters: tuple[int, ...] = ()


class WeightFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file of weights that a process has open or mapped; sizes in bytes.

    It is the ``number``-th of ``count`` files beside it, which hold ``total`` bytes, ``before`` of them in earlier files.
    """

    pid: int
    path: str
    size: int = 0
    position: int | None = None
    number: int | None = None
    count: int | None = None
    before: int | None = None
    total: int | None = None


class Connection(msgspec.Struct, frozen=True, omit_defaults=True):
    """A TCP socket; ``unsent`` and ``unread`` are bytes, of a listening one ``unread`` counts unaccepted connections.

    ``peer_is_here``: the other end is on this host (None: it is elsewhere). ``accepted`` False: the program there has
    not taken the connection.
    """

    pid: int
    state: str
    local: str
    peer: str
    inode: int = 0
    unsent: int = 0
    unread: int = 0
    retransmits: int = 0
    peer_is_here: bool | None = None
    accepted: bool | None = None
    peer_process: OtherProcess | None = None


class GpuActivity(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a GPU did in a few looks within half a second: percent ``gpu`` and ``memory``, ``power`` in watts."""

    index: int
    name: str = ""
    gpu: tuple[int, ...] = ()
    memory: tuple[int, ...] = ()
    power: tuple[float, ...] = ()
    power_limit: float | None = None
    pids: tuple[int, ...] = ()
    own: bool = False


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """All that was seen of process ``pid`` and of those below it; the first of ``processes`` is the one asked about."""

    pid: int
    processes: tuple[WatchedProcess, ...]
    compilers: tuple[RunningCompiler, ...] = ()
    locks: tuple[LockFile, ...] = ()
    files: tuple[WeightFile, ...] = ()
    connections: tuple[Connection, ...] = ()
    gpus: tuple[GpuActivity, ...] = ()
    stacks: tuple[PythonStacks, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def asked(self) -> WatchedProcess:
        return self.processes[0]

    @property
    def own(self) -> tuple[WatchedProcess, ...]:
        """The process asked about, and those below it."""
        return tuple(each for each in self.processes if each.own)

    def process(self, pid: int) -> WatchedProcess | None:
        return next((each for each in self.processes if each.pid == pid), None)

    def below(self, pid: int) -> frozenset[int]:
        """``pid`` and the watched processes below it."""
        found = {pid}
        for each in self.processes:  # parents stand before their children
            if each.parent in found:
                found.add(each.pid)
        return frozenset(found)


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """What a live process waits for.

    ``state``: ``stuck`` (nothing moves, and something is waited for), ``progressing``, ``idle`` (it waits for work), or
    ``unclear``. ``what``: ``stopped``, ``ended``, ``lock``, ``compiling``, ``loading``, ``kernel`` (uninterruptible),
    ``peer``, ``collective``, ``callers`` (they wait for it), ``computing``, ``gpu`` (a kernel runs and moves nothing),
    ``requests``, ``unknown``.
    ``since`` is in seconds, ``since_is`` says whether that is ``at most``, ``at least`` or ``about``.
    """

    pid: int
    state: str
    what: str
    headline: str
    since: float | None = None
    since_is: str = ""
    evidence: tuple[Evidence, ...] = ()
    stack: tuple[str, ...] = ()
    """The Python stack of the thread that waits, innermost first, as ``function (path:line)``."""
    remarks: tuple[str, ...] = ()
