"""Which image of a container a driver takes: machine code, PTX that it compiles, PTX too new for it, or none."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.binaries.truth import load_skeleton, skeletons

from gpuwhy.binaries.device_code import REGISTERED
from gpuwhy.binaries.examining import examine
from gpuwhy.binaries.fatbin import Code
from gpuwhy.knowledge.capability import ComputeCapability, parse
from gpuwhy.knowledge.loading import choose, known_to, runtime_starts
from gpuwhy.model.inspection import Outcome

KINDS = {
    "sm": "cubin",
    "compute": "ptx",
    "lto": "lto-ir",
    "tile": "tile-ir",
    "rel": "relocatable ptx",
    "odd": "unknown 0x20",
}


def code(text: str) -> Code:
    """ "sm_120f", "compute_80:8.7" (with its PTX version)."""
    name, _, version = text.partition(":")
    kind, _, number = name.partition("_")
    digits = number.rstrip("af")
    return Code(KINDS[kind], int(digits), number[len(digits) :], version or "8.0", "", False, True)


def gpu(text: str) -> ComputeCapability:
    found = parse(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("images", "capability", "driver", "outcome", "taken"),
    [
        ("sm_80 sm_90", "8.6", "", Outcome.NATIVE, "sm_80"),
        ("sm_80 sm_86", "8.6", "", Outcome.NATIVE, "sm_86"),
        ("sm_86", "8.0", "", Outcome.NONE, ""),
        ("sm_80 sm_86 sm_90a", "12.0", "", Outcome.NONE, ""),
        ("sm_90a", "9.0", "", Outcome.NATIVE, "sm_90a"),
        ("sm_100a", "10.3", "", Outcome.NONE, ""),
        ("sm_100f", "10.3", "", Outcome.NATIVE, "sm_100f"),
        ("sm_103f", "10.0", "", Outcome.NONE, ""),
        ("sm_120f", "12.1", "", Outcome.NATIVE, "sm_120f"),
        ("sm_120a", "12.1", "", Outcome.NONE, ""),
        ("sm_100 sm_120", "12.0", "", Outcome.NATIVE, "sm_120"),
        ("sm_80 compute_80:8.7", "12.0", "570.86", Outcome.JIT, "compute_80"),
        ("sm_80 compute_80:8.8", "12.0", "570.86", Outcome.JIT_BLOCKED, "compute_80"),
        ("sm_80 compute_80:8.8", "8.0", "570.86", Outcome.NATIVE, "sm_80"),
        ("compute_80:8.8 compute_75:8.7", "12.0", "570.86", Outcome.JIT, "compute_75"),
        ("compute_80:8.8", "12.0", "", Outcome.JIT, "compute_80"),
        ("compute_120:8.7", "9.0", "570.86", Outcome.NONE, ""),
        ("compute_90a:8.0", "10.0", "", Outcome.NONE, ""),
        ("compute_90a:8.0", "9.0", "", Outcome.JIT, "compute_90a"),
        ("compute_120f:8.8", "12.1", "575.51", Outcome.JIT, "compute_120f"),
        ("lto_120a", "12.0", "", Outcome.NONE, ""),
        ("tile_100", "12.0", "", Outcome.UNKNOWN, ""),
        ("rel_80", "12.0", "", Outcome.UNKNOWN, ""),
        ("rel_120", "9.0", "", Outcome.NONE, ""),
        ("odd_120", "12.0", "", Outcome.UNKNOWN, ""),
        ("odd_120 sm_120", "12.0", "", Outcome.NATIVE, "sm_120"),
        ("sm_87", "8.9", "", Outcome.UNKNOWN, ""),
        ("sm_9999", "12.0", "", Outcome.UNKNOWN, ""),
        ("", "12.0", "", Outcome.NONE, ""),
    ],
)
def test_the_choice(images: str, capability: str, driver: str, outcome: Outcome, taken: str) -> None:
    choice = choose([code(each) for each in images.split()], gpu(capability), driver)
    assert (choice.outcome, choice.taken) == (outcome, taken)
    assert choice.why
    assert choice.provenance


def test_what_is_not_there_is_told_by_what_is() -> None:
    assert "there is sm_80, sm_90a" in choose([code("sm_80"), code("sm_90a")], gpu("12.0")).why


def test_ptx_too_new_says_which_driver_it_needs() -> None:
    why = choose([code("compute_80:9.0")], gpu("12.0"), "570.124.06").why
    assert "CUDA 13.0" in why
    assert "8.7" in why


@pytest.mark.parametrize(
    ("driver", "isa", "known"),
    [
        ("570.86", "8.7", True),
        ("570.86", "8.8", False),
        ("580.65.06", "9.0", True),
        ("", "99.0", True),
        ("9999.10", "8.8", True),
        ("9999.10", "42.0", None),
        ("570.86", "x", None),
    ],
)
def test_what_a_driver_compiles(driver: str, isa: str, known: bool | None) -> None:
    assert known_to(driver, isa).value is known


def test_a_runtime_of_a_major_needs_a_driver_of_it() -> None:
    assert runtime_starts("570.86", 13).value is False
    assert runtime_starts("580.65.06", 13).value is True
    assert runtime_starts("570.86", 12).value is True
    assert runtime_starts("", 13).value is None
    assert runtime_starts("570.86", None).value is None


CAPABILITIES = ("8.0", "8.9", "9.0", "10.0", "10.3", "12.0", "12.1")
COUNTED = {
    "torch-2.14.1_libtorch_cuda": "475/0/0 475/0/0 475/0/0 475/0/0 475/0/0 475/0/0 475/0/0",
    "sgl_kernel-0.3.21_flash_ops": "182/0/0 182/0/0 182/0/0 0/0/182 0/0/182 0/0/182 0/0/182",
    "sgl_kernel-0.3.21_sm100_common_ops": "74/0/0 74/0/0 74/0/0 74/0/0 0/0/74 74/0/0 0/0/74",
    "vllm-0.33.0_C_stable_libtorch": "71/0/47 76/0/42 75/12/31 73/20/25 73/20/25 85/6/27 85/6/27",
    "onnxruntime_gpu-1.31.1_providers_cuda": "308/0/301 308/0/301 600/0/9 0/0/609 0/0/609 317/0/292 0/0/609",
}
"""Containers with machine code, with PTX only, and with neither, for each capability, as counted by an earlier reader."""


def test_real_libraries_container_by_container() -> None:
    """By the headers of libraries of five projects, where those lie beside the checkout."""
    for path in skeletons():
        binary = examine(load_skeleton(path), path.stem, searches=0)
        for capability, counts in zip(CAPABILITIES, COUNTED.get(path.stem, "").split(), strict=False):
            outcomes = Counter(
                choose([image.code for image in container.images], gpu(capability)).outcome
                for _, container in binary.device.containers(REGISTERED)
            )
            found = f"{outcomes[Outcome.NATIVE]}/{outcomes[Outcome.JIT]}/{outcomes[Outcome.NONE]}"
            assert found == counts, (path.stem, capability)
