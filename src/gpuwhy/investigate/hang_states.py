"""From what was seen of a live process to what it waits for; the surest answers are asked first."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from gpuwhy.investigate.hang_lines import ProcessLog, amount_of, duration, named, spins, state_of
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.hang import (
    Connection,
    GpuActivity,
    LockFile,
    Observation,
    OtherProcess,
    PythonFrame,
    RunningCompiler,
    Waiting,
    WatchedProcess,
    WatchedThread,
)

MOVES_CPU = 0.05
"""Share of a CPU above which a process gets on; below it timers and keep-alives are at work."""
COMPUTES = 0.5
"""Share of a CPU of one thread that computes and does not wait."""
COMPUTES_WHERE_BUSY = 0.1
"""The same of a thread that would run at this moment, where others use the CPUs too."""
MOVES_BYTES = 64 << 10
"""Bytes a second above which a process reads something."""
RECENT_STEP = 60.0
"""Seconds since the last finished step of a build that still count as getting on."""

_BATON_CODE = re.compile(r"torch/utils/file_baton\.py$")
_LOCK_CODE = re.compile(r"filelock/|torch/utils/file_baton\.py$|portalocker/|fasteners/")
_COLLECTIVE_CODE = re.compile(
    r"distributed_c10d\.py$|pynccl|custom_all_reduce|quick_all_reduce|parallel_state\.py$|torch/cuda/(?:__init__|streams|graphs)\.py$|nccl"
)
_COLLECTIVE_CALL = re.compile(
    r"all_?reduce|all_?gather|broadcast|reduce_?scatter|barrier|all_?to_?all|\bsend\b|\brecv\b|synchronize|\bwait\b",
    re.IGNORECASE,
)
_MEETING_CODE = re.compile(
    r"torch/distributed/rendezvous\.py$|stateless_process_group|torch/distributed/elastic/rendezvous"
)
_MEETING_CALL = re.compile(
    r"init_process_group|_store_based_barrier|_new_process_group_helper|new_group|TCPStore|rendezvous"
)
_EVENT_LOOP = frozenset(("epoll_wait", "epoll_pwait", "accept", "accept4", "poll", "ppoll", "select", "pselect6"))
"""System calls in which a server waits for its next request."""
_LOADING_CODE = re.compile(
    r"safetensors|weight_utils|model_loader|load_model|modeling_utils\.py$|torch/serialization\.py$|gguf"
)
_NETWORK_STORAGE = re.compile(r"^(?:nfs|rpc_|ceph|fuse|cifs|smb|lustre|ll_|ptlrpc|p9_|netfs)")
_DRIVER = re.compile(r"^(?:nv|uvm|os_acquire|rm_|_nv)")
_ON_A_SOCKET = re.compile(r"^socket:\[(\d{1,20})\]$")


class View(msgspec.Struct, frozen=True):
    """The observation with the lines that tell of it."""

    seen: Observation
    log: ProcessLog

    @property
    def title(self) -> str:
        asked = self.seen.asked
        return f"process {asked.pid} ({named(asked.command, asked.name)})"

    def frames(self, pid: int, tid: int | None = None) -> tuple[PythonFrame, ...]:
        """The Python stack of a thread (the main one), innermost first."""
        for stacks in self.seen.stacks:
            if stacks.pid == pid:
                wanted = pid if tid is None else tid
                threads = [each for each in stacks.threads if each.tid == wanted or each.name == "MainThread"]
                exact = [each for each in threads if each.tid == wanted]
                chosen = exact or (threads if tid is None else [])
                if chosen:
                    return chosen[0].frames
        return ()

    def in_code(self, pattern: re.Pattern[str]) -> WatchedProcess | None:
        """The first own process whose main thread stands in such source files."""
        for process in self.seen.own:
            if any(pattern.search(frame.path) for frame in self.frames(process.pid)[:12]):
                return process
        return None

    def moves(self, pid: int) -> bool:
        """Whether the process, or one below it, used the CPU or read or wrote between the looks."""
        return any(_moves(each) for each in self.seen.processes if each.pid in self.seen.below(pid))

    def compilers_below(self, pid: int) -> tuple[RunningCompiler, ...]:
        return tuple(each for each in self.seen.compilers if each.pid in self.seen.below(pid))

    def all_of(self, *found: Evidence | None) -> tuple[Evidence, ...]:
        return tuple(dict.fromkeys(each for each in found if each is not None))


def _moves(process: WatchedProcess) -> bool:
    moved = max(process.rchar or 0, process.read_bytes or 0, process.write_bytes or 0, process.wchar or 0)
    return process.cpu_used > MOVES_CPU * process.seconds or moved > MOVES_BYTES * process.seconds


def waiting_of(seen: Observation, log: ProcessLog) -> Waiting:
    """What the process waits for, or does instead of waiting."""
    view = View(seen, log)
    for answer in _ANSWERS:
        waiting = answer(view)
        if waiting is not None:
            return _completed(view, waiting)
    return _completed(view, _unknown(view))


def _completed(view: View, waiting: Waiting) -> Waiting:
    frames = view.frames(waiting.pid)
    stack = tuple(f"{frame.function} ({frame.path}:{frame.line})" for frame in frames)
    problems = [f"no Python stack of process {each.pid}: {each.problem}" for each in view.seen.stacks if each.problem]
    since = f"; for {waiting.since_is} {duration(waiting.since)}" if waiting.since is not None else ""
    return msgspec.structs.replace(
        waiting,
        headline=waiting.headline + since,
        stack=stack,
        remarks=(*waiting.remarks, *view.seen.remarks, *dict.fromkeys(problems)),
    )


def _stopped(view: View) -> Waiting | None:
    """The process, or one below it, is stopped: by a signal, a debugger, or a terminal that it wanted to read from."""
    for process in view.seen.own:
        if process.state in ("T", "t"):
            whose = view.title if process is view.seen.asked else f"process {process.pid} ({named(process.command, process.name)}) below {view.title}"  # fmt: skip
            by = "by a debugger" if process.state == "t" else "by a signal (SIGSTOP, SIGTSTP) and waits for SIGCONT"
            return Waiting(
                pid=process.pid, state="stuck", what="stopped", headline=f"{whose} is stopped {by}", since=process.age, since_is="at most",
                evidence=view.all_of(view.log.evidence("process", process.pid, "the process is stopped")),
            )  # fmt: skip
    if view.seen.asked.state in ("Z", "X"):
        return Waiting(
            pid=view.seen.pid, state="stuck", what="ended", headline=f"{view.title} has ended, and its parent has not collected it",
            evidence=view.all_of(view.log.evidence("process", view.seen.pid, "the process has ended")),
        )  # fmt: skip
    return None


def _lock(view: View) -> Waiting | None:
    """A lock file that is waited for. Its holder tells whether that ends: stopped, gone, idle, or busy with the build."""
    for lock in sorted(view.seen.locks, key=lambda each: not each.waiters and not each.openers):
        waiter = _waiter(view, lock)
        if waiter is None or _moves(waiter) or any(each.pid == waiter.pid for each in lock.holders):
            continue
        if lock.kind == "baton" and not lock.holders:
            if view.compilers_below(view.seen.pid):
                continue
            nobody = "that nobody holds" if lock.all_seen else "that nobody holds, as far as this user can see"
            return _waits_for_lock(view, lock, waiter, f"{nobody}: it is left over from an earlier build", True)
        holder = next((each for each in lock.holders if not each.own), None) or next(iter(lock.holders), None)
        if holder is None:
            continue
        is_left = not holder.alive or holder.state in ("T", "t", "Z") or not view.moves(holder.pid)
        compilers = view.compilers_below(holder.pid)
        if compilers and holder.state not in ("T", "t"):
            how = f"held by {_other(holder)}, which compiles ({compilers[0].tool})"
            return _waits_for_lock(view, lock, waiter, how, False)
        how = f"held by {_other(holder)}, {_how_it_is(holder, is_left)}"
        return _waits_for_lock(view, lock, waiter, how, is_left)
    return _unseen_lock(view)


def _waiter(view: View, lock: LockFile) -> WatchedProcess | None:
    """The own process that waits for the lock: by the kernel's word, by its Python stack, or by how it polls.

    A lock that others want, and this one does not, lies in the same cache just as well.
    """
    known = (*lock.waiters, *lock.openers)
    for process in view.seen.own:
        if process.pid in known:
            return process
    if known:
        return None
    code = _BATON_CODE if lock.kind == "baton" else _LOCK_CODE
    if lock.is_tried or lock.kind == "baton":
        process_in_code = view.in_code(code)
        if process_in_code is not None:
            return process_in_code
    if lock.kind == "baton":
        return next((each for each in view.seen.own if not view.frames(each.pid) and _polls_for_a_baton(each)), None)
    # somebody opens the lock, who is not told: one of these that polls as filelock does, where no stack says otherwise
    return next(
        (
            each
            for each in view.seen.own
            if lock.is_tried and not view.frames(each.pid) and _polls_for_a_file_lock(each)
        ),
        None,
    )


def _polls(process: WatchedProcess) -> bool:
    """Whether its main thread sleeps by the clock: it looks for something again and again."""
    main = _main_thread(process)
    by_clock = ("clock_nanosleep", "nanosleep", "select", "pselect6")
    return main is not None and main.state == "S" and (main.call in by_clock or "nanosleep" in main.wchan)


def _polls_for_a_baton(process: WatchedProcess) -> bool:
    """torch looks for its baton ten times a second; on a busy machine a few times less."""
    return _polls(process) and 6 <= process.wakes / process.seconds <= 12


def _polls_for_a_file_lock(process: WatchedProcess) -> bool:
    """filelock tries twenty times a second."""
    return _polls(process) and 12 < process.wakes / process.seconds <= 25


def _unseen_lock(view: View) -> Waiting | None:
    """Its Python code waits for a lock, and the file was not found."""
    waits = view.in_code(_LOCK_CODE)
    if waits is None or _moves(waits) or view.compilers_below(view.seen.pid):
        return None
    frame = next(each for each in view.frames(waits.pid) if _LOCK_CODE.search(each.path))
    code = f"{frame.function} ({frame.path.rpartition('/')[2]})"
    return Waiting(
        pid=waits.pid, state="stuck", what="lock",
        headline=f"{view.title} waits for a lock in {code}; which file it is, and who holds it, could not be seen",
        since=waits.age, since_is="at most",
        evidence=view.all_of(view.log.evidence("stack", (waits.pid, waits.pid), "its main thread waits for a lock"), view.log.evidence("process", waits.pid, "it does nothing else")),
    )  # fmt: skip


def _how_it_is(holder: OtherProcess, is_left: bool) -> str:
    if not holder.alive:
        return "which is no longer there"
    if holder.state in ("T", "t"):
        return "which is stopped"
    return "which does nothing" if is_left else "which works"


def _waits_for_lock(view: View, lock: LockFile, waiter: WatchedProcess, how: str, is_left: bool) -> Waiting:
    whose = view.title if waiter.pid == view.seen.pid else f"process {waiter.pid} below {view.title}"
    is_sure = waiter.pid in (*lock.waiters, *lock.openers) or view.in_code(_LOCK_CODE) is waiter
    waits = "waits" if is_sure else "polls something, and most likely waits"
    return Waiting(
        pid=waiter.pid, state="stuck" if is_left else "progressing", what="lock",
        headline=f"{whose} {waits} for the lock file {lock.path}, {how}", since=waiter.age, since_is="at most",
        evidence=view.all_of(
            view.log.evidence("lock", lock.path, "the lock, and who holds it"),
            view.log.evidence("process", waiter.pid, "who waits does nothing else"),
            view.log.evidence("thread", (waiter.pid, waiter.pid), "where its main thread sleeps"),
            view.log.evidence("stack", (waiter.pid, waiter.pid), "its Python stack"),
        ),
    )  # fmt: skip


def _collective(view: View) -> Waiting | None:
    """Several GPUs of the process run a kernel that moves no data: they wait for each other."""
    mine = _gpus_of(view)
    spinning = [each for each in mine if spins(each)]
    if len(spinning) < 2:
        return None
    others = [each for each in mine if each not in spinning]
    frame = _frame_of_call(view)
    listed = ", ".join(f"GPU{each.index}" for each in spinning)
    left = (
        f"; {', '.join(f'GPU{each.index}' for each in others)} of the same process does not take part" if others else ""
    )
    where = f" (in {frame.function}, {frame.path.rpartition('/')[2]}:{frame.line})" if frame is not None else ""
    return Waiting(
        pid=view.seen.pid, state="stuck", what="collective",
        headline=f"{view.title}: {listed} wait for each other in a collective operation{where}: in use at 100% without moving data{left}",
        since=view.seen.asked.age, since_is="at most",
        evidence=view.all_of(
            *(view.log.evidence("gpu", each.index, "a kernel runs all the time and moves nothing") for each in mine[:8]),
            view.log.evidence("stack", (view.seen.pid, view.seen.pid), "its Python stack"),
        ),
    )  # fmt: skip


def _gpus_of(view: View) -> list[GpuActivity]:
    """The GPUs on which these processes compute; all, where the driver does not tell whose they are (in a container)."""
    owned = [each for each in view.seen.gpus if each.own]
    return owned or [each for each in view.seen.gpus if not each.pids]


def _frame_of_call(view: View) -> PythonFrame | None:
    for process in view.seen.own:
        for frame in view.frames(process.pid):
            if _COLLECTIVE_CODE.search(frame.path) and _COLLECTIVE_CALL.search(frame.function):
                return frame
    return None


def _compiling(view: View) -> Waiting | None:
    """Compilers run below the process: a start that takes its time, and how far it is."""
    compilers = view.compilers_below(view.seen.pid)
    if not compilers:
        return None
    builds = [each.build for each in compilers if each.build is not None]
    working = [each for each in compilers if (process := view.seen.process(each.pid)) is None or _moves(process) or each.state in ("R", "D")]  # fmt: skip
    is_recent = any(build.last_finished is not None and build.last_finished < RECENT_STEP for build in builds)
    lead = max(working or compilers, key=lambda each: (each.tool not in ("ninja", "make", "cmake", "sh"), each.cpu))
    far = f", {builds[0].finished} of {builds[0].steps} steps finished" if builds else ""
    many = f"{len(compilers)} processes of a build, " if len(compilers) > 1 else ""
    how = "" if working or is_recent else "; none of them used the CPU while it was looked at"
    return Waiting(
        pid=view.seen.pid, state="progressing" if working or is_recent else "unclear", what="compiling",
        headline=f"{view.title} waits for a compilation: {many}{lead.tool} ({lead.cpu:.0f} s of CPU){far}{how}",
        since=max(each.age for each in compilers), since_is="at least",
        evidence=view.all_of(
            *(view.log.evidence("build", build.folder, "how far the build is") for build in builds),
            *(view.log.evidence("compiler", each.pid, "a compiler that runs") for each in (lead, *compilers[:6])),
        ),
        remarks=() if working or is_recent else ("look again in a minute: a compiler that never uses the CPU is not getting on",),
    )  # fmt: skip


def _loading(view: View) -> Waiting | None:
    """Weights are being read: at which rate, and how much is left where the files beside each other tell."""
    files = [each for each in view.seen.files if each.position is None or each.position < each.size]
    pids = {each.pid for each in files}
    readers = [each for each in view.seen.own if each.pid in pids]
    is_mapped = any(each.position is None for each in files)
    read = sum(max(each.read_bytes or 0, 0 if is_mapped else each.rchar or 0) for each in readers)
    rate = read / max((each.seconds for each in readers), default=1.0)
    is_loading = rate > 0 or view.in_code(_LOADING_CODE) is not None
    if not files or not is_loading or not (rate > 0 or any(_moves(each) for each in readers)):
        return None
    at = max(files, key=lambda each: (each.number or 0, each.position or 0))
    total = at.total if at.total is not None else at.size
    done = (at.before or 0) + (at.position or 0)
    left = f", about {duration((total - done) / rate)} left at this rate" if rate >= 1024 and total > done else ""
    row = f"file {at.number} of {at.count}" if at.number is not None else at.path.rpartition("/")[2]
    part = f"{amount_of(done)} of {amount_of(total)}" if done else amount_of(total)
    return Waiting(
        pid=view.seen.pid, state="progressing", what="loading",
        headline=f"{view.title} reads weights: {row}, {part}, at {amount_of(rate)} a second{left}",
        since=view.seen.asked.age, since_is="at most",
        evidence=view.all_of(
            view.log.evidence("file", at.path, "the file that is read"),
            *(view.log.evidence("process", each.pid, "what it read while it was looked at") for each in readers[:4]),
        ),
    )  # fmt: skip


def _kernel(view: View) -> Waiting | None:
    """A thread sleeps in the kernel and cannot be interrupted: storage or a driver that does not answer."""
    for process in view.seen.own:
        deep = next((each for each in process.threads if each.state == "D"), None)
        if deep is None or _moves(process):
            continue
        where = deep.wchan or next(iter(deep.kernel_stack), "")
        names = (where, *deep.kernel_stack)
        kind = "a network file system" if any(map(_NETWORK_STORAGE.match, names)) else "the NVIDIA driver" if any(map(_DRIVER.match, names)) else "storage or a driver"  # fmt: skip
        inside = f" ({where})" if where else ""
        on = f", on {deep.on}" if deep.on.startswith("/") else ""
        return Waiting(
            pid=process.pid, state="stuck", what="kernel",
            headline=f"{view.title} waits in the kernel for {kind}{inside}{on}", since=process.age, since_is="at most",
            evidence=view.all_of(
                view.log.evidence("thread", (process.pid, deep.tid), "a thread that cannot be interrupted"),
                view.log.evidence("process", process.pid, "nothing moves"),
            ),
            remarks=() if deep.kernel_stack else (f"the kernel's stack is only for root: sudo cat /proc/{process.pid}/stack",),
        )  # fmt: skip
    return None


def _peer(view: View) -> Waiting | None:
    """A connection whose other end does not answer."""
    for process in view.seen.own:
        if _moves(process):
            continue
        mine = [each for each in view.seen.connections if each.pid == process.pid and not _is_of_a_caller(each, view)]
        waited = _waited_on(process)
        for connection in sorted(mine, key=lambda each: each.inode not in waited):
            how = _unanswered(connection, connection.inode in waited, view)
            if how:
                return _waits_for_peer(view, process, connection, how)
    return None


def _is_of_a_caller(connection: Connection, view: View) -> bool:
    """Whether the other end came to us: then it is not waited for an answer, but for the next request."""
    port = connection.local.rpartition(":")[2]
    return any(each.state == "LISTEN" and each.local.rpartition(":")[2] == port for each in view.seen.connections)


def _waited_on(process: WatchedProcess) -> frozenset[int]:
    """The sockets on which its threads sleep in a call."""
    found = (_ON_A_SOCKET.match(each.on) for each in process.threads if each.call not in ("accept", "accept4"))
    return frozenset(int(each[1]) for each in found if each is not None)


def _unanswered(connection: Connection, is_waited_on: bool, view: View) -> str:
    """How the other end does not answer; ``""`` when nothing says so."""
    peer = connection.peer_process
    if connection.state == "SYN_SENT":
        return "which does not answer"
    if connection.retransmits and connection.unsent:
        return "which does not acknowledge what is sent"
    if peer is not None and not peer.own and peer.state in ("T", "t"):
        return f"where {_other(peer)} is stopped"
    if peer is not None and peer.own:
        return ""
    if connection.accepted is False and is_waited_on:
        return (
            f"where {_other(peer)} has not accepted the connection" if peer is not None else "where nobody accepts it"
        )
    if connection.state == "CLOSE_WAIT" and is_waited_on:
        return "which has closed the connection"
    if is_waited_on and connection.state == "ESTABLISHED" and not connection.unread:
        at = f"where {_other(peer)} does not answer" if peer is not None else "which has not answered"
        return at if not view.moves(peer.pid if peer is not None else 0) else f"where {_other(peer)} is still at work"
    return ""


def _waits_for_peer(view: View, process: WatchedProcess, connection: Connection, how: str) -> Waiting:
    whose = view.title if process.pid == view.seen.pid else f"process {process.pid} below {view.title}"
    since, since_is = process.age, "at most"
    if connection.state == "SYN_SENT" and connection.retransmits:
        # the kernel asks again after 1, 2, 4 ... seconds
        since, since_is = float(2 ** min(connection.retransmits, 20) - 1), "at least"
    meeting = " to meet the other ranks," if _is_meeting(view.frames(process.pid)) else ""
    return Waiting(
        pid=process.pid, state="stuck", what="peer",
        headline=f"{whose} waits{meeting} for {connection.peer}, {how}", since=since, since_is=since_is,
        evidence=view.all_of(
            view.log.evidence("connection", connection.inode, "the connection"),
            view.log.evidence("thread", (process.pid, process.pid), "where its main thread sleeps"),
            view.log.evidence("process", process.pid, "it does nothing else"),
            view.log.evidence("stack", (process.pid, process.pid), "its Python stack"),
        ),
    )  # fmt: skip


def _is_meeting(frames: Sequence[PythonFrame]) -> bool:
    return any(_MEETING_CODE.search(frame.path) or _MEETING_CALL.search(frame.function) for frame in frames)


def _ranks(view: View) -> Waiting | None:
    """Its Python code stands where ranks meet, or in a collective operation, and nothing moves: others have not come."""
    for process in view.seen.own:
        frames = view.frames(process.pid)
        if not frames or _moves(process):
            continue
        call = next(
            (
                each
                for each in frames[:8]
                if _COLLECTIVE_CODE.search(each.path) and _COLLECTIVE_CALL.search(each.function)
            ),
            None,
        )
        is_meeting = _is_meeting(frames)
        if call is None and not is_meeting:
            continue
        whose = view.title if process.pid == view.seen.pid else f"process {process.pid} below {view.title}"
        frame = frames[0] if call is None else call
        where = f"(in {frame.function}, {frame.path.rpartition('/')[2]}:{frame.line})"
        mine = [each for each in view.seen.connections if each.pid == process.pid]
        ports = ", ".join(dict.fromkeys(each.local.rpartition(":")[2] for each in mine if each.state == "LISTEN"))
        at = f"; it listens on port {ports}" if ports and is_meeting else ""
        what = "for the other ranks to come" if is_meeting else "for the other ranks in a collective operation"
        return Waiting(
            pid=process.pid, state="stuck", what="peer" if is_meeting else "collective",
            headline=f"{whose} waits {what} {where}{at}", since=process.age, since_is="at most",
            evidence=view.all_of(
                view.log.evidence("stack", (process.pid, process.pid), "its Python stack"),
                view.log.evidence("process", process.pid, "it does nothing else"),
                *_others(view, process),
            ),
        )  # fmt: skip
    return None


def _others(view: View, process: WatchedProcess) -> list[Evidence | None]:
    """The processes of this host that it is connected to: one that stands elsewhere is the lead."""
    mine = [each for each in view.seen.connections if each.pid == process.pid and each.state == "ESTABLISHED"]
    others = [each for each in mine if each.peer_process is not None and not each.peer_process.own]
    return [view.log.evidence("connection", each.inode, "a process that it is connected to") for each in others[:4]]


def _callers(view: View) -> Waiting | None:
    """Others have connected or sent something, and nobody of these processes takes it up."""
    for process in view.seen.own:
        if _moves(process):
            continue
        for connection in view.seen.connections:
            if connection.pid != process.pid or not connection.unread:
                continue
            what = f"{connection.unread} connections to {connection.local} are not accepted" if connection.state == "LISTEN" else f"{connection.unread} bytes from {connection.peer} are not read"  # fmt: skip
            return Waiting(
                pid=process.pid, state="stuck", what="callers",
                headline=f"{view.title} does nothing, and {what}", since=process.age, since_is="at most",
                evidence=view.all_of(
                    view.log.evidence("connection", connection.inode, "somebody waits for it"),
                    view.log.evidence("thread", (process.pid, process.pid), "where its main thread sleeps"),
                    view.log.evidence("stack", (process.pid, process.pid), "its Python stack"),
                ),
            )  # fmt: skip
    return None


def _computing(view: View) -> Waiting | None:
    """A thread uses the CPU: it does not wait. Whether it ever ends, a look of a second cannot tell."""
    busiest: tuple[WatchedProcess, WatchedThread] | None = None
    for process in view.seen.own:
        for thread in process.threads:
            share = COMPUTES_WHERE_BUSY if thread.state == "R" else COMPUTES
            is_more = busiest is None or thread.cpu_used > busiest[1].cpu_used
            if thread.cpu_used > share * process.seconds and is_more:
                busiest = process, thread
    if busiest is None:
        return None
    process, thread = busiest
    frames = view.frames(process.pid, thread.tid)
    where = f" in {frames[0].function} ({frames[0].path.rpartition('/')[2]}:{frames[0].line})" if frames else ""
    share = 100 * thread.cpu_used / process.seconds
    return Waiting(
        pid=process.pid, state="unclear", what="computing",
        headline=f"{view.title} does not wait: thread {thread.tid} ({thread.name}) computes{where}, {share:.0f} % of a CPU",
        evidence=view.all_of(
            view.log.evidence("thread", (process.pid, thread.tid), "a thread that runs"),
            view.log.evidence("stack", (process.pid, thread.tid), "its Python stack"),
        ),
        remarks=("whether it gets on or runs in a circle shows when it is looked at again",),
    )  # fmt: skip


def _gpu_works(view: View) -> Waiting | None:
    busy = [each for each in _gpus_of(view) if each.gpu and min(each.gpu) >= 20]
    if not busy:
        return None
    still = [each for each in busy if spins(each)]
    evidence = view.all_of(*(view.log.evidence("gpu", each.index, "a kernel runs on it") for each in busy[:8]))
    if still and len(still) == len(busy):
        said = f"{view.title}: a kernel runs on GPU{still[0].index} all the time and moves no data"
        return Waiting(pid=view.seen.pid, state="unclear", what="gpu", headline=said, since=view.seen.asked.age, since_is="at most", evidence=evidence)  # fmt: skip
    said = f"{view.title} works: {len(busy)} GPU{'s' * (len(busy) != 1)} compute"
    return Waiting(pid=view.seen.pid, state="progressing", what="computing", headline=said, evidence=evidence)


def _idle(view: View) -> Waiting | None:
    """It listens, nobody waits for it, and all of it sleeps: a server without work."""
    listening = [each for each in view.seen.connections if each.state == "LISTEN"]
    main = _main_thread(view.seen.asked)
    # ranks of a distributed program listen too, and wait in other calls; without the call nothing is claimed
    is_in_loop = main is not None and main.call in _EVENT_LOOP
    if not listening or not is_in_loop or any(_moves(each) for each in view.seen.own):
        return None
    ports = ", ".join(dict.fromkeys(each.local.rpartition(":")[2] for each in listening[:6]))
    return Waiting(
        pid=view.seen.pid, state="idle", what="requests",
        headline=f"{view.title} waits for work: it listens on port {ports}, and nobody is waiting there",
        evidence=view.all_of(
            view.log.evidence("connection", listening[0].inode, "where it listens"),
            view.log.evidence("process", view.seen.pid, "all of it sleeps"),
        ),
        remarks=("a server that is stuck behind its open port looks the same from outside: send it a request",),
    )  # fmt: skip


def _unknown(view: View) -> Waiting:
    moving = [each for each in view.seen.own if _moves(each)]
    asked = view.seen.asked
    if moving:
        said = f"{view.title} gets on: it used {sum(each.cpu_used for each in moving):.2f} s of CPU in {asked.seconds:.1f} s"
        return Waiting(
            pid=asked.pid, state="progressing", what="unknown", headline=said,
            evidence=view.all_of(*(view.log.evidence("process", each.pid, "it moves") for each in moving[:4])),
        )  # fmt: skip
    main = _main_thread(asked)
    frames = view.frames(asked.pid)
    if frames:
        where = f"in {frames[0].function} ({frames[0].path.rpartition('/')[2]}:{frames[0].line})"
    elif main is not None and (main.call or main.wchan):
        where = f"in the system call {main.call}" if main.call else f"in the kernel's {main.wchan}"
    else:
        where = f"in {state_of(asked.state)}"
    return Waiting(
        pid=asked.pid, state="unclear", what="unknown",
        headline=f"{view.title} does nothing: its main thread sleeps {where}", since=asked.age, since_is="at most",
        evidence=view.all_of(
            view.log.evidence("stack", (asked.pid, asked.pid), "its Python stack"),
            view.log.evidence("thread", (asked.pid, asked.pid), "where its main thread sleeps"),
            view.log.evidence("process", asked.pid, "nothing moved"),
            *_others(view, asked),
        ),
    )  # fmt: skip


def _main_thread(process: WatchedProcess) -> WatchedThread | None:
    return next((each for each in process.threads if each.tid == process.pid), None)


def _other(process: OtherProcess | None) -> str:
    if process is None:
        return "a process"
    return f"process {process.pid} ({named(process.command)})" if process.alive else f"process {process.pid}"


_ANSWERS: Sequence[Callable[[View], Waiting | None]] = (
    _stopped,
    _lock,
    _collective,
    _compiling,
    _loading,
    _kernel,
    _peer,
    _ranks,
    _computing,
    _gpu_works,
    _callers,
    _idle,
)
