"""Classes of the replayed code: how they are made and how their objects come to be."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from gpuwhy.source.replay import natives
from gpuwhy.source.replay.scopes import body_scope
from gpuwhy.source.replay.stops import NotModelledError, StopReplayError
from gpuwhy.source.replay.values import (
    ABSENT,
    Cached,
    Class,
    External,
    Field,
    Frame,
    Function,
    Inert,
    Instance,
    Logger,
    Native,
    Unknown,
    Wrapper,
)

if TYPE_CHECKING:
    from gpuwhy.source.replay.machine import Machine

_NO_BASES = ("typing.Generic", "typing.Protocol", "typing_extensions.Protocol", "abc.ABC", "typing.Union")
_ENUMS = ("enum.Enum", "enum.IntEnum", "enum.StrEnum")
_TUPLES = ("typing.NamedTuple", "typing_extensions.NamedTuple")
_NATIVE = (str, int, float, list, dict, set, tuple)


def make_class(machine: Machine, node: ast.ClassDef, frame: Frame) -> Class:
    """The class of a ``class`` statement, its body run."""
    names: dict[str, Any] = {}
    doubt: StopReplayError | None = None
    bases: list[Any] = []
    for base in node.bases:
        try:
            bases.append(machine.evaluate(base, frame))
        except StopReplayError as stop:
            if stop.place is None:
                stop.place = machine.place()
            bases.append(Unknown(stop))
    if any(keyword.arg != "metaclass" or not _is_abc(keyword.value) for keyword in node.keywords):
        doubt = NotModelledError(f"the metaclass or arguments of the class {node.name}")
    cls = Class(machine, node.name, [base for base in bases if not _is_nothing(base)], names, frame.module)
    _inherit(cls)
    cls.is_protocol = any(isinstance(base, External) and base.name.endswith(".Protocol") for base in bases)
    cls.opaque = cls.opaque or doubt
    body = Frame("class", frame.module, names, frame, body_scope(node.body))
    body.function = node.name
    body.owner = cls
    names["__module__"] = frame.module.source.name
    names["__doc__"] = ast.get_docstring(node, clean=False)
    machine.frames.append(body)
    try:
        machine.execute_leniently(node.body, body)
    finally:
        machine.frames.pop()
    if cls.flavour == "enum":
        _make_members(machine, cls)
    elif cls.flavour == "namedtuple":
        cls.fields = declared_fields(cls, [each for each in node.body if isinstance(each, ast.AnnAssign)])
        for number, field in enumerate(cls.fields):
            names[field.name] = Wrapper("property", Native(field.name, _item(number)))
    else:
        names["__annotated__"] = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    _name_descriptors(machine, cls)
    return cls


def _is_abc(node: ast.expr) -> bool:
    return ast.unparse(node).rpartition(".")[2] == "ABCMeta"


def _is_nothing(base: Any) -> bool:
    return base is object or (isinstance(base, External) and base.name in _NO_BASES)


def _item(number: int) -> Any:
    return lambda machine, args, kwargs: args[0].payload[number]


def _inherit(cls: Class) -> None:
    for base in cls.bases:
        if isinstance(base, Class):
            cls.native = cls.native or base.native
            cls.flavour = cls.flavour or ("enum" if base.flavour == "enum" else "")
            if base.flavour in ("dataclass", "frozen dataclass", "namedtuple"):
                cls.fields = cls.fields or list(base.fields)
                cls.flavour = cls.flavour or base.flavour
        elif isinstance(base, External):
            if base.name in _ENUMS:
                cls.flavour = "enum"
                cls.native = cls.native or {"enum.IntEnum": int, "enum.StrEnum": str}.get(base.name)
            elif base.name in _TUPLES:
                cls.flavour, cls.native = "namedtuple", tuple
            elif base.name == "logging.Logger":
                cls.native = Logger
            else:
                cls.opaque = NotModelledError(f"the base class {base.name}")
        elif isinstance(base, Inert):
            cls.opaque = base.stop()
        elif isinstance(base, type) and (issubclass(base, BaseException) or base in _NATIVE):
            cls.native = cls.native or base
        else:
            cls.opaque = NotModelledError("the base class of " + cls.name)
    try:
        cls.mro = [cls, *_merged([[*base.mro] for base in cls.bases if isinstance(base, Class)], cls)]
    except ValueError:
        cls.mro = [cls]
        cls.opaque = NotModelledError(f"the order of the bases of {cls.name}")


def _merged(orders: list[list[Class]], cls: Class) -> list[Class]:
    """The C3 order of the bases."""
    orders = [*orders, [base for base in cls.bases if isinstance(base, Class)]]
    merged: list[Class] = []
    while orders := [order for order in orders if order]:
        for order in orders:
            if not any(order[0] in other[1:] for other in orders):
                break
        else:
            raise ValueError(cls.name)
        head = order[0]
        merged.append(head)
        for other in orders:
            if other[0] is head:
                del other[0]
    return merged


def _make_members(machine: Machine, cls: Class) -> None:
    """Plain values of the body become members, equal ones aliases of the first."""
    number = 0
    if cls.find("_generate_next_value_") is not ABSENT or cls.find("__new__") is not ABSENT:
        cls.opaque = NotModelledError(f"the enumeration {cls.name}, which makes its own values")
        return
    for name, value in list(cls.names.items()):
        if name.startswith("_") or isinstance(value, (Function, Wrapper, Cached, Native, Unknown, Class)):
            continue
        if isinstance(value, External) and value.name == "enum.auto":
            number += 1
            value = name.lower() if cls.native is str else number
        elif isinstance(value, Inert):
            cls.names[name] = Unknown(value.stop())
            continue
        elif isinstance(value, int):
            number = value
        known = next((each for each in cls.members() if each.names["value"] == value), None)
        if known is not None:
            cls.names[name] = known
            continue
        member = Instance(cls, value if cls.native is not None else None)
        member.names.update(name=name, value=value, _value_=value, _name_=name)
        cls.names[name] = member
        if cls.find("__init__") is not ABSENT:
            args = value if isinstance(value, tuple) else (value,)
            machine.call(cls.find("__init__"), (member, *args), {})


def _name_descriptors(machine: Machine, cls: Class) -> None:
    for name, value in list(cls.names.items()):
        if isinstance(value, Instance) and value.cls is not cls:
            try:
                method = value.method("__set_name__")
            except StopReplayError:
                continue
            if method is not None:
                machine.call(method, (cls, name), {})


def declared_fields(cls: Class, annotated: list[ast.AnnAssign]) -> list[Field]:
    """The annotated names of a class body, in order, with their defaults; those of its bases first."""
    fields = {field.name: field for base in reversed(cls.mro[1:]) for field in base.fields}
    for each in annotated:
        if not isinstance(each.target, ast.Name) or "ClassVar" in ast.unparse(each.annotation)[:100]:
            continue
        annotation = ast.unparse(each.annotation)
        if annotation.rpartition(".")[2] in ("KW_ONLY",) or "InitVar" in annotation[:100]:
            raise NotModelledError(f"the field {annotation} of {cls.name}")
        name = each.target.id
        value = cls.names.get(name, ABSENT)
        if isinstance(value, Field):
            value.name = name
            fields[name] = value
            if value.default is ABSENT:
                cls.names.pop(name, None)
            else:
                cls.names[name] = value.default
        else:
            fields[name] = Field(name, value)
    return list(fields.values())


def make_dataclass(cls: Class, options: dict[str, Any]) -> Class:
    """Apply ``@dataclass``."""
    if any(
        name not in ("frozen", "eq", "repr", "init", "slots") or (name == "init" and not value)
        for name, value in options.items()
    ):
        raise NotModelledError(f"@dataclass({', '.join(options)})")
    annotated = cls.names.get("__annotated__", [])
    cls.fields = declared_fields(cls, annotated)
    cls.flavour = "frozen dataclass" if options.get("frozen") else "dataclass"
    if options.get("eq") is False or options.get("repr") is False:
        cls.flavour = "plain dataclass"
    return cls


def instantiate(machine: Machine, cls: Class, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``cls(*args, **kwargs)``."""
    if cls.flavour == "enum":
        return _member(machine, cls, args)
    if cls.flavour == "namedtuple":
        return Instance(cls, tuple(_field_values(machine, cls, args, kwargs).values()))
    creator = cls.find("__new__") if cls.opaque is None else ABSENT
    if isinstance(creator, Wrapper):
        creator = creator.function
    if isinstance(creator, Function):
        made = machine.call(creator, (cls, *args), kwargs)
        if not (isinstance(made, Instance) and cls in made.cls.mro):
            return made
    else:
        made = natives.bare_instance(machine, cls, args, kwargs)
    initialiser = cls.find("__init__")
    if initialiser is not ABSENT:
        machine.call(initialiser, (made, *args), kwargs)
    elif "dataclass" in cls.flavour:
        made.names.update(_field_values(machine, cls, args, kwargs))
        after = cls.find("__post_init__")
        if after is not ABSENT:
            machine.call(after, (made,), {})
    elif cls.native is None and (args or kwargs) and creator is ABSENT:
        raise machine.error(TypeError(f"{cls.name}() takes no arguments"))
    return made


def _member(machine: Machine, cls: Class, args: tuple[Any, ...]) -> Any:
    if len(args) != 1 or cls.opaque is not None:
        raise NotModelledError(f"a call of the enumeration {cls.name}")
    for member in cls.members():
        if args[0] is member or member.names["value"] == args[0]:
            return member
    if cls.find("_missing_") is not ABSENT:
        raise NotModelledError(f"{cls.name}._missing_")
    raise machine.error(ValueError(f"{args[0]!r} is not a valid {cls.name}"))


def _field_values(machine: Machine, cls: Class, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    settable = [field for field in cls.fields if field.init]
    given = dict(zip((field.name for field in settable), args, strict=False))
    if len(args) > len(settable) or any(name in given or all(name != f.name for f in settable) for name in kwargs):
        raise NotModelledError(f"a call of {cls.name} with other arguments than it takes")
    given.update(kwargs)
    values: dict[str, Any] = {}
    for field in cls.fields:
        if field.name in given:
            values[field.name] = given[field.name]
        elif field.factory is not None:
            values[field.name] = machine.call(field.factory, (), {})
        elif field.default is not ABSENT:
            values[field.name] = field.default
        elif field.init:
            raise NotModelledError(f"a call of {cls.name} with other arguments than it takes")
    return values
