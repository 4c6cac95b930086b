"""toolkit-path-wrong: a usable toolkit is installed, and a variable or a search order selects something else."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.toolchain import _flashinfer_gate as fi
from gpuwhy.causes.toolchain import _flashinfer_remedies as fi_remedies
from gpuwhy.causes.toolchain import _listed_toolkits as listings
from gpuwhy.causes.toolchain import _rejected_target as rejected
from gpuwhy.causes.toolchain._listed_toolkits import ListedToolkit
from gpuwhy.knowledge import toolkits
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, RuledOut, Verdict
from gpuwhy.model.host import Environment, Gpus, Packages, Resolution, ToolkitInstall, Toolkits, Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

_MISMATCHES = ("nvcc-torch-mismatch", "mismatch-versions")
_NVCC_PATH = r"(?P<path>[^\s'\"`]{0,200}/bin/(?:nvcc|ptxas|cicc)(?:/[^\s'\"`]{1,100})?)"


@cause(
    "toolkit-path-wrong",
    family="Toolchain",
    signs=[
        *fi.SIGNS,
        *rejected.SIGNS,
        listings.LISTED,
        says(
            "nvcc-not-at-path",
            "nvcc",
            rf"{_NVCC_PATH}['\"`]?:? (?:not found|No such file or directory|is a directory|Not a directory)"
            rf"|No such file or directory:? ['\"`]?{_NVCC_PATH.replace('path', 'path2')}"
            rf"|nvcc not found at ['\"`]?{_NVCC_PATH.replace('path', 'path3')}"
            rf"|(?:Permission denied|Not a directory):? ['\"`]?{_NVCC_PATH.replace('path', 'path4')}",
        ),
        says(
            "no-cuda-home",
            (
                "no cmake_cuda_compiler could be found",
                "compiler set in environment variable cudacxx",
                "failed to find nvcc",
                "cuda_home environment variable is not set",
                "could not find nvcc",
                "nvcc was not found",
                "cannot find nvcc",
                "nvcc not found",
            ),
        ),
        says(
            "nvcc-torch-mismatch",
            "detected cuda version",
            r"detected CUDA version \(?(?P<nvcc>[\d.]+|%s)\)? mismatches the version",
        ),
        says("mismatch-versions", "mismatches the version", r"'(?P<nvcc>\d+\.\d+)', '(?P<torch>\d+\.\d+)'"),
        says(
            "torch-of-mismatch",
            "please make sure to use the same cuda",
            r"PyTorch \((?P<torch>\d{1,2}\.\d)\)\. Please make sure",
        ),
        says("nvcc-unknown-option", "unknown option", r"nvcc fatal\s*: Unknown option ['\"`]?(?P<option>[\w=-]+)"),
        says(
            "headers-of-another-toolkit",
            (
                "cuda compiler and cuda toolkit headers are incompatible",
                "cuda headers say the version is",
                "findcuda says cuda version is",
            ),
        ),
        says(
            "header-not-found",
            "no such file or directory",
            r"fatal error: (?P<header>[\w./+-]{1,120}\.(?:h|hpp|cuh)): No such file or directory",
        ),
        says(
            "library-root-missing",
            ("nvshmem", "cudnn", "cutlass", "nccl", "error: cute/"),
            r"\b(?P<variable>(?:NVSHMEM|CUDNN|CUTLASS|NCCL)_(?:DIR|HOME|ROOT|PATH|ROOT_DIR))\b[^\n]{0,60}(?:does not exist|not found|invalid|is not a directory|no such file)|\b(?:Failed|Unable) to find (?P<library>NVSHMEM|CUTLASS|NCCL|CUDNN)\b|fatal error: (?P<cutlass>(?:cute|cutlass)/[\w./]{2,80}): No such file",
        ),
    ],
)
def toolkit_path_wrong(
    case: Case,
    gpus: Gpus | Unknown,
    tools: Toolkits | Unknown,
    packages: Packages | Unknown,
    environment: Environment | Unknown,
    torch: Torch | Unknown,
) -> Judgement:
    """A usable CUDA toolkit is installed, but a variable, PATH or a search order selects another one, or none.

    How it shows itself
      A command with an impossible path (`:/usr/local/cuda-12.8/bin/nvcc: not found`, `.../bin/nvcc/bin/nvcc`); or any
      message of a toolkit that is too old, of another CUDA than torch's, or missing, on a host where a good one lies
      unused: FlashInfer's `requires GPUs with sm75 or higher`, `Unsupported gpu architecture`, `The detected CUDA
      version mismatches`.

    Why it happens
      CUDA_HOME was extended like a search path; it names the bin folder, a removed toolkit or a file; a distribution's
      /usr/bin/nvcc stands on PATH before /usr/local/cuda/bin; the service has another environment than your shell.
      Each program has an order of its own: torch and FlashInfer ask CUDA_HOME, CUDA_PATH, then the nvcc on PATH, and
      only then /usr/local/cuda.

    How to be sure
      The path in the message, and a second toolkit on the same host: `ls -d /usr/local/cuda*/bin/nvcc`. Read the
      variables of the failing process (/proc/PID/environ), not those of your shell.

    What helps
      CUDA_HOME set to the one right directory, in the service's own environment. Of several good toolkits one of
      torch's CUDA major: what a 13.x toolkit builds needs libcudart.so.13 when it is loaded. Then remove what was half
      built (the library's JIT cache).

    What does not help
      Installing the toolkit again; checking `nvcc --version` in a shell whose PATH is right.

    Not to be confused with
      toolkit-missing (nothing usable is installed), toolkit-too-old-for-arch and toolkit-torch-mismatch (the selected
      one is the only one).
    """
    malformed = _malformed(case, environment)
    if malformed is not None:
        return malformed
    gate = fi.read_gate(case, gpus, tools, packages, environment)
    if gate is not None:
        return _flashinfer(case, gate, gpus, torch)
    return _other_toolkit(case, tools, torch)


# A path that cannot be right -------------------------------------------------------------------------------------


def _malformed(case: Case, environment: Environment | Unknown) -> Verdict | None:
    """The path itself shows the fault: a colon, a doubled bin, an unexpanded variable, a quote, a file for a folder."""
    match = case.found("nvcc-not-at-path")
    if match is None:
        return None
    path = next((match.groups[g] for g in ("path", "path2", "path3", "path4") if g in match.groups), "")
    fault = path_fault(path)
    if fault is None:
        return None
    home = _repaired(path)
    quoted = case.evidence(match, f"the path of the command {fault}")
    component = _builder_near(case, match)
    variable = environment.get("CUDA_HOME") if isinstance(environment, Environment) else None
    evidence = [quoted]
    if isinstance(variable, str) and isinstance(environment, Environment):
        evidence.append(environment.evidence["CUDA_HOME"])
    return Verdict(
        certainty=Certainty.PROVEN,
        component=component,
        title=f"The toolkit's path is malformed: it {fault}",
        chain=(
            Link("CUDA_HOME (or CUDA_PATH) is not one plain directory", evidence[-1]),
            Link(f"the build calls {path!r}", quoted),
            Link("the shell finds no such program", quoted),
        ),
        evidence=tuple(evidence),
        explains=case.explains(match),
        remedies=(
            _cuda_home(home, "one directory, without a colon, a file name or a variable in it"),
            *_cache_after(component),
        ),
        not_remedies=(
            NotARemedy("installing the toolkit again", "the toolkit is not what is wrong"),
            NotARemedy("nvcc --version in a shell", "it goes by the PATH of that shell"),
        ),
        strength=88,
    )


def path_fault(path: str) -> str | None:
    """What is impossible about a toolkit path, as the rest of a sentence; None when nothing is."""
    root = re.sub(r"/bin/(nvcc|ptxas|cicc).*$", "", path)
    if ":" in root:
        return "holds a colon, as if CUDA_HOME were a search path"
    if re.search(r"/bin/nvcc/|/nvcc/bin/", path):
        return "names nvcc itself as a folder: CUDA_HOME points at the program"
    if root.endswith("/bin"):
        return "doubles bin: CUDA_HOME names the bin folder"
    if "$" in root or "~" in root:
        return "holds a variable or ~ that nothing expanded"
    if re.search(r"//bin/|['\"]", path.replace("://", "")) and root not in ("", "/"):
        return "holds a stray quote or slash"
    return None


def _builder_near(case: Case, match: Match) -> str | None:
    """Whose build runs nvcc. The engines compile nothing themselves while serving: there it is FlashInfer's ninja."""
    component = case.component_near(match)
    if component not in ("vllm", "sglang", None) or "/bin/sh" not in match.text:
        return component
    near = " ".join(line.text[:300] for line in case.lines_around(match, 200, 60))
    is_source_build = re.search(r"setup\.py|cmake|pip(?:3)? install|building wheel", near, re.IGNORECASE)
    return component if is_source_build or not (component or case.engine) else "flashinfer"


def _repaired(path: str) -> str:
    root = re.sub(r"(/bin)?(/nvcc)?(/bin)?/(nvcc|ptxas|cicc).*$", "", path.strip("'\""))
    parts = [part for part in root.split(":") if part]
    clean = parts[-1] if parts else ""
    return clean if clean.startswith("/") and "$" not in clean else "/usr/local/cuda"


# A good toolkit that was not chosen ------------------------------------------------------------------------------


def _flashinfer(case: Case, gate: fi.Gate, gpus: Gpus | Unknown, torch: Torch | Unknown) -> Judgement:
    """FlashInfer's check failed although a toolkit that passes it is on the host."""
    needed = gate.needed or "12.9"
    if gate.is_sm12 is False:
        known = gpus.evidence if isinstance(gpus, Gpus) else ()
        return RuledOut("the check exists for SM 12.x only, and no GPU here is one", known)
    if gate.toolkit is not None and gate.gate_message is None and fi.at_least(gate.toolkit, needed):
        return RuledOut(f"FlashInfer finds CUDA {gate.toolkit}, which passes its check")
    if gate.gate_message is None and gate.swallowed is not None:
        reason = gate.swallowed.group("reason") or ""
        if "nvcc" not in reason:
            return RuledOut(
                "the swallowed exception is another one",
                (case.evidence(gate.swallowed, "it is not about the toolkit"),),
            )
    majors = gate.symptom.group("majors")
    if majors and majors != "None" and "12" not in majors:
        return None
    lead = gate.gate_message or gate.swallowed or gate.symptom
    quoted = case.evidence(lead, "FlashInfer refuses the toolkit it found")
    if not gate.better:
        if gate.is_host_searched and gate.toolkit is not None:
            return RuledOut(f"no toolkit of at least {needed} is on this host")
        return Verdict(
            certainty=Certainty.POSSIBLE,
            component="flashinfer",
            title=f"A toolkit of at least {needed} may be on this host, and not be the one that FlashInfer finds",
            chain=fi.chain(case, gate, gpus),
            evidence=(quoted,),
            explains=case.explains(gate.symptom, gate.swallowed, gate.gate_message),
            missing=fi.deciding_observations(case, gate),
            rivals=("toolkit-too-old-for-arch", "toolkit-missing"),
            remedies=(_cuda_home(f"toolkit >= {needed}", "if one is there", is_sure=False),),
            strength=45,
        )
    best = preferred(gate.better, torch)
    shown = Evidence(
        f"CUDA {best.version} is installed at {best.root}", f"{best.root}: {best.version}", _place(case, best)
    )
    chain = (
        Link(f"CUDA {best.version} is installed at {best.root}", shown),
        Link(
            _why_not_chosen(gate.resolution), gate.resolution.evidence if gate.resolution else inferred("nobody looked")
        ),
        *fi.chain(case, gate, gpus),
    )
    is_shown = gate.gate_message is not None and gate.resolution is not None
    remedies = [
        _cuda_home(best.root, f"CUDA {best.version}, which passes FlashInfer's check"),
        fi_remedies.arch_list_remedy(case, gate, gpus),
        *fi_remedies.sampler_remedies(case, gate),
        *fi_remedies.package_remedies(case, gate),
    ]
    return Verdict(
        certainty=Certainty.PROVEN if is_shown else Certainty.LIKELY,
        component="flashinfer",
        title=f"CUDA {best.version} is installed at {best.root}, but FlashInfer takes {gate.toolkit or 'another one'}",
        chain=chain,
        evidence=(quoted, shown),
        explains=case.explains(gate.symptom, gate.swallowed, gate.gate_message),
        rivals=(),
        remedies=(*(r for r in remedies if r is not None), *_distribution_nvcc(gate.resolution)),
        not_remedies=fi_remedies.in_vain(gate),
        notes=_major_note(best, torch),
        strength=95,
    )


def _other_toolkit(case: Case, tools: Toolkits | Unknown, torch: Torch | Unknown) -> Judgement:
    """A message of a toolkit that is missing, too old, or of another CUDA, where a suitable one is installed."""
    lead = case.found("nvcc-rejects-target", "nvcc-value-not-defined", "nvcc-not-at-path", "no-cuda-home", "mismatch-versions",
                      "nvcc-torch-mismatch", "nvcc-unknown-option", "library-root-missing")  # fmt: skip
    mixed = case.found("headers-of-another-toolkit")
    if mixed is not None:
        return _mixed_headers(case, mixed)
    elsewhere = _header_elsewhere(case)
    if elsewhere is not None:
        return elsewhere
    if lead is None:
        return None
    if lead.sign == "library-root-missing":
        return _library_root(case, lead)
    if not isinstance(tools, Toolkits):
        return _unexamined(case, lead)
    resolution = tools.resolved_by(rejected.consumer_near(case, lead))
    chosen = resolution.root if isinstance(resolution, Resolution) else None
    used = resolution.version if isinstance(resolution, Resolution) else None
    suitable = tuple(
        i
        for i in tools.installs
        if i.has_nvcc and i.version and i.root != chosen and i.version != used and _suits(case, lead, i.version, torch)
    )
    if not suitable:
        if tools.is_complete:
            return RuledOut("no suitable toolkit is on this host besides the one in use")
        return None if tools.installs else _unexamined(case, lead)
    best = preferred(suitable, torch)
    component = case.component_near(lead)
    quoted = case.evidence(lead, "what the selected toolkit answers")
    shown = Evidence(
        f"CUDA {best.version} is installed at {best.root}", f"{best.root}: {best.version}", _place(case, best)
    )
    return Verdict(
        certainty=Certainty.PROVEN if isinstance(resolution, Resolution) else Certainty.LIKELY,
        component=component,
        title=f"CUDA {best.version} is installed at {best.root} and would do, but {'CUDA ' + used if used else 'it'} is {'used' if used else 'not found'}",
        chain=(
            Link(f"CUDA {best.version} is installed at {best.root}", shown),
            Link(
                _why_not_chosen(resolution if isinstance(resolution, Resolution) else None),
                inferred("by the order of search"),
            ),
            Link("what is selected instead fails", quoted),
        ),
        evidence=(quoted, shown),
        explains=case.explains(lead),
        remedies=(
            _cuda_home(best.root, f"CUDA {best.version}"),
            *_distribution_nvcc(resolution if isinstance(resolution, Resolution) else None),
            *_cache_after(component),
        ),
        notes=_major_note(best, torch),
        strength=92,
    )


def _suits(case: Case, lead: Match, version: str, torch: Torch | Unknown) -> bool:
    if lead.sign in ("nvcc-rejects-target", "nvcc-value-not-defined"):
        return toolkits.accepts(version, lead.group("target") or "").value is True
    if lead.sign in ("nvcc-torch-mismatch", "mismatch-versions"):
        wanted = lead.group("torch") or (torch.cuda if isinstance(torch, Torch) else None)
        if wanted is None:
            stated = case.found("mismatch-versions", "torch-of-mismatch")
            wanted = stated.group("torch") if stated else None
        return wanted is not None and version.partition(".")[0] == wanted.partition(".")[0]
    if lead.sign == "nvcc-unknown-option":
        return toolkits.supports_option(version, lead.group("option") or "").value is True
    return True


def _unexamined(case: Case, lead: Match) -> Verdict | None:
    """Only the path in the message speaks: a distribution's nvcc, or a place of its own that CUDA_HOME named."""
    path = next((lead.groups[g] for g in ("path", "path2", "path3", "path4") if g in lead.groups), "")
    listed = _suitable_in_report(case, lead, path)
    if listed is not None:
        return _listed(case, lead, listed)
    nearby = " ".join(line.text[:300] for line in case.lines_around(lead, 30, 10))
    is_distribution = "/usr/bin/nvcc" in lead.text or (not path and "/usr/bin/nvcc" in nearby)
    is_own_place = bool(path) and not path.startswith(("/usr/local/cuda/bin", "nvcc", "/bin/nvcc"))
    missing = [m for m in (case.missing("other_toolkits", "whether a suitable toolkit is installed elsewhere"),
                           case.missing("cuda_home", "what the variable names in the failing process", "tr '\\0' '\\n' < /proc/PID/environ | grep ^CUDA_")) if m]  # fmt: skip
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component=case.component_near(lead),
        title="Another toolkit may be installed than the one that is used"
        + (": this is the distribution's /usr/bin/nvcc" if is_distribution else ""),
        chain=(Link("the selected toolkit fails", case.evidence(lead, "where it was looked for")),),
        evidence=(case.evidence(lead, "where it was looked for"),),
        explains=case.explains(lead),
        missing=tuple(missing),
        rivals=("toolkit-missing", "toolkit-too-old-for-arch", "toolkit-torch-mismatch"),
        remedies=(
            *_cmake_choice(lead, "/usr/local/cuda", is_sure=False),
            _cuda_home("/usr/local/cuda", "if a suitable toolkit is there", is_sure=False),
        ),
        strength=52 if is_distribution else 42 if is_own_place or lead.sign in _MISMATCHES else 25,
    )


def _suitable_in_report(case: Case, lead: Match, path: str) -> ListedToolkit | None:
    """The newest toolkit that the report lists elsewhere than where the program looked, and that would do."""
    tried = re.sub(r"/bin/nvcc.*$", "", path)
    others = [
        each
        for each in listings.listed_toolkits(case)
        if each.root != tried and _suits(case, lead, each.version, Unknown("not examined"))
    ]
    return max(others, key=lambda each: tuple(map(int, each.version.split("."))), default=None)


def _listed(case: Case, lead: Match, listed: ListedToolkit) -> Verdict:
    quoted = case.evidence(lead, "what the program finds instead")
    shown = case.evidence(listed.match, f"CUDA {listed.version} lies at {listed.root}")
    component = case.component_near(lead)
    return Verdict(
        certainty=Certainty.LIKELY,
        component=component,
        title=f"{listed.root} is on this host, and the program looks elsewhere",
        chain=(Link(f"CUDA {listed.version} is installed at {listed.root}", shown), Link("what is selected instead fails", quoted)),
        evidence=(quoted, shown),
        explains=case.explains(lead),
        missing=tuple(m for m in (case.missing("other_toolkits", f"whether {listed.root} holds an nvcc"), case.missing("cuda_home", "what the variable names in the failing process")) if m),
        rivals=("toolkit-missing",),
        remedies=(*_cmake_choice(lead, listed.root), _cuda_home(listed.root, f"CUDA {listed.version}"), *_cache_after(component)),
        strength=90 if lead.sign in _MISMATCHES else 76,
    )  # fmt: skip


def _cmake_choice(lead: Match, root: str, *, is_sure: bool = True) -> tuple[Remedy, ...]:
    """CMake does not ask CUDA_HOME for its CUDA compiler."""
    if not re.search(r"CMAKE|CUDAToolkit_ROOT|FindCUDA|CUDACXX", lead.text):
        return ()
    return (
        Remedy(
            kind="env", name="CUDACXX", value=f"{root}/bin/nvcc", is_sure=is_sure, rank=-20,
            summary=f"Name the compiler to CMake: CUDACXX={root}/bin/nvcc, in a clean build folder",
            check=(f"{root}/bin/nvcc --version",),
        ),
        Remedy(kind="env", name="PATH", value=f"{root}/bin", is_sure=is_sure, rank=-19, summary=f"Or put {root}/bin first on PATH"),
    )  # fmt: skip


def _mixed_headers(case: Case, lead: Match) -> Verdict:
    """CCCL compares nvcc's version with that of the headers: two toolkits are mixed on the include path."""
    quoted = case.evidence(lead, "the headers are of another toolkit than nvcc")
    near = " ".join(line.text[:500] for line in case.lines_around(lead, 1, 8))
    advised = re.search(r"PATH=(/[\w./-]{1,100})/bin\b", near)
    root = advised.group(1) if advised else "/usr/local/cuda"
    return Verdict(
        certainty=Certainty.LIKELY,
        component=case.component_near(lead),
        title="nvcc and the CUDA headers it includes are of two different toolkits",
        chain=(
            Link("two toolkits, or a toolkit and the pip packages, are on this host", inferred("nobody looked")),
            Link("the compiler comes from one, the include path leads into the other", quoted),
        ),
        evidence=(quoted,),
        explains=case.explains(lead),
        missing=tuple(
            m for m in (case.missing("cuda_home", "which toolkit the build names"), case.missing("other_toolkits")) if m
        ),
        rivals=("toolkit-incomplete",),
        remedies=(
            _cuda_home(
                root, "the one toolkit that nvcc and its headers shall come from", is_sure=root != "/usr/local/cuda"
            ),
            *_cmake_choice(lead, root),
        ),
        strength=70,
    )


def _header_elsewhere(case: Case) -> Verdict | None:
    """A header that a build did not find lies under another root of this host: a fact says so, or the log itself."""
    lead = case.found("header-not-found")
    header = lead.group("header") if lead is not None else None
    if lead is None or header is None:
        return None
    listed = [(path, fact.evidence) for path, fact in case.facts.group("files").items() if fact.value]
    shown = [(line.text.strip(), None) for line in case.lines_around(lead, 40, 40) if line.text.strip().startswith("/")]
    for path, evidence in (*listed, *shown):
        root, include, rest = path.partition("/include/")
        if include and rest.rpartition("/")[2] == header.rpartition("/")[2] and " " not in path:
            found = evidence or Evidence(f"the header is at {path}", path, lead.place)
            return _other_root(case, lead, root, found)
    return None


def _other_root(case: Case, lead: Match, root: str, found: Evidence) -> Verdict:
    quoted = case.evidence(lead, "the build does not find the header where it looks")
    library = next((name for name in ("nvshmem", "cudnn", "nccl", "cutlass") if name in lead.text.lower()), None)
    remedy = (
        _cuda_home(root, "its include folder holds the header")
        if library is None
        else Remedy(
            kind="env",
            name=f"{library.upper()}_DIR",
            value=root,
            summary=f"Point {library.upper()}_DIR at {root}, which holds the header",
        )
    )
    return Verdict(
        certainty=Certainty.LIKELY,
        component=case.component_near(lead),
        title=f"The header is installed under {root}, where this build does not look",
        chain=(
            Link(f"the header lies under {root}", found),
            Link("the root that the build was given is another one", quoted),
        ),
        evidence=(quoted, found),
        explains=case.explains(lead),
        rivals=("toolkit-incomplete",),
        remedies=(remedy,),
        strength=90,
    )


def _asking_for_root(case: Case, lead: Match, variable: str) -> str | None:
    """The library whose build looks for the root, and not the one that is looked for."""
    near = case.component_near(lead)
    return "deepep" if near in (None, "nvshmem") and variable.startswith("NVSHMEM") else near


def _cutlass(case: Case, lead: Match) -> Verdict:
    """CUTLASS is all headers; libraries carry it as a submodule, which a plain clone or a source archive leaves empty."""
    quoted = case.evidence(lead, "a header of CUTLASS, which is no part of the toolkit")
    component = case.component_near(lead)
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component=component,
        title=f"{component or 'The build'} does not find CUTLASS where it looks",
        chain=(
            Link("The submodule is empty, or its folder is not given to the compiler", inferred("nobody looked")),
            Link("The first header of CUTLASS is not found", quoted),
        ),
        evidence=(quoted,),
        explains=case.explains(lead),
        missing=tuple(m for m in (case.missing("files.third-party/cutlass/include", "whether the submodule was fetched", "ls third-party/cutlass/include third_party/cutlass/include"),) if m),
        rivals=("toolkit-incomplete", "package-conflict"),
        remedies=(
            Remedy(kind="files", name="third-party/cutlass", value="git submodule update --init --recursive", summary="Fetch the submodule, and build again (or install the published wheel, which carries the headers)"),
            Remedy(kind="env", name="CUTLASS_PATH", value="a checkout of CUTLASS", rank=1, is_sure=False, summary="Or point the build at a checkout of CUTLASS"),
        ),
        strength=60,
    )  # fmt: skip


def _library_root(case: Case, lead: Match) -> Verdict:
    if lead.group("cutlass"):
        return _cutlass(case, lead)
    variable = lead.group("variable") or f"{lead.group('library') or ''}_DIR".upper()
    quoted = case.evidence(lead, "the root that was looked in")
    return Verdict(
        certainty=Certainty.LIKELY,
        component=_asking_for_root(case, lead, variable),
        title=f"{variable} does not name the library's root",
        chain=(Link(f"{variable} points elsewhere", quoted),),
        evidence=(quoted,),
        explains=case.explains(lead),
        missing=tuple(m for m in (case.missing(f"env.{variable}", "what it names"),) if m),
        remedies=(
            Remedy(
                kind="env",
                name=variable,
                value="the library's root",
                summary=f"Point {variable} at the folder that holds include and lib",
            ),
        ),
        strength=55,
    )


# Shared pieces -----------------------------------------------------------------------------------------------------


def preferred(installs: tuple[ToolkitInstall, ...], torch: Torch | Unknown) -> ToolkitInstall:
    """The toolkit to point at: of torch's CUDA major first, then the newest of that major nearest to torch's release."""
    major = torch.cuda.partition(".")[0] if isinstance(torch, Torch) and torch.cuda else None

    def order(install: ToolkitInstall) -> tuple[bool, tuple[int, ...], str]:
        numbers = tuple(int(n) for n in (install.version or "0").split(".")[:2] if n.isdigit())
        return (install.version or "").partition(".")[0] != major, tuple(-n for n in numbers), install.root

    return min(installs, key=order)


def _cuda_home(root: str, why: str, *, is_sure: bool = True) -> Remedy:
    return Remedy(
        kind="env",
        name="CUDA_HOME",
        value=root,
        summary=f"Point CUDA_HOME at {root}: {why}",
        cost="a JIT build at the next start; nothing is installed",
        check=(f"test -x {root}/bin/nvcc && {root}/bin/nvcc --version",) if root.startswith("/") else (),
        is_sure=is_sure,
        rank=-10,
    )


def _cache_after(component: str | None) -> tuple[Remedy, ...]:
    if component not in ("flashinfer", "triton", "torch"):
        return ()
    return (
        Remedy(
            kind="cache",
            name=component,
            value="delete",
            summary=f"Afterwards remove what {component} had half built: its build files can name the old path",
            cost="the kernels are built again",
        ),
    )


def _distribution_nvcc(resolution: Resolution | None) -> tuple[Remedy, ...]:
    if resolution is None or resolution.root not in ("/usr", "/usr/lib/cuda", "/usr/lib/nvidia-cuda-toolkit"):
        return ()
    return (
        Remedy(
            kind="system-package",
            name="nvidia-cuda-toolkit",
            value="remove",
            summary="Remove the distribution's toolkit, whose /usr/bin/nvcc stands before the good one",
            commands=("apt-get remove nvidia-cuda-toolkit",),
            undo=("apt-get install nvidia-cuda-toolkit",),
            risk="medium",
        ),
    )


def _why_not_chosen(resolution: Resolution | None) -> str:
    if resolution is None:
        return "the order of search takes another one"
    if resolution.by == "PATH":
        return f"CUDA_HOME and CUDA_PATH are unset, and the first nvcc on PATH is {resolution.root}/bin/nvcc"
    if resolution.by in ("CUDA_HOME", "CUDA_PATH"):
        return f"{resolution.by} names {resolution.root}"
    return f"{resolution.by or 'the order of search'} gives {resolution.root or 'no toolkit'}"


def _major_note(best: ToolkitInstall, torch: Torch | Unknown) -> tuple[str, ...]:
    if not isinstance(torch, Torch) or not torch.cuda or not best.version:
        return ()
    major, own = best.version.partition(".")[0], torch.cuda.partition(".")[0]
    if major == own:
        return ()
    note = (
        f"torch is built for CUDA {torch.cuda}: what the {best.version} toolkit builds needs libcudart.so.{major} when it is "
        f"loaded, so {best.root}/lib64 must be found by the loader too (ldconfig or LD_LIBRARY_PATH)."
    )
    return (note,)


def _place(case: Case, install: ToolkitInstall) -> Place | None:
    for key in (f"other_toolkits.{install.root}", "toolkits"):
        evidence = case.fact_evidence(key)
        if evidence is not None:
            return evidence.place
    return None
