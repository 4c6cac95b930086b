"""The interpreter's state and its protocol: frames, modules, attributes, calls, exceptions, the trail."""

from __future__ import annotations

import ast
import builtins as python_builtins
import re
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from gpuwhy.source.replay import attributes, bounds, classes, expressions, library, natives, statements
from gpuwhy.source.replay.oracle import Answer, Oracle
from gpuwhy.source.replay.outcome import Assumed, Branch, Caught, FactUsed, LogLine, Place, SharedValue, Step
from gpuwhy.source.replay.scopes import (
    FunctionNode,
    Scope,
    binds_unseen,
    bound_by,
    passed_on_by,
    scope_of,
    stored_into_by,
)
from gpuwhy.source.replay.sharing import shared_value
from gpuwhy.source.replay.sources import SourceOfModules
from gpuwhy.source.replay.stops import NeedsFactError, NotModelledError, ReplayedError, ReturnJump, StopReplayError
from gpuwhy.source.replay.values import (
    ABSENT,
    REPLAYED,
    Bound,
    Cached,
    Class,
    External,
    Frame,
    Function,
    Inert,
    Instance,
    Lazy,
    Module,
    Native,
    Unknown,
)

PRESUMED = frozenset({"torch", "typing_extensions"})
"""Packages that are taken to be imported already: their own code is a world of its own."""
_MAX_STEPS = 400_000
_MAX_CALLS = 60
_MAX_MODULES = 2_000
"""Names of modules that are asked for; most are not there."""
_MAX_TRAIL = 2_000
_STEPS_OF_A_LOOK = 256
_MUCH_WORK = 20_000
_MAX_SHOWN = 300
_NATIVE_ERRORS = (
    ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, StopIteration, TypeError, UnicodeError, ValueError,
)  # fmt: skip


_SIZED = (str, bytes, list, tuple, dict, set, frozenset)
UNFORESEEN = (ArithmeticError, AttributeError, LookupError, RecursionError, RuntimeError, TypeError, ValueError)
"""Where a value of the replayed code breaks a rule that the replay relies on, that is an end, not a crash."""


