"""api-drift: who asks whom for a name that is not there, which of the two is out of step, and what moves it."""

from __future__ import annotations

import pytest
from tests.causes.packages.texts import SITE, Find, Judge, names, remedies, traceback

from gpuwhy.model.finding import Certainty

CAUSE = "api-drift"


def imports(consumer: str, statement: str, error: str) -> str:
    return traceback(error, (f"{SITE}/{consumer}", "<module>", statement))


@pytest.mark.parametrize(("text", "component", "remedy"), [
    # an engine asks a library: the library is out of step
    (imports("sglang/srt/layers/moe/topk.py", "from sgl_kernel import moe_fused_gate, kimi_gate", f"ImportError: cannot import name 'kimi_gate' from 'sgl_kernel' ({SITE}/sgl_kernel/__init__.py)"), "sgl-kernel", ("package", "sgl-kernel", "match:sglang")),
    (imports("tensorrt_llm/models/x.py", "from transformers import AutoModelForVision2Seq", f"ImportError: cannot import name 'AutoModelForVision2Seq' from 'transformers' ({SITE}/transformers/__init__.py)"), "transformers", ("package", "transformers", "<5")),
    (imports("sglang/srt/layers/quantization/fp4.py", "from flashinfer import fp4_quantize", f"ImportError: cannot import name 'fp4_quantize' from 'flashinfer' ({SITE}/flashinfer/__init__.py)"), "flashinfer", ("package", "flashinfer-python", "match:sglang")),
    # a plug-in asks the engine: the plug-in is out of step
    (imports("lmcache/integration/vllm/adapter.py", "from vllm.utils import cdiv", f"ImportError: cannot import name 'cdiv' from 'vllm.utils' ({SITE}/vllm/utils/__init__.py)"), "lmcache", ("package", "lmcache", "newer")),
    (imports("trl/extras/vllm_client.py", "from vllm.sampling_params import GuidedDecodingParams", f"ImportError: cannot import name 'GuidedDecodingParams' from 'vllm.sampling_params' ({SITE}/vllm/sampling_params.py)"), "trl", ("package", "vllm", "<0.12")),
    (imports("verl/workers/rollout/server.py", "from vllm.entrypoints.openai.serving_models import X", "ModuleNotFoundError: No module named 'vllm.entrypoints.openai.serving_models'"), "verl", ("package", "verl", "newer")),
    # torch asks or is asked
    (imports("torch/_inductor/runtime/hints.py", "from triton.compiler.compiler import AttrsDescriptor", f"ImportError: cannot import name 'AttrsDescriptor' from 'triton.compiler.compiler' ({SITE}/triton/compiler/compiler.py)"), "triton", ("package", "triton", "<3.3")),
    (imports("xformers/ops.py", "torch.library.custom_op", "AttributeError: module 'torch.library' has no attribute 'custom_op'"), "xformers", ("package", "torch", ">=2.4")),
    # neither is an engine: what lacks the name
    (imports("diffusers/utils/dynamic_modules_utils.py", "from huggingface_hub import cached_download", f"ImportError: cannot import name 'cached_download' from 'huggingface_hub' ({SITE}/huggingface_hub/__init__.py)"), "huggingface-hub", ("package", "huggingface-hub", "<0.26")),
    (imports("basicsr/data/degradations.py", "from torchvision.transforms.functional_tensor import rgb_to_grayscale", "ModuleNotFoundError: No module named 'torchvision.transforms.functional_tensor'"), "torchvision", ("package", "torchvision", "<0.17")),
    (imports("opencompass/registry.py", "import pkg_resources", "ModuleNotFoundError: No module named 'pkg_resources'"), "setuptools", ("package", "setuptools", "<82")),
    ("AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead.\n", "numpy", ("package", "numpy", "<2")),
])  # fmt: skip
def test_the_one_that_is_out_of_step(
    judge_report: Judge, finding: Find, text: str, component: str, remedy: tuple[str, str, str]
) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.component == component
    assert remedy in remedies(found)


