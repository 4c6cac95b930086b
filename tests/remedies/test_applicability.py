"""A remedy is held against the facts: the release, the GPU, what is installed, what was given already."""

from __future__ import annotations

from typing import Any

import pytest

from gpuwhy.model.remedy import NotARemedy, Remedy
from gpuwhy.remedies.applicability import applicable
from gpuwhy.remedies.circumstances import Circumstances
from gpuwhy.remedies.typed_command import read_command


def remedy(kind: str, name: str, value: str = "", **rest: Any) -> Remedy:
    return Remedy(kind=kind, name=name, value=value, summary=rest.pop("summary", ""), **rest)


def kept(proposed: Remedy, **known: Any) -> Remedy:
    (only,), dropped = applicable([proposed], Circumstances(**known))
    assert not dropped
    return only


def dropped(proposed: Remedy, **known: Any) -> NotARemedy:
    remaining, (only,) = applicable([proposed], Circumstances(**known))
    assert not remaining
    return only


VLLM = {"engine": "vllm"}
SGLANG = {"engine": "sglang"}


# --- releases ---------------------------------------------------------------------------------------------------------


def test_a_variable_that_came_later_is_not_offered() -> None:
    reason = dropped(remedy("env", "VLLM_USE_DEEP_GEMM", "0"), **VLLM, packages={"vllm": "0.7.3"})
    assert reason.what == "VLLM_USE_DEEP_GEMM=0"
    assert reason.why.startswith("vllm 0.7.3 has no VLLM_USE_DEEP_GEMM: it came with 0.8.")


def test_a_variable_that_went_is_not_offered() -> None:
    assert "any more" in dropped(remedy("env", "VLLM_USE_V1", "0"), **VLLM, packages={"vllm": "0.33.0"}).why


def test_the_reason_names_what_took_its_place() -> None:
    reason = dropped(remedy("flag", "--rope-scaling", "yarn"), **VLLM, packages={"vllm": "0.20.0"}).why
    assert reason.endswith("0.11.0 was the last with it (there: --hf-overrides)")


def test_what_the_release_has_or_nobody_recorded_stays() -> None:
    proposed = remedy("env", "VLLM_USE_DEEP_GEMM", "0")
    for packages in ({"vllm": "0.11.0"}, {"vllm": "0.2.0"}, {"vllm": "dev"}, {}):
        assert kept(proposed, **VLLM, packages=packages) == proposed
    for name in ("CUDA_HOME", "NCCL_P2P_DISABLE", "MAX_JOBS"):
        assert kept(remedy("env", name, "1"), **VLLM, packages={"vllm": "0.11.0"})


def test_taking_away_is_never_refused() -> None:
    assert kept(remedy("env", "VLLM_NEVER_WAS", "unset"), **VLLM, packages={"vllm": "0.11.0"})
    assert kept(remedy("flag", "--never-was", "remove"), **VLLM, packages={"vllm": "0.11.0"})


def test_a_release_gets_its_own_spelling() -> None:
    proposed = remedy("env", "VLLM_ATTENTION_BACKEND", "TRITON_ATTN", summary="Set VLLM_ATTENTION_BACKEND")
    now = kept(proposed, **VLLM, packages={"vllm": "0.33.0"})
    assert (now.kind, now.name, now.value) == ("flag", "--attention-backend", "TRITON_ATTN")
    assert now.summary == "Set --attention-backend"
    assert "vllm 0.33.0 has no VLLM_ATTENTION_BACKEND" in now.limits[-1]
    back = kept(remedy("flag", "--attention-backend", "TRITON_ATTN"), **VLLM, packages={"vllm": "0.10.0"})
    assert (back.kind, back.name) == ("env", "VLLM_ATTENTION_BACKEND")


def test_sglangs_older_prefix_is_used_where_the_release_has_that() -> None:
    now = kept(remedy("env", "SGLANG_ENABLE_JIT_DEEPGEMM", "0"), **SGLANG, packages={"sglang": "0.4.6"})
    assert now.name == "SGL_ENABLE_JIT_DEEPGEMM"


