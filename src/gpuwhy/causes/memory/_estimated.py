"""The calculator on a start that failed: what the facts say of model and command, with the figures that the log printed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from gpuwhy.causes._case import Case
from gpuwhy.causes.memory._budget import Budget
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.host import Gpus

if TYPE_CHECKING:
    from gpuwhy.fit.hardware import Hardware
    from gpuwhy.fit.measured import Measured
    from gpuwhy.fit.model import Model
    from gpuwhy.fit.results import Estimate
    from gpuwhy.fit.settings import Settings

GIB = 1 << 30
_ENGINES = frozenset({"sglang", "vllm"})
_STEP = 100
"""Fractions are given in hundredths."""
_ROOM = 0.01
"""Between a proposed fraction and the bounds of the estimate."""


class Bounds(msgspec.Struct, frozen=True):
    """Between which values the fraction may lie, what it should be, and the tokens that the cache then holds.

    ``proposed`` None: no fraction leaves room for both the cache and what comes after it. ``longest``: the largest
    context that fits with it.
    """

    least: float
    most: float
    proposed: float | None
    tokens: int
    longest: int
    is_release_read: bool

    @property
    def sentence(self) -> str:
        """For people."""
        if self.proposed is None:
            return f"Computed for this model: the cache needs a fraction above {self.least:.3f}, what comes after it one below {self.most:.3f}."
        return (
            f"Computed for this model and command: from {self.least:.3f} (below it nothing is left for the cache) to {self.most:.2f} "
            f"(above it graphs and the first long prefill do not fit); {self.proposed:.2f} holds about {self.tokens:,} tokens."
        )


def bounds_of(case: Case, engine: str, budget: Budget, total: int | None, fraction: float | None = None) -> Bounds | None:  # fmt: skip
    """None where the model's shape or the GPU is not known: an estimate of a part would be a guess."""
    if engine not in _ENGINES:
        return None
    config = _values(case.facts.group("model"))
    memory = total or (budget.before + GIB if budget.before else None)
    if not config or memory is None:
        return None
    return _computed(case, engine, budget, memory / GIB, fraction, config)


def host_need(case: Case, engine: str) -> tuple[float, float] | None:
    """GB of the host that cannot be reclaimed while the model loads, from and to; None where model or engine is unknown."""
    config = _values(case.facts.group("model"))
    if engine not in _ENGINES or not config:
        return None
    model = _model(case, config)
    if model is None:
        return None
    from gpuwhy.fit.estimate import estimate

    settings = _settings(case, engine)
    found = estimate(model, _hardware(case, _SOME_GPU_GIB, settings), settings).host.unreclaimable_gb
    return found.low, found.high


def estimate_of(
    case: Case, engine: str, budget: Budget, total: int | None, fraction: float | None = None, taken: int | None = None
) -> Estimate | None:
    """The whole estimate, for the report; None as for :func:`bounds_of`. ``taken``: bytes that others held at the start."""
    config = _values(case.facts.group("model"))
    memory = total or (budget.before + GIB if budget.before else None)
    if engine not in _ENGINES or not config or memory is None:
        return None
    model = _model(case, config)
    if model is None:
        return None
    from gpuwhy.fit.estimate import estimate

    settings = _settings(case, engine)
    hardware = msgspec.structs.replace(_hardware(case, memory / GIB, settings), taken_gib=(taken or 0) / GIB)
    return estimate(model, hardware, settings, _measured(budget, memory / GIB, fraction))


def estimate_for_host(case: Case, engine: str, size: int | None) -> Estimate | None:
    """The estimate of which the host's part counts. ``size``: its memory in bytes."""
    config = _values(case.facts.group("model"))
    model = _model(case, config) if engine in _ENGINES and config else None
    if model is None:
        return None
    from gpuwhy.fit.estimate import estimate

    settings = _settings(case, engine)
    hardware = msgspec.structs.replace(_hardware(case, _SOME_GPU_GIB, settings), host_gib=size / GIB if size else None)
    return estimate(model, hardware, settings)


_SOME_GPU_GIB = 80.0
"""What the host needs does not depend on it."""


