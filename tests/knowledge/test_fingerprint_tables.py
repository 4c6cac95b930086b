"""What the maker writes the reader reads: every line of every release at its place, and in no other release."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import msgpack
from scripts.fingerprinting.coverage import PACKAGES, Package, Release
from scripts.fingerprinting.encoding import encoded
from scripts.fingerprinting.sites import Site, sites

from gpuwhy.knowledge import fingerprints
from gpuwhy.knowledge.fingerprints import FrameTable, StoredTable, is_recorded, scope_tag, text_hash

SOURCE = b'''\
"""A text that says call() and raise Error(here)."""
from json import (
    loads,
)
import os

LIMIT = int("3")


class Engine:
    size = max(1, 2)

    @property
    def name(self):
        return [part(x) for x in self.parts]

    def run(self, *, limit=int("4")):
        # run(1)
        return (
            self.model
            .forward(
                self.batch(),
            )
        )


def fail():
    raise ValueError(
        "too much (really)"
    )


key = sorted([], key=lambda x: abs(x))
'''

OURS = Package("ours", "ours", "1", r"left_out/")


def table(
    editions: dict[str, dict[int, str]], releases: list[str], contents: dict[str, list[Site] | None]
) -> FrameTable:
    packed = encoded(OURS, releases, editions, contents.__getitem__)
    return FrameTable(msgpack.decode(packed, type=StoredTable))


def test_the_lines_that_a_traceback_can_show() -> None:
    found = sites(SOURCE)
    assert found is not None
    assert [(site.line, site.scope, site.text.strip()) for site in found] == [
        (1, "<module>", '"""A text that says call() and raise Error(here)."""'),
        (2, "<module>", "from json import ("),
        (5, "<module>", "import os"),
        (7, "<module>", 'LIMIT = int("3")'),
        (11, "Engine", "size = max(1, 2)"),
        (15, "name", "return [part(x) for x in self.parts]"),
        (19, "run", "return ("),
        (21, "run", ".forward("),
        (22, "run", "self.batch(),"),
        (28, "fail", "raise ValueError("),
        (29, "fail", '"too much (really)"'),
        (33, "<module>", "key = sorted([], key=lambda x: abs(x))"),
    ]


def test_a_file_for_another_python_is_left_out_in_all_releases() -> None:
    assert sites(b"def f(:\n") is None
    read = table({"ours/a.py": {0: "good", 1: "bad"}}, ["1", "2"], {"good": sites(b"f()\n"), "bad": None})
    assert not read.has("a.py")
    assert read.leaves_out("a.py")


def test_what_is_not_covered_is_known_to_be_left_out() -> None:
    read = table({"ours/left_out/a.py": {0: "k"}, "ours/b.py": {0: "k"}}, ["1"], {"k": sites(b"f()\n")})
    assert (read.has("b.py"), read.leaves_out("b.py")) == (True, False)
    assert (read.has("left_out/a.py"), read.leaves_out("left_out/a.py")) == (False, True)


@st.composite
def histories(draw: st.DrawFn) -> list[list[tuple[int, str, str]] | None]:
    """The lines of one file in each release: distance, function, text; None where the release lacks it."""
    line = st.tuples(
        st.integers(1, 700), st.sampled_from(["f", "g", "<module>"]), st.sampled_from([f"call_{n}()" for n in range(6)])
    )
    editions: list[list[tuple[int, str, str]] | None] = []
    current = draw(st.lists(line, max_size=8))
    for _ in range(draw(st.integers(1, 6))):
        change = draw(st.sampled_from(["same", "edit", "gone", "move"]))
        if change == "edit":
            at = draw(st.integers(0, len(current)))
            current = current[:at] + draw(st.lists(line, max_size=3)) + current[draw(st.integers(at, len(current))) :]
        if change == "move" and current:
            at = draw(st.integers(0, len(current) - 1))
            current = [*current[:at], (current[at][0] + 1, *current[at][1:]), *current[at + 1 :]]
        editions.append(None if change == "gone" else current)
    return editions


@settings(max_examples=150)
@given(history=histories())
def test_every_release_has_its_own_lines_and_no_others(history: list[list[tuple[int, str, str]] | None]) -> None:
    placed = [None if lines is None else placed_lines(lines) for lines in history]
    keys = {number: str(number) for number, lines in enumerate(placed) if lines is not None}
    contents: dict[str, list[Site] | None] = {key: placed[number] for number, key in keys.items()}
    read = table({"ours/a.py": keys}, [str(number) for number in range(len(history))], contents)
    seen = 0
    for edition in read.editions("a.py"):
        for number, lines in enumerate(placed):
            if edition.releases >> number & 1:
                assert not seen >> number & 1
                assert lines is not None
                expected = {site.line: (scope_tag(site.scope), text_hash(site.text)) for site in lines}
                last = max(expected, default=0)
                assert {at: edition.at(at) for at in range(last + 3) if edition.at(at)} == expected
        seen |= edition.releases
    assert seen == sum(1 << number for number, lines in enumerate(placed) if lines is not None)


def placed_lines(lines: list[tuple[int, str, str]]) -> list[Site]:
    placed, at = [], 0
    for distance, scope, text in lines:
        at += distance
        placed.append(Site(at, scope, text))
    return placed


@pytest.mark.parametrize(
    "text", ["f(x)", "return f(", "raise", "raise Error from error", "import os", "from a import b", ".g("]
)
def test_lines_that_are_recorded(text: str) -> None:
    assert is_recorded(f"    {text}  ")


@pytest.mark.parametrize(
    "text", ["", "x = y[0]", "def f(x):", "async def f(x):", "class A(B):", "@f(x)", "self.default"]
)
def test_lines_that_are_not(text: str) -> None:
    assert not is_recorded(text)


def test_names_of_functions_as_different_printers_give_them() -> None:
    assert scope_tag("Engine.run") == scope_tag("run") == scope_tag("run(self, x)")
    assert scope_tag("torch_dynamo_resume_in_run_at_12") == scope_tag("run")
    assert scope_tag("<listcomp>") == scope_tag("<lambda>") == 0
    assert scope_tag("<module>") != 0


def test_pre_releases_are_covered_and_old_releases_not() -> None:
    package = PACKAGES["vllm"]
    releases = [Release(version, "2026-01-01", "", 1) for version in ("0.9.2", "0.10.0", "0.11.0rc1", "0.11.0")]
    assert [release.version for release in package.chosen(releases)] == ["0.10.0", "0.11.0rc1", "0.11.0"]


def test_an_engine_is_covered_and_tests_and_single_models_are_not() -> None:
    package = PACKAGES["vllm"]
    assert package.records("vllm/v1/engine/core.py")
    assert package.records("vllm/model_executor/models/registry.py")
    assert not package.records("vllm/model_executor/models/gemma2.py")
    assert not package.records("vllm/v1/tests/core.py")
    assert package.has("vllm/model_executor/models/gemma2.py")
    assert not package.has("vllm/data.json")


def test_a_package_without_a_table_is_an_error() -> None:
    with pytest.raises(OSError):
        fingerprints.table("numpy")
