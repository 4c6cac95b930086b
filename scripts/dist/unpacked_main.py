"""``__main__`` of ``gpuwhy.pyz``: unpacks what this Python needs into a folder of the user's own, once, and starts it.

A zip file cannot be imported from whole: msgspec, zstandard and others are native libraries. One file holds them for several
releases of Python; of these only the running one's are unpacked. Standard library only; says so where Python is too old.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import sysconfig
import tempfile
import zipfile

OLDEST = (3, 10)
SITE = "site-packages/"
IDENTITY = "identity"  # a file in the archive: the digest of all that is in it


def main() -> None:
    """Put the unpacked folder in front of the path and run gpuwhy."""
    if sys.version_info < OLDEST:
        sys.exit("gpuwhy needs Python 3.10 or newer; start it as: python3.12 gpuwhy.pyz")
    sys.path.insert(0, unpacked(sys.argv[0]))
    # data files and the collector's sources are read beside the modules, so nothing may come from the zip file
    for name in [each for each in sys.modules if each == "gpuwhy" or each.startswith("gpuwhy.")]:
        del sys.modules[name]
    from gpuwhy.__main__ import main as gpuwhy

    gpuwhy()


def unpacked(archive: str) -> str:
    """The folder that holds the packages; made on the first run, or for this run alone where no cache can be kept."""
    with zipfile.ZipFile(archive) as opened:
        identity = opened.read(IDENTITY).decode("ascii")
        suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
        cache = _cache()
        if cache is None:
            return _for_this_run(opened, suffix)
        folder = os.path.join(cache, identity + "-" + (sys.implementation.cache_tag or "python"))
        if not os.path.isdir(folder):
            making = tempfile.mkdtemp(prefix="unpacking-", dir=cache)
            try:
                _unpack(opened, making, suffix)
                os.rename(making, folder)
            except OSError as error:
                shutil.rmtree(making, ignore_errors=True)
                if not os.path.isdir(folder):  # another process may have been first
                    sys.exit("gpuwhy: " + str(error) + "; XDG_CACHE_HOME can name a folder with room for 100 MB")
        return folder


def _cache() -> str | None:
    """A folder that only this user can write to: what lies in it is going to be executed."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(base, "gpuwhy", "pyz")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        state = os.lstat(folder)
    except OSError:
        return None
    is_own = stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and not state.st_mode & 0o022
    return folder if is_own and os.access(folder, os.W_OK) else None


def _for_this_run(opened: zipfile.ZipFile, suffix: str) -> str:
    import atexit

    folder = tempfile.mkdtemp(prefix="gpuwhy-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _unpack(opened, folder, suffix)
    return folder


def _unpack(opened: zipfile.ZipFile, folder: str, suffix: str) -> None:
    for member in opened.infolist():
        name = member.filename
        if not name.startswith(SITE) or (_is_native(name) and not _is_for(name, suffix)):
            continue
        path = os.path.join(folder, *name[len(SITE) :].split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with opened.open(member) as source, open(path, "wb") as target:
            shutil.copyfileobj(source, target)


def _is_native(name: str) -> bool:
    return name.endswith(".so")


def _is_for(name: str, suffix: str) -> bool:
    return name.endswith((suffix, ".abi3.so")) or ".cpython-" not in name


if __name__ == "__main__":
    main()
