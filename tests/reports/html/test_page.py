"""A page is one file that allows nothing but itself, whatever the log holds."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import yaml
from tests.reports.html import samples

from gpuwhy.investigate import diagnose_log
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.remedies import prescribe
from gpuwhy.reports.html import check, diagnosis, inspection, lines
from gpuwhy.reports.interface import Detail

SMALL = 400_000


class Seen(html.parser.HTMLParser):
    """The elements, attributes and text of a page as a browser takes them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page_of(found: Diagnosis) -> str:
    return diagnosis.render(found, Detail())


@pytest.fixture(scope="module")
def seed_page() -> str:
    return page_of(samples.seed())


@pytest.mark.parametrize("found", [samples.seed, samples.hostile, samples.unknown])
def test_nothing_in_it_points_elsewhere(found: Callable[[], Diagnosis]) -> None:
    for tag, attributes in Seen(page_of(found())).elements:
        assert tag not in ("iframe", "object", "embed", "base", "form", "img"), tag
        assert not any(name.startswith("on") or name in ("style", "src", "srcset") for name in attributes), (
            tag,
            attributes,
        )
        assert attributes.get("href", "#").startswith("#") or attributes == {"rel": "icon", "href": "data:,"}


def test_only_its_own_style_and_script_are_allowed(seed_page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', seed_page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", seed_page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy[1]


def test_hostile_text_is_text() -> None:
    page = page_of(samples.hostile())
    seen = Seen(page)
    assert [tag for tag, _ in seen.elements].count("script") == 1
    assert samples.OWNED in "".join(seen.text)
    assert "{{ 7*7 }}" in page
    assert not [each for each in page if each != "\n" and unicodedata.category(each) in ("Cc", "Cf", "Cs")]
    assert page.endswith("</html>\n")


def test_it_is_small_however_long_the_lines_are(seed_page: str) -> None:
    assert len(seed_page.encode()) < SMALL
    assert len(page_of(samples.hostile(samples.LONG)).encode()) < SMALL


def test_a_large_incident_is_small_without_its_log() -> None:
    page = page_of(samples.large())
    assert len(page[: page.index('<section id="log"')].encode()) < SMALL
    assert page.count('id="log-1-') <= 1_500
    assert "Not the whole log" in page


def test_every_link_inside_it_leads_somewhere(seed_page: str) -> None:
    seen = Seen(seed_page)
    anchors = [attributes["id"] for _, attributes in seen.elements if "id" in attributes]
    assert len(anchors) == len(set(anchors))
    assert {attributes["href"][1:] for tag, attributes in seen.elements if tag == "a" and "href" in attributes} <= set(
        anchors
    )


def test_the_answer_stands_first_and_whole(seed_page: str) -> None:
    text = " ".join("".join(Seen(seed_page).text).split())
    for earlier, later in (
        ("likely toolkit-too-old-for-arch in flashinfer", "Do this first"),
        ("Do this first", "How it happened"),
        ("swallowed by the program", "What to do (as root)"),
    ):
        assert 0 <= text.index(earlier) < text.index(later)
    assert "raise RuntimeError(&quot;" not in text
    assert "except Exception: in CompilationContext.__init__" in text
    assert "no code for this GPU" in text
    assert "Check that it helped" in text


def test_a_command_is_never_shown_in_part() -> None:
    page = page_of(samples.hostile("echo " + "y" * 30_000))
    assert "this command has 30,005 characters" in page


def test_an_unknown_failure_is_called_that() -> None:
    page = page_of(samples.unknown())
    assert "not recognised" in page
    assert "OddError: no such moon" in page
    assert "What to do" not in page


def test_without_logs_and_record_the_page_stands(seed_page: str) -> None:
    """As `gpuwhy show` has it from a saved document: events, and no lines."""
    found = samples.seed()
    found = msgspec.structs.replace(found, incident=msgspec.structs.replace(found.incident, logs=()))
    page = page_of(found)
    assert 'id="log"' not in page
    assert "incident.export:217" in page
    assert seed_page != page


def test_an_inspection_names_what_cannot_run() -> None:
    page = inspection.render(samples.inspected())
    assert "1 of 3 files cannot run on this GPU" in page
    assert page.index("flash_attn_2_cuda.so</code>") < page.index("common_ops.abi3.so</code>")


def test_lines_are_bounded_and_keep_their_style() -> None:
    page = lines.render([("first", "answer-line"), *((f"<b>{number}", "note") for number in range(3_000))], "x", "y")
    assert '<h1 id="answer-title">first</h1>' in page
    assert "&lt;b&gt;1998" in page
    assert "&lt;b&gt;1999" not in page
    assert "1001 more lines are not shown" in page


def test_a_check_without_problems_says_so() -> None:
    from gpuwhy.investigate.checks.results import Forecast, Passed, Unchecked

    forecast = Forecast(where="<here>", problems=(), passed=(Passed("driver", "580 >= 570"),), unchecked=(Unchecked("nvcc", "not found", command="which nvcc"),), facts=())  # fmt: skip
    page = check.render(forecast)
    assert "No problem found" in page
    assert "which nvcc" in page
    assert "&lt;here&gt;" in page


def test_a_trace_has_its_guard_as_the_headline(tmp_path: Path) -> None:
    from gpuwhy.reports.trace_writing import Writer
    from gpuwhy.source.answers import Guard, Requirement, Scope, Spot, Trace

    spot = Spot(path="engine/gate.py", line=18, function="check", code='raise RuntimeError("<too old>")')
    guard = Guard(spot=spot, raises="RuntimeError", message="<too old>", requires=(Requirement("not levels", 17),))
    answer = Trace(question="engine.gate:check", scope=Scope(packages=()), guard=guard)
    Writer("html", False, tmp_path / "trace.html").finish(answer)
    page = (tmp_path / "trace.html").read_text()
    assert '<h1 id="answer-title">RuntimeError: &lt;too old&gt;</h1>' in page
    assert "not levels" in page
    assert "engine.gate:check" in page


def test_a_hanging_process_is_shown_with_where_it_stands() -> None:
    page = page_of(samples.waiting())
    assert "process 7 waits for a lock that nobody holds" in page
    assert "It is stuck." in page
    assert "acquire (filelock/_api.py:300)" in page


CASES = sorted((samples.LOGS.parents[1] / "cases").glob("*.yaml"))


@pytest.mark.parametrize("case", CASES[::12], ids=lambda path: path.stem)
def test_any_case_makes_a_page_that_names_its_first_cause(case: Path) -> None:
    report = yaml.safe_load(case.read_text(encoding="utf-8"))["report"]
    found = prescribe(diagnose_log(report.encode(), "report.log"))
    page = page_of(found)
    assert len(page.encode()) < SMALL
    if found.findings:
        assert f"<code>{found.findings[0].cause}</code>" in page
