"""toolkit-too-old-for-library: nvcc knows the GPU, but not an option, target, header or name that a library uses."""

from __future__ import annotations

import msgspec

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.toolchain import _build_site as site
from gpuwhy.causes.toolchain import _rejected_target as rejected
from gpuwhy.causes.toolchain import _toolkit_age as age
from gpuwhy.causes.toolchain import _toolkit_files as files
from gpuwhy.causes.toolchain._rejected_target import RejectedTarget
from gpuwhy.knowledge import toolkits
from gpuwhy.knowledge.components import BUILDS_OF_LLAMA
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Environment, Gpus, Resolution, Toolkits, Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

_NATIVE_SINCE = "11.6"
_NEED = r"(?P<{0}>\d{{1,2}}\.\d{{1,2}})"
_NOT_ABOUT_GPU_OR_DRIVER = r"^(?!\s{0,20}File \")(?!.{0,600}(?:\bdriver|\bSM[ _]?\d|compute capability|blackwell|hopper|\bbest\b|recommend|performance))"


class _Demand(msgspec.Struct, frozen=True):
    """What the library asks of the toolkit: the line, what it is in words, the first release that has it."""

    match: Match
    what: str
    since: str | None
    option: str = ""
    certainty: Certainty = Certainty.LIKELY
    strength: int = 60


