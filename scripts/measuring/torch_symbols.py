"""Writes knowledge/data/torch_symbols.json: which torch releases define which symbols of libc10 and libc10_cuda.

    python -m scripts.measuring.torch_symbols FOLDER > src/gpuwhy/knowledge/data/torch_symbols.json

FOLDER holds the libraries of each release's wheel as RELEASE.libc10.so and RELEASE.libc10_cuda.so. Symbols that every
release defines are left out, and those whose types hold std::string: which of its two forms a wheel has depends on the
platform as well, and is known by release (knowledge/torch_companions.py).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gpuwhy.binaries.elf import Elf
from gpuwhy.binaries.reading import FileSource
from gpuwhy.knowledge.mangling import demangle

PROVENANCE = "measured once: the symbols that the library of each release's wheel defines"
LIBRARIES = ("libc10.so", "libc10_cuda.so")


def defined(path: Path) -> set[str]:
    """The symbols in the namespace c10 that others can be bound to."""
    with FileSource(str(path)) as source:
        names = {symbol.name for symbol in Elf(source).defined_symbols() if not symbol.is_weak}
    return {name for name in names if "N3c10" in name or "K3c10" in name}


def row(name: str, releases: list[str], holds: dict[str, set[str]]) -> dict[str, object] | None:
    """The first and the last release that define a symbol; None for one that all define or that depends on std::string."""
    cpp = demangle(name)
    having = [release for release in releases if name in holds[release]]
    if cpp is None or cpp.old_strings or cpp.new_strings or len(having) == len(releases):
        return None
    return {"name": name, "first": having[0], "last": having[-1]}


def table(folder: Path) -> dict[str, object]:
    libraries = []
    for library in LIBRARIES:
        files = {path.name.removesuffix(f".{library}"): path for path in folder.glob(f"*.{library}")}
        releases = sorted(files, key=lambda release: [int(part) for part in release.split(".")])
        holds = {release: defined(files[release]) for release in releases}
        rows = [row(name, releases, holds) for name in sorted(set().union(*holds.values()))]
        symbols = [each for each in rows if each]
        libraries.append({"library": library, "releases": releases, "symbols": symbols, "provenance": PROVENANCE})
    return {"libraries": libraries}


if __name__ == "__main__":
    print(json.dumps(table(Path(sys.argv[1])), separators=(",", ":")).replace('{"name"', '\n{"name"'))
