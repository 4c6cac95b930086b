"""What differs from release to release: worked by hand from the functions of each, by name in the rows' provenance."""

from __future__ import annotations

import pytest
from tests.fit.models import KIMI, SEED_GPU, estimated, model, model_of
from tests.fit.test_vllm import OSS, QWEN

from gpuwhy.fit.amount import GIB, Amount
from gpuwhy.fit.arguments import read_command
from gpuwhy.fit.estimate import estimate
from gpuwhy.fit.graphs import vllm_batches
from gpuwhy.fit.hardware import Hardware, hardware_of
from gpuwhy.fit.kv_cache import KvShape, block_bytes_of_all_groups
from gpuwhy.fit.results import Estimate, Verdict
from gpuwhy.fit.sglang import no_pool_message, pool, reserve_for_images, state_share
from gpuwhy.fit.sglang_defaults import defaults as sglang_defaults
from gpuwhy.fit.sglang_defaults import has_prefill_graphs
from gpuwhy.fit.vllm import defaults as vllm_defaults
from gpuwhy.fit.vllm import non_torch
from gpuwhy.fit.vllm import pool as vllm_pool
from gpuwhy.knowledge.engine_memory import sglang_memory, vllm_memory
from gpuwhy.knowledge.gpu_memory_sizes import memory_of

R1, LLAMA = "deepseek-ai/DeepSeek-R1", "meta-llama/Llama-3.3-70B"


def gpus(name: str, number: int = 8, taken: float = 0.0) -> Hardware:
    memory = memory_of(name)
    assert memory
    return hardware_of(memory, number, taken_gib=taken)


@pytest.mark.parametrize(
    ("version", "flags", "gpu", "fraction"),
    [
        ("0.4.6", "--tp 8", "H100", 0.81),
        ("0.4.6.post1", "--tp 1", "H200", (143771 - 13 * 1024) / 143771),
        ("0.4.6.post5", "--tp 8", "H200", (143771 - 18 * 1024) / 143771),
        ("0.4.7", "--tp 8 --speculative-algorithm EAGLE", "H200", (143771 - 20 * 1024) / 143771),
        ("0.4.7", "--tp 8 --speculative-algorithm EAGLE", "H100", 0.81 * 0.95),
        ("0.4.8.post1", "--tp 8", "H100", (81559 - 13.5 * 1024) / 81559),
        ("0.5.1.post3", "--tp 8 --speculative-algorithm STANDALONE --speculative-draft-model-path d", "H100", (81559 - 15.5 * 1024) / 81559),
        ("0.5.2", "--tp 8 --speculative-algorithm STANDALONE --speculative-draft-model-path d", "H100", (81559 - 19.5 * 1024) / 81559),
        ("0.5.2", "--tp 8 --dp 8 --enable-dp-attention", "H100", (81559 - 17.5 * 1024) / 81559),
        ("0.5.3", "--tp 1", "RTX 4090", (24564 - 3744) / 24564),
        ("0.5.4.post1", "--tp 1", "RTX 4090", (24564 - 3760) / 24564),
        ("0.5.5.post1", "--tp 1 --enable-piecewise-cuda-graph", "RTX 4090", (24564 - 3760 - 512) / 24564),
        ("0.5.7", "--tp 1 --enable-piecewise-cuda-graph", "RTX 4090", (24564 - 3760 - 256) / 24564),
        ("0.5.20", "--tp 1", "RTX 4090", (24564 - 6880 - 8 * 50) / 24564),
    ],
)  # fmt: skip
def test_the_default_fraction_of_sglang(version: str, flags: str, gpu: str, fraction: float) -> None:
    settings = read_command("sglang", version, flags)
    chosen = sglang_defaults(model(LLAMA).shape, settings, gpus(gpu), sglang_memory(version)[0])
    assert chosen.fraction == pytest.approx(fraction, abs=6e-4)


