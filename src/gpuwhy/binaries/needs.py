"""What would come of loading a file, by the dynamic linker's own rules, without loading anything.

flash_ops.abi3.so, with the service's LD_LIBRARY_PATH, after "import torch":
    libtorch.so       /opt/venv/.../torch/lib/libtorch.so, loaded before
    libcudart.so.12   nowhere; looked in RUNPATH ($ORIGIN/../nvidia/cuda_runtime/lib), ld.so.cache, /lib64 ...
    _ZN3c10...        defined by none of the 40 libraries
"""

from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .linker import Damaged, LinkMap, Module, Needed, Surroundings, opened, package_folder_of, uses_torch
from .owner import Owner, installed_version, owner_of
from .reading import FileSource
from .symbols import gnu_hash

_MOST_UNDEFINED = 400


class Undefined(NamedTuple):
    """A symbol that no library defines. ``version`` and ``library`` when the file asks for a version of a library."""

    name: str
    file: str
    version: str = ""
    library: str = ""


class TooOld(NamedTuple):
    """A library that lacks a version which a file asks for; ``newest`` is the newest of the same kind that it has."""

    library: str
    path: str
    version: str
    newest: str
    needed_by: str


class Loading(NamedTuple):
    """What would come of loading ``path``.

    ``preloaded`` are files taken as loaded before it (the interpreter, torch). ``undefined`` is short of sure when a
    library is missing that could define them: ``is_every_library_found`` tells. ``searched`` counts the libraries
    that were asked for symbols. ``libcuda`` is the libcuda.so.1 that the file would get, ``glibc`` the version of the
    C library at ``libc``, ``owner`` the installed package that the file is of, ``torch`` the
    installed release of torch where that was loaded before.
    """

    path: str
    libraries: Tuple[Needed, ...] = ()
    undefined: Tuple[Undefined, ...] = ()
    undefined_count: int = 0
    too_old: Tuple[TooOld, ...] = ()
    preloaded: Tuple[str, ...] = ()
    library_path: str = ""
    searched: int = 0
    libcuda: str = ""
    libcuda_how: str = ""
    glibc: str = ""
    libc: str = ""
    owner: Optional[Owner] = None
    torch: str = ""
    problems: Tuple[str, ...] = ()

    @property
    def missing(self) -> Tuple[Needed, ...]:
        """Libraries that are found nowhere, or are no libraries."""
        return tuple(each for each in self.libraries if not each.path or each.problem)

    @property
    def is_every_library_found(self) -> bool:
        return not self.missing


def explain_loading(path: str, surroundings: Surroundings) -> Loading:
    """What would come of loading a file there. Raises Unreadable; one that is no library says so in ``problems``."""
    owner = owner_of(path, package_folder_of(path))
    with LinkMap(surroundings) as linked:
        if surroundings.program and surroundings.program != path:
            linked.load_before(surroundings.program)
        for name in surroundings.preload.replace(":", " ").split():
            if name.startswith("/"):
                linked.load_before(name)
        try:
            with FileSource(path) as source:
                is_with_torch = uses_torch(opened(source))
        except Damaged as error:
            return Loading(
                path, library_path=surroundings.library_path, owner=owner, problems=("%s: %s" % (path, error),)
            )
        torch = ""
        if is_with_torch or (owner is not None and owner.requires_any("torch")):
            torch = installed_version("torch", linked.load_torch(path))
        return _told(linked, linked.load(path), surroundings)._replace(owner=owner, torch=torch)


def _told(linked: LinkMap, root: Module, surroundings: Surroundings) -> Loading:
    scope = root.scope()
    own = [each for each in scope if not each.is_before]
    paths = {each.path for each in own}
    # what torch misses before keeps the file from loading too
    rows = _once([row for row in linked.rows.values() if row.needed_by in paths or not row.path or row.problem])
    asked = [each for each in own if each is root or package_folder_of(each.path)]
    undefined = [symbol for module in asked for symbol in _undefined_in(module)]
    everything = scope + [each for each in linked.modules if each not in scope]
    left = _not_defined(undefined, everything, bool(surroundings.program))
    libcuda, how = linked.resolved("libcuda.so.1", root)
    libc = linked.by_name("libc.so.6")
    return Loading(
        root.path,
        tuple(rows),
        tuple(left[:_MOST_UNDEFINED]),
        len(left),
        tuple(_too_old(own, linked)),
        tuple(each.path for each in linked.modules if each.is_before)[:200],
        surroundings.library_path,
        len(everything),
        libcuda,
        how,
        newest_of(libc.dynamic.version_definitions, "GLIBC") if libc else "",
        libc.path if libc else "",
        problems=tuple("%s: %s" % (each.path, problem) for each in own for problem in each.elf.problems)[:20],
    )


def _once(rows: List[Needed]) -> List[Needed]:
    """One row for each name and what becomes of it: twenty libraries need libc."""
    return list({(row.name, row.path): row for row in reversed(rows)}.values())[::-1]


def _undefined_in(module: Module) -> Iterator[Undefined]:
    for symbol in module.elf.undefined_symbols():
        if not symbol.is_weak:
            yield Undefined(symbol.name, module.path, symbol.version, symbol.library)


def _not_defined(wanted: List[Undefined], modules: Sequence[Module], has_program: bool) -> List[Undefined]:
    """Those that none of the libraries defines; without the program, what an interpreter brings counts as defined."""
    left: List[Undefined] = []
    answers: Dict[Tuple[str, str], bool] = {}
    for symbol in wanted:
        key = (symbol.name, symbol.version)
        if key not in answers:
            is_python = not has_program and symbol.name.startswith(("Py", "_Py"))
            answers[key] = is_python or _is_defined(symbol, modules)
        if not answers[key]:
            left.append(symbol)
    return left


def _is_defined(symbol: Undefined, modules: Sequence[Module]) -> bool:
    """A library without versions satisfies whoever asks for one."""
    hashed = gnu_hash(symbol.name)
    for module in modules:
        versions = module.definitions.find(symbol.name, hashed)
        if versions is not None and (not symbol.version or symbol.version in versions or "" in versions):
            return True
    return False


def _too_old(modules: Sequence[Module], linked: LinkMap) -> Iterator[TooOld]:
    for module in modules:
        for need in module.dynamic.version_needs:
            library = linked.by_name(need.library)
            defined = library.dynamic.version_definitions if library else ()
            if library is None or need.is_weak or not defined or need.version in defined:
                continue
            newest = newest_of(defined, need.version.rpartition("_")[0])
            yield TooOld(need.library, library.path, need.version, newest, module.path)


def newest_of(versions: Sequence[str], kind: str) -> str:
    """``2.36`` of GLIBC_2.2.5 ... GLIBC_2.36, ``""`` when there is none of the kind."""
    numbers = [each[len(kind) + 1 :] for each in versions if each.startswith(kind + "_")]
    return max([each for each in numbers if each[:1].isdigit()] or [""], key=_parts)


def _parts(version: str) -> Tuple[int, ...]:
    return tuple(int(part) if part.isdigit() and len(part) < 10 else 0 for part in version.split("."))
