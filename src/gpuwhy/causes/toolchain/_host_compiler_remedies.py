"""What helps when the host compiler is missing, too new for nvcc, or too old for the code."""

from __future__ import annotations

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes.toolchain import _build_site as site
from gpuwhy.knowledge import toolkits
from gpuwhy.model.remedy import NotARemedy, Remedy

FROM_PIP = frozenset({"ninja", "cmake"})
"""Build tools that are pip packages too."""
ABSENT_IN_VAIN = (
    NotARemedy("a CUDA toolkit", "nvcc brings no C or C++ compiler; it needs one itself"),
    NotARemedy("reinstalling torch or triton", "neither wheel holds a compiler"),
)
REFUSED_IN_VAIN = (
    NotARemedy(
        "-allow-unsupported-compiler", "silences the check only: mostly errors in the compiler's own headers follow"
    ),
    NotARemedy("another torch or driver", "the limit is nvcc's"),
)


def for_absent(case: Case, match: Match, tool: str) -> tuple[Remedy, ...]:
    """The missing program, by the smallest way to get it."""
    if tool in FROM_PIP:
        return (_from_pip(tool),)
    if tool == "rust":
        return (
            Remedy(kind="system-package", name="rustc", summary="Install Rust (rustup, or rustc and cargo of the distribution), or a release of the package with a wheel"),
        )  # fmt: skip
    if tool == "cl":
        return (
            Remedy(kind="system-package", name="visual-studio-build-tools", summary="Install the Microsoft C++ Build Tools, and start the program from their command prompt"),
        )  # fmt: skip
    if tool == "make":
        return (_distribution("make"), _distribution("build-essential", rank=1))
    if tool in ("ld", "as"):
        return (_distribution("binutils"), _distribution("build-essential", rank=1))
    is_cxx = tool == "c++"
    is_installed = bool(case.facts.value("gcc"))
    variable = "CXX" if is_cxx else "CC"
    chosen = Remedy(
        kind="env", name=variable, value="path of a C++ compiler" if is_cxx else "path of a C compiler",
        summary=f"If a compiler is installed after all, name it in {variable} in the service's environment",
        check=(f'test -x "$(command -v ${variable})"',), is_sure=False,
    )  # fmt: skip
    return (
        *((chosen,) if is_installed and match.sign != "compiler-incomplete" else ()),
        _distribution("g++" if is_cxx else "gcc"),
        _distribution("build-essential", rank=1),
        *site.devel_image(case, match, "it holds gcc and g++; runtime and base images do not"),
    )


def _from_pip(tool: str) -> Remedy:
    return Remedy(
        kind="package", name=tool, value="newer",
        summary=f"Install {tool} into the environment of the service (pip install {tool}), with its bin folder on PATH",
        cost="a few MB", check=(f"{tool} --version",),
        limits=("a service started by the full path of its python has not the environment's bin folder on PATH by itself",),
    )  # fmt: skip


def _distribution(name: str, *, rank: int = 0, value: str = "") -> Remedy:
    rhel = {"build-essential": "the group 'Development Tools'", "g++": "gcc-c++"}.get(name, name)
    return Remedy(
        kind="system-package", name=name, value=value, rank=rank,
        summary=f"Install {name} (RHEL and Fedora: {rhel}), in the image where the service runs in a container",
        commands=(f"apt-get install -y --no-install-recommends {name}",), undo=(f"apt-get remove {name}",), cost="50 to 300 MB",
    )  # fmt: skip


def for_refused(
    case: Case, match: Match, compiler: str, limit: int | None, installed: str | None, *, is_too_old: bool
) -> tuple[Remedy, ...]:
    """Another version of the compiler beside the default one, or a toolkit with a higher limit."""
    if compiler == "cl":
        return (
            site.toolkit("newer", "one that accepts this Visual Studio"),
            Remedy(kind="system-package", name="visual-studio-build-tools", value="older", summary="Install the build tools of a Visual Studio that this toolkit accepts"),
        )  # fmt: skip
    if compiler == "glibc":
        return (
            site.toolkit("newer", "its headers agree with this glibc"),
            *site.devel_image(case, match, "its glibc is one that the toolkit was made for"),
        )
    if is_too_old:
        return (
            _choose(case, match, "a newer g++"),
            Remedy(kind="system-package", name="g++", value="newer", summary="Install a newer g++ (RHEL: gcc-toolset-12; Ubuntu: the toolchain PPA; conda: gxx_linux-64)"),
        )  # fmt: skip
    wanted = f"-{limit}" if limit else ""
    binary = f"/usr/bin/{'clang++' if compiler == 'clang' else 'g++'}{wanted}"
    first = _first_toolkit(compiler, installed)
    return (
        _choose(case, match, binary),
        _distribution(f"{'clang' if compiler == 'clang' else 'gcc'}{wanted}", value="" if wanted else "older"),
        *(() if compiler == "clang" else (_distribution(f"g++{wanted}", rank=1, value="" if wanted else "older"),)),
        site.toolkit(f">={first}" if first else "newer", f"it accepts {compiler} {installed.partition('.')[0] if installed else 'of this version'}"),
        Remedy(
            kind="env", name="NVCC_PREPEND_FLAGS", value=f"-ccbin {binary}", rank=10,
            summary="Give nvcc the older compiler whatever the build system passes", is_sure=False,
        ),
    )  # fmt: skip


def _choose(case: Case, match: Match, binary: str) -> Remedy:
    """The variable by which this build chooses nvcc's host compiler."""
    is_cmake = any("cmake" in line.text[:500].lower() for line in (match.line, *case.lines_around(match, 150, 40)))
    name = "CUDAHOSTCXX" if is_cmake else "CC"
    value = binary if is_cmake else binary.replace("clang++", "clang").replace("g++", "gcc")
    return Remedy(
        kind="env", name=name, value=value,
        summary=f"Let nvcc use {value} beside the default compiler" + ("" if is_cmake else " (and CXX the C++ one)"),
        cost="that compiler must be installed; delete what was half built", is_sure=False,
    )  # fmt: skip


def _first_toolkit(compiler: str, installed: str | None) -> str | None:
    if compiler != "gcc" or not installed:
        return None
    accepting = toolkits.releases_accepting_gcc(int(installed.partition(".")[0]))
    return accepting[0] if accepting else None
