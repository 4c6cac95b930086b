"""Which binaries hold code for which GPU architectures, against the GPUs of the host, as a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from gpuwhy.model.fact import Fact
from gpuwhy.model.inspection import InspectedFile, Inspection, Outcome

_TARGET = re.compile(r"(sm|compute)_?(\d{2,3})([af]?)\b|\b(\d{1,2})\.(\d)([af]?)(\+PTX)?", re.IGNORECASE | re.ASCII)
_CAPABILITY = re.compile(r"(\d{1,2})\.(\d)", re.ASCII)
MOST_ROWS = 60
_SAID = {
    "native": ("runs", "machine code for this GPU"),
    "jit": ("compiled", "the driver compiles its PTX"),
    "jit-blocked": ("cannot run", "its PTX is newer than the driver"),
    "none": ("cannot run", "no code for this GPU"),
    "driver-too-old": ("cannot run", "the driver is too old for its CUDA"),
    "unknown": ("unknown", "nothing decides it"),
    "no-device-code": ("no code", "no code for NVIDIA GPUs"),
}
_GOOD, _BAD = frozenset({"native", "jit"}), frozenset({"jit-blocked", "none", "driver-too-old"})


class Column(msgspec.Struct, frozen=True):
    """An architecture; ``is_host`` when a GPU of the host has it."""

    name: str
    is_host: bool


class BinaryRow(msgspec.Struct, frozen=True):
    """A binary: for each column ``machine code``, ``PTX``, both, or "". ``verdict`` is what it comes to on the host."""

    name: str
    cells: tuple[str, ...]
    verdict: str
    why: str
    standing: str
    """``good``, ``bad`` or ``open``."""


class Matrix(msgspec.Struct, frozen=True):
    """The table; ``gpu`` names what the verdicts are for. ``left_out`` binaries are not shown."""

    columns: tuple[Column, ...]
    rows: tuple[BinaryRow, ...]
    gpu: str
    left_out: int = 0


def matrix_of_facts(facts: Iterable[Fact]) -> Matrix | None:
    """From ``binary_archs.NAME``, ``binary_runs.NAME``, torch's own list and ``cc``; None where no binary was read."""
    by_key = {fact.key: fact.value for fact in facts}
    archs = {key.partition(".")[2]: _names(value) for key, value in by_key.items() if key.startswith("binary_archs.")}
    runs = {key.partition(".")[2]: str(value) for key, value in by_key.items() if key.startswith("binary_runs.")}
    if by_key.get("torch_arch_list"):
        archs.setdefault("torch (its own list)", _names(by_key["torch_arch_list"]))
    found = {name: (archs.get(name, ()), runs.get(name, "")) for name in sorted({*archs, *runs})}
    return _matrix(found, str(by_key.get("cc") or ""), str(by_key.get("gpu") or "")) if found else None


def matrix_of(inspection: Inspection) -> Matrix | None:
    """From an inspection of files; None where none of them holds code for a GPU."""
    files = [file for file in inspection.files if file.container_sets or file.hidden_architectures or _is_judged(file)]
    found = {
        file.path: (
            (*file.architectures, *file.hidden_architectures),
            file.verdict.outcome.value if file.verdict is not None else "",
        )
        for file in files
    }
    return _matrix(found, inspection.compute_capability, inspection.gpu) if found else None


def _is_judged(file: InspectedFile) -> bool:
    return file.verdict is not None and file.verdict.outcome not in (Outcome.NO_DEVICE_CODE,)


def _matrix(found: Mapping[str, tuple[Sequence[str], str]], capability: str, gpu: str) -> Matrix:
    held = {name: _held(targets) for name, (targets, _) in found.items()}
    host = {f"{major}.{minor}" for major, minor in _CAPABILITY.findall(capability[:80])}
    names = {name for each in held.values() for name in each} | host
    columns = tuple(Column(name, _plain(name) in host) for name in sorted(names, key=_order)[:40])
    rows = [
        BinaryRow(
            name,
            tuple(" + ".join(held[name].get(column.name, ())) for column in columns),
            *_SAID.get(outcome, ("", "")),
            "good" if outcome in _GOOD else "bad" if outcome in _BAD else "open",
        )
        for name, (_, outcome) in found.items()
    ]
    rows.sort(key=lambda row: ("bad", "open", "good").index(row.standing))
    return Matrix(columns, tuple(rows[:MOST_ROWS]), gpu or capability, max(0, len(rows) - MOST_ROWS))


def _held(targets: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """By column (``12.0``, ``9.0a``) the kinds of code: ``code``, ``PTX``."""
    held: dict[str, dict[str, None]] = {}
    for target in targets:
        for kind, digits, suffix, major, minor, dotted_suffix, ptx in _TARGET.findall(target[:80]):
            column = f"{digits[:-1]}.{digits[-1]}{suffix}" if digits else f"{major}.{minor}{dotted_suffix}"
            kinds = held.setdefault(column.lower(), {})
            if kind.lower() != "compute":
                kinds["code"] = None
            if kind.lower() == "compute" or ptx:
                kinds["PTX"] = None
    return {column: tuple(kinds) for column, kinds in held.items()}


def _plain(column: str) -> str:
    return column.rstrip("af")


def _order(column: str) -> tuple[int, int, str]:
    major, _, rest = _plain(column).partition(".")
    return int(major), int(rest or 0), column


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.replace(",", " ").replace(";", " ").split())
    return tuple(map(str, value)) if isinstance(value, (list, tuple)) else ()
