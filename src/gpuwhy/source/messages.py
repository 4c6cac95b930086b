"""The texts that a program writes, as patterns: the literal pieces of a message, with a hole for each value between.

f"Failed to get device capability: {e}."   ("Failed to get device capability: ", ".")
"%s is too old", name                      ("", " is too old")
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

import msgspec

_HOLES = re.compile(
    r"%(?:\([A-Za-z_]\w{0,60}\))?[-#0 +]{0,5}(?:\d{1,4}|\*)?(?:\.\d{1,4})?[srdiufFeEgGxXoca]|\{[^{}]{0,200}\}"
)
_PERCENT = re.compile(r"%(?:\([A-Za-z_]\w{0,60}\))?[-#0 +]{0,5}(?:\d{1,4}|\*)?(?:\.\d{1,4})?[srdiufFeEgGxXoca]")
_MAX_PIECES = 40
LOG_LEVELS = {
    "debug": "debug", "info": "info", "warning": "warning", "warn": "warning", "error": "error",
    "exception": "error", "critical": "critical", "fatal": "critical", "log": "", "print": "print",
}  # fmt: skip
_ONCE = re.compile(r"_once$|_rank0$|_on_rank0$")


class Template(msgspec.Struct, frozen=True, array_like=True):
    """A message with holes: ``pieces[0]``, a value, ``pieces[1]``, a value ... An empty last piece ends in a value."""

    pieces: tuple[str, ...] = ("", "")

    @property
    def shown(self) -> str:
        """For people: ``{}`` where a value stands."""
        return "{}".join(self.pieces)

    @property
    def literal_size(self) -> int:
        """Characters that must stand in a line: few say little."""
        return sum(len(piece.strip()) for piece in self.pieces)

    def values_in(self, text: str) -> tuple[str, ...] | None:
        """What stands in the holes, when ``text`` ends with this message or holds it; None when it does not.

        Linear: each piece is searched from the end of the one before.
        """
        pieces = self.pieces
        at = text.find(pieces[0])
        if at < 0:
            return None
        at += len(pieces[0])
        values: list[str] = []
        for number, piece in enumerate(pieces[1:], 1):
            if number == len(pieces) - 1:
                # the last piece ends the text where it can: a value may hold it too
                found = text.rfind(piece, at) if piece else len(text)
            else:
                found = text.find(piece, at) if piece else at
            if found < 0:
                return None
            values.append(text[at:found])
            at = found + len(piece)
        return tuple(values)


ANY = Template(("", ""))


def template(
    expression: ast.expr | None, named: Mapping[str, ast.expr] | None = None, is_log: bool = False
) -> Template:
    """The pattern of a string expression. ``named`` are the strings that stand behind local names.

    Only a log call's own text, and the left of ``%`` or ``.format``, has its placeholders filled.
    """
    pieces = _pieces(expression, named or {}, is_log, 0)
    if len(pieces) > _MAX_PIECES:
        pieces = [*pieces[: _MAX_PIECES - 1], ""]
    return Template(tuple(pieces))


def _pieces(node: ast.expr | None, named: Mapping[str, ast.expr], fills: bool, depth: int) -> list[str]:
    if depth > 30:
        return ["", ""]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [piece.replace("%%", "%") for piece in _PERCENT.split(node.value)] if fills else [node.value]
    if isinstance(node, ast.JoinedStr):
        joined = [""]
        for part in node.values:
            if isinstance(part, ast.Constant):
                joined[-1] += str(part.value)
            elif (
                isinstance(part, ast.FormattedValue)
                and isinstance(part.value, ast.Constant)
                and part.format_spec is None
            ):
                joined[-1] += str(part.value.value)
            else:
                joined.append("")
        return joined
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _pieces(node.left, named, fills, depth + 1), _pieces(node.right, named, fills, depth + 1)
        return [*left[:-1], left[-1] + right[0], *right[1:]]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _pieces(node.left, named, True, depth + 1)
    if isinstance(node, ast.Call):
        return _of_call(node, named, fills, depth)
    if isinstance(node, ast.Name) and node.id in named:
        return _pieces(named[node.id], {}, fills, depth + 1)
    return ["", ""]


def _of_call(node: ast.Call, named: Mapping[str, ast.expr], fills: bool, depth: int) -> list[str]:
    called = node.func
    if isinstance(called, ast.Attribute) and called.attr == "format":
        flat: list[str] = []
        for number, piece in enumerate(_pieces(called.value, named, False, depth + 1)):
            parts = [part.replace("{{", "{").replace("}}", "}") for part in _HOLES.split(piece)]
            flat = [*flat, *parts] if number else parts
        return flat
    if isinstance(called, ast.Attribute) and called.attr in ("strip", "rstrip", "lstrip") and not node.args:
        return _pieces(called.value, named, fills, depth + 1)
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    if name in ("dedent", "cleandoc", "fill") and node.args:
        return _pieces(node.args[0], named, fills, depth + 1)
    return ["", ""]


def log_level(call: ast.Call) -> str | None:
    """``"warning"`` of ``logger.warning_once(...)``; ``"warnings.warn"`` and ``"print"`` too; None when it is no log."""
    called = call.func
    if not call.args:
        return None
    if isinstance(called, ast.Name):
        return "print" if called.id == "print" else None
    if not isinstance(called, ast.Attribute):
        return None
    if isinstance(called.value, ast.Name) and called.value.id == "warnings":
        return "warnings.warn" if called.attr == "warn" else None
    level = LOG_LEVELS.get(_ONCE.sub("", called.attr))
    if level is None or level == "print":
        return None
    if level == "" and not (len(call.args) > 1 and _is_logger(called.value)):
        return None
    return level if _is_logger(called.value) or called.attr in ("warning", "exception", "critical") else None


def log_text(call: ast.Call) -> ast.expr:
    """The argument with the message: the second one of ``logger.log(level, message)``."""
    is_leveled = isinstance(call.func, ast.Attribute) and call.func.attr == "log" and len(call.args) > 1
    return call.args[1] if is_leveled else call.args[0]


def _is_logger(receiver: ast.expr) -> bool:
    name = (
        receiver.attr if isinstance(receiver, ast.Attribute) else receiver.id if isinstance(receiver, ast.Name) else ""
    )
    if isinstance(receiver, ast.Call):
        return _is_logger(receiver.func)
    return "log" in name.lower()
