"""Questions in SQL: they read, and nothing else."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fleet.generating import FAULTS, Planted, generate

from gpuwhy.cli.fleet import command
from gpuwhy.fleet.analysing import analyse
from gpuwhy.fleet.query import QueryError, is_analysed, query
from gpuwhy.fleet.store import INDEX, Node, Store, StoreError
from gpuwhy.reports.fleet_query import shown


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fleet")
    generate(
        place, 5, 1, [Planted(next(each for each in FAULTS if each.name == "other kernel"), ("gpu00003",))], crashes=1
    )
    analyse(place)
    return place


def test_facts_findings_and_deviations_are_tables(folder: Path) -> None:
    assert query(folder, "SELECT node, value FROM fact WHERE key = 'kernel_release' AND value LIKE '%-55-%'").rows == (
        ("gpu00003", "6.8.0-55-generic"),
    )
    assert query(folder, "SELECT node, key, usual FROM deviation WHERE kind = 'kernel'").rows == (
        ("gpu00003", "kernel_release", "6.8.0-79-generic"),
    )
    assert query(folder, "SELECT nodes, alike FROM pool").rows == ((5, 3),)
    assert query(folder, "SELECT count(*) FROM member WHERE is_majority").rows == ((3,),)
    assert query(folder, "SELECT count(DISTINCT node) FROM finding WHERE cause = 'ptx-newer-than-driver'").rows == (
        (1,),
    )


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM node",
        "DROP TABLE node",
        "INSERT INTO run VALUES ('a', 'b')",
        "ATTACH DATABASE '/tmp/gpuwhy-never' AS other",
        "PRAGMA journal_mode = WAL",
        "PRAGMA query_only = 0",
        "SELECT load_extension('/tmp/x.so')",
        "CREATE TEMP TABLE x AS SELECT 1",
        "VACUUM INTO '/tmp/gpuwhy-never'",
        "SELECT 1; DELETE FROM node",
        "BEGIN IMMEDIATE",
        "",
    ],
)
def test_nothing_but_questions_is_answered(folder: Path, sql: str) -> None:
    before = (folder / INDEX).read_bytes()
    with pytest.raises(QueryError):
        query(folder, sql)
    assert (folder / INDEX).read_bytes() == before
    assert not Path("/tmp/gpuwhy-never").exists()


def test_a_question_without_end_is_ended(folder: Path) -> None:
    with pytest.raises(QueryError, match=r"no answer within 0\.3 s"):
        query(folder, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c", seconds=0.3)  # fmt: skip


def test_a_wrong_name_is_answered_with_the_right_ones(folder: Path) -> None:
    with pytest.raises(QueryError, match="no such table: facts; the tables are in"):
        query(folder, "SELECT * FROM facts")


def test_rows_beyond_the_limit_are_cut_and_it_is_said(folder: Path) -> None:
    answer = query(folder, "SELECT * FROM fact", most=3)
    assert (len(answer.rows), answer.is_cut) == (3, True)


def test_table_csv_and_json_hold_the_same(folder: Path) -> None:
    sql = "SELECT node, 1.5 AS n, NULL AS missing, node FROM member ORDER BY 1 LIMIT 2"
    answer = query(folder, sql)
    table = shown(answer.columns, answer.rows, "table")
    assert table.splitlines()[0].split() == ["node", "n", "missing", "node"]
    assert "gpu00002" in table
    read = list(csv.reader(io.StringIO(shown(answer.columns, answer.rows, "csv"))))
    assert read[1] == ["gpu00001", "1.5", "", "gpu00001"]
    first = json.loads(shown(answer.columns, answer.rows, "json"))[0]
    assert first == {"node": "gpu00001", "n": 1.5, "missing": None, "node_2": "gpu00001"}


def test_control_characters_of_a_host_reach_no_terminal() -> None:
    for form in ("table", "csv", "json"):
        assert "\x1b" not in shown(["a"], [["\x1b[2J"]], form)


def test_what_was_collected_since_is_analysed_first(folder: Path, tmp_path: Path) -> None:
    generate(tmp_path, 3, 1)
    assert not is_analysed(tmp_path)
    done = CliRunner().invoke(command, ["query", str(tmp_path), "SELECT alike FROM pool"])
    assert done.output.splitlines()[-1] == "    3"
    assert is_analysed(tmp_path)
    with Store(tmp_path) as store:
        store.keep(Node(name="gpu9", status="refused", reason="x", collected_at="2099-01-01T00:00:00Z"))
    assert not is_analysed(tmp_path)


def test_what_is_no_fleet_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no folder of a fleet"):
        query(tmp_path, "SELECT 1")
    done = CliRunner().invoke(command, ["query", str(tmp_path), "SELECT 1"])
    assert done.exit_code == 2
