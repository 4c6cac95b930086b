"""The answer of ``gpuwhy trace`` as text: guard, origin, switches, what was swallowed, users, and what limits it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from gpuwhy.reports.neutral import plain
from gpuwhy.source.answers import Guard, ReadPackage, Requirement, Scope, SeenLine, Spot, Step, Swallow, Switch, Trace

HEADING, ANSWER, NOTE, QUOTE, SWALLOWED = "heading", "answer", "note", "quote", "swallowed"
_KINDS = {"environment": "env", "flag": "flag", "field": "config", "subprocess": "command", "file": "file", "external": "external"}  # fmt: skip
_SHORT = 16
"""Switches that are shown without --verbose."""
_WIDE = 150
_FRAMES = 8
"""Frames that are shown, the innermost."""
Line = tuple[str, str]
"""A line and its style."""


def render(trace: Trace, verbose: bool = False) -> str:
    return "".join(line + "\n" for line, _ in lines(trace, verbose))


def lines(trace: Trace, verbose: bool = False) -> Iterator[Line]:
    """The report, line by line; text of the source has its control characters written out."""
    for text, style in _all(trace, verbose):
        yield plain(text), style


def first_lines(trace: Trace) -> Iterator[Line]:
    """What is known before the slice: the question, the frames and the guard."""
    for text, style in (*_frames(trace), *(_guard(trace.guard) if trace.guard else ())):
        yield plain(text), style


def next_lines(trace: Trace, verbose: bool = False) -> Iterator[Line]:
    """What was found when the search had taken a while: what was swallowed, and who uses the value."""
    for text, style in (*_swallowed(trace, verbose), *_users(trace, verbose)):
        yield plain(text), style


def rest_lines(trace: Trace, verbose: bool = False, shown: Trace | None = None) -> Iterator[Line]:
    """What follows :func:`first_lines`, without what :func:`next_lines` has ``shown``."""
    if shown is not None:
        swallowed = tuple(each for each in trace.swallowed if each not in shown.swallowed)
        users = tuple(each for each in trace.users if each not in shown.users)
        trace = msgspec.structs.replace(trace, swallowed=swallowed, users=users)
    for text, style in _rest(trace, verbose):
        yield plain(text), style


def _all(trace: Trace, verbose: bool) -> Iterator[Line]:
    yield from _frames(trace)
    if trace.guard is None:
        yield (trace.problem or trace.question), ANSWER
    else:
        yield from _guard(trace.guard)
    yield from _rest(trace, verbose)


def _rest(trace: Trace, verbose: bool) -> Iterator[Line]:
    yield from _swallowed(trace, verbose)
    yield from _switches(trace.switches, verbose)
    yield from _origin(trace.origin, verbose)
    yield from _bypasses(trace)
    yield from _users(trace, verbose)
    yield from _scope(trace.scope, verbose)


def _frames(trace: Trace) -> Iterator[Line]:
    if not trace.frames:
        return
    yield "Traceback on the installed source", HEADING
    differing = [frame for frame in trace.frames if frame.differs]
    for frame in trace.frames[-_FRAMES:]:
        yield f"  {_at(frame.spot)}  {frame.spot.code}", QUOTE
    if len(trace.frames) > _FRAMES:
        yield f"  {len(trace.frames) - _FRAMES} frames before these", NOTE
    if differing:
        yield (
            f"  {len(differing)} of {len(trace.frames)} frames differ from it; the innermost: {differing[-1].differs}",
            NOTE,
        )


def _guard(guard: Guard) -> Iterator[Line]:
    said = f"{guard.raises}: {guard.message}" if guard.message else guard.raises
    yield said or guard.spot.code, ANSWER
    yield f"  {_at(guard.spot)}  {guard.spot.code}", QUOTE
    if not guard.requires:
        yield "  reached whenever the function runs", ""
    strong = [each for each in guard.requires if not each.is_weak]
    weak = [each for each in guard.requires if each.is_weak]
    for number, each in enumerate(strong):
        yield f"  {'reached when' if number == 0 else '         and'}  {_cut(each.text)}   (line {each.line})", ""
    if weak:
        yield f"  and no earlier raise: {_cut('; '.join(each.text for each in weak))}", NOTE
    for guess in guard.what_ifs:
        outcome = "always reached" if guess.outcome == "always" else "cannot be reached"
        yield f"  what if  {_cut(guess.source)} is {' or '.join(guess.values)}: {outcome}", ""


def _swallowed(trace: Trace, verbose: bool) -> Iterator[Line]:
    found = trace.swallowed if verbose else trace.swallowed[:6]
    if found:
        yield "Swallowed on the way", HEADING
    for swallow in found:
        yield from _swallow(swallow, verbose)
    if len(trace.swallowed) > len(found):
        yield f"  {len(trace.swallowed) - len(found)} more handlers, with --verbose", NOTE


def _swallow(swallow: Swallow, verbose: bool) -> Iterator[Line]:
    yield f"  except {', '.join(swallow.catches)}   {_at(swallow.spot)}", SWALLOWED
    if swallow.process:
        yield (
            f"    stands around the process of {swallow.process}(): what fails there is printed here, and not where it is noticed",
            NOTE,
        )
    if swallow.skips:
        yield f"    leaves out: {_cut(swallow.skips)}", ""
    for log in swallow.logs:
        yield f"    prints ({log.level}): {_cut(log.message.shown)}", ""
        for line in log.seen:
            yield f"        in the log: {_seen(line)}", ""
        if log.silenced_by:
            yield (
                f"        not printed where {', '.join(f'{spot.path}:{spot.line}' for spot in log.silenced_by)} has raised the logger's level: its absence proves nothing",
                NOTE,
            )
    if not swallow.logs:
        yield "    prints nothing", ""
    for hidden in swallow.hides if verbose else swallow.hides[:6]:
        yield f"    hides {hidden.type}: {_cut(hidden.message.shown)}   {hidden.spot.path}:{hidden.spot.line}", ""
        if hidden.via:
            yield f"        by way of {' -> '.join(f'{name}()' for name in hidden.via)}", NOTE
        if hidden.requires:
            yield f"        raised when {_conditions(hidden.requires)}", ""
    rest = len(swallow.hides) - 6
    if rest > 0 and not verbose:
        yield f"    hides {rest} more raises, with --verbose", NOTE
    if swallow.may_hide:
        shown = swallow.may_hide if verbose else swallow.may_hide[:3]
        yield f"    may also hide what fails in: {_cut('; '.join(shown))}", NOTE
    if swallow.more:
        yield f"    {swallow.more} more below this handler are not listed", NOTE


def _seen(line: SeenLine) -> str:
    times = f" ({line.times} times)" if line.times > 1 else ""
    raised = f"   raised at {line.raised_at.path}:{line.raised_at.line}" if line.raised_at else ""
    return f"{line.log}:{line.line}{times} {_cut(line.text)}{raised}"


def _switches(switches: tuple[Switch, ...], verbose: bool) -> Iterator[Line]:
    if switches:
        yield "What reaches it", HEADING
    for switch in switches if verbose else switches[:_SHORT]:
        details = [each for each in (
            switch.note,
            f"default {switch.default}" if switch.default else "",
            f"accepts {', '.join(switch.accepts)}" if switch.accepts else "",
            f"read {switch.read_when}" if switch.read_when else "",
            f"kept by the cache of {switch.cached_by}" if switch.cached_by else "",
            "linked by a name only" if switch.is_by_name else "",
        ) if each]  # fmt: skip
        where = ", ".join(f"{spot.path}:{spot.line}" for spot in switch.spots[:3])
        yield f"  {_KINDS[switch.kind]:9} {switch.name}   {where}", ""
        if details:
            yield f"            {_cut('; '.join(details))}", NOTE
        if switch.consulted_if:
            yield f"            consulted when {_conditions(switch.consulted_if)}", NOTE
        if verbose:
            for step in switch.witness:
                yield f"            <- {step.kind}: {_cut(step.text)}   {_at(step.spot) if step.spot else ''}", QUOTE
    if len(switches) > _SHORT and not verbose:
        yield f"  {len(switches) - _SHORT} more, with --verbose", NOTE


def _origin(origin: tuple[Step, ...], verbose: bool) -> Iterator[Line]:
    if origin:
        yield "Where it comes from", HEADING
    yield from _steps(origin, 1, 14 if verbose else 5)


def _steps(steps: Iterable[Step], depth: int, deepest: int) -> Iterator[Line]:
    for step in steps:
        indent = "  " * depth
        note = f"  [{step.note}]" if step.note else ""
        yield f"{indent}{step.kind}: {_cut(step.text)}   {_at(step.spot) if step.spot else ''}{note}", ""
        if step.requires and step.kind in ("write", "return", "definition", "raise"):
            yield f"{indent}    when {_conditions(step.requires)}", NOTE
        if depth < deepest:
            yield from _steps(step.steps, depth + 1, deepest)
        elif step.steps:
            yield f"{indent}  ...", NOTE


def _bypasses(trace: Trace) -> Iterator[Line]:
    if trace.bypasses:
        yield "Other ways to the same value", HEADING
    for bypass in trace.bypasses:
        runs = f"runs {bypass.unprotected} of the hidden raises, unprotected" if bypass.unprotected else "runs none of the hidden raises"  # fmt: skip
        yield f"  {_at(bypass.spot)}  {bypass.spot.code}: {runs}", ""
        yield f"      taken when {_conditions(bypass.requires)}", NOTE


def _users(trace: Trace, verbose: bool) -> Iterator[Line]:
    for radius in trace.users:
        kinds = {kind: [use for use in radius.uses if use.kind == kind] for kind in ("write", "read", "maybe")}
        yield f"Who else uses {radius.value}", HEADING
        for kind, uses in kinds.items():
            label = {"write": "written", "read": "read", "maybe": "perhaps, by its name"}[kind]
            shown = uses if verbose else uses[:12]
            for use in shown:
                yield f"  {label}: {use.path}:{','.join(map(str, use.lines))}  {use.function or 'on import'}", ""
            if len(uses) > len(shown):
                yield f"  {label}: {len(uses) - len(shown)} more functions", NOTE
        if radius.others:
            yield f"  {radius.others} attributes of this name belong to other classes", NOTE


def _scope(scope: Scope, verbose: bool) -> Iterator[Line]:
    yield "Searched", HEADING
    for package in scope.packages:
        known = f" {package.version}" if package.version else ""
        where = f" at {package.place}" if package.place else ""
        yield f"  {package.name}{known}{where}: {extent(package)}, {package.parsed} parsed", NOTE
        for gap in (*package.not_understood, *package.left_out):
            yield f"    not read: {gap}", NOTE
    if scope.fetched is not None:
        came = scope.fetched
        kept = f", {came.kept} kept from before (unchanged there)" if came.kept else ""
        yield f"  trips to the target: {came.trips}; files that came: {came.files} ({came.characters / 1e6:.1f} MB){kept}", NOTE  # fmt: skip
    if scope.outside:
        shown = scope.outside if verbose else scope.outside[:12]
        yield f"  not followed into: {', '.join(shown)}{' ...' if len(shown) < len(scope.outside) else ''}", NOTE
    if scope.cuts:
        yield f"  cut off at {len(scope.cuts)} places or more, for example {_cut(scope.cuts[0])}: a switch may be missing", NOTE  # fmt: skip
        for cut in scope.cuts[1:] if verbose else ():
            yield f"    {cut}", NOTE
    if scope.wanted:
        yield f"  {len(scope.wanted)} files were not at hand: {_cut(', '.join(scope.wanted))}", NOTE


def extent(package: ReadPackage) -> str:
    """How much of a package an answer rests on."""
    if package.installed:
        return f"fetched: {package.files} of its {package.installed} files, the others were searched for words there"
    return f"{package.files} files" + ("" if package.is_complete else ", not all that it has")


def _conditions(requires: tuple[Requirement, ...]) -> str:
    return _cut(" and ".join(each.text for each in reversed(requires[:4])))


def _at(spot: Spot) -> str:
    return f"{spot.path}:{spot.line}" + (f"  {spot.function}" if spot.function else "")


def _cut(text: str) -> str:
    return text if len(text) <= _WIDE else text[: _WIDE - 1] + "…"
