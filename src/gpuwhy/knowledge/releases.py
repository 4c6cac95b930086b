"""Read version texts, and find the measured neighbours of a version that was not measured."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

from packaging.version import InvalidVersion, Version

#: no real version text is longer; longer ones are not worth parsing
LONGEST_VERSION = 100

_CUDA_RELEASE = re.compile(
    r"(?:cuda|release|v)?[\s_-]*(?P<major>\d{1,2})\.(?P<minor>\d{1,2})(?:[.u, ][\w., ]*)?", re.IGNORECASE | re.ASCII
)
_CUDA_BUILD = re.compile(r"\+?cu(?P<major>\d{1,2}?)(?P<minor>\d)", re.IGNORECASE | re.ASCII)

CudaRelease = tuple[int, int]
Key = TypeVar("Key", CudaRelease, Version)


@lru_cache(maxsize=256)
def cuda_release(text: str) -> CudaRelease | None:
    """("12.8.93", "V12.8.93", "12.8u1", "CUDA 12.8", "cu128") -> (12, 8); None if it is no CUDA version."""
    text = text.strip()
    if len(text) > LONGEST_VERSION:
        return None
    found = _CUDA_RELEASE.fullmatch(text) or _CUDA_BUILD.fullmatch(text)
    return (int(found["major"]), int(found["minor"])) if found else None


def cuda_text(release: CudaRelease) -> str:
    """(12, 8) -> "12.8"."""
    return f"{release[0]}.{release[1]}"


@lru_cache(maxsize=1024)
def package_version(text: str) -> Version | None:
    """A PEP 440 version, or None. A local part ("+cu128", "+git1234") is kept."""
    if len(text) > LONGEST_VERSION:
        return None
    try:
        return Version(text)
    except InvalidVersion:
        return None


@lru_cache(maxsize=1024)
def public_version(text: str) -> Version | None:
    """A PEP 440 version without its local part, for comparison with released versions; or None."""
    version = package_version(text)
    return None if version is None else Version(version.public)


def local_part(text: str) -> str | None:
    """("2.8.0+cu128") -> "cu128"."""
    version = package_version(text)
    return None if version is None else version.local


def neighbours(measured: Sequence[Key], wanted: Key) -> tuple[Key | None, Key | None]:
    """The measured versions just below and just above one that is not among them; `measured` is sorted."""
    place = bisect_left(measured, wanted)
    below = measured[place - 1] if place else None
    above = measured[place] if place < len(measured) else None
    return below, above
