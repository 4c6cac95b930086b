"""``value.name`` for every kind of value, and calls of what lies outside the replayed source."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpuwhy.source.replay import environment, library, logs, natives, paths
from gpuwhy.source.replay.scopes import body_scope
from gpuwhy.source.replay.stops import NeedsFactError, NotModelledError, StopReplayError
from gpuwhy.source.replay.values import (
    ABSENT,
    Bound,
    Cached,
    Class,
    Environ,
    External,
    Function,
    Inert,
    Instance,
    Logger,
    LogPart,
    Module,
    Native,
    Path,
    Spec,
    Super,
    Unknown,
    Wrapper,
)

if TYPE_CHECKING:
    from gpuwhy.source.replay.machine import Machine


def of(machine: Machine, value: Any, name: str, called: bool) -> Any:
    """The attribute. ``called``: it is called at once, so a fact about the call is not taken for its value."""
    if isinstance(value, Instance):
        return _of_instance(machine, value, name)
    if isinstance(value, Module):
        return of_module(machine, value, name, called=called)
    if isinstance(value, External):
        return external(machine, f"{value.name}.{name}", called)
    if isinstance(value, Inert):
        raise value.stop()
    if isinstance(value, Class):
        return _of_class(machine, value, name)
    if isinstance(value, Super):
        return _of_super(machine, value, name)
    if isinstance(value, (Function, Cached, Bound)):
        return _of_function(machine, value, name)
    if isinstance(value, Environ):
        return Native(f"os.environ.{name}", lambda m, args, kwargs: environment.call(m, name, args, kwargs))
    if isinstance(value, Logger):
        return logs.attribute(machine, value, name)
    if isinstance(value, LogPart):
        return Native(name, lambda _, __, ___: None)
    if isinstance(value, Path):
        return paths.attribute(machine, value, name)
    if isinstance(value, Wrapper):
        return _of_wrapper(value, name)
    if isinstance(value, Spec) and name in ("name", "origin"):
        return getattr(value, name)
    if value is Path:
        return paths.class_attribute(name)
    if name == "__class__":
        return natives.type_of(value)
    return natives.attribute(machine, value, name)


# modules


def of_module(machine: Machine, module: Module, name: str, importing: bool = False, called: bool = False) -> Any:
    """A name of a module: facts first, then what its code binds, its submodules, its ``__getattr__``."""
    dotted = f"{module.source.name}.{name}"
    model = library.model_of(dotted)
    if model is not ABSENT:
        return model
    answered = _answered(machine, dotted, called)
    if answered is not ABSENT:
        return answered
    submodule = machine.module(dotted) if module.source.is_package and name not in module.names else None
    if submodule is not None and not _binds_otherwise(module, name):
        # the package's own code is not run for the sake of one of its modules
        if importing:
            machine.run_module(submodule)
        return submodule
    if module.source.name in machine.presumed:
        return External(dotted)
    machine.run_module(module)
    if name in module.names:
        return machine.known(module.names, name)
    if submodule is not None:
        return submodule
    if module.state == "loading":
        raise NotModelledError(f"{dotted}, which an import in a circle needs")
    dynamic = module.names.get("__getattr__")
    if dynamic is not None:
        return machine.call(dynamic, (name,), {})
    if module.is_open or _is_special(name):
        raise NotModelledError(dotted)
    if module.source.is_package and machine.used(f"is there {dotted}", machine.oracle.module_exists(dotted)):
        # a compiled module of the package has no source
        return External(dotted)
    if importing:
        shown = f"cannot import name {name!r} from {module.source.name!r} ({module.source.path})"
        raise machine.error(ImportError(shown, name=module.source.name, path=module.source.path))
    raise machine.error(AttributeError(f"module {module.source.name!r} has no attribute {name!r}"))


def _binds_otherwise(module: Module, name: str) -> bool:
    """Whether the package's code may bind a name to something else than the submodule that is called so."""
    if module.otherwise is None:
        module.otherwise = frozenset(_bound_otherwise(module))
    return name in module.otherwise


