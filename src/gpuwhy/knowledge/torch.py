"""PyTorch wheels: which GPU targets a build holds, which CUDA and Triton it brings, which build a GPU needs."""

from __future__ import annotations

import functools

from msgspec import Struct
from packaging.version import Version

from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge.answers import Answer, unknown
from gpuwhy.knowledge.capability import Capability
from gpuwhy.knowledge.releases import cuda_release, local_part, neighbours, public_version
from gpuwhy.knowledge.tables import read_table


class TorchRelease(Struct, frozen=True):
    """A wheel of the default index. `contains_ptx` is None where nobody looked."""

    version: str
    default_cuda: str
    triton: str
    nccl: str
    cudnn: str
    arch_list: tuple[str, ...]
    contains_ptx: bool | None
    provenance: str
    arch_list_provenance: str


class TorchBuild(Struct, frozen=True):
    """The wheels for one CUDA release ("cu128") of the torch releases from `first` to `last`, Linux x86_64."""

    build: str
    first: str
    last: str
    arch_list: tuple[str, ...]
    provenance: str


class ExtensionArchList(Struct, frozen=True):
    """What TORCH_CUDA_ARCH_LIST accepts in torch's extension builder, and its refusal of anything else."""

    torch: str
    accepted: tuple[str, ...]
    error: str
    provenance: str


class TorchTable(Struct, frozen=True):
    releases: tuple[TorchRelease, ...]
    builds: tuple[TorchBuild, ...]
    extension_arch_lists: tuple[ExtensionArchList, ...]


class _Targets(Struct, frozen=True):
    """Targets of one build, with whether it holds PTX."""

    targets: tuple[str, ...]
    contains_ptx: bool | None
    name: str
    provenance: str


@functools.cache
def _table() -> TorchTable:
    return read_table("torch", TorchTable)


@functools.cache
def _releases() -> dict[Version, TorchRelease]:
    return {Version(row.version): row for row in _table().releases}


def release(torch: str) -> TorchRelease | None:
    """The row of a release, or of another patch release of the same minor release; None for others."""
    version = public_version(torch)
    if version is None:
        return None
    if version in _releases():
        return _releases()[version]
    for near in neighbours(list(_releases()), version):
        if near is not None and near.release[:2] == version.release[:2]:
            return _releases()[near]
    return None


def default_cuda(torch: str) -> str | None:
    """CUDA release of the wheel that `pip install torch` fetches ("2.8.0" -> "12.8"); None if unknown."""
    row = release(torch)
    return row.default_cuda if row else None


def triton_of(torch: str) -> str | None:
    """Triton version or specifier that the default wheel requires ("2.9.1" -> "3.5.1", "2.14.1" -> "~=3.8.0")."""
    row = release(torch)
    return row.triton if row else None


def _build_name(cuda: str) -> str | None:
    found = cuda_release(cuda)
    return f"cu{found[0]}{found[1]}" if found else None


def _targets(torch: str, cuda: str | None) -> _Targets | None:
    """Targets of the build named by `cuda`, by the version's local part (+cu128), or of the default wheel."""
    version, row = public_version(torch), release(torch)
    local = local_part(torch)
    wanted = _build_name(cuda) if cuda else (local if local and local.startswith("cu") else None)
    if version is None or (cuda and wanted is None):
        return None
    if row and wanted in (None, _build_name(row.default_cuda)):
        return _Targets(row.arch_list, row.contains_ptx, f"torch {row.version}", row.arch_list_provenance)
    for build in _table().builds:
        if build.build == wanted and Version(build.first) <= version <= Version(build.last):
            return _Targets(build.arch_list, None, f"torch {version}+{build.build}", build.provenance)
    return None


def arch_list(torch: str, cuda: str | None = None) -> tuple[str, ...] | None:
    """Targets for which a build holds machine code in all of its kernels ("sm_..."); None if unknown.

    Without `cuda` the local part of the version decides ("2.7.1+cu128"), and without that the default wheel.
    Single kernels may have further targets (torch has some sm_90a and sm_100a code).
    """
    found = _targets(torch, cuda)
    return found.targets if found else None


def supports(torch: str, cuda: str | None, capability: Capability) -> Answer:
    """Whether a torch build runs on a GPU: own target, an older minor version of the same major, or PTX."""
    found, gpu = _targets(torch, cuda), capabilities.parse(capability)
    if gpu is None:
        return unknown(f"{capability!s:.40} is not a compute capability")
    if found is None:
        return unknown(f"the targets of torch {torch[:40]} for CUDA {(cuda or 'default')[:40]} are not in the tables")
    return _judge(found.name, found.targets, found.contains_ptx, found.provenance, gpu)


def _judge(name: str, targets: tuple[str, ...], contains_ptx: bool | None, provenance: str, gpu: Capability) -> Answer:
    answers = {target: capabilities.runs_on(target, gpu) for target in targets}
    fitting = [target for target, answer in answers.items() if answer.value]
    if fitting:
        return Answer(True, f"{name} holds {fitting[-1]}, which runs on {gpu}", provenance)
    undecided = [answer for answer in answers.values() if answer.value is None]
    if undecided:
        return unknown(f"{name}: {undecided[-1].why}", provenance)
    listed = " ".join(targets)
    if contains_ptx and any(capabilities.runs_on(target, gpu, has_ptx=True).value for target in targets):
        return Answer(True, f"{name} holds PTX that the driver can compile for {gpu}", provenance)
    return Answer(False, f"{name} was built for {listed}, none of which runs on {gpu}", provenance)


def builds_for(capability: Capability) -> tuple[TorchBuild, ...]:
    """Builds that run on a GPU, newest CUDA last: ("6.1") -> cu118 to cu126, ("12.0") -> cu128 and newer."""
    gpu = capabilities.parse(capability)
    if gpu is None:
        return ()
    return tuple(row for row in _table().builds if _judge(row.build, row.arch_list, None, row.provenance, gpu).value)


def builds_of(torch: str) -> tuple[TorchBuild, ...]:
    """Builds that exist of a torch release."""
    version = public_version(torch)
    return tuple(row for row in _table().builds if version and Version(row.first) <= version <= Version(row.last))


def extension_arch_list(torch: str) -> ExtensionArchList | None:
    """What TORCH_CUDA_ARCH_LIST may hold for a release; only one was measured, so others of its minor release only."""
    version = public_version(torch)
    for row in _table().extension_arch_lists:
        if version and Version(row.torch).release[:2] == version.release[:2]:
            return row
    return None
