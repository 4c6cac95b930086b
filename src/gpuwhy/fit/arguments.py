"""Reads the arguments of a server as its user types them, in the spellings of both engines.

    >>> read_arguments("sglang", "0.5.23", ["--tp", "8", "--mem-fraction-static=0.88"]).fraction
    0.88

Both spell a flag with hyphens or underscores, with ``=`` or a blank; vLLM writes numbers as 32k or 1M too.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gpuwhy.fit.settings import Settings, Speculation

LONGEST_LINE = 20_000
_MOST_WORDS = 500
_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s?([kKmMgGtT]?)(?:i?[bB])?", re.ASCII)
_DECIMAL = {"": 1, "k": 1000, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

_COMMON = {
    "tp": "tensor", "tp-size": "tensor", "tensor-parallel-size": "tensor",
    "pp": "pipeline", "pp-size": "pipeline", "pipeline-parallel-size": "pipeline",
    "dp": "data", "dp-size": "data", "data-parallel-size": "data",
    "dcp": "decode_context", "dcp-size": "decode_context", "decode-context-parallel-size": "decode_context",
    "kv-cache-dtype": "kv_dtype", "dtype": "dtype", "quantization": "quantization", "q": "quantization",
    "attention-backend": "attention_backend", "load-format": "load_format", "cpu-offload-gb": "offload_gib",
    "page-size": "page", "block-size": "page", "nnodes": "nodes",
}  # fmt: skip
_SGLANG = {
    **_COMMON,
    "ep": "expert", "ep-size": "expert", "expert-parallel-size": "expert",
    "mem-fraction-static": "fraction", "context-length": "context", "chunked-prefill-size": "prefill_tokens",
    "max-running-requests": "requests", "max-total-tokens": "total_tokens", "max-prefill-tokens": "whole_prefill_tokens",
    "cuda-graph-max-bs": "graph_batch", "cuda-graph-max-bs-decode": "graph_batch",
    "swa-full-tokens-ratio": "sliding_ratio", "mamba-full-memory-ratio": "state_ratio",
    "moe-a2a-backend": "all_to_all", "hicache-size": "host_cache_gb", "hicache-ratio": "host_cache_ratio",
    "max-mamba-cache-size": "states", "mamba-ssm-dtype": "state_dtype", "decode-attention-backend": "decode_backend",
    "prefill-attention-backend": "attention_backend",
}  # fmt: skip
_VLLM = {
    **_COMMON,
    "gpu-memory-utilization": "fraction", "max-model-len": "context", "max-num-batched-tokens": "prefill_tokens",
    "max-num-seqs": "requests", "kv-cache-memory-bytes": "kv_cache_bytes", "kv-cache-memory": "kv_cache_bytes",
    "swap-space": "swap_gib", "all2all-backend": "all_to_all", "distributed-executor-backend": "executor",
    "mamba-ssm-cache-dtype": "state_dtype", "mamba-cache-dtype": "state_dtype", "max-cudagraph-capture-size": "graph_batch", "kv-offloading-size": "host_cache_gb", "executor": "executor",
}  # fmt: skip
_SHORT = {"sc": "speculative-config", "cc": "compilation-config", "ep": "enable-expert-parallel"}
"""Of vLLM, whose other short names are those of the long ones without the rest."""
_SWITCHES: dict[str, tuple[str, Any]] = {
    "enable-dp-attention": ("has_dp_attention", True), "enable-dp-lm-head": ("has_dp_head", True),
    "disable-cuda-graph": ("has_graphs", False), "enforce-eager": ("has_graphs", False),
    "disable-piecewise-cuda-graph": ("has_prefill_graphs", False), "disable-prefill-cuda-graph": ("has_prefill_graphs", False),
    "enable-piecewise-cuda-graph": ("has_prefill_graphs", True), "enable-expert-parallel": ("is_expert_parallel", True),
    "language-only": ("is_language_only", True), "language-model-only": ("is_language_only", True),
    "enable-symm-mem": ("has_symmetric_memory", True), "enable-deterministic-inference": ("is_deterministic", True),
    "weight-loader-disable-mmap": ("is_mmap_disabled", True), "disable-hybrid-swa-memory": ("has_sliding_pool", False), "disable-hybrid-kv-cache-manager": ("has_sliding_pool", False),
    "mm-enable-dp-encoder": ("is_data_parallel_encoder", True), "enable-ep-moe": ("is_expert_parallel", True),
    "no-enable-chunked-prefill": ("is_unchunked", True), "disable-radix-cache": ("has_prefix_cache", False), "enable-deepep-moe": ("all_to_all", "deepep"), "enable-hierarchical-cache": ("host_cache_ratio", 2.0),
}  # fmt: skip
_UNCOUNTED = {
    "enable-lora": "adapters and their buffers", "lora-paths": "adapters and their buffers", "lora-modules": "adapters and their buffers",
    "num-gpu-blocks-override": "a number of blocks that is set by hand", "kv-transfer-config": "the buffers of a connector",
    "disaggregation-mode": "the buffers of the transfer", "enable-dbo": "the buffers of a second batch",
    "enable-two-batch-overlap": "the buffers of a second batch", "enable-eplb": "redundant experts", "eplb-config": "redundant experts",
    "num-redundant-experts": "redundant experts", "ep-num-redundant-experts": "redundant experts",
    "enable-memory-saver": "memory that is given back and taken again", "config": "what that file sets",
}  # fmt: skip
"""Flags with a part in the memory that no estimate counts, and what they bring."""
_GRAPH_BACKENDS = {"cuda-graph-backend-decode": "has_graphs", "cuda-graph-backend-prefill": "has_prefill_graphs"}
_OVERRIDES = ("hf-overrides", "json-model-override-args")
_ALIKE = 0.88
_SPECULATIVE = {
    "speculative-algorithm": "method", "speculative-algo": "method", "speculative-draft-model-path": "draft",
    "speculative-draft-model": "draft", "speculative-num-steps": "steps", "speculative-num-draft-tokens": "tokens",
    "num-speculative-tokens": "tokens", "speculative-model": "draft", "speculative": "method",
}  # fmt: skip
_JSON = {"speculative-config", "compilation-config", "cc", "O", "model-loader-extra-config", "cuda-graph-config"}
_LISTS = {"cuda-graph-bs", "cuda-graph-bs-decode", "cudagraph-capture-sizes", "cuda-graph-sizes"}
_FRACTIONS = {"fraction", "sliding_ratio", "state_ratio"}
_SIZES = {"host_cache_gb", "host_cache_ratio", "offload_gib", "swap_gib"}
_TEXTS = {"kv_dtype", "state_dtype", "dtype", "quantization", "attention_backend", "decode_backend", "load_format", "all_to_all", "executor"}  # fmt: skip
_MOST_RANKS = 100_000


def read_command(engine: str, version: str, line: str) -> Settings:
    """From a whole command line, ``vllm serve MODEL --tensor-parallel-size 2`` and the like."""
    try:
        words = shlex.split(line[:LONGEST_LINE])
    except ValueError:
        words = line[:LONGEST_LINE].split()
    return read_arguments(engine, version, words)


def read_arguments(engine: str, version: str, words: Sequence[str]) -> Settings:
    """From words as a shell passes them. Never raises: what cannot be used is among the settings' ``problems``."""
    return settings_of(engine, version, _pairs(words[:_MOST_WORDS]))


