"""package-conflict: installed packages are of releases that do not belong together, and a check says so."""

from __future__ import annotations

import sys

import msgspec

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.causes.packages._asking import USER_PROGRAM, asking, package_of
from gpuwhy.causes.packages._declared_checks import CHECKS, Check
from gpuwhy.knowledge import components, torch_companions
from gpuwhy.knowledge.api_changes import dropped_by_python
from gpuwhy.knowledge.releases import public_version
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

_SPECIFIER = lazy_pattern(r"(?P<name>[A-Za-z][\w.-]{0,60})?(?:\[[\w,-]{1,60}\])?\s?(?P<spec>(?:(?:[<>=!~]=?|===)\s?[\w.*+!-]{1,30},?\s?){1,4})")  # fmt: skip
_BUILT_FOR = lazy_pattern(r"(?i)built for (?:PyTorch )?(?P<torch>\d\.\d{1,2}[\w.+]{0,16})")
_PLATFORM = r"only has wheels for the following platforms|no wheels? with a matching (?:platform|Python ABI)"
_SITE = lazy_pattern(r"(?:site|dist)-packages/")
_HARMLESS = lazy_pattern(r"(?i)^\s*(?:DEPRECATION|WARNING: Ignoring)|TF-TRT|if you (?:want|use)|optional")


class Conflict(msgspec.Struct, frozen=True):
    """A check that spoke: of which component, what is installed, and what is wanted (a constraint, or a release)."""

    check: Check
    match: Match
    component: str | None
    other: str | None
    have: str | None
    want: str | None


_ABSENT = says(
    "dependency-absent",
    "no module named",
    r"ModuleNotFoundError: No module named ['\"](?P<package>[A-Za-z]\w{2,60})['\"]\s*$",
)
_ASKED_BY_A_MODEL = says(
    "asked-by-a-model",
    "packages that were not found in your environment",
    r"requires the following packages that were not found in your environment: (?P<package>[A-Za-z][\w.-]{1,60}?)(?=[.,;]?(?:\s|$))",
)
"""What transformers says before it runs the code of a model's repository."""
_SAID_TO_BE_ABSENT = says(
    "said-to-be-absent",
    ("pip install", "not found in your environment", "seems to be not installed", "is not installed", "please install"),
    r"(?:ImportError|ModuleNotFoundError|ValueError|RuntimeError): .{0,260}?(?:"
    r"\brequires? .{0,120}?\bpip3? install (?:-U |--upgrade )?['\"]?(?P<package>[A-Za-z][\w-]{1,50})(?P<spec>[<>=!~]=?[\d.]{1,12})?"
    r"|\brequires? the (?P<package2>[A-Za-z][\w-]{1,50}) library but it was not found in your environment"
    r"|the package (?P<package3>[A-Za-z][\w-]{1,50}) seems to be not installed"
    r"|\b(?P<package4>[A-Za-z][\w-]{1,50}) is not installed[.,;]? ?(?:[Pp]lease|[Ii]nstall|[Rr]un|[Tt]ry)"
    r"|[Pp]lease (?:pip )?install (?P<package5>[A-Za-z][\w-]{1,50}) (?:before|first|to use|to enable))",
)
"""A guarded import, as a program tells of it itself."""
_UNBUILT = says(
    "compiled-part-unbuilt",
    ("is not defined", "cuda extension not installed"),
    r"NameError: name '(?P<package>quant_cuda|awq_ext|awq_inference_engine|autogptq_cuda\w{0,10}|exllama_kernels|exllamav2_kernels|selective_scan_cuda|causal_conv1d_cuda|flash_attn_(?:2_cuda|func|varlen_func)|vllm_ops|xops)' is not defined",
)
"""A guarded import that failed quietly: the name is missed when it is used."""
_COMPILED = lazy_pattern(r"_(?:cuda|cpp|ext|C|ops|kernels?|gpu|engine)(?:_\w{1,12})?$|^lib")
"""Modules that a package's own build makes: absent, they are a matter of that build."""


