"""What an expression reads from outside of Python: files, commands, and calls and values of packages whose source is not here."""

from __future__ import annotations

import ast

from gpuwhy.source.resolving import Resolver
from gpuwhy.source.scopes import module_of, parent

LONGEST_TEXT = 110
"""Characters of source that a step of a slice shows."""

_FILES = frozenset(
    {
        "builtins.open",
        "os.path.exists",
        "os.path.isfile",
        "os.path.isdir",
        "glob.glob",
        "os.listdir",
        "os.access",
        "os.scandir",
    }
)
_FILE_METHODS = frozenset({"read_text", "read_bytes", "exists", "is_file", "is_dir", "iterdir", "glob"})
_COMMANDS = frozenset({"os.system", "os.popen", "shutil.which"})
_INSIDE = frozenset({
    "builtins", "os", "re", "functools", "typing", "sys", "logging", "dataclasses", "copy", "json", "itertools", "collections",
    "packaging", "math", "operator", "string", "contextlib", "argparse", "enum", "abc", "warnings", "threading", "time", "pathlib",
})  # fmt: skip
"""Packages whose calls only pass their arguments on."""


class Outside:
    """Tells such expressions by the name that they resolve to; what the environment gives is not meant (:mod:`environment`)."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def read(self, node: ast.expr) -> tuple[str, str] | None:
        """The kind of step (``file``, ``subprocess``, ``external``) and its text, or None where Python's own values go on."""
        if not isinstance(node, (ast.Call, ast.Attribute)):
            return None
        dotted = self._resolver.external(node.func if isinstance(node, ast.Call) else node)
        if dotted and "()" not in dotted and "[]" not in dotted:
            found = self._call(node, dotted) if isinstance(node, ast.Call) else self._value(node, dotted)
            if found:
                return found
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILE_METHODS and len(node.args) <= 1:  # fmt: skip
            return "file", _text(node)
        return None

    def _call(self, node: ast.Call, dotted: str) -> tuple[str, str] | None:
        if dotted.startswith("subprocess.") or dotted in _COMMANDS:
            return "subprocess", self._command(node, dotted)
        if dotted in _FILES:
            return "file", _text(node)
        if dotted.partition(".")[0] not in _INSIDE:
            return "external", f"{dotted}()"
        return None

    def _command(self, node: ast.Call, dotted: str) -> str:
        """The command as it is run, as far as its parts are constant."""
        if not node.args:
            return _text(node)
        given = node.args[0]
        if dotted == "shutil.which":
            return f"which {self._word(given)}"
        parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given]
        return " ".join(self._word(part) for part in parts)[:LONGEST_TEXT]

    def _word(self, node: ast.expr) -> str:
        found = self._resolver.strings(node)
        return "|".join(sorted(found)) if found else "{" + _text(node) + "}"

    def _value(self, node: ast.expr, dotted: str) -> tuple[str, str] | None:
        above = parent(node)
        is_part = isinstance(above, ast.Attribute) or (isinstance(above, ast.Call) and above.func is node)
        if is_part or (dotted.partition(".")[0] in _INSIDE and dotted != "sys.platform"):
            return None
        return "external", dotted


def _text(node: ast.AST) -> str:
    return module_of(node).text(node, LONGEST_TEXT) if "_scope" in node.__dict__ else ""
