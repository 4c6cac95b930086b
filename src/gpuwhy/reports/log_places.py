"""The lines of a log with the places that wrote them, for a person and for a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gpuwhy.reports.neutral import plain
from gpuwhy.source.texts import Origin, Written
from gpuwhy.source.texts_asking import LogPlaces
from gpuwhy.source.texts_fit import Fit

_WIDE = 160
_FEW = 3


def render(places: LogPlaces, verbose: bool = False) -> str:
    """The text; for programs see :mod:`gpuwhy.reports.trace_json`."""
    return "".join(plain(line) + "\n" for line in lines(places, verbose))


def lines(places: LogPlaces, verbose: bool = False) -> Iterator[str]:
    """Each different line once, with how often it stands there; those that no text explains only with ``verbose``."""
    times = Counter(each.text for each in places.lines)
    shown: set[str] = set()
    for each in places.lines:
        if each.text in shown or (not each.origins and not verbose):
            continue
        shown.add(each.text)
        count = f"  ({times[each.text]} times)" if times[each.text] > 1 else ""
        yield f"{places.log}:{each.number}: {each.text[:_WIDE]}{count}"
        yield from (f"    {_origin(origin)}" for origin in each.origins[:_FEW])
        rest = len(each.origins[_FEW:]) + each.more
        if rest:
            yield f"    and {rest} more places with this text"
    yield ""
    yield _summary(places, places.lines)
    for fit in places.fits:
        yield from _fit(fit)


def _origin(origin: Origin) -> str:
    function = f" in {origin.spot.function}" if origin.spot.function else ""
    what = f"raises {origin.name or 'it'}" if origin.kind == "raise" else origin.name or origin.kind
    handler = f"; in the except of line {origin.handler}" if origin.handler else ""
    went_on = ", which goes on" if origin.is_swallowed else ""
    values = [value for value in origin.values if value.strip()]
    held = f"; {{}} is {', '.join(repr(value[:80]) for value in values[:_FEW])}" if values else ""
    part = "" if origin.is_whole else "; a part of the line"
    return f"{origin.spot.path}:{origin.spot.line}{function}: {what}{handler}{went_on}{held}{part}"


def _summary(places: LogPlaces, written: tuple[Written, ...]) -> str:
    found = sum(bool(each.origins) for each in written)
    searched = ", ".join(
        f"{each.name} {each.version}".strip() + f" ({each.patterns} texts)" for each in places.packages
    )
    return f"{found} of {len(written)} lines were written by {searched or 'no package'}; the others by something else"


def _fit(fit: Fit) -> Iterator[str]:
    name = f"{fit.package} {fit.version}".strip()
    if not fit.differs:
        yield f"The log fits {name}: {fit.agreeing} of the {fit.stated} places that it names write what stands there."
        return
    verdict = "was written by another release than" if fit.is_other_release else "does not fit in every place"
    yield f"The log {verdict} {name}: {fit.differing} of the {fit.stated} places that it names write something else:"
    for each in fit.misplaced:
        now = f"; that text is at {each.now.path}:{each.now.line}" if each.now is not None else ""
        yield f"    line {each.number}: [{each.stated}] {each.text[:100]}{now}"