@cause(
    "package-conflict",
    family="Packages",
    leads_to=(
        "api-drift",
        "abi-mismatch",
    ),
    signs=[*(check.sign for check in CHECKS), _ABSENT, _ASKED_BY_A_MODEL, _UNBUILT, _SAID_TO_BE_ABSENT],
)
def package_conflict(case: Case, torch: Torch | Unknown) -> Judgement:
    """Installed packages are of releases that do not belong together; a check, a collision or a notice says so.

    How it shows itself
      A message with two releases: `xFormers was built for: PyTorch 2.3.0 (you have 2.1.0)`, `flashinfer-cubin version (..)
      does not match flashinfer version (..)`, `tokenizers>=0.21 is required ... but found tokenizers==0.20`, `sgl-kernel is
      installed with version .., which is less than the minimum required version`. Or a collision: `'aimv2' is already used by
      a Transformers config`, `operator torchvision::nms does not exist`, `Only a single TORCH_LIBRARY can be used`.

    Why it happens
      Packages are upgraded one at a time, and pip changes what it needs for the last command only. torch, torchvision,
      torchaudio and xformers go in fixed sets; flashinfer-python, flashinfer-cubin and flashinfer-jit-cache must be of one
      release; an engine's release was tested with a certain transformers. A pip and a conda copy of one package are another way.

    How to be sure
      `python -m pip check`, and the installed releases (`python -m pip list`) against the engine's requirements
      (`python -m pip show NAME`, or its requirements file of that tag). For xformers: `python -m xformers.info`.

    What helps
      The release of the package that is out of step, as the engine pins it; a fresh environment with the engine as the only
      thing asked for; the engine's image. Two copies: remove one.

    What does not help
      Switching the check off where compiled parts are concerned; upgrading whatever the message happens to name last.

    Not to be confused with
      api-drift (a name is simply gone), abi-mismatch (an undefined symbol), cuda-major-mismatch (a library of another
      CUDA is missing), nccl-version (two NCCL libraries).
    """
    conflicts = [found for check in CHECKS if (found := _read(case, check)) is not None]
    if not conflicts:
        return _asked_by_a_model(case) or _dependency_absent(case) or _unbuilt(case) or _said_to_be_absent(case)
    if len(conflicts) > 1:  # the installer's headline says less than the line that names the packages
        conflicts = [each for each in conflicts if each.check.sign.name != "pip-unresolvable"]
    best = max(
        conflicts, key=lambda each: (parts.is_failure(case, each.match), each.check.strength, -each.match.line.number)
    )
    return _verdict(case, best, torch)


def _read(case: Case, check: Check) -> Conflict | None:
    for match in case.all(check.sign.name):
        if match.is_code or _HARMLESS.search(match.text):
            continue
        if check.sign.name == "pip-unresolvable" and parts.says_around(case, match, _PLATFORM):
            continue  # no releases exclude each other: there is no wheel for this system
        have, want, spec = (_group(match, name) for name in ("have", "want", "spec"))
        named, other = _group(match, "package"), _group(match, "other")
        if spec is not None:
            found = _SPECIFIER.search(spec)
            want = found["spec"].replace(" ", "").rstrip(",") if found else spec
            named = named or (found["name"] if found else None)
        component = _component(named) or check.package or None
        if component is None and check.is_exact:
            component = case.component_near(match, case.engine or None)
        return Conflict(check, match, component, _component(other) or check.other or None, have, want)
    return None


def _group(match: Match, name: str) -> str | None:
    """The group of that name, whichever of the wordings gave it (``have``, ``have2`` ...)."""
    return next((v for g, v in match.groups.items() if g.rstrip("0123456789") == name and v), None)


def _component(name: str | None) -> str | None:
    if not name:
        return None
    bare = name.partition("[")[0].strip()
    if bare.lower().replace("_", "-") in ("flashinfer-jit-cache", "flashinfer-cubin"):
        return "flashinfer-cubin" if "cubin" in bare else "flashinfer"
    return components.canonical(bare) or bare.lower().replace("_", "-")


