"""Facts given by hand: a YAML or JSON file with one flat mapping in the vocabulary of facts."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import msgspec

from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.snapshot.file import SnapshotError

KEYS = frozenset(
    [
        "gpu",
        "cc",
        "gpus",
        "failing_gpu",
        "gpu_processes",
        "gpu_errors",
        "gpu_memory",
        "gpu_links",
        "cuda_said",
        "nvcc_path_version",
        "nvswitch",
        "nvlink_errors",
        "fabric_state",
        "pci_gpus",
        "driver",
        "driver_cuda",
        "driver_installed",
        "driver_library",
        "libcuda_path",
        "cuda_toolkit",
        "cuda_home",
        "nvcc_path",
        "torch",
        "torch_cuda",
        "torch_arch_list",
        "python",
        "glibc",
        "gcc",
        "ninja_path",
        "jit_targets",
        "command",
        "mem_total_bytes",
        "mem_available_bytes",
        "swap_total_bytes",
        "shm_bytes",
        "model_bytes",
        "memory_limit_bytes",
        "memory_limit_kills",
        "numa_nodes",
        "memlock",
        "kernel_release",
        "kernel_cmdline",
        "kernel_log",
        "journal",
        "iommu",
        "pci_acs",
        "p2p_test",
        "firewall",
        "net_interfaces",
        "processes",
        "os",
        "hypervisor",
        "environment_complete",
        "packages_shadowed",
        "toolkits",
    ]
)
"""Keys that stand alone."""

GROUPS = frozenset(
    [
        "nvidia_smi",
        "cuinit",
        "other_toolkits",
        "packages",
        "system_packages",
        "server_args",
        "binary_archs",
        "binary_runs",
        "loading",
        "model",
        "env",
        "df",
        "mount",
        "fs",
        "files",
        "unit_state",
        "http",
        "container",
        "tests",
        "service",
        "ulimit",
        "toolkit_resolved",
        "assemblers",
    ]
)
"""First parts of dotted keys; the rest is a name or a path."""

MOST_BYTES = 4 << 20

_NOT_FACTS = frozenset({"synthetic"})
"""Notes of case files about their facts."""


class GivenFacts(msgspec.Struct, frozen=True):
    """The facts of a file, and what its writer should know about it."""

    facts: Facts
    warnings: tuple[str, ...] = ()


def read_given(path: str | Path) -> GivenFacts:
    """Reads a ``--facts`` file. Raises SnapshotError when it is unreadable or no flat mapping."""
    name = str(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SnapshotError(f"{name}: {error.strerror}") from error
    except ValueError as error:
        raise SnapshotError(f"{name!r} is no path") from error
    if len(data) > MOST_BYTES:
        raise SnapshotError(f"{name} is too long for a file of facts")
    return given(_parse(data, name), name)


def given(mapping: Any, name: str = "facts") -> GivenFacts:
    """Facts from a mapping that was read already. Raises SnapshotError when it is none."""
    if not isinstance(mapping, dict):
        kind = "empty" if mapping is None else f"a {type(mapping).__name__}"
        raise SnapshotError(
            f'{name} is {kind}, not a mapping; write lines such as\n  cc: "12.0"\n  cuda_toolkit: "12.8"'
        )
    facts: dict[str, Fact] = {}
    warnings: list[str] = []
    for key, value in _flattened(mapping):
        if key in _NOT_FACTS:
            continue
        problem = _problem(key)
        if problem:
            warnings.append(f"{name}: {problem}")
        text = _plain(key, value)
        if isinstance(value, float) and key not in ("failing_gpu",):
            warnings.append(f"{name}: {key} is a number, {value!r}; quote versions, since YAML reads 12.10 as 12.1")
        quote = f"{key}: {'null' if text is None else text}"
        facts[key] = Fact(key, text, Evidence(f"{key} was given", quote[:500], Place("facts", name), Standing.GIVEN))
    return GivenFacts(Facts(facts), tuple(warnings))


def _parse(data: bytes, name: str) -> Any:
    import yaml

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SnapshotError(f"{name} is not a text in UTF-8: byte {error.start} is {data[error.start]:#04x}") from error
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=loader)):
            # A few lines of aliases unfold to gigabytes, or contain themselves.
            raise SnapshotError(f"{name} uses YAML aliases (*name), which facts have no need of")
        return yaml.load(text, Loader=loader)  # noqa: S506 - both are safe loaders
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark is not None else ""
        raise SnapshotError(
            f"{name} is neither YAML nor JSON{place}: {getattr(error, 'problem', None) or error}"
        ) from error


def _flattened(mapping: dict[Any, Any]) -> list[tuple[str, Any]]:
    """``env: {CUDA_HOME: x}`` means ``env.CUDA_HOME: x``; a whole case file is read by its ``given_host``."""
    inner = mapping.get("given_host")
    if isinstance(inner, dict):
        mapping = inner
    flat: list[tuple[str, Any]] = []
    for key, value in mapping.items():
        name = str(key)
        if isinstance(value, dict) and name in GROUPS:
            flat.extend((f"{name}.{rest}", each) for rest, each in value.items())
        else:
            flat.append((name, value))
    return flat


def _problem(key: str) -> str:
    """Why a key is not one that anything asks for, with the keys it may have been meant to be."""
    group, dot, rest = key.partition(".")
    if key in KEYS or (dot and rest and group in GROUPS):
        return ""
    if key in GROUPS:
        return f"{key} needs a name behind it, such as {key}.NAME"
    known = sorted(KEYS | GROUPS)
    close = difflib.get_close_matches(group, known, n=3, cutoff=0.6)
    close += [each for each in known if group and group in each.split("_") and each not in close][:3]
    shown = [f"{each}.{rest}" if each in GROUPS and rest else each for each in close[:3]]
    return f"{key[:100]} is no known fact" + (f"; did you mean {', '.join(shown)}?" if shown else "")


def _plain(key: str, value: Any) -> Any:
    """Versions that YAML took for numbers or dates become the text they were; the rest stays as it is."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, list, dict)):
        return [_plain(key, each) for each in value] if isinstance(value, list) else value
    if isinstance(value, int) and (
        key.endswith("_bytes") or key in ("failing_gpu", "numa_nodes", "memory_limit_kills")
    ):
        return value
    return str(value)
