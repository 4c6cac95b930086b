"""Features of engines that can exclude each other: how messages call them, and the option that takes each back."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.model.remedy import Remedy


class Feature(msgspec.Struct, frozen=True):
    """``words`` as messages call it; ``options`` by engine: name and value that switch it off (or to its plain form).

    ``turns_on`` are options by engine that switch it on, where a message says that another feature requires it.
    """

    name: str
    words: re.Pattern[str]
    options: dict[str, tuple[str, str]] = {}
    turns_on: dict[str, tuple[str, str]] = {}


def _feature(name: str, words: str, options: dict[str, tuple[str, str]] | None = None, turns_on: dict[str, tuple[str, str]] | None = None) -> Feature:  # fmt: skip
    return Feature(name, re.compile(words, re.IGNORECASE), options or {}, turns_on or {})


FEATURES: tuple[Feature, ...] = (
    _feature("speculative decoding", r"speculat|draft[ _-]?model|\bdraft\b|eagle|\bmtp\b|medusa|n-?gram|lookahead|spec[ _-]?dec",
             {"vllm": ("--speculative-config", "remove"), "sglang": ("--speculative-algorithm", "remove"), "llama.cpp": ("--model-draft", "remove"), "tensorrt-llm": ("speculative_config", "remove")}),
    _feature("pipeline parallelism", r"pipeline[ _-]?parallel|\bpp\b|pp[_-]size|SupportsPP",
             {"vllm": ("--pipeline-parallel-size", "1"), "sglang": ("--pp-size", "1"), "tensorrt-llm": ("--pp_size", "1")}),
    _feature("tensor parallelism", r"tensor[ _-]?parallel|\btp\b|tp[_-]size|multi-?gpu",
             {"vllm": ("--tensor-parallel-size", "1"), "sglang": ("--tp-size", "1")}),
    _feature("data-parallel attention", r"dp[ _-]?attention|data[ _-]?parallel|\bdp\b|dp[_-]size",
             {"sglang": ("--enable-dp-attention", "remove"), "vllm": ("--data-parallel-size", "1")}),
    _feature("expert parallelism", r"expert[ _-]?parallel|\bep\b|ep[_-]size|\beplb\b|enable[_-]ep",
             {"vllm": ("--enable-expert-parallel", "remove"), "sglang": ("--ep-size", "1")}),
    _feature("DeepEP", r"deep_?ep|all2all|a2a|dispatch mode|two[ _-]batch[ _-]overlap|\btbo\b|\bdbo\b",
             {"sglang": ("--moe-a2a-backend", "none"), "vllm": ("--all2all-backend", "another")}),
    _feature("LoRA", r"\blora\b|adapters?\b|prompt adapter", {"vllm": ("--enable-lora", "remove"), "sglang": ("--lora-paths", "remove")}),
    _feature("chunked prefill", r"chunked[ _-]?(?:prefill|context)|paged[ _-]?context|mixed[ _-]?chunk",
             {"vllm": ("--no-enable-chunked-prefill", "set"), "sglang": ("--chunked-prefill-size", "-1"), "tensorrt-llm": ("enable_chunked_prefill", "false")},
             {"vllm": ("--enable-chunked-prefill", "set")}),
    _feature("prefix caching", r"prefix[ _-]?cach|radix|block reuse|automatic prefix|kv cache reuse",
             {"vllm": ("--no-enable-prefix-caching", "set"), "sglang": ("--disable-radix-cache", "set"), "tensorrt-llm": ("kv_cache_config.enable_block_reuse", "false")}),
    _feature("CUDA graphs", r"cuda[ _-]?graphs?|stream is capturing|capturing stream|enforce[ _-]?eager|graph capture",
             {"vllm": ("--enforce-eager", "set"), "sglang": ("--disable-cuda-graph", "set"), "tensorrt-llm": ("cuda_graph_config", "null")}),
    _feature("torch.compile", r"torch[._ -]?compile|piecewise|inductor|compilation", {"vllm": ("--enforce-eager", "set"), "sglang": ("--enable-torch-compile", "remove")}),
    _feature("KV cache format", r"kv[ _-]?cache[ _-]?(?:dtype|quant\w{0,6}|type|data type)|(?:fp8|int8|nvfp4|quantized)[ _-]?kv|kv[ _-]?cache|\b[KV] cache quanti|type_[kv]\b|cache[-_]type",
             {"vllm": ("--kv-cache-dtype", "auto"), "sglang": ("--kv-cache-dtype", "auto"), "llama.cpp": ("--cache-type-v", "f16"), "ollama": ("OLLAMA_KV_CACHE_TYPE", "f16"), "lmdeploy": ("--quant-policy", "0")}),
    _feature("attention backend", r"attention[ _-]?backend|\bbackend\b|flash[ _-]?attn|flash[ _-]?attention|flash_?infer|\bfa[234]\b|flash_?mla|fmha|cutlass_mla|triton_attn|xformers|trtllm_m[lh]a|torch_native|sdpa|\bmla\b|\bAttention\w{0,30}Backend",
             {"vllm": ("--attention-backend", "another"), "sglang": ("--attention-backend", "another"), "llama.cpp": ("--flash-attn", "off")},
             {"llama.cpp": ("--flash-attn", "on"), "ollama": ("OLLAMA_FLASH_ATTENTION", "1")}),
    _feature("block or page size", r"block[ _-]?size|page[ _-]?size", {"vllm": ("--block-size", "another"), "sglang": ("--page-size", "another")}),
    _feature("quantization", r"quanti[sz]|bitsandbytes|\bawq\b|\bgptq\b|fp8 weights|torchao|\bgguf\b", {"vllm": ("--quantization", "another"), "sglang": ("--quantization", "another")}),
    _feature("offloading", r"offload|uva\b|swap[ _-]?space", {"vllm": ("--cpu-offload-gb", "remove"), "sglang": ("--cpu-offload-gb", "remove")}),
    _feature("overlapped scheduling", r"overlap (?:schedul|mode)|async[ _-]?schedul|overlap[ _-]?schedule", {"sglang": ("--disable-overlap-schedule", "set"), "vllm": ("--no-async-scheduling", "set"), "tensorrt-llm": ("disable_overlap_scheduler", "true")}),
    _feature("multi-step scheduling", r"multi-?step|num[_-]scheduler[_-]steps", {"vllm": ("--num-scheduler-steps", "remove")}),
    _feature("hierarchical cache", r"hi(?:erarchical)?[ _-]?cache", {"sglang": ("--enable-hierarchical-cache", "remove")}),
    _feature("KV transfer", r"disaggregat|kv[ _-]?transfer|kv[ _-]?connector|\bpd\b", {"vllm": ("--kv-transfer-config", "remove"), "sglang": ("--disaggregation-mode", "null")}),
    _feature("hybrid cache manager", r"hybrid[ _-]?(?:kv|allocator|model|memory)|mamba|\bssm\b|linear attention|sliding[ _-]?window|\bswa\b", {"vllm": ("--disable-hybrid-kv-cache-manager", "set"), "sglang": ("--disable-hybrid-swa-memory", "set")}),
    _feature("the V1 engine", r"\bV1\b|VLLM_USE_V1", {"vllm": ("VLLM_USE_V1", "0")}),
    _feature("mixture of experts backend", r"moe[ _-]?(?:runner|backend)|fused[ _-]?moe|cutlass[ _-]?moe", {"sglang": ("--moe-runner-backend", "auto"), "vllm": ("--moe-backend", "auto")}),
    _feature("split mode", r"split[ _-]?mode|tensor[ _-]?split", {"llama.cpp": ("--split-mode", "layer")}),
    _feature("structured output", r"guided[ _-]?decod|structured[ _-]?output|grammar|logits? process|logprobs?|best_of|beam search|json[ _-]?schema"),
    _feature("multimodal input", r"multi-?modal|mm[_-]processor|vision|image|encoder|mmproj|audio", {"llama.cpp": ("--mmproj", "remove")}),
    _feature("pooling or embedding", r"embedding|pooling|\breward\b|rerank|classif"),
    _feature("a memory pool for sleep mode", r"sleep[ _-]?mode|memory pool|cumem|memory[ _-]saver", {"vllm": ("--enable-sleep-mode", "remove"), "sglang": ("--enable-memory-saver", "remove")}),
    _feature("expandable segments", r"expandable[ _]segments", {"vllm": ("PYTORCH_CUDA_ALLOC_CONF", "unset"), "sglang": ("PYTORCH_CUDA_ALLOC_CONF", "unset")}),
    _feature("scheduler or executor", r"distributed[ _-]?executor|\bexecutor\b|\bray\b|scheduler|\bmp\b backend", {"vllm": ("--distributed-executor-backend", "mp")}),
    _feature("tokens of one pass", r"max[_-]num[_-]batched[_-]tokens|max[_-]num[_-]tokens|chunked MM input", {"vllm": ("--max-num-batched-tokens", "higher"), "tensorrt-llm": ("max_num_tokens", "higher")}),
    _feature("context length", r"max[_-]model[_-]len|max[_-]seq[_-]len|context[_-]length", {"vllm": ("--max-model-len", "lower"), "sglang": ("--context-length", "lower")}),
    _feature("number of sequences", r"max[_-]num[_-]seqs|max[_-]running[_-]requests|max[_-]batch[_-]size|max_tokens_per_mm_item", {"vllm": ("--max-num-seqs", "lower"), "sglang": ("--max-running-requests", "lower")}),
    _feature("context shift", r"context[ _-]?shift|self-?extend|group attention", {"llama.cpp": ("--no-context-shift", "set")}),
)  # fmt: skip
"""documented: the engines' command lines (vLLM 0.6 to 0.11, SGLang 0.4 to 0.5, llama.cpp)."""


