"""Which releases of packages with compiled parts belong to which torch release.

torchvision and torchaudio are released together with torch, xformers shortly after it; each of their wheels requires
exactly one torch. Provenance: "documented": the requirement ``torch==`` in the metadata of these releases on PyPI.
"""

from __future__ import annotations

from gpuwhy.knowledge.releases import public_version

_TORCHVISION_AHEAD = 15
"""torchvision 0.15 belongs to torch 2.0, 0.16 to 2.1, and so on."""
_XFORMERS = {
    "2.0.0": "0.0.19",
    "2.0.1": "0.0.22",
    "2.1.0": "0.0.22.post7",
    "2.1.1": "0.0.23",
    "2.1.2": "0.0.23.post1",
    "2.2.0": "0.0.24",
    "2.2.1": "0.0.25",
    "2.2.2": "0.0.25.post1",
    "2.3.0": "0.0.26.post1",
    "2.3.1": "0.0.27",
    "2.4.0": "0.0.27.post2",
    "2.4.1": "0.0.28.post1",
    "2.5.0": "0.0.28.post2",
    "2.5.1": "0.0.28.post3",
    "2.6.0": "0.0.29.post2",
    "2.7.0": "0.0.30",
    "2.7.1": "0.0.31.post1",
    "2.8.0": "0.0.32.post1",
}
COMPANIONS = ("torchvision", "torchaudio", "xformers")


def release_for(companion: str, torch: str) -> str | None:
    """The release of ``companion`` that belongs to a torch version, as a constraint ("==0.0.30"); None if unknown."""
    version = public_version(torch)
    if version is None or version.major != 2 or version.is_prerelease:
        return None
    if companion == "torchvision":
        return f"==0.{_TORCHVISION_AHEAD + version.minor}.*"
    if companion == "torchaudio":
        return f"==2.{version.minor}.*" if version.minor <= 8 else None
    if companion == "xformers":
        known = _XFORMERS.get(f"2.{version.minor}.{version.micro}")
        return f"=={known}" if known else None
    return None


def torch_for(companion: str, release: str) -> str | None:
    """The torch that a release of ``companion`` belongs to, as a constraint; None if unknown."""
    version = public_version(release)
    if version is None:
        return None
    if companion == "torchvision" and version.major == 0 and version.minor >= _TORCHVISION_AHEAD:
        return f"==2.{version.minor - _TORCHVISION_AHEAD}.*"
    if companion == "torchaudio" and version.major == 2:
        return f"==2.{version.minor}.*"
    if companion == "xformers":
        for torch, known in _XFORMERS.items():
            if public_version(known) == version:
                return f"=={torch}"
    return None


def has_new_string_abi(torch: str) -> bool | None:
    """Whether the published x86-64 wheels of a torch release were compiled with the string type of C++11.

    Documented in PyTorch's release notes: up to 2.5 with the old one, from 2.7 on with the new one; of 2.6 only the
    builds for CUDA 12.6 and later have the new one, so the answer is None.
    """
    version = public_version(torch)
    if version is None:
        return None
    if (version.major, version.minor) == (2, 6):
        return None
    return (version.major, version.minor) >= (2, 7)
