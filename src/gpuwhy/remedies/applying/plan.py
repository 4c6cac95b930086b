"""A plan: the steps that the applier on the target performs, each shown before it is done. Never a shell line.

The steps' shape on the wire is that of :mod:`gpuwhy.applier.steps`.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

Manager = Literal["system", "user"]

ABSENT = "absent"


class MakeFolder(msgspec.Struct, frozen=True, tag_field="step", tag="folder"):
    """A folder of ours, where it is not there yet; taken back when nothing of others is in it."""

    path: str
    mode: int = 0o755


class WriteFile(msgspec.Struct, frozen=True, tag_field="step", tag="write"):
    """A whole file. ``before`` is the SHA-256 of what the preview found there, or ``absent``: else it is not written.

    ``owners``: user ids besides root and us whose folders are trusted on the way to it.
    """

    path: str
    content: str
    before: str
    mode: int = 0o644
    owners: tuple[int, ...] = ()


class RemoveFile(msgspec.Struct, frozen=True, tag_field="step", tag="remove"):
    """A file that gpuwhy wrote earlier."""

    path: str
    before: str


class MoveAside(msgspec.Struct, frozen=True, tag_field="step", tag="move-aside", omit_defaults=True):
    """A cache renamed to ``to`` in the same folder, so that it can come back."""

    path: str
    to: str
    owners: tuple[int, ...] = ()


class RunCommand(msgspec.Struct, frozen=True, tag_field="step", tag="run", omit_defaults=True):
    """A command as its words, and the command that takes it back. Both must bear being run twice.

    ``deadline`` in seconds, ``folder`` where it runs, ``environment`` what it is given beyond a bare one.
    """

    argv: tuple[str, ...]
    undo: tuple[str, ...] = ()
    deadline: float = 60.0
    folder: str = "/"
    environment: Mapping[str, str] = {}


class DaemonReload(msgspec.Struct, frozen=True, tag_field="step", tag="daemon-reload"):
    """systemd reads the unit files anew."""


class ResetFailed(msgspec.Struct, frozen=True, tag_field="step", tag="reset-failed"):
    """The plan's unit forgets that it failed: one that used up its starts is refused another one."""


class Restart(msgspec.Struct, frozen=True, tag_field="step", tag="restart"):
    """The plan's unit is started again."""


Step = MakeFolder | WriteFile | RemoveFile | MoveAside | RunCommand | DaemonReload | ResetFailed | Restart


class FileChange(msgspec.Struct, frozen=True):
    """One file before and after; None: it is not there."""

    path: str
    before: str | None
    after: str | None

    def diff(self) -> list[str]:
        """The lines of a unified diff; empty when both are the same."""
        old = [] if self.before is None else self.before.splitlines()
        new = [] if self.after is None else self.after.splitlines()
        names = (self.path if self.before is not None else "/dev/null", self.path if self.after is not None else "/dev/null")  # fmt: skip
        return list(difflib.unified_diff(old, new, *names, lineterm=""))


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What applying a remedy does, to the letter: nothing that is not in here is changed.

    ``unit`` is the only unit that is restarted, ``""`` for none. ``variables`` is what the service's process must have
    in its environment afterwards (None: must not have). ``notes`` are for the reader of the preview.
    """

    title: str
    unit: str = ""
    manager: Manager = "system"
    steps: tuple[Step, ...]
    files: tuple[FileChange, ...] = ()
    variables: Mapping[str, str | None] = {}
    notes: tuple[str, ...] = ()

    @property
    def is_in_place(self) -> bool:
        """Whether the target holds all of it already."""
        return bool(self.files) and not any(each.diff() for each in self.files) and not any(isinstance(step, (RunCommand, MoveAside)) for step in self.steps)  # fmt: skip

    def commands(self) -> Iterator[str]:
        """What is run, moved or restarted besides the files, as one would type it."""
        systemctl = "systemctl --user" if self.manager == "user" else "systemctl"
        for step in self.steps:
            match step:
                case RunCommand():
                    yield shlex.join(step.argv)
                case MoveAside():
                    yield shlex.join(["mv", step.path, step.to])
                case DaemonReload():
                    yield f"{systemctl} daemon-reload"
                case ResetFailed():
                    yield f"{systemctl} reset-failed {shlex.quote(self.unit)}"
                case Restart():
                    yield f"{systemctl} restart {shlex.quote(self.unit)}"
                case _:
                    continue

    def document(self) -> dict[str, Any]:
        """The plan as the applier takes it."""
        steps: list[Any] = msgspec.to_builtins(self.steps)
        return {"title": self.title, "unit": self.unit, "manager": self.manager, "steps": steps}


class NotApplied(msgspec.Struct, frozen=True):
    """A remedy that gpuwhy does not carry out here: why, and what a person does instead."""

    why: str
    instead: tuple[str, ...] = ()
