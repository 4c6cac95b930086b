"""Whose error an exception carries: CUDA's, a collective library's, another platform's, the kernel's."""

from __future__ import annotations

from gpuwhy.logs.recognisers import collectives, cuda, kernel, platforms


def attributed(text: str) -> tuple[str, dict[str, str]]:
    """The ``tool`` and ``detail`` of an exception with this headline; empty when it is nobody's but Python's.

    A platform goes before CUDA: PyTorch for ROCm words some of its errors as CUDA's.
    """
    told = kernel.recognise(text) if text.startswith("XidCriticalError") else None
    if told is not None:
        return told.tool, told.detail
    platform = platforms.platform_of(text)
    if platform:
        return platform, platforms.details(text)
    library = collectives.library_of(text)
    if library:
        carried = cuda.details(text) if cuda.is_cuda_error(text) else {}
        return library, carried | (collectives.server(text) if library == "rendezvous" else {})
    return ("cuda", cuda.details(text)) if cuda.is_cuda_error(text) else ("", {})
