"""The report of ``gpuwhy inspect`` for a person: one line a file, with -v what it needs and how its code is grouped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gpuwhy.model.inspection import ContainerSet, InspectedFile, Inspection, Outcome, Verdict, WheelSummary
from gpuwhy.reports import loading
from gpuwhy.reports.columns import columns_of, padded
from gpuwhy.reports.neutral import plain

PLAIN, GOOD, BAD, UNSURE, HEADING, NOTE = "", "good", "bad", "unsure", "heading", "note"
_LONGEST_PATH = 60
_SETS_SHOWN = 12
_KERNELS_SHOWN = 40

Line = tuple[str, str]
"""The text of a line, and what it is."""


def render(inspection: Inspection, verbose: bool = False) -> str:
    """The report as plain text, without control characters."""
    return "".join(f"{text}\n" for text, _ in lines(inspection, verbose))


def lines(inspection: Inspection, verbose: bool = False) -> Iterator[Line]:
    """The report line by line."""
    for text, style in _lines(inspection, verbose):
        yield plain(text).rstrip(), style


def _lines(inspection: Inspection, verbose: bool) -> Iterator[Line]:
    if inspection.compute_capability:
        driver = f", driver {inspection.driver}" if inspection.driver else ""
        named = f"{inspection.gpu}, " if inspection.gpu else ""
        yield f"for {named}compute capability {inspection.compute_capability}{driver}", HEADING
    for wheel in inspection.wheels:
        yield from _wheel(wheel, verbose)
    shown = _worth_showing(inspection, verbose)
    names = _names(shown)
    rows = [[plain(cell) for cell in _row(name, file)] for name, file in zip(names, shown, strict=True)]
    widths = [max((columns_of(row[column]) for row in rows), default=0) for column in range(3)]
    for row, file in zip(rows, shown, strict=True):
        yield (
            "  ".join([*(padded(cell, width) for cell, width in zip(row, widths, strict=False)), row[3]]),
            _style(file),
        )
        for kernel in file.kernels[:_KERNELS_SHOWN]:
            said = f": {kernel.outcome.value}, {kernel.why}" if kernel.outcome else ""
            yield f"    {kernel.name}", PLAIN
            yield f"      {kernel.section} 0x{kernel.offset:x}: {' '.join(kernel.architectures)}{said}", NOTE
        if len(file.kernels) > _KERNELS_SHOWN:
            yield f"    {len(file.kernels) - _KERNELS_SHOWN} more kernels", NOTE
        if file.loading is not None and (verbose or file.loading.loads is not True or len(shown) == 1):
            for text, is_fault in loading.lines(file.loading, verbose):
                yield f"    {text}", BAD if is_fault else NOTE
        if verbose:
            yield from _details(file)
        elif file.problems:
            yield f"    incomplete: {file.problems[0]}", UNSURE
    if not inspection.kernel:
        yield from _without_code(inspection.files, verbose)
    for message in inspection.unreadable:
        yield f"cannot be read: {message}", BAD
    yield from _sum(inspection)


def _worth_showing(inspection: Inspection, verbose: bool) -> tuple[InspectedFile, ...]:
    """Without -v, files without any device code are counted at the end, unless there is nothing else.

    When a kernel was asked for, those with it, and those that could not be looked into.
    """
    files = inspection.files
    if inspection.kernel:
        return tuple(file for file in files if file.kernels or file.problems)
    chosen = tuple(file for file in files if verbose or not _is_plain(file))
    return chosen if chosen or len(files) > 3 else files


def _is_plain(file: InspectedFile) -> bool:
    return not file.container_sets and not file.other_gpus and not file.problems


def _names(files: tuple[InspectedFile, ...]) -> list[str]:
    """Paths without the folder that all share, cut in the middle where they are long."""
    paths = [file.path for file in files]
    folders = [str(Path(path).parent) for path in paths]
    common = os.path.commonpath(folders) if len(paths) > 1 and _are_alike(paths) else ""
    short = [os.path.relpath(path, common) if common else path for path in paths]
    return [name if len(name) <= _LONGEST_PATH else f"{name[:20]}...{name[23 - _LONGEST_PATH :]}" for name in short]


def _are_alike(paths: list[str]) -> bool:
    """All absolute or none: others have no folder in common."""
    return len({Path(path).is_absolute() for path in paths}) == 1


def _row(name: str, file: InspectedFile) -> tuple[str, str, str, str]:
    count = f"{file.containers}" if file.containers else f"{file.members} cubins" if file.members > 1 else ""
    said = [" ".join(file.architectures)]
    if file.other_gpus:
        said = [*filter(None, said), f"code for {', '.join(file.other_gpus)}"]
    if not file.container_sets and not file.other_gpus:
        said = ["no device code" if file.complete else f"unknown ({file.kind})"]
    return name, count, _cuda(file), "  ".join([_verdict(file.verdict), *said] if file.verdict else said)


def _cuda(file: InspectedFile) -> str:
    if file.cuda.needed:
        return file.cuda.needed
    if file.cuda.embedded:
        return f"cudart {file.cuda.embedded_release or '?'} inside"
    return "cudart of another" if file.cuda.undefined and file.container_sets else ""


def _verdict(verdict: Verdict) -> str:
    words = {
        Outcome.NATIVE: "runs",
        Outcome.JIT: "runs, compiled from PTX",
        Outcome.JIT_BLOCKED: "CANNOT RUN: PTX too new for the driver",
        Outcome.NONE: "CANNOT RUN: no kernel image",
        Outcome.DRIVER_TOO_OLD: "CANNOT RUN: driver too old",
        Outcome.UNKNOWN: "unknown",
        Outcome.NO_DEVICE_CODE: "-",
    }[verdict.outcome]
    if verdict.containers == 0:
        return words
    counts = ((verdict.native, "native"), (verdict.jit, "PTX"), (verdict.jit_blocked, "blocked"), (verdict.none, "none"), (verdict.unknown, "unknown"))  # fmt: skip
    return f"{words} ({', '.join(f'{number} {word}' for number, word in counts if number)})"


def _style(file: InspectedFile) -> str:
    if (file.verdict and file.verdict.runs is False) or (file.loading and file.loading.loads is False):
        return BAD
    if not file.complete or (file.verdict and file.verdict.outcome is Outcome.UNKNOWN):
        return UNSURE
    return GOOD if file.verdict and file.verdict.runs else PLAIN


def _details(file: InspectedFile) -> Iterator[Line]:
    kind = " ".join(filter(None, (file.machine, file.kind)))
    yield f"    {kind}, {file.size:,} bytes{f', build id {file.build_id}' if file.build_id else ''}", NOTE
    if file.verdict and file.verdict.containers:
        yield f"    verdict: {file.verdict.why}", _style(file)
    if file.toolkit:
        yield f"    made by CUDA {file.toolkit} ({file.toolkit_shown_by})", PLAIN
    for each in file.container_sets[:_SETS_SHOWN]:
        yield _set(each), PLAIN
    if len(file.container_sets) > _SETS_SHOWN:
        yield f"    {len(file.container_sets) - _SETS_SHOWN} more sets of images", NOTE
    yield from _images(file)
    for label, values in (("needs", file.needed), ("RPATH", file.rpath), ("RUNPATH", file.runpath)):
        if values:
            yield f"    {label} {' '.join(values)}", PLAIN
    if file.newest_versions:
        yield (
            f"    needs at least {', '.join(f'{kind} {version}' for kind, version in file.newest_versions.items())}",
            PLAIN,
        )
    yield from _interfaces(file)
    for name in file.unsearched:
        yield f"    {name} was not searched for bare cubins: it is large; --deep does", NOTE
    for problem in file.problems:
        yield f"    incomplete: {problem}", UNSURE


def _set(each: ContainerSet) -> str:
    where = " ".join(filter(None, (each.member, each.section)))
    said = f": {each.outcome.value}" + (f" by {each.taken}" if each.taken else "") if each.outcome else ""
    role = "" if each.role in ("registered", "stray") else f" {each.role}"
    return (
        f"    {each.count}{role} in {where or 'the file'} from 0x{each.offset:x}: {' '.join(each.architectures)}{said}"
    )


def _images(file: InspectedFile) -> Iterator[Line]:
    versions = {image.architecture: image.versions for image in file.images if image.kind == "ptx"}
    if versions:
        yield "    PTX versions: " + ", ".join(f"{name} {' '.join(found)}" for name, found in versions.items()), PLAIN
    compression = sorted({each for image in file.images for each in image.compression})
    debug = sum(image.debug for image in file.images)
    kinds = sorted({image.kind for image in file.images} - {"cubin", "ptx"})
    parts = [f"compressed with {' and '.join(compression)}"] if compression else []
    parts += [f"{debug} debug images"] if debug else []
    parts += [f"also {', '.join(kinds)}"] if kinds else []
    parts += [f"{file.registered} containers registered"] if file.registered is not None else []
    if parts:
        yield f"    {'; '.join(parts)}", NOTE


def _interfaces(file: InspectedFile) -> Iterator[Line]:
    torch = file.torch
    if torch.abi == "release":
        strings = {"cxx11": ", new string ABI", "old": ", old string ABI"}.get(torch.strings, "")
        yield f"    tied to one torch release: {torch.tied_symbols} symbols of its C++ classes{strings}", PLAIN
    elif torch.abi == "stable":
        yield f"    torch's stable interface: {torch.stable_symbols} symbols", PLAIN
    if file.cuda.undefined:
        yield f"    {file.cuda.undefined} symbols of the CUDA runtime, and no libcudart among what it needs", UNSURE


def _wheel(wheel: WheelSummary, verbose: bool) -> Iterator[Line]:
    size = wheel.binary_bytes / 1e6
    yield f"{wheel.path}: {wheel.name} {wheel.version}, {wheel.binaries} binaries, {size:,.0f} MB", HEADING
    if verbose:
        for requirement in wheel.requires:
            yield f"    requires {requirement}", NOTE


def _without_code(files: tuple[InspectedFile, ...], verbose: bool) -> Iterator[Line]:
    number = sum(map(_is_plain, files))
    if number and not verbose and (number < len(files) or number > 3):
        yield f"{number} more {'file' if number == 1 else 'files'} without device code (-v lists them)", NOTE


def _sum(inspection: Inspection) -> Iterator[Line]:
    failing = sum(file.verdict is not None and file.verdict.runs is False for file in inspection.files)
    judged = sum(file.verdict is not None and file.verdict.containers > 0 for file in inspection.files)
    if judged > 1 and not inspection.kernel:
        style = BAD if failing else GOOD
        yield f"{failing} of {judged} files with device code cannot run there", style
    unloadable = sum(file.loading is not None and file.loading.loads is False for file in inspection.files)
    asked = sum(file.loading is not None for file in inspection.files)
    if asked > 1:
        yield f"{unloadable} of {asked} libraries and programs do not load there", BAD if unloadable else GOOD
    if inspection.kernel:
        found = sum(len(file.kernels) for file in inspection.files)
        yield f"{found} kernels with {inspection.kernel} in their name", HEADING
