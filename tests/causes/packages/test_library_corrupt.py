"""library-corrupt: what the loader says of a damaged file, and a bus error right after a library was named."""

from __future__ import annotations

import pytest
from tests.causes.packages.texts import SITE, Find, Judge, names, remedies, ruled_out

from gpuwhy.model.finding import Certainty

CAUSE = "library-corrupt"
LIBRARY = "/opt/user/.config/vllm/nccl/cu12/libnccl.so.2.18.1"
# a library that was cut off behind its headers loads without complaint, and ends the process like this
BUS = f"INFO 04-15 10:21:07 pynccl.py:58] Loading nccl from library {LIBRARY}\nBus error (core dumped)\n"


@pytest.mark.parametrize(("text", "component"), [
    (f"ImportError: {SITE}/torch/lib/libtorch_cuda.so: file too short\n", "torch"),
    (f"ImportError: {SITE}/vllm/_C.abi3.so: ELF load command past end of file\n", "vllm"),
    ("docker: failed to register layer: exit status 1: unexpected EOF.\n", "container-image"),
])  # fmt: skip
def test_the_loader_or_the_engine_of_containers_says_it(
    judge_report: Judge, finding: Find, text: str, component: str
) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert found.component == component


def test_a_file_that_is_no_library_may_be_a_pointer_or_a_script(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(f"OSError: {SITE}/deep_ep/libx.so: invalid ELF header\n"), CAUSE)
    assert found.certainty is Certainty.LIKELY


def test_the_package_is_installed_again_without_the_cache(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(f"ImportError: {SITE}/torch/lib/libtorch_cuda.so: file too short\n"), CAUSE)
    assert remedies(found)[0] == ("package", "torch", "reinstall")
    assert "--no-cache-dir" in found.remedies[0].commands[0]


def test_a_bus_error_after_a_library_asks_for_the_file_and_shared_memory(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(BUS), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert found.component == "nccl"
    assert LIBRARY in found.evidence[0].quote
    assert {f"files.{LIBRARY}", "df./dev/shm"} == {missing.key for missing in found.missing}
    assert found.rivals == ("shm-too-small",)


def test_the_file_decides(judge_report: Judge, finding: Find) -> None:
    cut = judge_report(BUS, {f"files.{LIBRARY}": "truncated (smaller than the published file)"})
    assert finding(cut, CAUSE).certainty is Certainty.PROVEN
    assert ("env", "VLLM_NCCL_SO_PATH", "libnccl.so.2 of nvidia-nccl-cu12") in remedies(finding(cut, CAUSE))
    assert ("files", "libnccl.so.2.18.1", "delete and install again") in remedies(finding(cut, CAUSE))
    assert CAUSE in ruled_out(judge_report(BUS, {f"files.{LIBRARY}": "intact"}))


@pytest.mark.parametrize("text", [
    "RuntimeError: DataLoader worker (pid 12) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.\n",
    "Bus error (core dumped)\n",
    "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer\n",
    "ImportError: /opt/user/.cache/flashinfer/x.so: failed to map segment from shared object\n",
    "ImportError: libnuma.so.1: cannot open shared object file: No such file or directory\n",
])  # fmt: skip
def test_near_misses_are_others(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_windows_names_the_library_behind_its_message(judge_report: Judge, finding: Find) -> None:
    text = 'OSError: [WinError 193] %1 is not a valid Win32 application. Error loading "C:\\AI\\venv\\lib\\site-packages\\torch\\lib\\cublas64_12.dll" or one of its dependencies.\n'
    found = finding(judge_report(text), CAUSE)
    assert found.component == "torch"
    assert found.certainty is not Certainty.PROVEN
