"""Whether a library defines a symbol, by its hash table: libtorch_cpu defines 100,000, a question reads a few bytes.

Definitions(Elf(...)).find("_ZN3c105ErrorC2ENS_14SourceLocationESs") -> None: this torch has another string type
"""

import struct
import sys
from array import array
from typing import Dict, List, Optional, Tuple

from .elf import Elf

_GNU_HASH, _DT_SYMTAB = 0x6FFFFEF5, 6
_MOST_WORDS = 1 << 24


def gnu_hash(name: str) -> int:
    """The hash of DT_GNU_HASH: Bernstein's, of the name's bytes."""
    value = 5381
    for byte in name.encode("ascii", "replace"):
        value = value * 33 + byte & 0xFFFFFFFF
    return value


class Definitions:
    """The symbols that a library defines for others. A library without the hash table is read once as a whole."""

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self._names: Optional[Dict[str, Tuple[str, ...]]] = None
        self._table = self._read_table()

    def find(self, name: str, hashed: Optional[int] = None) -> Optional[Tuple[str, ...]]:
        """The versions under which a symbol is defined (``("",)`` without one); None when it is not.

        ``hashed`` is its gnu_hash, for callers that ask many libraries.
        """
        if self._table is None:
            return self._all().get(name)
        value = gnu_hash(name) if hashed is None else hashed
        found = [self._elf.version_of(number)[0] for number in self._numbers(name, value)]
        return tuple(found) or None

    def _all(self) -> Dict[str, Tuple[str, ...]]:
        if self._names is None:
            names: Dict[str, Tuple[str, ...]] = {}
            for symbol in self._elf.defined_symbols():
                names[symbol.name] = names.get(symbol.name, ()) + (symbol.version,)
            self._names = names
        return self._names

    def _read_table(self) -> "Optional[Tuple[array[int], int, array[int], int, array[int]]]":
        """Bloom filter, its shift, buckets, the first hashed symbol, and the chains; None without a sound table."""
        elf = self._elf
        at = elf.table_at(_GNU_HASH)
        head = b"" if at is None else elf.source.read_at(at, 16)
        if at is None or len(head) < 16 or elf.table_at(_DT_SYMTAB) is None:
            return None
        buckets, first, bloom, shift = struct.unpack(elf.order + "4I", head)
        count = elf.symbol_table()[1]
        if not buckets or not bloom or max(buckets, bloom, count) > _MOST_WORDS or shift > 31:
            return None
        at += 16
        words = self._words(at, bloom, "I" if elf.bits == 32 else "Q")
        at += bloom * (elf.bits // 8)
        heads = self._words(at, buckets, "I")
        chains = self._words(at + 4 * buckets, max(0, count - first), "I")
        return (words, shift, heads, first, chains) if len(words) == bloom and len(heads) == buckets else None

    def _words(self, at: int, count: int, form: str) -> "array[int]":
        """Numbers as they are stored: as objects those of libtorch_cpu would take ten times the room."""
        words = array(form)
        data = self._elf.source.read_at(at, count * words.itemsize)
        words.frombytes(data[: len(data) // words.itemsize * words.itemsize])
        if (self._elf.order == "<") != (sys.byteorder == "little"):
            words.byteswap()
        return words

    def _numbers(self, name: str, value: int) -> List[int]:
        """The numbers of the symbols of that name."""
        if self._table is None:
            return []
        bloom, shift, heads, first, chains = self._table
        bits = self._elf.bits
        word = bloom[value // bits % len(bloom)]
        if not (word >> value % bits) & (word >> (value >> shift) % bits) & 1:
            return []
        number = heads[value % len(heads)]
        found: List[int] = []
        while number >= first and number - first < len(chains):
            link = chains[number - first]
            if link | 1 == value | 1 and self._elf.defined_name(number) == name:
                found.append(number)
            if link & 1:
                break
            number += 1
        return found
