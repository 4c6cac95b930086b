"""Whole files read and replaced: after a power cut a file is the old one or the new one, never half of one."""

import base64
import errno
import hashlib
import os
import stat
from typing import Any, Dict

from gpuwhy.applier.paths import Folder
from gpuwhy.applier.refusing import Refused, refused_by

MOST_BYTES = 1 << 20
"""Files that gpuwhy changes are configuration: a larger one is not what the plan was made for."""

MARGIN = 256 << 10
"""Bytes that must be free beyond what is written."""

State = Dict[str, Any]
"""``{"is": "absent"}``, or ``{"is": "file", "bytes": base64, "sha256": hex, "mode": 0o644, "uid": 0, "gid": 0}``."""

ABSENT = {"is": "absent"}


def digest(data: bytes) -> str:
    """What a file's content is known by."""
    return hashlib.sha256(data).hexdigest()


def encoded(data: bytes) -> str:
    """Bytes as a record holds them."""
    return base64.b64encode(data).decode("ascii")


def content_of(state: State) -> bytes:
    """The bytes of a file's state."""
    return base64.b64decode(state["bytes"])


def read(folder: Folder, name: str) -> State:
    """The file's whole state; a link, a device or a file that is too long is refused."""
    path = folder.path + "/" + name
    found = folder.state(name)
    if found is None:
        return dict(ABSENT)
    if stat.S_ISLNK(found.st_mode):
        raise Refused("%s is a symbolic link (to %s)" % (path, os.readlink(name, dir_fd=folder.descriptor)), "No link is followed while something is changed: make the change by hand.")  # fmt: skip
    if not stat.S_ISREG(found.st_mode):
        raise Refused("%s is not a regular file" % path)
    if found.st_size > MOST_BYTES:
        raise Refused("%s holds %d bytes: that is no file of gpuwhy's" % (path, found.st_size))
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.descriptor)
    except OSError as error:
        raise refused_by(error, "read", path)
    with os.fdopen(descriptor, "rb") as stream:
        data = stream.read(MOST_BYTES + 1)
        found = os.fstat(stream.fileno())
    return {
        "is": "file",
        "bytes": encoded(data),
        "sha256": digest(data),
        "mode": stat.S_IMODE(found.st_mode),
        "uid": found.st_uid,
        "gid": found.st_gid,
    }


def is_same(one: State, other: State) -> bool:
    """Whether both are absent, or both hold the same bytes."""
    return bool(one["is"] == other["is"] and one.get("sha256") == other.get("sha256"))


def check_room(folder: Folder, needed: int) -> None:
    """Raises Refused when the file system is read-only, full, or not ours to write."""
    room = os.fstatvfs(folder.descriptor)
    if room.f_flag & os.ST_RDONLY:
        raise refused_by(OSError(errno.EROFS, ""), "write to", folder.path)
    free = room.f_bavail if os.geteuid() else room.f_bfree
    if free * room.f_frsize < needed + MARGIN or (room.f_files and not room.f_ffree):
        raise refused_by(OSError(errno.ENOSPC, ""), "write to", folder.path)
    if not os.access(".", os.W_OK | os.X_OK, dir_fd=folder.descriptor, effective_ids=True):
        raise refused_by(OSError(errno.EACCES, ""), "write to", folder.path)


def temporary_name(name: str) -> str:
    """Where a file is written before it takes its name: systemd reads no file of a ``.d`` folder with such a name."""
    return ".%s.gpuwhy-new" % name


def replace(folder: Folder, name: str, state: State) -> None:
    """The file becomes ``state``: its bytes are on the disk under another name before they take this one.

    Raises Refused in the system's words; the file is then what it was.
    """
    path = folder.path + "/" + name
    try:
        if state["is"] == "absent":
            _remove(folder, name)
        else:
            _write(folder, name, state)
    except OSError as error:
        _discard(folder, temporary_name(name))
        raise refused_by(error, "write" if state["is"] == "file" else "remove", path)


def clear_leftovers(folder: Folder, name: str) -> None:
    """Removes what an interrupted write left under its temporary name."""
    try:
        _discard(folder, temporary_name(name))
    except OSError as error:
        raise refused_by(error, "remove", folder.path + "/" + temporary_name(name))


def _write(folder: Folder, name: str, state: State) -> None:
    temporary = temporary_name(name)
    _discard(folder, temporary)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder.descriptor)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content_of(state))
        stream.flush()
        if (state["uid"], state["gid"]) != (os.geteuid(), os.getegid()):
            os.fchown(stream.fileno(), state["uid"], state["gid"])
        os.fchmod(stream.fileno(), state["mode"])
        os.fsync(stream.fileno())
    os.rename(temporary, name, src_dir_fd=folder.descriptor, dst_dir_fd=folder.descriptor)
    folder.sync()


def _remove(folder: Folder, name: str) -> None:
    _discard(folder, temporary_name(name))
    _discard(folder, name)
    folder.sync()


def _discard(folder: Folder, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder.descriptor)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EROFS):
            raise
