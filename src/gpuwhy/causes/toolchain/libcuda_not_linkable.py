"""libcuda-not-linkable: a link step does not find the driver's library under the name or path the linker uses."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.toolchain import _build_site as site
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Toolkits
from gpuwhy.model.remedy import NotARemedy, Remedy


@cause(
    "libcuda-not-linkable",
    family="Toolchain",
    signs=[
        says(
            "linker-finds-no-libcuda",
            (
                "cannot find -lcuda",
                "unable to find library -lcuda",
                "library not found for -lcuda",
                "library not found: cuda",
                "cannot find cuda.lib",
                "'cuda.lib'",
                "cannot find library -lcuda",
            ),
            r"(?:cannot find|unable to find library|library not found for|cannot find library) -lcuda(?![\w-])|library not found: cuda(?!\w)|(?:cannot open input file|cannot find) '?cuda\.lib",
        ),
        says(
            "needed-library-not-found",
            "libcuda.so",
            r"libcuda\.so(?:\.1)?, needed by [^\n]{1,300}?, ?not found",
        ),
        says("triton-finds-no-libcuda", "libcuda.so cannot found", r"libcuda\.so cannot found!"),
        says(
            "possible-files",
            "possible files are located at",
            r"Possible files are located at ?\[(?P<files>[^\]]{0,400})\]",
        ),
        says(
            "cmake-finds-no-libcuda",
            ("cuda::cuda_driver", "cuda_cuda_library", "cuda_driver_library"),
            r"CUDA::cuda_driver\b.{0,60}not found|\bCUDA_CUDA_LIBRARY\b.{0,60}NOTFOUND|\bCUDA_CUDA_LIBRARY\b(?=.{0,200}used in this project)"
            r"|missing: [^)]{0,200}CUDA_(?:CUDA|DRIVER)_LIBRARY",
        ),
        says(
            "undefined-driver-call",
            "undefined reference to",
            r"undefined reference to [`'‘](?P<symbol>cu(?:Init|Ctx|Mem|Mod|Module|Launch|Device|Get|Stream|Event|Func|Link|Driver|Graph|TensorMap|Multicast|Occupancy|Pointer|Array|Kernel|Library)\w{0,60})['’]",
        ),
        says(
            "skips-incompatible",
            "skipping incompatible",
            r"skipping incompatible (?P<path>\S{1,300}libcuda\.so\S{0,20}) when searching for -lcuda",
        ),
    ],
)
def libcuda_not_linkable(case: Case, tools: Toolkits | Unknown) -> Judgement:
    """A linker cannot find libcuda, the driver's library, under the name or in the folders where it looks.

    How it shows itself
      `/usr/bin/ld: cannot find -lcuda` while Triton compiles its small C helper, or in a source build; `libcuda.so.1,
      needed by ..., not found (try using -rpath or -rpath-link)` and `undefined reference to cuMemCreate` when an image
      is built without a GPU; Triton's `libcuda.so cannot found!`; CMake's `CUDA::cuda_driver but the target was not
      found`.

    Why it happens
      The linker asks for a file named libcuda.so. The driver, and the NVIDIA container hook, bring libcuda.so.1; the
      plain name is a link that a driver installation for developers makes, or the stub in the toolkit
      (lib64/stubs/libcuda.so). Without either the library is there for running programs and not for linking new ones.
      A stale ldconfig cache has the same effect on Triton, which asks `ldconfig -p` for the folder. During `docker
      build` no driver is mounted at all, only the stub exists.

    How to be sure
      `ldconfig -p | grep libcuda` and `ls /usr/local/cuda/lib64/stubs/libcuda.so`: libcuda.so.1 listed, libcuda.so
      nowhere on the link path. The message must come from a linker (ld, collect2, lld): at run time it is another fault.

    What helps
      Triton: TRITON_LIBCUDA_PATH with the folder of libcuda.so.1, or `ldconfig`. Any build: LIBRARY_PATH with the
      toolkit's lib64/stubs; a link libcuda.so -> libcuda.so.1 beside the library. In an image build for `needed by`: a
      link stubs/libcuda.so.1 -> libcuda.so, found by LD_LIBRARY_PATH for the build step only.

    What does not help
      Reinstalling the driver, a CUDA toolkit inside the container for its libcuda (it has only the stub), LD_LIBRARY_PATH
      for -lcuda. A stub folder left on LD_LIBRARY_PATH at run time breaks CUDA (libcuda-shadowed).

    Not to be confused with
      container-gpu-not-passed (libcuda.so.1 missing when a program starts), toolkit-incomplete (-lcudart, -lcublas ...),
      libcuda-shadowed.
    """
    match = case.found(
        "linker-finds-no-libcuda", "triton-finds-no-libcuda", "needed-library-not-found", "cmake-finds-no-libcuda"
    )
    if match is None:
        match = case.found("undefined-driver-call")
        if match is None:
            return None
    return _verdict(case, match, tools)


def _verdict(case: Case, match: Match, tools: Toolkits | Unknown) -> Judgement:
    listed = case.found("possible-files")
    is_absent = _is_absent(match, listed)
    if is_absent and match.sign == "triton-finds-no-libcuda" and case.facts.value("libcuda_path", "") is None:
        return RuledOut(
            "no libcuda is in this place at all: the GPU was not passed to it",
            (case.evidence(match, "where Triton looked"),),
        )
    component = _component(case, match)
    quoted = case.evidence(
        match,
        "the linker's own words" if match.sign != "undefined-driver-call" else "a function of the driver's library",
    )
    is_direct = match.sign in ("linker-finds-no-libcuda", "needed-library-not-found")
    certainty = Certainty.LIKELY
    if is_direct and site.is_the_failure(case, match):
        certainty = Certainty.PROVEN
    elif is_absent or match.sign == "undefined-driver-call":
        certainty = Certainty.POSSIBLE
    return Verdict(
        certainty=certainty,
        component=component,
        title="The linker does not find libcuda" + (" for Triton's helper" if component == "triton" else ""),
        chain=(
            Link("The folder or the plain name libcuda.so is not on the link path", _cause_evidence(case, listed)),
            Link(f"{component or 'a build'} links against the driver's library", quoted),
            Link("the link step fails", quoted),
        ),
        evidence=(quoted, *((case.evidence(listed, "where the library lies"),) if listed and listed.group("files") else ())),
        explains=site.explained_by(case, match, *case.all("undefined-driver-call")[:1]),
        missing=() if case.facts.value("libcuda_path") else _what_decides(case, certainty),
        rivals=("container-gpu-not-passed",) if certainty is Certainty.POSSIBLE else (),
        remedies=_remedies(case, match, component, tools),
        not_remedies=(
            NotARemedy("installing or upgrading the driver", "the library is there for running programs; only its linker name is not"),
            NotARemedy("the stubs folder on LD_LIBRARY_PATH at run time", "the program would load the stub, which only returns errors"),
            *((NotARemedy("LD_LIBRARY_PATH", "ld looks for -lcuda in LIBRARY_PATH and -L folders only"),) if match.sign == "linker-finds-no-libcuda" else ()),
        ),
        strength=86 if is_direct else 70 if match.sign != "undefined-driver-call" else 45,
    )  # fmt: skip


def _is_absent(match: Match, listed: Match | None) -> bool:
    """Whether there may be no libcuda here at all: Triton then lists no possible file."""
    if match.sign != "triton-finds-no-libcuda":
        return False
    return listed is None or not (listed.group("files") or "").strip()


def _component(case: Case, match: Match) -> str | None:
    """Triton links its helper while a service runs; anything else that links is a build somebody started."""
    if match.sign == "triton-finds-no-libcuda":
        return "triton"
    near = case.lines_around(match, 25, 15)
    is_own_build = site.is_source_build(case, match) or any(
        re.search(r" -lcuda|/CMakeFiles/|cpp_extension|[Bb]uilding extension", line.text[:2000]) for line in near
    )
    return site.builder(case, match, "triton") if is_own_build else "triton"


def _cause_evidence(case: Case, listed: Match | None) -> Evidence:
    if listed is not None and listed.group("files"):
        return case.evidence(listed, "the library is installed, in a folder that is not searched")
    return case.fact_evidence("libcuda_path") or inferred("nobody looked at the host")


def _what_decides(case: Case, certainty: Certainty) -> tuple[Missing, ...]:
    asked = [
        case.missing(
            "libcuda_path",
            "whether libcuda.so.1 is here, and where",
            "ldconfig -p | grep libcuda; find / -name 'libcuda.so*' 2>/dev/null",
        )
    ]
    if certainty is Certainty.POSSIBLE:
        asked.append(
            case.missing("container.gpus", "without the GPU passed there is no libcuda to link", "nvidia-smi -L")
        )
    return tuple(m for m in asked if m is not None)


def _remedies(case: Case, match: Match, component: str | None, tools: Toolkits | Unknown) -> tuple[Remedy, ...]:
    stubs = f"{_toolkit_root(case, match, tools)}/lib64/stubs"
    real = str(case.facts.value("libcuda_path") or "")
    folder = real.rpartition("/")[0] if re.fullmatch(r"/[\w./+-]{1,200}", real) else ""
    remedies = []
    if component == "triton":
        remedies.append(
            Remedy(
                kind="env", name="TRITON_LIBCUDA_PATH", value=folder or "directory with libcuda.so",
                summary="Tell Triton the folder of the driver's library, so that it does not ask ldconfig",
                limits=("the folder must hold a file named libcuda.so, or the toolkit's stubs folder must be on LIBRARY_PATH too",),
            )
        )  # fmt: skip
    if match.sign in ("needed-library-not-found", "undefined-driver-call"):
        remedies.append(
            Remedy(
                kind="env", name="LD_LIBRARY_PATH", value=stubs, rank=5,
                summary=f"For the build step only: let ld find the stub as a needed library, with a link {stubs}/libcuda.so.1 to libcuda.so",
                limits=("must not stay set when the program runs: it would load the stub",),
            )
        )  # fmt: skip
    remedies.append(
        Remedy(
            kind="env", name="LIBRARY_PATH", value=stubs, rank=10,
            summary="Let the linker find the toolkit's stub of libcuda; at run time the driver's own library is loaded",
            limits=("the folder exists where cuda-driver-dev, which holds the stub, is installed",),
        )
    )  # fmt: skip
    remedies += [
        Remedy(
            kind="files", name="ldconfig cache", value="refresh", commands=("ldconfig",), rank=0,
            summary="Refresh the loader's cache, from which Triton takes the folder",
            limits=("cures a stale cache only; the plain name libcuda.so must exist",), is_sure=component == "triton",
        ),
        Remedy(
            kind="files", name="libcuda.so", value="symlink to libcuda.so.1", rank=5,
            commands=(f"ln -s libcuda.so.1 {folder}/libcuda.so",) if folder else (),
            undo=(f"rm {folder}/libcuda.so",) if folder else (),
            summary="Make the linker's name beside the driver's library"
            + (" (in an image build: stubs/libcuda.so.1 beside the stub)" if match.sign == "needed-library-not-found" else ""),
        ),
    ]  # fmt: skip
    if match.sign in ("needed-library-not-found", "cmake-finds-no-libcuda", "undefined-driver-call"):
        remedies.append(
            Remedy(
                kind="flag", name="CMAKE_EXE_LINKER_FLAGS", value="-Wl,--allow-shlib-undefined", is_sure=False,
                summary="Let the linker leave the driver's functions open until the program runs",
            )
        )  # fmt: skip
    return tuple(remedies)


def _toolkit_root(case: Case, match: Match, tools: Toolkits | Unknown) -> str:
    """The toolkit whose stubs can be linked: the one on the host, else the one the log names, else the usual one."""
    if isinstance(tools, Toolkits) and tools.installs:
        return tools.installs[0].root
    for line in (match.line, *case.lines_around(match, 60, 30)):
        found = re.search(r"(/usr/local/cuda(?:-\d+\.\d+)?)(?=[/:'\s])", line.text[:2000])
        if found:
            return found.group(1)
    return "/usr/local/cuda"
