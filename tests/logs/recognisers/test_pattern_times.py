"""No pattern of the readers of lines takes long on hostile text: each is timed on what makes backtracking explode."""

from __future__ import annotations

import importlib
import pkgutil
import time
from collections.abc import Iterator

import pytest

from gpuwhy.logs import recognisers
from gpuwhy.logs.patterns import Pattern

SECONDS_ALLOWED = 0.5
LONGEST = 2000
TOKENS = (
    "a", " ", "0", "Error", "error: ", "Failed ", "1", "/", "/usr/x.cu:1 ", ":", "'", '"', "(", "[", "_", "-", ".", "=", "!", "CUDA error ", "Xid (", "SXid (a): 1, Link 1 ", "exited ",
    "line 1: ", "PG ID 0 ", "Rank 1] ", "connect to ", "Insufficient a", "Warning  Failed  ", "in function a at ", "kernel: ", "memory: Killed process ", "oom-kill:constraint=A,", "timed out ",
    "ld: ", "a: b: ", "1/1 ", "Exit Code: ", "x.c:", "from library /", "TPU ", "amdgpu ", "no output ", "the hang ",
)  # fmt: skip
HOSTILE = tuple((token * LONGEST)[:LONGEST] for token in TOKENS) + tuple(
    ((first + second) * LONGEST)[:LONGEST] + "!"
    for first, second in (("a", " "), ("/a", " "), (" ", "1 "), ("a:", " "), ("'", "a"), ("a", "."), ("(", ")"))
)


def patterns(value: object) -> Iterator[Pattern]:
    if isinstance(value, Pattern):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from patterns(each)
    elif isinstance(value, dict):
        yield from patterns(tuple(value.values()))
    elif hasattr(value, "__struct_fields__"):
        yield from patterns(tuple(getattr(value, name) for name in value.__struct_fields__))


def modules() -> list[str]:
    found = [module.name for module in pkgutil.iter_modules(recognisers.__path__, recognisers.__name__ + ".")]
    return [*found, "gpuwhy.logs.explanations", "gpuwhy.logs.continuations", "gpuwhy.logs.echoes"]


@pytest.mark.parametrize("name", modules())
def test_the_patterns_of_a_module_are_fast_on_hostile_text(name: str) -> None:
    values = vars(importlib.import_module(name)).values()
    for pattern in {id(pattern): pattern for value in values for pattern in patterns(value)}.values():
        for text in HOSTILE:
            begun = time.process_time()
            pattern.search(text)
            took = time.process_time() - begun
            assert took < SECONDS_ALLOWED, f"{pattern.source[:120]}: {took:.2f} s on {text[:30]!r}..."
