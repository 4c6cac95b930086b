"""toolkit-torch-mismatch: an extension build refuses, because nvcc and torch are of different CUDA versions."""

from __future__ import annotations

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.toolchain import _build_site as site
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Toolkits, Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

_VERSION = r"\d{1,2}\.\d{1,2}"


@cause(
    "toolkit-torch-mismatch",
    family="Toolchain",
    signs=[
        says(
            "torch-refuses",
            "detected cuda version",
            rf"detected CUDA version \(?(?:(?P<nvcc>{_VERSION})(?:\.\d+)?|%s)\)? ?mismatches the version that was used to compile ?(?:PyTorch ?\(?(?:(?P<torch>{_VERSION})|%s))?"
            rf"(?:.{{0,120}}?['\"](?P<nvcc2>{_VERSION})(?:\.\d+)?['\"], ?['\"](?P<torch2>{_VERSION}))?",
        ),
        says(
            "builder-refuses",
            (
                "does not match the version",
                "does not match with the version",
                "cuda version mismatch",
                "cudamismatchexception",
                "that does not match the version used to compile pytorch",
            ),
            rf"(?:Installed |system |The )?CUDA version(?: on the system)? \(?(?P<nvcc>{_VERSION})\)? does not match (?:with )?the version \(?(?:(?P<torch>{_VERSION})\)? )?torch was (?:compiled|built) with(?: (?P<torch2>{_VERSION}))?"
            rf"|extensions are being compiled with a version of Cuda that does not match the version used to compile Pytorch(?: binaries)?\.?(?:.{{0,80}}?compiled with Cuda (?P<torch3>{_VERSION}))?"
            rf"|CUDA version mismatch.{{0,60}}?nvcc.{{0,20}}?(?P<nvcc2>{_VERSION}).{{0,40}}?torch.{{0,20}}?(?P<torch4>{_VERSION})"
            rf"|CUDA version mismatch.{{0,60}}?torch.{{0,20}}?(?P<torch5>{_VERSION}).{{0,40}}?nvcc.{{0,20}}?(?P<nvcc3>{_VERSION})",
        ),
        says(
            "pytorch-binaries",
            "pytorch binaries were compiled with cuda",
            rf"Pytorch binaries were compiled with Cuda (?P<torch>{_VERSION})",
        ),
        says(
            "nvcc-release", "cuda compilation tools, release", rf"Cuda compilation tools, release (?P<nvcc>{_VERSION})"
        ),
    ],
)
def toolkit_torch_mismatch(case: Case, tools: Toolkits | Unknown, torch: Torch | Unknown) -> Judgement:
    """A build of a torch extension refuses to start: nvcc is of another CUDA version than the installed torch.

    How it shows itself
      `The detected CUDA version (12.8) mismatches the version that was used to compile PyTorch (13.0)`, also printed as
      a tuple with `%s` and the two versions behind it; DeepSpeed's `Installed CUDA version 12.1 does not match the
      version torch was compiled with 11.7`; apex's `Cuda extensions are being compiled with a version of Cuda that does
      not match the version used to compile Pytorch binaries`.

    Why it happens
      The pip wheel of torch brings the run-time libraries of its own CUDA, and the machine has the toolkit of another
      major version. An extension built by it would be linked against the other libcudart. torch's builder compares the
      two and stops at a different major; a different minor is only a warning. With pip's build isolation the torch
      that is compared is a fresh one from the index, and not the one you have installed.

    How to be sure
      Both versions are in the message: the first is nvcc's, the second torch's. The CUDA version that nvidia-smi prints
      is the driver's limit and has no part in it. Look whether a toolkit of torch's major is installed already:
      `ls -d /usr/local/cuda*/bin/nvcc`.

    What helps
      CUDA_HOME with a toolkit of torch's major; a torch built for the toolkit's CUDA; a published wheel of the
      extension for the installed torch. With build isolation: `pip install --no-build-isolation`.

    What does not help
      Another driver, TORCH_CUDA_ARCH_LIST, deleting the check from torch: the built module then fails when it is loaded.

    Not to be confused with
      toolkit-path-wrong (a matching toolkit is installed and not chosen), cuda-major-mismatch (the same conflict in a
      finished binary, when it is loaded), abi-mismatch.
    """
    match = _decisive(case)
    if match is None:
        return None
    nvcc, built = _versions(case, match, torch)
    matching = _matching_toolkit(tools, nvcc, built)
    quoted = case.evidence(match, "the builder compares the two and stops")
    if matching is not None:
        return RuledOut(f"a toolkit of torch's CUDA major is installed at {matching}: it is only not chosen", (quoted,))
    component = site.builder(case, match, "torch")
    is_direct = match.sign == "torch-refuses" or "does not match" in match.text
    both = nvcc is not None and built is not None
    is_searched = isinstance(tools, Toolkits) and (tools.is_complete or bool(tools.installs))
    certainty = Certainty.PROVEN if both and is_searched else Certainty.LIKELY
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"nvcc is of CUDA {nvcc or 'another version'}, torch was built with {built or 'another'}: {component or 'the extension'} is not built",
        chain=(
            Link(f"The toolkit that is used is CUDA {nvcc or '(version not in the log)'}", quoted if nvcc else inferred("its version is not printed")),
            Link(f"torch was built with CUDA {built or '(version not in the log)'}", quoted if built else _torch_evidence(torch)),
            Link("torch's extension builder refuses to mix two major versions", quoted),
        ),
        evidence=(quoted, *(torch.evidence if isinstance(torch, Torch) else ())),
        explains=site.explained_by(case, match),
        missing=() if is_searched else _what_decides(case),
        rivals=() if is_searched else ("toolkit-path-wrong",),
        remedies=_remedies(case, component, nvcc, built, torch),
        not_remedies=(
            NotARemedy("another driver", "the CUDA version in the header of nvidia-smi takes no part in the check"),
            NotARemedy("removing the check from torch/utils/cpp_extension.py", "the module then needs two releases of libcudart when it is loaded"),
        ),
        notes=_notes(case, match),
        strength=88 if is_direct and both else 78,
    )  # fmt: skip


