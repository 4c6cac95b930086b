"""``gpuwhy show FILE``: what a snapshot holds, so that it can be read before it is sent; and any saved answer in any format."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from gpuwhy.cli.failing import unusable
from gpuwhy.cli.format_options import FormatName

if TYPE_CHECKING:
    from gpuwhy.reports import Detail
    from gpuwhy.snapshot import Snapshot


@click.command("show")
@click.argument("file")
@click.option("--probe", "-p", metavar="NAME", default="", help="All that one question brought, as JSON.")
@click.option("--redactions", is_flag=True, help="How many secrets were taken out, of which kinds, and where.")
@click.option("--redact", metavar="KINDS", default="", help="For the public: take out hosts,ips,users,paths, or all.")
@click.option(
    "--output", "-o", metavar="FILE", default="", help="Write the snapshot, so redacted, or the report to a file."
)
@click.option("--format", "form", type=FormatName(""), default="text", show_default=True)
@click.option("--verbose", "-v", is_flag=True, help="Of a saved answer, all of it.")
@click.option("--show-work", is_flag=True, help="Of a saved diagnosis, the record of the investigation too.")
@click.option("--private", is_flag=True, help="With --format markdown: leave names and secrets as they are.")
def command(
    file: str, probe: str, redactions: bool, redact: str, output: str, form: str, verbose: bool, show_work: bool, private: bool
) -> int:  # fmt: skip
    """What FILE holds: a snapshot, or an answer that was saved with --format json (of diagnose, check, inspect, diff, fit, trace,
    fix, verify, undo, history, fleet report).

    Of a snapshot: every question, its outcome, and the secrets that were taken out; another format than text and json shows
    what it says of the failure. With --redact KINDS --output FILE, a copy without the names of hosts, addresses, users or
    paths is written.
    """
    from gpuwhy.reports import Detail
    from gpuwhy.reports.writing import put

    detail = Detail(verbose=verbose or show_work, show_work=show_work, is_private=private)
    snapshot = _snapshot(file)
    if snapshot is None:
        if probe or redactions or redact:
            unusable(f"{file} is no snapshot: --probe, --redactions and --redact are for one")
        _show_answer(file, form, detail, output)
        return 0
    snapshot = _redacted(snapshot, redact) if redact else snapshot
    if form not in ("text", "json"):
        _write(_diagnosis(snapshot, file), form, detail, output)
    elif output:
        _save(snapshot, output)
    else:
        put(_text(snapshot, file, probe, redactions, form))
    return 0


def _snapshot(file: str) -> Snapshot | None:
    """The snapshot in the file; None where it is a JSON document of another kind."""
    from gpuwhy.snapshot import SnapshotError, read

    try:
        with Path(file).open("rb") as opened:
            beginning = opened.read(4096).lstrip()
        if beginning.startswith(b"{") and b'"probes"' not in beginning and not _has_probes(file):
            return None
        return read(file)
    except SnapshotError as error:
        unusable(str(error))
    except (OSError, ValueError) as error:
        unusable(f"{file}: {error.strerror if isinstance(error, OSError) else 'no file can be called so'}")


def _has_probes(file: str) -> bool:
    import msgspec

    try:
        document = msgspec.json.decode(Path(file).read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(document, dict) and "probes" in document


def _redacted(snapshot: Snapshot, redact: str) -> Snapshot:
    from gpuwhy.snapshot.anonymising import anonymised, parse_kinds

    try:
        return anonymised(snapshot, parse_kinds(redact))
    except ValueError as error:
        unusable(f"--redact {error}")


def _save(snapshot: Snapshot, output: str) -> None:
    from gpuwhy.snapshot import write

    try:
        write(snapshot, output)
    except OSError as error:
        unusable(f"{output}: {error.strerror}")


def _text(snapshot: Snapshot, file: str, probe: str, redactions: bool, form: str) -> str:
    from gpuwhy.reports import snapshot as report

    if probe:
        found = snapshot.probe(probe)
        if found is None:
            unusable(f"{file} has no probe {probe}; it has {', '.join(sorted(each.name for each in snapshot.probes))}")
        return report.probe_value(found)
    if redactions:
        return report.redactions(snapshot)
    return report.whole(snapshot) if form == "json" else report.overview(snapshot)


class _Held:
    """A snapshot that is held in memory, as a file that stands for a target."""

    kind = "file"

    def __init__(self, name: str, snapshot: Snapshot) -> None:
        self.name = name
        self._snapshot = snapshot

    def stream(self) -> BinaryIO:
        from gpuwhy.snapshot import encode

        return io.BytesIO(encode(self._snapshot))


def _diagnosis(snapshot: Snapshot, file: str) -> object:
    from gpuwhy.investigate import investigate
    from gpuwhy.remedies import prescribe

    return prescribe(investigate(_Held(file, snapshot)))


def _show_answer(file: str, form: str, detail: Detail, output: str) -> None:
    from gpuwhy.reports.reading import UnreadableReportError, read_answer

    try:
        answer = read_answer(Path(file).read_bytes(), file)
    except UnreadableReportError as error:
        unusable(str(error))
    except OSError as error:
        unusable(f"{file}: {error.strerror}")
    _write(answer, form, detail, output)


def _write(answer: object, form: str, detail: Detail, output: str) -> None:
    from gpuwhy.reports import UnknownFormatError, write

    try:
        write(answer, form, detail, Path(output) if output else None)
    except UnknownFormatError as error:
        unusable(f"--format {error}")
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        unusable(f"{output}: {error.strerror}")
