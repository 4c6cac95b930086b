"""What each statement does."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpuwhy.source.replay import attributes, classes, operators
from gpuwhy.source.replay.stops import (
    BreakJump,
    ContinueJump,
    NotModelledError,
    ReplayedError,
    ReturnJump,
    StopReplayError,
)
from gpuwhy.source.replay.values import (
    REPLAYED,
    Bound,
    Class,
    Frame,
    Function,
    Guarded,
    Inert,
    Instance,
    Lazy,
    Module,
    Native,
    Unknown,
)

if TYPE_CHECKING:
    from gpuwhy.source.replay.machine import Machine


def _expression(machine: Machine, node: ast.Expr, frame: Frame) -> None:
    if not isinstance(node.value, ast.Constant):
        machine.evaluate(node.value, frame)


def _assign(machine: Machine, node: ast.Assign, frame: Frame) -> None:
    value = machine.evaluate(node.value, frame)
    for target in node.targets:
        assign(machine, target, value, frame)


def _annotated(machine: Machine, node: ast.AnnAssign, frame: Frame) -> None:
    if node.value is not None:
        assign(machine, node.target, machine.evaluate(node.value, frame), frame)


def _augmented(machine: Machine, node: ast.AugAssign, frame: Frame) -> None:
    target = node.target
    if isinstance(target, ast.Name):
        old = machine.load(target.id, frame)
        value = operators.in_place(machine, node.op, old, machine.evaluate(node.value, frame))
        machine.store(target.id, value, frame)
        return
    holder = machine.evaluate(target.value, frame)
    if isinstance(target, ast.Attribute):
        old = machine.attribute(holder, target.attr)
        value = operators.in_place(machine, node.op, old, machine.evaluate(node.value, frame))
        attributes.assign(machine, holder, target.attr, value)
        return
    key = machine.evaluate(target.slice, frame)
    old = operators.subscript(machine, holder, key)
    value = operators.in_place(machine, node.op, old, machine.evaluate(node.value, frame))
    operators.assign_item(machine, holder, key, value)


def assign(machine: Machine, target: ast.expr, value: Any, frame: Frame) -> None:
    """Bind a target of an assignment, loop or ``with``."""
    if isinstance(target, ast.Name):
        machine.store(target.id, value, frame)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(machine, target, value, frame)
    elif isinstance(target, ast.Attribute):
        holder = machine.evaluate(target.value, frame)
        frame.line = target.lineno
        attributes.assign(machine, holder, target.attr, value)
    elif isinstance(target, ast.Subscript):
        holder = machine.evaluate(target.value, frame)
        key = machine.evaluate(target.slice, frame)
        frame.line = target.lineno
        operators.assign_item(machine, holder, key, value)
    else:
        raise NotModelledError(f"assignment to {type(target).__name__}")


def _unpack(machine: Machine, target: ast.Tuple | ast.List, value: Any, frame: Frame) -> None:
    frame.line = target.lineno
    starred = [number for number, each in enumerate(target.elts) if isinstance(each, ast.Starred)]
    wanted = len(target.elts)
    items: list[Any] = []
    _refuse_single(machine, value)
    for item in machine.iterate(value):
        items.append(item)
        if len(items) > wanted and not starred:
            raise machine.error(ValueError(f"too many values to unpack (expected {wanted})"))
    least = wanted - len(starred)
    if len(items) < least:
        at_least = "at least " if starred else ""
        raise machine.error(ValueError(f"not enough values to unpack (expected {at_least}{least}, got {len(items)})"))
    if starred:
        first, after = starred[0], wanted - starred[0] - 1
        last = len(items) - after
        items = [*items[:first], items[first:last], *items[last:]]
    for each, item in zip(target.elts, items, strict=True):
        assign(machine, each.value if isinstance(each, ast.Starred) else each, item, frame)


def _refuse_single(machine: Machine, value: Any) -> None:
    """What has no items is refused in words of its own where it is unpacked."""
    if isinstance(value, (Module, Function, Native, Bound)):
        raise machine.error(TypeError(f"cannot unpack non-iterable {machine.type_name(value)} object"))
    if not isinstance(value, REPLAYED):
        try:
            iter(value)
        except TypeError:
            try:
                [*_] = value
            except TypeError as error:
                # Python's own, with the name that it has for the type
                raise machine.error(error) from None


def _delete(machine: Machine, node: ast.Delete, frame: Frame) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            machine.load(target.id, frame)
            names = frame.module.names if target.id in frame.scope.of_module else frame.names
            if target.id not in names:
                raise NotModelledError(f"deletion of {target.id}")
            del names[target.id]
        elif isinstance(target, ast.Subscript):
            holder = machine.evaluate(target.value, frame)
            operators.delete_item(machine, holder, machine.evaluate(target.slice, frame))
        elif isinstance(target, ast.Attribute):
            holder = machine.evaluate(target.value, frame)
            if not isinstance(holder, Instance) or target.attr not in holder.names:
                raise NotModelledError(f"deletion of the attribute {target.attr}")
            del holder.names[target.attr]
        else:
            raise NotModelledError(f"deletion of {type(target).__name__}")


def _if(machine: Machine, node: ast.If, frame: Frame) -> None:
    machine.execute(node.body if machine.condition(node.test, frame) else node.orelse, frame)


def _while(machine: Machine, node: ast.While, frame: Frame) -> None:
    while machine.condition(node.test, frame):
        machine.step()
        try:
            machine.execute(node.body, frame)
        except BreakJump:
            return
        except ContinueJump:
            pass
        frame.line = node.lineno
    machine.execute(node.orelse, frame)


def _for(machine: Machine, node: ast.For, frame: Frame) -> None:
    values = machine.evaluate(node.iter, frame)
    frame.line = node.iter.lineno
    for value in machine.iterate(values):
        assign(machine, node.target, value, frame)
        try:
            machine.execute(node.body, frame)
        except BreakJump:
            return
        except ContinueJump:
            pass
        frame.line = node.iter.lineno
    machine.execute(node.orelse, frame)


def _return(machine: Machine, node: ast.Return, frame: Frame) -> None:
    raise ReturnJump(None if node.value is None else machine.evaluate(node.value, frame))


def _raise(machine: Machine, node: ast.Raise, frame: Frame) -> None:
    if node.exc is None:
        for each in reversed(machine.frames):
            if each.handled:
                raise each.handled[-1]
        raise machine.error(RuntimeError("No active exception to reraise"), frame)
    value = machine.evaluate(node.exc, frame)
    if isinstance(value, Inert):
        raise value.stop()
    if isinstance(value, type) and issubclass(value, BaseException):
        value = machine.native(value)
    elif isinstance(value, Class):
        value = machine.call(value, (), {})
    if node.cause is not None:
        machine.evaluate(node.cause, frame)
    frame.line = node.lineno
    if not isinstance(value.payload if isinstance(value, Instance) else value, BaseException):
        raise machine.error(TypeError("exceptions must derive from BaseException"), frame)
    raise machine.error(value, frame)


def _try(machine: Machine, node: ast.Try, frame: Frame) -> None:
    try:
        _try_without_finally(machine, node, frame)
    except StopReplayError:
        raise
    except BaseException:
        machine.execute(node.finalbody, frame)
        raise
    machine.execute(node.finalbody, frame)


def _try_without_finally(machine: Machine, node: ast.Try, frame: Frame) -> None:
    try:
        machine.execute(node.body, frame)
    except ReplayedError as error:
        for handler in node.handlers:
            frame.line = handler.lineno
            if handler.type is None or machine.exception_matches(error.value, machine.evaluate(handler.type, frame)):
                _handle(machine, handler, error, frame)
                return
        raise
    machine.execute(node.orelse, frame)


def _handle(machine: Machine, handler: ast.ExceptHandler, error: ReplayedError, frame: Frame) -> None:
    frame.line = handler.lineno
    machine.caught(error, frame)
    if handler.name:
        machine.store(handler.name, error.value, frame)
    frame.handled.append(error)
    try:
        machine.execute(handler.body, frame)
    finally:
        frame.handled.pop()
        if handler.name:
            frame.names.pop(handler.name, None)


def _with(machine: Machine, node: ast.With, frame: Frame) -> None:
    _with_items(machine, node, list(node.items), frame)


def _with_items(machine: Machine, node: ast.With, items: list[ast.withitem], frame: Frame) -> None:
    if not items:
        machine.execute(node.body, frame)
        return
    item, rest = items[0], items[1:]
    manager = machine.evaluate(item.context_expr, frame)
    frame.line = item.context_expr.lineno
    if isinstance(manager, Inert):
        raise manager.stop()
    if isinstance(manager, Guarded):
        entered = manager.value
        leave = None
    elif isinstance(manager, Instance):
        enter, leave = manager.method("__enter__"), manager.method("__exit__")
        if enter is None or leave is None:
            raise NotModelledError(f"with an instance of {manager.cls.name}")
        entered = machine.call(enter, (), {})
    else:
        raise NotModelledError(f"with a value of type {type(manager).__name__}")
    if item.optional_vars is not None:
        assign(machine, item.optional_vars, entered, frame)
    try:
        _with_items(machine, node, rest, frame)
    except ReplayedError as error:
        if isinstance(manager, Guarded):
            swallows = bool(manager.swallowed) and machine.exception_matches(error.value, manager.swallowed)
        else:
            kind = error.value.cls if isinstance(error.value, Instance) else type(error.value)
            swallows = machine.truth(machine.call(leave, (kind, error.value, Unknown(_NO_TRACEBACK)), {}))
        if not swallows:
            raise
        frame.line = node.lineno
        machine.caught(error, frame)
        return
    except StopReplayError:
        raise
    except BaseException:
        if leave is not None:
            machine.call(leave, (None, None, None), {})
        raise
    if leave is not None:
        frame.line = node.lineno
        machine.call(leave, (None, None, None), {})


_NO_TRACEBACK = NotModelledError("a traceback object")


def _assert(machine: Machine, node: ast.Assert, frame: Frame) -> None:
    if not machine.condition(node.test, frame):
        args = () if node.msg is None else (machine.evaluate(node.msg, frame),)
        frame.line = node.lineno
        raise machine.error(AssertionError(*args), frame)


def _import(machine: Machine, node: ast.Import, frame: Frame) -> None:
    for alias in node.names:
        # without "as" the package is bound, and its modules are looked up when they are needed
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        if _is_eager(frame):
            imported = machine.imported(alias.name, is_guarded=True)
            if name != alias.name:
                package = machine.module(name)
                imported = package if package is not None else attributes.external(machine, name, called=False)
            machine.store(alias.asname or name, imported, frame)
        else:
            machine.store(alias.asname or name, Lazy(name), frame)


def _import_from(machine: Machine, node: ast.ImportFrom, frame: Frame) -> None:
    base = node.module or ""
    if node.level:
        package = str(frame.module.names["__package__"]).split(".")
        kept = package[: len(package) - node.level + 1]
        if not kept or not kept[0]:
            raise NotModelledError("a relative import beyond the package")
        base = ".".join([*kept, *([node.module] if node.module else [])])
    if base == "__future__":
        return
    for alias in node.names:
        if alias.name == "*":
            _import_all(machine, base, frame)
        elif _is_eager(frame):
            machine.store(alias.asname or alias.name, machine.imported(base, alias.name, is_guarded=True), frame)
        else:
            machine.store(alias.asname or alias.name, Lazy(base, alias.name), frame)


def _is_eager(frame: Frame) -> bool:
    """An import in a function or inside ``try`` may fail, and that decides what follows; the others wait for their use."""
    return frame.kind != "module" or frame.is_guarded


def _import_all(machine: Machine, base: str, frame: Frame) -> None:
    module = machine.module(base)
    if module is None:
        raise NotModelledError(f"from {base} import *")
    machine.run_module(module)
    exported = module.names.get("__all__")
    if not isinstance(exported, (list, tuple)):
        exported = [name for name in module.names if not name.startswith("_")]
    for name in exported:
        frame.names[name] = module.names[name] if name in module.names else Lazy(base, name)


def _function(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
    value: Any = make_function(machine, node, node.name, frame)
    for decorator in reversed(node.decorator_list):
        value = _decorated(machine, decorator, value, frame)
    machine.store(node.name, value, frame)


def _decorated(machine: Machine, decorator: ast.expr, value: Any, frame: Frame) -> Any:
    applied = machine.evaluate(decorator, frame)
    frame.line = decorator.lineno
    return machine.call(applied, (value,), {})


def make_function(
    machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str, frame: Frame
) -> Function:
    """The function with its defaults; annotations are not evaluated."""
    function = Function(machine, node, name, frame, machine.scope(node))
    if frame.kind == "class":
        # names of the class body are not seen from inside its functions, the class itself is, by super()
        function.owner = frame.owner
    elif frame.owner is not None and frame.kind in ("function", "comprehension"):
        function.owner = frame.owner
    function.defaults = [_default(machine, default, frame) for default in node.args.defaults]
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if default is not None:
            function.keyword_defaults[argument.arg] = _default(machine, default, frame)
    return function


def _default(machine: Machine, node: ast.expr, frame: Frame) -> Any:
    if frame.kind == "function":
        return machine.evaluate(node, frame)
    try:
        return machine.evaluate(node, frame)
    except StopReplayError as stop:
        if stop.place is None:
            stop.place = machine.place(frame)
        return Unknown(stop)


def _class(machine: Machine, node: ast.ClassDef, frame: Frame) -> None:
    value: Any = classes.make_class(machine, node, frame)
    for decorator in reversed(node.decorator_list):
        value = _decorated(machine, decorator, value, frame)
    machine.store(node.name, value, frame)


def _break(machine: Machine, node: ast.Break, frame: Frame) -> None:
    raise BreakJump


def _continue(machine: Machine, node: ast.Continue, frame: Frame) -> None:
    raise ContinueJump


def _nothing(machine: Machine, node: ast.stmt, frame: Frame) -> None:
    return


def _guarded(execute: Callable[[Machine, Any, Frame], None]) -> Callable[[Machine, Any, Frame], None]:
    """Statements that may take an exception: imports inside are followed at once."""

    def guarded(machine: Machine, node: ast.stmt, frame: Frame) -> None:
        outer, frame.is_guarded = frame.is_guarded, True
        try:
            execute(machine, node, frame)
        finally:
            frame.is_guarded = outer

    return guarded


EXECUTORS: dict[type[ast.stmt], Callable[[Machine, Any, Frame], None]] = {
    ast.AnnAssign: _annotated,
    ast.Assert: _assert,
    ast.Assign: _assign,
    ast.AsyncFunctionDef: _function,
    ast.AugAssign: _augmented,
    ast.Break: _break,
    ast.ClassDef: _class,
    ast.Continue: _continue,
    ast.Delete: _delete,
    ast.Expr: _expression,
    ast.For: _for,
    ast.FunctionDef: _function,
    ast.Global: _nothing,
    ast.If: _if,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Nonlocal: _nothing,
    ast.Pass: _nothing,
    ast.Raise: _raise,
    ast.Return: _return,
    ast.Try: _guarded(_try),
    ast.While: _while,
    ast.With: _guarded(_with),
}
