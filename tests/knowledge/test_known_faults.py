"""Known faults: every condition must be met, and a release with the fix has none."""

from __future__ import annotations

from gpuwhy.causes import catalogue
from gpuwhy.knowledge.known_faults import KNOWN_FAULTS, known_fault
from gpuwhy.model.remedy import KINDS

INSTRUCTION = "kernel-illegal-instruction"


def test_they_belong_to_causes_of_the_catalogue_and_say_where_they_were_found() -> None:
    for fault in KNOWN_FAULTS:
        assert fault.cause in catalogue()
        assert fault.provenance
        assert fault.majors or fault.words or fault.feature
    assert "package" in KINDS


def test_generation_and_library_decide() -> None:
    assert known_fault(INSTRUCTION, major=9, text="Using Marlin kernel") is not None
    assert known_fault(INSTRUCTION, major=8, text="Using Marlin kernel") is None
    assert known_fault(INSTRUCTION, major=9, text="Using another kernel") is None
    assert known_fault("wrong-output", major=9, text="Using Marlin kernel") is None


def test_an_unknown_generation_leaves_the_library_to_decide() -> None:
    assert known_fault(INSTRUCTION, major=None, text="Using Marlin kernel") is not None
    assert known_fault("wrong-output", major=None, text="", features=frozenset({"attention_sinks"})) is None


def test_a_release_with_the_fix() -> None:
    assert known_fault(INSTRUCTION, major=9, text="marlin", releases={"vllm": "0.4.1"}) is not None
    assert known_fault(INSTRUCTION, major=9, text="marlin", releases={"vllm": "0.10.0+cu128"}) is None


def test_a_range_of_releases_and_a_second_condition() -> None:
    text = "vllm serve google/gemma-3-12b-it --dtype half"

    def fits(text: str = text, engine: str = "vllm", release: str = "0.8.5") -> bool:
        return known_fault("wrong-output", major=7, text=text, engine=engine, releases={"vllm": release}) is not None

    assert fits()
    assert not fits(text.replace("half", "bfloat16"))
    assert not fits(text.replace("gemma", "llama"))
    assert not fits(engine="sglang")
    assert not fits(release="0.10.0")
