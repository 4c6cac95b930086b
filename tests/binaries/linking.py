"""Libraries compiled on the spot, and environments of Python packages around them."""

from __future__ import annotations

import subprocess
from pathlib import Path

TORCH_ERROR = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
CUDA_CHECK = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_"
"""Up to torch 2.9 with ``ib`` behind it, from 2.10 on with ``jb``."""
OLD_TORCH_ERROR = "_ZN3c105ErrorC2ENS_14SourceLocationESs"


def library(
    path: Path,
    source: str = "",
    needs: tuple[Path, ...] = (),
    runpath: str = "",
    rpath: str = "",
    soname: str = "",
    versions: str = "",
    flags: tuple[str, ...] = (),
) -> Path:
    """A shared library from C source. ``versions`` is the text of a version script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    search = ["-Wl,--enable-new-dtags", f"-Wl,-rpath,{runpath}"] if runpath else []
    search += ["-Wl,--disable-new-dtags", f"-Wl,-rpath,{rpath}"] if rpath else []
    if versions:
        script = path.with_suffix(".map")
        script.write_text(versions)
        search.append(f"-Wl,--version-script={script}")
    subprocess.run(
        [
            *("gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", str(path)),
            *("-Wl,--allow-shlib-undefined", "-Wl,--no-as-needed", f"-Wl,-soname,{soname or path.name}"),
            *search,
            *map(str, needs),
            *flags,
        ],
        input=source,
        text=True,
        check=True,
        timeout=60,
    )
    return path


def program(path: Path, needs: tuple[Path, ...] = ()) -> Path:
    """A program that needs libraries."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arguments = ["-o", str(path), "-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined", *map(str, needs)]
    source = "int main(void) { return 0; }"
    subprocess.run(["gcc", "-x", "c", "-", "-x", "none", *arguments], input=source, text=True, check=True, timeout=60)
    return path


def environment(root: Path) -> Path:
    """The folder of packages of a new Python environment whose interpreter is a library's stand-in."""
    packages = root / "lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    return packages


def torch(
    packages: Path, defines: str = TORCH_ERROR, cuda: tuple[Path, ...] = (), cuda_defines: str = f"{CUDA_CHECK}jb"
) -> Path:
    """A torch as its wheel lays it out: its dependencies, its libraries, and the module that needs them all."""
    lib = packages / "torch/lib"
    wheels = "$ORIGIN/../../nvidia/cuda_runtime/lib:$ORIGIN/../../nvidia/cu13/lib:$ORIGIN"
    library(lib / "libtorch_global_deps.so", "", cuda, runpath=wheels)
    c10 = library(lib / "libc10.so", f"void {defines}(void) {{}}")
    c10_cuda = library(lib / "libc10_cuda.so", f"void {cuda_defines}(void) {{}}", (c10,), runpath="$ORIGIN")
    whole = library(lib / "libtorch.so", "void torch(void) {}", (c10, c10_cuda), runpath="$ORIGIN")
    library(packages / "torch/_C.cpython-311-x86_64-linux-gnu.so", "", (whole,), rpath="$ORIGIN/lib")
    return lib


def distribution(
    packages: Path, name: str, version: str, files: tuple[Path, ...], requires: tuple[str, ...] = ()
) -> None:
    """The folder of metadata that an installer leaves."""
    folder = packages / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {each}" for each in requires)]
    (folder / "METADATA").write_text("Metadata-Version: 2.1\n" + "\n".join(lines) + "\n\nRequires-Dist: not this one\n")
    rows = [f"{each.relative_to(packages)},sha256=x,{each.stat().st_size}" for each in files]
    (folder / "RECORD").write_text("\n".join([*rows, f"{folder.name}/RECORD,,"]) + "\n")
