"""``nvidia-smi --query-gpu=index,name,driver_version,compute_cap --format=csv``: a header and one row for each GPU.

index, name, driver_version, memory.total [MiB], compute_cap
0, NVIDIA GeForce RTX 5090, 570.86.15, 32607 MiB, 12.0

With ``noheader`` the columns are those of the command.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Block, Statement, Strength

OPENING = ("--query-gpu=", "name, ", "index, ", "driver_version", "compute_cap", "memory.total")
_QUERY = Pattern(r"nvidia-smi\b.{0,80}--query-gpu=(?P<columns>[\w.,]{1,400})")
_KNOWN = frozenset(["index", "name", "gpu_name", "driver_version", "compute_cap", "memory.total", "memory.used", "memory.free", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "count", "timestamp", "utilization.gpu", "temperature.gpu", "power.draw", "pstate"])  # fmt: skip
_NUMBER = Pattern(r"\d{1,3}")
_DRIVER = Pattern(r"\d{3}(?:\.\d{1,3}){1,2}")
_CAPABILITY = Pattern(r"\d{1,2}\.\d")
_MEMORY = Pattern(r"(?P<mib>\d{1,9})(?: MiB)?")


def opened(text: str) -> Block | None:
    query = _QUERY.search(text[:1000])
    if query is not None:
        return _Rows(query["columns"].split(","))
    columns = _header(text)
    return _Rows(columns) if columns else None


def _header(text: str) -> list[str]:
    """The columns, when ``text`` is a header of at least two fields, all of them nvidia-smi's."""
    if len(text) > 1000 or ", " not in text:
        return []
    columns = [column.split(" [")[0].strip() for column in text.split(",")]
    return (
        columns if len(columns) >= 2 and sum(column in _KNOWN for column in columns) >= max(2, len(columns) - 2) else []
    )


class _Rows:
    shares = False

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = list(columns)
        self._row = 0

    def read(self, text: str) -> list[Statement] | None:
        if not text.strip() and not self._row:
            return []
        header = _header(text)
        if header:
            self._columns = header
            return []
        values = [value.strip() for value in text[:1000].split(",")]
        if len(values) != len(self._columns):
            return None
        return self._statements(dict(zip(self._columns, values, strict=True)))

    def _statements(self, row: dict[str, str]) -> list[Statement] | None:
        index = row.get("index", str(self._row))
        name = row.get("name") or row.get("gpu_name") or ""
        if not _NUMBER.fullmatch(index) or (name and not name[0].isalpha()):
            return None
        driver, capability = row.get("driver_version", ""), row.get("compute_cap", "")
        if (driver and not _DRIVER.fullmatch(driver)) or (capability and not _CAPABILITY.fullmatch(capability)):
            return None
        self._row += 1
        statements = []
        if name:
            statements.append(Statement(f"gpu@{int(index)}", name, Strength.REPORTED))
        if driver:
            statements.append(Statement("driver", driver, Strength.REPORTED))
        if capability:
            statements.append(Statement(f"cc@{int(index)}", capability, Strength.REPORTED))
        used, total = (_MEMORY.fullmatch(row.get(key, "")) for key in ("memory.used", "memory.total"))
        if used is not None and total is not None:
            said = f"GPU {int(index)}: {used['mib']} of {total['mib']} MiB in use"
            statements.append(Statement("gpu_memory[]", said, Strength.REPORTED))
        return statements
