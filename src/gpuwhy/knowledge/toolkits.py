"""What each CUDA toolkit release accepts: GPU targets, PTX versions, host compilers, nvcc options.

The targets were measured with the ptxas of every nvcc wheel and with NVRTC, which agree; nvcc itself exists as a
wheel only from 13.0 on and agrees there.
"""

from __future__ import annotations

import functools

from msgspec import Struct

from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge.answers import NO_SOURCE, Answer, NumberAnswer, TextAnswer, unknown
from gpuwhy.knowledge.capability import Capability, ComputeCapability
from gpuwhy.knowledge.releases import CudaRelease, cuda_release, cuda_text, neighbours
from gpuwhy.knowledge.tables import read_table


class Toolkit(Struct, frozen=True):
    """A measured release. `targets` are "sm_..." names; `versions` are the wheels that were measured."""

    cuda: str
    ptx_isa_max: str
    targets: tuple[str, ...]
    versions: tuple[str, ...]
    nvrtc_versions: tuple[str, ...]
    provenance: str


class FirstRelease(Struct, frozen=True):
    """A release before the oldest measured one that introduced a target."""

    target: str
    cuda: str
    provenance: str


class ToolOption(Struct, frozen=True):
    """An option that only newer tools know."""

    tool: str
    option: str
    first_cuda: str
    known_absent_in: str
    provenance: str


class TargetCombination(Struct, frozen=True):
    """Target options put to nvcc; `message` is its refusal, None if it accepted them."""

    options: str
    cuda: str
    message: str | None
    provenance: str


class HostCompilers(Struct, frozen=True):
    """Newest host compilers that a release accepts (inclusive)."""

    cuda: str
    gcc_max: int
    clang_max: int | None
    provenance: str


class ToolkitTable(Struct, frozen=True):
    toolkits: tuple[Toolkit, ...]
    first_releases: tuple[FirstRelease, ...]
    options: tuple[ToolOption, ...]
    target_combinations: tuple[TargetCombination, ...]
    host_compilers: tuple[HostCompilers, ...]


@functools.cache
def _table() -> ToolkitTable:
    return read_table("toolkits", ToolkitTable)


@functools.cache
def _toolkits() -> dict[CudaRelease, Toolkit]:
    """Measured releases by version, oldest first."""
    return {_release(toolkit.cuda): toolkit for toolkit in _table().toolkits}


def _release(text: str) -> CudaRelease:
    """A version of our own data, which is always readable."""
    release = cuda_release(text)
    if release is None:
        raise ValueError(f"not a CUDA release: {text}")
    return release


def measured_releases() -> tuple[str, ...]:
    """The releases that were measured, oldest first."""
    return tuple(toolkit.cuda for toolkit in _toolkits().values())


def accepts(cuda: str, target: Capability) -> Answer:
    """Whether the compilers of a release know a GPU target.

    `cuda` is a release or a full version ("12.8", "12.8.93"); `target` may be spelt "sm_120f", "compute_120a",
    "120f" or "12.0f".
    """
    release, wanted = cuda_release(cuda), capabilities.parse(target)
    if release is None or wanted is None:
        return unknown(f"{cuda[:40] if release is None else target!s:.40} is not readable as a version or target")
    toolkit = _toolkits().get(release)
    if toolkit:
        known = wanted.target in toolkit.targets
        why = f"CUDA {toolkit.cuda} {'knows' if known else 'does not know'} {wanted.target}"
        return Answer(known, why, toolkit.provenance)
    return _accepts_unmeasured(release, wanted)


def _accepts_unmeasured(release: CudaRelease, wanted: ComputeCapability) -> Answer:
    below, above = neighbours(list(_toolkits()), release)
    name = cuda_text(release)
    if below is None:
        return _accepts_older(release, wanted)
    older = _toolkits()[below]
    if above is None:
        verb = "knows" if wanted.target in older.targets else "does not know"
        return unknown(
            f"CUDA {name} is newer than the newest measured release; {older.cuda} {verb} {wanted.target}",
            older.provenance,
        )
    newer = _toolkits()[above]
    in_older, in_newer = wanted.target in older.targets, wanted.target in newer.targets
    provenance = f"derived: {older.provenance}; {newer.provenance}"
    if in_older != in_newer:
        return unknown(
            f"CUDA {name} was not measured; of {older.cuda} and {newer.cuda} only one knows {wanted.target}",
            provenance,
        )
    verb = "know" if in_older else "do not know"
    return Answer(
        in_older,
        f"CUDA {name} was not measured, but its neighbours {older.cuda} and {newer.cuda} both {verb} {wanted.target}",
        provenance,
    )


