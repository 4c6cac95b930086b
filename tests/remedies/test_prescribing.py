"""A diagnosis as it is handed to a report: remedies held against the facts, ordered, written."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy.investigate import diagnose_log
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.model.remedy import NotARemedy, Remedy
from gpuwhy.remedies import prescribe
from gpuwhy.snapshot.given import given


def prescribed(remedies: tuple[Remedy, ...], facts: dict[str, Any], *known: NotARemedy) -> Finding:
    made = diagnose_log(b"vllm serve m\n", "a.log", given(facts).facts)
    finding = Finding(
        cause="x", family="y", component=None, certainty=Certainty.LIKELY, title="t", chain=(), evidence=(),
        remedies=remedies, not_remedies=known,
    )  # fmt: skip
    diagnosis: Diagnosis = msgspec.structs.replace(made, findings=(finding,))
    return prescribe(diagnosis).findings[0]


def test_what_does_not_apply_moves_to_what_does_not_help() -> None:
    remedies = (
        Remedy(kind="package", name="torch", value=">=2.7", summary=""),
        Remedy(kind="env", name="VLLM_USE_DEEP_GEMM", value="0", summary=""),
    )
    found = prescribed(remedies, {"packages.vllm": "0.7.3", "torch": "2.6.0"}, NotARemedy("reboot", "no"))
    assert [remedy.name for remedy in found.remedies] == ["torch"]
    assert [each.what for each in found.not_remedies] == ["reboot", "VLLM_USE_DEEP_GEMM=0"]
    assert "it came with 0.8" in found.not_remedies[1].why


def test_a_variable_for_docker_run_stands_before_the_image() -> None:
    facts = {"command": "docker run --gpus all vllm/vllm-openai:v0.9.2 --model m"}
    found = prescribed((Remedy(kind="env", name="NCCL_P2P_DISABLE", value="1", summary=""),), facts)
    assert found.remedies[0].commands == (
        "docker run --gpus all --env NCCL_P2P_DISABLE=1 vllm/vllm-openai:v0.9.2 --model m",
    )


def test_what_the_start_command_has_is_not_offered_again() -> None:
    remedies = (Remedy(kind="flag", name="--enforce-eager", summary=""),)
    found = prescribed(remedies, {"command": "vllm serve m --enforce-eager"})
    assert not found.remedies
    assert found.not_remedies == (NotARemedy("--enforce-eager", "the service failed with it given"),)


def test_the_triton_that_torch_requires_is_known_from_torch() -> None:
    proposed = Remedy(kind="env", name="TRITON_PTXAS_BLACKWELL_PATH", value="/usr/local/cuda/bin/ptxas", summary="")
    assert prescribed((proposed,), {"torch": "2.7.1+cu128"}).remedies[0].name == "TRITON_PTXAS_PATH"
