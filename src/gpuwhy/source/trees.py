"""The trees that a question is asked of: files by word, modules by name, each parsed once and only when needed."""

from __future__ import annotations

import gc
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

from gpuwhy.source import facts as facts_module
from gpuwhy.source.cache import Cache
from gpuwhy.source.facts import FileFacts, facts_of
from gpuwhy.source.parsing import decoded, parse
from gpuwhy.source.roots import FedRoot, Root, UnreadableError, content_hash
from gpuwhy.source.scopes import Module, Scope
from gpuwhy.source.spelling import calling, writing
from gpuwhy.source.words import WordIndex, holds

_TESTS = re.compile(
    r"(?:^|/)(?:tests?|testing|benchmarks?|examples?|docs)/|(?:^|/)test_[^/]{0,200}\.py$|(?:^|/)conftest\.py$"
)


_MAX_SCANS = 20
_MAX_HELD = 100 << 20
"""Bytes of a package that are searched without an index; the largest seen has 70 MB."""
_SPELLED = {"calls": calling, "writes": writing}
"""What facts of a file have to be spelled like."""


class Tree:
    """One package: its files, the word index over them, its modules."""

    def __init__(self, root: Root, cache: Cache) -> None:
        self.root = root
        self._cache = cache
        self._words: WordIndex | None = None
        self._scans = 0
        self._texts_held: tuple[bytes, ...] = ()
        self._facts: dict[str, FileFacts] = {}
        self._modules: dict[str, Module | None] = {}
        self._spelled: dict[tuple[str, bytes], bool] = {}
        self._load()

    def _load(self) -> None:
        self.files = self.root.files()
        self.paths = tuple(file.path for file in self.files)
        self._by_module = {module_name(path): path for path in self.paths}
        self._known = frozenset(self.paths)

    def refresh(self) -> None:
        """Take in files that were fed since."""
        self._load()
        self._words = None
        self._modules = {path: module for path, module in self._modules.items() if module is not None}

    @property
    def package(self) -> str:
        return self.root.package

    @property
    def words(self) -> WordIndex:
        if self._words is None:
            self._words = self._kept_index() or self._indexed()
        return self._words

    def _signature(self) -> str:
        signature = hashlib.blake2b(self.package.encode(), digest_size=16)
        for file in self.files:
            signature.update(f"{file.path}\0{file.size}\0{file.stamp}\n".encode("utf-8", "surrogateescape"))
        return signature.hexdigest()

    def _kept_index(self) -> WordIndex | None:
        kept = self._cache.get("words", self._signature())
        if kept is None:
            return None
        try:
            return WordIndex.decoded(kept)
        except ValueError:
            return None

    def _indexed(self) -> WordIndex:
        index = WordIndex.of(self._texts())
        self._texts_held = ()
        if isinstance(self.root, FedRoot):
            # of a part that grows with every round
            return index
        self._cache.put("words", self._signature(), index.encoded())
        return index

    def _held(self) -> Sequence[bytes]:
        """The texts, kept for the searches before there is an index."""
        if not self._texts_held:
            self._texts_held = tuple(self._texts())
        return self._texts_held

    def _texts(self) -> Iterator[bytes]:
        if self._texts_held:
            yield from self._texts_held
            return
        for path in self.paths:
            try:
                yield self.root.read(path)
            except UnreadableError:
                yield b""

    def files_with(self, *words: str, spelled: re.Pattern[bytes] | None = None) -> list[str]:
        """Paths of the files that hold every one of the words, tests and vendored code too; with ``spelled`` those where
        that is found as well."""
        return list(self.each_with(words, spelled))

    def each_with(self, words: Sequence[str], spelled: re.Pattern[bytes] | None = None) -> Iterator[str]:
        """As :meth:`files_with`, one by one: whoever has enough looks no further."""
        if isinstance(self.root, FedRoot):
            self.root.search(words, spelled)
        for path in self._with_words(words):
            if spelled is None or self._is_spelled(path, spelled):
                yield path

    def holding(self, words: Sequence[str], spelled: re.Pattern[bytes] | None, most: int) -> int:
        """In how many files the words stand, counted up to ``most``; also where not all of them are here."""
        there = self.root.search(words, spelled) if isinstance(self.root, FedRoot) else 0
        return min(most, max(there, sum(1 for _ in islice(self.each_with(words, spelled), most))))

    @property
    def known(self) -> tuple[str, ...]:
        """The paths that are installed, those of files that are not here too."""
        return tuple(sorted(self.root.listed)) if isinstance(self.root, FedRoot) else self.paths

    def _is_spelled(self, path: str, spelled: re.Pattern[bytes]) -> bool:
        key = (path, spelled.pattern)
        if key not in self._spelled:
            try:
                self._spelled[key] = spelled.search(self.root.read(path)) is not None
            except UnreadableError:
                self._spelled[key] = False
        return self._spelled[key]

    @property
    def _is_scannable(self) -> bool:
        return not isinstance(self.root, FedRoot) and sum(file.size for file in self.files) <= _MAX_HELD

    def _with_words(self, words: Iterable[str]) -> list[str]:
        if self._words is None and self._scans < _MAX_SCANS and self._is_scannable:
            # looking through the files costs a tenth of an index: a question with few searches needs none
            self._words = self._kept_index() if self._scans == 0 else None
            self._scans += 1
            if self._words is None:
                return [path for path, text in zip(self.paths, self._held(), strict=True) if holds(text, words)]
        found: set[int] | None = None
        for word in words:
            numbers = set(self.words.files_with(word))
            found = numbers if found is None else found & numbers
        return [self.paths[number] for number in sorted(found or ())]

    def path_of(self, module: str) -> str | None:
        """The file of a module by its dotted name."""
        path = self._by_module.get(module)
        if path is None and isinstance(self.root, FedRoot):
            stem = module.replace(".", "/")
            for candidate in (f"{stem}.py", f"{stem}/__init__.py"):
                self.root.knows(candidate)
        return path

    def text(self, path: str) -> str:
        """Raises UnreadableError."""
        return decoded(self.root.read(path))

    def facts(self, path: str) -> FileFacts:
        """The facts of a file, from the cache when its content was read before. Raises UnreadableError."""
        if path not in self._facts:
            source = self.root.read(path)
            key = content_hash(source)
            kept = self._cache.get(f"facts{facts_module.FORMAT}", key)
            found = facts_module.read(kept) if kept is not None else None
            if found is None:
                text = decoded(source)
                found = facts_of(parse(text), text.split("\n"))
                self._cache.put(f"facts{facts_module.FORMAT}", key, facts_module.encoded(found))
            self._facts[path] = found
        return self._facts[path]

    def module(self, path: str) -> Module | None:
        """The parsed module; None when it cannot be read."""
        if path not in self._modules:
            try:
                self._modules[path] = Module(module_name(path), path, self.text(path), self.facts(path))
            except (UnreadableError, RecursionError):
                self._modules[path] = None
        return self._modules[path]

    @property
    def examined(self) -> tuple[str, ...]:
        """Files whose facts were read so far."""
        return tuple(self._facts)

    @property
    def not_understood(self) -> dict[str, FileFacts]:
        """Of the examined files, those with lines that the parser refused."""
        return {path: facts for path, facts in self._facts.items() if facts.gaps}

    @property
    def parsed(self) -> int:
        """How many modules were parsed for their code."""
        return sum(module is not None for module in self._modules.values())