@pytest.mark.parametrize(
    ("version", "factor"), [("0.4.8", 1.0), ("0.4.9", 0.9), ("0.5.8", 0.9082), ("0.5.9", 1.0), ("0.5.23", 1.0)]
)
def test_a_vision_tower_that_is_left_out_lowers_nothing_from_0_5_9_on(version: str, factor: float) -> None:
    def fraction(name: str) -> float:
        settings = read_command("sglang", version, "--tp 8 --language-only --disable-piecewise-cuda-graph")
        return sglang_defaults(model(name).shape, settings, gpus("H200"), sglang_memory(version)[0]).fraction

    assert fraction(KIMI) / fraction(R1) == pytest.approx(factor, abs=2e-3)


@pytest.mark.parametrize(
    ("version", "name", "flags", "are_captured"),
    [
        ("0.5.9", LLAMA, "", False),
        ("0.5.10", LLAMA, "", True),
        ("0.5.10", R1, "--speculative-algorithm EAGLE", False),
        ("0.5.11", R1, "--speculative-algorithm EAGLE", True),
        ("0.5.14", LLAMA, "--dp 8 --enable-dp-attention", False),
        ("0.5.14", LLAMA, "--enable-hierarchical-cache", False),
        ("0.5.15", LLAMA, "--enable-hierarchical-cache", True),
        ("0.5.15.post1", R1, "", False),
        ("0.5.17", R1, "", False),
        ("0.5.18", R1, "", True),
        ("0.5.15", KIMI, "", False),
        ("0.5.16", KIMI, "", True),
        ("0.5.16", LLAMA, "--dp 8 --enable-dp-attention", False),
        ("0.5.17", LLAMA, "--dp 8 --enable-dp-attention", True),
        ("0.5.17", LLAMA, "--pp-size 2", True),
        ("0.5.19", LLAMA, "--pp-size 2", False),
        ("0.5.16", LLAMA, "--moe-a2a-backend deepep", False),
        ("0.5.17", LLAMA, "--moe-a2a-backend deepep", True),
    ],
)
def test_prefill_graphs_of_sglang(version: str, name: str, flags: str, are_captured: bool) -> None:
    settings = read_command("sglang", version, f"--tp 8 {flags}")
    found = has_prefill_graphs(model(name).shape, settings, gpus("H200"), sglang_memory(version)[0])
    assert found is are_captured
    assert not has_prefill_graphs(model(name).shape, settings, gpus("MI300X"), sglang_memory(version)[0])


def test_room_for_image_features_is_kept_from_0_5_18_on() -> None:
    settings = read_command("sglang", "", "--tp 8")
    kept = [reserve_for_images(model(KIMI).shape, settings, sglang_memory(each)[0]) for each in ("0.5.17", "0.5.18")]
    assert kept == [0.0, pytest.approx(100 / 1024)]


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("0.4.10", "Not enough memory. Please try to increase --mem-fraction-static."),
        ("0.5.6", "--mem-fraction-static. Current value: self.server_args.mem_fraction_static=0.7"),
        ("0.5.11", "--mem-fraction-static. Current value: mem_fraction_static=0.7"),
        ("0.5.16", "Raise --mem-fraction-static above 0.768 (minimum viable = 1 - available/pre = 0.7674)."),
    ],
)
def test_the_words_of_a_pool_that_has_no_room(version: str, says: str) -> None:
    assert says in no_pool_message(sglang_memory(version)[0], 0.7, 21.73, 93.43)


@pytest.mark.parametrize(
    ("version", "gpu", "tokens", "requests"),
    [
        ("0.8.3", "L40S", 2048, 1024),
        ("0.8.4", "L40S", 2048, 256),
        ("0.8.4", "H200", 8192, 1024),
        ("0.8.4", "A100-80GB", 2048, 256),
        ("0.8.5", "A100-80GB", 8192, 1024),
        ("0.9.0", "A100-80GB", 2048, 256),
        ("0.27.1", "B200", 8192, 1024),
        ("0.28.0", "B200", 16384, 1024),
        ("0.32.0", "GB10", 8192, 1024),
        ("0.33.0", "GB10", 2048, 256),
    ],
)
def test_tokens_and_requests_of_vllms_server(version: str, gpu: str, tokens: int, requests: int) -> None:
    settings = read_command("vllm", version, "")
    chosen = vllm_defaults(settings, gpus(gpu), 32768, vllm_memory(version)[0])
    assert (chosen.prefill_tokens, chosen.requests) == (tokens, requests)


