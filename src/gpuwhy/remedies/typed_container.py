"""A service that a person starts with ``docker run``: its variables and limits are options before the image's name."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from gpuwhy.remedies.change import Change
from gpuwhy.remedies.container_run import ContainerRun, is_option_of_run
from gpuwhy.remedies.typed_command import TypedCommand, typed


class TypedContainer:
    """The ``docker run`` line (podman, nerdctl likewise) that was typed. A shell's own variables do not get inside."""

    def __init__(self, command: TypedCommand, run: ContainerRun) -> None:
        self._command = command
        self._run = run
        self._engine = " ".join(typed(word) for word in run.words[command.program_at : run.engine_at + 1])
        before = run.words[: command.program_at]
        if before and before[0] in ("sudo",):
            self._engine = f"sudo {self._engine}"

    def set_variable(self, name: str, value: str) -> Change:
        changed = self._run.with_option("--env", f"{name}={value}")
        return self._started_again(changed, *self._printed(name))

    def unset_variable(self, name: str) -> Change:
        return self._started_again(
            self._run.without_variable(name), *(f"! {each} | grep ." for each in self._printed(name))
        )

    def set_option(self, option: str, value: str) -> Change:
        if is_option_of_run(option, value):
            return self._started_again(self._run.with_option(option, value))
        typed_option = shlex.join([option, value] if value else [option])
        if self._command.hands_on_to:
            return self._by_hand(f"add to {self._where()}: {typed_option}", f"take {option} out again")
        return self._started_again(self._command.with_engine_option(option, value).words)

    def remove_option(self, option: str) -> Change:
        if self._run.option(option) is not None:
            return self._started_again(self._run.without_option(option))
        if self._command.hands_on_to:
            return self._by_hand(f"take {option} out of {self._where()}", f"add {option} again")
        return self._started_again(self._command.without_engine_option(option).words)

    def restart(self) -> tuple[str, ...]:
        return (*self._out_of_the_way(), self._command.text())

    def inside(self, command: str) -> str:
        # A service that died has no container to look into: the same one is made for the question alone.
        return self._line(self._run.for_a_try(command))

    def _started_again(self, words: Sequence[str], *check: str) -> Change:
        return Change((*self._out_of_the_way(), self._line(words)), (*self._back(), *self._old()), check)

    def _by_hand(self, instruction: str, back: str) -> Change:
        return Change((f"# {instruction}", *self.restart()), (f"# {back}", *self.restart()))

    def _out_of_the_way(self) -> tuple[str, ...]:
        """A name can be given once: the old container keeps its state under another."""
        if not self._run.name or self._run.is_removed:
            return ()
        name = shlex.quote(self._run.name)
        return (f"{self._engine} stop {name}", f"{self._engine} rename {name} {self._kept_name()}")

    def _back(self) -> tuple[str, ...]:
        if not self._run.name:
            return ()
        return (f"{self._engine} rm --force {shlex.quote(self._run.name)}",)

    def _old(self) -> tuple[str, ...]:
        if not self._run.name or self._run.is_removed:
            return (self._command.text(),)
        name = shlex.quote(self._run.name)
        return (f"{self._engine} rename {self._kept_name()} {name}", f"{self._engine} start {name}")

    def _kept_name(self) -> str:
        return shlex.quote(f"{self._run.name}-before-gpuwhy")

    def _printed(self, name: str) -> tuple[str, ...]:
        return (f"{self._engine} exec {shlex.quote(self._run.name)} printenv {name}",) if self._run.name else ()

    def _where(self) -> str:
        return f"the engine's options in {shlex.quote(self._command.hands_on_to)}, inside the container"

    def _line(self, words: Sequence[str]) -> str:
        return TypedCommand(tuple(words), self._command.program_at).text()
