"""Reads the snapshots of a fleet and judges the hosts that differ, on as many processors as there are."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from gpuwhy import __version__
from gpuwhy.fleet.judging import Judged, judged
from gpuwhy.fleet.node_facts import NodeFacts, node_facts
from gpuwhy.snapshot import SCHEMA_VERSION, Snapshot, SnapshotError, read

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

FEW = 48
"""So few snapshots are read before further processes have started."""
MOST_WORKERS = 4
CHUNK = 16
MOST_BYTES = 64 << 20
"""Of one snapshot, unpacked; the reader of any snapshot takes care of longer ones."""

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class Workers:
    """Does the same to many things, in the order in which they are given, with a bounded number under way."""

    def __init__(self, pool: ProcessPoolExecutor | None) -> None:
        self._pool = pool

    def each(self, work: Callable[[Asked], Answer], asked: Sequence[Asked]) -> Iterator[Answer]:
        """``work`` of each; it must be a function of a module."""
        done = 0
        if self._pool is not None:
            from concurrent.futures.process import BrokenProcessPool

            try:
                # everything is handed over in slices: what is answered and not yet taken would fill the memory
                for start in range(0, len(asked), CHUNK * 32):
                    for answer in self._pool.map(work, asked[start : start + CHUNK * 32], chunksize=CHUNK):
                        done += 1
                        yield answer
            except BrokenProcessPool:
                # the kernel ended a process for lack of memory: one alone needs less
                self._pool = None
        if self._pool is None:
            yield from map(work, asked[done:])


@contextmanager
def workers(things: int, most: int = 0) -> Iterator[Workers]:
    """Workers for so many things; ``most`` processes, by default one for each processor up to :data:`MOST_WORKERS`."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_all_start_methods, get_context

    count = min(most or MOST_WORKERS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    # a process that has threads must not be forked, and starting anew would run the program's own main module again
    if things <= FEW or count < 2 or threading.active_count() > 1 or "fork" not in get_all_start_methods():
        yield Workers(None)
        return
    _prepare()
    with ProcessPoolExecutor(count, mp_context=get_context("fork")) as pool:
        yield Workers(pool)


def _prepare() -> None:
    """Loads what every worker needs before they part: they then share its memory."""
    from gpuwhy.causes import catalogue
    from gpuwhy.diagnosis import sign_literals
    from gpuwhy.investigate import agreeing, failing_condition, replaying, target
    from gpuwhy.investigate.checks import forecasting

    catalogue()
    sign_literals()
    del agreeing, failing_condition, replaying, target, forecasting


def read_own(path: str) -> Snapshot:
    """A snapshot of the folder. What this release has written was redacted by the rules that it would use again.

    Raises SnapshotError.
    """
    import zstandard

    try:
        with Path(path).open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as unpacked:
            data = unpacked.read(MOST_BYTES)
        snapshot = msgspec.json.decode(data, type=Snapshot)
    except (OSError, zstandard.ZstdError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # the reader of any snapshot says what is wrong with it
        return read(path)
    return (
        snapshot if snapshot.gpuwhy_version == __version__ and snapshot.schema_version == SCHEMA_VERSION else read(path)
    )


def read_node(asked: tuple[str, str]) -> NodeFacts | str:
    """The facts of a node by its name and file; else why there are none."""
    name, path = asked
    try:
        return node_facts(name, read_own(path))
    except SnapshotError as error:
        return str(error)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError) as error:
        return f"{path} is not shaped as a snapshot is: {error}"[:300]


def judge_file(path: str) -> Judged:
    """What check and diagnose say of the snapshot in a file."""
    return judged(Path(path))


def first_of_each(nodes: Iterable[tuple[int, str]]) -> dict[str, int]:
    """For each key the first node that has it: the one that is judged for all."""
    first: dict[str, int] = {}
    for node, key in nodes:
        first.setdefault(key, node)
    return first
