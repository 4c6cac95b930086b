"""Packages of the distribution that belong to the GPU: ``dpkg -l`` and ``rpm -qa``.

ii  libnvidia-compute-570   570.86.15-0ubuntu1   amd64   NVIDIA libcompute package
nvidia-fabricmanager-570.86.15-1.x86_64
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Statement, Strength

LITERALS = ("nvidia", "cuda-", "libnccl", "libcudnn")
_NAME = r"(?:lib)?(?:nvidia|cuda|nccl|cudnn)[a-z0-9.+-]{0,60}"
_DPKG = Pattern(
    rf"^[ih]i\s{{1,4}}(?P<name>{_NAME})(?::\w{{1,8}})?\s{{1,80}}(?P<version>\d[\w.+:~-]{{1,60}})\s{{1,40}}(?:amd64|arm64|all|i386)\b"
)
_RPM = Pattern(
    rf"^(?P<name>{_NAME}?)-(?P<version>(?:\d{{1,2}}:)?\d[\d.]{{1,30}}-\d[\w.~]{{0,30}}?)(?:\.(?:el|fc|amzn|suse)\w{{0,12}})?\.(?:x86_64|aarch64|noarch)\s*$"
)
_COMPILER = Pattern(r"^cuda-nvcc-(?P<major>\d{1,2})-(?P<minor>\d{1,2})$")
_USER_SPACE = Pattern(r"^libnvidia-compute-\d{3}(?:-\w{1,12})?$")
_MODULE = Pattern(r"^nvidia-(?:dkms|kernel-source)-\d{3}(?:-\w{1,12})?$")


def read(text: str) -> Iterator[Statement]:
    shown = text[:300]
    found = _DPKG.match(shown) or _RPM.match(shown)
    if found is None:
        return
    name, version = found["name"], found["version"]
    yield Statement(f"system_packages.{name}", version, Strength.REPORTED)
    compiler = _COMPILER.match(name)
    if compiler is not None:
        release = f"{compiler['major']}.{compiler['minor']}"
        yield Statement(f"other_toolkits./usr/local/cuda-{release}", release, Strength.REPORTED)
    number = version.partition("-")[0]
    if _USER_SPACE.match(name):
        yield Statement("driver_library", number, Strength.PRINTED)
    elif _MODULE.match(name):
        yield Statement("driver_installed", number, Strength.PRINTED)
