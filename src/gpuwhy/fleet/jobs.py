"""One failed job over many nodes: the logs of all of them as one incident, with the node that failed first.

Nodes belong to one failure when they fail one after the other, with no more between two than a watchdog of a
collective waits. Their clocks are compared by lines that two of them share, as those of several logs of one host are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from gpuwhy.logs import several
from gpuwhy.model.event import Event, Log
from gpuwhy.model.fleet import FleetFinding, JobFailure, RankFailure
from gpuwhy.snapshot import Snapshot, SnapshotError, read

WATCHDOG = 32 * 60.0
"""Seconds: PyTorch's collectives wait 10 minutes by default and engines raise that to 30."""
TOGETHER = 24
"""Nodes whose logs are laid side by side: those that failed first. Of the others the time by their own clock is enough."""
SYNCHRONOUS = 2.0
"""Seconds by which clocks of hosts with NTP differ at most: within it the order needs a line that two of them share."""


_IDENTITY = re.compile(
    r"(?i)(?:rid|request|req|trace|span|cmpl|task|actor|worker|object|session|uuid)[\w ]{0,12}[-=:'\"( ]{1,4}(?=[0-9a-f-]{0,64}\d)[0-9a-f-]{16,64}"
)
"""A line about one request, task or worker. Hashes of commits and of models stand in what every node says at its start."""


class Failed(msgspec.Struct, frozen=True):
    """One node's failure by its own clock; ``unit`` is the service that failed.

    ``points_elsewhere``: it says no more than that another node is gone. ``job`` is where the nodes of the job meet (an
    address, a job of Slurm), "" when nothing tells.
    """

    node: str
    path: str
    unit: str
    time: float | None
    text: str
    place: str
    points_elsewhere: bool = False
    job: str = ""


def failure_of_node(asked: tuple[str, str]) -> Failed | None:
    """The failure in the snapshot of a node (its name, its file); None when its logs show none."""
    from gpuwhy.logs import find_incidents

    name, path = asked
    try:
        snapshot = read(path)
    except SnapshotError:
        return None
    unit = _unit(snapshot)
    incident = find_incidents(_logs(snapshot, unit), unit)
    primary = incident.primary_event
    if primary is None:
        return None
    time = primary.time if primary.time is not None else incident.ended
    text = primary.text.partition("\n")[0]
    return Failed(
        name, path, unit or incident.unit, time, text, str(primary.place), _points_elsewhere(primary), _job_of(snapshot)
    )


def _unit(snapshot: Snapshot) -> str:
    journal = snapshot.value("journal")
    return str(journal.get("unit", "")) if isinstance(journal, dict) else snapshot.target.unit


def _logs(snapshot: Snapshot, unit: str) -> list[Log]:
    from gpuwhy.investigate.collected_logs import collected_logs
    from gpuwhy.investigate.log_files import log_files

    return [*collected_logs(snapshot, unit), *log_files(snapshot)]


_MEETING = re.compile(r"--(?:dist-init-addr|nccl-init-addr|master[-_]addr|rdzv[-_]endpoint|data-parallel-address|ray-address|leader-addr)(?:ess)?[ =](\S{1,200})")  # fmt: skip
_OF_JOBS = (
    "SLURM_JOB_ID",
    "MASTER_ADDR",
    "RAY_ADDRESS",
    "VLLM_DP_MASTER_IP",
    "LWS_LEADER_ADDRESS",
    "TORCHELASTIC_RUN_ID",
)


def _job_of(snapshot: Snapshot) -> str:
    """By what the nodes of one job know each other: the same text on all of them."""
    environment, unit, process = (snapshot.value(name) for name in ("environment", "unit", "process"))
    variables = environment.get("variables") if isinstance(environment, dict) else None
    found = (
        [f"{name}={variables[name]}" for name in _OF_JOBS if variables.get(name)] if isinstance(variables, dict) else []
    )
    commands = [*(unit.get("commands") or ()), ()] if isinstance(unit, dict) else []
    commands += [process.get("command") or ()] if isinstance(process, dict) else []
    for command in commands:
        found += _MEETING.findall(" ".join(map(str, command))[:20_000])
    return found[0] if found else ""


_ELSEWHERE = ("connection closed by", "connection reset by peer", "remote process exited", "socket timeout", "watchdog caught collective", "timed out after", "another rank", "other rank", "peer may have", "ncclremoteerror", "remote error", "broken pipe", "worker died", "actor died", "actordiederror", "node died", "heartbeat", "tcpstore")  # fmt: skip


