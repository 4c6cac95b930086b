"""Real releases to read: the Python files of wheels, fetched through pip's index by ranges and kept in a folder.

The folder is ``$GPUWHY_SOURCES`` or a temporary one that outlives the run; it can be thrown away at any time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from scripts.fingerprinting.coverage import Package
from scripts.fingerprinting.index import opened_index
from scripts.fingerprinting.members import Members, SourceCache

FOLDERS = {
    "flashinfer-python": "flashinfer",
    "sgl-kernel": "sgl_kernel",
    "sglang": "sglang",
    "torch": "torch",
    "triton": "triton",
    "vllm": "vllm",
}
"""The import names of projects."""


class _Whole(Package, frozen=True):
    """Every Python file of a package, tests too: a negative must be said of all of them."""

    def records(self, member: str) -> bool:
        return self.has(member)


def kept_in() -> Path:
    return Path(os.environ.get("GPUWHY_SOURCES") or Path(tempfile.gettempdir()) / f"gpuwhy-sources-{os.getuid()}")


def release(name: str, version: str) -> Path:
    """A folder like site-packages with the Python files of one release."""
    folder = kept_in() / f"{name}-{version}"
    if folder.is_dir():
        return folder
    package = _Whole(name, FOLDERS[name], version, r"(?!)")
    part = folder.with_name(f".{folder.name}.{os.getpid()}")
    cache = SourceCache(kept_in() / "members")
    with opened_index() as index:
        wheel = next(each for each in index.releases(name) if each.version == version)
        keys = Members(index, wheel, package).read_into(cache)
    for path, key in keys.items():
        (part / path).parent.mkdir(parents=True, exist_ok=True)
        (part / path).write_bytes(cache.get(key))
    described = part / f"{name.replace('-', '_')}-{version}.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    try:
        part.rename(folder)
    except OSError:
        # another worker was first
        shutil.rmtree(part)
    return folder
