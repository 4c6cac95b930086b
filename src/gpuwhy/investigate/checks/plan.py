"""What a user plans: other GPUs, another driver, toolkit, package or variable, put in the place of what was found.

What follows from a planned fact follows it: an engine brings the packages that it pins, torch its CUDA and its Triton,
and what was seen of the part that is replaced is no longer true.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from gpuwhy.investigate.checks.results import Unchecked
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge import drivers, gpus, pins
from gpuwhy.knowledge import torch as wheels
from gpuwhy.knowledge.releases import cuda_release, cuda_text, local_part, public_version
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.model.host import Gpu, Resolution, Toolkits

MOST_BYTES = 1 << 20
MOST_GPUS = 64
_SHARED = ("torch", "torchvision", "torchaudio", "xformers", "flashinfer-python", "flashinfer-cubin", "sgl-kernel", "triton")  # fmt: skip
"""Pinned packages that bring kernels: those that an engine's release decides."""
_WHEEL_INDEX = re.compile(r"/whl/(?:test/|nightly/)?(cu\d{2,3}|cpu)(?:/|$)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class PlanError(Exception):
    """A planned fact or a file of requirements that cannot be used; the message says which and why."""


class Plan(msgspec.Struct, frozen=True):
    """What is to be judged in place of what is there. Names and versions as the user wrote them."""

    gpus: tuple[str, ...] = ()
    driver: str = ""
    cuda: str = ""
    packages: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    requirements: str = ""

    @property
    def is_empty(self) -> bool:
        return self == Plan()


class Planned(msgspec.Struct, frozen=True):
    """The facts with the plan in force, and what of the plan says too little to be judged."""

    facts: Facts
    unchecked: tuple[Unchecked, ...] = ()


def planned(facts: Facts, plan: Plan) -> Planned:
    """The facts as they would be. Raises PlanError."""
    if plan.gpus:
        facts = _with_gpus(facts, plan.gpus)
    if plan.driver:
        facts = _with_driver(facts, plan.driver)
    if plan.cuda:
        facts = _with_toolkit(facts, plan.cuda)
    unclear: list[Unchecked] = []
    wanted: dict[str, Fact] = {}
    if plan.requirements:
        for each in _requirements(plan.requirements):
            if isinstance(each, Unchecked):
                unclear.append(each)
            else:
                wanted[each.key] = each
    for text in plan.packages:
        name, sign, version = text.partition("==")
        canonical = _canonical(name)
        if not sign or not _NAME.fullmatch(name.strip()) or public_version(version.strip()) is None:
            raise PlanError(f"--package {text}: write NAME==VERSION, such as torch==2.8.0+cu128")
        key = f"packages.{canonical}"
        wanted[key] = _given(key, version.strip(), f"--package {text}", f"{canonical} {version.strip()} is planned")
        if canonical == "torch" and not local_part(version.strip()):
            wanted.pop("torch_cuda", None)
    facts = _with_packages(facts, wanted)
    for text in plan.env:
        facts = _with_variable(facts, text)
    return Planned(facts, tuple(unclear))


def _given(key: str, value: object, option: str, statement: str) -> Fact:
    return Fact(key, value, Evidence(statement, option[:500], Place("facts", option[:200]), Standing.GIVEN), "plan")


def _derived(key: str, value: object, why: str) -> Fact:
    return Fact(key, value, Evidence(why, "", Place("knowledge", "what the planned packages require"), Standing.DERIVED), "plan")  # fmt: skip


def _without(facts: Facts, *keys: str) -> Facts:
    """The facts without those that a planned one makes untrue. A key that ends in a dot stands for a group."""

    def is_replaced(key: str) -> bool:
        return any(key.startswith(each) if each.endswith(".") else key == each for each in keys)

    return Facts({each.key: each for each in facts if not is_replaced(each.key)}, facts.unknowns())


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()[:100]).lower()


def _with_gpus(facts: Facts, names: Iterable[str]) -> Facts:
    devices: list[Gpu] = []
    for name in names:
        count, rest = 1, name.strip()
        if found := re.fullmatch(r"(\d{1,3})\s{0,4}[x*]\s{0,4}(\S.{0,200})", rest):
            count, rest = int(found[1]), found[2]
        if not count:
            raise PlanError(f"--gpu {name}: none of them; leave the option out, or give how many there are")
        capability = capabilities.parse(rest)
        model = None if capability else gpus.by_name(rest)
        if capability is None and model is None:
            known = ", ".join(f"{each.name} ({each.compute_capability})" for each in gpus.candidates(rest)[:5])
            raise PlanError(f"--gpu {name}: " + (f"can mean {known}" if known else "unknown; give its compute capability, such as 12.0"))  # fmt: skip
        dotted = capability.plain.dotted if capability else model.compute_capability if model else ""
        for _ in range(min(count, MOST_GPUS)):
            devices.append(Gpu(len(devices), model.name if model else "", dotted))
    facts = _without(facts, "gpus", "gpu", "cc", "gpu_errors", "gpu_links", "gpu_memory", "gpu_processes", "pci_gpus", "nvswitch", "failing_gpu", "binary_runs.")  # fmt: skip
    said = ", ".join(dict.fromkeys(f"{each.name or 'a GPU'} ({each.compute_capability})" for each in devices))
    option = " ".join(f"--gpu {name}" for name in names)
    return facts.merged(Facts({"gpus": _given("gpus", tuple(devices), option, f"the GPUs are to be {said}")}))


