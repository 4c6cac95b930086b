"""Regular expressions that are compiled when first used.

The readers know some two hundred, one log needs a dozen of them, and compiling takes longer than reading a short log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any


class Pattern:
    """A regular expression; its methods are those of :class:`re.Pattern`, and as fast from the second call on."""

    search: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    findall: Callable[..., list[Any]]
    finditer: Callable[..., Iterator[re.Match[str]]]
    sub: Callable[..., str]

    def __init__(self, source: str, flags: int = 0) -> None:
        self.source = source
        self.flags = flags

    def __getattr__(self, name: str) -> Any:  # only before the first use: afterwards the methods are found directly
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self.source, self.flags)
        for method in ("search", "match", "fullmatch", "findall", "finditer", "sub"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)
