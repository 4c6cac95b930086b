"""Failures that come from another process: what a package starts, which signals it sends, who waits for the answer.

An exception ends at the border of its process. What is seen on the other side is a closed pipe, an exit code, a refused
connection or a signal; what happened was printed by the handler around the entry function of the process that failed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from gpuwhy.source.environment import calls_of
from gpuwhy.source.exceptions import handler_types
from gpuwhy.source.messages import log_level
from gpuwhy.source.resolving import Resolver, argument_for, last_name
from gpuwhy.source.scopes import CALLABLES, Scope, ancestors, scope_of, walk

MAX_ENTRIES = 8
_MAX_CALLS = 6
_MAX_EXPRESSIONS = 40
"""Expressions that are looked behind for the function that a process runs; real chains have four."""
_STARTING = ("Process", "SpawnProcess", "ForkProcess")
_ASKED = frozenset({
    "exitcode", "sentinel", "sentinels", "is_alive", "recv", "recv_multipart", "recv_pyobj", "recv_json", "recv_string",
    "urlopen", "finished_procs",
})  # fmt: skip
"""What is asked of another process: attributes and methods of processes, pipes and sockets."""
_REQUESTS = frozenset({"requests", "httpx", "aiohttp", "urllib"})
_LOST = frozenset({
    "EOFError", "BrokenPipeError", "ConnectionError", "ConnectionResetError", "ConnectionRefusedError", "RequestException",
})  # fmt: skip
"""What comes when the other side is gone."""
_BROAD = frozenset({"Exception", "BaseException", "*"})
_SENDING = {"send_signal": 0, "kill": 1, "killpg": 1, "raise_signal": 0, "pthread_kill": 1}
"""The functions that send a signal, and the position of it among their arguments."""
_OWN_METHOD = {"SIGKILL": "kill", "SIGTERM": "terminate"}
"""Methods of a process that send a signal without naming it."""
_OF_PROCESSES = frozenset({"psutil", "subprocess", "multiprocessing"})


class Entry:
    """A function that runs in a process of its own, and the call that starts it."""

    __slots__ = ("function", "start")

    def __init__(self, function: Scope, start: ast.Call) -> None:
        self.function = function
        self.start = start

    @property
    def handlers(self) -> list[ast.ExceptHandler]:
        """The handlers around what the process does that tell of a failure."""
        nodes = walk(*self.function.body, into_functions=False)
        return [node for node in nodes if isinstance(node, ast.ExceptHandler) and tells_of_all(node)]


class Processes:
    """Who starts which function as a process, and who sends which signal."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._entries: dict[str, list[Entry]] = {}

    def entries(self, package: str) -> list[Entry]:
        """The functions of a package that it starts in processes of their own."""
        if package not in self._entries:
            found: dict[int, Entry] = {}
            for starting in _STARTING:
                for unit in self._resolver.trees.units(starting, "target", calls=starting, keys="target"):
                    if unit.module.name.partition(".")[0] == package:
                        for entry in self._started_in(unit):
                            found.setdefault(id(entry.function), entry)
            self._entries[package] = list(found.values())
        return self._entries[package]

    def _started_in(self, unit: Scope) -> Iterator[Entry]:
        for call in unit.calls:
            if last_name(call.func) not in _STARTING:
                continue
            for keyword in call.keywords:
                if keyword.arg == "target":
                    yield from (Entry(function, call) for function in self.functions(keyword.value))

    def functions(self, node: ast.expr) -> list[Scope]:
        """The functions that an expression may be, also when it came as a parameter or is kept in an attribute."""
        found: dict[int, Scope] = {}
        pending, seen = [node], set[int]()
        while pending and len(seen) < _MAX_EXPRESSIONS:
            each = pending.pop(0)
            if id(each) in seen:
                continue
            seen.add(id(each))
            known = [value.scope for value in self._resolver.infer(each) if value.kind in ("function", "bound") and value.scope]  # fmt: skip
            found |= {id(scope): scope for scope in known}
            pending += [] if known else self._given(each)
        return list(found.values())

    def _given(self, node: ast.expr) -> list[ast.expr]:
        """What is passed, assigned or wrapped where an expression stands for a function that came from elsewhere."""
        given: list[ast.expr | None] = []
        if isinstance(node, ast.Name):
            for binding in self._resolver.lookup(node.id, scope_of(node))[0]:
                if binding.kind == "param":
                    calls = list(islice(calls_of(self._resolver, binding.scope, by_name=False), _MAX_CALLS))
                    given += [binding.value, *(argument_for(binding.scope, call, node.id)[0] for call in calls)]
        elif isinstance(node, ast.Attribute):
            for value in self._resolver.infer(node.value):
                for owner in self._resolver.mro(value.scope) if value.kind in ("instance", "class") and value.scope else ():  # fmt: skip
                    given += [write.value for write in self._resolver.own_writes(owner, node.attr)]
                    given += [binding.value for binding in owner.named(node.attr)]
        elif isinstance(node, ast.Call) and node.args and last_name(node.func) in ("staticmethod", "partial"):
            given += node.args[:1]
        return [each for each in given if each is not None]

    def behind(self, node: ast.AST) -> list[Entry]:
        """The processes of the package that the function around a node waits for, those that are started nearby first;
        none when it waits for nobody."""
        function = scope_of(node).function()
        if function.kind != "function" or not waits(function):
            return []
        here = function.module.name.split(".")
        entries = [each for each in self.entries(here[0]) if each.function is not function]
        return sorted(entries, key=lambda each: -_shared(here, scope_of(each.start).module.name.split(".")))[
            :MAX_ENTRIES
        ]

    # signals

    def handled_by(self, function: Scope) -> list[tuple[str, ast.Call]]:
        """The signals that a function is the handler of, and where it is made that."""
        found = []
        for registering in ("signal", "add_signal_handler"):
            for unit in self._resolver.trees.units("signal", function.name, calls=registering):
                for call in unit.calls:
                    is_it = last_name(call.func) == registering and len(call.args) > 1 and last_name(call.args[1]) == function.name  # fmt: skip
                    if is_it and self._may_be(call.args[1], function):
                        found.append((last_name(call.args[0]), call))
        return [(signal, call) for signal, call in found if signal.startswith("SIG")]

    def _may_be(self, node: ast.expr, function: Scope) -> bool:
        known = [
            value.scope for value in self._resolver.infer(node) if value.scope and value.kind in ("function", "bound")
        ]
        return function in known or (not known and function.module.name.partition(".")[0] == scope_of(node).module.name.partition(".")[0])  # fmt: skip

    def senders(self, signal: str, package: str = "") -> list[ast.Call]:
        """The calls that send a signal."""
        found: dict[int, ast.Call] = {}
        for sending, at in _SENDING.items():
            for unit in self._resolver.trees.units(sending, signal, calls=sending):
                for call in unit.calls:
                    if last_name(call.func) == sending and len(call.args) > at and last_name(call.args[at]) == signal:
                        found[id(call)] = call
        method = _OWN_METHOD.get(signal, "")
        for unit in self._resolver.trees.units(method, calls=method) if method else ():
            if _OF_PROCESSES.isdisjoint(each.module.partition(".")[0] for each in unit.module.facts.imports):
                continue
            found |= {id(call): call for call in unit.calls if _is_own_method(call, method)}
        return [
            call for call in found.values() if not package or scope_of(call).module.name.partition(".")[0] == package
        ]


def waits(function: Scope) -> bool:
    """Whether a function asks something of another process, or handles that the other side is gone."""
    for node in walk(*function.body, into_functions=False):
        if isinstance(node, ast.Attribute) and (node.attr in _ASKED or (isinstance(node.value, ast.Name) and node.value.id in _REQUESTS)):  # fmt: skip
            return True
        if isinstance(node, ast.ExceptHandler) and not _LOST.isdisjoint(handler_types(node)):
            return True
    return False


def tells_of_all(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches everything and prints something."""
    nodes = walk(*handler.body, into_functions=False)
    return not _BROAD.isdisjoint(handler_types(handler)) and any(isinstance(each, ast.Call) and log_level(each) is not None for each in nodes)  # fmt: skip


def handler_around(node: ast.AST) -> ast.ExceptHandler | None:
    """The handler that a node stands in, within its function."""
    for above in ancestors(node):
        if isinstance(above, ast.ExceptHandler):
            return above
        if isinstance(above, CALLABLES):
            break
    return None


def _is_own_method(call: ast.Call, method: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == method and not call.args


def _shared(one: list[str], other: list[str]) -> int:
    """How many leading parts two dotted names have in common."""
    return next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), min(len(one), len(other)))  # fmt: skip