@pytest.mark.parametrize(
    ("version", "requests", "each", "tokens", "count", "largest"),
    [
        ("0.11.0", 16, 1, 8192, 67, 512),
        ("0.11.1", 16, 1, 8192, 7, 32),
        ("0.12.0", 16, 4, 8192, 7, 32),
        ("0.13.0", 16, 4, 8192, 19, 128),
        ("0.13.0", 1024, 1, 8192, 51, 512),
        ("0.20.0", 1024, 1, 100, 15, 96),
        ("0.20.1", 1024, 1, 100, 16, 100),
        ("0.28.0", 5, 3, 8192, 6, 24),
        ("0.29.0", 5, 3, 8192, 10, 24),
        ("0.30.0", 11, 1, 8192, 5, 16),
        ("0.31.0", 11, 1, 8192, 6, 16),
    ],
)
def test_sizes_that_vllm_captures(
    version: str, requests: int, each: int, tokens: int, count: int, largest: int
) -> None:
    found = vllm_batches(requests, each, tokens, 512, vllm_memory(version)[0].graph_sizes)
    assert (len(found), found[-1]) == (count, largest)


def told(version: str, flags: str, gpu: str = "H100", number: int = 1, taken: float = 0.0) -> Estimate:
    settings = read_command("vllm", version, f"--max-model-len 8192 {flags}")
    return estimate(model_of(QWEN), gpus(gpu, number, taken), settings)


@pytest.mark.parametrize(
    ("version", "flags", "gpu", "swap_gb"),
    [
        ("0.11.0", "--swap-space 16", "H100", None),
        ("0.10.2", "", "H100", None),
        ("0.8.5", "", "V100 32GB", 4 * 4 * 1.0737),
        ("0.8.5", "--swap-space 16", "V100 32GB", 4 * 16 * 1.0737),
        ("0.8.5", "--kv-cache-dtype fp8", "A100-80GB", 4 * 4 * 1.0737),
        ("0.7.3", "", "H100", 4 * 4 * 1.0737),
    ],
)
def test_the_first_engine_alone_takes_swap_space(version: str, flags: str, gpu: str, swap_gb: float | None) -> None:
    found = told(version, f"-tp 4 {flags}", gpu, 4)
    sizes = [part.gib.high for part in found.host.parts if part.name == "swap space"]
    assert sizes == ([] if swap_gb is None else [pytest.approx(swap_gb, rel=0.01)])
    assert ("falls back to its first engine (V0)" in found.release) is (version == "0.8.5")


@pytest.mark.parametrize(
    ("version", "flags", "word"),
    [
        ("0.17.1", "--swap-space 4", ""),
        ("0.18.0", "--swap-space 4", "--swap-space"),
        ("0.10.1.1", "--kv-cache-memory-bytes 8G", "--kv-cache-memory-bytes"),
        ("0.10.2", "--kv-cache-memory-bytes 8G", ""),
    ],
)
def test_flags_that_a_release_does_not_know(version: str, flags: str, word: str) -> None:
    found = told(version, flags)
    assert [each.message for each in found.constraints] == ([f"error: unrecognized arguments: {word}"] if word else [])
    assert (found.verdict is Verdict.FAILS) is bool(word)


def test_up_to_0_9_0_other_processes_take_from_the_cache_and_nothing_is_checked() -> None:
    before, with_others = told("0.9.0.1", ""), told("0.9.0.1", "", taken=3.0)
    assert before.cache.budget.expected - with_others.cache.budget.expected == pytest.approx(3.0)
    assert "start" not in {check.phase for check in with_others.checks}
    after, beside = told("0.9.1", ""), told("0.9.1", "", taken=3.0)
    assert after.cache.budget.expected == beside.cache.budget.expected
    assert after.cache.budget.expected > before.cache.budget.expected + 0.4
    assert "start" in {check.phase for check in beside.checks}


