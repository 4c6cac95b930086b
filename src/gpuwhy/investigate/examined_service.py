"""In words: which service was examined, why this one, and what else could have been."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from gpuwhy.snapshot import Snapshot
from gpuwhy.snapshot.logs import Candidate
from gpuwhy.targets import TargetError

_OF_SERVICE = ("unit", "service_log", "process", "journal", "container_state")
"""The probes that see the service itself; what says most of why it was not seen comes first."""

_CONTAINERS = ("docker", "podman", "nerdctl", "k8s")
"""The kinds of targets that are a container."""


def notes_on_services(candidates: Sequence[Candidate]) -> list[str]:
    """The first candidate was examined; of the others those are named that fail too."""
    if not candidates:
        return []
    first, failing = candidates[0], [each for each in candidates[1:] if each.is_failing]
    if not first.is_failing:
        told = f" ({first.note})" if first.note else ""
        others = ", ".join(each.selector or each.name for each in candidates[1:6])
        also = f"; also running: {others}. Choose with --unit." if others else "."
        return [f"No service was found failing. {first.name} was examined, which runs{told}{also}"]
    if not failing:
        return [f"{first.name} was examined: it is the service that fails here."]
    others = ", ".join(f"{_called(each)} ({each.state or each.kind})" for each in failing[:5])
    how = "Choose with --unit" + (", or a container as WHERE." if any(map(_is_container, failing[:5])) else ".")
    return [f"{first.name} was examined; also failing here: {others}. {how}"]


def notes_on_named(snapshot: Snapshot) -> list[str]:
    """Why nothing of the service that was named could be seen, when that is so: the rest is then about others."""
    if not snapshot.target.unit or any(snapshot.value(name) is not None for name in _OF_SERVICE):
        return []
    told = (snapshot.probe(name) for name in _OF_SERVICE)
    why = list(dict.fromkeys(probe.reason for probe in told if probe is not None and probe.reason))
    return [f"Nothing of {snapshot.target.unit} was seen: {next(iter(why), 'the collection ended early')}."]


def is_unknown_unit(snapshot: Snapshot) -> bool:
    """Whether a unit was named that the service manager does not know, and that nothing else there goes by."""
    unit = snapshot.probe("unit")
    return unit is not None and unit.status == "absent" and bool(notes_on_named(snapshot))


def expect_unit(snapshot: Snapshot, where: str) -> None:
    """Raises :class:`gpuwhy.targets.TargetError` for a unit that is not there: nothing can be said of it."""
    if is_unknown_unit(snapshot):
        raise TargetError(f"{where}: {notes_on_named(snapshot)[0]}")


def expect_inside(snapshot: Snapshot, where: str) -> None:
    """Raises :class:`gpuwhy.targets.TargetError` for a service that was named beside a container and is not in it."""
    named = snapshot.target.unit
    if not named or snapshot.target.kind not in _CONTAINERS:
        return
    seen = "process" if named.startswith("pid:") else "service_log" if named.startswith("/") else "unit"
    if snapshot.value(seen) is not None:
        return
    told = [probe for name in ("inside", seen) if (probe := snapshot.probe(name)) is not None and probe.status != "ok"]
    why = next((probe.reason for probe in told if probe.reason), "the collection ended early")
    raise TargetError(
        f"{where}: there is no {named} to be seen in this container: {why}",
        "Of a container --unit takes a program of the supervisord in it (supervisor:NAME), pid:NUMBER, or the path of a log "
        "in it. Without --unit the container itself is examined; a unit of the host is named with the host as WHERE.",
    )


def expect_written(snapshot: Snapshot, asked: str, where: str) -> None:
    """Raises :class:`gpuwhy.targets.TargetError` for another service than the one that a snapshot was taken of."""
    if not asked:
        return
    unit, journal, log = (snapshot.value(name) for name in ("unit", "journal", "service_log"))
    held = {
        snapshot.target.unit,
        *(str(each.get(key) or "") for each, key in ((unit, "name"), (journal, "unit"), (log, "service"), (log, "selector")) if isinstance(each, dict)),
    } - {""}  # fmt: skip
    if _plain(asked) in map(_plain, held):
        return
    what = f"was taken of {sorted(held, key=len)[-1]}" if held else "was taken of no unit"
    raise TargetError(
        f"{where} {what}: it holds nothing of {asked}",
        f"Leave --unit out, or take another: gpuwhy collect HOST --unit {shlex.quote(asked)}",
    )


def _plain(unit: str) -> str:
    """``supervisor:vllm``, ``user:alice/vllm.service`` and ``vllm`` name one service of a snapshot."""
    return re.sub(r"^(?:supervisor:|user:(?:[^/]{1,65}/)?)", "", unit).removesuffix(".service")


def _called(candidate: Candidate) -> str:
    """What ``--unit`` takes, a system's unit by its plain name; what WHERE takes of a container."""
    if _is_container(candidate):
        return f"{candidate.kind.partition(' ')[0]}:{candidate.name}"
    return candidate.selector or candidate.name


def _is_container(candidate: Candidate) -> bool:
    return candidate.kind.endswith(" container")
