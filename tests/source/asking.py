"""Traces of real releases and of small packages written by a test."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.source.packages import kept_in, release

from gpuwhy.source.answers import Step, Swallow, Switch, Trace
from gpuwhy.source.cache import Cache
from gpuwhy.source.roots import FedRoot, Root, packages_in
from gpuwhy.source.tracing import Question, trace
from gpuwhy.source.trees import Trees


def cache() -> Cache:
    return Cache(kept_in() / "cache")


def roots(*releases: str) -> dict[str, Root]:
    """The packages of releases such as ``flashinfer-python==0.6.18.post1``."""
    found: dict[str, Root] = {}
    for each in releases:
        name, _, version = each.partition("==")
        found |= packages_in(release(name, version))
    return found


@functools.cache
def traced(question: Question, *releases: str) -> Trace:
    return trace(roots(*releases), question, cache())


def package(files: Mapping[str, str], name: str = "pkg") -> dict[str, Root]:
    """A package made of texts by path below it."""
    root = FedRoot(name, "1.0", is_complete=True)
    root.feed({f"{name}/{path}": textwrap.dedent(text).encode() for path, text in files.items()})
    root.feed({f"{name}/__init__.py": textwrap.dedent(files.get("__init__.py", "")).encode()})
    return {name: root}


def opened(files: Mapping[str, str]) -> Trees:
    trees = Trees(package(files), lambda name: name == "pkg")
    assert trees.open("pkg")
    return trees


def traced_in(files: Mapping[str, str], question: Question) -> Trace:
    return trace(package(files), question)


def switch(answer: Trace, kind: str, name: str) -> Switch:
    found = [each for each in answer.switches if each.kind == kind and each.name == name]
    assert found, f"no {kind} {name} among {[(each.kind, each.name) for each in answer.switches]}"
    return found[0]


def names(answer: Trace, kind: str) -> set[str]:
    return {each.name for each in answer.switches if each.kind == kind}


def swallow_at(answer: Trace, path: str, line: int) -> Swallow:
    found = [each for each in answer.swallowed if (each.spot.path, each.spot.line) == (path, line)]
    assert found, [(each.spot.path, each.spot.line) for each in answer.swallowed]
    return found[0]


def all_steps(answer: Trace) -> Iterator[Step]:
    pending = list(answer.origin)
    while pending:
        step = pending.pop()
        yield step
        pending.extend(step.steps)


def line_of(folder: Path, text: str) -> int:
    """The first line of a file that holds a text."""
    return next(number for number, line in enumerate(folder.read_text().split("\n"), 1) if text in line)
