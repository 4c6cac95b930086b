"""From a remedy as it was prescribed to the plan that carries it out, or to the reason why nobody but a person does."""

from __future__ import annotations

from collections.abc import Callable

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies.applying import caches, composing, packages, units
from gpuwhy.remedies.applying.plan import NotApplied, Plan
from gpuwhy.remedies.applying.site import Site
from gpuwhy.remedies.setting import Setting

Planner = Callable[[Remedy, Setting, Site], Plan | NotApplied]
"""Plans one kind of remedy; may look at the target through the site, never change it."""

NEVER = {
    "driver": "a driver is installed with the machine out of service, and often with a reboot",
    "kernel": "the kernel and its parameters are changed with a reboot, which ends everything on the machine",
    "hardware": "hardware is changed by hand",
    "patch": "the source of an installed package is not patched: the next upgrade loses the patch without a word",
    "system-package": "a package of the system may restart or replace what other services stand on",
    "toolkit": "a toolkit is installed by the system's package manager, as root, and takes gigabytes",
}
"""What gpuwhy explains and never does."""

PLANNERS: dict[tuple[str, str], Planner] = {
    ("systemd", "env"): units.plan_variable,
    ("systemd", "flag"): units.plan_option,
    ("systemd", "service"): units.plan_restart,
    ("systemd", "package"): packages.plan_package,
    ("shell", "package"): packages.plan_package,
    ("systemd", "cache"): caches.plan_cache,
    ("shell", "cache"): caches.plan_cache,
    ("docker", "env"): composing.plan_container,
    ("docker", "flag"): composing.plan_container,
    ("docker", "container"): composing.plan_container,
    ("compose", "env"): composing.plan_container,
    ("compose", "flag"): composing.plan_container,
    ("compose", "container"): composing.plan_container,
}
"""Who plans a remedy, by the kind of place and the kind of remedy. Filled here, nowhere else."""


def plan_for(remedy: Remedy, setting: Setting, site: Site) -> Plan | NotApplied:
    """How this remedy is carried out at this place. Raises :class:`gpuwhy.targets.TargetError` from looking there."""
    if remedy.kind in NEVER:
        return NotApplied(f"gpuwhy never does this itself: {NEVER[remedy.kind]}", remedy.commands)
    planner = PLANNERS.get((setting.kind, remedy.kind))
    if planner is None:
        return NotApplied(f"gpuwhy does not carry out a change of kind {remedy.kind!r} {_where(setting)}", remedy.commands)  # fmt: skip
    return planner(remedy, setting, site)


def is_never_applied(remedy: Remedy) -> bool:
    """Whether gpuwhy only explains remedies of this kind."""
    return remedy.kind in NEVER


def _where(setting: Setting) -> str:
    if setting.kind in ("shell", "unknown"):
        return "where no systemd unit is known to start the service"
    return f"for a service under {setting.kind}"
