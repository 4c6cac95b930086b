"""Lines -> events.

One pass looks for the literals that any event can have; only lines that hold one (or have an error's level) are read
closely. Tracebacks come first, stream by stream; what they quote (frames and code) says nothing of its own. Messages
of exceptions are read again for what they carry: a compiler's error inside ``RuntimeError: Ninja build failed``.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from gpuwhy.logs import continuations, echoes, inventories, tracebacks
from gpuwhy.logs.attribution import attributed
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers import (
    builds,
    collectives,
    complaints,
    containers,
    crashes,
    cuda,
    deaths,
    informing,
    jobs,
    kernel,
    lifecycle,
    platforms,
    symptoms,
    tongues,
    units,
)
from gpuwhy.logs.recognisers._types import Recognised
from gpuwhy.logs.streams import split_streams
from gpuwhy.model.event import Event, Frame, Log, LogLine, RaisedException, Span
from gpuwhy.model.evidence import Place

MAX_EVENTS = 20_000
"""Events kept of one log: a crash loop of a week has fewer that differ."""
MAX_TEXT = 4000
MAX_ENGLISH = 400
MAX_GAP = 3
"""Lines (``...``, blank ones) between an exception and frames that are quoted below it."""
MAX_DUMP_LINES = 2000
"""Lines between a fatal error of the interpreter and its own thread, which faulthandler prints last of all."""
_SEVERE = frozenset({"warning", "error", "critical"})
EXCEPTION_LITERALS = (
    "error.",
    "exceptions.",
    "exc.",
    "Expired",
    "Timeout",
    "NotFound",
    "Traceback",
    'File "',
    "Error",
    "Exception",
    "Interrupt",
    "Exit",
    " in ",
    "During handling",
    "direct cause",
)
_IN_PROSE = Pattern(
    r"(?:^|[\s`'\"(\[:=>])(?P<type>(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt))(?P<rest>: ?.*|\((?P<quote>['\"]).*|:?\s*$)",
    re.DOTALL,
)
_CODE = Pattern(r"\s*(?:raise|except|return|from|import|class|def|if|elif|assert|self\.|@)\b|.*\bexcept \w")
_BULLET = Pattern(r"(?:[-*•>]|\d{1,3}[.)])\s+")
_PYTEST = Pattern(r"E\s{1,10}")
_MOMENT = Pattern(r"\b0x[0-9a-fA-F]{4,16}\b")


def find_events(log: Log) -> tuple[Event, ...]:
    """What happened according to ``log``, in its order; ids count from 0. The same event seen again (other ranks,
    retries) is one event with ``repeats``."""
    return tuple(numbered(fold(recognised(log))))


def recognised(log: Log) -> list[Event]:
    """All events of ``log`` in its order, each occurrence by itself; their ids mean nothing yet."""
    candidates = _candidates(log.lines)
    events: list[Event] = []
    if candidates:
        for stream in split_streams(log.lines):
            events.extend(_in_stream(log, stream, candidates))
            if len(events) > MAX_EVENTS:
                break
    events.sort(key=lambda event: (event.span.first, event.span.last))
    return _with_frames_below(_oom_kills_joined(events[:MAX_EVENTS]))


def _oom_kills_joined(events: Sequence[Event]) -> list[Event]:
    """The kernel tells of one OOM kill in two lines: the control group in the first, the process in the second."""
    joined: list[Event] = []
    for event in events:
        earlier = joined[-1] if joined else None
        if earlier is not None and _is_same_kill(earlier, event):
            detail = {**earlier.detail, **event.detail}
            span = Span(event.span.log, earlier.span.first, event.span.last)
            event = msgspec.structs.replace(event, detail=detail, span=span, unit=earlier.unit)
            joined.pop()
        joined.append(event)
    return joined


def _with_frames_below(events: Sequence[Event]) -> list[Event]:
    """Reporters quote the last line of a traceback first and some of its frames below it: that is one exception."""
    joined: list[Event] = []
    for event in events:
        earlier = joined[-1] if joined else None
        if earlier is not None and _are_its_frames(earlier, event):
            block = msgspec.structs.replace(earlier.exceptions[0], frames=event.exceptions[0].frames)
            span = Span(event.span.log, earlier.span.first, event.span.last)
            event = msgspec.structs.replace(earlier, exceptions=(block,), span=span)
            joined.pop()
        joined.append(event)
    return joined


def _are_its_frames(raised: Event, frames: Event) -> bool:
    return (
        raised.kind == frames.kind == "exception"
        and len(raised.exceptions) == len(frames.exceptions) == 1
        and not raised.exceptions[0].frames
        and not frames.exceptions[0].type
        and frames.process in (None, raised.process)
        and frames.span.log == raised.span.log
        and frames.span.first - raised.span.last <= MAX_GAP
    )


def _is_same_kill(constraint: Event, kill: Event) -> bool:
    return (
        constraint.tool == kill.tool == "oom"
        and "constraint" in constraint.detail
        and "constraint" not in kill.detail
        and not kill.is_echo
        and constraint.detail.get("pid", kill.detail.get("pid")) == kill.detail.get("pid", constraint.detail.get("pid"))
    )


def fold(events: Iterable[Event]) -> list[Event]:
    """Each event once, where it was first seen in time; the other places as ``repeats``."""
    groups: dict[object, list[Event]] = {}
    for event in events:
        groups.setdefault(_identity(event), []).append(event)
    folded: list[Event] = []
    for group in groups.values():
        first = _earliest(group)
        places = tuple(event.place for event in group if event is not first)
        fatal = any(event.is_fatal for event in group)
        folded.append(msgspec.structs.replace(first, repeats=places, is_fatal=fatal) if places else first)
    return folded


def numbered(events: Iterable[Event]) -> Iterator[Event]:
    for at, event in enumerate(events):
        yield msgspec.structs.replace(event, id=at)


def _earliest(group: Sequence[Event]) -> Event:
    """The first in time where all have one, else the first in place: a time and no time cannot be compared."""
    times = [event.time for event in group if event.time is not None]
    if len(times) < len(group):
        return group[0]
    return group[times.index(min(times))]


def _identity(event: Event) -> object:
    if event.kind == "unit":
        return id(event)
    if event.exceptions:
        said = tuple((block.type, _MOMENT.sub("", block.message)) for block in event.exceptions)
        if any(kind for kind, _ in said):
            return (event.kind, said[-1])
        return (
            event.kind,
            tuple((frame.path, frame.line) for block in event.exceptions for frame in block.frames[-1:]),
        )
    return (event.kind, event.tool, event.is_echo, _MOMENT.sub("", event.text))


_READERS = (
    builds,
    collectives,
    complaints,
    containers,
    crashes,
    cuda,
    deaths,
    informing,
    jobs,
    kernel,
    lifecycle,
    platforms,
    symptoms,
    tongues,
    units,
)
_BIT = {module: 1 << at for at, module in enumerate(_READERS)}
_EXCEPTION = 1 << len(_READERS)
_OWN_SEVERITY = frozenset({"kernel", "unit", "start", "ready", "warning"})
"""Kinds whose severity is in what they say, or told by their reader; the others' is the level of their line."""
_ALL = _EXCEPTION - 1
_BY_TEXT = (kernel, units, builds)
"""Readers that need no level, asked first: what they know is said in fixed words."""
_BY_LEVEL = (containers, jobs, deaths, platforms, collectives, cuda, crashes)


