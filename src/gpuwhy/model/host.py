"""Typed views over facts: what a cause asks for by naming it as a parameter.

Each view has a class method ``of(facts)`` that returns the view, or :class:`Unknown` when none of its keys is known.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Facts, Unknown


class Gpu(msgspec.Struct, frozen=True, omit_defaults=True):
    """One GPU. ``compute_capability`` as ``"12.0"``; ``memory`` in bytes."""

    index: int | None = None
    name: str = ""
    compute_capability: str | None = None
    memory: int | None = None


class Gpus(msgspec.Struct, frozen=True):
    """The GPUs of the target; ``failing`` is the index of the one that failed when that is known."""

    devices: tuple[Gpu, ...]
    failing: int | None = None
    evidence: tuple[Evidence, ...] = ()

    @classmethod
    def of(cls, facts: Facts) -> Gpus | Unknown:
        """From ``gpus`` (list of Gpu, or texts ``index: model (cc)``), else ``gpu`` and ``cc``."""
        listed = facts.get("gpus")
        devices: list[Gpu] = []
        evidence: list[Evidence] = []
        if isinstance(listed, Fact) and listed.value is not None:
            devices = [_gpu(item) for item in listed.value]
            evidence.append(listed.evidence)
        name, capability = facts.get("gpu"), facts.get("cc")
        for known in (capability, name):
            if isinstance(known, Fact):
                evidence.append(known.evidence)
        failing = facts.value("failing_gpu")
        if not devices and (isinstance(name, Fact) or isinstance(capability, Fact)):
            cc = facts.value("cc")
            devices = [Gpu(index=None, name=str(facts.value("gpu") or ""), compute_capability=str(cc) if cc else None)]
        if not devices and not isinstance(listed, Fact):
            return Unknown(
                listed.why, "cc", listed.command or "nvidia-smi --query-gpu=index,name,compute_cap --format=csv"
            )
        return cls(tuple(devices), int(failing) if failing is not None else None, tuple(evidence))

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The distinct compute capabilities, in device order."""
        return tuple(dict.fromkeys(d.compute_capability for d in self.devices if d.compute_capability))

    @property
    def capability(self) -> str | None:
        """The compute capability of the failing GPU, or the one all share; None when mixed or unknown."""
        if self.failing is not None:
            for device in self.devices:
                if device.index == self.failing and device.compute_capability:
                    return device.compute_capability
        return self.capabilities[0] if len(self.capabilities) == 1 else None


def _gpu(item: Any) -> Gpu:
    if isinstance(item, Gpu):
        return item
    if isinstance(item, dict):
        return msgspec.convert(item, Gpu, strict=False)
    text = str(item)
    index, colon, rest = text.partition(":")
    number = int(index) if colon and index.strip().isdigit() else None
    body = rest if number is not None else text
    name, bracket, capability = body.strip().rpartition("(")
    if not bracket:
        return Gpu(number, body.strip())
    return Gpu(number, name.strip(), capability.rstrip(") ").strip() or None)


class ToolkitInstall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A CUDA toolkit on the target. ``version`` as ``"12.8"``; None when nvcc could not be asked."""

    root: str
    version: str | None = None
    has_nvcc: bool = True
    note: str = ""


class Resolution(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which toolkit one consumer takes in one process environment, by its own order of search.

    ``version`` is the CUDA version the consumer believes in; ``root`` the directory; ``by`` the step that decided
    (``CUDA_HOME``, ``CUDA_PATH``, ``PATH``, ``/usr/local/cuda``, ``torch.version.cuda``, ``none``).
    """

    consumer: str
    version: str | None
    root: str | None = None
    by: str = ""
    evidence: Evidence | None = None


class Toolkits(msgspec.Struct, frozen=True):
    """The toolkits on the target and the one that each consumer picks. ``is_complete``: the whole host was searched."""

    installs: tuple[ToolkitInstall, ...]
    resolutions: dict[str, Resolution]
    is_complete: bool = False

    @classmethod
    def of(cls, facts: Facts) -> Toolkits | Unknown:
        """From ``toolkits`` (all on the host), ``toolkit_resolved.CONSUMER``, ``cuda_toolkit``, ``other_toolkits.PATH``."""
        installs: list[ToolkitInstall] = []
        listed = facts.get("toolkits")
        if isinstance(listed, Fact) and listed.value is not None:
            installs = [
                i if isinstance(i, ToolkitInstall) else msgspec.convert(i, ToolkitInstall, strict=False)
                for i in listed.value
            ]
        for path, other in facts.group("other_toolkits").items():
            if other.value is not None:
                installs.append(ToolkitInstall(path, _release(other.value)))
        resolutions = {
            consumer: fact.value
            if isinstance(fact.value, Resolution)
            else msgspec.convert({"consumer": consumer, **fact.value}, Resolution, strict=False)
            for consumer, fact in facts.group("toolkit_resolved").items()
        }
        single = facts.get("cuda_toolkit")
        if isinstance(single, Fact):
            version = None if single.value is None else _release(single.value)
            home = facts.value("cuda_home")
            resolutions.setdefault(
                "",
                Resolution(
                    "", version, None if home is None else str(home), "none" if version is None else "", single.evidence
                ),
            )
        if not installs and not resolutions and not isinstance(listed, Fact):
            return Unknown(
                single.why if isinstance(single, Unknown) else "not examined", "cuda_toolkit", "nvcc --version"
            )
        return cls(tuple(installs), resolutions, isinstance(listed, Fact))

    def resolved_by(self, consumer: str) -> Resolution | Unknown:
        """What ``consumer`` takes; a version given by hand (``cuda_toolkit``) stands for every consumer."""
        found = self.resolutions.get(consumer) or self.resolutions.get("")
        return found or Unknown(f"which toolkit {consumer} takes was not examined", "cuda_toolkit", "nvcc --version")


