"""What FlashInfer's check of the toolkit did here, read from the log and the facts; several causes share its messages.

FlashInfer 0.6.7 to 0.7.0.post1 drop SM 12.x when the CUDA version they find is below 12.9 (0.7.1 and later: SM 12.0
below 12.8, SM 12.1 below 12.9). The exception is swallowed, the set of targets stays empty, and whatever needs a
target later blames the GPU. Versions and lines: read in the released wheels.
"""

from __future__ import annotations

import re
import shlex

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._signs import Sign, says
from gpuwhy.knowledge import flashinfer
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Link, Missing, SourceCheck
from gpuwhy.model.host import Environment, Gpus, Packages, Resolution, ToolkitInstall, Toolkits

SIGNS: tuple[Sign, ...] = (
    says(
        "flashinfer-blames-gpu",
        "flashinfer requires gpus with sm75",
        r"FlashInfer requires GPUs with sm75 or higher(?:\.? *Detected TARGET_CUDA_ARCHS ?= ?(?P<detected>[\[{][^\n]*?[\]}]))?",
    ),
    says(
        "flashinfer-no-target",
        "no supported cuda architectures found for major versions",
        r"No supported CUDA architectures found for major versions (?P<majors>\[[\d, ]*\]|None)",
    ),
    says(
        "flashinfer-swallowed",
        "failed to get device capability:",
        r"Failed to get device capability: (?P<reason>.+)",
    ),
    says(
        "flashinfer-gate",
        ("sm 12.x requires cuda", "sm 120 requires cuda", "sm 12.1+ requires cuda"),
        r"(?P<arch>SM 12\.x|SM 120|SM 12\.1\+) requires CUDA >= (?P<need>\d+\.\d+)",
    ),
    says("flashinfer-sampling-unavailable", "flashinfer top-p/top-k sampling unavailable:"),
)
"""Signs that the causes sharing these messages declare."""

ARCH_LIST = "FLASHINFER_CUDA_ARCH_LIST"


class Gate(msgspec.Struct, frozen=True):
    """What is known of the check in this case. Versions as ``"12.9"``; None: not known.

    ``capability`` is the failing GPU's, exact; ``is_sm12`` also holds when only the family is known from the message.
    ``swallowed`` is the line that shows the hidden exception; ``gate_message`` the same when it is the toolkit's.
    """

    symptom: Match
    swallowed: Match | None
    gate_message: Match | None
    capability: str | None
    is_sm12: bool | None
    needed: str | None
    resolution: Resolution | None
    toolkit: str | None
    better: tuple[ToolkitInstall, ...]
    is_host_searched: bool
    version: str | None
    arch_list: str | None

    @property
    def is_without_nvcc(self) -> bool:
        """FlashInfer found no nvcc that answers, and took torch's CUDA version for it."""
        return self.resolution is not None and (
            self.resolution.by in ("none", "torch.version.cuda") or self.resolution.version is None
        )


def read_gate(
    case: Case,
    gpus: Gpus | Unknown,
    toolkits: Toolkits | Unknown,
    packages: Packages | Unknown,
    environment: Environment | Unknown,
) -> Gate | None:
    """The state of the check, or None when none of its messages is here."""
    gate_message = case.found("flashinfer-gate")
    symptom = (
        case.found("flashinfer-blames-gpu", "flashinfer-no-target", "flashinfer-sampling-unavailable") or gate_message
    )
    if symptom is None:
        return None
    capability = gpus.capability if isinstance(gpus, Gpus) else None
    is_sm12 = _is_sm12(gpus, gate_message)
    version = packages.version("flashinfer-python") if isinstance(packages, Packages) else None
    resolution = toolkits.resolved_by("flashinfer") if isinstance(toolkits, Toolkits) else None
    if isinstance(resolution, Unknown):
        resolution = None
    needed = gate_message.group("need") if gate_message else _needed(version, capability)
    arch_list = environment.get(ARCH_LIST) if isinstance(environment, Environment) else None
    return Gate(
        symptom=symptom,
        swallowed=case.found("flashinfer-swallowed"),
        gate_message=gate_message,
        capability=capability,
        is_sm12=is_sm12,
        needed=needed,
        resolution=resolution,
        toolkit=_asked_version(case, resolution),
        better=_better_toolkits(toolkits, resolution, needed or "12.9"),
        is_host_searched=isinstance(toolkits, Toolkits) and (toolkits.is_complete or len(toolkits.installs) > 0),
        version=version,
        arch_list=arch_list if isinstance(arch_list, str) else None,
    )


