"""abi-mismatch: whose symbol it is decides; the C++ run time, a whole missing library and a version check are others'."""

from __future__ import annotations

import pytest
from tests.causes.packages.texts import SITE, Find, Judge, names, remedies, traceback

from gpuwhy.model.finding import Certainty

CAUSE = "abi-mismatch"
TORCH = f"ImportError: {SITE}/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEi\n"
# what the loader of a real system prints for a library that calls a constructor of c10::Error with an int
BY_THE_LOADER = f"OSError: {SITE}/torch_scatter/_version_cuda.so: undefined symbol: _ZN3c105ErrorC1Ei\n"


@pytest.mark.parametrize(("text", "component"), [
    (TORCH, "flash-attn"),
    (BY_THE_LOADER, "torch-scatter"),
    (f"OSError: {SITE}/torchaudio/lib/libtorchaudio.so: undefined symbol: _ZNK5torch8autograd4Node4nameEv\n", "torchaudio"),
    (f"python3: symbol lookup error: {SITE}/tensorrt_llm/libs/libth_common.so: undefined symbol: _ZN3c106detail14torchCheckFailEPKcS2_jRKSs\n", "tensorrt-llm"),
    (f"WARNING 03-02 10:11:12 [_custom_ops.py:20] Failed to import from vllm._C with ImportError('{SITE}/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb')\n", "vllm"),
])  # fmt: skip
def test_a_symbol_of_torch_proves_another_torch(judge_report: Judge, finding: Find, text: str, component: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert found.component == component
    assert "undefined symbol" in found.evidence[0].quote


def test_the_swallowed_warning_is_quoted_and_not_its_echo(judge_report: Judge, finding: Find) -> None:
    warning = f"WARNING 03-02 10:11:12 [_custom_ops.py:20] Failed to import from vllm._C with ImportError('{SITE}/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEi')\n"
    echo = traceback(
        "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
        (f"{SITE}/vllm/_custom_ops.py", "rms_norm", "torch.ops._C.rms_norm(out)"),
    )
    judgement = judge_report(warning + echo)
    found = finding(judgement, CAUSE)
    assert judgement.findings[0] == found
    assert "SetDevice" in found.evidence[0].quote


def test_the_echo_alone_stays_open(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
        (f"{SITE}/vllm/_custom_ops.py", "rms_norm", "torch.ops._C.rms_norm(out)"),
    )
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "torch" in [missing.key for missing in found.missing]
    assert "libc-too-old" in found.rivals


def test_the_name_is_readable_and_its_string_type_is_told(judge_report: Judge, finding: Find) -> None:
    found = finding(
        judge_report(
            f"ImportError: {SITE}/transformer_engine_torch.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs\n"
        ),
        CAUSE,
    )
    assert any("c10::Error::Error" in link.statement for link in found.chain)
    assert any("before C++11" in evidence.statement for evidence in found.evidence)
    assert "container" in [kind for kind, _, _ in remedies(found)]


def test_a_wheel_for_the_installed_torch_comes_first(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(TORCH, {"torch": "2.8.0+cu128", "torch_cuda": "12.8"}), CAUSE)
    assert remedies(found)[0] == ("package", "flash-attn", "match:torch")
    assert "cxx11 ABI TRUE" in found.remedies[0].summary
    assert ("package", "flash-attn", "rebuild") in remedies(found)


def test_companions_of_torch_are_named_by_release(judge_report: Judge, finding: Find) -> None:
    text = f"OSError: {SITE}/torchvision/_C.so: undefined symbol: _ZN3c106SymIntC1El\n"
    found = finding(judge_report(text, {"torch": "2.7.1"}), CAUSE)
    assert remedies(found)[0] == ("package", "torchvision", "==0.22.*")


def test_kernels_of_an_engine_follow_its_pins(judge_report: Judge, finding: Find) -> None:
    text = (
        "[sgl_kernel] CRITICAL: Could not load any common_ops library!\n"
        f"- ImportError: {SITE}/sgl_kernel/sm90/common_ops.abi3.so: undefined symbol: _ZNK3c106SymInt6sym_neERKS0_\n"
    )
    found = finding(judge_report(text, {"packages.sglang": "0.5.9", "torch": "2.11.0"}), CAUSE)
    assert ("package", "sgl-kernel", "==0.3.21") in remedies(found)
    assert ("package", "torch", "==2.9.1") in remedies(found)


@pytest.mark.parametrize(("text", "certainty"), [
    (f"ImportError: {SITE}/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12\n", Certainty.LIKELY),
    (f"ImportError: {SITE}/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister\n", Certainty.POSSIBLE),
    (f"ImportError: {SITE}/nvshmem/ext.so: undefined symbol: cuTensorMapEncodeTiled\n", Certainty.POSSIBLE),
    ("ImportError: DLL load failed while importing _C: The specified procedure could not be found.\n", Certainty.POSSIBLE),
])  # fmt: skip
def test_libraries_in_c_and_windows_prove_nothing(
    judge_report: Judge, finding: Find, text: str, certainty: Certainty
) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is certainty
    assert found.rivals


def test_a_hidden_copy_of_a_cuda_library_is_uncovered(judge_report: Judge, finding: Find) -> None:
    text = f"ImportError: {SITE}/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12\n"
    found = finding(judge_report(text), CAUSE)
    assert found.component == "torch"
    assert remedies(found)[0] == ("env", "LD_LIBRARY_PATH", "unset")


@pytest.mark.parametrize("text", [
    "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 from PyObject\n",
    "ImportError: A module that was compiled using NumPy 1.x cannot be run in NumPy 2.1.3 as it may crash.\n",
])  # fmt: skip
def test_numpys_own_notice(judge_report: Judge, finding: Find, text: str) -> None:
    assert ("package", "numpy", "<2") in remedies(finding(judge_report(text), CAUSE))


@pytest.mark.parametrize("text", [
    "ImportError: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by /opt/x/_C.so)\n",
    f"ImportError: {SITE}/x/_C.so: undefined symbol: _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv\n",
    "ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory\n",
    "Exception: sgl-kernel is installed with version 0.1.0, which is less than the minimum required version 0.1.4. Please reinstall\n",
    "ImportError: cannot import name 'LossKwargs' from 'transformers.utils'\n",
    "INFO: c++filt can be used to read an undefined symbol\n",
])  # fmt: skip
def test_near_misses_are_others(judge_report: Judge, text: str) -> None:
    assert names(judge_report(text))[:1] != [CAUSE]


def test_a_module_of_a_jit_cache_was_compiled_here_and_is_left_over(judge_report: Judge, finding: Find) -> None:
    text = "OSError: /opt/user/.cache/flashinfer/0.2.5/90/cached_ops/sampling/sampling.so: undefined symbol: _ZN3c1021throwNullDataPtrErrorEv\n"
    judgement = judge_report(text)
    assert names(judgement)[0] == "jit-cache-stale"
    assert finding(judgement, CAUSE).certainty is Certainty.LIKELY


def test_a_part_that_is_done_without_proves_nothing_about_another_crash(judge_report: Judge, finding: Find) -> None:
    warning = f"{SITE}/torchvision/io/image.py:14: UserWarning: Failed to load image Python extension: '{SITE}/torchvision/image.so: undefined symbol: _ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs'If you don't plan on using image functionality from `torchvision.io`, you can ignore this warning.\n"
    crash = traceback(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        (f"{SITE}/vllm/v1/worker/gpu_model_runner.py", "load_model", "self.model = load()"),
    )
    judgement = judge_report(warning + crash)
    assert finding(judgement, CAUSE).certainty is Certainty.POSSIBLE
    assert names(judgement)[0] != CAUSE


def test_a_torch_outside_of_the_engines_pin_makes_the_echo_likely(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
        (f"{SITE}/vllm/_custom_ops.py", "rms_norm", "torch.ops._C.rms_norm(out)"),
    )
    other = judge_report(text, {"packages.vllm": "0.11.0", "torch": "2.9.1+cu128"})
    assert finding(other, CAUSE).certainty is Certainty.LIKELY
    assert ("package", "torch", "==2.8.0") in remedies(finding(other, CAUSE))
    same = judge_report(text, {"packages.vllm": "0.11.0", "torch": "2.8.0+cu128"})
    assert finding(same, CAUSE).certainty is Certainty.POSSIBLE


def test_cudas_own_error_500_is_no_symbol_of_a_library(judge_report: Judge) -> None:
    report = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 500: named symbol not found (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)\n"
    assert "abi-mismatch" not in [found.cause for found in judge_report(report).findings]


@pytest.mark.parametrize(
    ("line", "component"),
    [
        ("undefined symbol: _ZN2at4_ops5zeros4callEN3c108ArrayRefIlEE", "torch"),
        ("ImportError: undefined symbol: _ZN3c1013MessageLoggerC1EPKciib", "torch"),
        ("undefined symbol: nvshmemi_get_p2p_attr", "nvshmem"),
        ("undefined symbol: ggml_backend_cuda_init", "llama.cpp"),
        ("undefined symbol: _ZN10flashinfer9somethingEv", "flashinfer"),
        ("AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'", "vllm"),
        ("AttributeError: '_OpNamespace' '_C_cache_ops' object has no attribute 'reshape_and_cache'", "vllm"),
        ("undefined symbol: cudnnGetLibConfig", None),
        ("undefined symbol: PyUnicode_AsUTF8String", None),
        ("undefined symbol: _Z18selective_scan_fwdRKi", None),
    ],
)
def test_a_line_alone_names_the_owner_of_its_symbol_or_nobody(
    judge_report: Judge, finding: Find, line: str, component: str | None
) -> None:
    assert finding(judge_report(line + "\n"), CAUSE).component == component
