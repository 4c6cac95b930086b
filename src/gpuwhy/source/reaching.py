"""Which bindings of a local name can be the value at its use: structural, erring on the side of too many."""

from __future__ import annotations

import ast

from gpuwhy.source.conditions import block_of, terminates
from gpuwhy.source.scopes import Binding, Scope, ancestors, parent

_DEFINITE = (ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def reaching(use: ast.AST, bindings: list[Binding], scope: Scope) -> list[Binding]:
    """Of the bindings of a name in a scope, those that may reach a use of it."""
    if not bindings or all(binding.kind == "param" for binding in bindings):
        return bindings
    return _Walk(bindings).back_from(use, scope) or bindings


class _Walk:
    def __init__(self, bindings: list[Binding]) -> None:
        self.bindings = bindings
        self.by_node: dict[int, list[Binding]] = {}
        self.around: dict[int, list[Binding]] = {}
        """By the nodes around a binding."""
        for binding in bindings:
            self.by_node.setdefault(id(binding.node), []).append(binding)
            if binding.kind != "param":
                for node in (binding.node, *ancestors(binding.node)):
                    self.around.setdefault(id(node), []).append(binding)

    def inside(self, node: ast.AST) -> list[Binding]:
        return self.around.get(id(node), [])

    def back_from(self, use: ast.AST, scope: Scope) -> list[Binding]:
        """Walk backwards through the blocks around the use until a definite assignment."""
        found: list[Binding] = []
        is_settled = False
        node = use
        while node is not scope.node and not is_settled:
            above = parent(node)
            if above is None:
                break
            if isinstance(node, ast.stmt):
                is_settled = self._before(node, above, found)
            elif isinstance(above, ast.BoolOp):
                # a walrus in an earlier operand
                for operand in above.values:
                    if operand is node:
                        break
                    found += self.inside(operand)
            node = above
        if not is_settled:
            found += [binding for binding in self.bindings if binding.kind == "param"]
        return list({id(binding): binding for binding in found}.values())

    def _before(self, node: ast.stmt, above: ast.AST, found: list[Binding]) -> bool:
        field, block, at = block_of(node, above)
        if not field:
            return False
        for earlier in reversed(block[:at]):
            inside = self.inside(earlier)
            leaves = isinstance(earlier, ast.If) and terminates(earlier.body) and not earlier.orelse
            if inside and not leaves:
                found += inside
                if self._settles(earlier):
                    return True
        if isinstance(above, (ast.If, ast.While)) and self.inside(above.test):
            found += self.inside(above.test)
            return True
        if isinstance(above, _LOOPS) and field == "body":
            for later in block[at:]:
                found += self.inside(later)
        if id(above) in self.by_node and isinstance(above, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.ExceptHandler)):  # fmt: skip
            found += self.by_node[id(above)]
            return True
        if isinstance(above, ast.ExceptHandler) or (isinstance(above, ast.Try) and field in ("orelse", "finalbody")):
            tried = above if isinstance(above, ast.Try) else parent(above)
            for statement in getattr(tried, "body", []):
                found += self.inside(statement)
        return False

    def _settles(self, node: ast.stmt) -> bool:
        """Whether no earlier binding can survive this statement."""
        if id(node) in self.by_node and isinstance(node, _DEFINITE):
            return True
        if isinstance(node, ast.If):
            branches = (node.body, node.orelse)
            return bool(node.orelse) and all(
                terminates(branch) or any(map(self._settles, branch)) for branch in branches
            )
        if isinstance(node, ast.Try):
            handlers = [handler.body for handler in node.handlers]
            return any(map(self._settles, node.body)) and all(terminates(body) or any(map(self._settles, body)) for body in handlers)  # fmt: skip
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return id(node) in self.by_node or any(map(self._settles, node.body))
        return False
