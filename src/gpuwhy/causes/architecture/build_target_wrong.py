"""build-target-wrong: what was compiled here was compiled for another GPU, without anybody having asked for it."""

from __future__ import annotations

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.architecture import _arch_lists as lists
from gpuwhy.causes.architecture import _engine_files as engine_files
from gpuwhy.causes.architecture import _extension_remedies as extensions
from gpuwhy.causes.architecture import _missing_image as images
from gpuwhy.causes.architecture import _own_build as own_build
from gpuwhy.causes.architecture import _refused_target as refused
from gpuwhy.causes.architecture._missing_image import MissingImage
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Environment, Gpus, Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

_CMAKE_DEFAULTS = ("520", "750")
"""What CMake takes when nothing is set: 52 with nvcc up to 12.9, 75 with 13."""
_PUBLISHED = frozenset({"ollama", "llama-box", "koboldcpp"})
"""Products that are installed as programs, hardly ever built by their users."""


class Mistake(msgspec.Struct, frozen=True):
    """What was compiled, and for what. ``kind``: ``jit``, ``mixed``, ``own`` (a build of one's own) or ``default``.

    ``built_for`` the targets as far as they are known; ``shown`` further evidence beside the failing line.
    """

    match: Match
    kind: str
    component: str | None
    built_for: str
    certainty: Certainty
    strength: int
    shown: tuple[Evidence, ...] = ()


@cause(
    "build-target-wrong",
    family="Binary and architecture limits",
    signs=[
        *images.SIGNS,
        images.TORCH_WARNED,
        engine_files.OF_OTHER_GPU,
        says("no-compiled-kernel", "no compiled ", r"No compiled (?P<what>[\w: ]{3,60}?)(?: kernel)? for (?:a |this |the )?(?:compute|CUDA|device)"),
        says("kernel-built-for-other", ("but was built for sm", "requires building with sm version"), r"is for sm\d+(?:-sm\d+)?, but was built for (?P<built>sm\d+)|requires building with sm version (?P<range>sm\d+\S*), but was built for"),
        says("without-suffix", "arch conditional mma instruction used without", r"Arch conditional MMA instruction used without targeting"),
        says("device-not-first", "current: <cudevice", r"CUDA devices available: (?P<count>\d+) \(current: <CUdevice (?P<index>\d+)>"),
        says("no-gpu-while-building", ("cannot find valid gpu for '-arch=native'", "but no nvidia gpu was detected", "no gpu detected", "no cuda-capable device found while"), r"Cannot find valid GPU for '-arch=native'|set to \"?native\"?, but no NVIDIA GPU was detected|autodetect.{0,60}no GPU detected"),
        says("empty-arch-list", "indexerror: list index out of range"),
        refused.TOO_LOW,
        *lists.SIGNS,
        *own_build.SIGNS,
    ],
)  # fmt: skip
def build_target_wrong(
    case: Case, gpus: Gpus | Unknown, environment: Environment | Unknown, torch: Torch | Unknown
) -> Judgement:
    """A library built on this machine, at install or at run time, was compiled for another GPU than the one it runs on.

    How it shows itself
      TensorRT refuses an engine file of another GPU: `generated on an incompatible device`. Elsewhere the build ends well, and the first use fails: `no kernel image is available`, vLLM's `No compiled ... for CUDA device
      capability: 121`, ggml's `has no device code compatible with CUDA arch 1200 ... compiled for: 520`, CUTLASS's
      `Arch conditional MMA instruction used without targeting ...`. On a mixed machine only some ranks fail. Or the
      build stops because code for new GPUs is compiled for an old default (`requires .target sm_80 or higher`).

    Why it happens
      Nobody named a target, and a default or a detection chose: CMake takes 52 (75 from CUDA 13 on), `native` looks at the
      machine that builds, which in `docker build` has no GPU; some libraries ask GPU 0 only, or fold two GPUs of a
      family into one target. Code for 12.0a does not run on 12.1, nor code for 8.9 on 8.6.

    How to be sure
      The path of a JIT build often shows its target (`.cache/flashinfer/0.6.6/120a/`). Otherwise
      `cuobjdump --list-elf FILE.so | grep -o 'sm_[0-9a-z]*' | sort | uniq -c`, against the capability of the GPU that failed:
      `nvidia-smi --query-gpu=index,name,compute_cap --format=csv`.

    What helps
      Name the target and build again: FLASHINFER_CUDA_ARCH_LIST=12.1a, TORCH_CUDA_ARCH_LIST=8.9,
      -DCMAKE_CUDA_ARCHITECTURES=120; delete what was built. On mixed machines: one kind of GPU per process group
      (CUDA_VISIBLE_DEVICES), or a list that names all.

    What does not help
      A newer driver; lower batch sizes; disabling CUDA graphs; installing the same sources again without the list.

    Not to be confused with
      arch-list-override (a variable names the wrong target), binary-lacks-arch and torch-lacks-arch (the file was
      published compiled), arch-unsupported-by-library (no code for the GPU exists to be compiled).
    """
    known = lists.known_lists(case, environment)
    mistake = (
        _engine_file(case)
        or _missing_image(case, gpus, torch, known)
        or _said_by_library(case, gpus, environment, known)
        or _compiled_too_low(case, gpus, environment, known)
        or _no_gpu_while_building(case)
    )
    if mistake is None or isinstance(mistake, RuledOut):
        return mistake
    verdict = _verdict(case, mistake, gpus)
    return _without_any_target(case, mistake, verdict) if mistake.match.sign == "empty-arch-list" else verdict


