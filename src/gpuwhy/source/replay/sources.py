"""Where the replay gets the text of a module from."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

MAX_BYTES = 3 << 20


class ModuleSource(msgspec.Struct, frozen=True):
    """One module. ``path`` is what ``__file__`` is on the target, ``shown`` how reports name the file."""

    name: str
    path: str
    shown: str
    tree: ast.Module
    is_package: bool


class SourceOfModules(Protocol):
    """Finds the source of a module by its dotted name; None when there is none. The tree is not changed."""

    def find(self, name: str) -> ModuleSource | None: ...


class FolderSource:
    """Modules in folders that are laid out like ``site-packages``, the first folder that has one wins.

    Files that cannot be read or parsed, are larger than :data:`MAX_BYTES`, or lie outside the folder through a link
    are not found.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folder.resolve() for folder in folders)
        self._found: dict[str, ModuleSource | None] = {}

    def find(self, name: str) -> ModuleSource | None:
        if name not in self._found:
            self._found[name] = self._read(name)
        return self._found[name]

    def _read(self, name: str) -> ModuleSource | None:
        parts = name.split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        for folder in self._folders:
            base = folder.joinpath(*parts)
            for path, is_package in ((base / "__init__.py", True), (base.with_name(base.name + ".py"), False)):
                tree = _parsed(path, folder)
                if tree is not None:
                    shown = path.relative_to(folder).as_posix()
                    return ModuleSource(name, path.as_posix(), shown, tree, is_package)
        return None


def _parsed(path: Path, folder: Path) -> ast.Module | None:
    try:
        if not path.is_file() or not path.resolve().is_relative_to(folder) or path.stat().st_size > MAX_BYTES:
            return None
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        # SystemError: two threads parse at once, which Python 3.11 mistakes for a fault of its own
        return None
