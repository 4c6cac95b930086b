"""Finds the container of a kernel: by the names in one image of each container, unpacked on demand."""

from __future__ import annotations

import re
from collections.abc import Callable

from gpuwhy.binaries.examining import Binary
from gpuwhy.binaries.payload import Packed, kernels_of
from gpuwhy.binaries.reading import PartSource, Source
from gpuwhy.knowledge.capability import ComputeCapability
from gpuwhy.knowledge.loading import choose
from gpuwhy.model.inspection import Kernel

MOST_FOUND = 2000


def find_kernels(
    source: Source, binary: Binary, name: str, gpu: ComputeCapability | None, driver: str
) -> tuple[tuple[Kernel, ...], str]:
    """The kernels of a file whose name has ``name`` in it, each with what the driver takes of its container.

    ``name`` may be mangled, or as a person writes it: of ``vllm::rms_norm_kernel<half>`` the words before the template's
    arguments count. Also answers what could not be looked into, or ``""``.
    """
    found: list[Kernel] = []
    packed, why = 0, ""
    is_named = _matcher(name)
    for group, container in binary.device.containers():
        part = PartSource(source, group.base, source.size - group.base) if group.base else source
        try:
            names = [each for each in kernels_of(part, container, unpack_zstd) if is_named(each)]
        except Packed as error:
            packed, why = packed + 1, str(error)
            continue
        if not names or len(found) >= MOST_FOUND:
            continue
        codes = tuple(image.code for image in container.images)
        choice = choose(codes, gpu, driver) if gpu else None
        architectures = tuple(dict.fromkeys(code.architecture for code in codes))
        for each in names:
            kernel = Kernel(each, group.section, group.base + container.offset, architectures)
            if choice:
                kernel = Kernel(
                    each, group.section, kernel.offset, architectures, choice.outcome, choice.taken, choice.why
                )
            found.append(kernel)
    return tuple(found), f"{packed} containers could not be looked into: {why}" if packed else ""


def _matcher(name: str) -> Callable[[str], bool]:
    """Whether a mangled name is meant: it holds each identifier of ``name``, which mangling leaves as they are."""
    if name.startswith("_Z"):
        return lambda mangled: mangled.startswith(name)
    words = re.findall(r"[A-Za-z_]\w{0,200}", re.split(r"[<(]", name[:2000], maxsplit=1)[0])
    return lambda mangled: bool(words) and all(word in mangled for word in words)


def unpack_zstd(data: bytes, size: int) -> bytes:
    """The content of a zstd frame, at most ``size`` bytes, whatever the frame claims. Raises ValueError."""
    import zstandard

    try:
        return zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data).read(size)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
