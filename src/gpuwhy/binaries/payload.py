"""The payload of an image, unpacked: for the names of kernels and of the toolkit, which no header tells.

LZ4 blocks are decoded here; zstd is not in the standard library before 3.14, so its decoder is handed in.
"""

import struct
from typing import Callable, List, Optional

from .cubin import kernel_names, release_of
from .elf import Elf, NotElf
from .fatbin import Container, Image
from .reading import MemorySource, Source

MOST_UNPACKED = 128 << 20

Unpack = Callable[[bytes, int], bytes]
"""Unpacks a zstd frame whose content has at most the given size; raises ValueError for what is none."""


class Packed(Exception):  # noqa: N818 - why there is no payload
    """The payload cannot be unpacked here: a compression without a decoder, or damaged."""


def payload_of(source: Source, image: Image, zstd: Optional[Unpack] = None) -> bytes:
    """The payload of an image. Raises Packed, and Unreadable when the file cannot be read."""
    stored = image.packed_size or image.stored_size
    start, size = image.offset + image.header_size, image.size
    if max(stored, size) > MOST_UNPACKED:
        raise Packed("claims %d bytes" % max(stored, size))
    data = source.read_at(start, stored)
    if len(data) < stored:
        raise Packed("%d of %d bytes are there" % (len(data), stored))
    if image.code.compression == "lz4":
        data = unpack_lz4(data, size)
    elif image.code.compression == "zstd":
        if zstd is None:
            raise Packed("there is no decoder for zstd")
        try:
            data = zstd(data, size)
        except ValueError as error:
            raise Packed(str(error))
    elif image.code.compression:
        raise Packed("compressed in an old way that nothing describes")
    return data[image.inside :] if image.inside >= 0 else data


def unpack_lz4(data: bytes, size: int) -> bytes:
    """Decode an LZ4 block (no frame) of at most ``size`` bytes. Raises Packed."""
    out = bytearray()
    at, end = 0, len(data)
    try:
        while at < end and len(out) < size:
            token = data[at]
            at += 1
            length = token >> 4
            if length == 15:
                while data[at] == 255:
                    length, at = length + 255, at + 1
                length, at = length + data[at], at + 1
            if length > end - at or len(out) + length > size:
                raise Packed("an LZ4 literal that is longer than the block")
            out += data[at : at + length]
            at += length
            if at >= end:
                break
            distance = data[at] | data[at + 1] << 8
            at += 2
            length = token & 15
            if length == 15:
                while data[at] == 255:
                    length, at = length + 255, at + 1
                length, at = length + data[at], at + 1
            length += 4
            if not 0 < distance <= len(out) or len(out) + length > size:
                raise Packed("an LZ4 match that points outside of the block")
            start = len(out) - distance
            if distance >= length:
                out += out[start : start + length]
            else:  # the match overlaps what it writes: its beginning repeats
                out += (out[start:] * (length // distance + 1))[:length]
    except IndexError:
        raise Packed("an LZ4 block that is cut short")
    return bytes(out)


def kernels_of(source: Source, container: Container, zstd: Optional[Unpack] = None) -> List[str]:
    """The kernels (mangled) of a container, by its smallest cubin, or its PTX where it has no cubin.

    The images of a container are one translation unit for several targets, so one image names the kernels of all; a
    kernel that the source leaves out for some targets can be missing. Raises Packed.
    """
    cubins = [image for image in container.images if image.code.kind == "cubin"]
    if cubins:
        smallest = min(cubins, key=lambda image: image.stored_size)
        try:
            return kernel_names(Elf(MemorySource(payload_of(source, smallest, zstd))))
        except NotElf as error:
            raise Packed(str(error))
    texts = [image for image in container.images if image.code.kind in ("ptx", "relocatable ptx")]
    if not texts:
        raise Packed("neither cubin nor PTX")
    return ptx_entries(payload_of(source, texts[0], zstd))


def ptx_entries(text: bytes) -> List[str]:
    """The names behind ``.entry`` in PTX text."""
    names: List[str] = []
    for part in text.split(b".entry")[1:]:
        name = part[:4096].lstrip().partition(b"(")[0].split()
        if name:
            names.append(name[0].decode("ascii", "backslashreplace"))
    return names


def toolkit_of(source: Source, image: Image, zstd: Optional[Unpack] = None) -> str:
    """The CUDA release that a cubin names as its maker ("12.9"); ``""`` where it names none, as before CUDA 12.8."""
    try:
        return release_of(Elf(MemorySource(payload_of(source, image, zstd))))
    except (Packed, NotElf, struct.error):
        return ""