def _with_driver(facts: Facts, version: str) -> Facts:
    if drivers.driver_version(version) is None:
        raise PlanError(f"--driver {version}: not a driver version such as 570.86")
    facts = _without(facts, "driver", "driver_cuda", "driver_library", "driver_installed", "libcuda_path", "nvidia_smi.", "binary_runs.")  # fmt: skip
    return facts.merged(Facts({"driver": _given("driver", version, f"--driver {version}", f"the driver is to be {version}")}))  # fmt: skip


def _with_toolkit(facts: Facts, cuda: str) -> Facts:
    release = cuda_release(cuda)
    if release is None:
        raise PlanError(f"--cuda {cuda}: not a CUDA release such as 12.9")
    kept = {each.key: each for each in facts if each.key.startswith("toolkit_resolved.triton")}
    facts = _without(facts, "cuda_toolkit", "cuda_home", "nvcc_path", "toolkits", "toolkit_resolved.", "other_toolkits.")  # fmt: skip
    text = cuda_text(release)
    fact = _given("cuda_toolkit", text, f"--cuda {cuda}", f"the toolkit that the service finds is to be {text}")
    return facts.merged(Facts({**kept, fact.key: fact}))


def _with_variable(facts: Facts, text: str) -> Facts:
    name, sign, value = text.partition("=")
    if not sign or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,99}", name):
        raise PlanError(f"--env {text}: write NAME=VALUE")
    key = f"env.{name}"
    fact = _given(key, value, f"--env {text}", f"{name} is to be {value!r}")
    if name in ("CUDA_HOME", "CUDA_PATH") and (name == "CUDA_HOME" or not facts.value("env.CUDA_HOME")):
        facts = _with_root(facts, name, value, fact)
    if name in ("PATH", "DG_JIT_NVCC_COMPILER"):  # what it leads to was not looked at
        facts = _without(facts, "toolkit_resolved.deepgemm" if name != "PATH" else "toolkit_resolved.", "nvcc_path")
    if name.startswith("TRITON_PTXAS"):
        facts = _without(facts, "toolkit_resolved.triton-blackwell" if "BLACKWELL" in name else "toolkit_resolved.triton")  # fmt: skip
    return facts.merged(Facts({key: fact}))


def _with_root(facts: Facts, name: str, root: str, fact: Fact) -> Facts:
    """CUDA_HOME comes first in every library's search: the toolkit there, where it was found, is the one."""
    tools = Toolkits.of(facts)
    wanted = root.rstrip("/")
    installs = tools.installs if isinstance(tools, Toolkits) else ()
    found = next((each for each in installs if each.root.rstrip("/") == wanted or f"also {wanted}" in each.note), None)
    kept = {each.key: each for each in facts if each.key.startswith("toolkit_resolved.triton")}
    facts = _without(facts, "toolkit_resolved.", "cuda_toolkit", "cuda_home")
    if not root or found is None or not found.version:
        return facts.merged(Facts(kept))
    resolved = {f"toolkit_resolved.{each}": Fact(f"toolkit_resolved.{each}", Resolution(each, found.version, found.root, name, fact.evidence), fact.evidence, "plan") for each in ("flashinfer", "torch", "sglang", "deepgemm")}  # fmt: skip
    return facts.merged(Facts({**kept, **resolved}))


def _with_packages(facts: Facts, wanted: dict[str, Fact]) -> Facts:
    """The planned packages, and those that they bring along, which nobody planned otherwise."""
    if not wanted:
        return facts
    named = {key.removeprefix("packages.") for key in wanted if key.startswith("packages.")}
    brought = {fact.key: fact for fact in _brought(named, wanted) if fact.key not in wanted}
    packages = named | {key.removeprefix("packages.") for key in brought if key.startswith("packages.")}
    gone = [f"binary_runs.{name}" for name in packages] + [f"binary_archs.{name}" for name in packages]
    if "torch" in packages:
        gone += ["torch", "torch_cuda", "torch_arch_list"]
    if "triton" in packages:
        gone += ["assemblers."]
    return _without(facts, *gone).merged(Facts({**brought, **wanted}))


