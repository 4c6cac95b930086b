"""python-headers-missing: the compiler works, and the interpreter's development headers are not installed."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.toolchain import _build_site as site
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy


@cause(
    "python-headers-missing",
    family="Toolchain",
    signs=[
        says(
            "python-h-missing",
            ("python.h", "pyconfig.h", "patchlevel.h"),
            r"(?P<header>(?:[\w./-]{1,60}/)?(?:Python|pyconfig|patchlevel)\.h)['\"’>]?(?:: No such file or directory| (?:file )?not found)"
            r"|(?:cannot|could not) open (?:source|include) file:? ['\"<]?(?P<header2>(?:[\w./-]{1,60}/)?(?:Python|pyconfig)\.h)",
        ),
        says(
            "cmake-finds-no-python-headers",
            "could not find python",
            r"Could NOT find Python\d?(?:Libs)? \(missing: [^)]{0,200}(?:INCLUDE_DIR|Development|PYTHON_LIBRAR|Python\d?_LIBRAR)",
        ),
        says("python-library-missing", "-lpython", r"(?:cannot find|unable to find library|library not found for) -lpython(?P<version>3\.\d{1,2})?"),
        says(
            "headers-not-installed",
            ("python headers", "python development", "python-dev", "python3-dev", "python.h"),
            r"(?:Python(?: 3(?:\.\d+)?)? (?:development )?headers|Python development (?:files|libraries)|Python\.h) (?:are |is |were )?(?:not (?:found|installed|available)|missing)"
            r"|(?:could not|cannot|unable to) find (?:the )?Python(?:\.h| (?:development )?headers)",
        ),
    ],
)  # fmt: skip
def python_headers_missing(case: Case) -> Judgement:
    """The compiler works, but the headers of the Python interpreter (Python.h) are not installed.

    How it shows itself
      `fatal error: Python.h: No such file or directory`, mostly in a file of Triton's under /tmp (cuda_utils.c, main.c,
      __triton_launcher.c) at the first kernel of a service, or while pip builds an extension. CMake says `Could NOT find
      Python (missing: Python_INCLUDE_DIRS Development.Module)`. In inductor's output the compiler's line stands above a
      long `CalledProcessError` or `CppCompileError`.

    Why it happens
      Triton and torch.compile compile small C modules on the machine that runs the model, so a serving image needs a C
      compiler and the interpreter's headers. Distributions ship them apart: python3-dev (Debian, Ubuntu), python3-devel
      (RHEL, Fedora). A second interpreter (python3.12 of deadsnakes) needs its own package; interpreters of conda, uv
      and python.org bring their headers along.

    How to be sure
      `python -c "import sysconfig; print(sysconfig.get_paths()['include'])"` with the service's own interpreter, and
      look for Python.h in that folder. A virtual environment uses the folder of the interpreter it was made from.

    What helps
      The development package of exactly the interpreter that runs. Without root: an environment made from an
      interpreter that brings its headers (uv, conda).

    What does not help
      Installing gcc or build-essential (a compiler is there: it has just run), a CUDA toolkit, or a pip package: no
      wheel holds Python.h.

    Not to be confused with
      host-compiler (no compiler at all), toolkit-incomplete (a header of CUDA is missing).
    """
    match = case.found(
        "python-h-missing", "python-library-missing", "cmake-finds-no-python-headers", "headers-not-installed"
    )
    if match is None:
        return None
    quoted = case.evidence(match, "the compiler runs, and does not find the interpreter's header")
    version = _interpreter_version(case, match)
    installed = _installed_header(case, version)
    if installed is not None:
        return RuledOut(f"the header is installed: {installed.key.partition('.')[2]}", (quoted, installed.evidence))
    is_direct = match.sign == "python-h-missing"
    component = _compiles_for_inductor(case, match) or site.builder(
        case, match, "triton" if case.engine or _is_scratch_file(match) else None
    )
    return Verdict(
        certainty=Certainty.PROVEN if is_direct and site.is_the_failure(case, match) else Certainty.LIKELY,
        component=component,
        title=f"The headers of Python{' ' + version if version else ''} are not installed, which {component or 'the build'} needs to compile",
        chain=(
            Link("The interpreter's development package is not installed", inferred("its folder of headers was searched by the compiler only")),
            Link(f"{component or 'a build'} compiles a module for this interpreter", quoted),
            Link("the compiler stops at the first include", quoted),
        ),
        evidence=(quoted,),
        explains=site.explained_by(case, match),
        remedies=(*_for_windows(match), *_remedies(version)),
        not_remedies=(
            NotARemedy("installing gcc or build-essential", "a compiler is there: it has just printed the message"),
            NotARemedy("a CUDA toolkit or a pip package", "neither holds Python.h"),
        ),
        strength=88 if is_direct else 62,
    )  # fmt: skip


def _compiles_for_inductor(case: Case, match: Match) -> str | None:
    """torch.compile's C++ wrappers stand in folders of their own; what Triton compiles does not."""
    texts = [match.text, *(line.text for line in case.lines_around(match, 6, 3))]
    return "torch" if any("torchinductor_" in text or "CppCompileError" in text for text in texts) else None


