"""cuda-major-mismatch: a binary wants the libraries of another CUDA major version than the environment has."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, derived, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.causes.packages._missing_objects import CANNOT_OPEN, MissingLibrary, missing_libraries
from gpuwhy.knowledge import components
from gpuwhy.knowledge.shared_libraries import CudaLibrary, cuda_library, parse, wheel_for
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, RuledOut, Verdict
from gpuwhy.model.host import Torch
from gpuwhy.model.loading import Loadings
from gpuwhy.model.remedy import NotARemedy, Remedy

_MAJOR_SEEN = lazy_pattern(
    r"\+cu(?P<build>1[1-4])\d\b|nvidia/cu(?P<folder>1[1-4])/|-cu(?P<wheel>1[1-4])\b|torch\.version\.cuda:? ?'?(?P<torch>1[1-4])\.|"
    r"CUDA used to build PyTorch ?: (?P<env>1[1-4])\.|\b(?:only|is|has|with) CUDA (?P<said>1[1-4])(?:\.\d)?\b|/cuda-(?P<root>1[1-4])\.\d{1,2}/",
    re.IGNORECASE,
)
_OLDEST = 9


@cause("cuda-major-mismatch", family="Packages", signs=[CANNOT_OPEN])
def cuda_major_mismatch(case: Case, torch: Torch | Unknown) -> Judgement:
    """A finished binary is linked against the libraries of another CUDA major version than the environment provides.

    How it shows itself
      `ImportError: libnvrtc.so.12: cannot open shared object file` (libcudart, libcublas, libcublasLt, libcufft ... with a
      number) while the environment has CUDA 13, or the reverse (`libcudart.so.13`, `libcudart.so.11.0`). SGLang hides it in
      `Could not load any common_ops library`, ONNX Runtime in `Failed to load library libonnxruntime_providers_cuda.so`,
      CTranslate2 in `Library libcublas.so.12 is not found or cannot be loaded`.

    Why it happens
      Packages publish wheels per CUDA major; the default index holds one of them, and an installer takes it without regard
      to torch's CUDA. torch brings CUDA libraries of its own major only, so the other number exists nowhere. cuDNN counts for
      itself: 8 up to torch 2.3, 9 from torch 2.4 on.

    How to be sure
      `python -c "import torch; print(torch.version.cuda)"` against the number behind `.so.` (libcufft.so.11 belongs to
      CUDA 12, libcusolver.so.11 to CUDA 11 and 12, libcurand.so.10 to all).

    What helps
      The package's build for torch's CUDA (often on an index of the project: cu130, cu126 ...); a torch of the other CUDA;
      NVIDIA's wheel with the missing library and its folder on LD_LIBRARY_PATH.

    What does not help
      `pip install --upgrade` of the package as its message proposes: it fetches the same wheel again. A link from one
      number to another (`ln -s libcudart.so.13 libcudart.so.12`): the functions differ. Another driver.

    Not to be confused with
      library-missing (a library of the system), toolkit-torch-mismatch (the same conflict while something is built),
      abi-mismatch (the library is there, a function is not), container-gpu-not-passed (libcuda.so.1).
    """
    for missing in missing_libraries(case):
        library = cuda_library(missing.library)
        if library is not None and missing.library.stem not in (
            "nccl",
            "nvshmem_host",
            "cusparseLt",
            "cudss",
            "cufile",
        ):
            return _judge(case, missing, library, torch)
    return None


def _judge(case: Case, missing: MissingLibrary, library: CudaLibrary, torch: Torch | Unknown) -> Judgement:
    match = missing.match
    quoted = case.evidence(match, f"{missing.library.name} is nowhere")
    wanted = library.cuda_majors
    have, seen = _cuda_of_environment(case, missing, torch)
    searched = Loadings.of(case.facts).missing(missing.library.name)
    if have is not None and wanted and have in wanted:
        why = f"the environment's CUDA is {have}, to which {missing.library.name} belongs: the library is not installed, or not looked for where it is"
        return RuledOut(why, (quoted, *seen))
    component = missing.component
    name = component or "a binary"
    number = (
        f"CUDA {' or '.join(map(str, wanted))}"
        if wanted
        else f"cuDNN {missing.library.version or 'of another release'}"
    )
    is_torch_known = (isinstance(torch, Torch) and torch.cuda is not None) or searched is not None
    if searched is not None:
        seen = (*seen, searched[1])
    certainty = parts.capped(case, match, _certainty(missing, wanted, have, is_torch_known=is_torch_known))
    provides = f"The environment has CUDA {have}" if have else "The environment has no library of that number"
    asked = case.missing("torch_cuda", "whether it is of another CUDA major than the library")
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{name} is built for {number}, and the environment has {f'CUDA {have}' if have else 'no such library'}",
        chain=(
            Link(provides, seen[0] if seen else inferred("its CUDA version is not in the log")),
            Link(f"{name} was linked against {number}", derived(f"{missing.library.name} is the file name of {number}", "documented: file lists of the CUDA toolkits")),
            Link(f"{missing.library.name} is not found, and {name} does not load", quoted),
        ),
        evidence=(quoted, *seen),
        explains=case.explains(match),
        missing=(asked,) if asked is not None and have is None else (),
        rivals=() if certainty is Certainty.PROVEN else ("library-missing", "package-conflict"),
        remedies=_remedies(case, component, library, wanted, have, missing.library.version),
        not_remedies=(
            NotARemedy("pip install --upgrade of the package", "the default index holds the wheel for that CUDA only: the same file comes again"),
            NotARemedy("a symbolic link from the library that is there to the number that is missing", "the functions of the two majors differ"),
            NotARemedy("another driver", "the driver brings none of these libraries"),
        ),
        notes=_notes(case, missing),
        strength=82 if have else 66 if wanted else 52,
    )  # fmt: skip


def _certainty(
    missing: MissingLibrary, wanted: tuple[int, ...], have: int | None, *, is_torch_known: bool
) -> Certainty:
    if not wanted or not missing.is_event:
        return Certainty.POSSIBLE
    if have is None:
        return Certainty.LIKELY if missing.component not in (None, "torch") else Certainty.POSSIBLE
    return Certainty.PROVEN if is_torch_known else Certainty.LIKELY


def _cuda_of_environment(
    case: Case, missing: MissingLibrary, torch: Torch | Unknown
) -> tuple[int | None, tuple[Evidence, ...]]:
    """The CUDA major that the environment provides: torch's, else what the lines around name, other than the wanted one."""
    if isinstance(torch, Torch) and torch.cuda is not None and torch.cuda.partition(".")[0].isdigit():
        return int(torch.cuda.partition(".")[0]), torch.evidence[:1]
    searched = Loadings.of(case.facts).missing(missing.library.name)
    other = parse(searched[0].other_number) if searched is not None else None
    majors = (cuda_library(other) or CudaLibrary("", ())).cuda_majors if other is not None else ()
    if searched is not None and len(majors) == 1:
        return majors[0], (Evidence("the environment has it with another number", searched[0].other_number, searched[1].place),)  # fmt: skip
    wanted = {missing.library.major, *((cuda_library(missing.library) or CudaLibrary("", ())).cuda_majors)}
    for line in case.lines_around(missing.match, 80, 80):
        found = _MAJOR_SEEN.search(line.text[:1000])
        if found is None:
            continue
        major = int(next(value for value in found.groups() if value))
        if major >= _OLDEST and major not in wanted:
            return major, (
                Evidence("another CUDA major in this environment", line.text.strip()[:300], missing.match.place),
            )
    return None, ()


