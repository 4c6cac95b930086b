"""What a trace answers, as immutable values: the guard, where its values come from, what reaches them, what was hidden."""

from __future__ import annotations

import msgspec

from gpuwhy.source.messages import Template


class Spot(msgspec.Struct, frozen=True):
    """A line of the source. ``path`` is as under site-packages; ``function`` is empty for code that runs on import."""

    path: str
    line: int
    function: str = ""
    code: str = ""


class Requirement(msgspec.Struct, frozen=True):
    """What has to be true for a line to run. ``is_weak``: had it been otherwise, an earlier raise would have come."""

    text: str
    line: int
    is_weak: bool = False


class WhatIf(msgspec.Struct, frozen=True):
    """With ``source`` being one of ``values`` (``empty``, ``None``, ``False``, ``True``), the line is reached
    ``always`` or ``never``."""

    source: str
    values: tuple[str, ...]
    outcome: str


class Guard(msgspec.Struct, frozen=True):
    """The line in question and when it is reached in its function, nearest condition first. ``raises`` and ``message``
    are empty for a call."""

    spot: Spot
    requires: tuple[Requirement, ...] = ()
    what_ifs: tuple[WhatIf, ...] = ()
    raises: str = ""
    message: str = ""


class Step(msgspec.Struct, frozen=True):
    """One step from the guard back to where a value comes from.

    ``kind``: definition, field, write, default, call, return, parameter, argument, new, re-export, table, property,
    by-name, swallowed, raise, caught, caller, environment, flag, subprocess, file, external, import, constant, unknown,
    projection (a value that was copied from a field of the same path), process (a function that the package runs in a
    process of its own), signal (a function that runs on a signal), sender (who sends it).
    ``note`` says what is special: a cache, a receiver that is only known by its name, a limit that cut the search.
    """

    kind: str
    text: str
    spot: Spot | None = None
    requires: tuple[Requirement, ...] = ()
    note: str = ""
    steps: tuple[Step, ...] = ()


class Switch(msgspec.Struct, frozen=True):
    """Something outside the code that reaches the guard.

    ``kind``: environment, flag, field (of a configuration), file, subprocess or external (a call into another package).
    ``read_when`` tells import from run; ``cached_by`` the cache that keeps the answer for the life of the process;
    ``consulted_if`` the conditions in its own function; ``witness`` the steps from the guard to it, nearest first.
    ``is_by_name``: a step on the way was only matched by a name.
    """

    kind: str
    name: str
    spots: tuple[Spot, ...]
    default: str = ""
    accepts: tuple[str, ...] = ()
    consulted_if: tuple[Requirement, ...] = ()
    read_when: str = ""
    cached_by: str = ""
    note: str = ""
    witness: tuple[Step, ...] = ()
    is_by_name: bool = False


class Hidden(msgspec.Struct, frozen=True):
    """An exception that a handler keeps from being seen. ``via`` are the functions between the try and the raise."""

    type: str
    message: Template
    spot: Spot
    via: tuple[str, ...] = ()
    requires: tuple[Requirement, ...] = ()


class SeenLine(msgspec.Struct, frozen=True):
    """A line of a log that was written with a message, how often it stands there, and the raise that its value is of."""

    log: str
    line: int
    text: str
    times: int
    raised_at: Spot | None = None


class LogText(msgspec.Struct, frozen=True):
    """What a handler prints, as a pattern, and where. ``silenced_by`` are the places that raise the level of its logger
    so that the line is not printed: it is no proof then that it is not in the log. ``seen`` are the lines of the log that
    was given."""

    level: str
    message: Template
    spot: Spot
    silenced_by: tuple[Spot, ...] = ()
    seen: tuple[SeenLine, ...] = ()


class Swallow(msgspec.Struct, frozen=True):
    """A handler that does not raise again: what it catches, what it prints, the raises below its try, and calls that
    may raise too. ``skips`` is what is not done then. ``more`` counts raises that are not listed.

    With a ``process``, the function whose process the handler stands around, it may raise again, and hides whatever
    fails in that process from the others."""

    spot: Spot
    catches: tuple[str, ...]
    skips: str
    logs: tuple[LogText, ...] = ()
    hides: tuple[Hidden, ...] = ()
    may_hide: tuple[str, ...] = ()
    more: int = 0
    process: str = ""


