"""Operators on values, within bounds, and on ``os.environ`` by facts."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpuwhy.source.replay import bounds, environment
from gpuwhy.source.replay.stops import NotModelledError
from gpuwhy.source.replay.values import Class, Environ, External, Inert, Instance

if TYPE_CHECKING:
    from gpuwhy.source.replay.machine import Machine

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.Mod: operator.mod,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.RShift: operator.rshift,
    ast.Sub: operator.sub,
}
_IN_PLACE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.iadd,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.LShift: operator.ilshift,
    ast.Mod: operator.imod,
    ast.Mult: operator.imul,
    ast.Pow: operator.ipow,
    ast.RShift: operator.irshift,
    ast.Sub: operator.isub,
}
_ORDERED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.NotEq: operator.ne,
}


def binary(machine: Machine, operation: ast.operator, left: Any, right: Any) -> Any:
    """``left OP right``."""
    if isinstance(operation, ast.BitOr) and _is_annotation(left) and _is_annotation(right):
        return External("typing.Union")
    return _operated(machine, operation, left, right, _BINARY)


def _operated(
    machine: Machine,
    operation: ast.operator,
    left: Any,
    right: Any,
    functions: dict[type[ast.operator], Callable[[Any, Any], Any]],
) -> Any:
    _known(left, right)
    machine.weigh(left)
    machine.weigh(right)
    if isinstance(operation, ast.Mult):
        bounds.repeatable(left, right)
    elif isinstance(operation, ast.Pow):
        bounds.raisable(left, right)
    elif isinstance(operation, ast.LShift):
        bounds.shiftable(left, right)
    elif isinstance(operation, ast.Mod) and isinstance(left, (str, bytes)):
        return formatted(machine, left, right)
    if type(operation) not in functions:
        raise NotModelledError(f"the operator {type(operation).__name__}")
    return machine.native(functions[type(operation)], left, right)


def formatted(machine: Machine, template: Any, values: Any) -> Any:
    """``template % values``."""
    if not isinstance(template, str):
        raise NotModelledError("a format of bytes")
    parts = values if isinstance(values, tuple) else (values,)
    machine.weigh(template, *parts)
    bounds.fillable(template, parts, template.count("%"))
    return machine.native(operator.mod, template, values)


def in_place(machine: Machine, operation: ast.operator, left: Any, right: Any) -> Any:
    """``left OP= right``: lists, sets and dictionaries change where they are."""
    if isinstance(left, Instance):
        method = left.cls.find(f"__i{_special(operation)}__")
        if callable(method):
            return machine.call(method, (left, right), {})
        return binary(machine, operation, left, right)
    if isinstance(left, list) and isinstance(operation, ast.Add) and hasattr(type(right), "__next__"):
        right = machine.items_of(right)
    return _operated(machine, operation, left, right, _IN_PLACE)


def _special(operation: ast.operator) -> str:
    return {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.Mult: "mul", ast.Div: "truediv"}.get(
        type(operation), type(operation).__name__.lower()
    )


def unary(machine: Machine, operation: ast.unaryop, value: Any) -> Any:
    """``OP value``."""
    if isinstance(operation, ast.Not):
        return not machine.truth(value)
    _known(value)
    if isinstance(operation, ast.USub):
        return machine.native(operator.neg, value)
    if isinstance(operation, ast.UAdd):
        return machine.native(operator.pos, value)
    return machine.native(operator.invert, value)


def compare(machine: Machine, operation: ast.cmpop, left: Any, right: Any) -> Any:
    """``left OP right``, also for ``is`` and ``in``."""
    if isinstance(operation, (ast.Is, ast.IsNot)):
        return _same(left, right) == isinstance(operation, ast.Is)
    if isinstance(operation, (ast.In, ast.NotIn)):
        return contains(machine, right, left) == isinstance(operation, ast.In)
    _known(left, right)
    machine.weigh(left)
    machine.weigh(right)
    return machine.native(_ORDERED[type(operation)], left, right)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, Inert) or isinstance(right, Inert):
        unknown, other = (left, right) if isinstance(left, Inert) else (right, left)
        if isinstance(unknown, External) and isinstance(other, External) and unknown.name == other.name:
            return True
        raise unknown.stop()
    if left is None or right is None or isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (str, int, float, tuple, bytes)) and isinstance(right, type(left)) and left == right:
        # whether equal constants are one object is up to the version of Python
        raise NotModelledError("is between equal values")
    return left is right


def contains(machine: Machine, holder: Any, item: Any) -> bool:
    """``item in holder``."""
    if isinstance(holder, Environ):
        return environment.read(machine, item) is not None
    _known(holder)
    machine.weigh(item)
    if isinstance(holder, range) and not isinstance(item, int) and len(holder) > bounds.MAX_ITEMS:
        raise NotModelledError("a very long range")
    if isinstance(holder, (Instance, Class)):
        return bool(machine.native(operator.contains, holder, item))
    if isinstance(holder, (list, tuple)):
        machine.weigh(holder)
    elif not isinstance(holder, (str, bytes, dict, set, frozenset, range, type({}.keys()), type({}.values()))):
        if holder is None or isinstance(holder, (bool, int, float)):
            raise machine.error(TypeError(f"argument of type '{machine.type_name(holder)}' is not iterable"))
        return any(
            each is item or machine.truth(machine.native(operator.eq, each, item)) for each in machine.iterate(holder)
        )
    return bool(machine.native(operator.contains, holder, item))


def subscript(machine: Machine, holder: Any, key: Any) -> Any:
    """``holder[key]``."""
    if isinstance(holder, Environ):
        value = environment.read(machine, key)
        if value is None:
            raise machine.error(KeyError(key))
        return value
    if isinstance(holder, External) and holder.name.startswith(("typing.", "collections.abc.")):
        return holder
    _known(holder, key)
    if isinstance(holder, Class):
        return _of_class(machine, holder, key)
    if isinstance(holder, type):
        return External("typing.Generic")
    if not hasattr(type(holder), "__getitem__"):
        raise machine.error(TypeError(f"'{machine.type_name(holder)}' object is not subscriptable"))
    machine.weigh(key)
    return machine.native(operator.getitem, holder, key)


def _of_class(machine: Machine, cls: Class, key: Any) -> Any:
    if cls.flavour == "enum":
        member = cls.names.get(key) if isinstance(key, str) else None
        if not isinstance(member, Instance):
            raise machine.error(KeyError(key))
        return member
    method = cls.find("__class_getitem__")
    if callable(method):
        raise NotModelledError(f"{cls.name}[…]")
    return cls


def assign_item(machine: Machine, holder: Any, key: Any, value: Any) -> None:
    """``holder[key] = value``."""
    if isinstance(holder, Environ):
        environment.write(machine, key, value)
        return
    _known(holder, key)
    machine.weigh(key)
    if not hasattr(type(holder), "__setitem__"):
        raise machine.error(TypeError(f"'{machine.type_name(holder)}' object does not support item assignment"))
    if isinstance(key, slice):
        value = machine.items_of(value)
    machine.native(operator.setitem, holder, key, value)
    bounds.checked(holder)


def delete_item(machine: Machine, holder: Any, key: Any) -> None:
    """``del holder[key]``."""
    if isinstance(holder, Environ):
        if environment.read(machine, key) is None:
            raise machine.error(KeyError(key))
        environment.write(machine, key, None)
        return
    _known(holder, key)
    machine.weigh(key)
    machine.native(operator.delitem, holder, key)


def _known(*values: Any) -> None:
    for value in values:
        if isinstance(value, Inert) and not (isinstance(value, External) and value.name.startswith("typing.")):
            raise value.stop()


def _is_annotation(value: Any) -> bool:
    return value is None or isinstance(value, (type, Class, External))
