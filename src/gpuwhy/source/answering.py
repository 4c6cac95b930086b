"""One call for what the command line asks: a trace, the reads of a variable, or where a name went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from gpuwhy.logs import open_log
from gpuwhy.model.event import Log
from gpuwhy.source import places
from gpuwhy.source.absence import reads_of
from gpuwhy.source.answers import Absence, Moved, Trace
from gpuwhy.source.asking import QuestionError, exceptions_of, question_of, roots_of, too_few
from gpuwhy.source.cache import Cache
from gpuwhy.source.moved import where_is
from gpuwhy.source.roots import Root
from gpuwhy.source.seen_in_log import seen_in
from gpuwhy.source.tracing import Question, trace
from gpuwhy.source.trees import uncollected


class Asked(msgspec.Struct, frozen=True):
    """The arguments of ``gpuwhy trace``, as given."""

    question: str = ""
    log: Path | None = None
    number: int = 1
    environments: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    call: str = ""
    reads: str = ""
    imported: str = ""
    earlier: tuple[Path, ...] = ()
    follow: tuple[str, ...] = ()


def answer(
    asked: Asked, on_first: Callable[[Trace], None] | None = None, *, is_last: bool = True
) -> tuple[Trace | Absence | Moved, bool]:
    """The answer, and whether there is one. Raises QuestionError, OSError and UnreadableLog.

    ``is_last``: the process ends with it, and what was read stays in memory.
    """
    with uncollected(is_last=is_last):
        return _answer(asked, on_first)


def _answer(asked: Asked, on_first: Callable[[Trace], None] | None) -> tuple[Trace | Absence | Moved, bool]:
    roots = roots_of(asked.environments, asked.folders)
    cache = Cache.of_user()
    if asked.reads:
        if asked.question not in roots:
            raise QuestionError(
                f"{asked.question or '--reads'}: name a package that is there, for example {_example(roots)}"
            )
        return reads_of(roots, asked.reads, asked.question, cache), True
    if asked.imported:
        return _moved(asked, roots, cache)
    logs = (open_log(asked.log),) if asked.log is not None else ()

    def begin(first: Trace) -> None:
        if on_first is not None:
            on_first(seen_in(first, logs))

    found = trace(roots, _question(asked, logs), cache, begin if on_first is not None else None)
    return seen_in(found, logs), not found.problem


def _question(asked: Asked, logs: Sequence[Log]) -> Question:
    if not logs:
        return question_of(asked.question, asked.call, asked.number - 1, asked.follow)
    raised = exceptions_of(logs[0])
    if asked.number > len(raised):
        raise QuestionError(f"{asked.log}: {too_few(len(raised))}")
    return Question(raised=raised[asked.number - 1], follow=asked.follow)


def _moved(asked: Asked, roots: dict[str, Root], cache: Cache) -> tuple[Moved, bool]:
    module, _, name = asked.imported.partition(":")
    if not places.SYMBOL.fullmatch(f"{module}:{name or 'x'}"):
        raise QuestionError(f"{asked.imported}: not MODULE:NAME")
    others = {folder.name: roots_of((), (folder,)) for folder in asked.earlier}
    found = where_is(roots, module, name, others, cache)
    return found, bool(found.here or found.elsewhere or found.is_module_there)


def _example(roots: dict[str, Root]) -> str:
    known = sorted(roots)
    return next(
        (name for name in ("flashinfer", "sglang", "vllm", "torch") if name in roots), known[0] if known else "none"
    )
