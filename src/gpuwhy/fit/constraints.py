"""What an engine refuses before it allocates anything: sizes that do not divide, kernels that the GPU has not got.

read: SGLang 0.5.9, 0.5.10.post1, 0.5.15, 0.5.23 and vLLM 0.10.2, 0.20.2, 0.33.0; the messages are theirs. Only what
every read release refuses is here, or what that release does: where one falls back to another kernel, nothing is said.
Wording that was not found in their files is marked, see :data:`UNCHECKED`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.hardware import Hardware
from gpuwhy.fit.quantization import Format
from gpuwhy.fit.results import Constraint
from gpuwhy.fit.settings import Settings
from gpuwhy.knowledge.engine_memory import release_of, vllm_memory

_BLOCK = re.compile(r"fp8 (\d{1,6})x(\d{1,6})")
_GROUP = re.compile(r"int\d{1,2} g(\d{1,7})")
UNCHECKED = " (wording unchecked)"
"""Follows what is said of a constraint whose message was not seen in a source."""
_OF_FA3 = (
    "AssertionError: FlashAttention v3 Backend requires SM>=80 and SM<=90. Please use `--attention-backend flashinfer`."
)
_OF_MLA = "ValueError: TRTLLM MLA backend is only supported on Blackwell GPUs (SM100/SM12x). Please use a different backend."  # fmt: skip
_ONLY_ON: dict[str, tuple[tuple[int, ...], str]] = {
    "fa3": ((8, 9), _OF_FA3),
    "trtllm_mla": ((10, 11, 12), _OF_MLA),
    "cutedsl_mla": ((10,), ""),
    "hpc_ops": ((9,), ""),
    "cutlass_mla": ((10,), ""),
    "flashmla": ((9, 10), ""),
}  # fmt: skip
"""Generations by SGLang's backend, and what it prints on others; of the last two from general knowledge, without words."""
_WIDER_MHA = Version("0.5.11")
"""Until then prompts through trtllm_mha need SM100; a release after it also takes SM90 and SM120."""
_LEAST_SGLANG = 7.5
_LEAST_BF16 = 8.0
_MARLIN_COLUMNS = 128


def broken(shape: Architecture, settings: Settings, hardware: Hardware) -> tuple[Constraint, ...]:
    """In the order in which a start meets them. What is not known of the model breaks nothing."""
    return (
        *_arguments(shape, settings),
        *_lengths(shape, settings),
        *_speculating(shape, settings),
        *_backends(shape, settings, hardware),
        *_heads(shape, settings),
        *_experts(shape, settings),
        *_quantized(shape, settings),
    )


def _flag(settings: Settings, sglang: str, vllm: str) -> str:
    return vllm if settings.engine == "vllm" else sglang


def _tensor_flag(settings: Settings) -> str:
    return _flag(settings, "--tp-size", "--tensor-parallel-size")


def _arguments(shape: Architecture, settings: Settings) -> Iterator[Constraint]:
    tensor, context = settings.tensor, settings.decode_context
    if context > 1 and tensor % context:
        message = f"tp_size={tensor} must be divisible by dcp_size={context}" if settings.engine == "vllm" else "tensor_model_parallel_size must be divisible by decode_context_parallel_size"  # fmt: skip
        yield Constraint(flag="--dcp-size", says=f"{tensor} ranks are no multiple of {context}", message=message)
    if settings.pipeline > len(shape.layers) > 0:
        yield Constraint(flag=_flag(settings, "--pp-size", "--pipeline-parallel-size"), says=f"{settings.pipeline} stages for {len(shape.layers)} layers", message="")  # fmt: skip
    if settings.engine == "vllm":
        yield from _unknown_flags(settings)
        yield from _decode_context(shape, settings)
        return
    if settings.has_dp_attention and tensor % max(1, settings.data):
        yield Constraint(flag="--dp-size", says=f"{tensor} ranks are no multiple of {settings.data} groups of attention", message="AssertionError: tp_size must be divisible by dp_size")  # fmt: skip
    if settings.page and settings.prefill_tokens and settings.prefill_tokens % settings.page:
        yield Constraint(flag="--chunked-prefill-size", says=f"{settings.prefill_tokens} is no multiple of the page of {settings.page} tokens", message="AssertionError: chunked_prefill_size must be divisible by page_size")  # fmt: skip
    speculation = settings.speculation
    if speculation and settings.has_dp_attention and speculation.method in ("STANDALONE", "NGRAM"):
        yield Constraint(flag="--speculative-algorithm", says="it does not go with DP attention", message=f"ValueError: Currently {speculation.method.lower()} speculative decoding does not support dp attention.")  # fmt: skip
    if settings.pipeline > 1 and speculation:
        yield Constraint(flag="--pp-size", says="pipeline parallelism does not go with a draft, unless SGLANG_ENABLE_PP_SPEC is set (0.5.23)", message="AssertionError: Pipeline parallelism is not compatible with overlap schedule, speculative decoding...")  # fmt: skip
    if settings.nodes > 1 and (tensor * settings.pipeline) % settings.nodes:
        yield Constraint(flag="--nnodes", says=f"{tensor * settings.pipeline} ranks are not divided by {settings.nodes} nodes", message="AssertionError: tp_size must be divisible by number of nodes")  # fmt: skip


