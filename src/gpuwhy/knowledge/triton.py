"""Triton releases: their bundled assemblers, the GPUs these cannot serve, and the variable that replaces each."""

from __future__ import annotations

import functools

from msgspec import Struct
from packaging.version import Version

from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge.answers import Answer, unknown
from gpuwhy.knowledge.capability import Capability, ComputeCapability
from gpuwhy.knowledge.releases import cuda_release, neighbours, public_version
from gpuwhy.knowledge.tables import read_table


class Assembler(Struct, frozen=True):
    """A bundled ptxas. `name` is that of the executable, which its error messages begin with."""

    name: str
    version: str
    ptx_isa_max: str
    targets: tuple[str, ...]


class TritonRelease(Struct, frozen=True):
    """A measured release.

    `second_from` is the compute capability from which the second assembler is used, None if there is one only.
    `suffix_only_90`: "a" is added to the target for 9.0 only; otherwise from 9.0 on.
    `newest_ptxas` is the newest CUDA release whose ptxas this Triton agrees to use, None if not known.
    """

    version: str
    assemblers: tuple[Assembler, ...]
    second_from: str | None
    suffix_only_90: bool
    override_variables: tuple[str, ...]
    newest_ptxas: str | None
    provenance: str


class TritonTable(Struct, frozen=True):
    releases: tuple[TritonRelease, ...]


@functools.cache
def _releases() -> dict[Version, TritonRelease]:
    """Measured releases, oldest first."""
    return {Version(row.version): row for row in read_table("triton", TritonTable).releases}


def _find(triton: str) -> tuple[TritonRelease, bool] | None:
    """The release, and whether it was itself measured; else the measured one of the same minor release."""
    version = public_version(triton)
    if version is None:
        return None
    if version in _releases():
        return _releases()[version], True
    for near in neighbours(list(_releases()), version):
        if near is not None and near.release[:2] == version.release[:2]:
            return _releases()[near], False
    return None


def measured_release(triton: str) -> TritonRelease | None:
    """The row of a release, or of another patch release of the same minor release; None if not measured."""
    found = _find(triton)
    return found[0] if found else None


def bundled_assemblers(triton: str) -> tuple[Assembler, ...] | None:
    """The assemblers in a Triton wheel, first the one for older GPUs; None for an unknown release."""
    release = measured_release(triton)
    return release.assemblers if release else None


def assembler_for(triton: str, capability: Capability) -> Assembler | None:
    """The bundled assembler that a release runs for a GPU."""
    release, gpu = measured_release(triton), capabilities.parse(capability)
    return _assembler(release, gpu.plain) if release and gpu else None


def _assembler(release: TritonRelease, gpu: ComputeCapability) -> Assembler:
    second_from = capabilities.parse(release.second_from)
    use_second = second_from is not None and gpu >= second_from and len(release.assemblers) > 1
    return release.assemblers[1 if use_second else 0]


def target_for(triton: str, capability: Capability) -> str | None:
    """The target that a release asks its assembler for ("3.5.1", "12.1" -> "sm_121a"); None if unknown."""
    release, gpu = measured_release(triton), capabilities.parse(capability)
    return _target(release, gpu.plain) if release and gpu else None


def _target(release: TritonRelease, gpu: ComputeCapability) -> str:
    with_suffix = gpu.number == 90 if release.suffix_only_90 else gpu.number >= 90
    return ComputeCapability(gpu.major, gpu.minor, "a" if with_suffix else "").target


def refuses(triton: str, capability: Capability) -> Answer:
    """Whether the bundled assembler of a release does not know the target of a GPU."""
    found, gpu = _find(triton), capabilities.parse(capability)
    if gpu is None:
        return unknown(f"{capability!s:.40} is not a compute capability")
    if found is None:
        newest = next(reversed(_releases().values()))
        return unknown(f"Triton {triton[:40]} was not measured; the newest measured release is {newest.version}")
    release, is_measured = found
    assembler, target = _assembler(release, gpu.plain), _target(release, gpu.plain)
    refused = target not in assembler.targets
    verb = "does not know" if refused else "knows"
    why = f"{assembler.name} {assembler.version} of Triton {release.version} {verb} {target}"
    if is_measured:
        return Answer(refused, why, release.provenance)
    return Answer(refused, f"{why}; Triton {triton} itself was not measured", f"derived: {release.provenance}")


def override_variable(triton: str, capability: Capability) -> str | None:
    """The environment variable that replaces the assembler a release runs for a GPU; None if unknown.

    Triton 3.3 reads TRITON_PTXAS-BLACKWELL_PATH for 10.0 and newer, a name that no POSIX shell can export
    (`env NAME=value command` can set it); TRITON_PTXAS_PATH has no effect there.
    """
    release, gpu = measured_release(triton), capabilities.parse(capability)
    if release is None or gpu is None:
        return None
    if _assembler(release, gpu.plain).name == "ptxas":
        return "TRITON_PTXAS_PATH"
    return next((name for name in release.override_variables if name != "TRITON_PTXAS_PATH"), None)


def agrees_to_use(triton: str, cuda: str) -> Answer:
    """Whether a release agrees to use the ptxas of a CUDA release that is put in place of the bundled one."""
    release, wanted = measured_release(triton), cuda_release(cuda)
    newest = cuda_release(release.newest_ptxas) if release and release.newest_ptxas else None
    if release is None or wanted is None or newest is None:
        return unknown(f"no measurement for Triton {triton[:40]} with ptxas {cuda[:40]}")
    if wanted <= newest:
        return Answer(True, f"Triton {release.version} accepts ptxas up to {release.newest_ptxas}", release.provenance)
    why = f"Triton {release.version} refuses a ptxas newer than {release.newest_ptxas}"
    return Answer(False, why, release.provenance)


def first_release_for(capability: Capability) -> str | None:
    """First release whose bundled assembler serves a GPU ("12.1" -> "3.6.0"); None if no measured one does."""
    gpu = capabilities.parse(capability)
    if gpu is None:
        return None
    for release in _releases().values():
        if _target(release, gpu.plain) in _assembler(release, gpu.plain).targets:
            return release.version
    return None
