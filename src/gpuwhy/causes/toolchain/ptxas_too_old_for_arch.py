"""ptxas-too-old-for-arch: the assembler that Triton or another JIT brings along does not know this GPU."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge import toolkits, triton
from gpuwhy.knowledge import torch as torch_releases
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Environment, Gpus, Packages, Toolkits, Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

PTXAS, SECOND_PTXAS = "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"
_TRITON_NEAR = lazy_pattern(
    r"PTX codegen error|PTXASError|\btriton\b|`ptxas`|torch/_inductor|Repro command", re.IGNORECASE
)
_XLA_NEAR = lazy_pattern(r"\bxla\b|jaxlib|tensorflow|gpu_asm_compiler|ptxas returned an error", re.IGNORECASE)
_NVCC_NEAR = lazy_pattern(r"\bnvcc\b|--generate-dependencies-with-compile|\.cuda\.o\b|\bcicc\b|ninja:", re.IGNORECASE)


class Refusal(msgspec.Struct, frozen=True):
    """What was refused, by which assembler, and whose it is (``triton``, ``xla``, ``nvcc``, ``""`` not shown).

    ``target`` is None when only the wrapper of the failure was printed. ``triton_version``: installed, or brought by
    the installed torch. ``refuses`` tells whether the assembler in that release's wheel refuses the GPU, None unknown.
    """

    match: Match
    tool: str
    target: str | None
    capability: str | None
    caller: str
    triton_version: str | None
    version_evidence: Evidence | None
    refuses: bool | None
    why: str
    provenance: str


@cause(
    "ptxas-too-old-for-arch",
    family="Toolchain",
    signs=[
        says(
            "ptxas-rejects-target",
            "is not defined for option 'gpu-name'",
            r"(?:(?P<tool>ptxas(?:-blackwell)?)(?:\.exe)?\s*(?:fatal|error)\s*:\s*)?"
            r"Value '(?P<target>sm_\d{2,3}[af]?)' is not defined for option 'gpu-name'",
        ),
        says(
            "ptx-too-new-for-ptxas",
            "unsupported .version",
            r"(?:(?P<tool>ptxas(?:-blackwell)?)\b.{0,300})?Unsupported \.version (?P<written>[\d.]+); current version is '(?P<known>[\d.]+)'",
        ),
        says("triton-refuses-ptxas", "triton only support cuda 10.0 or higher"),
        says(
            "llvm-without-processor",
            "is not a recognized processor for this target",
            r"'(?P<target>sm_\d{2,3}[af]?)' is not a recognized processor for this target",
        ),
        says("triton-codegen-error", ("internal triton ptx codegen error", "ptxas error: ")),
    ],
)
def ptxas_too_old_for_arch(
    case: Case,
    gpus: Gpus | Unknown,
    tools: Toolkits | Unknown,
    packages: Packages | Unknown,
    environment: Environment | Unknown,
    torch: Torch | Unknown,
) -> Judgement:
    """The ptxas that Triton brings along does not know this GPU's architecture.

    How it shows itself
      `ptxas fatal : Value 'sm_121a' is not defined for option 'gpu-name'`, inside `Internal Triton PTX codegen error`
      or a `PTXASError`. Engines wrap it: SGLang says `Capture cuda graph failed` and adds hints about memory that have
      nothing to do with it; torch.compile says `No valid triton configs`. It appears at the first Triton kernel, often
      only after minutes of loading.

    Why it happens
      Triton compiles with its own assembler, which lies in its wheel, and never asks for the system's toolkit. Each
      release knows the GPUs of its time: 10.0 and 12.0 from Triton 3.3 on, 10.3 and 12.1 from 3.6, 11.0 (Thor) from 3.7.
      From 3.6 on (and in 3.3) there are two: `ptxas` for older GPUs and `ptxas-blackwell` for 10.0 and newer.

    How to be sure
      The program's name before `fatal` says which assembler refused. Run the one in the wheel:
      `.../site-packages/triton/backends/nvidia/bin/ptxas --version`, and compare with the GPU's compute capability.

    What helps
      Point Triton at the ptxas of a toolkit that knows the GPU: TRITON_PTXAS_PATH, or TRITON_PTXAS_BLACKWELL_PATH when
      `ptxas-blackwell` refused. Or a torch whose Triton knows the GPU; torch pins Triton exactly, so take both together.

    What does not help
      A newer system toolkit or driver without the variable; lower memory fractions; disabling CUDA graphs, which only
      moves the failure to the first request. A path that cannot be run is ignored without a word.

    Not to be confused with
      toolkit-too-old-for-arch (`nvcc fatal`), dtype-unsupported-by-gpu (`requires .target sm_89 or higher`),
      gpu-too-old (the refused target is one that newer assemblers have dropped), toolkit-path-wrong.
    """
    refusal = _read(case, gpus, packages, torch)
    if refusal is None:
        return None
    excluded = _excluded(case, refusal, gpus)
    if excluded is not None:
        return excluded
    if (
        refusal.match.sign == "triton-codegen-error"
        and refusal.refuses is not True
        and _says_other_error(case, refusal)
    ):
        return None
    quoted = case.evidence(refusal.match, _what_it_shows(refusal))
    known = gpus.evidence if isinstance(gpus, Gpus) else ()
    version = (refusal.version_evidence,) if refusal.version_evidence is not None else ()
    certainty = _certainty(refusal)
    return Verdict(
        certainty=certainty,
        component=_component(case, refusal),
        title=_title(refusal),
        chain=_chain(refusal, quoted, known),
        evidence=(quoted, *known, *version),
        against=_against(refusal),
        explains=case.explains(refusal.match, *case.all("triton-codegen-error")),
        missing=_missing(case, refusal, certainty),
        rivals=_rivals(refusal),
        remedies=_remedies(case, refusal, tools, environment),
        not_remedies=_IN_VAIN,
        strength=_strength(refusal),
    )


def _read(case: Case, gpus: Gpus | Unknown, packages: Packages | Unknown, torch: Torch | Unknown) -> Refusal | None:
    match = case.found(
        "ptxas-rejects-target",
        "triton-refuses-ptxas",
        "ptx-too-new-for-ptxas",
        "llvm-without-processor",
        "triton-codegen-error",
    )
    if match is None:
        return None
    target = match.group("target")
    parsed = capabilities.parse(target) if target else None
    capability = parsed.plain.dotted if parsed else (gpus.capability if isinstance(gpus, Gpus) else None)
    version, evidence = _triton_version(packages, torch)
    answer = triton.refuses(version, capability) if version and capability else None
    return Refusal(
        match=match,
        tool=match.group("tool") or "ptxas",
        target=target,
        capability=capability,
        caller=_caller(case, match),
        triton_version=version,
        version_evidence=evidence,
        refuses=answer.value if answer is not None else None,
        why=answer.why if answer is not None else "",
        provenance=answer.provenance if answer is not None else "",
    )


def _triton_version(packages: Packages | Unknown, torch: Torch | Unknown) -> tuple[str | None, Evidence | None]:
    if isinstance(packages, Packages):
        for name in ("triton", "pytorch-triton", "triton-windows"):
            if packages.version(name):
                return packages.version(name), packages.evidence[name]
    if isinstance(torch, Torch) and torch.version:
        pinned = torch_releases.triton_of(torch.version)
        if pinned is not None and torch.evidence:
            return pinned.lstrip("~=<>"), torch.evidence[0]
    return None, None


def _caller(case: Case, match: Match) -> str:
    """Who ran the assembler, by the message, its traceback and the lines around it."""
    own = match.text + " ".join(frame.path for frame in match.frames)
    if match.event is not None:
        own += match.event.text
    near = [own, *(line.text[:500] for line in case.lines_around(match, 25, 12))]
    if "Triton" in match.text or match.sign == "triton-codegen-error":
        return "triton"
    for text in near:
        if _TRITON_NEAR.search(text):
            return "triton"
        if _XLA_NEAR.search(text):
            return "xla"
        if _NVCC_NEAR.search(text):
            return "nvcc"
    return ""


def _excluded(case: Case, refusal: Refusal, gpus: Gpus | Unknown) -> RuledOut | None:
    quoted = case.evidence(refusal.match, "what the assembler refused")
    target = capabilities.parse(refusal.target) if refusal.target else None
    if target is not None and target.number < 75 and toolkits.last_release_for(target) is not None:
        return RuledOut(
            f"{refusal.target} is an old target that newer assemblers have dropped: ptxas is too new", (quoted,)
        )
    if target is None or not isinstance(gpus, Gpus) or not gpus.capabilities:
        return None
    renamed = capabilities.RENAMED.get((target.major, target.minor))
    names = {target.plain.dotted, f"{renamed[0]}.{renamed[1]}" if renamed else ""}
    if not names & set(gpus.capabilities):
        return RuledOut(f"no GPU here is a {target.plain.dotted}: something else chose {refusal.target}", gpus.evidence)
    return None


def _says_other_error(case: Case, refusal: Refusal) -> bool:
    """The assembler's own words follow the wrapper, and they are not about the target."""
    after = [line for line in case.lines_around(refusal.match, 0, 12) if line.number > refusal.match.line.number]
    return any(
        re.search(r"ptxas.{0,300}(?:error|fatal)\s*:|requires \.target|raised SIG", line.text[:1000]) for line in after
    )


