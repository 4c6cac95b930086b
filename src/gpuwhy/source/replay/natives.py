"""Python's own functions and types on values of the replay: those that only compute, each within bounds."""

from __future__ import annotations

import builtins as python_builtins
import re
import subprocess
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from gpuwhy.source.replay import bounds, patterns
from gpuwhy.source.replay.stops import NotModelledError, ReplayedError
from gpuwhy.source.replay.values import (
    ABSENT,
    REPLAYED,
    Called,
    Class,
    External,
    Inert,
    Instance,
    Logger,
    Native,
    Path,
    Super,
    Wrapper,
)

if TYPE_CHECKING:
    from gpuwhy.source.replay.machine import Machine

_CONTAINERS = (list, tuple, dict, set, frozenset, OrderedDict, defaultdict, deque, Counter)
_SAFE: tuple[type, ...] = (
    str, bytes, int, float, bool, type(None), *_CONTAINERS, range, slice, re.Pattern, re.Match, Version,
    subprocess.CompletedProcess, types.SimpleNamespace, type({}.keys()), type({}.values()), type({}.items()), BaseException,
)  # fmt: skip
_SPECIAL = frozenset(
    f"__{name}__" for name in ("lt", "le", "gt", "ge", "eq", "ne", "len", "str", "contains", "getitem")
)
"""What a class of the replayed code asks its base type for, through ``super()``."""
_GROWING = ("ljust", "rjust", "center", "zfill", "expandtabs")
_ITERATES = ("join", "extend", "update", "union", "intersection", "difference", "issubset", "issuperset", "fromkeys")


class Sentinel:
    """``object()``: nothing but its identity."""

    def __repr__(self) -> str:
        raise NotModelledError("the text of an object, which has its address")


def may_call(value: Any) -> bool:
    """Whether a value of Python's own is a type that the replayed code may call."""
    return isinstance(value, type) and (value in _CONSTRUCTORS or issubclass(value, BaseException))


