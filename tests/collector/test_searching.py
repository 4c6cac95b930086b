"""Searching the Python files of a package where it stands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from gpuwhy.collector import searching, serving


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "engine"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "core.py").write_text("shape = 1\nreshape(2)\n")
    (folder / "inner" / "layer.py").write_text("def shape(self): ...\n")
    (folder / "inner" / "other.py").write_text("reshape(shapes)\n")
    (folder / "notes.txt").write_text("shape\n")
    return folder


def search(path: Path, *queries: dict[str, Any]) -> dict[str, Any]:
    reply = serving.answer({"id": 1, "ask": "search", "path": str(path), "queries": list(queries)})
    assert reply["status"] == "ok", reply["reason"]
    value: dict[str, Any] = reply["value"]
    return value


def test_a_query_without_words_lists_every_python_file(package: Path) -> None:
    found = search(package, {})
    paths = ["engine/__init__.py", "engine/core.py", "engine/inner/layer.py", "engine/inner/other.py"]
    assert found["found"] == [{"count": 4, "paths": paths}]
    assert (found["files"], found["is_complete"], found["left_out"]) == (4, True, [])


def test_words_stand_by_themselves_and_a_pattern_decides_further(package: Path) -> None:
    found = search(package, {"words": ["shape"]}, {"words": ["shape"], "pattern": r"def shape\b"}, {"words": ["shape", "reshape"]}, {"words": ["nothing"]})  # fmt: skip
    assert [each["paths"] for each in found["found"]] == [
        ["engine/core.py", "engine/inner/layer.py"], ["engine/inner/layer.py"], ["engine/core.py"], [],
    ]  # fmt: skip


def test_many_words_at_once_are_found_as_one_by_one(package: Path) -> None:
    words = ["shape", "reshape", "shapes", *(f"word_{number}" for number in range(200))]
    found = search(package, *({"words": [word]} for word in words))["found"]
    assert [each["count"] for each in found[:4]] == [2, 2, 1, 0]


def test_where_too_many_files_have_it_they_are_counted(package: Path) -> None:
    assert search(package, {"words": ["shape"], "most": 1})["found"] == [{"count": 2, "paths": []}]


def test_size_and_time_of_the_files_that_are_named_come_with_them(package: Path) -> None:
    os.utime(package / "core.py", (1700000000.25, 1700000000.25))
    stamps = search(package, {"words": ["reshape"]})["stamps"]
    assert stamps["engine/core.py"] == [21, 1700000000.25]
    assert sorted(stamps) == ["engine/core.py", "engine/inner/other.py"]


def test_a_module_of_one_file(package: Path) -> None:
    assert search(package / "core.py", {"words": ["shape"]})["found"][0]["paths"] == ["core.py"]


def test_links_that_lead_out_or_in_a_circle_are_not_followed(package: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("shape\n")
    (package / "linked.py").symlink_to(tmp_path / "outside.py")
    (package / "inner" / "again").symlink_to(package)
    found = search(package, {"words": ["shape"]})
    assert found["found"][0]["count"] == 2
    assert found["left_out"] == ["engine/linked.py: a link that is not followed"]


def test_what_was_not_searched_is_told(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_FILES", 2)
    assert not search(package, {"words": ["shape"]})["is_complete"]
    monkeypatch.setattr(searching, "MOST_FILES", 100)
    monkeypatch.setattr(searching, "MOST_BYTES", 20)
    found = search(package, {"words": ["shape"]})
    assert [each.partition(":")[0] for each in found["left_out"]] == ["engine/core.py", "engine/inner/layer.py"]


@pytest.mark.parametrize(
    ("path", "queries", "status"),
    [
        ("/root/.ssh", [{}], "denied"),
        ("/nothing/there", [{}], "absent"),
        ("PACKAGE", None, "failed"),
        ("PACKAGE", ["shape"], "failed"),
        ("PACKAGE", [{"words": ["shape"], "pattern": "("}], "failed"),
        ("PACKAGE", [{"words": "shape"}], "failed"),
    ],
)
def test_a_search_that_cannot_be_made_says_why(package: Path, path: str, queries: Any, status: str) -> None:
    asked = {"id": 1, "ask": "search", "path": str(package) if path == "PACKAGE" else path, "queries": queries}
    reply = serving.answer(asked)
    assert reply["status"] == status
    assert reply["reason"]
