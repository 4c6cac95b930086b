"""Names that libraries dropped, moved or added, with the release, as far as it is certain.

Provenance: for transformers, huggingface-hub, vllm, triton, trl, outlines, typing-extensions and setuptools the published wheels were
searched for the name, in the release before and in the one that is given (vllm: 23 releases from 0.4.0 to 0.33; transformers: 19 from
4.38 to 5.3); for the others the release notes and migration guides. A row without a release says only in which direction the change went.
"""

from __future__ import annotations

import functools

from msgspec import Struct


class ApiChange(Struct, frozen=True):
    """``name`` of ``module`` is ``gone`` (or there only) from ``release`` of ``distribution`` on.

    ``module`` is the dotted module that a message names, or ``""`` when the name is telling enough. ``release`` is None
    where it is not certain. ``instead`` is the present name.
    """

    distribution: str
    module: str
    name: str
    gone: bool
    release: str | None
    instead: str = ""

    @property
    def fitting(self) -> str:
        """The releases of the distribution that have the name, as a constraint; a direction where they are not known."""
        if self.release is None:
            return "older" if self.gone else "newer"
        return f"<{self.release}" if self.gone else f">={self.release}"

    @property
    def why(self) -> str:
        since = f" {self.release}" if self.release else ""
        told = f"{self.distribution}{since} {'no longer has' if self.gone else 'is the first to have'} {self.name}"
        return f"{told} (now: {self.instead})" if self.instead else told


def _rows(distribution: str, module: str, names: str, release: str | None, *, gone: bool = True, instead: str = "") -> tuple[ApiChange, ...]:  # fmt: skip
    return tuple(ApiChange(distribution, module, name, gone, release, instead) for name in names.split())


