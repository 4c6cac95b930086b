"""Modules given as text."""

from __future__ import annotations

import ast

from gpuwhy.source.replay import ModuleSource


class Texts:
    """A source of modules; ``__`` in a name stands for a dot."""

    def __init__(self, **texts: str) -> None:
        self._texts = {name.replace("__", "."): text for name, text in texts.items()}

    def find(self, name: str) -> ModuleSource | None:
        if name not in self._texts:
            return None
        is_package = any(other.startswith(name + ".") for other in self._texts)
        file = name.replace(".", "/") + ("/__init__.py" if is_package else ".py")
        return ModuleSource(name, f"/site/{file}", file, ast.parse(self._texts[name]), is_package)
