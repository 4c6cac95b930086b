"""Which packages, releases and files are read for their environment variables and options."""

from __future__ import annotations

import re

from msgspec import Struct

from scripts.fingerprinting.coverage import Package


class Declared(Struct, frozen=True):
    """One package: whose variables (by prefix) and, for a server, whose options are read in which files.

    `options` matches paths below the package's folder that declare the server's options; "" for a library.
    """

    package: Package
    prefixes: tuple[str, ...]
    options: str = ""

    def declares_options(self, below: str) -> bool:
        """Whether the server's options are declared in this file, given below the package's folder."""
        return bool(self.options) and re.match(self.options, below) is not None


def _read(name: str, folder: str, oldest: str, kept: str) -> Package:
    """A package of which only the files that match are read."""
    return Package(name, folder, oldest, left_out=r".", kept=kept)


_SOURCES = r"(?!(?:.{1,200}/)?(?:tests?|benchmarks?|third_party|examples?)/)"

PACKAGES = {
    declared.package.name: declared
    for declared in (
        Declared(
            _read("vllm", "vllm", "0.6.0", r"envs\.py$|config\.py$|config/|engine/arg_utils\.py$|entrypoints/|scripts\.py$|utils/|utils\.py$|plugins/|logger\.py$|env_override\.py$"),
            ("VLLM_",),
            r"engine/arg_utils\.py$|entrypoints/|config\.py$|config/",
        ),
        Declared(
            _read("sglang", "sglang", "0.4.0", _SOURCES + r"(?!multimodal_gen/|lang/|srt/models/|srt/debug_utils/)"),
            ("SGLANG_", "SGL_"),
            r"srt/server_args\.py$|srt/arg_groups/(?:fields/|[^/]{1,60}$)",
        ),
        Declared(_read("flashinfer-python", "flashinfer", "0.5.0rc1", _SOURCES + r"(?!data/|experimental/)"), ("FLASHINFER_",)),
        Declared(_read("triton", "triton", "3.0.0", _SOURCES + r"(?!experimental/)"), ("TRITON_",)),
    )
}  # fmt: skip
