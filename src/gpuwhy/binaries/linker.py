"""The dynamic linker's map: which file each needed name becomes, and what is loaded before.

Rules of ld.so(8). RPATH of a file and of those that loaded it counts only without RUNPATH; then LD_LIBRARY_PATH,
RUNPATH, the cache, the default folders. A file of another class or machine is passed over; a damaged one ends the search.
"""

import os
import stat
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .elf import AARCH64, X86_64, Elf, NotElf
from .ld_cache import LdCache
from .reading import FileSource, Source, Unreadable
from .runtime import torch_abi_of
from .symbols import Definitions

DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_MULTIARCH = {X86_64: "x86_64-linux-gnu", AARCH64: "aarch64-linux-gnu"}
_NODEFLIB = 0x800
_MOST_LIBRARIES = 600
_MOST_LOOKED_IN = 40
_MOST_NEEDED = 400
_MOST_LOOKS = 20000
"""More than any real program has; a file that claims more is not followed further."""
_NO_LIBRARIES = ("/proc/", "/sys/", "/dev/")
"""Folders whose files do things when they are opened."""
_TORCH_NAMES = ("libtorch", "libc10", "libshm", "libcaffe2")


class Damaged(Exception):  # noqa: N818
    """A file that the linker finds and refuses, so that it looks no further."""


class Needed(NamedTuple):
    """A library that a file needs.

    ``path`` is the file that is taken, ``""`` when none is found; ``how`` what led there ("RUNPATH of libtorch.so",
    "ld.so.cache"). For one that is not found ``looked_in`` are the folders that were searched, and ``beside`` a file of
    that name in the folder of another package, where nobody looks; ``other_number`` is the same library with another
    number (libcudart.so.13 for libcudart.so.12) that is loaded or lies there. ``problem``: it is found, and damaged.
    """

    name: str
    needed_by: str
    path: str = ""
    how: str = ""
    problem: str = ""
    looked_in: Tuple[str, ...] = ()
    beside: str = ""
    other_number: str = ""


class Surroundings(NamedTuple):
    """In what a file is loaded: LD_LIBRARY_PATH and LD_PRELOAD, the program, the folders of Python packages."""

    library_path: str = ""
    preload: str = ""
    program: str = ""
    packages: Tuple[str, ...] = ()
    cache: LdCache = LdCache({})
    default_folders: Tuple[str, ...] = DEFAULT_FOLDERS


class Module:
    """A file in the map. ``is_before``: it is there before the examined file is loaded."""

    def __init__(self, path: str, elf: Elf, loaded_by: "Optional[Module]", is_before: bool) -> None:
        self.path = path
        self.elf = elf
        self.dynamic = elf.dynamic()
        self.loaded_by = loaded_by
        self.is_before = is_before
        self.needed: List[Module] = []
        self._definitions: Optional[Definitions] = None

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def definitions(self) -> Definitions:
        if self._definitions is None:
            self._definitions = Definitions(self.elf)
        return self._definitions

    def scope(self) -> "List[Module]":
        """The file and all that it needs, breadth first."""
        found, queue = [self], [self]
        while queue:
            for each in queue.pop(0).needed:
                if each not in found:
                    found.append(each)
                    queue.append(each)
        return found


