"""The binaries under a path: a file itself, or those of a folder or a Python environment."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

_NAMED_LIKE_ONE = re.compile(r"\.(?:so(?:\.[\w.]{1,40})?|cubin|fatbin|ptx|a|o|pyd|dll|dylib|whl)$", re.IGNORECASE)
_MOST_FILES = 1_000_000


def binaries_under(path: Path, wheels: bool = True) -> Iterator[Path]:
    """``path`` itself, or in a folder every file that is named like a binary, or is executable and no script.

    Folders are not entered through links, and a file that several names link to comes once, under its own name if that
    is there. The order is that of the names.
    """
    if not path.is_dir():
        yield path
        return
    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(path, followlinks=False):
        folders.sort()
        for name in sorted(names):
            if len(seen) > _MOST_FILES:
                return
            found = Path(folder, name)
            is_named = bool(_NAMED_LIKE_ONE.search(name)) and (wheels or not name.endswith(".whl"))
            if not is_named and "." in name:
                continue
            try:
                status = found.stat() if is_named else found.lstat()
            except OSError:
                continue
            if not stat.S_ISREG(status.st_mode) or (not is_named and not status.st_mode & stat.S_IXUSR):
                continue
            if found.is_symlink() and found.resolve().is_relative_to(path.resolve()):
                continue  # it comes under its own name
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                yield found


def site_packages(environment: Path) -> tuple[Path, ...]:
    """The folders that a Python environment imports packages from; none when it is no environment.

    ``environment`` is the folder with ``bin/python``, or a folder of packages itself.
    """
    if environment.name in ("site-packages", "dist-packages"):
        return (environment,)
    found = [
        folder
        for pattern in ("lib/python3*/site-packages", "lib/python3*/dist-packages", "lib64/python3*/site-packages")
        for folder in sorted(environment.glob(pattern))
        if folder.is_dir()
    ]
    return tuple(dict.fromkeys(folder.resolve() for folder in found))