def _certainty(refusal: Refusal) -> Certainty:
    if refusal.match.sign == "ptxas-rejects-target":
        if refusal.caller == "nvcc":
            return Certainty.POSSIBLE
        return Certainty.PROVEN if refusal.caller == "triton" and refusal.refuses is not False else Certainty.LIKELY
    is_said = refusal.match.sign in ("ptx-too-new-for-ptxas", "llvm-without-processor") and refusal.caller == "triton"
    if refusal.refuses is True or is_said or refusal.match.sign == "ptx-too-new-for-ptxas":
        return Certainty.LIKELY
    return Certainty.POSSIBLE


def _strength(refusal: Refusal) -> int:
    if refusal.match.sign == "ptxas-rejects-target":
        return 40 if refusal.caller == "nvcc" else 88
    return {"ptx-too-new-for-ptxas": 55, "triton-refuses-ptxas": 60, "llvm-without-processor": 45}.get(
        refusal.match.sign, 35
    )


def _component(case: Case, refusal: Refusal) -> str:
    if refusal.caller == "triton":
        return "triton"
    if refusal.caller in ("xla", "nvcc"):
        near = case.component_near(refusal.match)
        return near if near is not None and near != "torch" else {"xla": "jax"}.get(refusal.caller, "triton")
    return "triton"


