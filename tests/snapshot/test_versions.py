"""Snapshots of every schema version that was ever written keep loading, and say what they said."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
import zstandard

from gpuwhy import snapshot
from gpuwhy.investigate import investigate
from gpuwhy.snapshot import SCHEMA_VERSION, Snapshot, facts_of
from gpuwhy.targets import PathTarget

KEPT = sorted((Path(__file__).parents[1] / "data" / "snapshots").glob("schema-*.json"))


def test_one_of_the_present_version_is_kept() -> None:
    assert f"schema-{SCHEMA_VERSION}.json" in [each.name for each in KEPT]


@pytest.mark.parametrize("file", KEPT, ids=lambda each: each.stem)
def test_each_version_loads_with_its_facts(file: Path) -> None:
    read = snapshot.read(file)
    assert f"schema-{read.schema_version}.json" == file.name
    facts = facts_of(read)
    assert facts.value("cc") == "12.0"
    assert facts.value("packages.flashinfer-python") == "0.6.12"
    assert len(list(snapshot.journal_entries(read))) == 2
    assert read.excerpts[0].path.endswith("core.py")


@pytest.mark.parametrize("file", KEPT, ids=lambda each: each.stem)
def test_a_packed_copy_is_diagnosed_like_the_plain_one(file: Path, tmp_path: Path) -> None:
    packed = tmp_path / "copy.gpuwhy"
    packed.write_bytes(zstandard.ZstdCompressor().compress(file.read_bytes()))
    answers = [msgspec.to_builtins(investigate(PathTarget(str(path)))) for path in (file, packed)]
    for answer in answers:
        answer["where"] = ""
        for step in answer["investigation"]["steps"]:
            step["duration"] = 0
    assert answers[0] == answers[1]


def test_the_schema_describes_what_is_written() -> None:
    schema = json.loads((Path(__file__).parents[2] / "docs" / "snapshot.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(snapshot.encode(snapshot.read(KEPT[-1]))), schema)
    assert schema["$defs"].keys() == msgspec.json.schema(Snapshot)["$defs"].keys()
