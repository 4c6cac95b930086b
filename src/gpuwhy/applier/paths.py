"""Ways to files that nobody else can bend: every folder is opened from its parent, no symbolic link is followed.

A folder on the way must belong to root or to whom we run as, and nobody else may write to it: otherwise somebody
could put another file in the place of ours between the look and the change.
"""

import errno
import os
import stat
from types import TracebackType
from typing import Dict, List, Optional, Sequence, Tuple, Type

from gpuwhy.applier.refusing import Missing, Refused, refused_by

LONGEST_PATH = 4000


def parts_of(path: str) -> List[str]:
    """The names on the way to an absolute path. Raises Refused for one that is not plain."""
    parts = path.split("/")[1:]
    is_plain = path.startswith("/") and len(path) < LONGEST_PATH and "\0" not in path and "\n" not in path
    if not is_plain or any(part in ("", ".", "..") for part in parts):
        raise Refused("%r is no plain absolute path" % path[:200])
    return parts


class Folder:
    """An open folder. What is done to a name in it is done there, wherever the path may lead by now."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    def __enter__(self) -> "Folder":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        os.close(self.descriptor)

    def state(self, name: str) -> Optional[os.stat_result]:
        """What ``name`` is, a link not followed; None when it is not there."""
        try:
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            raise

    def sync(self) -> None:
        """The folder's entries are on the disk when this returns."""
        os.fsync(self.descriptor)


def open_folder(root: str, path: str, owners: Sequence[int] = ()) -> Folder:
    """The folder at ``path`` below ``root`` (``""`` for the real one). ``owners``: user ids trusted besides root and us.

    Raises Missing when it is not there, Refused for a link, a foreign owner or foreign writers on the way.
    """
    folder = Folder("", os.open(root or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    for part in parts_of(path):
        with folder:
            inner = open_inner(folder, part, owners)
        folder = inner
    return folder


def open_inner(parent: Folder, name: str, owners: Sequence[int] = ()) -> Folder:
    """The folder ``name`` in ``parent``; raises as :func:`open_folder` does."""
    folder = Folder(parent.path + "/" + name, _opened(parent.descriptor, name, parent.path + "/" + name))
    try:
        _check_trust(os.fstat(folder.descriptor), folder.path, owners)
    except BaseException:
        os.close(folder.descriptor)
        raise
    return folder


def nearest_folder(root: str, path: str, owners: Sequence[int] = ()) -> Folder:
    """The folder at ``path``, or the nearest one above it that is there. Raises Refused."""
    while True:
        try:
            return open_folder(root, path, owners)
        except Missing:
            path = path.rpartition("/")[0]
            if not path:
                raise


def _opened(parent: int, name: str, path: str) -> int:
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise Missing("%s is not there" % path)
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise _no_folder(parent, name, path)
        raise refused_by(error, "open", path)


def _no_folder(parent: int, name: str, path: str) -> Refused:
    if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        leads = os.readlink(name, dir_fd=parent)
        return Refused(
            "%s is a symbolic link (to %s)" % (path, leads),
            "No link is followed while something is changed. Make the change by hand, or replace the link by a folder.",
        )
    return Refused("%s is not a folder" % path)


def _check_trust(state: os.stat_result, path: str, owners: Sequence[int]) -> None:
    me = os.geteuid()
    if state.st_uid not in (0, me) and state.st_uid not in owners:
        raise Refused(
            "%s belongs to user %s, who could exchange what is written there" % (path, user_name(state.st_uid)),
            "Give it to root (chown root:root), or make the change by hand as its owner.",
        )
    if state.st_mode & stat.S_ISVTX:
        return
    is_own_group = me != 0 and state.st_gid == os.getegid()
    is_shared = state.st_mode & stat.S_IWOTH or (state.st_mode & stat.S_IWGRP and not is_own_group)
    if is_shared and state.st_uid not in owners:
        raise Refused(
            "%s can be written by others (mode %03o)" % (path, stat.S_IMODE(state.st_mode)),
            "Take that right away (chmod go-w), or make the change by hand.",
        )


_names: Dict[int, str] = {}


def user_name(uid: int) -> str:
    """The user's name, or the number where it has none."""
    if uid not in _names:
        try:
            import pwd

            _names[uid] = pwd.getpwuid(uid).pw_name
        except (ImportError, KeyError):
            _names[uid] = str(uid)
    return _names[uid]


def split(path: str) -> Tuple[str, str]:
    """The folder and the name of an absolute path. Raises Refused for one that is not plain."""
    parts_of(path)
    folder, _, name = path.rpartition("/")
    if not folder:
        raise Refused("%s lies in the root folder: nothing is changed there" % path)
    return folder, name
