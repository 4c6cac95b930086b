"""A service that systemd starts: changes are drop-ins, so that the unit file stays as its package made it."""

from __future__ import annotations

import re
import shlex

from gpuwhy.remedies import unit_file
from gpuwhy.remedies.change import Change, DropIn
from gpuwhy.remedies.container_run import ENGINES, ContainerRun
from gpuwhy.remedies.setting import Setting


class SystemdUnit:
    """One unit of the system manager or of a user's."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._unit = shlex.quote(setting.unit)
        self._systemctl = "systemctl --user" if setting.is_user_unit else "systemctl"
        root = "~/.config/systemd/user" if setting.is_user_unit else "/etc/systemd/system"
        self._folder = f"{root}/{self._unit}.d"

    def set_variable(self, name: str, value: str) -> Change:
        run = unit_file.container_run(self._setting.exec_start)
        if run is not None:
            return self._container_variable(run, name, value)
        if unit_file.program(self._setting.exec_start) in ENGINES:
            assigned = shlex.quote(f"{name}={value}")
            return Change(
                commands=(
                    f"# set {assigned} for the container itself (its compose file, or `run` again)",
                    *self.restart(),
                ),
                limits=(
                    "the unit only starts a container that is defined elsewhere: its environment does not get inside",
                ),
            )
        limits = (*self._overriders(name), *self._unread_files(name))
        checks = self._variable_checks(name, value)
        if not self._setting.environment_files:
            assignment = f"Environment={unit_file.quoted_assignment(name, value)}"
            return self._drop_in(f"50-gpuwhy-{name}", (assignment,), checks, limits)
        # EnvironmentFile= beats Environment= whatever their order; of several files the last one read wins.
        values = f"{self._folder}/50-gpuwhy-{name}.env"
        line = unit_file.environment_file_line(name, value)
        named = "%h/.config/systemd/user" if self._setting.is_user_unit else "/etc/systemd/system"
        setting = f"EnvironmentFile={named}/{self._setting.unit.replace('%', '%%')}.d/50-gpuwhy-{name}.env"
        change = self._drop_in(f"50-gpuwhy-{name}", (setting,), checks[-1:], limits, extra_file=values)
        written = f"printf '%s\\n' {shlex.quote(line)} > {values}"
        drop_in = DropIn(f"50-gpuwhy-{name}", (setting,), line)
        commands = (change.commands[0], written, *change.commands[1:])
        return Change(commands, change.undo, change.check, change.limits, drop_in)

    def unset_variable(self, name: str) -> Change:
        run = unit_file.container_run(self._setting.exec_start)
        if run is not None:
            return self._rewritten(unit_file.without_run_variable(self._setting.exec_start, run, name), "--env")
        return self._drop_in(
            f"50-gpuwhy-{name}",
            (f"UnsetEnvironment={name}",),
            (f"! {self._environment()} | grep ^{name}=",),
            self._overriders(name),
        )

    def set_option(self, option: str, value: str) -> Change:
        typed = shlex.join([option, value] if value else [option])
        return self._edited(
            unit_file.with_option(self._setting.exec_start, option, value), option, f"give the engine {typed}"
        )

    def set_container_option(self, option: str, value: str) -> Change | None:
        """An option of ``docker run`` itself (``--shm-size``); None when the unit starts no container."""
        run = unit_file.container_run(self._setting.exec_start)
        return None if run is None else self._with_run_option(run, option, value)

    def set_property(self, name: str, value: str) -> Change:
        """A property of the unit itself, such as ``LimitMEMLOCK``; nothing where the unit starts a container, which it does not reach."""
        if unit_file.program(self._setting.exec_start) in ENGINES:
            return Change()
        check = f"{self._systemctl} show {self._unit} -p {name}"
        return self._drop_in(f"50-gpuwhy-{name}", (f"{name}={value}",), (check,), ())

    def remove_option(self, option: str) -> Change:
        return self._edited(
            unit_file.without_option(self._setting.exec_start, option),
            option,
            f"take {option} out of the engine's options",
        )

    def restart(self) -> tuple[str, ...]:
        # Without reset-failed a unit that used up its starts is refused another one.
        return (f"{self._systemctl} reset-failed {self._unit}", f"{self._systemctl} restart {self._unit}")

    def inside(self, command: str) -> str:
        return f'xargs -0 -a {self._process_file()} sh -c \'env -i "$@" sh -c "$0"\' {shlex.quote(command)}'

    def _edited(self, edited: str, option: str, instruction: str) -> Change:
        current = self._setting.exec_start
        if not current or not unit_file.is_direct(current):
            where = self._setting.fragment or f"the unit (systemctl cat {self._unit})"
            script = f", which runs {unit_file.program(current)}" if current else ""
            return Change(
                commands=(f"# {instruction}: in what {_one_line(where)} starts{_one_line(script)}", *self.restart()),
                undo=(f"# change {option} back", *self.restart()),
                check=(self._command_line(option),),
            )
        if edited == current:
            return Change(limits=(f"the unit's ExecStart= has it so already; {option} must come from elsewhere",))
        return self._drop_in(
            "50-gpuwhy-exec-start",
            ("ExecStart=", f"ExecStart={_one_line(edited)}"),
            (self._command_line(option),),
            (
                "repeats the whole ExecStart=: a later change of the unit's own start command has no effect until undone",
            ),
        )

    def _container_variable(self, run: ContainerRun, name: str, value: str) -> Change:
        return self._with_run_option(
            run,
            "--env",
            f"{name}={value}",
            "the unit starts a container, which does not see the unit's own environment: the variable goes to `run`",
        )

    def _with_run_option(self, run: ContainerRun, option: str, value: str, *limits: str) -> Change:
        return self._rewritten(unit_file.with_run_option(self._setting.exec_start, run, option, value), option, *limits)

    def _rewritten(self, exec_start: str, option: str, *limits: str) -> Change:
        return self._drop_in(
            "50-gpuwhy-exec-start",
            ("ExecStart=", f"ExecStart={_one_line(exec_start)}"),
            (self._command_line(option),),
            limits,
        )

    def _drop_in(
        self, name: str, lines: tuple[str, ...], check: tuple[str, ...], limits: tuple[str, ...], extra_file: str = ""
    ) -> Change:
        """A drop-in of our own: added, the unit loaded and started again; taken back without a trace."""
        file = f"{self._folder}/{name}.conf"
        content = " ".join(shlex.quote(line) for line in ("[Service]", *lines))
        apply = (f"{self._systemctl} daemon-reload", *self.restart())
        return Change(
            commands=(f"install -d {self._folder}", f"printf '%s\\n' {content} > {file}", *apply),
            undo=(
                f"rm {file}{' ' + extra_file if extra_file else ''}",
                f"rmdir --ignore-fail-on-non-empty {self._folder}",
                *apply,
            ),
            check=check,
            limits=limits,
            drop_in=DropIn(name, lines),
        )

    def _variable_checks(self, name: str, value: str) -> tuple[str, ...]:
        return (
            f"{self._systemctl} show {self._unit} -p Environment",
            f"{self._environment()} | grep -xF {shlex.quote(f'{name}={value}')}",
        )

    def _environment(self) -> str:
        return f"tr '\\0' '\\n' < {self._process_file()}"

    def _command_line(self, option: str) -> str:
        process = self._process_file().replace("/environ", "/cmdline")
        return f"tr '\\0' ' ' < {process} | grep -e {shlex.quote(option)}"

    def _process_file(self) -> str:
        return f'"/proc/$({self._systemctl} show -p MainPID --value {self._unit})/environ"'

    def _unread_files(self, name: str) -> tuple[str, ...]:
        """The unit's own files were not read (only its journal was): one of them may win over Environment=."""
        if self._setting.exec_start or self._setting.fragment:
            return ()
        return (
            f"a file that the unit names with EnvironmentFile= wins, where it sets {name}: systemctl cat {self._unit}",
        )

    def _overriders(self, name: str) -> tuple[str, ...]:
        """Who sets the variable after systemd did: the start command itself."""
        if re.search(rf"(?:^|[\s\"']){re.escape(name)}=", self._setting.exec_start):
            return (f"ExecStart= sets {name} itself, after the drop-in: change it there",)
        return ()


def _one_line(text: str) -> str:
    """Continuation lines joined; control characters, which no unit file needs, left out."""
    joined = re.sub(r"\\\n\s*", " ", text).replace("\n", " ")
    return "".join(character for character in joined if character.isprintable())
