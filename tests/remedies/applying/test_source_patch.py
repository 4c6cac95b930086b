"""A patch of installed source: made from the file that is there, for a person to apply with `patch`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpuwhy.investigate import diagnose_log
from gpuwhy.knowledge.source_edits import SourceEdit, edit_of
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import prescribe
from gpuwhy.remedies.applying.site import Site
from gpuwhy.remedies.applying.source_patch import NoPatchError, patched, source_patch
from gpuwhy.snapshot.given import given
from gpuwhy.targets.local import LocalTarget

LOG = Path(__file__).parents[2] / "data" / "logs" / "sglang.log"
# of the shape of FlashInfer's: what is asked, and in which order
SOURCE = '''\
class CompilationContext:
    @staticmethod
    def _normalize_cuda_arch(major: int, minor: int) -> tuple[int, str]:
        """The target for a device."""
        if major == 12:
            from flashinfer.jit.cpp_ext import is_cuda_version_at_least

            if not is_cuda_version_at_least("12.9"):
                raise RuntimeError("SM 12.x requires CUDA >= 12.9")
            return (major, "0f")
        return (major, str(minor))
'''
CALL = """
import sys, types
sys.path.insert(0, {folder!r})
tools = types.ModuleType("flashinfer.jit.cpp_ext")
tools.is_cuda_version_at_least = lambda wanted: tuple(map(int, wanted.split("."))) <= {cuda!r}
sys.modules.update({{"flashinfer.jit": types.ModuleType("flashinfer.jit"), "flashinfer.jit.cpp_ext": tools}})
from flashinfer.compilation_context import CompilationContext
print(CompilationContext._normalize_cuda_arch(12, 0))
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "lib" / "python3.12" / "site-packages"
    (folder / "flashinfer").mkdir(parents=True)
    (folder / "flashinfer" / "__init__.py").write_text("")
    (folder / "flashinfer" / "compilation_context.py").write_text(SOURCE)
    return folder


def crashed(packages: Path) -> tuple[Diagnosis, Remedy]:
    """The seed's crash, with FlashInfer in this folder; and its remedy that is a patch."""
    text = LOG.read_text().replace("/opt/sglang/lib/python3.12/site-packages", str(packages))
    assert str(packages) in text
    diagnosis = prescribe(
        diagnose_log(text.encode(), "sglang.log", given({"cc": "12.0", "cuda_toolkit": "12.8"}).facts)
    )
    return diagnosis, next(each for each in diagnosis.findings[0].remedies if each.kind == "patch")


def answer(packages: Path, cuda: tuple[int, int]) -> str:
    program = CALL.format(folder=str(packages), cuda=cuda)
    done = subprocess.run(["python3", "-B", "-c", program], capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_the_patch_applies_and_does_what_it_says(packages: Path, tmp_path: Path) -> None:
    diagnosis, remedy = crashed(packages)
    with Site(LocalTarget()) as site:
        text = source_patch(remedy, diagnosis, site)
    assert answer(packages, (12, 8)) == "RuntimeError: SM 12.x requires CUDA >= 12.9"
    assert (packages / "flashinfer" / "compilation_context.py").read_text() == SOURCE, "nothing is patched"
    (tmp_path / "fix.patch").write_text(text)
    subprocess.run(["patch", "-p0", "-i", str(tmp_path / "fix.patch")], cwd="/", check=True, capture_output=True)
    assert answer(packages, (12, 8)) == "(12, '0a')"
    assert answer(packages, (13, 0)) == "(12, '0f')"
    assert answer(packages, (12, 4)) == "RuntimeError: SM 12.x requires CUDA >= 12.9"


def test_the_patch_says_who_else_uses_the_value(packages: Path) -> None:
    diagnosis, remedy = crashed(packages)
    with Site(LocalTarget()) as site:
        heading = source_patch(remedy, diagnosis, site).partition("--- ")[0]
    assert all(line.startswith("# ") for line in heading.splitlines())
    assert "TARGET_CUDA_ARCHS is also read by" in heading
    assert "undo: " in heading


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def other():\n    pass\n", "0 functions _normalize_cuda_arch"),
        ("def _normalize_cuda_arch(major, minor):\n    return major\n", "another release"),
        ("def (", "is not understood"),
        ("(" * 5000, "is not understood"),
    ],
)
def test_another_release_is_not_patched(source: str, why: str) -> None:
    edit = edit_of("flashinfer/compilation_context.py")
    assert isinstance(edit, SourceEdit)
    with pytest.raises(NoPatchError, match=why):
        patched(edit, source, "/x/flashinfer/compilation_context.py")


def test_a_file_that_is_not_there(packages: Path) -> None:
    diagnosis, remedy = crashed(packages)
    (packages / "flashinfer" / "compilation_context.py").unlink()
    with Site(LocalTarget()) as site, pytest.raises(NoPatchError, match="could not be read"):
        source_patch(remedy, diagnosis, site)
