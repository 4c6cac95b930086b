"""The backward slice: from the conditions of a line to the values, calls, writes and hidden exceptions behind them.

Best first: the nearest and least ambiguous steps are followed before others, in turn for each condition of the guard,
until a budget is spent. Depth first drowns in data of requests; see the notes on cost at :class:`Slicer`.
"""

from __future__ import annotations

import ast
import heapq
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from gpuwhy.source import spelling
from gpuwhy.source.conditions import Condition, path_conditions
from gpuwhy.source.dynamic import Dynamic
from gpuwhy.source.environment import Environment, Touch, calls_of
from gpuwhy.source.exceptions import Exceptions, Raise, handler_types, is_kind_of, raises_again, suppressed
from gpuwhy.source.options import Flag, Options
from gpuwhy.source.outside import LONGEST_TEXT, Outside
from gpuwhy.source.ownership import Ownership, writing_calls
from gpuwhy.source.processes import Entry, Processes, handler_around, tells_of_all
from gpuwhy.source.resolving import (
    BUILTINS,
    FOREIGN,
    Resolver,
    Value,
    argument_for,
    decorators,
    is_for_types_only,
    last_name,
    returns,
)
from gpuwhy.source.scopes import (
    CALLABLES,
    AttributeWrite,
    Binding,
    Module,
    Scope,
    ancestors,
    inner_scope,
    module_of,
    parent,
    scope_of,
    statement_of,
)
from gpuwhy.source.slice_nodes import Border, Context, Node

MAX_NODES = 1500
MAX_COST = 40.0
MAX_CALL_SITES = 12
MAX_RAISES = 12
_OF_FRAMES = 100
"""The first of the queues of the frames of a traceback; those of the guard's conditions come before."""
_MAX_SIGNALS = 3
"""Signals that are sent from the handlers of others: real chains have two."""
_COMMON = frozenset({
    "split", "strip", "lower", "upper", "decode", "encode", "startswith", "endswith", "get", "items", "keys", "values", "format",
    "group", "join", "isdigit", "replace", "rstrip", "lstrip", "findall", "match", "search", "to", "item", "size", "view",
    "add", "append", "extend", "update", "insert", "discard", "remove", "clear", "pop", "setdefault", "appendleft", "copy",
    "resolve", "absolute", "expanduser", "joinpath", "with_suffix", "as_posix", "mkdir", "touch", "unlink",
})  # fmt: skip
"""Methods of texts, containers, tensors and paths: who defines another one of that name says nothing."""
_OPAQUE = re.compile(r"(?:^|\.)(?:_?vendor(?:ed)?|packaging|typing_extensions|third_?party)(?:\.|$)")
"""Helper libraries: their instances are plain values, followed through what they were built from."""
_IS_FILE = re.compile(r"(?:^|_)(?:path|file|filename)$")
_REQUEST = re.compile(
    r"(?:^|_)(?:request|req|sampling_(?:info|params|metadata)|batch|forward_batch|hf_config|input_ids|tokens?)(?:s|_info)?$"
)


