"""What the operator tried, read from the names and outcomes of experiments."""

from __future__ import annotations

import pytest

from gpuwhy.model.evidence import Evidence
from gpuwhy.model.experiments import Experiment, Experiments, is_good
from gpuwhy.model.fact import Fact, Facts, Unknown


def experiment(name: str, outcome: object = "works") -> Experiment:
    key = f"tests.{name}"
    view = Experiments.of(Facts({key: Fact(key, outcome, Evidence("given"))}))
    assert isinstance(view, Experiments)
    return view.tried[0]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("works", True), ("pass", True), ("clean answers", True), (True, True), ("no error in 3 hours", True), ("0 of 30 answers wrong", True),
        ("fails", False), ("illegal memory access", False), ("14 of 30 answers damaged", False), ("still crashes", False), (False, False), ("not tried to the end", None),
    ],
)  # fmt: skip
def test_outcomes(outcome: object, expected: bool | None) -> None:
    assert is_good(outcome) is expected


def test_a_release() -> None:
    assert experiment("vllm 0.24.0, same machine and model").release == ("vllm", "0.24.0")
    assert experiment("torch==2.6.0").release == ("torch", "2.6.0")
    assert experiment("input length 4k").release is None


def test_what_was_left_out() -> None:
    assert experiment("fuse_allreduce_rms pass disabled").switched_off == "fuse_allreduce_rms"
    assert experiment("without prefix-caching").switched_off == "prefix-caching"
    assert experiment("concurrency 1").switched_off is None


def test_variables_and_flags() -> None:
    assert experiment("NCCL_P2P_DISABLE=1").variable == ("NCCL_P2P_DISABLE", "1")
    assert experiment("--attention-backend TRITON_ATTN").flag == ("--attention-backend", "TRITON_ATTN")


def test_nobody_tried_anything() -> None:
    assert isinstance(Experiments.of(Facts()), Unknown)
