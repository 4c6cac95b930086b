"""Which files of a package hold a word, in code, strings or comments alike: found in milliseconds, without parsing.

A word that is in no file cannot be spelled there, except by putting it together at run time. That makes "it is not read
anywhere" sound, and keeps every other search down to a few files.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator

_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(rb"[A-Za-z0-9_]")
_MAX_WORD = 120
"""Longer ones are data."""
_HEAD = 8


def holds(text: bytes, words: Iterable[str]) -> bool:
    """Whether every word stands in a text, each by itself."""
    return all(_stands_alone(text, word.encode("utf-8", "replace")) for word in words)


def _stands_alone(text: bytes, word: bytes) -> bool:
    at = text.find(word) if word else -1
    while at >= 0:
        end = at + len(word)
        if not _PART.match(text, at - 1 if at else at, at) and not _PART.match(text, end):
            return True
        at = text.find(word, end)
    return False


class WordIndex:
    """The sorted words as one text, and for each the numbers of its files.

    Reading it back is reading one file: nothing is unpacked until a word is looked up.
    """

    def __init__(self, words: bytes, ends: array[int], files: array[int]) -> None:
        self._words = words
        self._sorted: list[bytes] = []
        self._ends = ends
        self._files = files

    @classmethod
    def of(cls, texts: Iterable[bytes]) -> WordIndex:
        """The index of texts; the number of a file is its place among them."""
        found: dict[bytes, list[int]] = {}
        for number, text in enumerate(texts):
            for word in set(_WORD.findall(text)):
                if word in found:
                    found[word].append(number)
                else:
                    found[word] = [number]
        ordered = sorted(word for word in found if len(word) <= _MAX_WORD)
        ends, files = array("I"), array("I")
        for word in ordered:
            files.extend(found[word])
            ends.append(len(files))
        return cls(b"\n" + b"\n".join(ordered) + b"\n", ends, files)

    @property
    def size(self) -> int:
        """How many different words there are."""
        return len(self._ends)

    def files_with(self, word: str) -> tuple[int, ...]:
        """The numbers of the files with the word, ascending."""
        wanted = word.encode("utf-8", "replace")
        if not self._sorted:
            self._sorted = self._words.split(b"\n")[1:-1]
        number = bisect_left(self._sorted, wanted)
        if number == len(self._sorted) or self._sorted[number] != wanted or not word:
            return ()
        first = self._ends[number - 1] if number else 0
        return tuple(self._files[first : self._ends[number]])

    def like(self, pattern: str) -> Iterator[str]:
        """The words that match a regular expression, whole."""
        for found in re.finditer(rb"(?<=\n)(?:" + pattern.encode() + rb")(?=\n)", self._words):
            yield found.group().decode()

    def encoded(self) -> bytes:
        """For :meth:`decoded`, on a machine with the same byte order."""
        sizes = (len(self._words), len(self._ends), len(self._files))
        head = b"".join(size.to_bytes(_HEAD, sys.byteorder) for size in sizes)
        return head + self._words + self._ends.tobytes() + self._files.tobytes()

    @classmethod
    def decoded(cls, content: bytes) -> WordIndex:
        """Raises ValueError when the content is not that of an index."""
        sizes = [int.from_bytes(content[at : at + _HEAD], sys.byteorder) for at in (0, _HEAD, 2 * _HEAD)]
        ends, files = array("I"), array("I")
        if len(content) != 3 * _HEAD + sizes[0] + ends.itemsize * (sizes[1] + sizes[2]):
            raise ValueError("the word index is cut off")
        at = 3 * _HEAD
        words = content[at : at + sizes[0]]
        at += sizes[0]
        ends.frombytes(content[at : at + ends.itemsize * sizes[1]])
        files.frombytes(content[at + ends.itemsize * sizes[1] :])
        return cls(words, ends, files)
