"""A fleet in which a few nodes deviate: they are named first, with what it causes; harmless differences are not named."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
from pathlib import Path

import jsonschema
import pytest
from benchmarks.bench_fleet_analysis import found
from tests.fleet import generating
from tests.fleet.generating import FAULTS, HARMLESS, Fault, Planted, generate, names, plan

from gpuwhy.fleet.analysing import analyse
from gpuwhy.fleet.gathering import workers
from gpuwhy.fleet.store import Node, Store, StoreError
from gpuwhy.model.fleet import FleetReport
from gpuwhy.reports import Detail, render
from gpuwhy.reports.fleet import sentence
from gpuwhy.reports.formats import names_for
from gpuwhy.snapshot import Probe, Snapshot

SCHEMA = Path(__file__).parents[2] / "docs" / "fleet.schema.json"


def fault(name: str) -> Fault:
    return next(each for each in FAULTS if each.name == name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fleet")
    planted = [
        Planted(fault("other toolkit"), ("gpu00009",)),
        Planted(fault("locked memory"), ("gpu00004", "gpu00017")),
    ]
    generate(place, 24, 7, planted, crashes=1)
    with Store(place) as store:
        store.keep(Node(name="gpu00099", status="unreachable", reason="gpu00099: no route to host"))
    (place / "nodes" / "gpu00002.gpuwhy").write_bytes(b"half of a snap")
    return place


@pytest.fixture(scope="module")
def report(folder: Path) -> FleetReport:
    return analyse(folder)


def test_there_are_fifty_harmless_differences_and_none_is_told(tmp_path: Path) -> None:
    assert len(HARMLESS) == 50
    generate(tmp_path, 12, 3)
    report = analyse(tmp_path)
    assert report.outliers == ()
    assert [(pool.nodes, pool.alike) for pool in report.pools] == [(12, 12)]
    assert report.judged == 1
    assert "12 of 12 alike; nobody deviates" in render(report, "text")


def test_the_nodes_that_deviate_are_named_with_the_value_of_the_others(report: FleetReport) -> None:
    by_nodes = {outlier.nodes: outlier for outlier in report.outliers}
    toolkit = next(each for each in by_nodes["gpu00009",].deviations if each.key == "toolkit_resolved.flashinfer")
    assert toolkit.value.startswith("12.4 (")
    assert toolkit.usual.startswith("13.0 (")
    assert toolkit.usual_nodes == 22
    memory = by_nodes["gpu00004", "gpu00017"].deviations[0]
    assert (memory.key, memory.value, memory.usual) == ("memlock", "65536", "unlimited")


def test_a_deviation_that_the_diagnosis_accuses_comes_first(report: FleetReport) -> None:
    first = report.outliers[0]
    assert first.deviations[0].kind == "driver"
    assert first.deviations[0].is_suspected
    assert any(each.source == "diagnose" and each.cause == "ptx-newer-than-driver" for each in first.findings)
    text = render(report, "text")
    assert text.startswith(f"19 of 23 alike; {first.nodes[0]}: driver")
    assert "570.86.15, not 580.95.05 as on 22" in text


def test_equal_hosts_are_judged_once(report: FleetReport) -> None:
    assert report.judged == 4, "the majority, and each of the three kinds of outliers"
    assert sum(len(group.nodes) for pool in report.pools for group in pool.groups) == report.compared == 23


def test_nodes_without_a_snapshot_are_rows_with_their_reason(report: FleetReport) -> None:
    missing = {each.nodes: each for each in report.not_collected}
    assert missing["gpu00099",].status == "unreachable"
    assert missing["gpu00002",].status == "damaged"
    assert "is no snapshot" in missing["gpu00002",].reason


def test_what_could_not_be_looked_at_is_no_difference(tmp_path: Path) -> None:
    generate(tmp_path, 6, 5)
    with Store(tmp_path) as store:
        node = store.nodes()[2]
        whole = store.snapshot(node)
        probes = tuple(
            Probe(name=each.name, status="denied", reason="not allowed") if each.name == "packages" else each
            for each in whole.probes
        )
        store.keep(node, Snapshot(target=whole.target, started=whole.started, probes=probes, gpuwhy_version=whole.gpuwhy_version))  # fmt: skip
    found_here = analyse(tmp_path)
    assert found_here.outliers == ()
    assert [(each.why, each.nodes) for each in found_here.pools[0].unseen] == [("not allowed (denied)", ("gpu00003",))]
    assert "packages.torch" in found_here.pools[0].unseen[0].keys


def test_nodes_with_other_gpus_are_a_pool_of_their_own_where_they_are_many(tmp_path: Path) -> None:
    many = [Planted(fault("other GPUs"), tuple(names(12)[:5]))]
    generate(tmp_path, 12, 5, many)
    found_here = analyse(tmp_path)
    assert sorted(pool.nodes for pool in found_here.pools) == [5, 7]
    assert found_here.outliers == ()


def test_a_fact_without_a_majority_is_told_and_accuses_nobody(tmp_path: Path) -> None:
    generate(tmp_path, 10, 5, [Planted(fault("other kernel"), tuple(names(10)[:5]))])
    found_here = analyse(tmp_path)
    assert found_here.outliers == ()
    assert [(each.key, each.distinct) for each in found_here.pools[0].mixed] == [("kernel_release", 2)]
    assert "kernel_release: 6.8.0-55-generic on 5, 6.8.0-79-generic on 5" in render(found_here, "text")


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_every_planted_deviation_is_among_the_first_ten(tmp_path: Path, seed: int) -> None:
    planted = plan(seed, names(32))
    generate(tmp_path, 32, seed, planted)
    report = analyse(tmp_path)
    assert [each.fault.name for each in planted if not found(report, each)] == []


def test_each_fault_shows_in_its_own_facts(tmp_path: Path) -> None:
    count = len(FAULTS)
    planted = [Planted(each, (name,)) for each, name in zip(FAULTS, names(count), strict=True)]
    generate(tmp_path, 2 * count, 1, planted)
    report = analyse(tmp_path)
    assert [each.fault.name for each in planted if not found(report, each, first=count)] == []
    assert sum(pool.alike for pool in report.pools) == count


def test_several_processes_answer_as_one_does(
    folder: Path, report: FleetReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuwhy.fleet.gathering.FEW", 4)
    assert analyse(folder, processes=2) == report


def test_the_document_is_as_its_schema_says(report: FleetReport) -> None:
    jsonschema.validate(json.loads(render(report, "json")), json.loads(SCHEMA.read_text()))


def test_every_format_shows_a_fleet(report: FleetReport) -> None:
    assert set(names_for("fleet")) == {"text", "json", "html", "markdown", "oneline", "junit", "prom", "sarif"}
    for form in names_for("fleet"):
        assert "gpu000" in render(report, form, Detail(verbose=True, is_private=True)) or form == "prom"


def test_an_issue_has_the_outliers_and_no_name_of_a_node(report: FleetReport) -> None:
    private = render(report, "markdown", Detail(is_private=True))
    assert "| `gpu00009` |" in private
    assert "`toolkits" in private or "`toolkit" in private
    assert "<summary>Without a snapshot</summary>" in private
    assert "no route to host" in private
    public = render(report, "markdown")
    assert "gpu0" not in public
    assert "`host-" in public
    assert len(public.splitlines()) == len(private.splitlines())


def test_the_first_line_tells_versions_apart_and_leaves_their_places_out(report: FleetReport) -> None:
    outlier = next(each for each in report.outliers if "gpu00009" in each.nodes)
    assert sentence(outlier).startswith("gpu00009: flashinfer's toolkit 12.4 (others 13.0)")


@pytest.mark.parametrize("width", [60, 80])
def test_the_report_follows_the_terminal(report: FleetReport, width: int) -> None:
    lines = render(report, "text", Detail(width=width)).splitlines()
    assert all(len(line) <= width or " " not in line.strip() for line in lines)
    assert "".join("".join(lines).split()) == "".join(render(report, "text", Detail(width=0)).split())


def test_the_page_has_the_matrix_of_groups_and_facts(report: FleetReport) -> None:
    page = render(report, "html")
    assert page.count('<th scope="row">') == 1 + len(report.pools[0].groups)
    assert "<code>memlock</code>" in page
    assert "http://" not in page


def test_text_of_a_host_is_harmless_in_every_format(tmp_path: Path) -> None:
    values = generating.base()
    evil = "\x1b[2J<script>alert(1)</script>\u202e"
    values["system"]["kernel"] = evil
    generate(tmp_path, 4, 1)
    with Store(tmp_path) as store:
        place = generating.Place("gpu00005", 4, random.Random(1))
        store.keep(Node(name=f"gpu{evil}5", status="ok"), generating.snapshot(values, place))
    report = analyse(tmp_path)
    assert any(each.key == "kernel_release" for outlier in report.outliers for each in outlier.deviations)
    for form in names_for("fleet"):
        shown = render(report, form, Detail(verbose=True))
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "<script>alert" not in render(report, "html")


def test_what_all_nodes_have_is_a_problem_and_marks_nobody(tmp_path: Path) -> None:
    generate(tmp_path, 4, 1, [Planted(fault("CUDA does not start"), tuple(names(4))), Planted(fault("older driver"), tuple(names(4)))])  # fmt: skip
    report = analyse(tmp_path)
    assert report.outliers == ()
    text = render(report, "text", Detail(width=0))
    assert text.startswith("4 of 4 alike; nobody deviates; ")
    assert "(proven, on 4)" in text.splitlines()[0]
    assert "found on the 4 nodes that are alike (NVIDIA H100 80GB HBM3, sglang):" in text
    page = render(report, "html")
    assert "Found on the majority" in page
    assert '<section class="answer likely"' in page


def test_what_is_no_fleet_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no folder of a fleet"):
        analyse(tmp_path)


def test_an_empty_fleet_has_nothing_to_compare(tmp_path: Path) -> None:
    with Store(tmp_path, create=True) as store:
        store.keep(Node(name="a", status="refused", reason="connection refused"))
    report = analyse(tmp_path)
    assert (report.compared, report.pools) == (0, ())
    assert render(report, "text").startswith("none of 1 node has a snapshot")


def _ends_a_worker(asked: int) -> int:
    """Ends a process that is not the test's own when it comes to the number 40."""
    if asked == 40 and multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return -asked


def test_a_worker_that_the_kernel_kills_costs_time_and_no_answer() -> None:
    with workers(100, 2) as spread:
        assert list(spread.each(_ends_a_worker, list(range(100)))) == [-each for each in range(100)]


def test_a_snapshot_of_any_shape_stops_no_other(tmp_path: Path) -> None:
    generate(tmp_path, 4, 1)
    junk: list[object] = [None, 5, "x", [], {}, [1], {"a": 1}, True, -1]
    with Store(tmp_path) as store:
        for seed in range(20):
            chance = random.Random(seed)
            values = generating.base()
            for name in chance.sample(sorted(values), 8):
                values[name] = chance.choice(junk)
            place = generating.Place(f"odd{seed}", seed, chance)
            store.keep(Node(name=place.name, status="ok"), generating.snapshot(values, place))
    report = analyse(tmp_path)
    assert report.compared + sum(len(each.nodes) for each in report.not_collected) == 24
    assert render(report, "html", Detail(verbose=True))