_CHANGES: tuple[ApiChange, ...] = (
    *_rows("transformers", "", "AutoModelForVision2Seq", "5", instead="AutoModelForImageTextToText"),
    *_rows("transformers", "", "is_torch_fx_available is_flax_available all_special_tokens_extended TRANSFORMERS_CACHE AutoModelWithLMHead", "5"),
    *_rows("transformers", "", "from_legacy_cache to_legacy_cache", "5"),
    *_rows("transformers", "", "get_usable_length", "4.54", instead="get_seq_length"),
    *_rows("transformers", "", "seen_tokens", "4.54", instead="get_seq_length"),
    *_rows("transformers", "", "get_max_length", "4.49", instead="get_max_cache_shape"),
    *_rows("transformers", "", "rope_theta rope_scaling", "5", instead="rope_parameters"),
    *_rows("transformers", "", "pad_token_id", None),
    *_rows("transformers", "transformers.utils", "LossKwargs", "4.54", instead="TransformersKwargs"),
    *_rows("transformers", "transformers.modeling_utils", "shard_checkpoint", "4.47"),
    *_rows("transformers", "transformers.activations", "PytorchGELUTanh", "4.57", instead="GELUTanh"),
    *_rows("transformers", "", "LLAMA_ATTENTION_CLASSES QWEN2_ATTENTION_CLASSES MISTRAL_ATTENTION_CLASSES LlamaFlashAttention2 LlamaSdpaAttention Qwen2FlashAttention2 Qwen2SdpaAttention", "4.48"),
    *_rows("transformers", "", "num_heads num_key_value_heads", "4.48", instead="the same name in config"),
    *_rows("transformers", "", "top_k_top_p_filtering", "4.39"),
    *_rows("transformers", "", "AdamW", "4.50", instead="torch.optim.AdamW"),
    *_rows("transformers", "", "SlidingWindowCache HybridCache", "5", instead="StaticCache"),
    *_rows("transformers", "", "BeamSearchScorer", None),
    *_rows("transformers", "", "EncoderDecoderCache", "4.43", gone=False),
    *_rows("transformers", "", "Qwen2ForCausalLM Qwen2Config", "4.37", gone=False),
    *_rows("transformers", "", "Qwen2VLForConditionalGeneration MllamaForConditionalGeneration", "4.45", gone=False),
    *_rows("transformers", "", "Qwen2_5_VLForConditionalGeneration", "4.49", gone=False),
    *_rows("transformers", "", "Gemma3ForConditionalGeneration Gemma3Config Gemma3ForCausalLM", "4.50", gone=False),
    *_rows("transformers", "", "Qwen3ForCausalLM Qwen3MoeForCausalLM Qwen3Config Qwen3MoeConfig Llama4ForConditionalGeneration Llama4Config", "4.51", gone=False),
    *_rows("transformers", "", "GptOssConfig GptOssForCausalLM", "4.55", gone=False),
    *_rows("transformers", "", "Qwen3NextConfig Qwen3VLForConditionalGeneration Qwen3VLMoeForConditionalGeneration", "4.57", gone=False),
    *_rows("huggingface-hub", "huggingface_hub", "cached_download", "0.26", instead="hf_hub_download"),
    *_rows("huggingface-hub", "huggingface_hub", "HfFolder Repository configure_http_backend InferenceApi", "1.0"),
    *_rows("huggingface-hub", "huggingface_hub", "is_offline_mode", "1.3", gone=False),
    *_rows("huggingface-hub", "huggingface_hub", "split_torch_state_dict_into_shards", "0.23", gone=False),
    *_rows("numpy", "numpy", "bool int float object complex str", "1.24"),
    *_rows("numpy", "numpy", "float_ complex_ NaN Inf infty unicode_ string_ cast asfarray product cumproduct sometrue alltrue bool8 PINF NINF find_common_type", "2"),
    *_rows("numpy", "numpy.core.numeric", "ComplexWarning", "2"),
    *_rows("torchvision", "torchvision.transforms", "functional_tensor", "0.17"),
    *_rows("torch", "torch", "_six", "2.0"),
    *_rows("torch", "torch", "float8_e4m3fn float8_e5m2", "2.1", gone=False),
    *_rows("torch", "torch", "uint16 uint32 uint64 get_default_device", "2.3", gone=False),
    *_rows("torch", "torch.library", "custom_op register_fake register_kernel", "2.4", gone=False),
    *_rows("torch", "torch.library", "infer_schema", "2.5", gone=False),
    *_rows("torch", "torch", "accelerator", "2.6", gone=False),
    *_rows("torch", "torch", "float8_e8m0fnu", "2.7", gone=False),
    *_rows("torch", "torch", "float4_e2m1fn_x2", "2.8", gone=False),
    *_rows("torch", "torch.nn.attention", "flex_attention", "2.5", gone=False),
    *_rows("torch", "torch.utils._pytree", "register_pytree_node", "2.2", gone=False),
    *_rows("torch", "torch.distributed", "device_mesh", "2.2", gone=False),
    *_rows("torch", "torch.amp", "custom_fwd custom_bwd", "2.4", gone=False),
    *_rows("torch", "torch.amp", "GradScaler", "2.3", gone=False),
    *_rows("torch", "torch.serialization", "add_safe_globals safe_globals", None, gone=False),
    *_rows("triton", "triton", "ops", "3.2"),
    *_rows("triton", "triton", "common", "3.0"),
    *_rows("triton", "triton.language", "libdevice", "3.0"),
    *_rows("triton", "triton.compiler.compiler", "AttrsDescriptor", "3.3"),
    *_rows("triton", "triton.backends.compiler", "AttrsDescriptor", "3.3"),
    *_rows("triton", "triton.compiler.compiler", "triton_key", "3.5"),
    *_rows("triton", "triton.runtime.cache", "default_cache_dir", "3.4"),
    *_rows("triton", "triton.runtime.jit", "get_cuda_stream", "3.0"),
    *_rows("triton", "triton", "set_allocator", "3.3", gone=False),
    *_rows("triton", "triton.language", "gather", "3.3", gone=False),
    *_rows("triton", "triton.language", "make_tensor_descriptor", "3.4", gone=False),
    *_rows("triton", "triton.tools", "tensor_descriptor", "3.4", gone=False),
    *_rows("pydantic", "pydantic", "field_validator model_validator ConfigDict RootModel TypeAdapter", "2", gone=False),
    *_rows("typing-extensions", "typing_extensions", "override", "4.4", gone=False),
    *_rows("typing-extensions", "typing_extensions", "deprecated", "4.5", gone=False),
    *_rows("typing-extensions", "typing_extensions", "TypeAliasType", "4.6", gone=False),
    *_rows("typing-extensions", "typing_extensions", "TypeIs", "4.10", gone=False),
    *_rows("typing-extensions", "typing_extensions", "Sentinel", "4.14", gone=False),
    *_rows("cuda-python", "cuda", "cuda cudart nvrtc", "13", instead="cuda.bindings.driver, .runtime, .nvrtc"),
    *_rows("cuda-python", "cuda", "bindings", None, gone=False),
    *_rows("setuptools", "", "pkg_resources", "82"),
    *_rows("setuptools", "setuptools.command", "test", "72"),
    *_rows("packaging", "packaging.version", "LegacyVersion", "22"),
    *_rows("pillow", "PIL.Image", "ANTIALIAS LINEAR CUBIC", "10"),
    *_rows("httpx", "", "proxies", "0.28", instead="proxy"),
    *_rows("setuptools", "pkg_resources", "packaging", "70"),
    *_rows("outlines", "outlines.fsm", "guide json_schema types", "1.0"),
    *_rows("trl", "trl", "DataCollatorForCompletionOnlyLM", "0.20"),
    *_rows("vllm", "vllm.model_executor", "parallel_utils weight_utils", "0.4.1"),
    *_rows("vllm", "vllm.utils", "is_hip", None),
    *_rows("vllm", "vllm.transformers_utils.tokenizer_group", "tokenizer_group", "0.8.5"),
    *_rows("vllm", "vllm.model_executor.model_loader", "loader", "0.9"),
    *_rows("vllm", "vllm", "spec_decode prompt_adapter", "0.10"),
    *_rows("vllm", "vllm.model_executor.layers", "rejection_sampler", "0.10"),
    *_rows("vllm", "vllm.model_executor", "guided_decoding", "0.10.1"),
    *_rows("vllm", "vllm.distributed.device_communicators", "custom_all_reduce_utils", "0.10.2", instead="all_reduce_utils"),
    *_rows("vllm", "vllm", "worker core", "0.11", instead="vllm.v1"),
    *_rows("vllm", "vllm.transformers_utils", "tokenizer_group", "0.11"),
    *_rows("vllm", "vllm.model_executor", "sampling_metadata SamplingMetadata", "0.11"),
    *_rows("vllm", "vllm.sequence", "SequenceGroupMetadata", "0.11"),
    *_rows("vllm", "vllm.multimodal", "MultiModalPlaceholderMap", "0.11"),
    *_rows("vllm", "vllm.sampling_params", "StructuredOutputsParams", "0.11", gone=False),
    *_rows("vllm", "vllm", "executor", "0.11.1", instead="vllm.v1.executor"),
    *_rows("vllm", "vllm.engine", "metrics", "0.11.1"),
    *_rows("vllm", "vllm.config", "CompilationLevel", "0.11.1", instead="CompilationMode"),
    *_rows("vllm", "vllm.utils", "FlexibleArgumentParser", "0.11.1", instead="vllm.utils.argparse_utils"),
    *_rows("vllm", "vllm.utils", "get_ip make_async cuda_device_count_stateless supports_xccl", "0.11.1"),
    *_rows("vllm", "vllm.utils", "argparse_utils network_utils", "0.11.1", gone=False),
    *_rows("vllm", "", "GuidedDecodingParams", "0.12", instead="StructuredOutputsParams"),
    *_rows("vllm", "vllm.attention", "Attention", "0.12", instead="vllm.attention.layer"),
    *_rows("vllm", "vllm.lora", "models", "0.13"),
    *_rows("vllm", "vllm.entrypoints.openai", "tool_parsers", "0.14"),
    *_rows("vllm", "vllm.utils", "get_open_port", "0.14", instead="vllm.utils.network_utils"),
    *_rows("vllm", "vllm.entrypoints.openai", "protocol serving_engine", "0.15"),
    *_rows("vllm", "vllm", "attention", "0.16"),
    *_rows("vllm", "vllm.model_executor.layers.quantization", "bitsandbytes", "0.28"),
    *_rows("vllm", "vllm.transformers_utils", "tokenizer", None),
    *_rows("vllm", "vllm.entrypoints", "logger", None),
)  # fmt: skip

