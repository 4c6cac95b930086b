"""package-conflict: what programs say of releases that do not belong together, and which release cures it."""

from __future__ import annotations

import pytest
from tests.causes.packages.texts import SITE, Find, Judge, names, remedies, ruled_out, traceback

from gpuwhy.model.finding import Certainty

CAUSE = "package-conflict"
XFORMERS = "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n    PyTorch 2.3.0+cu121 with CUDA 1201 (you have 2.1.0+cu121)\n"
NO_OPERATOR = (
    "NotImplementedError: No operator found for `memory_efficient_attention_forward` with inputs:\n"
    "     query       : shape=(1, 16, 8, 64) (torch.float16)\n"
    "`cutlassF-pt` is not supported because:\n    xFormers wasn't build with CUDA support\n"
    "`fa3F@0.0.0` is not supported because:\n    requires device with capability > (9, 0) but your GPU has capability (8, 6) (too old)\n"
)


@pytest.mark.parametrize(("text", "component", "remedy"), [
    (XFORMERS, "xformers", ("package", "xformers", "==0.0.22.post7")),
    ("RuntimeError: flashinfer-cubin version (0.5.2) does not match flashinfer version (0.5.3). Please install the same version of both packages.\n", "flashinfer-cubin", ("package", "flashinfer-cubin", "==0.5.3")),
    ("RuntimeError: flashinfer-jit-cache version (0.6.1+cu129) does not match flashinfer version (0.6.3). Please install the same version of both packages.\n", "flashinfer", ("package", "flashinfer-jit-cache", "==0.6.3")),
    ("Exception: sgl-kernel is installed with version 0.1.0, which is less than the minimum required version 0.1.4. Please reinstall the latest version\n", "sgl-kernel", ("package", "sgl-kernel", ">=0.1.4")),
    ("ImportError: tokenizers>=0.21,<0.22 is required for a normal functioning of this module, but found tokenizers==0.20.3.\n", "tokenizers", ("package", "tokenizers", ">=0.21,<0.22")),
    ("RuntimeError: xformers 0.0.30 was built for torch 2.7.0 but found torch 2.8.0\n", "xformers", ("package", "torch", "match:xformers")),
    ("RuntimeError: operator torchvision::nms does not exist\n", "torchvision", ("package", "torchvision", "match:torch")),
    ("google.protobuf.runtime_version.VersionError: Detected incompatible Protobuf Gencode/Runtime versions when loading grpc_health/v1/health.proto: gencode 6.31.1 runtime 5.29.5.\n", "protobuf", ("package", "protobuf", ">=6.31.1")),
    ("ImportError: Numba needs NumPy 2.2 or less. Got NumPy 2.3.\n", "numpy", ("package", "numpy", "<2.3")),
    ("ImportError: Please install bitsandbytes>=0.46.1 via `pip install bitsandbytes>=0.46.1` to use bitsandbytes quantizer.\n", "bitsandbytes", ("package", "bitsandbytes", ">=0.46.1")),
    ("SystemError: The installed pydantic-core version (2.41.5) is incompatible with the current pydantic version, which requires 2.33.2.\n", "pydantic-core", ("package", "pydantic-core", "==2.33.2")),
    ("RuntimeError: Version mismatch: The cluster was started with:\n    Ray: 2.40.0\n    Python: 3.12.9\n", "ray", ("package", "ray", "==2.40.0")),
    ("RuntimeError: Configured CUDA binary not found at /opt/x/bitsandbytes/libbitsandbytes_cuda130.so\n", "bitsandbytes", ("package", "bitsandbytes", "newer")),
    ("[TRT] [E] IRuntime::deserializeCudaEngine: Error Code 1: Serialization (Version tag does not match. Note: Current Version: 239, Serialized Engine Version: 236)\n", "tensorrt", ("files", "engine file", "rebuild")),
])  # fmt: skip
def test_what_is_out_of_step_and_what_cures_it(
    judge_report: Judge, finding: Find, text: str, component: str, remedy: tuple[str, str, str]
) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.component == component
    assert remedy in remedies(found)


def test_a_collision_with_a_newer_transformers(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "ValueError: 'aimv2' is already used by a Transformers config, pick another name.",
        (f"{SITE}/vllm/transformers_utils/configs/ovis.py", "<module>", 'AutoConfig.register("aimv2", AIMv2Config)'),
        (f"{SITE}/transformers/models/auto/configuration_auto.py", "register", "raise ValueError("),
    )
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert found.component == "transformers"
    assert remedies(found)[:2] == [("package", "transformers", "older"), ("package", "vllm", "newer")]


def test_the_notice_is_quoted_and_not_the_operators_that_follow(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(XFORMERS + NO_OPERATOR), CAUSE)
    assert "you have 2.1.0+cu121" in found.evidence[0].quote
    assert found.certainty is Certainty.PROVEN


