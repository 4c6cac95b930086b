"""Names that libraries dropped or added."""

from __future__ import annotations

import pytest

from gpuwhy.knowledge.api_changes import change_of, dropped_by_python, module_change


def test_a_name_that_is_gone_asks_for_an_earlier_release() -> None:
    change = change_of("transformers", "AutoModelForVision2Seq")
    assert change is not None
    assert change.fitting == "<5"
    assert "AutoModelForImageTextToText" in change.why


def test_a_name_that_was_added_asks_for_a_later_one() -> None:
    change = change_of("torch.library", "register_fake")
    assert change is not None
    assert change.fitting == ">=2.4"


def test_the_same_name_of_another_library_is_another_matter() -> None:
    assert change_of("mylib", "AutoModelForVision2Seq") is None
    assert change_of("pandas", "bool") is None
    assert change_of("numpy", "array") is None


def test_a_module_is_looked_up_by_its_parts() -> None:
    change = module_change("triton.ops.matmul_perf_model")
    assert change is not None
    assert change.distribution == "triton"
    assert module_change("vllm.outputs") is None


def test_python_drops_modules_too() -> None:
    assert dropped_by_python("distutils.util") == "3.12"
    assert dropped_by_python("json") is None


@pytest.mark.parametrize(
    ("module", "fitting"),
    [
        ("vllm.worker.model_runner", "<0.11"),
        ("vllm.v1.worker.gpu_model_runner", None),
        ("vllm.attention.layer", "<0.16"),
        ("vllm.v1.attention.backends", None),
        ("vllm.transformers_utils.tokenizer_group.tokenizer_group", "<0.11"),
        ("vllm.utils.argparse_utils", ">=0.11.1"),
        ("triton.common.build", "<3.0"),
        ("triton.tools.tensor_descriptor", ">=3.4"),
    ],
)
def test_the_release_that_the_wheels_show(module: str, fitting: str | None) -> None:
    change = module_change(module)
    assert (change.fitting if change else None) == fitting
