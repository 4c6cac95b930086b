"""Ask a target about the binaries that a first judgement turns on, and make facts of the answers.

In three requests at most, over the connection that is open: the names in the environment's folders of packages, the
files themselves, what would come of loading them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from gpuwhy.diagnosis import Judgement, completed, judge
from gpuwhy.investigate import binaries_wanted
from gpuwhy.investigate.binaries_facts import (
    facts_of_file,
    facts_of_loading,
    facts_of_set,
    facts_of_torch,
    missing_file,
)
from gpuwhy.investigate.binaries_sent import SentBinary, sent_binaries
from gpuwhy.investigate.binaries_wanted import Wanted, wanted
from gpuwhy.investigate.loading import loading_of
from gpuwhy.investigate.record import Record
from gpuwhy.investigate.source import Questioner
from gpuwhy.knowledge import components
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.model.incident import Incident
from gpuwhy.model.loading import Loading
from gpuwhy.snapshot import Snapshot
from gpuwhy.targets import Ask, Reply

MOST_LOADED = 4
SECONDS = 30.0
"""For one round of requests: a folder of an engine's libraries on a slow disk."""


def binary_facts(
    incident: Incident, judgement: Judgement, snapshot: Snapshot, facts: Facts, source: Questioner, record: Record
) -> Facts:
    """What the binaries say that the judgement turns on; empty when it turns on none, or none can be read."""
    asked = wanted(incident, judgement)
    if asked is None:
        return Facts()
    return _Examination(asked, snapshot, facts, source, record).facts()