@cause(
    "toolkit-too-old-for-library",
    family="Toolchain",
    signs=[
        says(
            "unknown-option",
            ("unknown option", "unrecognized option", "unrecognized command"),
            r"\bnvcc(?:\.exe)? (?:fatal|error) *: *Unknown option ['\"`‘]?(?P<option>-{0,2}[\w+-]{1,80}(?:=[\w.+:-]{0,60})?)"
            r"|nvrtc: error: (?:unrecognized|unknown|invalid) option:? ?\(?['\"]?(?P<option2>-{1,2}[\w+-]{1,80}(?:=[\w.+-]{0,60})?)",
        ),
        says("unknown-standard", "is not defined for option", r"nvcc (?:fatal|error) *: *Value '(?P<standard>(?:c|gnu)\+\+\d\w)' is not defined for option '(?:std|-std)'"),
        says(
            "states-minimum",
            ("cuda", "nvcc"),
            _NOT_ABOUT_GPU_OR_DRIVER
            + rf".{{0,600}}?(?:is only supported on CUDA {_NEED.format('need')} and above"
            rf"|\b(?:requires?|needs?|must have|must be built with|only supports?)(?: at least| a| the)? (?:NVIDIA )?(?:CUDA|NVCC)(?: toolkit| compiler| toolchain| version)* ?(?:>=|>|of at least|at least|version)? ?v?{_NEED.format('need2')}"
            rf"|(?:CUDA|NVCC)(?: toolkit| compiler)?(?: version)? ?(?:>=)? ?v?{_NEED.format('need3')} ?(?:\+|or (?:higher|newer|later|above|greater)|and (?:above|later|newer))(?: is)? ?(?:required|needed)"
            rf"|(?:CUDA|NVCC)(?: compiler| toolkit)? version (?:should|must|needs to|has to) be (?:at least|>=|greater than(?: or equal to)?|newer than) ?v?{_NEED.format('need4')}"
            rf"|CUDA(?:_VERSION|Toolkit_VERSION)? \d{{1,2}}\.\d{{1,2}}\S{{0,8}} (?:must|should|has to) be (?:at least|>=|newer than) ?v?{_NEED.format('need6')}"
            rf"|\b(?:CUDA|NVCC)(?: toolkit| compiler)?(?: /\S{{1,200}})?(?: version)?:? ?\(?v?(?P<used2>\d{{1,2}}\.\d{{1,2}})[\d.]{{0,8}}\)? is (?:(?:lower|older|less|smaller) than|below) (?:the )?(?:required |minimum |supported ){{0,3}}(?:version )?\(?v?{_NEED.format('need7')}"
            rf"|\b(?:CUDA|NVCC)(?: toolkit| compiler)?(?: version)?:? ?\(?v?(?P<used3>\d{{1,2}}\.\d{{1,2}})[\d.]{{0,8}}\)? is too old.{{0,60}}?(?:need|require|at least|>=|minimum|use|upgrade to)\w{{0,3}}(?: (?:CUDA|NVCC|version|at least))* ?v?{_NEED.format('need8')}"
            rf"|minimum (?:required )?(?:supported )?(?:CUDA|NVCC)(?: toolkit)? version (?:is|of)? ?{_NEED.format('need5')})",
        ),
        says(
            "target-needs-minimum",
            "compilation for",
            rf"\bsm_?\d{{2,3}}[af]? compilation for .{{1,60}}? requires (?:NVCC|CUDA) {_NEED.format('need')}",
        ),
        says(
            "cmake-version-unsuitable",
            "found unsuitable version",
            rf"Could NOT find CUDA(?:Toolkit)?: Found unsuitable version \"(?P<used>\d+\.\d+)[\d.]*\", but required is at least \"{_NEED.format('need')}",
        ),
        says(
            "name-not-declared",
            ("is undefined", "was not declared", "has no member", "undeclared identifier"),
            r"identifier ['\"](?P<name>(?:__nv_fp\w|CUDA_R_|CU_|CUtensor|CUmulti|cuda[A-Z]|cu[A-Z]|cublas[A-Z]|CUBLAS)\w{1,80})['\"] is undefined"
            r"|['\"‘](?P<name2>(?:__nv_fp\w|CUDA_R_|CU_|CUtensor|CUmulti|cuda[A-Z]|cu[A-Z]|cublas[A-Z]|CUBLAS)\w{1,80})['\"’] (?:was not declared|is not a member of|has not been declared)"
            r"|undeclared identifier '(?P<name3>(?:__nv_fp\w|CUDA_R_|CU_|CUtensor|cuda[A-Z]|cu[A-Z])\w{1,80})'"
            r"|namespace ['\"]cuda::(?P<member>ptx|std|experimental|device)\S{0,40}['\"] has no member ['\"](?P<name4>\w{1,80})",
        ),
        says(
            "ptx-version-needed",
            "requires ptx isa",
            r"(?:Feature|Modifier|Instruction|Feature or modifier) ['\"]?(?P<feature>[\w.:]{1,80})['\"]? requires PTX ISA \.version (?P<ptx>\d\.\d)",
        ),
        files.HEADER_MISSING,
        *rejected.SIGNS,
    ],
)  # fmt: skip
def toolkit_too_old_for_library(
    case: Case,
    gpus: Gpus | Unknown,
    tools: Toolkits | Unknown,
    environment: Environment | Unknown,
    torch: Torch | Unknown,
) -> Judgement:
    """nvcc knows the GPU, but not an option, another target, a header or a name that the library's build uses.

    How it shows itself
      `nvcc fatal : Unknown option '--compress-mode=size'`; `Unsupported gpu architecture 'compute_103'` on a machine
      whose GPU is another one; `FlashAttention is only supported on CUDA 11.7 and above`; CMake's `Found unsuitable
      version "11.5", but required is at least "12.0"`; `cuda_fp8.h: No such file or directory` (came with 11.8),
      `cuda_fp4.h` (12.8); `identifier "CUtensorMap" is undefined`; `requires PTX ISA .version 8.3 or later`.

    Why it happens
      A new release of a library (or a JIT that compiles at the first request) was written for a newer toolkit than the
      one installed: it passes options of that toolkit, compiles for every GPU the authors have, or uses new headers.
      It can also be the other way round: CUDA 13 no longer knows compute_70 and below, which older libraries ask for.
      The GPU, the driver and torch are fine. The nvcc of a distribution (/usr/bin/nvcc) is often years old.

    How to be sure
      `nvcc --version` of the nvcc in the failing command. An unknown option is always this; a refused target is this
      when its number is not the GPU's (`nvidia-smi --query-gpu=compute_cap --format=csv`) and no variable such as
      TORCH_CUDA_ARCH_LIST names it.

    What helps
      A newer toolkit (of torch's CUDA major), prebuilt kernels or wheels of the library, or the release of the library
      that did not yet ask for it. Against a foreign target: limit the build to your own GPU with TORCH_CUDA_ARCH_LIST
      or CMAKE_CUDA_ARCHITECTURES, where the library honours it.

    What does not help
      A newer driver; another torch; clearing the JIT cache by itself.

    Not to be confused with
      toolkit-too-old-for-arch (the refused target is the GPU's own), arch-list-override (a variable names the foreign
      target), toolkit-path-wrong (a newer toolkit is installed), toolkit-incomplete (the header is as old as the
      toolkit, and not installed), ptxas-too-old-for-arch (Triton's assembler).
    """
    demand = _option(case) or _stated(case) or _header(case) or _name(case) or _ptx(case)
    if demand is not None:
        return _judged(case, demand, tools, torch)
    refused = rejected.read_rejected_target(case, gpus, tools)
    if refused is not None and refused.capability is None:
        return _native(case, refused.match, tools, torch)
    return None if refused is None else _foreign_target(case, refused, gpus, environment, torch)