@pytest.mark.parametrize(("text", "component"), [
    (traceback("TypeError: BatchPrefillWithPagedKVCacheWrapper.plan() got an unexpected keyword argument 'fixed_split_size'", (f"{SITE}/vllm/v1/attention/backends/flashinfer.py", "build", "wrapper.plan(")), "flashinfer"),
    (traceback("TypeError: flash_attn_varlen_func() got an unexpected keyword argument 'fa_version'", (f"{SITE}/vllm/attention/backends/flash_attn.py", "forward", "flash_attn_varlen_func(")), "flash-attn"),
    (traceback("RuntimeError: sgl_kernel::moe_align_block_size() expected at most 7 argument(s) but received 8 argument(s).", (f"{SITE}/sglang/srt/layers/moe/fused_moe.py", "align", "sgl_moe_align_block_size(")), "sgl-kernel"),
    (traceback("AttributeError: Qwen2Tokenizer has no attribute all_special_tokens_extended. Did you mean: 'num_special_tokens_to_add'?", (f"{SITE}/vllm/transformers_utils/tokenizer.py", "get", "tokenizer.all_special_tokens_extended)"), (f"{SITE}/transformers/tokenization_utils_base.py", "__getattr__", "raise AttributeError(")), "transformers"),
    (traceback("AttributeError: 'DynamicCache' object has no attribute 'get_max_length'", ("/opt/user/.cache/huggingface/modules/transformers_modules/org/model/modeling.py", "prepare", "past_key_values.get_max_length()")), "transformers"),
])  # fmt: skip
def test_calls_that_no_longer_fit(judge_report: Judge, finding: Find, text: str, component: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert found.component == component


def test_the_engines_own_requirement_names_the_release(judge_report: Judge, finding: Find) -> None:
    text = imports(
        "sglang/srt/layers/moe/topk.py",
        "from sgl_kernel import kimi_gate",
        f"ImportError: cannot import name 'kimi_gate' from 'sgl_kernel' ({SITE}/sgl_kernel/__init__.py)",
    )
    found = finding(judge_report(text, {"packages.sglang": "0.5.9", "packages.sgl-kernel": "0.3.18"}), CAUSE)
    assert remedies(found)[0] == ("package", "sgl-kernel", "==0.3.21")
    assert not any(missing.key.startswith("packages.sgl") for missing in found.missing)


def test_both_releases_are_asked_for(judge_report: Judge, finding: Find) -> None:
    text = imports(
        "lmcache/adapter.py",
        "from vllm.utils import cdiv",
        f"ImportError: cannot import name 'cdiv' from 'vllm.utils' ({SITE}/vllm/utils/__init__.py)",
    )
    assert {"packages.vllm", "packages.lmcache"} == {m.key for m in finding(judge_report(text), CAUSE).missing}


def test_a_half_upgraded_engine_is_installed_anew(judge_report: Judge, finding: Find) -> None:
    text = imports(
        "sglang/srt/server_args.py",
        "from sglang.srt.function_call.parser import FunctionCallParser",
        "ModuleNotFoundError: No module named 'sglang.srt.function_call.parser'",
    )
    found = finding(judge_report(text), CAUSE)
    assert found.component == "sglang"
    assert remedies(found)[0] == ("package", "sglang", "reinstall")


def test_a_notebooks_traceback_and_a_prefix_name_the_asker(judge_report: Judge, finding: Find) -> None:
    notebook = (
        "/usr/local/lib/python3.11/dist-packages/unsloth_zoo/vllm_utils.py in patch()\n"
        "--> 191         import vllm.some.where.else_\n\n"
        "ModuleNotFoundError: No module named 'vllm.some.where.else_'; 'vllm.some.where' is not a package\n"
    )
    prefix = "Unsloth: FAILED getting compilation_config with error = cannot import name 'Thing' from 'vllm.config' (/opt/v/lib/python3.10/site-packages/vllm/config/__init__.py)\n"
    for text in (notebook, prefix):
        found = finding(judge_report(text), CAUSE)
        assert found.component == "unsloth-zoo"
        assert ("package", "unsloth", "newer") in remedies(found)


def test_code_of_a_model_asks_for_the_librarys_release(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        f"ImportError: cannot import name 'is_torch_fx_available' from 'transformers.utils.import_utils' ({SITE}/transformers/utils/import_utils.py)",
        (
            "/opt/user/.cache/huggingface/modules/transformers_modules/org/model/modeling.py",
            "<module>",
            "from transformers.utils.import_utils import is_torch_fx_available",
        ),
    )
    found = finding(judge_report(text), CAUSE)
    assert found.component == "transformers"
    assert ("package", "transformers", "<5") in remedies(found)
    assert ("files", "model code", "newer revision") in remedies(found)


def test_an_attribute_without_a_known_change_stays_open(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "AttributeError: 'Qwen2Config' object has no attribute 'rope_something'",
        (f"{SITE}/vllm/model_executor/models/qwen2.py", "__init__", "config.rope_something"),
    )
    assert finding(judge_report(text), CAUSE).certainty is Certainty.POSSIBLE


def test_installing_the_missing_module_is_told_to_be_vain(judge_report: Judge, finding: Find) -> None:
    text = imports(
        "unsloth_zoo/vllm_utils.py",
        "import vllm.model_executor.layers.other",
        "ModuleNotFoundError: No module named 'vllm.model_executor.layers.other'",
    )
    assert "installing a package with the name" in finding(judge_report(text), CAUSE).not_remedies[0].what


@pytest.mark.parametrize("text", [
    "ModuleNotFoundError: No module named 'common_ops'\n",
    imports("vllm/platforms/cuda.py", "import vllm._C", "ModuleNotFoundError: No module named 'vllm._C'"),
    traceback("ModuleNotFoundError: No module named 'mylib'", ("/opt/user/run.py", "<module>", "import mylib")),
    traceback("AttributeError: 'NoneType' object has no attribute 'shape'", (f"{SITE}/vllm/x.py", "f", "x.shape")),
    traceback("TypeError: f() got an unexpected keyword argument 'x'", ("/opt/user/run.py", "<module>", "f(x=1)")),
    traceback("AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'", (f"{SITE}/vllm/_custom_ops.py", "rms_norm", "torch.ops._C.rms_norm()")),
    traceback("ImportError: cannot import name 'jit' from 'triton' (unknown location)", ("/opt/user/run.py", "<module>", "from triton import jit")),
    traceback("AttributeError: module 'triton' has no attribute 'jit'", ("/opt/user/main.py", "<module>", "triton.jit")),
    traceback("ImportError: cannot import name 'Queue' from 'queue' (/opt/user/queue.py)", (f"{SITE}/torch/x.py", "<module>", "from queue import Queue")),
    "Exception: sgl-kernel is installed with version 0.1.0, which is less than the minimum required version 0.1.4. Please reinstall\n",
    "KeyError: 'qwen3_next'\nValueError: The checkpoint you are trying to load has model type `qwen3_next` but Transformers does not recognize this architecture.\n",
    "Import error msg: No module named 'intel_extension_for_pytorch'\n",
])  # fmt: skip
def test_near_misses_are_others(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_an_operator_of_a_package_that_did_load(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "AttributeError: '_OpNamespace' 'sgl_kernel' object has no attribute 'fast_topk_v2'",
        (f"{SITE}/sglang/srt/layers/topk.py", "topk", "torch.ops.sgl_kernel.fast_topk_v2(x)"),
    )
    found = finding(judge_report(text), CAUSE)
    assert found.component == "sgl-kernel"
    assert remedies(found)[0] == ("package", "sgl-kernel", "match:sglang")


def test_a_class_of_a_grammar_library(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "TypeError: TokenizerInfo._from_huggingface() got an unexpected keyword argument 'stop_token_ids'",
        (
            f"{SITE}/sglang/srt/constrained/xgrammar_backend.py",
            "__init__",
            "tokenizer_info = TokenizerInfo.from_huggingface(",
        ),
    )
    assert finding(judge_report(text), CAUSE).component == "xgrammar"


def test_scripts_of_datasets(judge_report: Judge, finding: Find) -> None:
    found = finding(
        judge_report("RuntimeError: Dataset scripts are no longer supported, but found mmlu.py\n"), "api-drift"
    )
    assert found.component == "datasets"
    assert any(each.name == "datasets" and "<4" in (each.value or "") for each in found.remedies)


def test_a_connector_of_another_release(judge_report: Judge, finding: Find) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.12/site-packages/vllm/distributed/kv_transfer/kv_connector/v1/lmcache_connector.py", line 110, in get_finished\n'
        "    return self._lmcache_engine.get_finished(finished_req_ids)\nAttributeError: 'LMCacheConnectorV1Impl' object has no attribute 'get_finished'\n"
    )
    assert finding(judge_report(text), "api-drift").component == "lmcache"


@pytest.mark.parametrize(
    "error",
    [
        "pydantic.errors.PydanticUserError: `const` is removed, use `Literal` instead",
        "pydantic.errors.PydanticUserError: `regex` is removed. use `pattern` instead",
        "pydantic.errors.PydanticImportError: `BaseSettings` has been moved to the `pydantic-settings` package. See https://docs.pydantic.dev/2.5/migration/",
        "pydantic.errors.PydanticUserError: If you use `@root_validator` with pre=False (the default) you MUST specify `skip_on_failure=True`.",
        "pydantic.errors.PydanticUserError: A non-annotated attribute was detected: `dtype = <class 'str'>`. All model fields require a type annotation",
        "TypeError: To define root models, use `pydantic.RootModel` rather than a field called '__root__'",
    ],
)
def test_what_was_written_for_the_first_pydantic(error: str, judge_report: Judge, finding: Find) -> None:
    log = traceback(
        error,
        (f"{SITE}/chromadb/config.py", "<module>", "class Settings(BaseSettings):"),
        (f"{SITE}/pydantic/fields.py", "Field", "raise PydanticUserError("),
    )
    found = finding(judge_report(log), CAUSE)
    assert found.component == "pydantic"
    assert ("package", "pydantic", "<2") in remedies(found)
    assert found.certainty is Certainty.LIKELY


def test_the_one_who_asks_a_module_of_torch_stands_above_torch_s_look_up(judge_report: Judge, finding: Find) -> None:
    log = traceback(
        "AttributeError: 'LlamaAttention' object has no attribute 'num_heads'",
        (f"{SITE}/unsloth/models/llama.py", "fast_forward", "n_heads = self.num_heads"),
        (f"{SITE}/torch/nn/modules/module.py", "__getattr__", "raise AttributeError("),
    )
    found = finding(judge_report(log), CAUSE)
    assert found.component == "transformers"
    assert remedies(found)[:2] == [("package", "transformers", "<4.48"), ("package", "unsloth", "newer")]


def test_an_engine_s_own_model_class_is_nobody_else_s(judge_report: Judge) -> None:
    log = traceback(
        "AttributeError: 'LlamaAttention' object has no attribute 'num_heads'",
        (f"{SITE}/vllm/model_executor/models/llama.py", "forward", "n = self.num_heads"),
        (f"{SITE}/torch/nn/modules/module.py", "__getattr__", "raise AttributeError("),
    )
    assert CAUSE not in names(judge_report(log))
