"""library-missing: a library of the system, with the distribution's package."""

from __future__ import annotations

import pytest
from tests.causes.packages.texts import SITE, Find, Judge, names, remedies, ruled_out, traceback

from gpuwhy.model.finding import Certainty

CAUSE = "library-missing"
NUMA = "ImportError: libnuma.so.1: cannot open shared object file: No such file or directory\n[sgl_kernel] CRITICAL: Could not load any common_ops library!\n"


@pytest.mark.parametrize(("text", "package", "component"), [
    (NUMA, "libnuma1", "sgl-kernel"),
    (traceback("ImportError: libmpi.so.40: cannot open shared object file: No such file or directory", (f"{SITE}/tensorrt_llm/__init__.py", "<module>", "from mpi4py import MPI")), "libopenmpi-dev", "tensorrt-llm"),
    ("/app/llama-server: error while loading shared libraries: libgomp.so.1: cannot open shared object file: No such file or directory\n", "libgomp1", "llama.cpp"),
    ("OSError: libavutil.so.59: cannot open shared object file: No such file or directory\n  [end of libtorchcodec loading traceback].\n", "ffmpeg", "torchcodec"),
    (traceback("ImportError: libGL.so.1: cannot open shared object file: No such file or directory", (f"{SITE}/cv2/__init__.py", "<module>", "native_module = importlib.import_module('cv2')")), "libgl1", "opencv-python"),
    (traceback("OSError: sndfile library not found", (f"{SITE}/soundfile.py", "<module>", "_snd = _ffi.dlopen(_libname)")), "libsndfile1", "soundfile"),
])  # fmt: skip
def test_the_distributions_package_is_named(
    judge_report: Judge, finding: Find, text: str, package: str, component: str
) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert found.component == component
    assert remedies(found)[0] == ("system-package", package, "")


def test_an_unknown_library_is_likely(judge_report: Judge, finding: Find) -> None:
    found = finding(
        judge_report("ImportError: libfrobnicate.so.3: cannot open shared object file: No such file or directory\n"),
        CAUSE,
    )
    assert found.certainty is Certainty.LIKELY
    assert "apt-file search" in found.remedies[0].commands[0]


def test_a_part_of_a_project_is_looked_for_and_stays_open(judge_report: Judge, finding: Find) -> None:
    found = finding(
        judge_report(
            "./llama-cli: error while loading shared libraries: libggml-base.so: cannot open shared object file: No such file or directory\n"
        ),
        CAUSE,
    )
    assert found.certainty is Certainty.POSSIBLE
    assert found.component == "llama.cpp"
    assert "env.LD_LIBRARY_PATH" in [missing.key for missing in found.missing]


def test_reinstalling_the_wheel_is_told_to_be_vain(judge_report: Judge, finding: Find) -> None:
    assert any("reinstalling" in each.what for each in finding(judge_report(NUMA), CAUSE).not_remedies)


def test_a_library_that_is_there_rules_it_out(judge_report: Judge) -> None:
    judgement = judge_report(NUMA, {"files./usr/lib/x86_64-linux-gnu/libnuma.so.1": "47472 bytes"})
    assert CAUSE in ruled_out(judgement)


@pytest.mark.parametrize("text", [
    "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n",
    "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory\n",
    "OSError: libnvidia-ml.so.1: cannot open shared object file: No such file or directory\n",
    "/usr/bin/ld: cannot find -lcuda: No such file or directory\n",
    "NCCL INFO NET/Plugin: Failed to find ncclNetPlugin symbol; libnccl-net.so: cannot open shared object file: No such file or directory\n",
    f"ImportError: {SITE}/x/_C.so: undefined symbol: _ZN3c105ErrorC1Ei\n",
])  # fmt: skip
def test_near_misses_are_others(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_the_part_that_is_imported_is_the_one_that_does_not_load(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "ImportError: libibverbs.so.1: cannot open shared object file: No such file or directory",
        (
            f"{SITE}/sglang/srt/disaggregation/mooncake/transfer_engine.py",
            "__init__",
            "from mooncake.engine import TransferEngine",
        ),
    )
    assert finding(judge_report(text), CAUSE).component == "mooncake"


def test_an_optional_library_beside_another_crash_is_only_possible(judge_report: Judge, finding: Find) -> None:
    text = "WARNING: libGL.so.1: cannot open shared object file: No such file or directory\nOSError: [Errno 98] Address already in use\n"
    assert finding(judge_report(text), CAUSE).certainty is Certainty.POSSIBLE


def test_windows_does_not_name_the_library(judge_report: Judge, finding: Find) -> None:
    text = 'OSError: [WinError 126] The specified module could not be found. Error loading "C:\\app\\Lib\\site-packages\\torch\\lib\\fbgemm.dll" or one of its dependencies.\n'
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert found.component == "torch"
    assert ("system-package", "vc-redist", "") in remedies(found)


def test_windows_names_the_library_that_does_not_load(judge_report: Judge, finding: Find) -> None:
    text = "FileNotFoundError: Could not find module 'C:\\venv\\Lib\\site-packages\\llama_cpp\\lib\\llama.dll' (or one of its dependencies). Try using the full path with constructor syntax.\n"
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.certainty) == ("llama-cpp-python", Certainty.POSSIBLE)
    assert "cuda-major-mismatch" in found.rivals


def test_a_library_of_windows_that_does_not_start(judge_report: Judge, finding: Find) -> None:
    text = 'OSError: [WinError 1114] A dynamic link library (DLL) initialization routine failed. Error loading "C:\\venv\\lib\\site-packages\\torch\\lib\\c10.dll" or one of its dependencies.\n'
    assert finding(judge_report(text), "library-missing").component == "torch"