def test_two_spellings_of_one_intervention_become_one() -> None:
    both = [remedy("env", "VLLM_ATTENTION_BACKEND", "X_1"), remedy("flag", "--attention-backend", "X_1")]
    assert len(applicable(both, Circumstances(engine="vllm", packages={"vllm": "0.33.0"}))[0]) == 1


def test_options_of_the_other_server_are_not_offered() -> None:
    assert "vLLM" in dropped(remedy("flag", "--gpu-memory-utilization", "0.8"), **SGLANG).why
    reason = dropped(remedy("flag", "--mem-fraction-static", "0.8"), **VLLM).why
    assert reason == "it is an option of SGLang; vLLM does not have it (there: --gpu-memory-utilization)"
    assert "SGLang" in dropped(remedy("env", "VLLM_USE_DEEP_GEMM", "0"), **SGLANG).why


def test_options_of_other_programs_stay() -> None:
    for name, value in (("--shm-size", "16g"), ("--nvcc_threads", "1"), ("--parallel", "4"), ("--master_port", "1")):
        assert kept(remedy("flag", name, value), **VLLM, packages={"vllm": "0.11.0"})


def test_flashinfers_variables_from_before_their_time_or_in_vain() -> None:
    arch_list = remedy("env", "FLASHINFER_CUDA_ARCH_LIST", "12.0a")
    assert "0.3.1" in dropped(arch_list, packages={"flashinfer-python": "0.2.5"}).why
    assert kept(arch_list, packages={"flashinfer_python": "0.6.17", "flashinfer-python": "0.6.17"})
    folder = remedy("env", "FLASHINFER_CUBIN_DIR", "/data/cubins")
    beside = {"flashinfer-python": "0.6.15", "flashinfer-cubin": "0.6.15"}
    assert "flashinfer-cubin is installed" in dropped(folder, packages=beside).why
    assert kept(folder, packages={**beside, "flashinfer-python": "0.6.16"})
    assert kept(folder, packages={**beside, "flashinfer-cubin": None})


def test_an_arch_list_that_the_release_refuses_is_not_offered() -> None:
    assert dropped(remedy("env", "FLASHINFER_CUDA_ARCH_LIST", "12.0;9.0"), packages={"flashinfer-python": "0.6.17"})


def test_a_triton_without_an_assembler_for_blackwell_takes_the_other_variable() -> None:
    proposed = remedy("env", "TRITON_PTXAS_BLACKWELL_PATH", "/usr/local/cuda/bin/ptxas")
    assert kept(proposed, packages={"triton": "3.3.1"}).name == "TRITON_PTXAS_PATH"
    assert kept(proposed, packages={"triton": "3.9.0"}) == proposed


# --- versions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [">=0.7.1", "0.7.2", "==0.7.2", "<0.8"])
def test_what_is_installed_already_is_not_offered(value: str) -> None:
    reason = dropped(remedy("package", "flashinfer-python", value), packages={"flashinfer-python": "0.7.2"})
    assert reason.why == "flashinfer-python 0.7.2 is installed"


@pytest.mark.parametrize("value", [">=0.7.3", "0.6.6", "newer", "match:torch", "rebuild", "<0.7", "remove"])
def test_another_release_is(value: str) -> None:
    assert kept(remedy("package", "flashinfer-python", value), packages={"flashinfer-python": "0.7.2"})


def test_another_build_of_the_same_release_is_not_installed() -> None:
    proposed = remedy("package", "torch", "==2.8.0+cu128")
    assert kept(proposed, torch="2.8.0+cpu")
    assert dropped(proposed, torch="2.8.0+cu128")
    assert dropped(remedy("package", "torch", "cu128 build"), torch="2.8.0+cu128")


