"""A file whose facts have a name is never left out by how the name is spelled in it."""

from __future__ import annotations

import pytest

from gpuwhy.source.facts import facts_of
from gpuwhy.source.parsing import parse
from gpuwhy.source.spelling import calling, defining, owning, writing

WRITES = [
    "self.level = 1", "self.level: int = 1", "self.level += 1", "self.level //= 2", "self.level, other = 1, 2", "(\n    self.level,\n    other,\n) = pair",
    "self.level[0] = 1", "self.level.append(1)", "self.level.update(a=1)", "setattr(self, 'level', 1)",
    "for self.level in range(3):\n    pass", "with open('x') as self.level:\n    pass", "x = self.level = 1", "[self.level] = [1]",
    "self.level[\n    'key'\n] = 1", "self.level \\\n    = 1",
]  # fmt: skip
CALLS = ["level()", "a.level(1)", "level (1)", "level(\n1)", "(a.level)(1)", "level[int](1)", "@level(1)\ndef f(): ..."]
MEMBERS = ["level = 1", "level: int", "level: int = 1", "def level(self): ...", "async def level(self): ...", "class level: ..."]  # fmt: skip


def _facts(text: str) -> tuple[set[str], set[str]]:
    found = facts_of(parse(text), text.split("\n"))
    return {each for unit in found.functions for each in unit.writes}, {each for unit in found.functions for each in unit.calls}  # fmt: skip


@pytest.mark.parametrize("text", WRITES)
def test_every_way_to_write_an_attribute(text: str) -> None:
    assert "level" in _facts(text)[0]
    assert writing("level").search(text.encode())
    assert owning("level").search(text.encode())


@pytest.mark.parametrize("text", CALLS)
def test_every_way_to_call(text: str) -> None:
    if "[int]" not in text:
        assert "level" in _facts(text)[1]
    assert calling("level").search(text.encode())


@pytest.mark.parametrize("text", MEMBERS)
def test_every_member_of_a_class(text: str) -> None:
    assert owning("level").search(f"class A:\n    {text}\n".encode())


def test_definitions() -> None:
    assert defining("level").search(b"class A:\n    async  def level(self): ...")
    assert not defining("level").search(b"x.level(1)")


@pytest.mark.parametrize("text", ["x.levels = 1", "print(x.level)", "x.level == 1", "y = x.level + 1", "level(1)"])
def test_most_uses_are_no_writes(text: str) -> None:
    assert not writing("level").search(text.encode())
