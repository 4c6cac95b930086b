"""Packages, toolkits and drivers: not what is installed already, and nothing that does not know the GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from gpuwhy.knowledge import drivers, toolkits
from gpuwhy.knowledge import torch as torch_builds
from gpuwhy.knowledge.releases import cuda_release, local_part, package_version
from gpuwhy.model.remedy import NotARemedy, Remedy
from gpuwhy.remedies.applicability.releases import shown
from gpuwhy.remedies.circumstances import Circumstances

_TORCH_BUILD = re.compile(r"\bcu(1[1-9])(\d)\b")
_MINIMUM = re.compile(r">=\s*(\d{1,4}(?:\.\d{1,4}){0,3})")


def of_versions(remedy: Remedy, known: Circumstances) -> Remedy | NotARemedy:
    """A version is raised to the first that serves, or the remedy taken out when none does or it is there already."""
    match remedy.kind:
        case "package" if remedy.name == "torch":
            installed = _installed(remedy, known)
            return installed if isinstance(installed, NotARemedy) else _torch(remedy, known)
        case "package":
            return _installed(remedy, known)
        case "toolkit" if remedy.name == "cuda":
            return _toolkit(remedy, known.capabilities)
        case "driver" if remedy.name == "nvidia":
            return _driver(remedy, known)
        case _:
            return remedy


def _installed(remedy: Remedy, known: Circumstances) -> Remedy | NotARemedy:
    """Not what the installed release satisfies: it failed with that."""
    version = (known.torch if remedy.name == "torch" else "") or known.version(remedy.name)
    installed = package_version(version) if version else None
    constraint = _constraint(remedy.value)
    if installed is None or constraint is None or not constraint.contains(installed, prereleases=True):
        return remedy
    if remedy.name == "torch" and any(
        torch_builds.supports(version, None, g).value is False for g in known.capabilities
    ):
        return remedy  # the right release, built for other GPUs: it is to be installed from another index
    return NotARemedy(shown(remedy), f"{remedy.name} {version} is installed")


def _constraint(value: str) -> SpecifierSet | None:
    """``>=0.7.1`` as it is, a bare version as exactly that; None for words."""
    try:
        if re.match(r"\s*[<>=!~]", value):
            return SpecifierSet(value)
        return SpecifierSet(f"=={value}") if re.match(r"\d", value) and package_version(value) else None
    except InvalidSpecifier:
        return None


def _torch(remedy: Remedy, known: Circumstances) -> Remedy | NotARemedy:
    """A build of torch that holds code for every GPU."""
    build = _TORCH_BUILD.search(remedy.value)
    if build is not None:
        return _torch_build(remedy, build.group(0), known)
    lacking = [gpu for gpu in known.capabilities if _newest_lacks(gpu)]
    if lacking and remedy.value == "newer":
        names = ", ".join(row.build for row in torch_builds.builds_for(lacking[0]))
        if not names:
            return NotARemedy(shown(remedy), f"no build of torch holds code for compute capability {lacking[0]}")
        last = torch_builds.builds_for(lacking[0])[-1]
        return _limited(
            remedy,
            f"for compute capability {lacking[0]} take one of the builds {names}: "
            f"{last.build} ends with torch {last.last}, and pip's default build has dropped this GPU",
        )
    return remedy


def _torch_build(remedy: Remedy, build: str, known: Circumstances) -> Remedy | NotARemedy:
    if local_part(known.torch) == build and re.fullmatch(rf"(?:the )?{build}(?: build)?", remedy.value):
        return NotARemedy(shown(remedy), f"torch {known.torch} is installed")
    for gpu in known.capabilities:
        fitting = [row.build for row in torch_builds.builds_for(gpu)]
        if not fitting or build in fitting or not _is_recorded(build):
            continue
        newer = [each for each in fitting if int(each[2:]) > int(build[2:])]
        if newer:  # the first build that knows the GPU, in place of one that came before it
            return msgspec.structs.replace(
                remedy,
                value=remedy.value.replace(build, newer[0]),
                summary=remedy.summary.replace(build, newer[0]),
                commands=tuple(line.replace(build, newer[0]) for line in remedy.commands),
            )
        return NotARemedy(shown(remedy), f"the {build} builds of torch have no code for compute capability {gpu}")
    return remedy


def _is_recorded(build: str) -> bool:
    """Whether the table has builds for this CUDA release at all."""
    return any(
        row.build == build for gpu in ("5.0", "7.5", "8.0", "9.0", "12.0") for row in torch_builds.builds_for(gpu)
    )


def _newest_lacks(gpu: str) -> bool:
    """Whether the GPU's generation was dropped: an older build holds it, the newest ones do not."""
    fitting, newest = torch_builds.builds_for(gpu), torch_builds.builds_for("12.0")
    if not newest:
        return False
    return not fitting or int(fitting[-1].build[2:]) < int(newest[-1].build[2:])


