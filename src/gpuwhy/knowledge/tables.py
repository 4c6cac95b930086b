"""Read one table of the package data into its type."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

DATA = Path(__file__).parent / "data"

Table = TypeVar("Table", bound=msgspec.Struct)


def read_table(name: str, kind: type[Table]) -> Table:
    """The table `data/name.json`; the callers cache it, so each file is read at most once in a process."""
    return msgspec.json.decode((DATA / f"{name}.json").read_bytes(), type=kind)
