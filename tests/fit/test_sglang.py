"""SGLang by release: default fractions, what counts against them, and the size of the pool."""

from __future__ import annotations

import pytest
from tests.fit.models import KIMI, SEED_GPU, estimated, model, model_of

from gpuwhy.fit.amount import GIB, Amount
from gpuwhy.fit.architecture import read_architecture
from gpuwhy.fit.arguments import read_command
from gpuwhy.fit.graphs import sglang_batches, sglang_prefill_sizes
from gpuwhy.fit.hardware import hardware_of
from gpuwhy.fit.measured import Measured
from gpuwhy.fit.parallel import Parallel
from gpuwhy.fit.results import Verdict
from gpuwhy.fit.sglang import pool_budget, request_slots
from gpuwhy.fit.sglang_defaults import defaults
from gpuwhy.fit.workspaces import sglang_aiter, sglang_request_table
from gpuwhy.knowledge.engine_memory import sglang_memory
from gpuwhy.knowledge.gpu_memory_sizes import memory_of


def default_fraction(version: str, flags: str, gpu: str = SEED_GPU, name: str = KIMI) -> float:
    memory = memory_of(gpu)
    assert memory
    settings = read_command("sglang", version, flags)
    chosen = defaults(model(name).shape, settings, hardware_of(memory, 8), sglang_memory(version)[0])
    return round(chosen.fraction, 4)


@pytest.mark.parametrize(
    ("version", "flags", "fraction"),
    [
        # worked by hand from the sources of each release: (97887 - reserved) / 97887, times the factor of the vision tower
        ("0.5.9", "--tp 8", 0.7715),
        ("0.5.9", "--tp 8 --speculative-algorithm EAGLE3", 0.7524),
        ("0.5.13", "--tp 8", 0.7715),
        ("0.5.13", "--tp 8 --speculative-algorithm EAGLE3", 0.7332),
        ("0.5.15", "--tp 8 --speculative-algorithm EAGLE3", 0.7715),
        ("0.5.23", "--tp 8", 0.7578),
        ("0.5.23", "--tp 8 --speculative-algorithm EAGLE3", 0.7578),
    ],
)
def test_the_default_fraction_of_the_seed_deployment(version: str, flags: str, fraction: float) -> None:
    assert default_fraction(version, flags) == pytest.approx(fraction, abs=2e-4)


def test_the_default_fraction_of_a_small_card_changed_with_0_5_20() -> None:
    name = "meta-llama/Llama-3.3-70B"
    assert default_fraction("0.5.17", "--tp 1", "RTX 4090", name) > default_fraction(
        "0.5.20", "--tp 1", "RTX 4090", name
    )


def test_prompts_without_chunks_are_computed_whole() -> None:
    def prefill(flags: str) -> float:
        found = estimated(model(KIMI), "sglang 0.5.9", f"--tp 8 --mem-fraction-static 0.8 {flags}", SEED_GPU, 8)
        return next(part.gib.expected for part in found.parts if part.name == "prefill")

    assert prefill("--chunked-prefill-size -1") > 1.8 * prefill("")
    assert prefill("--chunked-prefill-size -1 --max-prefill-tokens 4096") < prefill("")
    # only 2048 tokens are reserved for: the default fraction rises to what the floor of 10 GiB leaves
    assert default_fraction("0.5.9", "--tp 8 --chunked-prefill-size -1") >= default_fraction("0.5.9", "--tp 8")


def test_a_draft_is_charged_from_0_5_14_on() -> None:
    pre, weights, draft = (Amount.exact(each) for each in (90.0, 70.0, 2.0))
    before = pool_budget(pre, weights, draft, 0.9, 0.0, sglang_memory("0.5.13")[0])
    after = pool_budget(pre, weights, draft, 0.9, 0.0, sglang_memory("0.5.14")[0])
    assert before.expected == pytest.approx(11.0)
    assert after.expected == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("0.5.13", "Please try to increase --mem-fraction-static"),
        ("0.5.15", "minimum viable = 1 - "),
    ],
)
def test_the_failure_is_in_the_words_of_the_release(version: str, said: str) -> None:
    flags = "--tp 8 --speculative-algorithm EAGLE3 --mem-fraction-static 0.7"
    found = estimated(model(KIMI), f"sglang {version}", flags, SEED_GPU, 8)
    assert found.verdict is Verdict.FAILS
    assert found.decisive is not None
    assert found.decisive.outcome == "oom-kv"
    assert said in found.decisive.message


def test_figures_of_a_log_make_the_budget_exact() -> None:
    from gpuwhy.fit.estimate import estimate

    memory = memory_of("H200")
    assert memory
    settings = read_command("sglang", "0.5.15", "--tp 8 --mem-fraction-static 0.9")
    told = Measured(available_before=137.29, available_after=60.0, weights=77.29)
    found = estimate(model(KIMI), hardware_of(memory, 8), settings, told)
    assert found.cache.budget.expected == pytest.approx(60.0 - 137.29 * 0.1)
    # the rank's own row of the latent: 61 layers x (512 + 64) x 2 bytes, whatever the tensor parallel size
    assert found.cache.bytes_per_token == 70272
    assert found.cache.tokens.expected == pytest.approx(found.cache.budget.expected * GIB / 70272, abs=1)
    assert found.fraction.minimum is not None
    assert found.fraction.minimum.expected == pytest.approx(77.29 / 137.29, abs=1e-4)