def _toolkit(remedy: Remedy, capabilities: Sequence[str]) -> Remedy | NotARemedy:
    """A release whose compilers know every GPU."""
    found = _MINIMUM.fullmatch(remedy.value)
    if found is None:
        return remedy
    wanted = found.group(1)
    for gpu in capabilities:
        answer = toolkits.accepts(wanted, gpu)
        if answer.value is not False:
            continue
        first, asked = toolkits.first_release_for(gpu), cuda_release(wanted)
        since = cuda_release(first) if first is not None else None
        if first is not None and since is not None and asked is not None and since > asked:
            wanted = first
            continue
        last = toolkits.last_release_for(gpu)
        end = f"; CUDA {last} is the last that does" if last else ""
        return NotARemedy(shown(remedy), f"CUDA {wanted} does not know compute capability {gpu}{end}")
    if wanted == found.group(1):
        return _below_the_end(remedy, capabilities)
    return _below_the_end(_raised(remedy, found.group(1), wanted), capabilities)


def _raised(remedy: Remedy, old: str, new: str) -> Remedy:
    def rewritten(text: str) -> str:
        return re.sub(rf"(?<![\d.]){re.escape(old)}(?![\d.]*\d)", new, text)

    return msgspec.structs.replace(
        remedy,
        value=rewritten(remedy.value),
        summary=rewritten(remedy.summary),
        commands=tuple(map(rewritten, remedy.commands)),
        check=tuple(map(rewritten, remedy.check)),
    )


def _below_the_end(remedy: Remedy, capabilities: Sequence[str]) -> Remedy:
    """With a word of warning where newer releases have dropped a GPU: ``>=12.8`` must not be read as 13.0."""
    measured = toolkits.measured_releases()
    for gpu in capabilities:
        last = toolkits.last_release_for(gpu)
        if last is not None and measured and toolkits.accepts(measured[-1], gpu).value is False:
            return _limited(remedy, f"not newer than CUDA {last}: later ones do not know compute capability {gpu}")
    return remedy


def _driver(remedy: Remedy, known: Circumstances) -> Remedy | NotARemedy:
    """A driver that is newer than the installed one, and new enough for torch's CUDA."""
    found = _MINIMUM.fullmatch(remedy.value)
    if found is None:
        return remedy
    wanted = tuple(int(part) for part in found.group(1).split("."))
    needed = drivers.required_for(known.torch_cuda) if known.torch_cuda else None
    branch = (needed or "").partition(".")[0]
    if branch and wanted[0] < int(branch):
        remedy, wanted = _raised(remedy, found.group(1), branch), (int(branch),)
    # A branch alone ("580") may be of any release in it: only the full version decides.
    installed = drivers.driver_version(known.driver) if "." in known.driver else None
    if installed is not None and installed >= wanted:
        return NotARemedy(shown(remedy), f"driver {known.driver} is installed")
    return remedy


def _limited(remedy: Remedy, limit: str) -> Remedy:
    return remedy if limit in remedy.limits else msgspec.structs.replace(remedy, limits=(*remedy.limits, limit))
