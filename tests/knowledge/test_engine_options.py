"""Options that engines dropped or renamed."""

from __future__ import annotations

import pytest

from gpuwhy.knowledge import engine_options


@pytest.mark.parametrize(
    ("engine", "option", "instead"),
    [
        ("vllm", "--speculative-model", "--speculative-config"),
        ("vllm", "--speculative_model", "--speculative-config"),
        ("sglang", "--enable-deepep-moe", "--moe-a2a-backend deepep"),
        ("sglang", "--max-model-len", "--context-length"),
    ],
)
def test_a_renamed_option_leads_to_its_present_name(engine: str, option: str, instead: str) -> None:
    change = engine_options.change_of(engine, option)
    assert change is not None
    assert change.instead == instead


def test_a_dropped_option_has_no_successor_and_says_why() -> None:
    change = engine_options.change_of("vllm", "--swap-space")
    assert change is not None
    assert change.instead == ""
    assert change.why


def test_what_is_not_recorded_is_none() -> None:
    assert engine_options.change_of("vllm", "--port") is None
    assert engine_options.change_of("nobody", "--swap-space") is None


def test_every_row_is_an_option_and_stands_once() -> None:
    rows = [(change.engine, change.name) for change in engine_options._CHANGES]
    assert len(rows) == len(set(rows))
    assert all(name.startswith("-") for _, name in rows)
