"""What the linker finds: ``ldd FILE`` and ``ldconfig -p``.

libcudart.so.12 => not found
libcuda.so.1 => /usr/lib/wsl/lib/libcuda.so.1 (0x00007f1c00000000)
libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Statement, Strength

LITERALS = ("=> not found", "libcuda.so.1 ")
_MISSING = Pattern(r"^\s{0,16}(?P<name>[\w+-]{1,80}\.so[\w.-]{0,40}) => not found\s*$")
_LOADED = Pattern(r"^\s{0,16}libcuda\.so\.1 => (?P<path>/\S{1,400}) \(0x[0-9a-f]{1,16}\)\s*$")
_CACHED = Pattern(r"^\s{0,16}libcuda\.so\.1 \(libc6,(?:x86-64|AArch64)\S{0,40}\) => (?P<path>/\S{1,400})\s*$")


def read(text: str) -> Iterator[Statement]:
    shown = text[:800]
    missing = _MISSING.match(shown)
    if missing is not None:
        name = missing["name"]
        yield Statement(f"files.{name}", None, Strength.REPORTED)
        if name == "libcuda.so.1":
            yield Statement("libcuda_path", None, Strength.REPORTED)
        return
    loaded, cached = _LOADED.match(shown), _CACHED.match(shown)
    if loaded is not None:
        yield Statement("libcuda_path", loaded["path"], Strength.REPORTED)
    elif cached is not None:  # the first of several counts; a process may still be given another
        yield Statement("libcuda_path", cached["path"], Strength.PRINTED)
