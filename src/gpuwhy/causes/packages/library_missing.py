"""library-missing: a shared library that no Python package brings is not installed on the system."""

from __future__ import annotations

from gpuwhy.causes._case import Case, derived, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.causes.packages._missing_objects import CANNOT_OPEN, MissingLibrary, missing_libraries
from gpuwhy.knowledge.shared_libraries import (
    CudaLibrary,
    SystemPackage,
    cuda_library,
    is_driver_library,
    is_torch_library,
    system_package,
    wheel_for,
)
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, RuledOut, Verdict
from gpuwhy.model.host import Torch
from gpuwhy.model.loading import Loadings
from gpuwhy.model.remedy import NotARemedy, Remedy

_FILE_LISTS = "documented: file lists of the distributions' packages"


_ON_WINDOWS = says(
    "module-missing-on-windows",
    ("specified module could not be found", "winerror 126", "(or one of its dependencies)", "winerror 1114"),
    r"Could not find module '(?P<path2>[^']{3,260})' \(or one of its dependencies\)|(?:DLL load failed(?: while importing (?P<module>\w{1,60}))?.{0,40}|WinError 126\].{0,10})[Tt]he specified module could not be found(?:.{0,40}?[Ee]rror loading \"?(?P<path>[^\"\s]{3,200}))?"
    r"|WinError 1114\].{0,120}?initialization routine failed.{0,40}?(?:[Ee]rror loading \"(?P<path3>[^\"]{3,260}))?",
)


@cause("library-missing", family="Packages", signs=[CANNOT_OPEN, _ON_WINDOWS])
def library_missing(case: Case, torch: Torch | Unknown) -> Judgement:
    """A shared library that no Python package provides is not installed on the system.

    How it shows itself
      `ImportError: libnuma.so.1: cannot open shared object file: No such file or directory`, `error while loading shared
      libraries: libgomp.so.1`, `OSError: sndfile library not found`. SGLang hides it in `Could not load any common_ops
      library!`, OpenCV raises it for libGL.so.1, torchcodec for libavcodec, TensorRT-LLM for libmpi.so.40.

    Why it happens
      Wheels bring what their authors packed, and take the rest from the system. Slim images (python:3.12-slim,
      debian-slim, ubuntu) leave out libnuma, libGL, libgomp, RDMA and MPI libraries, ffmpeg.

    How to be sure
      `ldd FILE.so | grep "not found"` for the binary that does not load; `ldconfig -p | grep NAME`.

    What helps
      The distribution's package (apt-get install libnuma1, dnf install numactl-libs ...), in the image and not in the
      running container.

    What does not help
      Reinstalling or upgrading the Python package: no wheel holds the library. A symbolic link from another number.

    Not to be confused with
      cuda-major-mismatch (libcudart, libnvrtc, libcublas ... with a number), container-gpu-not-passed (libcuda.so.1,
      libnvidia-ml.so.1), libcuda-not-linkable (a linker says it), abi-mismatch (the library is there, a symbol is not).
    """
    for missing in missing_libraries(case):
        if is_driver_library(missing.library) or is_torch_library(missing.library):
            continue
        if _OF_TOOLKIT.search(missing.match.text):
            continue
        cuda = cuda_library(missing.library)
        judged = _cuda(case, missing, cuda, torch) if cuda is not None else _system(case, missing)
        if judged is not None:
            return judged
    return _on_windows(case)


_OF_TOOLKIT = lazy_pattern(
    r"(?:^|/)(?:nvcc|cicc|ptxas|nvlink|fatbinary|cudafe\+\+): error while loading shared libraries"
)
"""A program of the CUDA toolkit without its own library: the toolkit is installed in part (toolkit-incomplete)."""


