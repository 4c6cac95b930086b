"""Runs every check over the facts of a host, a snapshot or a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpuwhy.diagnosis import completed, sign_literals
from gpuwhy.investigate.checks import devices, driver, engines, host, memory, pins, toolchain, torch
from gpuwhy.investigate.checks.binaries import Library, installed_libraries, libraries_run
from gpuwhy.investigate.checks.plan import Plan, planned
from gpuwhy.investigate.checks.results import Check, Forecast, Passed, Problem, Result, Unchecked
from gpuwhy.investigate.examined_service import expect_inside, expect_unit, expect_written
from gpuwhy.investigate.fitting import Fit, fit_service, service_of
from gpuwhy.investigate.source import Questioner
from gpuwhy.investigate.target import SNAPSHOT_HEAD, Excerpts
from gpuwhy.logs import facts_in, read_stream
from gpuwhy.model.fact import Facts
from gpuwhy.snapshot import Probe, Session, Snapshot, decode, facts_of, is_snapshot
from gpuwhy.snapshot.collecting import DEADLINE, TIMEOUT
from gpuwhy.targets import FileTarget, HostTarget, Target, TargetError

CHECKS: tuple[Check, ...] = (
    devices.every_gpu_answers,
    driver.driver_is_there,
    driver.driver_knows_gpus,
    driver.driver_runs_torch,
    driver.driver_runs_compiled_modules,
    torch.torch_kernels,
    torch.triton_assembler,
    engines.oldest_gpu,
    toolchain.flashinfer_toolkit,
    toolchain.other_compilers,
    toolchain.toolkit_parts,
    toolchain.host_compiler,
    toolchain.toolkit_against_torch,
    pins.engine_pins,
    pins.parts_of_flashinfer,
    pins.companions_of_torch,
    devices.fabric_manager,
    devices.peers,
    host.shared_memory,
    host.limits,
    host.caches,
)
"""In the order of a start: the GPUs, the driver, what runs on it, what is compiled, what stands around it."""

OnProbe = Callable[[Probe], None]


def forecast(
    where: str,
    facts: Facts,
    plan: Plan | None = None,
    libraries: tuple[Library, ...] = (),
    source: Questioner | None = None,
) -> Forecast:
    """What these facts, with the plan in the place of what it replaces, let expect. Raises PlanError."""
    result = planned(facts, plan or Plan())
    known = completed(result.facts)
    found: list[Result] = list(result.unchecked)
    for check in CHECKS:
        found += _asked(check, known)
    found += _asked(lambda facts: libraries_run(libraries, facts), known)
    # a snapshot whose facts say nothing of a service, and a bare plan, have no memory to judge
    fit = _fitted(known, source) if source is not None else None
    found += _asked(lambda _: memory.memory_fits(fit), known)
    return Forecast(
        where=where,
        problems=_ordered(each for each in found if isinstance(each, Problem)),
        passed=tuple(each for each in found if isinstance(each, Passed)),
        unchecked=tuple(dict.fromkeys(each for each in found if isinstance(each, Unchecked))),
        facts=tuple(known),
        estimate=fit.estimate if fit is not None else None,
    )


def _fitted(facts: Facts, source: Questioner) -> Fit | None:
    try:
        return fit_service(facts, source)
    except (TargetError, TypeError, ValueError, KeyError, AttributeError) as error:
        return Fit(service=service_of(facts), why=f"it could not be computed: {error}"[:200])


def _asked(check: Check, facts: Facts) -> list[Result]:
    """The answers of a check; a fact that is not shaped as it should be (a file was edited) is no crash and no pass."""
    found: list[Result] = []
    try:
        found += check(facts)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        name = getattr(check, "__name__", "libraries").replace("_", " ").strip("<>")
        found.append(Unchecked(name, f"a fact is not shaped as it should be: {error}"[:200]))
    return found


def _ordered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The surest first. Two checks may find one problem of a component: the file itself says it after the tables."""
    kept: dict[tuple[str, str | None, str], Problem] = {}
    for each in sorted(problems, key=lambda problem: problem.certainty.order):
        kept.setdefault((each.cause, each.component, each.title), each)
    return tuple(kept.values())


def check_plan(plan: Plan, facts: Facts | None = None) -> Forecast:
    """A plan without any host, or over facts that were given. Raises PlanError."""
    return forecast("plan", facts or Facts(), plan)


def check_target(
    target: Target,
    plan: Plan,
    *,
    unit: str = "",
    facts: Facts | None = None,
    on_probe: OnProbe | None = None,
    deadline: float = DEADLINE,
    timeout: float = TIMEOUT,
) -> Forecast:
    """A host, a snapshot or a report. ``facts`` given by hand win over what is found.

    Raises PlanError, :class:`gpuwhy.targets.TargetError`, :class:`gpuwhy.logs.UnreadableLog` and
    :class:`gpuwhy.snapshot.SnapshotError`.
    """
    given = facts or Facts()
    if isinstance(target, FileTarget):
        return _of_file(target, plan, given, unit)
    if not isinstance(target, HostTarget):
        raise TargetError(f"{target.name} is no place that can be examined")
    with Session(target, unit, timeout) as session:
        snapshot = session.collect(on_probe, deadline)
        expect_unit(snapshot, target.name)
        expect_inside(snapshot, target.name)
        return _of_snapshot(snapshot, session, target.name, plan, given)


def _of_file(target: FileTarget, plan: Plan, given: Facts, unit: str) -> Forecast:
    with target.stream() as stream:
        try:
            begun = stream.read(SNAPSHOT_HEAD)
            if is_snapshot(begun):
                snapshot = decode(begun + stream.read(), target.name)
                expect_written(snapshot, unit, target.name)
                return _of_snapshot(snapshot, Excerpts(snapshot), target.name, plan, given)
            name = target.name if target.name != "-" else "standard input"
            log = read_stream(stream, name, sign_literals(), begun)
        except OSError as error:
            raise TargetError(f"{target.name}: {error.strerror or error}") from error
    return forecast(name, facts_in(log).merged(given), plan)


def _of_snapshot(snapshot: Snapshot, source: Questioner, where: str, plan: Plan, given: Facts) -> Forecast:
    libraries = installed_libraries(snapshot, source)
    return forecast(where, facts_of(snapshot).merged(given), plan, libraries, source)
