"""``pathlib.Path``, ``os.path`` and ``open``: paths are computed, what stands at them is answered by facts."""

from __future__ import annotations

import errno
import os
import posixpath
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from gpuwhy.source.replay import environment
from gpuwhy.source.replay.stops import NotModelledError
from gpuwhy.source.replay.values import Inert, Instance, Native, Path

if TYPE_CHECKING:
    from gpuwhy.source.replay.machine import Machine

_COMPUTED = frozenset({
    "anchor", "as_posix", "as_uri", "is_absolute", "is_relative_to", "joinpath", "match", "name", "parent", "parents",
    "parts", "relative_to", "root", "stem", "suffix", "suffixes", "with_name", "with_stem", "with_suffix",
})  # fmt: skip
_ASKED = {"exists": None, "is_file": "file", "is_dir": "directory"}


def text_of(value: Any) -> str:
    """The path as text."""
    if isinstance(value, Inert):
        raise value.stop()
    if isinstance(value, (str, PurePosixPath)):
        return str(value)
    if isinstance(value, Instance):
        return value.__fspath__()
    raise NotModelledError("a path that is no text")


def exists(machine: Machine, value: Any, kind: str | None = None) -> bool:
    """Whether something (of a kind) stands at a path."""
    path = _absolute(text_of(value))
    found = machine.used(f"is there {path}", machine.oracle.exists(path))
    if kind is None or found is False:
        return bool(found)
    if found is True:
        raise NotModelledError(f"whether {path} is a {kind}: the fact only says that it is there")
    return bool(found == kind)


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise NotModelledError(f"the relative path {path!r:.80}")
    return posixpath.normpath(path)


def read_text(machine: Machine, value: Any) -> str:
    """The content of a file, or the FileNotFoundError."""
    path = _absolute(text_of(value))
    content = machine.used(f"content of {path}", machine.oracle.content(path))
    if content is None:
        raise machine.error(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path))
    return str(content)


def home(machine: Machine) -> str:
    """The home directory, as ``$HOME`` gives it."""
    value = environment.read(machine, "HOME")
    if not value:
        raise NotModelledError("the home directory without HOME")
    return value


def expanded(machine: Machine, path: str) -> str:
    """``~`` replaced."""
    if path == "~" or path.startswith("~/"):
        return home(machine).rstrip("/") + path[1:]
    if path.startswith("~"):
        raise NotModelledError("the home directory of another user")
    return path


def resolved(machine: Machine, path: str) -> str:
    """The path without symbolic links, which are assumed not to be there where no fact tells."""
    path = _absolute(path)
    known = machine.oracle.real_path(path)
    if known is not None:
        return str(machine.used(f"where {path} leads", known))
    machine.assume(f"{path} is reached by no symbolic link", f"links.{path}")
    return path


def make_folder(machine: Machine, value: Any, *, is_allowed_there: bool) -> None:
    """``mkdir``: nothing is done where the folder is there and may be; that another one can be made is assumed."""
    path = text_of(value)
    key = f"files.{posixpath.normpath(path)}"
    if is_allowed_there and machine.oracle.is_known_folder(path):
        machine.used(f"is there {path}", machine.oracle.exists(path))
        return
    machine.assume(f"{path} can be made", key if is_allowed_there else "")


def attribute(machine: Machine, path: Path, name: str) -> Any:
    """A method or value of a path."""
    if name in _COMPUTED:
        found = getattr(path, name)
        if callable(found):
            return Native(name, lambda m, args, kwargs: m.native(found, *args, **kwargs))
        return tuple(found) if name == "parents" else found
    if name in _ASKED:
        return Native(name, lambda m, args, kwargs: exists(m, path, _ASKED[name]))
    if name in ("resolve", "absolute"):
        return Native(name, lambda m, args, kwargs: Path(resolved(m, str(path))) if name == "resolve" else _whole(path))
    if name == "expanduser":
        return Native(name, lambda m, args, kwargs: Path(expanded(m, str(path))))
    if name == "read_text":
        return Native(name, lambda m, args, kwargs: read_text(m, path))
    if name == "mkdir":
        return Native(
            name, lambda m, args, kwargs: make_folder(m, path, is_allowed_there=kwargs.get("exist_ok") is True)
        )
    if name == "home":
        return Native(name, lambda m, args, kwargs: Path(home(m)))
    raise NotModelledError(f"Path.{name}")


def _whole(path: Path) -> Path:
    return Path(_absolute(str(path)))


def class_attribute(name: str) -> Any:
    """A method that is called on the class ``Path``."""
    if name == "home":
        return Native(name, lambda m, args, kwargs: Path(home(m)))
    raise NotModelledError(f"Path.{name}")


def _of_texts(name: str) -> Native:
    function = getattr(posixpath, name)

    def computed(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for value in args:
            if isinstance(value, Inert):
                raise value.stop()
        return machine.native(
            function, *(value.__fspath__() if isinstance(value, Instance) else value for value in args)
        )

    return Native(f"os.path.{name}", computed)


def _asked(name: str, kind: str | None) -> Native:
    def asked(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if args and args[0] is None:
            raise NotModelledError(f"os.path.{name}(None)")
        return exists(machine, args[0], kind)

    return Native(f"os.path.{name}", asked)


OS_PATH: dict[str, Any] = {
    **{
        f"os.path.{name}": _of_texts(name)
        for name in (
            "join", "dirname", "basename", "split", "splitext", "normpath", "isabs", "commonpath", "commonprefix",
        )
    },
    "os.path.exists": _asked("exists", None),
    "os.path.lexists": _asked("lexists", None),
    "os.path.isfile": _asked("isfile", "file"),
    "os.path.isdir": _asked("isdir", "directory"),
    "os.path.abspath": Native("os.path.abspath", lambda m, args, kwargs: _absolute(text_of(args[0]))),
    "os.path.realpath": Native("os.path.realpath", lambda m, args, kwargs: resolved(m, text_of(args[0]))),
    "os.path.expanduser": Native("os.path.expanduser", lambda m, args, kwargs: expanded(m, text_of(args[0]))),
    "os.path.sep": "/",
    "os.sep": "/",
    "os.pathsep": ":",
    "os.linesep": "\n",
    "os.name": "posix",
    "os.fspath": Native("os.fspath", lambda m, args, kwargs: text_of(args[0])),
}  # fmt: skip
