"""What is known of the failing service, as far as it decides whether a remedy applies to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

import msgspec

from gpuwhy.knowledge import torch as torch_builds
from gpuwhy.knowledge.releases import package_version
from gpuwhy.knowledge.switches import SERVERS
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.fact import Facts, Unknown
from gpuwhy.model.host import Driver, Gpus, Packages, Torch
from gpuwhy.remedies.setting import Setting
from gpuwhy.remedies.typed_command import TypedCommand, read_words


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """``engine`` is ``vllm`` or ``sglang``, ``""`` when it is neither or not known. ``capabilities`` are those of all GPUs.

    ``packages`` by canonical name; None for one that is known to be absent. ``variables`` likewise.
    """

    engine: str = ""
    packages: Mapping[str, str | None] = {}
    variables: Mapping[str, str | None] = {}
    command: TypedCommand | None = None
    capabilities: tuple[str, ...] = ()
    torch: str = ""
    torch_cuda: str = ""
    driver: str = ""

    def version(self, package: str) -> str:
        """The installed version, ``""`` when it is not known or not installed."""
        return self.packages.get(canonical(package)) or ""


def canonical(package: str) -> str:
    """One spelling of a package's name: ``flashinfer_python`` is ``flashinfer-python``."""
    return package.lower().replace("_", "-").replace(".", "-")


def circumstances_of(diagnosis: Diagnosis, setting: Setting) -> Circumstances:
    """From the facts of a diagnosis, and the place where its service runs."""
    facts = Facts({fact.key: fact for fact in diagnosis.facts})
    gpus, packages, torch, driver = Gpus.of(facts), Packages.of(facts), Torch.of(facts), Driver.of(facts)
    installed: Mapping[str, str | None] = {} if isinstance(packages, Unknown) else packages.versions
    versions = {canonical(name): version for name, version in {**installed, **setting.packages}.items()}
    if not isinstance(torch, Unknown) and torch.version and "triton" not in versions:
        versions["triton"] = _triton_of(torch.version)
    command = read_words(setting.command)
    return Circumstances(
        engine=_engine(diagnosis.incident.engine, command, versions),
        packages=versions,
        variables=setting.variables,
        command=command,
        capabilities=() if isinstance(gpus, Unknown) else (gpus.capability,) if gpus.capability else gpus.capabilities,
        torch="" if isinstance(torch, Unknown) else torch.version or "",
        torch_cuda="" if isinstance(torch, Unknown) else torch.cuda or "",
        driver="" if isinstance(driver, Unknown) else driver.version or "",
    )


def _triton_of(torch: str) -> str | None:
    """The Triton that a release of torch requires, which is no other's; None when the table gives a range."""
    found = torch_builds.triton_of(torch)
    return found if found is not None and package_version(found) is not None else None


def _engine(told: str, command: TypedCommand | None, packages: Mapping[str, str | None]) -> str:
    if told:
        return told if told in SERVERS else ""
    for word in () if command is None else command.words:
        started = next((s for s in SERVERS if PurePosixPath(word).name == s or word.startswith(f"{s}.")), "")
        if started:
            return started
    present = [server for server in SERVERS if packages.get(server)]
    return present[0] if len(present) == 1 else ""
