"""Options and variables that engines dropped or renamed."""

from __future__ import annotations

import pytest

from gpuwhy.knowledge import renamed_switches


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
    change = renamed_switches.change_of(engine, option)
    assert change is not None
    assert change.instead == instead


def test_a_dropped_option_has_no_successor_and_says_why() -> None:
    change = renamed_switches.change_of("vllm", "--swap-space")
    assert change is not None
    assert change.instead == ""
    assert change.why


def test_what_is_not_recorded_is_none() -> None:
    assert renamed_switches.change_of("vllm", "--port") is None
    assert renamed_switches.change_of("nobody", "--swap-space") is None


def test_every_row_is_an_option_and_stands_once() -> None:
    rows = [(change.engine, change.name) for change in renamed_switches._CHANGES]
    assert len(rows) == len(set(rows))
    assert all(name.startswith("-") or name.isupper() for _, name in rows)


@pytest.mark.parametrize(
    ("package", "name", "value", "other"),
    [
        ("vllm", "VLLM_ATTENTION_BACKEND", "TRITON_ATTN", ("flag", "--attention-backend", "TRITON_ATTN")),
        ("vllm", "--attention-backend", "TRITON_ATTN", ("env", "VLLM_ATTENTION_BACKEND", "TRITON_ATTN")),
        ("vllm", "--disable-log-requests", "set", ("flag", "--no-enable-log-requests", "")),
        ("sglang", "--moe-a2a-backend", "deepep", ("flag", "--enable-deepep-moe", "")),
        ("sglang", "--enable-deepep-moe", "", ("flag", "--moe-a2a-backend", "deepep")),
        ("sglang", "--cuda-graph-max-bs", "64", ("flag", "--cuda-graph-max-bs-decode", "64")),
        ("sglang", "SGL_X", "1", ("env", "SGLANG_X", "1")),
    ],
)
def test_one_thing_has_other_spellings_in_other_releases(
    package: str, name: str, value: str, other: tuple[str, str, str]
) -> None:
    found = [(each.kind, each.name, each.value) for each in renamed_switches.other_spellings(package, name, value)]
    assert other in found


def test_another_value_is_not_what_the_old_switch_said() -> None:
    assert not list(renamed_switches.other_spellings("sglang", "--moe-a2a-backend", "mooncake"))
    assert not list(renamed_switches.other_spellings("sglang", "--moe-a2a-backend", ""))


def test_an_option_of_another_engine_is_no_other_spelling() -> None:
    assert not list(renamed_switches.other_spellings("sglang", "--max-model-len", "4096"))
