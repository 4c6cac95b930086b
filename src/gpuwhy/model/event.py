"""Events: what a log says happened, with time, process and the lines it came from."""

from __future__ import annotations

import msgspec

from gpuwhy.model.evidence import Place


class Process(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who wrote a line: as far as the log's own prefixes tell. ``name`` is e.g. ``EngineCore`` or ``TP3``."""

    name: str = ""
    pid: int | None = None
    rank: int | None = None
    host: str = ""


class LogLine(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One line of a log, stripped of what loggers put in front of it.

    ``number`` counts from 1 in ``source`` (the index of a :class:`Log`'s name); ``text`` is the message without
    prefixes and control characters; ``raw`` the line as it stood (control characters neutralised). ``time`` is in
    seconds since the epoch when the log tells, without a time zone read as UTC. ``level`` is lower case: ``debug``,
    ``info``, ``warning``, ``error``, ``critical``, empty when the line has none. ``unit`` is the service manager's unit
    the line belongs to, when the source says so (a journal). A record that holds a message of several lines gives
    several lines of the same number.
    """

    number: int
    text: str
    raw: str
    process: Process | None = None
    time: float | None = None
    level: str = ""
    unit: str = ""


class Log(msgspec.Struct, frozen=True):
    """The lines of one source. ``kind`` is ``log``, ``journal``, ``kernel log`` or ``report``; ``name`` a path or unit."""

    name: str
    kind: str
    lines: tuple[LogLine, ...]
    notes: tuple[str, ...] = ()
    """What a reader should know about the text: truncated, re-encoded, binary parts left out."""


class Span(msgspec.Struct, frozen=True):
    """Lines ``first`` to ``last`` (inclusive, from 1) of the log called ``log``. Interleaved lines may lie between."""

    log: str
    first: int
    last: int


class Frame(msgspec.Struct, frozen=True, omit_defaults=True):
    """One frame of a Python traceback, outermost first in its list. ``code`` is the source line when printed."""

    path: str
    line: int | None
    function: str
    code: str = ""


class RaisedException(msgspec.Struct, frozen=True, omit_defaults=True):
    """One exception block. ``link`` says how it hangs on the one before it in its chain:

    ``""`` for the first raised, ``"during"`` (During handling of the above), ``"cause"`` (direct cause of).
    ``type`` is the dotted name as printed; ``message`` may hold several lines. ``frames`` may be empty when only the
    last line was pasted.
    """

    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    link: str = ""
    span: Span | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened.

    ``kind``:
      ``exception``  a Python exception with its chain (``exceptions``: first raised first; the last one surfaced)
      ``build``      a compiler, assembler, linker or build tool failed (``tool`` names it: nvcc, ptxas, cicc, gcc, ld, ninja, cmake)
      ``crash``      a process aborted in native code (SIGSEGV, terminate called, CHECK failed, ggml abort, CUDA error exit)
      ``warning``    a warning or an error line that is none of the others and that matters for judging
      ``kernel``     a kernel message (``tool`` is ``oom``, ``xid``, ``nvrm``, ``aer``, ``iommu``, ``segfault`` ...)
      ``unit``       a service manager's line: started, exited, restarted, failed (``detail`` holds status and result)
      ``death``      a program says that a process of its own died (exit code in ``detail``)
      ``start``      the service starts a new life
      ``ready``      the service says that it is up
    """

    id: int
    kind: str
    text: str
    """The headline: exception line, compiler error, kernel message; one logical message, lines joined by newline."""
    place: Place
    span: Span
    time: float | None = None
    process: Process | None = None
    unit: str = ""
    """The unit the lines belong to, or that a unit's or the kernel's message is about."""
    tool: str = ""
    exceptions: tuple[RaisedException, ...] = ()
    detail: dict[str, str] = {}
    is_echo: bool = False
    """True for messages that are never a cause: wrappers, echoes, launchers pointing backwards."""
    is_fatal: bool = False
    """True when the process did not go on after this."""
    repeats: tuple[Place, ...] = ()
    """Where the same event was seen again (other ranks, retries)."""