def _model(case: Case, config: dict[str, Any]) -> Model | None:
    # the calculator is read only where a model is known
    from gpuwhy.fit.architecture import read_architecture
    from gpuwhy.fit.inventory import computed_inventory, scaled_inventory
    from gpuwhy.fit.model import Model

    shape = read_architecture(config)
    if not shape.is_complete:
        return None
    inventory = computed_inventory(shape)
    size = case.facts.value("model_bytes")
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        inventory = scaled_inventory(inventory, size, inventory.largest_file_bytes)
    return Model("the model", shape, inventory)


def _settings(case: Case, engine: str) -> Settings:
    """What the start command says; what the engine echoed of its arguments wins."""
    from gpuwhy.fit.arguments import flags_in, settings_of
    from gpuwhy.fit.commands import read_start

    version = case.facts.value(f"packages.{engine}")
    started = read_start(str(case.facts.value("command") or ""))
    typed = flags_in(started.words) if started is not None and started.engine == engine else []
    echoed = _values(case.facts.group("server_args"))
    return settings_of(engine, str(version or ""), [*typed, *echoed.items()])


def _hardware(case: Case, total_gib: float, settings: Settings) -> Hardware:
    """The GPU that the facts name, with the memory that the log prints; else one of that memory and no name.

    Which kernels an engine takes, and so their work spaces, goes by the name.
    """
    from gpuwhy.fit.hardware import hardware_of
    from gpuwhy.knowledge.gpu_memory_sizes import GpuMemory, memory_of

    gpus = Gpus.of(case.facts)
    named = gpus.devices[0].name if not isinstance(gpus, Unknown) and gpus.devices else ""
    known = memory_of(named) if named else None
    if known is not None and abs(known.cuda_gib - total_gib) < _ALIKE * known.cuda_gib:
        return hardware_of(msgspec.structs.replace(known, cuda_gib=total_gib, within=min(known.within, _PRINTED)), settings.gpus)  # fmt: skip
    memory = GpuMemory("as the log says", round(total_gib * 1024 * 1.02), total_gib, 132, False, False, _PRINTED, "the log")  # fmt: skip
    return hardware_of(memory, settings.gpus)


_ALIKE = 0.06
_PRINTED = 0.02
"""GiB: what is printed is rounded to a hundredth."""


def _computed(
    case: Case, engine: str, budget: Budget, total_gib: float, fraction: float | None, config: dict[str, Any]
) -> Bounds | None:
    from gpuwhy.fit.estimate import estimate

    model = _model(case, config)
    if model is None:
        return None
    settings = _settings(case, engine)
    hardware = _hardware(case, total_gib, settings)
    measured = _measured(budget, total_gib, fraction)
    found = estimate(model, hardware, settings, measured)
    said = found.fraction
    if said.minimum is None or said.maximum is None:
        return None
    proposed = _proposed(said.minimum.expected, said.minimum.high, said.maximum.low, said.maximum.expected)
    if proposed is not None:
        found = estimate(model, hardware, settings, msgspec.structs.replace(measured, fraction=proposed))
    return Bounds(
        said.minimum.expected,
        said.maximum.expected,
        proposed,
        int(found.cache.tokens.expected),
        int(found.cache.longest.expected),
        found.is_release_read,
    )


def _proposed(least: float, surely_enough: float, surely_free: float, most: float) -> float | None:
    """The largest fraction that surely leaves what comes after the cache; the smallest that works where both are near."""
    if least >= most:
        return None
    high = math.floor((surely_free - _ROOM / 2) * _STEP) / _STEP
    if high > surely_enough:
        return high
    middle = math.ceil((least + most) / 2 * _STEP) / _STEP
    return middle if least < middle < most else None


def _measured(budget: Budget, total_gib: float, fraction: float | None) -> Measured:
    from gpuwhy.fit.measured import Measured

    def gib(size: int | None) -> float | None:
        return None if size is None else size / GIB

    weights = budget.weights
    if weights is None and budget.before and budget.after is not None and budget.after < budget.before:
        weights = budget.before - budget.after
    return Measured(
        total=total_gib,
        available_before=gib(budget.before),
        available_after=gib(budget.after),
        weights=gib(weights),
        activation=gib(budget.activation),
        non_torch=gib(budget.outside),
        fraction=fraction,
    )


def _values(facts: Mapping[str, Fact]) -> dict[str, Any]:
    return {name: fact.value for name, fact in facts.items() if fact.value is not None}