def _engine_file(case: Case) -> Mistake | None:
    """An engine file holds code for the GPU on which it was built, and nobody names a target for it."""
    match = case.found(engine_files.OF_OTHER_GPU.name)
    if match is None:
        return None
    component = "tensorrt-llm" if case.engine == "tensorrt-llm" else "tensorrt"
    return Mistake(match, "engine", component, match.group("built") or "", Certainty.LIKELY, 78)


def _without_any_target(case: Case, mistake: Mistake, verdict: Verdict) -> Verdict:
    """torch lists the visible GPUs when no variable names a target, and takes the last entry of an empty list."""
    return msgspec.structs.replace(
        verdict,
        title=f"No GPU is visible to the build of {mistake.component or 'an extension'}, and no variable names a target",
        chain=(
            Link("The build sees no GPU (docker build passes none)", inferred("the list of visible GPUs was empty")),
            Link(
                "TORCH_CUDA_ARCH_LIST is unset, so torch would take the visible GPUs", inferred("else it is not asked")
            ),
            Link("_get_cuda_arch_flags takes the last of an empty list", case.evidence(mistake.match, "how it shows")),
        ),
        rivals=("no-device-visible", "container-gpu-not-passed", "arch-list-override"),
    )


def _missing_image(
    case: Case,
    gpus: Gpus | Unknown,
    torch: Torch | Unknown,
    known: tuple[lists.ArchList, ...],
) -> Mistake | RuledOut | None:
    image = images.read_missing_image(case, gpus, torch)
    if image is None:
        return None
    quoted = case.evidence(image.match, "the failed launch")
    if image.match.sign == images.NO_DEVICE_CODE.name:
        return _ggml(case, image)
    if image.torch_warning is not None or (image.torch.value is False and image.jit_targets is None):
        return RuledOut("torch itself has no code for this GPU", (quoted,))
    named = next((each for each in known if _leaves_out(each, image)), None)
    if named is not None and (image.jit_targets is not None or image.has_code is False):
        return RuledOut(f"{named.name} asks for the targets that were built", (named.evidence, quoted))
    if image.jit_targets:
        return _jit(case, image, gpus)
    if _is_mixed(case, image, gpus):
        return _mixed(case, image, gpus)
    built_here = own_build.evidence_of_own_build(case, image.match, image.component)
    shown = tuple(e for e in (built_here, image.built_evidence) if e is not None)
    if image.has_code is True or image.is_torch_own:
        return RuledOut("the library has code for this GPU", (quoted,)) if image.has_code else None
    targets = ", ".join(image.built_for or ())
    if image.has_code is False and built_here is not None:
        is_sure = image.is_plain and own_build.evidence_naming_component(case, image.component) is not None
        certainty = Certainty.PROVEN if is_sure else Certainty.LIKELY
        return Mistake(image.match, "own", image.component, targets, certainty, 80, shown)
    if image.jit_targets is not None or built_here is not None:
        return Mistake(image.match, "jit" if image.jit_targets is not None else "own", image.component, targets, Certainty.POSSIBLE, 50, shown)  # fmt: skip
    if image.is_plain and image.component not in _PUBLISHED:
        return Mistake(image.match, "own", image.component, targets, Certainty.POSSIBLE, 20)
    return None


def _leaves_out(each: lists.ArchList, image: MissingImage) -> bool:
    return image.capability is not None and each.covers(image.capability) is False