def _unknown_flags(settings: Settings) -> Iterator[Constraint]:
    """Flags that the release has not yet or no longer; nothing where that release was not read."""
    release, reading = vllm_memory(settings.version)
    if not reading.is_read:
        return
    if settings.swap_gib is not None and not release.has_swap_flag:
        yield Constraint(flag="--swap-space", says="the option is gone since 0.18.0; the V1 engine took no swap space before either", message="error: unrecognized arguments: --swap-space")  # fmt: skip
    if settings.is_context_fitted and not release.fits_context:
        yield Constraint(
            flag="--max-model-len", says=f"a length that is chosen by what fits came with 0.14.0{UNCHECKED}", message=""
        )
    if settings.kv_cache_bytes and not release.has_cache_bytes_flag:
        yield Constraint(flag="--kv-cache-memory-bytes", says="the option came with 0.10.2", message="error: unrecognized arguments: --kv-cache-memory-bytes")  # fmt: skip


def _decode_context(shape: Architecture, settings: Settings) -> Iterator[Constraint]:
    """vLLM divides the tokens over the ranks that would else hold the same key-value heads."""
    context, kv_heads = settings.decode_context, shape.kv_heads
    if context <= 1 or shape.mla or not kv_heads or settings.tensor % context:
        return
    most = settings.tensor // kv_heads
    if context > max(1, most):
        yield Constraint(flag="--dcp-size", says=f"{settings.tensor} ranks hold {kv_heads} key-value heads {max(1, most)} times, which is the most{UNCHECKED}", message="... exceeds the maximum supported value ...")  # fmt: skip


def _lengths(shape: Architecture, settings: Settings) -> Iterator[Constraint]:
    """A context beyond the model's own, and batches that cannot hold their requests."""
    own = settings.model_context or max(shape.context or 0, shape.rotary_rows)
    if settings.context and own and settings.context > own and not settings.is_context_open:
        variable = "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1" if settings.engine == "vllm" else "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"  # fmt: skip
        name = "max_model_len" if settings.engine == "vllm" else "context_length"
        yield Constraint(
            flag=_flag(settings, "--context-length", "--max-model-len"),
            says=f"the model's own context is {own}; {variable} allows more{UNCHECKED}",
            message=f"ValueError: User-specified {name} ({settings.context}) is greater than the derived {name}",
        )
    tokens, requests = settings.prefill_tokens, settings.requests
    if settings.engine == "vllm" and tokens and requests and tokens < requests:
        yield Constraint(flag="--max-num-batched-tokens", says=f"{tokens} tokens are fewer than {requests} requests{UNCHECKED}", message=f"ValueError: max_num_batched_tokens ({tokens}) must be greater than or equal to max_num_seqs ({requests}).")  # fmt: skip


def _speculating(shape: Architecture, settings: Settings) -> Iterator[Constraint]:
    speculation, layers = settings.speculation, shape.predicting_layers
    if settings.engine == "vllm" and speculation and speculation.is_own_layers and speculation.tokens and layers > 1 and speculation.tokens % layers:  # fmt: skip
        yield Constraint(flag="--speculative-config", says=f"{speculation.tokens} tokens are no multiple of the {layers} layers that predict them{UNCHECKED}", message=f"ValueError: num_speculative_tokens:{speculation.tokens} must be divisible by n_predict={layers}")  # fmt: skip


