"""ptx-newer-than-driver: a kernel exists only as PTX that a newer CUDA than the driver's has written."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.container import _place as place
from gpuwhy.causes.driver import _driver_remedies as remedies
from gpuwhy.causes.driver import _program_cuda as cuda
from gpuwhy.causes.driver._program_cuda import DriverCuda, ProgramCuda
from gpuwhy.knowledge import drivers
from gpuwhy.knowledge.releases import cuda_release, cuda_text
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.inspection import Outcome
from gpuwhy.model.remedy import NotARemedy, Remedy

_PREBUILT = lazy_pattern(r"(?:site|dist)-packages/|vllm|sglang|torch\.|/usr/local/lib/ollama", re.IGNORECASE)
_FROM_AN_INDEX = frozenset({"torch", "triton", "jax", "numba", "cupy", "onnxruntime", "tensorflow", "tensorrt", "bitsandbytes", "lmdeploy", "ctranslate2", "faster-whisper"})  # fmt: skip
"""Libraries that hardly anybody builds: another release is installed instead."""
_OWN_BUILD = frozenset(
    {
        "llama.cpp",
        "llama-cpp-python",
        "whisper.cpp",
        "stable-diffusion.cpp",
        "koboldcpp",
        "gpustack",
        "exllama",
        "exllamav2",
        "exllamav3",
    }
)


@cause(
    "ptx-newer-than-driver",
    family="Driver, device and fabric",
    signs=[
        says(
            "unsupported-toolchain",
            ("unsupported toolchain", "unsupportedptxversion", "unsupported_ptx_version", "cuda failure 222", "cuda error 222", "error: 222", "returned 222", "cuda error: 222", "error code 222"),
            r"PTX was compiled with an unsupported toolchain|cudaErrorUnsupportedPtxVersion|CUDA_ERROR_UNSUPPORTED_PTX_VERSION|CUDA (?:failure|error):? 222\b|cu\w{2,40} returned 222\b|failure with error: ?222\b|(?:CUDA|cuda)[^\n]{0,60} error code 222\b",
        ),
        says(
            "driver-refuses-ptx-version",
            "unsupported .version",
            r"ptxas application ptx input, line \d{1,7}; fatal\s{0,4}: Unsupported \.version (?P<ptx>\d{1,2}\.\d{1,2}); current version is '?(?P<most>\d{1,2}\.\d{1,2})",
        ),
        says(
            "invalid-image",
            ("device kernel image is invalid", "cuda_error_invalid_image", "cudaerrorinvalidkernelimage", "ptx jit compilation failed", "cuda_error_invalid_ptx", "cudaerrorinvalidptx"),
            r"device kernel image is invalid|CUDA_ERROR_INVALID_IMAGE|cudaErrorInvalidKernelImage|a PTX JIT compilation failed|CUDA_ERROR_INVALID_PTX|cudaErrorInvalidPtx",
        ),
    ],
)  # fmt: skip
def ptx_newer_than_driver(case: Case) -> Judgement:
    """A kernel exists for this GPU only as PTX, and the driver is older than the CUDA release that wrote it.

    How it shows itself
      `CUDA error: the provided PTX was compiled with an unsupported toolchain` (222, cudaErrorUnsupportedPtxVersion)
      from one kernel, after CUDA has started and other kernels have run. From the driver's own compiler, through
      Numba, CuPy or NVRTC: `ptxas application ptx input, line 9; fatal : Unsupported .version 8.7; current version is
      '8.4'`. Triton with a much newer assembler than the driver: `device kernel image is invalid`.

    Why it happens
      Machine code of CUDA 12.9 runs on a driver for 12.4, because both are 12.x. PTX does not: the driver has to
      compile it, and knows the PTX versions of its own release and older ones only. A library has PTX and no machine
      code where it was built for another architecture than the card's, or with a toolkit newer than the driver.

    How to be sure
      The CUDA version that the driver supports (header of nvidia-smi) is lower than that of the toolkit that built the
      failing library: `nvcc --version` for an own build, torch.version.cuda or the release notes for a wheel.

    What helps
      A driver of that CUDA release. For an own build: build with a toolkit not newer than the driver, or with machine code
      for the card's architecture. For a wheel: one built for an older CUDA. On data-centre GPUs the compatibility
      libcuda, which brings a newer PTX compiler.

    What does not help
      Reinstalling the same wheel, another toolkit on the host for a prebuilt library, CUDA_LAUNCH_BLOCKING.

    Not to be confused with
      driver-too-old (CUDA does not even start), binary-lacks-arch (`no kernel image`: there is no PTX at all),
      ptxas-too-old-for-arch (an assembler on disk refuses, not the driver).
    """
    match = place.earliest(case, "unsupported-toolchain", "driver-refuses-ptx-version")
    if match is None:
        match = place.earliest(case, "invalid-image")
        return None if match is None else _possible(case, match)
    driver = cuda.read_driver(case)
    ptx = next((m for m in case.all("driver-refuses-ptx-version") if m.group("ptx")), None)
    program = _built_with(case, ptx)
    is_covered = cuda.has_full_release(driver, program)
    blocked = _blocked(case)
    is_shown = ptx is not None or is_covered is False or blocked is not None
    quoted = case.evidence(match, "the driver cannot compile this PTX: it is of a newer CUDA than the driver")
    certainty = Certainty.PROVEN if is_shown else Certainty.LIKELY
    is_against = is_covered and driver is not None and ptx is None and blocked is None
    against = tuple(driver.evidence) if is_against and driver is not None else ()
    return Verdict(
        certainty=certainty,
        component="driver",
        title=f"A kernel exists only as PTX of {f'CUDA {program.cuda}' if program and not against else 'a newer CUDA'} than the driver {_name(driver)}can compile",
        chain=(
            Link("One kernel has no machine code for this GPU, only PTX", blocked or inferred("the driver was asked to compile it")),
            Link(f"The PTX was written by {f'CUDA {program.cuda}' if program and not against else 'a newer CUDA release'}", program.evidence if program and not against else quoted),
            Link(f"The driver compiles PTX up to {f'CUDA {driver.cuda}' if driver and driver.cuda else 'its own CUDA release'}", driver.evidence[0] if driver and driver.evidence else quoted),
            Link("The kernel is refused, while others run", quoted),
        ),
        evidence=(quoted, *((blocked,) if blocked else ()), *(driver.evidence if driver and not against else ()), *((program.evidence,) if program and not against else ())),
        against=against,
        explains=case.explains(match, ptx),
        missing=() if certainty is Certainty.PROVEN else _missing(case),
        rivals=() if certainty is Certainty.PROVEN else ("driver-too-old", "binary-lacks-arch"),
        remedies=_remedies(case, match, driver, program if not against else None),
        not_remedies=_IN_VAIN,
        strength=90,
    )  # fmt: skip


def _possible(case: Case, match: Match) -> Verdict:
    """200 and 218: the driver cannot read a kernel. A cubin or PTX newer than the driver is the usual reason, not the only one."""
    driver = cuda.read_driver(case)
    program = _built_with(case, None)
    is_behind = cuda.has_full_release(driver, program) is False
    quoted = case.evidence(match, "the driver cannot read a kernel that it was given")
    return Verdict(
        certainty=Certainty.LIKELY if is_behind else Certainty.POSSIBLE,
        component="driver",
        title=f"The driver {_name(driver)}is probably older than the CUDA that compiled a kernel",
        chain=(
            Link("A kernel was compiled by a newer CUDA than the driver's", program.evidence if program and is_behind else inferred("the usual reason; nobody compared the two")),
            Link("The driver cannot read it", quoted),
        ),
        evidence=(quoted, *(driver.evidence if driver else ())),
        explains=case.explains(match),
        missing=_missing(case),
        rivals=("binary-lacks-arch", "build-target-wrong", "jit-cache-stale"),
        remedies=_remedies(case, match, driver, program if is_behind else None),
        not_remedies=_IN_VAIN,
        strength=50 if is_behind else 35,
    )  # fmt: skip


def _blocked(case: Case) -> Evidence | None:
    """A binary whose containers have only PTX for this GPU, of a version that this driver does not compile."""
    runs = case.facts.group("binary_runs").values()
    return next((fact.evidence for fact in runs if fact.value == Outcome.JIT_BLOCKED.value), None)


def _built_with(case: Case, ptx: Match | None) -> ProgramCuda | None:
    """The CUDA that wrote the PTX: by its version, else the toolkit of an own build, else the program's."""
    written = drivers.cuda_of_ptx(ptx.group("ptx") or "") if ptx is not None else None
    if ptx is not None and written is not None and written.value is not None:
        return ProgramCuda(written.value, case.evidence(ptx, written.why))
    program = cuda.read_program_cuda(case)
    toolkit = case.fact("cuda_toolkit")
    if isinstance(toolkit, Fact) and toolkit.value and (program is None or not _is_prebuilt(case)):
        own = cuda_release(str(toolkit.value).split()[0])
        if own is not None:
            return ProgramCuda(cuda_text(own), toolkit.evidence)
    return program