def _decisive(case: Case) -> Match | None:
    """The line of the refusal; torch's note on a mere minor difference is none, and stops nothing."""
    for match in case.all("torch-refuses", "builder-refuses"):
        if "minor version mismatch" not in match.text and not match.is_code:
            return match
    return None


def _versions(case: Case, match: Match, torch: Torch | Unknown) -> tuple[str | None, str | None]:
    """nvcc's and torch's CUDA version: from the message, else from lines beside it, else from the facts."""
    nvcc = next((v for g, v in match.groups.items() if g.startswith("nvcc")), None)
    built = next((v for g, v in match.groups.items() if g.startswith("torch")), None)
    if nvcc is None and (beside := case.found("nvcc-release")):
        nvcc = beside.group("nvcc")
    if built is None and (beside := case.found("pytorch-binaries")):
        built = beside.group("torch")
    if built is None and isinstance(torch, Torch):
        built = torch.cuda
    return nvcc, built


def _matching_toolkit(tools: Toolkits | Unknown, nvcc: str | None, built: str | None) -> str | None:
    if not isinstance(tools, Toolkits) or built is None:
        return None
    for install in tools.installs:
        is_of_torch = (install.version or "").partition(".")[0] == built.partition(".")[0]
        if install.has_nvcc and install.version != nvcc and is_of_torch:
            return install.root
    return None


def _torch_evidence(torch: Torch | Unknown) -> Evidence:
    return (
        torch.evidence[0]
        if isinstance(torch, Torch) and torch.evidence
        else inferred("torch's CUDA version is not printed")
    )


def _what_decides(case: Case) -> tuple[Missing, ...]:
    asked = (
        case.missing(
            "other_toolkits", "a toolkit of torch's CUDA major that is installed already only has to be chosen"
        ),
        case.missing("cuda_home", "which toolkit the build was sent to", "echo $CUDA_HOME; command -v nvcc"),
    )
    return tuple(m for m in asked if m is not None)


def _remedies(
    case: Case, component: str | None, nvcc: str | None, built: str | None, torch: Torch | Unknown
) -> tuple[Remedy, ...]:
    is_isolated = any("pip-build-env-" in line.text for _, line in case.lines())
    same_major = nvcc is not None and built is not None and nvcc.partition(".")[0] == built.partition(".")[0]
    remedies = [
        Remedy(
            kind="env", name="CUDA_HOME", value=f"{built} toolkit" if built else "toolkit of torch's CUDA",
            summary=f"Build with a toolkit of CUDA {built or 'torch has'}: point CUDA_HOME at it, and its bin first on PATH",
            cost="a toolkit of that release must be installed", is_sure=False, check=("$CUDA_HOME/bin/nvcc --version",),
        ),
        *site.prebuilt_wheel(component, torch),
        _torch_for(nvcc),
        site.toolkit(built or "match:torch", "torch's own release", torch),
    ]  # fmt: skip
    if is_isolated:
        remedies.insert(0, Remedy(
            kind="flag", name="--no-build-isolation", value="set",
            summary="Let pip build against the installed torch, and not against a fresh one from the index",
        ))  # fmt: skip
    if component == "deepspeed" and same_major:
        remedies.insert(0, Remedy(
            kind="env", name="DS_SKIP_CUDA_CHECK", value="1",
            summary="DeepSpeed: accept a toolkit of the same major version",
        ))  # fmt: skip
    return tuple(remedies)


def _torch_for(nvcc: str | None) -> Remedy:
    """The torch that was built for the toolkit's CUDA."""
    index = f" (the package index named cu{nvcc.replace('.', '')}, or the nearest of that major)" if nvcc else ""
    return Remedy(
        kind="package",
        name="torch",
        value=f"CUDA {nvcc.partition('.')[0]}.x build" if nvcc else "build for the toolkit's CUDA",
        summary=f"Install the torch build for the toolkit's CUDA{index}",
        cost="every other extension that was built for the present torch must be replaced too",
        risk="medium",
        rank=5,
    )


def _notes(case: Case, match: Match) -> tuple[str, ...]:
    if "%s" in match.text:
        return ("In the tuple the first version is nvcc's, the second torch's.",)
    if any("pip-build-env-" in line.text for line in case.lines_around(match, 200, 40)):
        return (
            "pip builds in an environment of its own: the torch in the message is the one it has fetched for the build.",
        )
    return ()
