"""Plans for Python packages: what the resolver says is installed to the letter, and the versions of before come back."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies.applying.plan import Manager, NotApplied, Plan, ResetFailed, Restart, RunCommand, Step
from gpuwhy.remedies.applying.site import Resolved, Site
from gpuwhy.remedies.packages import pip_arguments
from gpuwhy.remedies.setting import Setting

INSTALLS = 1800.0
"""Seconds for an installation: gigabytes are fetched and unpacked."""


def plan_package(remedy: Remedy, setting: Setting, site: Site) -> Plan | NotApplied:
    """The resolver is asked first; then exactly its answer is installed, without letting it resolve again."""
    if not setting.python.startswith("/"):
        return NotApplied("the interpreter of the service is not known, so neither is its environment", remedy.commands)
    if setting.is_container:
        return NotApplied("what is installed into a running container is gone with it: it belongs into the image", remedy.commands)  # fmt: skip
    arguments = pip_arguments(setting, remedy.name, remedy.value)
    wanted = [each for each in arguments or () if not each.startswith("-") and each not in ("install", "uninstall")]
    if not wanted or "--force-reinstall" in (arguments or ()):
        return NotApplied("it takes a build, or a release that no index tells by its number", remedy.commands)
    resolved = site.resolve(setting.python, wanted, uv=setting.is_uv_managed, removes=remedy.value == "remove")
    if resolved.status != "ok":
        return NotApplied(f"{resolved.reason} {resolved.advice}".strip(), remedy.commands)
    if resolved.no_way_back:
        return NotApplied(f"there would be no way back: what is installed now cannot be fetched again ({resolved.no_way_back[-200:]})", remedy.commands)  # fmt: skip
    if not resolved.changes:
        return NotApplied("the environment is such already", ())
    is_unit = setting.kind == "systemd"
    restart: tuple[Step, ...] = (ResetFailed(), Restart()) if is_unit else ()
    manager: Manager = "user" if setting.is_user_unit else "system"
    return Plan(
        title=", ".join(
            f"{each.name} {each.before or 'none'} → {each.after or 'none'}" for each in resolved.changes[:3]
        )
        + (f" and {len(resolved.changes) - 3} more" if len(resolved.changes) > 3 else ""),
        unit=setting.unit if is_unit else "",
        manager=manager,
        steps=(*steps_of(resolved, setting), *restart),
        notes=tuple(_notes(resolved, setting)),
    )


def steps_of(resolved: Resolved, setting: Setting) -> tuple[RunCommand, ...]:
    """The packages that come anew first, so that taking back ends with their removal; each command bears repeating."""
    installer = _Installer(resolved.installer, setting)
    moved = [each for each in resolved.changes if each.before and each.after]
    added = [each for each in resolved.changes if not each.before and each.after]
    removed = [each for each in resolved.changes if each.before and not each.after]
    steps = []
    if added:
        pins = [f"{each.name}=={each.after}" for each in added]
        steps.append(_run(installer.install(pins), installer.remove([each.name for each in added])))
    if moved:
        new, old = ([f"{each.name}=={version}" for each, version in ((m, getattr(m, side)) for m in moved)] for side in ("after", "before"))  # fmt: skip
        steps.append(_run(installer.install(new), installer.install(old)))
    if removed:
        pins = [f"{each.name}=={each.before}" for each in removed]
        steps.append(_run(installer.remove([each.name for each in removed]), installer.install(pins)))
    return tuple(steps)


class _Installer:
    """pip or uv of one environment, without a resolver of its own: what was previewed is what is done."""

    def __init__(self, words: Sequence[str], setting: Setting) -> None:
        self._words = tuple(words)
        self._python = ("--python", setting.python) if setting.is_uv_managed else ()
        self._quiet = (
            () if setting.is_uv_managed else ("--no-input", "--disable-pip-version-check", "--only-binary=:all:")
        )

    def install(self, pins: Sequence[str]) -> tuple[str, ...]:
        return (*self._words, "install", *self._quiet, *self._python, "--no-deps", *pins)

    def remove(self, names: Sequence[str]) -> tuple[str, ...]:
        yes = () if self._python else ("--yes",)
        return (*self._words, "uninstall", *self._python, *yes, *names)


def _run(argv: tuple[str, ...], undo: tuple[str, ...]) -> RunCommand:
    return RunCommand(argv=argv, undo=undo, deadline=INSTALLS)


def _notes(resolved: Resolved, setting: Setting) -> list[str]:
    told = [f"the resolver's dry run: {each.name} {each.before or 'not installed'} → {each.after or 'removed'}" for each in resolved.changes]  # fmt: skip
    return [*told, f"in the environment of {setting.python}; nothing else of it changes"]
