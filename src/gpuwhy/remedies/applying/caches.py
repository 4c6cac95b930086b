"""Plans for caches: moved aside beside themselves, never deleted, so that they can come back."""

from __future__ import annotations

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies.applying.plan import Manager, MoveAside, NotApplied, Plan, ResetFailed, Restart, Step
from gpuwhy.remedies.applying.site import Site
from gpuwhy.remedies.caches import DELETING, cache_path
from gpuwhy.remedies.setting import Setting

ASIDE = ".before-gpuwhy"

_MOST = 20
"""Names that are tried for what is moved aside: earlier ones may lie there still."""


def plan_cache(remedy: Remedy, setting: Setting, site: Site) -> Plan | NotApplied:
    """The cache that the remedy names, of the account that the service runs as."""
    if remedy.value not in DELETING:
        return NotApplied(f"{remedy.value!r} is no way of dealing with a cache that gpuwhy knows", remedy.commands)
    if setting.is_container:
        return NotApplied("the cache lies inside the container, or in a volume of it", remedy.commands)
    is_unit = setting.kind == "systemd"
    manager: Manager = "user" if setting.is_user_unit else "system"
    first = site.look((), setting.unit if is_unit else "", manager)
    path = cache_path(setting, remedy.name)
    if path is not None and path.startswith("~/"):
        home = first.unit_home if is_unit else first.home
        path = home.rstrip("/") + path[1:] if home.startswith("/") else None
    if path is None or not path.isprintable():
        return NotApplied("it is not known where this cache lies", remedy.commands)
    owners = () if first.unit_uid is None else (first.unit_uid,)
    names = (path, *(_aside(path, number) for number in range(_MOST)))
    # one look at each name: a link or a foreign folder on the way is an objection of its own
    seen = site.look(names, owners=owners).files
    objection = seen[path].refused
    if objection is not None:
        return NotApplied(f"{objection.reason}. {objection.advice}".strip(), remedy.commands)
    if seen[path].kind == "absent":
        return NotApplied(f"{path} is not there", remedy.commands)
    free = next((name for name in names[1:] if seen[name].kind == "absent"), None)
    if free is None:
        return NotApplied(f"{names[1]} and {_MOST - 1} more names beside it are taken: remove what is not needed", ())
    restart: tuple[Step, ...] = (ResetFailed(), Restart()) if is_unit else ()
    return Plan(
        title=f"move {path} aside",
        unit=setting.unit if is_unit else "",
        manager=manager,
        steps=(MoveAside(path, free, owners), *restart),
        notes=(f"{free} can be deleted once the service has made it anew; it takes as much room as before",),
    )


def _aside(path: str, number: int) -> str:
    return path + ASIDE + (f"-{number + 1}" if number else "")