# What the library asks for -----------------------------------------------------------------------------------------------


def _option(case: Case) -> _Demand | None:
    match = case.found("unknown-option", "unknown-standard")
    if match is None:
        return None
    standard = match.group("standard")
    option = f"-std={standard}" if standard else match.group("option") or match.group("option2") or ""
    if age.is_for_host_compiler(option):
        return _Demand(
            match, f"{option}, which is an option of the host compiler", None, option, Certainty.POSSIBLE, 50
        )
    return _Demand(match, f"the option {option}", age.first_release_with_option(option), option, strength=88)


def _stated(case: Case) -> _Demand | None:
    for match in case.all("states-minimum", "target-needs-minimum", "cmake-version-unsuitable"):
        need = next((v for g, v in match.groups.items() if g.startswith("need")), None)
        is_remark = match.sign == "states-minimum" and match.event is None
        is_plain_remark = is_remark and match.line.level not in ("warning", "error", "critical")
        if need is not None and not match.is_code and not is_plain_remark and 9 <= age.numbers(need)[0] <= 20:
            is_fatal = match.event is not None and match.event.is_fatal
            certainty = Certainty.LIKELY if is_fatal or match.sign.startswith("cmake") else Certainty.POSSIBLE
            return _Demand(match, f"CUDA {need} or later, as it says itself", need, certainty=certainty, strength=76)
    return None


def _header(case: Case) -> _Demand | None:
    missing = files.missing_header(case)
    if missing is None or missing.since is None:
        return None
    return _Demand(missing.match, f"{missing.name}, which came with CUDA {missing.since}", missing.since, strength=72)


def _name(case: Case) -> _Demand | None:
    match = case.found("name-not-declared")
    if match is None or case.found(files.HEADER_MISSING.name) is not None:
        return None
    name = next((v for g, v in match.groups.items() if g.startswith("name")), "")
    since = age.NAME_SINCE.get(name)
    what = f"{name}, which came with CUDA {since}" if since else f"{name}, which this toolkit's headers do not declare"
    return _Demand(
        match, what, since, certainty=Certainty.LIKELY if since else Certainty.POSSIBLE, strength=60 if since else 45
    )


def _ptx(case: Case) -> _Demand | None:
    match = case.found("ptx-version-needed")
    if match is None or case.component_near(match) == "triton":
        return None
    version = match.group("ptx") or ""
    return _Demand(
        match,
        f"{match.group('feature')}, which needs PTX {version}",
        age.first_release_reading_ptx(version),
        strength=64,
    )


# The verdict --------------------------------------------------------------------------------------------------------------


