"""Plans for a systemd unit: a drop-in of ours, the unit read anew and started again."""

from __future__ import annotations

import msgspec

from gpuwhy.model.remedy import Remedy
from gpuwhy.redaction.patterns import TOKEN
from gpuwhy.remedies.applying.plan import (
    ABSENT,
    DaemonReload,
    FileChange,
    MakeFolder,
    Manager,
    NotApplied,
    Plan,
    ResetFailed,
    Restart,
    WriteFile,
)
from gpuwhy.remedies.applying.site import Look, Site
from gpuwhy.remedies.change import DropIn
from gpuwhy.remedies.setting import Setting
from gpuwhy.remedies.systemd import SystemdUnit
from gpuwhy.remedies.values import is_literal, is_variable
from gpuwhy.remedies.writing import change_of

_STARTED = (DaemonReload(), ResetFailed(), Restart())


def plan_variable(remedy: Remedy, setting: Setting, site: Site) -> Plan | NotApplied:
    """An environment variable of the service, set or unset."""
    if not is_variable(remedy.name):
        return NotApplied(f"{remedy.name!r} is not one variable: set it by hand", remedy.commands)
    return _plan(remedy, setting, site)


def plan_option(remedy: Remedy, setting: Setting, site: Site) -> Plan | NotApplied:
    """An option of the start command, set or removed: ``ExecStart=`` is repeated with it."""
    return _plan(remedy, setting, site)


def plan_restart(remedy: Remedy, setting: Setting, site: Site) -> Plan | NotApplied:  # noqa: ARG001 - as every planner
    """The service started again, without any other change."""
    if remedy.value not in ("restart", "start") or remedy.name not in (setting.unit, setting.unit.removesuffix(".service")):  # fmt: skip
        return NotApplied(f"gpuwhy restarts no unit but {setting.unit}, which it was asked to mend", remedy.commands)
    return Plan(title=f"restart {setting.unit}", unit=setting.unit, manager=_manager(setting), steps=(ResetFailed(), Restart()))  # fmt: skip


def _plan(remedy: Remedy, setting: Setting, site: Site) -> Plan | NotApplied:
    if TOKEN.search(remedy.value):
        return NotApplied("its value was taken out of the report as a secret", remedy.commands)
    look = site.look((), setting.unit, _manager(setting))
    if look.unit.get("LoadState") == "not-found" or not look.unit:
        return NotApplied(_why_unknown(setting, look), remedy.commands)
    asked = change_of(remedy, setting, SystemdUnit(setting))
    if remedy.commands and remedy.commands != asked.commands:
        return NotApplied("it takes more than a setting of the unit", remedy.commands)
    known = _with_start_command(setting, look)
    change = change_of(remedy, known, SystemdUnit(known))
    if change.drop_in is None:
        return NotApplied(_why_no_drop_in(remedy, known, look, change.limits), remedy.commands)
    if _repeats_the_start_command(change.drop_in) and look.exec_start.status != "ok":
        return NotApplied(_why_not_repeated(look, setting), remedy.commands)
    return _written(remedy, known, change.drop_in, change.limits, look, site)


def _written(
    remedy: Remedy, setting: Setting, drop_in: DropIn, limits: tuple[str, ...], look: Look, site: Site
) -> Plan | NotApplied:
    folder = f"{_unit_folder(setting, look)}/{setting.unit}.d"
    contents = {}
    if drop_in.values:
        # first what is named, then what names it: in between the unit is as it was
        contents[f"{folder}/{drop_in.name}.env"] = drop_in.values + "\n"
    contents[f"{folder}/{drop_in.name}.conf"] = "\n".join(("[Service]", *drop_in.lines)) + "\n"
    seen = site.look(tuple(contents), setting.unit, _manager(setting)).files
    for path in contents:
        objection = seen[path].refused
        if objection is not None:
            return NotApplied(f"{objection.reason}. {objection.advice}".strip(), remedy.commands)
        if seen[path].has_secret:
            return NotApplied(f"{path} holds what looks like a secret: change it by hand", remedy.commands)
    changes = tuple(FileChange(path, seen[path].text if seen[path].kind == "file" else None, text) for path, text in contents.items())  # fmt: skip
    writes = tuple(WriteFile(path, text, seen[path].sha256 or ABSENT) for path, text in contents.items())
    folders = tuple(MakeFolder(path) for path in _missing_folders(folder, setting, look))
    return Plan(
        title=_title(remedy),
        unit=setting.unit,
        manager=_manager(setting),
        steps=(*folders, *writes, *_STARTED),
        files=changes,
        variables=_variables(remedy, drop_in),
        notes=limits,
    )


def _variables(remedy: Remedy, drop_in: DropIn) -> dict[str, str | None]:
    """What the service's process must have afterwards; nothing where a container stands between."""
    if remedy.kind != "env" or _repeats_the_start_command(drop_in):
        return {}
    return {remedy.name: None if remedy.value == "unset" else remedy.value}


def _title(remedy: Remedy) -> str:
    if remedy.kind == "env":
        return f"unset {remedy.name}" if remedy.value == "unset" else f"{remedy.name}={remedy.value}"
    if remedy.value in ("remove", "unset"):
        return f"remove {remedy.name}"
    return remedy.name if remedy.value in ("set", "") else f"{remedy.name} {remedy.value}"


def _manager(setting: Setting) -> Manager:
    return "user" if setting.is_user_unit else "system"


def _unit_folder(setting: Setting, look: Look) -> str:
    return f"{look.home}/.config/systemd/user" if setting.is_user_unit else "/etc/systemd/system"


def _missing_folders(folder: str, setting: Setting, look: Look) -> tuple[str, ...]:
    """The folders that may have to be made, outermost first: a user has none of them at first."""
    if not setting.is_user_unit:
        return (folder,)
    config = f"{look.home}/.config"
    return (config, f"{config}/systemd", f"{config}/systemd/user", folder)


def _with_start_command(setting: Setting, look: Look) -> Setting:
    """The setting with the start command as the unit's file has it: systemctl's own view has lost its quotes."""
    if look.exec_start.status != "ok":
        return setting
    return msgspec.structs.replace(setting, exec_start=look.exec_start.value)


def _repeats_the_start_command(drop_in: DropIn) -> bool:
    return any(line.startswith("ExecStart=") for line in drop_in.lines)


def _why_unknown(setting: Setting, look: Look) -> str:
    if setting.is_user_unit:
        return (
            f"the systemd manager of {look.user} does not know {setting.unit}: it is another user's, "
            "who must be logged in for it (gpuwhy fix USER@HOST)"
        )
    return f"systemd does not know {setting.unit} there, or gave no answer"


def _why_not_repeated(look: Look, setting: Setting) -> str:
    if look.exec_start.status == "secret":
        return (
            f"the start command of {setting.unit} holds what looks like a secret, and a drop-in would repeat it: "
            "move the secret into an EnvironmentFile= that only root reads, or change the command by hand"
        )
    return f"the start command of {setting.unit} cannot be repeated in a drop-in: {look.exec_start.reason}"


def _why_no_drop_in(remedy: Remedy, setting: Setting, look: Look, limits: tuple[str, ...]) -> str:
    if limits:
        return "; ".join(limits)
    if not is_literal(remedy.name, remedy.value):
        return f"{remedy.value!r} says what to look for, and is no value that could be set"
    if look.exec_start.status != "ok":
        return _why_not_repeated(look, setting)
    if remedy.kind == "flag":
        return f"{setting.unit} starts a script or a shell: the option stands in there, not in the unit"
    return "the change cannot be written as a setting of the unit"
