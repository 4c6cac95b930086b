"""Snapshots as files: JSON, compressed with zstd under the suffix ``.gpuwhy``; plain JSON is read as well."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from gpuwhy.snapshot.document import SCHEMA_VERSION, Snapshot

SUFFIX = ".gpuwhy"

MOST_BYTES = 512 << 20
"""A longer document is not one of ours: a small file can unpack to any size."""

_ZSTD = b"\x28\xb5\x2f\xfd"


class SnapshotError(Exception):
    """A file is no snapshot, or one of a format that this release does not know. The message names file and reason."""


def is_snapshot(data: bytes) -> bool:
    """Whether ``data`` looks like a snapshot: by its content, whatever the file is called."""
    if data.startswith(_ZSTD):
        try:
            data = _unpacked(data, 4096)
        except SnapshotError:
            return False
    head = data[:4096].lstrip()
    return head.startswith(b'{"schema_version":"') and b'"target"' in head


def encode(snapshot: Snapshot) -> bytes:
    """The snapshot as JSON."""
    return msgspec.json.encode(snapshot)


def decode(data: bytes, name: str = "snapshot") -> Snapshot:
    """A snapshot from JSON, compressed or not, redacted once more. Raises SnapshotError."""
    if not data.strip():
        raise SnapshotError(f"{name} is no snapshot: it is empty")
    if data.startswith(_ZSTD):
        data = _unpacked(data, MOST_BYTES)
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SnapshotError(f"{name} is no snapshot: {error}") from error
    if not isinstance(document, dict):
        raise SnapshotError(f"{name} is no snapshot: a JSON {type(document).__name__} instead of an object")
    version = document.get("schema_version")
    if not isinstance(version, str) or version.split(".")[0] != SCHEMA_VERSION.split(".")[0]:
        raise SnapshotError(
            f"{name} has schema version {version!r}; this gpuwhy reads {SCHEMA_VERSION.split('.')[0]}.x"
        )
    return from_document(document, name)


def from_document(document: dict[str, Any], name: str = "snapshot") -> Snapshot:
    """A snapshot from its JSON value, redacted once more: it may come from a release that knew fewer secrets."""
    # its patterns are many, and a log alone is no snapshot
    from gpuwhy.redaction import Redactor

    redactor = Redactor()
    try:
        snapshot = msgspec.convert(redactor.value(document), Snapshot)
    except (msgspec.ValidationError, RecursionError) as error:
        raise SnapshotError(f"{name} is no snapshot: {error}") from error
    if redactor.counts:
        counts = dict(snapshot.redacted)
        for kind, count in redactor.counts.items():
            counts[kind] = counts.get(kind, 0) + count
        snapshot = msgspec.structs.replace(snapshot, redacted=counts)
    return snapshot


def read(path: str | Path) -> Snapshot:
    """The snapshot in a file. Raises SnapshotError."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SnapshotError(f"{path}: {error.strerror}") from error
    return decode(data, str(path))


def write(snapshot: Snapshot, path: str | Path, level: int = 10) -> None:
    """Writes the file in one step, readable by its owner alone: it describes a host. ``level`` is zstd's. Raises OSError."""
    import zstandard

    target = Path(path)
    packed = zstandard.ZstdCompressor(level=level).compress(encode(snapshot))
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(packed)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _unpacked(data: bytes, most: int) -> bytes:
    import zstandard

    try:
        reader = zstandard.ZstdDecompressor().stream_reader(data)
        unpacked: bytes = reader.read(most)
        if most == MOST_BYTES and reader.read(1):
            raise SnapshotError(f"the snapshot unpacks to more than {most >> 20} MiB")
    except zstandard.ZstdError as error:
        raise SnapshotError(f"the snapshot cannot be unpacked: {error}") from error
    return unpacked
