"""What the documents show works, and names what exists."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from gpuwhy.causes import Case, CauseEntry, catalogue
from gpuwhy.diagnosis.matching import SignFinder
from gpuwhy.logs import find_incidents, read_bytes
from gpuwhy.model.fact import Facts
from gpuwhy.model.finding import Certainty, RuledOut, Verdict
from gpuwhy.model.remedy import KINDS
from gpuwhy.reports.json import schema
from gpuwhy.snapshot.given import GROUPS, KEYS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "benchmarks" / "README.md", *(ROOT / "docs").glob("*.md")]  # fmt: skip


def code_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> CauseEntry:
    """The cause of CONTRIBUTING, loaded as a module."""
    module = types.ModuleType("ntp_skew")
    monkeypatch.setitem(sys.modules, "ntp_skew", module)
    exec(compile(code_blocks("CONTRIBUTING.md")[0], "CONTRIBUTING.md", "exec"), vars(module))
    entry = module.ntp_skew.__gpuwhy_cause__
    assert isinstance(entry, CauseEntry)
    return entry


def judged(entry: CauseEntry, text: str) -> object:
    incident = find_incidents([read_bytes(text.encode(), "a.log")])
    return entry.judge(Case(incident, Facts(), SignFinder([entry]).find(incident).get(entry.id, {})))


def test_the_cause_that_contributing_shows_works(example: CauseEntry) -> None:
    known = judged(example, "RuntimeError: clock skew of 40s detected\n")
    assert isinstance(known, Verdict)
    assert (known.certainty, known.title) == (Certainty.PROVEN, "The clocks of two nodes differ by 40 s")
    unknown = judged(example, "RuntimeError: clock skew detected\n")
    assert isinstance(unknown, Verdict)
    assert (unknown.certainty, unknown.missing[0].command) == (Certainty.LIKELY, "timedatectl")
    assert isinstance(judged(example, "RuntimeError: clock skew of 40s detected (simulated)\n"), RuledOut)
    assert judged(example, "OSError: [Errno 2] No such file or directory\n") is None


def test_the_cause_that_contributing_shows_is_none_of_the_catalogue(example: CauseEntry) -> None:
    assert example.id not in catalogue()


def test_the_library_use_that_the_readme_shows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(code_blocks("README.md")[0], "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("toolkit-too-old-for-arch flashinfer likely\n")


def test_every_fact_is_documented() -> None:
    page = (ROOT / "docs" / "facts.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([\w.]+)`", page))
    assert words >= KEYS
    assert {word.partition(".")[0] for word in words if "." in word} >= GROUPS


def test_every_key_of_the_json_document_is_documented() -> None:
    words = set(re.findall(r"`(\w+)(?:\[\])?`", (ROOT / "docs" / "json.md").read_text(encoding="utf-8")))
    definitions = schema()["$defs"]
    for name in (
        "Document",
        "Finding",
        "Remedy",
        "IncidentDocument",
        "Missing",
        "Link",
        "Evidence",
        "Place",
        "Survives",
    ):
        assert set(definitions[name]["properties"]) <= words, name
    assert set(KINDS) <= set(re.findall(r"`([\w-]+)`", (ROOT / "docs" / "json.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target
