"""Container images: what the name and tag of a published one say.

image: vllm/vllm-openai:v0.9.0
FROM nvidia/cuda:12.8.0-devel-ubuntu22.04
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Statement, Strength, size_of

LITERALS = ("shm_size:", "image:", "Image:", "FROM ", "镜像")
_NAMED = Pattern(
    r"^\s*(?:[-*] )?(?:\*\*)?(?:image|(?:docker|container) image|镜像|docker ?镜像)(?:\*\*)?\s*[:：](?:\*\*)?\s*[\"'`]?(?P<image>[a-z0-9][\w.-]{0,100}(?:[:/][\w.-]{1,100}){1,5}(?:@sha256:[0-9a-f]{8,64})?)[\"'`]?\s*$",
    re.IGNORECASE,
)
_FROM = Pattern(
    r"^FROM (?:--platform=\S{1,40} )?(?P<image>[a-z0-9][\w.-]{0,100}(?:[:/][\w.-]{1,100}){1,5})(?: AS \w{1,60})?\s*$",
    re.IGNORECASE,
)
_RELEASES = (
    ("vllm", Pattern(r"(?:^|/)vllm/vllm-openai:v(?P<version>\d{1,3}\.\d{1,3}\.\d{1,3}(?:\.?(?:post|rc)\d{1,3})?)(?:-|$|@)")),
    ("sglang", Pattern(r"(?:^|/)lmsysorg/sglang:v(?P<version>\d{1,3}\.\d{1,3}\.\d{1,3}(?:\.?(?:post|rc)\d{1,3})?)(?:-|$|@)")),
    ("tensorrt-llm", Pattern(r"nvcr\.io/nvidia/tensorrt-llm/release:(?P<version>\d{1,3}\.\d{1,3}\.\d{1,3}(?:rc\d{1,3})?(?:\.post\d{1,3})?)(?:-|$|@)")),
)  # fmt: skip
_CUDA = Pattern(r"(?:^|/)nvidia/cuda:(?P<version>\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)-")
_ENGINE = Pattern(r"vllm|sglang|tritonserver|tensorrt|llama|ollama|text-generation|lmdeploy|aphrodite", re.IGNORECASE)


_SHM = Pattern(r"^\s{0,40}shm_size:\s{1,4}[\"']?(?P<size>\d{1,15} ?[kmgKMG]?[bB]?)[\"']?\s*$")


def read(text: str) -> Iterator[Statement]:
    """``image:`` and ``shm_size:`` of a manifest, ``FROM`` of a Dockerfile (which says nothing about the final image)."""
    shown = text[:600]
    shm = _SHM.match(shown) if "shm_size" in shown else None
    size = size_of(shm["size"].replace(" ", "")) if shm is not None else None
    if size:
        yield Statement("shm_bytes", size, Strength.PROSE)
        return
    found = _NAMED.match(shown)
    if found is not None:
        yield from named(found["image"], Strength.PROSE)
        return
    found = _FROM.match(shown)
    cuda = _CUDA.search(found["image"]) if found is not None else None
    if cuda is not None:
        yield Statement("container.image_cuda", cuda["version"], Strength.PROSE)


def named(image: str, strength: Strength) -> Iterator[Statement]:
    """What the image says by its name: itself, the engine's release, the CUDA it holds."""
    yield Statement("container.image", image, strength)
    for package, pattern in _RELEASES:
        found = pattern.search(image)
        if found is not None:
            yield Statement(f"packages.{package}", found["version"], Strength.PROSE)
    cuda = _CUDA.search(image)
    if cuda is not None:
        yield Statement("container.image_cuda", cuda["version"], Strength.PROSE)


def is_engine(image: str) -> bool:
    """Whether the image is that of an inference engine, rather than one to try the GPU with."""
    return _ENGINE.search(image) is not None
