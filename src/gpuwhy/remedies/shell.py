"""A service that a person starts by hand: variables are exported, options are typed."""

from __future__ import annotations

import shlex

from gpuwhy.remedies.change import Change
from gpuwhy.remedies.command_line import with_option, without_option
from gpuwhy.remedies.setting import Setting


class Shell:
    """The shell from which the service is started."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def set_variable(self, name: str, value: str) -> Change:
        return Change(
            commands=(f"export {name}={shlex.quote(value)}", *self.restart()),
            undo=(self._as_before(name), *self.restart()),
            check=(_in_the_environment(f"{name}={value}"),),
        )

    def unset_variable(self, name: str) -> Change:
        return Change(
            commands=(f"unset {name}", *self.restart()),
            undo=(self._as_before(name), *self.restart()),
            check=(f"! env | grep ^{name}=",),
        )

    def set_option(self, option: str, value: str) -> Change:
        typed = shlex.join([option, value] if value else [option])
        if not self._setting.command:
            return Change(
                commands=(f"# add to the start command: {typed}",), undo=(f"# take {option} out of the start command",)
            )
        return Change(
            commands=(shlex.join(with_option(self._setting.command, option, value)),),
            undo=(shlex.join(self._setting.command),),
        )

    def remove_option(self, option: str) -> Change:
        if not self._setting.command:
            return Change(
                commands=(f"# take {option} out of the start command",), undo=(f"# add {option} to the start command",)
            )
        return Change(
            commands=(shlex.join(without_option(self._setting.command, option)),),
            undo=(shlex.join(self._setting.command),),
        )

    def restart(self) -> tuple[str, ...]:
        if self._setting.command:
            return (shlex.join(self._setting.command),)
        return ("# start the service again from this shell",)

    def inside(self, command: str) -> str:
        return command

    def _as_before(self, name: str) -> str:
        before = self._setting.variables.get(name)
        return f"unset {name}" if before is None else f"export {name}={shlex.quote(before)}"


def _in_the_environment(entry: str) -> str:
    return f"env | grep -xF {shlex.quote(entry)}"
