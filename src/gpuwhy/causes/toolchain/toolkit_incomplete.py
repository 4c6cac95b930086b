"""toolkit-incomplete: nvcc runs, and a header, library or program of the toolkit is not installed beside it."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.toolchain import _build_site as site
from gpuwhy.causes.toolchain import _toolkit_files as files
from gpuwhy.causes.toolchain._rejected_target import consumer_near
from gpuwhy.knowledge.components import BUILDS_OF_LLAMA
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Resolution, Toolkits
from gpuwhy.model.remedy import NotARemedy, Remedy


class _Part(msgspec.Struct, frozen=True):
    """The part of the toolkit that is not there: what kind of thing, its name, the package that holds it."""

    match: Match
    kind: str
    name: str
    package: str
    since: str | None = None


@cause(
    "toolkit-incomplete",
    family="Toolchain",
    signs=[
        files.HEADER_MISSING,
        says(
            "library-missing-at-link",
            (
                "cannot find -l",
                "unable to find library -l",
                "library not found: ",
                "library not found for -l",
                "cannot open input file",
            ),
            r"(?:cannot find -l|unable to find library -l|library not found for -l|library not found: |cannot open input file ['\"])(?P<library>(?:cu|nv|npp|nccl)[\w-]{1,40})",
        ),
        says(
            "cmake-target-missing",
            ("cuda::", "cudatoolkit", "set to notfound", "could not find cuda"),
            r"\bCUDA::(?P<library>(?!cuda_driver)\w{2,30}?)(?:_static)? but the target was not found|target .{0,60}\"?CUDA::(?P<library2>(?!cuda_driver)\w{2,30})\"? .{0,60}not found"
            r"|\bCUDA_(?P<library3>(?!CUDA_LIBRARY)\w{2,30}?)_LIBRAR(?:Y|IES)\b.{0,40}(?:NOTFOUND|set to NOTFOUND)"
            r"|Could NOT find CUDA(?:Toolkit)? \(missing: [^)]{0,200}CUDA_(?P<library4>CUDART|cudart|CUBLAS|CURAND|CUFFT|CUSPARSE|CUSOLVER)\w*[^)]{0,200}\)",
        ),
        says(
            "tool-missing",
            (
                "cicc",
                "cudafe++",
                "fatbinary",
                "nvlink",
                "bin2c",
                "libdevice",
                "cuobjdump",
                "nvdisasm",
                "ptxas",
                "nvcc: error while loading",
            ),
            r"(?:^|/)(?:nvcc|cicc|ptxas|nvlink|fatbinary|cudafe\+\+): error while loading shared libraries: (?P<own>[\w.+-]{3,80})|(?:^|[\s:'\"/])(?P<tool>cicc|cudafe\+\+|fatbinary|nvlink|bin2c|cuobjdump|nvdisasm|ptxas)['\"]?: (?:command )?not found"
            r"|No such file or directory:? ['\"][^'\"]{0,200}(?P<tool2>cicc|cudafe\+\+|fatbinary|nvlink|cuobjdump|nvdisasm|bin/ptxas)['\"]"
            r"|(?P<tool3>cuobjdump|nvdisasm) (?:not found|is not installed|could not be found)|(?:cannot|could not|can't|couldn't) find (?P<tool4>cuobjdump|nvdisasm|ptxas|libdevice)"
            r"|(?P<tool5>libdevice)(?:\.10\.bc)? (?:is required .{0,60}not found|not found)|Missing (?P<tool6>libdevice) file",
        ),
        says(
            "nvcc-not-executable",
            ("permission denied", "nvcc"),
            r"Permission denied:? ['\"]?(?P<path>[^\s'\"]{1,200}/nvcc)|(?P<path2>[^\s'\":]{1,200}/nvcc)['\"]?:? Permission denied",
        ),
    ],
)
def toolkit_incomplete(case: Case, tools: Toolkits | Unknown) -> Judgement:
    """nvcc is installed and runs, but a header, library or helper program of the CUDA toolkit is not there.

    How it shows itself
      A compile that stops at an include: `fatal error: curand_kernel.h: No such file or directory`, also cublas_v2.h,
      cusolverDn.h, cusparse.h, nvrtc.h, nvToolsExt.h, cuda_profiler_api.h, thrust/..., cub/...; NVRTC's `cannot open
      source file "cuda_fp16.h"`. Or a link step: `cannot find -lcudart`, `cannot find -lcublasLt`. Or nvcc's own
      helpers: `cicc: not found`, `cuobjdump: not found`.

    Why it happens
      Someone installed only the compiler to keep an image small (cuda-nvcc and cuda-cudart-dev), took nvcc from conda
      or from pip packages, which split the toolkit into a dozen parts, or uses a serving image that carries nvcc for
      its own JIT but not every `-dev` package. JIT libraries include more than they need themselves: FlashInfer's
      sampling kernels include curand, its CUTLASS kernels curand_kernel.h.

    How to be sure
      Which package the file belongs to: curand*.h is libcurand-dev-<major>-<minor>, cublas*.h libcublas-dev, cuda/std,
      thrust and cub cuda-cccl. Then that it is nowhere: `find / -name curand_kernel.h -not -path '/proc/*'`. If it lies
      under another CUDA root, only the path is wrong.

    What helps
      That one package, in the release of the nvcc that is used; or a `-devel` image. Where a prebuilt package of the
      kernels exists (flashinfer-jit-cache) nothing has to be compiled.

    What does not help
      Another nvcc, the GPU's driver, or TORCH_CUDA_ARCH_LIST; the run-time package without -dev; a package name such
      as cuda-curand-dev, which does not exist (it is libcurand-dev).

    Not to be confused with
      python-headers-missing (Python.h), download-blocked (BatchedGemmEnums.h and other files FlashInfer downloads),
      toolkit-path-wrong (the file is there, under another root), libcuda-not-linkable (-lcuda is the driver's),
      toolkit-too-old-for-library (cuda_fp8.h came with 11.8, cuda_fp4.h with 12.8), toolkit-missing (no nvcc at all).
    """
    part = _header(case) or _library(case) or _tool(case)
    if part is None:
        return _unusable_nvcc(case)
    resolution = tools.resolved_by(consumer_near(case, part.match)) if isinstance(tools, Toolkits) else None
    used = resolution.version if isinstance(resolution, Resolution) else None
    excluded = _excluded(case, part, used)
    return excluded if excluded is not None else _verdict(case, part, used)


# What is missing -----------------------------------------------------------------------------------------------------


def _header(case: Case) -> _Part | None:
    missing = files.missing_header(case)
    if missing is None:
        return None
    return _Part(missing.match, "header", missing.name, missing.package, missing.since)


def _library(case: Case) -> _Part | None:
    for match in case.all("library-missing-at-link", "cmake-target-missing"):
        name = next((match.groups[g] for g in ("library", "library2", "library3", "library4") if g in match.groups), "")
        package = files.package_of_library(name) or files.package_of_library(name.lower())
        if package is not None:
            return _Part(match, "library", f"lib{name}", package)
    return None


def _tool(case: Case) -> _Part | None:
    match = case.found("tool-missing")
    if match is None or "/triton/backends/" in match.text:
        return None
    own = match.group("own")
    if own is not None:
        return _Part(match, "library", own, "cuda-nvvm" if "nvvm" in own else "cuda-nvcc")
    name = next((value for group, value in match.groups.items() if group.startswith("tool")), "").rpartition("/")[2]
    return _Part(match, "program", name, files.TOOLS.get(name.lower(), "cuda-nvcc"))


def _excluded(case: Case, part: _Part, used: str | None) -> RuledOut | None:
    """Facts by which the part is not simply absent."""
    quoted = case.evidence(part.match, f"{part.name} is not found")
    if part.since is not None and used is not None and _older(used, part.since):
        return RuledOut(
            f"{part.name} came with CUDA {part.since}, and CUDA {used} is used: no package of it holds the file",
            (quoted,),
        )
    for path, fact in case.facts.group("files").items():
        is_it = path.rpartition("/")[2].split(".so")[0] in (part.name.rpartition("/")[2], part.name)
        if is_it and fact.value not in (None, "", False, "absent", "missing"):
            return RuledOut(f"the file is there, at {path}: it is only not looked for there", (quoted, fact.evidence))
    if case.facts.value("cuda_toolkit", "") is None and part.name in files.CORE_HEADERS:
        return RuledOut("no nvcc is installed at all", (quoted,))
    return None


def _older(version: str, other: str) -> bool:
    def numbers(text: str) -> tuple[int, ...]:
        return tuple(int(n) for n in re.findall(r"\d+", text)[:2])

    return numbers(version) < numbers(other)


# The verdict -------------------------------------------------------------------------------------------------------------


def _verdict(case: Case, part: _Part, used: str | None) -> Verdict:
    component = site.builder(case, part.match, "flashinfer" if case.engine in site.ENGINES else None)
    quoted = case.evidence(part.match, f"the {part.kind} {part.name} is not found")
    is_core = part.name in files.CORE_HEADERS or part.name == "libcudart"
    shows_nvcc = used is not None or site.runs_nvcc(case, part.match)
    certainty = Certainty.LIKELY if shows_nvcc or not is_core else Certainty.POSSIBLE
    if part.since is not None and used is None:
        certainty = Certainty.POSSIBLE
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{part.name} is not installed: the toolkit{' ' + used if used else ''} here has a compiler but not {part.package}",
        chain=(
            Link(f"{part.package} of the CUDA toolkit is not installed", _searched(case, part)),
            Link(f"{component or 'the build'} needs {part.name} from it", quoted),
            Link("the compile or link step stops there", quoted),
        ),
        evidence=(quoted,),
        explains=site.explained_by(case, part.match),
        missing=_what_decides(case, part, used),
        rivals=_rivals(part, shows_nvcc),
        remedies=_remedies(case, part, used, component),
        not_remedies=(
            NotARemedy(
                f"the run-time package ({part.package.replace('-dev', '')} without -dev)",
                "it holds no headers and no linker names",
            ),
            NotARemedy("another driver, or another list of GPU architectures", "nothing depends on the GPU here"),
        ),
        notes=_notes(case, part, component),
        strength=74 if part.kind == "header" and not is_core else 66,
    )


def _searched(case: Case, part: _Part) -> Evidence:
    for path, fact in case.facts.group("files").items():
        if path.endswith(part.name) and fact.value in (None, "", False, "absent", "missing"):
            return fact.evidence
    return inferred("the compiler searched its own folders only")


def _rivals(part: _Part, shows_nvcc: bool) -> tuple[str, ...]:
    rivals = ["toolkit-path-wrong"]
    if part.since is not None:
        rivals.append("toolkit-too-old-for-library")
    if not shows_nvcc:
        rivals.append("toolkit-missing")
    return tuple(rivals)


def _what_decides(case: Case, part: _Part, used: str | None) -> tuple[Missing, ...]:
    file = part.name.rpartition("/")[2] + ("*" if part.kind == "library" else "")
    asked = [
        case.missing(
            f"files./usr/local/cuda/include/{part.name}"
            if part.kind == "header"
            else f"files./usr/local/cuda/lib64/{part.name}.so",
            "if the file lies under another root, only the path is wrong",
            f"find / -name '{file}' -not -path '/proc/*' 2>/dev/null",
        )
    ]
    if used is None:
        asked.append(case.missing("cuda_toolkit", "the package must be of the same release as nvcc"))
        asked.append(case.missing("other_toolkits", "a complete toolkit elsewhere would do"))
    return tuple(m for m in asked if m is not None)


def _remedies(case: Case, part: _Part, used: str | None, component: str | None) -> tuple[Remedy, ...]:
    is_separate = part.package in ("libcudnn9-dev", "libnccl-dev")
    suffix = "" if is_separate else files.release_suffix(used)
    name = part.package + suffix
    named = name if suffix or is_separate else f"{name}-<major>-<minor> of the release of nvcc"
    elsewhere = f"RHEL: {part.package.replace('-dev', '-devel')}{suffix}; conda: {part.package} of the nvidia channel"
    return (
        *(_of_torchs_packages(part, component) if is_separate else ()),
        Remedy(
            kind="system-package",
            name=name,
            value="" if suffix or is_separate else "match:cuda",
            summary=f"Install {named}, which holds {part.name} ({elsewhere})",
            commands=(f"apt-get install -y --no-install-recommends {name}",) if suffix or is_separate else (),
            undo=(f"apt-get remove {name}",) if suffix or is_separate else (),
            cost="tens to hundreds of MB; NVIDIA's package repository must be configured",
            check=(f"find /usr/local/cuda/ -name '{part.name.rpartition('/')[2]}*' | head -1",),
        ),
        *site.devel_image(case, part.match, "it holds every header and library of the toolkit"),
        *(() if is_separate else (_whole_toolkit(used),)),
    )


def _of_torchs_packages(part: _Part, component: str | None) -> tuple[Remedy, ...]:
    """torch's wheels bring cuDNN and NCCL with their headers, in a folder that no compiler looks into by itself."""
    if part.kind != "header" or component in BUILDS_OF_LLAMA or component in ("onnxruntime", "ctranslate2"):
        return ()
    library = "cudnn" if "cudnn" in part.package else "nccl"
    is_asked = component == "transformer-engine" and library == "cudnn"
    folder = f"site-packages/nvidia/{library}"
    return (
        Remedy(
            kind="env",
            name="CUDNN_PATH" if is_asked else "CPATH",
            value=folder if is_asked else f"{folder}/include",
            summary=f"Point the build at the {part.name} that came with torch's pip packages ({folder}/include)",
            check=(f"python -c 'import nvidia.{library} as n; print(n.__path__[0])'",),
            limits=("a torch of conda or of NVIDIA's image has its headers elsewhere",),
            is_sure=False,
        ),
    )


def _whole_toolkit(used: str | None) -> Remedy:
    return Remedy(
        kind="toolkit", name="cuda", value=used or "match:torch", rank=20, risk="medium",
        summary=f"Or install the complete toolkit{' of CUDA ' + used if used else ' of the release of nvcc'}, and point CUDA_HOME at it",
        cost="2 to 6 GB of disk",
    )  # fmt: skip


def _notes(case: Case, part: _Part, component: str | None) -> tuple[str, ...]:
    notes = []
    if component == "flashinfer":
        notes.append(
            "flashinfer-jit-cache of the same FlashInfer release brings most modules compiled, so that fewer are built here."
        )
        if case.engine == "vllm" and "sampling" in part.match.text:
            notes.append("Until then VLLM_USE_FLASHINFER_SAMPLER=0 keeps vLLM away from this module.")
    if part.package.startswith("libcu") and part.kind == "header":
        notes.append(
            "torch's pip packages may hold the header too (site-packages/nvidia/*/include): CPATH makes the compiler look there."
        )
    return tuple(notes)


def _unusable_nvcc(case: Case) -> Judgement:
    """nvcc is installed, and this user may not execute it; FlashInfer swallows that and is left without a target."""
    match = case.found("nvcc-not-executable")
    if match is None:
        return None
    path = match.group("path") or match.group("path2") or "nvcc"
    quoted = case.evidence(match, "the program exists and may not be executed")
    return Verdict(
        certainty=Certainty.LIKELY,
        component=site.builder(case, match, "flashinfer"),
        title=f"{path} exists, but may not be executed by this user",
        chain=(Link(f"{path} lacks the right to be executed, or its file system is mounted noexec", quoted), Link("whoever asks it for its version fails", quoted)),
        evidence=(quoted,),
        explains=site.explained_by(case, match),
        missing=tuple(m for m in (case.missing(f"files.{path}", "owner and mode of the program", f"ls -lL {path}; findmnt -T {path}"),) if m) if re.fullmatch(r"[\w./+-]+", path) else (),
        rivals=("toolkit-path-wrong",),
        remedies=(Remedy(kind="files", name=path, value="executable", summary="Let the service's user execute nvcc (mode 755, folders too), or run the service as a user who may"),),
        strength=60,
    )  # fmt: skip
