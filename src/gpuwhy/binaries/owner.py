"""Which installed Python package a file came with, by the RECORD that installers leave.

.../site-packages/sgl_kernel/flash_ops.abi3.so -> sgl-kernel 0.3.21, 852,000,112 bytes when it was installed
"""

import os
from typing import List, NamedTuple, Optional, Tuple

_MOST_RECORD = 16 << 20
_MOST_METADATA = 1 << 19
_MOST_REQUIRES = 200


class Owner(NamedTuple):
    """A distribution. ``size`` is what the file had when it was installed, None where RECORD does not tell."""

    name: str
    version: str
    folder: str
    requires: Tuple[str, ...]
    size: Optional[int]

    def requires_any(self, *names: str) -> Tuple[str, ...]:
        """The requirements of packages with these names, as the metadata writes them ("torch==2.9.1")."""
        return tuple(each for each in self.requires if _name_of(each) in names)


def owner_of(path: str, packages: str) -> Optional[Owner]:
    """The distribution in a folder of packages that a file belongs to; None when no RECORD lists it."""
    if not packages or not os.path.abspath(path).startswith(packages + "/"):
        return None
    relative = os.path.abspath(path)[len(packages) + 1 :]
    for folder in _candidates(packages, relative):
        row = _row_of(os.path.join(packages, folder, "RECORD"), relative)
        if row is not None:
            name, version, requires = _metadata(os.path.join(packages, folder, "METADATA"))
            size = row.rpartition(",")[2].strip()
            return Owner(name, version, folder, requires, int(size) if size.isdigit() and len(size) < 16 else None)
    return None


def installed_version(name: str, packages: str) -> str:
    """The release of a package in a folder of packages, by its folder of metadata; ``""`` when it is not there."""
    start = name.lower().replace("-", "_") + "-"
    try:
        folders = sorted(os.listdir(packages))
    except OSError:
        return ""
    return next(
        (each[len(start) : -10] for each in folders if each.lower().startswith(start) and each.endswith(".dist-info")),
        "",
    )


def _candidates(packages: str, relative: str) -> List[str]:
    """Folders of metadata; those named like the file's top folder come first."""
    try:
        folders = [name for name in sorted(os.listdir(packages)) if name.endswith(".dist-info")]
    except OSError:
        return []
    top = relative.partition("/")[0].partition(".")[0].lower().replace("-", "_")
    return sorted(folders, key=lambda name: not name.lower().startswith(top + "-"))


def _row_of(record: str, relative: str) -> Optional[str]:
    try:
        with open(record, "rb") as file:
            text = file.read(_MOST_RECORD)
    except OSError:
        return None
    wanted = relative.encode("utf-8", "surrogateescape") + b","
    at = 0 if text.startswith(wanted) else text.find(b"\n" + wanted) + 1
    if at == 0 and not text.startswith(wanted):
        return None
    return text[at:].partition(b"\n")[0].decode("utf-8", "replace")


def _metadata(path: str) -> Tuple[str, str, Tuple[str, ...]]:
    name, version = os.path.basename(os.path.dirname(path))[: -len(".dist-info")].rpartition("-")[::2]
    requires: List[str] = []
    try:
        with open(path, "rb") as file:
            lines = file.read(_MOST_METADATA).decode("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if not line.strip():  # the description begins
            break
        key, _, value = line.partition(":")
        if key == "Requires-Dist" and len(requires) < _MOST_REQUIRES:
            requires.append(value.strip()[:200])
        elif key == "Name":
            name = value.strip()
        elif key == "Version":
            version = value.strip()
    return name, version, tuple(requires)


def _name_of(requirement: str) -> str:
    end = next((at for at, each in enumerate(requirement) if not (each.isalnum() or each in "-_.")), len(requirement))
    return requirement[:end].lower().replace("_", "-")