def _jit(case: Case, image: MissingImage, gpus: Gpus | Unknown) -> Mistake | RuledOut:
    """The path of the kernel shows for what it was compiled."""
    targets = [t if t.startswith(("sm_", "compute_")) else f"sm_{t}" for t in image.jit_targets or ()]
    component = image.component or "flashinfer"
    spelt = ", ".join(targets)
    capabilities_here = gpus.capabilities if isinstance(gpus, Gpus) else ()
    wanted = (image.capability,) if image.capability else capabilities_here
    runs = [images.any_runs(targets, each) for each in wanted]
    if runs and all(runs):
        at = case.evidence(image.match, "the path of the kernel that was compiled")
        return RuledOut(f"it was compiled for {spelt}, which runs on this GPU", (at,))
    known = gpus.evidence if isinstance(gpus, Gpus) else ()
    if False in runs:
        certainty = Certainty.PROVEN if image.capability else Certainty.LIKELY
        return Mistake(image.match, "jit", component, spelt, certainty, 88, known)
    return Mistake(image.match, "jit", component, spelt, Certainty.POSSIBLE, 62, known)


def _is_mixed(case: Case, image: MissingImage, gpus: Gpus | Unknown) -> bool:
    if image.is_mixed:
        return True
    return not isinstance(gpus, Gpus) and _index_of_failing(case) > 0


def _index_of_failing(case: Case) -> int:
    """The index of the device in use, where the failure prints it; 0 also when nothing does."""
    match = case.found("device-not-first")
    return int(match.group("index") or 0) if match is not None else 0


def _mixed(case: Case, image: MissingImage, gpus: Gpus | Unknown) -> Mistake | RuledOut:
    """Several kinds of GPU, and the one that fails is not the first, which libraries ask."""
    component = image.component or ("flashinfer" if case.found("device-not-first") is not None else None)
    if not isinstance(gpus, Gpus):
        return Mistake(image.match, "mixed", component, "", Certainty.POSSIBLE, 55)
    failing = gpus.failing if gpus.failing is not None else _index_of_failing(case) or None
    first = gpus.devices[0].compute_capability
    device = next((d for d in gpus.devices if d.index == failing), None)
    if failing is None or device is None or first is None or device.compute_capability is None:
        return Mistake(image.match, "mixed", component, "", Certainty.POSSIBLE, 58, gpus.evidence)
    if device.compute_capability == first or capabilities.runs_on(first, device.compute_capability).value:
        return RuledOut(f"code for GPU 0 ({first}) runs on GPU {failing} as well", gpus.evidence)
    target = capabilities.parse(first)
    return Mistake(
        image.match, "mixed", component, target.target if target else first, Certainty.LIKELY, 78, gpus.evidence
    )


def _ggml(case: Case, image: MissingImage) -> Mistake | None:
    """ggml prints what it was compiled for: a published program has many targets, a default or a native build has one."""
    built = (image.match.group("built") or "").split(",")
    component = image.component
    here = own_build.evidence_of_own_build(case, image.match, component)
    shown = (here,) if here is not None else ()
    if built == [""]:
        return (
            Mistake(image.match, "own", component, "", Certainty.POSSIBLE, 45, shown)
            if component not in _PUBLISHED
            else None
        )
    spelt = ", ".join(f"sm_{arch[:-1]}" for arch in built)
    if len(built) == 1 and component not in _PUBLISHED:
        kind = "default" if built[0] in _CMAKE_DEFAULTS else "own"
        return Mistake(image.match, kind, component, spelt, Certainty.LIKELY, 80, shown)
    if here is not None:
        return Mistake(image.match, "own", component, spelt, Certainty.LIKELY, 78, shown)
    return Mistake(image.match, "own", component, spelt, Certainty.POSSIBLE, 30)


def _said_by_library(
    case: Case, gpus: Gpus | Unknown, environment: Environment | Unknown, known: tuple[lists.ArchList, ...]
) -> Mistake | RuledOut | None:
    """The library itself says that the kernel was not compiled, or compiled for something else."""
    match = case.found("no-compiled-kernel", "kernel-built-for-other", "without-suffix")
    if match is None:
        return None
    component = images.in_other_words(match.text) or case.component_near(match, case.engine or None)
    capability = gpus.capability if isinstance(gpus, Gpus) else None
    at_fault = next((each for each in known if capability and each.covers(capability) is False), None)
    if at_fault is not None:
        return RuledOut(f"{at_fault.name} leaves this GPU out", (at_fault.evidence,))
    binary = own_build.binary_of(case, component)
    targets = tuple(str(item) for item in binary.value or ()) if binary is not None else ()
    has_code = images.any_runs(targets, capability) if targets and capability else None
    here = own_build.evidence_of_own_build(case, match, component)
    is_unset = lists.is_known_unset(case, environment, lists.TORCH)
    shown = tuple(e for e in (here, binary.evidence if binary is not None else None) if e is not None)
    spelt = ", ".join(targets)
    if has_code is False and (here is not None or is_unset):
        is_sure = is_unset and own_build.evidence_naming_component(case, component) is not None
        certainty = Certainty.PROVEN if is_sure else Certainty.LIKELY
        return Mistake(match, "own", component, spelt, certainty, 82, shown)
    if match.sign == "without-suffix":
        return Mistake(match, "own", component, "a target without its suffix", Certainty.LIKELY if here else Certainty.POSSIBLE, 62, shown)  # fmt: skip
    if here is not None:
        return Mistake(match, "own", component, spelt, Certainty.LIKELY, 70, shown)
    return Mistake(match, "own", component, spelt, Certainty.POSSIBLE, 48, shown)