def _brought(named: set[str], wanted: dict[str, Fact]) -> Iterator[Fact]:
    versions = {name: str(wanted[f"packages.{name}"].value) for name in named}
    for engine in pins.engines():
        if engine not in versions:
            continue
        for package in _SHARED:
            pin = pins.pin_of(engine, versions[engine], package)
            if pin and pin.version and not pin.extra and package not in versions:
                versions[package] = pin.version
                yield _derived(f"packages.{package}", pin.version, pin.why)
    torch = versions.get("torch")
    if torch is None:
        return
    triton = wheels.triton_of(torch)
    if "triton" not in versions and triton and triton[:1].isdigit():
        yield _derived("packages.triton", triton, f"torch {torch} requires triton {triton}")
    build = local_part(torch) or ""
    cuda = cuda_release(build) if build.startswith("cu") else None
    default = wheels.default_cuda(torch)
    if "torch_cuda" in wanted:
        return
    if cuda:
        yield _derived("torch_cuda", cuda_text(cuda), f"torch {torch} is the build for CUDA {cuda_text(cuda)}")
    elif not build and default:
        yield _derived("torch_cuda", default, f"torch {torch} from the default index is the build for CUDA {default}")


def _requirements(path: str) -> Iterator[Fact | Unchecked]:
    """The exact versions of a requirements file. What is left open to pip is said so. Raises PlanError."""
    try:
        data = Path(path).read_bytes()
        text = data[:MOST_BYTES].decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise PlanError(f"{path}: {getattr(error, 'strerror', None) or 'not a text in UTF-8'}") from error
    if len(data) > MOST_BYTES:
        raise PlanError(f"{path} is too long for a file of requirements")
    lines = list(_logical_lines(text))
    for number, line in lines:
        if line.startswith(("-r", "--requirement", "-c", "--constraint")):
            yield Unchecked(f"{path}:{number}: {line[:80]}", "files that are named in it are not read; give one complete file")  # fmt: skip
        elif found := (_WHEEL_INDEX.search(line[:500]) if line.startswith(("-i", "--index-url", "--extra-index-url", "-f", "--find-links")) else None):  # fmt: skip
            yield from _build_of_index(found[1], path, number, line)
        elif not line.startswith("-"):
            yield from _requirement(line, path, number)


def _build_of_index(build: str, path: str, number: int, line: str) -> Iterator[Fact]:
    cuda = cuda_release(build)
    text = cuda_text(cuda) if cuda else None
    said = f"torch comes from the index of the builds for {f'CUDA {text}' if text else 'the CPU'}"
    yield Fact("torch_cuda", text, Evidence(said, line[:200], Place("file", path, number), Standing.GIVEN), "plan")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and options such as --hash, with continued lines joined."""
    parts: list[str] = []
    begun = 0
    for number, line in enumerate(text.splitlines(), 1):
        begun = begun if parts else number
        is_continued = line.endswith("\\")
        parts.append(line.removesuffix("\\"))
        if not is_continued:
            yield from _bare(begun, " ".join(parts))
            parts = []
    if parts:
        yield from _bare(begun, " ".join(parts))


def _bare(number: int, line: str) -> Iterator[tuple[int, str]]:
    line = re.sub(r"(?:^|\s)#.*", "", line[:20_000]).strip()
    if line and not line.startswith("-"):
        line = line.split(" --", 1)[0].strip()
    if line:
        yield number, line


def _requirement(line: str, path: str, number: int) -> Iterator[Fact | Unchecked]:
    try:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"sys_platform": "linux", "platform_system": "Linux", "extra": ""}):  # fmt: skip
            return
    except (InvalidRequirement, ValueError, KeyError) as error:
        yield Unchecked(f"{path}:{number}: {line[:80]}", f"not a requirement: {str(error).splitlines()[0][:120]}")
        return
    exact = [each.version for each in requirement.specifier if each.operator in ("==", "===") and "*" not in each.version]  # fmt: skip
    name = _canonical(requirement.name)
    if exact and requirement.url is None:
        place = Place("file", path, number)
        yield Fact(f"packages.{name}", exact[0], Evidence(f"{name} {exact[0]} is required", line[:200], place, Standing.GIVEN), "plan")  # fmt: skip
    elif name in (*_SHARED, *pins.engines()):
        yield Unchecked(f"{path}:{number}: {line[:80]}", "it leaves the version to pip: write the one that pip would install, NAME==VERSION", f"packages.{name}", f"python -m pip index versions {name}")  # fmt: skip
