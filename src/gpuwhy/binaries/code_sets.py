"""The containers of a file, equal ones together: 475 of libtorch_cuda come to a dozen sets of architectures."""

from typing import Dict, Iterable, List, NamedTuple, Tuple

from .device_code import REGISTERED, RELOCATABLE, STRAY
from .examining import Binary
from .fatbin import Code

BARE = "bare cubin"
"""The role of cubins that stand in no container; each counts as one, as it is loaded by itself."""


class CodeSet(NamedTuple):
    """``containers`` of them with the same images; the first one is at ``offset``."""

    member: str
    section: str
    role: str
    codes: Tuple[Code, ...]
    containers: int
    offset: int


def code_sets(binary: Binary) -> Tuple[CodeSet, ...]:
    """The containers and bare cubins of a file, equal ones together, in the order of their first place."""
    counts: Dict[Tuple[str, str, str, Tuple[Code, ...]], List[int]] = {}
    for group in binary.device.groups:
        for container in group.containers:
            key = (group.member, group.section, group.role, tuple([image.code for image in container.images]))
            counts.setdefault(key, [0, group.base + container.offset])[0] += 1
    for cubin in binary.device.cubins:
        counts.setdefault(("", "", BARE, (cubin.code,)), [0, cubin.offset])[0] += 1
    return tuple(CodeSet(key[0], key[1], key[2], key[3], count, at) for key, (count, at) in counts.items())


def loaded_sets(sets: Iterable[CodeSet]) -> Tuple[CodeSet, ...]:
    """Those that decide whether the file runs: what the CUDA runtime registers.

    An object has only relocatable ones before it is linked; a bare cubin or a library of cubins only those.
    """
    listed = tuple(sets)
    for roles in ((REGISTERED, STRAY), (RELOCATABLE,), (BARE,)):
        chosen = tuple(each for each in listed if each.role in roles)
        if chosen:
            return chosen
    return listed
