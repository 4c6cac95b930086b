"""How loading is told: what is missing first, folders once, symbols with who defines them."""

from __future__ import annotations

from gpuwhy.model.loading import Loading, NeededLibrary, OldLibrary, UndefinedSymbol
from gpuwhy.reports.loading import lines

FILE = "/opt/venv/lib/python3.12/site-packages/sgl_kernel/common_ops.abi3.so"
TORCH = "/opt/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so"


def told(verbose: bool = False, **fields: object) -> list[str]:
    loading = Loading(path=FILE, loads=False, searched=26, **fields)  # type: ignore[arg-type]
    return [text for text, _ in lines(loading, verbose)]


def test_the_files_own_needs_come_first_and_folders_once() -> None:
    searched = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/opt")
    rows = (
        NeededLibrary("libcufft.so.12", TORCH, looked_in=("/a",)),
        NeededLibrary("libcudart.so.12", FILE, looked_in=searched, brought_by="nvidia-cuda-runtime-cu12 of CUDA 12"),
        NeededLibrary("libnvrtc.so.12", FILE, looked_in=searched),
    )
    assert told(libraries=rows, torch="2.14.1", package="sgl-kernel", package_version="0.3.21") == [
        "does not load after torch 2.14.1 (26 libraries, sgl-kernel 0.3.21)",
        "libcudart.so.12 is not found (nvidia-cuda-runtime-cu12 of CUDA 12)",
        "libnvrtc.so.12 is not found",
        "  looked in /lib64, /usr/lib64, /lib, /usr/lib and 1 more",
        "libcufft.so.12 is not found; needed by libtorch_cuda.so",
        "  looked in /a",
    ]


def test_a_library_that_lies_elsewhere_and_a_damaged_one() -> None:
    rows = (
        NeededLibrary("libcublas.so.12", FILE, beside="/p/nvidia/cublas/lib/libcublas.so.12"),
        NeededLibrary("libk.so", FILE, "/p/libk.so", "RUNPATH of common_ops.abi3.so", "file too short (0 bytes)"),
    )
    assert told(libraries=rows)[1:] == [
        "libcublas.so.12 is not found",
        "  it lies at /p/nvidia/cublas/lib/libcublas.so.12, where nobody looks: put that folder on LD_LIBRARY_PATH",
        "libk.so => /p/libk.so: file too short (0 bytes)",
    ]


def test_symbols_and_versions() -> None:
    torch = UndefinedSymbol("_ZN3c10x", "c10::x", FILE, "torch", provided_by="libc10.so of torch 2.9.1 or earlier")
    coming = UndefinedSymbol("cudaMalloc", "cudaMalloc", FILE, "cuda", comes_with="libcudart.so.12")
    old = OldLibrary("libc.so.6", "/lib/libc.so.6", "GLIBC_2.38", "2.36", FILE)
    assert told(
        undefined=(torch, coming), undefined_count=2, too_old=(old,), torch="2.14.1", built_for_torch="2.3.1 to 2.9.1"
    )[1:] == [
        "GLIBC_2.38 is not in /lib/libc.so.6; the newest that it has is 2.36 (needed by common_ops.abi3.so)",
        "undefined symbol: _ZN3c10x = c10::x",
        "  defined by libc10.so of torch 2.9.1 or earlier; installed is torch 2.14.1",
        "by these symbols it was compiled for torch 2.3.1 to 2.9.1",
        "1 more would come with the missing libraries",
    ]


def test_where_everything_was_found_is_told_on_request() -> None:
    row = NeededLibrary("libc.so.6", FILE, "/lib/libc.so.6", "ld.so.cache")
    assert "libc.so.6 => /lib/libc.so.6 (ld.so.cache)" in told(True, libraries=(row,))
    assert "libcuda.so.1 would be /c/compat/libcuda.so.1 (LD_LIBRARY_PATH)" in told(
        True, libcuda="/c/compat/libcuda.so.1", libcuda_how="LD_LIBRARY_PATH"
    )
