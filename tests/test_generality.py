"""The answer does not hang on numbers, prefixes, surroundings, or the last lines: a part of the labelled cases in other
clothes (`make generality` takes all of them)."""

from __future__ import annotations

import pytest
from scripts.generality import outcomes
from scripts.score import CASES, read_cases
from scripts.variations import VARIATIONS, buried, cut, is_decided_by, renumbered

EVERY = 6
"""Every sixth case: all of them take minutes."""
LONG = {"buried": 4}
"""Of these every fourth: each is a log of thousands of lines."""
LOST = {"cut": 0.1, "buried": 0.03}
"""Share of the cases that may be lost; the others may lose none."""


@pytest.mark.parametrize("variation", list(VARIATIONS))
def test_cases_keep_their_answers(variation: str) -> None:
    found = list(outcomes(read_cases(CASES)[:: EVERY * LONG.get(variation, 1)], (variation,)))
    kept = [each.kept for each in found if each.kept is not None]
    lost = [each for each in found if each.kept is False]
    assert len(kept) >= 12
    assert len(lost) <= LOST.get(variation, 0.0) * len(kept) + (variation in LOST), lost
    assert not [each for each in found if each.is_false or each.is_overbold]


def test_variations_do_what_they_say() -> None:
    text = 'pid=4711 10:00:00 2026-01-02 0x7f0011223344\n  File "a.py", line 12, in f\nRuntimeError: SM 12.x needs CUDA >= 12.9\n'
    other = renumbered(text)
    for gone in ("4711", "10:00:00", "2026-01-02", "0x7f0011223344", "line 12"):
        assert gone not in other
    assert "SM 12.x needs CUDA >= 12.9" in other
    assert len(buried("x\n").split("\n")) > 5_200
    assert cut("a\n" * 10) == "a\n" * 8
    assert is_decided_by(VARIATIONS["rank"]("one\ntwo\n"), "one two", "rank")
    assert not is_decided_by(cut("first\n" * 9 + "last\n"), "last", "cut")
