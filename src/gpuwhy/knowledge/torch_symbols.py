"""Which torch releases define a symbol of libc10 or libc10_cuda: what an extension was compiled against, by its symbols."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from msgspec import Struct
from packaging.version import Version

from gpuwhy.knowledge.releases import public_version
from gpuwhy.knowledge.tables import read_table


class TorchSymbol(Struct, frozen=True):
    """A symbol that not every measured release defines, with the first and the last that does."""

    name: str
    first: str
    last: str


class SymbolLibrary(Struct, frozen=True):
    """A library of torch: the releases that were looked at, and the symbols in which they differ."""

    library: str
    releases: tuple[str, ...]
    symbols: tuple[TorchSymbol, ...]
    provenance: str


class SymbolTable(Struct, frozen=True):
    libraries: tuple[SymbolLibrary, ...]


class DefinedIn(Struct, frozen=True):
    """The releases of torch that define a symbol: ``2.9.1 or earlier``, ``2.10.0 to 2.13.0``, ``2.14.1 or later``."""

    library: str
    first: str
    last: str
    is_open_before: bool
    is_open_after: bool
    provenance: str

    @property
    def text(self) -> str:
        """The releases in words."""
        if self.is_open_before:
            return f"{self.last} or earlier"
        if self.is_open_after:
            return f"{self.first} or later"
        return self.first if self.first == self.last else f"{self.first} to {self.last}"

    def admits(self, torch: str) -> bool | None:
        """Whether a release of torch defines it; None for one whose place is not known."""
        version, first, last = public_version(torch), public_version(self.first), public_version(self.last)
        if version is None or first is None or last is None:
            return None
        if version.release[:2] in (first.release[:2], last.release[:2]):
            return True
        return (self.is_open_before or version > first) and (self.is_open_after or version < last)


def releases_with(symbols: Iterable[str]) -> str:
    """The releases that define all of these symbols, in words; ``""`` when none of them is in the tables, or no release is
    known to define all."""
    known = [found for found in map(defined_in, symbols) if found is not None]
    releases = sorted({each for library in _table().libraries for each in library.releases}, key=Version)
    fitting = [release for release in releases if all(each.admits(release) for each in known)]
    if not known or not fitting:
        return ""
    if fitting[0] == releases[0] and all(each.is_open_before for each in known):
        return f"{fitting[-1]} or earlier"
    if fitting[-1] == releases[-1] and all(each.is_open_after for each in known):
        return f"{fitting[0]} or later"
    return fitting[0] if len(fitting) == 1 else f"{fitting[0]} to {fitting[-1]}"


@functools.cache
def _table() -> SymbolTable:
    return read_table("torch_symbols", SymbolTable)


@functools.cache
def _by_name() -> dict[str, DefinedIn]:
    table = _table()
    return {
        symbol.name: DefinedIn(
            each.library,
            symbol.first,
            symbol.last,
            symbol.first == each.releases[0],
            symbol.last == each.releases[-1],
            each.provenance,
        )
        for each in table.libraries
        for symbol in each.symbols
    }


def defined_in(symbol: str) -> DefinedIn | None:
    """The releases that define a symbol; None for one that all do, that none does, or that belongs to another library."""
    return _by_name().get(symbol)
