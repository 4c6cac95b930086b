"""The formats for pipelines: SARIF, JUnit, one line, Prometheus; and that a format is found by its name."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog

from gpuwhy.investigate import diagnose_log
from gpuwhy.investigate.checks.forecasting import check_plan
from gpuwhy.investigate.checks.plan import Plan
from gpuwhy.investigate.checks.results import Forecast, Passed, Unchecked
from gpuwhy.investigate.differences import Change, Comparison, Side
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.inspection import InspectedFile, Inspection, Outcome, Verdict
from gpuwhy.model.loading import Loading
from gpuwhy.remedies import prescribe
from gpuwhy.reports import UnknownFormatError, render
from gpuwhy.reports.check import prescribed
from gpuwhy.reports.formats import names, names_for

LOGS = Path(__file__).parents[1] / "data" / "logs"
DOCS = Path(__file__).parents[2] / "docs"
HOSTILE = '\x1b]0;owned\x07 \u202e\x9b31m\r\n\x00 \udc80 "}] </failure> & <script> \\ {a="b"} \ufffe 1e9'
UNKNOWN = b'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in main\n    f()\nMoonPhaseError: wane\n'
PLAN = Plan(("8 x B200",), "535.104.05", "12.2", ("torch==2.4.0", "flashinfer-python==0.6.8"), (), "")


def diagnosed(data: bytes, name: str = "a.log") -> Diagnosis:
    return prescribe(diagnose_log(data, name))


@pytest.fixture(scope="module")
def seed() -> Diagnosis:
    return diagnosed((LOGS / "sglang.log").read_bytes(), "logs/sglang.log")


@pytest.fixture(scope="module")
def forecast() -> Forecast:
    found = prescribed(check_plan(PLAN))
    assert found.problems
    assert found.unchecked
    return found


def hostile(forecast: Forecast) -> Forecast:
    evidence = Evidence(HOSTILE, HOSTILE, Place(HOSTILE, HOSTILE, 0))
    problem = msgspec.structs.replace(forecast.problems[0], cause=HOSTILE, component=HOSTILE, title=HOSTILE, evidence=(evidence,))  # fmt: skip
    return msgspec.structs.replace(
        forecast,
        where=HOSTILE,
        problems=(problem, problem),
        passed=(Passed(HOSTILE, HOSTILE),),
        unchecked=(Unchecked(HOSTILE, HOSTILE, HOSTILE, HOSTILE),),
    )


def inspection() -> Inspection:
    def verdict(outcome: Outcome, runs: bool | None) -> Verdict:
        return Verdict(outcome, runs, 1, 0, 0, 0, 1, 0, "no image fits")

    return Inspection(
        (
            InspectedFile(path="/opt/a b.so", kind="library", verdict=verdict(Outcome.NONE, runs=False)),
            InspectedFile(path="lib/c.so", kind="library", loading=Loading(path="lib/c.so", loads=False)),
            InspectedFile(path="d.so", kind="library", verdict=verdict(Outcome.NATIVE, runs=True)),
            InspectedFile(path=HOSTILE, kind="library", problems=(HOSTILE,)),
        ),
        "12.0",
        unreadable=("/root/x: Permission denied",),
    )


def comparison() -> Comparison:
    return Comparison(
        before=Side("one", "host", 0.0), after=Side("two", "host", 1.0),
        changes=(Change("driver", "driver", "570", "580"),), compared=10, equal=9,
    )  # fmt: skip


def sarif(answer: object) -> dict[str, Any]:
    """The log, held against the classes that were generated of the published schema: they allow no other property."""
    text = render(answer, "sarif")
    SarifLog.model_validate_json(text)
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def test_a_format_is_a_file_and_nothing_else_names_it() -> None:
    assert names()[0] == "text"
    assert {"json", "junit", "oneline", "prom", "sarif", "text"} <= set(names())
    assert "junit" in names_for("forecast")
    assert "junit" not in names_for("diagnosis")


def test_a_format_that_does_not_show_this_says_which_do(seed: Diagnosis) -> None:
    with pytest.raises(UnknownFormatError, match="junit: no format for this; choose of text"):
        render(seed, "junit")
    with pytest.raises(UnknownFormatError, match="nothing that formats show"):
        render("a text", "json")


def test_the_documents_show_what_is_printed() -> None:
    log = "tests/data/logs/sglang.log"
    found = diagnosed((LOGS / "sglang.log").read_bytes(), log)
    assert render(found, "text") in (DOCS / "reading.md").read_text()
    assert render(found, "oneline") in (DOCS / "formats.md").read_text()


def test_the_documents_list_what_each_format_shows() -> None:
    commands = {"diagnose": "diagnosis", "check": "forecast", "inspect": "inspection", "diff": "comparison"}
    rows = re.findall(r"^\| `(\w+)` \| .* \| ([\w, ]+) \|$", (DOCS / "formats.md").read_text(), re.MULTILINE)
    listed = {
        form: {commands[each] for each in of.split(", ") if each in commands} for form, of in rows if form in names()
    }
    assert listed == {form: {kind for kind in commands.values() if form in names_for(kind)} for form in names()}


# SARIF


def test_the_seed_as_sarif(seed: Diagnosis) -> None:
    run = sarif(seed)["runs"][0]
    first = run["results"][0]
    assert first["ruleId"] == "toolkit-too-old-for-arch"
    assert first["level"] == "error"
    assert first["message"]["text"].startswith("likely: FlashInfer finds a CUDA version below 12.9")
    assert first["locations"] == [{"physicalLocation": {"artifactLocation": {"uri": "logs/sglang.log"}, "region": {"startLine": 67}}}]  # fmt: skip
    steps = first["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["importance"] for step in steps].count("essential") == 1
    rules = run["tool"]["driver"]["rules"]
    assert [rules[each["ruleIndex"]]["id"] for each in run["results"]] == [each["ruleId"] for each in run["results"]]
    assert "How to be sure" in rules[0]["help"]["text"]
    assert any("ruled out: gpu-too-old" in each["message"]["text"] for each in run["invocations"][0]["toolExecutionNotifications"])  # fmt: skip
    possible = [each["level"] for each in run["results"] if each["properties"]["certainty"] == "possible"]
    assert possible == ["warning"] * len(possible) != []


def test_the_classes_of_the_schema_notice_what_it_does_not_allow(seed: Diagnosis) -> None:
    found = sarif(seed)
    found["runs"][0]["results"][0]["certainty"] = "likely"
    with pytest.raises(ValueError, match="certainty"):
        SarifLog.model_validate(found)
    del found["runs"][0]["results"][0]["certainty"]
    found["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(ValueError, match="level"):
        SarifLog.model_validate(found)


def test_sarif_has_no_fixes(seed: Diagnosis, forecast: Forecast) -> None:
    for answer in (seed, forecast, inspection()):
        assert '"fixes"' not in render(answer, "sarif")


def test_the_fingerprint_is_of_the_finding_and_not_of_its_lines() -> None:
    data = (LOGS / "sglang.log").read_bytes()
    one, other = (
        sarif(diagnosed(prefix + data, "x.log"))["runs"][0]["results"][0] for prefix in (b"", b"INFO: up\n" * 9)
    )
    assert one["locations"] != other["locations"]
    assert one["partialFingerprints"] == other["partialFingerprints"]


def test_an_unknown_failure_is_a_result_and_no_failure_is_none() -> None:
    results = sarif(diagnosed(UNKNOWN))["runs"][0]["results"]
    assert [(each["ruleId"], each["level"]) for each in results] == [("unrecognised-failure", "error")]
    assert "MoonPhaseError" in results[0]["message"]["text"]
    assert sarif(diagnosed(b"INFO: Application startup complete.\n"))["runs"][0]["results"] == []


@pytest.mark.parametrize("log", sorted(path.name for path in LOGS.iterdir() if path.is_file()))
def test_real_diagnoses_are_valid_sarif(log: str) -> None:
    sarif(diagnosed((LOGS / log).read_bytes(), log))


def test_a_check_and_an_inspection_as_sarif(forecast: Forecast) -> None:
    results = sarif(forecast)["runs"][0]["results"]
    assert [each["ruleId"] for each in results] == [each.cause for each in forecast.problems]
    files = sarif(inspection())["runs"][0]
    assert [(each["ruleId"], each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]) for each in files["results"]] == [
        ("binary-cannot-run", "file:///opt/a%20b.so"),
        ("binary-cannot-load", "lib/c.so"),
    ]  # fmt: skip
    assert files["invocations"][0]["executionSuccessful"] is False


def test_hostile_text_is_valid_sarif_and_inert(forecast: Forecast) -> None:
    text = render(hostile(forecast), "sarif")
    SarifLog.model_validate_json(text)
    assert not any(unicodedata.category(each) in ("Cc", "Cf", "Cs") and each != "\n" for each in text)
    uris = re.findall(r'"uri": "([^"]*)"', text)
    assert uris
    assert all(re.fullmatch(r"[A-Za-z0-9%/._~-]+", uri) for uri in uris)


# JUnit


def test_a_check_as_junit(forecast: Forecast) -> None:
    suite = ElementTree.fromstring(render(forecast, "junit")).find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert len(cases) == int(suite.attrib["tests"])
    assert len([case for case in cases if case.find("failure") is not None]) == len(forecast.problems) == int(suite.attrib["failures"])  # fmt: skip
    assert len([case for case in cases if case.find("skipped") is not None]) == len(forecast.unchecked) == int(suite.attrib["skipped"])  # fmt: skip
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.attrib["message"] == forecast.problems[0].title
    assert "do: " in (failure.text or "")


def test_hostile_text_is_well_formed_xml(forecast: Forecast) -> None:
    text = render(hostile(forecast), "junit")
    suite = ElementTree.fromstring(text)
    assert suite.findall(".//failure")[0].attrib["message"].startswith("\\x1b]0;owned\\x07")
    assert "<script" not in text


# Prometheus


def samples(answer: object) -> list[tuple[str, dict[str, str], float]]:
    families = list(text_string_to_metric_families(render(answer, "prom")))
    assert len({family.name for family in families}) == len(families)
    assert all(family.type == "gauge" and family.documentation for family in families)
    found = [(each.name, dict(each.labels), each.value) for family in families for each in family.samples]
    assert len({(name, tuple(sorted(labels.items()))) for name, labels, _ in found}) == len(found)
    return found


def test_a_diagnosis_as_gauges(seed: Diagnosis) -> None:
    found = samples(seed)
    assert ("gpuwhy_failure", {"where": "logs/sglang.log", "unit": ""}, 1.0) in found
    first = next(labels for name, labels, _ in found if name == "gpuwhy_finding" and labels["rank"] == "1")
    assert (first["cause"], first["component"], first["certainty"]) == (
        "toolkit-too-old-for-arch",
        "flashinfer",
        "likely",
    )
    healthy = samples(diagnosed(b"INFO: Application startup complete.\n"))
    assert [value for name, _, value in healthy if name == "gpuwhy_failure"] == [0.0]


def test_a_check_and_an_inspection_as_gauges(forecast: Forecast) -> None:
    found = samples(forecast)
    assert sum(value for name, _, value in found if name == "gpuwhy_check_problem") == len(forecast.problems)
    outcomes = {
        labels["outcome"]: value for name, labels, value in samples(inspection()) if name == "gpuwhy_inspect_files"
    }
    assert outcomes == {"native": 1.0, "none": 1.0, "not-judged": 2.0}


def test_hostile_labels_are_escaped(forecast: Forecast) -> None:
    found = samples(hostile(forecast))
    assert [value for name, _, value in found if name == "gpuwhy_check_problem"] == [2.0]
    assert any(
        '"}] </failure>' in labels.get("cause", "") and labels["cause"].endswith("1e9") for _, labels, _ in found
    )


# one line


def test_one_line_says_what_how_sure_and_what_to_do(seed: Diagnosis, forecast: Forecast) -> None:
    assert render(seed, "oneline") == (
        "logs/sglang.log: likely toolkit-too-old-for-arch (flashinfer): FlashInfer finds a CUDA version below 12.9, which it "
        "needs for this GPU, and is left without a target; do: --sampling-backend pytorch\n"
    )
    assert render(diagnosed(UNKNOWN), "oneline") == "a.log: unrecognised: MoonPhaseError: wane\n"
    assert render(diagnosed(b"INFO: ready\n"), "oneline") == "a.log: ok: no failure in what was examined\n"
    assert "not checked" in render(forecast, "oneline")
    assert render(comparison(), "oneline") == "one to two: 1 of 10 facts differ: driver\n"
    assert "1 file cannot run there: /opt/a b.so; 1 file cannot be loaded: lib/c.so" in render(inspection(), "oneline")


def test_one_line_is_one_line_whatever_the_log_says(forecast: Forecast) -> None:
    lines = [
        render(hostile(forecast), "oneline"),
        render(inspection(), "oneline"),
        render(diagnosed(f"RuntimeError: boom {HOSTILE}".encode("utf-8", "replace"), HOSTILE), "oneline"),
    ]
    for line in lines:
        assert line.count("\n") == 1
        assert not any(unicodedata.category(each) in ("Cc", "Cf", "Cs") for each in line[:-1])
