"""From a folder of snapshots to the report: who is alike, who is not, and what that causes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpuwhy import __version__
from gpuwhy.fleet.columns import Columns
from gpuwhy.fleet.gathering import Workers, first_of_each, judge_file, read_node, workers
from gpuwhy.fleet.grouping import Compared, compare_pool, pools
from gpuwhy.fleet.jobs import Failed, failure_of_node, jobs
from gpuwhy.fleet.judging import Judged
from gpuwhy.fleet.keeping import keep
from gpuwhy.fleet.outliers import counted, ranked
from gpuwhy.fleet.store import Node, Store
from gpuwhy.investigate.change_kinds import kind_of
from gpuwhy.model.fleet import FleetReport, Mixed, NotCollected, Outlier, Pool, Unseen, UsualFact

OnCount = Callable[[str, int, int], None]
"""Told what is done (``read``, ``judged``), how many of them, and out of how many."""

MOST_KEYS = 400
"""Facts of one reason that are listed: a probe that failed leaves hundreds."""


def analyse(folder: str | Path, on_count: OnCount | None = None, processes: int = 0) -> FleetReport:
    """Groups and judges every snapshot of ``folder``, and keeps the answer in its index for ``gpuwhy fleet query``.

    ``processes`` is how many work at once at most, by default one for each processor, up to four.
    Raises :class:`gpuwhy.fleet.store.StoreError` when it is no folder of a fleet.
    """
    tell = on_count or (lambda *_: None)
    with Store(folder) as store:
        rows = store.nodes()
        with_file = [row for row in rows if row.file]
        paths = [str(store.folder / row.file) for row in with_file]
        with workers(len(with_file), processes) as spread:
            columns, numbers, damaged = _read(spread, with_file, paths, tell)
            judged = _judged(spread, columns, [paths[at] for at in numbers], tell)
            failing = [node for node, each in judged.items() if each.is_failure]
            failures = _failures(spread, columns, [paths[at] for at in numbers], failing)
        report = _report(str(folder), store, rows, columns, judged, failures, damaged)
        keep(store, columns, judged, report)
    return report


def _read(
    spread: Workers, rows: list[Node], paths: list[str], tell: OnCount
) -> tuple[Columns, list[int], list[tuple[Node, str]]]:
    """The facts of all nodes; for each number of a node the place of its row; and the rows that cannot be read."""
    columns = Columns()
    numbers: list[int] = []
    damaged: list[tuple[Node, str]] = []
    asked = [(row.name, path) for row, path in zip(rows, paths, strict=True)]
    for at, facts in enumerate(spread.each(read_node, asked)):
        if isinstance(facts, str):
            damaged.append((rows[at], facts))
        else:
            columns.add(facts)
            numbers.append(at)
        tell("read", at + 1, len(rows))
    columns.close()
    return columns, numbers, damaged


def _judged(spread: Workers, columns: Columns, paths: list[str], tell: OnCount) -> dict[int, Judged]:
    """What is found on each node; hosts that are equal in all that matters are judged once."""
    first = first_of_each(enumerate(columns.judged_as))
    answers: dict[str, Judged] = {}
    judging = spread.each(judge_file, [paths[node] for node in first.values()])
    for at, (key, answer) in enumerate(zip(first, judging, strict=True), 1):
        answers[key] = answer
        tell("judged", at, len(first))
    return {node: answers[key] for node, key in enumerate(columns.judged_as)}


def _failures(spread: Workers, columns: Columns, paths: list[str], failing: list[int]) -> list[Failed]:
    asked = [(columns.names[node], paths[node]) for node in failing]
    return [each for each in spread.each(failure_of_node, asked) if each is not None]


def _report(
    folder: str,
    store: Store,
    rows: list[Node],
    columns: Columns,
    judged: dict[int, Judged],
    failures: list[Failed],
    damaged: list[tuple[Node, str]],
) -> FleetReport:
    compared = [compare_pool(columns, members) for members in pools(columns)]
    found: list[Pool] = []
    outliers: list[Outlier] = []
    for each in compared:
        order = ranked(each, columns.names, judged)
        outliers += order.outliers
        found.append(
            Pool(
                name=each.members.name,
                nodes=len(each.members.nodes),
                alike=order.alike,
                groups=order.groups,
                usual=tuple(
                    UsualFact(key, kind_of(key).name, value, nodes) for key, (value, nodes) in each.usual.items()
                ),
                mixed=tuple(Mixed(key, kind_of(key).name, len(values), values) for key, values in each.mixed.items()),
                unseen=_unseen(each, columns),
            )
        )
    by_name = {name: judged[node].findings for node, name in enumerate(columns.names)}
    return FleetReport(
        folder=folder,
        nodes=len(rows),
        compared=len(columns.names),
        failing=sum(each.is_failure for each in judged.values()),
        judged=len(set(columns.judged_as)),
        facts=len(columns.values),
        pools=tuple(found),
        outliers=tuple(sorted(outliers, key=lambda each: (-each.score, each.nodes))),
        not_collected=_not_collected(rows, damaged),
        jobs=tuple(jobs(failures, lambda names: counted(by_name[name] for name in names))),
        notes=tuple(_notes(store, columns, judged)),
    )


def _unseen(compared: Compared, columns: Columns) -> tuple[Unseen, ...]:
    found = [
        Unseen(why, tuple(columns.names[node] for node in nodes), tuple(sorted(keys)[:MOST_KEYS]))
        for (why, nodes), keys in compared.unseen.items()
    ]
    return tuple(sorted(found, key=lambda each: (-len(each.keys), each.nodes)))


def _not_collected(rows: list[Node], damaged: list[tuple[Node, str]]) -> tuple[NotCollected, ...]:
    by_reason: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if not row.file:
            by_reason.setdefault((row.status, row.reason.replace(row.name, "NODE")), []).append(row.name)
    for row, why in damaged:
        by_reason.setdefault(("damaged", why.replace(row.file, "FILE")), []).append(row.name)
    ordered = sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(NotCollected(status, reason, tuple(names)) for (status, reason), names in ordered)


def _notes(store: Store, columns: Columns, judged: dict[int, Judged]) -> list[str]:
    run = store.run()
    notes = []
    if run.get("gpuwhy_version", __version__) != __version__:
        notes.append(f"collected by gpuwhy {run['gpuwhy_version']}, analysed by {__version__}")
    faults: dict[str, list[str]] = {}
    for node, each in judged.items():
        if each.fault:
            faults.setdefault(each.fault, []).append(columns.names[node])
    notes += [
        f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}: {fault}" for fault, names in faults.items()
    ]
    return notes
