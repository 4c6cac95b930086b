"""Where an agent may look: the places and folders that whoever started the server has named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gpuwhy.api import GpuwhyError
from gpuwhy.targets import FileTarget, TargetError, parse_where

_PLACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:/%+\[\]~-]{0,254}")
"""A live place: no blanks, no quotes, nothing that a program could take for an option."""
_LIKE_A_FILE = re.compile(
    r"^[^@:]+\.(?:log|txt|md|json|yaml|gpuwhy|export|out|err|journal|zst|gz|xz|bz2)$", re.IGNORECASE
)
"""What is called so and is not there is a file that the agent takes to be elsewhere, and no host."""
_WITHIN_A_PART = r"[^@:/.]*"
_ANYTHING_BELOW = r"[^@:/]*"


class NotAllowedError(GpuwhyError):
    """The agent named something that it may not look at."""


class Allowed(msgspec.Struct, frozen=True):
    """``places`` are patterns of WHERE: ``*`` is any text without ``@ : / .``, ``**`` also with dots. ``folders`` are absolute."""

    places: tuple[str, ...]
    folders: tuple[Path, ...]

    def place(self, where: str, via: str = "") -> str:
        """``where``, if it is a live place that is allowed, or a file in an allowed folder (then its full path).

        Raises NotAllowedError.
        """
        if where == "-":
            raise NotAllowedError(
                "standard input belongs to this connection\nPass the log's text as `text`, or name a file."
            )
        if not via and self._is_file(where):
            return str(self.file(where))
        for named in (where, via) if via else (where,):
            if not _PLACE.fullmatch(named) or not any(_matches(named, pattern) for pattern in self.places):
                if not via and _LIKE_A_FILE.search(named):
                    raise NotAllowedError(
                        f"there is no file {named[:200]!r} below {self.folders[0]}, and no place of that name may be examined\n"
                        f"Name a file that is there, or one of: {', '.join(self.places) or 'none'}."
                    )
                raise NotAllowedError(
                    f"{named[:80]!r} is not among the places that this server may examine: {', '.join(self.places) or 'none'}\n"
                    f"Use one of them or a file below {self.folders[0]}, or ask the user to restart gpuwhy mcp with --allow."
                )  # fmt: skip
        return where

    def file(self, path: str) -> Path:
        """The full path of a file or folder in an allowed folder; relative names are below the first.

        Links are followed before it is decided. Raises NotAllowedError.
        """
        try:
            full = (self.folders[0] / path).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise NotAllowedError(f"{path[:80]!r} is no path that can be read") from error
        if not any(full == folder or folder in full.parents for folder in self.folders):
            raise NotAllowedError(
                f"{path[:200]!r} is outside the folders that this server may read: {', '.join(map(str, self.folders))}\n"
                "Copy the file there, or ask the user to restart gpuwhy mcp with --folder."
            )
        return full

    def files(self, paths: Sequence[str]) -> list[Path]:
        """As :meth:`file`, each."""
        return [self.file(path) for path in paths]

    def _is_file(self, where: str) -> bool:
        """As the command line decides it, but for relative names: they are below the first folder."""
        try:
            target = parse_where(where)
            if isinstance(target, FileTarget):
                return True
            return target.kind == "ssh" and "\0" not in where and (self.folders[0] / where).exists()
        except (TargetError, OSError, ValueError):
            return False


def allowed(patterns: Sequence[str], folders: Sequence[Path]) -> Allowed:
    """``patterns`` empty: this machine alone. Raises ValueError for a folder that is none."""
    full = tuple(folder.resolve() for folder in folders)
    for folder in full:
        if not folder.is_dir():
            raise ValueError(f"{folder} is no folder")
    return Allowed(tuple(patterns) or ("local",), full)


def _matches(place: str, pattern: str) -> bool:
    parts = re.split(r"(\*{1,2})", pattern)
    stars = {"*": _WITHIN_A_PART, "**": _ANYTHING_BELOW}
    return re.fullmatch("".join(stars.get(part) or re.escape(part) for part in parts), place) is not None
