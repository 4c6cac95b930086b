"""How a cause joins the catalogue: the :func:`cause` decorator, and discovery of the family folders and plug-ins."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import typing
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from gpuwhy.causes._case import Case
from gpuwhy.causes._signs import Sign
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import RuledOut, Verdict

Judgement: TypeAlias = Verdict | RuledOut | None
"""None: the signs turned out not to be this cause's at all."""

_ATTRIBUTE = "__gpuwhy_cause__"


class CauseEntry(msgspec.Struct, frozen=True):
    """One cause of the catalogue. ``views`` are the typed facts its function names as parameters, in order.

    ``leads_to`` are the ids of causes that this one makes appear elsewhere: on another rank, at the next start.
    """

    id: str
    family: str
    signs: tuple[Sign, ...]
    function: Callable[..., Judgement]
    views: tuple[type[Any], ...]
    leads_to: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return self.documentation.partition("\n")[0]

    @property
    def documentation(self) -> str:
        return inspect.cleandoc(self.function.__doc__ or "")

    def judge(self, case: Case) -> Judgement:
        """Ask the cause. Facts it names and nobody knows arrive as :class:`Unknown`."""
        return self.function(case, *(view.of(case.facts) for view in self.views))


def cause(
    identity: str, *, family: str, signs: Sequence[Sign], leads_to: Sequence[str] = ()
) -> Callable[[Callable[..., Judgement]], Callable[..., Judgement]]:
    """Declare a function as the judge of a cause.

    Its first parameter is the :class:`Case`; each further one is annotated ``View | Unknown`` with a view of
    :mod:`gpuwhy.model.host`, and is given from the facts. Raises TypeError when a parameter names no view, or when
    the docstring, which is the user's documentation, is missing. ``leads_to``: see :class:`CauseEntry`.
    """

    def register(function: Callable[..., Judgement]) -> Callable[..., Judgement]:
        if not function.__doc__:
            raise TypeError(f"cause {identity} has no documentation")
        entry = CauseEntry(identity, family, tuple(signs), function, _views_of(identity, function), tuple(leads_to))
        setattr(function, _ATTRIBUTE, entry)
        return function

    return register


def _views_of(identity: str, function: Callable[..., Judgement]) -> tuple[type[Any], ...]:
    hints = typing.get_type_hints(function)
    views = []
    for name in list(inspect.signature(function).parameters)[1:]:
        options = [t for t in typing.get_args(hints[name]) or (hints[name],) if t is not Unknown]
        if len(options) != 1 or not hasattr(options[0], "of"):
            raise TypeError(f"cause {identity}: parameter {name} names no view of the facts")
        views.append(options[0])
    return tuple(views)


@functools.cache
def catalogue() -> Mapping[str, CauseEntry]:
    """All causes by id: those of the family folders here, then those of the entry-point group ``gpuwhy.causes``.

    Raises ValueError when two causes claim one id.
    """
    import gpuwhy.causes as package

    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        if not found.name.rpartition(".")[2].startswith("_")
    ]
    modules += _plugins()
    entries: dict[str, CauseEntry] = {}
    for module in modules:
        for value in vars(module).values():
            entry = getattr(value, _ATTRIBUTE, None)
            if not isinstance(entry, CauseEntry) or value.__module__ != module.__name__:
                continue
            if entry.id in entries:
                raise ValueError(f"two causes claim the id {entry.id}")
            entries[entry.id] = entry
    return entries


def _plugins() -> list[Any]:
    """The modules of installed plug-ins. One that cannot be loaded is left out with a warning: it is not our cause."""
    from importlib.metadata import entry_points

    modules = []
    for point in entry_points(group="gpuwhy.causes"):
        try:
            modules.append(point.load())
        except Exception as error:  # noqa: BLE001 - whatever a plug-in raises must not cost the diagnosis
            warnings.warn(f"the causes of {point.value} are left out: {error}", RuntimeWarning, stacklevel=2)
    return modules
