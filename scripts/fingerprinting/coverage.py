"""What the tables cover: packages, releases, files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct
from packaging.version import Version


class Release(Struct, frozen=True):
    """A release and the one wheel of it that is read. `uploaded` is a date, `size` in bytes."""

    version: str
    uploaded: str
    wheel: str
    size: int


class Package(Struct, frozen=True):
    """One package: `folder` is its import name, `oldest` the first release of the table.

    `left_out` and `kept` match paths below the folder: the first are not recorded, unless the second match too.
    """

    name: str
    folder: str
    oldest: str
    left_out: str
    kept: str = r"(?!)"

    def chosen(self, releases: Iterable[Release]) -> list[Release]:
        """Every release from the oldest on, pre-releases too: "only" must be said of all that can be installed."""
        return [release for release in releases if Version(release.version) >= Version(self.oldest)]

    def has(self, member: str) -> bool:
        """Whether a member of the wheel is a Python file of the package."""
        return member.startswith(self.folder + "/") and member.endswith(".py")

    def records(self, member: str) -> bool:
        """Whether the lines of such a file are recorded."""
        below = member.removeprefix(self.folder + "/")
        is_left_out = re.match(_NEVER_SERVES, below) or re.match(self.left_out, below)
        return not is_left_out or re.match(self.kept, below) is not None


_NEVER_SERVES = (
    r"(?:.{1,200}/)?(?:tests?|_?testing|_internal_testing|benchmarks?|examples?|docs?)(?:/|\.py$)"
    r"|(?:.{1,200}/)?(?:test_|bench_|conftest|auto_benchmark)[^/]{0,100}$"
)
"""Code that no service runs."""

# What is left out is large and names a release no better than the frames around it: kernels written in a language of their
# own, which run on the GPU and not in a traceback; single models, whose callers are recorded; converters and trainers.
PACKAGES = {
    package.name: package
    for package in (
        Package(
            "flashinfer-python",
            "flashinfer",
            "0.5.0rc1",
            r"data/|experimental/|trace/|cake_|moe_ep/kernel_src/|fused_moe/(?:backends|cute_dsl)/|gdn_kernels/|kda_kernels/"
            r"|(?:.{1,200}/)?(?:cute_dsl|mnnvl_cutedsl|prims_ts|kernels|msa_ops|batch_invariant|triton|tirx)/",
        ),
        Package(
            "sglang",
            "sglang",
            "0.5.4",
            r"kernels/ops/|kernels/kda_kernels/|jit_kernel/(?:flash_att|diffusion|dsv4)|srt/models/|srt/multimodal/processors/"
            r"|srt/configs/|srt/debug_utils/|srt/kv_canary/|srt/hardware_backend/|srt/function_call/|srt/parser/|srt/mem_cache/storage/"
            r"|multimodal_gen/(?!runtime/(?:[^/]{1,60}\.py|(?:entrypoints|managers|loader|server_args|distributed)/))|lang/"
            r"|multimodal_gen/runtime/.{1,80}/(?:model_specific_stages|configs)/|srt/lora/trtllm|srt/disaggregation/(?:mori|ascend)/|srt/observability/"
            r"|(?:.{1,200}/)?(?:triton_ops|triton_kernels|fla|cute|flash_attn|configs|kernels|minicpm|muse_spark)/|.{1,200}(?:aiter|_amd|_hip|_npu|_xpu)",
            kept=r"srt/models/(?:registry|utils|transformers|llama|qwen2|qwen3|deepseek_v2)\.py$",
        ),
        Package(
            "vllm",
            "vllm",
            "0.10.0",
            r"vllm_flash_attn/cute/|third_party/|models/|model_executor/models/|transformers_utils/(?:processors|configs)/"
            r"|tool_parsers/|reasoning/|entrypoints/openai/(?:tool_parsers|.{1,40}/tool_parsers)/"
            r"|parser/|distributed/kv_transfer/kv_connector/v1/.{1,60}/|v1/attention/ops/|attention/ops/|v1/kv_offload/|.{0,200}(?:aiter|rocm)"
            r"|(?:.{1,200}/)?(?:fla|triton_ops|triton_kernels|cute|cutedsl|configs)/",
            kept=r"model_executor/models/(?:registry|utils|interfaces|interfaces_base|adapters|config|llama|qwen2|qwen3|"
            r"deepseek_v2|transformers)\.py$",
        ),
        Package("triton", "triton", "3.3.0", r"tools/|experimental/gsan/|profiler/|language/extra/"),
        Package(
            "transformers",
            "transformers",
            "4.55.0",
            r"models/|exporters/|data/|onnx/|trainer|training_args|testing_utils|modeling_(?:tf|flax)|generation/(?:tf|flax)_"
            r"|convert_|commands/|integrations/(?:integration_utils|peft|finegrained_fp8)",
            kept=r"models/auto/",
        ),
        Package(
            "torch",
            "torch",
            "2.8.0",
            r"_vendor/|onnx/|ao/|quantization/|profiler/|sparse/|_native/|_refs/|utils/(?:hipify|tensorboard|data)/|backends/_nnapi/"
            r"|_inductor/(?:heuristics|kernel|fx_passes|codegen|autoheuristic|template_heuristics|lowering)|_export/|export/"
            r"|distributed/(?:pipelining|checkpoint|optim|_tools|_local_tensor|_shard|algorithms|rpc|elastic/(?!agent|multip))"
            r"|distributed/tensor/(?:_ops|experimental)/|jit/|_decomp/|_torch_docs|_tensor_docs|_meta_registrations|package/"
            r"|_numpy/|masked/|distributions/|optim/|fx/passes/|nn/utils/|_dynamo/(?:repro|polyfills|variables)/|_custom_op/"
            r"|cuda/_cu|fx/experimental/(?!symbolic_shapes|proxy_tensor)|nested/|_prims|xpu/|mps/|mtia/|_precompile",
            kept=r"_inductor/codegen/(?:common|triton|simd|wrapper)\.py$|_inductor/fx_passes/(?:post|joint|pre)_grad\.py$"
            r"|_dynamo/variables/(?:base|builder|functions|nn_module|torch|user_defined)\.py$|_inductor/kernel/(?:mm|bmm)\.py$",
        ),
    )
}