def _is_scratch_file(match: Match) -> bool:
    """A source that was written for the moment, as Triton writes its helpers into the temporary folder."""
    return re.search(r"^/\w{1,20}/tmp\w{1,16}/|cuda_utils|__triton_launcher", match.text) is not None


def _interpreter_version(case: Case, match: Match) -> str | None:
    """``3.12``: from the compiler's command, the path of the packages, or the facts."""
    stated = match.group("version")
    if stated:
        return stated
    lines = [match.line, *case.lines_around(match, 80, 30)]
    for pattern in (
        r"-I\S{0,200}/include/python(3\.\d{1,2})",
        r"cpython-(3\d{1,2})-",
        r"/python(3\.\d{1,2})/(?:site|dist)-packages",
    ):
        for line in lines:
            found = re.search(pattern, line.text[:4000])
            if found:
                digits = found.group(1)
                return digits if "." in digits else f"{digits[0]}.{digits[1:]}"
    known = case.fact("python")
    numbers = re.match(r"3\.\d{1,2}", str(known.value)) if isinstance(known, Fact) else None
    return numbers.group(0) if numbers else None


def _installed_header(case: Case, version: str | None) -> Fact | None:
    for path, fact in case.facts.group("files").items():
        is_own = version is None or f"python{version}/" in path
        if path.endswith("/Python.h") and is_own and fact.value not in (None, "", False, "absent", "missing"):
            return fact
    return None


def _for_windows(match: Match) -> tuple[Remedy, ...]:
    """The embeddable Python of Windows, which portable programs bring, has neither headers nor import libraries."""
    if not re.search(r"[A-Za-z]:[\\/]|\.lib\b", match.text):
        return ()
    return (
        Remedy(
            kind="files", name="include", value="copy from a full Python of the same version", rank=-1,
            summary="Copy the folders include and libs of an installed Python of exactly this version into the embedded one",
        ),
    )  # fmt: skip


def _remedies(version: str | None) -> tuple[Remedy, ...]:
    remedies = [
        Remedy(
            kind="system-package", name="python3-dev", rank=0,
            summary="Install the headers of the distribution's own Python 3 (RHEL and Fedora: python3-devel)",
            commands=("apt-get install -y --no-install-recommends python3-dev",), undo=("apt-get remove python3-dev",),
            cost="some 20 MB", limits=("fits the distribution's default interpreter only",),
        )
    ]  # fmt: skip
    if version is not None:
        remedies.append(
            Remedy(
                kind="system-package", name=f"python{version}-dev", rank=1,
                summary=f"For an interpreter that is not the distribution's default: the headers of Python {version} itself",
                commands=(f"apt-get install -y --no-install-recommends python{version}-dev",), undo=(f"apt-get remove python{version}-dev",),
                cost="some 20 MB; deadsnakes' interpreters need deadsnakes' package",
            )
        )  # fmt: skip
    return tuple(remedies)