def test_operators_alone_ask_for_xformers_own_build(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(NO_OPERATOR), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "wasn't build with CUDA support" in found.evidence[0].quote
    assert {"torch", "packages.xformers"} == {missing.key for missing in found.missing}


def test_both_builds_decide(judge_report: Judge, finding: Find) -> None:
    other = judge_report(NO_OPERATOR, {"torch": "2.6.0+cu126", "packages.xformers": "built for PyTorch 2.6.0+cu124"})
    assert finding(other, CAUSE).certainty is Certainty.PROVEN
    assert ("package", "xformers", "==0.0.29.post2") in remedies(finding(other, CAUSE))
    same = judge_report(NO_OPERATOR, {"torch": "2.6.0+cu126", "packages.xformers": "built for PyTorch 2.6.0+cu126"})
    assert CAUSE in ruled_out(same)


def test_pips_remark_beside_a_crash_is_only_possible(judge_report: Judge, finding: Find) -> None:
    remark = "vllm 0.9.2 requires torch==2.7.0, but you have torch 2.8.0 which is incompatible.\n"
    assert finding(judge_report(remark), CAUSE).component == "torch"
    crash = traceback(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        (f"{SITE}/vllm/worker.py", "load", "x()"),
    )
    assert finding(judge_report(remark + crash), CAUSE).certainty is Certainty.POSSIBLE


def test_a_hidden_cudnn_is_uncovered(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (9, 1, 0) but found runtime version (8, 9, 2).\n"
    assert remedies(finding(judge_report(text), CAUSE))[0] == ("env", "LD_LIBRARY_PATH", "unset")


def test_two_copies_of_one_library(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: Only a single TORCH_LIBRARY can be used to register the namespace sgl_kernel; please put all of your definitions in a single TORCH_LIBRARY block.\n"
    found = finding(judge_report(text), CAUSE)
    assert found.component == "sgl-kernel"
    assert ("package", "sgl-kernel", "remove") in remedies(found)


@pytest.mark.parametrize("text", [
    "ImportError: cannot import name 'AutoModelForVision2Seq' from 'transformers' (/opt/x/site-packages/transformers/__init__.py)\n",
    f"ImportError: {SITE}/x/_C.so: undefined symbol: _ZN3c105ErrorC1Ei\n",
    "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n",
    "RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, invalid argument, NCCL version 2.14.3\n",
    "ValueError: The checkpoint you are trying to load has model type `qwen3_next` but Transformers does not recognize this architecture.\n",
    "INFO: Successfully installed torch-2.8.0 which requires triton==3.4.0\n",
])  # fmt: skip
def test_near_misses_are_others(judge_report: Judge, text: str) -> None:
    assert names(judge_report(text))[:1] != [CAUSE]


def test_the_line_that_names_the_packages_is_quoted(judge_report: Judge, finding: Find) -> None:
    text = (
        "  x No solution found when resolving dependencies:\n"
        "  `-> Because vllm==0.9.2 depends on torch==2.7.0 and you require torch==2.8.0, we can conclude that your requirements are unsatisfiable.\n"
    )
    found = finding(judge_report(text), CAUSE)
    assert found.component == "torch"
    assert "depends on torch==2.7.0" in found.evidence[0].quote
    assert ("package", "torch", "==2.7.0") in remedies(found)


def test_a_dependency_that_is_not_installed(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "ModuleNotFoundError: No module named 'sgl_kernel'",
        (f"{SITE}/sglang/srt/layers/activation.py", "<module>", "from sgl_kernel import silu_and_mul"),
    )
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert found.component == "sgl-kernel"
    assert "packages.sgl-kernel" in [missing.key for missing in found.missing]
    assert finding(judge_report(text, {"packages.sgl-kernel": None}), CAUSE).certainty is Certainty.LIKELY
    assert CAUSE in ruled_out(judge_report(text, {"packages.sgl-kernel": "0.3.21"}))
    script = traceback("ModuleNotFoundError: No module named 'vllm'", ("/opt/user/run.py", "<module>", "import vllm"))
    assert CAUSE not in names(judge_report(script))


def test_near_miss_a_cuda_release_that_a_build_asks_for(judge_report: Judge) -> None:
    text = "RuntimeError: CUDA 12.8 or higher is required for compute capability 12.0.\n"
    assert "package-conflict" not in [found.cause for found in judge_report(text).findings]


def test_a_torch_for_the_cpu(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "AssertionError: Torch not compiled with CUDA enabled",
        (
            f"{SITE}/torch/cuda/__init__.py",
            "_lazy_init",
            'raise AssertionError("Torch not compiled with CUDA enabled")',
        ),
    )
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.certainty) == ("torch", Certainty.PROVEN)
    assert ("package", "torch", "CUDA build") in remedies(found)


def test_bitsandbytes_for_the_cpu(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "AttributeError: 'NoneType' object has no attribute 'cget_col_row_stats'",
        (f"{SITE}/bitsandbytes/functional.py", "double_quant", "lib.cget_col_row_stats("),
    )
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.certainty) == ("bitsandbytes", Certainty.POSSIBLE)


def test_torchao_leaves_its_operators_out(judge_report: Judge, finding: Find) -> None:
    text = (
        "Skipping import of cpp extensions due to incompatible torch version 2.9.0+cu128 for torchao version 0.15.0\n"
    )
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.certainty) == ("torchao", Certainty.POSSIBLE)


