"""Values of the replayed code that Python has no safe counterpart for: its functions, classes, instances and modules.

Strings, numbers, containers and Python's own exceptions are themselves. The classes here take part in Python's protocols
(comparison, iteration, ``str``), so that lists of them sort and sets of them hash as the replayed code says. What is not
known (:class:`External`, :class:`Unknown`) ends the replay as soon as anything depends on it.
"""

from __future__ import annotations

import ast
import operator
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn

from gpuwhy.source.replay.scopes import Scope
from gpuwhy.source.replay.sources import ModuleSource
from gpuwhy.source.replay.stops import NeedsFactError, NotModelledError, StopReplayError

if TYPE_CHECKING:
    from gpuwhy.source.replay.machine import Machine

_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul")
_ORDER = ("lt", "le", "gt", "ge")


class Frame:
    """Names at one level of the running code. ``kind`` is ``module``, ``function``, ``class`` or ``comprehension``."""

    __slots__ = (
        "function",
        "handled",
        "is_guarded",
        "kind",
        "line",
        "module",
        "names",
        "outer",
        "owner",
        "receiver",
        "scope",
        "shared",
    )

    def __init__(self, kind: str, module: Module, names: dict[str, Any], outer: Frame | None, scope: Scope) -> None:
        self.kind = kind
        self.module = module
        self.names = names
        self.outer = outer
        self.scope = scope
        self.line = 1
        self.function = "<module>"
        self.handled: list[Any] = []
        self.is_guarded = False
        self.owner: Class | None = None
        self.receiver: Any = None
        self.shared = ""
        """A changeable value of a module that this code has read: modules that did not run may have added to it."""


class Inert:
    """A value about which only its identity is known: every protocol of Python that asks for more ends the replay."""

    __slots__ = ()

    @abstractmethod
    def stop(self) -> StopReplayError:
        """Why the replay ends when more than the identity is asked for."""

    def _ended(self, *_: Any) -> NoReturn:
        raise self.stop()

    __bool__ = __len__ = __iter__ = __str__ = __format__ = __contains__ = __getitem__ = __int__ = __float__ = _ended
    __lt__ = __le__ = __gt__ = __ge__ = __index__ = __neg__ = __fspath__ = __next__ = __reversed__ = _ended
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = (
        _ended
    )
    __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = (
        _ended
    )

    def __repr__(self) -> str:
        raise self.stop()

    def __eq__(self, other: object) -> bool:
        raise self.stop()

    def __hash__(self) -> int:
        raise self.stop()


class External(Inert):
    """Something outside the replayed source, by its dotted name: a module, a function or a value of one."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def stop(self) -> StopReplayError:
        if self.name.partition(".")[0] in sys.stdlib_module_names:
            return NotModelledError(self.name)
        return NeedsFactError(f"external.{self.name}")


class Unknown(Inert):
    """A value that could not be had, and the reason."""

    __slots__ = ("reason",)

    def __init__(self, reason: StopReplayError) -> None:
        self.reason = reason

    def stop(self) -> StopReplayError:
        return self.reason


class Lazy:
    """A name bound by an import at module level: what it stands for is looked up when it is needed."""

    __slots__ = ("member", "module")

    def __init__(self, module: str, member: str = "") -> None:
        self.module = module
        self.member = member


class Module:
    """A module whose code is interpreted. ``state`` is ``unloaded``, ``loading``, ``loaded`` or ``failed``."""

    __slots__ = ("frame", "is_open", "names", "otherwise", "source", "state")

    def __init__(self, source: ModuleSource) -> None:
        self.source = source
        self.is_open = False
        """Whether code that was passed over may have bound names that it does not spell."""
        self.otherwise: frozenset[str] | None = None
        """Names that a package binds to something else than a submodule; found when first asked for."""
        self.names: dict[str, Any] = {
            "__name__": source.name,
            "__file__": source.path,
            "__package__": source.name if source.is_package else source.name.rpartition(".")[0],
            "__doc__": ast.get_docstring(source.tree, clean=False),
            "__debug__": True,
        }
        self.state = "unloaded"
        self.frame = Frame("module", self, self.names, None, Scope())

    def __repr__(self) -> str:
        return f"<module {self.source.name!r} from {self.source.path!r}>"


class Native:
    """A function that the replay models."""

    __slots__ = ("call", "name", "receiver")

    def __init__(
        self, name: str, call: Callable[[Machine, tuple[Any, ...], dict[str, Any]], Any], receiver: Any = None
    ) -> None:
        self.name = name
        self.call = call
        self.receiver = receiver

    def __repr__(self) -> str:
        raise NotModelledError(f"the text of the function {self.name}")


class Called:
    """Base of values that Python's own functions may call (``key=``, ``map``)."""

    __slots__ = ("machine",)
    machine: Machine

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.machine.call(self, args, kwargs)

    def __repr__(self) -> str:
        raise NotModelledError("the text of a function, which has its address")