def _backends(shape: Architecture, settings: Settings, hardware: Hardware) -> Iterator[Constraint]:
    capability = hardware.capability
    if not capability or hardware.is_of_another_vendor:
        return
    if settings.dtype in ("bfloat16", "bf16") and capability < _LEAST_BF16 and settings.engine == "vllm":
        yield Constraint(flag="--dtype", says=f"bfloat16 needs compute capability 8.0, this is {capability:g}{UNCHECKED}", message="ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.")  # fmt: skip
    if settings.engine != "sglang":
        return
    if capability < _LEAST_SGLANG:
        yield Constraint(flag="--gpu", says=f"compute capability {capability:g} is too old", message="RuntimeError: SGLang only supports sm75 and above.")  # fmt: skip
    for flag, given in (("--attention-backend", settings.attention_backend), ("--decode-attention-backend", settings.decode_backend)):  # fmt: skip
        yield from _backend(flag, given.lower().replace("-", "_"), shape, settings, capability)


def _backend(flag: str, name: str, shape: Architecture, settings: Settings, capability: float) -> Iterator[Constraint]:
    generations, message = _ONLY_ON.get(name, ((), ""))
    if name == "fa3" and shape.mla:
        generations = (9,)
    if name == "trtllm_mha":
        release = release_of(settings.version)
        is_narrow = flag == "--attention-backend" and release is not None and release < _WIDER_MHA
        generations = (10,) if is_narrow else (9, 10, 11, 12)
        message = "" if is_narrow else "ValueError: ... requires Hopper (SM90), Blackwell (SM100), or SM120 GPUs ..."
    if generations and int(capability) not in generations:
        yield Constraint(flag=flag, says=f"{name} does not run on compute capability {capability:g}", message=message)
    elif shape.is_complete and {"trtllm_mla": shape.mla is None, "trtllm_mha": shape.mla is not None}.get(name, False):
        yield Constraint(flag=flag, says=f"{name} is for models {'with' if name == 'trtllm_mla' else 'without'} a latent cache", message="")  # fmt: skip


def _heads(shape: Architecture, settings: Settings) -> Iterator[Constraint]:
    ranks = max(1, settings.parallel.attention)
    heads, kv_heads = shape.heads, shape.kv_heads
    if heads and heads % ranks:
        message = f"ValueError: Total number of attention heads ({heads}) must be divisible by tensor parallel size ({ranks})." if settings.engine == "vllm" else f"AssertionError: {heads} is not divisible by {ranks}"  # fmt: skip
        yield Constraint(flag=_tensor_flag(settings), says=f"{heads} attention heads do not divide by {ranks}", message=message)  # fmt: skip
    elif kv_heads and not shape.mla and (kv_heads % ranks if kv_heads >= ranks else ranks % kv_heads):
        message = "assert self.total_num_kv_heads % tp_size == 0" if kv_heads >= ranks else "assert tp_size % self.total_num_kv_heads == 0"  # fmt: skip
        yield Constraint(flag=_tensor_flag(settings), says=f"{kv_heads} key-value heads and {ranks} ranks do not divide", message=f"AssertionError: {message}")  # fmt: skip