def _judged(case: Case, demand: _Demand, tools: Toolkits | Unknown, torch: Torch | Unknown) -> Judgement:
    quoted = case.evidence(demand.match, f"the build asks for {demand.what}")
    resolution = tools.resolved_by(rejected.consumer_near(case, demand.match)) if isinstance(tools, Toolkits) else None
    stated = next((demand.match.group(name) for name in ("used", "used2", "used3") if demand.match.group(name)), None)
    used = stated or (resolution.version if isinstance(resolution, Resolution) else None)
    if used is not None and _has(used, demand):
        return RuledOut(f"CUDA {used} has {demand.what}: another nvcc was run", (quoted,))
    newer = _newer_toolkit(tools, demand, used)
    if newer is not None:
        return RuledOut(f"a toolkit that has it is installed at {newer}: it is only not chosen", (quoted,))
    component = site.builder(case, demand.match, "flashinfer" if case.engine in site.ENGINES else None)
    is_proven = used is not None and demand.since is not None and site.is_the_failure(case, demand.match)
    toolkit_known = resolution.evidence if isinstance(resolution, Resolution) and resolution.evidence else None
    return Verdict(
        certainty=Certainty.PROVEN if is_proven else demand.certainty,
        component=component,
        title=f"{component or 'The library'} asks for {demand.what}; " + (f"CUDA {used} is too old for it" if used else "the nvcc in use does not know it"),
        chain=(
            Link(f"The build uses CUDA {used}" if used else "The build uses an older toolkit", toolkit_known or (quoted if stated else inferred("its version is not in the log"))),
            Link(f"{component or 'The library'} asks for {demand.what}", quoted),
            Link(f"it exists from CUDA {demand.since} on" if demand.since else "this nvcc does not have it", _since_evidence(demand)),
            Link("the compile stops before any code for the GPU is made", quoted),
        ),
        evidence=(quoted, *((toolkit_known,) if toolkit_known else ())),
        explains=site.explained_by(case, demand.match),
        missing=tuple(m for m in (_toolkit_missing(case, used), _elsewhere_missing(case, tools)) if m),
        rivals=("toolkit-path-wrong", *(("toolkit-incomplete",) if demand.match.sign == files.HEADER_MISSING.name else ())),
        remedies=_remedies(case, demand, component, torch),
        not_remedies=_IN_VAIN,
        notes=("nvcc takes such options only behind -Xcompiler: the build passes it wrongly, whatever the release.",) if demand.certainty is Certainty.POSSIBLE and demand.option else (),
        strength=demand.strength,
    )  # fmt: skip


def _has(release: str, demand: _Demand) -> bool:
    if demand.option and toolkits.supports_option(release, demand.option).value is not None:
        return toolkits.supports_option(release, demand.option).value is True
    return demand.since is not None and age.numbers(release) >= age.numbers(demand.since)


def _newer_toolkit(tools: Toolkits | Unknown, demand: _Demand, used: str | None) -> str | None:
    if not isinstance(tools, Toolkits):
        return None
    for install in tools.installs:
        if install.has_nvcc and install.version and install.version != used and _has(install.version, demand):
            return install.root
    return None


def _since_evidence(demand: _Demand) -> Evidence:
    if demand.since is None:
        return inferred("the first release that has it was not measured")
    return derived(f"first in CUDA {demand.since}", "release notes and headers of the toolkits")


def _toolkit_missing(case: Case, used: str | None) -> Missing | None:
    return None if used else case.missing("cuda_toolkit", "the release of the nvcc that the failing command names")


def _elsewhere_missing(case: Case, tools: Toolkits | Unknown) -> Missing | None:
    if isinstance(tools, Toolkits) and (tools.is_complete or tools.installs):
        return None
    return case.missing("other_toolkits", "a newer toolkit that is installed already only has to be chosen")