def call(machine: Machine, kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make an object of a type of Python."""
    if issubclass(kind, BaseException):
        return machine.native(kind, *args, **kwargs)
    return _CONSTRUCTORS[kind](machine, kind, prepared(machine, args), kwargs)


def prepared(machine: Machine, args: Iterable[Any]) -> list[Any]:
    """Arguments for a function of Python: iterators count their steps, modelled functions can be called."""
    return [_prepared(machine, value) for value in args]


def _prepared(machine: Machine, value: Any) -> Any:
    if isinstance(value, Inert):
        raise value.stop()
    if isinstance(value, Native):
        return lambda *args, **kwargs: machine.call(value, args, kwargs)
    if isinstance(value, range) and len(value) > bounds.MAX_ITEMS:
        raise NotModelledError("a very long range")
    if hasattr(type(value), "__next__"):
        return machine.iterate(value)
    return value


def attribute(machine: Machine, value: Any, name: str) -> Any:
    """An attribute of a value of Python, or the AttributeError."""
    found = attribute_or_absent(machine, value, name)
    if found is ABSENT:
        if isinstance(value, type):
            raise machine.error(AttributeError(f"type object {value.__name__!r} has no attribute {name!r}"))
        raise machine.error(AttributeError(f"{machine.type_name(value)!r} object has no attribute {name!r}"))
    return found


def attribute_or_absent(machine: Machine, value: Any, name: str) -> Any:
    """An attribute of a value of Python; :data:`ABSENT` when it has none of that name."""
    if isinstance(value, type):
        if name == "__name__":
            return value.__name__
        if not (value in _CONSTRUCTORS or issubclass(value, BaseException)):
            raise NotModelledError(f"{value.__name__}.{name}")
    elif not isinstance(value, _SAFE):
        raise NotModelledError(f"the attribute {name} of a value of type {type(value).__name__}")
    if not hasattr(value, name):
        return ABSENT
    if name.startswith("_") and not (
        name in _SPECIAL and isinstance(value, (str, int, float, tuple, list, dict, set, Version))
    ):
        raise NotModelledError(f"{type(value).__name__}.{name}")
    found = getattr(value, name)
    if callable(found):
        return Native(name, lambda m, args, kwargs: _method(m, value, name, args, kwargs), value)
    return found


def _method(machine: Machine, value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    receiver, arguments = value, prepared(machine, args)
    if isinstance(receiver, range):
        prepared(machine, [receiver])
    if isinstance(value, type) and arguments and isinstance(arguments[0], value):
        receiver = arguments[0]
    if isinstance(receiver, (str, bytes, re.Pattern)):
        arguments = plain_data(arguments)
    if isinstance(receiver, (str, bytes)):
        _within_text(receiver, name, arguments, kwargs)
    if isinstance(receiver, re.Pattern):
        for text in (each for each in arguments if isinstance(each, (str, bytes))):
            machine.spend(patterns.ends_soon(receiver, text))
    if name in _ITERATES:
        arguments = [_collected(machine, each) for each in arguments]
        if name == "join" and isinstance(receiver, str):
            total = sum(len(each) + len(receiver) for each in arguments[-1] if isinstance(each, str))
            bounds.checked(range(0)) if total <= bounds.MAX_TEXT else bounds.checked(" " * (bounds.MAX_TEXT + 1))
    if name in ("sort", "index", "count", "remove", "add", "setdefault", "get", "pop", "discard", *_ITERATES):
        machine.weigh(*(each for each in arguments if not callable(each)))
        if isinstance(receiver, list):
            machine.weigh(receiver)
    if isinstance(receiver, (str, bytes, *_CONTAINERS)):
        machine.spend(len(receiver))
    result = machine.native(getattr(value, name), *arguments, **kwargs)
    if isinstance(receiver, _CONTAINERS):
        bounds.checked(receiver)
    return result


def _collected(machine: Machine, value: Any) -> Any:
    return machine.items_of(value) if hasattr(type(value), "__next__") or isinstance(value, Instance) else value


def _within_text(receiver: str | bytes, name: str, args: list[Any], kwargs: dict[str, Any]) -> None:
    if name in _GROWING and any(isinstance(each, int) and each > bounds.MAX_TEXT for each in args):
        raise NotModelledError("a very long text")
    if name == "replace" and len(args) >= 2 and isinstance(args[1], (str, bytes)):
        if (len(receiver) + 1) * (len(args[1]) + 1) > bounds.MAX_TEXT * 20:
            raise NotModelledError("a very long text")
    elif name in ("format", "format_map") and isinstance(receiver, str):
        try:
            bounds.plain_format(receiver)
        except ValueError:
            return
        bounds.fillable(receiver, (*args, *kwargs.values()), receiver.count("{"))
    elif name == "translate":
        raise NotModelledError("str.translate")


def type_of(value: Any) -> Any:
    """``type(value)``."""
    if isinstance(value, Instance):
        return value.cls
    if isinstance(value, Inert):
        raise value.stop()
    if isinstance(value, (*REPLAYED, Path, Sentinel)):
        raise NotModelledError("the type of a modelled value")
    return type(value)


def bare_instance(machine: Machine, cls: Class, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Instance:
    """``object.__new__``: an object of the class with what its base of Python holds."""
    if cls.opaque is not None:
        raise cls.opaque
    for each in cls.mro:
        if each.opaque is not None:
            raise each.opaque
    if cls.native is None:
        return Instance(cls)
    if cls.native is Logger:
        return Instance(cls, Logger(str(args[0]) if args else ""))
    if issubclass(cls.native, BaseException):
        return Instance(cls, machine.native(cls.native.__new__, cls.native, *args))
    if cls.find("__init__") is not ABSENT and issubclass(cls.native, (list, dict, set)):
        return Instance(cls, cls.native())
    return Instance(cls, call(machine, cls.native, args, kwargs))


# constructors


def _plain(machine: Machine, kind: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    machine.weigh(*args)
    if kind is not str:
        args = plain_data(args)
    if kind is bytes and args and isinstance(args[0], int) and args[0] > bounds.MAX_TEXT:
        raise NotModelledError("a very long text")
    return machine.native(kind, *args, **kwargs)


def plain_data(args: Iterable[Any]) -> list[Any]:
    """Arguments for functions that look at the type: an object of a class below ``str`` is given as its text."""
    found = []
    for value in args:
        if isinstance(value, Instance):
            if not isinstance(value.payload, (str, int, float)) or value.cls.find("__str__") is not ABSENT:
                raise NotModelledError(f"an instance of {value.cls.name} as text or number")
            value = value.payload
        found.append(value)
    return found


def _from_items(machine: Machine, kind: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if not args:
        return kind()
    items = machine.items_of(args[0])
    if kind in (set, frozenset, Counter):
        machine.weigh(*items)
    return machine.native(kind, items, *args[1:], **kwargs)


def _mapping(machine: Machine, kind: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if args and not isinstance(args[0], dict):
        pairs = [
            tuple(machine.iterate(each)) if hasattr(type(each), "__next__") else each
            for each in machine.items_of(args[0])
        ]
        machine.weigh(*pairs)
        return machine.native(kind, pairs, **kwargs)
    return machine.native(kind, *args, **kwargs)


def _default_mapping(machine: Machine, kind: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    factory = args[0] if args else None
    if not (factory is None or callable(factory)):
        raise NotModelledError("defaultdict of something that is no function")
    if isinstance(factory, type) and factory not in _CONSTRUCTORS:
        raise NotModelledError("defaultdict of a type")
    return machine.native(kind, *args, **kwargs)


def _boolean(machine: Machine, kind: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return machine.truth(args[0]) if args else False


def _type(machine: Machine, kind: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if len(args) != 1:
        raise NotModelledError("a class made by type()")
    return type_of(args[0])


def _path(machine: Machine, kind: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return machine.native(Path, *args)


_CONSTRUCTORS: dict[Any, Callable[[Machine, Any, list[Any], dict[str, Any]], Any]] = {
    str: _plain,
    bytes: _plain,
    int: _plain,
    float: _plain,
    range: _plain,
    slice: _plain,
    Version: _plain,
    types.SimpleNamespace: _plain,
    subprocess.CompletedProcess: _plain,
    bool: _boolean,
    list: _from_items,
    tuple: _from_items,
    set: _from_items,
    frozenset: _from_items,
    deque: _from_items,
    Counter: _from_items,
    dict: _mapping,
    OrderedDict: _mapping,
    defaultdict: _default_mapping,
    type: _type,
    Path: _path,
    object: lambda machine, kind, args, kwargs: Sentinel(),
}


# functions


def _len(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (value,) = prepared(machine, args)
    if not hasattr(type(value), "__len__"):
        raise machine.error(TypeError(f"object of type '{machine.type_name(value)}' has no len()"))
    return machine.native(len, value)


def _sorted(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    items = machine.items_of(args[0])
    machine.weigh(*items)
    return machine.native(sorted, items, **_prepared_names(machine, kwargs))


def _prepared_names(machine: Machine, kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: _prepared(machine, value) for name, value in kwargs.items()}


def _any(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(machine.truth(value) for value in machine.iterate(args[0]))


def _all(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return all(machine.truth(value) for value in machine.iterate(args[0]))


def _over_items(function: Callable[..., Any]) -> Callable[..., Any]:
    def over(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given: list[Any] = prepared(machine, args)
        if len(given) == 1 or function is sum:
            given[0] = machine.items_of(given[0])
        machine.weigh(*given)
        return machine.native(function, *given, **_prepared_names(machine, kwargs))

    return over


def _lazy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Functions that give iterators: what they take is checked to be iterable, as Python does at once."""

    def lazily(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = prepared(machine, args)
        for value in given:
            if isinstance(value, Class):
                raise NotModelledError(f"{function.__name__} of a class")
        return machine.native(function, *given, **kwargs)

    return lazily


def _pure(function: Callable[..., Any]) -> Callable[..., Any]:
    def pure(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = prepared(machine, args)
        machine.weigh(*given)
        if any(isinstance(value, int) and value.bit_length() > 64 for value in given):
            raise NotModelledError(f"{function.__name__} of a very large number")
        return machine.native(function, *given, **kwargs)

    return pure


def _text(function: Callable[..., Any]) -> Callable[..., Any]:
    def text(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = prepared(machine, args)
        machine.weigh(*given)
        if len(given) > 1:
            bounds.spec_within(str(given[1]))
        return machine.native(function, *given)

    return text


def _isinstance(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    value, kinds = args
    return any(_is_instance(value, kind) for kind in _kinds(kinds))


def _kinds(kinds: Any) -> list[Any]:
    return [each for kind in kinds for each in _kinds(kind)] if isinstance(kinds, tuple) else [kinds]


def _is_instance(value: Any, kind: Any) -> bool:
    if isinstance(value, Inert):
        raise value.stop()
    if isinstance(kind, Class):
        if kind.is_protocol and not isinstance(value, Instance):
            raise NotModelledError(f"whether a value has what the protocol {kind.name} asks for")
        return isinstance(value, Instance) and value.cls.is_subclass(kind)
    if isinstance(kind, External):
        # no class outside has Python's own plain types below it, but for the abstract ones of the standard library
        if isinstance(value, (str, bytes, int, float, list, tuple, dict, set, type(None))) and not kind.name.startswith(
            ("collections.", "typing.", "numbers.", "os.")
        ):
            return False
        raise kind.stop()
    if isinstance(kind, Inert):
        raise kind.stop()
    if not isinstance(kind, type):
        raise NotModelledError("isinstance with something else than a class")
    if isinstance(value, Instance):
        return value.cls.is_subclass(kind)
    if isinstance(value, (*REPLAYED, Sentinel)):
        if kind in (str, bytes, int, float, list, tuple, dict, set, bool, type(None)) or issubclass(
            kind, BaseException
        ):
            return False
        if kind is type:
            return isinstance(value, Class)
        raise NotModelledError(f"isinstance of a modelled value with {kind.__name__}")
    return isinstance(value, kind)


def _issubclass(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    value, kinds = args
    if isinstance(value, Class):
        for kind in _kinds(kinds):
            if isinstance(kind, Inert):
                raise kind.stop()
        return any(value.is_subclass(kind) for kind in _kinds(kinds))
    if isinstance(value, type) and all(isinstance(kind, type) for kind in _kinds(kinds)):
        return issubclass(value, tuple(_kinds(kinds)))
    raise NotModelledError("issubclass of something else than a class")


def _getattr(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) not in (2, 3) or not isinstance(args[1], str):
        raise NotModelledError("getattr with a name that is no text")
    try:
        return machine.attribute(args[0], args[1])
    except ReplayedError as error:
        if len(args) == 3 and machine.exception_matches(error.value, AttributeError):
            return args[2]
        raise


def _hasattr(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if len(args) != 2 or not isinstance(args[1], str):
        raise NotModelledError("hasattr with a name that is no text")
    try:
        found = machine.attribute(args[0], args[1])
    except ReplayedError as error:
        if machine.exception_matches(error.value, AttributeError):
            return False
        raise
    if isinstance(found, External) and not (
        machine.oracle.answers_call(found.name) or machine.oracle.has_member(found.name)
    ):
        raise found.stop()
    return True


def _setattr(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    from gpuwhy.source.replay import attributes

    if len(args) != 3 or not isinstance(args[1], str):
        raise NotModelledError("setattr with a name that is no text")
    attributes.assign(machine, *args)


def _next(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    machine.step()
    iterator = args[0]
    if isinstance(iterator, Instance) or not hasattr(type(iterator), "__next__"):
        raise NotModelledError("next of something else than an iterator")
    if len(args) == 1:
        return machine.native(next, iterator)
    return machine.native(next, iterator, args[1])


def _callable(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    value = args[0]
    if isinstance(value, Inert):
        raise value.stop()
    if isinstance(value, Instance):
        return value.method("__call__") is not None
    return isinstance(value, (Called, Native, type))


def _print(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if any(name not in ("sep", "end", "flush") for name in kwargs):
        raise NotModelledError("print to a file")
    separator = kwargs.get("sep")
    machine.weigh(*args)
    parts = [str(machine.native(str, value)) for value in args]
    machine.log("print", "", bounds.checked((" " if separator is None else str(separator)).join(parts)))


def _iter(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 1:
        raise NotModelledError("iter with a sentinel")
    return machine.iterate(args[0])


def _super_of(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Super:
    if len(args) != 2 or not isinstance(args[0], Class):
        raise NotModelledError("super with other arguments than a class and an object")
    return Super(args[0], args[1])


def _wrapper(kind: str) -> Native:
    return Native(kind, lambda machine, args, kwargs: Wrapper(kind, *args[:1]))


def _exceptions() -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(python_builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException) and "Group" not in name
    }


def _native(name: str, function: Callable[..., Any]) -> Native:
    return Native(name, function)


BUILTINS: dict[str, Any] = {
    **_exceptions(),
    **{
        kind.__name__: kind for kind in (bool, bytes, dict, float, frozenset, int, list, object, range, set, slice, str)
    },
    "tuple": tuple,
    "type": type,
    "NotImplemented": NotImplemented,
    "Ellipsis": Ellipsis,
    "len": _native("len", _len),
    "sorted": _native("sorted", _sorted),
    "any": _native("any", _any),
    "all": _native("all", _all),
    **{function.__name__: _native(function.__name__, _over_items(function)) for function in (min, max, sum)},
    **{
        function.__name__: _native(function.__name__, _lazy(function))
        for function in (enumerate, zip, map, filter, reversed)
    },
    **{
        function.__name__: _native(function.__name__, _pure(function))
        for function in (abs, chr, ord, hex, bin, oct, round, divmod)
    },
    **{function.__name__: _native(function.__name__, _text(function)) for function in (repr, ascii, format)},
    "isinstance": _native("isinstance", _isinstance),
    "issubclass": _native("issubclass", _issubclass),
    "getattr": _native("getattr", _getattr),
    "hasattr": _native("hasattr", _hasattr),
    "setattr": _native("setattr", _setattr),
    "callable": _native("callable", _callable),
    "next": _native("next", _next),
    "iter": _native("iter", _iter),
    "print": _native("print", _print),
    "super": _native("super", _super_of),
    **{kind: _wrapper(kind) for kind in ("property", "staticmethod", "classmethod")},
}
