"""``gpuwhy trace``: from a traceback, a place or a symbol to the failing condition and everything that reaches it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuwhy.cli.failing import fail, unusable
from gpuwhy.cli.group import FAILURE
from gpuwhy.cli.target_options import Reach, target_options

if TYPE_CHECKING:
    from gpuwhy.source import Trace

_WAITING = "searching the source (the first question of a release takes longest)"
_NOTHING_NAMED = (
    "name what to search: a Python environment, --venv DIR; a folder with packages, --source DIR; or the place where the "
    "service runs, first or with --on: gpuwhy trace root@host --unit sglang.service"
)


@click.command("trace")
@click.argument("words", nargs=-1, metavar="[WHERE] [QUESTION]")
@click.option("--on", "where", metavar="WHERE", default="", help="Where the packages are: local, an SSH destination, a container, a pod, a snapshot.")  # fmt: skip
@click.option("--unit", "-u", default="", help="Of WHERE: the unit that failed; without QUESTION its primary exception is traced.")  # fmt: skip
@click.option("--log", metavar="FILE", type=click.Path(path_type=Path), help="The traceback of a log, the first one.")
@click.option("--exception", "number", metavar="N", type=click.IntRange(1), default=1, show_default=True, help="Which exception of the log, or raise of the symbol.")  # fmt: skip
@click.option("--lines", is_flag=True, help="Which line of the source wrote each line of --log, or of the unit's log.")
@click.option("--venv", "environments", metavar="DIR", multiple=True, type=click.Path(path_type=Path), help="A Python environment, here (repeatable) or at WHERE.")  # fmt: skip
@click.option("--source", "folders", metavar="DIR", multiple=True, type=click.Path(path_type=Path), help="A folder with packages, or a package (repeatable).")  # fmt: skip
@click.option("--call", metavar="NAME", default="", help="In the symbol, the call of this instead of a raise.")
@click.option("--reads", metavar="VARIABLE", default="", help="Whether the package QUESTION reads this environment variable.")  # fmt: skip
@click.option("--import", "imported", metavar="MODULE:NAME", default="", help="Where a name went that cannot be imported.")  # fmt: skip
@click.option("--earlier", metavar="DIR", multiple=True, type=click.Path(path_type=Path), help="With --import: another release, newest first.")  # fmt: skip
@click.option("--follow", metavar="PACKAGE", multiple=True, help="Search this package too (repeatable).")
@click.option("--replay", "is_replay", is_flag=True, help="What the symbol does with the facts of a host: returns, raises, or needs a fact.")  # fmt: skip
@click.option("--facts", "facts_file", metavar="FILE", help="With --replay: the facts (YAML or JSON); those of WHERE are known.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "html", "json"]), default="text", show_default=True)
@click.option("--output", "-o", metavar="FILE", type=click.Path(path_type=Path), help="Write the answer to a file.")
@click.option("--verbose", "-v", is_flag=True, help="Every step, switch and user.")
@target_options
def command(
    words: tuple[str, ...],
    where: str,
    unit: str,
    log: Path | None,
    number: int,
    lines: bool,
    environments: tuple[Path, ...],
    folders: tuple[Path, ...],
    call: str,
    reads: str,
    imported: str,
    earlier: tuple[Path, ...],
    follow: tuple[str, ...],
    is_replay: bool,
    facts_file: str | None,
    form: str,
    output: Path | None,
    verbose: bool,
    reach: Reach,
) -> int:
    """The condition under which it fails, where each value in it comes from, which switches reach it, which exception
    was swallowed on the way, who else uses the value. Nothing of the packages is imported or run.

    \b
    QUESTION is a place    flashinfer/jit/core.py:109
             or a symbol   flashinfer.jit.core:check_cuda_arch
             or a signal   SIGKILL, where --source or --venv has the packages: who sends it
             or nothing    the traceback of --log, or the failure of --unit

    The packages are here (--venv, --source) or at WHERE: then only the files that are needed are fetched, and kept on
    this machine for the next time. WHERE comes first, or with --on:

    \b
    gpuwhy trace root@host --unit sglang.service
    gpuwhy trace root@host --unit sglang.service flashinfer/jit/core.py:109
    gpuwhy trace --on docker:vllm vllm.platforms.cuda:CudaPlatform
    gpuwhy trace host.gpuwhy

    One word alone is a QUESTION where it looks like one (FILE.py:LINE, MODULE:NAME, SIGKILL) and something to search is named,
    and WHERE otherwise; docker:NAME and k8s:POD are always WHERE.

    Exit status 0 when there is an answer, 1 when there is none, 3 when WHERE cannot be reached.
    """
    from gpuwhy import api
    from gpuwhy.cli.progress import shown_progress, shown_wait
    from gpuwhy.reports.trace_writing import Writer

    is_here = bool(folders or (environments and not where and len(words) < 2 and not unit))
    place, question = _told_apart(words, where, is_here, bool(reads))
    if place and folders:
        unusable(f"--source is a folder of this machine, and the packages of {place} are there; --venv DIR names an environment there")  # fmt: skip
    if not place and not is_here:
        unusable(_NOTHING_NAMED)
    writer = Writer(form, verbose, output)
    try:
        with shown_progress(place) as on_probe, shown_wait(_WAITING) as wipe:

            def begin(first: Trace) -> None:
                wipe()
                writer.begin(first)

            traced = api.trace(
                question,
                where=place or None,
                unit=unit,
                log=log,
                number=number,
                venvs=environments,
                folders=folders,
                call=call,
                reads=reads,
                imported=imported,
                earlier=earlier,
                follow=follow,
                lines=lines,
                replay=is_replay,
                facts=facts_file,
                via=reach.via,
                sudo=reach.sudo,
                timeout=reach.timeout,
                is_last=True,
                on_first=begin if writer.is_streaming else None,
                on_probe=on_probe,
            )
        writer.finish(traced.answer)
    except api.GpuwhyError as error:
        fail(error)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        unusable(f"{error.filename or output}: {error.strerror}")
    return 0 if traced.is_answered else FAILURE


def _told_apart(words: tuple[str, ...], where: str, is_here: bool, is_package: bool) -> tuple[str, str]:
    """WHERE and QUESTION of the words of a command line."""
    from gpuwhy.source.places import PLACE, SIGNAL, SYMBOL

    most = 1 if where or is_here else 2
    if len(words) > most:
        unusable(
            f"too many words: {' '.join(words)}; " + ("WHERE and QUESTION are two" if most == 2 else "QUESTION is one")
        )
    if where or is_here:
        return where, words[0] if words else ""
    if len(words) == 2:
        return words[0], words[1]
    (word,) = words or ("",)
    is_target = word.partition(":")[0] in ("docker", "podman", "nerdctl", "k8s")
    is_question = any(form.fullmatch(word) for form in (PLACE, SYMBOL, SIGNAL)) and not is_target
    return ("", word) if is_question or is_package else (word, "")
