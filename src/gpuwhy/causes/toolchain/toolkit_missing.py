"""toolkit-missing: something has to be compiled here, and there is no nvcc to do it."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.toolchain import _build_site as site
from gpuwhy.causes.toolchain import _flashinfer_gate as fi
from gpuwhy.causes.toolchain import _listed_toolkits as listings
from gpuwhy.causes.toolchain import _toolkit_files as files
from gpuwhy.causes.toolchain._rejected_target import consumer_near
from gpuwhy.causes.toolchain.toolkit_path_wrong import path_fault
from gpuwhy.knowledge.components import BUILDS_OF_LLAMA
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Environment, Gpus, Packages, Resolution, ToolkitInstall, Toolkits, Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

_PATH = r"(?P<{0}>[^\s'\"`‘’]{{0,200}}/nvcc(?:\.exe)?)"
_SEARCHED_EVERYWHERE = frozenset(
    {"flashinfer-finds-none", "torch-finds-none", "deepgemm-finds-none", "gate-finds-none"}
)
"""Their programs ask CUDA_HOME, CUDA_PATH, PATH and /usr/local/cuda before they say so."""
_USUAL_ROOTS = ("/usr/local/cuda/bin/nvcc", "/usr/bin/nvcc", "/bin/nvcc")


@cause(
    "toolkit-missing",
    family="Toolchain",
    signs=[
        says(
            "flashinfer-finds-none",
            "could not find nvcc",
            r"Could not find nvcc(?: and default cuda_home='(?P<home>[^']{0,200})' doesn't exist|\.?\s*$)",
        ),
        says("torch-finds-none", "cuda_home environment variable is not set"),
        says("gate-finds-none", "nvcc not found and pytorch is not built with cuda support"),
        says("deepgemm-finds-none", ("assert cuda_home is not none", "cannot find any available nvcc compiler")),
        says(
            "setup-finds-none",
            ("nvcc", "cuda_home", "missingcudaexception", "cuda toolkit", "cuda path", "cuda root", "libnvvm"),
            r"nvcc was not found\. {1,3}Are you sure|`?nvcc`? failed to (?:start|execute)\b|Failed to (?:execute|run|spawn) `?nvcc\b"
            r"|(?:Could not|Cannot|Can't|Unable to|Failed to) (?:find|locate|detect) (?:the |an? )?(?:nvcc\b|CUDA toolkit|CUDA path|CUDA root|CUDA_HOME|CUDA compiler)(?! *, *please| in 'PATH')"
            r"|\bnvcc (?:is not installed|could not be found|not found(?! (?:at|and)\b)|executable not found|does not exist)"
            r"|CUDA_HOME (?:is not set|does not exist|not set|is not defined|not found)|\bCUDA_HOME\b.{0,40}\bunable to compile"
            r"|No CUDA toolkit (?:was )?found|CUDA toolkit (?:was |is )?not (?:found|installed)"
            r"|Failed to auto-detect CUDA root|libNVVM cannot be found|KeyError: ['\"]CUDA_HOME",
        ),
        says(
            "cmake-finds-none",
            (
                "cmake_cuda_compiler",
                "cudatoolkit",
                "failed to find nvcc",
                "could not find nvcc",
                "could not find cuda",
                "cuda_toolkit_root_dir",
                "variable cudacxx",
                "cannot find cuda installation",
            ),
            r"No CMAKE_CUDA_COMPILER could be found|Failed to find nvcc"
            r"|CMAKE_CUDA_COMPILER:\s+\S{0,200}nvcc\S{0,10}\s+is not a full path"
            r"|Could NOT find CUDAToolkit \(missing: [^)]{0,300}(?:CUDAToolkit_(?:ROOT|NVCC|BIN)|CUDAToolkit_INCLUDE)"
            r"|Could NOT find CUDA \(missing: [^)]{0,300}(?:CUDA_TOOLKIT_ROOT_DIR|CUDA_NVCC_EXECUTABLE)"
            r"|Could not find nvcc, please set CUDAToolkit_ROOT|Specify CUDA_TOOLKIT_ROOT_DIR|CUDA_TOOLKIT_ROOT_DIR not found or specified"
            r"|Could not find compiler set in environment variable CUDACXX|cannot find CUDA installation",
        ),
        says(
            "nvcc-not-there",
            "nvcc",
            rf"{_PATH.format('path')}['\"`’]?:? (?:not found|No such file or directory)"
            rf"|No such file or directory:? ['\"`]?{_PATH.format('path2')}"
            rf"|nvcc not found at ['\"`]?{_PATH.format('path3')}"
            r"|(?:^|[\s:'\"`])nvcc['\"`]?: (?:command )?not found|(?:^|[\s:])nvcc: No such file or directory"
            r"|No such file or directory:? ['\"`]nvcc['\"`]|unable to execute ['\"`]?nvcc|command ['\"`]nvcc['\"`] failed: No such"
            r"|execvp?: nvcc\b|['\"`]nvcc['\"`] is not recognized as an internal|no nvcc in \(",
        ),
        says(
            "home-is-none",
            ("'nonetype' and 'str'", "not nonetype"),
            r"unsupported operand type\(s\) for \+: 'NoneType' and 'str'|expected str, bytes or os\.PathLike object, not NoneType",
        ),
        says("version-never-read", "name 'bare_metal_version' is not defined"),
        says("flashinfer-off", "flashinfer kernels are disabled", r"FlashInfer kernels are disabled: .{0,80}nvcc"),
        files.HEADER_MISSING,
        listings.LISTED,
        *fi.SIGNS,
    ],
)
def toolkit_missing(
    case: Case,
    gpus: Gpus | Unknown,
    tools: Toolkits | Unknown,
    packages: Packages | Unknown,
    environment: Environment | Unknown,
    torch: Torch | Unknown,
) -> Judgement:
    """A kernel or an extension must be compiled on this machine, and no CUDA compiler (nvcc) is installed.

    How it shows itself
      `Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist` (FlashInfer), `CUDA_HOME environment
      variable is not set` (torch), `nvcc: not found` from a shell inside a ninja or make log, `No CMAKE_CUDA_COMPILER
      could be found`, `nvcc was not found. Are you sure your environment has nvcc available?` followed by `name
      'bare_metal_version' is not defined` (setup scripts), a bare AssertionError in DeepGEMM.

    Why it happens
      PyTorch brings the CUDA run-time libraries as pip packages, and inference works with them alone until something
      has to be compiled: FlashInfer's sampler or attention, DeepGEMM, an extension that pip builds from source. None
      of these packages contains nvcc (the nvidia-cuda-nvcc-cu12 wheel has ptxas only), nor do the `runtime` and
      `base` images; nvidia-smi prints the driver's CUDA version whether or not a toolkit is installed.

    How to be sure
      In the environment of the failing process: `command -v nvcc; ls -d /usr/local/cuda*/bin/nvcc; echo $CUDA_HOME`.
      All three must come back empty. An nvcc that turns up anywhere means toolkit-path-wrong.

    What helps
      Avoid the compile: VLLM_USE_FLASHINFER_SAMPLER=0 or another attention backend, prebuilt kernels
      (flashinfer-jit-cache of the same release), a published wheel of the extension. Otherwise a toolkit of torch's
      CUDA release, or a `-devel` image.

    What does not help
      Reinstalling torch or the driver; the pip package nvidia-cuda-nvcc-cu12; setting CUDA_HOME to a folder that holds
      no bin/nvcc.

    Not to be confused with
      toolkit-path-wrong (nvcc is there, the path is not), toolkit-incomplete (nvcc runs, a header is absent),
      toolkit-too-old-for-arch (FlashInfer without nvcc takes torch's CUDA version, which may be too old).
    """
    match = _lead(case)
    if match is None:
        return _header_without_toolkit(case, tools, torch) or _behind_the_gate(
            case, fi.read_gate(case, gpus, tools, packages, environment)
        )
    path = next((match.groups[g] for g in ("path", "path2", "path3") if g in match.groups), "")
    fault = path_fault(path) if path else None
    if fault is not None:
        return RuledOut(f"the path of the command {fault}", (case.evidence(match, "the path that was tried"),))
    usable = _usable(tools, path)
    if usable is not None:
        return RuledOut(f"nvcc {usable.version or ''} is installed at {usable.root}: it is only not found")
    return _verdict(case, match, path, tools, torch)


def _lead(case: Case) -> Match | None:
    """The line that tells most plainly that there is no nvcc."""
    for sign in (
        "flashinfer-finds-none",
        "torch-finds-none",
        "gate-finds-none",
        "nvcc-not-there",
        "setup-finds-none",
        "cmake-finds-none",
        "deepgemm-finds-none",
        "home-is-none",
        "version-never-read",
        "flashinfer-off",
    ):
        match = case.found(sign)
        if match is None or (sign == "deepgemm-finds-none" and "assert" in match.text and match.event is None):
            continue
        if sign == "home-is-none" and not any(
            re.search(r"nvcc|cuda_(?:home|dir|path)", f.code, re.IGNORECASE) for f in match.frames
        ):
            continue
        return match
    return None


def _usable(tools: Toolkits | Unknown, path: str) -> ToolkitInstall | None:
    """An nvcc that is installed elsewhere than where the program looked."""
    installs = tools.installs if isinstance(tools, Toolkits) else ()
    return next((i for i in installs if i.has_nvcc and i.version and f"{i.root}/bin/nvcc" != path), None)


def _verdict(case: Case, match: Match, path: str, tools: Toolkits | Unknown, torch: Torch | Unknown) -> Verdict:
    default = (
        "flashinfer" if case.engine in site.ENGINES or "flashinfer" in match.sign or "gate" in match.sign else None
    )
    component = {"flashinfer-finds-none": "flashinfer", "gate-finds-none": "flashinfer", "deepgemm-finds-none": "deepgemm"}.get(
        match.sign
    ) or site.builder(case, match, default or ("torch" if match.sign == "torch-finds-none" else None))  # fmt: skip
    quoted = case.evidence(match, "the build looks for nvcc in vain")
    resolution = tools.resolved_by(consumer_near(case, match)) if isinstance(tools, Toolkits) else None
    contradiction = _against(resolution)
    certainty = _certainty(case, match, path, tools, torch, contradiction)
    no_cuda_torch = isinstance(torch, Torch) and torch.is_cpu_only
    return Verdict(
        certainty=certainty,
        component=component,
        title="nvcc is needed to compile here, and none is "
        + ("installed" if certainty is Certainty.PROVEN else "found")
        + (f": {path} does not exist" if path else ""),
        chain=(
            Link(
                "No CUDA toolkit with a compiler is installed",
                _absence(case, tools) or inferred("nobody searched the host"),
            ),
            Link(f"{component or 'a package'} has to be compiled on this machine", _build_evidence(case, match)),
            Link("the compiler is not found", quoted),
        ),
        evidence=(quoted, *(e for e in (_absence(case, tools),) if e)),
        against=() if contradiction is None else (contradiction,),
        explains=site.explained_by(case, match),
        missing=() if certainty is Certainty.PROVEN else _what_decides(case, tools),
        rivals=() if certainty is Certainty.PROVEN else ("toolkit-path-wrong",),
        remedies=_remedies(case, match, component, torch),
        not_remedies=_IN_VAIN,
        notes=("This torch is a CPU build: it looks for no toolkit at all. Install its CUDA build first.",)
        if no_cuda_torch
        else (),
        strength=75 if match.sign in _SEARCHED_EVERYWHERE else 30 if match.sign == "flashinfer-off" else 62,
    )


def _certainty(
    case: Case,
    match: Match,
    path: str,
    tools: Toolkits | Unknown,
    torch: Torch | Unknown,
    contradiction: Evidence | None,
) -> Certainty:
    """The words are shared with a wrong path: only a search of the host proves that there is no nvcc."""
    if contradiction is not None or match.sign == "flashinfer-off" or (isinstance(torch, Torch) and torch.is_cpu_only):
        return Certainty.POSSIBLE
    if isinstance(tools, Toolkits):
        if tools.is_complete and site.is_the_failure(case, match):
            return Certainty.PROVEN
        return Certainty.LIKELY
    if any(f"{each.root}/bin/nvcc" != path for each in listings.listed_toolkits(case)):
        return Certainty.POSSIBLE
    is_usual_place = path in _USUAL_ROOTS
    return Certainty.LIKELY if match.sign in _SEARCHED_EVERYWHERE or is_usual_place else Certainty.POSSIBLE


def _against(resolution: Resolution | Unknown | None) -> Evidence | None:
    """An nvcc that answered somewhere, for instance in the shell of whoever wrote the report."""
    if isinstance(resolution, Resolution) and resolution.version and resolution.by != "torch.version.cuda":
        return resolution.evidence or inferred(f"an nvcc of CUDA {resolution.version} answered")
    return None


def _absence(case: Case, tools: Toolkits | Unknown) -> Evidence | None:
    if case.facts.value("cuda_toolkit", "") is None:
        return case.fact_evidence("cuda_toolkit", "the failing program resolves no nvcc")
    if isinstance(tools, Toolkits) and tools.is_complete:
        return case.fact_evidence("toolkits", "no toolkit with an nvcc is on this host")
    return None


def _build_evidence(case: Case, match: Match) -> Evidence:
    frame = match.frames[-1] if match.frames else None
    if frame is None:
        return case.evidence(match, "something is being built")
    return case.evidence(match, f"raised in {frame.function} ({frame.path.rpartition('/')[2]})")


def _what_decides(case: Case, tools: Toolkits | Unknown) -> tuple[Missing, ...]:
    asked = [
        case.missing("nvcc_path", "what PATH gives in the environment of the failing process", "command -v nvcc"),
        case.missing(
            "cuda_home", "what the process takes for the toolkit", "tr '\\0' '\\n' < /proc/PID/environ | grep ^CUDA_"
        ),
    ]
    if not isinstance(tools, Toolkits):
        asked.append(
            case.missing("cuda_toolkit", "the nvcc that the failing program resolves; null when there is none")
        )
    if not (isinstance(tools, Toolkits) and (tools.installs or tools.is_complete)):
        asked.append(case.missing("other_toolkits", "an nvcc anywhere on the host makes it a matter of the path"))
    return tuple(m for m in asked if m is not None)


def _remedies(case: Case, match: Match, component: str | None, torch: Torch | Unknown) -> tuple[Remedy, ...]:
    around: tuple[Remedy, ...] = ()
    if component == "flashinfer":
        around = (*site.flashinfer_switches(case), site.prebuilt_kernels())
    elif component == "deepgemm":
        around = _without_deepgemm(case)
    may_be_unset = match.sign in ("torch-finds-none", "setup-finds-none", "cmake-finds-none") and not isinstance(
        case.fact("cuda_toolkit"), Fact
    )
    near = [match.text, *(line.text[:300] for line in case.lines_around(match, 4, 3))]
    is_cmake = match.sign == "cmake-finds-none" or any("CMake Error" in text for text in near)
    is_of_torch = component not in BUILDS_OF_LLAMA and component not in ("onnxruntime", "ctranslate2")
    compiler = Remedy(
        kind="env",
        name="CUDACXX",
        value="path of nvcc",
        summary="If a toolkit is installed after all, name its nvcc to CMake (CUDACXX, or its bin folder first on PATH), in a clean build folder",
        check=('"$CUDACXX" --version',),
        is_sure=False,
        rank=20,
    )
    home = Remedy(
        kind="env",
        name="CUDA_HOME",
        value="toolkit with nvcc",
        summary="If a toolkit is installed after all, point CUDA_HOME at it in the environment of the build",
        check=("test -x $CUDA_HOME/bin/nvcc",),
        is_sure=False,
        rank=20,
    )
    return (
        *around,
        *((compiler if is_cmake else home,) if may_be_unset else ()),
        *site.devel_image(case, match, "runtime and base images have no nvcc"),
        *site.prebuilt_wheel(component, torch),
        *_cuda_build_of_torch(torch),
        site.toolkit("match:torch", "the one torch was built with", torch)
        if is_of_torch
        else site.toolkit("newer", "one that knows this GPU"),
    )


def _without_deepgemm(case: Case) -> tuple[Remedy, ...]:
    name = "SGLANG_ENABLE_JIT_DEEPGEMM" if case.engine == "sglang" else "VLLM_USE_DEEP_GEMM"
    return (
        Remedy(kind="env", name=name, value="0", summary="Use the engine's other FP8 kernels instead of DeepGEMM", cost="slower FP8 matrix products"),
    )  # fmt: skip


def _cuda_build_of_torch(torch: Torch | Unknown) -> tuple[Remedy, ...]:
    if not isinstance(torch, Torch) or not torch.is_cpu_only:
        return ()
    return (
        Remedy(kind="package", name="torch", value="CUDA build", summary="Install torch's CUDA build: a CPU build never looks for a toolkit", rank=-1),
    )  # fmt: skip


_IN_VAIN = (
    NotARemedy("pip install nvidia-cuda-nvcc-cu12", "the cu11 and cu12 wheels of that name hold ptxas, not nvcc"),
    NotARemedy(
        "a newer driver, or the CUDA version in the header of nvidia-smi", "neither says that a toolkit is installed"
    ),
    NotARemedy("CUDA_HOME set to a folder without bin/nvcc", "only moves the message"),
)


# Messages in which a missing toolkit is one of several explanations ---------------------------------------------------


def _header_without_toolkit(case: Case, tools: Toolkits | Unknown, torch: Torch | Unknown) -> Judgement:
    """cuda.h or cuda_runtime.h is absent and nothing shows an nvcc: there may be no toolkit at all."""
    missing = files.missing_header(case)
    if missing is None or missing.name not in files.CORE_HEADERS or site.runs_nvcc(case, missing.match):
        return None
    match = missing.match
    if _usable(tools, "") is not None:
        return RuledOut("a toolkit with an nvcc is installed")
    is_absent = case.facts.value("cuda_toolkit", "") is None or (isinstance(tools, Toolkits) and tools.is_complete)
    quoted = case.evidence(match, f"{missing.name} comes with every toolkit")
    component = site.builder(case, match)
    return Verdict(
        certainty=Certainty.LIKELY if is_absent else Certainty.POSSIBLE,
        component=component,
        title=f"{missing.name} is not found: " + ("no toolkit is installed" if is_absent else "there may be no toolkit at all"),
        chain=(
            Link("No CUDA toolkit is installed", _absence(case, tools) or inferred("nobody searched the host")),
            Link(f"the build includes {missing.name} and does not find it", quoted),
        ),
        evidence=(quoted,),
        explains=site.explained_by(case, match),
        missing=_what_decides(case, tools),
        rivals=("toolkit-incomplete", "toolkit-path-wrong"),
        remedies=(*site.devel_image(case, match, "runtime images have no headers"), site.toolkit("match:torch", "the one torch was built with", torch)),
        not_remedies=_IN_VAIN,
        strength=58 if is_absent else 40,
    )  # fmt: skip


def _behind_the_gate(case: Case, gate: fi.Gate | None) -> Judgement:
    """FlashInfer's check: without an nvcc it goes by torch's CUDA version, so that a toolkit is one way out."""
    if gate is None or gate.is_sm12 is False or gate.better:
        return None
    majors = gate.symptom.group("majors")
    if majors is not None and majors != "None" and "12" not in majors:
        return None
    if gate.resolution is not None and not gate.is_without_nvcc:
        return RuledOut(
            f"FlashInfer finds an nvcc, of CUDA {gate.toolkit}",
            (gate.resolution.evidence,) if gate.resolution.evidence else (),
        )
    if gate.gate_message is None and gate.swallowed is not None:
        return None
    quoted = case.evidence(gate.gate_message or gate.symptom, "what FlashInfer makes of the CUDA version it found")
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component="flashinfer",
        title="There may be no nvcc at all: FlashInfer then takes torch's CUDA version for the toolkit's",
        chain=(Link("Without an nvcc FlashInfer asks torch.version.cuda", inferred("read in the released source")), Link("and finds it too old", quoted)),
        evidence=(quoted,),
        explains=site.explained_by(case, gate.symptom, gate.swallowed, gate.gate_message),
        missing=tuple(m for m in fi.deciding_observations(case, gate) if m.key != "cc"),
        rivals=("toolkit-too-old-for-arch", "toolkit-path-wrong"),
        remedies=(*site.flashinfer_switches(case), site.toolkit(f">={gate.needed or '12.9'}", "what FlashInfer asks for")),
        not_remedies=_IN_VAIN,
        strength=25,
    )  # fmt: skip
