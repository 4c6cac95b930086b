"""The report for programs, against its published schema."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from scripts.make_picture import picture
from scripts.make_schema import SCHEMA_FILE, schema_text

from gpuwhy.investigate import diagnose_log
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.remedies import prescribe
from gpuwhy.reports import render
from gpuwhy.reports.json import SCHEMA_VERSION
from gpuwhy.snapshot.given import given

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "tests" / "data" / "logs"
UNKNOWN = 'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in main\n    f()\nMoonPhaseError: wane\n'


@pytest.fixture(scope="module")
def validator() -> Any:
    published = json.loads(SCHEMA_FILE.read_text())
    jsonschema.Draft202012Validator.check_schema(published)
    return jsonschema.Draft202012Validator(published)


def document(diagnosis: Diagnosis) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(render(prescribe(diagnosis), "json"))
    return parsed


def test_the_published_schema_is_that_of_the_types() -> None:
    assert SCHEMA_FILE.read_text() == schema_text(), "run `make schema`"


def test_every_object_of_the_schema_requires_something() -> None:
    """Without that a document of other keys would validate too."""
    definitions = json.loads(SCHEMA_FILE.read_text())["$defs"]
    assert {"findings", "ruled_out", "incident", "investigation", "facts"} <= set(definitions["Document"]["required"])
    for name in ("Finding", "Remedy", "Missing", "Evidence", "Link"):
        assert definitions[name]["required"], name


@pytest.mark.parametrize("log", sorted(path.name for path in LOGS.iterdir() if path.is_file()))
def test_real_output_validates(validator: Any, log: str) -> None:
    validator.validate(document(diagnose_log((LOGS / log).read_bytes(), log)))


def test_output_with_facts_validates(validator: Any) -> None:
    facts = given(
        {
            "cc": "12.0",
            "cuda_toolkit": "12.8",
            "env.CUDA_HOME": None,
            "gpus": ["0: a (12.0)"],
            "df./x": {"size_bytes": 1},
        }
    )
    found = document(diagnose_log((LOGS / "sglang.log").read_bytes(), "sglang.log", facts.facts))
    validator.validate(found)
    assert {fact["key"]: fact["value"] for fact in found["facts"]}["env.CUDA_HOME"] is None


@pytest.mark.parametrize("text", [UNKNOWN, "INFO: ready\n"])
def test_output_without_finding_validates(validator: Any, text: str) -> None:
    found = document(diagnose_log(text.encode(), "a.log"))
    validator.validate(found)
    assert found["findings"] == []
    assert found["incident"]["is_failure"] is (text == UNKNOWN)


def test_a_missing_key_is_noticed(validator: Any) -> None:
    found = document(diagnose_log((LOGS / "sglang.log").read_bytes(), "sglang.log"))
    del found["findings"][0]["cause"]
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(found)


def test_the_keys_that_others_rely_on() -> None:
    found = document(diagnose_log((LOGS / "sglang.log").read_bytes(), "sglang.log"))
    assert found["schema_version"] == SCHEMA_VERSION
    first = found["findings"][0]
    assert (first["cause"], first["component"], first["certainty"]) == (
        "toolkit-too-old-for-arch",
        "flashinfer",
        "likely",
    )
    assert {"chain", "evidence", "against", "explains", "missing", "remedies", "title"} <= first.keys()
    remedy = first["remedies"][0]
    assert {"kind", "name", "value", "summary", "commands", "cost", "survives", "undo", "check"} <= remedy.keys()
    assert {"key", "command", "why"} <= first["missing"][0].keys()
    events = {event["id"] for event in found["incident"]["events"]}
    assert found["incident"]["primary"] in events
    assert set(first["explains"]) <= events


def test_hostile_text_is_escaped_and_not_lost() -> None:
    hostile = "RuntimeError: \x1b]0;owned\x07\u202e\x9b31m boom"
    text = render(diagnose_log(hostile.encode(), "a\x1b[2J\udc80.log"), "json")
    text.encode()
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\n" for c in text)
    assert json.loads(text)["where"].startswith("a\x1b[2J")


@pytest.mark.parametrize("said", [r"\u000a", "\\\\u000a", r"\x1b", '"}', "\\"])
def test_what_looks_like_an_escape_comes_through(said: str) -> None:
    text = f"RuntimeError: boom {said} x"
    found = document(diagnose_log(text.encode(), "a.log"))
    assert text in [event["text"] for event in found["incident"]["events"]]


def test_it_is_one_document_that_ends_with_a_newline() -> None:
    text = render(diagnose_log(b"INFO: ready\n", "a.log"), "json")
    assert text.endswith("}\n")
    msgspec.json.decode(text)


def test_the_picture_loads_nothing_and_shows_the_seed() -> None:
    for drawn in (picture(), (ROOT / "docs" / "seed.svg").read_text()):
        assert "@font-face" not in drawn
        assert "@import" not in drawn
        assert "url(http" not in drawn
        assert "href=" not in drawn
        assert "<script" not in drawn
        assert "toolkit-too-old-for-arch" in drawn