def test_a_toolkit_is_raised_to_the_first_that_knows_the_gpu() -> None:
    now = kept(remedy("toolkit", "cuda", ">=12.4", summary="Install CUDA >=12.4"), capabilities=("12.0",))
    assert (now.value, now.summary) == (">=12.8", "Install CUDA >=12.8")


def test_a_toolkit_that_dropped_the_gpu_is_not_offered() -> None:
    reason = dropped(remedy("toolkit", "cuda", ">=13.0"), capabilities=("6.1",))
    assert "CUDA 13.0 does not know compute capability 6.1" in reason.why
    assert "12.9" in reason.why


def test_a_toolkit_for_an_old_gpu_says_where_it_ends() -> None:
    assert "not newer than CUDA 12.9" in kept(remedy("toolkit", "cuda", ">=12.4"), capabilities=("7.0",)).limits[-1]
    assert not kept(remedy("toolkit", "cuda", ">=12.8"), capabilities=("9.0",)).limits


def test_a_build_of_torch_holds_code_for_the_gpu() -> None:
    proposed = remedy("package", "torch", "cu126 build", summary="Install the cu126 build")
    assert kept(proposed, capabilities=("12.0",)).value == "cu128 build"
    assert "cu130" in dropped(remedy("package", "torch", "cu130 build"), capabilities=("6.1",)).why
    assert kept(proposed, capabilities=("8.6",)) == proposed


def test_a_newer_torch_for_a_dropped_gpu_names_the_builds_that_hold_it() -> None:
    assert "cu126" in kept(remedy("package", "torch", "newer"), capabilities=("6.1",)).limits[-1]
    assert not kept(remedy("package", "torch", "newer"), capabilities=("9.0",)).limits


def test_a_driver_that_is_there_or_too_old_for_torch_is_not_offered() -> None:
    assert dropped(remedy("driver", "nvidia", ">=525"), driver="535.104.05").why == "driver 535.104.05 is installed"
    assert kept(remedy("driver", "nvidia", ">=525"), driver="470.182.03").value == ">=525"
    assert kept(remedy("driver", "nvidia", ">=525"), torch_cuda="13.0").value == ">=580"
    # A branch alone does not say which release of it.
    assert kept(remedy("driver", "nvidia", ">=580.65.06"), driver="580")


# --- in force ---------------------------------------------------------------------------------------------------------


def test_what_the_service_was_started_with_was_not_enough() -> None:
    command = read_command("A=1 vllm serve m --enforce-eager --max-num-seqs=8 -tp 2")
    for proposed in (
        remedy("env", "A", "1"),
        remedy("flag", "--enforce-eager"),
        remedy("flag", "--enforce-eager", "set"),
        remedy("flag", "--max-num-seqs", "8"),
        remedy("flag", "--tensor-parallel-size", "2"),
    ):
        assert dropped(proposed, command=command).why.startswith("the service failed with it")


def test_another_value_or_a_direction_is_something_new() -> None:
    command = read_command("A=1 vllm serve m --max-num-seqs 8")
    for proposed in (
        remedy("env", "A", "0"),
        remedy("flag", "--max-num-seqs", "4"),
        remedy("flag", "--max-num-seqs", "lower"),
        remedy("flag", "--max-num-seqs", "remove"),
        remedy("flag", "--enforce-eager"),
    ):
        assert kept(proposed, command=command)


def test_the_environment_counts_too() -> None:
    assert dropped(remedy("env", "A", "1"), variables={"A": "1"})
    assert dropped(remedy("env", "A", "unset"), variables={"A": None}).why == "A is not set"
    assert kept(remedy("env", "A", "unset"), variables={"A": "1"})
    assert kept(remedy("env", "A", "unset"))


def test_a_containers_options_are_looked_for_before_its_image() -> None:
    command = read_command("docker run --ipc=host -e A=1 --gpus all img --gpus 2")
    assert dropped(remedy("flag", "--ipc", "host"), command=command)
    assert dropped(remedy("env", "A", "1"), command=command)
    assert kept(remedy("flag", "--shm-size", "16g"), command=command)