def _on_windows(case: Case) -> Judgement:
    """Windows names the library that does not load, and not the one that it misses."""
    match = case.found(_ON_WINDOWS.name)
    if match is None or match.is_code:
        return None
    component = (
        parts.component_of(match.group("path") or match.group("path2") or match.group("path3"))
        or parts.component_of(match.group("module"))
        or parts.imported_by_last_frame(match)
        or case.component_near(match, case.engine or None)
    )
    quoted = case.evidence(match, "a library that it depends on is not found; Windows does not say which")
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component=component,
        title=f"A library that {component or 'a compiled extension'} depends on is not installed",
        chain=(Link("A run-time library is missing (mostly that of Visual C++, or those of another CUDA)", inferred("Windows does not name it")), Link("the extension does not load", quoted)),
        evidence=(quoted,),
        explains=case.explains(match),
        missing=tuple(m for m in (case.missing("torch_cuda", "whether the extension was built for another CUDA"),) if m is not None),
        rivals=("cuda-major-mismatch", "abi-mismatch"),
        remedies=(
            Remedy(kind="system-package", name="vc-redist", summary="Install the current Visual C++ Redistributable (x64)"),
            Remedy(kind="package", name=parts.distribution_of(component or "torch"), value="match:torch", summary="Or the build for the installed torch and its CUDA"),
        ),
        strength=50,
    )  # fmt: skip


def _system(case: Case, missing: MissingLibrary) -> Judgement:
    match, library = missing.match, missing.library
    package = system_package(library.stem)
    quoted = case.evidence(match, f"the loader finds no {library.name}")
    there = _installed(case, library.name)
    if there is not None:
        return RuledOut(f"{library.name} is installed at {there}", (quoted,))
    searched = Loadings.of(case.facts).missing(library.name)
    seen = (searched[1],) if searched is not None else ()
    own = parts.component_of(library.name)
    if package is None and own not in (None, "cuda-toolkit", "driver"):
        return _own_library(case, missing, own)
    component = missing.component
    name = component or "the program"
    bring = derived(f"{library.name} is in {package.debian} (Debian, Ubuntu) or {package.fedora or 'no package'} (Fedora, RHEL)", _FILE_LISTS) if package else inferred("which package holds it is not known here")  # fmt: skip
    is_shown = package is not None or searched is not None
    certainty = Certainty.PROVEN if is_shown and missing.is_event else Certainty.LIKELY if missing.is_event else Certainty.POSSIBLE  # fmt: skip
    certainty = parts.capped(case, match, certainty)
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{library.name}, a library of the system that {name} needs, is not installed",
        chain=(
            Link(f"The system has no {library.name}{f' ({package.what})' if package and package.what else ''}", seen[0] if seen else bring),
            Link(f"{name} is linked against it, and its wheel does not hold it", quoted),
        ),
        evidence=(quoted, *seen),
        explains=case.explains(match),
        remedies=_system_remedies(library.name, package),
        not_remedies=(
            NotARemedy(f"reinstalling {name}", "no wheel of it holds the library"),
            NotARemedy("a symbolic link from a library of another number", "the number stands for the library's interface"),
        ),
        rivals=() if package is not None else ("package-conflict",),
        strength=84 if package is not None else 58,
    )  # fmt: skip


def _system_remedies(name: str, package: SystemPackage | None) -> tuple[Remedy, ...]:
    if package is None:
        return (
            Remedy(kind="system-package", name=name, value="", summary=f"Install the package that holds {name}", commands=(f"apt-file search {name}",), is_sure=False),
        )  # fmt: skip
    return (
        Remedy(
            kind="system-package", name=package.debian,
            summary=f"Install {package.debian} (Debian, Ubuntu){f'; on Fedora and RHEL {package.fedora}' if package.fedora else ''}",
            commands=(f"apt-get update && apt-get install -y --no-install-recommends {package.debian}",),
            undo=(f"apt-get remove {package.debian}",), check=(f"ldconfig -p | grep {name}",),
            cost="a few MB; in a container it belongs into the image",
        ),
    )  # fmt: skip


