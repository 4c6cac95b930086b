"""arch-list-override: an explicit list of GPU targets breaks the build or leaves out this GPU."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.architecture import _arch_lists as lists
from gpuwhy.causes.architecture import _missing_image as images
from gpuwhy.causes.architecture import _own_build as own_build
from gpuwhy.causes.architecture import _refused_target as refused
from gpuwhy.causes.architecture._arch_lists import FLASHINFER, TORCH, ArchList
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge import flashinfer, toolkits
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Environment, Gpus, Toolkits, Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

_LOWEST_OF_FLASHINFER = "7.5"


class Clash(msgspec.Struct, frozen=True):
    """How a list and the failure meet. ``variable`` is the list that is, or would have to be, at fault.

    ``at_fault`` the list itself when it is known; ``why`` what is wrong with it; ``certainty`` and ``strength`` as earned.
    """

    match: Match
    variable: str
    component: str | None
    why: str
    certainty: Certainty
    strength: int
    at_fault: ArchList | None = None
    rivals: tuple[str, ...] = ()


@cause(
    "arch-list-override",
    family="Binary and architecture limits",
    signs=[
        says("flashinfer-needs-75", "flashinfer requires sm75+", r"FlashInfer requires sm75\+"),
        says("flashinfer-blames-gpu", "flashinfer requires gpus with sm75", r"FlashInfer requires GPUs with sm75 or higher(?:\.? *Detected TARGET_CUDA_ARCHS ?= ?(?P<detected>[\[{].{0,200}?[\]}]))?"),
        says("flashinfer-gate", ("sm 12.x requires cuda", "sm 120 requires cuda", "sm 12.1+ requires cuda"), r"(?P<arch>SM 12\.x|SM 120|SM 12\.1\+) requires CUDA >= (?P<need>\d+\.\d+)"),
        says("entry-unreadable", ("values to unpack (expected 2", "string index out of range", "invalid literal for int()"), r"(?:not enough|too many) values to unpack \(expected 2|string index out of range|invalid literal for int\(\) with base 10: '(?P<value>[^']{0,60})'"),
        says("no-compiled-kernel", "no compiled ", r"No compiled (?P<what>[\w: ]{3,60}?)(?: kernel)? for (?:a |this |the )?(?:compute|CUDA|device)"),
        says("list-without-supported", "is supported. supported cuda architectures are", r"None of the CUDA architectures in `?(?P<name>TORCH_CUDA_ARCH_LIST)`? env variable \((?P<value>[^)]{0,120})\) is supported"),
        *refused.SIGNS,
        *images.SIGNS,
        *lists.SIGNS,
        *own_build.SIGNS,
    ],
)  # fmt: skip
def arch_list_override(
    case: Case,
    gpus: Gpus | Unknown,
    environment: Environment | Unknown,
    tools: Toolkits | Unknown,
    torch: Torch | Unknown,
) -> Judgement:
    """A variable that lists GPU targets names one that breaks the build or a check, or leaves out this GPU.

    How it shows itself
      `Unknown CUDA arch (12.0f) or GPU not supported`; `FlashInfer requires sm75+` on a GPU that is far newer (FlashInfer
      up to 0.2.14 checks every entry of the list, not the GPU); `not enough values to unpack (expected 2, got 1)` out of
      flashinfer/compilation_context.py at import; `nvcc fatal : Unsupported gpu architecture 'compute_70'` on a host
      without such a GPU; or a build that succeeds, and `no kernel image is available` when it is used.

    Why it happens
      Images that are built for many GPUs leave TORCH_CUDA_ARCH_LIST (or FLASHINFER_CUDA_ARCH_LIST,
      CMAKE_CUDA_ARCHITECTURES) in their environment; every build at run time inherits it. The spellings differ: torch
      takes `8.9;12.0+PTX` and no `f`; FlashInfer takes `8.9 12.0a` with one space, no `;`, no `+PTX`, and an
      empty value is an error, not "unset"; CMake takes `89;120`.

    How to be sure
      Look at the variable in the failing process: `tr '\\0' '\\n' < /proc/PID/environ | grep -i ARCH`, not in your shell.
      Compare its entries with the GPU's compute capability and with what the toolkit knows.

    What helps
      Set the variable to this GPU only (TORCH_CUDA_ARCH_LIST=9.0, FLASHINFER_CUDA_ARCH_LIST=12.0a,
      CMAKE_CUDA_ARCHITECTURES=89), or unset it so that the GPUs present are taken. Then build again.

    What does not help
      A newer toolkit, which knows fewer old targets; a newer driver; the variable in the shell when a service or a container
      is what fails; changing it for a wheel that was published compiled.

    Not to be confused with
      build-target-wrong (no variable: a default or a detection chose), toolkit-too-old-for-arch (the refused target is the
      GPU's own), toolkit-too-old-for-library (the library itself names the foreign target), torch-lacks-arch.
    """
    known = lists.known_lists(case, environment)
    clash = (
        _unreadable(case, known)
        or _holds_nothing_supported(case)
        or _checked_by_flashinfer(case, known, gpus, environment)
        or _unknown_to_torch(case, known, environment)
        or _refused_by_compiler(case, known, gpus, environment, tools)
        or _leaves_out_gpu(case, known, gpus, torch)
    )
    if clash is None or isinstance(clash, RuledOut):
        return clash
    return _verdict(case, clash, gpus)


def _unreadable(case: Case, known: tuple[ArchList, ...]) -> Clash | None:
    """FlashInfer, DeepSpeed and others split the entries themselves, and stumble over a spelling they do not expect."""
    for match in case.all("entry-unreadable"):
        near = [match.text, *(f"{f.path} {f.code}" for f in match.frames)]
        near += [line.text[:400] for line in case.lines_around(match, 8, 4)]
        text = "\n".join(near)
        is_flashinfer = "compilation_context" in text or FLASHINFER in text
        is_other = re.search(r"compute_capability_args|_ARCH_LIST|cuda_arch", text) is not None
        if not is_flashinfer and not is_other:
            continue
        name = FLASHINFER if is_flashinfer else TORCH
        at_fault = next((each for each in known if each.name == name), None)
        why = flashinfer.arch_list_problem(at_fault.value) if at_fault and is_flashinfer else None
        return Clash(
            match,
            name,
            "flashinfer" if is_flashinfer else case.component_near(match),
            why or "an entry is not spelt as its reader expects",
            Certainty.PROVEN if is_flashinfer and (at_fault or FLASHINFER in text) else Certainty.LIKELY,
            88,
            at_fault,
        )
    return None


def _holds_nothing_supported(case: Case) -> Clash | None:
    """vLLM's setup drops the entries that it does not support, and says so when none is left."""
    match = case.found("list-without-supported")
    if match is None:
        return None
    value = match.group("value") or ""
    stated = ArchList(TORCH, value, case.evidence(match, f"the build shows {TORCH}"))
    component = case.component_near(match, "vllm")
    return Clash(match, TORCH, component, "none of its entries is supported", Certainty.PROVEN, 90, stated)


def _checked_by_flashinfer(
    case: Case, known: tuple[ArchList, ...], gpus: Gpus | Unknown, environment: Environment | Unknown
) -> Clash | RuledOut | None:
    short, long, gate = (
        case.found("flashinfer-needs-75"),
        case.found("flashinfer-blames-gpu"),
        case.found("flashinfer-gate"),
    )
    match = short or long or gate
    if match is None:
        return None
    name = TORCH if short is not None else FLASHINFER
    at_fault = next((each for each in known if each.name == name), None)
    quoted = case.evidence(match, "the check that failed")
    if gate is not None and short is None:
        return _passes_with_suffix(gate, at_fault)
    old_gpu = isinstance(gpus, Gpus) and bool(gpus.capabilities) and all(_is_old(c) for c in gpus.capabilities)
    if old_gpu and isinstance(gpus, Gpus):
        return RuledOut("the GPU itself is older than 7.5", (*gpus.evidence, quoted))
    if at_fault is not None:
        old = [entry for entry, c in at_fault.readable if _is_old(c.plain.dotted)]
        if not old or (short is None and len(old) < len(at_fault.capabilities)):
            return RuledOut(f"every entry of {name} is 7.5 or newer", (at_fault.evidence,)) if not old else None
        certainty = Certainty.PROVEN if isinstance(gpus, Gpus) and gpus.capabilities else Certainty.LIKELY
        return Clash(match, name, "flashinfer", f"it names {old[0]}, which is below 7.5", certainty, 85, at_fault)
    if lists.is_known_unset(case, environment, name):
        return RuledOut(f"{name} is not set", (quoted,))
    rivals = ("gpu-too-old",) if short is not None else ("toolkit-too-old-for-arch", "no-device-visible", "gpu-too-old")
    if short is not None:
        return Clash(match, name, "flashinfer", "an entry must be below 7.5", Certainty.POSSIBLE, 70, rivals=rivals)
    detected = match.group("detected") or ""
    if re.search(r"\(\d", detected):
        return Clash(
            match,
            name,
            "flashinfer",
            f"the targets taken are {detected}, all below 7.5",
            Certainty.POSSIBLE,
            60,
            rivals=rivals,
        )
    if case.found("flashinfer-gate") is not None or detected:
        return None
    return Clash(match, name, "flashinfer", "all entries would be below 7.5", Certainty.POSSIBLE, 25, rivals=rivals)  # fmt: skip


def _passes_with_suffix(gate: Match, at_fault: ArchList | None) -> Clash | None:
    """An entry without a suffix goes through FlashInfer's check of the toolkit; with one it is taken as it is."""
    if at_fault is None or gate.event is None or gate.event.kind != "exception":
        return None
    bare = [entry for entry, c in at_fault.readable if c.major == 12 and not c.suffix]
    if not bare:
        return None
    return Clash(gate, FLASHINFER, "flashinfer", f"the entry {bare[0]} has no suffix and is checked against the toolkit", Certainty.LIKELY, 90, at_fault, ("toolkit-too-old-for-arch",))  # fmt: skip


def _is_old(capability: str) -> bool:
    parsed, limit = capabilities.parse(capability), capabilities.parse(_LOWEST_OF_FLASHINFER)
    return parsed is not None and limit is not None and parsed.plain < limit


def _unknown_to_torch(
    case: Case, known: tuple[ArchList, ...], environment: Environment | Unknown
) -> Clash | RuledOut | None:
    match = case.found(refused.UNKNOWN_ARCH.name)
    if match is None:
        return None
    value = match.group("value") or ""
    component = case.component_near(match) or "torch"
    at_fault = next((each for each in known if each.name == TORCH), None)
    why = f"torch's extension builder does not know {value!r}" if value else "it holds an empty entry"
    if at_fault is not None and value.strip() in at_fault.value:
        return Clash(match, TORCH, component, why, Certainty.PROVEN, 88, at_fault)
    if at_fault is None and lists.is_known_unset(case, environment, TORCH):
        return RuledOut(f"{TORCH} is not set", (case.evidence(match, "the target that torch does not know"),))
    parsed = capabilities.parse(value)
    is_well_formed = parsed is not None and re.fullmatch(r"\d{1,2}\.\d[a]?(?:\+PTX)?", value) is not None
    # detection on a GPU never gives these spellings; a plain number can come from a build script
    certainty = Certainty.POSSIBLE if is_well_formed else Certainty.LIKELY
    return Clash(match, TORCH, component, why, certainty, 75, None, ("torch-lacks-arch",) if is_well_formed else ())


def _refused_by_compiler(
    case: Case,
    known: tuple[ArchList, ...],
    gpus: Gpus | Unknown,
    environment: Environment | Unknown,
    tools: Toolkits | Unknown,
) -> Clash | RuledOut | None:
    invalid = case.found(refused.CMAKE_INVALID.name)
    if invalid is not None:
        at_fault = next((each for each in known if each.name in (lists.CMAKE, "CUDAARCHS")), None)
        return Clash(invalid, lists.CMAKE, case.component_near(invalid), "CMake cannot read its value", Certainty.LIKELY, 78, at_fault)  # fmt: skip
    match = case.found(refused.REJECTED.name, refused.INCOMPATIBLE.name, refused.TOO_LOW.name)
    if match is None or refused.is_tritons(case, match):
        return None
    if match.sign == refused.TOO_LOW.name:
        return _too_low(case, match, known, gpus)
    printed = refused.target_of(match)
    target = capabilities.parse(printed) if re.fullmatch(r"(?:sm|compute|lto)_\d{2,3}[af]?", printed) else None
    component = case.component_near(match)
    variable = lists.variable_for(component, "CMake" in match.text or _is_cmake(case, match))
    if target is None:
        if "native" in printed or not printed:
            return None
        at_fault = next((each for each in known if each.name == variable), known[0] if known else None)
        why = f"{printed} is no target: an entry is misspelt"
        return Clash(match, variable, component, why, Certainty.PROVEN if at_fault else Certainty.LIKELY, 78, at_fault)
    naming = next((each for each in known if each.naming(target) is not None), None)
    is_own = isinstance(gpus, Gpus) and target.plain.dotted in gpus.capabilities
    if match.sign == refused.INCOMPATIBLE.name:
        why = f"it mixes {target.target} with another form of the same target"
        return Clash(match, variable, component, why, Certainty.PROVEN if naming else Certainty.LIKELY, 76, naming)
    if is_own:
        return _own_target_misspelt(case, match, target, naming, component, tools)
    if naming is not None:
        certainty = Certainty.PROVEN if isinstance(gpus, Gpus) and gpus.capabilities else Certainty.LIKELY
        why = f"it names {naming.naming(target)}, which this toolkit does not know and no GPU here needs"
        return Clash(match, naming.name, component, why, certainty, 80, naming, ("toolkit-too-old-for-arch",))
    if known or lists.is_known_unset(case, environment, variable):
        return RuledOut(f"no list of targets here names {printed}", (case.evidence(match, "the refused target"),))
    strength = 55 if isinstance(gpus, Gpus) and gpus.capabilities else 38
    return Clash(match, variable, component, f"it would have to name {printed}", Certainty.POSSIBLE, strength, None, ("toolkit-too-old-for-library", "toolkit-too-old-for-arch"))  # fmt: skip


def _own_target_misspelt(
    case: Case,
    match: Match,
    target: capabilities.ComputeCapability,
    naming: ArchList | None,
    component: str | None,
    tools: Toolkits | Unknown,
) -> Clash | RuledOut:
    """The GPU's own target in its family form, which needs a newer toolkit than the exact form does."""
    used = tools.resolved_by("torch") if isinstance(tools, Toolkits) else None
    version = getattr(used, "version", None)
    exact = capabilities.ComputeCapability(target.major, target.minor, "a")
    if target.suffix == "f" and naming is not None and (version is None or toolkits.accepts(version, exact).value):
        why = f"it asks for {target.target}, which is newer than {exact.target} and not needed"
        return Clash(match, naming.name, component, why, Certainty.PROVEN if version else Certainty.LIKELY, 82, naming, ("toolkit-too-old-for-arch",))  # fmt: skip
    return RuledOut("the refused target is the GPU's own", (case.evidence(match, "the refused target"),))


def _too_low(case: Case, match: Match, known: tuple[ArchList, ...], gpus: Gpus | Unknown) -> Clash | None:
    """Code that needs a newer target is compiled for an old one that the list names as well."""
    need = capabilities.parse(match.group("need") or match.group("need2") or match.group("target") or "")
    lowest = [
        (each, c)
        for each in known
        for c in each.capabilities
        if need is not None and (c.plain < need.plain or c == need)
    ]
    if need is None or (isinstance(gpus, Gpus) and gpus.capability and _below(gpus.capability, need)):
        return None
    component = case.component_near(match)
    if lowest:
        at_fault, entry = lowest[0]
        why = f"it names {entry.dotted}, for which this code cannot be compiled"
        return Clash(match, at_fault.name, component, why, Certainty.LIKELY, 76, at_fault, ("build-target-wrong",))
    if known:
        return None
    variable = lists.variable_for(component, _is_cmake(case, match))
    return Clash(match, variable, component, f"it would have to name a target below {need.dotted}", Certainty.POSSIBLE, 45, None, ("build-target-wrong",))  # fmt: skip


def _below(capability: str, need: capabilities.ComputeCapability) -> bool:
    gpu = capabilities.parse(capability)
    return gpu is not None and gpu.plain < need.plain


def _leaves_out_gpu(
    case: Case, known: tuple[ArchList, ...], gpus: Gpus | Unknown, torch: Torch | Unknown
) -> Clash | None:
    """What was built for the list has no code for the GPU. Lists say nothing about binaries that were published."""
    capability = gpus.capability if isinstance(gpus, Gpus) else None
    image = images.read_missing_image(case, gpus, torch)
    if not known or capability is None:
        return None if image is None else _may_leave_out_gpu(case, known, image)
    match = image.match if image is not None else case.found("no-compiled-kernel")
    if match is None:
        return None
    component = (
        image.component if image is not None else images.in_other_words(match.text) or case.component_near(match)
    )
    built_here = own_build.evidence_of_own_build(case, match, component)
    is_jit = image is not None and image.jit_targets is not None
    if built_here is None and not is_jit and image is not None:
        return None
    for each in known:
        if each.covers(capability) is False and each.name in (TORCH, FLASHINFER, lists.CMAKE, "CUDAARCHS"):
            # what was built has just the targets of the list: by the path of the module, or read from the file
            built_for = None if image is None else image.jit_targets if is_jit else image.built_for
            shown = image is not None and image.has_code is not True and _same_targets(each, built_for)
            shown = shown and (is_jit or (image is not None and image.is_plain))
            why = f"{each.value} holds nothing that runs on compute capability {capability}"
            return Clash(match, each.name, component, why, Certainty.PROVEN if shown else Certainty.LIKELY, 82 if built_here or is_jit else 60, each, ("build-target-wrong", "binary-lacks-arch"))  # fmt: skip
    return None


def _may_leave_out_gpu(case: Case, known: tuple[ArchList, ...], image: images.MissingImage) -> Clash | None:
    """A library that was built here lacks the GPU; the list, or the GPU, is not known."""
    built = case.found(own_build.BUILT_HERE.name)
    if built is None or not image.is_plain or image.is_torch_own or image.jit_targets is not None:
        return None
    variable = lists.variable_for(image.component)
    rivals = ("build-target-wrong", "binary-lacks-arch")
    stated = next(
        (each for each in known if each.name in (TORCH, lists.CMAKE, "CUDAARCHS") and each.capabilities), None
    )
    if stated is not None and image.capability is None:
        why = f"the build was given {stated.value}, and its result has nothing for this GPU"
        return Clash(image.match, stated.name, image.component, why, Certainty.LIKELY, 66, stated, rivals)
    if known or case.found(lists.NOT_SET.name) is not None or case.facts.value(f"env.{variable}", "") is None:
        return None
    return Clash(image.match, variable, image.component, "a list would have to leave this GPU out", Certainty.POSSIBLE, 34, None, rivals)  # fmt: skip


def _same_targets(each: ArchList, targets: tuple[str, ...] | None) -> bool:
    wanted = {c.plain for c in each.capabilities}
    named = (t if t.startswith(("sm_", "compute_")) else f"sm_{t}" for t in targets or ())
    return bool(targets) and {c.plain for t in named if (c := capabilities.parse(t))} <= wanted


def _is_cmake(case: Case, match: Match) -> bool:
    return any(re.search(r"CMake|cmake ", line.text[:400]) for line in case.lines_around(match, 60, 20))


def _verdict(case: Case, clash: Clash, gpus: Gpus | Unknown) -> Verdict:
    quoted = case.evidence(clash.match, "the failure")
    listed = clash.at_fault.evidence if clash.at_fault is not None else None
    known = gpus.evidence if isinstance(gpus, Gpus) else ()
    capability = gpus.capability if isinstance(gpus, Gpus) else None
    shown = f"{clash.variable}={clash.at_fault.value}" if clash.at_fault is not None else clash.variable
    component = clash.component
    return Verdict(
        certainty=clash.certainty,
        component=component,
        title=f"{shown} does not fit: {clash.why}",
        chain=(
            Link(f"{clash.variable} is set, by an image or by hand", listed or inferred("nobody looked at the variable in the failing process")),
            Link(f"{component or 'The build'} takes its targets from it and not from the GPU", inferred("read in the released source")),
            Link(clash.why[:1].upper() + clash.why[1:], quoted),
        ),
        evidence=tuple(e for e in (quoted, listed, *known) if e is not None),
        explains=case.explains(clash.match),
        missing=_missing(case, clash, gpus),
        rivals=clash.rivals if clash.certainty is not Certainty.PROVEN else (),
        remedies=_remedies(clash, gpus, capability),
        not_remedies=_IN_VAIN,
        notes=_notes(clash),
        strength=clash.strength,
    )  # fmt: skip


def _missing(case: Case, clash: Clash, gpus: Gpus | Unknown) -> tuple[Missing, ...]:
    variable = case.missing(
        f"env.{clash.variable}",
        "what the failing process is given",
        f"tr '\\0' '\\n' < /proc/PID/environ | grep ^{clash.variable}=",
    )
    capability = case.missing("cc", "which target is needed")
    is_gpu_known = isinstance(gpus, Gpus) and bool(gpus.capabilities)
    # behind FlashInfer's longer message the toolkit is the likelier cause, and its version the better question
    asks_for_gpu = not is_gpu_known and clash.match.sign != "flashinfer-blames-gpu"
    wanted = (variable if clash.at_fault is None else None, capability if asks_for_gpu else None)
    return tuple(m for m in wanted if m is not None)


def _remedies(clash: Clash, gpus: Gpus | Unknown, capability: str | None) -> tuple[Remedy, ...]:
    name = clash.variable
    several = gpus.capabilities if isinstance(gpus, Gpus) else ()
    values = [
        v for c in several or ((capability,) if capability else ()) if (v := lists.value_for(name, c, clash.component))
    ]
    value = (" " if name == FLASHINFER else ";").join(values)
    remedies = []
    if value:
        remedies.append(Remedy(kind="env", name=name, value=value, summary=f"Name the target of this GPU only: {name}={value}", cost="what was built for the old list is built again", rank=0))  # fmt: skip
    remedies.append(Remedy(kind="env", name=name, value="unset", summary=f"Take {name} out of the environment of the failing process: the GPUs present are taken", cost="what was built for the old list is built again", limits=("needs a GPU that is visible while building",), rank=1))  # fmt: skip
    if not value:
        remedies.append(Remedy(kind="env", name=name, value="the capability of the GPU", summary="Name the target of this GPU only", rank=2))  # fmt: skip
    if clash.match.sign == "flashinfer-needs-75":
        remedies.append(Remedy(kind="package", name="flashinfer-python", value=">=0.3.1", summary="FlashInfer 0.3.1 and later check the GPUs they find, not this list", risk="medium"))  # fmt: skip
    if clash.component is not None and clash.match.sign in (
        images.NO_IMAGE.name,
        images.NO_DEVICE_CODE.name,
        "no-compiled-kernel",
    ):
        remedies.append(Remedy(kind="package", name=clash.component, value="rebuild", summary=f"Build {clash.component} again with the corrected list"))  # fmt: skip
    return tuple(remedies)


def _notes(clash: Clash) -> tuple[str, ...]:
    if clash.at_fault is not None and clash.variable in (TORCH, FLASHINFER):
        return ("Images of NVIDIA and of the engines set the list for all GPUs they serve; the service inherits it.",)
    return ()


_IN_VAIN = (
    NotARemedy("a newer CUDA toolkit", "the list still names the same targets; newer toolkits know fewer old ones"),
    NotARemedy("setting the variable in the login shell", "the service or container has its own environment"),
)
