"""No answer is longer than its budget, nothing is lost, and a cursor works once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwhy.mcp.paging import KEPT, Pages, UnknownCursorError, encoded

BUDGET = 1500


def all_pages(pages: Pages, first: dict[str, Any]) -> list[dict[str, Any]]:
    found = [first]
    while cursor := found[-1].get("next_cursor"):
        found.append(pages.next("t", cursor))
    return found


@settings(deadline=None)
@given(st.lists(st.text(max_size=400), max_size=60))
def test_every_page_is_within_the_budget_and_all_rows_come_in_order(texts: list[str]) -> None:
    pages = Pages(BUDGET)
    found = all_pages(pages, pages.first("t", {"head": "h"}, [("rows", text) for text in texts]))
    assert all(len(encoded(page)) <= BUDGET for page in found)
    assert [row for page in found for row in page.get("rows", [])] == texts or any(
        "[cut]" in str(page) for page in found
    )


@pytest.mark.parametrize("value", ["x" * 50_000, {"a": "y" * 9000, "b": ["z" * 900] * 90}, ["w"] * 9000, {str(n): n for n in range(3000)}])  # fmt: skip
def test_a_row_that_is_too_long_is_cut_and_does_not_stop_the_rest(value: Any) -> None:
    pages = Pages(BUDGET)
    found = all_pages(pages, pages.first("t", {"head": 1}, [("rows", value), ("rows", "after")]))
    assert all(len(encoded(page)) <= BUDGET for page in found)
    assert found[-1]["rows"][-1] == "after"


def test_a_head_that_is_too_long_is_cut() -> None:
    assert len(encoded(Pages(BUDGET).first("t", {"title": "x" * 100_000}, []))) <= BUDGET


def test_how_many_entries_are_left_is_said() -> None:
    page = Pages(BUDGET).first("t", {}, [("rows", "x" * 400)] * 10)
    assert page["entries_left"] + len(page["rows"]) == 10


def test_a_cursor_works_once_and_for_its_tool_only() -> None:
    pages = Pages(BUDGET)
    rows = [("rows", "x" * 400)] * 10
    cursor = pages.first("t", {}, rows)["next_cursor"]
    pages.next("t", cursor)
    with pytest.raises(UnknownCursorError):
        pages.next("t", cursor)
    other = pages.first("t", {}, rows)["next_cursor"]
    with pytest.raises(UnknownCursorError):
        pages.next("u", other)


def test_old_rests_are_forgotten() -> None:
    pages = Pages(BUDGET)
    cursors = [pages.first("t", {}, [("rows", "x" * 400)] * 10)["next_cursor"] for _ in range(KEPT + 1)]
    with pytest.raises(UnknownCursorError):
        pages.next("t", cursors[0])
    assert pages.next("t", cursors[1])["rows"]
