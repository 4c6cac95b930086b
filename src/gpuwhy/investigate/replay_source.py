"""The installed source that a replay reads: fetched module by module, as the replayed code comes to need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwhy.investigate.installed_files import Fetching, InstalledPackage, packages_of, want_frames
from gpuwhy.investigate.mending import STAND_IN
from gpuwhy.investigate.source import Questioner
from gpuwhy.model.event import Frame
from gpuwhy.source import Root, Trees
from gpuwhy.source.replay import ModuleSource, TreesSource
from gpuwhy.source.tracing import FOLLOWED
from gpuwhy.targets import Query, Reply

MOST_SPELLED = 60
"""Files with a word that are read; where more have it, whether one of them writes is not looked for."""
ROUNDS = 16
"""Of requests. A module is wanted when a name of it is, so they come one by one; most were fetched before."""


class InstalledSource:
    """Modules of the packages that a traceback stands in. One that has not come yet is not found: replay,
    :meth:`fetch`, and replay again while something came."""

    def __init__(
        self, frames: Sequence[Frame], source: Questioner, seconds: float, versions: Mapping[str, str] | None = None
    ) -> None:
        self._fetching = Fetching(source, seconds)
        self._programs = {path for path in (frame.path for frame in frames) if path.endswith("/__main__.py")}
        self.packages: Mapping[str, InstalledPackage] = packages_of(frames, FOLLOWED, versions or {}, self._fetching)
        want_frames(self.packages, frames)
        self._fetching.fetch(self.packages)
        roots: Mapping[str, Root] = dict(self.packages)
        trees = Trees(roots, lambda package: package in roots)
        self._modules = TreesSource(trees, {name: each.folder for name, each in self.packages.items()}, STAND_IN)

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders of the environment that hold packages, as far as the traceback shows them."""
        folders = dict.fromkeys(each.folder for each in self.packages.values() if each.is_there)
        return tuple(folder for folder in folders if folder.endswith("-packages"))

    @property
    def missed(self) -> tuple[str, ...]:
        """Modules that the replay would need and that have not come."""
        return self._modules.missed

    @property
    def refused(self) -> Mapping[str, str]:
        """Files that cannot be replayed, each with the reason."""
        return self._modules.refused

    def find(self, name: str) -> ModuleSource | None:
        return self._modules.find(name)

    def extend(self, seconds: float) -> None:
        """Allow so many more for fetching. Whoever goes on without any gets OutOfTimeError."""
        self._fetching.extend(seconds)

    def fetch(self) -> bool:
        """Bring what was missed. False when nothing new came."""
        if self._fetching.rounds >= ROUNDS or not self._modules.missed:
            return False
        has_come = self._fetching.fetch(self.packages)
        self._modules.refresh()
        return has_come

    def spelling(self, words: Sequence[str]) -> tuple[Mapping[str, str], int] | None:
        """The files of all its packages that hold one of the words, by path, and how many were searched; None when not all
        of them could be searched and read."""
        present = {name: each for name, each in self.packages.items() if each.folder.endswith("-packages")}
        queries = tuple(Query(words=(word,), most=MOST_SPELLED) for word in words)
        found = self._fetching.search([f"{each.folder}/{name}" for name, each in present.items()], queries)
        wanted: dict[str, InstalledPackage] = {}
        searched = 0
        for reply, (_, package) in zip(found, present.items(), strict=False):
            if reply.status == "absent" and not package.is_there and "not in this snapshot" not in reply.reason:
                continue
            answers = _whole_search(reply)
            if answers is None:
                return None
            searched += answers[1]
            wanted |= dict.fromkeys((path for path in answers[0] if self._is_part(path)), package)
        for path, package in wanted.items():
            package.knows(path)
        self._fetching.fetch(self.packages)
        if len(found) < len(present) or any(path not in package.paths for path, package in wanted.items()):
            return None
        return {path: package.read(path).decode("utf-8", "replace") for path, package in wanted.items()}, searched

    def _is_part(self, path: str) -> bool:
        """Whether a file can be part of the failing process: nothing imports a ``__main__``, and a traceback shows whose runs."""
        return not path.endswith("/__main__.py") or any(each.endswith(f"/{path}") for each in self._programs)

    def path_of(self, frame: Frame) -> str:
        """The file of a frame as below the folder of its package; empty where that is none of these."""
        for name, package in self.packages.items():
            below = frame.path.removeprefix(f"{package.folder}/")
            if below != frame.path and below.removesuffix(".py").partition("/")[0] == name:
                return below
        return ""


def _whole_search(reply: Reply) -> tuple[list[str], int] | None:
    """The files of a search that missed nothing, and how many were searched."""
    value = reply.value if reply.status == "ok" and isinstance(reply.value, dict) else {}
    answers = value.get("found")
    if value.get("is_complete") is not True or value.get("left_out") or not isinstance(answers, list):
        return None
    paths: list[str] = []
    for each in answers:
        listed = each.get("paths") if isinstance(each, dict) else None
        if not isinstance(listed, list) or each.get("count") != len(listed):
            return None
        paths += [path for path in listed if isinstance(path, str)]
    files = value.get("files")
    return (paths, files) if isinstance(files, int) else None
