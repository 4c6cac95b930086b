"""Which image of a container the driver takes for a GPU, and why it takes none.

The driver chooses inside one container (one translation unit), never among those of a whole file: a library that has
``sm_120`` somewhere can have a kernel without it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from msgspec import Struct

from gpuwhy.binaries.fatbin import Code
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge import drivers
from gpuwhy.knowledge.answers import Answer, unknown
from gpuwhy.knowledge.capability import ComputeCapability
from gpuwhy.knowledge.releases import cuda_release
from gpuwhy.model.inspection import Outcome

RULES = "documented:CUDA C++ Programming Guide, application compatibility; derived: no GPU tried"


class Choice(Struct, frozen=True):
    """What the driver does with a container. ``taken`` is the architecture of the image that it takes, or ``""``."""

    outcome: Outcome
    taken: str
    why: str
    provenance: str = RULES


def choose(codes: Iterable[Code], gpu: ComputeCapability, driver: str = "") -> Choice:
    """What the driver takes of one container's images on a GPU. Without a driver, PTX counts as compilable.

    Machine code wins over PTX, and the target nearest to the GPU wins. An image of a kind that nobody describes, or a
    pair of chips of which nothing is promised, gives ``unknown`` unless another image is sure to run.
    """
    listed = tuple(codes)
    return _native(listed, gpu) or _compiled(listed, gpu, driver) or _nothing(listed, gpu)


def _native(codes: tuple[Code, ...], gpu: ComputeCapability) -> Choice | None:
    fitting = [code for code in codes if code.kind == "cubin" and _cubin_runs(code, gpu).value is True]
    if not fitting:
        return None
    best = max(fitting, key=lambda code: (code.arch, code.suffix == "a", code.suffix == "f"))
    answer = _cubin_runs(best, gpu)
    return Choice(Outcome.NATIVE, best.architecture, answer.why, answer.provenance)


def _compiled(codes: tuple[Code, ...], gpu: ComputeCapability, driver: str) -> Choice | None:
    """What becomes of PTX for the GPU; None without any, or when machine code of unknown fate stands beside it."""
    fitting = [code for code in codes if code.kind == "ptx" and _ptx_fits(code, gpu).value is True]
    if not fitting:
        return None
    known = [(code, known_to(driver, code.version)) for code in fitting]
    compilable = [code for code, answer in known if answer.value is True]
    if compilable:
        best = max(compilable, key=lambda code: (code.arch, code.suffix == "a", code.suffix == "f"))
        why = f"the driver compiles PTX {best.version} for {best.architecture}"
        return Choice(Outcome.JIT, best.architecture, why if driver else f"{why}, if it knows that version")
    if _undecided(codes, gpu):
        return None
    code, answer = next(((code, answer) for code, answer in known if answer.value is None), known[0])
    outcome = Outcome.UNKNOWN if answer.value is None else Outcome.JIT_BLOCKED
    return Choice(outcome, code.architecture, answer.why, answer.provenance)


def _nothing(codes: tuple[Code, ...], gpu: ComputeCapability) -> Choice:
    undecided = _undecided(codes, gpu)
    if undecided:
        return Choice(Outcome.UNKNOWN, "", undecided)
    has = ", ".join(dict.fromkeys(code.architecture for code in codes)) or "nothing"
    return Choice(Outcome.NONE, "", f"no image runs on compute capability {gpu}: there is {has}")


def _undecided(codes: tuple[Code, ...], gpu: ComputeCapability) -> str:
    """Why an image may run although nothing says that it does; ``""`` when all are known not to."""
    for code in codes:
        if code.kind == "lto-ir":  # the driver does not load it: nvJitLink makes machine code of it first
            continue
        answer = _cubin_runs(code, gpu) if code.kind == "cubin" else _ptx_fits(code, gpu)
        if code.kind == "relocatable ptx" and answer.value is not False:
            return f"{code.architecture} is relocatable PTX: whether the driver links it is not known"
        if code.kind not in ("cubin", "ptx", "relocatable ptx"):
            return f"{code.architecture}: when a driver takes this kind of image is not known"
        if answer.value is None:
            return answer.why
    return ""


@functools.lru_cache(maxsize=4096)
def _cubin_runs(code: Code, gpu: ComputeCapability) -> Answer:
    return capabilities.runs_on(f"sm_{code.arch}{code.suffix}", gpu)


@functools.lru_cache(maxsize=4096)
def _ptx_fits(code: Code, gpu: ComputeCapability) -> Answer:
    return capabilities.runs_on(f"compute_{code.arch}{code.suffix}", gpu)


@functools.lru_cache(maxsize=256)
def known_to(driver: str, ptx_isa: str) -> Answer:
    """Whether a driver compiles a PTX version ("8.8"). ``""`` for the driver counts as one that does."""
    if not driver:
        return Answer(True, "no driver was named", RULES)
    wanted = cuda_release(ptx_isa)
    newest = drivers.ptx_isa_max(driver)
    if wanted is None:
        return unknown(f"{ptx_isa:.20} is no PTX version")
    if newest.value is None:
        return _by_neighbours(driver, ptx_isa)
    if wanted <= (cuda_release(newest.value) or (0, 0)):
        return Answer(True, f"driver {driver} compiles PTX up to {newest.value}", newest.provenance)
    first = drivers.cuda_of_ptx(ptx_isa)
    needs = f"a driver for CUDA {first.value}" if first.value else "a newer driver than any known here"
    why = f"PTX {ptx_isa} needs {needs}; {driver} compiles up to {newest.value}"
    return Answer(False, why, newest.provenance)


def _by_neighbours(driver: str, ptx_isa: str) -> Answer:
    """For a driver that is in no table: a newer one knows what an older one knew."""
    version, first = drivers.driver_version(driver), drivers.cuda_of_ptx(ptx_isa)
    shipped = drivers.driver_version(drivers.shipped_with(first.value) or "") if first.value else None
    if version and shipped and version >= shipped:
        return Answer(True, f"driver {driver} is newer than the first that compiles PTX {ptx_isa}", first.provenance)
    return unknown(f"which PTX driver {driver:.40} compiles is not in the tables")


def runtime_starts(driver: str, cuda_major: int | None) -> Answer:
    """Whether the CUDA runtime of a major version starts on a driver."""
    if not driver or cuda_major is None:
        return unknown("the driver or the runtime's version is not known")
    return drivers.runs(driver, f"{cuda_major}.0")