class _Examination:
    """One round of questions about binaries."""

    def __init__(self, asked: Wanted, snapshot: Snapshot, facts: Facts, source: Questioner, record: Record) -> None:
        self._wanted = asked
        self._snapshot = snapshot
        self._facts = facts
        self._source = source
        self._record = record
        found = (*asked.folders, *binaries_wanted.package_folders(snapshot))
        self._folders = tuple(dict.fromkeys(found))[: binaries_wanted.MOST_FOLDERS]
        self._status_of: dict[str, Reply] = {}
        self._program = binaries_wanted.program_of(facts)

    def facts(self) -> Facts:
        places = self._places()
        torch = self._torch()
        paths = [*self._wanted.files, *(path for found in places.values() for path in found)]
        if self._wanted.is_about_code and torch:
            paths.append(torch)
        files = self._inspected(dict.fromkeys(paths))
        found: list[Fact] = []
        for path in self._wanted.files:
            named = next((each for each in files if each.path == path), None)
            found += facts_of_file(named) if named else missing_file(path, self._status_of.get(path))
        for component in places:
            chosen = self._of_component(component, places[component], files)
            if self._wanted.is_about_code:
                found += facts_of_set(component, chosen, self._facts, is_named=self._is_named(chosen))
        found += [fact for each in files if each.path == torch for fact in facts_of_torch(each, self._facts)]
        for loading in self._explained(self._to_load(files, places, torch)):
            found += facts_of_loading(loading, self._facts, self._wanted.libraries)
        return Facts({fact.key: fact for fact in found})

    def _places(self) -> dict[str, tuple[str, ...]]:
        """Where each component's binaries lie."""
        names = [each for each in self._wanted.components if each != "torch"][:2]
        places = self._places_of_program(names)
        if not names or not self._folders:
            return places
        replies = self._ask([Ask("list", folder) for folder in self._folders])
        for component in names:
            if component in places:
                continue
            found = list(binaries_wanted.jit_folders(self._snapshot, component))
            for folder, reply in zip(self._folders, replies, strict=True):
                listed = reply.value.get("names") if isinstance(reply.value, dict) else None
                found += binaries_wanted.places_of(component, folder, map(str, listed or ()))
            if found:
                places[component] = tuple(found)
        return places

    def _places_of_program(self, names: list[str]) -> dict[str, tuple[str, ...]]:
        """Where the libraries of a program lie that is no Python's: beside it, or below the lib folder of its prefix."""
        if not self._program:
            return {}
        own = next((each for each in names if each in components.BUILDS_OF_LLAMA), None)
        return {own: binaries_wanted.places_of_program(self._program)} if own else {}

    def _torch(self) -> str:
        """torch's library of kernels: where the failing program's frames lie, else beside the file that tells its version."""
        if self._wanted.folders:
            return f"{self._wanted.folders[0]}/torch/lib/libtorch_cuda.so"
        fact = self._facts.get("torch")
        place = fact.evidence.place if isinstance(fact, Fact) else None
        folder, _, name = (place.path if place is not None else "").rpartition("/torch/")
        return f"{folder}/torch/lib/libtorch_cuda.so" if folder.startswith("/") and name == "version.py" else ""

    def _inspected(self, paths: Iterable[str]) -> list[SentBinary]:
        wanted_paths = list(paths)
        if not wanted_paths:
            return []
        files: dict[str, SentBinary] = {}
        for path, reply in zip(wanted_paths, self._ask([Ask("inspect", path) for path in wanted_paths]), strict=True):
            self._status_of[path] = reply
            found = list(sent_binaries(reply.value))
            files.update((each.path, each) for each in found)
            told = f"{len(found)} files" if len(found) != 1 else f"{found[0].place}: {' '.join(found[0].architectures)}"
            self._record.add("what does the binary hold", path, reply.status, reply.reason or told)
        return list(files.values())

    def _of_component(self, component: str, places: tuple[str, ...], files: list[SentBinary]) -> list[SentBinary]:
        """The component's files; those that the failure names, when it names any of them."""
        own = [
            each for each in files if any(each.path == place or each.path.startswith(f"{place}/") for place in places)
        ]
        named = [each for each in own if each.path in self._wanted.files or each.name in self._wanted.names]
        by_path = [each for each in files if each.path in self._wanted.files and _component(each.path) == component]
        return named or by_path or own

    def _is_named(self, files: list[SentBinary]) -> bool:
        return any(each.path in self._wanted.files or each.name in self._wanted.names for each in files)

    def _to_load(self, files: list[SentBinary], places: dict[str, tuple[str, ...]], torch: str) -> list[str]:
        """The files that the failure names, those of a component that need what was not found, torch for its libcuda."""
        paths = [path for path in self._wanted.files if self._wanted.is_about_loading and self._is_there(path)]
        if self._wanted.is_about_loading and self._wanted.libraries and self._program:
            paths.append(self._program)
        if self._wanted.is_about_loading:
            own = [each for component in places for each in self._of_component(component, places[component], files)]
            missed = set(self._wanted.libraries)
            paths += [each.path for each in own if missed & set(each.needed) or each.name in self._wanted.names]
        if self._wanted.is_about_libcuda and torch:
            paths.append(torch)
        return list(dict.fromkeys(paths))[:MOST_LOADED]

    def _is_there(self, path: str) -> bool:
        reply = self._status_of.get(path)
        return reply is not None and reply.status == "ok"

    def _explained(self, paths: list[str]) -> Iterator[Loading]:
        if not paths:
            return
        for path, reply in zip(paths, self._ask([Ask("loading", path) for path in paths]), strict=True):
            loading = None
            if isinstance(reply.value, dict):
                try:
                    loading = loading_of(reply.value)
                except (KeyError, TypeError, ValueError, AttributeError, msgspec.ValidationError):
                    loading = None
            self._record.add("what would come of loading it", path, reply.status, reply.reason or _told(loading))
            if loading is not None:
                yield loading

    def _ask(self, asks: list[Ask]) -> list[Reply]:
        return self._source.ask(asks, SECONDS)


def _component(path: str) -> str | None:
    return components.component_of_module(path)


def _told(loading: Loading | None) -> str:
    if loading is None:
        return "an answer that cannot be read"
    words = {True: "it loads", False: "it does not load", None: "open"}[loading.loads]
    missing = ", ".join(each.name for each in loading.missing[:4])
    symbols = ", ".join(each.readable for each in loading.broken_symbols[:3])
    return "; ".join(
        filter(None, (words, missing and f"not found: {missing}", symbols and f"defined by nobody: {symbols}"))
    )


def judged_again(
    incident: Incident, judgement: Judgement, facts: Facts, more: Facts, record: Record, whence: str = "of binaries"
) -> Judgement:
    """The judgement by ``facts``, of which ``more`` were asked for after a first one; the record tells what they changed."""
    with record.step(f"which causes fit, knowing the facts {whence}", f"{len(more)} facts {whence}") as step:
        again = judge(incident, completed(facts))
        step.found = _leader(again)
        step.changed = "" if _leader(again) == _leader(judgement) else f"before: {_leader(judgement)}"
    return again


def _leader(judgement: Judgement) -> str:
    first = next(iter(judgement.findings), None)
    return f"{first.certainty.value}: {first.cause} ({first.title})" if first is not None else "no cause fits"
