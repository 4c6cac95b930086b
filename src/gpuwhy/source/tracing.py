"""The question answered: guard, origin, switches, what was swallowed, who else uses the value.

``trace`` takes the roots of the packages that are there and a question; it opens only the packages that the question
names and those that imports lead to.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

import msgspec

from gpuwhy.model.event import RaisedException
from gpuwhy.source import places
from gpuwhy.source.answers import (
    BlastRadius,
    Bypass,
    Guard,
    Hidden,
    LogText,
    MappedFrame,
    ReadPackage,
    Requirement,
    Scope,
    Spot,
    Step,
    Swallow,
    Switch,
    Trace,
)
from gpuwhy.source.cache import Cache
from gpuwhy.source.conditions import Condition, path_conditions
from gpuwhy.source.environment import Touch, compared_with, when_read
from gpuwhy.source.exceptions import handler_types, spot_of, suppressed
from gpuwhy.source.options import Flag, is_configuration
from gpuwhy.source.processes import handler_around
from gpuwhy.source.resolving import Resolver, decorators
from gpuwhy.source.roots import FedRoot, Root
from gpuwhy.source.scopes import Scope as CodeScope
from gpuwhy.source.scopes import children, module_of, parent, scope_of, statement_of
from gpuwhy.source.silencing import Silencing
from gpuwhy.source.slice_nodes import Border, Node, breadth_first
from gpuwhy.source.slicing import MAX_NODES, MAX_RAISES, Slicer
from gpuwhy.source.trees import Tree, Trees, uncollected
from gpuwhy.source.users import users_of_attribute, users_of_global
from gpuwhy.source.whatif import what_ifs

FOLLOWED = frozenset({
    "flashinfer", "sglang", "vllm", "sgl_kernel", "deep_gemm", "flash_attn", "flash_mla", "tensorrt_llm", "xformers", "tvm_ffi",
    "lmdeploy", "aphrodite", "exllamav2", "llama_cpp", "triton_kernels", "vllm_flash_attn", "flash_attn_interface",
})  # fmt: skip
"""Packages that an import leads into. What torch or transformers answer is a fact of the host, unless one is asked for."""
_MAX_STEPS = 400
_MAX_FAILING = 4
_MAX_DEPTH = 14
_HIDDEN_KINDS = frozenset({"seen", "constant", "builtin", "self", "named"})
_SWITCHES = {"environment": "environment", "environment?": "environment", "flag": "flag", "subprocess": "subprocess", "file": "file", "external": "external", "field": "field"}  # fmt: skip
_DECIDING = frozenset({"environment", "flag", "subprocess", "file"})
_ORDER = ("environment", "flag", "field", "subprocess", "file", "external")
_MAX_SWITCHES = 60
PATIENCE = 0.4
"""Seconds after which what was found so far is told."""


class Question(msgspec.Struct, frozen=True):
    """What is asked: a ``place`` (``flashinfer/jit/core.py:109``), a ``symbol`` (``flashinfer.jit.core:check_cuda_arch``,
    a function, or a value), in it a ``call`` of a name instead of a raise, or a ``raised`` exception with its frames.

    ``number`` chooses among several raises of a symbol. ``follow`` are packages to be searched besides those of
    :data:`FOLLOWED`, also for those who silence its log lines or send it signals. ``signal`` asks who sends one
    (``SIGKILL`` when a container ended with 137). ``most`` bounds the steps.
    """

    place: str = ""
    symbol: str = ""
    call: str = ""
    number: int = 0
    raised: RaisedException | None = None
    signal: str = ""
    follow: tuple[str, ...] = ()
    most: int = MAX_NODES

    @property
    def shown(self) -> str:
        if self.raised:
            return f"{self.raised.type}: {self.raised.message}"[:300]
        if self.signal:
            return f"who sends {self.signal}"
        return self.place or (f"{self.symbol} calls {self.call}" if self.call else self.symbol)


def trace(
    roots: Mapping[str, Root],
    question: Question,
    cache: Cache | None = None,
    on_first: Callable[[Trace], None] | None = None,
) -> Trace:
    """Answer a question about the packages at ``roots``, by import name.

    ``on_first`` is given the guard as soon as it is known, and once more, with what was swallowed and who uses the value
    as far as that was found, where the search goes on for longer than a person waits. Never raises for what stands in the source: what cannot be
    read or understood is named in ``scope``.
    """
    with uncollected():
        return _Tracer(roots, question, cache).answer(on_first)


class _Tracer:
    def __init__(self, roots: Mapping[str, Root], question: Question, cache: Cache | None) -> None:
        follow = FOLLOWED | set(question.follow)
        self.roots = roots
        self.trees = Trees(roots, lambda package: package in follow, cache)
        self.resolver = Resolver(self.trees)
        self.slicer = Slicer(self.resolver, question.most)
        self.silencing = Silencing(self.resolver)
        self.question = question
        self.frames: tuple[MappedFrame, ...] = ()
        self.calls: tuple[tuple[CodeScope, ast.Call], ...] = ()
        """Of a traceback, from the innermost outwards: a function, and the call that it was run by."""

    def answer(self, on_first: Callable[[Trace], None] | None) -> Trace:
        for package in self.question.follow:
            self.trees.open(package)
        if self.question.signal:
            return self._of_signal(self.question.signal)
        value = self._value()
        if value is not None:
            return self._of_value(*value)
        node, problem = self._statement()
        if node is None:
            return Trace(self.question.shown, self.scope(), problem=problem, frames=self.frames)
        guard = self._guard(node)
        if on_first is not None:
            on_first(Trace(self.question.shown, self.scope(), guard, frames=self.frames))
            told = on_first

            def tell_what_was_found() -> bool:
                found = self._so_far(guard)
                if found.swallowed or found.users:
                    told(found)
                return bool(found.swallowed or found.users)

            self.slicer.tell_after(PATIENCE, tell_what_was_found)
        conditions = path_conditions(node)
        # a condition is weak when another raise would have come first; where there is no other, that one decides
        chosen = [each for each in conditions if not each.is_weak] or conditions[:3]
        tests = [test for condition in chosen for test in condition.tests]
        if not tests and not self.calls and scope_of(node).function().kind == "function":
            self.slicer.of_callers(scope_of(node).unit())
        if not isinstance(node, ast.Raise) and not self.question.call:
            # what fails is an expression in it: an index, an attribute, a call
            tests += _expressions(node)
        if isinstance(node, ast.Raise):
            tests += self._failing(node)
        self.slicer.of_other_processes(node)
        self.slicer.of_traceback(self.calls)
        self.slicer.follow(tests, node, self.slicer.through(self.calls))
        return self._complete(guard)

    def _of_signal(self, signal: str) -> Trace:
        """Who sends a signal, and why."""
        if not self.question.follow:
            for package in self.roots:
                if package in FOLLOWED:
                    self.trees.open(package)
        self.slicer.of_signal(signal)
        self.slicer.follow([])
        answer = self._complete(None)
        return answer if answer.origin else msgspec.structs.replace(answer, problem=f"nothing in the packages that were given sends {signal}")  # fmt: skip

    def _failing(self, node: ast.Raise) -> list[ast.expr]:
        """Of a raise in a handler, the calls in its try that are known to fail with what it catches."""
        handler = handler_around(node)
        tried = parent(handler) if handler is not None else None
        if handler is None or not isinstance(tried, ast.Try):
            return []
        caught = self.slicer.exceptions.caught_by(handler_types(handler), tried.body)
        failing: list[ast.expr] = [each.node for each in caught if each.is_implied and not each.via and isinstance(each.node, ast.Call)]  # fmt: skip
        return failing[:_MAX_FAILING]

    def _so_far(self, guard: Guard | None) -> Trace:
        """What a person wants to read first, from what was found until now."""
        return Trace(
            question=self.question.shown,
            scope=self.scope(),
            guard=guard,
            frames=self.frames,
            swallowed=self._swallowed(),
            users=self._users(),
        )

    def _complete(self, guard: Guard | None) -> Trace:
        return Trace(
            question=self.question.shown,
            scope=self.scope(),
            guard=guard,
            frames=self.frames,
            origin=self._origin(),
            switches=self._switches(),
            swallowed=self._swallowed(),
            bypasses=self._bypasses(),
            users=self._users(),
        )

    # the question

    def _statement(self) -> tuple[ast.stmt | None, str]:
        if self.question.raised:
            return self._of_frames(self.question.raised)
        if self.question.place:
            return self._at_place(self.question.place)
        return self._of_symbol(self.question.symbol)

    def _of_frames(self, raised: RaisedException) -> tuple[ast.stmt | None, str]:
        for frame in raised.frames:
            self.trees.open(places.below_packages(frame.path).lstrip("/").partition("/")[0].removesuffix(".py"))
        for frame in raised.frames:
            # a checkout: the package is somewhere on the path
            for part in frame.path.replace("\\", "/").split("/"):
                if part in FOLLOWED:
                    self.trees.open(part)
        mapped, statements = places.map_frames(self.trees, raised.frames)
        self.frames = tuple(mapped)
        node = statements[-1] if statements else None
        self.calls = tuple(places.calls_between(statements))
        return node, "" if node is not None else "no frame of the traceback is in the packages that were given"

    def _at_place(self, place: str) -> tuple[ast.stmt | None, str]:
        found = places.PLACE.fullmatch(place)
        if found is None:
            return None, f"{place}: not a place such as flashinfer/jit/core.py:109"
        below = places.below_packages(found["path"]).lstrip("./")
        if self.trees.open(below.partition("/")[0].removesuffix(".py")) is None:
            for part in below.split("/"):
                self.trees.open(part)
        if not list(self.trees):
            # a tail such as jit/core.py: it may be in any of those that are read first
            for package in [name for name in self.roots if name in FOLLOWED] or list(self.roots)[:20]:
                self.trees.open(package)
        file = places.file_of(self.trees, found["path"])
        module = file[0].module(file[1]) if file else None
        if module is None:
            return None, f"{found['path']}: no such file in the packages that were given"
        node = places.statement_at(module, int(found["line"]))
        return node, "" if node is not None else f"{place}: no statement stands there"

    def _of_symbol(self, symbol: str) -> tuple[ast.stmt | None, str]:
        found = places.SYMBOL.fullmatch(symbol)
        if found is None:
            return None, f"{symbol}: not a symbol such as flashinfer.jit.core:check_cuda_arch"
        self.trees.open(found["module"].partition(".")[0])
        scope = places.symbol(self.resolver, found["module"], found["name"])
        if not isinstance(scope, CodeScope):
            return None, f"{symbol}: no such function in the packages that were given"
        statements = places.statements_of(scope, self.question.call)
        if self.question.number >= len(statements):
            what = f"calls {self.question.call}" if self.question.call else "has a raise"
            number = self.question.number + 1
            few = f"there is no number {number}: {len(statements)} of its statements {'match' if len(statements) > 1 else 'matches'}"
            return None, f"{symbol}: nothing in it {what}" if not statements else f"{symbol}: {few}"
        return statements[self.question.number], ""

    def _value(self) -> tuple[CodeScope, str] | None:
        found = places.SYMBOL.fullmatch(self.question.symbol)
        if found is None or self.question.raised or self.question.call:
            return None
        self.trees.open(found["module"].partition(".")[0])
        scope = places.symbol(self.resolver, found["module"], found["name"])
        if isinstance(scope, tuple) or scope is None:
            return scope
        if scope.kind == "function" and not places.statements_of(scope):
            module = self.trees.module(found["module"])
            bindings = module.scope.named(found["name"]) if module else []
            is_own = len(bindings) == 1 and bindings[0].kind == "def"
            return (module.scope, found["name"]) if module and bindings and not is_own else (scope, "")
        return None

    def _of_value(self, scope: CodeScope, name: str) -> Trace:
        """The origin of a value that is asked for by its name."""
        if scope.kind == "function":
            self.slicer.of_function(scope)
        elif scope.kind == "class":
            self.slicer.field(scope, name, self.slicer.root, 0.0)
        else:
            self.slicer.of_global(scope.module, name)
        self.slicer.follow([])
        return self._complete(None)

    def _guard(self, node: ast.stmt) -> Guard:
        raised = self.slicer.exceptions.made(node) if isinstance(node, ast.Raise) and node.exc is not None else None
        call = raised if isinstance(raised, ast.Call) else None
        module = module_of(node)
        message = self.slicer.exceptions.message(call.args[0]).shown if call and call.args else ""
        return Guard(
            spot=spot_of(node),
            requires=_requirements(path_conditions(node)),
            what_ifs=what_ifs(self.resolver, node),
            raises=module.text(call.func if call else raised) if raised is not None else "",
            message=message,
        )

    # the slice as values

    def _origin(self) -> tuple[Step, ...]:
        budget = [_MAX_STEPS]
        return tuple(_steps(self.slicer.root, 0, budget, set()))

    def _switches(self) -> tuple[Switch, ...]:
        constructed = _constructed_on_import(self.slicer.root)
        groups: dict[tuple[str, str], list[tuple[Node, tuple[Node, ...]]]] = {}
        for node, path in breadth_first(self.slicer.root):
            kind = _SWITCHES.get(node.kind)
            if kind and (kind != "field" or _is_setting(node)):
                for name in node.text.split("|") if node.kind == "environment" else [node.text]:
                    groups.setdefault((kind, name), []).append((node, path))
        made = [self._switch(kind, name, found, constructed) for (kind, name), found in groups.items()]
        made.sort(key=lambda switch: (_ORDER.index(switch.kind), len(switch.witness)))
        return tuple(made[:_MAX_SWITCHES])

    def _switch(
        self, kind: str, name: str, found: list[tuple[Node, tuple[Node, ...]]], constructed: dict[str, str]
    ) -> Switch:
        node, path = found[0]
        spots = tuple(dict.fromkeys(spot_of(each.node) for each, _ in found if each.node is not None))
        default, accepts, note = "", (), _said_of(node)  # type: str, tuple[str, ...], str
        if isinstance(node.touched, Flag):
            default, accepts = node.touched.default, node.touched.choices
        elif isinstance(node.touched, Touch):
            values = [each.touched for each, _ in found if isinstance(each.touched, Touch)]
            defaults = [module_of(each.node).text(each.default, 80) for each in values if each.default is not None]
            default = defaults[0] if defaults else ""
            accepts = tuple(dict.fromkeys(text for each in values for text in compared_with(each.node)))
        caches = [step.text for step in path if step.note.startswith("kept for")] or _cached_around((*path, node))
        witness = tuple(_flat(step) for step in (*path, node) if step.node is not None and step.kind not in ("expression", *_HIDDEN_KINDS))  # fmt: skip
        return Switch(
            kind=kind,
            name=name if kind != "field" else name.partition(":")[2],
            spots=spots[:8],
            default=default,
            accepts=accepts,
            consulted_if=_requirements(node.conditions)[:6],
            read_when=_when(node, path, constructed) if kind == "environment" else "",
            cached_by=caches[-1] if caches else "",
            note=note,
            witness=witness,
            is_by_name=any(
                step.kind == "by-name"
                or "by its name" in step.note
                or "(by name)" in step.text
                or "key or keyword" in step.note
                for step in path
            ),
        )

    def _swallowed(self) -> tuple[Swallow, ...]:
        found: dict[int, Swallow] = {}
        for node, path in breadth_first(self.slicer.root):
            handler = node.touched if node.kind == "swallowed" else node.node if node.kind == "caught" else None
            if isinstance(handler, Border) and id(handler.handler) not in found:
                found[id(handler.handler)] = self._at_border(handler.handler)
            skipped = path[-1].text if path else ""
            if isinstance(handler, (ast.With, ast.AsyncWith)) and id(handler) not in found:
                found[id(handler)] = self._swallow(handler, suppressed(handler), handler.body, skipped)
            if not isinstance(handler, ast.ExceptHandler):
                continue
            tried = parent(handler)
            handlers = getattr(tried, "handlers", []) if node.kind == "swallowed" else [handler]
            for each in handlers:
                if id(each) not in found and (each is handler or node.kind == "swallowed"):
                    found[id(each)] = self._swallow(each, handler_types(each), getattr(tried, "body", []), skipped)
        return tuple(each for each in found.values() if each.hides or each.may_hide or each.logs)

    def _at_border(self, handler: ast.ExceptHandler) -> Swallow:
        """The handler around a process: the raises below it are all of the program's, and are not listed."""
        return Swallow(
            spot=spot_of(handler),
            catches=handler_types(handler),
            skips="",
            logs=self._logs(handler),
            process=scope_of(handler).function().qualname,
        )

    def _logs(self, handler: ast.ExceptHandler) -> tuple[LogText, ...]:
        return tuple(
            msgspec.structs.replace(log, silenced_by=self.silencing.of(call))
            for call, log in self.slicer.exceptions.log_calls(handler)
        )

    def _swallow(self, handler: ast.AST, types: tuple[str, ...], body: list[ast.stmt], skipped: str) -> Swallow:
        exceptions = self.slicer.exceptions
        caught = exceptions.caught_by(types, body)
        raised = [each for each in caught if not each.is_implied]
        implied = [each for each in caught if each.is_implied]
        hides = tuple(
            Hidden(
                type=each.types[0],
                message=each.message,
                spot=spot_of(each.node),
                via=tuple(scope.qualname for scope, _ in each.via),
                requires=_requirements(path_conditions(each.node))[:6],
            )
            for each in raised[:MAX_RAISES]
        )
        may = dict.fromkeys(f"{each.message.shown} ({_place(each.node)})" for each in implied)
        return Swallow(
            spot=spot_of(handler),
            catches=types,
            skips=skipped,
            logs=self._logs(handler) if isinstance(handler, ast.ExceptHandler) else (),
            hides=hides,
            may_hide=tuple(may)[:8],
            more=max(len(raised) - MAX_RAISES, 0) + max(len(may) - 8, 0),
        )

    def _bypasses(self) -> tuple[Bypass, ...]:
        """Of a value whose write can be skipped, the other writes, and whether they run the code that raises."""
        found: list[Bypass] = []
        for field, _ in breadth_first(self.slicer.root):
            if field.kind != "field":
                continue
            hidden: set[int] = set()
            for write in field.below:
                for swallowed in write.below:
                    if isinstance(swallowed.touched, (ast.ExceptHandler, ast.With, ast.AsyncWith)):
                        tried = (
                            parent(swallowed.touched)
                            if isinstance(swallowed.touched, ast.ExceptHandler)
                            else swallowed.touched
                        )
                        hidden |= {id(each.node) for each in self.slicer.exceptions.leaving(getattr(tried, "body", [])) if not each.is_implied}  # fmt: skip
            for write in field.below if hidden else ():
                is_protected = any(each.kind == "swallowed" for each in write.below)
                if write.kind == "write" and write.conditions and not is_protected and write.node is not None:
                    raised = {id(each.node) for each in self.slicer.exceptions.leaving_expression(statement_of(write.node))}  # fmt: skip
                    found.append(Bypass(spot_of(write.node), _requirements(write.conditions)[:6], len(raised & hidden)))
        return tuple(found)

    def _users(self) -> tuple[BlastRadius, ...]:
        """Of the nearest state that the guard depends on."""
        for node, _ in breadth_first(self.slicer.root):
            if node.kind == "field" and any(each.kind == "write" for each in node.below) and isinstance(node.touched, tuple):  # fmt: skip
                owner, name = node.touched
                return (users_of_attribute(self.resolver, owner, name),)
        for node, _ in breadth_first(self.slicer.root):
            is_global = node.kind == "definition" and node.note == "on import" and node.node is not None
            # a constant is no state: only what something outside decides
            if is_global and node.node is not None and any(each.kind in _DECIDING for each, _ in breadth_first(node)):
                name = node.text.partition(" ")[0].partition(".")[0]
                return (users_of_global(self.resolver, module_of(node.node), name),)
        return ()

    def scope(self) -> Scope:
        """What was searched, and what limits the answer."""
        return Scope(
            packages=tuple(read_package(tree) for tree in self.trees),
            cuts=tuple(self.slicer.cut_at),
            outside=tuple(sorted(self.trees.outside)),
            wanted=tuple(path for tree in self.trees if isinstance(tree.root, FedRoot) for path in tree.root.wanted),
        )