def _release(value: Any) -> str:
    """``12.8 (V12.8.93)`` or ``12.8.93`` as ``12.8``."""
    numbers = str(value).split()[0].lstrip("vV").split(".")
    return ".".join(numbers[:2])


class Torch(msgspec.Struct, frozen=True):
    """The installed torch: version, the CUDA it was built for (None: a CPU build), its SM list when known."""

    version: str | None
    cuda: str | None
    arch_list: tuple[str, ...] | None
    evidence: tuple[Evidence, ...] = ()
    is_cpu_only: bool = False

    @classmethod
    def of(cls, facts: Facts) -> Torch | Unknown:
        version, cuda, archs = (facts.get(k) for k in ("torch", "torch_cuda", "torch_arch_list"))
        if isinstance(version, Unknown):
            packaged = facts.get("packages.torch")
            version = packaged if isinstance(packaged, Fact) else version
        known = [fact for fact in (version, cuda, archs) if isinstance(fact, Fact)]
        if not known:
            return Unknown(
                "the torch in use was not examined",
                "torch",
                "python -c 'import torch; print(torch.__version__, torch.version.cuda)'",
            )
        text = str(version.value) if isinstance(version, Fact) and version.value is not None else None
        built = str(cuda.value) if isinstance(cuda, Fact) and cuda.value else _cuda_of_local_version(text)
        listed = archs.value if isinstance(archs, Fact) else None
        if isinstance(listed, str):
            listed = listed.replace(",", " ").split()
        cpu = (text is not None and text.endswith("+cpu")) or (isinstance(cuda, Fact) and cuda.value is None)
        return cls(
            text, built, tuple(map(str, listed)) if listed is not None else None, tuple(f.evidence for f in known), cpu
        )


def _cuda_of_local_version(version: str | None) -> str | None:
    """``2.11.0+cu130`` as ``13.0``."""
    _, _, local = (version or "").partition("+cu")
    digits = local.split(".")[0]
    return f"{digits[:-1]}.{digits[-1]}" if len(digits) >= 3 and digits.isdigit() else None


class Packages(msgspec.Struct, frozen=True):
    """Versions of installed packages by canonical name; a value None means looked for and absent."""

    versions: dict[str, str | None]
    evidence: dict[str, Evidence]

    @classmethod
    def of(cls, facts: Facts) -> Packages | Unknown:
        group = facts.group("packages")
        if not group:
            return Unknown("the installed packages were not examined", "packages", "python -m pip list")
        return cls(
            {name: None if fact.value is None else str(fact.value) for name, fact in group.items()},
            {name: fact.evidence for name, fact in group.items()},
        )

    def version(self, name: str) -> str | None:
        """The version of ``name``, None when absent or not examined (see :attr:`versions` to tell them apart)."""
        return self.versions.get(name)


class Environment(msgspec.Struct, frozen=True):
    """Environment variables of the failing process. ``is_complete``: an unlisted variable is unset, not unknown."""

    variables: dict[str, str | None]
    evidence: dict[str, Evidence]
    is_complete: bool = False

    @classmethod
    def of(cls, facts: Facts) -> Environment | Unknown:
        """From ``env.NAME``; ``environment_complete`` true when the whole environment was read."""
        group = facts.group("env")
        complete = bool(facts.value("environment_complete", False))
        if not group and not complete:
            return Unknown(
                "the environment of the failing process was not examined", "env", "tr '\\0' '\\n' < /proc/PID/environ"
            )
        return cls(
            {name: None if fact.value is None else str(fact.value) for name, fact in group.items()},
            {name: fact.evidence for name, fact in group.items()},
            complete,
        )

    def get(self, name: str) -> str | Unknown | None:
        """The value, None when unset, Unknown when nobody looked."""
        if name in self.variables:
            return self.variables[name]
        if self.is_complete:
            return None
        return Unknown(
            f"{name} of the failing process was not examined",
            f"env.{name}",
            f"tr '\\0' '\\n' < /proc/PID/environ | grep ^{name}=",
        )


class Driver(msgspec.Struct, frozen=True):
    """The NVIDIA driver: version of the loaded kernel module and the highest CUDA it supports."""

    version: str | None
    cuda: str | None
    evidence: tuple[Evidence, ...] = ()

    @classmethod
    def of(cls, facts: Facts) -> Driver | Unknown:
        version, cuda = facts.get("driver"), facts.get("driver_cuda")
        known = [fact for fact in (version, cuda) if isinstance(fact, Fact)]
        if not known:
            return Unknown("the driver was not examined", "driver", "cat /proc/driver/nvidia/version")
        value = [None if not isinstance(f, Fact) or f.value is None else str(f.value) for f in (version, cuda)]
        return cls(value[0], value[1], tuple(f.evidence for f in known))