_OF_PYTHON = {
    "distutils": "3.12", "imp": "3.12", "asyncore": "3.12", "asynchat": "3.12", "smtpd": "3.12", "cgi": "3.13", "pipes": "3.13", "crypt": "3.13", "telnetlib": "3.13", "imghdr": "3.13", "sndhdr": "3.13", "audioop": "3.13",
}  # fmt: skip
"""Modules of the standard library that a release of Python dropped."""


@functools.cache
def _by_name() -> dict[str, tuple[ApiChange, ...]]:
    table: dict[str, tuple[ApiChange, ...]] = {}
    for change in _CHANGES:
        table[change.name] = (*table.get(change.name, ()), change)
    return table


def change_of(module: str, name: str) -> ApiChange | None:
    """The change of a name of a module, or of a class's attribute; None when none is known.

    ``("transformers", "AutoModelForVision2Seq")``; for a module that is gone, its parent and its last part.
    """
    for change in _by_name().get(name, ()):
        if not change.module and (not module or change.distribution.partition("-")[0] in module.replace("-", "_")):
            return change
        if change.module and (module == change.module or module.startswith(change.module + ".")):
            return change
    return None


def module_change(module: str) -> ApiChange | None:
    """The change that took a dotted module away, or brought it: by each of its parts ("triton.ops.matmul")."""
    parts = module.split(".")
    for at in range(1, len(parts)):
        change = change_of(".".join(parts[:at]), parts[at])
        if change is not None and (not change.module or change.module == ".".join(parts[:at])):
            return change
    return change_of("", module) if len(parts) == 1 else None


def dropped_by_python(module: str) -> str | None:
    """The release of Python that dropped a module of the standard library."""
    return _OF_PYTHON.get(module.partition(".")[0])