def _points_elsewhere(event: Event) -> bool:
    """Whether the failure is of a kind that another node's death brings about: then it cannot be the first."""
    text = event.text[:2000].lower()
    return event.is_echo or any(each in text for each in _ELSEWHERE)


def jobs(failures: Iterable[Failed], findings_of: Callable[[Sequence[str]], list[FleetFinding]]) -> list[JobFailure]:
    """Failures of at least two nodes that belong together, the latest first.

    Nodes that nothing ties to one job are one only where one of them says that another is gone: services that fail of
    the same fault, each by itself, have no first.
    """
    by_job: dict[tuple[str, str], list[Failed]] = {}
    for each in failures:
        if each.time is not None:
            by_job.setdefault((each.unit, each.job), []).append(each)
    found = [
        _job(unit, members, findings_of)
        for (unit, job), failed in by_job.items()
        for members in _together(failed)
        if len(members) > 1 and (job or any(each.points_elsewhere for each in members))
    ]
    return sorted(found, key=lambda each: -(each.first.time or 0.0))


def _together(failed: list[Failed]) -> list[list[Failed]]:
    ordered = sorted(failed, key=lambda each: (each.time or 0.0, each.node))
    clusters: list[list[Failed]] = []
    for each in ordered:
        last = clusters[-1][-1].time if clusters else None
        if last is not None and each.time is not None and each.time - last <= WATCHDOG:
            clusters[-1].append(each)
        else:
            clusters.append([each])
    return clusters


def _job(unit: str, members: list[Failed], findings_of: Callable[[Sequence[str]], list[FleetFinding]]) -> JobFailure:
    moved, compared = _clocks(members[:TOGETHER])
    ranks = sorted(
        ((each, (each.time or 0.0) + moved.get(each.node, 0.0)) for each in members),
        key=lambda item: (item[1], item[0].node),
    )
    first, when = _first(ranks)
    others = [(each, time) for each, time in ranks if each is not first]
    runner_up = others[0][1]
    is_close = abs(runner_up - when) < SYNCHRONOUS and not others[0][0].points_elsewhere
    is_sure = not is_close or {first.node, others[0][0].node} <= compared
    notes = []
    if ranks[0][0] is not first:
        notes.append(f"{ranks[0][0].node} complains earlier, but only of the end of another node")
    if len(members) > TOGETHER:
        notes.append(
            f"the clocks of the {TOGETHER} nodes that failed first were compared, not those of all {len(members)}"
        )
    return JobFailure(
        unit=unit,
        nodes=len(members),
        first=_rank(first, when, moved),
        followed=tuple(_rank(each, time, moved) for each, time in others),
        findings=tuple(findings_of([first.node])),
        is_sure=is_sure,
        notes=tuple(notes),
    )


def _first(ranks: list[tuple[Failed, float]]) -> tuple[Failed, float]:
    """The earliest that does not point at another node; when all do, the earliest."""
    return next((each for each in ranks if not each[0].points_elsewhere), ranks[0])


def _rank(failed: Failed, time: float, moved: dict[str, float]) -> RankFailure:
    return RankFailure(failed.node, failed.text[:400], time, failed.place, round(moved.get(failed.node, 0.0), 3))


def _clocks(members: list[Failed]) -> tuple[dict[str, float], set[str]]:
    """By how many seconds the clock of each node is off that of the others, and the nodes that could be compared."""
    logs: list[Log] = []
    for each in members:
        try:
            snapshot = read(each.path)
        except SnapshotError:
            continue
        lines = [line for log in _logs(snapshot, each.unit) if log.kind != "kernel log" for line in log.lines]
        # what every node says when it starts is the same text at another moment; a request's or a worker's id is one thing
        telling = (line for line in lines if line.time is not None and _IDENTITY.search(line.text[:2000]))
        logs.append(Log(each.node, "log", tuple(sorted(telling, key=lambda line: line.time or 0.0))))
    aligned = {log.name: log for log in several.joined(logs)}
    moved: dict[str, float] = {}
    for log in logs:
        pairs = zip(log.lines, aligned[log.name].lines, strict=True)
        offset = next(((new.time or 0.0) - (old.time or 0.0) for old, new in pairs if old.time is not None), 0.0)
        if abs(offset) > several.TOLERANCE:
            moved[log.name] = offset
    return moved, _comparable(logs)


def _comparable(logs: Sequence[Log]) -> set[str]:
    """The nodes of which another one repeats a line."""
    saying: dict[str, set[str]] = {}
    for log in logs:
        for line in log.lines:
            if len(line.text) >= several.SHORTEST_SHARED:
                saying.setdefault(line.text, set()).add(log.name)
    return {node for nodes in saying.values() if len(nodes) > 1 for node in nodes}
