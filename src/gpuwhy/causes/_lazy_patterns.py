"""Regular expressions that are compiled when they are first used.

The catalogue has more than five hundred of them beside its signs; a diagnosis uses about thirty. Compiling all took a fifth
of the processor time of a short log (benchmarks/bench_start.py).
"""

from __future__ import annotations

import re
from typing import Any, cast


class LazyPattern:
    """Stands for ``re.compile(source, flags)``; what is asked of it once is an attribute from then on."""

    def __init__(self, source: str, flags: int) -> None:
        self.source = source
        self.given_flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        # the cache of the module re would forget it: it holds fewer than there are
        if name == "compiled":
            found: Any = re.compile(self.source, self.given_flags)
        else:
            found = getattr(self.compiled, name)
        setattr(self, name, found)
        return found


def lazy_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern to be kept in a module. A source that is none raises re.error at its first use; tests use all."""
    return cast("re.Pattern[str]", LazyPattern(source, flags))
