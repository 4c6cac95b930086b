"""The device code of a file: in which sections it stands, and what the host code registers of it.

.nv_fatbin        what the CUDA runtime registers: 182 containers
__nv_relfatbin    relocatable code, input of the device linker
.cask_resource    fatbins that cuBLASLt and cuDNN load by themselves
.rodata           bare cubins as C arrays (ONNX Runtime), found by their magic
"""

from typing import Iterator, List, NamedTuple, Optional, Tuple

from .cubin import Cubin, bare_cubins
from .elf import Elf, Section
from .fatbin import WRAPPER_SIZE, Container, Image, read_fatbins
from .reading import Source

REGISTERED, RELOCATABLE, RESOURCE, STRAY = "registered", "relocatable", "resource", "stray"
_ROLES = {".nv_fatbin": REGISTERED, "__nv_relfatbin": RELOCATABLE, ".cask_resource": RESOURCE}
_WRAPPERS = ".nvFatBinSegment"
SEARCHED_BYTES = 64 << 20
"""Of the sections without a known role, as much is searched for bare cubins unless more is asked for."""


class Group(NamedTuple):
    """The containers of one section. ``base`` is added to their offsets to have those of the file."""

    member: str
    section: str
    role: str
    base: int
    containers: Tuple[Container, ...]


class DeviceCode(NamedTuple):
    """All device code that was found in a file.

    ``wrappers`` is how many containers the file's own registration table names, None when it has none: fewer
    containers than that mean that some were not found. ``unsearched`` are sections too large for a search.
    """

    groups: Tuple[Group, ...] = ()
    cubins: Tuple[Cubin, ...] = ()
    wrappers: Optional[int] = None
    unsearched: Tuple[str, ...] = ()
    problems: Tuple[str, ...] = ()

    def containers(self, *roles: str) -> Iterator[Tuple[Group, Container]]:
        """Containers with the group they belong to; of the given roles, or all."""
        for group in self.groups:
            if not roles or group.role in roles:
                for container in group.containers:
                    yield group, container

    def images(self) -> Iterator[Image]:
        """Every image in a container."""
        for _, container in self.containers():
            for image in container.images:
                yield image

    def is_empty(self) -> bool:
        return not self.cubins and not any(group.containers for group in self.groups)


def device_code_of(elf: Elf, searches: int = SEARCHED_BYTES, registers: bool = False) -> DeviceCode:
    """The device code of a library, an executable or an object.

    ``searches`` is how many bytes of ordinary data are searched for bare cubins; 0 for none. ``registers`` says that the
    host code registers fatbins: if no section is known for them, they are looked for in the whole file.
    """
    source, sections = elf.source, elf.sections()
    groups: List[Group] = []
    problems: List[str] = []
    for section in sections:
        if section.name in _ROLES and section.has_bytes:
            found = read_fatbins(source, section.offset, section.size)
            groups.append(Group("", section.name, _ROLES[section.name], 0, found.containers))
            problems += ["%s: %s" % (section.name, problem) for problem in found.problems]
        elif section.name in _ROLES and section.size:
            problems.append("%s: its bytes are in another file; this one is for a debugger" % section.name)
    has_names = any(section.name for section in sections)
    if not has_names or (registers and not groups and not problems):
        stray = read_fatbins(source, 0, source.size)
        groups = [Group("", "", STRAY, 0, stray.containers)] if stray.containers else []
        why = "no section for device code" if has_names else "no section table"
        problems += [why + ": containers were looked for in the whole file"] + list(stray.problems)
    wrappers = _wrappers(sections)
    registered = sum(len(group.containers) for group in groups if group.role in (REGISTERED, RELOCATABLE))
    if wrappers is not None and registered < wrappers:
        problems.append("%d containers are registered, %d were found" % (wrappers, registered))
    cubins, unsearched = _search(source, sections, searches)
    return DeviceCode(tuple(groups), tuple(cubins), wrappers, tuple(unsearched), tuple(problems))


def _wrappers(sections: List[Section]) -> Optional[int]:
    """How many containers are registered. Tile code has a second table, ``.nvFatBinSegmentAlt``."""
    sizes = [
        section.size // WRAPPER_SIZE for section in sections if section.name.startswith(_WRAPPERS) and section.has_bytes
    ]
    return sum(sizes) if sizes else None


def _search(source: Source, sections: List[Section], most: int) -> Tuple[List[Cubin], List[str]]:
    found: List[Cubin] = []
    unsearched: List[str] = []
    for section in sections:
        if not section.name.startswith((".rodata", ".lrodata", ".data")) or section.name.startswith(".data.rel"):
            continue
        if not section.has_bytes or not most:
            continue
        if section.size > most:
            unsearched.append(section.name)
            continue
        most -= section.size
        found += bare_cubins(source, section.offset, section.size)
    return found, unsearched
