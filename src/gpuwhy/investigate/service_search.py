"""Where a service of this machine looks for libraries: its LD_LIBRARY_PATH and LD_PRELOAD."""

from __future__ import annotations

from gpuwhy import snapshot
from gpuwhy.targets import HostTarget, TargetError
from gpuwhy.targets.local import LocalTarget


def search_of_unit(unit: str, target: HostTarget | None = None) -> tuple[str, str]:
    """LD_LIBRARY_PATH and LD_PRELOAD of a unit, ``""`` for one that is not set.

    By the running process, else by what systemd and the start script would set. Raises TargetError where neither can
    be read.
    """
    taken = snapshot.collect(target or LocalTarget(), unit)
    probe = taken.probe("environment")
    if probe is None or probe.status != "ok":
        why = probe.reason if probe is not None and probe.reason else "the collection ended early"
        raise TargetError(f"the environment of {unit} is not known: {why}", "Give it with --env LD_LIBRARY_PATH=…")
    variables = probe.value.get("variables") if isinstance(probe.value, dict) else None
    found = variables if isinstance(variables, dict) else {}
    return str(found.get("LD_LIBRARY_PATH", "")), str(found.get("LD_PRELOAD", ""))
