"""What SGLang and vLLM releases pin: torch, FlashInfer, kernel packages. Read from the METADATA of their wheels."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from msgspec import Struct
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from gpuwhy.knowledge.releases import neighbours, public_version
from gpuwhy.knowledge.tables import read_table


class Requirement(Struct, frozen=True):
    """One requirement of a release. `extra` is the optional feature that brings it in, None if always installed."""

    package: str
    specifier: str
    extra: str | None


class EngineRelease(Struct, frozen=True):
    engine: str
    version: str
    requirements: tuple[Requirement, ...]
    provenance: str


class PinTable(Struct, frozen=True):
    releases: tuple[EngineRelease, ...]


class Pin(Struct, frozen=True):
    """What an engine release asks of a package.

    `specifier` is None if the release is not listed and its neighbours differ; `between` then gives their versions,
    where both pin one exactly. `specifier` "" means any version. `version` is the pinned one if `exact`.
    """

    engine: str
    engine_version: str
    package: str
    specifier: str | None
    exact: bool
    version: str | None
    extra: str | None
    between: tuple[str, str] | None
    why: str
    provenance: str


#: packages that changed their name: an answer for one also looks for the other
_SAME_PACKAGE = {"sgl-kernel": ("sgl-kernel", "sglang-kernel"), "sglang-kernel": ("sgl-kernel", "sglang-kernel")}


@functools.cache
def _releases(engine: str) -> dict[Version, EngineRelease]:
    rows = read_table("pins", PinTable).releases
    return {Version(row.version): row for row in rows if row.engine == engine}


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name[:80]).lower()


def engines() -> tuple[str, ...]:
    """Engines whose pins are known."""
    return ("sglang", "vllm")


def listed_releases(engine: str) -> tuple[str, ...]:
    """Releases of an engine whose pins were read, oldest first."""
    return tuple(row.version for row in _releases(_canonical(engine)).values())


def pin_of(engine: str, version: str, package: str) -> Pin | None:
    """What a release of an engine asks of a package; None if nothing can be said.

    None: the engine or version is not known, lies outside the listed releases, or does not ask for the package.
    """
    engine, package = _canonical(engine), _canonical(package)
    wanted, releases = public_version(version), _releases(engine)
    if wanted is None or not releases:
        return None
    if wanted in releases:
        return _pin(releases[wanted], package)
    below, above = neighbours(list(releases), wanted)
    if below is None or above is None:
        return None
    return _interpolate(version, _pin(releases[below], package), _pin(releases[above], package))


def _pin(release: EngineRelease, package: str) -> Pin | None:
    names = _SAME_PACKAGE.get(package, (package,))
    found = [requirement for requirement in release.requirements if requirement.package in names]
    if not found:
        return None
    # the requirement that is always installed says more than one of an optional feature
    chosen = min(found, key=lambda requirement: requirement.extra is not None)
    version = _exact_version(chosen.specifier)
    condition = f" with its extra {chosen.extra}" if chosen.extra else ""
    asked = f"{chosen.package}{chosen.specifier or ', any version'}"
    return Pin(
        engine=release.engine,
        engine_version=release.version,
        package=chosen.package,
        specifier=chosen.specifier,
        exact=version is not None,
        version=version,
        extra=chosen.extra,
        between=None,
        why=f"{release.engine} {release.version}{condition} requires {asked}",
        provenance=release.provenance,
    )


def _interpolate(version: str, below: Pin | None, above: Pin | None) -> Pin | None:
    if below is None or above is None:
        return None
    names = f"{below.engine_version} and {above.engine_version}"
    same = (below.package, below.specifier) == (above.package, above.specifier)
    bounds = (below.version, above.version) if below.version and above.version and not same else None
    asks = f"both require {below.package}{below.specifier}" if same else "differ in what they require"
    return Pin(
        engine=below.engine,
        engine_version=version,
        package=below.package,
        specifier=below.specifier if same else None,
        exact=below.exact and same,
        version=below.version if same else None,
        extra=below.extra,
        between=bounds,
        why=f"{below.engine} {version[:40]} is not listed; {names} {asks}",
        provenance=f"derived: {below.provenance}; {above.provenance}",
    )


def _exact_version(specifier: str) -> str | None:
    found = re.fullmatch(r"===?([^*,]+)", specifier)
    return found[1] if found else None


def flashinfer_of(engine: str, version: str) -> Pin | None:
    """("sglang", "0.5.15") -> the pin of flashinfer-python."""
    return pin_of(engine, version, "flashinfer-python")


def torch_of(engine: str, version: str) -> Pin | None:
    """The pin of torch."""
    return pin_of(engine, version, "torch")


def sgl_kernel_of(version: str) -> Pin | None:
    """The pin of sgl-kernel, called sglang-kernel from SGLang 0.5.10 on."""
    return pin_of("sglang", version, "sgl-kernel")


def releases_pinning(package: str, predicate: Callable[[str], bool], engine: str | None = None) -> tuple[Pin, ...]:
    """Pins of listed releases whose exact version of a package satisfies `predicate`, by engine, oldest first."""
    package = _canonical(package)
    found = []
    for name in (engine,) if engine else engines():
        for release in _releases(_canonical(name)).values():
            pin = _pin(release, package)
            if pin and pin.version and predicate(pin.version):
                found.append(pin)
    return tuple(found)


def first_release_with(engine: str, package: str, minimum: str) -> str | None:
    """First listed release of an engine from which on every one requires at least this version of a package.

    ("sglang", "flashinfer-python", "0.7.1") -> "0.5.22". None if no listed release does.
    """
    wanted = public_version(minimum)
    if wanted is None:
        return None
    first: str | None = None
    for release in _releases(_canonical(engine)).values():
        pin = _pin(release, _canonical(package))
        lowest = _lowest_version(pin.specifier or "") if pin else None
        if lowest is None or lowest < wanted:
            first = None
        elif first is None:
            first = release.version
    return first


def _lowest_version(specifier: str) -> Version | None:
    """The lowest version that a specifier admits, if it states one."""
    try:
        parts = SpecifierSet(specifier)
    except InvalidSpecifier:
        return None
    stated = [public_version(part.version) for part in parts if part.operator in ("==", "===", ">=", "~=")]
    return max((version for version in stated if version is not None), default=None)


def admits(pin: Pin, version: str) -> bool | None:
    """Whether a pin lets this version of the package be installed beside the engine; None if the pin is unknown."""
    wanted = public_version(version)
    if pin.specifier is None or wanted is None:
        return None
    try:
        return SpecifierSet(pin.specifier).contains(wanted, prereleases=True)
    except InvalidSpecifier:
        return None
