"""The replay reads what the tracer reads: modules of trees, which may be fed file by file from another machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

import msgspec

from gpuwhy.source.parsing import Parsed, parse
from gpuwhy.source.replay.sources import ModuleSource
from gpuwhy.source.roots import FedRoot, UnreadableError
from gpuwhy.source.trees import Tree, Trees

MAX_CHARACTERS = 700_000
"""Of one module. Parsing takes about a second for each megabyte and a half."""


class CutOut(ast.expr):
    """An expression of which a part was taken out before the text came here. Nothing evaluates it."""

    _fields = ()


class TreesSource:
    """Modules of ``trees`` by name. ``folders`` says where the folder of a package stands on the target.

    A module that was not fed yet is not found, and its file is among the ``wanted`` of its root: fetch it, feed it,
    :meth:`refresh`, replay again. A file of which the parser refuses a part is not replayed: what is missing might
    have decided. ``cut`` finds the names that stand for what redaction took out; a replay that needs one ends there.
    """

    def __init__(
        self, trees: Trees, folders: Mapping[str, str] | None = None, cut: re.Pattern[str] | None = None
    ) -> None:
        self._trees = trees
        self._folders = folders or {}
        self._cut = cut
        self._parsed: dict[str, Parsed] = {}
        self._missed: dict[str, None] = {}
        self.refused: dict[str, str] = {}
        """Files that are there and cannot be replayed, each with the reason."""

    @property
    def missed(self) -> tuple[str, ...]:
        """Modules that were asked for and whose files have not come, in the order of the questions."""
        return tuple(name for name in self._missed if self._is_wanted(name))

    def refresh(self) -> None:
        """Take in what was fed since."""
        self._missed.clear()
        for tree in self._trees:
            tree.refresh()

    def find(self, name: str) -> ModuleSource | None:
        if not all(part.isidentifier() for part in name.split(".")):
            return None
        tree = self._trees.tree_of(name)
        path = tree.path_of(name) if tree is not None else None
        if tree is None or path is None:
            self._missed[name] = None
            return None
        parsed = self._tree_of(tree, path)
        if parsed.tree is None or parsed.gaps:
            self.refused[path] = parsed.reason
            return None
        folder = self._folders.get(tree.package, "")
        return ModuleSource(name, f"{folder}/{path}", path, parsed.tree, path.endswith("/__init__.py"))

    def _tree_of(self, tree: Tree, path: str) -> Parsed:
        if path not in self._parsed:
            try:
                text = tree.text(path)
            except UnreadableError as error:
                return Parsed(None, reason=str(error))
            self._parsed[path] = self._parsed_text(text)
        return self._parsed[path]

    def _parsed_text(self, text: str) -> Parsed:
        if len(text) > MAX_CHARACTERS:
            return Parsed(None, reason=f"more than {MAX_CHARACTERS} characters")
        parsed = parse(text)
        if self._cut is None or parsed.tree is None or self._cut.search(text) is None:
            return parsed
        try:
            return msgspec.structs.replace(parsed, tree=_CuttingOut(self._cut).visit(parsed.tree))
        except RecursionError:
            return Parsed(None, reason="a very deep expression")

    def _is_wanted(self, name: str) -> bool:
        tree = self._trees.tree_of(name)
        if tree is None or not isinstance(tree.root, FedRoot):
            return False
        stem = name.replace(".", "/")
        return not {f"{stem}.py", f"{stem}/__init__.py"}.isdisjoint(tree.root.wanted)


class _CuttingOut(ast.NodeTransformer):
    """Puts :class:`CutOut` where a name stands for what was taken out, so that its being no name decides nothing."""

    def __init__(self, cut: re.Pattern[str]) -> None:
        self._cut = cut

    def visit_Name(self, node: ast.Name) -> ast.expr:
        is_cut = isinstance(node.ctx, ast.Load) and self._cut.search(node.id) is not None
        return ast.copy_location(CutOut(), node) if is_cut else node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        is_cut = isinstance(node.value, str) and self._cut.search(node.value) is not None
        return ast.copy_location(CutOut(), node) if is_cut else node