def _what_it_shows(refusal: Refusal) -> str:
    return {
        "ptxas-rejects-target": f"{refusal.tool} names the target it does not know",
        "ptx-too-new-for-ptxas": "ptxas is older than the compiler that wrote the PTX",
        "triton-refuses-ptxas": "this Triton does not know the newer assembler it was given",
        "llvm-without-processor": "the compiler in this Triton does not know the target either",
        "triton-codegen-error": "assembling a Triton kernel failed",
    }[refusal.match.sign]


def _title(refusal: Refusal) -> str:
    owner = {"triton": "Triton's own", "xla": "The", "nvcc": "The"}.get(refusal.caller, "Triton's own")
    if refusal.match.sign == "triton-refuses-ptxas":
        return f"Triton {refusal.triton_version or ''} is too old for the assembler that knows this GPU".replace(
            "  ", " "
        )
    what = refusal.target or (f"SM {refusal.capability}" if refusal.capability else "this GPU's target")
    tool = refusal.tool if refusal.match.sign == "ptxas-rejects-target" else "ptxas"
    return f"{owner} assembler ({tool}) does not know {what}"


def _chain(refusal: Refusal, quoted: Evidence, known: tuple[Evidence, ...]) -> tuple[Link, ...]:
    asked = refusal.target or "the GPU's target"
    first = toolkits.first_release_for(refusal.target) if refusal.target else None
    bundled = derived(refusal.why, refusal.provenance) if refusal.why and refusal.refuses else None
    return (
        Link(f"The GPU has compute capability {refusal.capability or 'of a newer generation'}", known[0] if known else inferred("the target is taken from the GPU")),
        Link(
            "Triton assembles with the ptxas of its own wheel, not with the system's toolkit" if refusal.caller != "xla" else "XLA assembles with the first ptxas that it finds",
            bundled or inferred("read in the released source"),
        ),
        Link(
            f"{asked} exists from CUDA {first} on" if first else f"{asked} is newer than that assembler",
            derived(f"first accepted by ptxas {first}", "measured with ptxas of each release") if first else inferred("follows from the refusal"),
        ),
        Link(f"{refusal.tool} refuses, and no Triton kernel can be built", quoted),
    )  # fmt: skip