@functools.cache
def _literals() -> tuple[object, tuple[int, ...]]:
    """The automaton for all literals, and for each literal which readers want to see its line (a bit for each)."""
    import ahocorasick_rs

    wanted: dict[str, int] = dict.fromkeys(EXCEPTION_LITERALS, _EXCEPTION)
    for at, module in enumerate(_READERS):
        for literal in module.LITERALS:
            wanted[literal] = wanted.get(literal, 0) | 1 << at
    return ahocorasick_rs.AhoCorasick(list(wanted)), tuple(wanted.values())


def _candidates(lines: Sequence[LogLine]) -> dict[int, int]:
    """Positions of the lines that may say something, each with the readers that want to see it."""
    found = {at: _BIT[complaints] for at, line in enumerate(lines) if line.level in _SEVERE}
    starts = [0]
    length = 0
    for line in lines:
        length += len(line.text) + 1
        starts.append(length)
    automaton, wanted = _literals()
    whole = "\n".join([line.text for line in lines])
    at = 0
    for literal, begin, _ in automaton.find_matches_as_indexes(whole, overlapping=True):  # type: ignore[attr-defined]
        if not starts[at] <= begin < starts[at + 1]:  # overlapping matches come in the order of their ends
            at = bisect.bisect_right(starts, begin) - 1
        found[at] = found.get(at, 0) | wanted[literal]
    return found


