"""Facts from binaries: for what they were compiled, whether they are whole, what keeps them from loading.

Evidence names the file, the section and the offset, so that a person finds the place with ``readelf`` and ``cuobjdump``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from gpuwhy.binaries.examining import CUBIN, UNKNOWN
from gpuwhy.investigate.binaries_sent import SentBinary
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge.capability import ComputeCapability
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.model.host import Driver, Gpus
from gpuwhy.model.inspection import Outcome, Verdict
from gpuwhy.model.loading import Loading
from gpuwhy.targets import Reply

_CACHES = ("/.cache/", "/.triton/", "/torch_extensions/", "/cached_ops/", "/torchinductor_")


def facts_of_file(file: SentBinary) -> Iterator[Fact]:
    """``files.PATH``: whole, or what is wrong with it."""
    said = _state(file)
    quote = "; ".join(file.binary.problems[:3]) or f"{file.binary.kind}, {file.binary.size} bytes"
    yield _fact(f"files.{file.path}", said, f"{file.path} is {said}", quote, file.path)


def missing_file(path: str, reply: Reply | None) -> Iterator[Fact]:
    """``files.PATH`` None for a file that was looked for and is not there; nothing for one that could not be looked at."""
    # a snapshot that was not asked then answers "absent" too, and names no file
    if reply is not None and reply.status == "absent" and reply.reason.startswith(path):
        yield _fact(f"files.{path}", None, f"there is no {path}", reply.reason, path)


def _state(file: SentBinary) -> str:
    size, installed = file.binary.size, file.installed_size
    cut = next((each for each in file.binary.problems if "file ends at" in each or "the end of the file" in each), "")
    if not size:
        return "empty: 0 bytes"
    if installed is not None and size != installed:
        kind = "truncated" if size < installed else "damaged"
        return f"{kind}: {size} bytes, and {file.package} {file.package_version} installed {installed}"
    if cut:
        return f"truncated: {cut}"
    if file.binary.kind == UNKNOWN:
        return f"damaged: {file.binary.problems[0] if file.binary.problems else 'no binary'}"
    if not file.binary.is_complete:
        return f"damaged: {file.binary.problems[0]}"
    recorded = f", as {file.package} {file.package_version} installed it" if installed is not None else ""
    return f"whole: {size} bytes{recorded}"


def facts_of_torch(file: SentBinary, facts: Facts) -> Iterator[Fact]:
    """``torch_arch_list``, as ``torch.cuda.get_arch_list()`` prints it: the targets that every part was compiled for."""
    listed = list(file.common_architectures or file.architectures)
    if not listed:
        return
    quote = f"{file.place}: each holds {' '.join(listed)}"
    yield _fact("torch_arch_list", listed, f"torch was compiled for {' '.join(listed)}", quote, file.path)
    yield from _runs("torch", file, _gpu(facts), _driver(facts))


def facts_of_set(
    component: str, files: Sequence[SentBinary], facts: Facts, *, is_named: bool = False
) -> Iterator[Fact]:
    """``binary_archs``, ``binary_runs``, and for what was compiled on the target ``jit_targets``.

    Under the component's own name stands what all of its files agree in, or those that the failure names: of a package
    with kernels for several generations in separate files, one that lacks the GPU shows nothing.
    """
    coded = [each for each in files if each.containers and each.binary.kind != CUBIN]
    if not coded:
        return
    gpu, driver = _gpu(facts), _driver(facts)
    for file in coded:
        if len(coded) > 1:
            yield from _of_one(f"{component} {file.stem}", file, gpu, driver)
    cached = [each for each in coded if any(part in each.path for part in _CACHES)]
    if cached and "jit_targets" not in facts:
        targets = list(dict.fromkeys(name for each in cached for name in each.architectures))
        yield _fact("jit_targets", targets, f"modules were compiled here for {' '.join(targets)}", cached[0].place, cached[0].path)  # fmt: skip
    verdicts = {each.verdict(gpu, driver).runs for each in coded} if gpu else set()
    if len(coded) == 1 or is_named or len(verdicts) == 1:
        yield from _of_one(component, max(coded, key=lambda each: each.containers), gpu, driver)


def _of_one(name: str, file: SentBinary, gpu: ComputeCapability | None, driver: str) -> Iterator[Fact]:
    listed = list(file.architectures)
    whose = f", of {file.package} {file.package_version}" if file.package else ""
    said = f"{file.path}{whose} holds code for {' '.join(listed)}"
    yield _fact(f"binary_archs.{name}", listed, said, f"{file.place}: {' '.join(listed)}", file.path)
    yield from _runs(name, file, gpu, driver)


def _runs(name: str, file: SentBinary, gpu: ComputeCapability | None, driver: str) -> Iterator[Fact]:
    if gpu is None:
        return
    verdict = file.verdict(gpu, driver)
    yield _fact(f"binary_runs.{name}", verdict.outcome.value, f"{file.name}: {verdict.why}", _counts(file, verdict), file.path)  # fmt: skip


def _counts(file: SentBinary, verdict: Verdict) -> str:
    parts = ((verdict.native, "native"), (verdict.jit, "from PTX"), (verdict.jit_blocked, "with PTX that is too new"), (verdict.none, "without an image"))  # fmt: skip
    counted = ", ".join(f"{number} {words}" for number, words in parts if number)
    return f"{file.place}: {counted}" if verdict.outcome is not Outcome.NO_DEVICE_CODE else file.place


def facts_of_loading(loading: Loading, facts: Facts, names: Sequence[str] = ()) -> Iterator[Fact]:
    """``loading.PATH``, with it ``glibc`` and ``libcuda_path`` where nobody knows better, and ``files.NAME`` of a library
    that is found nowhere, ``files.PATH`` of one that is."""
    words = {True: "loads", False: "does not load", None: "may load"}[loading.loads]
    yield _fact(f"loading.{loading.path}", msgspec.to_builtins(loading), f"{loading.path} {words}", _why(loading), loading.path)  # fmt: skip
    if loading.glibc and "glibc" not in facts:
        yield _fact("glibc", loading.glibc, f"the C library is glibc {loading.glibc}", f"GLIBC_{loading.glibc} is the newest version that it defines", loading.libc)  # fmt: skip
    known = facts.get("libcuda_path")
    is_mapped = isinstance(known, Fact) and "mapped" in known.evidence.statement
    if loading.libcuda and not is_mapped:
        said = f"a process of the service would load this libcuda, by {loading.libcuda_how}"
        yield _fact("libcuda_path", loading.libcuda, said, loading.libcuda, loading.libcuda)
    for row in loading.libraries:
        if row.name in names and row.path and not row.problem:
            yield _fact(
                f"files.{row.path}", f"found by {row.how}", f"the loader finds {row.path}", row.path, loading.path
            )
        if row.name in names and not row.path:
            yield _fact(f"files.{row.name}", None, f"{row.name} is in none of the folders that the loader searches", ", ".join(row.looked_in[:12]), loading.path)  # fmt: skip


def _why(loading: Loading) -> str:
    parts = [f"{row.name}: {row.problem or 'not found'}" for row in loading.missing[:3]]
    parts += [f"{each.path} has no {each.version}" for each in loading.too_old[:3]]
    parts += [f"undefined symbol: {each.name}" for each in loading.broken_symbols[:3]]
    parts += list(loading.problems[:2])
    return "; ".join(parts) or f"{loading.searched} libraries, every one found"


def _fact(key: str, value: object, statement: str, quote: str, path: str) -> Fact:
    return Fact(key, value, Evidence(statement, quote[:600], Place("binary", path)), "host")


def _gpu(facts: Facts) -> ComputeCapability | None:
    gpus = Gpus.of(facts)
    return capabilities.parse(gpus.capability) if isinstance(gpus, Gpus) and gpus.capability else None


def _driver(facts: Facts) -> str:
    driver = Driver.of(facts)
    return driver.version or "" if isinstance(driver, Driver) else ""