def _is_prebuilt(case: Case) -> bool:
    return case.engine in ("vllm", "sglang", "ollama", "tensorrt-llm", "lmdeploy")


def _name(driver: DriverCuda | None) -> str:
    if driver is None:
        return ""
    return f"{driver.version} " if driver.version else f"(CUDA {driver.cuda}) "


def _missing(case: Case) -> tuple[Missing, ...]:
    asked = (
        case.missing("driver", "which PTX the driver compiles"),
        case.missing("driver_cuda", "the CUDA release of the driver", "nvidia-smi | head -4"),
        case.missing("cuda_toolkit", "which CUDA built the failing library, when it was built here"),
        case.missing("torch_cuda", "which CUDA built the wheels"),
    )
    return tuple(each for each in asked if each is not None)


def _remedies(case: Case, match: Match, driver: DriverCuda | None, program: ProgramCuda | None) -> tuple[Remedy, ...]:
    component = case.component_near(match, case.engine or None)
    texts = [match.text, *(frame.path for frame in match.frames), *(line.text[:500] for line in case.lines_around(match, 15, 15))]  # fmt: skip
    is_prebuilt = _is_prebuilt(case) or any(_PREBUILT.search(text) for text in texts)
    is_prebuilt = is_prebuilt or component in _FROM_AN_INDEX
    is_own = component in _OWN_BUILD and not is_prebuilt
    name = case.engine if is_prebuilt and case.engine else component
    found = list(_bridges(case, program, is_prebuilt))
    if is_own or not is_prebuilt:
        limit = f"<={driver.cuda}" if driver is not None and driver.cuda else "not newer than the driver's CUDA"
        if component and component != "driver":
            found.append(_rebuild(component))
        found.append(Remedy(
            kind="toolkit", name="cuda", value=limit,
            summary=f"Build it with a CUDA toolkit {f'of {driver.cuda} or older' if driver and driver.cuda else 'not newer than what nvidia-smi prints as CUDA Version'}",
            cost="a rebuild; several toolkits can be installed side by side",
        ))  # fmt: skip
    elif name and name != "driver":
        found.append(Remedy(
            kind="package", name=name, value="build with CUDA <= driver's CUDA",
            summary=f"Use a build of {name} for CUDA {driver.cuda if driver and driver.cuda else 'of the driver'} or older", is_sure=False,
        ))  # fmt: skip
    branch = cuda.branch_for(program.cuda) if program is not None and "." in program.cuda else None
    found.append(remedies.newer_driver(branch, f"it compiles PTX of CUDA {program.cuda}" if program else "its CUDA must not be older than the library's"))  # fmt: skip
    return tuple(found)


