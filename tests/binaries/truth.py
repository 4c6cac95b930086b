"""Binaries of which is known what they hold: those in ``tests/data``, and a larger collection where a folder has one.

The larger one lies beside the checkout (``shared/fatbin/truth``) on machines of the project; it embeds code of NVIDIA's,
so it is not published. A fresh clone tests with what is here.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from gpuwhy.binaries.examining import Binary
from gpuwhy.binaries.fatbin import MAGIC
from gpuwhy.binaries.reading import KeptSource

ROOT = Path(__file__).parents[2]
HERE = ROOT / "tests" / "data" / "binaries"
BESIDE = ROOT.parent / "shared" / "fatbin" / "truth"
WORDS = {"cubin": "elf", "ptx": "ptx", "relocatable ptx": "relptx", "lto-ir": "ltoir", "tile-ir": "tileir"}


class Known(NamedTuple):
    path: Path
    containers: int
    images: dict[str, int]
    ptx: list[str]


def known_files() -> list[Known]:
    """Every file with what must be found in it."""
    found = [
        Known(HERE / name, each["containers"], each["images"], each["ptx"])
        for name, each in json.loads((HERE / "expected.json").read_text()).items()
    ]
    if (BESIDE / "expected.json").is_file():
        for name, each in json.loads((BESIDE / "expected.json").read_text()).items():
            row = each["all_sections"]
            found.append(Known(BESIDE / name, row["containers"], row["images"], row.get("ptx_isa") or []))
    return found


def skeletons() -> dict[Path, dict[str, Any]]:
    """Headers of real libraries with the payloads left out, and what is known of each; none in a fresh clone."""
    folder = BESIDE / "skeletons"
    if not (folder / "expected.json").is_file():
        return {}
    return {folder / name: each for name, each in json.loads((folder / "expected.json").read_text()).items()}


def load_skeleton(path: Path) -> KeptSource:
    """A skeleton as a source of the library's size: what was left out reads as nothing."""
    data = zlib.decompress(path.read_bytes())
    length = int.from_bytes(data[:4], "little")
    head = json.loads(data[4 : 4 + length])
    source, at, places = KeptSource(path.name, head["size"]), 4 + length, {}
    for offset, size in head["ranges"]:
        places[offset] = at
        at += size
    containers = source.places[MAGIC] = []
    for offset, size in sorted(head["ranges"]):
        part = data[places[offset] : places[offset] + size]
        source.keep(offset, part, is_small=True)
        if part.startswith(MAGIC[:4]) and size == 16:
            containers.append(offset)
    return source


def images_of(binary: Binary, *roles: str) -> dict[str, int]:
    """Counts in the words of the expectations: ``elf:sm_120f``, ``ptx:compute_80``."""
    counts: Counter[str] = Counter()
    for _, container in binary.device.containers(*roles):
        counts.update(_word(image.code.kind, image.code.architecture) for image in container.images)
    if not roles:
        counts.update(_word("cubin", cubin.code.architecture) for cubin in binary.device.cubins)
    return dict(counts)


def _word(kind: str, architecture: str) -> str:
    return f"{WORDS[kind]}:{architecture.replace('tile_', 'sm_')}"
