"""One replay from its entry to its outcome."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from gpuwhy.model.fact import Facts
from gpuwhy.source.replay.machine import UNFORESEEN, Machine, shown
from gpuwhy.source.replay.oracle import Oracle
from gpuwhy.source.replay.outcome import NeedsFact, NotModelled, Outcome, Place, Raised, Replay, Returned
from gpuwhy.source.replay.scopes import Scope
from gpuwhy.source.replay.sources import SourceOfModules
from gpuwhy.source.replay.stops import Jump, NeedsFactError, NotModelledError, ReplayedError, StopReplayError
from gpuwhy.source.replay.values import Called, Frame, Module, Native

MAX_STEPS = 400_000
_MAX_MESSAGE = 2_000


def replay(
    modules: SourceOfModules,
    entry: str,
    facts: Facts | Mapping[str, Any],
    arguments: Sequence[Any] = (),
    max_steps: int = MAX_STEPS,
    seconds: float | None = None,
) -> Replay:
    """What the code at ``entry`` does where the facts hold.

    ``entry`` is ``module:expression``: a function or method, which is called with ``arguments``, any other expression,
    which is evaluated (``flashinfer.jit.core:CompilationContext().get_nvcc_flags_list([9])``), or nothing, which only
    imports the module. ``facts`` are keys of ``docs/facts.md`` with their values, as ``--facts`` gives them. ``seconds`` of
    processor time end it as too many steps do.

    The code of a module runs before its functions; a package's own code only when a name of it is needed. Never raises
    for what the source or the facts contain; a ``ValueError`` says that ``entry`` is no such expression.
    """
    name, _, text = entry.partition(":")
    expression = _parsed(text)
    machine = Machine(modules, Oracle(facts, name.partition(".")[0]), max_steps, seconds)
    outcome = _outcome(machine, name, expression, tuple(arguments))
    return Replay(entry, outcome, tuple(machine.trail), tuple(machine.order), machine.steps, machine.trail_cut)


def _parsed(text: str) -> ast.expr | None:
    if not text.strip():
        return None
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        message = f"not an expression: {text!r:.80}"
        raise ValueError(message) from error


def _outcome(machine: Machine, name: str, expression: ast.expr | None, arguments: tuple[Any, ...]) -> Outcome:
    module = machine.module(name)
    if module is None:
        return NotModelled(f"the source of {name}", Place("", 0))
    try:
        machine.run_module(module)
        value = _value(machine, module, expression, arguments) if expression is not None else None
        return Returned(shown(value))
    except ReplayedError as error:
        kind, message = machine.exception_text(error.value)
        return Raised(kind, message[:_MAX_MESSAGE], error.place, error.stack)
    except NeedsFactError as stop:
        return NeedsFact(stop.key, stop.place or machine.place(module.frame), stop.command)
    except NotModelledError as stop:
        return NotModelled(stop.what, stop.place or machine.place(module.frame))
    except (Jump, MemoryError, *UNFORESEEN) as error:
        return NotModelled(f"{type(error).__name__} in the replay", machine.place(module.frame))


def _value(machine: Machine, module: Module, expression: ast.expr, arguments: tuple[Any, ...]) -> Any:
    frame = Frame("entry", module, {}, module.frame, Scope())
    machine.frames.append(frame)
    try:
        value = machine.evaluate(expression, frame)
        is_named = isinstance(expression, (ast.Name, ast.Attribute))
        if is_named and isinstance(value, (Called, Native)):
            return machine.call(value, arguments, {})
        return value
    except StopReplayError as stop:
        if stop.place is None:
            stop.place = machine.place()
        raise
    finally:
        machine.frames.pop()
