"""libc-too-old: glibc or libstdc++ of the system or the interpreter is older than a binary needs."""

from __future__ import annotations

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.causes.packages._symbols import UNDEFINED, undefined_symbols
from gpuwhy.knowledge.releases import package_version
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, RuledOut, Verdict
from gpuwhy.model.loading import Loadings
from gpuwhy.model.remedy import NotARemedy, Remedy

_LIBRARY_OF = {"GLIBC": "glibc", "GLIBCXX": "libstdc++", "CXXABI": "libstdc++", "GOMP": "libgomp", "OMP": "libgomp", "GCC": "libgcc"}  # fmt: skip
_GLIBC_OF_DISTRIBUTIONS = (
    "Ubuntu 20.04 has 2.31, 22.04 2.35, 24.04 2.39; Debian 11 2.31, 12 2.36; RHEL 7 2.17, 8 2.28, 9 2.34"
)
_OLDEST_SERVED = "2.28"
"""Wheels of the engines carry the tag manylinux_2_28 or a later one; older systems load none of them."""
_OF_AN_ENVIRONMENT = lazy_pattern(r"conda|mamba|miniforge|/envs/|\.venv|/\.local/|/opt/(?!rh/)")


@cause(
    "libc-too-old",
    family="Packages",
    signs=[
        says(
            "version-not-found",
            ("glibc_", "glibcxx_", "cxxabi_", "gomp_"),
            r"(?:(?P<library>[\w./+@~-]{1,300}): )?version [`'\"‘]?(?P<kind>GLIBC|GLIBCXX|CXXABI|GOMP)_(?P<version>\d{1,2}(?:\.\d{1,3}){0,3})['’\"`]? (?:was )?not found(?:,? \(?required by (?P<binary>[\w./+@~-]{1,300}))?"
            r"|[`'\"]?(?P<kind2>GLIBC|GLIBCXX|CXXABI)_(?P<version2>\d{1,2}(?:\.\d{1,3}){1,3})['’\"`]? not found",
        ),
        UNDEFINED,
        says("operators-absent", "_opnamespace", r"'_OpNamespace' '(?P<module>\w{1,60})' object has no attribute"),
        says(
            "platform-too-old",
            ("manylinux", "musllinux"),
            r"(?:you'?re on|current platform:?|platform is) .{0,20}[`(]?(?P<have>(?:many|musl)linux_2_\d{1,2}\w{0,12})[`)]{0,2},? but .{0,120}?only has wheels .{0,80}?manylinux_(?P<version>2_\d{1,2})"
            r"|only has wheels (?:for|with) the following platforms?: .{0,40}?manylinux_(?P<version3>2_\d{1,2})"
            r"|(?P<wheel>[\w.+-]{3,160}-manylinux_(?P<version2>2_\d{1,2})_\w{3,10}\.whl) is not a supported wheel on this platform",
        ),
        says(
            "other-libc",
            ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "symbol not found", "libc.musl"),
            r"Error loading shared library ld-linux-[\w-]{3,20}\.so\.\d|Error relocating (?P<binary>[\w./+@~-]{1,300}): \w{1,80}: symbol not found",
        ),
    ],
)  # fmt: skip
def libc_too_old(case: Case) -> Judgement:
    """glibc or the C++ run time (libstdc++) of the system or interpreter is older than a binary needs.

    How it shows itself
      ``version `GLIBC_2.32' not found (required by ...)``, ``version `GLIBCXX_3.4.30' not found``, an undefined symbol of
      `std::`. vLLM only warns (`Failed to import from vllm._C with ImportError(...)`) and fails later over an operator that
      does not exist. uv and pip say it before: `only has wheels for the following platforms: manylinux_2_34_x86_64`.

    Why it happens
      A binary needs at least the glibc of the machine it was built on, whatever its wheel's name promises. libstdc++ is a
      second matter: conda and some interpreters bring an older one of their own, which is loaded instead of the system's.

    How to be sure
      `ldd --version` for glibc. For libstdc++: `strings LIBSTDC++ | grep GLIBCXX | tail -1` for the file named in the message.

    What helps
      A container with a newer distribution; a release of the package that was built on an older one; building it here. For
      libstdc++ of conda: `conda install -c conda-forge "libstdcxx-ng>=13"`, or the system's one first.

    What does not help
      Copying a single libc.so.6 from another machine (the loader and its libraries belong together, and a mix crashes),
      reinstalling the same wheel, another torch.

    Not to be confused with
      abi-mismatch (the symbol belongs to torch or the package itself), library-missing (the whole library is absent).
    """
    match = case.found("version-not-found")
    if match is not None and not match.is_code:
        return _version_not_found(case, match)
    standard = [each for each in undefined_symbols(case) if each.owner == "standard"]
    if standard:
        quoted = case.evidence(standard[0].match, f"the C++ run time that is loaded has no {standard[0].readable}")
        component = parts.component_of_binary(case, standard[0].match, standard[0].binary)
        return _verdict(case, standard[0].match, quoted, component, "libstdc++", "", None, Certainty.LIKELY)
    platform = case.found("platform-too-old")
    if platform is not None:
        return _platform(case, platform)
    other = case.found("other-libc")
    if other is not None:
        quoted = case.evidence(other, "a binary for glibc meets a system without it (musl, as in Alpine)")
        component = parts.component_of_binary(case, other, other.group("binary"))
        return _verdict(case, other, quoted, component, "glibc", "", None, Certainty.LIKELY)
    return _unloaded_operators(case)


