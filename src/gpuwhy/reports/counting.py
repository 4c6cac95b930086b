"""How reports say a number of things."""

from __future__ import annotations


def counted(count: int, what: str) -> str:
    """``1 file``, ``2 files``, ``1,024 files``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
