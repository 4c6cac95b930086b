"""Smallest intervention first."""

from __future__ import annotations

from gpuwhy.model.remedy import KINDS, Remedy
from gpuwhy.remedies import order


def remedy(kind: str, name: str, rank: int = 0) -> Remedy:
    return Remedy(kind=kind, name=name, summary="", rank=rank)


def test_kinds_come_in_the_order_of_their_size() -> None:
    shuffled = [remedy(kind, kind) for kind in reversed(KINDS)]
    assert tuple(r.kind for r in order(shuffled)) == KINDS


def test_within_a_kind_the_one_that_cures_more_comes_first() -> None:
    ordered = order([remedy("env", "LATER", 20), remedy("env", "FIRST", 0), remedy("env", "NEXT", 10)])
    assert [r.name for r in ordered] == ["FIRST", "NEXT", "LATER"]


def test_another_image_is_installed_like_a_package_and_a_new_container_only_started() -> None:
    ordered = order([remedy("container", "image"), remedy("package", "torch"), remedy("container", "restart"), remedy("files", "libcuda.so")])  # fmt: skip
    assert [r.name for r in ordered] == ["restart", "torch", "image", "libcuda.so"]


def test_equal_remedies_keep_their_causes_order_and_unknown_kinds_come_last() -> None:
    ordered = order([remedy("prayer", "P"), remedy("flag", "--b"), remedy("flag", "--a")])
    assert [r.name for r in ordered] == ["--b", "--a", "P"]


def test_a_module_is_loaded_again_before_the_machine_is_rebooted() -> None:
    reload = Remedy(kind="kernel", name="nvidia_uvm", value="reload", summary="")
    ordered = order([remedy("service", "host"), remedy("kernel", "intel_iommu"), reload, remedy("env", "E")])
    assert [r.name for r in ordered] == ["E", "nvidia_uvm", "host", "intel_iommu"]
