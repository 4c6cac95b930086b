"""The toolkit that a JIT really takes, against the GPU, before anything was compiled."""

from __future__ import annotations

from typing import Any

import pytest
from tests.investigate.checks.forecasts import SEED, causes, of, open_questions, problem

from gpuwhy.investigate.checks.plan import Plan
from gpuwhy.model.finding import Certainty


def test_the_seed_is_foreseen_with_the_value_that_cures_it() -> None:
    found = problem(of(SEED), "toolkit-too-old-for-arch")
    assert found.certainty is Certainty.PROVEN
    assert found.component == "flashinfer"
    assert (found.remedies[0].name, found.remedies[0].value) == ("FLASHINFER_CUDA_ARCH_LIST", "12.0a")
    assert any("CUDA >= 12.9" in each.statement for each in found.evidence)


def test_a_toolkit_that_does_is_no_problem() -> None:
    assert causes(of(SEED, Plan(cuda="12.9"))) == []


def test_the_remedy_itself_passes() -> None:
    assert causes(of(SEED, Plan(env=("FLASHINFER_CUDA_ARCH_LIST=12.0a",)))) == []


@pytest.mark.parametrize("value", ["12.0", "12.0f", "12.0a;9.0a", "9.0a"])
def test_a_list_that_does_not_work_is_named(value: str) -> None:
    found = problem(of(SEED, Plan(env=(f"FLASHINFER_CUDA_ARCH_LIST={value}",))), "arch-list-override")
    assert found.remedies[0].value == "12.0a"


def test_a_variable_that_nobody_looked_at_may_change_it() -> None:
    facts = {key: value for key, value in SEED.items() if key != "environment_complete"}
    assert problem(of(facts), "toolkit-too-old-for-arch").certainty is Certainty.LIKELY


def test_a_better_toolkit_that_is_not_chosen_is_chosen_by_one_variable() -> None:
    facts = {
        **SEED,
        "toolkits": [{"root": "/usr/local/cuda-12.8", "version": "12.8"}, {"root": "/usr/local/cuda-12.9", "version": "12.9"}],
    }  # fmt: skip
    found = problem(of(facts), "toolkit-path-wrong")
    assert (found.remedies[0].name, found.remedies[0].value) == ("CUDA_HOME", "/usr/local/cuda-12.9")
    assert causes(of(facts, Plan(env=("CUDA_HOME=/usr/local/cuda-12.9",)))) == []


def test_an_unknown_folder_is_no_toolkit_that_was_seen() -> None:
    found = of(SEED, Plan(env=("CUDA_HOME=/opt/elsewhere",)))
    assert causes(found) == []
    assert "FlashInfer 0.6.12 compiles for these GPUs" in open_questions(found)


def test_each_gpu_of_a_mixed_host_gets_its_entry() -> None:
    facts = {key: value for key, value in SEED.items() if key not in ("cc", "gpu")} | {
        "gpus": ["0: NVIDIA L40S (8.9)", "1: RTX PRO 6000 (12.0)"]
    }
    found = of(facts)
    assert causes(found) == ["toolkit-too-old-for-arch"]
    assert found.problems[0].remedies[0].value == "8.9 12.0a"


def test_sglang_without_nvcc_has_nothing_to_compile_with() -> None:
    resolved: dict[str, Any] = {"version": "12.8", "root": None, "by": "torch.version.cuda"}
    facts = {key: value for key, value in SEED.items() if key != "cuda_toolkit"} | {
        "toolkit_resolved.flashinfer": resolved
    }
    assert "toolkit-missing" in causes(of(facts))
    precompiled = of({**facts, "packages.flashinfer-jit-cache": "0.6.12"})
    assert causes(precompiled) == []
    assert "finds no nvcc" in open_questions(precompiled)


def test_a_host_compiler_that_is_too_new() -> None:
    found = of({**SEED, "gcc": "15.1.0"}, Plan(cuda="12.9"))
    assert causes(found) == ["host-compiler"]
    assert causes(of({**SEED, "gcc": "13.3.0"}, Plan(cuda="12.9"))) == []


def test_a_toolkit_of_another_major_than_torch() -> None:
    facts = {**SEED, "torch": "2.9.1+cu128", "torch_cuda": "12.8", "driver": "580.65.06"}
    assert causes(of(facts, Plan(cuda="13.0"))) == ["toolkit-torch-mismatch"]


def test_an_option_that_nvcc_does_not_know() -> None:
    on_hopper = {**SEED, "cc": "9.0", "gpu": "NVIDIA H100", "packages.flashinfer-python": "0.6.18.post1"}
    found = problem(of(on_hopper, Plan(cuda="12.4")), "toolkit-too-old-for-library")
    assert found.remedies[0].value == ">=12.8"


def test_a_release_that_no_table_has_is_no_pass() -> None:
    found = of({**SEED, "packages.flashinfer-python": "9.9.9"})
    assert causes(found) in ([], ["package-conflict"])
    assert "FlashInfer 9.9.9" in open_questions(found)