def _verdict(case: Case, conflict: Conflict, torch: Torch | Unknown) -> Judgement:
    check, match, component = conflict.check, conflict.match, conflict.component
    quoted = case.evidence(match, check.why)
    pair = _installed_pair(case, conflict, torch)
    if pair is not None and not pair[0]:
        return RuledOut(pair[1], (quoted,))
    is_pip_notice = check.sign.name in ("pip-incompatible", "pip-unresolvable", "uv-unresolvable")
    certainty = (
        Certainty.PROVEN if check.is_exact and (parts.is_failure(case, match) or conflict.have) else Certainty.POSSIBLE
    )
    if is_pip_notice or (certainty is Certainty.POSSIBLE and check.is_exact):
        certainty = (
            Certainty.LIKELY if parts.is_failure(case, match) or case.incident.primary is None else Certainty.POSSIBLE
        )
    if pair is not None:
        certainty = Certainty.PROVEN
    certainty = parts.capped(case, match, certainty, *_consequences(case, conflict), *_headlines(case, conflict))
    name = component or "a package"
    stated = _stated(conflict)
    rivals: tuple[str, ...] = () if certainty is Certainty.PROVEN else ("abi-mismatch", "api-drift")
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{check.title[0].upper()}{check.title[1:]}{f' ({stated})' if stated else ''}",
        chain=(
            Link(f"{name} and {conflict.other or 'what it works with'} are of releases that do not belong together", derived(pair[1], "given") if pair else quoted if stated else inferred("how they came together is not in the log")),
            Link(check.title, quoted),
        ),
        evidence=(quoted, *_versions(case, conflict)),
        explains=case.explains(match, *_consequences(case, conflict), *_headlines(case, conflict)),
        missing=() if certainty is Certainty.PROVEN else _missing(case, conflict),
        rivals=rivals,
        remedies=_remedies(case, conflict, torch),
        not_remedies=(
            *((NotARemedy("another GPU or another attention backend because of a capability line", "that line belongs to one operator of many; the others are refused because the compiled part is not loaded"),) if component == "xformers" else ()),
            NotARemedy("upgrading one package after another", "each command moves others; take the set that the engine pins, in a fresh environment"),
        ),
        strength=check.strength,
    )  # fmt: skip


def _dependency_absent(case: Case) -> Judgement:
    """A package of this field that an installed one imports, and that is not installed beside it."""
    for match in case.all(_ABSENT.name):
        module = match.group("package") or ""
        component = components.canonical(module)
        asked = asking(case, match, component)
        if component is None and _is_a_distribution(match, module):
            component = package_of(module)
        if match.is_code or component is None or asked.consumer in (None, component, USER_PROGRAM):
            continue
        if match.event is None or match.event.id != case.incident.primary:
            continue
        name = parts.distribution_of(component, case)
        known = case.fact(f"packages.{name}")
        if isinstance(known, Fact) and known.value is not None:
            return RuledOut(
                f"{name} {known.value} is installed", (case.evidence(match, "it is not found"), known.evidence)
            )
        quoted = case.evidence(
            match, f"{asked.consumer} imports {match.group('package')}, which is not installed where it looks"
        )
        fact = case.missing(
            f"packages.{name}",
            "whether it is installed in the environment of the service",
            f"python -m pip show {name}",
        )
        value = parts.constraint_for(case, name) or f"match:{asked.consumer}"
        return Verdict(
            certainty=Certainty.LIKELY if isinstance(known, Fact) else Certainty.POSSIBLE,
            component=component,
            title=f"{name}, which {asked.consumer} needs, is not installed in this environment",
            chain=(Link(f"{asked.consumer} was installed without {name}, or into another environment", quoted),),
            evidence=(quoted,),
            explains=case.explains(match),
            missing=(fact,) if fact is not None else (),
            rivals=("import-shadowed", "api-drift"),
            remedies=(_package(name, value, f"Install the {name} that {asked.consumer} asks for"), *parts.whole_engine(case)),
            strength=48,
        )  # fmt: skip
    return None


def _is_a_distribution(match: Match, module: str) -> bool:
    """Whether an installed library imports it by name: then a distribution brings it, also one that is not known here."""
    frames = parts.frames_of(match)
    return (
        bool(frames)
        and _SITE.search(frames[-1].path) is not None
        and not _COMPILED.search(module)
        and module not in sys.stdlib_module_names
        and dropped_by_python(module) is None
    )


def _asked_by_a_model(case: Case) -> Judgement:
    """The code of a model's repository imports a package that is not installed; transformers looks before it runs it."""
    match = case.found(_ASKED_BY_A_MODEL.name)
    if match is None or match.is_code:
        return None
    component = _component(match.group("package")) or "transformers"
    name = parts.distribution_of(component, case)
    known = case.fact(f"packages.{name}")
    quoted = case.evidence(match, f"the model's code imports {name}, which is not installed")
    if isinstance(known, Fact) and known.value is not None:
        return RuledOut(f"{name} {known.value} is installed", (quoted, known.evidence))
    value = parts.constraint_for(case, name) or "match:torch" if component in _BUILT_AGAINST_TORCH else ""
    return Verdict(
        certainty=Certainty.PROVEN if parts.is_failure(case, match) else Certainty.LIKELY,
        component=component,
        title=f"{name}, which the model's own code imports, is not installed in this environment",
        chain=(Link(f"The code in the model's repository needs {name}, and no requirement of the installed packages asks for it", quoted),),
        evidence=(quoted,),
        explains=case.explains(match),
        remedies=(_package(name, value, f"Install {name}, which the model's code asks for"), *parts.whole_engine(case)),
        not_remedies=(NotARemedy("trust_remote_code", "permission is there already; the code is read, and lacks a package"),),
        strength=76,
    )  # fmt: skip


