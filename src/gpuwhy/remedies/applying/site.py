"""The target of a change: one connection to the applier there, from the look before the preview to the verdict after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import msgspec

from gpuwhy import __version__
from gpuwhy.applier.bundle import program
from gpuwhy.remedies.applying.plan import Manager, Plan, RunCommand
from gpuwhy.targets import HostTarget, TargetError

ANSWERS = 60.0
"""Seconds that a request may take which waits for nothing but the target."""

RESOLVES = 1300.0
"""Seconds that a resolver's dry runs may take."""

RUNS = 3600.0
"""Seconds that the commands of a change of before may take to be finished or taken back."""

STARTS = 900.0
"""Seconds that a service is given to come up, where nothing else is said: weights are read from a disk."""

LONGEST_GRACE = 2400.0
"""The most seconds that the applier chooses by itself to watch a service for."""

OnStep = Callable[["StepReport"], None]


class StepReport(msgspec.Struct, frozen=True):
    """How one step went, as it is heard while a change is made."""

    name: str
    status: str
    reason: str = ""
    told: str = ""


class Objection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why the target does not let itself be changed, and what a person can do about it."""

    reason: str
    advice: str = ""


class SeenFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A path as the applier found it. ``kind`` is ``absent``, ``file``, ``folder`` or ``unknown``.

    ``text`` is empty for a file that holds what looks like a secret: it is not shown, and not replaced.
    """

    kind: str = msgspec.field(name="is", default="unknown")
    text: str = ""
    sha256: str = ""
    mode: int = 0
    uid: int = 0
    has_secret: bool = False
    refused: Objection | None = None


class StartCommand(msgspec.Struct, frozen=True, omit_defaults=True):
    """The unit's ``ExecStart=`` as its file has it; ``status`` is ``ok``, ``secret`` or ``unknown``."""

    status: str = "unknown"
    value: str = ""
    reason: str = ""
    path: str = ""


class RecordedStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step in the journal. ``state`` is ``waiting``, ``doing``, ``done`` or ``taken back``."""

    step: str
    state: str = ""
    path: str = ""
    argv: tuple[str, ...] = ()


class RecordedState(msgspec.Struct, frozen=True, omit_defaults=True):
    """A state that a change went through; ``time`` in seconds since 1970."""

    state: str
    time: float = 0.0
    reason: str = ""


class Stability(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether the restarted unit came up and stayed up; ``seen`` holds its properties and the seconds it took."""

    is_stable: bool
    words: str = ""
    seen: Mapping[str, Any] = {}


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change as the target's journal has it; the states are those of :mod:`gpuwhy.applier.history`."""

    id: int
    state: str
    reason: str = ""
    title: str = ""
    unit: str = ""
    manager: str = "system"
    made: float = 0.0
    gpuwhy: str = ""
    remedy: Mapping[str, Any] = {}
    steps: tuple[RecordedStep, ...] = ()
    states: tuple[RecordedState, ...] = ()
    stability: Stability | None = None
    verification: Any = None

    @property
    def is_interrupted(self) -> bool:
        """Whether an earlier run was cut off in the middle of it."""
        return self.state in ("applying", "rolling-back")