def test_a_dependency_that_no_table_knows(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "ModuleNotFoundError: No module named 'pyairports'",
        (f"{SITE}/outlines/types/airports.py", "<module>", "from pyairports.airports import AIRPORT_LIST"),
    )
    found = finding(judge_report(text), CAUSE)
    assert found.component == "pyairports"
    script = traceback(
        "ModuleNotFoundError: No module named 'my_part'", ("/opt/user/run.py", "<module>", "import my_part")
    )
    assert CAUSE not in names(judge_report(script))
    compiled = traceback(
        "ModuleNotFoundError: No module named 'quant_cuda'", (f"{SITE}/gptq/quant.py", "<module>", "import quant_cuda")
    )
    assert CAUSE not in names(judge_report(compiled))


def test_what_the_code_of_a_model_asks_for(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "ImportError: This modeling file requires the following packages that were not found in your environment: flash_attn. Run `pip install flash_attn`",
        (f"{SITE}/transformers/dynamic_module_utils.py", "check_imports", "raise ImportError("),
    )
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.certainty) == ("flash-attn", Certainty.PROVEN)
    assert ("package", "flash-attn", "match:torch") in remedies(found)
    assert CAUSE in ruled_out(judge_report(text, {"packages.flash-attn": "2.8.3"}))


def test_a_range_that_another_package_requires(judge_report: Judge, finding: Find) -> None:
    text = "ImportError: Transformer-engine requires flash-attn version >=2.1.1, <=2.7.4.post1, found 2.8.0\n"
    found = finding(judge_report(text), CAUSE)
    assert found.component == "flash-attn"
    assert ("package", "flash-attn", ">=2.1.1,<=2.7.4.post1") in remedies(found)


def test_a_library_that_asks_for_an_executable_stack(judge_report: Judge, finding: Find) -> None:
    text = "ImportError: libctranslate2-d3638643.so.4.4.0: cannot enable executable stack as shared object requires: Invalid argument\n"
    assert finding(judge_report(text), CAUSE).component == "ctranslate2"


def test_a_compiled_part_that_is_missed_at_its_first_use(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("CUDA extension not installed.\nNameError: name 'quant_cuda' is not defined\n"), CAUSE)
    assert (found.component, found.certainty) == ("gptq-for-llama", Certainty.POSSIBLE)
    assert CAUSE not in names(judge_report("NameError: name 'my_cuda' is not defined\n"))


@pytest.mark.parametrize(("text", "component"), [
    ("ImportError: Using `low_cpu_mem_usage=True` or a `device_map` requires Accelerate: `pip install 'accelerate>=0.26.0'`\n", "accelerate"),
    ("ImportError: Loading an AWQ quantized model requires auto-awq library (`pip install autoawq`)\n", "autoawq"),
    ("ImportError: LlamaTokenizer requires the SentencePiece library but it was not found in your environment.\n", "sentencepiece"),
    ("ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following error: the package flash_attn seems to be not installed.\n", "flash-attn"),
    ("ImportError: Unsloth: Please install vLLM before enabling `fast_inference`!\n", "vllm"),
    ("ImportError: vllm is not installed. Please install vllm to use it.\n", "vllm"),
    ("AssertionError: Paged attention required Flash Attention 2.5.7 or later\n", "flash-attn"),
    ("RuntimeError: triton==3.0.0 is required but found triton==2.1.0\n", "triton"),
])  # fmt: skip
def test_a_program_says_what_it_lacks(judge_report: Judge, finding: Find, text: str, component: str) -> None:
    assert finding(judge_report(text), CAUSE).component == component


@pytest.mark.parametrize("text", [
    "RuntimeError: CUDA is not installed. Please install the CUDA toolkit.\n",
    "INFO: flashinfer is not installed. Please install it for the best performance.\n",
    "ImportError: xformers is not installed. Please install xformers to use it.\n",
])  # fmt: skip
def test_near_miss_what_is_said_to_be_absent(judge_report: Judge, text: str) -> None:
    judged = judge_report(text, {"packages.xformers": "0.0.32"})
    assert CAUSE not in names(judged)


def test_a_runtime_whose_build_has_no_provider_for_the_gpu(judge_report: Judge, finding: Find) -> None:
    text = "UserWarning: Specified provider 'CUDAExecutionProvider' is not in available provider names.Available providers: 'CPUExecutionProvider'\n"
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert ("package", "onnxruntime", "remove") in remedies(found)


def test_a_torch_without_nccl(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("RuntimeError: Distributed package doesn't have NCCL built in\n"), CAUSE)
    assert (found.component, found.certainty) == ("torch", Certainty.POSSIBLE)


def test_numba_need_not_say_what_it_got(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("ImportError: Numba needs NumPy 1.26 or less\n"), CAUSE)
    assert found.component == "numpy"


def test_a_requirement_in_the_words_of_pip(judge_report: Judge, finding: Find) -> None:
    found = finding(
        judge_report("ImportError: frob requires transformers>=4.55.2,<5 but found transformers==5.0.0.\n"), CAUSE
    )
    assert found.component == "transformers"
    assert found.remedies[0].value == ">=4.55.2,<5"