def _in_stream(log: Log, stream: Sequence[int], candidates: Mapping[int, int]) -> Iterator[Event]:
    lines = [log.lines[at] for at in stream]
    quoted: set[int] = set()
    owned: set[int] = set()
    dumps: dict[int, tuple[Frame, ...]] = {}
    at = 0
    while at < len(lines):
        if stream[at] in candidates and tracebacks.starts(lines[at].text[:2000]):
            found = tracebacks.read(lines, at, log.name)
            if found is not None:
                quoted |= found.quoted
                owned |= found.owned
                if not _is_of_faulthandler(lines, at):
                    yield _of_traceback(log, lines, found)
                elif lines[at - 1].text.startswith("Current thread"):
                    dumps[at] = found.exceptions[0].frames
                at = max(found.last + 1, at + 1)
                continue
        at += 1
    at = 0
    while at < len(lines):
        if stream[at] in candidates and at not in quoted and at not in owned:
            event, end = _of_line(log, lines, at, candidates[stream[at]], quoted)
            if event is not None:
                yield _with_dump(event, at, dumps)
                at = end
                continue
        at += 1


def _is_of_faulthandler(lines: Sequence[LogLine], at: int) -> bool:
    """faulthandler's dumps have frames too; they belong to its ``Fatal Python error`` above."""
    return at > 0 and "most recent call first" in lines[at - 1].text


def _with_dump(event: Event, at: int, dumps: Mapping[int, tuple[Frame, ...]]) -> Event:
    """A fatal error of the interpreter with the frames of its thread, outermost first as everywhere else."""
    if event.tool != "python" or event.kind != "crash":
        return event
    dump = next((frames for begin, frames in dumps.items() if at < begin <= at + MAX_DUMP_LINES), None)
    if dump is None:
        return event
    said, _, message = event.text.partition("\n")[0].partition(": ")
    block = RaisedException(said, message, tuple(reversed(dump)), "", event.span)
    return msgspec.structs.replace(event, exceptions=(block,))


def _of_traceback(log: Log, lines: Sequence[LogLine], found: tracebacks.Traceback) -> Event:
    first, last = lines[found.first], lines[found.last]
    headline = _headline(found.exceptions)
    text = _said(headline)
    tool, detail = attributed(text)
    level = lines[max(found.owned, default=found.first)].level
    detail |= _in_english(text) | _severity(level)
    return Event(
        id=0,
        kind="exception",
        text=text,
        tool=tool,
        detail=detail,
        place=_place(log, _line_of(lines, found, headline)),
        span=Span(log.name, first.number, last.number),
        time=first.time if first.time is not None else last.time,
        process=first.process,
        unit=first.unit or last.unit,
        exceptions=found.exceptions,
        is_echo=all(_is_wrapper(block) for block in found.exceptions),
        is_fatal=level not in ("info", "debug", "warning") and not tracebacks.is_ignored(lines, found.first),
    )