def _unbuilt(case: Case) -> Judgement:
    """A package goes on without its compiled part, and fails at the first use of it."""
    match = case.found(_UNBUILT.name)
    if match is None or match.is_code:
        return None
    part = match.group("package") or ""
    component = _PACKAGE_OF_PART.get(part) or components.canonical(part) or case.component_near(match, None)
    quoted = case.evidence(match, f"{part} could not be imported before, and the failure was passed over")
    name = parts.distribution_of(component, case) if component else ""
    asked = case.missing(f"packages.{name or part}", "why it does not import", f'python -c "import torch, {part}"')
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component=component,
        title=f"The compiled part {part} of {component or 'a package'} is not installed for this torch",
        chain=(
            Link(f"{part} was not built, or for another torch", inferred("the import's own error was passed over")),
            Link("The first use of it fails", quoted),
        ),
        evidence=(quoted,),
        explains=case.explains(match),
        missing=(asked,) if asked is not None else (),
        rivals=("abi-mismatch", "toolkit-missing"),
        remedies=(_package(name, "rebuild", f"Build {name} against the installed torch, and read the first error"), _package(name, "match:torch", "Or a wheel of it for the installed torch", rank=1)) if name else (),
        strength=46,
    )  # fmt: skip


def _said_to_be_absent(case: Case) -> Judgement:
    """A program says that a package is not installed which it needs for what was asked of it."""
    for match in case.all(_SAID_TO_BE_ABSENT.name):
        component = _component(_group(match, "package"))
        if match.is_code or not parts.is_failure(case, match) or component is None or component in _NO_PACKAGES:
            continue
        name = parts.distribution_of(component, case)
        known = case.fact(f"packages.{name}")
        quoted = case.evidence(match, f"{name} is not found in this environment")
        if isinstance(known, Fact) and known.value is not None:
            return RuledOut(f"{name} {known.value} is installed", (quoted, known.evidence))
        asked = case.missing(f"packages.{name}", "whether it is installed in the environment of the service", f"python -m pip show {name}")  # fmt: skip
        value = match.group("spec") or parts.constraint_for(case, name) or ("match:torch" if component in _BUILT_AGAINST_TORCH else "")  # fmt: skip
        return Verdict(
            certainty=Certainty.LIKELY,
            component=component,
            title=f"{name}, which this start needs, is not installed in this environment",
            chain=(Link(f"The program does without {name} until an option or a model asks for it", quoted),),
            evidence=(quoted,),
            explains=case.explains(match),
            missing=(asked,) if asked is not None else (),
            rivals=("import-shadowed", "abi-mismatch"),
            remedies=(_package(name, value, f"Install {name} into the environment that runs the program"),),
            not_remedies=(NotARemedy("installing it for another Python", "the program sees the packages of its own environment only"),),
            strength=60,
        )  # fmt: skip
    return None


_NO_PACKAGES = frozenset({"cuda-toolkit", "driver", "cuda", "nvidia", "gpu", "it", "this", "the", "docker", "container-engine", "nvidia-container-toolkit", "which", "that", "torch"})  # fmt: skip
_PACKAGE_OF_PART = {"quant_cuda": "gptq-for-llama", "flash_attn_func": "flash-attn", "flash_attn_varlen_func": "flash-attn", "vllm_ops": "vllm", "xops": "xformers"}  # fmt: skip
_BUILT_AGAINST_TORCH = frozenset({"flash-attn", "mamba-ssm", "causal-conv1d", "xformers"})


def _stated(conflict: Conflict) -> str:
    if conflict.have and conflict.want:
        return f"{conflict.have}, and {conflict.want} is wanted"
    return conflict.have or (f"{conflict.want} is wanted" if conflict.want else "")


