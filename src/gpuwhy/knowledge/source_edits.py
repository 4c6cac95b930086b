"""Changes of installed source that cure a failure, for a person who decides to patch: never made by gpuwhy itself."""

from __future__ import annotations

from msgspec import Struct


class SourceEdit(Struct, frozen=True):
    """Lines that are put at the beginning of a function. ``path`` is as below ``site-packages``.

    ``stands`` must stand in the function, or it is another release than the edit was written for.
    """

    path: str
    function: str
    lines: tuple[str, ...]
    stands: tuple[str, ...]
    provenance: str


_EDITS = (
    SourceEdit(
        path="flashinfer/compilation_context.py",
        function="_normalize_cuda_arch",
        lines=(
            "if (major, minor) == (12, 0):",
            "    from flashinfer.jit.cpp_ext import is_cuda_version_at_least",
            "",
            '    if is_cuda_version_at_least("12.8") and not is_cuda_version_at_least("12.9"):',
            '        return (major, "0a")',
        ),
        stands=("from flashinfer.jit.cpp_ext import is_cuda_version_at_least", "SM 12.x requires CUDA >= 12.9"),
        provenance="derived: read in 0.6.18.post1; 0.7.1 does the same by itself, and nvcc 12.8.93 knows sm_120a",
    ),
)


def edit_of(path: str) -> SourceEdit | None:
    """The edit of a file, by the end of its path."""
    return next((each for each in _EDITS if path == each.path or path.endswith(f"/{each.path}")), None)