def flags_in(words: Sequence[str]) -> list[tuple[str, Any]]:
    """The flags of a command with their values, as :func:`settings_of` takes them."""
    return _pairs(words[:_MOST_WORDS])


def _pairs(words: Sequence[str]) -> list[tuple[str, Any]]:
    """Flags with their values; True for a flag without one; a list for several."""
    found: list[tuple[str, Any]] = []
    values: list[str] = []
    name = ""
    for word in words:
        if re.match(r"-{1,2}[A-Za-z]", word):
            if name:
                found.append((name, _value(values)))
            head, equals, tail = word.lstrip("-").partition("=")
            name, values = head.replace("_", "-"), [tail] if equals else []
        elif name:
            values.append(word)
    if name:
        found.append((name, _value(values)))
    return found


def _value(values: list[str]) -> Any:
    return True if not values else values[0] if len(values) == 1 else values


def settings_of(engine: str, version: str, flags: Mapping[str, Any] | Sequence[tuple[str, Any]]) -> Settings:
    """From flags already apart, as a snapshot or a record of a start holds them."""
    pairs = flags.items() if isinstance(flags, Mapping) else flags
    known = _VLLM if engine == "vllm" else _SGLANG
    read: dict[str, Any] = {}
    draft: dict[str, Any] = {}
    unread: list[str] = []
    problems: list[str] = []
    uncounted: list[str] = []
    mistyped: list[str] = []
    for spelled, value in pairs:
        name = str(spelled)[:80].lstrip("-").replace("_", "-")
        if engine == "vllm":
            name = _SHORT.get(name, name)
        value = _first(value) if name not in _LISTS else value
        if _is_unoptimised(name, value):
            read["has_graphs"] = False
        elif name in _SWITCHES and value is not False and str(value).lower() != "false":
            field, meaning = _SWITCHES[name]
            read.setdefault(field, meaning)
        elif name in known and value is not True:
            _take(known[name], name, value, read, problems)
        elif name in _SPECULATIVE and value is not True:
            draft[_SPECULATIVE[name]] = value
        elif name == "cuda-graph-sizes" and len(_numbers(value)) == 1:
            # vLLM before 0.11: one number is the largest of the usual sizes
            read["graph_batch"] = _numbers(value)[0]
        elif name in _LISTS:
            read["graph_batches"] = _numbers(value)
        elif name.partition(".")[0] in _OVERRIDES:
            _take_overrides(name, value, read, uncounted)
        elif name == "rope-scaling":
            _take_overrides(name, {"rope_scaling": _decoded(value)}, read, uncounted)
        elif name.partition(".")[0] == "limit-mm-per-prompt":
            if _forbids_all(name, value):
                read["is_language_only"] = True
        elif name in _GRAPH_BACKENDS:
            # SGLang 0.5.23, in place of switches
            read.setdefault(_GRAPH_BACKENDS[name], str(value).lower() != "disabled")
        elif name == "mm-encoder-tp-mode":
            read["is_data_parallel_encoder"] = str(value).lower() == "data"
        elif name == "safetensors-load-strategy":
            read["is_mmap_disabled"] = str(value).lower() == "eager"
        elif name in _JSON or name.partition(".")[0] in _JSON:
            _take_json(name, value, read, draft, problems)
        elif name in _UNCOUNTED and value is not False:
            uncounted.append(f"--{name} brings {_UNCOUNTED[name]}: that is not counted")
        else:
            unread.append(name)
            mistyped += _mistyped(name, known)
    if draft:
        read["speculation"] = _speculation(draft, engine, problems)
    if read.get("graph_batches"):
        read["graph_batch"] = max(read["graph_batches"])
    if read.get("is_expert_parallel") and engine == "sglang":
        read.setdefault("expert", read.get("tensor", 1))
    if read.get("all_to_all", "none") not in ("none", "") and engine == "sglang":
        # every all-to-all backend makes the experts as parallel as the ranks
        read["expert"] = read.get("tensor", 1)
    return Settings(
        engine=engine,
        version=version,
        unread=tuple(unread),
        problems=tuple(problems),
        uncounted=tuple(uncounted),
        mistyped=tuple(mistyped),
        **read,
    )


