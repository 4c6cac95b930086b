"""Everything on a page by keyboard alone."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys
from tests.browser.conftest import page_of
from tests.browser.opening import Browser

_FOCUSED = "const e = document.activeElement; return (e.getAttribute('class') || e.tagName).toString() + ' ' + (e.getAttribute('href') || e.getAttribute('data-do') || '')"


@pytest.fixture
def seed(browser: Browser) -> Browser:
    browser.open(page_of("seed"))
    return browser


def reached(browser: Browser, selector: str, most: int = 150) -> None:
    """Press Tab until an element that matches has the focus."""
    for _ in range(most):
        browser.press(Keys.TAB)
        if browser.run("return document.activeElement.matches(arguments[0])", selector):
            return
    raise AssertionError(f"{selector} is not reached by Tab")


def test_tab_reaches_everything_that_can_be_used(seed: Browser) -> None:
    seed.unfold()
    usable = "return [...document.querySelectorAll('a[href], button, summary, [tabindex=\"0\"]')].filter(e => e.checkVisibility() && !e.closest('.lines')).length"
    number = seed.run(usable)
    met = set()
    for _ in range(number + 5):
        seed.press(Keys.TAB)
        met.add(seed.run("const all = [...document.querySelectorAll('*')]; return all.indexOf(document.activeElement)"))
        if seed.run("return !!document.activeElement.closest('.lines')"):
            break
    assert len(met) >= number


def test_the_focus_is_always_seen(seed: Browser) -> None:
    for selector in (".copy", ".contents a", ".node", "summary", ".axis"):
        reached(seed, selector)
        style = seed.run(
            "const s = getComputedStyle(document.activeElement), r = document.activeElement.querySelector('rect'); return s.outlineStyle + ' ' + s.outlineWidth + ' ' + (r ? getComputedStyle(r).strokeWidth : '')"
        )
        assert style.startswith("solid 3px") or style.endswith("4px"), (selector, style)


def test_skip_to_the_answer(seed: Browser) -> None:
    seed.press(Keys.TAB)
    assert seed.run(_FOCUSED) == "skip #main"
    seed.press(Keys.ENTER)
    assert seed.run("return location.hash") == "#main"


def test_a_box_of_the_chain_shows_what_shows_it(seed: Browser) -> None:
    assert seed.run("return [...document.querySelectorAll('.link.on')].map(e => e.id)") == ["link-1"]
    reached(seed, ".node")
    assert seed.run("return document.activeElement.dataset.link") == "6"
    assert seed.run("return [...document.querySelectorAll('.link.on')].map(e => e.id)") == ["link-6"]
    seed.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert seed.run("return document.activeElement.dataset.link") == "4"
    assert seed.run("return document.querySelector('.link.on').innerText").count("swallowed") >= 1
    seed.press(Keys.ARROW_UP)
    assert seed.run("return document.querySelector('.link.on').id") == "link-5"


def test_a_command_is_copied_as_it_stands(seed: Browser) -> None:
    seed.tell("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    reached(seed, ".commands .copy")
    stands = seed.run("return document.activeElement.parentNode.querySelector('code').textContent")
    seed.press(Keys.ENTER)
    copied = seed.driver.execute_async_script(
        "navigator.clipboard.readText().then(arguments[0], e => arguments[0](String(e)))"
    )
    assert copied == stands.rstrip("\n")
    assert "systemctl daemon-reload\n" in copied
    assert seed.run("return document.activeElement.textContent") == "Copied"


def test_remedies_are_folded_and_unfolded(seed: Browser) -> None:
    reached(seed, ".steps li:nth-child(2) summary")
    body = "return document.querySelector('.steps li:nth-child(2) .body').checkVisibility()"
    assert seed.run(body) is False
    seed.press(Keys.ENTER)
    assert seed.run(body) is True


def test_a_place_leads_to_the_line_of_the_log_even_when_that_is_folded(seed: Browser) -> None:
    seed.run("document.querySelector('details.log').open = false")
    reached(seed, ".link.on a.place, .evidence a.place")
    target = seed.run("return document.activeElement.getAttribute('href').slice(1)")
    seed.press(Keys.ENTER)
    assert seed.run(
        "const box = document.getElementById(arguments[0]).getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight",
        target,
    )
    assert seed.run("return document.querySelector(':target').classList.contains('cited')")


def places(browser: Browser) -> list[float]:
    found: list[float] = browser.run(
        "return [...document.querySelectorAll('svg.m')].sort((a, b) => a.dataset.id - b.dataset.id).map(m => parseFloat(m.getAttribute('x')))"
    )
    return found


def test_the_time_line_is_walked_zoomed_and_moved(seed: Browser) -> None:
    reached(seed, ".axis")
    said = "return document.activeElement.getAttribute('aria-valuetext')"
    assert "Failed to get device capability" in seed.run(said)
    before = places(seed)
    seed.press(Keys.ARROW_RIGHT)
    assert "server_args" in seed.run(said)
    assert "server_args" in seed.run("return document.querySelector('.chosen').innerText")
    seed.press(Keys.HOME)
    assert "Out of memory" in seed.run(said)
    seed.press(Keys.END)
    assert "Failed with result" in seed.run(said)
    seed.press("+", "+")
    zoomed = places(seed)
    assert max(zoomed) - min(zoomed) > 3 * (max(before) - min(before))
    seed.press(Keys.PAGE_UP)
    assert places(seed) != zoomed
    seed.press("0")
    assert places(seed) == pytest.approx(before, abs=0.01)


def test_the_buttons_of_the_time_line(seed: Browser) -> None:
    before = places(seed)
    reached(seed, "[data-do=failure]")
    seed.press(Keys.ENTER)
    around = places(seed)
    assert max(around) - min(around) > 3 * (max(before) - min(before))
    assert seed.run(
        "const box = document.querySelector('.axis').getBoundingClientRect(), m = document.querySelector('.m.primary').getBoundingClientRect(); return m.left > box.left && m.right < box.right"
    )
    seed.press_backwards()
    seed.press(Keys.SPACE)
    assert places(seed) == pytest.approx(before, abs=0.01)


def test_labels_of_the_axis_never_touch_however_far_it_is_zoomed(browser: Browser) -> None:
    for width in (360, 1600):
        browser.open(page_of("seed"), width)
        reached(browser, ".axis")
        for _ in range(14):
            browser.press("+")
            assert browser.overlaps() == []


def test_a_log_without_times_has_an_axis_of_lines(browser: Browser) -> None:
    browser.open(page_of("untimed"))
    reached(browser, ".axis")
    assert "line 1" in browser.run(
        "return document.querySelector('.axis').innerText || document.querySelector('.axis').textContent"
    )
    browser.press(Keys.END)
    assert browser.console() == []
