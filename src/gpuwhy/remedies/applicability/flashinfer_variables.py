"""FlashInfer's variables where more is known of them than the releases that name them."""

from __future__ import annotations

from packaging.version import Version

from gpuwhy.knowledge import flashinfer
from gpuwhy.knowledge.releases import package_version, public_version
from gpuwhy.model.remedy import NotARemedy, Remedy
from gpuwhy.remedies.applicability.releases import shown
from gpuwhy.remedies.circumstances import Circumstances

_CUBIN_DIR_WINS_SINCE = Version("0.6.16")
"""Before, an installed flashinfer-cubin was taken whatever FLASHINFER_CUBIN_DIR said (jit/env.py of the wheels)."""


def of_flashinfer(remedy: Remedy, known: Circumstances) -> Remedy | NotARemedy:
    """Not a variable from before its first release, not one that another package overrides, no value that is refused."""
    version = known.version("flashinfer-python")
    release = public_version(version) if version else None
    if remedy.kind != "env" or remedy.value == "unset" or release is None:
        return remedy
    row = next((row for row in flashinfer.override_variables() if row.name == remedy.name), None)
    if row is None or row.name == "TORCH_CUDA_ARCH_LIST":  # read by torch as well, whatever FlashInfer does
        return remedy
    if release < Version(row.first):
        return NotARemedy(shown(remedy), f"flashinfer-python {version} has no {row.name}: it came with {row.first}")
    if row.name == "FLASHINFER_CUBIN_DIR" and known.version("flashinfer-cubin") and release < _CUBIN_DIR_WINS_SINCE:
        return NotARemedy(shown(remedy), f"flashinfer-python {version} ignores it while flashinfer-cubin is installed")
    if row.name == "FLASHINFER_CUDA_ARCH_LIST" and package_version(version):
        problem = flashinfer.arch_list_problem(remedy.value, version) if remedy.value[:1].isdigit() else None
        return NotARemedy(shown(remedy), problem) if problem else remedy
    return remedy