class Bypass(msgspec.Struct, frozen=True):
    """Another write of the same value, and how many of the hidden raises it runs, without protection."""

    spot: Spot
    requires: tuple[Requirement, ...]
    unprotected: int


class Use(msgspec.Struct, frozen=True):
    """``kind``: write, read, or maybe when what the attribute belongs to is not known."""

    kind: str
    path: str
    function: str
    lines: tuple[int, ...]


class BlastRadius(msgspec.Struct, frozen=True):
    """Everyone who reads or writes a value that the guard depends on."""

    value: str
    uses: tuple[Use, ...]
    others: int = 0
    """Attributes of that name that belong to other classes."""


class MappedFrame(msgspec.Struct, frozen=True):
    """A frame of the traceback on the installed source. ``differs`` says how they disagree: another release, or a
    patched file."""

    spot: Spot
    differs: str = ""


class ReadPackage(msgspec.Struct, frozen=True):
    """A package that was searched. ``parsed`` of its ``files`` were needed; ``not_understood`` names lines that the
    parser refused, ``left_out`` files that were not read."""

    name: str
    version: str
    files: int
    parsed: int
    is_complete: bool = True
    not_understood: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    installed: int = 0
    """Python files that it has on the target; ``files`` of them were fetched, the others searched for words there."""
    place: str = ""
    """The target, and the folder of the package there."""


class Fetched(msgspec.Struct, frozen=True):
    """What it took to look at a target: trips after the probes, files that came, files that were kept from before and are
    the same there, and how many characters came."""

    trips: int = 0
    files: int = 0
    kept: int = 0
    characters: int = 0


class Scope(msgspec.Struct, frozen=True):
    """What the answer rests on. ``cuts`` are the places where the search was cut off, and by what limit; ``outside``
    the packages whose calls are facts of the host; ``wanted`` files that have to be fetched for a better answer."""

    packages: tuple[ReadPackage, ...]
    cuts: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    fetched: Fetched | None = None


class Trace(msgspec.Struct, frozen=True):
    """The whole answer. ``problem`` says why there is none when ``guard`` is None."""

    question: str
    scope: Scope
    guard: Guard | None = None
    problem: str = ""
    frames: tuple[MappedFrame, ...] = ()
    origin: tuple[Step, ...] = ()
    switches: tuple[Switch, ...] = ()
    swallowed: tuple[Swallow, ...] = ()
    bypasses: tuple[Bypass, ...] = ()
    users: tuple[BlastRadius, ...] = ()


class Occurrence(msgspec.Struct, frozen=True):
    """Where a word stands. ``kind``: read, test, pop, setdefault, declared, write, delete, other (a comment, a text, an
    unrelated name). ``is_reachable``: the file is in the import closure of the package, as far as text can tell."""

    kind: str
    spot: Spot
    is_reachable: bool = True
    via: str = ""


class Absence(msgspec.Struct, frozen=True):
    """Whether an environment variable is read, with all that limits the answer.

    ``is_absent``: no reachable read was found, and ``caveats`` is the complete list of why that might be wrong.
    Without ``is_decided`` no read was found either, but not every file that could hold one was at hand.
    """

    name: str
    is_absent: bool
    files: int
    reachable: int
    occurrences: tuple[Occurrence, ...]
    dynamic_reads: tuple[Occurrence, ...]
    whole_environment: tuple[Occurrence, ...]
    caveats: tuple[str, ...]
    scope: Scope
    is_decided: bool = True


class FoundSymbol(msgspec.Struct, frozen=True):
    """Where a name is defined. ``kind``: function, class, value, import, module; ``requires`` when it is conditional."""

    dotted: str
    kind: str
    spot: Spot
    requires: tuple[Requirement, ...] = ()


class Moved(msgspec.Struct, frozen=True):
    """Why ``cannot import name`` came: where the name is now, and the nearest other names of the module."""

    module: str
    name: str
    is_module_there: bool
    here: tuple[FoundSymbol, ...]
    elsewhere: tuple[FoundSymbol, ...]
    nearest: tuple[str, ...]
    earlier: tuple[FoundSymbol, ...] = ()
    """The same in the other releases that were given, newest first; ``dotted`` starts with ``VERSION:``."""
    open_ends: tuple[str, ...] = ()
    """Where the name may come from all the same, when it was not found there."""
    scope: Scope | None = None
