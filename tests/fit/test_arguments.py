"""Flags as people type them for either engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuwhy.fit.arguments import read_arguments, read_command, settings_of
from gpuwhy.fit.config_file import with_config_file
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


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("--kv-cache-memory-bytes 25G", {"kv_cache_bytes": 25 << 30}),
        ("--kv-cache-memory=26843545600", {"kv_cache_bytes": 26843545600}),
        ("-tp 2 -pp 2 -dp 2 -ep", {"tensor": 2, "pipeline": 2, "data": 2, "is_expert_parallel": True}),
        ("-O0", {"has_graphs": False}),
        ("-O3", {"has_graphs": True}),
        ("-O.cudagraph_mode NONE", {"has_graphs": False}),
        ("--compilation-config '{\"cudagraph_mode\": \"NONE\"}'", {"has_graphs": False}),
        ("-cc.max_cudagraph_capture_size=64", {"graph_batch": 64}),
        ("--cuda-graph-sizes 64", {"graph_batch": 64, "graph_batches": ()}),
        ("--cuda-graph-sizes 1 2 4", {"graph_batch": 4, "graph_batches": (1, 2, 4)}),
        ("--limit-mm-per-prompt '{\"image\": 0, \"video\": 0}'", {"is_language_only": True}),
        ("--limit-mm-per-prompt image=0,video=0", {"is_language_only": True}),
        ("--limit-mm-per-prompt '{\"image\": 2}'", {"is_language_only": False}),
        ("--limit-mm-per-prompt.image 0", {"is_language_only": True}),
        ("--hf-overrides '{\"max_position_embeddings\": 65536}'", {"model_context": 65536}),
        ("--hf-overrides.max_position_embeddings 65536", {"model_context": 65536}),
        ("--hf-overrides '{\"rope_scaling\": {\"factor\": 4.0, \"original_max_position_embeddings\": 32768}}'", {"model_context": 131072}),
        ("--block-size 32 --swap-space 8 --cpu-offload-gb 10", {"page": 32, "swap_gib": 8, "offload_gib": 10}),
        ("-sc '{\"method\": \"ngram\", \"num_speculative_tokens\": 4}'", {}),
    ],
)  # fmt: skip
def test_vllms_flags_with_a_part_in_the_memory(line: str, read: dict[str, Any]) -> None:
    found = read_command("vllm", "0.20.2", f"vllm serve m {line}")
    assert {name: getattr(found, name) for name in read} == read
    assert (found.problems, found.uncounted, found.mistyped) == ((), (), ())


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("--tp-size 8 --dp-size 8 --enable-dp-attention --ep-size 8", {"tensor": 8, "data": 8, "expert": 8, "has_dp_attention": True}),
        ("--chunked-prefill-size 4096 --max-running-requests 64", {"prefill_tokens": 4096, "requests": 64}),
        ("--cuda-graph-max-bs 32 --context-length 65536", {"graph_batch": 32, "context": 65536}),
        ("--disable-cuda-graph --max-total-tokens 20480 --page-size 64", {"has_graphs": False, "total_tokens": 20480, "page": 64}),
        ("--attention-backend fa3 --kv-cache-dtype fp8_e4m3", {"attention_backend": "fa3", "kv_dtype": "fp8_e4m3"}),
        ("--swa-full-tokens-ratio 0.3 --cpu-offload-gb 4", {"sliding_ratio": 0.3, "offload_gib": 4}),
        ("--json-model-override-args '{\"max_position_embeddings\": 4096}'", {"model_context": 4096}),
    ],
)  # fmt: skip
def test_sglangs_flags_with_a_part_in_the_memory(line: str, read: dict[str, Any]) -> None:
    found = read_command("sglang", "0.5.23", line)
    assert {name: getattr(found, name) for name in read} == read
    assert (found.problems, found.uncounted, found.mistyped) == ((), (), ())


@pytest.mark.parametrize(
    ("engine", "line", "said"),
    [
        ("vllm", "--enable-lora", "adapters"),
        ("vllm", "--hf-overrides '{\"num_hidden_layers\": 2}'", "num_hidden_layers is not counted"),
        ("vllm", "--hf-overrides nonsense", "no JSON object"),
        ("vllm", "--gpu-memory-utilisation 0.9", "--gpu-memory-utilization?"),
        ("sglang", "--mem-fracton-static 0.9", "--mem-fraction-static?"),
        ("sglang", "--config /nowhere/server.yaml", "what that file sets"),
    ],
)
def test_what_no_estimate_counts_is_said(engine: str, line: str, said: str) -> None:
    read = read_command(engine, "", line)
    assert said in " ".join((*read.uncounted, *read.mistyped))


def test_flags_from_a_file_come_before_those_that_are_typed(tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(
        "tensor-parallel-size: 4\nmax-model-len: 32k\nenforce-eager: true\nenable-expert-parallel: false\n"
        "compilation-config: {cudagraph_capture_sizes: [1, 2]}\nspeculative_config:\n  method: mtp\n"
    )
    for words in (["--config", str(file), "--max-model-len", "4096"], [f"--config={file}", "--max-model-len", "4096"]):
        found = read_arguments("vllm", "0.33.0", with_config_file(words))
        assert (found.tensor, found.context, found.has_graphs, found.is_expert_parallel) == (4, 4096, False, False)
        assert found.graph_batches == (1, 2)
        assert found.speculation is not None
        assert found.uncounted == ()


@pytest.mark.parametrize("content", ["", "- 1\n- 2\n", "a: [", "\x00\x01", "&a [*a, *a]"])
def test_a_file_that_holds_no_flags_stays_a_flag_that_is_not_counted(content: str, tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(content)
    words = with_config_file(["--tp", "2", "--config", str(file)])
    found = read_arguments("sglang", "0.5.23", words)
    assert found.tensor == 2
    assert "what that file sets" in " ".join(found.uncounted)
