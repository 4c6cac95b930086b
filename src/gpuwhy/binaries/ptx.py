"""PTX text: the version and the target that its head names."""

import re
from typing import Optional

from .fatbin import Code

_VERSION = re.compile(rb"^\s{0,20}\.version\s{1,20}(\d{1,3})\.(\d{1,3})", re.MULTILINE)
_TARGET = re.compile(rb"^\s{0,20}\.target\s{1,20}sm_(\d{2,4})([af]?)\b([^\n]{0,200})", re.MULTILINE)


def looks_like_ptx(text: bytes) -> bool:
    """Whether the first line that is neither blank nor a comment names a PTX version."""
    for line in text.split(b"\n")[:100]:
        if line.strip() and not line.lstrip().startswith(b"//"):
            return line.lstrip().startswith(b".version") and b"\0" not in text
    return False


def read_ptx(text: bytes) -> Optional[Code]:
    """``.version 8.7`` and ``.target sm_120a`` as an image's code; None where the text names no target."""
    version, target = _VERSION.search(text), _TARGET.search(text)
    if version is None or target is None:
        return None
    isa = "%d.%d" % (int(version.group(1)), int(version.group(2)))
    is_debug = b"debug" in target.group(3)
    return Code("ptx", int(target.group(1)), target.group(2).decode("ascii"), isa, "", is_debug, True)
