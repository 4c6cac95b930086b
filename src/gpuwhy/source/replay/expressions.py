"""What each expression gives."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from gpuwhy.source.replay import bounds, operators
from gpuwhy.source.replay.scopes import Scope
from gpuwhy.source.replay.statements import assign, make_function
from gpuwhy.source.replay.stops import NotModelledError
from gpuwhy.source.replay.values import Frame, Inert, Super

if TYPE_CHECKING:
    from gpuwhy.source.replay.machine import Machine


def _constant(machine: Machine, node: ast.Constant, frame: Frame) -> Any:
    return node.value


def _name(machine: Machine, node: ast.Name, frame: Frame) -> Any:
    return machine.load(node.id, frame)


def _attribute(machine: Machine, node: ast.Attribute, frame: Frame) -> Any:
    holder = machine.evaluate(node.value, frame)
    frame.line = _line_of_member(node)
    return machine.attribute(holder, node.attr)


def _line_of_member(node: ast.Attribute) -> int:
    """Python reports the line of the last part of ``a\\n.b``."""
    return node.end_lineno if node.end_lineno and node.end_lineno != node.value.end_lineno else node.lineno


def _call(machine: Machine, node: ast.Call, frame: Frame) -> Any:
    if isinstance(node.func, ast.Attribute):
        holder = machine.evaluate(node.func.value, frame)
        frame.line = _line_of_member(node.func)
        function = machine.attribute(holder, node.func.attr, called=True)
    elif isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
        return _super(machine, frame)
    else:
        function = machine.evaluate(node.func, frame)
        if isinstance(node.func, ast.Name) and node.func.id in ("locals", "globals", "vars", "eval", "exec"):
            raise NotModelledError(f"a call of {node.func.id}")
    args: list[Any] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            args += machine.items_of(machine.evaluate(argument.value, frame))
        else:
            args.append(machine.evaluate(argument, frame))
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = machine.evaluate(keyword.value, frame)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        elif (
            isinstance(value, dict) and all(isinstance(key, str) for key in value) and not kwargs.keys() & value.keys()
        ):
            kwargs.update(value)
        else:
            raise NotModelledError("** with something else than a dictionary of new names")
    frame.line = _line_of_member(node.func) if isinstance(node.func, ast.Attribute) else node.lineno
    return machine.call(function, tuple(args), kwargs)


def _super(machine: Machine, frame: Frame) -> Super:
    each: Frame | None = frame
    while each is not None and each.kind != "function":
        each = each.outer
    if each is None or each.owner is None:
        raise NotModelledError("super() outside a method")
    return Super(each.owner, each.receiver)


def _boolean(machine: Machine, node: ast.BoolOp, frame: Frame) -> Any:
    value: Any = None
    for each in node.values:
        value = machine.evaluate(each, frame)
        if each is not node.values[-1] and machine.truth(value) != isinstance(node.op, ast.And):
            break
    return value


def _unary(machine: Machine, node: ast.UnaryOp, frame: Frame) -> Any:
    value = machine.evaluate(node.operand, frame)
    frame.line = node.lineno
    return operators.unary(machine, node.op, value)


def _binary(machine: Machine, node: ast.BinOp, frame: Frame) -> Any:
    left = machine.evaluate(node.left, frame)
    right = machine.evaluate(node.right, frame)
    frame.line = node.lineno
    return operators.binary(machine, node.op, left, right)


def _compare(machine: Machine, node: ast.Compare, frame: Frame) -> Any:
    left = machine.evaluate(node.left, frame)
    result: Any = True
    for operation, each in zip(node.ops, node.comparators, strict=True):
        right = machine.evaluate(each, frame)
        frame.line = node.lineno
        result = operators.compare(machine, operation, left, right)
        if len(node.ops) > 1 and not machine.truth(result):
            return result
        left = right
    return result


def _conditional(machine: Machine, node: ast.IfExp, frame: Frame) -> Any:
    return machine.evaluate(node.body if machine.condition(node.test, frame) else node.orelse, frame)


def _items(machine: Machine, nodes: list[ast.expr], frame: Frame) -> list[Any]:
    items: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            items += machine.items_of(machine.evaluate(node.value, frame))
        else:
            items.append(machine.evaluate(node, frame))
    return items


def _tuple(machine: Machine, node: ast.Tuple, frame: Frame) -> Any:
    return tuple(_items(machine, node.elts, frame))


def _list(machine: Machine, node: ast.List, frame: Frame) -> Any:
    return _items(machine, node.elts, frame)


def _set(machine: Machine, node: ast.Set, frame: Frame) -> Any:
    items = _items(machine, node.elts, frame)
    machine.weigh(*items)
    frame.line = node.lineno
    return machine.native(set, items)


def _dict(machine: Machine, node: ast.Dict, frame: Frame) -> Any:
    result: dict[Any, Any] = {}
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        if key_node is None:
            spread = machine.evaluate(value_node, frame)
            if not isinstance(spread, dict):
                raise NotModelledError("** with something else than a dictionary")
            result.update(spread)
            continue
        key = machine.evaluate(key_node, frame)
        value = machine.evaluate(value_node, frame)
        operators.assign_item(machine, result, key, value)
    return bounds.checked(result)


def _subscript(machine: Machine, node: ast.Subscript, frame: Frame) -> Any:
    holder = machine.evaluate(node.value, frame)
    key = machine.evaluate(node.slice, frame)
    frame.line = node.lineno
    return operators.subscript(machine, holder, key)


def _slice(machine: Machine, node: ast.Slice, frame: Frame) -> Any:
    return slice(
        *(None if part is None else machine.evaluate(part, frame) for part in (node.lower, node.upper, node.step))
    )


def _joined(machine: Machine, node: ast.JoinedStr, frame: Frame) -> str:
    parts: list[str] = []
    for part in node.values:
        value = machine.evaluate(part, frame)
        parts.append(value)
        bounds.checked("".join(parts) if len(parts) % 64 == 0 else value)
    return str(bounds.checked("".join(parts)))


def _formatted(machine: Machine, node: ast.FormattedValue, frame: Frame) -> str:
    value = machine.evaluate(node.value, frame)
    spec = "" if node.format_spec is None else str(machine.evaluate(node.format_spec, frame))
    frame.line = node.lineno
    machine.weigh(value)
    bounds.spec_within(spec)
    convert = {ord("r"): repr, ord("s"): str, ord("a"): ascii}.get(node.conversion)
    if convert is not None:
        value = machine.native(convert, value)
    return str(machine.native(format, value, spec))


def _assigned(machine: Machine, node: ast.NamedExpr, frame: Frame) -> Any:
    value = machine.evaluate(node.value, frame)
    holder = frame
    while holder.kind == "comprehension" and holder.outer is not None:
        holder = holder.outer
    assign(machine, node.target, value, holder)
    return value


def _lambda(machine: Machine, node: ast.Lambda, frame: Frame) -> Any:
    return make_function(machine, node, "<lambda>", frame)


def _comprehended(machine: Machine, node: Any, frame: Frame) -> Iterator[Frame]:
    """The frame at each point where the element is evaluated."""
    first: ast.comprehension = node.generators[0]
    outermost = machine.evaluate(first.iter, frame)
    if isinstance(outermost, Inert):
        raise outermost.stop()
    return _points(machine, node.generators, 0, outermost, frame)


def _points(
    machine: Machine, generators: list[ast.comprehension], depth: int, values: Any, outer: Frame
) -> Iterator[Frame]:
    generator = generators[depth]
    if generator.is_async:
        raise NotModelledError("an asynchronous comprehension")
    frame = Frame("comprehension", outer.module, {}, outer, Scope())
    frame.function = outer.function
    frame.owner = outer.owner
    frame.line = outer.line
    for value in machine.iterate(values):
        assign(machine, generator.target, value, frame)
        if not all(machine.truth(machine.evaluate(test, frame)) for test in generator.ifs):
            continue
        if depth + 1 == len(generators):
            yield frame
        else:
            yield from _points(
                machine, generators, depth + 1, machine.evaluate(generators[depth + 1].iter, frame), frame
            )


def _element(machine: Machine, node: ast.expr, point: Frame, frame: Frame) -> Any:
    value = machine.evaluate(node, point)
    frame.line = point.line
    return value


def _list_comprehension(machine: Machine, node: ast.ListComp, frame: Frame) -> Any:
    return bounds.checked([_element(machine, node.elt, point, frame) for point in _comprehended(machine, node, frame)])


def _set_comprehension(machine: Machine, node: ast.SetComp, frame: Frame) -> Any:
    items = [_element(machine, node.elt, point, frame) for point in _comprehended(machine, node, frame)]
    machine.weigh(*items)
    return machine.native(set, items)


def _dict_comprehension(machine: Machine, node: ast.DictComp, frame: Frame) -> Any:
    result: dict[Any, Any] = {}
    for point in _comprehended(machine, node, frame):
        key = machine.evaluate(node.key, point)
        operators.assign_item(machine, result, key, machine.evaluate(node.value, point))
    return bounds.checked(result)


def _generator(machine: Machine, node: ast.GeneratorExp, frame: Frame) -> Any:
    points = _comprehended(machine, node, frame)
    return (machine.evaluate(node.elt, point) for point in points)


def _starred(machine: Machine, node: ast.Starred, frame: Frame) -> Any:
    raise NotModelledError("a starred expression")


EVALUATORS: dict[type[ast.expr], Callable[[Machine, Any, Frame], Any]] = {
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.Call: _call,
    ast.Compare: _compare,
    ast.Constant: _constant,
    ast.Dict: _dict,
    ast.DictComp: _dict_comprehension,
    ast.FormattedValue: _formatted,
    ast.GeneratorExp: _generator,
    ast.IfExp: _conditional,
    ast.JoinedStr: _joined,
    ast.Lambda: _lambda,
    ast.List: _list,
    ast.ListComp: _list_comprehension,
    ast.Name: _name,
    ast.NamedExpr: _assigned,
    ast.Set: _set,
    ast.SetComp: _set_comprehension,
    ast.Slice: _slice,
    ast.Starred: _starred,
    ast.Subscript: _subscript,
    ast.Tuple: _tuple,
    ast.UnaryOp: _unary,
}