class Function(Called):
    """A function of the replayed code."""

    __slots__ = ("attributes", "defaults", "keyword_defaults", "module", "name", "node", "outer", "owner", "scope")

    def __init__(
        self,
        machine: Machine,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        name: str,
        frame: Frame,
        scope: Scope,
    ) -> None:
        self.machine = machine
        self.node = node
        self.name = name
        self.module = frame.module
        self.outer = frame
        self.scope = scope
        self.owner: Class | None = None
        self.defaults: list[Any] = []
        self.keyword_defaults: dict[str, Any] = {}
        self.attributes: dict[str, Any] = {}


class Bound(Called):
    """A method with its receiver."""

    __slots__ = ("function", "receiver")

    def __init__(self, function: Any, receiver: Any, machine: Machine) -> None:
        self.function = function
        self.receiver = receiver
        self.machine = machine


class Cached(Called):
    """``functools.cache`` and ``lru_cache``: a value is computed once per arguments; an exception is not kept."""

    __slots__ = ("function", "results")

    def __init__(self, function: Any, machine: Machine) -> None:
        self.function = function
        self.machine = machine
        self.results: dict[Any, Any] = {}


class Unprintable:
    """A modelled value whose text in the program is not known."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise NotModelledError(f"the text of a modelled value ({type(self).__name__})")


class Wrapper(Unprintable):
    """``property``, ``staticmethod``, ``classmethod``, ``cached_property``, by ``kind``."""

    __slots__ = ("function", "kind", "setter")

    def __init__(self, kind: str, function: Any, setter: Any = None) -> None:
        self.kind = kind
        self.function = function
        self.setter = setter


class Class(Called):
    """A class of the replayed code. ``native`` is the type of Python it derives from, if it is not ``object``."""

    __slots__ = ("bases", "fields", "flavour", "is_protocol", "module", "mro", "name", "names", "native", "opaque")

    def __init__(self, machine: Machine, name: str, bases: list[Any], names: dict[str, Any], module: Module) -> None:
        self.machine = machine
        self.name = name
        self.bases = bases
        self.names = names
        self.module = module
        self.flavour = ""
        self.is_protocol = False
        self.fields: list[Field] = []
        self.mro: list[Class] = []
        self.native: Any = None
        self.opaque: StopReplayError | None = None

    def find(self, name: str) -> Any:
        """The class attribute, or :data:`ABSENT`; not those of the type of Python below."""
        for each in self.mro:
            if name in each.names:
                return each.names[name]
            if each.opaque is not None:
                raise NotModelledError(f"{each.name}.{name}: a base of {each.name} is not known ({each.opaque})")
        return ABSENT

    def is_subclass(self, other: Any) -> bool:
        if isinstance(other, Class):
            if other in self.mro:
                return True
        elif isinstance(other, type) and (other is object or (self.native and issubclass(self.native, other))):
            return True
        if isinstance(other, Class) and other.is_protocol:
            raise NotModelledError(f"whether {self.name} has what the protocol {other.name} asks for")
        for each in self.mro:
            if each.opaque is not None:
                raise NotModelledError(f"whether {self.name} derives from another class: {each.opaque}")
        return False

    def __repr__(self) -> str:
        return f"<class '{self.module.source.name}.{self.name}'>"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __iter__(self) -> Iterator[Any]:
        if self.flavour != "enum":
            raise NotModelledError(f"iteration over the class {self.name}")
        return iter(self.members())

    def __contains__(self, value: Any) -> bool:
        return any(value is member for member in self)

    def __len__(self) -> int:
        return len(list(self))

    def __bool__(self) -> bool:
        return True

    def members(self) -> list[Instance]:
        """Of an enumeration, without aliases, in order."""
        found: list[Instance] = []
        for value in self.names.values():
            if isinstance(value, Instance) and value.cls is self and not any(value is each for each in found):
                found.append(value)
        return found


class Field(Unprintable):
    """A field of a dataclass or named tuple."""

    __slots__ = ("compare", "default", "factory", "init", "name", "repr")

    def __init__(self, name: str, default: Any, factory: Any = None, **flags: bool) -> None:
        self.name = name
        self.default = default
        self.factory = factory
        self.init = flags.get("init", True)
        self.repr = flags.get("repr", True)
        self.compare = flags.get("compare", True)


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()
"""No such attribute; None is a value."""


class Instance:
    """An object of a replayed class. ``payload`` is the part that its base type of Python holds (a text, a tuple …)."""

    __slots__ = ("cls", "names", "payload")

    def __init__(self, cls: Class, payload: Any = None) -> None:
        self.cls = cls
        self.names: dict[str, Any] = {}
        self.payload = payload

    def method(self, name: str) -> Any:
        """The special method bound to this object, or None. It is looked for in the class, as Python does."""
        found = self.cls.find(name)
        return None if found is ABSENT or found is None else Bound(found, self, self.cls.machine)

    def _asked(self, name: str, *args: Any) -> Any:
        method = self.method(name)
        return NotImplemented if method is None else method(*args)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.cls.machine.call(self, args, kwargs)

    def __str__(self) -> str:
        method = self.method("__str__")
        if method is not None:
            return str(method())
        if self.cls.flavour == "enum":
            return f"{self.cls.name}.{self.names['name']}" if not self._is_text() else self._text_of_member()
        if isinstance(self.payload, BaseException):
            return str(self.payload)
        if isinstance(self.payload, str):
            return self.payload
        return repr(self)

    def _is_text(self) -> bool:
        return self.payload is not None

    def _text_of_member(self) -> str:
        if any(getattr(base, "name", "") == "enum.StrEnum" for each in self.cls.mro for base in each.bases):
            return str(self.payload)
        raise NotModelledError("the text of a member of a mixed enumeration, which changed between versions of Python")

    def __repr__(self) -> str:
        method = self.method("__repr__")
        if method is not None:
            return str(method())
        if self.cls.flavour == "enum":
            return f"<{self.cls.name}.{self.names['name']}: {self.names['value']!r}>"
        if self.cls.flavour in ("dataclass", "frozen dataclass"):
            shown = ", ".join(f"{each.name}={self.names[each.name]!r}" for each in self.cls.fields if each.repr)
            return f"{self.cls.name}({shown})"
        if self.cls.flavour == "namedtuple":
            shown = ", ".join(
                f"{each.name}={value!r}" for each, value in zip(self.cls.fields, self.payload, strict=True)
            )
            return f"{self.cls.name}({shown})"
        if isinstance(self.payload, BaseException):
            args = self.payload.args
            return f"{self.cls.name}({args[0]!r})" if len(args) == 1 else f"{self.cls.name}{args!r}"
        if isinstance(self.payload, (str, int, float)):
            return repr(self.payload)
        raise NotModelledError(f"the text of an instance of {self.cls.name}, which has its address")

    def __format__(self, spec: str) -> str:
        method = self.method("__format__")
        if method is not None:
            return str(method(spec))
        if isinstance(self.payload, (int, float, str)) and spec:
            return format(self.payload, spec)
        if spec and self._is_plain():
            # object's own refuses every specification, in words that name the type
            raise TypeError(f"unsupported format string passed to {self.cls.name}.__format__")
        if spec:
            raise NotModelledError(f"the format of an instance of {self.cls.name}")
        return str(self)

    def _is_plain(self) -> bool:
        """Whether its classes are all of the replayed code, or those of exceptions: nothing formats it but object's own."""
        natives = [base.native for base in self.cls.mro if base.native is not None]
        if self.cls.flavour == "enum":
            return False
        return all(isinstance(native, type) and issubclass(native, BaseException) for native in natives)

    def __bool__(self) -> bool:
        for name in ("__bool__", "__len__"):
            method = self.method(name)
            if method is not None:
                return bool(method())
        return bool(self.payload) if self._holds_data() else True

    def _holds_data(self) -> bool:
        return isinstance(self.payload, (str, int, float, tuple, list, dict, set))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        result = self._asked("__eq__", other)
        if result is not NotImplemented:
            return bool(result)
        if self.cls.flavour in ("dataclass", "frozen dataclass"):
            if not isinstance(other, Instance) or other.cls is not self.cls:
                return NotImplemented
            return all(self.names[each.name] == other.names[each.name] for each in self.cls.fields if each.compare)
        if self._holds_data():
            return bool(self.payload == (other.payload if isinstance(other, Instance) else other))
        return NotImplemented

    def __hash__(self) -> int:
        method = self.method("__hash__")
        if method is not None:
            return hash(method())
        if self.cls.flavour == "enum" and self.payload is None:
            return id(self)
        if self.cls.flavour == "dataclass" or self.cls.find("__eq__") is not ABSENT:
            message = f"unhashable type: '{self.cls.name}'"
            raise TypeError(message)
        if self.cls.flavour == "frozen dataclass":
            return hash(tuple(self.names[each.name] for each in self.cls.fields if each.compare))
        return hash(self.payload) if self._holds_data() else id(self)

    def __len__(self) -> int:
        method = self.method("__len__")
        return int(method()) if method is not None else len(self._data("has no length"))

    def __iter__(self) -> Iterator[Any]:
        method = self.method("__iter__")
        return iter(method()) if method is not None else iter(self._data("is not iterable"))

    def __contains__(self, item: Any) -> bool:
        method = self.method("__contains__")
        return bool(method(item)) if method is not None else item in self._data("is no container")

    def __getitem__(self, key: Any) -> Any:
        method = self.method("__getitem__")
        return method(key) if method is not None else self._data("cannot be subscripted")[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        method = self.method("__setitem__")
        if method is not None:
            method(key, value)
        else:
            self._data("cannot be assigned to")[key] = value

    def __delitem__(self, key: Any) -> None:
        method = self.method("__delitem__")
        if method is not None:
            method(key)
        else:
            del self._data("cannot be deleted from")[key]

    def __index__(self) -> int:
        method = self.method("__index__")
        if method is not None:
            return int(method())
        if isinstance(self.payload, int):
            return self.payload
        raise NotModelledError(f"an instance of {self.cls.name} as a number")

    def __int__(self) -> int:
        method = self.method("__int__")
        return int(method()) if method is not None else self.__index__()

    def __fspath__(self) -> str:
        method = self.method("__fspath__")
        if method is not None:
            return str(method())
        if isinstance(self.payload, str):
            return self.payload
        raise NotModelledError(f"an instance of {self.cls.name} as a path")

    def _data(self, otherwise: str) -> Any:
        if not self._holds_data():
            raise NotModelledError(f"an instance of {self.cls.name} {otherwise}")
        return self.payload


def _ordered(name: str) -> Callable[[Instance, Any], Any]:
    special = f"__{name}__"
    compare = getattr(operator, name)

    def ordered(self: Instance, other: Any) -> Any:
        result = self._asked(special, other)
        if result is NotImplemented and self._holds_data():
            return compare(self.payload, other.payload if isinstance(other, Instance) else other)
        return result

    return ordered


def _combined(name: str) -> Callable[[Instance, Any], Any]:
    special = f"__{name}__"

    def combined(self: Instance, other: Any) -> Any:
        result = self._asked(special, other)
        if result is NotImplemented and self._holds_data():
            raise NotModelledError(f"{special} of the base of {self.cls.name}")
        return result

    return combined


for _name in _ORDER:
    setattr(Instance, f"__{_name}__", _ordered(_name))
for _name in _BINARY:
    setattr(Instance, f"__{_name}__", _combined(_name))
    setattr(Instance, f"__r{_name}__", _combined("r" + _name))
setattr(Instance, "__neg__", lambda self: self._asked("__neg__"))  # noqa: B010


class Super(Unprintable):
    """``super()``: attributes of the classes after ``cls`` in the order of the receiver's class."""

    __slots__ = ("cls", "receiver")

    def __init__(self, cls: Class, receiver: Any) -> None:
        self.cls = cls
        self.receiver = receiver


class Path(PurePosixPath):
    """A path of the target: arithmetic is Python's, questions about the file system are answered by facts."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"PosixPath({str(self)!r})"


class Environ(Unprintable):
    """``os.environ``: reads are answered by facts, writes of the replayed code are remembered."""

    __slots__ = ()


class Logger(Unprintable):
    """A logger. Without an own level it is not known what it shows, so every line is noted."""

    __slots__ = ("has_once", "level", "name", "once")

    def __init__(self, name: str, has_once: bool = False) -> None:
        self.name = name
        self.level = 0
        self.has_once = has_once
        self.once: set[str] = set()


class LogPart(Unprintable):
    """A handler, formatter or filter of :mod:`logging`: what it does changes how lines look, not what is decided."""

    __slots__ = ()


class Spec(Unprintable):
    """What ``find_spec`` gives: name and file of a module."""

    __slots__ = ("name", "origin")

    def __init__(self, name: str, origin: Any) -> None:
        self.name = name
        self.origin = origin


class Guarded(Unprintable):
    """A context manager that only guards: a lock, ``nullcontext``, ``suppress`` with the types it swallows."""

    __slots__ = ("swallowed", "value")

    def __init__(self, value: Any = None, swallowed: tuple[Any, ...] = ()) -> None:
        self.value = value
        self.swallowed = swallowed


REPLAYED = (Called, Instance, Module, Native, Wrapper, Super, Inert, Environ, Logger, LogPart, Spec, Guarded)
"""Types of the replay itself: a message of Python that names one of them is not what the program would print."""
