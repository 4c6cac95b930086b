"""How long it takes to tell releases from the frames of a traceback.

    python -m benchmarks.bench_fingerprints [--frames 30]

Takes lines that the tables hold: frames of one release of each package, spread over the files that have most editions,
which are the slowest. "first" includes reading the tables from disk. Fails above 50 ms for 30 frames.
"""

from __future__ import annotations

import argparse
import sys
import time
import zlib
from itertools import accumulate, product

from gpuwhy.knowledge import fingerprints
from gpuwhy.knowledge.releases_by_frames import PACKAGES, releases_of
from gpuwhy.model.event import Frame

LIMIT_SECONDS_A_FRAME = 0.05 / 30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=30)
    count = parser.parse_args().frames
    texts = texts_by_hash()
    frames = [frame for folder in ("vllm", "flashinfer", "torch") for frame in slowest(folder, count // 3, texts)]
    fingerprints.table.cache_clear()
    first = timed(frames)
    again = min(timed(frames) for _ in range(20))
    found = {name: len(match.releases) for name, match in releases_of(frames).items()}
    size = sum(path.stat().st_size for path in fingerprints.FOLDER.iterdir())
    print(f"{len(frames)} frames of {len(found)} packages: first {first * 1e3:.1f} ms, again {again * 1e3:.1f} ms")
    print(f"releases left: {found}; tables on disk: {size / 1e6:.2f} MB")
    return 0 if first <= LIMIT_SECONDS_A_FRAME * len(frames) else 1


def timed(frames: list[Frame]) -> float:
    begun = time.perf_counter()
    releases_of(frames)
    return time.perf_counter() - begun


def texts_by_hash() -> dict[int, str]:
    """A text for every hash: `raise X(N)` with one of so many N that all 16-bit values occur."""
    texts: dict[int, str] = {}
    for number in range(1_200_000):
        text = f"raise x({number})"
        checksum = zlib.crc32(text.replace(" ", "").encode())
        texts.setdefault((checksum ^ checksum >> 16) & 0xFFFF, text)
    return texts


def slowest(folder: str, count: int, texts: dict[int, str]) -> list[Frame]:
    """Frames of the last edition of the files with most editions: one late line of each."""
    table = fingerprints.table(PACKAGES[folder])
    by_editions = sorted(table.paths, key=lambda path: -sum(len(each.gaps) for each in table.editions(path)))
    names = names_by_tag()
    frames = []
    for path in by_editions[:count]:
        edition = list(table.editions(path))[-1]
        lines = list(accumulate(edition.gaps))
        last = max(index for index, tag in enumerate(edition.tags) if tag)
        text = texts[int.from_bytes(edition.hashes[2 * last : 2 * last + 2], "big")]
        frames.append(Frame(f"/x/site-packages/{folder}/{path}", lines[last], names[edition.tags[last]], text))
    return frames


def names_by_tag() -> dict[int, str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return {fingerprints.scope_tag("".join(pair)): "".join(pair) for pair in product(letters, repeat=3)}


if __name__ == "__main__":
    sys.exit(main())
