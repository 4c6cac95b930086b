"""cuda-major-mismatch: the number behind .so. against torch's CUDA major."""

from __future__ import annotations

import pytest
from tests.causes.packages.texts import SITE, Find, Judge, names, remedies, ruled_out, traceback

from gpuwhy.model.finding import Certainty

CAUSE = "cuda-major-mismatch"
CUDART = traceback(
    "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
    (f"{SITE}/vllm/platforms/cuda.py", "<module>", "import vllm._C  # noqa"),
)


@pytest.mark.parametrize(("text", "component"), [
    (CUDART, "vllm"),
    (traceback("ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory", (f"{SITE}/flash_attn/flash_attn_interface.py", "<module>", "import flash_attn_2_cuda as flash_attn_cuda")), "flash-attn"),
    ("[E:onnxruntime:Default, provider_bridge_ort.cc:1744 TryGetProviderInfo_CUDA] FAIL : Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.11: cannot open shared object file: No such file or directory\n", "onnxruntime"),
    (f"RuntimeError: Failed to load shared library '{SITE}/llama_cpp/lib/libllama.so': libcudart.so.12: cannot open shared object file: No such file or directory\n", "llama-cpp-python"),
])  # fmt: skip
def test_the_binary_that_asks_is_named(judge_report: Judge, finding: Find, text: str, component: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.component == component
    assert "cannot open shared object" in found.evidence[0].quote


def test_with_torchs_cuda_it_is_proven(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(CUDART, {"torch": "2.11.0+cu130", "torch_cuda": "13.0"}), CAUSE)
    assert found.certainty is Certainty.PROVEN
    proposed = remedies(found)
    assert ("package", "vllm", "cu130 build") in proposed
    assert ("package", "torch", "cu12 build") in proposed
    assert "nvidia-cuda-runtime-cu12" in [name for _, name, _ in proposed]


def test_until_then_torchs_cuda_is_asked_for(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(CUDART), CAUSE)
    assert found.certainty is not Certainty.PROVEN
    assert "torch_cuda" in [missing.key for missing in found.missing]


def test_another_major_in_the_report_tells_too(judge_report: Judge, finding: Find) -> None:
    text = CUDART + f"found {SITE}/nvidia/cu13/lib/libcudart.so.13\n"
    found = finding(judge_report(text), CAUSE)
    assert "CUDA 13" in found.title
    assert ("package", "vllm", "cu130 build") in remedies(found)


def test_torchs_own_major_rules_it_out(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report(CUDART, {"torch": "2.8.0+cu128", "torch_cuda": "12.8"})
    assert CAUSE in ruled_out(judgement)
    assert ("package", "nvidia-cuda-runtime-cu12", "match:torch") in remedies(finding(judgement, "library-missing"))


def test_a_number_that_is_no_cuda_major_is_translated(judge_report: Judge) -> None:
    text = "ImportError: libcufft.so.11: cannot open shared object file: No such file or directory\n"
    assert CAUSE in ruled_out(judge_report(text, {"torch_cuda": "12.8"}))
    assert CAUSE in names(judge_report(text, {"torch_cuda": "13.0"}))


def test_cudnn_counts_for_itself(judge_report: Judge, finding: Find) -> None:
    found = finding(
        judge_report(
            "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot open shared object file: No such file or directory\n"
        ),
        CAUSE,
    )
    assert found.certainty is Certainty.POSSIBLE
    assert ("package", "nvidia-cudnn-cu12", "==8.*") in remedies(found)


@pytest.mark.parametrize("text", [
    "ImportError: libnuma.so.1: cannot open shared object file: No such file or directory\n",
    "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory\n",
    "/usr/bin/ld: cannot find -lcudart: No such file or directory\n",
    "RuntimeError: The detected CUDA version (12.4) mismatches the version that was used to compile PyTorch (13.0). Please make sure to use the same CUDA versions.\n",
    f"ImportError: {SITE}/x/_C.so: undefined symbol: _ZN3c105ErrorC1Ei\n",
    "NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.\n",
])  # fmt: skip
def test_near_misses_are_others(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_the_library_whose_wording_it_is_and_not_the_program_around(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "RuntimeError: Library libcublas.so.12 is not found or cannot be loaded",
        (f"{SITE}/faster_whisper/transcribe.py", "encode", "return self.model.encode(features, to_cpu=to_cpu)"),
    )
    assert finding(judge_report(text, {"torch_cuda": "11.8"}), CAUSE).component == "ctranslate2"


def test_what_torch_loads_itself_is_torch_s_whoever_imports_it(judge_report: Judge, finding: Find) -> None:
    log = traceback(
        "OSError: libcublas.so.11: cannot open shared object file: No such file or directory",
        (f"{SITE}/transformers/utils/import_utils.py", "<module>", "import torch"),
        (f"{SITE}/torch/__init__.py", "_load_global_deps", "ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)"),
    )
    found = finding(judge_report(log), "cuda-major-mismatch")
    assert found.component == "torch"
    assert [(r.kind, r.name, r.value) for r in found.remedies] == [
        ("package", "nvidia-cublas-cu11", "match:torch"),
        ("package", "torch", "reinstall"),
    ]