def _is_sm12(gpus: Gpus | Unknown, gate_message: Match | None) -> bool | None:
    if isinstance(gpus, Gpus) and gpus.capabilities:
        return any(capability.startswith("12.") for capability in gpus.capabilities)
    return True if gate_message is not None else None


def _needed(version: str | None, capability: str | None) -> str | None:
    if version is None or capability is None:
        return None
    gate = flashinfer.gate(version, capability)
    return None if gate is None else gate.minimum_toolkit


def _asked_version(case: Case, resolution: Resolution | None) -> str | None:
    """The CUDA version FlashInfer believed in; without any nvcc it is torch's."""
    if resolution is None:
        return None
    if resolution.version is not None:
        return resolution.version
    from gpuwhy.model.host import Torch

    torch = Torch.of(case.facts)
    return torch.cuda if isinstance(torch, Torch) else None


def _better_toolkits(
    toolkits: Toolkits | Unknown, resolution: Resolution | None, needed: str
) -> tuple[ToolkitInstall, ...]:
    if not isinstance(toolkits, Toolkits):
        return ()
    chosen = None if resolution is None else resolution.root
    return tuple(
        install
        for install in toolkits.installs
        if install.has_nvcc and install.version and install.root != chosen and at_least(install.version, needed)
    )


def at_least(version: str, needed: str) -> bool:
    """Compare CUDA releases such as ``12.10`` and ``12.9`` by number."""
    return _numbers(version) >= _numbers(needed)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def interpreter_near(case: Case, match: Match) -> str:
    """The Python of the failing service, from the site-packages its frames stand in; ``python`` when they do not tell."""
    texts = [frame.path for frame in match.frames] + [line.text for line in case.lines_around(match, 60, 20)]
    for text in texts:
        found = re.search(r"(/[\w./+@-]{1,300}?)/lib/python3\.\d+t?/(?:site|dist)-packages/", text)
        if found and found.group(1) not in ("/usr", "/usr/local"):
            return shlex.quote(found.group(1) + "/bin/python")
    return "python3"


def deciding_observations(case: Case, gate: Gate) -> tuple[Missing, ...]:
    """What would settle which of the causes of this message it is; the first asks FlashInfer itself."""
    ask = (
        f"{interpreter_near(case, gate.symptom)} -c 'import torch; from flashinfer.compilation_context import "
        "CompilationContext as C; cc = torch.cuda.get_device_capability(); print(cc); print(C._normalize_cuda_arch(*cc))'"
    )
    missing: list[Missing | None] = []
    if gate.resolution is None:
        missing.append(
            Missing(
                "cuda_toolkit",
                ask,
                "asks FlashInfer itself, in the service's environment, and prints the exception that it hides: "
                "the toolkit, no device, an nvcc that cannot be run, or a capability that really is too old",
            )
        )
    if gate.capability is None:
        missing.append(case.missing("cc", "whether the GPU is SM 12.x at all"))
    if not gate.is_host_searched:
        missing.append(
            case.missing("other_toolkits", "a newer toolkit that is installed but not chosen changes the fix")
        )
    if gate.version is None:
        missing.append(
            case.missing(
                "packages.flashinfer-python", "which releases have this check", "python -m pip show flashinfer-python"
            )
        )
    return tuple(m for m in missing if m is not None)