def _bound_otherwise(module: Module) -> Iterator[str]:
    own = body_scope(module.source.tree.body).bound
    for node in ast.walk(module.source.tree):
        if isinstance(node, ast.ImportFrom):
            of_package = (node.level == 1 and not node.module) or (node.module == module.source.name and not node.level)
            for alias in node.names:
                if not (of_package and alias.asname in (None, alias.name)):
                    yield alias.asname or alias.name
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name in own:
                yield node.name
        elif isinstance(node, ast.Name) and node.id in own and not isinstance(node.ctx, ast.Load):
            yield node.id


# what lies outside


def external(machine: Machine, dotted: str, called: bool) -> Any:
    """A name outside the source: its value by a fact, its model, or something of which only the name is known."""
    answered = _answered(machine, dotted, called)
    if answered is not ABSENT:
        return answered
    model = library.model_of(dotted)
    if model is not ABSENT:
        return model
    module = machine.module(dotted)
    return module if module is not None else External(dotted)


def _answered(machine: Machine, dotted: str, called: bool) -> Any:
    if dotted in machine.written:
        return machine.written[dotted]
    answer = None if called else machine.oracle.value_of(dotted)
    if answer is None:
        oracle = machine.oracle
        is_named = oracle.answers_call(dotted) or (oracle.has_member(dotted) and machine.module(dotted) is None)
        return External(dotted) if is_named and dotted not in library.LIBRARY else ABSENT
    value = _stated(machine, machine.used(dotted, answer))
    return library.TorchVersion(value) if dotted == "torch.__version__" and value is not None else value