def features_in(text: str) -> tuple[Feature, ...]:
    """The features that a message names, in its order."""
    found = [
        (match.start(), feature) for feature in FEATURES if (match := feature.words.search(text[:1600])) is not None
    ]
    return tuple(feature for _, feature in sorted(found, key=lambda pair: pair[0]))


def without(feature: Feature, engine: str, *, rank: int = 0, is_sure: bool = True) -> tuple[Remedy, ...]:
    """Give the feature up, by the engine's own option; nothing where the engine has none."""
    option = feature.options.get(engine)
    if option is None:
        return ()
    name, value = option
    return (Remedy(kind=_kind(name), name=name, value=value, summary=f"Give up {feature.name}: {name} {_spelled(value)}".rstrip(), rank=rank, is_sure=is_sure),)  # fmt: skip


def with_(feature: Feature, engine: str, *, rank: int = 0) -> tuple[Remedy, ...]:
    """Switch the feature on that another one requires."""
    option = feature.turns_on.get(engine)
    if option is None:
        return ()
    name, value = option
    return (Remedy(kind=_kind(name), name=name, value=value, summary=f"Switch {feature.name} on: {name} {_spelled(value)}".rstrip(), rank=rank),)  # fmt: skip


def _kind(name: str) -> str:
    return "env" if name.isupper() else "flag" if name.startswith("-") else "config"


def _spelled(value: str) -> str:
    return {"set": "", "remove": "(leave it out)", "another": "with another value"}.get(value, value)