def _rebuild(component: str) -> Remedy:
    return Remedy(
        kind="package", name=component, value="rebuild",
        summary=f"Rebuild {component} with machine code for this GPU (its architecture as target), or with an older toolkit",
        cost="a compilation",
    )  # fmt: skip


def _bridges(case: Case, program: ProgramCuda | None, is_prebuilt: bool) -> tuple[Remedy, ...]:
    """The compatibility libcuda, where the GPU is not known to be one on which it cannot run."""
    is_data_centre = cuda.is_consumer_gpu(case) is False
    release = program.cuda if program is not None else None
    if not (is_data_centre or (is_prebuilt and cuda.is_consumer_gpu(case) is None)):
        return ()
    switch = " (vLLM does it with VLLM_ENABLE_CUDA_COMPATIBILITY=1)" if case.engine == "vllm" else ""
    path = Remedy(
        kind="env", name="LD_LIBRARY_PATH", value="/usr/local/cuda/compat",
        summary=f"Load NVIDIA's compatibility libcuda (package cuda-compat) in front of the driver's: it has the newer PTX compiler{switch}",
        limits=("data-centre GPUs only: elsewhere CUDA then stops with error 804", "the package must be installed"),
    )  # fmt: skip
    return (path,) if is_data_centre else remedies.bridge(release)


_IN_VAIN = (
    NotARemedy("reinstalling the same wheel or image", "it holds the same PTX"),
    NotARemedy("TORCH_CUDA_ARCH_LIST in the environment of the service", "it acts on builds, not on an installed binary"),
    NotARemedy("CUDA_LAUNCH_BLOCKING=1", "the driver refuses the kernel; the order of launches plays no part"),
)  # fmt: skip