def _unloaded_operators(case: Case) -> Judgement:
    """Operators that are not registered, on a system older than what engines are built on: the fact decides."""
    match = case.found("operators-absent")
    known = case.fact("glibc")
    if (
        match is None
        or not isinstance(known, Fact)
        or not known.value
        or _is_at_least(str(known.value), _OLDEST_SERVED)
    ):
        return None
    quoted = case.evidence(match, "the compiled part was not loaded; the reason was printed before")
    component = parts.component_of(match.group("module")) or case.component_near(match, case.engine or None)
    judged = _verdict(case, match, quoted, component, "glibc", _OLDEST_SERVED, None, Certainty.LIKELY)
    return msgspec.structs.replace(judged, evidence=(quoted, known.evidence)) if isinstance(judged, Verdict) else judged


def _version_not_found(case: Case, match: Match) -> Judgement:
    kind = (match.group("kind") or match.group("kind2") or "GLIBC").upper()
    version = match.group("version") or match.group("version2") or ""
    library = _LIBRARY_OF.get(kind, "glibc")
    quoted = case.evidence(match, f"the loader finds no {kind}_{version} in the {library} that it has loaded")
    known = case.fact("glibc") if kind == "GLIBC" else None
    if isinstance(known, Fact) and known.value and _is_at_least(str(known.value), version):
        return RuledOut(f"glibc is {known.value}, which has GLIBC_{version}", (quoted, known.evidence))
    component = parts.component_of_binary(case, match, match.group("binary"))
    judged = _verdict(case, match, quoted, component, library, version, match.group("library"), Certainty.PROVEN)
    read = Loadings.of(case.facts).too_old(f"{kind}_{version}")
    if read is None or not isinstance(judged, Verdict):
        return judged
    chain = (judged.chain[0], msgspec.structs.replace(judged.chain[1], evidence=read[1]), *judged.chain[2:])
    return msgspec.structs.replace(judged, evidence=(*judged.evidence, read[1]), chain=chain)


def _is_at_least(have: str, wanted: str) -> bool:
    ours, theirs = package_version(have), package_version(wanted)
    return ours is not None and theirs is not None and ours >= theirs


def _platform(case: Case, match: Match) -> Judgement:
    wanted = next((value for name, value in match.groups.items() if name.startswith("version")), "").replace("_", ".")
    component = parts.component_of(match.group("wheel")) or case.component_near(match)
    quoted = case.evidence(match, "the installer finds wheels for a newer glibc only")
    known = case.fact("glibc")
    if isinstance(known, Fact) and known.value and _is_at_least(str(known.value), wanted):
        return RuledOut(
            f"glibc is {known.value}: another part of the wheel's tag does not fit", (quoted, known.evidence)
        )
    is_said = match.group("have") is not None or match.group("version3") is not None
    certainty = Certainty.LIKELY if is_said or isinstance(known, Fact) else Certainty.POSSIBLE
    return _verdict(case, match, quoted, component, "glibc", wanted, None, certainty)


