"""How reports for people say a remedy."""

from __future__ import annotations

from gpuwhy.model.remedy import Remedy, Survives

_NAMED = frozenset({"env", "flag", "config", "package", "system-package"})
"""Kinds whose name is what one types or looks for; of the others the summary says more than name and value."""
_ACTS = {
    "unset": "unset {}", "remove": "remove {}", "lower": "lower {}", "higher": "higher {}", "newer": "newer {}",
    "older": "older {}", "rebuild": "rebuild {}", "reinstall": "reinstall {}", "install": "install {}",
    "set": "{}", "": "{}", "add": "add {}", "longer": "longer {}", "larger": "larger {}", "another": "another {}", "override": "override {}",
}  # fmt: skip
"""Values that are an act, and how it is said."""


def change_of(remedy: Remedy) -> str:
    """The change in one phrase: ``CUDA_HOME=/usr/local/cuda``, ``unset VLLM_PORT``, ``newer vllm``, or a sentence."""
    name, value = remedy.name, remedy.value
    if remedy.kind not in _NAMED:
        return remedy.summary
    if value in _ACTS:
        return _ACTS[value].format(name)
    if value.startswith("match:"):
        return f"{name}, matching {value.removeprefix('match:')}"
    if remedy.kind == "env" and " " not in value:
        return f"{name}={value}"
    return f"{name}: {value}" if remedy.kind in ("env", "config") else f"{name} {value}"


def survival_of(survives: Survives) -> str:
    """What the change outlives and what it does not: ``survives a restart; is lost by an upgrade``."""
    named = {"a restart": survives.restart, "an upgrade": survives.upgrade, "a reboot": survives.reboot}
    kept = [name for name, value in named.items() if value]
    lost = [name for name, value in named.items() if value is False]
    parts = ([f"survives {', '.join(kept)}"] if kept else []) + ([f"is lost by {', '.join(lost)}"] if lost else [])
    return "; ".join(parts)
