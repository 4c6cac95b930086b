"""Which torch defines a symbol: as the libraries of the released wheels do."""

from __future__ import annotations

import pytest

from gpuwhy.knowledge.symbol_providers import brought_by, provided_by, provider_of
from gpuwhy.knowledge.torch_symbols import defined_in, releases_with

CHECK = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_"


def test_a_function_whose_parameter_changed_in_2_10() -> None:
    old, new = defined_in(f"{CHECK}ib"), defined_in(f"{CHECK}jb")
    assert old is not None
    assert new is not None
    assert (old.text, new.text) == ("2.9.1 or earlier", "2.10.0 to 2.13.0")
    assert old.admits("2.8.0+cu128") is True
    assert old.admits("2.14.1") is False
    assert new.admits("2.9.1") is False
    assert new.admits("2.11.0") is True
    assert new.admits("nightly") is None


def test_several_symbols_narrow_the_releases() -> None:
    assert (
        releases_with([f"{CHECK}ib", "_ZN3c104impl3cow23materialize_cow_storageERNS_11StorageImplE"])
        == "2.3.1 to 2.9.1"
    )
    assert releases_with([f"{CHECK}ib", f"{CHECK}jb"]) == ""
    assert releases_with(["cudaMalloc"]) == ""


def test_what_every_release_has_or_nobody_is_not_listed() -> None:
    assert defined_in("_ZN3c105ErrorD1Ev") is None
    assert defined_in("cudaMalloc") is None


@pytest.mark.parametrize(
    ("symbol", "owner", "stem"),
    [
        ("cudaMalloc", "cuda", "cudart"),
        ("__cudaRegisterFatBinary", "cuda", "cudart"),
        ("cublasLtMatmul", "cuda", "cublasLt"),
        ("cublasGemmEx", "cuda", "cublas"),
        ("cuTensorMapEncodeTiled", "driver", "cuda"),
        ("nvmlInit_v2", "driver", "nvidia-ml"),
        ("ncclCommWindowRegister", "nccl", "nccl"),
        ("_ZN3c104cuda14ExchangeDeviceEa", "torch", "c10_cuda"),
        ("_ZNK3c1010TensorImpl4sizeEl", "torch", "c10"),
        ("_ZN2at4_ops5zeros4callEv", "torch", "torch"),
        ("aoti_torch_empty_strided", "torch", "torch_cpu"),
        ("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7reserveEv", "standard", "stdc++"),
    ],
)
def test_whose_a_symbol_is(symbol: str, owner: str, stem: str) -> None:
    provider = provider_of(symbol)
    assert provider.owner == owner
    assert provider.stems[0] == stem


def test_names_that_say_nothing_belong_to_others() -> None:
    assert provider_of("current_time").owner == "other"
    assert provider_of("_ZN4vllm9rms_normsEv").owner == "other"
    assert provided_by("current_time") == ""


def test_what_would_provide_it_in_words() -> None:
    assert "torch 2.9.1 or earlier" in provided_by(f"{CHECK}ib", "2.14.1")
    assert "string type of before C++11" in provided_by("_ZN3c105ErrorC2ENS_14SourceLocationESs", "2.8.0")
    assert "torch==2.9.1" in provided_by("_ZN2at4_ops5zeros4callEv", "2.14.1", "torch==2.9.1")
    assert provided_by("cublasGemmEx") == "nvidia-cublas"


def test_what_brings_a_library() -> None:
    assert brought_by("libcudart.so.12") == "nvidia-cuda-runtime-cu12 of CUDA 12"
    assert brought_by("libcuda.so.1") == "the NVIDIA driver"
    assert brought_by("libnuma.so.1").startswith("libnuma1 (Debian, Ubuntu)")
    assert brought_by("libc10.so") == "torch"
    assert brought_by("libnobodyknows.so.3") == ""
