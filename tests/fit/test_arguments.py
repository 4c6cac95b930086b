"""Flags as people type them for either engine."""

from __future__ import annotations

import pytest

from gpuwhy.fit.arguments import read_command, settings_of
from gpuwhy.fit.engines import read_engine


@pytest.mark.parametrize(
    "line",
    [
        "python -m sglang.launch_server --model-path x --tp 8 --mem-fraction-static 0.88",
        "--tensor-parallel-size=8 --mem-fraction-static=0.88 --trust-remote-code",
        "--tp-size 8 --mem_fraction_static 0.88 --host 0.0.0.0",
    ],
)
def test_sglang_spells_a_flag_in_several_ways(line: str) -> None:
    read = read_command("sglang", "0.5.23", line)
    assert (read.tensor, read.fraction, read.problems) == (8, 0.88, ())


@pytest.mark.parametrize(
    ("text", "tokens"), [("32768", 32768), ("32k", 32000), ("32K", 32768), ("1M", 1 << 20), ("100K", 102400)]
)
def test_vllm_reads_numbers_with_units(text: str, tokens: int) -> None:
    assert read_command("vllm", "0.33.0", f"vllm serve m --max-model-len {text}").context == tokens


def test_a_speculative_configuration_is_a_json_object() -> None:
    read = read_command("vllm", "0.33.0", """--speculative-config '{"method": "eagle3", "model": "a/b", "num_speculative_tokens": 3}'""")  # fmt: skip
    assert read.speculation is not None
    assert (read.speculation.method, read.speculation.draft, read.speculation.tokens) == ("EAGLE3", "a/b", 3)


def test_graph_sizes_come_as_a_list() -> None:
    assert read_command("sglang", "0.5.9", "--cuda-graph-bs 1 2 4 8 16 --tp 2").graph_batch == 16
    assert read_command("vllm", "0.20.2", "--compilation-config '{\"cudagraph_capture_sizes\": [1, 32]}'").graph_batches == (1, 32)  # fmt: skip
    assert not read_command("vllm", "0.20.2", "--enforce-eager").has_graphs


def test_dp_attention_divides_the_attention_only() -> None:
    parallel = read_command("sglang", "0.5.23", "--tp 8 --dp 4 --enable-dp-attention").parallel
    assert (parallel.tensor, parallel.attention, parallel.expert_ranks) == (8, 2, 8)
    replicas = read_command("sglang", "0.5.23", "--tp 2 --dp 4")
    assert (replicas.parallel.attention, replicas.gpus) == (2, 8)


def test_expert_parallel_of_vllm_spans_the_data_parallel_ranks() -> None:
    read = read_command("vllm", "0.20.2", "-tp 2 -dp 4 --enable-expert-parallel")
    assert (read.parallel.expert_ranks, read.gpus) == (8, 8)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--tp eight", "no number"),
        ("--tp 0", "positive"),
        ("--mem-fraction-static 88", "between 0 and 1"),
        ("--tp 99999999", "more than"),
        ("--speculative-num-steps x", "usable"),
    ],
)
def test_a_value_that_cannot_be_is_said(line: str, said: str) -> None:
    assert said in " ".join(read_command("sglang", "0.5.23", line).problems)


def test_chunks_may_be_turned_off() -> None:
    assert read_command("sglang", "0.5.23", "--chunked-prefill-size -1").problems == ()


def test_flags_that_are_not_known_are_kept_apart() -> None:
    read = settings_of("sglang", "0.5.23", {"tp": 2, "watchdog-timeout": 300, "enable-dp-attention": False})
    assert (read.tensor, read.unread, read.has_dp_attention) == (2, ("watchdog-timeout", "enable-dp-attention"), False)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("sglang==0.5.23", ("sglang", "0.5.23")),
        ("vLLM 0.19.0", ("vllm", "0.19.0")),
        ("vllm:v0.20.2", ("vllm", "0.20.2")),
        ("sglang", ("sglang", "")),
        ("tgi==3", None),
        ("", None),
    ],
)
def test_the_engine_is_named_with_its_release(text: str, meant: tuple[str, str] | None) -> None:
    assert read_engine(text) == meant
