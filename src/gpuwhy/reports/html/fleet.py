"""A fleet as a page: groups of nodes against the facts in which they differ, then each outlier with what it causes."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy.model.fleet import FleetReport, Outlier, Pool
from gpuwhy.reports.counting import counted
from gpuwhy.reports.fleet import after, common, finding_line, headline, moment, pool_line
from gpuwhy.reports.fleet_names import folded
from gpuwhy.reports.html.page import written

MOST_COLUMNS, MOST_ROWS, MOST_OUTLIERS, MOST_USUAL = 16, 60, 100, 400


class Column(msgspec.Struct, frozen=True):
    """A fact in which nodes differ."""

    key: str
    kind: str
    usual: str


class Row(msgspec.Struct, frozen=True):
    """A group of nodes: for each column the value that deviates, "" where it is the usual one."""

    nodes: str
    count: int
    is_majority: bool
    cells: tuple[str, ...]
    findings: tuple[str, ...]
    more: int


class Matrix(msgspec.Struct, frozen=True):
    """The groups of a pool against the facts that set them apart, the most suspicious on the left."""

    pool: Pool
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    columns_left_out: int
    rows_left_out: int


class ShownOutlier(msgspec.Struct, frozen=True):
    """An outlier, its nodes in a line and its findings in words."""

    outlier: Outlier
    nodes: str
    findings: tuple[str, ...]


def render(report: FleetReport) -> str:
    """The page."""
    matrices = tuple(_matrix(report, pool) for pool in report.pools)
    outliers = tuple(
        ShownOutlier(each, folded(each.nodes, 24), tuple(map(finding_line, each.findings)))
        for each in report.outliers[:MOST_OUTLIERS]
    )
    shared = common(report)
    sections = {
        "matrix": ("Groups", matrices),
        "outliers": ("Outliers", outliers),
        "shared": ("Found on the majority", shared),
        "job": ("Failed together", report.jobs),
        "missing": ("Without a snapshot", report.not_collected),
        "open": ("Without a majority, or not seen", any(pool.mixed or pool.unseen for pool in report.pools)),
        "usual": ("What the majority has", any(pool.usual for pool in report.pools)),
    }
    context: dict[str, Any] = {
        "headline": headline(report),
        "level": _level(report),
        "shared": tuple((pool.name, pool.alike, tuple(map(finding_line, findings))) for pool, findings in shared),
        "remark": f"{counted(report.nodes, 'node')}, {report.compared:,} with a snapshot, {report.failing:,} with a failure in their logs; {counted(report.facts, 'fact')} compared; {counted(report.judged, 'different host')} judged.",
        "matrices": matrices,
        "outliers": outliers,
        "outliers_left_out": max(0, len(report.outliers) - MOST_OUTLIERS),
        "report": report,
        "folded": folded,
        "moment": moment,
        "after": after,
        "finding_line": finding_line,
        "most_usual": MOST_USUAL,
    }  # fmt: skip
    shown = tuple((anchor, title) for anchor, (title, content) in sections.items() if content)
    return written("fleet.html.jinja", subject=report.folder, sections=shown, **context)


def _level(report: FleetReport) -> str:
    """How bad it is, as the style sheet calls it."""
    if not report.compared:
        return "unknown"
    found = [*(each.findings for each in report.outliers), *(findings for _, findings in common(report))]
    if any(finding.certainty != "possible" for findings in found for finding in findings):
        return "likely"
    return "possible" if report.outliers or any(found) else "fine"


def _matrix(report: FleetReport, pool: Pool) -> Matrix:
    of_pool = [each for each in report.outliers if each.pool == pool.name]
    columns: dict[str, Column] = {}
    value_of: dict[str, dict[str, str]] = {}
    for outlier in of_pool:
        for each in outlier.deviations:
            columns.setdefault(each.key, Column(each.key, each.kind, each.usual))
            for node in outlier.nodes:
                value_of.setdefault(node, {})[each.key] = each.value
    shown = tuple(columns.values())[:MOST_COLUMNS]
    rows = []
    for group in pool.groups[:MOST_ROWS]:
        values = value_of.get(group.nodes[0], {})
        cells = tuple(values.get(column.key, "") for column in shown)
        told = tuple(dict.fromkeys(f"{each.certainty} {each.cause}" for each in group.findings))[:4]
        more = len(values.keys() - {column.key for column in shown})
        rows.append(Row(folded(group.nodes, 8), len(group.nodes), group.is_majority, cells, told, more))
    return Matrix(
        pool, pool_line(pool), shown, tuple(rows), len(columns) - len(shown), max(0, len(pool.groups) - MOST_ROWS)
    )
