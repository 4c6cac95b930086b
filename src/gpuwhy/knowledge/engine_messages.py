"""Messages that only one engine prints: they tell whose log it is when neither banner nor path is pasted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

ONLY_IN: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("sglang", re.compile(r"mem[-_]fraction[-_]static|cannot hold even one request|Try to lower your batch size|Load weight (?:begin|end)|\bTP\d{1,3}\] |max_total_num_tokens=|cuda-graph-max-bs|Capture cuda graph (?:begin|failed)")),
    ("lmdeploy", re.compile(r"No enough gpu memory for runtime|\[TM\]\[(?:ERROR|FATAL|WARNING|INFO)\]|No enough blocks for|cache[-_]max[-_]entry[-_]count")),
    ("text-generation-inference", re.compile(r"Not enough memory to handle \d{1,9} (?:prefill|total|batch) tokens|max-batch-prefill-tokens|text_generation_(?:launcher|router|server)")),
    ("tensorrt-llm", re.compile(r"Executor creation failed due to insufficient GPU memory|component could not be created|\[TRT-LLM\]|\[TensorRT-LLM\](?!.{0,400}(?:flashinfer|nv_internal))|kvCacheManager\.cpp|free_gpu_memory_fraction|\btrtllm-\w{3,10}\b")),
    ("vllm", re.compile(r"No available memory for the cache blocks|Automatically detected platform \w|in LLM or using the `--trust-remote-code` flag|KV cache is needed|stored in KV cache|Mamba cache blocks|# (?:cuda|GPU|CPU) blocks|gpu[-_]memory[-_]utilization|when warming up sampler|Failed to load model - not enough GPU memory|Available KV cache memory|Initializing an LLM engine|\bloader\.py:\d{1,5}\] Loading |\b(?:llm_engine|gpu_model_runner|gpu_worker|model_runner|gpu_executor|weight_utils|multiproc_executor|kv_cache_utils|async_llm)\.py:\d{1,5}\]|non_torch_memory takes")),
    ("ollama", re.compile(r"llama runner process|\bOLLAMA_\w|source=(?:server|sched|runner|ggml|memory|llama|routes)\.go|ml/backend/ggml/ggml/|\bollama (?:run|serve|ps)\b")),
    ("llama.cpp", re.compile(r"\bggml_|\bllama_\w{3,60}:|\bllama_(?:model|kv|init|context|new)|alloc_tensor_range|unable to allocate CUDA\d|load_tensors:")),
)  # fmt: skip
"""The engine and what only it prints, in its own words; sub-strings of log lines and option names."""
LONGEST = 4000
_OLLAMA = dict(ONLY_IN)["ollama"]


def engine_of_message(text: str) -> str:
    """The engine that prints this message; ``""`` when none or many do."""
    return next((engine for engine, pattern in ONLY_IN if pattern.search(text[:LONGEST])), "")


def engine_of_messages(lines: Iterable[str]) -> str:
    """The engine of the first line that only one engine prints; ``""`` when there is none.

    A log full of llama.cpp's words is that of ollama where ollama speaks as well: its runner is llama.cpp.
    """
    shown = list(lines)
    engine = next((engine for text in shown if (engine := engine_of_message(text))), "")
    return _more_exact(engine, shown)


def engine_of_log(known: str, lines: Sequence[str]) -> str:
    """``known`` where the log's banners and paths have told the engine; else the one whose messages stand in ``lines``."""
    return _more_exact(known, lines) if known else engine_of_messages(lines)


def _more_exact(engine: str, lines: Iterable[str]) -> str:
    is_ollama = engine == "llama.cpp" and any(_OLLAMA.search(text[:LONGEST]) for text in lines)
    return "ollama" if is_ollama else engine