def _is_unoptimised(name: str, value: Any) -> bool:
    """``-O0``, ``-O 0``, ``--compilation-config 0``: nothing is compiled, and no graphs are captured."""
    return name == "O0" or (name in ("O", "optimization-level", "compilation-config") and str(value).strip() == "0")


def _mistyped(name: str, known: Mapping[str, str]) -> list[str]:
    if not 5 <= len(name) <= 60:
        return []
    alike = difflib.get_close_matches(name, [*known, *_SWITCHES, *_SPECULATIVE], 1, _ALIKE)
    return [f"--{name} is not known and not counted: --{alike[0]}?"] if alike else []


def _forbids_all(name: str, value: Any) -> bool:
    """``{"image": 0, "video": 0}``, ``image=0,video=0``, ``--limit-mm-per-prompt.image 0``: the model reads text only."""
    document = _decoded(value)
    if not isinstance(document, dict):
        pairs = re.findall(r"(\w{1,20})\s{0,2}=\s{0,2}(\d{1,9})", str(value)[:400], re.ASCII)
        document = dict(pairs) if pairs else {name.partition(".")[2]: value} if "." in name else {}
    counts = [each.get("count", 1) if isinstance(each, dict) else each for each in document.values()]
    return "image" in document and all(_number(each) == 0 for each in counts)