def _headline(blocks: Sequence[RaisedException]) -> RaisedException:
    """Both kinds of chain point to their first exception; not if that is a mere wrapper or a failed look-up."""
    for at, block in enumerate(blocks):
        last = at == len(blocks) - 1
        look_up = block.type.rpartition(".")[2] in (
            "KeyError",
            "StopIteration",
            "Empty",
            "AttributeError",
            "queue.Empty",
        )
        if not _is_wrapper(block) and block.type and (last or not look_up):
            return block
    return next((block for block in reversed(blocks) if block.type), blocks[-1])


def _is_wrapper(block: RaisedException) -> bool:
    return bool(block.type) and echoes.points_backwards(f"{block.type}: {block.message.partition(chr(10))[0]}")


def _said(block: RaisedException) -> str:
    if not block.type:
        frame = block.frames[-1] if block.frames else None
        return f"traceback cut off in {frame.function or frame.path}" if frame else "traceback cut off"
    return f"{block.type}: {block.message}"[:MAX_TEXT] if block.message else block.type


def _line_of(lines: Sequence[LogLine], found: tracebacks.Traceback, block: RaisedException) -> LogLine:
    """The line where the headline stands."""
    for at in sorted(found.owned, reverse=True):
        line = lines[at]
        if (
            block.span is not None
            and block.span.first <= line.number <= block.span.last
            and block.type
            and block.type in line.text
        ):
            return line
    return lines[found.last]


def _of_line(log: Log, lines: Sequence[LogLine], at: int, wanted: int, quoted: set[int]) -> tuple[Event | None, int]:
    line = lines[at]
    if echoes.is_quotation(line.text) or inventories.is_row(line.text):
        return None, at + 1
    exception = _exception_in(line) if wanted & _EXCEPTION else None
    if exception is not None:
        event, end = _of_exception(log, lines, at, *exception)
        return event, at + 1 if event.is_echo else _without_inner(lines, at, end)
    found = _recognise(line, wanted)
    if wanted & _BIT[tongues]:
        found = _recognise_elsewhere(line) or found
    if found is None:
        return None, at + 1
    end = at + 1
    if found.takes_more:
        end = continuations.end_of(lines, at, found, quoted)
    text = "\n".join(part.text.rstrip() for part in lines[at:end]).strip()[:MAX_TEXT]
    event = Event(
        id=0,
        kind=found.kind,
        text=text,
        place=_place(log, line),
        span=Span(log.name, line.number, lines[end - 1].number),
        time=line.time,
        process=line.process,
        unit=found.unit or line.unit,
        tool=found.tool,
        detail=_detail(found, text) if found.kind in _OWN_SEVERITY else _severity(line.level) | _detail(found, text),
        is_echo=found.is_echo or _is_echo(found.kind, text),
        is_fatal=found.is_fatal,
    )
    return event, end


def _severity(level: str) -> dict[str, str]:
    return {"level": level} if level else {}


def _detail(found: Recognised, text: str) -> dict[str, str]:
    """What the first line told, and what the lines below it add."""
    if not found.takes_more or "\n" not in text:
        return found.detail
    if found.tool == "kubernetes":
        return {**found.detail, **containers.details_of_state(text)}
    if found.tool == "cuda":
        return {**cuda.details(text), **found.detail}
    return found.detail


def _is_echo(kind: str, text: str) -> bool:
    return echoes.points_backwards(text.partition("\n")[0]) or (kind == "warning" and echoes.is_noise(text))


