"""The memory of the service's model, as the calculator has it, as a check among the others."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.fit.results import Estimate, Verdict
from gpuwhy.fit.search import Goal, Search, search
from gpuwhy.investigate.checks.results import Passed, Problem, Result, Unchecked
from gpuwhy.investigate.fitting import Fit
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.finding import Certainty
from gpuwhy.model.remedy import Remedy

_CAUSES = {
    "oom-weights": "gpu-oom-weights",
    "oom-kv": "gpu-oom-kv-cache",
    "oom-graph": "gpu-oom-graph-or-activation",
    "oom-activation": "gpu-oom-graph-or-activation",
    "not-free": "gpu-memory-taken",
}
_WHAT = "the model fits the memory of the GPUs"
_MOST_REMEDIES = 3


def memory_fits(fit: Fit | None) -> Iterator[Result]:
    """Nothing where no service is known."""
    if fit is None or fit.service is None:
        return
    if fit.estimate is None:
        yield Unchecked(_WHAT, fit.why, fit.key, fit.command)
        return
    found = fit.estimate
    said = f"{found.model} on {found.gpus} x {found.gpu}, {found.engine} {found.version}".strip()
    if found.verdict is Verdict.STARTS:
        yield Passed(_WHAT, f"{said}: {found.reason}")
        return
    if found.verdict is Verdict.CLOSE and found.decisive is None:
        yield Unchecked(_WHAT, f"{said}: {found.reason}")
        return
    yield Problem(
        cause=_cause(found),
        component=fit.service.engine,
        certainty=Certainty.LIKELY if found.verdict is Verdict.FAILS else Certainty.POSSIBLE,
        title=f"{said}: {'fails' if found.verdict is Verdict.FAILS else 'may fail'}: {found.reason}",
        evidence=tuple(_evidence(found)),
        remedies=_remedies(fit),
    )


def _cause(found: Estimate) -> str:
    if found.constraints or found.gpus_needed > found.gpus:
        return "parallel-size-invalid"
    return _CAUSES.get(found.decisive.outcome, "gpu-oom-kv-cache") if found.decisive else "host-oom-kill"


def _evidence(found: Estimate) -> Iterator[Evidence]:
    place = Place("calculator", "gpuwhy fit")
    for each in found.constraints:
        yield Evidence(f"{each.flag}: {each.says}", each.message, place, Standing.DERIVED)
    weights = found.gib_of("weights")
    yield Evidence(f"weights take {weights.expected:.1f} of {found.total_gib.expected:.1f} GiB of each GPU, {found.fraction.name} is {found.fraction.value:.4g}", "", place, Standing.DERIVED)  # fmt: skip
    if found.decisive is not None:
        margin = found.decisive.margin
        yield Evidence(f"{found.decisive.says}: {margin.expected:+.2f} GiB ({margin.low:+.2f} to {margin.high:+.2f})", found.decisive.message, place, Standing.DERIVED)  # fmt: skip


def _remedies(fit: Fit) -> tuple[Remedy, ...]:
    """The smallest changes with which it starts."""
    if fit.model is None or fit.hardware is None or fit.service is None:
        return ()
    searched: Search = search(fit.model, fit.hardware, fit.service.settings, Goal.CONCURRENCY)
    found: list[Remedy] = []
    for rank, proposal in enumerate(searched.proposals[:_MOST_REMEDIES]):
        if not proposal.changes or proposal.verdict is not Verdict.STARTS:
            continue
        typed = " ".join(f"{each.flag} {each.value}".strip() for each in proposal.changes)
        first = proposal.changes[0]
        costs = "; ".join(dict.fromkeys(each.costs for each in proposal.changes))
        found.append(Remedy(kind="flag", name=first.flag, value=first.value, summary=f"Start with {typed}: {proposal.tokens:,.0f} tokens of cache", cost=costs, rank=rank, is_sure=False))  # fmt: skip
    return tuple(found)
