"""Devices, fabric, packages, limits and caches of a host."""

from __future__ import annotations

from typing import Any

import pytest
from tests.investigate.checks.forecasts import causes, of, open_questions, problem

from gpuwhy.investigate.checks import devices, host
from gpuwhy.investigate.checks.results import Passed, Problem, Unchecked
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Facts

EIGHT = [f"{n}: NVIDIA H100 (9.0)" for n in range(8)]


def seen(**values: Any) -> Facts:
    """Facts that were observed on a host."""
    return Facts({key.replace("__", "."): Fact(key.replace("__", "."), value, Evidence(f"{key} is {value}")) for key, value in values.items()})  # fmt: skip


def test_a_gpu_that_fell_off() -> None:
    found = list(devices.every_gpu_answers(seen(gpus=EIGHT[:7], gpu_errors=["GPU 7: GPU is lost"])))
    assert [each.cause for each in found if isinstance(each, Problem)] == ["gpu-lost"]


def test_gpus_on_the_bus_that_the_driver_does_not_list() -> None:
    facts = seen(gpus=EIGHT[:2], pci_gpus=["0000:01:00.0", "0000:02:00.0", "0000:03:00.0"])
    (found,) = devices.every_gpu_answers(facts)
    assert isinstance(found, Problem)
    assert "3 NVIDIA GPUs, and the driver lists 2" in found.title


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"unit_state.nvidia-fabricmanager": "failed (failed)"}, ["fabric-manager-state"]),
        ({"unit_state.nvidia-fabricmanager": "active (running)"}, []),
        ({"unit_state.nvidia-fabricmanager": "active (running)", "system_packages.nvidia-fabricmanager-570": "570.86.15-1", "driver": "570.124.06"}, ["fabric-manager-version"]),
        ({"unit_state.nvidia-fabricmanager": "active (running)", "system_packages.nvidia-fabricmanager-570": "570.86.15-1", "driver": "570.86.15"}, []),
    ],
)  # fmt: skip
def test_fabric_manager(more: dict[str, str], expected: list[str]) -> None:
    assert causes(of({"gpus": EIGHT, "nvswitch": True, **more})) == expected
    assert causes(of({"gpus": EIGHT, "nvswitch": False, **more})) == []


def test_peer_traffic_that_is_redirected() -> None:
    (found,) = devices.peers(seen(gpus=EIGHT, nvswitch=False, iommu="translated"))
    assert isinstance(found, Problem)
    assert found.cause == "p2p-iommu"
    (found,) = devices.peers(seen(gpus=EIGHT, nvswitch=False, iommu="off"))
    assert isinstance(found, Unchecked), "the IOMMU says nothing of ACS"
    (found,) = devices.peers(seen(gpus=EIGHT, nvswitch=False, iommu="off", pci_acs=[]))
    assert isinstance(found, Passed)


def test_shared_memory_of_a_container() -> None:
    assert causes(of({"gpus": EIGHT[:2], "shm_bytes": 64 << 20})) == ["shm-too-small"]
    assert causes(of({"gpus": EIGHT[:1], "shm_bytes": 64 << 20})) == []
    assert causes(of({"gpus": EIGHT[:2], "shm_bytes": 64 << 30})) == []
    assert "shm_bytes" not in causes(of({"gpus": EIGHT[:2], "shm_bytes": "much"}))


def test_locked_memory_counts_where_there_is_rdma() -> None:
    assert causes(of({"memlock": "8388608", "net_interfaces": ["ib0", "eno1"]})) == ["ulimit"]
    assert causes(of({"memlock": "8388608", "net_interfaces": ["eno1"]})) == []
    assert causes(of({"memlock": "unlimited", "net_interfaces": ["ib0"]})) == []


def test_caches() -> None:
    broken = {"files./root/.cache/flashinfer/0.6.12/120a/cached_ops/sampling/sampling.so": "the JIT library is empty (0 bytes)"}  # fmt: skip
    assert causes(of(broken)) == ["jit-cache-stale"]
    mounted = {"df./home/u/.cache/flashinfer": {"size_bytes": 1 << 40, "avail_bytes": 1 << 39}, "mount./home/u/.cache/flashinfer": "rw,noexec"}  # fmt: skip
    assert causes(of(mounted)) == ["cache-dir-unusable"]
    full = {"df./home/u/.cache/flashinfer": {"size_bytes": 1 << 40, "avail_bytes": 1 << 20}}
    assert causes(of(full)) == ["disk-full"]
    assert [each.cause for each in host.caches(Facts()) if isinstance(each, Problem)] == []


def test_packages_that_do_not_belong_together() -> None:
    found = of({"packages.sglang": "0.5.15", "packages.flashinfer-python": "0.6.3", "packages.flashinfer-cubin": "0.6.12"})  # fmt: skip
    assert causes(found).count("package-conflict") >= 2
    assert any("flashinfer-python is 0.6.3 and flashinfer-cubin 0.6.12" in each.title for each in found.problems)
    vision = of({"packages.torch": "2.8.0", "packages.torchvision": "0.22.1"})
    assert "torchvision 0.22.1 does not belong to torch 2.8.0" in problem(vision, "package-conflict").title


def test_an_engine_that_no_table_has_is_no_pass() -> None:
    assert "vllm 99.0.0" in open_questions(of({"packages.vllm": "99.0.0", "packages.torch": "2.8.0"}))


@pytest.mark.parametrize("key", ["gpus", "toolkits", "shm_bytes", "pci_gpus", "memlock", "net_interfaces", "gcc"])
@pytest.mark.parametrize("value", [5, "x", {"a": 1}, [[]], [None], -1, "9" * 5000])
def test_facts_of_any_shape_are_no_crash(key: str, value: object) -> None:
    base = {"cc": "9.0", "packages.flashinfer-python": "0.6.12", "cuda_toolkit": "12.8", key: value}
    found = of({k: v for k, v in base.items() if not (key == "gpus" and k == "cc")})
    assert found.where == "test"


def test_a_version_that_is_a_sentence_is_no_other_version() -> None:
    found = of({"packages.torch": "2.6.0+cu126", "packages.xformers": "built for PyTorch 2.6.0+cu124"})
    assert causes(found) == []
    assert "is no version" in open_questions(found)