def _remedies(case: Case, demand: _Demand, component: str | None, torch: Torch | Unknown) -> tuple[Remedy, ...]:
    around: list[Remedy] = []
    if component == "flashinfer":
        if any(
            "sampling" in line.text[:1500] for line in (demand.match.line, *case.lines_around(demand.match, 40, 10))
        ):
            around += [
                r
                for r in site.flashinfer_switches(case)
                if r.name in ("VLLM_USE_FLASHINFER_SAMPLER", "--sampling-backend")
            ]
        around.append(site.prebuilt_kernels())
    left_out = rejected.OFFERS_TO_LEAVE_OUT.search(demand.match.text)
    if left_out is not None:
        around.append(
            Remedy(
                kind="env",
                name=left_out["variable"],
                value="1",
                summary="Leave out the target that this GPU does not need",
                rank=-1,
            )
        )
    around += [*site.prebuilt_wheel(component, torch), *_release_without(component, demand)]
    value = f">={demand.since}" if demand.since else "newer"
    return (*around, site.toolkit(value, f"it has {demand.what.partition(',')[0]}"))


def _release_without(component: str | None, demand: _Demand) -> tuple[Remedy, ...]:
    """The release of the library that does not ask for it."""
    if component is None or component in ("torch", "cuda-toolkit"):
        return ()
    known = age.OPTION_OF_RELEASE.get((component, age.option_name(demand.option)))
    value, why = known if known is not None else ("older", "it was written for older toolkits")
    name = site.distribution_of(component)
    return (
        Remedy(
            kind="package", name=name, value=value, rank=0 if known is not None else 10, is_sure=known is not None,
            summary=f"Install {name} {value if known is not None else 'of an earlier release'}: {why}",
            limits=("an engine that pins the release exactly must be changed with it",),
        ),
    )  # fmt: skip


_IN_VAIN = (
    NotARemedy("a newer driver, or the CUDA version in the header of nvidia-smi", "nvcc comes from the toolkit"),
    NotARemedy("another torch, or clearing the JIT cache by itself", "the same command is run by the same nvcc again"),
)


# A target that is not this GPU's ------------------------------------------------------------------------------------------


def _native(case: Case, match: Match, tools: Toolkits | Unknown, torch: Torch | Unknown) -> Judgement:
    """``-arch=native`` is a word of newer compilers; older ones take it for a target that they do not know."""
    demand = _Demand(match, "the target name native", _NATIVE_SINCE, certainty=Certainty.LIKELY, strength=70)
    verdict = _judged(case, demand, tools, torch)
    if not isinstance(verdict, Verdict):
        return verdict
    named = Remedy(
        kind="config", name="CMAKE_CUDA_ARCHITECTURES", value="the capability of the GPU, without its dot",
        summary="Name the target instead of native (make: CUDA_DOCKER_ARCH=sm_86; CMake: -DCMAKE_CUDA_ARCHITECTURES=86)",
        cost="the build folder is made anew",
    )  # fmt: skip
    kept = tuple(remedy for remedy in verdict.remedies if remedy.kind == "toolkit")
    return msgspec.structs.replace(verdict, remedies=(named, *kept))


