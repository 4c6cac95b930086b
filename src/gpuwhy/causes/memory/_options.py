"""The options by which each engine divides GPU memory, and the fraction a start used."""

from __future__ import annotations

import math
import re

import msgspec
from msgspec import Struct

from gpuwhy.causes._case import Case
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes.distributed import _parallel
from gpuwhy.knowledge import components
from gpuwhy.knowledge.engine_memory import vllm_memory
from gpuwhy.knowledge.engine_messages import engine_of_log, engine_of_message
from gpuwhy.model.experiments import Experiments
from gpuwhy.model.fact import Unknown
from gpuwhy.model.remedy import Remedy


class Options(Struct, frozen=True):
    """Option names of one engine; ``""`` where it has none. ``kind`` is the kind of remedy they are (flag, env, config).

    ``fraction``: share of the card for weights and cache. ``requests``: how many run at once. ``tokens``: tokens of one
    forward pass. ``length``: context. ``graphs``: largest batch that is captured. ``cache_type``: number format of the
    cache. ``split``: over how many GPUs. ``draft``: speculative decoding. ``offload``: what stays in host memory.
    """

    fraction: str = ""
    requests: str = ""
    tokens: str = ""
    length: str = ""
    graphs: str = ""
    cache_type: str = ""
    cache_value: str = "fp8"
    split: str = ""
    draft: str = ""
    offload: str = ""
    offload_value: str = "lower"
    kind: str = "flag"
    default: float | None = None


_BY_ENGINE = {
    "vllm": Options("--gpu-memory-utilization", "--max-num-seqs", "--max-num-batched-tokens", "--max-model-len", "--enforce-eager", "--kv-cache-dtype", "fp8",
                    "--tensor-parallel-size", "--speculative-config", "--cpu-offload-gb", "higher", "flag", 0.9),
    "sglang": Options("--mem-fraction-static", "--max-running-requests", "--chunked-prefill-size", "--context-length", "--cuda-graph-max-bs", "--kv-cache-dtype", "fp8_e4m3",
                      "--tp-size", "--speculative-algorithm", "--cpu-offload-gb", "higher"),
    "tensorrt-llm": Options("kv_cache_config.free_gpu_memory_fraction", "max_batch_size", "max_num_tokens", "max_seq_len", "cuda_graph_config", "kv_cache_config.dtype", "fp8",
                            "tensor_parallel_size", "speculative_config", "", "", "config", 0.9),
    "lmdeploy": Options("--cache-max-entry-count", "--max-batch-size", "--max-prefill-token-num", "--session-len", "", "--quant-policy", "8", "--tp", "", "", "", "flag", 0.8),
    "text-generation-inference": Options("--cuda-memory-fraction", "--max-batch-size", "--max-batch-prefill-tokens", "--max-total-tokens", "--cuda-graphs", "--kv-cache-dtype", "fp8_e4m3fn",
                                         "--num-shard", "--speculate", "", "", "flag", 1.0),
    "llama.cpp": Options("", "--parallel", "--ubatch-size", "--ctx-size", "", "--cache-type-k", "q8_0", "", "--model-draft", "--n-gpu-layers"),
    "ollama": Options("", "OLLAMA_NUM_PARALLEL", "", "OLLAMA_CONTEXT_LENGTH", "", "OLLAMA_KV_CACHE_TYPE", "q8_0", "", "", "num_gpu", "lower", "env"),
    "comfyui": Options("", "", "", "", "", "", "", "", "", "--lowvram", ""),
}  # fmt: skip
_LLAMA_LIKE = frozenset(
    {"llama.cpp", "llama-cpp-python", "whisper.cpp", "llama-box", "koboldcpp", "stable-diffusion.cpp"}
)
_PLAIN = Options()


def engine_of(case: Case, component: str | None) -> str:
    """The engine whose options count: of the log, else of the component at which it stopped."""
    found = engine_in_log(case)
    if found in _BY_ENGINE:
        return found
    if component in _LLAMA_LIKE:
        return "llama.cpp"
    return component if component in _BY_ENGINE else found


def options_of(engine: str) -> Options:
    return _BY_ENGINE.get(engine, _PLAIN)


_SET = lazy_pattern(
    r"(?:gpu[-_]memory[-_]utilization|mem[-_]fraction[-_]static|free[-_]gpu[-_]mem(?:ory)?[-_]fraction|cache[-_]max[-_]entry[-_]count|cuda[-_]memory[-_]fraction)['\"]?\s{0,3}(?:[=: ]|\(|is|of){1,3}\s{0,3}['\"]?(0?\.\d{1,4}|1\.0|\d{1,2}%)",
    re.IGNORECASE,
)
_NAMES = ("gpu_memory_utilization", "mem_fraction_static", "cache_max_entry_count")


def fraction_in_use(case: Case) -> float | None:
    """The fraction the server was started with: from its echoed arguments, its command, or any line that sets it."""
    for name in _NAMES:
        value = case.facts.value(f"server_args.{name}")
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1:
            return float(value)
    command = case.facts.value("command")
    texts = [str(command)] if command else []
    texts += [line.text[:2000] for _, line in case.lines() if "raction" in line.text or "tilization" in line.text or "entry" in line.text]  # fmt: skip
    for text in texts:
        found = _SET.search(text)
        if found:
            number = found[1]
            return int(number[:-1]) / 100 if number.endswith("%") else float(number)
    return None


def default_fraction(case: Case, engine: str) -> float | None:
    """What this release takes where nothing is set; None for an engine that computes it from the GPU."""
    version = str(case.facts.value("packages.vllm") or "")
    if engine == "vllm" and version:
        return vllm_memory(version)[0].default_utilization
    return options_of(engine).default


