from __future__ import annotations

import pytest

from gpuwhy.knowledge import gpus


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("RTX PRO 6000 Blackwell", "12.0"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0"),
        ("RTX 6000 Pro", "12.0"),
        ("RTX 5090", "12.0"),
        ("NVIDIA GeForce RTX 5090", "12.0"),
        ("RTX5090", "12.0"),
        ("8x RTX 5090", "12.0"),
        ("H100 80GB HBM3", "9.0"),
        ("NVIDIA H100 PCIe", "9.0"),
        ("H100 (2 x 8)", "9.0"),
        ("DGX H100", "9.0"),
        ("A100-SXM4-80GB", "8.0"),
        ("NVIDIA A100-PCIE-40GB", "8.0"),
        ("L40S", "8.9"),
        ("RTX 6000 Ada", "8.9"),
        ("GB10", "12.1"),
        ("DGX Spark", "12.1"),
        ("GB10 (2x DGX Spark)", "12.1"),
        ("Tesla T4", "7.5"),
        ("RTX 2080 Ti 22GB (2x)", "7.5"),
        ("GTX 1080 Ti", "6.1"),
        ("GTX 1060 6GB", "6.1"),
        ("V100", "7.0"),
        ("Tesla V100-SXM2-32GB", "7.0"),
        ("Jetson AGX Orin", "8.7"),
        ("Jetson AGX Thor", "11.0"),
        ("NVIDIA Thor", "11.0"),
        ("GB200 NVL72", "10.0"),
        ("RTX 3050", "8.6"),
        ("RTX 3050 A Laptop GPU", "8.9"),
        ("RTX 8000", "7.5"),
        ("RTX 3080 (with RTX 4080 SUPER as GPU 0)", "8.6"),
    ],
)
def test_names_as_people_and_tools_write_them(name: str, capability: str) -> None:
    gpu = gpus.by_name(name)
    assert gpu is not None
    assert gpu.compute_capability == capability
    assert gpu.provenance.startswith("documented:")


@pytest.mark.parametrize("name", ["RTX 4000", "RTX 6000", "TITAN X", "A10, T4", "A100/H100 SXM (8x)"])
def test_ambiguous_name_gives_candidates_and_no_answer(name: str) -> None:
    assert gpus.by_name(name) is None


def test_candidates_of_an_ambiguous_name_differ_in_capability() -> None:
    found = gpus.candidates("RTX 4000")
    assert {gpu.compute_capability for gpu in found} == {"7.5", "8.9", "12.0"}


@pytest.mark.parametrize("name", ["", "Blackwell", "RTX 50 series", "SM120 card", "Radeon RX 7900", "x" * 5000, "GPU"])
def test_unknown_name(name: str) -> None:
    assert gpus.by_name(name) is None


def test_the_most_alike_model_comes_first() -> None:
    found = gpus.by_name("A100-SXM4-80GB")
    assert found is not None
    assert found.name == "NVIDIA A100-SXM4-80GB"


@pytest.mark.parametrize("device_id", ["2BB1", "2bb1", "0x2BB1", "0x2BB110DE", "10de:2bb1"])
def test_pci_device_id_in_every_spelling(device_id: str) -> None:
    gpu = gpus.by_pci_device_id(device_id)
    assert gpu is not None
    assert gpu.name == "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"


def test_unlisted_device_id_is_named_after_its_chip() -> None:
    gpu = gpus.by_pci_device_id("2BFE")
    assert gpu is not None
    assert gpu.compute_capability == "12.0"
    assert "GB202" in gpu.name
    assert gpus.by_pci_device_id("FFFF") is None
    assert gpus.by_pci_device_id("hello") is None


def test_generation_and_limits() -> None:
    assert gpus.generation("12.0") == "Blackwell (workstation)"
    assert gpus.generation("sm_90a") == "Hopper"
    assert gpus.generation("99.0") is None
    limits = gpus.limits("12.0")
    assert limits is not None
    assert limits.shared_per_block_optin_bytes == 101376
    assert gpus.capabilities_with_shared_limit(101376) == ("8.6", "8.8", "8.9", "12.0", "12.1")
