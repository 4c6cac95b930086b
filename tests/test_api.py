"""The functions of the package: what programs build on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gpuwhy
from gpuwhy.fleet.store import Node, Store
from gpuwhy.model.fact import Facts
from gpuwhy.snapshot import write
from gpuwhy.source import Trace

DATA = Path(__file__).parent / "data"
LOG = DATA / "logs" / "sglang.log"
MOST_SECONDS_OF_IMPORT = 0.02


def test_a_log_is_diagnosed_by_path_by_name_and_as_text() -> None:
    named = gpuwhy.diagnose(str(LOG))
    assert named.findings[0].cause == "toolkit-too-old-for-arch"
    assert named.findings[0].remedies
    assert gpuwhy.outcome_of(named) == "failure"
    for other in (LOG, gpuwhy.LogText(LOG.read_text(), "x"), gpuwhy.LogText(LOG.read_bytes())):
        assert gpuwhy.diagnose(other).findings[0].cause == named.findings[0].cause
    assert gpuwhy.diagnose(logs=[LOG]).findings[0].cause == named.findings[0].cause


def test_facts_are_a_mapping_a_file_or_facts(tmp_path: Path) -> None:
    given = {"cuda_toolkit": "12.8", "cc": "12.0"}
    (tmp_path / "facts.yaml").write_text('cuda_toolkit: "12.8"\ncc: "12.0"\n')
    titles = {gpuwhy.diagnose(LOG, facts=each).findings[0].title for each in (given, tmp_path / "facts.yaml")}
    (title,) = titles
    assert "12.8" in title
    assert gpuwhy.diagnose(LOG, facts=Facts()).findings


def test_a_healthy_log_is_no_failure() -> None:
    healthy = next((DATA / "logs" / "healthy").iterdir())
    assert gpuwhy.outcome_of(gpuwhy.diagnose(healthy)) in ("no failure", "not examined")


def test_a_plan_is_checked_without_a_host() -> None:
    forecast = gpuwhy.check(gpus=["1 x H100"], driver="450.80")
    assert forecast.problems[0].cause == "driver-too-old"
    assert forecast.problems[0].remedies


def test_binaries_are_inspected() -> None:
    found = gpuwhy.inspect([DATA / "binaries" / "ptxas129_sm_120a.cubin"], gpu="H100")
    assert found.files[0].architectures == ("sm_120a",)
    assert found.files[0].verdict is not None
    assert found.files[0].verdict.runs is False


def test_a_trace_of_nothing_is_said_so() -> None:
    with pytest.raises(gpuwhy.UnusableError, match="name what to trace"):
        gpuwhy.trace("")


def test_source_is_traced(tmp_path: Path) -> None:
    package = tmp_path / "thing"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import os\n\ndef gate():\n    if os.environ.get('MODE'):\n        raise ValueError('no')\n"
    )
    traced = gpuwhy.trace("thing/__init__.py:5", folders=[tmp_path])
    assert traced.is_answered
    assert isinstance(traced.answer, Trace)
    assert [switch.name for switch in traced.answer.switches] == ["MODE"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: gpuwhy.diagnose(),
        lambda: gpuwhy.diagnose("/missing.log"),
        lambda: gpuwhy.diagnose(LOG, facts="/missing.yaml"),
        lambda: gpuwhy.diagnose(LOG, pid=1),
        lambda: gpuwhy.diagnose("a b"),
        lambda: gpuwhy.diagnose(LOG, logs=["/missing.log"]),
        lambda: gpuwhy.check(),
        lambda: gpuwhy.check(gpus=["no such gpu"]),
        lambda: gpuwhy.check(requirements="/missing.txt"),
        lambda: gpuwhy.collect(LOG),
        lambda: gpuwhy.inspect([]),
        lambda: gpuwhy.inspect(["/missing.so"]),
        lambda: gpuwhy.inspect([LOG], driver="570.86"),
        lambda: gpuwhy.trace("a.py:1", where=str(LOG)),
        lambda: gpuwhy.trace("x", replay=True),
        lambda: gpuwhy.Fleet("/missing"),
    ],
)
def test_what_cannot_be_used_is_one_kind_of_error_with_words(call: object) -> None:
    assert callable(call)
    with pytest.raises(gpuwhy.UnusableError) as raised:
        call()
    assert str(raised.value)
    assert isinstance(raised.value, gpuwhy.GpuwhyError)


def test_a_place_that_cannot_be_reached_is_another() -> None:
    with pytest.raises(gpuwhy.UnreachableError):
        gpuwhy.diagnose("nobody@host.invalid", timeout=10)


def test_a_fleet_is_its_folder(tmp_path: Path) -> None:
    snapshot = gpuwhy.collect("local", timeout=60)
    write(snapshot, tmp_path / "one.gpuwhy")
    with Store(tmp_path / "fleet", create=True) as store:
        store.keep(Node(name="gpu1", status="ok"), snapshot)
        store.keep(Node(name="gpu2", status="refused", reason="connection refused"))
    fleet = gpuwhy.Fleet(tmp_path / "fleet")
    assert [node.name for node in fleet.nodes()] == ["gpu1", "gpu2"]
    assert [node.name for node in fleet.nodes("ok")] == ["gpu1"]
    assert fleet.snapshot("gpu1").probes
    assert fleet.diagnose("gpu1").where.endswith(".gpuwhy")
    assert fleet.check("gpu1").where.endswith(".gpuwhy")
    assert fleet.report().compared == 1
    assert fleet.query("SELECT name FROM node WHERE status = 'ok'").rows == (("gpu1",),)
    with pytest.raises(gpuwhy.UnusableError):
        fleet.query("DROP TABLE node")
    with pytest.raises(gpuwhy.UnusableError, match="connection refused"):
        fleet.snapshot("gpu2")
    with pytest.raises(gpuwhy.UnusableError, match="has no node gpu3"):
        fleet.snapshot("gpu3")


def test_importing_the_package_costs_nothing() -> None:
    code = "import sys; before = set(sys.modules); import gpuwhy; print(sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() in ("['__future__', 'gpuwhy']", "['gpuwhy']")
    timed = "import time; begun = time.process_time(); import gpuwhy; print(time.process_time() - begun)"
    seconds = min(
        float(subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    )
    assert seconds < MOST_SECONDS_OF_IMPORT


def test_everything_that_is_offered_is_there_and_documented() -> None:
    for name in gpuwhy.__all__:
        offered = getattr(gpuwhy, name)
        assert name == "__version__" or offered.__doc__
    assert set(gpuwhy.__all__) == set(dir(gpuwhy))
    with pytest.raises(AttributeError, match="no attribute"):
        gpuwhy.__getattr__("nothing")