def _compiled_too_low(
    case: Case, gpus: Gpus | Unknown, environment: Environment | Unknown, known: tuple[lists.ArchList, ...]
) -> Mistake | RuledOut | None:
    match = case.found(refused.TOO_LOW.name)
    if match is None or refused.is_tritons(case, match):
        return None
    need = capabilities.parse(match.group("need") or match.group("need2") or "")
    capability = gpus.capability if isinstance(gpus, Gpus) else None
    quoted = case.evidence(match, "what the code needs")
    gpu = capabilities.parse(capability) if capability else None
    if need is not None and gpu is not None and gpu.plain < need.plain:
        return RuledOut(f"the GPU itself is below {need.dotted}", (quoted,))
    if need is not None and any(c.plain < need.plain for each in known for c in each.capabilities):
        return RuledOut("a list of targets asks for the lower one", tuple(each.evidence for each in known))
    component = case.component_near(match)
    is_free = lists.is_known_unset(case, environment, lists.variable_for(component))
    certainty = Certainty.LIKELY if gpu is not None and is_free else Certainty.POSSIBLE
    strength = 65 if certainty is Certainty.LIKELY else 48 if gpu is not None else 44
    return Mistake(match, "default", component, f"a target below {need.target}" if need else "", certainty, strength)


def _no_gpu_while_building(case: Case) -> Mistake | None:
    match = case.found("no-gpu-while-building")
    empty = case.found("empty-arch-list")
    if empty is not None and any(
        "_get_cuda_arch_flags" in line.text or "arch_list[-1]" in line.text for line in case.lines_around(empty, 8, 1)
    ):  # torch's list of visible GPUs is empty: no GPU, and no variable that names a target
        return Mistake(empty, "default", case.component_near(empty), "nothing at all", Certainty.LIKELY, 72)
    if match is None:
        return None
    return Mistake(match, "default", case.component_near(match), "a default", Certainty.POSSIBLE, 40)


def _verdict(case: Case, mistake: Mistake, gpus: Gpus | Unknown) -> Verdict:
    quoted = case.evidence(mistake.match, "the code does not fit the GPU it is used on")
    known = gpus.evidence if isinstance(gpus, Gpus) else ()
    capability = gpus.capability if isinstance(gpus, Gpus) else None
    component, gpu = mistake.component, f"compute capability {capability}" if capability else "the GPU"
    built = mistake.built_for or "another target"
    return Verdict(
        certainty=mistake.certainty,
        component=component,
        title=f"{component or 'The library'} was compiled here for {built}, and {gpu} needs another target",
        chain=(
            Link(_CHOSEN_BY[mistake.kind], mistake.shown[0] if mistake.shown else inferred("the usual ways to a wrong target")),
            Link(f"{component or 'The library'} was compiled for {built}; the build itself reports nothing", inferred("a compiler does not look at the GPU")),
            Link(f"{gpu[:1].upper()}{gpu[1:]} has no code to run", quoted),
        ),
        evidence=(quoted, *(e for e in dict.fromkeys((*mistake.shown, *known)))),
        explains=case.explains(mistake.match),
        missing=_missing(case, mistake, gpus),
        rivals=() if mistake.certainty is Certainty.PROVEN else ("binary-lacks-arch", "arch-list-override", "arch-unsupported-by-library"),
        remedies=_remedies(case, mistake, gpus, capability),
        not_remedies=_in_vain(mistake),
        strength=mistake.strength,
    )  # fmt: skip


_CHOSEN_BY = {
    "engine": "The engine file was built on another kind of GPU",
    "jit": "The run-time compilation took the target from a rule or a detection",
    "mixed": "The target was taken from the first GPU of a machine with several kinds",
    "own": "Nobody named a target for the build, and a default or a detection chose",
    "default": "Nobody named a target, and the default of CMake or nvcc was taken",
}


