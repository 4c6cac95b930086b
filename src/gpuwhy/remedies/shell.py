"""A service that a person starts by hand: variables are exported, options are typed."""

from __future__ import annotations

import re
import shlex

from gpuwhy.remedies.change import Change
from gpuwhy.remedies.container_run import is_option_of_run
from gpuwhy.remedies.setting import Setting
from gpuwhy.remedies.typed_command import TypedCommand, read_words

_PLAIN = re.compile(r"[\w.+-]{1,60}", re.ASCII)
"""A value that can stand in a comment: it comes from a log."""


class Shell:
    """The shell from which the service is started."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._command = read_words(setting.command)

    def set_variable(self, name: str, value: str) -> Change:
        check = (f"env | grep -xF {shlex.quote(f'{name}={value}')}",)
        if self._command is not None and self._command.variable(name) is not None:
            # An assignment in the command itself wins over what the shell exports.
            return self._retyped(self._command.with_variable(name, value))
        return Change(
            commands=(f"export {name}={shlex.quote(value)}", *self.restart()),
            undo=(self._as_before(name), *self.restart()),
            check=check,
        )

    def unset_variable(self, name: str) -> Change:
        if self._command is not None and self._command.variable(name) is not None:
            change = self._retyped(self._command.without_variable(name))
            return Change((f"unset {name}", *change.commands), change.undo, change.check)
        return Change(
            commands=(f"unset {name}", *self.restart()),
            undo=(self._as_it_was(name), *self.restart()),
            check=(f"! env | grep ^{name}=",),
        )

    def set_option(self, option: str, value: str) -> Change:
        typed = shlex.join([option, value] if value else [option])
        if is_option_of_run(option, value):
            joined = shlex.quote(f"{option}={value}" if value else option)
            return Change(
                commands=(f"# add to the command that starts the container, before the image's name: {joined}",),
                undo=(f"# take {option} out of that command",),
            )
        if self._command is None or self._command.hands_on_to:
            before = self._setting.arguments.get(option.lstrip("-").replace("-", "_"), "")
            if self._command is None and value and before != value and _PLAIN.fullmatch(before):
                # an echo of all arguments does not tell which of them were typed
                return self._by_hand(f"set in the start command: {typed} (this start had {before})", f"set {option} as it was before")  # fmt: skip
            return self._by_hand(f"add to {self._where()}: {typed}", f"take {option} out of {self._where()}")
        return self._retyped(self._command.with_engine_option(option, value))

    def remove_option(self, option: str) -> Change:
        if self._command is None or self._command.hands_on_to:
            return self._by_hand(f"take {option} out of {self._where()}", f"add {option} to {self._where()}")
        return self._retyped(self._command.without_engine_option(option))

    def restart(self) -> tuple[str, ...]:
        return ("# start the service again from this shell",) if self._command is None else (self._command.text(),)

    def inside(self, command: str) -> str:
        return command

    def _where(self) -> str:
        """Where the engine's options stand."""
        if self._command is None or not self._command.hands_on_to:
            return "the start command"
        return f"the engine's options in {shlex.quote(self._command.hands_on_to)}"

    def _by_hand(self, instruction: str, back: str) -> Change:
        again = self.restart() if self._command is not None else ()
        return Change((f"# {instruction}", *again), (f"# {back}", *again))

    def _retyped(self, changed: TypedCommand) -> Change:
        return Change(commands=(changed.text(),), undo=self.restart())

    def _as_it_was(self, name: str) -> str:
        """Of a variable that was set: with its value, or the word that it had one, where nobody told which."""
        before = self._setting.variables.get(name)
        return f"# export {name} again, as it was" if before is None else self._as_before(name)

    def _as_before(self, name: str) -> str:
        before = self._setting.variables.get(name)
        return f"unset {name}" if before is None else f"export {name}={shlex.quote(before)}"
