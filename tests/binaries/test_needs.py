"""What would come of loading a file: against real libraries, and against the real linker where it can be asked."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.binaries import linking, writing

from gpuwhy.binaries.ld_cache import read_ld_cache
from gpuwhy.binaries.linker import Surroundings
from gpuwhy.binaries.needs import Loading, explain_loading


def explained(path: Path, library_path: str = "", program: str = "") -> Loading:
    return explain_loading(str(path), Surroundings(library_path, program=program, cache=read_ld_cache()))


def how(loading: Loading, name: str) -> str:
    return next(row.how for row in loading.libraries if row.name == name)


def test_a_program_of_the_system_finds_what_the_linker_finds() -> None:
    program = Path("/bin/bash")
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    wanted = dict(re.findall(r"(\S+) => (/\S+)", said))
    loading = explained(program)
    assert {row.name: row.path for row in loading.libraries if row.name in wanted} == wanted
    assert loading.is_every_library_found
    assert loading.undefined == ()
    assert loading.too_old == ()


def test_programs_and_libraries_of_this_system_as_ldd_sees_them() -> None:
    """``ldd -r`` asks the real linker, for undefined symbols too."""
    found = [each for folder in ("/usr/bin", "/usr/lib/x86_64-linux-gnu", "/usr/lib64") for each in sorted(Path(folder).glob("*"))]  # fmt: skip
    binaries = [each for each in found if each.is_file() and each.open("rb").read(4) == b"\x7fELF"]
    for path in binaries[:: max(1, len(binaries) // 40)]:
        said = subprocess.run(["ldd", "-r", str(path)], capture_output=True, text=True, check=False)
        printed = said.stdout + said.stderr
        loading = explained(path)
        taken = {row.name: row.path for row in loading.libraries}
        assert set(re.findall(r"(\S+) => (/\S+)", printed)) <= set(taken.items()), path
        assert set(re.findall(r"(\S+) => not found", printed)) == {row.name for row in loading.missing}, path
        undefined = {each.name for each in loading.undefined if each.file == str(path)}
        assert set(re.findall(r"undefined symbol: ([^\s,]+)", printed)) == undefined, path


def test_the_c_library_says_its_version() -> None:
    loading = explained(Path("/bin/bash"))
    assert f"glibc {loading.glibc}" == os.confstr("CS_GNU_LIBC_VERSION")


def test_the_runpath_leads_from_the_file_that_has_it(tmp_path: Path) -> None:
    inner = linking.library(tmp_path / "deep/libinner.so.1", "int inner(void) { return 1; }")
    outer = linking.library(tmp_path / "libouter.so", "int inner(void); int o(void) { return inner(); }", (inner,), runpath="$ORIGIN/deep")  # fmt: skip
    loading = explained(outer)
    assert how(loading, "libinner.so.1") == "RUNPATH of libouter.so"
    assert loading.undefined == ()
    ctypes.CDLL(str(outer))  # the real linker agrees


def test_a_runpath_is_not_inherited_and_an_rpath_is(tmp_path: Path) -> None:
    last = linking.library(tmp_path / "deep/liblast.so")
    middle = linking.library(tmp_path / "deep/libmiddle.so", "", (last,))
    by_runpath = linking.library(tmp_path / "librun.so", "", (middle,), runpath="$ORIGIN/deep")
    by_rpath = linking.library(tmp_path / "libr.so", "", (middle,), rpath="$ORIGIN/deep")
    assert [row.name for row in explained(by_runpath).missing] == ["liblast.so"]
    assert how(explained(by_rpath), "liblast.so") == "RPATH of libr.so"
    with pytest.raises(OSError, match=r"liblast\.so"):
        ctypes.CDLL(str(by_runpath))
    ctypes.CDLL(str(by_rpath))


def test_the_search_path_comes_before_the_runpath(tmp_path: Path) -> None:
    inner = linking.library(tmp_path / "a/libinner.so")
    copy = linking.library(tmp_path / "b/libinner.so")
    outer = linking.library(tmp_path / "libouter.so", "", (inner,), runpath=str(inner.parent))
    assert how(explained(outer, str(copy.parent)), "libinner.so") == "LD_LIBRARY_PATH"


def test_a_library_that_is_nowhere_is_told_with_the_folders_that_were_searched(tmp_path: Path) -> None:
    gone = linking.library(tmp_path / "gone/libcudart.so.12")
    outer = linking.library(tmp_path / "libouter.so", "", (gone,), runpath="$ORIGIN/lib")
    gone.unlink()
    (missing,) = explained(outer).missing
    assert missing.name == "libcudart.so.12"
    assert str(tmp_path / "lib") in missing.looked_in
    assert any(folder.endswith("/lib") for folder in missing.looked_in)


def test_one_of_another_machine_is_passed_over_and_a_damaged_one_ends_the_search(tmp_path: Path) -> None:
    inner = linking.library(tmp_path / "right/libinner.so")
    outer = linking.library(tmp_path / "libouter.so", "", (inner,), runpath=f"{tmp_path}/wrong:{inner.parent}")
    wrong = tmp_path / "wrong/libinner.so"
    wrong.parent.mkdir()
    other = bytearray(inner.read_bytes())
    other[18:20] = (183).to_bytes(2, "little")  # of an ARM processor
    wrong.write_bytes(other)
    assert explained(outer).is_every_library_found
    wrong.write_bytes(inner.read_bytes()[:2000])
    (missing,) = explained(outer).missing
    assert missing.path == str(wrong)
    assert "ends at 2000" in missing.problem


def test_a_symbol_that_nobody_defines(tmp_path: Path) -> None:
    inner = linking.library(tmp_path / "libinner.so", "int known(void) { return 1; }")
    source = "int known(void); int unknown(void); int maybe(void) __attribute__((weak)); int o(void) { return known() + unknown() + (maybe ? maybe() : 0); }"
    outer = linking.library(tmp_path / "libouter.so", source, (inner,), runpath="$ORIGIN")
    loading = explained(outer)
    assert [each.name for each in loading.undefined] == ["unknown"]
    assert loading.undefined[0].file == str(outer)


def test_a_library_without_the_version_that_is_asked_for(tmp_path: Path) -> None:
    newer = linking.library(tmp_path / "new/libv.so.1", "int old(void){return 1;} int fresh(void){return 2;}", versions="V_1.0 { global: old; };\nV_2.0 { global: fresh; } V_1.0;")  # fmt: skip
    outer = linking.library(tmp_path / "libouter.so", "int fresh(void); int o(void) { return fresh(); }", (newer,), runpath="$ORIGIN/lib")  # fmt: skip
    linking.library(tmp_path / "lib/libv.so.1", "int old(void) { return 1; }", versions="V_1.0 { global: old; };")
    loading = explained(outer)
    (old,) = loading.too_old
    assert (old.library, old.version, old.newest) == ("libv.so.1", "V_2.0", "1.0")
    assert [(each.name, each.version) for each in loading.undefined] == [("fresh", "V_2.0")]
    with pytest.raises(OSError, match=r"V_2\.0"):
        ctypes.CDLL(str(outer))


def test_torch_is_loaded_before_what_uses_it(tmp_path: Path) -> None:
    packages = linking.environment(tmp_path)
    lib = linking.torch(packages)
    extension = linking.library(packages / "sgl_kernel/flash_ops.abi3.so", f"void {linking.TORCH_ERROR}(void); void f(void) {{ {linking.TORCH_ERROR}(); }}", (lib / "libc10.so",))  # fmt: skip
    loading = explained(extension)
    assert how(loading, "libc10.so") == "loaded before"
    assert loading.undefined == ()
    assert str(lib / "libc10.so") in loading.preloaded


def test_a_torch_of_another_build_lacks_the_symbol(tmp_path: Path) -> None:
    packages = linking.environment(tmp_path)
    lib = linking.torch(packages, defines=linking.OLD_TORCH_ERROR)
    extension = linking.library(packages / "sgl_kernel/flash_ops.abi3.so", f"void {linking.TORCH_ERROR}(void); void f(void) {{ {linking.TORCH_ERROR}(); }}", (lib / "libc10.so",))  # fmt: skip
    assert [each.name for each in explained(extension).undefined] == [linking.TORCH_ERROR]


def test_torch_brings_libraries_of_cuda_from_the_folders_of_the_wheels(tmp_path: Path) -> None:
    packages = linking.environment(tmp_path)
    cudart = linking.library(packages / "nvidia/cuda_runtime/lib/libcudart.so.12", "int cudaMalloc(void) { return 0; }")
    cublas = linking.library(packages / "nvidia/cublas/lib/libcublas.so.12", "int cublasCreate_v2(void) { return 0; }")
    linking.torch(packages, cuda=(cudart, cublas))
    extension = linking.library(packages / "kernels/k.so", "int cudaMalloc(void); int aoti_torch_x(void); int f(void) { return cudaMalloc(); }", (cudart, cublas))  # fmt: skip
    linking.distribution(packages, "kernels", "1.0", (extension,), ("torch==2.8.0",))
    loading = explained(extension)
    assert loading.is_every_library_found
    # the one is on the RUNPATH of torch's dependencies; for the other torch goes through the wheels' folders itself
    assert how(loading, "libcudart.so.12") == "loaded before"
    assert any(row.how == "preloaded by torch" or row.path == str(cublas) for row in loading.libraries)


def test_a_library_in_a_wheel_that_nobody_looks_into_is_named(tmp_path: Path) -> None:
    packages = linking.environment(tmp_path)
    cublas = linking.library(packages / "nvidia/cublas/lib/libcublas.so.12")
    extension = linking.library(packages / "ctranslate2/c.so", "", (cublas,))
    (missing,) = explained(extension).missing
    assert missing.beside == str(cublas)


def test_the_interpreter_defines_what_extensions_call() -> None:
    import _ctypes

    path = Path(str(_ctypes.__file__))
    assert explained(path, program=str(Path(sys.executable).resolve())).undefined == ()
    assert explained(path).undefined == ()


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\n", b"\x7fELF" + bytes(200)])
def test_what_is_no_library_is_told_and_not_raised(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.so"
    path.write_bytes(content)
    assert explained(path).problems


def test_a_cut_library_is_told(tmp_path: Path) -> None:
    whole = linking.library(tmp_path / "libk.so", "int k(void) { return 1; }")
    cut = tmp_path / "libcut.so"
    cut.write_bytes(whole.read_bytes()[:5000])
    assert any("ends at 5000" in problem for problem in explained(cut).problems)


def test_the_package_that_a_file_is_of(tmp_path: Path) -> None:
    packages = linking.environment(tmp_path)
    extension = linking.library(packages / "flash_attn_2_cuda.so")
    linking.distribution(packages, "aaa", "1.0", ())
    linking.distribution(packages, "flash-attn", "2.8.3", (extension,), ("torch==2.7.1", "einops"))
    owner = explained(extension).owner
    assert owner is not None
    assert (owner.name, owner.version) == ("flash-attn", "2.8.3")
    assert owner.size == extension.stat().st_size
    assert owner.requires_any("torch") == ("torch==2.7.1",)


def test_libraries_that_need_each_other_end(tmp_path: Path) -> None:
    a, b = tmp_path / "liba.so", tmp_path / "libb.so"
    linking.library(a)
    linking.library(b, "", (a,), runpath="$ORIGIN")
    linking.library(a, "", (b,), runpath="$ORIGIN")
    assert explained(a).is_every_library_found


def test_a_file_that_needs_thousands_and_looks_into_thousands_of_folders_ends_soon(tmp_path: Path) -> None:
    path = tmp_path / "libhostile.so"
    folders = ":".join(f"/none/{number}" for number in range(2000))
    path.write_bytes(writing.library(tuple(f"lib{number}.so" for number in range(2000)), runpath=folders))
    started = time.process_time()
    loading = explained(path)
    assert time.process_time() - started < 2.0
    assert not loading.is_every_library_found


@pytest.mark.parametrize("size", range(0, 15000, 700))
def test_wherever_a_library_is_cut_nothing_is_raised(size: int, tmp_path: Path) -> None:
    whole = linking.library(tmp_path / "libk.so", "int known(void); int k(void) { return known(); }")
    cut = tmp_path / "libcut.so"
    cut.write_bytes(whole.read_bytes()[:size])
    explained(cut)


def test_what_a_library_says_can_be_anything(tmp_path: Path) -> None:
    needed = (
        "",
        "../../etc/passwd",
        "/dev/zero",
        "/proc/self/mem",
        "a" * 5000,
        "lib\x1b[31m.so",
        "$ORIGIN/$ORIGIN",
        "libc.so.6",
    )
    path = tmp_path / "libodd.so"
    path.write_bytes(writing.library(needed, undefined=("x",), runpath="$ORIGIN::${LIB}:/dev/fd"))
    assert not explained(path).is_every_library_found
