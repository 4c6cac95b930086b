"""What would come of loading a binary: which libraries are found where, which symbols nobody defines."""

from __future__ import annotations

import msgspec


class NeededLibrary(msgspec.Struct, frozen=True, omit_defaults=True):
    """A library that a file needs.

    ``path`` is the file that is taken, ``""`` when it is found nowhere; ``how`` what led there. Of a missing one,
    ``looked_in`` are the folders that were searched, ``beside`` a file of that name where nobody looks, and
    ``brought_by`` what would bring it. ``problem``: it is found, and damaged.
    """

    name: str
    needed_by: str
    path: str = ""
    how: str = ""
    problem: str = ""
    looked_in: tuple[str, ...] = ()
    beside: str = ""
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