class Trees:
    """The packages that are searched, opened when something leads there. Others are *external*: a call of theirs is a
    fact of the host."""

    def __init__(self, roots: Mapping[str, Root], follow: Callable[[str], bool], cache: Cache | None = None) -> None:
        self._roots = roots
        self._follow = follow
        self._cache = cache or Cache(None)
        self.opened: dict[str, Tree] = {}
        self.outside: dict[str, None] = {}
        """Packages that are there, or were named, and were not followed."""

    def __iter__(self) -> Iterator[Tree]:
        return iter(list(self.opened.values()))

    def open(self, package: str) -> Tree | None:
        """The tree of a package, asked for by name; None when it is not among the roots."""
        if package not in self.opened:
            root = self._roots.get(package)
            if root is None:
                return None
            self.opened[package] = Tree(root, self._cache)
        return self.opened[package]

    def tree_of(self, module: str) -> Tree | None:
        """The tree that a dotted name leads to, opened now if it is to be followed."""
        package = module.partition(".")[0]
        if package in self.opened:
            return self.opened[package]
        if package in self._roots and self._follow(package):
            return self.open(package)
        if package and package not in sys.stdlib_module_names:
            self.outside[package] = None
        return None

    def module(self, name: str) -> Module | None:
        """A module by its dotted name; None when it is not in the trees."""
        tree = self.tree_of(name)
        path = tree.path_of(name) if tree else None
        return tree.module(path) if tree and path else None

    def with_words(
        self, *words: str, tests: bool = False, spelled: re.Pattern[bytes] | None = None
    ) -> Iterator[tuple[Tree, str]]:
        """The files of the opened trees with every word; without ``tests`` those of tests and examples are left out."""
        for tree in self:
            for path in tree.each_with(words, spelled):
                if tests or not is_test(path):
                    yield tree, path

    def holding(self, *words: str, spelled: re.Pattern[bytes], most: int) -> int:
        """In how many files of the opened trees the words stand, counted up to ``most``."""
        return min(most, sum(tree.holding(words, spelled, most) for tree in self))

    def units(self, *words: str, tests: bool = False, **having: str) -> Iterator[Scope]:
        """The functions (and codes of modules) with the words in their file and the names in their facts; see
        :meth:`Module.units`. Only those are parsed."""
        spelled = next((_SPELLED[field](name) for field, name in having.items() if field in _SPELLED), None)
        for tree, path in self.with_words(*words, tests=tests, spelled=spelled):
            facts = self._facts(tree, path)
            if facts and any(all(value in getattr(unit, field) for field, value in having.items()) for unit in facts.functions):  # fmt: skip
                module = tree.module(path)
                if module:
                    yield from module.units(**having)

    def count(self, *words: str, **having: str) -> int:
        """How many functions have these facts, without parsing any."""
        return sum(
            all(value in getattr(unit, field) for field, value in having.items())
            for tree, path in self.with_words(*words)
            for facts in [self._facts(tree, path)]
            if facts
            for unit in facts.functions
        )

    def facts_with(
        self, *words: str, tests: bool = False, spelled: re.Pattern[bytes] | None = None
    ) -> Iterator[tuple[Tree, str, FileFacts]]:
        """The facts of the files with every word; with ``spelled`` (see :mod:`gpuwhy.source.spelling`) of those where
        that is found too."""
        for tree, path in self.with_words(*words, tests=tests, spelled=spelled):
            facts = self._facts(tree, path)
            if facts:
                yield tree, path, facts

    @staticmethod
    def _facts(tree: Tree, path: str) -> FileFacts | None:
        try:
            return tree.facts(path)
        except (UnreadableError, RecursionError):
            return None


def module_name(path: str) -> str:
    """``flashinfer.jit.core`` of ``flashinfer/jit/core.py``."""
    stem = path[: -len(".py")] if path.endswith(".py") else path
    parts = stem.split("/")
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def is_test(path: str) -> bool:
    return _TESTS.search(path) is not None


def unique(items: Iterable[Scope]) -> list[Scope]:
    return list({id(item): item for item in items}.values())


@contextmanager
def uncollected(is_last: bool = False) -> Iterator[None]:
    """Without the cycle collector: trees are large, full of cycles and kept; collecting took most of the time.

    ``is_last``: nothing but the output follows, so that what was made need not be taken apart before the process ends.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_last:
            gc.freeze()
        if was_on:
            gc.enable()