def _expressions(node: ast.stmt) -> list[ast.expr]:
    """The expressions of a statement, without those of the statements in it."""
    return [child for child in children(node) if isinstance(child, ast.expr)]


def read_package(tree: Tree) -> ReadPackage:
    """What was read of a tree."""
    gaps = tuple(
        f"{path}: lines {', '.join(f'{first}-{last}' for first, last in facts.gaps[:4])}: {facts.reason}"
        for path, facts in tree.not_understood.items()
    )
    root = tree.root
    there = (root.installed, root.place) if isinstance(root, FedRoot) else (0, "")
    return ReadPackage(root.package, root.version, len(tree.files), tree.parsed, root.is_complete, gaps[:20], root.left_out[:20], *there)  # fmt: skip


def _requirements(conditions: list[Condition]) -> tuple[Requirement, ...]:
    return tuple(dict.fromkeys(Requirement(each.text, each.line, each.is_weak) for each in conditions))


def _steps(node: Node, depth: int, budget: list[int], seen: set[int]) -> Iterator[Step]:
    for each in node.below:
        if each.kind in _HIDDEN_KINDS or (each.kind == "import" and depth > 0 and not each.below) or id(each) in seen:
            continue
        seen.add(id(each))
        if each.kind == "expression":
            yield from _steps(each, depth, budget, seen)
            continue
        if budget[0] <= 0 or depth > _MAX_DEPTH:
            return
        budget[0] -= 1
        flat = _flat(each)
        yield msgspec.structs.replace(flat, steps=tuple(_steps(each, depth + 1, budget, seen)))


