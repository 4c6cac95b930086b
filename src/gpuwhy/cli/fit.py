"""``gpuwhy fit MODEL``: will a model start on these GPUs, under this engine and these settings?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gpuwhy.cli.examination_options import unit_option
from gpuwhy.cli.failing import unusable
from gpuwhy.cli.format_options import FormatName
from gpuwhy.cli.group import FAILURE
from gpuwhy.cli.target_options import Reach, target_options

if TYPE_CHECKING:
    from gpuwhy.fit.hardware import Hardware
    from gpuwhy.fit.model import Model
    from gpuwhy.fit.settings import Settings

TOO_CLOSE = 3
"""Exit status: the estimate's own uncertainty is larger than the margin."""
MOST_GPUS = 100_000
WIDTH = 80
"""Columns, where no terminal has others."""


@click.command("fit", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": True})
@click.argument("where", metavar="[MODEL]", required=False, default="")
@click.argument("arguments", metavar="[ENGINE FLAGS]...", nargs=-1, type=click.UNPROCESSED)
@click.option("--gpu", metavar="NAME", default="", help="The GPU: 'RTX PRO 6000 Blackwell', '8 x H100', or a size: '96 GB'.")  # fmt: skip
@click.option("--gpus", "number", metavar="N", type=click.IntRange(1, MOST_GPUS), help="How many (default: as many as the settings ask for).")  # fmt: skip
@click.option("--on", "where_on", metavar="WHERE", default="", help="A host (local, root@host, docker:NAME) or a snapshot (host.gpuwhy): its GPUs, what others hold of them, its memory; the engine that it has, and MODEL in a folder there. Without MODEL: that of the service there, with its flags.")  # fmt: skip
@unit_option("whose start command counts, where MODEL is left out")
@click.option("--engine", metavar="NAME==VERSION", default="", help="sglang==0.5.23, vllm==0.33.0 (with --on: what is installed there)")  # fmt: skip
@click.option("--draft", metavar="FOLDER", type=click.Path(path_type=Path), help="The draft model, where its flag names no folder that is here.")  # fmt: skip
@click.option("--taken", metavar="GIB", type=click.FloatRange(0, 10_000), default=0.0, help="What other processes hold on the fullest GPU.")  # fmt: skip
@click.option("--host-memory", metavar="GB", type=click.FloatRange(1, 1_000_000), help="Memory of the host (default: 256, 512 and 1024 are judged).")  # fmt: skip
@click.option("--optimise", "--optimize", "goal", type=click.Choice(["context", "concurrency", "headroom"]), help="Search the few settings that fit, smallest change first: for the longest request, the most requests, or the widest margin.")  # fmt: skip
@click.option("--format", "form", type=FormatName("estimate"), default="text", show_default=True)
@click.option("--output", "-o", metavar="FILE", type=click.Path(path_type=Path), help="Write the report to a file.")
@click.option("--verbose", is_flag=True, help="Where each number comes from, and every group of weights.")
@target_options
def command(
    where: str,
    arguments: tuple[str, ...],
    gpu: str,
    number: int | None,
    where_on: str,
    unit: str,
    engine: str,
    draft: Path | None,
    taken: float,
    host_memory: float | None,
    goal: str | None,
    form: str,
    output: Path | None,
    verbose: bool,
    reach: Reach,
) -> int:
    """Whether MODEL starts, with how much cache, and what the engine prints when it does not.

    MODEL is a folder with a config.json (the sizes of its weights come from the index or the files), the config.json
    itself, or a GGUF file. The engine's flags follow as they are typed for it; nothing is downloaded or started.

    Exit status: 0 it starts, 1 it fails, 2 the arguments are unusable, 3 too close to call.
    """
    from gpuwhy.fit.estimate import estimate
    from gpuwhy.fit.results import Verdict
    from gpuwhy.reports import Detail, write
    from gpuwhy.reports.fit_answer import FitAnswer

    if where.startswith("-"):  # an engine's flag: no MODEL is named
        where, arguments = "", (where, *arguments)
    place = _place(where_on, where, arguments, unit, reach) if where_on else None
    if place is None and not where:
        unusable("name the model first: a folder with a config.json; or --on HOST, whose service names one")
    if place is None and not (gpu and engine):
        unusable("--gpu and --engine are wanted, or --on with a host or a snapshot")
    settings = _settings(engine or (place.engine if place else ""), (*place.words, *arguments) if place else arguments)
    model = place.model if place and place.model else _model(where, draft, settings)
    if place and place.hardware is None and not gpu:
        unusable(f"{where_on} tells of no GPU: name it with --gpu")
    hardware = place.hardware if place and place.hardware and not gpu else _hardware(gpu, number, settings, taken, host_memory)  # fmt: skip
    if place:
        hardware = _overridden(hardware, number, taken, host_memory)
    found = estimate(model, hardware, settings)
    searched = None
    if goal:
        from gpuwhy.fit.search import Goal, search

        searched = search(model, hardware, settings, Goal(goal))
    try:
        write(FitAnswer(found, searched), form, Detail(verbose=verbose, width=WIDTH), output)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        unusable(f"{output}: {error.strerror}")
    return {Verdict.STARTS: 0, Verdict.FAILS: FAILURE, Verdict.CLOSE: TOO_CLOSE}[found.verdict]


def _overridden(hardware: Hardware, number: int | None, taken: float, host_gb: float | None) -> Hardware:
    """What was given by hand wins over what the host says."""
    import msgspec

    given: dict[str, Any] = {"gpus": number, "taken_gib": taken or None, "host_gib": host_gb * 1e9 / (1 << 30) if host_gb else None}  # fmt: skip
    return msgspec.structs.replace(hardware, **{name: value for name, value in given.items() if value is not None})


class _Place(NamedTuple):
    """``engine`` as ``--engine`` takes it, "" when none is installed there. ``words``: of the service's start command, where MODEL is its."""

    hardware: Hardware | None
    engine: str
    model: Model | None
    words: tuple[str, ...] = ()


def _place(where_on: str, model: str, arguments: tuple[str, ...], unit: str, reach: Reach) -> _Place:
    """What the host or the snapshot gives. A MODEL that is a folder here is read here; without one it is the service's."""
    from gpuwhy.fit.arguments import read_arguments
    from gpuwhy.investigate.fitting import NoHardwareError, engine_version, facts_on, hardware_on, service_of
    from gpuwhy.snapshot import SnapshotError
    from gpuwhy.targets import TargetError

    is_here = bool(model) and Path(model).expanduser().exists()
    speculation = read_arguments("sglang", "", arguments).speculation
    try:
        facts, found = facts_on(reach.target(where_on), reach.timeout, "" if is_here else model, speculation.draft if speculation else "", unit)  # fmt: skip
    except TargetError as error:
        reach.fail(where_on, error)
    except (NoHardwareError, SnapshotError) as error:
        unusable(str(error))
    hardware = hardware_on(facts)
    service = service_of(facts)
    if not model and service is None:
        unusable(f"no start command of SGLang or vLLM is known on {where_on}: name the unit with --unit, or give MODEL")
    if not model and found is None:
        unusable(
            f"config.json of {service.model if service else '?'} could not be read on {where_on}: give a folder with a copy of it"
        )
    if model and not is_here and found is None:
        unusable(f"{model} is neither here nor readable on {where_on}: give a folder with its config.json")
    installed = [f"{name}=={version}" for name in ("sglang", "vllm") if (version := engine_version(facts, name))]
    command_line = str(facts.value("command") or "")
    engine = next((each for each in installed if each.partition("==")[0] in command_line), installed[0] if installed else "")  # fmt: skip
    if not engine and service is not None:
        engine = service.engine
    return _Place(hardware, engine, None if is_here else found, service.words if service and not model else ())


def _settings(engine: str, arguments: tuple[str, ...]) -> Settings:
    from gpuwhy.fit.arguments import read_arguments
    from gpuwhy.fit.config_file import with_config_file
    from gpuwhy.fit.engines import read_engine

    named = read_engine(engine)
    if named is None:
        unusable(f"--engine {engine[:80]!r}: sglang==VERSION or vllm==VERSION is wanted")
    settings = read_arguments(named[0], named[1], with_config_file(arguments))
    if settings.problems:
        unusable("; ".join(settings.problems))
    return settings


def _model(where: str, draft: Path | None, settings: Settings) -> Model:
    from gpuwhy.fit.reading import ModelError, read_model

    if where.startswith("-"):
        unusable(f"name the model first, then the flags: {where} came before it")
    if draft is None and settings.speculation and settings.speculation.draft:
        named = Path(settings.speculation.draft).expanduser()
        draft = named if named.exists() else None
    try:
        return read_model(Path(where).expanduser(), draft)
    except ModelError as error:
        unusable(str(error))


def _hardware(gpu: str, number: int | None, settings: Settings, taken: float, host_gb: float | None) -> Hardware:
    import re

    from gpuwhy.fit.hardware import hardware_of
    from gpuwhy.knowledge.gpu_memory_sizes import memory_of

    memory = memory_of(gpu)
    if memory is None:
        unusable(f"--gpu {gpu[:80]!r} is not known: name its memory too, as in '{gpu[:60]} 96 GB'")
    counted = re.match(r"\s{0,9}(\d{1,3})\s{0,3}[x×]\s{0,3}\D", gpu)
    gpus = number or (int(counted[1]) if counted and int(counted[1]) else settings.gpus)
    return hardware_of(memory, gpus, taken, host_gb * 1e9 / (1 << 30) if host_gb else None)