def _expert_share(settings: Settings) -> int:
    """Over how many ranks one expert is divided."""
    parallel = settings.parallel
    return max(1, parallel.expert_ranks // max(1, parallel.experts)) if parallel.experts > 1 else parallel.expert_ranks


def _experts(shape: Architecture, settings: Settings) -> Iterator[Constraint]:
    experts, groups = shape.experts, settings.parallel.experts
    if experts is None:
        if settings.engine == "vllm" and settings.is_expert_parallel and shape.is_complete:
            yield Constraint(flag="--enable-expert-parallel", says="the model has no experts", message="ValueError: Number of experts in the model must be greater than 0 when expert parallelism is enabled.")  # fmt: skip
        return
    share = _expert_share(settings)
    if settings.engine == "sglang" and shape.mla and settings.tensor > experts.count:
        yield Constraint(flag="--tp-size", says=f"{settings.tensor} ranks for {experts.count} experts", message=f"ValueError: Tensor parallel size {settings.tensor} is greater than the number of experts {experts.count}.")  # fmt: skip
    elif groups > 1 and settings.engine == "sglang" and experts.count % groups:
        yield Constraint(flag="--ep-size", says=f"{experts.count} experts do not divide by {groups}", message="AssertionError: assert num_physical_experts % ep_size == 0")  # fmt: skip
    elif experts.width % share:
        yield Constraint(flag=_tensor_flag(settings), says=f"an expert's width of {experts.width} does not divide by {share}", message=f"AssertionError: {experts.width} is not divisible by {share}")  # fmt: skip


def _quantized(shape: Architecture, settings: Settings) -> Iterator[Constraint]:
    """Shares of one rank must be whole blocks and groups. A module that stays unquantised has none."""
    quantization = shape.quantization
    if shape.experts and any(layer.feed == "experts" for layer in shape.layers):
        at = next(index for index, layer in enumerate(shape.layers) if layer.feed == "experts")
        kept = quantization.format_of(f"model.layers.{at}.mlp.experts.0.up_proj")
        share = _expert_share(settings)
        yield from _of_experts(kept, shape.experts.width, share, settings)
    dense = next((index for index, layer in enumerate(shape.layers) if layer.feed == "dense"), None)
    if dense is not None and shape.inner:
        kept = quantization.format_of(f"model.layers.{dense}.mlp.down_proj")
        yield from _of_dense(kept, shape.inner, settings, quantization.method)


def _of_experts(kept: Format, width: int, share: int, settings: Settings) -> Iterator[Constraint]:
    block = _BLOCK.fullmatch(kept.name)
    if share <= 1 or width % share:
        return
    each = width // share
    if block is None:
        if settings.engine == "sglang" and _GROUP.fullmatch(kept.name) and each < _MARLIN_COLUMNS:
            yield Constraint(flag="--ep-size", says=f"a rank's {each} of an expert's {width} columns are fewer than the kernel takes", message=f"ValueError: Weight input_size_per_partition = {each} is not divisible by min_thread_k = {_MARLIN_COLUMNS}.")  # fmt: skip
        return
    if each % int(block[1]):
        yield Constraint(flag=_flag(settings, "--ep-size", "--enable-expert-parallel"), says=f"a rank's {each} of an expert's {width} columns are no whole blocks of {block[1]}", message=f"ValueError: The output_size of gate's and up's weight = {each} is not divisible by weight quantization block_n = {block[1]}.")  # fmt: skip
    elif each % int(block[2]):
        yield Constraint(flag=_flag(settings, "--ep-size", "--enable-expert-parallel"), says=f"a rank's {each} of an expert's {width} rows are no whole blocks of {block[2]}", message=f"ValueError: The input_size of down's weight = {each} is not divisible by weight quantization block_k = {block[2]}.")  # fmt: skip


def _of_dense(kept: Format, inner: int, settings: Settings, method: str) -> Iterator[Constraint]:
    ranks = max(1, settings.tensor)
    if ranks == 1:
        return
    if inner % ranks:
        yield Constraint(flag=_tensor_flag(settings), says=f"the width of {inner} does not divide by {ranks}", message=f"AssertionError: {inner} is not divisible by {ranks}")  # fmt: skip
        return
    each = inner // ranks
    block, group = _BLOCK.fullmatch(kept.name), _GROUP.fullmatch(kept.name)
    if block and each % int(block[2]):
        yield Constraint(flag=_tensor_flag(settings), says=f"a rank's {each} of {inner} rows are no whole blocks of {block[2]}", message=f"ValueError: Weight input_size_per_partition = {each} is not divisible by weight quantization block_k = {block[2]}.")  # fmt: skip
    elif group and each % int(group[1]) and int(group[1]) <= inner:
        message = f"Weight input_size_per_partition={each} is not divisible by group_size={group[1]}" if method == "compressed_tensors" else "The input size is not aligned with the quantized weight shape. This can be caused by too large tensor parallel size."  # fmt: skip
        yield Constraint(flag=_tensor_flag(settings), says=f"a rank's {each} of {inner} rows are no whole groups of {group[1]}", message=f"ValueError: {message}")  # fmt: skip
