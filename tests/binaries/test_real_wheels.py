"""Real libraries, from the wheel and from disk, against cuobjdump of NVIDIA's own wheel.

``make wheels`` (part of ``make check``) downloads two wheels once, ``make soak`` the large ones. cuobjdump lists ``sm_120``
for an ``sm_120f`` image, and dies on some files with part of a list: what it printed must then be among what we found.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwhy.binaries.device_code import REGISTERED, RELOCATABLE
from gpuwhy.binaries.examining import Binary, examine
from gpuwhy.binaries.reading import FileSource
from gpuwhy.binaries.wheel import Wheel
from gpuwhy.investigate.binaries import Question, inspect_binaries
from gpuwhy.knowledge.capability import parse

CUOBJDUMP = Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin" / "cuobjdump"
SMALL = ("bitsandbytes==0.50.2", "cyllama-cuda12==0.2.18")
LARGE = ("torch==2.14.1", "sgl-kernel==0.3.21", "vllm==0.33.0", "nvidia-cublas-cu12==12.9.1.4", "nvidia-nccl-cu12==2.32.3", "onnxruntime-gpu==1.31.1")  # fmt: skip
_LISTED = re.compile(r"^(ELF|PTX) file\s{1,9}\d{1,6}: .{0,300}\.(sm_\d{2,3}a?)\.(?:cubin|ptx)$", re.MULTILINE)


def downloaded(requirement: str, folder: Path) -> Path:
    """The wheel, from the folder or through pip's own configuration."""
    name = requirement.partition("==")[0].replace("-", "_")
    found = sorted(folder.glob(f"{name}-*.whl"))
    if not found:
        arguments = ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--platform=manylinux_2_28_x86_64", "--platform=manylinux_2_35_x86_64", "--platform=manylinux_2_24_x86_64", "--platform=manylinux_2_27_x86_64", "--platform=manylinux2014_x86_64"]  # fmt: skip
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "-d", str(folder), *arguments, requirement], check=True
        )
        found = sorted(folder.glob(f"{name}-*.whl"))
    return found[0]


def from_wheel(path: Path) -> Iterator[Binary]:
    with Wheel(str(path)) as wheel:
        yield from wheel.binaries()


def counted(binary: Binary) -> Counter[str]:
    """Images in cuobjdump's words, of the sections that it looks at: relocatable code only where there is no other."""
    has_registered = any(True for _ in binary.device.containers(REGISTERED))
    counts: Counter[str] = Counter()
    for _, container in binary.device.containers(REGISTERED if has_registered else RELOCATABLE):
        for image in container.images:
            word = {"cubin": "ELF", "ptx": "PTX", "relocatable ptx": "PTX"}.get(image.code.kind)
            if word:
                counts[f"{word} sm_{image.code.arch}{image.code.suffix.replace('f', '')}"] += 1
    return counts


def listed(path: Path) -> tuple[Counter[str], bool]:
    """What cuobjdump lists, and whether it reached the end."""
    done = subprocess.run([CUOBJDUMP, "--list-elf", "--list-ptx", path], capture_output=True, text=True, check=False)
    return Counter(" ".join(found) for found in _LISTED.findall(done.stdout)), done.returncode == 0


def compare(requirement: str, folder: Path, unpacked: Path) -> None:
    path = downloaded(requirement, folder)
    found = {binary.name: binary for binary in from_wheel(path)}
    with zipfile.ZipFile(path) as archive:
        for name in found:
            archive.extract(name, unpacked)
    with_code = 0
    for name, streamed in found.items():
        with FileSource(str(unpacked / name)) as source:
            read = examine(source, name)
        assert streamed._replace(runtime=read.runtime) == read, name
        assert read.is_complete, (name, read.problems, read.device.problems)
        if not read.name.endswith((".a", ".cubin")):
            theirs, is_whole = listed(unpacked / name)
            ours = counted(read)
            with_code += bool(ours)
            assert theirs == ours if is_whole else theirs <= ours, name
            wrappers = read.device.wrappers
            assert wrappers in (None, sum(1 for _ in read.device.containers(REGISTERED, RELOCATABLE))), name
        (unpacked / name).unlink()
    assert with_code


@pytest.fixture(scope="module")
def folder(pytestconfig: pytest.Config) -> Path:
    """Where wheels stay from run to run."""
    assert pytestconfig.cache is not None
    return pytestconfig.cache.mkdir("wheels")


@pytest.mark.wheels
@pytest.mark.timeout(600)
@pytest.mark.parametrize("requirement", SMALL)
def test_a_real_wheel(requirement: str, folder: Path, tmp_path: Path) -> None:
    compare(requirement, folder, tmp_path)


@pytest.mark.wheels
@pytest.mark.timeout(600)
def test_a_wheel_built_for_everything_by_ptx_runs_where_the_driver_is_new_enough(folder: Path) -> None:
    """llama.cpp for sm_75 with PTX 8.x of CUDA 12: 137 containers, each compiled on newer GPUs, or blocked."""
    path = downloaded(SMALL[1], folder)
    for capability, driver, outcome in (("7.5", "", "native"), ("12.0", "580.65", "jit"), ("12.0", "525.60.13", "jit-blocked"), ("7.0", "", "none")):  # fmt: skip
        inspection = inspect_binaries([path], Question(parse(capability), driver=driver))
        (file,) = [file for file in inspection.files if "libggml-cuda" in file.path]
        assert file.verdict is not None
        assert (file.verdict.outcome.value, file.verdict.containers) == (outcome, 137)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("requirement", LARGE)
def test_a_large_wheel(requirement: str, folder: Path, tmp_path: Path) -> None:
    compare(requirement, folder, tmp_path)