def _own_library(case: Case, missing: MissingLibrary, component: str | None) -> Judgement:
    """A library of a project's own that the loader is not told of (llama.cpp's shared build, TensorRT)."""
    name = missing.library.name
    quoted = case.evidence(missing.match, f"the loader finds no {name}, which is {component}'s own")
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component=component,
        title=f"{name}, a part of {component}, is not installed or not looked for where it is",
        chain=(Link(f"{component} is installed in part, or its folder is not searched", quoted),),
        evidence=(quoted,),
        explains=case.explains(missing.match),
        missing=tuple(m for m in (case.missing("env.LD_LIBRARY_PATH", f"whether the folder of {name} is in it"),) if m is not None),
        rivals=("package-conflict", "abi-mismatch"),
        remedies=(
            Remedy(kind="env", name="LD_LIBRARY_PATH", value=f"the folder that holds {name}", is_sure=False, summary=f"Name the folder that holds {name}", commands=(f"find / -name '{name}*' 2>/dev/null",)),
            Remedy(kind="package", name=parts.distribution_of(component or name), value="reinstall", summary=f"Or install {component} anew, with all its libraries"),
        ),
        strength=52,
    )  # fmt: skip


def _cuda(case: Case, missing: MissingLibrary, cuda: CudaLibrary, torch: Torch | Unknown) -> Judgement:
    """A library of CUDA's whose number fits torch (or is none of CUDA's own): a wheel of NVIDIA's is not there."""
    major = int(torch.cuda.partition(".")[0]) if isinstance(torch, Torch) and torch.cuda else None
    if cuda.cuda_majors and (major is None or major not in cuda.cuda_majors):
        return None
    if missing.library.stem.startswith("cudnn") and major is None:
        return None
    wheel = wheel_for(cuda, major or 12)
    quoted = case.evidence(missing.match, f"the loader finds no {missing.library.name}")
    component = missing.component or "torch"
    searched = Loadings.of(case.facts).missing(missing.library.name)
    seen = (searched[1],) if searched is not None else ()
    folder = searched[0].beside.rpartition("/")[0] if searched is not None else ""
    shown = Certainty.PROVEN if searched is not None and missing.is_event else Certainty.POSSIBLE
    return Verdict(
        certainty=parts.capped(case, missing.match, shown),
        component=component,
        title=f"{missing.library.name} fits this CUDA, and is not installed or not looked for where it is",
        chain=(
            Link(f"It lies in {folder}, where the loader does not look" if folder else f"The wheel that holds it ({wheel}) is not installed, or the binary does not look into its folder", seen[0] if seen else quoted),
            *((Link(f"{component} does not load", quoted),) if seen else ()),
        ),
        evidence=(quoted, *seen, *(torch.evidence[:1] if isinstance(torch, Torch) else ())),
        explains=case.explains(missing.match),
        missing=tuple(m for m in (case.missing(f"packages.{wheel}", "whether the library is there", f"python -m pip show -f {wheel}"),) if m is not None),
        rivals=() if seen else ("cuda-major-mismatch", "package-conflict"),
        remedies=(
            *((Remedy(kind="env", name="LD_LIBRARY_PATH", value=folder, summary=f"Name the folder in which {missing.library.name} lies"),) if folder else ()),
            Remedy(kind="package", name=wheel, value="match:torch" if torch else "", rank=1 if folder else 0, summary=f"Install the wheel with {missing.library.name}; a binary that is not torch's finds it only when LD_LIBRARY_PATH names its lib folder below site-packages/nvidia", check=(f"python -m pip show -f {wheel}",)),
        ),
        strength=80 if seen else 50,
    )  # fmt: skip


def _installed(case: Case, name: str) -> str | None:
    """Where the facts say that the library is."""
    for path, fact in case.facts.group("files").items():
        if path.rpartition("/")[2] == name and fact.value not in (None, "", False, "absent", "missing"):
            return path
    return None