def _against(refusal: Refusal) -> tuple[Evidence, ...]:
    if refusal.refuses is False and refusal.match.sign == "ptxas-rejects-target":
        return (derived(f"{refusal.why}: then another ptxas than the bundled one was run", refusal.provenance),)
    return ()


def _missing(case: Case, refusal: Refusal, certainty: Certainty) -> tuple[Missing, ...]:
    wanted = [
        case.missing("packages.triton", "which assembler it brings", "python -m pip show triton")
        if refusal.triton_version is None
        else None,
        case.missing("cc", "the target that has to be known") if refusal.capability is None else None,
        case.missing(f"env.{PTXAS}", "a variable may already choose another assembler")
        if refusal.refuses is False or certainty is Certainty.POSSIBLE
        else None,
    ]
    return tuple(m for m in wanted if m is not None)


def _rivals(refusal: Refusal) -> tuple[str, ...]:
    if refusal.caller == "nvcc":
        return ("toolkit-path-wrong", "toolkit-too-old-for-arch", "arch-list-override")
    return ("toolkit-path-wrong",) if refusal.refuses is False else ()


def _remedies(
    case: Case, refusal: Refusal, tools: Toolkits | Unknown, environment: Environment | Unknown
) -> tuple[Remedy, ...]:
    if refusal.caller == "xla":
        return _xla_remedies(_component(case, refusal))
    remedies = _variable_remedies(refusal, tools, environment)
    first = triton.first_release_for(refusal.capability) if refusal.capability else None
    torch_first = _first_torch_with(first) if first else None
    remedies.append(
        Remedy(
            kind="package",
            name="torch",
            value=f">={torch_first}" if torch_first else "newer",
            summary=f"Move to torch {torch_first or 'of a newer release'}, whose Triton brings an assembler for this GPU",
            cost="the engine pins torch: take the engine release that goes with it",
            limits=("of a CUDA build that holds code for this GPU",),
            risk="medium",
            rank=10,
        )
    )
    remedies.append(
        Remedy(
            kind="package",
            name="triton",
            value=f">={first}" if first else "newer",
            summary=f"Move to Triton {first or 'of a newer release'}",
            cost="torch requires one Triton release exactly; another one may break torch.compile",
            risk="medium",
            is_sure=False,
            rank=20,
        )
    )
    return tuple(remedies)


