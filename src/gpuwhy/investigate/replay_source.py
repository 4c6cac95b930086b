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

ROUNDS = 16
"""Of requests. A module is wanted when a name of it is, so they come one by one; most were fetched before."""


class InstalledSource:
    """Modules of the packages that a traceback stands in. One that has not come yet is not found: replay,
    :meth:`fetch`, and replay again while something came."""

    def __init__(
        self, frames: Sequence[Frame], source: Questioner, seconds: float, versions: Mapping[str, str] | None = None
    ) -> None:
        self._fetching = Fetching(source, seconds)
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

    def path_of(self, frame: Frame) -> str:
        """The file of a frame as below the folder of its package; empty where that is none of these."""
        for name, package in self.packages.items():
            below = frame.path.removeprefix(f"{package.folder}/")
            if below != frame.path and below.removesuffix(".py").partition("/")[0] == name:
                return below
        return ""