def test_communicators_are_within_what_is_asked_for_up_to_0_10_2() -> None:
    older, newer = (told(version, "-tp 2", number=2).cache.budget.expected for version in ("0.10.2", "0.11.0"))
    assert newer - older == pytest.approx(1.02, abs=0.01)


def test_the_fused_all_reduce_is_hoppers_and_blackwells_from_0_17_on() -> None:
    release, older = vllm_memory("0.17.0")[0], vllm_memory("0.16.0")[0]
    assert non_torch(gpus("H100"), 2, 0, release).expected == pytest.approx(2.09)
    assert non_torch(gpus("A100-80GB"), 2, 0, release).expected == pytest.approx(0.66)
    assert non_torch(gpus("H100"), 2, 0, older).expected == pytest.approx(0.55)


def test_sliding_layers_keep_their_window_alone_from_0_9_1_on_and_for_two_steps_from_0_26_on() -> None:
    flags = "--max-model-len 65536 --max-num-batched-tokens 8192"

    def concurrency(version: str, more: str = "") -> float:
        made = estimated(model_of(OSS), f"vllm {version}", f"{flags} --kv-cache-memory-bytes 8G {more}")
        return made.cache.concurrency.expected

    assert concurrency("0.9.1") > 1.5 * concurrency("0.9.0")
    assert concurrency("0.25.1") > 1.05 * concurrency("0.26.0")
    assert concurrency("0.33.0", "--disable-hybrid-kv-cache-manager") == pytest.approx(concurrency("0.9.0"))


def test_tokens_are_those_that_every_group_keeps_up_to_0_20_0() -> None:
    flags = "--max-model-len 65536 --max-num-batched-tokens 8192 --kv-cache-memory-bytes 8G"
    older, newer = (estimated(model_of(OSS), f"vllm {each}", flags).cache for each in ("0.20.0", "0.20.1"))
    assert older.concurrency == newer.concurrency
    # 12 sliding and 12 full layers, in two groups
    assert older.bytes_per_token == 24 * 8 * 64 * 2 * 2
    assert older.tokens.expected == pytest.approx(8 * GIB / older.bytes_per_token)
    assert newer.tokens.expected == pytest.approx(newer.concurrency.expected * 65536)


@pytest.mark.parametrize(("version", "layers"), [("0.11.2", 36), ("0.17.1", 36), ("0.18.0", 34)])
def test_layers_of_two_kinds_are_grouped_by_the_larger_number_if_they_are_near(version: str, layers: int) -> None:
    kv = KvShape(12, 100.0, 17, 100.0, 10**6, 0, 0.0)
    spread = vllm_memory(version)[0].largest_spread
    assert block_bytes_of_all_groups(kv, 16, spread) == layers * 100


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("0.8.0", "models's max seq len (8192), (2.00 GB KV cache is needed"),
        ("0.8.5", "models's max seq len (8192), (2.00 GiB KV cache is needed"),
        ("0.21.0", "models's max seq len"),
        ("0.24.0", "with the model's max seq len"),
    ],
)
def test_the_words_of_a_context_that_is_too_long(version: str, says: str) -> None:
    found = told(version, "")
    message = next(check.message for check in found.checks if check.phase == "context")
    assert says in message
    assert ("the estimated maximum model length is" in message) is (version not in ("0.8.0", "0.8.5"))


def test_estimated_graphs_are_subtracted_from_0_20_on() -> None:
    assert not vllm_memory("0.19.1")[0].subtracts_graphs
    assert vllm_memory("0.20.0")[0].subtracts_graphs


def test_the_seed_gpu_has_rules_in_every_release() -> None:
    for version in ("0.4.6", "0.4.7", "0.5.2", "0.5.8", "0.5.13", "0.5.19", "0.5.22"):
        found = estimated(model(KIMI), f"sglang {version}", "--tp 8", SEED_GPU, 8)
        assert 0.7 < found.fraction.value < 0.9
        assert found.is_release_read