def _installed_pair(case: Case, conflict: Conflict, torch: Torch | Unknown) -> tuple[bool, str] | None:
    """Whether the facts show the pair to disagree: for a package that says for which torch it was built."""
    if conflict.check.sign.name != "xformers-without-cuda" or not isinstance(torch, Torch) or torch.version is None:
        return None
    fact = case.facts.value("packages.xformers")
    if not isinstance(fact, str):
        return None
    told = _BUILT_FOR.search(fact)
    built = told["torch"] if told else (torch_companions.torch_for("xformers", fact) or "").lstrip("=")
    if not built:
        return None
    have, wanted = public_version(torch.version), public_version(built.rstrip(".*") or "0")
    if have is None or wanted is None:
        return None
    same_build = (
        "+" not in built or "+" not in torch.version or built.partition("+")[2] == torch.version.partition("+")[2]
    )
    if have == wanted and same_build:
        return (False, f"xformers was built for torch {built}, which is the one installed") if told else None
    return True, f"xformers was built for torch {built}, and torch is {torch.version}"


def _consequences(case: Case, conflict: Conflict) -> tuple[Match, ...]:
    """The same operator failure that the notice explains, where both were found."""
    if conflict.component != "xformers":
        return ()
    return tuple(m for m in (case.found("xformers-without-cuda"),) if m is not None)


def _headlines(case: Case, conflict: Conflict) -> tuple[Match, ...]:
    """Failures that the notice explains: every operator refused for want of the compiled part."""
    if conflict.component != "xformers":
        return ()
    return tuple(
        msgspec.structs.replace(conflict.match, event=event)
        for event in case.incident.events
        if "No operator found for" in event.text or "memory_efficient_attention" in event.text
    )


def _versions(case: Case, conflict: Conflict) -> tuple[Evidence, ...]:
    names = [name for name in (conflict.component, conflict.other) if name]
    found = [
        e for name in names for e in parts.evidence_of(case, parts.distribution_of(name, case), f"the installed {name}")
    ]
    return tuple(found[:2])


def _missing(case: Case, conflict: Conflict) -> tuple[Missing, ...]:
    names = dict.fromkeys(name for name in (conflict.component, conflict.other) if name)
    asked = []
    for name in names:
        if name in ("the engine", "the engine file", "the other nodes", "python", "openmp"):
            continue
        if name == "torch":
            asked.append(case.missing("torch", "which torch is installed"))
            continue
        distribution = parts.distribution_of(name, case)
        command = "python -m xformers.info" if name == "xformers" else f"python -m pip show {distribution}"
        asked.append(case.missing(f"packages.{distribution}", f"which release of {name} is installed, and for what it was built", command))  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _remedies(case: Case, conflict: Conflict, torch: Torch | Unknown) -> tuple[Remedy, ...]:
    component, check = conflict.component, conflict.check
    special = _special(conflict)
    if special:
        return special
    if component is None:
        return parts.whole_engine(case) or _fresh()
    name = _distribution(conflict, case)
    value = _value(case, conflict, name, torch)
    remedies = [_package(name, value, f"Install the release of {name} that fits {conflict.other or 'the others'}")]
    other = conflict.other
    if component in torch_companions.COMPANIONS:
        built_for = conflict.want if check.sign.name.startswith("xformers") else None
        known = f"=={built_for.partition('+')[0]}" if built_for else None
        remedies.append(_package("torch", known or f"match:{name}", f"Or the torch that {name} was built for", rank=1))
    elif component == "transformers" and case.engine:
        remedies.append(_package(case.engine, "newer", f"Or a release of {case.engine} that has followed transformers", rank=1))  # fmt: skip
    elif other is not None and other in components.component_names():
        remedies.append(_package(parts.distribution_of(other, case), "newer", f"Or a newer release of {other}", rank=2))
    if component == "flashinfer-cubin" or name == "flashinfer-jit-cache":
        remedies.append(_package(name, "remove", f"Or uninstall {name}: FlashInfer then fetches or compiles what it needs", rank=1))  # fmt: skip
    return (*remedies, *parts.whole_engine(case))


def _distribution(conflict: Conflict, case: Case) -> str:
    named = (_group(conflict.match, "package") or "").partition("[")[0].lower().replace("_", "-")
    if named.startswith(("flashinfer-", "sglang-kernel", "sgl-kernel")):
        return named
    return parts.distribution_of(conflict.component or "", case)


