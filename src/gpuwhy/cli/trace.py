"""``gpuwhy trace``: from a traceback, a place or a symbol to the failing condition and everything that reaches it."""

from __future__ import annotations

from pathlib import Path

import click

from gpuwhy.cli.failing import unusable
from gpuwhy.cli.group import FAILURE


@click.command("trace")
@click.argument("question", required=False, default="")
@click.option("--log", metavar="FILE", type=click.Path(path_type=Path), help="The traceback of a log, the first one.")
@click.option("--exception", "number", metavar="N", type=click.IntRange(1), default=1, show_default=True, help="Which exception of the log, or raise of the symbol.")  # fmt: skip
@click.option("--lines", is_flag=True, help="With --log: which line of the source wrote each line of it.")
@click.option("--venv", "environments", metavar="DIR", multiple=True, type=click.Path(path_type=Path), help="A Python environment (repeatable).")  # fmt: skip
@click.option("--source", "folders", metavar="DIR", multiple=True, type=click.Path(path_type=Path), help="A folder with packages, or a package (repeatable).")  # fmt: skip
@click.option("--call", metavar="NAME", default="", help="In the symbol, the call of this instead of a raise.")
@click.option("--reads", metavar="VARIABLE", default="", help="Whether the package QUESTION reads this environment variable.")  # fmt: skip
@click.option("--import", "imported", metavar="MODULE:NAME", default="", help="Where a name went that cannot be imported.")  # fmt: skip
@click.option("--earlier", metavar="DIR", multiple=True, type=click.Path(path_type=Path), help="With --import: another release, newest first.")  # fmt: skip
@click.option("--follow", metavar="PACKAGE", multiple=True, help="Search this package too (repeatable).")
@click.option("--replay", "is_replay", is_flag=True, help="What the symbol does with the facts of a host: returns, raises, or needs a fact.")  # fmt: skip
@click.option("--facts", "facts_file", metavar="FILE", help="With --replay: the facts (YAML or JSON).")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--output", "-o", metavar="FILE", type=click.Path(path_type=Path), help="Write the answer to a file.")
@click.option("--verbose", "-v", is_flag=True, help="Every step, switch and user.")
def command(
    question: str,
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
) -> int:
    """From a place (flashinfer/jit/core.py:109), a symbol (flashinfer.jit.core:check_cuda_arch) or the traceback of a
    log: the condition under which it fails, where each value in it comes from, which switches reach it, which exception
    was swallowed on the way, who else uses the value. Nothing of the packages is imported or run.

    Exit status 0 when there is an answer, 1 when there is none.
    """
    from gpuwhy.logs import UnreadableLog
    from gpuwhy.reports.trace_writing import Writer
    from gpuwhy.source.answering import Asked, answer
    from gpuwhy.source.asking import QuestionError

    if not environments and not folders:
        unusable("name a Python environment, --venv DIR, or a folder with packages, --source DIR")
    if is_replay:
        return _replayed(question, (*environments, *folders), facts_file, form, output, verbose)
    writer = Writer(form, verbose, output)
    asked = Asked(question, log, number, environments, folders, call, reads, imported, earlier, follow)
    try:
        if lines and log is not None:
            return _places(log, environments, folders, follow, form, output, verbose)
        found, is_answered = answer(asked, writer.begin)
        writer.finish(found)
    except QuestionError as error:
        unusable(str(error))
    except UnreadableLog as error:
        unusable(f"{log}: {error}")
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        unusable(f"{error.filename or output or log}: {error.strerror}")
    return 0 if is_answered else FAILURE


def _replayed(
    symbol: str, folders: tuple[Path, ...], facts_file: str | None, form: str, output: Path | None, verbose: bool
) -> int:
    """What a function would do on a host with these facts. Exit status 1 when it raises or cannot be decided."""
    from gpuwhy.model.fact import Facts
    from gpuwhy.reports.replay import render
    from gpuwhy.snapshot import SnapshotError, read_given
    from gpuwhy.source.replay import FolderSource, Returned, replay
    from gpuwhy.source.roots import site_packages

    if ":" not in symbol:
        unusable("--replay needs a symbol: gpuwhy trace --replay flashinfer.jit.core:check_cuda_arch ...")
    try:
        facts = read_given(facts_file).facts if facts_file else Facts()
    except SnapshotError as error:
        unusable(str(error))
    searched = [inner for folder in folders for inner in (site_packages(folder) or (folder,))]
    replayed = replay(FolderSource(searched), symbol, facts)
    shown = render(replayed, form, verbose=verbose)
    if output is None:
        click.echo(shown.encode("utf-8", "replace"), nl=False)
    else:
        try:
            output.write_text(shown, encoding="utf-8", errors="replace")
        except OSError as error:
            unusable(f"{output}: {error.strerror}")
    return 0 if isinstance(replayed.outcome, Returned) else FAILURE


def _places(
    log: Path,
    environments: tuple[Path, ...],
    folders: tuple[Path, ...],
    follow: tuple[str, ...],
    form: str,
    output: Path | None,
    verbose: bool,
) -> int:
    """Where each line of a log was written."""
    from gpuwhy.reports.log_places import render
    from gpuwhy.source import Cache
    from gpuwhy.source.asking import roots_of
    from gpuwhy.source.texts_asking import places_in

    found = places_in(log, roots_of(environments, folders), follow, Cache.of_user())
    shown = render(found, form, verbose)
    if output is not None:
        output.write_text(shown, encoding="utf-8", errors="replace")
    else:
        click.echo(shown.encode("utf-8", "replace"), nl=False)
    return 0 if any(each.origins for each in found.lines) else FAILURE
