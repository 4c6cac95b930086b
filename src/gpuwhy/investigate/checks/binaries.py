"""The installed libraries with kernels, as files: each package's code against every GPU, and against the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gpuwhy.investigate.binaries_sent import SentBinary, sent_binaries
from gpuwhy.investigate.binaries_wanted import package_folders
from gpuwhy.investigate.checks.results import Passed, Problem, Result, Unchecked
from gpuwhy.investigate.source import Questioner
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Facts
from gpuwhy.model.finding import Certainty
from gpuwhy.model.host import Driver, Gpus
from gpuwhy.model.inspection import Outcome, Verdict
from gpuwhy.model.remedy import Remedy
from gpuwhy.snapshot import Snapshot
from gpuwhy.targets import Ask

PACKAGES = {
    "torch/lib/libtorch_cuda.so": "torch",
    "sgl_kernel": "sgl-kernel",
    "vllm": "vllm",
    "flash_attn_2_cuda": "flash-attn",
    "flash_attn_3": "flash-attn-3",
    "xformers": "xformers",
    "bitsandbytes": "bitsandbytes",
    "deep_ep": "deep-ep",
    "deep_ep_cpp": "deep-ep",
    "causal_conv1d_cuda": "causal-conv1d",
    "selective_scan_cuda": "mamba-ssm",
    "awq_ext": "autoawq-kernels",
    "exllamav2_ext": "exllamav2",
    "lmdeploy": "lmdeploy",
    "flashinfer_jit_cache": "flashinfer-jit-cache",
}
"""What stands in a folder of packages, and the package whose kernels it holds. FACTS: names in the published wheels."""
SECONDS = 4.0
"""For the reading of all of them: headers only."""


class Library(msgspec.Struct, frozen=True):
    """The binaries of one installed package."""

    package: str
    place: str
    files: tuple[SentBinary, ...]
    reason: str = ""
    """Why it could not be read, "" when it was."""


def installed_libraries(snapshot: Snapshot, source: Questioner) -> tuple[Library, ...]:
    """The packages with kernels in the service's own environment, read where they lie."""
    folders = package_folders(snapshot)
    if not folders:
        return ()
    wanted: dict[str, str] = {}
    for folder, reply in zip(folders, source.ask([Ask("list", folder) for folder in folders], SECONDS), strict=True):
        listed = reply.value.get("names") if isinstance(reply.value, dict) else None
        for name in listed if isinstance(listed, list) else ():
            bare = str(name).rstrip("/")
            for path, package in PACKAGES.items():
                first = path.partition("/")[0]
                if bare == first:
                    wanted.setdefault(f"{folder}/{path}", package)
                elif bare.startswith(f"{first}.") and bare.endswith(".so"):
                    wanted.setdefault(f"{folder}/{bare}", package)
    replies = source.ask([Ask("inspect", path) for path in wanted], SECONDS) if wanted else []
    return tuple(
        Library(package, path, tuple(sent_binaries(reply.value)), "" if reply.status == "ok" else reply.reason or reply.status)
        for (path, package), reply in zip(wanted.items(), replies, strict=True)
        if reply.status != "absent" or package != "torch"
    )  # fmt: skip


def libraries_run(libraries: Sequence[Library], facts: Facts) -> Iterator[Result]:
    """Whether each package has a file that runs on each kind of GPU."""
    gpus, driver = Gpus.of(facts), Driver.of(facts)
    version = driver.version or "" if isinstance(driver, Driver) else ""
    for library in libraries:
        planned = facts.get(f"packages.{library.package}")
        if getattr(planned, "subject", "") == "plan":
            continue  # another release is planned: this file says nothing of it
        what = f"the libraries of {library.package}"
        if library.reason:
            yield Unchecked(what, f"{library.place}: {library.reason}", "", f"gpuwhy inspect {library.place}")
        elif not isinstance(gpus, Gpus):
            yield Unchecked(what, gpus.why, gpus.key, gpus.command)
        else:
            for capability in gpus.capabilities:
                yield from _judged(library, capability, version)


def _judged(library: Library, capability: str, driver: str) -> Iterator[Result]:
    gpu = capabilities.parse(capability)
    if gpu is None:
        return
    verdicts = [(each, each.verdict(gpu, driver)) for each in library.files]
    coded = [(file, verdict) for file, verdict in verdicts if verdict.outcome is not Outcome.NO_DEVICE_CODE]
    what = f"the libraries of {library.package} run on compute capability {capability}"
    if not coded:
        return
    running = [file for file, verdict in coded if verdict.runs]
    if running:
        yield Passed(what, f"{len(running)} of {len(coded)} files with device code have code for it")
    elif any(verdict.runs is None for _, verdict in coded):
        file, verdict = next((file, verdict) for file, verdict in coded if verdict.runs is None)
        yield Unchecked(what, f"{file.name}: {verdict.why}", f"binary_runs.{library.package}", f"gpuwhy inspect {file.path} --for {capability}")  # fmt: skip
    else:
        yield _failing(library, capability, [verdict for _, verdict in coded], [file for file, _ in coded])


def _failing(library: Library, capability: str, verdicts: Sequence[Verdict], files: Iterable[SentBinary]) -> Problem:
    outcomes = {each.outcome for each in verdicts}
    cause, remedy = "binary-lacks-arch", Remedy(kind="package", name=library.package, value="newer", summary=f"Install a release of {library.package} with code for this GPU, or build it for the GPU", is_sure=False)  # fmt: skip
    if library.package == "torch":
        cause = "torch-lacks-arch"
    if Outcome.DRIVER_TOO_OLD in outcomes or Outcome.JIT_BLOCKED in outcomes:
        cause = "driver-too-old" if Outcome.DRIVER_TOO_OLD in outcomes else "ptx-newer-than-driver"
        remedy = Remedy(kind="driver", name="nvidia", value="newer", summary="Install a newer driver on the host", cost="root and a reboot", risk="medium")  # fmt: skip
    shown = tuple(
        Evidence(f"{file.name}: {verdict.why}", f"{file.place}: {' '.join(file.architectures)}", Place("binary", file.path))
        for file, verdict in zip(list(files)[:4], verdicts, strict=False)
    )  # fmt: skip
    return Problem(
        cause=cause, component=library.package, certainty=Certainty.PROVEN,
        title=f"No library of {library.package} runs on compute capability {capability}: {verdicts[0].why}",
        evidence=shown, remedies=(remedy,),
    )  # fmt: skip
