"""How ``gpuwhy inspect --needs`` tells a person what would come of loading a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from gpuwhy.model.loading import Loading, UndefinedSymbol

_SYMBOLS_SHOWN = 12
_FOLDERS_SHOWN = 4

Line = tuple[str, bool]
"""The text of a line, and whether it tells of something that keeps the file from loading."""


def lines(loading: Loading, verbose: bool = False) -> Iterator[Line]:
    """What is wrong; with ``verbose`` also where each library is found."""
    yield _sentence(loading), loading.loads is False
    for problem in () if loading.searched else loading.problems:
        yield problem, True
    yield from _libraries(loading, verbose)
    for old in loading.too_old:
        has = f"; the newest that it has is {old.newest}" if old.newest else ""
        yield f"{old.version} is not in {old.path}{has} (needed by {PurePath(old.needed_by).name})", True
    broken = loading.broken_symbols
    for symbol in broken[:_SYMBOLS_SHOWN]:
        yield from _undefined(symbol, loading)
    more = loading.undefined_count - len(loading.undefined) + len(broken[_SYMBOLS_SHOWN:])
    if more > 0:
        yield f"{more} more symbols that nobody defines", True
    if loading.built_for_torch and broken:
        yield f"by these symbols it was compiled for torch {loading.built_for_torch}", False
    left = len(loading.undefined) - len(broken)
    if left:
        yield f"{left} more would come with the missing libraries", False
    if verbose and loading.libcuda:
        yield f"libcuda.so.1 would be {loading.libcuda} ({loading.libcuda_how})", False


def _sentence(loading: Loading) -> str:
    words = {True: "loads", False: "does not load", None: "may load"}[loading.loads]
    after = f" after torch {loading.torch}".rstrip() if loading.torch else ""
    path = f" with LD_LIBRARY_PATH={loading.library_path}" if loading.library_path else ""
    package = f", {loading.package} {loading.package_version}" if loading.package else ""
    return f"{words}{after}{path} ({loading.searched} libraries{package})"


def _libraries(loading: Loading, verbose: bool) -> Iterator[Line]:
    """The missing ones, the file's own first, with the folders once for all that were looked for in the same."""
    missing = sorted(loading.missing, key=lambda row: row.needed_by != loading.path)
    for number, row in enumerate(missing):
        by = "" if row.needed_by == loading.path else f"; needed by {PurePath(row.needed_by).name}"
        if row.problem:
            yield f"{row.name} => {row.path}: {row.problem}{by}", True
            continue
        yield f"{row.name} is not found{f' ({row.brought_by})' if row.brought_by else ''}{by}", True
        if row.beside:
            yield f"  it lies at {row.beside}, where nobody looks: put that folder on LD_LIBRARY_PATH", False
        following = missing[number + 1] if number + 1 < len(missing) else None
        if row.looked_in and (following is None or following.looked_in != row.looked_in):
            folders = row.looked_in if verbose else row.looked_in[:_FOLDERS_SHOWN]
            more = f" and {len(row.looked_in) - len(folders)} more" if len(row.looked_in) > len(folders) else ""
            yield f"  looked in {', '.join(folders)}{more}", False
    if verbose:
        for row in loading.libraries:
            if row.path and not row.problem:
                yield f"{row.name} => {row.path} ({row.how})", False


def _undefined(symbol: UndefinedSymbol, loading: Loading) -> Iterator[Line]:
    where = "" if symbol.file == loading.path else f" in {symbol.file}"
    readable = f" = {symbol.readable}" if symbol.readable != symbol.name else ""
    version = f", version {symbol.version}" if symbol.version else ""
    yield f"undefined symbol: {symbol.name}{readable}{version}{where}", True
    if symbol.provided_by:
        have = f"; installed is torch {loading.torch}" if symbol.owner == "torch" and loading.torch else ""
        yield f"  defined by {symbol.provided_by}{have}", False