def _variable_remedies(refusal: Refusal, tools: Toolkits | Unknown, environment: Environment | Unknown) -> list[Remedy]:
    """The variables, the one that the refusing program reads first; nothing when this Triton refuses such a ptxas."""
    value, cuda = _better_ptxas(refusal, tools)
    if refusal.triton_version and cuda and triton.agrees_to_use(refusal.triton_version, cuda).value is False:
        return []
    if refusal.match.sign == "triton-refuses-ptxas":
        return [
            Remedy(
                kind="env", name=PTXAS, value="unset", summary="Let Triton use its own assembler again", is_sure=False
            )
        ]
    names = _variables(refusal)
    remedies = [
        Remedy(
            kind="env",
            name=name,
            value=value,
            summary=f"Let Triton assemble with {value}",
            cost="nothing is installed when such a toolkit is there; cached kernels are compiled again",
            check=(f"{value if value.startswith('/') else 'ptxas'} --version",),
            limits=("a path that cannot be run is ignored silently, and the bundled assembler is used",),
            is_sure=position == 0,
            rank=position,
        )
        for position, name in enumerate(names)
    ]
    for name in names:
        current = environment.get(name) if isinstance(environment, Environment) else None
        if isinstance(current, str) and current and refusal.refuses is False:
            remedies.insert(
                0,
                Remedy(
                    kind="env",
                    name=name,
                    value="unset",
                    summary=f"Drop {name}: the assembler in this Triton's wheel knows the GPU, the one it points at does not",
                ),
            )
    return remedies


def _variables(refusal: Refusal) -> tuple[str, ...]:
    gpu = capabilities.parse(refusal.capability) if refusal.capability else None
    if refusal.tool == "ptxas-blackwell":
        return (SECOND_PTXAS,)
    exact = triton.override_variable(refusal.triton_version, gpu) if refusal.triton_version and gpu else None
    if gpu is None or gpu.major < 10 or exact == PTXAS:
        return (PTXAS,)
    return (PTXAS, SECOND_PTXAS)


def _better_ptxas(refusal: Refusal, tools: Toolkits | Unknown) -> tuple[str, str | None]:
    """The path of an installed ptxas that knows the target, with its CUDA release; else what to look for."""
    target = refusal.target or (f"sm_{refusal.capability.replace('.', '')}" if refusal.capability else None)
    if isinstance(tools, Toolkits) and target is not None:
        known = [(install.root, install.version) for install in tools.installs if install.has_nvcc]
        known += [(r.root, r.version) for r in tools.resolutions.values() if r.root]
        for root, version in known:
            if version is not None and toolkits.accepts(version, target).value is True:
                return f"{root.rstrip('/')}/bin/ptxas", version
    first = toolkits.first_release_for(target) if target else None
    return (f"ptxas of CUDA >= {first}" if first else "ptxas of a newer CUDA"), first


def _first_torch_with(minimum: str) -> str | None:
    """The first torch release whose wheel requires at least this Triton."""
    wanted = _numbers(minimum)
    for minor in range(40):
        pinned = torch_releases.triton_of(f"2.{minor}.0")
        if pinned is not None and _numbers(pinned) >= wanted:
            return f"2.{minor}"
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _xla_remedies(component: str) -> tuple[Remedy, ...]:
    return (
        Remedy(kind="env", name="XLA_FLAGS", value="--xla_gpu_cuda_data_dir=/usr/local/cuda", summary="Let XLA take the ptxas of a toolkit that knows the GPU", is_sure=False),
        Remedy(kind="env", name="PATH", value="a toolkit's bin directory first", summary="Put the newer toolkit's bin folder first on PATH", is_sure=False),
        Remedy(kind="package", name="nvidia-cuda-nvcc-cu12", value="newer", summary="XLA takes ptxas from this package when it is installed", rank=5),
        Remedy(kind="package", name=component, value="newer", summary="A newer release brings a newer assembler", rank=10, is_sure=False),
    )  # fmt: skip


_IN_VAIN = (
    NotARemedy("a newer system CUDA toolkit alone", "Triton does not look for it without the variable"),
    NotARemedy("lower --mem-fraction-static, smaller --cuda-graph-max-bs", "the hints are printed for every failure of the capture; memory is not involved"),
    NotARemedy("--enforce-eager or --disable-cuda-graph", "the same kernel is built at the first request"),
    NotARemedy("a newer driver", "the assembler runs before the driver is asked"),
)  # fmt: skip