def chain(case: Case, gate: Gate, gpus: Gpus | Unknown) -> tuple[Link, ...]:
    """From the GPU and the toolkit to the misleading message, each link with its evidence or marked as inferred."""
    needed = gate.needed or "12.9"
    gpu = gpus.evidence[0] if isinstance(gpus, Gpus) and gpus.evidence else None
    if gpu is None and gate.gate_message is not None:
        gpu = case.evidence(gate.gate_message, "the message is only raised for an SM 12.x GPU")
    capability = gate.capability or "12.x"
    context = _installed(case, gate, "compilation_context.py")
    links = [
        Link(f"The GPU has compute capability {capability}", gpu or inferred("an SM 12.x GPU is the usual one")),
        Link(_toolkit_sentence(gate, needed), _toolkit_evidence(case, gate)),
        Link(
            f"CompilationContext._normalize_cuda_arch raises: SM 12.x needs CUDA >= {needed}",
            _shown(case, gate.gate_message, "the text of the exception"),
            source=_check(context, f"requires CUDA >= {needed}"),
        ),
        Link(
            "CompilationContext.__init__ catches every exception and only logs a warning",
            _shown(case, gate.swallowed, "the warning that replaced the exception"),
            is_swallowed=True,
            source=_check(context, "Failed to get device capability"),
        ),
        Link(
            "TARGET_CUDA_ARCHS stays an empty set",
            _detected(case, gate),
            source=_check(context, "TARGET_CUDA_ARCHS = set()"),
        ),
        _last_link(case, gate),
    ]
    return tuple(links)


def _installed(case: Case, gate: Gate, name: str) -> str | None:
    """The path of a file of the installed FlashInfer, from the frames of the failure."""
    frame = case.frame_in(gate.symptom, "/flashinfer/")
    return None if frame is None else frame.path.partition("/flashinfer/")[0] + "/flashinfer/" + name


def _check(path: str | None, text: str) -> SourceCheck | None:
    return None if path is None else SourceCheck(path, text)


def _toolkit_sentence(gate: Gate, needed: str) -> str:
    if gate.resolution is None or gate.toolkit is None:
        return f"The CUDA version that FlashInfer finds is below {needed}"
    if gate.is_without_nvcc:
        return f"FlashInfer finds no usable nvcc and takes torch.version.cuda, {gate.toolkit}, for the toolkit"
    where = f" in {gate.resolution.root}" if gate.resolution.root else ""
    by = f" (by {gate.resolution.by})" if gate.resolution.by else ""
    return f"FlashInfer asks nvcc{where}{by}: CUDA {gate.toolkit}, and needs {needed}"


def _toolkit_evidence(case: Case, gate: Gate) -> Evidence:
    if gate.resolution is not None and gate.resolution.evidence is not None:
        return gate.resolution.evidence
    if gate.gate_message is not None:
        return case.evidence(gate.gate_message, "the check fails only for an older toolkit")
    return inferred("nobody looked which nvcc is used")


def _shown(case: Case, match: Match | None, statement: str) -> Evidence:
    return (
        case.evidence(match, statement)
        if match is not None
        else inferred("not in this log; read in the released source")
    )


def _detected(case: Case, gate: Gate) -> Evidence:
    if (gate.symptom.group("detected") or "").strip() in ("[]", "{}"):
        return case.evidence(gate.symptom, "the message prints the empty set")
    for path, fact in case.facts.group("files").items():
        if "flashinfer" in path and "without an architecture level" in str(fact.value):
            return fact.evidence
    return inferred("follows from the swallowed exception; read in the released source")


def _last_link(case: Case, gate: Gate) -> Link:
    symptom = gate.symptom
    if symptom.sign == "flashinfer-no-target":
        return Link(
            "get_nvcc_flags_list finds no target for the module and raises",
            case.evidence(symptom, "an empty set gives the same message as a module without code for this GPU"),
            source=_check(_installed(case, gate, "compilation_context.py"), "No supported CUDA architectures found"),
        )
    if symptom.sign == "flashinfer-gate":
        return Link("the exception reaches the caller", case.evidence(symptom, "not swallowed on this path"))
    return Link(
        "check_cuda_arch takes 'nothing eligible' for 'too old' and raises a misleading message",
        case.evidence(symptom, "the message blames the GPU"),
        source=_check(_installed(case, gate, "jit/core.py"), "FlashInfer requires GPUs with sm75"),
    )
