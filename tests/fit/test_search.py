"""The search for settings that fit: nearest first, each one estimated to start, each change with its price."""

from __future__ import annotations

import time

import msgspec
import pytest
from tests.fit.models import KIMI, SEED_GPU, model, model_of

from gpuwhy.fit.arguments import read_arguments, read_command
from gpuwhy.fit.estimate import estimate
from gpuwhy.fit.hardware import Hardware, hardware_of
from gpuwhy.fit.results import Verdict
from gpuwhy.fit.search import MOST_ESTIMATES, Goal, Proposal, Search, search
from gpuwhy.knowledge.gpu_memory_sizes import memory_of


def hardware(gpu: str, number: int) -> Hardware:
    memory = memory_of(gpu)
    assert memory is not None
    return hardware_of(memory, number)


def seed(engine: str, flags: str, goal: Goal) -> Search:
    name, _, version = engine.partition(" ")
    return search(model(KIMI), hardware(SEED_GPU, 8), read_command(name, version, flags), goal)


def words(proposal: Proposal) -> list[str]:
    return [word for each in proposal.changes for word in (each.flag, each.value) if word and each.value != "remove"]


def test_the_smallest_change_is_the_fraction() -> None:
    first = seed("sglang 0.5.23", "--tp 8", Goal.CONTEXT).proposals[0]
    assert [each.flag for each in first.changes] == ["--mem-fraction-static"]
    assert 0.80 <= float(first.changes[0].value) <= 0.93


@pytest.mark.parametrize("goal", list(Goal))
@pytest.mark.parametrize("engine", ["sglang 0.5.23", "sglang 0.5.9", "vllm 0.33.0"])
def test_every_proposal_starts_when_it_is_typed(engine: str, goal: Goal) -> None:
    name, _, version = engine.partition(" ")
    found = seed(engine, "--tensor-parallel-size 8", goal)
    assert found.proposals
    assert all(change.costs for each in found.proposals for change in each.changes)
    for each in found.proposals:
        changed = {flag for flag in words(each) if flag.startswith("--")}
        kept = [] if changed & {"--tp-size", "--tensor-parallel-size"} else ["--tensor-parallel-size", "8"]
        settings = read_arguments(name, version, [*kept, *words(each)])
        assert settings.unread == ()
        assert estimate(model(KIMI), hardware(SEED_GPU, 8), settings).verdict is Verdict.STARTS


@pytest.mark.parametrize("goal", list(Goal))
def test_a_larger_change_gives_more(goal: Goal) -> None:
    got = [each.achieved for each in seed("sglang 0.5.23", "--tp 8", goal).proposals]
    assert got == sorted(got)
    assert len(got) > 1


def test_a_command_that_starts_comes_first_as_it_is() -> None:
    found = seed("sglang 0.5.23", "--tp 8 --mem-fraction-static 0.86", Goal.CONCURRENCY)
    assert found.proposals[0].changes == ()


def test_what_the_engine_refuses_is_never_proposed() -> None:
    config = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
              "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064,
              "max_position_embeddings": 32768, "torch_dtype": "bfloat16"}  # fmt: skip
    found = search(model_of(config), hardware("H100", 8), read_command("vllm", "0.20.2", "-tp 8"), Goal.CONCURRENCY)
    assert found.refused > 0
    assert found.proposals
    for each in found.proposals:
        assert any(change.flag == "--tensor-parallel-size" for change in each.changes)


def test_a_model_that_cannot_fit_says_so() -> None:
    found = search(model(KIMI), hardware("H100", 2), read_command("vllm", "0.33.0", "-tp 2"), Goal.CONTEXT)
    assert found.proposals == ()
    assert "more GPUs" in found.says


def test_a_model_that_is_not_known_is_not_searched() -> None:
    assert search(model_of({}), hardware("H100", 1), read_command("vllm", "0.33.0", ""), Goal.CONTEXT).proposals == ()


def test_five_hundred_settings_take_less_than_two_seconds() -> None:
    begun = time.process_time()
    found = seed("sglang 0.5.23", "--tp 8 --speculative-algorithm EAGLE3", Goal.CONCURRENCY)
    assert time.process_time() - begun < 2
    assert 200 < found.estimated <= MOST_ESTIMATES


def test_the_result_is_plain_data() -> None:
    assert msgspec.json.decode(msgspec.json.encode(seed("vllm 0.33.0", "-tp 8", Goal.CONTEXT)), type=Search).proposals