def _missing(case: Case, mistake: Mistake, gpus: Gpus | Unknown) -> tuple[Missing, ...]:
    if mistake.certainty is Certainty.PROVEN:
        return ()
    suffix = f".{mistake.component}" if mistake.component else ""
    variable = lists.variable_for(mistake.component)
    is_known = isinstance(gpus, Gpus) and gpus.capabilities
    wanted = [
        case.missing("gpus", "whether all GPUs are of one kind") if not is_known else None,
        case.missing("failing_gpu", "which of the GPUs fails") if mistake.kind == "mixed" else None,
        case.missing("cc", "the target that is needed") if not is_known else None,
        case.missing(f"binary_archs{suffix}", "for what it was compiled", "cuobjdump --list-elf FILE.so | grep -o 'sm_[0-9a-z]*' | sort | uniq -c")
        if mistake.kind in ("own", "jit") and not mistake.built_for
        else None,
        case.missing(f"env.{variable}", "whether a list of targets was set: then that is the cause"),
        case.missing(f"packages{suffix}", "whether it was built here or published", "python -m pip list")
        if mistake.kind == "own" and not mistake.shown
        else None,
    ]  # fmt: skip
    return tuple(m for m in wanted if m is not None)


def _remedies(case: Case, mistake: Mistake, gpus: Gpus | Unknown, capability: str | None) -> tuple[Remedy, ...]:
    several = gpus.capabilities if isinstance(gpus, Gpus) else ()
    if mistake.kind == "mixed":
        return _for_mixed(case)
    if mistake.kind == "engine":
        return engine_files.REMEDIES
    component = mistake.component
    variable = lists.variable_for(component)
    wanted = several if mistake.kind == "jit" and len(several) > 1 else (capability,) if capability else several
    values = [v for c in wanted if (v := lists.value_for(variable, c, component))]
    value = (" " if variable == lists.FLASHINFER else ";").join(values) or "the capability of the GPU"
    is_cmake = variable == lists.CMAKE
    remedies = [
        Remedy(
            kind="config" if is_cmake else "env",
            name=variable,
            value=value,
            summary=f"Name the target and build again: {variable}={value}",
            cost="the library or its kernels are compiled once more",
        )
    ]
    package = extensions.package_of(component) if component else None
    if package is None:
        return tuple(remedies)
    if mistake.kind == "jit":
        remedies.append(Remedy(kind="cache", name=_CACHES.get(component or "", "torch_extensions"), value="delete", summary="Delete what was compiled for the wrong target", rank=0))  # fmt: skip
        remedies.append(Remedy(kind="package", name=package, value="newer", summary=f"A newer {package} may choose the right target", is_sure=False))  # fmt: skip
        return tuple(remedies)
    remedies.append(Remedy(kind="package", name=package, value="rebuild", summary=f"Build {package} again, from clean sources, with {variable}={value}", cost="minutes to hours of compilation", rank=0))  # fmt: skip
    remedies.append(Remedy(kind="package", name=package, value="newer", summary=f"A published or newer {package} with code for this GPU", is_sure=False, rank=5))  # fmt: skip
    return tuple(remedies)


_CACHES = {name: name for name in ("flashinfer", "triton", "sglang", "tilelang")} | {
    "deepgemm": "deep_gemm",
    "tvm": "tvm-ffi",
}
"""Caches of their own; every other JIT build here is one of torch's extension builder."""


def _for_mixed(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(kind="env", name="CUDA_VISIBLE_DEVICES", value="GPUs of one capability only", summary="Give the process GPUs of one kind only", cost="the other GPUs are not used by this process", rank=0),
        Remedy(kind="flag", name="--tp-size" if case.engine == "sglang" else "--tensor-parallel-size", value="group of equal GPUs", summary="Make the tensor-parallel group as large as the group of equal GPUs", is_sure=False),
    )  # fmt: skip


def _in_vain(mistake: Mistake) -> tuple[NotARemedy, ...]:
    said = [
        NotARemedy("a newer driver", "the code for the GPU was never compiled"),
        NotARemedy("a smaller batch or no CUDA graphs", "the same kernel is started either way"),
    ]
    if mistake.kind == "mixed" and mistake.component == "flashinfer":
        said.append(NotARemedy(lists.FLASHINFER, "modules with a target of their own ignore it"))
    if mistake.kind in ("own", "default"):
        said.append(NotARemedy("building again without naming the target", "the same default is taken again"))
    return tuple(said)
