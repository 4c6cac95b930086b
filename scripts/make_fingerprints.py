"""Make the tables that tell a release from the frames of a traceback, from the wheels of the package index.

    nice python -m scripts.make_fingerprints --cache FOLDER [PACKAGE ...]

Of a wheel only its directory and its Python files are read, by range requests: 2 to 10 MB instead of up to 2 GB. Index,
proxies and certificates are those of pip's own configuration. See scripts/README.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.fingerprinting.coverage import PACKAGES, Package
from scripts.fingerprinting.encoding import encoded
from scripts.fingerprinting.index import Index, opened_index
from scripts.fingerprinting.members import Members, SourceCache
from scripts.fingerprinting.sites import sites

DATA = Path(__file__).parent.parent / "src/gpuwhy/knowledge/data/frames"
PYTHON = (3, 11)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"default: {', '.join(PACKAGES)}")
    parser.add_argument(
        "--cache", type=Path, required=True, help="keeps the Python files read; a second run adds to it"
    )
    parser.add_argument("--out", type=Path, default=DATA)
    options = parser.parse_args(arguments)
    if sys.version_info[:2] != PYTHON:
        parser.error(f"run it with Python {'.'.join(map(str, PYTHON))}: compilers differ in the lines that have code")
    options.out.mkdir(parents=True, exist_ok=True)
    with opened_index() as index:
        for name in options.packages or PACKAGES:
            make(PACKAGES[name], index, SourceCache(options.cache), options.out)
    return 0


def make(package: Package, index: Index, cache: SourceCache, out: Path) -> None:
    """Read every release of one package that the table covers, and write its table."""
    releases: list[str] = []
    editions: dict[str, dict[int, str]] = {}
    for release in package.chosen(index.releases(package.name)):
        members = Members(index, release, package)
        number = len(releases)
        releases.append(release.version)
        for path, key in members.read_into(cache).items():
            editions.setdefault(path, {})[number] = key
        print(f"{package.name} {release.version}: {members.described}", file=sys.stderr, flush=True)
    table = encoded(package, releases, editions, lambda key: sites(cache.get(key)))
    target = out / f"{package.name}.frames"
    target.write_bytes(table)
    print(f"{target.name}: {len(releases)} releases, {len(editions)} files, {len(table)} bytes", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
