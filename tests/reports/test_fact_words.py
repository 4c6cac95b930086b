"""The values of facts in words: no reader has to know how Python writes a record."""

from __future__ import annotations

import msgspec
import pytest

from gpuwhy import api
from gpuwhy.model.host import Gpu
from gpuwhy.reports import Detail, render
from gpuwhy.reports.counting import counted
from gpuwhy.reports.fact_words import said, value_words
from gpuwhy.reports.reading import read_answer

H100 = Gpu(index=0, name="NVIDIA H100 80GB HBM3", compute_capability="9.0", memory=85_520_809_984)


def test_a_gpu_reads_as_a_person_writes_it() -> None:
    assert value_words([H100]) == "0: NVIDIA H100 80GB HBM3 (9.0), 79.6 GiB"
    assert value_words([msgspec.to_builtins(H100)]) == value_words([H100])


def test_what_is_not_there_is_said_by_what_it_is() -> None:
    assert said("env.CUDA_HOME", None) == "not set"
    assert said("cuda_toolkit", None) == "not there"
    assert said("env.CUDA_VISIBLE_DEVICES", "") == "(empty)"
    assert said("jit_targets", []) == "none"


def test_other_values_are_one_line() -> None:
    assert said("nvswitch", True) == "yes"
    assert said("df./data", {"size_bytes": 10, "avail_bytes": 4, "note": ""}) == "size_bytes 10, avail_bytes 4"
    assert said("gpus", [{"compute_capability": 9, "index": "x"}]) == "compute_capability 9, index x"


@pytest.mark.parametrize("form", ["text", "markdown", "html", "junit", "oneline"])
def test_no_report_shows_a_record_as_python_writes_it(form: str) -> None:
    found = api.check(gpus=["RTX 5090", "2 x H100"], packages=["torch==2.6.0+cu124"])
    shown = render(found, form, Detail(verbose=True, is_private=True))
    assert "Gpu(" not in shown
    assert "compute_capability=" not in shown
    saved = read_answer(render(found, "json").encode(), "check.json")
    assert "Gpu(" not in render(saved, form, Detail(verbose=True))


def test_a_fact_stands_once_in_the_table_of_an_issue() -> None:
    found = api.check(gpus=["RTX 5090"], packages=["torch==2.6.0+cu124"])
    shown = render(found, "markdown")
    assert shown.count("| `torch` | `2.6.0+cu124` |") == 1
    assert "| `gpus` | `0: NVIDIA GeForce RTX 5090 (12.0)` |" in shown


def test_one_of_a_thing_is_not_several() -> None:
    assert (counted(1, "check"), counted(2, "file"), counted(1024, "node")) == ("1 check", "2 files", "1,024 nodes")
    found = api.check(gpus=["RTX 5090"], packages=["torch==2.6.0+cu124"])
    assert "1 check in order, 1 could not be made" in render(found, "text")
