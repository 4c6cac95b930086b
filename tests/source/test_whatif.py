"""What a value decides: only what is certain is told."""

from __future__ import annotations

import textwrap

from tests.source.asking import traced_in

from gpuwhy.source.tracing import Question


def what_ifs(code: str) -> dict[tuple[str, str], str]:
    answer = traced_in({"m.py": textwrap.dedent(code)}, Question(symbol="pkg.m:f"))
    assert answer.guard is not None
    return {(each.source, value): each.outcome for each in answer.guard.what_ifs for value in each.values}


def test_an_empty_collection_makes_a_search_fail() -> None:
    found = what_ifs("""
        def f(items):
            ok = False
            for item in items:
                if item > 3:
                    ok = True
            if not ok:
                raise ValueError("none")
    """)
    assert found == {("items", "empty"): "always"}


def test_a_flag_that_turns_the_check_off() -> None:
    found = what_ifs("""
        def f(strict):
            if strict:
                raise ValueError
    """)
    assert found == {("strict", "empty"): "never", ("strict", "None"): "never", ("strict", "False"): "never", ("strict", "True"): "always"}  # fmt: skip


def test_a_second_pass_of_a_loop_is_thought_of() -> None:
    found = what_ifs("""
        def f(items, flag):
            seen = False
            for item in items:
                if seen and flag:
                    raise ValueError
                seen = True
    """)
    assert ("flag", "True") not in found
    assert found[("flag", "False")] == "never"


def test_empty_is_a_text_a_list_and_a_mapping_alike() -> None:
    found = what_ifs("""
        def f(name):
            if name == "":
                raise ValueError
    """)
    assert ("name", "empty") not in found
    assert found[("name", "None")] == "never"


def test_an_exception_may_leave_a_try_at_any_point() -> None:
    found = what_ifs("""
        def f(on):
            found = False
            try:
                if on:
                    found = True
                probe()
            except OSError:
                pass
            if not found:
                raise ValueError
    """)
    assert ("on", "True") not in found
