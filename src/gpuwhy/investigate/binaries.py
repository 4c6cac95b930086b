"""Inspects binaries: finds them, has them read, and judges them for a GPU and a driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from gpuwhy.binaries.code_sets import CodeSet, code_sets
from gpuwhy.binaries.device_code import SEARCHED_BYTES, DeviceCode
from gpuwhy.binaries.examining import CUBIN, EXECUTABLE, LIBRARY, TEXT, UNKNOWN, Binary, examine
from gpuwhy.binaries.payload import toolkit_of
from gpuwhy.binaries.reading import FileSource, Source, Unreadable
from gpuwhy.investigate.binary_files import binaries_under
from gpuwhy.investigate.binary_summary import summary
from gpuwhy.knowledge.capability import ComputeCapability
from gpuwhy.model.inspection import ContainerSet, InspectedFile, Inspection, Outcome, WheelSummary

WHOLE = 1 << 40
CUBIN_FOLDER = "folder of cubins"
_ZIP = (".whl", ".zip")
_THREADS, _BATCH = 8, 512

Progress = Callable[[str, int, int], None]
"""Called with a name, how much is done, and of how much; 0 when that is not known."""


class Question(msgspec.Struct, frozen=True):
    """What is asked of each file.

    ``gpu`` and ``driver`` ask for a verdict, ``kernel`` for its container. ``is_deep`` searches all data for bare
    cubins, however large; ``details`` unpacks a cubin for the toolkit's name. ``needs`` asks what would come of loading it,
    with LD_LIBRARY_PATH ``library_path`` and LD_PRELOAD ``preload``.
    """

    gpu: ComputeCapability | None = None
    gpu_name: str = ""
    driver: str = ""
    kernel: str = ""
    is_deep: bool = False
    details: bool = False
    needs: bool = False
    library_path: str = ""
    preload: str = ""

    @property
    def searches(self) -> int:
        return WHOLE if self.is_deep else SEARCHED_BYTES


def inspect_binaries(paths: Iterable[Path], question: Question, on_progress: Progress | None = None) -> Inspection:
    """Every binary under the paths. What cannot be read is named in ``unreadable``; nothing is raised for it."""
    files: list[InspectedFile] = []
    unreadable: list[str] = []
    wheels: list[WheelSummary] = []
    explain = _explainer(question)
    for path in paths:
        folders: dict[str, list[Binary]] = {}
        for number, (found, answer) in enumerate(_answers(path, question), 1):
            if on_progress:
                on_progress(str(found), number, 0)
            if isinstance(answer, Unreadable):
                unreadable.append(str(answer))
            elif isinstance(answer, InspectedFile):
                files.append(explain(answer))
            elif answer is not None:
                folders.setdefault(str(found.parent), []).append(answer)
            elif _is_zip(found, path == found):
                try:
                    wheels.append(wheel_summary(found))
                    files += _of_wheel(found, question, on_progress)
                except Unreadable as error:
                    unreadable.append(str(error))
        files += _cubin_folders(folders, "", question)
    return Inspection(
        tuple(files),
        question.gpu.dotted if question.gpu else "",
        question.gpu_name,
        question.driver,
        question.kernel,
        tuple(wheels),
        tuple(unreadable),
    )


_Answer = InspectedFile | Binary | Unreadable | None
"""Of a path: the file, one of the cubins of its folder, why it cannot be read, or nothing of note."""


def _answers(path: Path, question: Question) -> Iterator[tuple[Path, _Answer]]:
    """What each file under a path is. Those of a folder are read by several threads: cold, nearly all is waiting."""
    if not path.is_dir():
        yield path, _answer(path, True, question)
        return
    from concurrent.futures import ThreadPoolExecutor
    from itertools import islice

    found = binaries_under(path)
    with ThreadPoolExecutor(_THREADS) as pool:
        # in batches, so that a folder of 16,000 cubins does not wait in memory
        while batch := list(islice(found, _BATCH)):
            yield from zip(batch, pool.map(lambda each: _answer(each, False, question), batch), strict=True)


def _answer(path: Path, is_named: bool, question: Question) -> _Answer:
    if _is_zip(path, is_named):
        return None
    try:
        with FileSource(str(path)) as source:
            binary = examine(source, str(path), question.searches)
            if is_named or (binary.kind not in (TEXT, UNKNOWN, CUBIN)) or _is_damaged(binary):
                return _inspected(binary, source, "", question)
    except Unreadable as error:
        return error
    return binary if binary.kind == CUBIN else None


def has_failing(inspection: Inspection) -> bool:
    """Whether a file cannot run on the GPU and driver that were named, or be loaded where that was asked; of a kernel that
    was asked for, whether it cannot run."""
    if inspection.kernel:
        fatal = (Outcome.NONE, Outcome.JIT_BLOCKED)
        return any(kernel.outcome in fatal for file in inspection.files for kernel in file.kernels)
    return any(
        (file.verdict is not None and file.verdict.runs is False)
        or (file.loading is not None and file.loading.loads is False)
        for file in inspection.files
    )


def inspect_requirements(paths: Iterable[Path], question: Question, on_progress: Progress | None = None) -> Inspection:
    """The wheels under the paths by their directory and metadata alone; no code is read."""
    del question, on_progress
    wheels: list[WheelSummary] = []
    unreadable: list[str] = []
    for path in paths:
        for found in binaries_under(path):
            if not found.name.endswith(_ZIP):
                continue
            try:
                wheels.append(wheel_summary(found))
            except Unreadable as error:
                unreadable.append(str(error))
    return Inspection((), wheels=tuple(wheels), unreadable=tuple(unreadable))


def wheel_summary(path: Path) -> WheelSummary:
    """What a wheel says of itself, without inflating its code. Raises Unreadable."""
    from gpuwhy.binaries.wheel import Wheel

    with Wheel(str(path)) as wheel:
        facts = wheel.facts()
    return WheelSummary(
        str(path),
        facts.name,
        facts.version,
        facts.requires,
        facts.requires_python,
        facts.tags,
        len(facts.binaries),
        sum(size for _, size in facts.binaries),
    )


def _is_zip(path: Path, is_named: bool) -> bool:
    """By its name; a file that was asked for, by its first bytes too."""
    if path.name.endswith(_ZIP) or not is_named:
        return path.name.endswith(_ZIP)
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def _explainer(question: Question) -> Callable[[InspectedFile], InspectedFile]:
    """Adds to a file what would come of loading it, where that was asked."""
    if not question.needs:
        return lambda file: file
    from gpuwhy.investigate.loading import Explainer

    explainer = Explainer(question.library_path, question.preload)

    def explained(file: InspectedFile) -> InspectedFile:
        if file.kind not in (LIBRARY, EXECUTABLE):
            return file
        try:
            return msgspec.structs.replace(file, loading=explainer.explain(file.path))
        except Unreadable:  # it was there when its headers were read
            return file

    return explained


def _is_damaged(binary: Binary) -> bool:
    """A binary that is not read, or named like one and none: worth a word in a folder too."""
    return binary.kind == UNKNOWN and bool(binary.machine or binary.name.endswith((".so", ".cubin", ".fatbin")))


def _of_wheel(path: Path, question: Question, on_progress: Progress | None) -> Iterator[InspectedFile]:
    from gpuwhy.binaries.wheel import Wheel

    folders: dict[str, list[Binary]] = {}
    with Wheel(str(path)) as wheel:
        for binary in wheel.binaries(on_progress):
            if binary.kind == CUBIN:
                folders.setdefault(binary.name.rpartition("/")[0], []).append(binary)
            else:
                yield _inspected(binary, None, str(path), question)
    yield from _cubin_folders(folders, str(path), question)


def _cubin_folders(folders: dict[str, list[Binary]], within: str, question: Question) -> Iterator[InspectedFile]:
    """The bare cubins of each folder together: whoever loads one of them chooses among all."""
    for folder, members in folders.items():
        cubins = tuple(cubin for member in members for cubin in member.device.cubins)
        problems = [f"{member.name}: {each}" for member in members for each in member.problems + member.device.problems]
        size = sum(member.size for member in members)
        whole = Binary(
            folder, CUBIN_FOLDER, members[0].machine, size, DeviceCode((), cubins), problems=tuple(problems[:50])
        )
        yield msgspec.structs.replace(_inspected(whole, None, within, question), members=len(members))


def _inspected(binary: Binary, source: Source | None, within: str, question: Question) -> InspectedFile:
    sets = code_sets(binary)
    toolkit = _named_toolkit(binary, source) if question.details and source else ""
    file = summary(binary, sets, within, toolkit)
    file = msgspec.structs.replace(file, container_sets=tuple(_container_set(each, question) for each in sets))
    if question.gpu:
        from gpuwhy.investigate.binary_verdict import verdict

        file = msgspec.structs.replace(file, verdict=verdict(binary, sets, question.gpu, question.driver))
    return _with_kernels(file, binary, source, question) if question.kernel and sets else file


def _container_set(each: CodeSet, question: Question) -> ContainerSet:
    architectures = tuple(dict.fromkeys(code.architecture for code in each.codes))
    row = ContainerSet(each.section, each.role, each.containers, architectures, each.offset, each.member)
    if question.gpu is None:
        return row
    from gpuwhy.knowledge.loading import choose

    choice = choose(each.codes, question.gpu, question.driver)
    return msgspec.structs.replace(row, outcome=choice.outcome, taken=choice.taken, why=choice.why)


def _with_kernels(file: InspectedFile, binary: Binary, source: Source | None, question: Question) -> InspectedFile:
    from gpuwhy.investigate.kernels import find_kernels

    if source is None:
        note = "kernels are not looked for inside a wheel: its payloads went by; install or unpack it"
        return msgspec.structs.replace(file, problems=(*file.problems, note))
    kernels, note = find_kernels(source, binary, question.kernel, question.gpu, question.driver)
    return msgspec.structs.replace(file, kernels=kernels, problems=(*file.problems, *filter(None, (note,))))


def _named_toolkit(binary: Binary, source: Source) -> str:
    """The release that the smallest of the newer cubins names; older cubins name none."""
    from gpuwhy.investigate.kernels import unpack_zstd

    newer = [image for image in binary.device.images() if image.code.kind == "cubin" and image.code.version == "1.8"]
    if not newer or any(group.base for group in binary.device.groups):
        return ""
    try:
        return toolkit_of(source, min(newer, key=lambda image: image.stored_size), unpack_zstd)
    except Unreadable:
        return ""