def _decoded(value: Any) -> Any:
    """The value of a flag that is JSON; None for what is none."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value[:LONGEST_LINE].encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None


def _take_overrides(name: str, value: Any, read: dict[str, Any], uncounted: list[str]) -> None:
    """Fields that replace those of config.json: the longest context is taken, others are named."""
    base, _, inner = name.partition(".")
    document = {inner.rpartition(".")[2].replace("-", "_"): _decoded(value)} if inner else _decoded(value)
    if not isinstance(document, dict):
        uncounted.append(f"--{base} is no JSON object: what it changes is not counted")
        return
    nested = document.get("text_config")
    fields = {**document, **(nested if isinstance(nested, dict) else {})}
    for field, given in fields.items():
        if field == "max_position_embeddings" and (longest := _number(given)) and longest >= 1:
            read["model_context"] = int(longest)
        elif field in ("rope_scaling", "rope_parameters") and isinstance(given, dict):
            factor, original = _number(given.get("factor")), _number(given.get("original_max_position_embeddings"))
            if factor and original and factor * original >= 1:
                read["model_context"] = int(factor * original)
            else:
                read["is_context_open"] = True
        elif field not in ("text_config", "architectures", "rope_theta"):
            uncounted.append(f"--{base}: {str(field)[:40]} is not counted")


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) and value else value


def _take(field: str, name: str, value: Any, read: dict[str, Any], problems: list[str]) -> None:
    if value is None:
        return
    if field in _TEXTS:
        read[field] = str(value)[:80].strip("\"'")
        return
    number = _number(value)
    if field in ("context", "prefill_tokens") and str(value).lower() in ("-1", "auto"):
        # the engine's own choice; no chunks at all
        if name == "chunked-prefill-size":
            read["is_unchunked"] = True
        elif name == "max-model-len":
            read["is_context_fitted"] = True
        return
    if number is None:
        problems.append(f"--{name} {str(value)[:40]!r} is no number")
    elif field in _FRACTIONS:
        if 0 < number <= 1:
            read[field] = number
        else:
            problems.append(f"--{name} {number:g} is not between 0 and 1")
    elif field in _SIZES:
        read[field] = min(number, 1e6)
    elif number < 1 or number != int(number):
        problems.append(f"--{name} {number:g} is no positive whole number")
    elif field in ("tensor", "pipeline", "data", "expert", "decode_context", "nodes") and number > _MOST_RANKS:
        problems.append(f"--{name} {number:g} is more than {_MOST_RANKS} ranks")
    else:
        read[field] = int(number)


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e15 else None
    text = str(value)[:40].strip().strip("\"'").replace(",", "")
    found = _NUMBER.fullmatch(text)
    if not found:
        return None
    unit = found[2]
    # vLLM reads 1k as a thousand and 1K as 1024
    return float(found[1]) * (_BINARY[unit] if unit.isupper() else _DECIMAL[unit.lower()])


def _numbers(value: Any) -> tuple[int, ...]:
    items = value if isinstance(value, list | tuple) else re.split(r"[\s,\[\]]+", str(value)[:4000])
    numbers = (_number(item) for item in items[:2000] if item != "")
    return tuple(sorted({int(number) for number in numbers if number and 0 < number < 10**6}))


def _take_json(name: str, value: Any, read: dict[str, Any], draft: dict[str, Any], problems: list[str]) -> None:
    document = _decoded(value)
    if document is None:
        if name == "speculative-config":
            problems.append(f"--{name} is no JSON object")
            return
        document = value
    base, _, inner = name.partition(".")
    content = {inner.replace("-", "_"): document} if inner else document
    if not isinstance(content, dict):
        return
    if base == "speculative-config":
        draft.update({theirs: content[ours] for ours, theirs in (("method", "method"), ("model", "draft"), ("num_speculative_tokens", "tokens")) if content.get(ours)})  # fmt: skip
    sizes = content.get("cudagraph_capture_sizes")
    if sizes:
        read["graph_batches"] = _numbers(sizes)
    if _number(content.get("max_cudagraph_capture_size")):
        read["graph_batch"] = int(_number(content["max_cudagraph_capture_size"]) or 1)
    if str(content.get("cudagraph_mode", "")).upper() == "NONE":
        read["has_graphs"] = False
    threads = _number(content.get("num_threads")) if base == "model-loader-extra-config" else None
    if threads:
        read["loading_threads"] = int(min(threads, 1024)) or None


def _speculation(draft: dict[str, Any], engine: str, problems: list[str]) -> Speculation | None:
    method = str(draft.get("method") or "").upper().replace("-", "").replace("_", "")[:40]
    path = str(draft.get("draft") or "")[:500]
    if method.endswith("MTP") and method != "MTP":
        method = "MTP"
    if not method:
        method = "EAGLE3" if "eagle3" in path.lower().replace("-", "") else "EAGLE" if "eagle" in path.lower() else "STANDALONE" if engine == "sglang" else "DRAFTMODEL"  # fmt: skip
    numbers = {name: _number(draft[name]) for name in ("steps", "tokens") if draft.get(name) is not None}
    for name, number in numbers.items():
        if number is None or not 0 < number < 10**4:
            problems.append(f"the number of speculative {name} is no usable number")
    usable = {name: int(number) for name, number in numbers.items() if number is not None and 1 <= number < 10**4}
    return Speculation(method, path, usable.get("steps"), usable.get("tokens"))