def _foreign_target(
    case: Case,
    refused: RejectedTarget,
    gpus: Gpus | Unknown,
    environment: Environment | Unknown,
    torch: Torch | Unknown,
) -> Judgement:
    quoted = case.evidence(refused.match, f"nvcc does not know {refused.target}")
    known = gpus.evidence if isinstance(gpus, Gpus) else ()
    if refused.is_gpus_own is True and not refused.is_dropped:
        return RuledOut(f"{refused.target} is the target of a GPU here", (quoted, *known))
    named_by = site.variable_naming(environment, refused.capability)
    if named_by is not None and isinstance(environment, Environment):
        return RuledOut(f"{named_by} asks for {refused.target}", (quoted, environment.evidence[named_by]))
    component = site.builder(case, refused.match, "flashinfer" if case.engine in site.ENGINES else None)
    is_foreign = refused.is_gpus_own is False
    used = refused.resolution.version if refused.resolution else None
    many = _targets_of_build(case, refused.match)
    certainty = (
        Certainty.LIKELY
        if is_foreign or len(many) >= 3 or (refused.is_dropped and refused.is_gpus_own is None)
        else Certainty.POSSIBLE
    )
    return Verdict(
        certainty=certainty,
        component=component,
        title=_target_title(refused, component, used),
        chain=(
            Link(f"{component or 'The library'} compiles for {refused.target}, whatever GPU is here", known[0] if is_foreign and known else inferred("no GPU and no variable that asks for it is known")),
            Link(f"nvcc{' ' + used if used else ''} {'no longer knows' if refused.is_dropped else 'does not know'} it", quoted),
        ),
        evidence=(quoted, *known),
        explains=site.explained_by(case, refused.match),
        missing=tuple(m for m in (
            case.missing("cc", "whether the refused target is that of the GPU") if not is_foreign else None,
            None if isinstance(environment, Environment) else case.missing("env.TORCH_CUDA_ARCH_LIST", "whether a variable asks for the target", "env | grep -i -E 'arch|CUDAARCHS'"),
            _toolkit_missing(case, used),
        ) if m),
        rivals=() if is_foreign else ("toolkit-too-old-for-arch", "arch-list-override"),
        remedies=_target_remedies(refused, component, gpus, torch),
        not_remedies=_IN_VAIN,
        strength=74 if is_foreign else 66 if len(many) >= 3 or refused.is_dropped else 40,
    )  # fmt: skip


def _targets_of_build(case: Case, match: Match) -> frozenset[str]:
    """Distinct targets that the failing command compiles for: a list of many is nobody's detected GPU."""
    found: set[str] = set()
    for line in (match.line, *case.lines_around(match, 15, 6)):
        for part in line.text[:6000].split("arch=compute_")[1:]:
            digits = part[:4].rstrip("afo,;'\" ]")
            found.add("".join(c for c in digits if c.isdigit())[:3])
    return frozenset(found - {""})


def _target_title(refused: RejectedTarget, component: str | None, used: str | None) -> str:
    who = component or "The library"
    if refused.is_dropped:
        return f"{who} compiles for {refused.target}, which nvcc {used or 'of CUDA 13'} no longer knows"
    return f"{who} compiles for {refused.target} too, which is not this GPU's and which nvcc {used or 'in use'} does not know"


def _target_remedies(
    refused: RejectedTarget, component: str | None, gpus: Gpus | Unknown, torch: Torch | Unknown
) -> tuple[Remedy, ...]:
    own = gpus.capability if isinstance(gpus, Gpus) else None
    limit: tuple[Remedy, ...] = ()
    if component in BUILDS_OF_LLAMA:
        value = own.replace(".", "") if own else "native"
        limit = (
            Remedy(kind="config", name="CMAKE_CUDA_ARCHITECTURES", value=value, summary="Build for this GPU only"),
        )
    elif component not in ("deepgemm", "triton", "sgl-kernel"):  # these choose their targets themselves
        variable = "FLASHINFER_CUDA_ARCH_LIST" if component == "flashinfer" else "TORCH_CUDA_ARCH_LIST"
        limit = (
            Remedy(
                kind="env", name=variable, value=own or "the GPU's capability", summary="Build for this GPU only",
                limits=("a target that the library has hard-coded is not taken from the variable",), is_sure=False,
            ),
        )  # fmt: skip
    release = "<13" if refused.is_dropped else f">={refused.first_release}" if refused.first_release else "newer"
    newer: tuple[Remedy, ...] = ()
    if component is not None and component not in ("torch", "cuda-toolkit"):
        newer = (
            Remedy(
                kind="package", name=site.distribution_of(component), value="newer", is_sure=False,
                summary=f"A newer {component} asks nvcc for its release before it adds a target",
            ),
        )  # fmt: skip
    return (*limit, *site.prebuilt_wheel(component, torch), *newer, site.toolkit(release, f"it knows {refused.target}"))
