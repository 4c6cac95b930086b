"""Which Python files of a package hold words: so that "it is nowhere else" can be said of a whole package without sending it.

    {"ask": "search", "path": "/opt/venv/lib/python3.12/site-packages/flashinfer",
     "queries": [{"words": []}, {"words": ["TARGET_CUDA_ARCHS"], "pattern": "..."}]}

A query without words lists every Python file. ``pattern`` is a regular expression over the bytes of a file; it is tried on
files that hold all the words. Files are read one after the other and nothing is kept.
"""

import os
import re
import time
from typing import Any, Dict, Iterator, List, Optional, Pattern, Set, Tuple

from gpuwhy.collector.probing import Absent, Failed, NoValue
from gpuwhy.collector.reading import read_bytes

MOST_FILES = 30000

MOST_BYTES = 4 << 20
"""Of one file; what is larger is data, and named."""

MOST_FOUND = 80
"""Paths of one answer: where more files have it they are only counted. A query may say otherwise (``most``); a listing has
all."""

MOST_QUERIES = 400

SECONDS = 20.0

Query = Tuple[List[bytes], Optional["Pattern[bytes]"], int]

_MANY = 150
"""Different words from which on taking a file apart into all its words is faster than looking for each."""

_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")

_PART_OF_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def search(path: str, request: Dict[str, Any]) -> Dict[str, Any]:
    """For each query the files that answer it, by paths below the folder of ``path``, with how many there are.

    ``stamps`` gives size and time of change of each file that is named. ``is_complete`` is false when the time or the
    number of files did not suffice; ``left_out`` names files that were not read, each with its reason.
    """
    queries = [_query(each) for each in _listed(request.get("queries"))[:MOST_QUERIES]]
    top = os.path.dirname(path)
    found: List[List[str]] = [[] for _ in queries]
    left_out: List[str] = []
    stamps: Dict[str, List[float]] = {}
    until = time.monotonic() + SECONDS
    files, is_complete = 0, True
    by_word: Dict[bytes, List[int]] = {}
    for number, (words, _, _) in enumerate(queries):
        if words:
            by_word.setdefault(max(words, key=len), []).append(number)
    listings = [number for number, (words, _, _) in enumerate(queries) if not words]
    wanted = {word for words, _, _ in queries for word in words}
    for file in _python_files(path, left_out):
        if files >= MOST_FILES or time.monotonic() > until:
            is_complete = False
            break
        name = os.path.relpath(file, top)
        files += 1
        text = _text(file, name, left_out) if wanted else b""
        there = _words_in(text, wanted)
        for number in listings:
            found[number].append(name)
        for number in [number for word in there for number in by_word.get(word, ())]:
            if _holds(text, there, queries[number]):
                found[number].append(name)
                if name not in stamps:
                    stamps[name] = _stamp(file)
    if not files:
        raise Absent("%s: no Python file" % path)
    answers: List[Dict[str, Any]] = [
        {"count": len(each), "paths": sorted(each) if len(each) <= query[2] or not query[0] else []}
        for each, query in zip(found, queries)
    ]
    return {
        "path": path,
        "files": files,
        "is_complete": is_complete,
        "left_out": left_out[:50],
        "found": answers,
        "stamps": {name: stamps[name] for each in answers for name in each["paths"] if name in stamps},
    }


def _listed(value: Any) -> List[Any]:
    if not isinstance(value, (list, tuple)):
        raise Failed("a search needs queries")
    return list(value)


def _query(asked: Any) -> Query:
    if not isinstance(asked, dict):
        raise Failed("a query is a mapping")
    words = [str(word).encode("utf-8", "replace") for word in _listed(asked.get("words", []))]
    pattern, most = asked.get("pattern"), asked.get("most")
    try:
        compiled = re.compile(str(pattern).encode("utf-8", "replace")) if pattern else None
        return words, compiled, most if isinstance(most, int) else MOST_FOUND
    except re.error as error:
        raise Failed("the pattern %r is none: %s" % (pattern, error))


def _words_in(text: bytes, wanted: Set[bytes]) -> Set[bytes]:
    """Which of the words stand in the text, each by itself."""
    if len(wanted) > _MANY:
        return wanted.intersection(_WORD.findall(text))
    return {word for word in wanted if word in text and _stands_alone(text, word)}


def _stands_alone(text: bytes, word: bytes) -> bool:
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if (at == 0 or text[at - 1] not in _PART_OF_WORD) and (end == len(text) or text[end] not in _PART_OF_WORD):
            return True
        at = text.find(word, end)
    return False


def _holds(text: bytes, there: Set[bytes], query: Query) -> bool:
    words, pattern, _ = query
    return all(word in there for word in words) and (pattern is None or pattern.search(text) is not None)


def _python_files(path: str, left_out: List[str]) -> Iterator[str]:
    """Links that lead out of the folder, and linked folders, are not followed: they may be a circle."""
    if path.endswith(".py") and os.path.isfile(path):
        yield path
        return
    inside = os.path.realpath(path) + os.sep
    for folder, folders, names in os.walk(path, onerror=lambda error: left_out.append(str(error))):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if not name.endswith(".py"):
                continue
            file = os.path.join(folder, name)
            if os.path.islink(file) and not os.path.realpath(file).startswith(inside):
                left_out.append("%s: a link that is not followed" % os.path.relpath(file, os.path.dirname(path)))
            else:
                yield file


def _text(file: str, name: str, left_out: List[str]) -> bytes:
    try:
        text = read_bytes(file, MOST_BYTES + 1)
    except NoValue as why:
        left_out.append("%s: %s" % (name, why.reason))
        return b""
    if len(text) > MOST_BYTES:
        left_out.append("%s: more than %d MB" % (name, MOST_BYTES >> 20))
        return b""
    return text


def _stamp(file: str) -> List[float]:
    try:
        described = os.stat(file)
    except OSError:
        return []
    return [described.st_size, round(described.st_mtime, 3)]