class LinkMap:
    """The map while it grows. A context manager: it keeps the files open that it reads.

    ``rows`` has an answer for each name and the file that needs it.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self.modules: List[Module] = []
        self.rows: Dict[Tuple[str, str], Needed] = {}
        self._in = surroundings
        self._by_name: Dict[str, Module] = {}
        self._sources: List[FileSource] = []
        self._looks = 0

    def __enter__(self) -> "LinkMap":
        return self

    def __exit__(self, *_: object) -> None:
        for source in self._sources:
            source.close()

    def by_name(self, name: str) -> Optional[Module]:
        """The file that a name has become, None when none was loaded under it."""
        return self._by_name.get(name)

    def load(self, path: str) -> Module:
        """Load a file with all that it needs. Raises Unreadable and Damaged."""
        module = self._by_path(path) or self._opened(path, False)
        module.is_before = False
        self._load_needed(module)
        return module

    def load_before(self, path: str) -> None:
        """A file that is there before the examined one, with all it needs; one that cannot be read is not there."""
        if self._by_path(path) is None:
            try:
                self._load_needed(self._opened(path, True))
            except (Unreadable, Damaged):
                pass

    def load_torch(self, path: str) -> str:
        """What ``import torch`` has loaded before a file that is used with it.

        First the libraries of torch's dependencies, then torch's own module. What the former does not find, torch
        takes from the folders of NVIDIA's wheels (torch/__init__.py, _preload_cuda_deps). Answers with the folder of
        packages that torch is in, ``""`` without torch.
        """
        for packages in self._package_folders(path):
            folder = os.path.join(packages, "torch")
            first = os.path.join(folder, "lib", "libtorch_global_deps.so")
            if not os.path.isfile(first):
                continue
            is_of_torch = os.path.abspath(path).startswith(folder + "/")
            for wanted in [first] + ([] if is_of_torch else _torch_modules(folder)):
                if wanted != path:
                    self.load_before(wanted)
            for key, missing in list(self.rows.items()):
                beside = "" if missing.path or "/torch/" not in missing.needed_by else missing.beside
                if beside:
                    self.load_before(beside)
                    self.rows[key] = missing._replace(path=beside, how="preloaded by torch", looked_in=(), beside="")
            return packages
        return ""

    def resolved(self, name: str, module: Module) -> Tuple[str, str]:
        """Which file a name would give if this file asked for it while it runs, as the CUDA runtime does for libcuda."""
        known = self._by_name.get(name)
        if known is not None:
            return known.path, "loaded already"
        for path, how in self._places(name, module):
            try:
                if self._fitting(path, module.elf) is not None:
                    return path, how
            except Damaged:
                return path, how
        return "", ""

    def _package_folders(self, path: str) -> List[str]:
        """The environment's folders of packages; the one that the file lies in first."""
        own = package_folder_of(path)
        return list(dict.fromkeys(([own] if own else []) + list(self._in.packages)))

    # filling the map

    def _by_path(self, path: str) -> Optional[Module]:
        return next((each for each in self.modules if each.path == path), None)

    def _opened(self, path: str, is_before: bool) -> Module:
        elf = self._open(path)
        if elf is None:
            raise Damaged("%s: made for another machine" % path)
        return self._add(path, elf, None, is_before)

    def _open(self, path: str, machine: Optional[Tuple[int, int]] = None) -> Optional[Elf]:
        """The file, which stays open; None for one of another machine than is wanted. Raises Unreadable and Damaged."""
        source = FileSource(path)
        try:
            elf = opened(source)
        except Damaged:
            source.close()
            raise
        if machine is not None and (elf.machine, elf.bits) != machine:
            source.close()
            return None
        self._sources.append(source)
        return elf

    def _add(self, path: str, elf: Elf, loaded_by: Optional[Module], is_before: bool) -> Module:
        module = Module(path, elf, loaded_by, is_before)
        self.modules.append(module)
        self._by_name.setdefault(module.dynamic.soname or module.name, module)
        return module

    def _load_needed(self, root: Module) -> None:
        """Breadth first, as the linker does."""
        queue = [root]
        while queue and len(self.modules) < _MOST_LIBRARIES:
            module = queue.pop(0)
            for name in module.dynamic.needed[:_MOST_NEEDED]:
                known = len(self.modules)
                found = self._need(name, module, root.is_before)
                if found is not None:
                    module.needed.append(found)
                    queue += [found] * (len(self.modules) > known)

    def _need(self, name: str, module: Module, is_before: bool) -> Optional[Module]:
        key = (name, module.path)
        known = self._by_name.get(name)
        if known is not None:
            how = "loaded before" if known.is_before and not is_before else "loaded already"
            self.rows.setdefault(key, Needed(name, module.path, known.path, how))
            return known
        looked_in: List[str] = []
        for path, how in self._places(name, module):
            if self._looks > _MOST_LOOKS:
                break
            looked_in.append(os.path.dirname(path))
            try:
                elf = self._fitting(path, module.elf)
            except Damaged as error:
                self.rows[key] = Needed(name, module.path, path, how, str(error))
                return None
            if elf is None:
                continue
            known = self._by_path(path) or self._add(path, elf, module, is_before)
            self._by_name.setdefault(name, known)
            self.rows[key] = Needed(name, module.path, path, how)
            return known
        packages = self._package_folders(module.path)
        beside = next(filter(None, (_in_wheels(each, name) for each in packages)), "")
        folders = tuple(dict.fromkeys(looked_in))[:_MOST_LOOKED_IN]
        self.rows[key] = Needed(
            name, module.path, looked_in=folders, beside=beside, other_number=self._other_number(name, packages)
        )
        return None

    def _other_number(self, name: str, packages: Sequence[str]) -> str:
        """The library of another number that is loaded, or that a wheel brought."""
        stem = name.partition(".so")[0] + ".so."
        for known, module in self._by_name.items():
            if known.startswith(stem) and known != name:
                return module.path
        return next(filter(None, (_in_wheels(each, stem, is_start=True) for each in packages)), "")

    def _fitting(self, path: str, wanted: Elf) -> Optional[Elf]:
        """The file; None when the linker goes on searching: it is not there, or made for another machine."""
        self._looks += 1
        try:
            is_file = not path.startswith(_NO_LIBRARIES) and stat.S_ISREG(os.stat(path).st_mode)
        except (OSError, ValueError):
            return None
        if not is_file:  # a device is not opened to see what it is
            return None
        try:
            return self._open(path, (wanted.machine, wanted.bits))
        except Unreadable as error:
            raise Damaged(str(error))

    # where the linker looks

    def _places(self, name: str, module: Module) -> Iterator[Tuple[str, str]]:
        if "/" in name:
            yield self._expanded(name, module), "its own path"
            return
        if not module.dynamic.runpath:
            each: Optional[Module] = module
            while each is not None:
                for folder in () if each.dynamic.runpath else each.dynamic.rpath:
                    yield os.path.join(self._expanded(folder, each), name), "RPATH of %s" % each.name
                each = each.loaded_by
        for folder in self._in.library_path.replace(";", ":").split(":") if self._in.library_path else ():
            yield os.path.join(folder or ".", name), "LD_LIBRARY_PATH"
        for folder in module.dynamic.runpath:
            yield os.path.join(self._expanded(folder, module), name), "RUNPATH of %s" % module.name
        if module.dynamic.flags_1 & _NODEFLIB:
            return
        for path in self._in.cache.paths(name):
            yield path, "ld.so.cache"
        for folder in self._default_folders(module.elf.machine):
            yield os.path.join(folder, name), "default folder"

    def _default_folders(self, machine: int) -> Sequence[str]:
        if self._in.default_folders != DEFAULT_FOLDERS or machine not in _MULTIARCH:
            return self._in.default_folders
        multiarch = _MULTIARCH[machine]
        return ("/lib/" + multiarch, "/usr/lib/" + multiarch) + DEFAULT_FOLDERS

    def _expanded(self, folder: str, module: Module) -> str:
        is_debian = os.path.isfile("/etc/debian_version")
        library = "lib/" + _MULTIARCH.get(module.elf.machine, "") if is_debian else "lib64"
        origin = os.path.dirname(os.path.abspath(module.path))
        for word, value in (("ORIGIN", origin), ("LIB", library), ("PLATFORM", "x86_64")):
            folder = folder.replace("${%s}" % word, value).replace("$%s" % word, value)
        return os.path.normpath(folder)