def _remedies(
    case: Case, component: str | None, library: CudaLibrary, wanted: tuple[int, ...], have: int | None, number: str
) -> tuple[Remedy, ...]:
    remedies: list[Remedy] = []
    name = parts.distribution_of(component, case) if component else "the package"
    if have is not None:
        remedies.append(Remedy(
            kind="package", name=name, value=f"cu{have}0 build" if have >= 13 else f"cu{have} build",
            summary=f"Install the build of {name} for CUDA {have} (from the project's own index or release page; the default index may hold the other one only)",
            check=("python -m pip show -f " + name,),
        ))  # fmt: skip
    elif component not in (None, "torch"):
        remedies.append(Remedy(kind="package", name=name, value="build for torch's CUDA", summary=f"Install the build of {name} for the CUDA of the installed torch"))  # fmt: skip
    if not wanted:
        return (*remedies, *_cudnn(number, have))
    target = wanted[-1]
    if component == "torch" and have is None:
        return _of_torch_itself(wheel_for(library, target))
    remedies.append(Remedy(kind="package", name="torch", value=f"cu{target} build", rank=1, summary=f"Or a torch built for CUDA {target}, with its companions", cost="a download of 2 to 4 GB, and every other extension must fit it"))  # fmt: skip
    wheel = wheel_for(library, target)
    remedies.append(Remedy(kind="package", name=wheel, value=f"=={target}.*" if target >= 13 else "", rank=2, is_sure=False, summary=f"Or add the libraries of CUDA {target} beside the others, and name their folder in LD_LIBRARY_PATH"))  # fmt: skip
    return tuple(remedies)


def _of_torch_itself(wheel: str) -> tuple[Remedy, ...]:
    """torch asks for a library of its own CUDA: the wheel that its metadata names was not installed, or was removed."""
    return (
        Remedy(kind="package", name=wheel, value="match:torch", summary=f"Install {wheel} of the release that this torch asks for (python -m pip show torch lists it)", check=("python -c 'import torch'",)),
        Remedy(kind="package", name="torch", value="reinstall", rank=1, summary="Or install torch anew with all that it asks for (no --no-deps)", cost="a download of 2 to 4 GB"),
    )  # fmt: skip


def _cudnn(number: str, have: int | None) -> tuple[Remedy, ...]:
    cuda = have or 12
    major = number.partition(".")[0]
    return (
        Remedy(kind="package", name=f"nvidia-cudnn-cu{cuda}", value=f"=={major}.*" if major else "match:torch", rank=1, summary=f"Install cuDNN {major} and name its folder in LD_LIBRARY_PATH", is_sure=False),
        Remedy(kind="package", name="torch", value="<2.4" if major == "8" else ">=2.4", rank=2, summary=f"Or a torch that brings cuDNN {major}", is_sure=False),
    )  # fmt: skip


def _notes(case: Case, missing: MissingLibrary) -> tuple[str, ...]:
    if missing.component == "sgl-kernel" and parts.says_around(case, missing.match, r"/sm100/common_ops") is not None:
        return (
            "The folder sm100 of sgl_kernel holds the general variant; it is used on other GPUs too and is not the fault.",
        )
    if missing.component is not None and missing.component not in components.component_names():
        return (f"Which builds {missing.component} publishes stands on its release page.",)
    return ()