def _flat(node: Node) -> Step:
    kind = "environment" if node.kind == "environment?" else node.kind
    spot = spot_of(node.node) if node.node is not None and "_scope" in node.node.__dict__ else None
    return Step(kind, node.text, spot, _requirements(node.conditions)[:6], node.note)


def _is_setting(node: Node) -> bool:
    if not isinstance(node.touched, tuple):
        return False
    return is_configuration(node.touched[0]) and not any(each.kind == "flag" for each in node.below)


def _said_of(node: Node) -> str:
    if node.kind == "environment?":
        return "the key is not a constant"
    return "" if node.note in ("read", "test", "pop", "setdefault") else node.note


def _cached_around(path: tuple[Node, ...]) -> list[str]:
    """The cached functions that stand around the steps of a path: a raise in one is kept from coming again only by its
    caller."""
    found: list[str] = []
    for step in path:
        function = scope_of(step.node).function() if step.node is not None and "_scope" in step.node.__dict__ else None
        if function is not None and any("cache" in name for name in decorators(function.node)):
            found.append(f"{function.module.name}:{function.qualname}()")
    return found


def _constructed_on_import(root: Node) -> dict[str, str]:
    """The classes that a module makes an instance of when it is imported."""
    return {
        node.text.removesuffix("()"): module_of(node.node).name
        for node, _ in breadth_first(root)
        if node.kind == "new" and node.node is not None and scope_of(node.node).function().kind == "module"
    }


def _when(node: Node, path: tuple[Node, ...], constructed: dict[str, str]) -> str:
    if node.node is None:
        return ""
    if scope_of(node.node).function().kind in ("module", "class"):
        return when_read(node.node)
    for step in reversed(path):
        if step.kind == "field" and isinstance(step.touched, tuple) and step.touched[0].qualname in constructed:
            return f"on import of {constructed[step.touched[0].qualname]}"
        if step.kind == "definition" and step.note == "on import" and step.node is not None:
            value = getattr(step.node, "value", None)
            if not isinstance(value, ast.Lambda):
                return when_read(step.node)
    return when_read(node.node)


def _place(node: ast.AST) -> str:
    spot: Spot = spot_of(node, with_code=False)
    return f"{spot.path}:{spot.line}"
