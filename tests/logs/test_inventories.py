"""Rows of inventories are told from lines that say that something went wrong. Whole ones are in ``data/logs/inventories``."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.investigate import diagnose_log
from gpuwhy.logs.inventories import is_row

DATA = Path(__file__).parents[1] / "data" / "logs"
INVENTORIES = [*sorted((DATA / "inventories").glob("*.txt")), *sorted((DATA / "dumps").glob("*collect_env*.txt"))]
ROWS = """\
[conda] Could not collect
cuDNN version: Could not collect
ROCM Version                 : Could not collect
CUDA runtime version: Could not collect
GCC version: N/A
flashinfer_cubin: Module Not Found
NVCC: Not Available
flashinfer           : <import failed: ModuleNotFoundError: No module named 'flashinfer'>
        DRAM Uncorrectable                         : 0
        Double Bit ECC                             : N/A
        Remapping Failure Occurred                 : No
max locked memory           (kbytes, -l) unlimited
open files                          (-n) 1024
Max locked memory         8388608              8388608              bytes
ii  liberror-perl            0.17029-2          all          Perl module for error/exception handling
liberror-perl/stable,now 0.17029-2 all [installed,automatic]
cuda-error-helper         1.0                 0    conda-forge
[pip3] exceptiongroup==1.2.2
error-report @ file:///srv/wheels/error_report-1.0-py3-none-any.whl
3f1b7c0a1b2c   errors:v1   "serve --fail"   2 hours ago   Up 2 hours (healthy)   0.0.0.0:8000->8000/tcp   failed
""".splitlines()
FAILURES = """\
RuntimeError: Could not collect the results
ModuleNotFoundError: No module named 'flashinfer'
flashinfer           : <import failed: ImportError: libcudart.so.12: cannot open shared object file>
        DRAM Uncorrectable                         : 2
        Remapping Failure Occurred                 : Yes
Unable to determine the device handle for GPU0000:41:00.0: Unknown Error
NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.
max locked memory is too low
9f1b7c0a1b2e   vllm:v1   "serve"   3 hours ago   Exited (137) 2 hours ago   vllm
torch 2.9.1 requires triton==3.5.1, but you have triton 3.4.0 which is incompatible.
ERROR: No matching distribution found for flashinfer==9.9
""".splitlines()


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_an_inventory_is_none(row: str) -> None:
    assert is_row(row)


@pytest.mark.parametrize("line", FAILURES)
def test_a_line_that_tells_of_a_failure_is_no_row(line: str) -> None:
    assert not is_row(line)


@pytest.mark.parametrize(
    "text", ["a" * 600, "a-" * 300, "0" * 12 + " a " + '"' * 500, "1 a  " * 110, "Max " + "a " * 290]
)
def test_a_hostile_line_takes_no_time(text: str) -> None:
    for _ in range(100):
        assert not is_row(text)


@pytest.mark.parametrize("path", INVENTORIES, ids=lambda path: path.stem)
def test_a_whole_inventory_is_no_failure(path: Path) -> None:
    diagnosis = diagnose_log(path.read_bytes(), path.name)
    assert diagnosis.incident.primary_event is None
    assert [(finding.cause, finding.evidence[0].quote) for finding in diagnosis.findings] == []
    assert diagnosis.facts or path.stem == "docker-ps"


def test_an_inventory_is_no_failure_and_worth_a_check() -> None:
    path = DATA / "inventories" / "collect-env.txt"
    diagnosis = diagnose_log(path.read_bytes(), str(path))
    assert not diagnosis.incident.is_failure
    assert {fact.key: fact.value for fact in diagnosis.facts}["driver"] == "575.57.08"
    assert [f"`gpuwhy check {path}`" in note for note in diagnosis.notes] == [True]


def test_a_failure_below_an_inventory_is_one() -> None:
    inventory = (DATA / "inventories" / "nvidia-smi-query.txt").read_text()
    diagnosis = diagnose_log((inventory + "RuntimeError: CUDA error: an illegal memory access was encountered\n").encode(), "x")  # fmt: skip
    assert diagnosis.incident.is_failure
    assert not [note for note in diagnosis.notes if "gpuwhy check" in note]


def test_an_error_that_the_gpu_counted_is_found_in_its_inventory() -> None:
    inventory = (DATA / "inventories" / "nvidia-smi-query.txt").read_text()
    counted = inventory.replace("DRAM Uncorrectable                         : 0", "DRAM Uncorrectable                         : 2")  # fmt: skip
    assert counted != inventory
    diagnosis = diagnose_log(counted.encode(), "x")
    assert {finding.cause for finding in diagnosis.findings} == {"ecc"}
