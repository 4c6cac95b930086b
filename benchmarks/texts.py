"""What it costs to know who wrote a line of a log: building the catalogue of a release, reading it back, looking lines up.

Run: ``.venv/bin/python -m benchmarks.texts [LOG]``. The releases are fetched once (see tests/source/packages.py). A full
parse of the same files stands beside it: that is what the catalogue is built without.
"""

from __future__ import annotations

import ast
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.source.packages import release

from gpuwhy.logs import read_bytes
from gpuwhy.source import Cache, FolderRoot
from gpuwhy.source.texts import Catalogue, PackageTexts
from gpuwhy.source.trees import uncollected

RELEASES = (
    ("flashinfer-python", "0.6.18.post1", "flashinfer"),
    ("vllm", "0.33.0", "vllm"),
    ("sglang", "0.5.23", "sglang"),
)
LOG = Path(__file__).parents[1] / "tests" / "data" / "logs" / "sglang.log"
LINES = 20_000
Result = TypeVar("Result")


def main() -> None:
    log = Path(sys.argv[1]) if len(sys.argv) > 1 else LOG
    print(f"{'release':28} {'files':>6} {'texts':>7} {'cold':>8} {'warm':>8} {'full parse':>11}   CPU seconds")
    packages = []
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder))
        for name, version, package in RELEASES:
            root = FolderRoot(release(name, version), package)
            cold, texts = timed(lambda root=root: PackageTexts(root, cache).files)  # type: ignore[misc]
            warm, _ = timed(lambda root=root: PackageTexts(root, cache).files)  # type: ignore[misc]
            parsed, _ = timed(lambda root=root: parse_all(root))  # type: ignore[misc]
            count = sum(len(text.choices) for file in texts for text in file.texts)
            print(f"{name + ' ' + version:28} {len(root.files()):6} {count:7} {cold:8.2f} {warm:8.2f} {parsed:11.2f}")
            packages.append(PackageTexts(root, cache))
        seconds, catalogue = timed(lambda: Catalogue(packages))
        print(f"one automaton over {catalogue.size} texts: {seconds:.2f} s")
        lines = read_bytes(log.read_bytes(), log.name).lines
        seconds, written = timed(lambda: list(catalogue.read(lines)))
        found = sum(bool(each.origins) for each in written)
        print(f"{len(lines)} lines of {log.name}: {seconds:.2f} s, {found} with a place")
        many = (lines * (LINES // max(1, len(lines)) + 1))[:LINES]
        seconds, _ = timed(lambda: list(catalogue.read(many)))
        print(f"{len(many)} lines: {seconds:.2f} s")


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    begun = time.process_time()
    result = work()
    return time.process_time() - begun, result


def parse_all(root: FolderRoot) -> None:
    with uncollected(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for file in root.files():
            try:
                ast.parse(root.read(file.path))
            except (SyntaxError, ValueError):
                continue


if __name__ == "__main__":
    main()
