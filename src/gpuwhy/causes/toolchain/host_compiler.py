"""host-compiler: no C or C++ compiler or build tool is there, or nvcc does not accept the one it is given."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.toolchain import _build_site as site
from gpuwhy.causes.toolchain import _host_compiler_remedies as remedies
from gpuwhy.causes.toolchain._rejected_target import consumer_near
from gpuwhy.knowledge import toolkits
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Resolution, Toolkits

_COMPILERS = r"(?:[\w-]{1,40}-)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|cl)(?:-\d{1,2})?(?:\.exe)?"
_TOOLS = r"ninja|cmake|make|ld|as|rustc|cargo"


@cause(
    "host-compiler",
    family="Toolchain",
    signs=[
        says("triton-finds-no-compiler", "failed to find c compiler", r"Failed to find C compiler"),
        says(
            "inductor-finds-no-compiler",
            ("no working c++ compiler found", "invalidcxxcompiler", "compiler: g++ is not found", "compiler: clang++ is not found"),
            r"No working C\+\+ compiler found|InvalidCxxCompiler|Compiler: (?:g|clang)\+\+ is not found",
        ),
        says(
            "compiler-not-there",
            ("not found", "no such file or directory", "unable to execute", "is not recognized as", "['which', '"),
            rf"(?:^|[\s:/'\"`])(?P<tool>{_COMPILERS}|{_TOOLS})['\"`]?: (?:command )?not found"
            rf"|FileNotFoundError:.{{0,30}}No such file or directory:? ['\"](?:\S{{0,150}}/)?(?P<tool2>{_COMPILERS}|{_TOOLS})['\"]"
            rf"|unable to execute ['\"]?(?P<tool3>{_COMPILERS}|{_TOOLS})['\"]?: No such file"
            rf"|command ['\"](?:\S{{0,150}}/)?(?P<tool4>{_COMPILERS}|{_TOOLS})['\"] failed: No such file"
            rf"|^(?:\S{{0,60}}: )?(?P<tool5>{_COMPILERS}|{_TOOLS}): No such file or directory"
            rf"|['\"`](?P<tool6>{_COMPILERS}|{_TOOLS})['\"`] is not recognized as an internal"
            rf"|\['which', '(?P<tool7>{_COMPILERS}|{_TOOLS})'\]['\"]? returned non-zero",
        ),
        says(
            "compiler-incomplete",
            ("cannot execute", "error trying to exec", "installation problem", "cannot find 'ld'", "cannot find 'as'"),
            r"cannot execute ['\"‘`]?(?P<tool>cc1plus|cc1|as|ld|collect2)['\"’]?|error trying to exec ['\"‘`](?P<tool2>cc1plus|cc1|as)['\"’]|cannot find '(?P<tool3>ld|as)'",
        ),
        says(
            "cmake-finds-no-compiler",
            ("no cmake_c_compiler", "no cmake_cxx_compiler", "cmake_c_compiler not set", "cmake_cxx_compiler not set", "unable to find a build program", "cmake must be installed", "cmake_make_program is not set"),
            r"No CMAKE_(?P<tool>CXX|C)_COMPILER could be found|CMAKE_(?P<tool2>CXX|C)_COMPILER not set|unable to find a build program corresponding to \"(?P<tool3>[\w ]{2,30})\"|(?P<tool4>CMake) must be installed|CMAKE_MAKE_PROGRAM is not set",
        ),
        says("ninja-missing", ("ninja is required", "ninja not found", "could not find ninja", "ninja not being installed", "ninja is not installed"), r"Ninja is required to load C\+\+ extensions|[Nn]inja (?:is required|not found|not being installed|is not installed)|Could not find ninja"),
        says("rust-missing", "can't find rust compiler"),
        says(
            "msvc-missing",
            ("microsoft visual c++", "could not locate cl.exe", "cannot find compiler 'cl.exe'", "'where', 'cl'", "compiler: cl is not found", "compiler version for cl", "find vcvarsall.bat", "find msvc", "msvc not found"),
            r"Microsoft Visual C\+\+ \d+\.\d+ or (?:greater|later) is required|Could not locate cl\.exe|Cannot find compiler 'cl\.exe'"
            r"|\['where', 'cl(?:\.exe)?'\]['\"]? returned non-zero|Compiler: cl is not found|Error checking compiler version for cl(?:\.exe)?: \[WinError 2\]"
            r"|Unable to find vcvarsall\.bat|(?:Failed to|Could not|Cannot) find MSVC|MSVC not found",
        ),
        says(
            "nvcc-rejects-compiler",
            ("unsupported gnu version", "unsupported clang version", "unsupported microsoft visual studio version", "unsupported host compiler"),
            r"unsupported GNU version! gcc versions later than (?P<gcc_max>\d{1,2}) are not supported|unsupported GNU version"
            r"|unsupported clang version! clang version must be less than (?P<clang_limit>\d{1,2})|unsupported clang version"
            r"|unsupported Microsoft Visual Studio version|unsupported host compiler",
        ),
        says(
            "nvcc-finds-no-host-compiler",
            ("host compiler", "no supported gcc/g++"),
            r"nvcc (?:fatal|error) *: *(?:Failed to preprocess host compiler properties|No supported gcc/g\+\+ host compiler found|Host compiler targets unsupported OS|host compiler .{0,40}(?:not found|not supported))",
        ),
        says(
            "torch-bounds",
            "required version by cuda",
            r"current installed version of (?P<tool>\S{1,30}) \((?P<installed>\d{1,2}(?:\.\d+){0,2})\) is (?P<side>greater|less) than the (?:maximum|minimum) required version by CUDA (?P<cuda>\d{1,2}\.\d)(?:.{0,160}?<= ?(?P<below>\d{1,2})|.{0,160}?, ?<(?P<limit>\d{1,2}))?",
        ),
        says(
            "headers-of-newer-gcc",
            ("std_function.h", "/include/c++/", "/usr/lib/gcc/", "mathcalls.h", "bits/floatn"),
            r"std_function\.h:\d+:\d+: error: parameter packs not expanded"
            r"|/usr/(?:lib/gcc/[\w-]{3,40}/(?P<gcc>\d{1,2})/include/\w{1,40}\.h|include/(?:[\w-]{3,40}/)?c\+\+/(?P<gcc2>\d{1,2})/\S{1,80})\(\d+\): (?:catastrophic )?error"
            r"|bits/(?P<libc>mathcalls|floatn|floatn-common)[\w.-]{0,12}\.h(?:\(\d+\): error|\)\s*$)",
        ),
        says(
            "compiler-too-old",
            ("too old version of gcc", "gcc 9 or later", "you need c++17", "c++17 or later compatible compiler", "unrecognized command line option", "unrecognized command-line option"),
            r"too old version of GCC|GCC (?P<need>\d{1,2}) or later|You need C\+\+17 to compile PyTorch|C\+\+17 or later compatible compiler is required"
            r"|unrecognized command[- ]line option ['\"‘’`](?P<option>-std=(?:c|gnu)\+\+\d\w)",
        ),
    ],
)  # fmt: skip
def host_compiler(case: Case, tools: Toolkits | Unknown) -> Judgement:
    """No C/C++ compiler or build tool is available, or nvcc does not accept the version of the one it finds.

    How it shows itself
      Absent: Triton's `Failed to find C compiler. Please specify via CC environment variable`, inductor's `No working
      C++ compiler found`, `gcc: command not found`, `No such file or directory: 'ninja'`, `cannot execute 'cc1plus'`; on Windows `['where', 'cl'] returned non-zero`.
      Refused: `#error -- unsupported GNU version! gcc versions later than 12 are not supported!`, torch's `The current
      installed version of g++ (13.2.0) is greater than the maximum required version by CUDA 12.1`, or errors inside the
      compiler's own headers (`std_function.h: error: parameter packs not expanded`).

    Why it happens
      Triton and torch.compile build a small C module on the machine that runs the model, so even a pure inference image
      needs gcc; slim and CUDA `runtime` images have none. nvcc uses the system's g++ for the host half of every file
      and each release accepts compilers up to a limit: gcc 12 for CUDA 12.0 to 12.3, 13 for 12.4 to 12.6, 14 for 12.8
      and 12.9, 15 for 13.0. A distribution upgrade moves past it.

    How to be sure
      `command -v gcc cc g++ ninja` and `gcc --version` in the environment of the failing process; for a refused one the
      limit stands in the message.

    What helps
      Absent: gcc and g++ (build-essential) in the image, or CC with the path of a compiler; ninja and cmake come from
      pip. Refused: an older g++ beside the default one (g++-12, chosen with CC, CUDAHOSTCXX or -ccbin), or a toolkit
      whose limit is higher.

    What does not help
      A CUDA toolkit for a missing gcc (it holds none), another torch. -allow-unsupported-compiler silences the check,
      and often leads to errors in the compiler's headers next.

    Not to be confused with
      python-headers-missing (the compiler runs, Python.h is absent), toolkit-missing (nvcc is absent), jit-build-killed
      (the compiler is killed).
    """
    rejected = case.found(
        "nvcc-rejects-compiler",
        "torch-bounds",
        "nvcc-finds-no-host-compiler",
        "headers-of-newer-gcc",
        "compiler-too-old",
    )
    absent = case.found("triton-finds-no-compiler", "inductor-finds-no-compiler", "compiler-incomplete", "compiler-not-there",
                        "cmake-finds-no-compiler", "ninja-missing", "msvc-missing", "rust-missing")  # fmt: skip
    first = min(
        (m for m in (rejected, absent) if m is not None and not m.is_code), key=lambda m: m.line.number, default=None
    )
    if first is None:
        return None
    return _refused(case, first, tools) if first is rejected else _absent(case, first)


# Nothing there -----------------------------------------------------------------------------------------------------------


def _absent(case: Case, match: Match) -> Verdict | None:
    tool = _tool(match)
    if _is_only_looked_for(case, match):
        return None
    quoted = case.evidence(match, "what was looked for, and not found")
    component = _component(case, match)
    names_itself = match.sign != "compiler-not-there" or tool not in remedies.FROM_PIP
    return Verdict(
        certainty=Certainty.PROVEN if site.is_the_failure(case, match) else Certainty.LIKELY,
        component=component,
        title=f"{_NAMES.get(tool, tool)} is not available, which {component or 'the build'} needs to compile",
        chain=(
            Link(f"{_NAMES.get(tool, tool)} is not installed, or not on the PATH of this process", case.fact_evidence("gcc") or inferred("the program's own search is all that is known")),
            Link(f"{component or 'a package'} compiles something on this machine", quoted),
            Link("it finds no program to do it with", quoted),
        ),
        evidence=(quoted,),
        explains=site.explained_by(case, match),
        missing=(),
        remedies=remedies.for_absent(case, match, tool),
        not_remedies=remedies.ABSENT_IN_VAIN,
        strength=88 if match.sign in ("triton-finds-no-compiler", "inductor-finds-no-compiler") else 72 if names_itself else 60,
    )  # fmt: skip


_NAMES = {
    "compiler": "A C compiler",
    "c++": "A C++ compiler",
    "cl": "Microsoft's C++ compiler",
    "rust": "A Rust compiler",
}


def _tool(match: Match) -> str:
    """What is missing: ``compiler``, ``c++``, or the name of a build tool."""
    by_sign = {
        "triton-finds-no-compiler": "compiler",
        "inductor-finds-no-compiler": "c++",
        "ninja-missing": "ninja",
        "rust-missing": "rust",
        "msvc-missing": "cl",
    }
    if match.sign in by_sign:
        return by_sign[match.sign]
    name = next((v for g, v in match.groups.items() if g.startswith("tool")), "").lower()
    known = {
        "c": "compiler",
        "cxx": "c++",
        "cc1plus": "c++",
        "cc1": "compiler",
        "rustc": "rust",
        "cargo": "rust",
        "unix makefiles": "make",
    }
    if name in known:
        return known[name]
    if name in ("ninja", "cmake", "make", "ld", "as"):
        return name
    return "c++" if "++" in name else "compiler"


def _is_only_looked_for(case: Case, match: Match) -> bool:
    """A tool that something asks for in passing (``which: no g++``) and that nothing fails for."""
    return match.sign == "compiler-not-there" and match.event is None and case.incident.primary is not None


def _component(case: Case, match: Match) -> str | None:
    if match.sign == "triton-finds-no-compiler":
        return "triton"
    if match.sign == "inductor-finds-no-compiler":
        return "torch"
    return site.builder(case, match, "flashinfer" if _tool(match) == "ninja" and case.engine in site.ENGINES else "torch" if match.sign == "ninja-missing" else None)  # fmt: skip


# There, and refused ------------------------------------------------------------------------------------------------------


def _refused(case: Case, match: Match, tools: Toolkits | Unknown) -> Verdict | RuledOut:
    quoted = case.evidence(
        match,
        "the compiler's version is refused"
        if match.sign != "headers-of-newer-gcc"
        else "nvcc fails in the host compiler's own headers",
    )
    resolution = tools.resolved_by(consumer_near(case, match)) if isinstance(tools, Toolkits) else None
    used = match.group("cuda") or (resolution.version if isinstance(resolution, Resolution) else None)
    limit, shown = (None, None) if match.group("libc") else _limit(match, used)
    installed = None if match.group("libc") else _installed(case, match)
    if match.sign == "headers-of-newer-gcc" and limit and installed and int(installed.partition(".")[0]) <= limit:
        return RuledOut(f"nvcc {used} accepts gcc {installed}", (quoted,))
    component = site.builder(case, match, "flashinfer" if case.engine in site.ENGINES else None)
    is_stated = match.sign in ("nvcc-rejects-compiler", "torch-bounds")
    compiler = (
        "glibc"
        if match.group("libc")
        else "clang"
        if "clang" in match.text
        else "cl"
        if "Visual Studio" in match.text
        else "gcc"
    )
    is_too_old = match.sign == "compiler-too-old" or match.group("side") == "less"
    return Verdict(
        certainty=Certainty.PROVEN if is_stated and site.is_the_failure(case, match) else Certainty.LIKELY,
        component=component,
        title=_title(used, compiler, installed, limit, is_too_old),
        chain=(
            Link(f"The host compiler is {compiler} {installed or '(version not in the log)'}", case.fact_evidence("gcc") or (quoted if installed else inferred("its version is not printed"))),
            Link(f"nvcc{' ' + used if used else ''} accepts {compiler} up to {limit}" if limit and not is_too_old else "the build does not accept this version", shown or quoted),
            Link("the compile stops", quoted),
        ),
        evidence=(quoted,),
        explains=site.explained_by(case, match),
        missing=() if is_stated else tuple(m for m in (case.missing("gcc", "the version of the host compiler"), _toolkit_missing(case, used)) if m),
        rivals=() if is_stated else ("toolkit-too-old-for-library",),
        remedies=remedies.for_refused(case, match, compiler, limit, installed, is_too_old=is_too_old),
        not_remedies=remedies.REFUSED_IN_VAIN,
        strength=88 if is_stated else 66,
    )  # fmt: skip


def _title(used: str | None, compiler: str, installed: str | None, limit: int | None, is_too_old: bool) -> str:
    name = {"cl": "Visual Studio"}.get(compiler, compiler)
    found = f"{name} {installed}" if installed else f"the installed {name}"
    if is_too_old:
        return f"The code that is compiled here needs a newer compiler than {found}"
    bound = f", which it knows up to {limit}" if limit else ""
    return f"nvcc{' ' + used if used else ''} does not accept {found}{bound}"


def _limit(match: Match, used: str | None) -> tuple[int | None, Evidence | None]:
    """The newest host compiler accepted, and what shows it: the message, else the measured table."""
    if match.group("gcc_max"):
        return int(match.groups["gcc_max"]), None
    if match.group("clang_limit"):
        return int(match.groups["clang_limit"]) - 1, None
    if match.group("below"):
        return int(match.groups["below"]), None
    if match.group("limit"):
        return int(match.groups["limit"]) - 1, None
    known = toolkits.gcc_max(used) if used else None
    if known is None or known.value is None:
        return None, None
    return known.value, derived(known.why, known.provenance)


def _installed(case: Case, match: Match) -> str | None:
    stated = match.group("installed") or match.group("gcc") or match.group("gcc2")
    if stated:
        return stated
    known = re.search(r"\d{1,2}(?:\.\d+){0,2}", str(case.facts.value("gcc") or ""))
    if known:
        return known.group(0)
    near = [line.text[:1000] for line in case.lines_around(match, 40, 20)]
    for text in near:
        found = re.search(r"/include/c\+\+/(\d{1,2})/|/lib/gcc/[\w-]{3,40}/(\d{1,2})/", text)
        if found:
            return found.group(1) or found.group(2)
    return None


def _toolkit_missing(case: Case, used: str | None) -> Missing | None:
    return None if used else case.missing("cuda_toolkit", "each release of nvcc accepts host compilers up to a limit")
