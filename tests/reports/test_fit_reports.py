"""The estimate of memory in the formats that people read and paste: the verdict first, bars with words, nothing of others in it."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from tests.reports.html import samples
from tests.reports.html.test_page import Seen
from tests.reports.test_markdown import assert_inert, tokens

from gpuwhy.reports import Detail, render
from gpuwhy.reports.fit_answer import FitAnswer
from gpuwhy.reports.formats import names_for
from gpuwhy.reports.reading import read_answer


@pytest.fixture(scope="module")
def fitted() -> FitAnswer:
    return samples.fitted()


@pytest.fixture(scope="module")
def page(fitted: FitAnswer) -> str:
    return render(fitted, "html")


def test_the_formats_are_those_of_the_other_reports() -> None:
    assert set(names_for("estimate")) == {"text", "html", "markdown", "json", "oneline"}


def test_the_page_begins_with_the_verdict_and_the_engines_message(page: str) -> None:
    text = " ".join(" ".join(Seen(page[page.index("<main") :]).text).split())
    assert text.startswith("fails Fails: moonshotai/Kimi-K2.6 on 8 x NVIDIA RTX PRO 6000 Blackwell")
    order = ("too little: weights", "Loaded weights leave no GPU memory", "Settings that fit", "Where the memory of one GPU goes", "Checks, in the order of the start", "Host while loading")  # fmt: skip
    places = [text.index(each) for each in order]
    assert places == sorted(places)


def test_what_the_bars_show_stands_in_words_beside_them(page: str) -> None:
    seen = Seen(page)
    labels = [attributes["aria-label"] for tag, attributes in seen.elements if tag == "svg" and attributes.get("role") == "img"]  # fmt: skip
    assert any("weights 71." in label and "KV cache 0.00" in label and "left" in label for label in labels)
    assert all(
        attributes.get("aria-hidden") == "true" or "aria-label" in attributes
        for tag, attributes in seen.elements
        if tag == "svg"
    )
    row = re.search(r'<th scope="row">CUDA graphs</th><td class="number">([\d.]+)</td><td class="number spread">([\d.]+ to [\d.]+)</td>', page)  # fmt: skip
    assert row is not None


def test_bars_follow_each_other_and_stay_in_the_chart(page: str) -> None:
    strip = page[page.index('<svg class="strip"') : page.index("</svg>", page.index('<svg class="strip"'))]
    bars = [(float(x), float(width)) for x, width in re.findall(r'<rect class="part [\w-]+" x="([\d.]+)%" width="([\d.]+)%"', strip)]  # fmt: skip
    assert len(bars) > 5
    assert bars == sorted(bars)
    assert all(0 <= x <= 100 and x + width <= 100.5 for x, width in bars)


def test_more_than_there_is_has_a_line_where_the_memory_ends() -> None:
    page = render(samples.overfull(), "html")
    assert 'class="limit"' in page
    assert "more than there is" in page


def test_what_an_engine_refuses_stands_before_the_bars() -> None:
    for form in ("html", "markdown", "text"):
        shown = render(samples.overfull(), form)
        assert re.search(r"It would print:", shown)
        assert shown.index("--tensor-parallel-size") < shown.index("One GPU, as CUDA counts its memory")


def test_a_page_of_hostile_text_points_nowhere_and_holds_no_control_character() -> None:
    page = render(samples.hostile_fit(), "html")
    for tag, attributes in Seen(page).elements:
        assert tag not in ("iframe", "object", "embed", "base", "form", "img"), tag
        assert not any(name.startswith("on") or name in ("style", "src") for name in attributes), attributes
    assert page.count("<script>") == 1
    assert not any(unicodedata.category(each) in ("Cc", "Cf") for each in page if each != "\n")


def test_an_issue_of_hostile_text_means_nothing_to_github() -> None:
    for found in (samples.hostile_fit(), samples.fitted(), samples.overfull()):
        assert_inert(render(found, "markdown", Detail(is_private=True)))
        assert_inert(render(found, "markdown"))


def test_the_issue_has_bars_that_keep_their_shape_and_tables(fitted: FitAnswer) -> None:
    issue = render(fitted, "markdown")
    assert issue.startswith("## Fails: ")
    blocks = [token.content for token in tokens(issue) if token.type == "fence"]
    assert any(re.search(r"^  weights +71\.\d\d #{20,}", each, re.MULTILINE) for each in blocks)
    assert "| kv-cache | **fails** |" in issue
    assert "`--mem-fraction-static 0." in issue


def test_the_longest_message_of_an_engine_is_whole_in_an_issue() -> None:
    answer = samples.fitted()
    decisive = answer.estimate.decisive
    assert decisive is not None
    blocks = [token.content for token in tokens(render(answer, "markdown")) if token.type == "fence"]
    assert decisive.message in "".join(blocks[0].splitlines())


def test_one_line_says_it(fitted: FitAnswer) -> None:
    (line,) = render(fitted, "oneline").splitlines()
    assert re.match(r"moonshotai/Kimi-K2\.6 on 8 x NVIDIA .*, SGLang 0\.5\.23: fails: \d\.\d\d GiB too little", line)


def test_what_was_saved_is_shown_again(fitted: FitAnswer) -> None:
    document = render(fitted, "json")
    assert json.loads(document)["estimate"]["verdict"] == "fails"
    assert read_answer(document.encode(), "a.json") == fitted
