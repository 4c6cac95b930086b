"""The report of an inspection: a line for each file, details on request, and the schema of its JSON."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from scripts.make_schema import INSPECT_SCHEMA_FILE, inspect_schema_text

from gpuwhy.model.inspection import (
    ContainerSet,
    CudaUse,
    InspectedFile,
    Inspection,
    Kernel,
    Outcome,
    TorchUse,
    Verdict,
    WheelSummary,
)
from gpuwhy.reports import binaries, binaries_json

SETS = (
    ContainerSet(
        ".nv_fatbin",
        "registered",
        2,
        ("sm_80", "compute_80"),
        0x40,
        outcome=Outcome.JIT,
        taken="compute_80",
        why="compiled",
    ),
    ContainerSet(
        ".cask_resource", "resource", 1, ("sm_120",), 0x900, outcome=Outcome.NATIVE, taken="sm_120", why="its own"
    ),
)


def verdict(outcome: Outcome, runs: bool | None, native: int = 0, jit: int = 0, none: int = 0) -> Verdict:
    return Verdict(outcome, runs, native + jit + none, native, jit, 0, none, 0, "because")


def file(path: str = "/env/pack/_C.so", **fields: Any) -> InspectedFile:
    given: dict[str, Any] = {
        "kind": "shared library",
        "machine": "x86_64",
        "containers": 2,
        "container_sets": SETS,
        "architectures": ("sm_80", "compute_80"),
    }
    return InspectedFile(path=path, **{**given, **fields})


def inspection(*files: InspectedFile, **fields: Any) -> Inspection:
    return Inspection(files, **fields)


def test_names_without_the_folder_that_all_share_in_columns() -> None:
    text = binaries.render(
        inspection(
            file("/env/pack/_C.so", cuda=CudaUse("libcudart.so.12"), verdict=verdict(Outcome.JIT, True, jit=2)),
            file(
                "/env/pack/lib/long_name.so",
                cuda=CudaUse("", True, "12.9"),
                verdict=verdict(Outcome.NONE, False, none=2),
            ),
            file("/env/pack/c10.so", containers=0, container_sets=(), architectures=()),
            compute_capability="12.0",
            driver="580.65",
        )
    )
    assert text == (
        "for compute capability 12.0, driver 580.65\n"
        "_C.so             2  libcudart.so.12     runs, compiled from PTX (2 PTX)  sm_80 compute_80\n"
        "lib/long_name.so  2  cudart 12.9 inside  CANNOT RUN: no kernel image (2 none)  sm_80 compute_80\n"
        "1 more file without device code (-v lists them)\n"
        "1 of 2 files with device code cannot run there\n"
    )


def test_details_say_what_a_file_needs_and_how_its_code_is_grouped() -> None:
    text = binaries.render(
        inspection(
            file(
                needed=("libtorch.so", "libc.so.6"),
                runpath=("$ORIGIN",),
                newest_versions={"GLIBC": "2.34"},
                torch=TorchUse("release", 64, 0, "old", "_ZN3c10"),
                cuda=CudaUse(undefined=3),
                toolkit="12.8",
                toolkit_shown_by="PTX 8.7",
                unsearched=(".rodata",),
                verdict=verdict(Outcome.JIT, True, jit=2),
            )
        ),
        verbose=True,
    )
    for line in (
        "verdict: because",
        "made by CUDA 12.8 (PTX 8.7)",
        "2 in .nv_fatbin from 0x40: sm_80 compute_80: jit by compute_80",
        "1 resource in .cask_resource from 0x900: sm_120: native by sm_120",
        "needs libtorch.so libc.so.6",
        "RUNPATH $ORIGIN",
        "needs at least GLIBC 2.34",
        "tied to one torch release: 64 symbols of its C++ classes, old string ABI",
        "3 symbols of the CUDA runtime, and no libcudart among what it needs",
        ".rodata was not searched for bare cubins: it is large; --deep does",
    ):
        assert f"    {line}\n" in text


def test_what_is_incomplete_or_for_others_is_said() -> None:
    text = binaries.render(
        inspection(
            file("a.so", complete=False, problems=("cut",)),
            file("b.so", containers=0, container_sets=(), architectures=(), other_gpus=("ROCm gfx90a",)),
            unreadable=("c.so: Permission denied",),
        )
    )
    assert "    incomplete: cut\n" in text
    assert "code for ROCm gfx90a" in text
    assert "cannot be read: c.so: Permission denied" in text


def test_only_files_with_the_kernel_are_shown() -> None:
    kernel = Kernel("_Z4sum", ".nv_fatbin", 0x40, ("sm_80",), Outcome.NONE, "", "no image")
    text = binaries.render(
        inspection(file("a.so", kernels=(kernel,)), file("b.so"), kernel="sum", compute_capability="12.0")
    )
    assert "b.so" not in text
    assert "    _Z4sum\n      .nv_fatbin 0x40: sm_80: none, no image\n" in text
    assert text.endswith("1 kernels with sum in their name\n")


def test_nothing_hostile_reaches_the_terminal() -> None:
    hostile = file("a\x1b[2J\u202e.so", needed=("lib\nc\x07.so",), problems=("\x9b31m",), complete=False)
    wheel = WheelSummary("w\r.whl", "n\x1b", "1", ("r\x00",), "", (), 1, 1)
    for verbose in (False, True):
        text = binaries.render(inspection(hostile, wheels=(wheel,), unreadable=("u\x1b",)), verbose)
        assert not any(character in text for character in "\x1b\x07\r\x00\x9b\u202e")


def test_the_published_schema_is_that_of_the_types() -> None:
    assert INSPECT_SCHEMA_FILE.read_text() == inspect_schema_text(), "run `make schema`"


def test_json_validates_and_holds_paths_that_are_no_utf8() -> None:
    published = json.loads(INSPECT_SCHEMA_FILE.read_text())
    text = binaries_json.render(
        inspection(file("odd\udcff.so", verdict=verdict(Outcome.NATIVE, True, native=2)), kernel="k")
    )
    document = json.loads(text)
    jsonschema.Draft202012Validator(published).validate(document)
    assert document["files"][0]["path"] == "odd\\udcff.so"
    assert {"files", "wheels", "unreadable"} <= set(published["$defs"]["InspectDocument"]["required"])
