"""``gpuwhy diff``: two snapshots, or a snapshot and a host."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import gpuwhy

SNAPSHOT = Path(__file__).parents[1] / "data" / "snapshots" / "schema-0.1.json"


def changed(folder: Path) -> str:
    document = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    packages = next(each for each in document["probes"] if each["probe"] == "packages")
    packages["value"][0]["versions"]["flashinfer-python"] = "0.6.13"
    path = folder / "today.json"
    path.write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")
    return str(path)


def test_equal_snapshots_end_with_status_0() -> None:
    done = gpuwhy("diff", str(SNAPSHOT), str(SNAPSHOT))
    assert done.status == 0, done.err
    assert "facts compared: all are equal" in done.out


def test_a_difference_ends_with_status_1_and_is_shown(tmp_path: Path) -> None:
    done = gpuwhy("diff", str(SNAPSHOT), changed(tmp_path))
    assert done.status == 1, done.err
    assert "packages.flashinfer-python (engine or kernel library)\n    - 0.6.12\n    + 0.6.13\n" in done.out
    document = json.loads(gpuwhy("diff", str(SNAPSHOT), changed(tmp_path), "--format", "json").out)
    assert [each["key"] for each in document["comparison"]["changes"]] == ["packages.flashinfer-python"]


def test_a_host_is_a_side_too() -> None:
    done = gpuwhy("diff", str(SNAPSHOT), "local")
    assert done.status == 1, done.err
    assert "after:  local (local" in done.out


def test_what_cannot_be_compared_is_said() -> None:
    assert gpuwhy("diff", str(SNAPSHOT), "/nowhere.gpuwhy").status == 2
    assert gpuwhy("diff", __file__, str(SNAPSHOT)).status == 2


def test_a_page_of_what_changed_goes_to_a_file(tmp_path: Path) -> None:
    page = tmp_path / "changed.html"
    done = gpuwhy("diff", str(SNAPSHOT), changed(tmp_path), "--format", "html", "-o", str(page))
    assert (done.status, done.out) == (1, "")
    assert "packages.flashinfer-python" in page.read_text()
