"""Names of nodes in a line."""

from __future__ import annotations

from gpuwhy.reports.fleet_names import folded


def test_ranges_are_written_as_schedulers_do() -> None:
    assert folded(f"gpu{n:03d}" for n in range(1, 65)) == "gpu[001-064]"
    assert folded(["gpu001", "gpu002", "gpu007", "head"]) == "head, gpu[001-002,007]"
    assert folded(["gpu099", "gpu100", "gpu101"]) == "gpu[099-101]"
    assert folded(["gpu9", "gpu10"]) == "gpu10, gpu9"
    assert folded(["rack1-gpu2.east", "rack1-gpu3.east"]) == "rack1-gpu[2-3].east"
    assert folded(["gpu017"]) == "gpu017"


def test_names_without_an_order_are_counted_after_the_first_ones() -> None:
    assert folded([f"node{chr(97 + n)}" for n in range(5)], most=2) == "nodea, nodeb and 3 more"
    assert folded([f"gpu{2 * n:03d}" for n in range(6)], most=2) == "gpu[000,002] and 4 more"


def test_brackets_in_a_name_are_left_alone() -> None:
    assert folded(["gpu[1]", "gpu[2]"]) == "gpu[1], gpu[2]"
