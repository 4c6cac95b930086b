"""What was worked out once is kept on this machine, by content: word indexes and facts of files. Never on a target."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

FORMAT = "1"
"""Changes with the meaning of what is kept."""


class Cache:
    """Documents by name below a folder. A folder that cannot be written or read makes it slower, never wrong."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._is_writable = folder is not None

    @classmethod
    def of_user(cls) -> Cache:
        """Below ``$XDG_CACHE_HOME``, ``~/.cache`` by default."""
        base = os.environ.get("XDG_CACHE_HOME") or ""
        try:
            home = Path(base) if base.startswith("/") else Path.home() / ".cache"
        except RuntimeError:
            return cls(None)
        return cls(home / "gpuwhy" / "source" / FORMAT)

    def get(self, kind: str, key: str) -> bytes | None:
        if self._folder is None:
            return None
        try:
            return self._path(self._folder, kind, key).read_bytes()
        except OSError:
            return None

    def put(self, kind: str, key: str, content: bytes) -> None:
        """Seen by others only when it is whole."""
        if self._folder is None or not self._is_writable:
            return
        path = self._path(self._folder, kind, key)
        part = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            number, part = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(number, "wb") as file:
                file.write(content)
            Path(part).replace(path)
        except OSError:
            self._is_writable = False
            with contextlib.suppress(OSError):
                if part:
                    Path(part).unlink()

    def _path(self, folder: Path, kind: str, key: str) -> Path:
        return folder / kind / key[:2] / key[2:]