def _recognise(line: LogLine, wanted: int) -> Recognised | None:
    """What ``line`` says, asked of the readers whose literals it holds; the most specific first."""
    text, level = line.text, line.level
    if line.process is not None and line.process.name in ("kernel", "systemd"):
        return kernel.recognise(text) or platforms.recognise(text) or units.recognise(text)
    found = complaints.recognise_python_warning(text)
    for text_reader in _BY_TEXT:
        if found is None and wanted & _BIT[text_reader]:
            found = text_reader.recognise(text)
    for reader in _BY_LEVEL:
        if found is None and wanted & _BIT[reader]:
            found = reader.recognise(text, level)
    if found is None and wanted & _BIT[lifecycle]:
        found = lifecycle.recognise(text)
    if found is None and wanted & _BIT[informing]:
        found = informing.recognise(text)
    if found is None and wanted & _BIT[symptoms]:
        found = symptoms.recognise(text, level)
    if found is None and wanted & _BIT[complaints]:
        found = complaints.recognise(text, level)
    return found


def _recognise_elsewhere(line: LogLine) -> Recognised | None:
    """What a line in another tongue says; its English is kept in ``detail``."""
    english = tongues.english(line.text)
    if english == line.text:
        return None
    found = _recognise(msgspec.structs.replace(line, text=english), _ALL)
    if found is None:
        return None
    return msgspec.structs.replace(found, detail={**found.detail, "english": english[:MAX_ENGLISH]})


def _in_english(text: str) -> dict[str, str]:
    """The English of an exception's headline, when it is in another tongue."""
    first = text.partition("\n")[0]
    english = tongues.english(first)
    return {} if english == first else {"english": english[:MAX_ENGLISH]}


def _exception_in(line: LogLine) -> tuple[str, str] | None:
    """Type and message of an exception that a line states outside of any traceback."""
    text = line.text
    if line.level in ("info", "debug") or (
        "Error" not in text and "Exception" not in text and "Interrupt" not in text and "." not in text
    ):
        return None
    shown = text[:2000]
    margin = _PYTEST.match(shown) or _BULLET.match(shown.lstrip())
    body = shown.lstrip()[margin.end() :] if margin else shown.strip()
    if tracebacks.starts_exception(body):
        name, _, message = body.partition(":")
        return name, message.strip()
    if _CODE.match(shown):
        return None
    found = _IN_PROSE.search(shown)
    if found is None:
        return None
    rest = found["rest"].strip()
    if rest.startswith("("):
        if not rest.rstrip("`., ").endswith(")"):
            return None
        return found["type"], _unquoted(rest.rstrip("`., ")[1:-1])
    if not rest.startswith(":"):
        return None
    return found["type"], rest[1:].strip()


def _unquoted(text: str) -> str:
    """The message of ``RuntimeError('...')``."""
    inner = text.rstrip(",")
    if len(inner) > 1 and inner[0] == inner[-1] and inner[0] in "'\"":
        inner = inner[1:-1]
    return inner.replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"')


def _of_exception(log: Log, lines: Sequence[LogLine], at: int, name: str, message: str) -> tuple[Event, int]:
    line = lines[at]
    end = tracebacks.read_message(lines, at) if line.text.strip().startswith((name, "E ")) else at + 1
    whole = "\n".join([message, *(part.text.rstrip() for part in lines[at + 1 : end])]).strip()[:MAX_TEXT]
    span = Span(log.name, line.number, lines[end - 1].number)
    block = RaisedException(name, whole, (), "", span)
    text = _said(block)
    tool, detail = attributed(text)
    detail |= _in_english(text) | _severity(line.level)
    event = Event(
        id=0,
        kind="exception",
        text=text,
        tool=tool,
        detail=detail,
        place=_place(log, line),
        span=span,
        time=line.time,
        process=line.process,
        unit=line.unit,
        exceptions=(block,),
        is_echo=_is_wrapper(block),
        is_fatal=line.level != "warning" and not name.endswith("Warning"),
    )
    return event, end


def _without_inner(lines: Sequence[LogLine], at: int, end: int) -> int:
    """Where to go on reading: at the first line of the message that another tool wrote."""
    for here in range(at + 1, end):
        if builds.recognise(lines[here].text) is not None or kernel.recognise(lines[here].text) is not None:
            return here
    return end


def _place(log: Log, line: LogLine) -> Place:
    return Place(log.kind, log.name, line.number)
