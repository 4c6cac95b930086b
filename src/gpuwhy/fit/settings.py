"""What the user asks of an engine, in one form for both: values that are None are the engine's own to choose."""

from __future__ import annotations

from msgspec import Struct

from gpuwhy.fit.parallel import Parallel


class Speculation(Struct, frozen=True):
    """``method``: EAGLE, EAGLE3, NEXTN, MTP, STANDALONE, NGRAM... ``draft``: what the user gave as the draft model."""

    method: str
    draft: str = ""
    steps: int | None = None
    tokens: int | None = None

    @property
    def is_own_layers(self) -> bool:
        """The draft is the prediction layers of the target's own checkpoint."""
        return self.method in ("NEXTN", "MTP") or (self.method.startswith("EAGLE") and not self.draft)

    @property
    def needs_weights(self) -> bool:
        return self.method not in ("NGRAM", "SUFFIX", "[NGRAM]")


class Settings(Struct, frozen=True, kw_only=True):
    """Arguments of a server. Sizes of parallelism are as the engine counts them; fractions from 0 to 1."""

    engine: str
    """``sglang`` or ``vllm``."""
    version: str = ""
    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1
    is_expert_parallel: bool = False
    has_dp_attention: bool = False
    has_dp_head: bool = False
    decode_context: int = 1
    fraction: float | None = None
    """``--mem-fraction-static`` or ``--gpu-memory-utilization``."""
    context: int | None = None
    kv_dtype: str = "auto"
    dtype: str = "auto"
    quantization: str = ""
    prefill_tokens: int | None = None
    """``--chunked-prefill-size`` or ``--max-num-batched-tokens``."""
    is_unchunked: bool = False
    """Prompts are computed whole (``--chunked-prefill-size -1``, ``--no-enable-chunked-prefill``)."""
    whole_prefill_tokens: int | None = None
    """``--max-prefill-tokens``: of whole prompts at a time."""
    requests: int | None = None
    """``--max-running-requests`` or ``--max-num-seqs``."""
    total_tokens: int | None = None
    """``--max-total-tokens``."""
    kv_cache_bytes: int | None = None
    """``--kv-cache-memory-bytes``."""
    page: int | None = None
    """``--page-size`` or ``--block-size``."""
    graph_batch: int | None = None
    """The largest batch that decode graphs are captured for."""
    graph_batches: tuple[int, ...] = ()
    has_graphs: bool = True
    has_prefill_graphs: bool | None = None
    attention_backend: str = ""
    """For prompts, and for decoding too unless that has one of its own."""
    decode_backend: str = ""
    speculation: Speculation | None = None
    sliding_ratio: float = 0.8
    """``--swa-full-tokens-ratio``."""
    has_sliding_pool: bool = True
    state_ratio: float = 0.9
    """``--mamba-full-memory-ratio``."""
    states: int | None = None
    """``--max-mamba-cache-size``: states that are kept, whatever the ratio."""
    state_dtype: str = ""
    """That states are kept in, in place of what the model or the engine would choose."""
    has_prefix_cache: bool = True
    all_to_all: str = ""
    """``--moe-a2a-backend``: deepep reserves buffers of its own."""
    is_language_only: bool = False
    has_symmetric_memory: bool = False
    is_deterministic: bool = False
    host_cache_gb: float = 0.0
    """``--hicache-size``, or the offloading of the cache: GB per rank."""
    host_cache_ratio: float | None = None
    """``--hicache-ratio``, when the hierarchical cache is on and no size is given."""
    offload_gib: float = 0.0
    """``--cpu-offload-gb``, per GPU."""
    swap_gib: float | None = None
    load_format: str = "auto"
    is_mmap_disabled: bool = False
    loading_threads: int | None = None
    is_data_parallel_encoder: bool = False
    executor: str = ""
    nodes: int = 1
    model_context: int | None = None
    """The longest context that the model is said to have in place of what its config.json says (``--hf-overrides``)."""
    is_context_fitted: bool = False
    """``--max-model-len auto``: the longest that fits, up to the model's own."""
    is_context_open: bool = False
    """A scaling of positions is set whose longest context does not follow from it."""
    unread: tuple[str, ...] = ()
    """Flags that have no part in the memory, or that are not known."""
    uncounted: tuple[str, ...] = ()
    """What flags with a part in the memory ask for that no estimate counts; for people."""
    mistyped: tuple[str, ...] = ()
    """Flags that are not known and look like others; for people."""
    problems: tuple[str, ...] = ()
    """Values that cannot be what they should."""

    @property
    def parallel(self) -> Parallel:
        """How the ranks divide the weights."""
        if self.engine == "vllm":
            ranks = self.tensor * self.data
            return Parallel(
                tensor=self.tensor,
                pipeline=self.pipeline,
                data=self.data,
                attention=self.tensor,
                experts=ranks if self.is_expert_parallel else 1,
                context=self.decode_context,
                expert_ranks=ranks,
                is_tower_replicated=self.is_data_parallel_encoder,
            )
        attention = max(1, self.tensor // self.data) if self.has_dp_attention else self.tensor
        return Parallel(
            tensor=self.tensor,
            pipeline=self.pipeline,
            data=self.data,
            attention=attention,
            experts=self.expert,
            context=self.decode_context,
            expert_ranks=max(self.tensor, self.expert),
            is_head_replicated=self.has_dp_head,
            is_tower_replicated=self.is_data_parallel_encoder,
        )

    @property
    def gpus(self) -> int:
        """GPUs that the command needs in all."""
        replicas = self.data if self.engine == "vllm" or not self.has_dp_attention else 1
        return self.tensor * self.pipeline * replicas
