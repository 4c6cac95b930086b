"""The few files of real releases that are replayed and really executed, fetched by ranges through pip's index and kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.fingerprinting.coverage import Package
from scripts.fingerprinting.index import opened_index
from scripts.fingerprinting.members import Members, SourceCache

FILES = {
    "flashinfer-python": (
        "__init__.py", "_build_meta.py", "version.py", "compilation_context.py", "jit/__init__.py", "jit/core.py",
        "jit/cpp_ext.py", "jit/env.py", "jit/utils.py",
    ),
    "torch": (
        "__init__.py", "torch_version.py", "version.py", "_appdirs.py", "utils/__init__.py", "utils/cpp_extension.py",
        "utils/file_baton.py", "utils/_cpp_extension_versioner.py", "cuda/__init__.py", "xpu/__init__.py",
        "_vendor/__init__.py", "_vendor/packaging/__init__.py", "_vendor/packaging/version.py",
        "_vendor/packaging/_structures.py",
    ),
    "vllm": (
        "__init__.py", "envs.py", "v1/__init__.py", "v1/sample/__init__.py", "v1/sample/ops/__init__.py",
        "v1/sample/ops/topk_topp_sampler.py", "platforms/__init__.py", "platforms/interface.py",
    ),
    "sglang": ("__init__.py", "srt/__init__.py", "srt/utils/__init__.py", "srt/utils/common.py", "srt/environ.py"),
}  # fmt: skip
_FOLDERS = {"flashinfer-python": "flashinfer"}


class _Chosen(Package, frozen=True):
    """Only the files that the tests need."""

    def records(self, member: str) -> bool:
        return member.removeprefix(self.folder + "/") in FILES[self.name]


def kept_in() -> Path:
    """``$GPUWHY_SOURCES``, else a temporary folder that outlives the run; it can be thrown away at any time."""
    return Path(os.environ.get("GPUWHY_SOURCES") or Path(tempfile.gettempdir()) / f"gpuwhy-sources-{os.getuid()}")


def release(name: str, version: str) -> Path:
    """A folder like site-packages with those files of one release."""
    folder = kept_in() / "replay" / f"{name}-{version}"
    if folder.is_dir():
        return folder
    with _part(folder) as part:
        cache = SourceCache(kept_in() / "members")
        package = _Chosen(name, _FOLDERS.get(name, name), version, r"(?!)")
        with opened_index() as index:
            wheel = next(each for each in index.releases(name) if each.version == version)
            keys = Members(index, wheel, package).read_into(cache)
        for path, key in keys.items():
            if package.records(path):
                (part / path).parent.mkdir(parents=True, exist_ok=True)
                (part / path).write_bytes(cache.get(key))
    return folder


@contextmanager
def _part(folder: Path) -> Iterator[Path]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    yield part
    try:
        part.rename(folder)
    except OSError:
        # another worker was first
        shutil.rmtree(part)