def external_call(machine: Machine, function: External, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of something outside, answered by a fact."""
    try:
        given = [repr(value) for value in args] + [f"{name}={value!r}" for name, value in kwargs.items()]
        shown = ", ".join(given)[:400]
    except (StopReplayError, TypeError):
        shown = "…"
    if function.name.startswith(("typing.", "abc.")):
        return External(function.name)
    answer = machine.oracle.call_of(function.name, shown)
    if answer is None:
        raise _unanswered(function, shown)
    return _stated(machine, machine.used(f"{function.name}({shown})", answer))


def _stated(machine: Machine, value: Any) -> Any:
    """The value that a fact states: itself, an exception (``raises``), or an object of the source (``expression``)."""
    if isinstance(value, Mapping) and "raises" in value:
        raise machine.error(stated_exception(value))
    if isinstance(value, Mapping) and value.keys() == {"expression"}:
        name, _, text = str(value["expression"]).partition(":")
        module = machine.module(name)
        if module is None:
            raise NotModelledError(f"the source of {name}")
        machine.run_module(module)
        try:
            expression = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise NotModelledError(f"a fact with an expression that is none: {text!r:.80}") from None
        return machine.evaluate(expression, module.frame)
    return value


def _unanswered(function: External, shown: str) -> StopReplayError:
    stop = function.stop()
    return NeedsFactError(f"{stop.key}({shown})") if isinstance(stop, NeedsFactError) else stop


def stated_exception(fact: Mapping[str, Any]) -> BaseException:
    """The exception that a fact of the form ``{raises: TYPE, message: TEXT}`` states."""
    name = str(fact["raises"])
    known = library.EXCEPTIONS.get(name) or getattr(builtins, name, None)
    if not (isinstance(known, type) and issubclass(known, Exception)):
        raise NotModelledError(f"the exception {name}, whose bases are not known")
    message = fact.get("message")
    return known() if message is None else known(str(message))


# classes, instances, functions


def _of_instance(machine: Machine, instance: Instance, name: str) -> Any:
    if name == "__class__":
        return instance.cls
    if name == "__dict__":
        return instance.names
    opaque: StopReplayError | None = None
    try:
        found = instance.cls.find(name)
    except StopReplayError as stop:
        # an own attribute is still known, unless the base defines a property of that name
        opaque, found = stop, ABSENT
    if isinstance(found, Wrapper) and found.kind == "property":
        return machine.call(found.function, (instance,), {})
    if name in instance.names:
        value = instance.names[name]
        if isinstance(value, Inert) and isinstance(value, Unknown):
            raise value.stop()
        return value
    if opaque is not None:
        raise opaque
    if found is not ABSENT:
        return _bound(machine, found, instance, instance.cls, name)
    if instance.payload is not None:
        if isinstance(instance.payload, Logger):
            return logs.attribute(machine, instance.payload, name)
        if name not in ("__init__", "__new__"):
            inherited = natives.attribute_or_absent(machine, instance.payload, name)
            if inherited is not ABSENT:
                return inherited
    dynamic = instance.cls.find("__getattr__")
    if dynamic is not ABSENT:
        return machine.call(dynamic, (instance, name), {})
    if _is_special(name) or (name.startswith("_") and instance.cls.flavour):
        raise NotModelledError(f"{instance.cls.name}.{name}")
    raise machine.error(AttributeError(f"{instance.cls.name!r} object has no attribute {name!r}"))


def _bound(machine: Machine, found: Any, instance: Any, cls: Class, name: str) -> Any:
    if isinstance(found, Unknown):
        raise found.stop()
    if isinstance(found, Wrapper):
        if found.kind == "staticmethod":
            return found.function
        if found.kind == "classmethod":
            return Bound(found.function, cls, machine)
        if found.kind == "cached_property" and instance is not None:
            value = machine.call(found.function, (instance,), {})
            instance.names[name] = value
            return value
        return found if instance is None else machine.call(found.function, (instance,), {})
    if instance is not None and isinstance(found, (Function, Cached)):
        return Bound(found, instance, machine)
    if isinstance(found, Instance) and found.cls.find("__get__") is not ABSENT:
        return machine.call(found.cls.find("__get__"), (found, instance, cls), {})
    return found


def _of_class(machine: Machine, cls: Class, name: str) -> Any:
    if name in ("__name__", "__qualname__"):
        return cls.name
    if name == "__module__":
        return cls.module.source.name
    if name == "__members__" and cls.flavour == "enum":
        return {each.names["name"]: each for each in cls.members()}
    found = cls.find(name)
    if found is not ABSENT:
        return _bound(machine, found, None, cls, name)
    if _is_special(name) or name in ("mro", "register") or (name.startswith("_") and cls.flavour):
        raise NotModelledError(f"{cls.name}.{name}")
    if cls.native is not None:
        inherited = natives.attribute_or_absent(machine, cls.native, name)
        if inherited is not ABSENT:
            return inherited
    raise machine.error(AttributeError(f"type object {cls.name!r} has no attribute {name!r}"))


def _of_super(machine: Machine, value: Super, name: str) -> Any:
    receiver = value.receiver
    cls = receiver.cls if isinstance(receiver, Instance) else receiver
    if not isinstance(cls, Class) or value.cls not in cls.mro:
        raise NotModelledError("super() of another object")
    for each in cls.mro[cls.mro.index(value.cls) + 1 :]:
        if name in each.names:
            return _bound(machine, each.names[name], receiver if isinstance(receiver, Instance) else None, cls, name)
        if each.opaque is not None:
            raise NotModelledError(f"super().{name}: {each.opaque}")
    if value.cls.opaque is not None:
        raise NotModelledError(f"super().{name}: {value.cls.opaque}")
    if name == "__init__" and isinstance(receiver, Instance):
        return Native("__init__", lambda m, args, kwargs: _initialise(m, receiver, args, kwargs))
    if name == "__new__":
        return Native("__new__", lambda m, args, kwargs: _new(m, args, kwargs))
    if name in ("__init_subclass__", "__post_init__", "__setattr__"):
        if name == "__setattr__" and isinstance(receiver, Instance):
            return Native(name, lambda _, args, __: receiver.names.__setitem__(args[0], args[1]))
        raise NotModelledError(f"super().{name}")
    payload = receiver.payload if isinstance(receiver, Instance) else None
    if isinstance(payload, Logger):
        return logs.attribute(machine, payload, name)
    if payload is not None:
        return natives.attribute(machine, payload, name)
    raise machine.error(AttributeError(f"'super' object has no attribute {name!r}"))


def _is_special(name: str) -> bool:
    """Names that Python gives to every object of a kind."""
    return name.startswith("__") and name.endswith("__")


def _initialise(machine: Machine, receiver: Instance, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    payload = receiver.payload
    if isinstance(payload, BaseException):
        machine.native(getattr(type(payload), "__init__"), payload, *args, **kwargs)  # noqa: B009
    elif isinstance(payload, Logger):
        payload.name = str(args[0]) if args else ""
    elif isinstance(payload, (list, dict, set)):
        machine.native(getattr(type(payload), "__init__"), payload, *args, **kwargs)  # noqa: B009
    elif payload is None and (args or kwargs):
        raise NotModelledError(f"object.__init__ with arguments, for {receiver.cls.name}")


def _new(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not args or not isinstance(args[0], Class):
        raise NotModelledError("__new__ of another class")
    return natives.bare_instance(machine, args[0], args[1:], kwargs)


def _of_function(machine: Machine, function: Function | Cached | Bound, name: str) -> Any:
    if isinstance(function, Cached):
        if name == "cache_clear":
            return Native(name, lambda _, __, ___: function.results.clear())
        if name == "__wrapped__":
            return function.function
        if name.startswith("cache_"):
            raise NotModelledError(f"function.{name}")
        return machine.attribute(function.function, name)
    if isinstance(function, Bound):
        if name == "__self__":
            return function.receiver
        if name == "__func__":
            return function.function
        return machine.attribute(function.function, name)
    if name in function.attributes:
        return function.attributes[name]
    if name == "__name__":
        return function.name
    if name == "__module__":
        return function.module.source.name
    if name == "__doc__" and not isinstance(function.node, ast.Lambda):
        return ast.get_docstring(function.node, clean=False)
    if name == "__get__":
        raise NotModelledError("function.__get__")
    if name.startswith("__"):
        raise NotModelledError(f"function.{name}")
    raise machine.error(AttributeError(f"'function' object has no attribute {name!r}"))


def _of_wrapper(wrapper: Wrapper, name: str) -> Any:
    if wrapper.kind == "property" and name == "setter":
        return Native(name, lambda _, args, __: Wrapper("property", wrapper.function, args[0]))
    if name in ("fget", "__func__", "__wrapped__", "func"):
        return wrapper.function
    raise NotModelledError(f"{wrapper.kind}.{name}")


def assign(machine: Machine, holder: Any, name: str, value: Any) -> None:
    """``holder.name = value``."""
    if isinstance(holder, Instance):
        setter = holder.cls.find("__setattr__") if holder.cls.opaque is None else ABSENT
        if setter is not ABSENT:
            machine.call(setter, (holder, name, value), {})
            return
        if holder.cls.flavour in ("frozen dataclass", "namedtuple", "enum"):
            raise NotModelledError(f"assignment to an attribute of a frozen {holder.cls.name}")
        found = ABSENT
        for each in holder.cls.mro:
            if name in each.names:
                found = each.names[name]
                break
        if isinstance(found, Wrapper) and found.kind == "property":
            if found.setter is None:
                raise NotModelledError(f"assignment to the property {holder.cls.name}.{name}")
            machine.call(found.setter, (holder, value), {})
        elif isinstance(found, Instance) and found.cls.find("__set__") is not ABSENT:
            machine.call(found.cls.find("__set__"), (found, holder, value), {})
        else:
            holder.names[name] = value
    elif isinstance(holder, Class):
        holder.names[name] = value
    elif isinstance(holder, Module):
        machine.run_module(holder)
        holder.names[name] = value
    elif isinstance(holder, Function):
        holder.attributes[name] = value
    elif isinstance(holder, External):
        machine.written[f"{holder.name}.{name}"] = value
    elif isinstance(holder, (Logger, LogPart)):
        return
    elif isinstance(holder, Inert):
        raise holder.stop()
    else:
        raise NotModelledError(f"assignment to the attribute {name} of {machine.type_name(holder)}")
