"""Reading files of the target: bounded, never waiting on a pipe or a device, text of any encoding."""

import os
import stat
from typing import Dict, List, Optional

from gpuwhy.collector.probing import Failed, NoValue, why_unreadable

MOST_BYTES = 1 << 20


def read_bytes(path: str, most: int = MOST_BYTES, offset: int = 0) -> bytes:
    """At most ``most`` bytes of a regular file. Raises Absent, Denied, Failed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise why_unreadable(error, path) if isinstance(error, OSError) else Failed("%r is no path" % path)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Failed("%s: not a regular file" % path)
        if offset:
            os.lseek(descriptor, offset, os.SEEK_SET)
        parts: List[bytes] = []
        left = most
        while left > 0:
            part = os.read(descriptor, min(left, 1 << 16))
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    except OSError as error:
        raise why_unreadable(error, path)
    finally:
        os.close(descriptor)


def read_text(path: str, most: int = MOST_BYTES) -> str:
    """The beginning of a text file; bytes that are no UTF-8 are replaced. Raises Absent, Denied, Failed."""
    return read_bytes(path, most).decode("utf-8", "replace")


def try_text(path: str, most: int = MOST_BYTES) -> Optional[str]:
    """The beginning of a text file, None when it cannot be read for whatever reason."""
    try:
        return read_text(path, most)
    except NoValue:
        return None


def try_line(path: str) -> Optional[str]:
    """The first line of a small file such as those in ``/sys``, stripped; None when it cannot be read."""
    text = try_text(path, 4096)
    return None if text is None else text.strip().split("\n")[0]


def try_list(directory: str, most: int = 2000) -> List[str]:
    """The sorted names in a directory, at most ``most``; none when it cannot be listed."""
    try:
        return sorted(os.listdir(directory))[:most]
    except (OSError, ValueError):
        return []


def key_values(text: str, separator: str = "=") -> Dict[str, str]:
    """Lines ``KEY=VALUE`` as a mapping; lines without the separator are left out."""
    pairs = (line.partition(separator) for line in text.splitlines() if separator in line)
    return {key.strip(): value.strip() for key, _, value in pairs}
