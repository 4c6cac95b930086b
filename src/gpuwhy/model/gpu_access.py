"""Views of how GPUs are reached: what answers on the host and in the container, and what a container was given."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Facts, Unknown

_NOTHING = re.compile(
    r"\s*(?:$|(?:none|void|false|no|not|null|without|unset|absent|missing|\[\]|0 gpus)\b|\[\])", re.IGNORECASE
)
"""How people and variables say that a container was given no GPU."""
_NO_ERROR = frozenset({"0", "ok", "success", "cuda_success"})


class GpuAccess(msgspec.Struct, frozen=True):
    """What nvidia-smi and cuInit answer, on the host and in the container, and which libcuda a process loads.

    ``smi_*`` and ``cuinit_*``: True where it works, False where it fails, None where nobody tried. ``libcuda`` is the
    path of libcuda.so.1, None when there is none or nobody looked (``is_libcuda_known`` tells).
    """

    smi_host: bool | None
    smi_container: bool | None
    cuinit_host: bool | None
    cuinit_container: bool | None
    libcuda: str | None
    is_libcuda_known: bool
    said: dict[str, str]
    """What was answered, by the key of the fact."""
    evidence: dict[str, Evidence]

    @classmethod
    def of(cls, facts: Facts) -> GpuAccess | Unknown:
        """From ``nvidia_smi.host``, ``nvidia_smi.container``, ``cuinit.host``, ``cuinit.container``, ``libcuda_path``."""
        keys = ("nvidia_smi.host", "nvidia_smi.container", "cuinit.host", "cuinit.container", "libcuda_path")
        known = {key: fact for key in keys if isinstance(fact := facts.get(key), Fact)}
        if not known:
            return Unknown("nobody tried nvidia-smi and cuInit", "nvidia_smi.host", "nvidia-smi")
        path = known.get("libcuda_path")
        return cls(
            smi_host=_works(known.get("nvidia_smi.host")),
            smi_container=_works(known.get("nvidia_smi.container")),
            cuinit_host=_works(known.get("cuinit.host")),
            cuinit_container=_works(known.get("cuinit.container")),
            libcuda=str(path.value) if path is not None and path.value else None,
            is_libcuda_known=path is not None,
            said={key: str(fact.value) for key, fact in known.items()},
            evidence={key: fact.evidence for key, fact in known.items()},
        )

    def shown(self, *keys: str) -> tuple[Evidence, ...]:
        """The evidence of those of ``keys`` that are known."""
        return tuple(self.evidence[key] for key in keys if key in self.evidence)


def _works(fact: Fact | None) -> bool | None:
    return None if fact is None or fact.value is None else str(fact.value).strip().lower() in _NO_ERROR


class ContainerSetup(msgspec.Struct, frozen=True):
    """How a container was started, as far as GPUs are concerned. None: not known.

    ``gpus`` is what ``--gpus`` or NVIDIA_VISIBLE_DEVICES ask for (``""``: nothing), ``capabilities`` the value of
    NVIDIA_DRIVER_CAPABILITIES (``""``: unset), ``image_cuda`` the CUDA version the image was built for.
    """

    is_inside: bool | None
    runtime: str | None
    gpus: str | None
    capabilities: str | None
    image_cuda: str | None
    evidence: dict[str, Evidence]

    @classmethod
    def of(cls, facts: Facts) -> ContainerSetup | Unknown:
        """From ``container.in_container``, ``.runtime``, ``.gpus``, ``.capabilities`` and ``.image_cuda``."""
        group = facts.group("container")
        if not group:
            return Unknown("whether it ran in a container, and how that was started, is not known", "container.gpus")
        inside = group.get("in_container")
        about = any(key in group for key in ("runtime", "gpus", "capabilities", "image_cuda"))
        return cls(
            is_inside=bool(inside.value) if inside is not None else True if about else None,
            runtime=_text(group.get("runtime")),
            gpus=_text(group.get("gpus")),
            capabilities=_text(group.get("capabilities")),
            image_cuda=_text(group.get("image_cuda")),
            evidence={f"container.{key}": fact.evidence for key, fact in group.items()},
        )

    @property
    def has_no_gpus(self) -> bool:
        """It is known that no GPU was asked for."""
        return self.gpus is not None and self.gpus.strip().lower() in (
            "",
            "none",
            "void",
            "false",
            "no",
            "[]",
            "0 gpus",
        )

    @property
    def lacks_compute(self) -> bool:
        """It is known that the driver capability ``compute`` was not asked for, so that no libcuda is mounted."""
        wanted = (self.capabilities or "").lower()
        return bool(wanted.strip()) and "compute" not in wanted and "all" not in wanted

    def shown(self, *keys: str) -> tuple[Evidence, ...]:
        """The evidence of those of ``keys`` that are known."""
        return tuple(self.evidence[key] for key in keys if key in self.evidence)


def _text(fact: Fact | None) -> str | None:
    """The value as text; a fact that says "absent" is the empty string."""
    if fact is None:
        return None
    value: Any = fact.value
    return "" if value is None or value is False else str(value)
