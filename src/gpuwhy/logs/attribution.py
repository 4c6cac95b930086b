"""Whose error an exception carries: CUDA's, a collective library's, another platform's."""

from __future__ import annotations

from gpuwhy.logs.recognisers import collectives, cuda, platforms


def attributed(text: str) -> tuple[str, dict[str, str]]:
    """The ``tool`` and ``detail`` of an exception with this headline; empty when it is nobody's but Python's.

    A platform goes before CUDA: PyTorch for ROCm words some of its errors as CUDA's.
    """
    platform = platforms.platform_of(text)
    if platform:
        return platform, platforms.details(text)
    library = collectives.library_of(text)
    if library:
        told = cuda.details(text) if cuda.is_cuda_error(text) else {}
        return library, told | (collectives.server(text) if library == "rendezvous" else {})
    return ("cuda", cuda.details(text)) if cuda.is_cuda_error(text) else ("", {})
