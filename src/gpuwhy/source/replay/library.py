"""What the replay knows of other modules: functions of the standard library that compute, and those that facts answer."""

from __future__ import annotations

import collections
import importlib.metadata
import itertools
import json
import operator
import re
import shlex
import subprocess
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import packaging.version

from gpuwhy.source.replay import logs, natives, paths, patterns
from gpuwhy.source.replay.oracle import Output
from gpuwhy.source.replay.stops import NeedsFactError, NotModelledError
from gpuwhy.source.replay.values import (
    ABSENT,
    Cached,
    Class,
    Environ,
    Field,
    Guarded,
    Inert,
    Instance,
    LogPart,
    Module,
    Native,
    Path,
    Spec,
    Wrapper,
)

if TYPE_CHECKING:
    from gpuwhy.source.replay.machine import Machine

_Args = tuple[Any, ...]
_Names = dict[str, Any]


class TorchVersion(str):
    """``torch.__version__``: a text that compares as a version."""

    __slots__ = ()

    def _compared(self, compare: Callable[[Any, Any], bool], other: Any) -> bool:
        try:
            return compare(packaging.version.Version(str(self)), packaging.version.Version(str(other)))
        except packaging.version.InvalidVersion:
            return compare(str(self), str(other))

    def __lt__(self, other: Any) -> bool:
        return self._compared(operator.lt, other)

    def __le__(self, other: Any) -> bool:
        return self._compared(operator.le, other)

    def __gt__(self, other: Any) -> bool:
        return self._compared(operator.gt, other)

    def __ge__(self, other: Any) -> bool:
        return self._compared(operator.ge, other)

    def __eq__(self, other: object) -> bool:
        return self._compared(operator.eq, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


EXCEPTIONS: dict[str, type[BaseException]] = {
    "CalledProcessError": subprocess.CalledProcessError,
    "subprocess.CalledProcessError": subprocess.CalledProcessError,
    "PackageNotFoundError": importlib.metadata.PackageNotFoundError,
    "importlib.metadata.PackageNotFoundError": importlib.metadata.PackageNotFoundError,
    "re.error": re.error,
}


def _known(*values: Any) -> None:
    for value in values:
        if isinstance(value, Inert):
            raise value.stop()


# variables, platform, packages


def _getenv(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    return machine.call(machine.attribute(Environ(), "get"), args, kwargs)


def _version(machine: Machine, args: _Args, kwargs: _Names) -> str:
    _known(*args)
    name = str(args[0] if args else kwargs["distribution_name"])
    version = machine.used(f"version of {name}", machine.oracle.package_version(name))
    if version is None:
        raise machine.error(importlib.metadata.PackageNotFoundError(name))
    return str(version)


def _find_spec(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    _known(*args)
    name = str(args[0])
    module = machine.module(name)
    if module is None and not machine.used(f"is there {name}", machine.oracle.module_exists(name)):
        return None
    return Spec(name, module.source.path if module else Unanswered(f"the file of {name}"))


class Unanswered(Inert):
    """A part of an answer that no fact gives."""

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what

    def stop(self) -> NotModelledError:
        return NotModelledError(self.what)


def _import_module(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    _known(*args)
    name = str(args[0])
    if name.startswith(".") or len(args) > 1 or kwargs:
        raise NotModelledError("a relative import by name")
    return machine.imported(name)


def _module_name(machine: Machine, args: _Args, kwargs: _Names) -> str:
    raise NotModelledError("sys.modules")


# commands


def _arguments(args: _Args, kwargs: _Names) -> list[str]:
    command = args[0] if args else kwargs.get("args")
    _known(command)
    if isinstance(command, str):
        return (
            [command]
            if not kwargs.get("shell")
            else [*command.split()]
            if command.replace(" ", "").isalnum()
            else [command]
        )
    if not isinstance(command, (list, tuple)):
        raise NotModelledError("a command that is neither text nor list")
    return [paths.text_of(part) for part in command]


def _executed(machine: Machine, args: _Args, kwargs: _Names) -> Output:
    arguments = _arguments(args, kwargs)
    if not arguments:
        raise NotModelledError("an empty command")
    for name in ("env", "cwd", "input", "stdin"):
        if kwargs.get(name) is not None:
            raise NotModelledError(f"a command with its own {name}")
    line = " ".join(arguments)
    answer = machine.oracle.command(arguments)
    output: Output = answer.value
    machine.used(f"$ {line}", answer, output.raises or output.stdout.strip()[-300:])
    if output.raises:
        raise machine.error(_failure(output, arguments))
    return output


def _failure(output: Output, arguments: list[str]) -> BaseException:
    message = output.message
    if output.raises == "FileNotFoundError":
        return FileNotFoundError(2, "No such file or directory", arguments[0])
    if output.raises == "PermissionError":
        return PermissionError(13, "Permission denied", arguments[0])
    if output.raises in ("TimeoutExpired", "subprocess.TimeoutExpired"):
        raise NotModelledError("a command that takes too long")
    if output.raises in ("OSError", "RuntimeError", "ValueError"):
        return {"OSError": OSError, "RuntimeError": RuntimeError, "ValueError": ValueError}[output.raises](message)
    raise NotModelledError(f"a command that raises {output.raises}")


def _stream(text: str, kwargs: _Names) -> Any:
    is_text = any(kwargs.get(name) for name in ("text", "universal_newlines", "encoding", "errors"))
    return text if is_text else text.encode()


def _run(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    output = _executed(machine, args, kwargs)
    captures = bool(kwargs.get("capture_output"))
    given = args[0] if args else kwargs["args"]
    stdout = _captured(output.stdout, "stdout", captures, kwargs)
    stderr = _captured(output.stderr, "stderr", captures, kwargs)
    if kwargs.get("check") and output.returncode:
        raise machine.error(subprocess.CalledProcessError(output.returncode, given, stdout, stderr))
    return subprocess.CompletedProcess(given, output.returncode, stdout, stderr)


def _captured(text: str, name: str, captures: bool, kwargs: _Names) -> Any:
    target = kwargs.get(name)
    if captures or target == subprocess.PIPE:
        return _stream(text, kwargs)
    if target not in (None, subprocess.DEVNULL):
        raise NotModelledError(f"a command whose {name} goes elsewhere")
    return None


def _check_output(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    output = _executed(machine, args, kwargs)
    text = output.stdout
    if kwargs.get("stderr") == subprocess.STDOUT and output.stderr:
        raise NotModelledError("a command whose two streams are mixed")
    if output.returncode:
        given = args[0] if args else kwargs["args"]
        raise machine.error(subprocess.CalledProcessError(output.returncode, given, _stream(text, kwargs)))
    return _stream(text, kwargs)


def _which(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    _known(*args)
    if len(args) != 1 or kwargs:
        raise NotModelledError("shutil.which with its own PATH")
    name = str(args[0])
    return machine.used(f"which {name}", machine.oracle.program(name))


def _makedirs(machine: Machine, args: _Args, kwargs: _Names) -> None:
    paths.make_folder(machine, args[0], is_allowed_there=kwargs.get("exist_ok") is True)


# regular expressions


def _regular(name: str) -> Native:
    function = getattr(re, name)

    def run(machine: Machine, args: _Args, kwargs: _Names) -> Any:
        given = natives.plain_data(natives.prepared(machine, args))
        texts = [value for value in given[1:] if isinstance(value, (str, bytes))]
        if given and isinstance(given[0], (str, bytes, re.Pattern)):
            flags = kwargs.get("flags", 0)
            for text in texts:
                machine.spend(patterns.ends_soon(given[0], text, int(flags)))
        if name == "finditer":
            return iter(machine.native(lambda: list(re.finditer(*given, **kwargs))))
        return machine.native(function, *given, **kwargs)

    return Native(f"re.{name}", run)


# functions and classes


def _cache(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    """``functools.cache`` and ``lru_cache``, with and without arguments. A size that forgets is not modelled."""
    size = kwargs.get("maxsize", args[0] if args and isinstance(args[0], int) else None)
    if args and not isinstance(args[0], (int, type(None))):
        return Cached(args[0], machine)
    # what is forgotten is computed again: with facts that do not change, to the same value
    del size
    return Native("lru_cache", lambda m, inner, _: Cached(inner[0], m))


def _wraps(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    original = args[0]

    def wrapped(machine: Machine, args: _Args, kwargs: _Names) -> Any:
        function = args[0]
        if hasattr(function, "attributes"):
            for name in ("__name__", "__doc__"):
                if hasattr(original, "name") and name == "__name__":
                    function.attributes[name] = original.name
            function.attributes["__wrapped__"] = original
        return function

    return Native("wraps", wrapped)


def _partial(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    function, first, names = args[0], args[1:], kwargs
    return Native("partial", lambda m, rest, more: m.call(function, (*first, *rest), {**names, **more}))


def _reduce(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    items = machine.items_of(args[1])
    if len(args) > 2:
        items.insert(0, args[2])
    if not items:
        raise machine.error(TypeError("reduce() of empty iterable with no initial value"))
    value = items[0]
    for item in items[1:]:
        value = machine.call(args[0], (value, item), {})
    return value


def _unchanged(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    return args[0]


def _typing_cast(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    return args[1]


def _dataclass(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    from gpuwhy.source.replay import classes

    def applied(machine: Machine, args: _Args, _: _Names) -> Any:
        if not isinstance(args[0], Class):
            raise NotModelledError("@dataclass of something else than a class")
        return classes.make_dataclass(args[0], kwargs)

    return applied(machine, args, {}) if args else Native("dataclass", applied)


def _field(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    flags = {name: bool(kwargs[name]) for name in ("init", "repr", "compare") if name in kwargs}
    if kwargs.get("kw_only") or "hash" in kwargs:
        raise NotModelledError("field() with kw_only or hash")
    return Field("", kwargs.get("default", ABSENT), kwargs.get("default_factory"), **flags)


def _suppress(machine: Machine, args: _Args, kwargs: _Names) -> Guarded:
    return Guarded(swallowed=args)


def _nullcontext(machine: Machine, args: _Args, kwargs: _Names) -> Guarded:
    return Guarded(args[0] if args else None)


def _guard(machine: Machine, args: _Args, kwargs: _Names) -> Guarded:
    return Guarded()


def _log_part(machine: Machine, args: _Args, kwargs: _Names) -> LogPart:
    return LogPart()


def _nothing(machine: Machine, args: _Args, kwargs: _Names) -> None:
    return None


def _copy(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    value = args[0]
    _known(value)
    if isinstance(value, (list, dict, set)):
        return value.copy()
    if isinstance(value, (str, int, float, tuple, frozenset, type(None))):
        return value
    raise NotModelledError("copy of an object")


def _deepcopy(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    machine.weigh(args[0])
    return _copied(args[0])


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied(each) for each in value]
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(_copied(each) for each in value)
    if isinstance(value, (str, int, float, bytes, type(None))):
        return value
    if isinstance(value, set) and all(isinstance(each, (str, int, float, tuple)) for each in value):
        return set(value)
    raise NotModelledError("deepcopy of an object")


def _computed(function: Callable[..., Any]) -> Native:
    """A function of the standard library that only computes on small values."""

    def computed(machine: Machine, args: _Args, kwargs: _Names) -> Any:
        given = natives.prepared(machine, args)
        machine.weigh(*given)
        if any(isinstance(value, (Instance, Module, Class)) for value in given):
            raise NotModelledError(f"{function.__name__} of an object")
        return machine.native(function, *given, **kwargs)

    return Native(function.__name__, computed)


def _iterated(function: Callable[..., Any]) -> Native:
    def iterated(machine: Machine, args: _Args, kwargs: _Names) -> Any:
        return machine.native(function, *natives.prepared(machine, args), **kwargs)

    return Native(function.__name__, iterated)


def _namedtuple(machine: Machine, args: _Args, kwargs: _Names) -> Any:
    if len(args) != 2 or kwargs or not machine.frames:
        raise NotModelledError("namedtuple with options")
    names = args[1].replace(",", " ").split() if isinstance(args[1], str) else machine.items_of(args[1])
    cls = Class(machine, str(args[0]), [], {}, machine.frames[-1].module)
    cls.mro, cls.flavour, cls.native = [cls], "namedtuple", tuple
    for number, name in enumerate(names):
        cls.fields.append(Field(str(name), ABSENT))
        cls.names[str(name)] = Wrapper("property", Native(str(name), _item(number)))
    return cls


def _item(number: int) -> Callable[[Machine, _Args, _Names], Any]:
    return lambda machine, args, kwargs: args[0].payload[number]


def _module_level(name: str) -> Native:
    def asked(machine: Machine, args: _Args, kwargs: _Names) -> Any:
        raise NeedsFactError(f"external.{name}")

    return Native(name, asked)


LIBRARY: dict[str, Any] = {
    **paths.OS_PATH,
    "os.environ": Environ(),
    "os.getenv": Native("os.getenv", _getenv),
    "os.makedirs": Native("os.makedirs", _makedirs),
    "pathlib.Path": Path,
    "pathlib.PosixPath": Path,
    "pathlib.PurePath": Path,
    "pathlib.PurePosixPath": Path,
    "shutil.which": Native("shutil.which", _which),
    "subprocess.run": Native("subprocess.run", _run),
    "subprocess.check_output": Native("subprocess.check_output", _check_output),
    "subprocess.PIPE": subprocess.PIPE,
    "subprocess.STDOUT": subprocess.STDOUT,
    "subprocess.DEVNULL": subprocess.DEVNULL,
    "subprocess.CalledProcessError": subprocess.CalledProcessError,
    "subprocess.SubprocessError": subprocess.SubprocessError,
    "subprocess.TimeoutExpired": subprocess.TimeoutExpired,
    "subprocess.CompletedProcess": subprocess.CompletedProcess,
    **{
        f"re.{name}": _regular(name)
        for name in ("search", "match", "fullmatch", "findall", "finditer", "sub", "split", "compile")
    },
    "re.escape": _computed(re.escape),
    "re.error": re.error,
    **{f"re.{name}": int(getattr(re, name)) for name in ("IGNORECASE", "I", "MULTILINE", "M", "DOTALL", "S", "VERBOSE", "X", "ASCII")},
    "importlib.metadata.version": Native("importlib.metadata.version", _version),
    "importlib.metadata.PackageNotFoundError": importlib.metadata.PackageNotFoundError,
    "importlib.util.find_spec": Native("importlib.util.find_spec", _find_spec),
    "importlib.import_module": Native("importlib.import_module", _import_module),
    "packaging.version.Version": packaging.version.Version,
    "packaging.version.parse": Native("parse", lambda m, args, kwargs: m.call(packaging.version.Version, args, kwargs)),
    "packaging.version.InvalidVersion": packaging.version.InvalidVersion,
    "functools.cache": Native("functools.cache", _cache),
    "functools.lru_cache": Native("functools.lru_cache", _cache),
    "functools.cached_property": Native("cached_property", lambda m, args, kwargs: Wrapper("cached_property", args[0])),
    "functools.wraps": Native("functools.wraps", _wraps),
    "functools.partial": Native("functools.partial", _partial),
    "functools.reduce": Native("functools.reduce", _reduce),
    "abc.abstractmethod": Native("abstractmethod", _unchanged),
    "typing.cast": Native("typing.cast", _typing_cast),
    "typing.overload": Native("typing.overload", _unchanged),
    "typing.override": Native("typing.override", _unchanged),
    "typing.final": Native("typing.final", _unchanged),
    "typing.no_type_check": Native("typing.no_type_check", _unchanged),
    "typing.runtime_checkable": Native("typing.runtime_checkable", _unchanged),
    "typing.TYPE_CHECKING": False,
    "dataclasses.dataclass": Native("dataclass", _dataclass),
    "dataclasses.field": Native("field", _field),
    "contextlib.suppress": Native("contextlib.suppress", _suppress),
    "contextlib.nullcontext": Native("contextlib.nullcontext", _nullcontext),
    "threading.Lock": Native("threading.Lock", _guard),
    "threading.RLock": Native("threading.RLock", _guard),
    "warnings.catch_warnings": Native("warnings.catch_warnings", _guard),
    "warnings.warn": Native("warnings.warn", logs.warn),
    "warnings.filterwarnings": Native("warnings.filterwarnings", _nothing),
    "warnings.simplefilter": Native("warnings.simplefilter", _nothing),
    "logging.getLogger": Native("logging.getLogger", logs.get_logger),
    **{f"logging.{name}": logs.on_root(name) for name in ("debug", "info", "warning", "error", "critical", "exception")},
    **{f"logging.{name}": value for name, value in (("DEBUG", 10), ("INFO", 20), ("WARNING", 30), ("ERROR", 40), ("CRITICAL", 50))},
    **{
        f"logging.{name}": Native(f"logging.{name}", _log_part)
        for name in ("StreamHandler", "FileHandler", "NullHandler", "Formatter", "Filter")
    },
    "vllm.logger.init_logger": Native("init_logger", logs.engine_logger),
    "collections.OrderedDict": collections.OrderedDict,
    "collections.defaultdict": collections.defaultdict,
    "collections.deque": collections.deque,
    "collections.Counter": collections.Counter,
    "collections.namedtuple": Native("namedtuple", _namedtuple),
    "types.SimpleNamespace": types.SimpleNamespace,
    **{
        f"itertools.{function.__name__}": _iterated(function)
        for function in (itertools.chain, itertools.count, itertools.islice, itertools.takewhile, itertools.dropwhile)
    },
    "copy.copy": Native("copy.copy", _copy),
    "copy.deepcopy": Native("copy.deepcopy", _deepcopy),
    "json.dumps": _computed(json.dumps),
    "json.loads": _computed(json.loads),
    "json.JSONDecodeError": json.JSONDecodeError,
    "shlex.split": _computed(shlex.split),
    "shlex.quote": _computed(shlex.quote),
    "shlex.join": _computed(shlex.join),
    **{
        f"operator.{function.__name__}": _computed(function)
        for function in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
    },
    "__future__.annotations": None,
}  # fmt: skip


_HOLDERS = frozenset(name[:at] for name in LIBRARY for at, sign in enumerate(name) if sign == ".")


def has_part(dotted: str) -> bool:
    """Whether a name, or a part of it, is modelled."""
    return dotted in LIBRARY or dotted in _HOLDERS


def model_of(dotted: str) -> Any:
    """The model of a name outside the source; :data:`ABSENT` when there is none. Vendored copies of packaging are it."""
    if dotted.startswith("typing_extensions."):
        dotted = "typing." + dotted.removeprefix("typing_extensions.")
    if dotted in LIBRARY:
        return LIBRARY[dotted]
    start, found, rest = dotted.rpartition("packaging.version.")
    return LIBRARY.get(found + rest, ABSENT) if start else ABSENT
