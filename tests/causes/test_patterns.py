"""No pattern of the catalogue takes long on hostile text: each is timed on what makes backtracking explode."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time

import pytest

import gpuwhy.causes
from gpuwhy.causes import catalogue
from gpuwhy.causes._lazy_patterns import LazyPattern
from gpuwhy.diagnosis.matching import PATTERN_WINDOW

SECONDS_ALLOWED = 0.5
TOKENS = (
    "a", " ", "Error", "error: ", "Error.", "1", "12.0 ", "sm_", "sm_90 ", "compute_120 ", "/", "/usr/", ":", "'", '"', "(", "[", "_", "-",
    ".", "=", "\\", "CUDA ", "requires ", "GPU ", "nvcc ", "device ", "not ", "supported ", "only ", "the ", "a.b", "x/y.z ", "0x", ", ",
)  # fmt: skip
HOSTILE = tuple((token * PATTERN_WINDOW)[:PATTERN_WINDOW] for token in TOKENS) + tuple(
    ((first + second) * PATTERN_WINDOW)[:PATTERN_WINDOW] + "!"
    for first, second in (
        ("Error", "a"),
        ("/a", " "),
        ("1.", "1"),
        ("sm_90", ","),
        ("not ", "supported "),
        ("a", "="),
        ("'", "a"),
    )
)


def patterns() -> dict[str, re.Pattern[str]]:
    """The patterns of signs, and those that the modules of the catalogue compile."""
    found = {
        f"{entry.id}: {sign.name}": re.compile(sign.pattern, re.IGNORECASE)
        for entry in catalogue().values()
        for sign in entry.signs
        if sign.pattern
    }
    for module in pkgutil.walk_packages(gpuwhy.causes.__path__, "gpuwhy.causes."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern | LazyPattern):
                # a source that is no pattern shows here
                found[f"{module.name}.{name}"] = re.compile(value.pattern, value.flags)
    return found


PATTERNS = patterns()


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_a_pattern_is_fast_on_hostile_text(name: str) -> None:
    for text in HOSTILE:
        begun = time.process_time()
        PATTERNS[name].search(text)
        took = time.process_time() - begun
        assert took < SECONDS_ALLOWED, f"{took:.2f} s on {text[:40]!r}..."
