"""Where memory goes: bars in a terminal, on one line, in words; and what a diagnosis and a check show of it in every format."""

from __future__ import annotations

import json
import math
import unicodedata

import msgspec
import pytest
from tests.reports.html import samples
from tests.reports.test_markdown import assert_inert

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.memory_use import MemoryPart, MemoryUse
from gpuwhy.reports import Detail, render
from gpuwhy.reports.memory_chart import chart_of, in_words, rows, said_rows, short_rows
from gpuwhy.reports.reading import read_answer

HOSTILE = "\x1b]0;owned\x07 \u202e `@x` <script> |"


def part(name: str, kind: str, expected: float, below: float = 0.0, above: float = 0.0) -> MemoryPart:
    return MemoryPart(name=name, kind=kind, low=expected - below, expected=expected, high=expected + above, source="here")  # fmt: skip


def use(*parts: MemoryPart, total: float | None = 80.0, unit: str = "GiB") -> MemoryUse:
    return MemoryUse(place="gpu", basis="computed", title="One GPU", unit=unit, parts=parts, total=total)


def text(shown: MemoryUse) -> list[str]:
    return [line for row in rows(shown) for line in row.wrapped(80)]


FULL = use(part("graphs", "graphs", 4, 2, 3), part("experts", "weights", 50), part("head", "weights", 10, 1, 1))


def test_parts_are_grouped_in_the_order_of_a_start() -> None:
    bars = chart_of(FULL).bars
    assert [(bar.name, bar.expected, bar.begin) for bar in bars] == [("weights", 60, 0), ("CUDA graphs", 4, 60)]
    assert (bars[0].low, bars[0].high) == (59, 61)


def test_errors_of_parts_add_up_as_independent_ones() -> None:
    (bar,) = chart_of(use(part("a", "weights", 10, 3, 3), part("b", "weights", 10, 4, 4))).bars
    assert math.isclose(bar.high, 25)


def test_bars_are_as_long_as_their_shares_and_what_is_left_is_drawn_too() -> None:
    heading, weights, graphs, left = text(FULL)
    assert heading == "One GPU: 80.00 GiB"
    assert (weights.count("#"), left.count(".")) == (round(34 * 60 / 80), 1 + round(34 * 16 / 80))
    assert graphs.endswith("2.0 to 7.0")
    assert all(len(line) <= 80 for line in text(FULL))


def test_more_than_there_is_is_said_and_no_bar_leaves_the_chart() -> None:
    lines = text(use(part("w", "weights", 500)))
    assert lines[1].split() == ["weights", "500.00", "#" * 33 + "+"]
    assert lines[2].split() == ["over", "420.00"]
    assert "420.00 more than there is" in in_words(chart_of(use(part("w", "weights", 500))))


def test_that_nothing_is_left_for_the_cache_is_shown() -> None:
    assert any(line.split()[:3] == ["KV", "cache", "0.00"] for line in text(use(part("KV cache", "kv-cache", 0.0))))
    assert len(text(use(part("nothing", "graphs", 0.0)))) == 2


def test_pages_of_files_take_what_is_left_of_a_host_and_no_more() -> None:
    host = use(part("processes", "unreclaimable", 100), part("files", "page-cache", 600), total=256, unit="GB")
    chart = chart_of(host)
    assert (chart.left, chart.scale) == (156, 256)
    strip = [line for row in short_rows(host) for line in row.wrapped(80)][1].strip()
    assert strip == "[" + "u" * 13 + "f" * 21 + "]"


def test_without_a_size_nothing_is_called_left() -> None:
    unknown = use(part("w", "weights", 60), total=None)
    assert not any("left" in line for line in text(unknown))
    assert "left" not in in_words(chart_of(unknown))


def test_the_short_chart_is_one_bar_and_the_meaning_of_its_letters() -> None:
    heading, strip, meaning = [line for row in short_rows(FULL) for line in row.wrapped(80)]
    assert strip.strip() == "[" + "w" * 26 + "g" + "." * 7 + "]"
    assert meaning.strip() == "w weights 60.00, g CUDA graphs 4.00, . left 16.00"
    assert heading.strip() == "One GPU: 80.00 GiB"


