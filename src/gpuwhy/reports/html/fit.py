"""An estimate of memory as a page: the verdict and the engine's message, the bars, the checks, the cache, the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuwhy.fit.memory_use import gpu_use, host_use
from gpuwhy.fit.results import Check, Estimate, Verdict
from gpuwhy.fit.search import Search
from gpuwhy.reports import fit
from gpuwhy.reports.fit_answer import FitAnswer
from gpuwhy.reports.html.memory import drawn
from gpuwhy.reports.html.page import written

_LEVELS = {Verdict.STARTS: "fine", Verdict.FAILS: "likely", Verdict.CLOSE: "possible"}
_STANDINGS = {Verdict.STARTS: "good", Verdict.FAILS: "bad", Verdict.CLOSE: "open"}
_SAID = {Verdict.STARTS: "fits", Verdict.FAILS: "fails", Verdict.CLOSE: "too close to call"}


def render(answer: FitAnswer) -> str:
    """The page."""
    found = answer.estimate
    sections = {
        "settings": ("Settings that fit", answer.search),
        "memory": ("Where the memory of one GPU goes", True),
        "cache": ("Cache", True),
        "checks": ("Checks, in the order of the start", found.checks),
        "host": ("Host while loading", True),
        "unknown": ("Not known, or not usable", found.missing),
    }
    context: dict[str, Any] = {
        "level": _LEVELS[found.verdict],
        "estimate": found,
        "messages": tuple(_messages(found)),
        "known": tuple(_known(found)),
        "search": _searched(answer.search) if answer.search is not None else None,
        "gpu": drawn(gpu_use(found, fit.CHARTED)),
        "cache": tuple(fit.cache_sentences(found)),
        "checks": tuple(map(_check, found.checks)),
        "host": drawn(host_use(found)),
        "risks": tuple((f"{each.host_gb:,.0f} GB", _STANDINGS[each.verdict], each.says) for each in found.host.risks),
        "host_said": fit.host_sentence(found.host),
    }
    shown = tuple((anchor, title) for anchor, (title, content) in sections.items() if content)
    return written("fit.html.jinja", subject=fit.subject_of(found), sections=shown, **context)


def _messages(found: Estimate) -> Iterator[tuple[str, str]]:
    """What introduces each message, and the message as the engine prints it."""
    for each in found.constraints:
        yield f"{each.flag}: {each.says}" + (". It would print:" if each.message else ""), each.message
    check = found.decisive
    if not found.constraints and check is not None and check.verdict is not Verdict.STARTS and check.message:
        yield fit.printed_when(check), check.message


def _known(found: Estimate) -> Iterator[tuple[str, str]]:
    fraction, cache = found.fraction, found.cache
    yield "fraction", f"{fraction.name} {fraction.value:.4g}" + (" (default)" if fraction.is_default else "")
    if fraction.minimum and fraction.maximum and fraction.minimum.expected <= fraction.maximum.expected:
        yield "starts between", f"{fraction.minimum.expected:.3f} and {fraction.maximum.expected:.3f}"
    if found.decisive is not None:
        margin = found.decisive.margin
        yield "to spare", f"{margin.expected:+.2f} GiB ({margin.low:+.2f} to {margin.high:+.2f})"
    yield "cache", f"{cache.tokens.expected:,.0f} tokens"
    if cache.context:
        yield "longest request", f"{min(cache.longest.expected, cache.context):,.0f} of {cache.context:,}"
        yield "of full length at a time", f"{cache.concurrency.expected:.2f}"


def _check(each: Check) -> tuple[str, str, str, str, str, str]:
    """Phase, standing, outcome, margin, bounds, what it is about."""
    margin = each.margin
    return each.phase, _STANDINGS[each.verdict], _SAID[each.verdict], f"{margin.expected:+.2f}", f"{margin.low:+.2f} to {margin.high:+.2f}", each.says  # fmt: skip


def _searched(searched: Search) -> dict[str, Any]:
    return {
        "goal": fit.GOALS[searched.goal],
        "says": searched.says,
        "estimated": searched.estimated,
        "refused": searched.refused,
        "proposals": tuple(
            (fit.typed(each), _SAID[each.verdict], fit.gives(each), tuple(dict.fromkeys(change.costs for change in each.changes)))
            for each in searched.proposals
        ),
    }  # fmt: skip
