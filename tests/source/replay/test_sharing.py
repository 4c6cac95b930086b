"""Whether anything changes a value that modules share: every way of writing is found, and every way of reading left alone."""

from __future__ import annotations

import pytest

from gpuwhy.source.replay.outcome import SharedValue
from gpuwhy.source.replay.sharing import written_by

OBJECT = SharedValue("pkg.core", "pkg/core.py", "context", "pkg/context.py", "Context", ("levels", "size"), ("levels",))
SET = SharedValue("pkg.core", "pkg/core.py", "LEVELS", containers=("LEVELS",))

READS = """\
for level in context.levels: pass
found = [level for level in context.levels if level]
any(level > 3 for level in core.context.levels)
print(f"{context.levels}", str(context.levels), context.size + 1)
if not context.levels or 3 in context.levels: pass
both = others & context.levels
context.levels.union(others)
context.reset()
hand_on(context)
x = context.size
first = context.levels[0]
""".splitlines()
WRITES = """\
context.levels = set()
context.levels |= {1}
context.levels.add(3)
context.levels[0] = 1
del context.levels
context.size = 3
context.size += 1
core.context = other
context = other
setattr(core, "context", other)
setattr(context, "levels", {1})
setattr(context, name, {1})
core.__dict__["context"] = other
context.__dict__.update(changed)
hand_on(context.levels)
hand_on(levels=context.levels)
kept = [context.levels]
levels = context.levels
for context.size in range(3): pass
with opened() as context.size: pass
def f():
    return context.levels
def f():
    levels = context.levels
    levels.add(3)
def f():
    global context
    context = other
""".replace("\n    ", "\x00").splitlines()


@pytest.mark.parametrize("line", READS)
def test_reading_changes_nothing(line: str) -> None:
    assert written_by(OBJECT, {"pkg/other.py": line}) == ""


@pytest.mark.parametrize("line", WRITES)
def test_every_way_of_writing_counts(line: str) -> None:
    assert written_by(OBJECT, {"pkg/other.py": line.replace("\x00", "\n    ")}).startswith("pkg/other.py:")


def test_what_makes_the_object_was_replayed() -> None:
    made = "class Context:\n    def __init__(self):\n        self.levels = set()\n        self.levels.add(3)\n        self.size = 1\n"
    assert written_by(OBJECT, {"pkg/context.py": made, "pkg/core.py": "context = Context()\ncontext.size\n"}) == ""
    assert written_by(OBJECT, {"pkg/elsewhere.py": made}) == "pkg/elsewhere.py:3"
    later = made + "    def grow(self):\n        self.size += 1\n"
    assert written_by(OBJECT, {"pkg/context.py": later}) == "pkg/context.py:7"
    another = made.replace("class Context", "class Other")
    assert written_by(OBJECT, {"pkg/context.py": another}) == "pkg/context.py:3"


def test_a_local_name_is_followed_through_its_function() -> None:
    read = (
        "def f():\n    levels = context.levels\n    for level in levels:\n        yield level\n    return len(levels)\n"
    )
    assert written_by(OBJECT, {"pkg/other.py": read}) == ""
    assert written_by(OBJECT, {"pkg/other.py": read.replace("len(levels)", "levels")}) == "pkg/other.py:2"


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("from pkg.core import LEVELS\nif LEVELS: pass", ""),
        ("from pkg.core import LEVELS as other", "pkg/other.py:1"),
        ("LEVELS.add(1)", "pkg/other.py:1"),
        ("core.LEVELS.clear()", "pkg/other.py:1"),
        ("def f(): use(core.LEVELS)", "pkg/other.py:1"),
        ("def broken(:", "pkg/other.py, which could not be parsed"),
    ],
)
def test_a_set_at_the_top_of_a_module(line: str, where: str) -> None:
    own = "LEVELS = set()\nLEVELS.add(2)\n"
    assert written_by(SET, {"pkg/core.py": own, "pkg/other.py": line}) == where


def test_a_function_of_its_own_module_that_adds_is_a_writer() -> None:
    assert written_by(SET, {"pkg/core.py": "LEVELS = set()\ndef add():\n    LEVELS.add(2)\n"}) == "pkg/core.py:3"