@pytest.mark.parametrize("total", [0.0, -3.0, 1e-12, 1e300, None])
def test_sizes_without_sense_do_no_harm(total: float | None) -> None:
    shown = use(part(HOSTILE, HOSTILE, -1), part("w", "weights", 1e12), part("n", "graphs", math.nan), total=total)
    lines = [*text(shown), *(line for row in short_rows(shown) for line in row.wrapped(80)), in_words(chart_of(shown))]
    assert all(len(line) < 400 for line in lines)
    assert not any(unicodedata.category(each) in ("Cc", "Cf") for line in lines for each in line)


def test_hostile_names_and_sentences_reach_no_terminal() -> None:
    shown = msgspec.structs.replace(use(part(HOSTILE, HOSTILE, 3)), title=HOSTILE, says=(HOSTILE,), missing=(HOSTILE,))
    lines = [line for row in [*rows(shown), *short_rows(shown), *said_rows(shown)] for line in row.wrapped(80)]
    assert not any(unicodedata.category(each) in ("Cc", "Cf") for line in lines for each in line)


@pytest.fixture(scope="module")
def failed() -> Diagnosis:
    return samples.out_of_memory()


def test_a_diagnosis_of_memory_carries_the_estimate(failed: Diagnosis) -> None:
    (shown,) = failed.findings[0].memory
    assert (shown.place, shown.basis) == ("gpu", "computed")
    weights = sum(each.expected for each in shown.parts if each.kind == "weights")
    assert weights == pytest.approx(93.52 - 21.82)
    assert any("--mem-fraction-static 0.7578" in each for each in shown.says)


def test_without_the_model_the_lines_of_the_log_make_the_bars() -> None:
    (shown,) = samples.out_of_memory(knows_the_model=False).findings[0].memory
    assert shown.basis == "log"
    assert [(each.kind, round(each.expected, 2)) for each in shown.parts] == [("weights", 71.7)]
    assert any("= 0.7667" in each or "0.7667" in each for each in shown.says)


def test_the_short_report_has_the_bar_and_the_full_one_the_chart(failed: Diagnosis) -> None:
    short, full = render(failed, "text"), render(failed, "text", Detail(verbose=True))
    strip = next(line.strip() for line in short.splitlines() if line.strip().startswith("[") and "wwww" in line)
    assert strip.count("w") > 20
    assert len(strip) <= 36
    assert "left" in short
    weights = next(line for line in full.splitlines() if line.startswith("  weights  "))
    assert weights.count("#") > 20
    assert full.index("One GPU of this start") < full.index("What to do first")


def test_the_issue_has_the_chart_and_means_nothing_to_github(failed: Diagnosis) -> None:
    issue = render(failed, "markdown")
    assert "### Where the memory goes" in issue
    assert "  weights                71.70 ####" in issue
    assert "| routed experts, divided by 8 |" in issue
    assert_inert(issue)


def test_the_document_holds_it_and_can_be_shown_again(failed: Diagnosis) -> None:
    document = render(failed, "json")
    assert json.loads(document)["findings"][0]["memory"][0]["unit"] == "GiB"
    again = read_answer(document.encode(), "a.json")
    assert again.findings[0].memory == failed.findings[0].memory


def test_a_check_shows_gpu_and_host() -> None:
    checked = samples.checked()
    plain = render(checked, "text")
    assert "  weights                71" in plain
    assert "--mem-fraction-static" in plain
    assert "host while loading" in plain
    issue = render(checked, "markdown")
    assert "### Where the memory goes" in issue
    assert "  not reclaimable" in issue
    assert_inert(issue)
    page = render(checked, "html")
    assert page.count('<figure class="memory">') == 2


def test_nothing_is_shown_where_memory_is_not_the_matter() -> None:
    assert "Where the memory goes" not in render(samples.seed(), "text")
    assert "Where the memory goes" not in render(samples.seed(), "html")
