"""The table of what stands behind an Xid."""

from __future__ import annotations

import pytest

from gpuwhy.causes import catalogue
from gpuwhy.knowledge import xid_origins as origins
from gpuwhy.logs.echoes import ECHO_XIDS
from gpuwhy.logs.recognisers.xids import XIDS


@pytest.mark.parametrize(
    ("number", "part"),
    [(79, "gpu-lost"), (74, "nvlink-fault"), (149, "nvlink-fault"), (48, "ecc"), (64, "ecc"), (94, "ecc"), (119, "gpu-xid-other"), (62, "gpu-xid-other")],
)  # fmt: skip
def test_a_number_belongs_to_one_part(number: int, part: str) -> None:
    assert origins.origin_of_xid(number).part == part


def test_what_programs_raise_is_not_the_hardwares() -> None:
    assert {n for n, o in origins.XID_ORIGINS.items() if o.part == origins.PROGRAM} == {13, 31, 43}


def test_echoes_are_those_that_the_log_reader_knows() -> None:
    assert {n for n, o in origins.XID_ORIGINS.items() if o.part == origins.ECHO} == set(ECHO_XIDS)


def test_an_unknown_number_is_another_fault_of_the_gpu() -> None:
    assert origins.origin_of_xid(9999).part == "gpu-xid-other"


def test_every_part_is_a_cause_of_the_catalogue() -> None:
    parts = {o.part for o in origins.XID_ORIGINS.values()} - {origins.PROGRAM, origins.ECHO}
    assert parts <= set(catalogue())


def test_numbers_whose_meaning_names_links_or_ecc_agree_with_the_table() -> None:
    for number, meaning in XIDS.items():
        if "NVLink" in meaning and number in origins.XID_ORIGINS:
            assert origins.XID_ORIGINS[number].part == "nvlink-fault", number
        if "ECC error" in meaning and number in origins.XID_ORIGINS:
            assert origins.XID_ORIGINS[number].part == "ecc", number


def test_a_repaired_packet_harms_nobody() -> None:
    assert origins.is_harmless_sxid(20001, "Non-fatal")
    assert not origins.is_harmless_sxid(20034, "Fatal")
