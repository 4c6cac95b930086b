"""The answer of an analysis as tables of the fleet's index, for ``gpuwhy fleet query``; see docs/fleet-report.md."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from gpuwhy.fleet.columns import NOT_THERE, Columns
from gpuwhy.fleet.judging import Judged
from gpuwhy.fleet.store import Store, StoreError
from gpuwhy.investigate.change_kinds import kind_of
from gpuwhy.model.fleet import FleetReport

TABLES = ("value", "node_value", "pool", "member", "deviation", "finding", "failure")
_SCHEMA = """
DROP VIEW IF EXISTS fact;
DROP TABLE IF EXISTS value; DROP TABLE IF EXISTS node_value; DROP TABLE IF EXISTS pool; DROP TABLE IF EXISTS member;
DROP TABLE IF EXISTS deviation; DROP TABLE IF EXISTS finding; DROP TABLE IF EXISTS failure;
CREATE TABLE value (id INTEGER PRIMARY KEY, key TEXT, kind TEXT, value TEXT);
CREATE TABLE node_value (value INTEGER, node TEXT, PRIMARY KEY (value, node)) WITHOUT ROWID;
CREATE TABLE pool (name TEXT PRIMARY KEY, nodes INTEGER, alike INTEGER);
CREATE TABLE member (node TEXT PRIMARY KEY, pool TEXT, "group" INTEGER, is_majority INTEGER);
CREATE TABLE deviation (
    rank INTEGER, node TEXT, pool TEXT, key TEXT, kind TEXT, value TEXT, usual TEXT, is_suspected INTEGER, score REAL);
CREATE TABLE finding (node TEXT, source TEXT, cause TEXT, component TEXT, certainty TEXT, title TEXT, do TEXT);
CREATE TABLE failure (job INTEGER, "order" INTEGER, node TEXT, unit TEXT, time REAL, text TEXT, place TEXT);
CREATE VIEW fact AS SELECT node_value.node AS node, value.key AS key, value.kind AS kind, value.value AS value
    FROM value JOIN node_value ON node_value.value = value.id;
"""

ANALYSED = "analysed"
"""Key of the table ``run``: of which state of the folder the tables speak."""


def keep(store: Store, columns: Columns, judged: Mapping[int, Judged], report: FleetReport) -> None:
    """Writes the tables anew, all or none of them. Raises StoreError."""
    connection = store.connection
    connection.isolation_level = None
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            _fill(connection, columns, judged, report)
            connection.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (ANALYSED, state_of(store)))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    except sqlite3.Error as error:
        raise StoreError(f"{store.folder} cannot keep the analysis: {error}") from error


def state_of(store: Store) -> str:
    """What changes with every collection: how many rows there are, and the last of their times."""
    count, last, size = store.connection.execute("SELECT count(*), max(collected_at), sum(bytes) FROM node").fetchone()
    return f"{count} {last} {size}"


def _fill(connection: sqlite3.Connection, columns: Columns, judged: Mapping[int, Judged], report: FleetReport) -> None:
    names = columns.names
    identity = 0
    for key, values in columns.values.items():
        kind = kind_of(key).name
        for value, nodes in values.items():
            identity += 1
            known = None if value == NOT_THERE else value
            connection.execute("INSERT INTO value VALUES (?, ?, ?, ?)", (identity, key, kind, known))
            rows = sorted((identity, names[node]) for node in nodes)
            connection.executemany("INSERT OR IGNORE INTO node_value VALUES (?, ?)", rows)
    connection.executemany("INSERT OR REPLACE INTO pool VALUES (?, ?, ?)", [(each.name, each.nodes, each.alike) for each in report.pools])  # fmt: skip
    connection.executemany("INSERT OR REPLACE INTO member VALUES (?, ?, ?, ?)", _members(report))
    connection.executemany("INSERT INTO deviation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _deviations(report))
    connection.executemany("INSERT INTO finding VALUES (?, ?, ?, ?, ?, ?, ?)", _findings(names, judged))
    connection.executemany("INSERT INTO failure VALUES (?, ?, ?, ?, ?, ?, ?)", _failures(report))


def _members(report: FleetReport) -> Iterator[tuple[str, str, int, int]]:
    for pool in report.pools:
        for group in pool.groups:
            yield from ((node, pool.name, group.number, int(group.is_majority)) for node in group.nodes)


def _deviations(report: FleetReport) -> Iterator[tuple[object, ...]]:
    for rank, outlier in enumerate(report.outliers, 1):
        for each in outlier.deviations:
            for node in outlier.nodes:
                yield rank, node, outlier.pool, each.key, each.kind, each.value, each.usual, int(each.is_suspected), each.score  # fmt: skip


def _findings(names: Sequence[str], judged: Mapping[int, Judged]) -> Iterator[tuple[str, ...]]:
    for node, answer in judged.items():
        for each in answer.findings:
            yield names[node], each.source, each.cause, each.component, each.certainty, each.title, each.do


def _failures(report: FleetReport) -> Iterator[tuple[object, ...]]:
    for number, job in enumerate(report.jobs, 1):
        for order, each in enumerate((job.first, *job.followed), 1):
            yield number, order, each.node, job.unit, each.time, each.text, each.place