class Machine:
    """One replay. Nothing of the replayed source is executed by Python itself."""

    def __init__(
        self, sources: SourceOfModules, oracle: Oracle, max_steps: int = _MAX_STEPS, seconds: float | None = None
    ) -> None:
        self.sources = sources
        self.presumed = PRESUMED
        self.oracle = oracle
        self.steps = 0
        self.work = 0
        self.frames: list[Frame] = []
        self.trail: list[Step] = []
        self.trail_cut = False
        self.modules: dict[str, Module | None] = {}
        self.order: list[str] = []
        self.written: dict[str, Any] = {}
        """Values that replayed code stored outside itself: ``environ.NAME``, attributes of external modules."""
        self._max_steps = max_steps
        self._seconds = seconds
        self._until = time.thread_time() + seconds if seconds is not None else None
        self._is_late = False
        self._scopes: dict[int, tuple[ast.AST, Scope]] = {}
        self._shared: set[str] = set()
        self._branches: set[tuple[int, bool]] = set()

    # the trail

    def place(self, frame: Frame | None = None) -> Place:
        """Where the code stands; no place while the entry itself is evaluated."""
        frame = frame or (self.frames[-1] if self.frames else None)
        if frame is None or frame.kind == "entry":
            return Place("", 0)
        return Place(frame.module.source.shown, frame.line, frame.function)

    def note(self, step: Step) -> None:
        if len(self.trail) < _MAX_TRAIL:
            self.trail.append(step)
        else:
            self.trail_cut = True

    def used(self, what: str, answer: Answer, text: str | None = None) -> Any:
        """The value of an answer, noted in the trail (as ``text`` where that says it better)."""
        self.note(FactUsed(what, ", ".join(answer.keys), shown(answer.value) if text is None else text, self.place()))
        return answer.value

    def assume(self, what: str, key: str = "", shared: SharedValue | None = None) -> None:
        self.note(Assumed(what, self.place(), key, shared))

    def log(self, level: str, logger: str, message: str) -> None:
        self.note(LogLine(level, logger, message, self.place()))

    def step(self) -> None:
        self.steps += 1
        if self.steps > self._max_steps:
            raise NotModelledError(f"more than {self._max_steps} steps")
        if self.steps % _STEPS_OF_A_LOOK == 0 or self._is_late:
            self._look_at_the_clock()

    def _look_at_the_clock(self) -> None:
        if self._until is not None and time.thread_time() > self._until:
            self._is_late = True
            raise NotModelledError(f"what takes more than {self._seconds:g} s")

    def spend(self, amount: int) -> None:
        """Count what operations of Python go through or make."""
        self.work += amount
        if self.work > bounds.MAX_WORK:
            raise NotModelledError("more work than is done in one replay")
        if amount > _MUCH_WORK:
            self._look_at_the_clock()

    def weigh(self, *values: Any) -> None:
        """Check and count the size of values that Python is about to compare, hash or print."""
        self.spend(bounds.weighed(*values))

    # exceptions

    def error(self, value: Any, frame: Frame | None = None) -> ReplayedError:
        """An exception of the replayed code that arises where it stands."""
        stack = tuple(self.place(each) for each in self.frames if each.kind != "entry")
        shared = next((each.shared for each in reversed(self.frames) if each.shared), "")
        return ReplayedError(value, self.place(frame), stack, shared)

    def native(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a function of Python on values of the replay; its exceptions are those of the replayed code."""
        try:
            result = bounds.checked(call(*args, **kwargs))
            self.spend(sum(len(value) for value in (result, *args) if isinstance(value, _SIZED)))
            return result
        except RecursionError:
            raise NotModelledError("a very deep value") from None
        except _NATIVE_ERRORS as error:
            if isinstance(error, (TypeError, AttributeError)) and _names_the_replay(error):
                raise NotModelledError(f"{type(error).__name__} of a value of the replayed code") from None
            error.__traceback__ = None
            raise self.error(error) from None

    # running

    def evaluate(self, node: ast.expr, frame: Frame) -> Any:
        self.step()
        try:
            evaluator = expressions.EVALUATORS[type(node)]
        except KeyError:
            frame.line = node.lineno
            raise NotModelledError(f"the expression {type(node).__name__}") from None
        return evaluator(self, node, frame)

    def execute(self, body: list[ast.stmt], frame: Frame) -> None:
        for statement in body:
            self.execute_one(statement, frame)

    def execute_one(self, statement: ast.stmt, frame: Frame) -> None:
        self.step()
        frame.line = statement.lineno
        try:
            executor = statements.EXECUTORS[type(statement)]
        except KeyError:
            raise NotModelledError(f"the statement {type(statement).__name__}") from None
        executor(self, statement, frame)

    def execute_leniently(self, body: list[ast.stmt], frame: Frame) -> None:
        """The body of a module or class. What cannot be decided there is passed over: its names become unknown, and the
        replay ends only if one of them is needed."""
        for statement in body:
            try:
                if isinstance(statement, ast.If):
                    self._if_leniently(statement, frame)
                else:
                    self.execute_one(statement, frame)
            except ReplayedError as error:
                if not error.shared:
                    raise
                # a registry that another module fills when it is imported, in an order that is not followed
                self._pass_over(statement, NotModelledError(f"{error.shared}, which other modules may fill"), frame)
            except StopReplayError as stop:
                if self.is_exhausted():
                    raise
                self._pass_over(statement, stop, frame)
            except UNFORESEEN as error:
                self._pass_over(statement, NotModelledError(f"{type(error).__name__} in the replay"), frame)

    def is_exhausted(self) -> bool:
        """Whether a bound of the whole replay was reached."""
        return self._is_late or self.steps > self._max_steps or self.work > bounds.MAX_WORK

    def _if_leniently(self, statement: ast.If, frame: Frame) -> None:
        self.step()
        frame.line = statement.lineno
        taken = self.condition(statement.test, frame)
        self.execute_leniently(statement.body if taken else statement.orelse, frame)

    def _pass_over(self, statement: ast.stmt, stop: StopReplayError, frame: Frame) -> None:
        if stop.place is None:
            stop.place = self.place(frame)
        unknown = Unknown(stop)
        for name in bound_by(statement):
            frame.names[name] = unknown
        for name in passed_on_by(statement):
            if isinstance(frame.names.get(name), (list, dict, set, Instance)):
                frame.names[name] = unknown
        for name in stored_into_by(statement):
            if isinstance(frame.names.get(name), (list, dict, set, Instance, Class, Function, Cached)):
                frame.names[name] = unknown
        if binds_unseen(statement):
            frame.module.is_open = True
        frame.line = statement.lineno
        if isinstance(stop, NeedsFactError):
            self.assume(f"what needs the fact {stop} ({stop.place}) was passed over, and has no part in it", stop.key)
        else:
            self.assume(f"what is not modelled ({stop}, {stop.place}) was passed over, and has no part in it")

    def condition(self, node: ast.expr, frame: Frame) -> bool:
        """A test that decides where the code goes on, noted in the trail."""
        taken = self.truth(self.evaluate(node, frame))
        mark = (id(node), taken)
        if mark not in self._branches:
            self._branches.add(mark)
            place = Place(frame.module.source.shown, node.lineno, frame.function)
            self.note(Branch(f"{ast.unparse(node):.{_MAX_SHOWN}}", taken, place))
        return taken

    def truth(self, value: Any) -> bool:
        return bool(self.native(bool, value)) if isinstance(value, (Instance, Inert)) else bool(value)

    def iterate(self, value: Any) -> Iterator[Any]:
        """The items of a value, each a step."""
        if isinstance(value, Inert):
            raise value.stop()
        if isinstance(value, (bool, int, float, type(None), Module, Function, Native, Bound)):
            raise self.error(TypeError(f"'{self.type_name(value)}' object is not iterable"))
        if isinstance(value, (set, frozenset)) and len(value) > 1 and not all(isinstance(each, int) for each in value):
            self.assume("the order of a set, which differs between processes, does not matter")
        iterator = self.native(iter, value)
        while True:
            self.step()
            try:
                item = next(iterator)
            except StopIteration:
                return
            except RuntimeError as error:
                # the container changed under the loop
                raise self.error(error) from None
            yield item

    def items_of(self, value: Any) -> list[Any]:
        """All items of a value that has a bounded number of them."""
        return bounds.checked(list(self.iterate(value)))  # type: ignore[no-any-return]

    # names and modules

    def scope(self, node: FunctionNode) -> Scope:
        known = self._scopes.get(id(node))
        if known is None:
            # the node is kept so that its id stays its own
            known = self._scopes[id(node)] = (node, scope_of(node))
        return known[1]

    def load(self, name: str, frame: Frame) -> Any:
        """The value of a name, by Python's rules of scope."""
        each: Frame | None = frame
        while each is not None:
            if each.kind == "class" and each is not frame:
                each = each.outer
                continue
            if name in each.scope.of_module:
                break
            if name in each.names:
                return self._resolved(each, name)
            if each.kind == "function" and name in each.scope.bound:
                if each is frame:
                    text = f"cannot access local variable '{name}' where it is not associated with a value"
                if sys.version_info < (3, 11):
                    text = f"local variable '{name}' referenced before assignment"
                    raise self.error(UnboundLocalError(text))
                text = (
                    f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
                )
                raise self.error(NameError(text))
            each = each.outer
        module = frame.module
        if name in module.names:
            return self._resolved(module.frame, name)
        if name in natives.BUILTINS:
            return natives.BUILTINS[name]
        if module.state == "loading" or module.is_open:
            # later in the body, or bound by an import that was not followed
            raise NotModelledError(f"the name {name}, which {module.source.name} may bind unseen")
        if hasattr(python_builtins, name):
            raise NotModelledError(f"the builtin {name}")
        raise self.error(NameError(f"name '{name}' is not defined"))

    def _resolved(self, frame: Frame, name: str) -> Any:
        value = self.known(frame.names, name)
        if frame.kind == "module" and isinstance(value, (list, dict, set, Instance)) and self.frames:
            self._share(frame.module, name, value)
        return value

    def _share(self, module: Module, name: str, value: Any) -> None:
        """Note that code depends on what modules put into a value: those that did not run may have put more there."""
        reader = self.frames[-1]
        shared = f"{module.source.name}.{name}"
        if reader.kind == "function":
            reader.shared = shared
            if shared not in self._shared:
                self._shared.add(shared)
                held = shared_value(module.source.name, module.source.shown, name, value)
                self.assume(f"{shared} holds what the replayed code put there", shared=held)

    def known(self, names: dict[str, Any], name: str) -> Any:
        """The value under a name; what an import at module level bound is looked up now."""
        value = names[name]
        if isinstance(value, Lazy):
            # a name that leads back to itself is one that an import in a circle needs
            names[name] = Unknown(NotModelledError(f"the name {name}, which leads back to itself"))
            try:
                names[name] = self.imported(value.module, value.member)
            except (StopReplayError, ReplayedError):
                names[name] = value
                raise
            value = names[name]
        if isinstance(value, Unknown):
            raise value.stop()
        return value

    def store(self, name: str, value: Any, frame: Frame) -> None:
        if name in frame.scope.of_module:
            frame.module.names[name] = value
            return
        if name in frame.scope.of_outer:
            outer = frame.outer
            while outer is not None:
                if outer.kind == "function" and name in outer.scope.bound:
                    outer.names[name] = value
                    return
                outer = outer.outer
        frame.names[name] = value

    def module(self, name: str) -> Module | None:
        """The module with that name if its source is here; its code has not run yet."""
        if name not in self.modules:
            if len(self.modules) > _MAX_MODULES:
                raise NotModelledError(f"more than {_MAX_MODULES} modules")
            source = self.sources.find(name)
            self.modules[name] = Module(source) if source else None
        return self.modules[name]

    def run_module(self, module: Module) -> None:
        """Run the code of a module once."""
        if module.state in ("loaded", "loading"):
            return
        if len(self.frames) > _MAX_CALLS:
            raise NotModelledError("very deep imports")
        self.order.append(module.source.name)
        module.state = "loading"
        self.frames.append(module.frame)
        try:
            self.execute_leniently(module.source.tree.body, module.frame)
        except BaseException:
            module.state = "failed"
            raise
        finally:
            self.frames.pop()
        module.state = "loaded"

    def imported(self, name: str, member: str = "", is_guarded: bool = False) -> Any:
        """What ``import name`` or ``from name import member`` gives.

        ``is_guarded``: the code decides by whether this import fails, so that is not taken for granted. Packages on the
        way to a module are not run for themselves.
        """
        module = self.module(name)
        if module is None:
            dotted = f"{name}.{member}" if member else name
            if name.partition(".")[0] not in sys.stdlib_module_names and not library.has_part(dotted):
                self._exists(name, is_guarded)
            return attributes.external(self, dotted, called=False)
        if not member:
            if is_guarded and name not in PRESUMED:
                self.run_module(module)
            return module
        return attributes.of_module(self, module, member, importing=True)

    def _exists(self, name: str, is_guarded: bool) -> None:
        if name.partition(".")[0] in PRESUMED or self.oracle.has_member(name):
            return
        try:
            answer = self.oracle.module_exists(name)
        except NeedsFactError:
            if is_guarded:
                raise
            self.assume(f"{name} can be imported")
            return
        if not self.used(f"import {name}", answer):
            raise self.error(ModuleNotFoundError(f"No module named {name!r}", name=name))

    # attributes and calls

    def attribute(self, value: Any, name: str, called: bool = False) -> Any:
        """``value.name``. ``called``: it is called at once, so a fact about the call is not taken for its value."""
        found = attributes.of(self, value, name, called)
        if isinstance(found, Unknown):
            raise found.stop()
        return found

    def type_name(self, value: Any) -> str:
        """How Python names the type of a value in its messages."""
        if isinstance(value, Instance):
            return value.cls.name
        if isinstance(value, (Function, Bound)):
            return "function" if isinstance(value, Function) else "method"
        if isinstance(value, Class):
            return "type"
        if isinstance(value, Module):
            return "module"
        if isinstance(value, REPLAYED):
            raise NotModelledError("the type of a modelled value")
        return type(value).__name__

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.step()
        if isinstance(function, Function):
            return self.invoke(function, args, kwargs)
        if isinstance(function, Bound):
            return self.call(function.function, (function.receiver, *args), kwargs)
        if isinstance(function, Native):
            return function.call(self, args, kwargs)
        if isinstance(function, Class):
            return classes.instantiate(self, function, args, kwargs)
        if isinstance(function, Cached):
            return self._cached(function, args, kwargs)
        if isinstance(function, External):
            return attributes.external_call(self, function, args, kwargs)
        if isinstance(function, Unknown):
            raise function.stop()
        if isinstance(function, Instance):
            method = function.method("__call__")
            if method is not None:
                return self.call(method, args, kwargs)
        elif natives.may_call(function):
            return natives.call(self, function, args, kwargs)
        raise self.error(TypeError(f"'{self.type_name(function)}' object is not callable"))

    def _cached(self, function: Cached, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        key = (args, tuple(kwargs.items()))
        self.weigh(*args, *kwargs.values())
        known = self.native(function.results.get, key, ABSENT)
        if known is ABSENT:
            known = function.results[key] = self.call(function.function, args, kwargs)
        return known

    def invoke(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        node = function.node
        if isinstance(node, ast.AsyncFunctionDef):
            raise NotModelledError(f"the coroutine {function.name}")
        if function.scope.is_generator:
            raise NotModelledError(f"the generator {function.name}")
        if len(self.frames) >= _MAX_CALLS:
            raise NotModelledError("very deep calls")
        frame = Frame(
            "function", function.module, self._arguments(function, args, kwargs), function.outer, function.scope
        )
        frame.function = function.name
        frame.owner = function.owner
        frame.receiver = args[0] if args else None
        self.frames.append(frame)
        try:
            if isinstance(node, ast.Lambda):
                frame.line = node.body.lineno
                return self.evaluate(node.body, frame)
            self.execute(node.body, frame)
        except ReturnJump as jump:
            return jump.value
        except StopReplayError as stop:
            if stop.place is None:
                stop.place = self.place(frame)
            raise
        finally:
            self.frames.pop()
        return None

    def _arguments(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments under the names of the parameters. Python's messages for a wrong call are not imitated."""
        declared = function.node.args
        positional = [each.arg for each in (*declared.posonlyargs, *declared.args)]
        names = dict(zip(positional, args, strict=False))
        rest = dict(kwargs)
        if declared.vararg:
            names[declared.vararg.arg] = tuple(args[len(positional) :])
        elif len(args) > len(positional):
            self._wrong_call(function)
        by_name = [each.arg for each in declared.args] + [each.arg for each in declared.kwonlyargs]
        for name in by_name:
            if name in rest:
                if name in names:
                    self._wrong_call(function)
                names[name] = rest.pop(name)
        if declared.kwarg:
            names[declared.kwarg.arg] = rest
        elif rest:
            self._wrong_call(function)
        first = len(positional) - len(function.defaults)
        for name, default in zip(positional[first:], function.defaults, strict=True):
            names.setdefault(name, default)
        for name, default in function.keyword_defaults.items():
            names.setdefault(name, default)
        if any(name not in names for name in (*positional, *by_name)):
            self._wrong_call(function)
        return names

    def _wrong_call(self, function: Function) -> NoReturn:
        raise NotModelledError(f"a call of {function.name} with other arguments than it takes")

    # helpers of the protocols

    def caught(self, error: ReplayedError, frame: Frame) -> None:
        name, message = self.exception_text(error.value)
        self.note(Caught(name, message, error.place, self.place(frame)))

    def exception_text(self, value: Any) -> tuple[str, str]:
        """Type and message of an exception, as a traceback shows them."""
        name = value.cls.name if isinstance(value, Instance) else type(value).__name__
        try:
            bounds.weighed(value.payload.args if isinstance(value, Instance) else value.args)
            return name, str(value)
        except (StopReplayError, ReplayedError):
            return name, "?"

    def exception_matches(self, value: Any, kind: Any) -> bool:
        """Whether ``except kind`` takes an exception."""
        if isinstance(kind, tuple):
            return any(self.exception_matches(value, each) for each in kind)
        if isinstance(kind, Inert):
            raise kind.stop()
        if isinstance(value, Instance):
            return value.cls.is_subclass(kind)
        return isinstance(kind, type) and isinstance(value, kind)


def _names_the_replay(error: Exception) -> bool:
    return _REPLAY_NAMES.search(str(error)) is not None


_REPLAY_NAMES = re.compile(
    r"(?<!\w)(?:{})(?!\w)".format(
        "|".join(
            sorted(
                {each.__name__ for kind in REPLAYED for each in (kind, *kind.__subclasses__())}
                | {"Path", "Field", "Lazy", "_Absent"}
            )
        )
    )
)
"""In any quotes: Python writes ``'X'`` in some messages and ``"X"`` in others."""


def shown(value: Any) -> str:
    """A value in a few words."""
    try:
        bounds.weighed(value)
        text = repr(value)
    except (StopReplayError, ReplayedError, TypeError, ValueError):
        return "?"
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def materialised(machine: Machine, values: Iterable[Any]) -> list[Any]:
    """Arguments for a function of Python, with iterators replaced by ones that count their steps."""
    return [machine.iterate(value) if hasattr(type(value), "__next__") else value for value in values]


__all__ = ["Machine", "NeedsFactError", "materialised", "shown"]
