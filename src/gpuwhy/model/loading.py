"""What would come of loading a binary: which libraries are found where, which symbols nobody defines."""

from __future__ import annotations

import msgspec

from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Facts


class NeededLibrary(msgspec.Struct, frozen=True, omit_defaults=True):
    """A library that a file needs.

    ``path`` is the file that is taken, ``""`` when it is found nowhere; ``how`` what led there. Of a missing one,
    ``looked_in`` are the folders that were searched, ``beside`` a file of that name where nobody looks, ``other_number``
    the same library with another number that is there, and ``brought_by`` what would bring it. ``problem``: it is found,
    and damaged.
    """

    name: str
    needed_by: str
    path: str = ""
    how: str = ""
    problem: str = ""
    looked_in: tuple[str, ...] = ()
    beside: str = ""
    other_number: str = ""
    brought_by: str = ""


class UndefinedSymbol(msgspec.Struct, frozen=True, omit_defaults=True):
    """A symbol that none of the libraries defines, with its name as a person writes it.

    ``owner`` is whose it is: ``torch``, ``cuda``, ``driver``, ``nccl``, ``python``, ``standard`` (the C++ run time),
    ``other``. ``provided_by`` names the package and the releases that define it, as far as that is known.
    ``comes_with`` is a missing library that would bring it: then nothing is wrong with the symbol itself.
    """

    name: str
    readable: str
    file: str
    owner: str = "other"
    version: str = ""
    library: str = ""
    provided_by: str = ""
    comes_with: str = ""


class OldLibrary(msgspec.Struct, frozen=True, omit_defaults=True):
    """A library that lacks a version which a file asks for ("GLIBC_2.38"); ``newest`` is the newest that it has."""

    library: str
    path: str
    version: str
    newest: str
    needed_by: str


class Loading(msgspec.Struct, frozen=True, kw_only=True):
    """What would come of loading ``path`` with the given LD_LIBRARY_PATH, after what is loaded before it.

    ``loads`` is None where a missing library leaves it open whether more is wrong, or nothing could be read.
    ``undefined`` holds the first of ``undefined_count``. ``searched`` libraries were asked for symbols. ``libcuda`` is
    the libcuda.so.1 that would be loaded. ``package`` and ``package_version`` are of the installed package that the
    file belongs to, ``package_size`` the file's size when it was installed; ``requires_torch`` is that package's own
    requirement, ``torch`` the installed release, ``built_for_torch`` the releases that define every symbol which the
    installed one lacks, as far as they were measured.
    """

    path: str
    loads: bool | None
    libraries: tuple[NeededLibrary, ...] = ()
    undefined: tuple[UndefinedSymbol, ...] = ()
    undefined_count: int = 0
    too_old: tuple[OldLibrary, ...] = ()
    library_path: str = ""
    searched: int = 0
    libcuda: str = ""
    libcuda_how: str = ""
    glibc: str = ""
    libc: str = ""
    package: str = ""
    package_version: str = ""
    package_size: int | None = None
    requires_torch: str = ""
    torch: str = ""
    built_for_torch: str = ""
    problems: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[NeededLibrary, ...]:
        """Libraries that are found nowhere, or damaged."""
        return tuple(each for each in self.libraries if not each.path or each.problem)

    @property
    def broken_symbols(self) -> tuple[UndefinedSymbol, ...]:
        """Those that no missing library would bring."""
        return tuple(each for each in self.undefined if not each.comes_with)


class Loadings(msgspec.Struct, frozen=True):
    """What is known of loading files of the target, by path."""

    by_path: dict[str, Loading]

    @classmethod
    def of(cls, facts: Facts) -> Loadings:
        """From ``loading.PATH``; a value that is not shaped as it is collected counts as not known."""
        found: dict[str, Loading] = {}
        for path, fact in facts.group("loading").items():
            try:
                found[path] = msgspec.convert(fact.value, Loading)
            except (msgspec.ValidationError, TypeError):
                continue
        return cls(found)

    def of_file(self, path: str | None) -> Loading | None:
        """The answer for a file, by its whole path."""
        return self.by_path.get(path or "")

    def missing(self, library: str) -> tuple[NeededLibrary, Evidence] | None:
        """A library that is found nowhere for one of the files, with the evidence of it."""
        for loading in self.by_path.values():
            for row in loading.missing:
                if row.name == library and not row.path:
                    said = f"no folder that the loader searches for {_name(row.needed_by)} holds {library}"
                    return row, _evidence(row.needed_by, said, f"looked in {', '.join(row.looked_in[:12])}")
        return None

    def found(self, library: str) -> tuple[NeededLibrary, Evidence] | None:
        """A library that the loader finds for one of the files, with the evidence of it."""
        for loading in self.by_path.values():
            for row in loading.libraries:
                if row.name == library and row.path and not row.problem:
                    said = f"the loader finds {library} for {_name(row.needed_by)} ({row.how})"
                    return row, _evidence(row.needed_by, said, row.path)
        return None

    def undefined(self, symbol: str) -> tuple[UndefinedSymbol, Evidence] | None:
        """A symbol that none of the libraries defines which a file gets, and that no missing one would bring."""
        for loading in self.by_path.values():
            for each in loading.broken_symbols:
                if each.name == symbol:
                    by = f"; {each.provided_by} defines it" if each.provided_by else ""
                    have = f", installed is torch {loading.torch}" if each.owner == "torch" and loading.torch else ""
                    said = f"none of the {loading.searched} libraries that {_name(each.file)} gets defines {each.readable}{by}{have}"  # fmt: skip
                    return each, _evidence(each.file, said, f".dynsym: undefined {each.name}")
        return None

    def too_old(self, version: str) -> tuple[OldLibrary, Evidence] | None:
        """A library that lacks a version ("GLIBC_2.38")."""
        for loading in self.by_path.values():
            for each in loading.too_old:
                if each.version == version:
                    kind = version.rpartition("_")[0]
                    said = f"{each.path}, which {_name(each.needed_by)} gets, has {kind} up to {each.newest or 'none'}"
                    return each, _evidence(each.needed_by, said, f".gnu.version_r: {version} of {each.library}")
        return None


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _evidence(path: str, statement: str, quote: str) -> Evidence:
    return Evidence(statement, quote[:600], Place("binary", path))
