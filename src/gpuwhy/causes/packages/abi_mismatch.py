"""abi-mismatch: a compiled extension expects symbols of another build of torch, or of another library."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.causes.packages._asking import owner_of_operators
from gpuwhy.causes.packages._symbols import UNDEFINED, Undefined, owner_by_name, undefined_symbols
from gpuwhy.knowledge import pins, torch_companions
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.host import Torch
from gpuwhy.model.loading import Loadings
from gpuwhy.model.remedy import NotARemedy, Remedy

_TITLES = {
    "torch": "was compiled for another torch than the one installed",
    "own": "consists of parts that come from different builds",
    "nccl": "finds a NCCL without a function it was compiled for",
    "cuda": "finds a CUDA library of another release than the one it was compiled for",
    "driver": "asks the driver's library for a function that it does not have",
    "python": "was compiled for another Python",
    "other": "was compiled against another release of a library than the one it finds",
    "unnamed": "was compiled against another release of a library than the one installed",
}
_CERTAINTY = {"torch": Certainty.PROVEN, "own": Certainty.LIKELY, "python": Certainty.LIKELY, "cuda": Certainty.LIKELY}
_STRENGTH = {"torch": 85, "own": 75, "python": 70, "cuda": 68, "other": 60, "unnamed": 50, "nccl": 38, "driver": 35}
_RIVALS = {
    "nccl": ("nccl-version", "package-conflict"),
    "driver": ("driver-too-old", "libcuda-shadowed"),
    "cuda": ("cuda-major-mismatch", "package-conflict"),
    "unnamed": ("libc-too-old", "package-conflict"),
    "other": ("package-conflict", "library-missing"),
    "own": ("package-conflict",),
}

_JIT_CACHE = lazy_pattern(
    r"\.cache/(?:flashinfer|torch_extensions|tvm-ffi|vllm|sglang|deep_gemm)|/cached_ops/|\.triton/cache|torchinductor_|torch_extensions/"
)
"""Where modules lie that were compiled on this machine against the torch of that day."""


@cause(
    "abi-mismatch",
    family="Packages",
    signs=[
        UNDEFINED,
        says(
            "numpy-abi",
            ("compiled using numpy 1.x", "size changed, may indicate binary incompatibility", "_array_api not found", "module compiled against", "numpy.core.multiarray failed to import", "numpy is not available"),
            r"A module that was compiled using NumPy 1\.x cannot be run in(?: NumPy (?P<numpy>\d[\w.]{0,12}))?|(?P<class>numpy\.\w{1,20}|\w{1,40}\.\w{1,40}) size changed, may indicate binary incompatibility"
            r"|_ARRAY_API not found|module compiled against (?:ABI|API) version|numpy\.core\.multiarray failed to import|RuntimeError: Numpy is not available",
        ),
        says(
            "procedure-missing",
            ("specified procedure could not be found", "winerror 127"),
            r"(?:DLL load failed(?: while importing (?P<module>\w{1,60}))?.{0,40}|WinError 127\].{0,10})The specified procedure could not be found(?:.{0,40}?(?:loading|Error loading) \"?(?P<binary>[^\"\s]{3,200}))?",
        ),
        says(
            "operators-absent",
            ("_opnamespace", "has no attribute"),
            r"'_OpNamespace' '(?P<module>\w{1,60})' object has no attribute '(?P<operator>\w{1,80})'",
        ),
        says("abi-said", ("abi mismatch", "abi incompatib", "incompatible abi"), r"\b(?:C\+\+ |cxx11 |torch |PyTorch |C10 )?ABI (?:mismatch|incompatib)|incompatible ABI"),
        says(
            "extension-of-other-torch",
            ("error: the extension was", "was compiled with pytorch", "compiled against a different version of pytorch"),
            r"(?:compiled|built) (?:with|against|for) (?:a different version of )?(?:PyTorch|torch)(?: version)? ?(?P<built>\d\.\d{1,2}[\w.+]{0,16})?.{0,60}?(?:but|while|loaded|current|running).{0,40}?(?P<have>\d\.\d{1,2}[\w.+]{0,16})",
        ),
    ],
)  # fmt: skip
def abi_mismatch(case: Case, torch: Torch | Unknown) -> Judgement:
    """A compiled extension expects C++ symbols of another build of torch, or of another library, than is installed.

    How it shows itself
      `ImportError: .../flash_attn_2_cuda...so: undefined symbol: _ZN3c10...` or `symbol lookup error`. vLLM and SGLang
      catch the error, warn (`Failed to import from vllm._C with ImportError(...)`, `Could not load any common_ops
      library`) and fail later with `'_OpNamespace' '_C' object has no attribute`. On Windows: `DLL load failed ... The
      specified procedure could not be found`. With NumPy: `A module that was compiled using NumPy 1.x cannot be run in
      NumPy 2`.

    Why it happens
      A C++ function's parameter types are part of its symbol, and torch changes them between minor releases. A wheel
      therefore fits the torch it was compiled against, mostly that minor release only. Afterwards something upgraded torch,
      or a wheel for another torch was chosen. A second way: the string type. torch's wheels up to 2.5 were compiled with
      the old one (`Ss` in a symbol), those from 2.7 on with that of C++11 (`__cxx11`), as NVIDIA's own images always were.

    How to be sure
      `c++filt SYMBOL` makes it readable. c10, at, torch: torch's. `python -c "import torch; print(torch.__version__,
      torch._C._GLIBCXX_USE_CXX11_ABI)"` against the torch that the package's release was built for.

    What helps
      The package's wheel for the installed torch; the torch that the engine pins; a build from source against the installed
      torch (`pip install --no-build-isolation --no-cache-dir --no-binary NAME NAME`).

    What does not help
      Choosing a wheel by the CUDA version alone, another driver or toolkit, an architecture list, `pip install --upgrade`
      of the same package without regard to torch.

    Not to be confused with
      libc-too-old (the symbol is of std::, or `GLIBC_` not found), cuda-major-mismatch (a whole library is missing),
      package-conflict (a declared version check says so).
    """
    symbols = [each for each in undefined_symbols(case) if each.owner != "standard"]
    if symbols:
        return _undefined(case, symbols[0], torch)
    numpy = case.found("numpy-abi")
    if numpy is not None and case.incident.is_failure:
        return _numpy(case, numpy)
    other = case.found("extension-of-other-torch", "procedure-missing")
    if other is not None:
        return _extension(case, other, torch)
    said = case.found("abi-said")
    if said is not None and said.event is not None:
        return _extension(case, said, torch)
    return _operators_absent(case, torch)


def _undefined(case: Case, undefined: Undefined, torch: Torch | Unknown) -> Judgement:
    match = undefined.match
    component = parts.component_of_binary(case, match, undefined.binary) or owner_by_name(undefined)
    quoted = case.evidence(match, f"the loader finds nobody who defines {undefined.readable}")
    certainty = _CERTAINTY.get(undefined.owner, Certainty.POSSIBLE)
    strings = _string_types(undefined)
    if undefined.owner == "own" and strings:
        certainty = Certainty.PROVEN if _both_spellings(case, undefined) else Certainty.LIKELY
    if undefined.owner == "torch" and not undefined.symbol:
        certainty = Certainty.LIKELY
    if component in (None, "torch") and undefined.owner == "torch":
        certainty = Certainty.LIKELY  # torch's own halves, or a binary that the line does not name
    read = Loadings.of(case.facts).undefined(undefined.symbol)
    if read is not None:
        certainty = Certainty.PROVEN
    cleared = _cleared(case, undefined)
    if cleared is not None and certainty is Certainty.PROVEN:
        certainty = Certainty.LIKELY
    name = component or "A compiled extension"
    certainty = parts.capped(case, match, certainty, *case.all("operators-absent"))
    is_cached = _JIT_CACHE.search(undefined.binary or match.text) is not None
    if is_cached and certainty is not Certainty.POSSIBLE:
        certainty = Certainty.LIKELY
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{name} {_TITLES[undefined.owner]}",
        chain=(
            Link(f"{name} was compiled against {_of_whom(undefined)} of another release", read[1] if read else strings or inferred("its build is not in the log")),
            Link(f"the symbol {undefined.readable} is not defined by what is installed", quoted),
        ),
        against=(cleared,) if cleared is not None else (),
        evidence=(quoted, *((read[1],) if read else ()), *((strings,) if strings else ()), *parts.evidence_of(case, "torch", "the installed torch")),
        explains=case.explains(match, case.found("operators-absent")),
        missing=_missing(case, component, undefined.owner),
        rivals=("jit-cache-stale",) if is_cached else _RIVALS.get(undefined.owner, ()),
        remedies=(
            *((_DELETE_CACHE,) if is_cached else ()),
            *_remedies(case, component, undefined.owner, torch, is_about_strings=strings is not None),
        ),
        not_remedies=_IN_VAIN,
        strength=45 if is_cached else 85 if read else _STRENGTH[undefined.owner],
    )  # fmt: skip


def _cleared(case: Case, undefined: Undefined) -> Evidence | None:
    """What shows that the file finds all of its symbols now: something was changed since the failure."""
    loading = Loadings.of(case.facts).of_file(undefined.binary)
    fact = case.fact(f"loading.{undefined.binary}")
    return fact.evidence if loading is not None and loading.loads and isinstance(fact, Fact) else None


def _of_whom(undefined: Undefined) -> str:
    if undefined.provider:
        return undefined.provider
    names = {"torch": "torch", "own": "a part of itself", "nccl": "NCCL", "cuda": "a CUDA library", "python": "Python", "driver": "the driver's library"}  # fmt: skip
    return names.get(undefined.owner, "a library")


def _string_types(undefined: Undefined) -> Evidence | None:
    """Which of the two string types the caller was compiled with."""
    name = undefined.name
    if name is None or name.old_strings == name.new_strings:
        return None
    provenance = "documented: the Itanium C++ ABI writes the old std::string as Ss, the one of C++11 with __cxx11"
    if name.old_strings:
        return derived("the caller was compiled with the string type of before C++11 (Ss in the symbol)", provenance)
    return derived("the caller was compiled with the string type of C++11 (__cxx11 in the symbol)", provenance)


def _both_spellings(case: Case, undefined: Undefined) -> bool:
    """Whether the report shows the same function defined with the other string type (someone ran nm)."""
    name = undefined.name
    if name is None:
        return False
    wanted = "__cxx11" if name.old_strings else "Ss"
    own = name.scopes[-1]
    return any(
        wanted in line.text and own in line.text and undefined.symbol not in line.text
        for line in case.lines_around(undefined.match, 60, 60)
    )


def _numpy(case: Case, match: Match) -> Judgement:
    carrier = case.component_near(match)
    module = parts.says_around(case, match, r"^\s*(?:File \")?\S{0,200}(?:site|dist)-packages/")
    if carrier in (None, "numpy"):
        carrier = (parts.component_of(_path_in(module.text)) if module else None) or "numpy"
    quoted = case.evidence(match, "a module was compiled for another NumPy than the one installed")
    is_failure = match.event is not None and match.event.kind in ("exception", "crash")
    is_exact = is_failure and ("compiled using NumPy 1.x" in match.text or "size changed" in match.text)
    return Verdict(
        certainty=Certainty.LIKELY if is_exact else Certainty.POSSIBLE,
        component="numpy" if is_exact and "NumPy 1.x" in match.text else carrier,
        title=f"A compiled part of {carrier} belongs to another NumPy than the one installed",
        chain=(Link("NumPy was upgraded under a module compiled for an earlier one", quoted), Link("the module refuses to load, or is not used", quoted)),
        evidence=(quoted, *parts.evidence_of(case, "numpy", "the installed NumPy")),
        explains=case.explains(match),
        missing=_asked(case.missing("packages.numpy", "which NumPy is installed", "python -m pip show numpy")),
        rivals=("package-conflict",),
        remedies=(
            Remedy(kind="package", name="numpy", value="<2", summary="Install the NumPy that the module was compiled for", check=("python -c 'import numpy; print(numpy.__version__)'",)),
            Remedy(kind="package", name=parts.distribution_of(carrier or ""), value="newer", summary=f"Or a release of {carrier} that was compiled with NumPy 2", rank=2),
        ),
        strength=62 if is_exact else 40,
    )  # fmt: skip


def _path_in(text: str) -> str | None:
    found = re.search(r"[\w./+@~-]{1,300}(?:site|dist)-packages/[\w./+-]{1,200}", text[:800])
    return found.group(0) if found else None


def _extension(case: Case, match: Match, torch: Torch | Unknown) -> Judgement:
    """Windows, and programs that name the ABI themselves: nobody says which symbol it is."""
    component = parts.component_of(match.group("binary") or match.group("module")) or case.component_near(match)
    quoted = case.evidence(match, "the loader or the program says that a compiled part does not fit")
    return Verdict(
        certainty=Certainty.LIKELY if match.sign == "extension-of-other-torch" else Certainty.POSSIBLE,
        component=component,
        title=f"{component or 'A compiled extension'} {_TITLES['unnamed']}",
        chain=(Link(f"{component or 'the extension'} was compiled against another release", quoted),),
        evidence=(quoted, *parts.evidence_of(case, "torch", "the installed torch")),
        explains=case.explains(match),
        missing=_missing(case, component, "torch"),
        rivals=("package-conflict", "cuda-major-mismatch"),
        remedies=_remedies(case, component, "torch", torch),
        not_remedies=_IN_VAIN,
        strength=55,
    )


def _operators_absent(case: Case, torch: Torch | Unknown) -> Judgement:
    """Operators that were never registered: the import of the compiled part failed before, and the log has no line of it."""
    match = case.found("operators-absent")
    if match is None:
        return None
    module = match.group("module") or ""
    component = parts.component_of(module) or case.component_near(match, case.engine or owner_of_operators(module))
    quoted = case.evidence(
        match, "the operators of the compiled part are not registered; the reason was printed before"
    )
    other_torch = _torch_outside_the_pin(case)
    return Verdict(
        certainty=Certainty.LIKELY if other_torch else Certainty.POSSIBLE,
        component=component,
        title=f"The compiled part of {component or module} was not loaded",
        chain=(Link("an import failed earlier, and only a warning was printed", inferred("not in this log"), is_swallowed=True), Link("its operators are missing when they are called", quoted)),
        evidence=(quoted, *other_torch),
        explains=case.explains(match),
        missing=_missing(case, component, "torch"),
        rivals=("libc-too-old", "cuda-major-mismatch", "import-shadowed", "api-drift"),
        remedies=_remedies(case, component, "torch", torch),
        not_remedies=_IN_VAIN,
        strength=65 if other_torch else 30,
    )  # fmt: skip


def _torch_outside_the_pin(case: Case) -> tuple[Evidence, ...]:
    """Evidence that torch is of another release than the engine was compiled for; empty when it is not known to be."""
    pin, version = parts.required_by_engine(case, "torch"), parts.version_of(case, "torch")
    if pin is None or version is None or pins.admits(pin, version) is not False:
        return ()
    return (derived(pin.why, pin.provenance), *parts.evidence_of(case, "torch", "the installed torch"))


def _asked(*asked: Missing | None) -> tuple[Missing, ...]:
    return tuple(each for each in asked if each is not None)


def _missing(case: Case, component: str | None, owner: str) -> tuple[Missing, ...]:
    asked = []
    if owner in ("torch", "own", "unnamed"):
        asked.append(case.missing("torch", "which torch the extension meets"))
    if owner in ("nccl", "cuda"):
        asked.append(case.missing("env.LD_LIBRARY_PATH", "a folder in it can hide the library that torch brings"))
        asked.append(case.missing("packages", "two packages may hold the same library", "python -m pip list"))
    if owner == "driver":
        asked.append(case.missing("driver"))
        asked.append(case.missing("libcuda_path", "which libcuda the process loads", "ldconfig -p | grep libcuda.so.1"))
    if component is not None and component not in ("torch", "python-env"):
        name = parts.distribution_of(component)
        asked.append(case.missing(f"packages.{name}", "for which torch it was built", f"python -m pip show {name}"))
    return _asked(*asked)


def _remedies(
    case: Case, component: str | None, owner: str, torch: Torch | Unknown, *, is_about_strings: bool = False
) -> tuple[Remedy, ...]:
    if owner in ("nccl", "cuda"):
        return _library_remedies(owner)
    if owner == "driver":
        return (Remedy(kind="driver", name="nvidia", value="newer", summary="Use a driver that has the function", cost="a reboot", is_sure=False),)  # fmt: skip
    name = parts.distribution_of(component, case) if component else "the extension"
    version = torch.version if isinstance(torch, Torch) else None
    if component in torch_companions.COMPANIONS:
        value = (torch_companions.release_for(component, version) if version else None) or "match:torch"
        first = _package(
            name, value, f"Install the release of {name} that belongs to torch {version or 'as installed'}"
        )
        return (first, _torch_of(component, parts.version_of(case, component)))
    if component in parts.PARTS_OF_ENGINES and case.engine in ("vllm", "sglang"):
        return (
            _package(name, parts.constraint_for(case, name), f"Install the {name} that this {case.engine} asks for"),
            _package("torch", parts.constraint_for(case, "torch"), f"Install the torch that this {case.engine} asks for, with torchvision and torchaudio of the same release", rank=1),
            _rebuild(name, rank=3),
            *parts.whole_engine(case),
        )  # fmt: skip
    if component in parts.ENGINES:
        return (
            _package("torch", parts.constraint_for(case, "torch") or f"match:{component}", f"Install the torch that this release of {component} was compiled for"),
            _package(name, "match:torch", f"Or the release of {name} for the installed torch", rank=1),
            _rebuild(name, rank=3),
            Remedy(kind="container", name="image", value=f"official image of {component}", summary=f"Run the official image of {component}", cost="a download of 10 to 30 GB", rank=4),
        )  # fmt: skip
    built = [
        _package(
            name, "match:torch", f"Install the wheel of {name} for the installed torch{_with_string_type(version)}"
        ),
        _rebuild(name, rank=1),
        _package("torch", f"match:{name}", f"Or the torch that the installed {name} was compiled for", rank=2),
    ]
    if is_about_strings:
        built.append(Remedy(kind="container", name="image", value="one in which torch and the extension come from one builder (NGC PyTorch)", summary="Run an image in which all of it was built with one string type", cost="a download of 10 to 20 GB", rank=4))  # fmt: skip
    return tuple(built)


def _with_string_type(version: str | None) -> str:
    is_new = torch_companions.has_new_string_abi(version) if version else None
    return "" if is_new is None else f" (with cxx11 ABI {'TRUE' if is_new else 'FALSE'})"


def _package(name: str, value: str, summary: str, rank: int = 0) -> Remedy:
    return Remedy(kind="package", name=name, value=value or "match:torch", summary=summary, rank=rank, check=(f"python -m pip show {name}",))  # fmt: skip


def _rebuild(name: str, rank: int) -> Remedy:
    return Remedy(
        kind="package", name=name, value="rebuild", rank=rank,
        summary=f"Compile {name} against the installed torch, without build isolation and without pip's cache",
        cost="minutes to an hour of compilation, and a toolkit of torch's CUDA",
    )  # fmt: skip


def _torch_of(component: str, release: str | None) -> Remedy:
    value = (torch_companions.torch_for(component, release) if release else None) or f"match:{component}"
    return _package("torch", value, f"Or the torch that the installed {component} belongs to", rank=1)


def _library_remedies(owner: str) -> tuple[Remedy, ...]:
    wheel = "nvidia-nccl-cu12" if owner == "nccl" else "torch"
    return (
        Remedy(kind="env", name="LD_LIBRARY_PATH", value="unset", is_sure=False, summary="Start without LD_LIBRARY_PATH, so that torch's own CUDA libraries are found first", check=("python -c 'import torch'",)),
        Remedy(kind="package", name=wheel, value="match:torch" if owner == "nccl" else "reinstall", summary="Install the CUDA libraries in the releases that torch requires, and remove second copies", check=("python -m pip check",)),
        Remedy(kind="package", name="torch", value="newer", rank=2, is_sure=False, summary="A fresh environment with torch and all it requires"),
    )  # fmt: skip


_DELETE_CACHE = Remedy(
    kind="cache", name="JIT cache", value="delete", rank=-1,
    summary="Delete the folder of the cache that holds it: it was compiled against an earlier torch, and is compiled anew",
)  # fmt: skip
_IN_VAIN = (
    NotARemedy("choosing the wheel by the CUDA version only", "the torch release decides; its CUDA version is a second condition"),
    NotARemedy("another driver, toolkit or architecture list", "the loader looks for a function of a library, not for code for the GPU"),
)  # fmt: skip
