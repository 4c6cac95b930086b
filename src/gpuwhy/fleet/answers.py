"""The framed answers of a collector (see :mod:`gpuwhy.collector.framing`), as far as they came."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

import msgspec

from gpuwhy.collector.framing import MARK
from gpuwhy.snapshot.document import Probe

MOST_BYTES = 256 << 20
"""More than this is no answer of ours: a small stream can unpack to any size."""


class Answers(msgspec.Struct, frozen=True):
    """The probes' results, what the collector said at its end (empty when it did not come to it), and whether all came."""

    results: list[dict[str, Any]]
    end: dict[str, Any]
    is_whole: bool


def read_answers(output: bytes) -> Answers:
    """Reads what a node wrote to its standard output; lines of others (a banner of a login script) are passed over."""
    text, is_whole = _unpacked(output)
    results: list[dict[str, Any]] = []
    end: dict[str, Any] = {}
    for line in text.split(b"\n"):
        try:
            answer = msgspec.json.decode(line) if line else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            is_whole = False
            continue
        if not isinstance(answer, dict):
            continue
        if isinstance(answer.get("end"), dict):
            end = answer["end"]
        elif _is_result(answer):
            results.append(answer)
    return Answers(results, end, is_whole and bool(end))


def _is_result(answer: dict[str, Any]) -> bool:
    try:
        msgspec.convert(answer, Probe)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


def _unpacked(output: bytes) -> tuple[bytes, bool]:
    """The stream as far as it is sound, and whether that is to its end."""
    stream = zlib.decompressobj()
    parts: list[bytes] = []
    size = 0
    for line in output.split(b"\n"):
        at = line.find(MARK)
        if at < 0:
            continue
        try:
            packed = base64.b64decode(line[at + len(MARK) :].strip(), validate=True)
            parts.append(stream.decompress(packed, MOST_BYTES - size + 1))
        except (binascii.Error, ValueError, zlib.error):
            return b"".join(parts), False
        size += len(parts[-1])
        if size > MOST_BYTES:
            return b"".join(parts), False
    return b"".join(parts), stream.eof