def ranks(case: Case) -> int | None:
    """Over how many GPUs the weights are split; None when nothing says so."""
    size = _parallel.tensor(case)
    return None if size is None or size.at_least else size.value


def twice_the_ranks(case: Case) -> str:
    """Twice as many GPUs: the least that more of them can mean; ``higher`` when it is not known how many there are."""
    found = ranks(case)
    return "higher" if found is None or found > _MOST_DOUBLED else str(found * 2)


_MOST_DOUBLED = 64


_NUMBERS = {
    "requests": ("max_num_seqs", "max_running_requests", "max_batch_size"),
    "tokens": ("max_num_batched_tokens", "chunked_prefill_size", "max_prefill_tokens", "max_num_tokens", "ubatch_size"),
    "graphs": ("cuda_graph_max_bs", "cuda_graph_max_bs_decode", "max_cudagraph_capture_size"),
    "length": ("max_model_len", "context_length", "max_seq_len"),
}
_BATCHES = lazy_pattern(
    r"(?:bs|batch sizes?)\s{0,2}[=:]?\s{0,2}\[[\d, ]{0,4000}?(\d{1,5})\]|Capturing batches \(bs=(\d{1,5})"
)
_LARGEST = 1_000_000


def in_use(case: Case, what: str) -> int | None:
    """The number that the start used for ``requests``, ``tokens``, ``graphs`` or ``length``, as its arguments say."""
    for name in _NUMBERS[what]:
        value = case.facts.value(f"server_args.{name}")
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LARGEST:
            return value
    if what in ("tokens", "length") and (printed := _printed(case, _OF_LLAMA[what])):
        return printed
    if what != "graphs":
        return None
    sizes = [int(found[1] or found[2]) for _, line in case.lines() if "bs" in line.text and (found := _BATCHES.search(line.text[:6000]))]  # fmt: skip
    return max(sizes, default=None)


_OF_LLAMA = {
    "tokens": lazy_pattern(r"\bn_ubatch\s{0,16}= ?(\d{1,7})\b|(?<=\s)(?:-ub|--ubatch-size)[ =](\d{1,7})\b"),
    "length": lazy_pattern(r"\bn_ctx\s{0,16}= ?(\d{1,7})\b"),
}
"""What llama.cpp prints of its context, or a command gives it."""


def _printed(case: Case, pattern: re.Pattern[str]) -> int | None:
    texts = (str(case.facts.value("command") or "")[:8000], *(line.text[:600] for _, line in case.lines()))
    found = next((seen for text in texts if (seen := pattern.search(text))), None)
    return int(found[1] or found[found.lastindex or 1]) if found else None


def halved(number: int | None, floor: int = 1) -> str:
    """Half of it as a power of two, and not less than ``floor``; ``lower`` when it is unknown or that small already."""
    if number is None or number <= floor:
        return "lower"
    half = 1 << max(0, (number // 2).bit_length() - 1)
    return str(max(half, floor)) if half < number else "lower"


MARGIN = 256 << 20
"""Free memory to leave beside what the failed request lacked: the next one must fit too."""


def lowered(fraction: float | None, shortfall: int | None, total: int | None) -> str:
    """The fraction that leaves what was lacking, rounded down to a hundredth; ``lower`` when it cannot be computed."""
    if fraction is None or shortfall is None or not total:
        return "lower"
    wanted = math.floor((fraction - (shortfall + MARGIN) / total) * 100) / 100
    return f"{wanted:.2f}" if 0.1 < wanted < fraction else "lower"


def raised(least: float | None) -> str:
    """The smallest fraction, rounded up to a hundredth, that is not below ``least``; ``higher`` when it is unknown or no card has it."""
    if least is None or least > HIGHEST or least <= 0:
        return "higher"
    return f"{min(HIGHEST, math.ceil(least * 100 - 1e-9) / 100):.2f}"


HIGHEST = 0.97
"""Above it the CUDA context and the driver have no room on cards of any size."""


def change(
    options: Options, name: str, value: str, summary: str, *, rank: int = 0, cost: str = "", sure: bool = True
) -> tuple[Remedy, ...]:
    """A change of one option; nothing when the engine has no such option."""
    if not name:
        return ()
    kind = "env" if name.isupper() else "config" if options.kind == "config" or not name.startswith("-") else "flag"
    return (Remedy(kind=kind, name=name, value=value, summary=summary, rank=rank, cost=cost, is_sure=sure),)  # fmt: skip


def tried(experiments: Experiments | Unknown) -> tuple[Remedy, ...]:
    """What was tried here and helped: it comes before what usually helps."""
    if not isinstance(experiments, Experiments):
        return ()
    return tuple(msgspec.structs.replace(remedy, rank=-1) for remedy in experiments.remedies)


_ALIASES = {"aphrodite": "vllm"}
_LOADERS = frozenset({"transformers", "accelerate", "safetensors", "huggingface-hub", "peft"})
_CARRIERS = _LOADERS | {"torch", "triton", "nccl", "ray"}
"""Packages whose frames stand around such a failure, and that divide no memory."""


def engine_in_log(case: Case) -> str:
    """The engine that the log names, else the one whose messages stand in it."""
    return engine_of_log(case.engine, [line.raw for _, line in case.lines()])


def component_of(case: Case, near: str | None, message: str = "") -> str:
    """The part that divides the memory: the engine, else what stands near the failure, else torch."""
    engine = engine_in_log(case) or engine_of_message(message)
    if engine in ("llama.cpp", "comfyui", "exllama", "exllamav2", "exllamav3") or not engine:
        if near and near not in _CARRIERS:
            return near
        return engine or ("transformers" if near in _LOADERS else "torch")
    return _ALIASES.get(engine, components.canonical(engine) or engine)