def test_sliding_layers_have_a_pool_of_their_own_by_release() -> None:
    def cell(version: str) -> float:
        return estimated(model_of(OSS), f"sglang {version}", "--tp 1").cache.bytes_per_token

    whole = 24 * 8 * 64 * 2 * 2
    assert cell("0.5.7") == whole
    assert cell("0.5.8") == pytest.approx(whole * (12 + 0.8 * 12) / 24)


@pytest.mark.parametrize(
    ("version", "flags", "states", "gib"),
    [
        # 100 GiB, states of 1 GiB
        ("0.5.3", "", 512, 512.0),
        ("0.5.3", "--max-running-requests 20", 20, 20.0),
        ("0.5.3.post2", "", 47, 47.37),
        ("0.5.6", "--speculative-algorithm EAGLE --speculative-num-draft-tokens 4", 9, 47.37),
        ("0.5.9", "--speculative-algorithm EAGLE --speculative-num-draft-tokens 4 --max-running-requests 10", 28, 28.42 + 40),
        ("0.5.13", "--speculative-algorithm EAGLE --speculative-num-draft-tokens 4 --max-running-requests 10", 20, 20 + 6 * 4),
        ("0.5.23", "--max-mamba-cache-size 30 --enable-dp-attention --dp 2 --tp 2", 15, 15.0),
    ],
)  # fmt: skip
def test_states_of_hybrid_models_and_those_of_a_draft(version: str, flags: str, states: int, gib: float) -> None:
    settings = read_command("sglang", version, flags)
    kept, taken = state_share(settings, 100.0, float(GIB), sglang_memory(version)[0])
    assert kept == states
    assert taken == pytest.approx(gib, abs=0.01)


@pytest.mark.parametrize(
    ("version", "charged"), [("0.5.14", 1.0), ("0.5.15.post1", 1.0), ("0.5.16", 1 + 4 / 28), ("0.5.23", 1 + 4 / 28)]
)
def test_what_a_draft_adds_to_a_token_of_a_sliding_model(version: str, charged: float) -> None:
    kv = KvShape(20, 1000.0, 10, 1000.0, 128, 0, 0.0)
    settings = read_command("sglang", version, "")
    made = pool(model_of(OSS).shape, settings, Amount.exact(1.0), kv, 4, 0.0, sglang_memory(version)[0])
    assert made.charged_bytes / made.cell_bytes == pytest.approx(charged)


@pytest.mark.parametrize("value", ["-1", "auto"])
def test_a_context_that_is_chosen_by_what_fits_came_with_0_14(value: str) -> None:
    flags = f"--gpu-memory-utilization 0.88 --max-model-len {value}"
    older, newer = (estimated(model_of(QWEN), f"vllm {each}", flags) for each in ("0.13.0", "0.14.0"))
    assert older.verdict is Verdict.FAILS
    assert [each.flag for each in older.constraints] == ["--max-model-len"]
    assert newer.verdict is not Verdict.FAILS
    assert newer.cache.context == newer.cache.longest.expected < 40960
    assert newer.cache.concurrency.expected == pytest.approx(1.0, abs=0.01)


def test_a_request_of_a_hybrid_model_needs_a_state_for_each_drafted_token_from_0_15_on() -> None:
    kv = KvShape(12, 1000.0, 0, 0.0, 0, 36, 800_000.0)
    settings = read_command("vllm", "", """--speculative-config '{"method":"mtp","num_speculative_tokens":3}'""")
    held = [vllm_pool(settings, Amount.exact(10.0), kv, 8000, 8192, 0.0, vllm_memory(each)[0]) for each in ("0.14.1", "0.15.0")]  # fmt: skip
    # 800 tokens to a page of 12 x 800,000 bytes: ten for the attention, one or four for each of three groups of states
    assert [each.needed_gib * GIB / 9_600_000 for each in held] == [pytest.approx(13), pytest.approx(22)]
