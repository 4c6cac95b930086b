"""Which line of a log was written where: the texts of packages, searched all at once.

    WARNING 11-30 10:04:09 [topk_topp_sampler.py:156] FlashInfer top-p/top-k sampling unavailable: ...
    Failed to get device capability: SM 12.x requires CUDA >= 12.9.

The second line names nobody; it can only have come from ``flashinfer/compilation_context.py:108``, with
``SM 12.x requires CUDA >= 12.9`` as its value.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from gpuwhy.model.event import LogLine
from gpuwhy.source.answers import Spot
from gpuwhy.source.cache import Cache
from gpuwhy.source.facts import FileFacts
from gpuwhy.source.messages import ANY, Template
from gpuwhy.source.roots import Root, UnreadableError
from gpuwhy.source.texts_scanning import Scanner, Text
from gpuwhy.source.trees import Tree, uncollected

FORMAT = 2
"""Changes with the meaning of what is kept of a package."""
_MIN_ANCHOR = 5
_ENOUGH_WHOLE = 6
_ENOUGH_HELD = 16
_SHARE = 0.25
"""A text of which less is literal could be any line."""
_MAX_LINE = 2000
_MAX_ORIGINS = 6
_MAX_CANDIDATES = 400
STATED = re.compile(r"(?P<path>[\w./-]{1,200}\.py):(?P<line>\d{1,6})(?=\]|\)|: \w{1,60}Warning:)")
_FRAME = re.compile(r"\s{1,40}File \"[^\"]{1,400}\", line \d{1,7}")
_RAISED = re.compile(r"(?:[A-Za-z_]\w{0,80}\.){0,8}(?P<type>[A-Za-z_]\w{0,80}): ")


class FileTexts(msgspec.Struct, frozen=True, array_like=True):
    """The texts of one file, in the order of its lines."""

    path: str
    texts: tuple[Text, ...]


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    format: int
    files: tuple[FileTexts, ...]


class PackageTexts:
    """The texts of one package. Built from its files in a second or two, read back from the cache in a tenth."""

    def __init__(self, root: Root, cache: Cache | None = None) -> None:
        self.root = root
        self._cache = cache or Cache(None)
        self._tree: Tree | None = None

    @cached_property
    def files(self) -> tuple[FileTexts, ...]:
        key = _signature(self.root)
        kept = self._cache.get("texts", key)
        if kept is not None:
            try:
                with uncollected():
                    read = msgspec.msgpack.decode(kept, type=_Kept)
            except msgspec.DecodeError:
                read = None
            if read is not None and read.format == FORMAT:
                return read.files
        with uncollected():
            files = tuple(self._scanned())
        self._cache.put("texts", key, msgspec.msgpack.encode(_Kept(FORMAT, files)))
        return files

    def _scanned(self) -> Iterator[FileTexts]:
        scanner = Scanner()
        for file in self.root.files():
            try:
                texts = scanner.texts_of(self.root.read(file.path))
            except UnreadableError:
                continue
            if texts:
                yield FileTexts(file.path, texts)

    def named(self, path: str) -> Iterator[FileTexts]:
        """The files that a log calls ``topk_topp_sampler.py``, ``v1/engine/core.py`` or by a whole path."""
        for file in self.files:
            if file.path == path or file.path.endswith("/" + path) or path.endswith("/" + file.path):
                yield file

    def facts(self, path: str) -> FileFacts | None:
        """What the parsed file says of itself; None when it cannot be read."""
        if self._tree is None:
            self._tree = Tree(self.root, self._cache)
        try:
            return self._tree.facts(path)
        except (UnreadableError, RecursionError):
            return None


class Origin(msgspec.Struct, frozen=True):
    """A place that can have written a line.

    ``kind`` and ``name`` as of :class:`Text`. ``values`` are what stands in the holes of ``pattern``. ``is_whole``: the
    line is this text and nothing else. ``handler`` is the line of the ``except`` around, 0 when there is none;
    ``is_swallowed`` when that handler raises nothing.
    """

    package: str
    version: str
    spot: Spot
    kind: str
    name: str
    pattern: Template
    values: tuple[str, ...] = ()
    is_whole: bool = False
    handler: int = 0
    is_swallowed: bool = False


class Written(msgspec.Struct, frozen=True):
    """A line of a log and the places that can have written it, all equally well. ``more`` are not listed.

    ``stated`` is the place that the line itself names: ``topk_topp_sampler.py:156``.
    """

    number: int
    text: str
    level: str
    origins: tuple[Origin, ...] = ()
    more: int = 0
    stated: str = ""


class _Candidate(msgspec.Struct, frozen=True):
    owner: PackageTexts
    path: str
    text: Text
    pattern: Template
    rank: tuple[int, ...] = ()
    values: tuple[str, ...] = ()
    is_whole: bool = False


_ByAnchor = dict[str, list[tuple[PackageTexts, str, Text, Template]]]


def _by_anchor(packages: Iterable[PackageTexts]) -> _ByAnchor:
    """The patterns under their longest literal part: no line is of a pattern without that."""
    found: _ByAnchor = {}
    for owner in packages:
        for file in owner.files:
            for text in file.texts:
                for pattern in text.choices:
                    anchor = max((piece.strip() for piece in pattern.pieces), key=len)
                    if len(anchor) >= _MIN_ANCHOR:
                        found.setdefault(anchor, []).append((owner, file.path, text, pattern))
    return found


class Catalogue:
    """The texts of several packages; every literal part of them is looked for in one pass over a log."""

    def __init__(self, packages: Sequence[PackageTexts]) -> None:
        import ahocorasick_rs

        self.packages = tuple(packages)
        with uncollected():
            self._by_anchor = _by_anchor(self.packages)
        self._anchors = list(self._by_anchor)
        self._search = ahocorasick_rs.AhoCorasick(
            self._anchors, implementation=ahocorasick_rs.Implementation.ContiguousNFA
        )

    @property
    def size(self) -> int:
        """How many patterns there are."""
        return sum(map(len, self._by_anchor.values()))

    def read(self, lines: Iterable[LogLine]) -> Iterator[Written]:
        """Each line with where it came from. The same text is looked up once."""
        known: dict[tuple[str, str, str], Written] = {}
        is_quoted = False
        for line in lines:
            # frames of a traceback, and the source lines below them, are written by nobody
            is_quoted = _FRAME.match(line.text) is not None or (is_quoted and line.text[:1].isspace())
            if is_quoted:
                yield Written(line.number, line.text, line.level)
                continue
            stated = stated_place(line)
            key = (line.text[:_MAX_LINE], line.level, stated)
            if key not in known:
                known[key] = self._written(line, stated)
            yield msgspec.structs.replace(known[key], number=line.number)

    def _written(self, line: LogLine, stated: str) -> Written:
        text = line.text[:_MAX_LINE].rstrip()
        candidates = [*self._candidates(text, line.level, stated), *self._at(stated)]
        if not candidates:
            return Written(line.number, text, line.level, stated=stated)
        best = max(candidate.rank for candidate in candidates)
        chosen = {(each.owner.root.package, each.path, each.text.line): each for each in candidates if each.rank == best}  # fmt: skip
        origins = [_origin(each) for each in list(chosen.values())[:_MAX_ORIGINS]]
        sure = tuple(origin for origin in origins if origin is not None)
        return Written(line.number, text, line.level, sure, max(0, len(chosen) - _MAX_ORIGINS), stated)

    def _candidates(self, text: str, level: str, stated: str) -> Iterator[_Candidate]:
        path, _, number = stated.rpartition(":")
        raised = _RAISED.match(text)
        bare = text[raised.end() :] if raised else text
        found = {self._anchors[index] for index, _, _ in self._search.find_matches_as_indexes(text, overlapping=True)}
        for anchor in found:
            for owner, where, written, pattern in self._by_anchor[anchor][:_MAX_CANDIDATES]:
                at_stated = bool(path) and (where == path or where.endswith("/" + path) or path.endswith("/" + where))
                if path and (not at_stated or written.kind == "raise"):
                    continue
                is_of_type = raised is not None and written.kind == "raise" and raised["type"] == written.name
                said = bare if written.kind == "raise" or written.name == "warnings.warn" else text
                values, is_whole = _match(pattern, said)
                if values is None or not _is_telling(pattern, said, is_whole, at_stated):
                    continue
                rank = (
                    at_stated and written.line <= int(number) <= written.last,
                    is_whole,
                    is_of_type,
                    pattern.literal_size,
                    _agrees(written, level),
                )
                yield _Candidate(owner, where, written, pattern, tuple(map(int, rank)), values, is_whole)

    def _at(self, stated: str) -> Iterator[_Candidate]:
        """The texts at a place that the line names, whatever they say: a text can be a value as a whole."""
        path, _, number = stated.rpartition(":")
        for owner in self.packages if path else ():
            for file in owner.named(path):
                for text in file.texts:
                    if text.kind == "log" and text.line <= int(number) <= text.last and not text.choices:
                        yield _Candidate(owner, file.path, text, ANY, (1, 0, 0, 0, 0))


def stated_place(line: LogLine) -> str:
    """``topk_topp_sampler.py:156``, where the line names the place that wrote it; else empty."""
    head = line.raw[: len(line.raw) - len(line.text)] if line.raw.endswith(line.text) else line.raw[:300]
    found = STATED.search(head[-300:]) or STATED.match(line.text[:260])
    return f"{found['path']}:{found['line']}" if found else ""


def _match(pattern: Template, text: str) -> tuple[tuple[str, ...] | None, bool]:
    values = pattern.values_in(text)
    if values is None:
        return None, False
    first, last = pattern.pieces[0], pattern.pieces[-1]
    is_whole = text.startswith(first) and (text.endswith(last.rstrip()) if len(pattern.pieces) > 1 else text.strip() == first.strip())  # fmt: skip
    return values, is_whole


def _is_telling(pattern: Template, text: str, is_whole: bool, at_stated: bool) -> bool:
    size = pattern.literal_size
    if at_stated:
        return True
    if not is_whole:
        return size >= _ENOUGH_HELD
    return size >= _ENOUGH_HELD or (size >= _ENOUGH_WHOLE and size >= _SHARE * len(text))


def _agrees(text: Text, level: str) -> bool:
    if text.kind != "log" or not level:
        return False
    return {"warnings.warn": "warning"}.get(text.name, text.name) == level


def _origin(candidate: _Candidate) -> Origin | None:
    """With what only the parsed file tells; None when it tells that this is no code (an example in a docstring)."""
    text, path = candidate.text, candidate.path
    facts = candidate.owner.facts(path)
    function, handler, is_swallowed = "", 0, False
    if facts is not None:
        unit = facts.function_at(text.line)
        said = next((said for said in unit.says if said.line == text.line and said.kind == text.kind), None)
        function = unit.qualname
        if said is not None:
            handler = said.handler
            raises = any(each.kind == "raise" and each.handler == handler for each in unit.says)
            is_swallowed = handler > 0 and said.kind == "log" and unit.swallows > 0 and not raises
        elif text.kind == "raise" and text.name not in ("", "AssertionError", "SystemExit") and not facts.gaps:
            return None
    return Origin(
        package=candidate.owner.root.package,
        version=candidate.owner.root.version,
        spot=Spot(path, text.line, function),
        kind=text.kind,
        name=text.name,
        pattern=candidate.pattern,
        values=candidate.values,
        is_whole=candidate.is_whole,
        handler=handler,
        is_swallowed=is_swallowed,
    )


def _signature(root: Root) -> str:
    signature = hashlib.blake2b(f"{FORMAT} {root.package}".encode(), digest_size=16)
    for file in root.files():
        signature.update(f"{file.path}\0{file.size}\0{file.stamp}\n".encode("utf-8", "surrogateescape"))
    return signature.hexdigest()
