"""Collects from many nodes: a snapshot for each, kept as it comes, whatever becomes of the others."""

from __future__ import annotations

import datetime
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gpuwhy import __version__
from gpuwhy.collector.bundle import program
from gpuwhy.collector.framing import LONG_LINE, MARK
from gpuwhy.fleet.answers import Answers, read_answers
from gpuwhy.fleet.engines.interface import Ended, Engine, FleetError, Pace, Payload
from gpuwhy.fleet.store import FAILED, OK, PARTIAL, WITH_SNAPSHOT, Node, Store
from gpuwhy.snapshot import Snapshot
from gpuwhy.snapshot.collecting import CLOSING, JOURNAL_VARIABLE
from gpuwhy.snapshot.containers import arranged
from gpuwhy.snapshot.document import Subject
from gpuwhy.targets.pipe import SHELL_LINE, framed, shell_line

OnNode = Callable[[str, "Node | None"], None]
"""Is told of a node that is begun (None), and again, with its row, when it is done with."""


class Asked(msgspec.Struct, frozen=True):
    """What every node is asked: the unit, and the seconds that its probes and all of it are given."""

    unit: str = ""
    deadline: float = 8.0
    timeout: float = 30.0
    sudo: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """What a run did: how many nodes it was for, how many of them had been collected before, and the counts by status."""

    nodes: int
    kept: int
    counts: dict[str, int]


def collect_fleet(
    engine: Engine,
    store: Store,
    asked: Asked,
    pace: Pace,
    resume: bool = False,
    on_node: OnNode | None = None,
    nodes: Sequence[str] | None = None,
) -> Outcome:
    """Collects ``nodes`` (all that ``engine`` names by default); with ``resume`` only those that are not whole in ``store``.

    Raises FleetError where the engine fails as a whole, and where the folder holds a fleet already and ``resume`` is not
    set; StoreError where it cannot be written. What came until then is in the store.
    """
    wanted = list(nodes if nodes is not None else engine.nodes())
    if not wanted:
        raise FleetError(f"{engine.name} names no nodes", "Name them: gpuwhy fleet collect 'gpu[001-064]' -o FOLDER")
    before = {node.name: node for node in store.nodes()}
    if before and not resume:
        raise FleetError(
            f"{store.folder} holds {len(before)} nodes already",
            "--resume collects those that are missing or failed; or name another folder",
        )
    whole = {name for name, node in before.items() if node.status == OK}
    missing = [name for name in wanted if name not in whole]
    store.note_run(_described(engine, asked, wanted, started=_now()))
    keeper = _Keeper(engine.name, store, asked, before, on_node)
    for name in wanted:
        if on_node is not None and name in whole:
            on_node(name, before[name])
    if missing:
        engine.run(missing, payload(asked, engine.name), pace, keeper)
    store.note_run({"ended": _now()})
    return Outcome(len(wanted), len(wanted) - len(missing), keeper.counts)


def payload(asked: Asked, engine: str) -> Payload:
    """The collector with one request behind it, to be asked once."""
    life = asked.timeout + CLOSING
    request: dict[str, Any] = {
        "is_once": True,
        # of a short time a part is kept for the way, as for a single host
        "deadline": round(min(asked.deadline, asked.timeout * 0.75), 3),
        "life": round(life, 3),
        "shell": SHELL_LINE,
    }
    if asked.unit:
        request["unit"] = asked.unit
    if engine != "slurm":
        request["line"] = LONG_LINE
    if engine == "ray":
        request["is_ray_node"] = True
    if os.environ.get(JOURNAL_VARIABLE):
        request["journal_directory"] = os.environ[JOURNAL_VARIABLE]
    # "life" begins with the collector; the alarm before it, when the node has not even received its text
    line = shell_line(asked.sudo, math.ceil(life))
    return Payload(line, framed(program()) + msgspec.json.encode(request) + b"\n", asked.timeout)


_KINDS = {"clustershell": "ssh"}
"""The kind of target that a node of an engine is; of the others it is called as the engine."""


_MALFORMED = "its answers do not have the form of a collector's"


class _Keeper:
    """Writes a row and a snapshot for each node that ended."""

    def __init__(
        self, engine: str, store: Store, asked: Asked, before: dict[str, Node], on_node: OnNode | None
    ) -> None:
        self.counts: dict[str, int] = {}
        self._engine, self._store, self._asked, self._before, self._on_node = engine, store, asked, before, on_node
        self._begun: dict[str, float] = {}

    def started(self, node: str) -> None:
        self._begun[node] = time.time()
        if self._on_node is not None:
            self._on_node(node, None)

    def ended(self, ended: Ended) -> None:
        now = time.time()
        begun = self._begun.pop(ended.node, now)
        answers = read_answers(ended.output)
        snapshot = _snapshot(ended.node, self._engine, self._asked, answers, begun, now)
        status, reason = judged(ended, answers)
        if snapshot is None and status in WITH_SNAPSHOT:
            status, reason = FAILED, _MALFORMED
        row = Node(
            name=ended.node,
            status=status,
            reason=reason,
            seconds=round(now - begun, 3),
            bytes=len(ended.output),
            collected_at=_now(),
            engine=self._engine,
            unit=self._asked.unit,
        )
        earlier = self._before.get(ended.node)
        if snapshot is None and earlier is not None and earlier.file:
            # half a snapshot of before is worth more than nothing
            row = msgspec.structs.replace(earlier, reason=f"{earlier.reason}; later: {status}, {reason}"[:1000])
            self._store.note(row)
        else:
            row = self._store.keep(row, snapshot)
        self.counts[row.status] = self.counts.get(row.status, 0) + 1
        if self._on_node is not None:
            self._on_node(ended.node, row)


def judged(ended: Ended, answers: Answers) -> tuple[str, str]:
    """The status of a node and the reason for it, from what it sent and what the engine says about it."""
    if answers.is_whole and answers.results:
        return OK, ""
    if answers.results:
        came = f"{len(answers.results)} probes came, not the end of them"
        return PARTIAL, f"{came}: {ended.reason}" if ended.reason else came
    if ended.status != OK:
        return ended.status, ended.reason
    if MARK in ended.output:
        return FAILED, _MALFORMED
    said = " ".join(ended.output[:300].decode("utf-8", "replace").split())
    return FAILED, f"it sent nothing of the collector's{f', but: {said}' if said else ''}"


def _snapshot(node: str, engine: str, asked: Asked, answers: Answers, begun: float, ended: float) -> Snapshot | None:
    """What came, as a snapshot; secrets were taken out on the node, and will be once more by whoever reads the file."""
    if not answers.results:
        return None
    document = {
        "gpuwhy_version": __version__,
        "target": msgspec.to_builtins(Subject(_KINDS.get(engine, engine), node, asked.unit)),
        "started": round(begun, 3),
        "duration": round(ended - begun, 3),
        "is_complete": answers.is_whole,
        "probes": arranged(answers.results),
        "redacted": answers.end.get("redacted") or {},
        "target_python": str(answers.end.get("python") or ""),
    }
    try:
        return msgspec.convert(document, Snapshot)
    except (msgspec.ValidationError, RecursionError):
        return None


def _described(engine: Engine, asked: Asked, wanted: Sequence[str], started: str) -> dict[str, str]:
    return {
        "engine": engine.name,
        "nodes": msgspec.json.encode(wanted).decode(),
        "unit": asked.unit,
        "started": started,
        "ended": "",
        "gpuwhy_version": __version__,
    }


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