def test_too_high_a_fraction_fails_after_the_pool() -> None:
    found = estimated(model(KIMI), "sglang 0.5.23", "--tp 8 --mem-fraction-static 0.99", SEED_GPU, 8)
    assert found.verdict is Verdict.FAILS
    assert found.decisive is not None
    assert found.decisive.phase in ("graphs", "first-prefill")
    assert found.fraction.maximum is not None
    assert found.fraction.maximum.expected < 0.95


def test_fewer_graphs_and_smaller_chunks_leave_more() -> None:
    flags = "--tp 8 --mem-fraction-static 0.88"
    usual = estimated(model(KIMI), "sglang 0.5.23", flags, SEED_GPU, 8).fraction.maximum
    less = estimated(model(KIMI), "sglang 0.5.23", flags + " --cuda-graph-max-bs 48 --chunked-prefill-size 4096", SEED_GPU, 8).fraction.maximum  # fmt: skip
    assert usual is not None
    assert less is not None
    assert less.expected > usual.expected + 0.015


def test_the_split_buffers_of_triton_grew_with_0_5_12() -> None:
    def buffers(version: str) -> float:
        found = estimated(model(KIMI), f"sglang {version}", "--tp 8", SEED_GPU, 8)
        return next(part.gib.expected for part in found.parts if "split" in part.name)

    assert buffers("0.5.23") == pytest.approx(2.0)
    assert buffers("0.5.9") < 0.1


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("0.5.15", "its source was read"),
        ("0.5.13.post1", "its source was read (compared with 0.5.13: nothing of this changed)"),
        ("0.5.16.post7", "interpolated from its neighbours 0.5.16 and 0.5.17"),
        ("0.5.99", "newer than every release"),
        ("0.4.4", "older than every release"),
        ("main", "is no release"),
    ],
)
def test_an_unread_release_names_its_neighbours(version: str, said: str) -> None:
    assert said in sglang_memory(version)[1].sentence


def test_batches_of_the_graphs() -> None:
    assert len(sglang_batches(512, False)) == 52
    assert sglang_batches(48, True)[-1] == 48
    assert sglang_prefill_sizes(32) == (4, 8, 12, 16, 20, 24, 28, 32)


def test_a_hybrid_model_shares_the_budget_between_states_and_tokens() -> None:
    from tests.fit.test_published_sizes import PUBLISHED

    from gpuwhy.fit.architecture import read_architecture
    from gpuwhy.fit.inventory import computed_inventory
    from gpuwhy.fit.model import Model

    shape = read_architecture(PUBLISHED["Qwen3-Next-80B"]["config"])
    made = Model("Qwen3-Next", shape, computed_inventory(shape))
    found = estimated(made, "sglang 0.5.23", "--tp 4 --mem-fraction-static 0.85", "H200", 4)
    # 12 attention layers, one head of keys and values on each rank
    assert found.cache.bytes_per_token == 12 * 1 * 512 * 2
    assert found.cache.tokens.expected * found.cache.bytes_per_token < 0.6 * found.cache.budget.expected * GIB


def test_the_table_of_requests_has_a_place_for_every_token() -> None:
    """A start with 1669816 tokens and 262144 of context: 3261 requests, 3.18 of the 3.31 GiB that went beside the pool."""
    settings = read_command("sglang", "0.5.23", "")
    slots = request_slots(settings, 1_669_816, 262_144)
    assert slots == 3261
    assert sglang_request_table(slots, 262_144) == pytest.approx(230.20 - 152.88 - 74.01, abs=0.15)
    assert request_slots(read_command("sglang", "0.5.23", "--max-running-requests 64"), 1_669_816, 262_144) == 64


def test_the_partial_results_of_aiter_are_those_of_a_log() -> None:
    """The same start, on a GPU of AMD: 0.911 x 287.18 - 56.98 - 152.88 went to the attention."""
    shape = read_architecture(
        {"num_attention_heads": 32, "head_dim": 128, "num_hidden_layers": 48, "hidden_size": 2048}
    )
    assert sglang_aiter(shape, Parallel(), 3261, 262_144) == pytest.approx(51.76, abs=0.05)


def test_a_gpu_of_amd_starts_what_fits_with_much_room() -> None:
    flags = "--tp 8 --context-length 32768"
    assert estimated(model("meta-llama/Llama-3.3-70B"), "sglang 0.5.23", flags, "MI300X", 8).verdict is Verdict.STARTS


def test_states_that_are_asked_for_take_the_place_of_the_ratio() -> None:
    from tests.fit.test_published_sizes import PUBLISHED

    made = model_of(PUBLISHED["Qwen3-Next-80B"]["config"])
    flags = "--tp 4 --mem-fraction-static 0.85"
    by_ratio = estimated(made, "sglang 0.5.23", flags, "H200", 4)
    few = estimated(made, "sglang 0.5.23", f"{flags} --max-mamba-cache-size 64", "H200", 4)
    small = estimated(made, "sglang 0.5.23", f"{flags} --max-mamba-cache-size 64 --mamba-ssm-dtype bfloat16", "H200", 4)
    assert few.cache.tokens.expected > 1.5 * by_ratio.cache.tokens.expected
    assert small.cache.tokens.expected > few.cache.tokens.expected
    assert small.gib_of("weights") == few.gib_of("weights")
