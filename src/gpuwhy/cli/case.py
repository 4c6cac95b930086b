"""``gpuwhy case new FILE``: a labelled case for the project, from a log or snapshot and the right answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuwhy.cli.failing import unusable, warn

if TYPE_CHECKING:
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.reports.case_file import Answer

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,80}\Z")


@click.group("case")
def command() -> None:
    """Labelled cases: crashes with their right answers, which the diagnosis is measured by."""


@command.command("new")
@click.argument("file")
@click.option("--id", "identity", metavar="NAME", required=True, help="Of the case, and of its file: sglang-no-nvcc.")
@click.option("--cause", metavar="ID", required=True, help="The right one (gpuwhy causes lists them).")
@click.option("--why", required=True, help="The mechanism, in one to three sentences.")
@click.option("--title", default="", help="One sentence that names the cause.")
@click.option("--source", metavar="REFERENCE", default="", help="The public thread it comes from: OWNER/NAME#NUMBER.")
@click.option("--component", metavar="NAME", default="", help="The part that a fix must name.")
@click.option("--decisive-line", metavar="TEXT", default="", help="The line that shows the cause, or a part of it.")
@click.option("--host-fact", metavar="TEXT", default="", help="The fact of the host that decides, in words.")
@click.option("--remedy", "remedies", metavar="KIND:NAME[=VALUE]", multiple=True, help="What helped: env:CUDA_HOME=/usr/local/cuda-12.9 (repeatable, best first).")  # fmt: skip
@click.option("--fix", "fixes", metavar="TEXT", multiple=True, help="What helped, in words (repeatable).")
@click.option(
    "--wrong-fix", "wrong_fixes", metavar="TEXT", multiple=True, help="What did not help, or did harm (repeatable)."
)
@click.option("--confirmed-by", metavar="WHO", default="reporter", show_default=True, help="maintainer, reporter, merged-pr REFERENCE, or technical.")  # fmt: skip
@click.option("--into", metavar="FOLDER", type=click.Path(path_type=Path), default=Path(), help="Where it is written; here by default.")  # fmt: skip
def new(
    file: str, identity: str, cause: str, why: str, title: str, source: str, component: str, decisive_line: str, host_fact: str,
    remedies: tuple[str, ...], fixes: tuple[str, ...], wrong_fixes: tuple[str, ...], confirmed_by: str, into: Path,
) -> int:  # fmt: skip
    """Write FILE (a log, a report or a snapshot) and its right answer as a case, NAME.yaml, ready for a pull request.

    Secrets, and names of hosts, addresses, users and folders are taken out; read it once more all the same. What gpuwhy says
    of the case as it is written is told on standard error: where that is wrong, the case is worth most.
    """
    from gpuwhy.causes import catalogue
    from gpuwhy.reports.case_file import Answer, CaseError, case_of, written

    if not _ID.match(identity):
        unusable(f"--id {identity}: small letters, digits, - and _")
    if not _ID.match(cause):
        unusable(f"--cause {cause}: an id such as toolkit-missing; gpuwhy causes lists them")
    if cause not in catalogue():
        warn(f"no cause is called {cause}; the case is then one that the catalogue should come to explain")
    answer = Answer(
        id=identity, cause=cause, why=why, title=title, source=source, component=component, decisive_line=decisive_line, host_fact=host_fact,
        remedies=tuple(_remedy(each) for each in remedies), fixes=fixes, wrong_fixes=wrong_fixes, confirmed_by=confirmed_by,
    )  # fmt: skip
    diagnosis = _diagnosed(file)
    try:
        case = case_of(diagnosis, answer, needs_host=False)
        alone = _again(case["report"])
        if _says(alone, cause) != "right" and any(each.evidence.place is None or each.evidence.place.source != "log" for each in diagnosis.facts):  # fmt: skip
            case = case_of(diagnosis, answer, needs_host=True)
    except CaseError as error:
        unusable(f"{file}: {error}")
    path = into / f"{identity}.yaml"
    try:
        with path.open("x", encoding="utf-8") as opened:
            opened.write(written(case))
    except FileExistsError:
        unusable(f"{path} is there already; choose another --id")
    except OSError as error:
        unusable(f"{path}: {error.strerror}")
    _told(path, answer, alone, case)
    return 0


def _remedy(text: str) -> dict[str, str]:
    from gpuwhy.model.remedy import KINDS

    kind, colon, rest = text.partition(":")
    name, equals, value = rest.partition("=")
    if not colon or not name or kind not in (*KINDS, "none-yet"):
        unusable(f"--remedy {text}: write KIND:NAME=VALUE with KIND one of {', '.join(KINDS)}")
    return {"kind": kind, "name": name, **({"value": value} if equals else {})}


def _diagnosed(file: str) -> Diagnosis:
    from gpuwhy.investigate import investigate
    from gpuwhy.logs import UnreadableLog
    from gpuwhy.remedies import prescribe
    from gpuwhy.snapshot import SnapshotError
    from gpuwhy.targets import PathTarget, TargetError

    try:
        return prescribe(investigate(PathTarget(file)))
    except (UnreadableLog, SnapshotError, TargetError) as error:
        unusable(str(error))


def _again(report: str) -> Diagnosis:
    """What the text says that is kept: names that were taken out, and lines that were cut, must not change the answer."""
    from gpuwhy.investigate import diagnose_log

    return diagnose_log(report.encode(), "report")


def _says(diagnosis: Diagnosis, cause: str) -> str:
    if not diagnosis.findings:
        return "nothing"
    first = diagnosis.findings[0]
    return "right" if first.cause == cause and first.certainty.value != "possible" else first.cause


def _told(path: Path, answer: Answer, alone: Diagnosis, case: dict[str, object]) -> None:
    click.echo(str(path))
    first = alone.findings[0] if alone.findings else None
    said = f"{first.cause}, {first.certainty.value}" if first is not None else "no cause of the catalogue"
    warn(f"from the report alone gpuwhy says: {said}" + ("" if first and first.cause == answer.cause else f" (and the right one is {answer.cause})"))  # fmt: skip
    if "given_host" in case:
        warn("given_host holds what was known of the host: keep what decides, and say it with --host-fact")
    if not answer.remedies:
        warn("its remedies are those that gpuwhy proposes: keep those that helped")
    warn("read it before you hand it on: names that no pattern knows are still in it")
