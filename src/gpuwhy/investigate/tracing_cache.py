"""Files that were fetched from targets, kept on this machine by content; and which of them a question needed.

A file is taken from here when the target says that its size and time of change are those of the last time.
"""

from __future__ import annotations

import hashlib

import msgspec

from gpuwhy.investigate.tracing_package import Stamp
from gpuwhy.source import Cache
from gpuwhy.source.roots import content_hash
from gpuwhy.targets import Query

_OLDEST = 1_000_000_000.0
"""Times before that are none: builds that can be repeated set the same one for every file."""


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """The content of a file of a target, as it was when it had the stamp."""

    stamp: Stamp
    content: str


class Needed(msgspec.Struct, frozen=True, array_like=True):
    """What a question needed of a package."""

    package: str
    folder: str
    paths: tuple[str, ...]
    queries: tuple[Query, ...]


class FetchedFiles:
    """``target`` is what the user called it; two targets share contents, not what is known of their files."""

    def __init__(self, cache: Cache, target: str) -> None:
        self._cache = cache
        self._target = target

    def kept(self, folder: str, version: str, path: str) -> Kept | None:
        found = self._cache.get("stamps", _key(self._target, folder, version, path))
        try:
            return msgspec.msgpack.decode(found, type=Kept) if found is not None else None
        except (msgspec.DecodeError, msgspec.ValidationError):
            return None

    def content(self, kept: Kept) -> bytes | None:
        """None when it is not there any more, or was changed."""
        content = self._cache.get("fetched", kept.content)
        return content if content is not None and content_hash(content) == kept.content else None

    def keep(self, folder: str, version: str, path: str, stamp: Stamp, content: bytes) -> None:
        if stamp.modified < _OLDEST:
            return
        key = content_hash(content)
        self._cache.put("fetched", key, content)
        self._cache.put("stamps", _key(self._target, folder, version, path), msgspec.msgpack.encode(Kept(stamp, key)))

    def needed(self, question: str) -> tuple[Needed, ...]:
        """What the same question needed of this target the last time."""
        found = self._cache.get("needed", _key(self._target, question))
        try:
            return msgspec.msgpack.decode(found, type=tuple[Needed, ...]) if found is not None else ()
        except (msgspec.DecodeError, msgspec.ValidationError):
            return ()

    def note_needed(self, question: str, needed: tuple[Needed, ...]) -> None:
        self._cache.put("needed", _key(self._target, question), msgspec.msgpack.encode(needed))


def _key(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
