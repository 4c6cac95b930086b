"""From what a person types to roots and a question: environments, checkouts, logs, places, symbols."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gpuwhy.logs import find_events, open_log
from gpuwhy.model.event import Log, RaisedException
from gpuwhy.source import places
from gpuwhy.source.roots import FolderRoot, Root, packages_in, site_packages
from gpuwhy.source.tracing import Question


class QuestionError(Exception):
    """What was asked cannot be understood; the message says what would be."""


def roots_of(environments: Iterable[Path], folders: Iterable[Path]) -> dict[str, Root]:
    """The packages of Python environments and of folders; the first one of a name counts. Raises QuestionError."""
    found: dict[str, Root] = {}
    for environment in environments:
        sites = site_packages(environment)
        if not sites:
            raise QuestionError(f"{environment}: no Python environment with packages")
        for site in sites:
            _add(found, packages_in(site))
            _add(found, _editable(site))
    for folder in folders:
        if not folder.is_dir():
            raise QuestionError(f"{folder}: no such folder")
        packages = packages_in(folder)
        inner = [folder / name for name in ("src", "python") if (folder / name).is_dir()]
        _add(found, packages)
        for each in inner:
            _add(found, packages_in(each))
    return found


def _add(found: dict[str, Root], packages: dict[str, FolderRoot]) -> None:
    for name, root in packages.items():
        found.setdefault(name, root)


def _editable(site: Path) -> dict[str, FolderRoot]:
    """Packages that a path file of an editable install points to."""
    found: dict[str, FolderRoot] = {}
    for file in sorted(site.glob("*.pth"))[:200]:
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for line in lines[:200]:
            folder = Path(line.strip())
            if (
                line.strip()
                and not line.startswith(("import ", "import\t"))
                and folder.is_absolute()
                and folder.is_dir()
            ):
                found |= packages_in(folder)
    return found


def question_of(text: str, call: str = "", number: int = 0, follow: tuple[str, ...] = ()) -> Question:
    """A place, a symbol, or a signal (who sends it). Raises QuestionError."""
    if places.PLACE.fullmatch(text):
        return Question(place=text, follow=follow)
    if places.SYMBOL.fullmatch(text):
        return Question(symbol=text, call=call, number=number, follow=follow)
    if places.SIGNAL.fullmatch(text):
        return Question(signal=text, follow=follow)
    raise QuestionError(
        f"{text}: neither a place (flashinfer/jit/core.py:109) nor a symbol (flashinfer.jit.core:check_cuda_arch) "
        "nor a signal (SIGKILL)"
    )


def exceptions_in(path: Path) -> tuple[RaisedException, ...]:
    """:func:`exceptions_of` the log in a file. Raises OSError and UnreadableLog too."""
    return exceptions_of(open_log(path))


def exceptions_of(log: Log) -> tuple[RaisedException, ...]:
    """The exceptions of a log that have frames, each chain from the first raised on. Raises QuestionError."""
    found = tuple(raised for event in find_events(log) for raised in event.exceptions if raised.frames)
    if not found:
        raise QuestionError(f"{log.name}: no traceback of Python stands in it")
    return found


def too_few(count: int) -> str:
    """Why there is no exception of the number that was asked for."""
    return "it has one exception with frames" if count == 1 else f"it has {count} exceptions with frames"
