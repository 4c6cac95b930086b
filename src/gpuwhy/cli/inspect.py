"""``gpuwhy inspect PATH…``: which GPUs binaries have code for, what they need, and whether a GPU runs them."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gpuwhy.cli.failing import fail, unreachable, unusable
from gpuwhy.cli.group import FAILURE, UNUSABLE
from gpuwhy.cli.report_options import report_options, write_report


@click.command("inspect")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--venv", "environments", metavar="DIR", multiple=True, type=click.Path(path_type=Path), help="A Python environment: all binaries of its packages (repeatable).")  # fmt: skip
@click.option("--gpu", metavar="NAME", default="", help="Judge for this GPU, as nvidia-smi names it, or a capability.")
@click.option("--for", "capability", metavar="X.Y", default="", help="Judge for this compute capability.")
@click.option("--driver", metavar="VERSION", default="", help="Judge for this driver too: it limits PTX.")
@click.option("--kernel", metavar="NAME", default="", help="Find the container of kernels with this in their name.")
@click.option("--needs", is_flag=True, help="What would come of loading: libraries, symbols, versions. Loads nothing.")
@click.option("--env", "variables", metavar="NAME=VALUE", multiple=True, help="With --needs: LD_LIBRARY_PATH or LD_PRELOAD of the service, in place of this shell's.")  # fmt: skip
@click.option("--unit", "-u", metavar="NAME", default="", help="With --needs: as this systemd unit would load it, by its LD_LIBRARY_PATH.")  # fmt: skip
@click.option("--requirements", is_flag=True, help="Of wheels, only what they say of themselves; reads no code.")
@click.option("--deep", is_flag=True, help="Search large data sections for bare cubins too.")
@report_options("inspection")
@click.option("--verbose", "-v", is_flag=True, help="What each file needs, and how its code is grouped.")
def command(
    paths: tuple[Path, ...],
    environments: tuple[Path, ...],
    gpu: str,
    capability: str,
    driver: str,
    kernel: str,
    needs: bool,
    variables: tuple[str, ...],
    unit: str,
    requirements: bool,
    deep: bool,
    form: str,
    output: Path | None,
    verbose: bool,
) -> int:
    """Which GPUs the binaries at PATH… have code for, and what they need to load.

    PATH is a library, program, object, archive, cubin, fatbin, PTX or wheel, or a folder of them. Only headers are
    read. With --gpu or --for, each file is judged container by container, as the driver does; exit status 1 when a file
    cannot run there. --needs follows the dynamic linker's rules, and what torch has loaded before; exit status 1 when a file
    would not load.
    """
    from gpuwhy import api
    from gpuwhy.cli.progress import shown_reading
    from gpuwhy.investigate.binaries import has_failing
    from gpuwhy.reports import Detail

    wanted = [*paths, *(folder for environment in environments for folder in _packages_of(environment))]
    library_path, preload = _of_unit(unit, needs) if unit else _variables(variables, needs)
    try:
        with shown_reading() as on_progress:
            inspection = api.inspect(
                wanted,
                gpu=gpu,
                capability=capability,
                driver=driver,
                kernel=kernel,
                needs=needs,
                library_path=library_path,
                preload=preload,
                requirements=requirements,
                deep=deep,
                details=verbose or form != "text",
                on_progress=on_progress,
            )
    except api.GpuwhyError as error:
        fail(error)
    write_report(inspection, form, Detail(verbose=verbose), output)
    if inspection.unreadable and not inspection.files:
        return UNUSABLE
    return FAILURE if has_failing(inspection) else 0


def _of_unit(unit: str, needs: bool) -> tuple[str, str]:
    """LD_LIBRARY_PATH and LD_PRELOAD of a service of this machine."""
    if not needs:
        unusable("--unit is for --needs")
    from gpuwhy.investigate.service_search import search_of_unit
    from gpuwhy.targets import TargetError

    try:
        return search_of_unit(unit)
    except TargetError as error:
        unreachable(str(error))


def _variables(given: tuple[str, ...], needs: bool) -> tuple[str, str]:
    """LD_LIBRARY_PATH and LD_PRELOAD: those given, else this shell's."""
    if given and not needs:
        unusable("--env is for --needs")
    named = dict(each.partition("=")[::2] for each in given)
    unknown = next((name for name in named if name not in ("LD_LIBRARY_PATH", "LD_PRELOAD")), None)
    if unknown is not None or any("=" not in each for each in given):
        unusable(f"--env {unknown or given[0]}: give LD_LIBRARY_PATH=FOLDERS or LD_PRELOAD=FILES")
    found = {} if given else os.environ
    return (
        named.get("LD_LIBRARY_PATH", found.get("LD_LIBRARY_PATH", "")),
        named.get("LD_PRELOAD", found.get("LD_PRELOAD", "")),
    )


def _packages_of(environment: Path) -> tuple[Path, ...]:
    from gpuwhy.investigate.binary_files import site_packages

    return site_packages(environment) or unusable(f"{environment}: no Python environment with packages")