def _accepts_older(release: CudaRelease, wanted: ComputeCapability) -> Answer:
    """For releases before the oldest measured one: a target is introduced once, and not before its first release."""
    oldest = next(iter(_toolkits().values()))
    name = cuda_text(release)
    first = next((row for row in _table().first_releases if row.target == wanted.target), None)
    if first:
        known = release >= _release(first.cuda)
        return Answer(known, f"{wanted.target} is known from CUDA {first.cuda} on", first.provenance)
    if wanted.target not in oldest.targets and first_release_for(wanted) is not None:
        return Answer(
            False,
            f"{wanted.target} came with CUDA {first_release_for(wanted)}; {name} is older than that",
            f"derived: {oldest.provenance}",
        )
    return unknown(f"CUDA {name} is older than the oldest measured release, {oldest.cuda}", oldest.provenance)


def targets_of(cuda: str) -> tuple[str, ...] | None:
    """Every "sm_..." target that a release accepts; None if it was not measured and its neighbours differ."""
    release = cuda_release(cuda)
    if release is None:
        return None
    if release in _toolkits():
        return _toolkits()[release].targets
    below, above = neighbours(list(_toolkits()), release)
    if below is None or above is None:
        return None
    targets = _toolkits()[below].targets
    return targets if targets == _toolkits()[above].targets else None


def first_release_for(target: Capability) -> str | None:
    """Oldest release that knows a target, documented or measured ("sm_120a" -> "12.8").

    None if no release is known to accept it, or if it is older than everything we know about.
    """
    wanted = capabilities.parse(target)
    if wanted is None:
        return None
    for row in _table().first_releases:
        if row.target == wanted.target:
            return row.cuda
    accepting = [toolkit.cuda for toolkit in _toolkits().values() if wanted.target in toolkit.targets]
    return accepting[0] if accepting and accepting[0] != measured_releases()[0] else None


def last_release_for(target: Capability) -> str | None:
    """Newest release that knows a target which later ones dropped ("sm_70" -> "12.9"); None if not dropped."""
    wanted = capabilities.parse(target)
    accepting = [t.cuda for t in _toolkits().values() if wanted and wanted.target in t.targets]
    return accepting[-1] if accepting and accepting[-1] != measured_releases()[-1] else None


def best_target(cuda: str, capability: Capability) -> str | None:
    """The target to build for a GPU with a release: the one with the most of the GPU's features.

    From 9.0 on the features of the chip need a suffix. For 12.0 the family target sm_120f is preferred where it is
    known, as FlashInfer does; every other capability from 9.0 on takes the "a" target: 12.1 too, because code for
    the whole family has failed on it. Without a known suffix target the plain one is named. None if the release
    is not known, or has no target of this capability.
    """
    gpu = capabilities.parse(capability)
    if gpu is None:
        return None
    suffixes = ("f", "a", "") if (gpu.major, gpu.minor) == (12, 0) else ("a", "f", "")
    for suffix in suffixes:
        candidate = ComputeCapability(gpu.major, gpu.minor, suffix)
        if accepts(cuda, candidate).value is True:
            return candidate.target
    return None


def runnable_targets(cuda: str, capability: Capability) -> tuple[str, ...] | None:
    """Targets of a release whose machine code runs on a GPU; None if the release was not measured."""
    targets = targets_of(cuda)
    if targets is None or capabilities.parse(capability) is None:
        return None
    return tuple(target for target in targets if capabilities.runs_on(target, capability).value is True)


