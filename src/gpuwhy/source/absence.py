"""Is an environment variable read at all? An answer that can be trusted when it is no, with everything that limits it.

Sound for Python files: a word that is in no file cannot be spelled there, except when it is put together at run time;
reads whose key is no constant are listed, and so is every use of the whole environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gpuwhy.source.answers import Absence, Occurrence, Scope, Spot
from gpuwhy.source.cache import Cache
from gpuwhy.source.environment import ENVIRONMENT_WORDS, Environment, Touch
from gpuwhy.source.exceptions import spot_of
from gpuwhy.source.resolving import Resolver
from gpuwhy.source.roots import FedRoot, Root, UnreadableError
from gpuwhy.source.scopes import module_of
from gpuwhy.source.tracing import FOLLOWED, read_package
from gpuwhy.source.trees import Tree, Trees, module_name, uncollected

_IMPORTS = re.compile(
    rb"^[ \t]*(?:from[ \t]+([.\w]{1,300})[ \t]+import[ \t]+(\([^)]{0,20000}\)|[^\n#;]{1,2000})|import[ \t]+([^\n#;]{1,2000}))",
    re.MULTILINE,
)
_MAX_LISTED = 60
_NAMED = 12
_TELLING = frozenset({"torch", "triton", "flashinfer", "sglang", "sgl_kernel", "vllm", "transformers", "deep_gemm"})
"""Packages that are named first: those that read variables of a GPU stack."""


def reads_of(roots: Mapping[str, Root], name: str, package: str, cache: Cache | None = None) -> Absence:
    """Where a variable is read in a package, or that it is not."""
    with uncollected():
        trees = Trees(roots, lambda other: other == package or other in FOLLOWED, cache)
        tree = trees.open(package)
        if tree is None:
            return Absence(
                name, False, 0, 0, (), (), (), (f"{package} is not among the packages that were given",), Scope(())
            )
        return _Search(trees, tree, name).answer()


class _Search:
    def __init__(self, trees: Trees, tree: Tree, name: str) -> None:
        self.trees = trees
        self.tree = tree
        self.name = name
        self.is_fed = isinstance(tree.root, FedRoot) and not tree.root.is_complete
        # which modules import one that is not here is not known: each counts as reachable
        self.reachable, self.dynamic_imports = (
            (frozenset(map(module_name, tree.known)), ()) if self.is_fed else reachable_modules(tree)
        )

    def answer(self) -> Absence:
        touches = [touch for touch in Environment(Resolver(self.trees)).catalogue() if self._is_here(touch)]
        named = [self._occurrence(touch) for touch in touches if self.name in touch.names]
        unkeyed = [touch for touch in touches if not touch.names and touch.key is not None and "." not in touch.kind and touch.is_read]  # fmt: skip
        dynamic = [self._occurrence(touch) for touch in unkeyed]
        whole = [self._occurrence(touch) for touch in touches if touch.kind == "whole"]
        others = list(self._other_occurrences({(each.spot.path, each.spot.line) for each in named}))
        reads = [
            each for each in named if each.kind.partition(".")[0] in ("read", "test", "pop", "setdefault", "declared")
        ]
        live = [each for each in reads if each.is_reachable]
        return Absence(
            name=self.name,
            is_absent=not live and self._is_decided(),
            is_decided=bool(live) or self._is_decided(),
            files=len(self.tree.known),
            reachable=len(self.reachable),
            occurrences=(*named, *others)[:_MAX_LISTED],
            dynamic_reads=tuple(sorted(dynamic, key=lambda each: not each.is_reachable))[:_MAX_LISTED],
            whole_environment=tuple(each for each in whole if each.is_reachable)[:_MAX_LISTED],
            caveats=tuple(self._caveats(reads, dynamic, whole)),
            scope=Scope(tuple(read_package(tree) for tree in self.trees), outside=tuple(sorted(self.trees.outside))),
        )

    def _is_decided(self) -> bool:
        """Whether all files that spell the name, and all that touch the environment, are here."""
        root = self.tree.root
        asked = [(self.name,), *((word,) for word in ENVIRONMENT_WORDS)]
        return not isinstance(root, FedRoot) or all(root.has_all_with(words) for words in asked)

    def _is_here(self, touch: Touch) -> bool:
        return module_of(touch.node).name.partition(".")[0] == self.tree.package

    def _occurrence(self, touch: Touch) -> Occurrence:
        is_reachable = module_of(touch.node).name in self.reachable
        return Occurrence(touch.kind.partition(".")[0], spot_of(touch.node), is_reachable, touch.via)

    def _other_occurrences(self, known: set[tuple[str, int]]) -> Iterator[Occurrence]:
        """The lines with the word that touch no environment: comments, texts, other names."""
        word = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(self.name)}(?![A-Za-z0-9_])")
        for path in self.tree.files_with(self.name):
            module = self.tree.module(path)
            for number, line in enumerate(module.lines if module else (), 1):
                if word.search(line) and not any((path, near) in known for near in range(number - 3, number + 1)):
                    function = module.facts.function_at(number).qualname if module else ""
                    spot = Spot(path, number, function, line.strip()[:200])
                    yield Occurrence("other", spot, module_name(path) in self.reachable)

    def _caveats(self, reads: list[Occurrence], dynamic: list[Occurrence], whole: list[Occurrence]) -> Iterator[str]:
        unreachable = [each for each in reads if not each.is_reachable]
        if unreachable:
            yield f"{len(unreachable)} reads stand in files that {self.tree.package} does not import"
        near = [each for each in dynamic if each.is_reachable]
        if near:
            yield f"{len(near)} reachable reads have a key that is not a constant; one of them could be it"
        if any(each.is_reachable for each in whole):
            yield "the whole environment is copied, iterated or handed on: child processes (nvcc, ninja) see every variable"
        if self.dynamic_imports:
            yield f"{len(self.dynamic_imports)} reachable modules import others by a name that is made at run time"
        if self.is_fed:
            yield "which of its modules import which was not worked out, for want of the files: each counts as reachable"
        if not self._is_decided():
            yield f"not every file that holds {self.name} or touches the environment was at hand"
        elif not self.tree.root.is_complete:
            yield "files that hold neither the name nor a word for the environment were not fetched"
        if self.tree.root.left_out:
            yield f"{len(self.tree.root.left_out)} files were not read"
        if self.tree.not_understood:
            yield f"{len(self.tree.not_understood)} files have lines that the parser refused"
        yield "only Python files were searched: compiled libraries and shipped C++ sources may call getenv"
        outside = sorted(self.trees.outside, key=lambda name: (name not in _TELLING, name))
        if outside:
            more = f" and {len(outside) - _NAMED} more" if len(outside) > _NAMED else ""
            yield f"packages that it calls were not searched: {', '.join(outside[:_NAMED])}{more}"


def reachable_modules(tree: Tree) -> tuple[frozenset[str], tuple[str, ...]]:
    """The modules that importing a package can lead to, by text: comments and strings can only add some. And those
    among them that import by a name made at run time."""
    known = {module_name(path): path for path in tree.paths}
    seen: set[str] = set()
    dynamic: list[str] = []
    pending = [tree.package]
    while pending:
        module = pending.pop()
        if module in seen or module not in known:
            continue
        seen.add(module)
        if "." in module:
            pending.append(module.rpartition(".")[0])
        try:
            text = tree.root.read(known[module])
        except UnreadableError:
            continue
        if b"import_module(" in text or b"__import__(" in text:
            dynamic.append(module)
        package = module if known[module].endswith("__init__.py") else module.rpartition(".")[0]
        pending += _imported(text, package)
    return frozenset(seen), tuple(dynamic)


def _imported(text: bytes, package: str) -> Iterator[str]:
    for source, names, plain in _IMPORTS.findall(text):
        if plain:
            yield from (each.strip().split(" ")[0] for each in plain.decode("utf-8", "replace").split(","))
            continue
        base = source.decode("utf-8", "replace")
        if base.startswith("."):
            level = len(base) - len(base.lstrip("."))
            parts = package.split(".")
            base = ".".join([*parts[: len(parts) - (level - 1)], *([base.lstrip(".")] if base.lstrip(".") else [])])
        yield base
        yield from (f"{base}.{name}" for name in re.findall(r"\w+", names.decode("utf-8", "replace")))
