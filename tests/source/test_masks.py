"""From a symptom to the cause that something else hid, without a rule for it."""

from __future__ import annotations

import pytest
from tests.source.asking import traced
from tests.source.masks import IN_CI, MASKS, Mask


@pytest.mark.parametrize(
    "mask", [each for each in MASKS if each.number in IN_CI], ids=lambda mask: f"M{mask.number:02}"
)
def test_hidden_cause(mask: Mask) -> None:
    assert mask.is_found(traced(mask.question, *mask.releases)), mask.symptom


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_every_one_of_the_collection_is_found() -> None:
    assert {mask.number for mask in MASKS if mask.number < 100} == set(range(1, 40))
    missed = [mask.number for mask in MASKS if not mask.is_found(traced(mask.question, *mask.releases))]
    assert not missed
