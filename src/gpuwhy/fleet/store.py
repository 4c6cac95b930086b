"""The folder of a fleet: one snapshot a node, and an index of what became of each.

::

    FOLDER/index.sqlite        node: one row a node;  run: how it was collected
    FOLDER/nodes/NAME.gpuwhy   the snapshots, as `gpuwhy collect` writes them

A row is written after its snapshot, each in one step: what the index names is there and whole, whenever the run was cut.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import msgspec

from gpuwhy.snapshot import Snapshot, read, write
from gpuwhy.snapshot.file import SUFFIX

INDEX = "index.sqlite"

OK, PARTIAL, REFUSED, UNREACHABLE, TIMED_OUT, NO_PYTHON, DENIED, FAILED = STATUSES = (
    "ok", "partial", "refused", "unreachable", "timed out", "no python", "denied", "failed",
)  # fmt: skip
"""What became of a node: ``partial`` has a snapshot that lacks something, all after it have none."""

WITH_SNAPSHOT = (OK, PARTIAL)

_TABLES = """
CREATE TABLE IF NOT EXISTS node (
    name TEXT PRIMARY KEY, status TEXT, reason TEXT, seconds REAL, bytes INTEGER, file TEXT, collected_at TEXT,
    engine TEXT, unit TEXT);
CREATE TABLE IF NOT EXISTS run (key TEXT PRIMARY KEY, value TEXT);
"""

_LEVEL = 1
"""Of zstd: an eighteenth of the default's time for a twentieth more bytes, while all other nodes wait (bench_fleet.py)."""

_LONGEST_NAME = 200
"""File systems take 255 bytes; the suffix and the name of a file in writing need some of them."""


class StoreError(Exception):
    """A folder is not one of a fleet, or cannot be written. The message says which and why."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the index. ``seconds`` is how long the node took, ``bytes`` what it sent, ``collected_at`` in UTC (ISO 8601).

    ``file`` is relative to the folder, and empty where there is no snapshot; ``reason`` is empty for ``ok``.
    """

    name: str
    status: str
    reason: str = ""
    seconds: float = 0.0
    bytes: int = 0
    file: str = ""
    collected_at: str = ""
    engine: str = ""
    unit: str = ""


class Store:
    """A folder of a fleet. Use it as a context manager, from one thread."""

    def __init__(self, folder: str | Path, create: bool = False) -> None:
        """Opens the folder; ``create`` makes it where it is missing. Raises StoreError."""
        self.folder = Path(folder)
        index = self.folder / INDEX
        if not create and not index.is_file():
            raise StoreError(f"{folder} is no folder of a fleet: it has no {INDEX} (gpuwhy fleet collect makes one)")
        try:
            if create:
                # what it holds describes hosts: it is for its owner alone
                (self.folder / "nodes").mkdir(mode=0o700, parents=True, exist_ok=True)
            self.connection = sqlite3.connect(index, timeout=30.0)
            if create:
                # whole at every moment as well, but without three waits for the disk per node
                self.connection.execute("PRAGMA journal_mode=WAL")
                self.connection.execute("PRAGMA synchronous=NORMAL")
            self.connection.executescript(_TABLES)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{folder} cannot be used: {error}") from error

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        # one file again, which can be read where nothing can be written; not when somebody else reads it just now
        with contextlib.suppress(sqlite3.Error):
            self.connection.execute("PRAGMA journal_mode=DELETE")
        self.connection.close()

    def keep(self, node: Node, snapshot: Snapshot | None = None) -> Node:
        """Writes the snapshot, then the row; both replace those of before, also where there is no snapshot any more.

        Returns the row as it was written. Raises StoreError.
        """
        file = f"nodes/{file_name(node.name)}" if snapshot is not None else ""
        row = msgspec.structs.replace(node, file=file)
        path = self.folder / "nodes" / file_name(node.name)
        try:
            if snapshot is not None:
                write(snapshot, path, _LEVEL)
            self.note(row)
            if snapshot is None:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error}") from error
        return row

    def note(self, node: Node) -> None:
        """Writes the row alone. Raises StoreError."""
        try:
            with self.connection:
                self.connection.execute(
                    "INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", msgspec.structs.astuple(node)
                )
        except sqlite3.Error as error:
            raise StoreError(f"{self.folder / INDEX} cannot be written: {error}") from error

    def nodes(self, *statuses: str) -> list[Node]:
        """The rows in the order of their names, all or those with one of ``statuses``."""
        rows = self.connection.execute(
            "SELECT name, status, reason, seconds, bytes, file, collected_at, engine, unit FROM node ORDER BY name"
        )
        found = [Node(**dict(zip(Node.__struct_fields__, row, strict=True))) for row in rows]
        return [node for node in found if not statuses or node.status in statuses]

    def snapshots(self) -> Iterator[tuple[Node, Snapshot]]:
        """Each node that has a snapshot, with it, one at a time. Raises SnapshotError for a file that is damaged."""
        for node in self.nodes():
            if node.file:
                yield node, self.snapshot(node)

    def snapshot(self, node: Node) -> Snapshot:
        """The snapshot of a node. Raises SnapshotError for a file that is damaged or gone."""
        return read(self.folder / node.file)

    def note_run(self, values: Mapping[str, str]) -> None:
        """Keeps how the folder was collected: ``engine``, ``nodes``, ``started``, ``ended``, ``gpuwhy_version`` ..."""
        try:
            with self.connection:
                self.connection.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", list(values.items()))
        except sqlite3.Error as error:
            raise StoreError(f"{self.folder / INDEX} cannot be written: {error}") from error

    def run(self) -> dict[str, str]:
        """What :meth:`note_run` kept."""
        return dict(self.connection.execute("SELECT key, value FROM run ORDER BY key"))


def file_name(node: str) -> str:
    """A name for the snapshot of ``node`` that any file system takes, and that no other node has."""
    escaped = quote(node, safe="+,=@")
    if escaped.startswith("."):
        escaped = "%2E" + escaped[1:]
    if len(escaped) > _LONGEST_NAME:
        escaped = f"{escaped[: _LONGEST_NAME - 17]}~{hashlib.sha256(node.encode()).hexdigest()[:16]}"
    return escaped + SUFFIX
