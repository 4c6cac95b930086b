"""Files, folders, wheels and environments: what is found, and the verdict of each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.binaries.test_wheel import make_wheel
from tests.binaries.truth import HERE
from tests.binaries.writing import PTX, Part, container, elf, entry, library

from gpuwhy.investigate.binaries import Question, has_failing, inspect_binaries, inspect_requirements
from gpuwhy.investigate.binary_files import binaries_under, site_packages
from gpuwhy.knowledge.capability import parse
from gpuwhy.model.inspection import InspectedFile, Outcome


def judged(path: Path, capability: str, driver: str = "", kernel: str = "") -> InspectedFile:
    (file,) = inspect_binaries([path], Question(parse(capability), driver=driver, kernel=kernel)).files
    return file


def made(tmp_path: Path, *containers: bytes, needed: tuple[str, ...] = ("libcudart.so.12",)) -> Path:
    path = tmp_path / "lib.so"
    path.write_bytes(library(needed, extra=(Part(".nv_fatbin", b"".join(containers)),)))
    return path


def test_each_container_counts_by_itself_never_the_union(tmp_path: Path) -> None:
    path = made(tmp_path, container(entry(arch=80)), container(entry(arch=80)), container(entry(arch=120)))
    verdict = judged(path, "12.0").verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.runs, verdict.native, verdict.none) == (Outcome.NATIVE, True, 1, 2)


def test_a_file_without_any_fitting_container_cannot_run(tmp_path: Path) -> None:
    inspection = inspect_binaries(
        [made(tmp_path, container(entry(arch=80)), container(entry(arch=90)))], Question(parse("12.0"))
    )
    verdict = inspection.files[0].verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.runs, verdict.none, verdict.containers) == (Outcome.NONE, False, 2, 2)
    assert verdict.why.startswith("none of 2 containers has an image for 12.0")
    assert has_failing(inspection)


def test_ptx_that_is_too_new_for_the_driver_is_blocked_and_said_so(tmp_path: Path) -> None:
    path = made(tmp_path, container(entry(arch=80), entry(PTX, 80, version=(8, 8))))
    blocked, compiled = judged(path, "12.0", "570.86").verdict, judged(path, "12.0", "575.51.03").verdict
    assert blocked is not None
    assert compiled is not None
    assert (blocked.outcome, blocked.runs, blocked.jit_blocked) == (Outcome.JIT_BLOCKED, False, 1)
    assert "570.86 compiles up to 8.7" in blocked.why
    assert (compiled.outcome, compiled.runs, compiled.jit) == (Outcome.JIT, True, 1)


def test_a_runtime_newer_than_the_driver_starts_nothing(tmp_path: Path) -> None:
    verdict = judged(made(tmp_path, container(entry(arch=120)), needed=("libcudart.so.13",)), "12.0", "570.86").verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.runs, verdict.native) == (Outcome.DRIVER_TOO_OLD, False, 1)


def test_a_file_that_was_cut_is_unknown_never_unable(tmp_path: Path) -> None:
    path = made(tmp_path, container(entry(arch=80, payload=bytes(4000))), container(entry(arch=120)))
    path.write_bytes(path.read_bytes()[:3000])
    file = judged(path, "12.0")
    assert not file.complete
    assert file.verdict is not None
    assert (file.verdict.outcome, file.verdict.runs) == (Outcome.UNKNOWN, None)


def test_a_library_without_device_code_is_neither(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(library(("libc.so.6",)))
    verdict = judged(path, "12.0").verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.runs, verdict.containers) == (Outcome.NO_DEVICE_CODE, None, 0)


def test_hidden_code_is_told_and_does_not_decide(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(
        library(
            extra=(Part(".nv_fatbin", container(entry(arch=80))), Part(".cask_resource", container(entry(arch=120))))
        )
    )
    file = judged(path, "12.0")
    assert (file.containers, file.hidden_containers, file.hidden_architectures) == (1, 1, ("sm_120",))
    assert file.architectures == ("sm_80",)
    assert file.verdict is not None
    assert file.verdict.runs is False


def test_an_object_counts_its_relocatable_code() -> None:
    file = judged(HERE / "k3.o", "9.0")
    assert (file.containers, file.relocatable_containers) == (1, 1)
    assert file.verdict is not None
    assert file.verdict.outcome is Outcome.NATIVE


def test_the_real_library_of_a_test_build() -> None:
    (file,) = inspect_binaries([HERE / "libk.so"], Question(details=True)).files
    assert file.architectures == ("sm_80", "sm_90a", "sm_120f", "compute_80")
    assert file.containers == 2
    assert file.needed[0] == "libcudart.so.13"
    assert (file.toolkit, file.toolkit_shown_by) == ("13.5", "named in a cubin")
    assert file.newest_versions["GLIBC"]
    assert sum(each.count for each in file.container_sets) == 2
    assert {image.architecture: image.versions for image in file.images}["compute_80"] == ("9.5",)


def test_a_kernel_is_found_with_the_container_that_it_is_in() -> None:
    file = judged(HERE / "libk.so", "12.1", kernel="k2")
    (kernel,) = file.kernels
    assert kernel.name == "_Z2k2Pf"
    assert kernel.taken == "sm_120f"
    data = (HERE / "libk.so").read_bytes()
    assert data[kernel.offset : kernel.offset + 4] == b"\x50\xed\x55\xba"
    assert judged(HERE / "libk.so", "12.1", kernel="nothing_like_it").kernels == ()


def test_the_exit_of_a_kernel_search_is_that_of_the_kernel() -> None:
    question = Question(parse("10.0"), kernel="k2")
    found = inspect_binaries([HERE / "libk.so"], question)
    assert found.files[0].kernels[0].outcome is Outcome.JIT
    assert not has_failing(found)
    old = Question(parse("10.0"), driver="570.86", kernel="k2")
    assert has_failing(inspect_binaries([HERE / "libk.so"], old))


def test_a_kernel_in_an_archive_is_at_its_place_in_the_archive() -> None:
    (kernel,) = judged(HERE / "libk.a", "8.0", kernel="k2").kernels
    assert (HERE / "libk.a").read_bytes()[kernel.offset : kernel.offset + 4] == b"\x50\xed\x55\xba"


def test_the_cubins_of_a_folder_are_one_line(tmp_path: Path) -> None:
    for path in HERE.glob("*.cubin"):
        shutil.copy(path, tmp_path)
    (tmp_path / "readme.cubin").write_bytes(bytes(range(100)))
    (tmp_path / "libscript.so").write_text("INPUT(libc.so.6)\n")
    files = inspect_binaries([tmp_path], Question(parse("12.0"))).files
    folder = next(file for file in files if file.kind == "folder of cubins")
    assert folder.members == len(list(HERE.glob("*.cubin")))
    assert folder.verdict is not None
    assert folder.verdict.runs
    assert [file.path.endswith("readme.cubin") for file in files if file is not folder] == [True]


def test_a_wheel_is_read_with_its_requirements(tmp_path: Path) -> None:
    path = make_wheel(
        tmp_path / "pack-1.2.whl",
        {
            "pack/libk.so": (HERE / "libk.so").read_bytes(),
            "pack/a.cubin": (HERE / "ptxas129_sm_90a.cubin").read_bytes(),
        },
    )
    inspection = inspect_binaries([path], Question(parse("9.0")))
    assert [(file.path, file.within, file.members) for file in inspection.files] == [
        ("pack/libk.so", str(path), 1),
        ("pack", str(path), 1),
    ]
    assert inspection.wheels[0].requires == ("torch==2.8.0", "numpy")
    only = inspect_requirements([path], Question())
    assert only.files == ()
    assert only.wheels == inspection.wheels


def test_what_cannot_be_read_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "bad.whl").write_bytes(b"PK\x03\x04")
    shutil.copy(HERE / "libk.so", tmp_path)
    inspection = inspect_binaries([tmp_path], Question())
    assert [Path(file.path).name for file in inspection.files] == ["libk.so"]
    assert len(inspection.unreadable) == 1


def test_a_folder_is_walked_without_following_links(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.12" / "site-packages"
    (packages / "pack" / "lib").mkdir(parents=True)
    shutil.copy(HERE / "libk.so", packages / "pack" / "lib" / "libk.so.1")
    (packages / "pack" / "lib" / "libk.so").symlink_to("libk.so.1")
    (packages / "pack" / "loop").symlink_to(packages)
    (packages / "pack" / "module.py").write_text("pass")
    (packages / "pack" / "tool").write_bytes(elf(Part(".text", b"\xc3"), kind=2))
    (packages / "pack" / "tool").chmod(0o755)
    (packages / "pack" / "notes").write_text("text")
    (packages / "pack" / "gone.so").symlink_to("nowhere")
    assert site_packages(tmp_path) == (packages.resolve(),)
    assert [path.name for path in binaries_under(packages)] == ["tool", "libk.so.1"]
    files = inspect_binaries([packages], Question()).files
    assert [Path(file.path).name for file in files] == ["tool", "libk.so.1"]


def test_a_link_to_a_file_elsewhere_is_read(tmp_path: Path) -> None:
    (tmp_path / "libk.so").symlink_to(HERE / "libk.so")
    assert [path.name for path in binaries_under(tmp_path)] == ["libk.so"]


@pytest.mark.parametrize("name", ["site-packages", "dist-packages"])
def test_a_folder_of_packages_is_an_environment(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert site_packages(tmp_path / name) == (tmp_path / name,)
    assert site_packages(tmp_path) == ()
