"""From a line of source to the condition under which it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpuwhy.api.errors import UnusableError
from gpuwhy.api.places import TIMEOUT, GivenFacts, OnProbe, Where, facts_of, reached

if TYPE_CHECKING:
    from gpuwhy.investigate.tracing_target import Answer
    from gpuwhy.model.fact import Facts
    from gpuwhy.source.answering import Asked
    from gpuwhy.source.answers import Trace


class Traced(msgspec.Struct, frozen=True):
    """The answer of :func:`trace`, and whether it says anything."""

    answer: Answer
    is_answered: bool


def trace(
    question: str = "",
    *,
    where: Where | None = None,
    unit: str = "",
    log: str | Path | None = None,
    number: int = 1,
    venvs: Iterable[str | Path] = (),
    folders: Iterable[str | Path] = (),
    call: str = "",
    reads: str = "",
    imported: str = "",
    earlier: Iterable[str | Path] = (),
    follow: Iterable[str] = (),
    lines: bool = False,
    replay: bool = False,
    facts: GivenFacts = None,
    via: str = "",
    sudo: bool = False,
    timeout: float = TIMEOUT,
    is_last: bool = False,
    on_first: Callable[[Trace], None] | None = None,
    on_probe: OnProbe = None,
) -> Traced:
    """The condition under which a line fails, where its values come from, and which switches reach it.

    ``question`` is a place (``flashinfer/jit/core.py:109``), a symbol (``flashinfer.jit.core:check_cuda_arch``), or empty: then
    the traceback of ``log``, or the failure of ``unit``, is meant. The packages are in ``venvs`` or ``folders`` of this machine,
    or at ``where``, and there in its one environment ``venvs``. ``reads`` (a variable), ``imported`` (``module:name``), ``lines``
    and ``replay`` ask what the options of the same name of ``gpuwhy trace`` do. ``is_last``: the process ends with the answer.
    Nothing of the packages is imported or run.
    """
    from gpuwhy.source.answering import Asked

    asked = Asked(
        question,
        Path(log) if log is not None else None,
        number,
        tuple(Path(each) for each in venvs),
        tuple(Path(each) for each in folders),
        call,
        reads,
        imported,
        tuple(Path(each) for each in earlier),
        tuple(follow),
    )
    if where is None and log is None and not question and not imported:
        raise UnusableError(
            "name what to trace: a line (flashinfer/jit/core.py:109), a symbol (flashinfer.jit.core:check_cuda_arch), or a log"
        )
    if replay and ":" not in question:
        raise UnusableError("--replay needs a symbol: gpuwhy trace --replay flashinfer.jit.core:check_cuda_arch ...")
    if where is None:
        return _traced_here(asked, lines, facts_of(facts) if replay else None, is_last, on_first)
    if asked.folders:
        raise UnusableError("--source is a folder of this machine, and WHERE is another place; --venv names an environment there")  # fmt: skip
    if len(asked.environments) > 1:
        raise UnusableError("name one --venv of WHERE")
    from gpuwhy.investigate.tracing_target import Wish, answer_on

    python = str(asked.environments[0]) if asked.environments else ""
    wish = Wish(asked, unit, python, lines, replay, facts_of(facts))
    with reached(where, via=via, sudo=sudo) as target, _questioned(asked):
        answered = answer_on(target, wish, timeout, on_first, on_probe)
    return Traced(answered.answer, answered.is_answered)


def _traced_here(
    asked: Asked, is_lines: bool, replayed_with: Facts | None, is_last: bool, on_first: Callable[[Trace], None] | None
) -> Traced:
    with _questioned(asked):
        if replayed_with is not None:
            return _replayed(asked, replayed_with)
        if is_lines and asked.log is not None:
            from gpuwhy.source import Cache
            from gpuwhy.source.asking import roots_of
            from gpuwhy.source.texts_asking import places_in

            roots = roots_of(asked.environments, asked.folders)
            places = places_in(asked.log, roots, asked.follow, Cache.of_user())
            return Traced(places, any(each.origins for each in places.lines))
        from gpuwhy.source.answering import answer

        return Traced(*answer(asked, on_first, is_last=is_last))


def _replayed(asked: Asked, facts: Facts) -> Traced:
    """What a function would do on a host with these facts."""
    from gpuwhy.source.replay import FolderSource, Returned, replay
    from gpuwhy.source.roots import site_packages

    searched = [
        inner for folder in (*asked.environments, *asked.folders) for inner in (site_packages(folder) or (folder,))
    ]
    replayed = replay(FolderSource(searched), asked.question, facts)
    return Traced(replayed, isinstance(replayed.outcome, Returned))


@contextmanager
def _questioned(asked: Asked) -> Iterator[None]:
    """What is wrong with a question about source."""
    from gpuwhy.logs import UnreadableLog
    from gpuwhy.source.asking import QuestionError

    try:
        yield
    except UnreadableLog as error:
        raise UnusableError(str(error)) from error
    except (QuestionError, ValueError) as error:
        raise UnusableError(str(error)) from error
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise UnusableError(f"{error.filename or asked.log or asked.question}: {error.strerror}") from error