def opened(source: Source) -> Elf:
    """A file as the linker takes it. Raises Damaged for one that it refuses, in the words that it uses where it has some."""
    try:
        elf = Elf(source)
    except NotElf as error:
        raise Damaged(
            "file too short (%d bytes)" % source.size if source.size < 64 else "invalid ELF header: %s" % error
        )
    end = elf.end_by_headers()
    if end > source.size:
        raise Damaged("the file ends at %d, its headers announce %d bytes" % (source.size, end))
    return elf


def uses_torch(elf: Elf) -> bool:
    """Whether a file is one that a program loads after torch: it needs torch's libraries or calls them."""
    if any(name.startswith(_TORCH_NAMES) for name in elf.dynamic().needed):
        return True
    return bool(torch_abi_of(list(elf.undefined_names())).kind)


def package_folder_of(path: str) -> str:
    """The site-packages or dist-packages that a file lies in, or ``""``."""
    parts = os.path.abspath(path).split("/")
    for number in range(len(parts) - 1, 0, -1):
        if parts[number - 1] in ("site-packages", "dist-packages"):
            return "/".join(parts[:number])
    return ""


def program_of(packages: str) -> str:
    """The interpreter of the environment that a folder of packages belongs to, or ``""``."""
    folder = packages
    for _ in range(3):
        folder = os.path.dirname(folder)
        for name in ("python3", "python"):
            path = os.path.join(folder, "bin", name)
            if os.path.isfile(path):
                return os.path.realpath(path)
    return ""


def _torch_modules(folder: str) -> List[str]:
    return [os.path.join(folder, each) for each in _names_in(folder) if each.startswith("_C.") and each.endswith(".so")]


def _in_wheels(packages: str, name: str, is_start: bool = False) -> str:
    """A library of that name (or whose name starts so) in the folders where NVIDIA's wheels and torch's keep theirs."""
    for folder in _library_folders(packages):
        if not is_start and os.path.isfile(os.path.join(folder, name)):
            return os.path.join(folder, name)
        if is_start:
            found = [each for each in _names_in(folder) if each.startswith(name)]
            if found:
                return os.path.join(folder, found[0])
    return ""


def _library_folders(packages: str) -> List[str]:
    nvidia = os.path.join(packages, "nvidia")
    return [os.path.join(nvidia, each, "lib") for each in _names_in(nvidia)] + [os.path.join(packages, "torch", "lib")]


def _names_in(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