def _value(case: Case, conflict: Conflict, name: str, torch: Torch | Unknown) -> str:
    """The release to install: as stated, as the engine pins it, as torch's set has it, else a direction."""
    check, want = conflict.check, conflict.want
    if conflict.component in torch_companions.COMPANIONS:
        version = conflict.have if check.sign.name.startswith("xformers-built") else None
        version = version or (torch.version if isinstance(torch, Torch) else None)
        return (torch_companions.release_for(str(conflict.component), version) if version else None) or "match:torch"
    pin = parts.required_by_engine(case, name)
    if pin is not None and pin.specifier:
        return pin.specifier
    if check.sign.name == "registered-already":
        return "older"
    if check.sign.name == "flashinfer-parts" and want:
        return f"=={want}"
    if check.sign.name == "numba-numpy" and want:
        is_upper = _group(conflict.match, "direction") == "less"
        return f"<{_next_minor(want)}" if is_upper else f">={want}"
    if check.sign.name == "protobuf-gencode":
        return f">={want}" if want else "<3.21"
    if want and want[0] in "<>=!~":
        return want
    if want and check.direction in ("newer", ""):
        return f">={want}"
    if want and check.sign.name == "pydantic-core":
        return f"=={want}"
    return check.direction or "another release"


def _next_minor(version: str) -> str:
    known = public_version(version)
    return f"{known.major}.{known.minor + 1}" if known is not None else version


def _special(conflict: Conflict) -> tuple[Remedy, ...]:
    """Conflicts whose remedy is no release of the package that is named."""
    name = conflict.check.sign.name
    if name == "cudnn-incompatible":
        return (
            Remedy(kind="env", name="LD_LIBRARY_PATH", value="unset", summary="Start without LD_LIBRARY_PATH, so that torch finds the cuDNN that came with it", check=("python -c 'import torch; print(torch.backends.cudnn.version())'",)),
            _package("nvidia-cudnn-cu12", "match:torch", "Install the cuDNN that torch requires"),
        )  # fmt: skip
    if name == "two-openmp":
        return (
            Remedy(kind="env", name="MKL_THREADING_LAYER", value="GNU", summary="Let MKL use the OpenMP run time that is loaded already", is_sure=False),
            *_fresh(),
        )  # fmt: skip
    if name == "two-registrations":
        component = conflict.component or "the package"
        return (
            _package(parts.distribution_of(component), "remove", f"Remove every copy of {component} (pip, conda, an editable checkout), then install one"),
            *_fresh(),
        )  # fmt: skip
    if name == "tensorrt-engine":
        return (
            Remedy(kind="files", name="engine file", value="rebuild", summary="Build the engine file again with the TensorRT that loads it", cost="minutes to an hour on the same kind of GPU"),
            _package("tensorrt", "the release that built the engine", "Or run the release that built it", rank=2),
        )  # fmt: skip
    if name.startswith("ray-cluster"):
        return (_package("ray", f"=={conflict.want}" if conflict.want else "match:cluster", "Run one release of Ray and Python on every node (one image)"),)  # fmt: skip
    if name == "python-too-old":
        return (Remedy(kind="package", name="python", value=conflict.want or "another", summary=f"Make an environment with Python {conflict.want or 'of a supported release'}", cost="a fresh environment"),)  # fmt: skip
    if name == "torch-without-nccl":
        return (
            _package("torch", "CUDA build", "Install a build of torch with NCCL (Linux, CUDA)"),
            Remedy(kind="env", name="PL_TORCH_DISTRIBUTED_BACKEND", value="gloo", rank=1, is_sure=False, summary="Or use the backend gloo, where the platform has no NCCL (init_process_group(backend=\"gloo\"))"),
        )  # fmt: skip
    if name == "provider-not-built-in":
        return (
            _package("onnxruntime", "remove", "Remove the build for the CPU (onnxruntime): it overwrites the other's files"),
            _package("onnxruntime-gpu", "reinstall", "Then install onnxruntime-gpu again, in the release for the CUDA that is here", rank=1),
        )  # fmt: skip
    if name == "torch-libraries-absent":
        return (_package("torch", "CUDA build", "Install a CUDA build of torch in place of the CPU build", rank=0),)
    return ()


def _package(name: str, value: str, summary: str, rank: int = 0) -> Remedy:
    return Remedy(kind="package", name=name, value=value, summary=summary, rank=rank, check=("python -m pip check",))


def _fresh() -> tuple[Remedy, ...]:
    return (
        Remedy(kind="package", name="python-env", value="fresh environment", rank=6, summary="Make a fresh environment, and install the engine alone into it", cost="a download of several GB", check=("python -m pip check",)),
    )  # fmt: skip
