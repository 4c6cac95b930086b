"""From what the linker would do with a file to what that means: whose a symbol is, what would bring it, whether it loads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gpuwhy.binaries.ld_cache import read_ld_cache
from gpuwhy.binaries.linker import Surroundings, package_folder_of, program_of
from gpuwhy.binaries.needs import explain_loading
from gpuwhy.binaries.plain import plain
from gpuwhy.knowledge.shared_libraries import cuda_library, is_driver_library, is_torch_library, parse
from gpuwhy.knowledge.symbol_providers import Provider, brought_by, provided_by, provider_of
from gpuwhy.knowledge.torch_symbols import releases_with
from gpuwhy.model.loading import Loading, NeededLibrary, OldLibrary, UndefinedSymbol


class Explainer:
    """Explains files of this machine with one LD_LIBRARY_PATH; the linker's cache is read once."""

    def __init__(self, library_path: str = "", preload: str = "") -> None:
        self._surroundings = Surroundings(library_path, preload, cache=read_ld_cache())

    def explain(self, path: str) -> Loading:
        """What would come of loading a file. Raises :class:`gpuwhy.binaries.reading.Unreadable`."""
        program = program_of(package_folder_of(path))
        return loading_of(plain(explain_loading(path, self._surroundings._replace(program=program))))


def loading_of(told: Mapping[str, Any]) -> Loading:
    """The answer of the reader, from here or from a target, with what is known of the names in it.

    Raises :class:`msgspec.ValidationError` for a value that no reader of ours writes.
    """
    owner: Mapping[str, Any] = told.get("owner") or {}
    requires = next((each for each in owner.get("requires") or () if _is_of_torch(str(each))), "")
    torch = str(told.get("torch") or "")
    libraries = tuple(_library(msgspec.convert(each, NeededLibrary)) for each in told["libraries"])
    undefined = tuple(_symbol(each, libraries, torch, requires) for each in told["undefined"])
    answer = Loading(
        path=str(told["path"]),
        loads=None,
        libraries=libraries,
        undefined=undefined,
        undefined_count=int(told["undefined_count"]),
        too_old=msgspec.convert(told["too_old"], tuple[OldLibrary, ...]),
        library_path=str(told["library_path"]),
        searched=int(told["searched"]),
        libcuda=str(told["libcuda"]),
        libcuda_how=str(told["libcuda_how"]),
        glibc=str(told["glibc"]),
        libc=str(told["libc"]),
        package=str(owner.get("name") or ""),
        package_version=str(owner.get("version") or ""),
        package_size=owner.get("size"),
        requires_torch=requires,
        torch=torch,
        built_for_torch=releases_with(each.name for each in undefined),
        problems=msgspec.convert(told["problems"], tuple[str, ...]),
    )
    return msgspec.structs.replace(answer, loads=_loads(answer))


def _loads(answer: Loading) -> bool | None:
    """A library that is missing, damaged or too old ends it, and so does a symbol that no missing library would bring.

    Without the driver's libraries, which a machine without GPUs lacks, it stays open.
    """
    if not answer.searched and answer.problems:
        return False
    if answer.too_old or any(not _is_of_driver(each) for each in answer.missing):
        return False
    if any(_is_sure(symbol) for symbol in answer.broken_symbols):
        return False
    return None if answer.missing or answer.broken_symbols else True


def _is_of_driver(row: NeededLibrary) -> bool:
    library = parse(row.name)
    return not row.problem and library is not None and is_driver_library(library)


def _is_sure(symbol: UndefinedSymbol) -> bool:
    """Whether every library that could define it was asked: for one whose owner nobody knows that is open."""
    return symbol.owner != "other" or bool(symbol.library)


def _library(row: NeededLibrary) -> NeededLibrary:
    return row if row.path else msgspec.structs.replace(row, brought_by=brought_by(row.name))


def _symbol(told: Mapping[str, Any], libraries: tuple[NeededLibrary, ...], torch: str, requires: str) -> UndefinedSymbol:  # fmt: skip
    name = str(told["name"])
    provider = provider_of(name)
    return UndefinedSymbol(
        name=name,
        readable=provider.readable,
        file=str(told["file"]),
        owner=provider.owner,
        version=str(told["version"]),
        library=str(told["library"]),
        provided_by=provided_by(name, torch, requires),
        comes_with=_comes_with(provider, str(told["library"]), libraries),
    )


def _comes_with(provider: Provider, library: str, libraries: tuple[NeededLibrary, ...]) -> str:
    """The missing library that would define the symbol: the one whose version it asks for, or the one of its kind."""
    missing = [each.name for each in libraries if not each.path or each.problem]
    if library in missing:
        return library
    for name in missing:
        parsed = parse(name)
        if parsed is not None and parsed.stem in provider.stems:
            return name
        if parsed is not None and provider.owner == "torch" and is_torch_library(parsed):
            return name
    if provider.owner == "other" and any((p := parse(name)) is None or cuda_library(p) is None for name in missing):
        # a library nobody knows may define what nobody knows
        return next(name for name in missing if (p := parse(name)) is None or cuda_library(p) is None)
    return ""


def _is_of_torch(requirement: str) -> bool:
    name, rest = requirement[:5], requirement[5:6]
    return name == "torch" and not (rest.isalnum() or rest in "-_") and "extra ==" not in requirement