class Look(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a plan needs to know of the target.

    ``unit_uid`` and ``unit_home`` are of the account that the unit runs as.
    """

    uid: int = 0
    user: str = ""
    home: str = ""
    history: str = ""
    files: Mapping[str, SeenFile] = {}
    unit: Mapping[str, str] = {}
    exec_start: StartCommand = StartCommand()
    unit_uid: int | None = None
    unit_home: str = ""
    interrupted: tuple[Record, ...] = ()


class PackageChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A package that an installation would move; None: not there."""

    name: str
    before: str | None = None
    after: str | None = None


class Resolved(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an installer's own dry run says. ``no_way_back``: why the versions of now could not be fetched again."""

    status: str
    reason: str = ""
    advice: str = ""
    changes: tuple[PackageChange, ...] = ()
    installer: tuple[str, ...] = ()
    no_way_back: str = ""


class Inspected(msgspec.Struct, frozen=True, omit_defaults=True):
    """A container as its engine describes it; ``tools`` are the compose programs that answer there."""

    status: str
    reason: str = ""
    advice: str = ""
    container: Mapping[str, Any] = {}
    tools: tuple[str, ...] = ()

    @property
    def config(self) -> Mapping[str, Any]:
        return self.container.get("config") or {}

    @property
    def host(self) -> Mapping[str, Any]:
        return self.container.get("host") or {}

    @property
    def image(self) -> Mapping[str, Any]:
        """What the image itself sets."""
        return self.container.get("image") or {}

    @property
    def command(self) -> tuple[str, ...]:
        return tuple(map(str, self.config.get("Cmd") or ()))

    def label(self, name: str) -> str:
        return str((self.config.get("Labels") or {}).get(name) or "")


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a request to change something ended.

    ``status`` is the record's state, ``unchanged`` (it was so already), ``refused`` (nothing was touched) or
    ``interrupted`` (an earlier change must be finished or undone first: ``record`` is that one).
    """

    status: str
    reason: str = ""
    advice: str = ""
    detail: Mapping[str, Any] = {}
    record: Record | None = None
    stability: Stability | None = None


class ConnectionLostError(TargetError):
    """The connection ended before the answer came. What happened stands in the target's journal."""


class Site:
    """The applier on a target. Use it as a context manager.

    ``root`` is a folder that stands for the target's root, for tests. Every method raises
    :class:`gpuwhy.targets.TargetError` when the target does not answer.
    """

    def __init__(self, target: HostTarget, root: str = "") -> None:
        self._target = target
        self._root = root
        self._connection = target.open(program())

    def __enter__(self) -> Site:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    @property
    def target(self) -> HostTarget:
        """Where the changes are made; verifiers may ask it for a connection of their own."""
        return self._target

    def look(
        self, paths: Sequence[str] = (), unit: str = "", manager: Manager = "system", owners: Sequence[int] = ()
    ) -> Look:
        """Files, a unit, who we are there, what was left half done. Changes nothing.

        ``owners``: user ids besides root and us whose folders are trusted on the way to the paths.
        """
        answer = self._ask({"do": "look", "paths": list(paths), "unit": unit, "manager": manager, "owners": list(owners)})  # fmt: skip
        if answer.get("status") != "ok":
            raise TargetError(f"{self._target.name}: {answer.get('reason')}", str(answer.get("advice") or ""))
        return msgspec.convert(answer, Look, strict=False)

    def resolve(self, python: str, requirements: Sequence[str], *, uv: bool = False, removes: bool = False, no_deps: bool = False) -> Resolved:  # fmt: skip
        """What installing would change in the environment of ``python``, by its installer's dry run."""
        request = {"do": "resolve", "python": python, "requirements": list(requirements), "uv": uv, "removes": removes, "no_deps": no_deps}  # fmt: skip
        return msgspec.convert(self._ask(request, RESOLVES), Resolved, strict=False)

    def container(self, engine: str, name: str, *, tools: bool = True) -> Inspected:
        """A container of an engine there. What looks like a secret in it is cut out."""
        request = {"do": "container", "engine": engine, "name": name, "tools": tools}
        return msgspec.convert(self._ask(request), Inspected, strict=False)

    def version_of(self, words: Sequence[str]) -> str | None:
        """What ``words --version`` says there in a bare environment; None where it does not run."""
        answer = self._ask({"do": "version", "words": list(words)})
        return str(answer["version"]) if answer.get("status") == "ok" else None

    def history(self) -> tuple[Record, ...]:
        """Every change that the journal of the account we are there knows, oldest first."""
        answer = self._ask({"do": "history"})
        if answer.get("status") != "ok":
            raise TargetError(f"{self._target.name}: {answer.get('reason')}", str(answer.get("advice") or ""))
        return msgspec.convert(answer.get("records", []), tuple[Record, ...], strict=False)

    def apply(
        self,
        plan: Plan,
        remedy: Mapping[str, Any],
        *,
        grace: float | None = None,
        deadline: float = STARTS,
        keep: bool = False,
        on_step: OnStep | None = None,
    ) -> Outcome:
        """Carry the plan out, wait until its unit is stable for ``grace`` seconds, else roll back unless ``keep``.

        ``grace`` None: longer than the unit's last life. ``deadline``: seconds until the unit must be up.
        """
        request = {"do": "apply", "plan": {**plan.document(), "remedy": dict(remedy)}}
        running = sum(step.deadline for step in plan.steps if isinstance(step, RunCommand))
        return self._change(request, _settling(grace, deadline, keep, plan.variables), on_step, 2 * running)

    def finish(
        self,
        number: int,
        *,
        grace: float | None = None,
        deadline: float = STARTS,
        keep: bool = False,
        on_step: OnStep | None = None,
    ) -> Outcome:
        """Go on with an interrupted change in the direction in which it went."""
        return self._change({"do": "finish", "id": number}, _settling(grace, deadline, keep, {}), on_step)

    def undo(
        self, number: int | None = None, *, force: bool = False, reason: str = "", on_step: OnStep | None = None
    ) -> Outcome:
        """Take a change back, the last that is in force where none is named; ``force``: also what was edited since."""
        return self._change({"do": "undo", "id": number, "force": force, "reason": reason}, {}, on_step)

    def conclude(self, number: int, verification: Mapping[str, Any], *, is_verified: bool) -> Outcome:
        """Write into the journal what the verification showed."""
        request = {"do": "conclude", "id": number, "verification": verification, "is_verified": is_verified}
        return self._change(request, {}, None)

    def _change(
        self, request: dict[str, Any], settle: dict[str, Any], on_step: OnStep | None, running: float = RUNS
    ) -> Outcome:
        """``running``: seconds that the commands of the change may take, back again included."""
        grace = settle.get("grace") or (LONGEST_GRACE if settle else 0.0)
        limit = ANSWERS + settle.get("deadline", 0.0) + grace + running
        answer = self._ask({**request, "settle": settle, "version": __version__}, limit, on_step)
        return msgspec.convert(answer, Outcome, strict=False)

    def _ask(self, request: dict[str, Any], limit: float = ANSWERS, on_step: OnStep | None = None) -> dict[str, Any]:
        def heard(line: dict[str, Any]) -> None:
            if on_step is not None:
                told = line.get("value")
                on_step(StepReport(str(line["probe"]), str(line.get("status")), str(line.get("reason") or ""), told if isinstance(told, str) else ""))  # fmt: skip

        answer = self._connection.collect({"root": self._root, **request}, heard, limit)
        if not answer:
            raise ConnectionLostError(
                f"{self._target.name}: the connection was lost while something was being changed",
                "The applier there goes on to its end by itself; `gpuwhy history` shows what came of it.",
            )
        return answer


def _settling(grace: float | None, deadline: float, keep: bool, variables: Mapping[str, str | None]) -> dict[str, Any]:
    return {"grace": grace, "deadline": deadline, "keep": keep, "variables": dict(variables)}
