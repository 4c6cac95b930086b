"""Where installed source stands: one root per importable package, on this machine or fed file by file from another."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

MAX_FILES = 60_000
"""Of one package; the largest seen (a vendored monorepo) has 12,000."""
MAX_BYTES = 32 << 20
"""A larger file is named, not read."""


class SourceFile(msgspec.Struct, frozen=True):
    """``path`` is relative to the folder that holds the package (``flashinfer/jit/core.py``); ``stamp`` changes with
    the content."""

    path: str
    size: int
    stamp: str


class UnreadableError(Exception):
    """The text of a file cannot be had; the message says why."""


class Root(Protocol):
    """The Python files of one importable package. Nothing of it is ever imported or executed."""

    @property
    def package(self) -> str:
        """The import name: ``flashinfer``."""

    @property
    def version(self) -> str:
        """Of the distribution that brought it; empty when nothing says it."""

    @property
    def is_complete(self) -> bool:
        """Whether ``files`` are all that is installed: without that, "there is none" cannot be said."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """What was not listed, each with its reason."""

    def files(self) -> tuple[SourceFile, ...]:
        """Sorted by path."""

    def read(self, path: str) -> bytes:
        """Raises UnreadableError."""


class FolderRoot:
    """A package below a folder such as ``site-packages``, read where it stands. Links that lead out of it, or in a
    circle, are named and not followed."""

    def __init__(self, folder: Path, package: str) -> None:
        self.folder = folder
        self.package = package
        self.is_complete = True
        self._left_out: list[str] = []
        self._files: tuple[SourceFile, ...] | None = None
        self._version: str | None = None

    @property
    def version(self) -> str:
        if self._version is None:
            self._version = _version(self.folder, self.package)
        return self._version

    @property
    def left_out(self) -> tuple[str, ...]:
        self.files()
        return tuple(self._left_out)

    def files(self) -> tuple[SourceFile, ...]:
        if self._files is None:
            self._files = tuple(sorted(self._listed(), key=lambda file: file.path))
        return self._files

    def _listed(self) -> Iterable[SourceFile]:
        top = self.folder / self.package
        module = self.folder / f"{self.package}.py"
        if not top.is_dir():
            return [self._described(module, module.stat())] if module.is_file() else []
        found: list[SourceFile] = []
        pending = [str(top)]
        while pending:
            folder = pending.pop()
            try:
                entries = list(os.scandir(folder))
            except OSError as error:
                self._left_out.append(f"{self._relative(folder)}: {error.strerror}")
                continue
            for entry in entries:
                if entry.is_symlink() and not self._stays_inside(entry):
                    if entry.name.endswith(".py") or entry.is_dir():
                        self._left_out.append(f"{self._relative(entry.path)}: a link that is not followed")
                elif entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        pending.append(entry.path)
                elif entry.name.endswith(".py"):
                    described = entry.stat()
                    if not stat.S_ISREG(described.st_mode):
                        self._left_out.append(f"{self._relative(entry.path)}: no plain file")
                    elif described.st_size > MAX_BYTES:
                        self._left_out.append(f"{self._relative(entry.path)}: {described.st_size >> 20} MB")
                    elif len(found) < MAX_FILES:
                        found.append(self._described(Path(entry.path), described))
                    else:
                        self.is_complete = False
        return found

    def _stays_inside(self, entry: os.DirEntry[str]) -> bool:
        """A linked file inside the package is read under its own name; a linked folder never is: it may be a circle."""
        try:
            return entry.is_file() and Path(entry.path).resolve().is_relative_to((self.folder / self.package).resolve())
        except (OSError, RuntimeError):
            return False

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.folder).replace(os.sep, "/")

    def _described(self, path: Path, described: os.stat_result) -> SourceFile:
        return SourceFile(
            self._relative(str(path)), described.st_size, f"{described.st_mtime_ns:x}.{described.st_ino:x}"
        )

    def read(self, path: str) -> bytes:
        try:
            with (self.folder / path).open("rb") as file:
                return file.read(MAX_BYTES)
        except (OSError, ValueError) as error:
            raise UnreadableError(f"{path}: {error}") from error


class FedRoot:
    """A package whose files come one after the other, from another machine for instance.

    ``listing`` names what is installed there when that is known; ``wanted`` are the files that were asked for and had
    not come yet: fetch them, ``feed`` them, ask again. ``installed`` is how many Python files the package has where it
    stands, as far as that is known, and ``place`` says where that is.
    """

    def __init__(self, package: str, version: str = "", listing: Iterable[str] = (), is_complete: bool = False) -> None:
        self.package = package
        self.version = version
        self.is_complete = is_complete
        self.left_out: tuple[str, ...] = ()
        self.installed = 0
        self.place = ""
        self._listing = set(listing)
        self._texts: dict[str, bytes] = {}
        self._wanted: dict[str, None] = {}

    @property
    def wanted(self) -> tuple[str, ...]:
        return tuple(path for path in self._wanted if path not in self._texts)

    def feed(self, files: Mapping[str, bytes]) -> None:
        self._texts.update(files)

    def files(self) -> tuple[SourceFile, ...]:
        return tuple(SourceFile(path, len(text), content_hash(text)) for path, text in sorted(self._texts.items()))

    def knows(self, path: str) -> bool:
        """Whether the file is there, or was listed; remembers a listed one as wanted."""
        if path in self._texts:
            return True
        if path in self._listing:
            self._wanted[path] = None
        return False

    def has_all_with(self, words: Sequence[str]) -> bool:
        """Whether every installed file with the words is here: else nothing can be said of those that are not."""
        del words
        return self.is_complete

    @property
    def listed(self) -> frozenset[str]:
        """The paths that are known to be installed, here or not."""
        return frozenset(self._listing) | frozenset(self._texts)

    def search(self, words: Sequence[str], spelled: re.Pattern[bytes] | None = None) -> int:
        """Told of every search: how many files hold all the words, and ``spelled``. A root that can have them looked
        for where they stand wants those that it finds; this one knows only what it was fed, and says 0."""
        del words, spelled
        return 0

    def read(self, path: str) -> bytes:
        try:
            return self._texts[path]
        except KeyError:
            self._wanted[path] = None
            raise UnreadableError(f"{path}: not fetched") from None


def content_hash(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def packages_in(folder: Path) -> dict[str, FolderRoot]:
    """The importable packages and modules directly below a folder such as ``site-packages`` or a checkout's ``src``.

    A folder that is itself a package gives that one.
    """
    if (folder / "__init__.py").is_file():
        resolved = folder.resolve()
        return {resolved.name: FolderRoot(resolved.parent, resolved.name)}
    found: dict[str, FolderRoot] = {}
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and entry.name.isidentifier() and entry.name != "__pycache__":
            found[entry.name] = FolderRoot(folder, entry.name)
        elif entry.suffix == ".py" and entry.stem.isidentifier() and entry.stem not in found:
            found[entry.stem] = FolderRoot(folder, entry.stem)
    return found


def site_packages(environment: Path) -> tuple[Path, ...]:
    """The folders with packages of a Python environment, or the folder itself when it is one."""
    found: list[Path] = []
    for pattern in ("lib*/python*/site-packages", "lib*/python*/dist-packages", "Lib/site-packages"):
        found += [folder for folder in sorted(environment.glob(pattern)) if folder.is_dir()]
    if not found and environment.name in ("site-packages", "dist-packages"):
        found = [environment]
    # lib64 is a link to lib in most environments
    return tuple({folder.resolve(): folder for folder in found}.values())


_DIST_INFO = re.compile(r"(?P<name>[A-Za-z0-9_.]{1,100})-(?P<version>[^-]{1,100})\.(?:dist|egg)-info")


def _version(folder: Path, package: str) -> str:
    candidates = [found for found in (_DIST_INFO.fullmatch(each.name) for each in folder.iterdir()) if found]
    plain = package.lower().replace("_", "")
    for found in candidates:
        name = re.sub(r"[-_.]", "", found["name"].lower())
        if name in (plain, plain + "python"):
            return found["version"]
    for found in candidates:
        if package in _top_level(folder / found.group()):
            return found["version"]
    return ""


def _top_level(described: Path) -> list[str]:
    try:
        return (described / "top_level.txt").read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return []
