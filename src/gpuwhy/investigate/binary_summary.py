"""From what the readers found in a file to what is told of it: counts, sets of images, what it needs."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwhy.binaries.code_sets import BARE, CodeSet, loaded_sets
from gpuwhy.binaries.device_code import RELOCATABLE
from gpuwhy.binaries.elf import VersionNeed
from gpuwhy.binaries.examining import Binary
from gpuwhy.binaries.fatbin import Code
from gpuwhy.knowledge import drivers
from gpuwhy.model.inspection import CudaUse, ImageCount, InspectedFile, TorchUse


def summary(binary: Binary, sets: tuple[CodeSet, ...], within: str = "", toolkit: str = "") -> InspectedFile:
    """The file as it is reported, without a verdict. ``toolkit`` is the release that a cubin names, where one was read."""
    loaded = loaded_sets(sets)
    hidden = [each for each in sets if each not in loaded and each.role != RELOCATABLE]
    made_by, shown_by = _toolkit({toolkit, *(cubin.toolkit for cubin in binary.device.cubins)} - {""}, sets)
    problems = dict.fromkeys((*binary.problems, *binary.device.problems))
    return InspectedFile(
        path=binary.name,
        within=within,
        kind=binary.kind,
        machine=binary.machine,
        size=binary.size,
        architectures=_architectures(loaded),
        images=_images(sets),
        containers=sum(each.containers for each in loaded if each.role != BARE),
        relocatable_containers=sum(each.containers for each in sets if each.role == RELOCATABLE),
        hidden_containers=sum(each.containers for each in hidden if each.role != BARE),
        hidden_cubins=sum(each.containers for each in hidden if each.role == BARE),
        hidden_architectures=_architectures(hidden),
        registered=binary.device.wrappers,
        unsearched=binary.device.unsearched,
        needed=binary.dynamic.needed,
        soname=binary.dynamic.soname,
        rpath=binary.dynamic.rpath,
        runpath=binary.dynamic.runpath,
        version_needs=_version_needs(binary.dynamic.version_needs),
        newest_versions=newest_versions(binary.dynamic.version_needs),
        interpreter=binary.interpreter,
        build_id=binary.build_id,
        cuda=CudaUse(
            binary.runtime.needed, binary.runtime.is_embedded, binary.runtime.release, binary.runtime.undefined
        ),
        torch=TorchUse(
            binary.torch.kind, binary.torch.tied, binary.torch.stable, binary.torch.strings, binary.torch.example
        ),
        toolkit=made_by,
        toolkit_shown_by=shown_by,
        other_gpus=binary.other_gpus,
        complete=binary.is_complete,
        problems=tuple(problems),
    )


def _architectures(sets: Iterable[CodeSet]) -> tuple[str, ...]:
    """``sm_80 sm_90a sm_120f compute_120``: machine code first, by number."""
    codes = {(code.kind != "cubin", code.arch, code.suffix, code.architecture) for each in sets for code in each.codes}
    return tuple(dict.fromkeys(name for _, _, _, name in sorted(codes)))


def _images(sets: Iterable[CodeSet]) -> tuple[ImageCount, ...]:
    counts: dict[Code, int] = {}
    for each in sets:
        for code in each.codes:
            counts[code] = counts.get(code, 0) + each.containers
    together: dict[tuple[bool, int, str, str, str], list[Code]] = {}
    for code in counts:
        key = (code.kind != "cubin", code.arch, code.suffix, code.kind, code.architecture)
        together.setdefault(key, []).append(code)
    return tuple(
        ImageCount(
            key[4],
            key[3],
            sum(counts[code] for code in codes),
            tuple(sorted({code.version for code in codes})),
            tuple(sorted({code.compression for code in codes} - {""})),
            sum(counts[code] for code in codes if code.is_debug),
        )
        for key, codes in sorted(together.items())
    )


def _toolkit(named: set[str], sets: tuple[CodeSet, ...]) -> tuple[str, str]:
    """The CUDA release that made the code, and what shows it: the newest sign of all, as parts can be older.

    ``named`` are releases that cubins name as their makers.
    """
    signs = [(_numbers(release), release, "named in a cubin") for release in named]
    codes = {code for each in sets for code in each.codes}
    versions = sorted({code.version for code in codes if code.kind in ("ptx", "relocatable ptx")}, key=_numbers)
    release = drivers.cuda_of_ptx(versions[-1]).value if versions else None
    if release:
        signs.append((_numbers(release), release, f"PTX {versions[-1]}"))
    if signs:
        return max(signs)[1:]
    formats = {code.version for code in codes if code.kind == "cubin" and code.arch < 100}
    if "1.8" in formats:
        return ">= 13.0", "cubin format 1.8"
    return ("< 13.0", "cubin format 1.7") if "1.7" in formats else ("", "")


def _version_needs(needs: tuple[VersionNeed, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for need in needs:
        found.setdefault(need.library, []).append(need.version)
    return {library: tuple(sorted(versions, key=_numbers)) for library, versions in sorted(found.items())}


def newest_versions(needs: tuple[VersionNeed, ...]) -> dict[str, str]:
    """The newest version of each kind that a file needs: ``{"GLIBC": "2.34", "GLIBCXX": "3.4.30"}``."""
    newest: dict[str, str] = {}
    for need in needs:
        kind, underline, version = need.version.rpartition("_")
        if underline and version[:1].isdigit() and _numbers(version) > _numbers(newest.get(kind, "")):
            newest[kind] = version
    return dict(sorted(newest.items()))


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.rpartition("_")[2].split(".")
    return tuple(int(part) if part.isascii() and part.isdigit() and len(part) < 10 else 0 for part in parts if part)