def _verdict(
    case: Case, match: Match, quoted: Evidence, component: str | None, library: str, version: str, path: str | None, certainty: Certainty
) -> Judgement:  # fmt: skip
    name = component or "a binary"
    certainty = parts.capped(case, match, certainty, *case.all("undefined-symbol"))
    asked = case.missing("glibc", "the system's glibc", "ldd --version | head -1") if library == "glibc" else None
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{name} needs a newer {library} than is loaded here{f' ({version})' if version else ''}",
        chain=(
            Link(f"{name} was built on a system with {library} {version or 'of a newer release'}", inferred("where it was built is not in the log")),
            Link(f"the {library} at {path or 'hand'} is older", quoted),
            Link("the binary is not loaded", quoted),
        ),
        evidence=(quoted,),
        explains=case.explains(match, *_consequences(case)),
        missing=(asked,) if asked is not None else (),
        rivals=() if certainty is Certainty.PROVEN else ("abi-mismatch",),
        remedies=_remedies(component, library, version, path),
        not_remedies=(
            NotARemedy("copying libc.so.6 from another machine", "the loader and glibc's libraries belong together; a mix of two crashes everything"),
            NotARemedy("reinstalling the same wheel", "it was built on the same newer system"),
        ),
        notes=(_GLIBC_OF_DISTRIBUTIONS,) if library == "glibc" else (),
        strength=85 if certainty is Certainty.PROVEN else 65,
    )  # fmt: skip


def _consequences(case: Case) -> tuple[Match, ...]:
    """What follows in the same life: the engine runs on without the binary, and misses its operators."""
    return tuple(match for match in case.all("undefined-symbol") if match.event is not None)[:1]


def _remedies(component: str | None, library: str, version: str, path: str | None) -> tuple[Remedy, ...]:
    remedies: list[Remedy] = []
    if library == "libstdc++" and path is not None and _OF_AN_ENVIRONMENT.search(path):
        remedies.append(
            Remedy(
                kind="env",
                name="LD_LIBRARY_PATH",
                value="the folder of the system's libstdc++.so.6 first",
                is_sure=False,
                summary="Let the system's newer libstdc++ be found before the one of the environment",
                check=("strings /usr/lib/x86_64-linux-gnu/libstdc++.so.6 | grep GLIBCXX | tail -1",),
            )
        )
        remedies.append(Remedy(
            kind="package", name="libstdcxx-ng", value="newer", rank=-1,
            summary='Bring the environment\'s C++ run time up to date: conda install -c conda-forge "libstdcxx-ng>=13"',
        ))  # fmt: skip
    image = f"distribution with {library} >= {version}" if version and library == "glibc" else "newer distribution"
    remedies.append(Remedy(kind="container", name="image", value=image, summary=f"Run it in a container: an official image, or any {image}", cost="a download of several GB"))  # fmt: skip
    if component is not None:
        name = parts.distribution_of(component)
        value = "==2.7.4.post1" if component == "flash-attn" and version == "2.32" else "another release"
        summary = "Install a release whose binaries were built on an older system (earlier ones mostly; some projects went back to an older build system later)"
        remedies.append(Remedy(kind="package", name=name, value=value, summary=summary, is_sure=False))
        remedies.append(Remedy(kind="package", name=name, value="rebuild", rank=1, summary=f"Compile {name} on this system", cost="minutes to an hour of compilation"))  # fmt: skip
    package = "glibc" if library == "glibc" else "libstdc++6"
    remedies.append(Remedy(kind="system-package", name=package, value=f">={version}" if version else "newer", summary=f"A newer release of the distribution; {library} itself is not upgraded alone", risk="high", cost="an upgrade of the operating system" if library == "glibc" else ""))  # fmt: skip
    return tuple(remedies)