class Slicer:
    """Builds the slice below ``root``.

    The cost of a node is its distance from the guard plus log2 of how many candidates it stands beside: a name with
    two writers costs little, a parameter with thirty callers much.
    """

    def __init__(self, resolver: Resolver, most: int = MAX_NODES) -> None:
        self.resolver = resolver
        self.environment = Environment(resolver)
        self.exceptions = Exceptions(resolver)
        self.options = Options(resolver)
        self.processes = Processes(resolver)
        self.dynamic = Dynamic(resolver)
        self.outside = Outside(resolver)
        self.ownership = Ownership(resolver)
        self.root = Node("root", "")
        self.count = 0
        self.cut = 0
        self.cut_at: dict[str, None] = {}
        self._most = most
        self._announced: Callable[[], bool] | None = None
        self._patience = 0.0
        self._announced_at = 0.0
        self._seen: dict[object, Node] = {}
        self._queues: dict[int, list[tuple[float, int, Node]]] = {}
        self._spent: dict[int, int] = {}
        self._queue = 0
        self._order = 0
        self._tries: set[int] = set()

    def follow(self, tests: Iterable[ast.expr], node: ast.AST | None = None, context: Context | None = None) -> None:
        """Slice on the tests of a guard, each with a queue of its own; and on the handlers around ``node``.
        ``context`` are the calls of the traceback: parameters have the values that were passed there."""
        if node is not None:
            self._swallowed(node, self.root, 0.0, context)
        for number, test in enumerate(tests):
            self._queue = number
            self.root.below.append(self._expression(test, 0.0, context))
        self._run()

    def through(self, calls: Sequence[tuple[Scope, ast.Call]]) -> Context | None:
        """The calls of a traceback, innermost first, as the context of its innermost frame."""
        context: Context | None = None
        for function, call in reversed(calls):
            context = Context(function, call, context)
        return context

    def of_traceback(self, calls: Sequence[tuple[Scope, ast.Call]]) -> None:
        """Slice on why each frame of a traceback was reached, and on what its call was made on; those further out
        cost more."""
        for number, (_, call) in enumerate(calls):
            self._queue = _OF_FRAMES + number
            cost, context = 2.0 * (number + 1), self.through(calls[number + 1 :])
            step = self._new("caller", self._text(call), call, path_conditions(call))
            self.root.below.append(step)
            self._control(call, step, cost, context)
            self._swallowed(statement_of(call), step, cost, context)
            if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, (ast.Call, ast.Subscript)):
                step.below.append(self._expression(call.func.value, cost, context))

    def of_function(self, scope: Scope) -> None:
        """Slice on what a function gives back."""
        self._returns(scope, self.root, 0.0, None)

    def of_callers(self, function: Scope) -> None:
        """Slice on the conditions of the calls of a function that fails whenever it runs, also where it is the default
        of a parameter that is called."""
        for call in [*calls_of(self.resolver, function), *self._calls_as_default(function)][:MAX_CALL_SITES]:
            step = self._new("caller", self._text(call), call, path_conditions(call))
            self.root.below.append(step)
            self._control(call, step, 0.0, None)
            self._swallowed(call, step, 0.0, None)

    # other processes

    def of_other_processes(self, node: ast.AST, made: Node | None = None, depth: int = 0) -> None:
        """What another process has to do with a line: the processes that its function waits for, and, where it is the
        handler of a signal, who sends that."""
        made = made or self.root
        for entry in self.processes.behind(node):
            made.below.append(self._process(entry))
        function = scope_of(node).function()
        if function.kind == "function" and depth < _MAX_SIGNALS:
            for signal, registration in self.processes.handled_by(function):
                step = self._new("signal", f"{function.qualname}() runs on {signal}", registration, path_conditions(registration))  # fmt: skip
                made.below.append(step)
                self.of_signal(signal, step, function.module.name.partition(".")[0], depth + 1)

    def of_signal(self, signal: str, made: Node | None = None, package: str = "", depth: int = 0) -> None:
        """Who sends a signal, and the callers of a function that sends it to whom it is told."""
        made = made or self.root
        key = ("signal", signal, package)
        if key in self._seen:
            made.below.append(Node("seen", signal))
            return
        self._seen[key] = made
        for call in self.processes.senders(signal, package):
            step = self._sender(call, made, depth)
            function = scope_of(call).function()
            if _is_told_whom(function) and ("callers", id(function)) not in self._seen:
                self._seen["callers", id(function)] = step
                for each in calls_of(self.resolver, function):
                    self._sender(each, step, depth)

    def _sender(self, call: ast.Call, made: Node, depth: int) -> Node:
        step = self._new("sender", self._text(call), call, path_conditions(call))
        made.below.append(step)
        handler = handler_around(call)
        if handler is not None and tells_of_all(handler):
            step.below.append(self._told(handler))
        self.of_other_processes(call, step, depth)
        return step

    def _process(self, entry: Entry) -> Node:
        key = ("process", id(entry.function))
        text = f"{entry.function.module.name}:{entry.function.qualname}() runs in a process of its own"
        if key in self._seen:
            return Node("seen", text, entry.start)
        made = self._seen[key] = self._new("process", text, entry.start, path_conditions(entry.start))
        made.below += [self._told(handler) for handler in entry.handlers]
        return made

    def _told(self, handler: ast.ExceptHandler) -> Node:
        """A handler at the border of a process: whatever fails in there ends in it."""
        made = self._new("swallowed", f"except {', '.join(handler_types(handler))}", handler)
        made.touched = Border(handler)
        return made

    def _calls_as_default(self, function: Scope) -> Iterator[ast.Call]:
        # only a name of a module can stand as a default
        for unit in self.resolver.trees.units(function.name) if not function.is_method() else ():
            if unit.kind != "function" or unit is function:
                continue
            given = getattr(unit.node, "args", None)
            defaults = [*given.defaults, *given.kw_defaults] if given else []
            names = [*(each.arg for each in given.args[len(given.args) - len(given.defaults) :]), *(each.arg for each in given.kwonlyargs)] if given else []  # fmt: skip
            chosen = {name for name, default in zip(names, defaults, strict=False) if isinstance(default, ast.Name) and default.id == function.name}  # fmt: skip
            if chosen:
                yield from (call for call in unit.calls if isinstance(call.func, ast.Name) and call.func.id in chosen)

    def of_global(self, module: Module, name: str) -> None:
        """Slice on a name of a module."""
        self._member(module, name, self.root, 0.0, module.tree)

    # the work list

    def _expression(self, node: ast.expr, cost: float, context: Context | None) -> Node:
        key = (id(node), context.key if context else None)
        text = module_of(node).text(node, LONGEST_TEXT) if "_scope" in node.__dict__ else ""
        if key in self._seen:
            if cost == 0:
                self._promote(self._seen[key])
                return self._seen[key]
            return Node("seen", text, node)
        if "_scope" not in node.__dict__:
            return Node("seen", text)
        if cost > MAX_COST or self.count > self._most:
            self._cut_off(node)
            return Node("seen", text, node, note="cut")
        made = self._seen[key] = self._new("expression", text, node)
        made.pending = (node, cost, context)
        self._push(made)
        return made

    def _new(self, kind: str, text: str, node: ast.AST | None, conditions: Iterable[Condition] = (), note: str = "") -> Node:  # fmt: skip
        self.count += 1
        return Node(kind, text, node, conditions, note)

    def _cut_off(self, node: ast.AST) -> None:
        self.cut += 1
        if len(self.cut_at) < 20:
            module = module_of(node)
            self.cut_at[f"{module.path}:{getattr(node, 'lineno', 0)} {module.text(node, 60)}"] = None

    def _push(self, made: Node) -> None:
        self._order += 1
        if made.pending is not None:
            node, cost, _ = made.pending
            foreign = 8.0 if FOREIGN.search(module_of(node).name) else 0.0
            heapq.heappush(self._queues.setdefault(self._queue, []), (cost + foreign, self._order, made))

    def _promote(self, made: Node) -> None:
        """What another condition had put off is wanted now."""
        pending, seen = [made], set[int]()
        while pending and len(seen) < 300:
            each = pending.pop()
            if id(each) not in seen:
                seen.add(id(each))
                if each.pending:
                    self._push(each)
                pending.extend(each.below)

    def tell_after(self, seconds: float, told: Callable[[], bool]) -> None:
        """Call ``told`` when the work has taken so long, and again after as long until it says that there was something to
        tell; not at all when the work ends before."""
        self._announced, self._patience = told, seconds
        self._announced_at = time.monotonic() + seconds

    def _run(self) -> None:
        while True:
            if self._announced is not None and time.monotonic() >= self._announced_at:
                self._announced = None if self._announced() else self._announced
                self._announced_at = time.monotonic() + self._patience
            waiting = [queue for queue, items in self._queues.items() if items]
            if not waiting:
                return
            self._queue = min(waiting, key=lambda queue: self._spent.get(queue, 0))
            made = heapq.heappop(self._queues[self._queue])[2]
            if made.pending is None:
                continue
            node, cost, context = made.pending
            if self.count > self._most:
                self._cut_off(node)
                made.pending = None
                continue
            made.pending = None
            before = self.count
            self._expand(node, made, cost, context)
            self._spent[self._queue] = self._spent.get(self._queue, 0) + self.count - before

    # expressions

    def _expand(self, node: ast.expr, made: Node, cost: float, context: Context | None) -> None:
        leaf = self._leaf(node)
        if leaf:
            leaf.conditions = path_conditions(node)
            made.below.append(leaf)
            if isinstance(node, ast.Call):
                made.below += [self._expression(each, cost + 1, context) for each in node.args if not isinstance(each, ast.Constant)]  # fmt: skip
                if isinstance(node.func, ast.Attribute) and leaf.kind == "file":
                    made.below.append(self._expression(node.func.value, cost + 1, context))
        elif isinstance(node, ast.Constant):
            made.kind = "constant"
        elif isinstance(node, ast.Name):
            self._name(node, made, cost, context)
        elif isinstance(node, ast.Attribute):
            self._attribute(node, made, cost, context)
        elif isinstance(node, ast.Call):
            self._call(node, made, cost, context)
        elif not isinstance(node, ast.Lambda):
            self._parts(node, made, cost, context)

    def _parts(self, node: ast.AST, made: Node, cost: float, context: Context | None) -> None:
        for field in node._fields:
            value = getattr(node, field, None)
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.expr):
                    made.below.append(self._expression(each, cost + 1, context))
                elif isinstance(each, ast.comprehension):
                    made.below += [self._expression(part, cost + 1, context) for part in (each.iter, *each.ifs)]

    def _control(self, node: ast.AST, made: Node, cost: float, context: Context | None, weak: bool = False) -> None:
        """Slice on the conditions of a node too; on weak ones only where they matter, before a raise."""
        for condition in path_conditions(node):
            if weak or not condition.is_weak:
                made.below += [self._expression(test, cost + 2, context) for test in condition.tests]

    def _leaf(self, node: ast.expr) -> Node | None:
        touch = self.environment.direct(node) if isinstance(node, (ast.Call, ast.Subscript, ast.Compare)) else None
        if touch:
            name = "|".join(sorted(touch.names)) or (self._text(touch.key) if touch.key is not None else "the whole environment")  # fmt: skip
            made = self._new("environment" if touch.names else "environment?", name, node, note=touch.kind)
            made.touched = touch
            return made
        found = self.outside.read(node)
        return self._new(*found, node) if found else None

    # names

    def _name(self, node: ast.Name, made: Node, cost: float, context: Context | None) -> None:
        bindings, scope = self.resolver.lookup(node.id, scope_of(node))
        if scope is None:
            made.kind = "builtin" if node.id in BUILTINS else "unknown"
            return
        reaching = self.resolver.at_use(node, bindings, scope)
        mutations = [binding for binding in scope.named(node.id) if binding.kind == "mutation"]
        if scope.kind == "module":
            mutations += self._mutations_elsewhere(scope, node.id)
        found = [*reaching, *mutations]
        for binding in found:
            self._binding(binding, made, cost + _fan_out(len(found)), context, node.id)

    def _mutations_elsewhere(self, scope: Scope, name: str) -> list[Binding]:
        """``NAME.append(x)`` in the functions of a module that have no name of their own for it."""
        found: list[Binding] = []
        for unit in scope.module.units(names=name):
            if unit is scope or unit.facts is None or len(found) > 8:
                continue
            if {"add", "append", "extend", "update", "insert", "setdefault", "clear", "pop"}.isdisjoint(
                unit.facts.calls
            ):
                continue
            bindings = unit.named(name)
            found += [each for each in bindings if each.kind == "mutation"] if all(each.kind == "mutation" for each in bindings) else []  # fmt: skip
        return found

    def _binding(self, binding: Binding, made: Node, cost: float, context: Context | None, name: str) -> None:
        node = binding.node
        if binding.kind == "param":
            self._parameter(binding, made, cost, context)
        elif binding.kind == "import":
            self._import(binding, made, cost)
        elif binding.kind in ("def", "class"):
            made.below.append(self._new("named", name, node))
        elif binding.kind == "except" and isinstance(node, ast.ExceptHandler):
            caught = self._new("caught", f"{', '.join(handler_types(node))} as {name}", node)
            made.below.append(caught)
            tried = parent(node)
            self._raises(getattr(tried, "body", []), handler_types(node), caught, cost, context)
        elif binding.kind == "match":
            subject = next((above.subject for above in ancestors(node) if isinstance(above, ast.Match)), None)
            made.below += [self._expression(subject, cost + 1, context)] if subject is not None else []
        else:
            self._definition(binding, made, cost, context, name)

    def _definition(self, binding: Binding, made: Node, cost: float, context: Context | None, name: str) -> None:
        sign = {"assign": "=", "annotated": "=", "augmented": "op=", "for": "in", "with": "from with", "mutation": f".{binding.how}"}[binding.kind]  # fmt: skip
        element = f"[{binding.index}]" if binding.index is not None else ""
        value = binding.value
        text = f"{name} {sign} {self._text(value) if value is not None else ''}{element}".rstrip()
        note = "on import" if binding.scope.kind == "module" else ""
        step = self._new("definition", text, binding.node, path_conditions(binding.node), note)
        made.below.append(step)
        if value is not None:
            step.below.append(self._expression(value, cost + 1, context))
        self._control(binding.node, step, cost + 1, context)
        self._swallowed(statement_of(binding.node), step, cost, context)

    def _import(self, binding: Binding, made: Node, cost: float) -> None:
        base, member = binding.source or ("", None)
        module = self.resolver.trees.module(base)
        if module and member:
            self._member(module, member, made, cost, binding.node)
            return
        step = self._new("import", f"{base}.{member}" if member else base, binding.node)
        made.below.append(step)
        self._swallowed(binding.node, step, cost, None)

    def _member(self, module: Module, name: str, made: Node, cost: float, at: ast.AST) -> None:
        """What a name of a module is; modules may import it from each other in a circle."""
        key = ("member", id(module), name)
        if key not in self._seen:
            self._seen[key] = Node("expression", name)
            self._found_member(module, name, self._seen[key], cost, at)
        made.below.append(self._seen[key])

    def _found_member(self, module: Module, name: str, made: Node, cost: float, at: ast.AST) -> None:
        table = self.resolver.table(module)
        if name in table:
            entry = self._new("table", f"{module.name}.{name}", table[name])
            made.below.append(entry)
            value = table[name]
            entry.below.append(self._expression(value.body if isinstance(value, ast.Lambda) else value, cost + 1, None))
            if isinstance(value, ast.Call):
                self._table_call(value, entry)
            return
        bindings = [binding for binding in module.scope.named(name) if not is_for_types_only(binding.node)]
        factory = next(module.functions("__getattr__"), None) if not bindings else None
        if factory is not None:
            self._returns(factory, made, cost + 1, None)
        elif not bindings:
            below = self.resolver.trees.module(f"{module.name}.{name}") if module.is_package else None
            made.below.append(self._new("import" if below else "unknown", f"{module.name}.{name}", at))
        for binding in bindings:
            source = self.resolver.trees.module(binding.source[0]) if binding.kind == "import" and binding.source and binding.source[1] else None  # fmt: skip
            if source and binding.source and binding.source[1] and cost < MAX_COST:
                step = self._new("re-export", f"{module.name}.{name} from {binding.source[0]}", binding.node)
                made.below.append(step)
                self._member(source, binding.source[1], step, cost + 1, binding.node)
            else:
                self._binding(binding, made, cost + _fan_out(len(bindings)), None, name)

    def _table_call(self, value: ast.Call, entry: Node) -> None:
        """An entry such as ``env_with_choices("NAME", default, choices)``: the function that it returns reads NAME."""
        for argument in value.args[:1]:
            names = self.resolver.strings(argument)
            if names and all(name.isupper() or "_" in name for name in names):
                entry.below.append(self._new("environment", "|".join(sorted(names)), value, note="read"))

    # attributes and fields

    def _attribute(self, node: ast.Attribute, made: Node, cost: float, context: Context | None) -> None:
        values, is_done = self.resolver.infer(node.value), False
        for value in values:
            if value.kind == "module" and value.module:
                self._member(value.module, node.attr, made, cost, node)
                is_done = True
            elif value.kind in ("instance", "class") and value.scope:
                owner = self.resolver.owner(value.scope, node.attr)
                if owner is None:
                    is_done |= self._looked_up(value.scope, node, made, cost)
                    continue
                is_done = True
                if not _OPAQUE.search(owner.module.name):
                    self.field(owner, node.attr, made, cost, self._allocation(value, node, context))
                if value.kind == "instance":
                    made.below.append(self._expression(node.value, cost + 1, context))
        declared = self.dynamic.declared(node) if not is_done else None
        if declared is not None:
            text = f"{declared.path}.{node.attr}: filled from {declared.owner.qualname}, which declares this path"
            step = self._new("projection", text, declared.binding.node)
            made.below.append(step)
            self.field(declared.owner, node.attr, step, cost + 1)
        elif not is_done:
            if not any(value.kind == "external" for value in values):
                self._field_by_name(node, made, cost)
            made.below.append(self._expression(node.value, cost + 1, context))

    def _looked_up(self, owner: Scope, node: ast.Attribute, made: Node, cost: float) -> bool:
        """An attribute that ``__getattr__`` answers with a function out of a table."""
        functions = self.dynamic.looked_up(owner, node.attr)
        for function in functions:
            self._returns(function, made, cost + 1, None)
        return bool(functions)

    def _allocation(self, value: Value, node: ast.AST, context: Context | None) -> Context | None:
        """The constructor call that made an instance: its parameters come from that one alone."""
        constructor = self.resolver.method(value.scope, "__init__") if value.scope and isinstance(value.made, ast.Call) else None  # fmt: skip
        if constructor is None or not isinstance(value.made, ast.Call):
            return None
        same = scope_of(value.made).function() is scope_of(node).function()
        return Context(constructor, value.made, context if same else None)

    def field(self, owner: Scope, name: str, made: Node, cost: float, made_by: Context | None = None) -> None:
        """An attribute of a class: its default, its options, everything that writes it."""
        key = ("field", id(owner), name, made_by.key if made_by else None)
        text = f"{owner.module.name}:{owner.qualname}.{name}"
        if key in self._seen:
            made.below.append(Node("seen", text, owner.node))
            return
        step = self._seen[key] = self._new("field", text, owner.node)
        step.touched = (owner, name)
        made.below.append(step)
        for binding in owner.named(name):
            self._class_member(binding, name, step, cost)
        for flag in self.options.of_field(owner, name):
            step.below.append(self._flag(flag))
        writes = list(self.ownership.writes(owner, name))
        cost += _fan_out(len(writes))
        for write, is_sure in writes:
            self._write(write, is_sure, step, cost, made_by)
        keyed = list(self.ownership.keyed(name, owner))
        cost += _fan_out(len(keyed))
        if _IS_FILE.search(name):
            self._file_written(owner, name, step, cost)
        for node, value in keyed:
            found = self._new("write", f"'{name}': {self._text(value)}", node, path_conditions(node), "by a key or keyword of this name")  # fmt: skip
            step.below.append(found)
            found.below.append(self._expression(value, cost + 1, None))
            self._control(node, found, cost + 1, None)

    def _file_written(self, owner: Scope, name: str, step: Node, cost: float) -> None:
        """Of an attribute that is the path of a file: the functions that write the file, and when each is called. What
        stands in a file that is there already may be of an earlier run."""
        for unit in self.resolver.trees.units(name, reads=name):
            if unit.kind != "function" or unit.module.name.partition(".")[0] != owner.module.name.partition(".")[0]:
                continue
            for call in writing_calls(unit, name):
                found = self._new("write", f"the file at .{name}: {self._text(call)}", call, path_conditions(call))
                step.below.append(found)
                self._control(call, found, cost + 1, None)
                for caller in list(calls_of(self.resolver, unit))[:MAX_CALL_SITES]:
                    made = self._new("caller", self._text(caller), caller, path_conditions(caller))
                    found.below.append(made)
                    self._control(caller, made, cost + 2, None)

    def _class_member(self, binding: Binding, name: str, step: Node, cost: float) -> None:
        if binding.kind in ("assign", "annotated"):
            shown = self._text(binding.value) if binding.value is not None else "(none)"
            found = self._new("default", f"{name} = {shown}", binding.node)
            step.below.append(found)
            if binding.value is not None:
                found.below.append(self._expression(binding.value, cost + 1, None))
            flag = self.options.from_field(binding, name)
            if flag:
                step.below.append(self._flag(flag))
        elif binding.kind == "def":
            found = self._new("property", name, binding.node)
            step.below.append(found)
            self._returns(inner_scope(binding.node), found, cost, None)

    def _write(self, write: AttributeWrite, is_sure: bool, step: Node, cost: float, made_by: Context | None) -> None:
        shown = self._text(write.value) if write.value is not None else ""
        text = f"{self._text(write.target)} {write.how} {shown}" if write.how[0] != "." else f"{self._text(write.target)}{write.how}({shown})"  # fmt: skip
        found = self._new("write", text.strip(), write.node, path_conditions(write.node), "" if is_sure else "by its name: what it belongs to is not known")  # fmt: skip
        step.below.append(found)
        context = made_by if made_by and write.scope.function() is made_by.function else None
        if write.value is not None:
            found.below.append(self._expression(write.value, cost + 1, context))
        self._control(write.node, found, cost + 1, context)
        self._swallowed(statement_of(write.node), found, cost, context)

    def _flag(self, flag: Flag) -> Node:
        made = self._new("flag", flag.name, flag.node, note=flag.note)
        made.touched = flag
        return made

    def _field_by_name(self, node: ast.Attribute, made: Node, cost: float) -> None:
        """The classes that own an attribute of that name, when they are few."""
        name, above = node.attr, parent(node)
        if isinstance(above, ast.Call) and above.func is node:
            return
        key = ("by name", name)
        if key in self._seen:
            made.below.append(Node("seen", f".{name}", node))
            return
        owners = self.ownership.owners(name)
        if owners is not None and 0 < len(owners) <= 4:
            step = self._seen[key] = self._new("by-name", f".{name}: {len(owners)} class(es) own this attribute", node)
            made.below.append(step)
            for owner in owners:
                self.field(owner, name, step, cost + 3)
        else:
            made.kind = "unknown"
            many = "many" if owners is None else str(len(owners) or "no")
            made.note = f"what it belongs to is not known; {many} classes own .{name}"

    # calls

    def _call(self, node: ast.Call, made: Node, cost: float, context: Context | None) -> None:
        values, is_followed = self.resolver.infer(node.func), False
        if isinstance(node.func, ast.Call) and self._made_reader(node.func, made):
            return
        for value in values:
            if value.kind in ("function", "bound") and value.scope:
                is_followed = True
                self._followed(value, node, made, cost, context)
            elif value.kind == "class" and value.scope:
                is_followed = True
                step = self._new("new", f"{value.scope.qualname}()", node)
                made.below.append(step)
                step.below += [self._expression(each, cost + 1, context) for each in _arguments(node)]
        if not is_followed:
            self._passed_through(node, values, made, cost, context)

    def _made_reader(self, node: ast.Call, made: Node) -> bool:
        """``factory("NAME")()``: the function that a factory gives back reads the variable that it was made for."""
        touches = [self.environment.through(value, node) for value in self.resolver.infer(node.func) if value.kind == "function"]  # fmt: skip
        made.below += [self._environment(touch, node) for touch in touches if touch]
        return any(touches)

    def _environment(self, touch: Touch, node: ast.Call) -> Node:
        step = self._new("environment", "|".join(sorted(touch.names)), node, path_conditions(node), f"through {touch.via}")  # fmt: skip
        step.touched = touch
        return step

    def _followed(self, value: Value, node: ast.Call, made: Node, cost: float, context: Context | None) -> None:
        touch = self.environment.through(value, node)
        if touch:
            made.below.append(self._environment(touch, node))
            return
        if value.scope is None:
            return
        self._returns(value.scope, made, cost, Context(value.scope, node, context))
        receiver = value.receiver
        if value.kind == "bound" and receiver and receiver.scope and not isinstance(receiver.made, ast.Call):
            others = self.resolver.overrides(value.scope, receiver.scope)
            for other in others:
                further = 9 if FOREIGN.search(other.module.name) else 2
                self._returns(other, made, cost + _fan_out(len(others)) + further, Context(other, node, context))

    def _passed_through(self, node: ast.Call, values: list[Value], made: Node, cost: float, context: Context | None) -> None:  # fmt: skip
        """An unknown call gives what it is given."""
        if not isinstance(node.func, (ast.Attribute, ast.Name)):
            made.below.append(self._expression(node.func, cost + 1, context))
        if isinstance(node.func, ast.Attribute):
            made.below.append(self._expression(node.func.value, cost + 1, context))
            if not values and not isinstance(node.func.value, ast.Constant) and node.func.attr not in _COMMON:
                self._method_by_name(node, made, cost)
        made.below += [self._expression(each, cost + 1, context) for each in _arguments(node) if not isinstance(each, ast.Constant)]  # fmt: skip

    def _method_by_name(self, node: ast.Call, made: Node, cost: float) -> None:
        name = last_name(node.func)
        if name.startswith("__"):
            return
        defining = [
            (tree, path, unit.qualname)
            for tree, path, facts in self.resolver.trees.facts_with(name, spelled=spelling.defining(name))
            for unit in facts.functions
            if unit.qualname.endswith(f".{name}")
        ]
        if not defining:
            return
        if len(defining) > 6:
            made.below.append(self._new("unknown", f"{name}(): {len(defining)} methods of this name, what it belongs to is not known", node))  # fmt: skip
            return
        found = [scope for tree, path, qualname in defining for module in [tree.module(path)] if module for scope in module.functions(qualname)]  # fmt: skip
        step = self._new("by-name", f"{name}(): {len(found)} method(s) of this name", node)
        made.below.append(step)
        for scope in found:
            self._returns(scope, step, cost + 4, None)

    def _returns(self, scope: Scope, made: Node, cost: float, context: Context | None) -> None:
        """What a function gives back, under the conditions of each return."""
        key = ("returns", id(scope), context.key if context else None)
        text = f"{scope.module.name}:{scope.qualname}()"
        if key in self._seen:
            made.below.append(Node("seen", text, scope.node))
            return
        caches = [name for name in decorators(scope.node) if "cache" in name]
        note = f"kept for the life of the process by @{caches[0]}" if caches else ""
        step = self._seen[key] = self._new("call", text, scope.node, note=note)
        made.below.append(step)
        if isinstance(scope.node, ast.Lambda):
            step.below.append(self._expression(scope.node.body, cost + 1, context))
            return
        for each in returns(scope):
            shown = f"return {self._text(each.value)}" if each.value is not None else "return"
            found = self._new("return", shown, each, path_conditions(each))
            step.below.append(found)
            if each.value is not None:
                found.below.append(self._expression(each.value, cost + 1, context))
            self._control(each, found, cost + 1, context)
            self._swallowed(each, found, cost, context)

    def _parameter(self, binding: Binding, made: Node, cost: float, context: Context | None) -> None:
        function, name = binding.scope, getattr(binding.node, "arg", "")
        if binding.index == 0 and function.is_method() and "staticmethod" not in decorators(function.node):
            made.kind = "self"
            return
        through = context
        while through and through.function is not function:
            through = through.above
        if through:
            given, is_default = argument_for(function, through.call, name)
            given = binding.value if is_default else given
            if given is not None:
                made.below.append(self._expression(given, cost + 1, through.above))
                return
        self._from_call_sites(binding, function, name, made, cost)

    def _from_call_sites(self, binding: Binding, function: Scope, name: str, made: Node, cost: float) -> None:
        key = ("parameter", id(function), name)
        text = f"{function.module.name}:{function.qualname}({name})"
        if key in self._seen:
            made.below.append(Node("seen", text, binding.node))
            return
        step = self._seen[key] = self._new("parameter", text, binding.node)
        made.below.append(step)
        if _REQUEST.search(name):
            step.note = "depends on the request or the model: not followed"
            return
        sites: list[ast.Call] = []
        for call in calls_of(self.resolver, function):
            if len(sites) == MAX_CALL_SITES:
                step.note = f"more than {MAX_CALL_SITES} call sites; {MAX_CALL_SITES} followed"
                self._cut_off(binding.node)
                break
            sites.append(call)
        if not sites:
            step.note = "no call in the trees: called from outside, or in a way that is not seen"
        cost += 1 + 1.5 * _fan_out(len(sites))
        for call in sites:
            given, is_default = argument_for(function, call, name)
            shown = self._text(given) if given is not None else "its default" if is_default else "hidden by * or **"
            by_name = " (by name)" if call.__dict__.get("_by_name") else ""
            found = self._new("argument", f"{name} := {shown}{by_name}", call, path_conditions(call))
            step.below.append(found)
            given = binding.value if is_default else given
            if given is not None:
                found.below.append(self._expression(given, cost + 1, None))

    # exceptions as flow

    def _swallowed(self, node: ast.AST, made: Node, cost: float, context: Context | None) -> None:
        """A write inside a try whose handler goes on may be skipped: slice on what makes the hidden raises fire."""
        below = node
        for above in ancestors(node):
            if isinstance(above, ast.Try) and any(each is below for each in above.body):
                handlers = [handler for handler in above.handlers if not raises_again(handler)]
                if handlers:
                    self._handled(above, handlers, made, cost, context)
            elif isinstance(above, ast.Try) and isinstance(below, ast.ExceptHandler):
                # what a handler sets in place of the value that failed
                self._handled(above, [below], made, cost, context)
            elif suppressed(above) and isinstance(above, (ast.With, ast.AsyncWith)):
                self._suppressed(above, made, cost, context)
            if isinstance(above, (*CALLABLES, ast.Module)):
                break
            below = above

    def _suppressed(self, node: ast.With | ast.AsyncWith, made: Node, cost: float, context: Context | None) -> None:
        types = suppressed(node)
        step = self._new("swallowed", f"suppress {', '.join(types)}", node)
        step.touched = node
        made.below.append(step)
        if id(node) not in self._tries:
            self._tries.add(id(node))
            self._raises(node.body, types, step, cost, context)

    def _handled(self, tried: ast.Try, handlers: list[ast.ExceptHandler], made: Node, cost: float, context: Context | None) -> None:  # fmt: skip
        types = tuple(name for handler in handlers for name in handler_types(handler))
        step = self._new("swallowed", f"except {', '.join(types)}", handlers[0])
        step.touched = handlers[0]
        made.below.append(step)
        if id(tried) not in self._tries:
            self._tries.add(id(tried))
            self._raises(tried.body, types, step, cost, context)

    def _raises(self, body: Iterable[ast.stmt], types: tuple[str, ...], made: Node, cost: float, context: Context | None) -> None:  # fmt: skip
        found = [each for each in self.exceptions.leaving(body) if not each.is_implied and any(is_kind_of(each.types, name) for name in types)]  # fmt: skip
        if len(found) > MAX_RAISES:
            made.note = f"{len(found)} raises below this handler; {MAX_RAISES} followed"
        for each in found[:MAX_RAISES]:
            self._raise(each, made, cost, context)

    def _raise(self, found: Raise, made: Node, cost: float, context: Context | None) -> None:
        via = "via " + " -> ".join(f"{scope.qualname}()" for scope, _ in found.via) if found.via else ""
        step = self._new("raise", f"{found.types[0]}({found.message.shown[:90]!r})", found.node, path_conditions(found.node), via)  # fmt: skip
        made.below.append(step)
        for scope, call in found.via:
            context = Context(scope, call, context)
        self._control(found.node, step, cost + 1, context, weak=True)

    def _text(self, node: ast.AST) -> str:
        return module_of(node).text(node, LONGEST_TEXT) if "_scope" in node.__dict__ else ""


def _is_told_whom(function: Scope) -> bool:
    """Whether a function that sends a signal does so for its callers: to whom comes as a parameter."""
    given = getattr(function.node, "args", None)
    return given is not None and bool([*given.posonlyargs, *given.args]) and not function.is_method()


def _fan_out(count: int) -> float:
    return math.log2(count) if count > 2 else 0.0


def _arguments(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(keyword.value for keyword in node.keywords)]