def ptx_isa_max(cuda: str) -> TextAnswer:
    """Highest PTX version that the ptxas of a release reads, and its own compilers write."""
    release = cuda_release(cuda)
    toolkit = _toolkits().get(release) if release else None
    if toolkit is None:
        return TextAnswer(None, f"CUDA {cuda[:40]} was not measured", NO_SOURCE)
    return TextAnswer(
        toolkit.ptx_isa_max, f"ptxas {toolkit.cuda} reads PTX up to {toolkit.ptx_isa_max}", toolkit.provenance
    )


def gcc_max(cuda: str) -> NumberAnswer:
    """Newest gcc major version that nvcc of a release accepts without -allow-unsupported-compiler."""
    return _host_compiler_max(cuda, "gcc")


def clang_max(cuda: str) -> NumberAnswer:
    """Newest clang major version that nvcc of a release accepts."""
    return _host_compiler_max(cuda, "clang")


def _host_compiler_max(cuda: str, compiler: str) -> NumberAnswer:
    release = cuda_release(cuda)
    limits = {_release(row.cuda): row for row in _table().host_compilers}
    if release is None:
        return NumberAnswer(None, f"{cuda[:40]} is not a CUDA version", NO_SOURCE)

    def limit(row: HostCompilers) -> int | None:
        return row.gcc_max if compiler == "gcc" else row.clang_max

    if release in limits:
        row = limits[release]
        value = limit(row)
        why = (
            f"nvcc {row.cuda} accepts {compiler} up to {value}"
            if value
            else f"{compiler} limit of nvcc {row.cuda} not read"
        )
        return NumberAnswer(value, why, row.provenance)
    below, above = neighbours(list(limits), release)
    if below and above and limit(limits[below]) is not None and limit(limits[below]) == limit(limits[above]):
        return NumberAnswer(
            limit(limits[below]),
            f"CUDA {cuda_text(release)} was not measured; {cuda_text(below)} and {cuda_text(above)} agree",
            f"derived: {limits[below].provenance}; {limits[above].provenance}",
        )
    return NumberAnswer(None, f"the {compiler} limit of CUDA {cuda_text(release)} was not measured", NO_SOURCE)


def releases_accepting_gcc(gcc_major: int) -> tuple[str, ...]:
    """Releases whose nvcc accepts a gcc major version, oldest first."""
    return tuple(row.cuda for row in _table().host_compilers if row.gcc_max >= gcc_major)


def supports_option(cuda: str, option: str, tool: str = "nvcc") -> Answer:
    """Whether nvcc or ptxas of a release knows an option, given with or without its value ("--compress-mode=size")."""
    release = cuda_release(cuda)
    name = option.strip()
    row = next((r for r in _table().options if r.tool == tool and _same_option(r.option, name)), None)
    if release is None or row is None:
        return unknown(f"no entry for {name[:60] if row is None else cuda[:40]}")
    if release >= _release(row.first_cuda):
        return Answer(True, f"{tool} knows {row.option} from {row.first_cuda} on", row.provenance)
    if release <= _release(row.known_absent_in):
        return Answer(
            False, f"{tool} knows {row.option} from {row.first_cuda} on, not in {cuda_text(release)}", row.provenance
        )
    if not any(_release(row.known_absent_in) < measured < _release(row.first_cuda) for measured in _toolkits()):
        return unknown(f"{row.option} is absent in {row.known_absent_in}, present in {row.first_cuda}", row.provenance)
    return Answer(
        False,
        f"{tool} knows {row.option} from {row.first_cuda} on; {cuda_text(release)} itself was not tried",
        row.provenance,
    )


def first_release_with_option(option: str, tool: str = "nvcc") -> str | None:
    """("--compress-mode=size") -> "12.8"; None if the option is not in the table."""
    return next((r.first_cuda for r in _table().options if r.tool == tool and _same_option(r.option, option)), None)


def _same_option(known: str, asked: str) -> bool:
    known, asked = known.lstrip("-"), asked.strip().lstrip("-")
    return asked == known or asked.split("=")[0] == known


def target_combinations() -> tuple[TargetCombination, ...]:
    """Combinations of target options and nvcc's answer to them."""
    return _table().target_combinations
