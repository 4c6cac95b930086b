"""A package of a target that is traced: a part of it is here, the rest is searched for words where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from gpuwhy.source import FedRoot
from gpuwhy.source.environment import ENVIRONMENT_WORDS
from gpuwhy.source.roots import SourceFile, content_hash
from gpuwhy.source.trees import is_test
from gpuwhy.targets import Query, Reply

MOST_HOLDING = 60
"""Files with one word that are fetched; of a word in more of them the others are told as not looked at."""
_MOST_TOUCHING = 500
"""The same for files that touch the environment: of those none may be missed."""
LISTING = Query()
"""Asks for the paths of all Python files of a package."""


class Stamp(msgspec.Struct, frozen=True):
    """By what a file on a target is known to be unchanged: its size, and when it was changed, in seconds."""

    size: int
    modified: float


class RemotePackage(FedRoot):
    """``place`` is how people know where it stands. Nothing of it is asked for before something leads into it."""

    def __init__(self, package: str, folder: str, version: str, target: str, is_module: bool = False) -> None:
        super().__init__(package, version)
        self.folder = folder
        self.place = f"{target}:{folder}"
        self.is_module = is_module
        """One file, not a folder of them."""
        self.is_opened = False
        self.is_searched_whole = True
        self.stamps: dict[str, Stamp] = {}
        self.limits: dict[str, None] = {}
        self._answers: dict[Query, tuple[int, tuple[str, ...]]] = {}
        self._questions: dict[Query, None] = {}
        self._absent: set[str] = set()
        self._is_listed = False
        self._is_listing_refused = False
        self._files: tuple[SourceFile, ...] | None = None

    def files(self) -> tuple[SourceFile, ...]:
        self.is_opened = True
        if self._files is None:
            self._files = tuple(SourceFile(path, len(text), content_hash(text)) for path, text in sorted(self._texts.items()))  # fmt: skip
        return self._files

    def feed_file(self, path: str, text: bytes) -> None:
        self._texts[path] = text
        self._files = None

    def knows(self, path: str) -> bool:
        """Whether it is here. A module that may be installed is wanted from then on."""
        if path in self._texts:
            return True
        if path not in self._absent and (not self._is_listed or path in self._listing):
            self._wanted[path] = None
        return False

    @property
    def wanted(self) -> tuple[str, ...]:
        return tuple(
            path
            for path in self._wanted
            if path not in self._texts and path not in self._absent and (not self._is_listed or path in self._listing)
        )

    def lacks(self, path: str, reason: str = "") -> None:
        """The target has no such file, or does not show it."""
        self._absent.add(path)
        if reason and path in self._listing:
            self.limits[f"{path} was not fetched: {reason}"] = None

    def has_all_with(self, words: Sequence[str]) -> bool:
        query = _query(words, None)
        if query not in self._answers:
            self._questions[query] = None
            return False
        count, paths = self._answers[query]
        missing = [path for path in paths if path not in self._texts and not is_test(path)]
        return self.is_searched_whole and count == len(paths) and not missing

    def search(self, words: Sequence[str], spelled: re.Pattern[bytes] | None = None) -> int:
        query = _query(words, spelled)
        if query not in self._answers:
            self._questions[query] = None
            return 0
        count, paths = self._answers[query]
        # what stands in tests is looked at only where the word is rare: then it tells of the word's meaning
        chosen = [path for path in paths if count <= MOST_HOLDING // 4 or not is_test(path)]
        if len(chosen) > query.most or count > len(paths):
            what = " and ".join(query.words)
            self.limits[f"{count} files of {self.package} hold {what}: those that are not here were not looked at"] = None  # fmt: skip
        else:
            for path in chosen:
                self.knows(path)
        return count

    @property
    def questions(self) -> tuple[Query, ...]:
        """Searches that the target has not answered yet; the listing comes with the first."""
        asked = [query for query in self._questions if query not in self._answers]
        is_known = self._is_listed or self._is_listing_refused or not self.is_opened
        return (*(() if is_known else (LISTING,)), *asked)

    @property
    def answered(self) -> tuple[Query, ...]:
        return tuple(query for query in self._answers if query.words)

    def ask_again(self, queries: Iterable[Query], paths: Iterable[str]) -> None:
        """What an earlier run of the same question needed is asked for at once."""
        self._questions.update(dict.fromkeys(queries))
        self._wanted.update(dict.fromkeys(paths))
        self.is_opened = True

    def take_answers(self, queries: Sequence[Query], reply: Reply) -> None:
        """The target's answer to a search. One that failed counts as an empty one, and is told as a limit."""
        value: dict[str, Any] = reply.value if isinstance(reply.value, dict) else {}
        found = value.get("found")
        if reply.status != "ok" or not isinstance(found, list) or len(found) < len(queries):
            self._refused(queries, reply)
            return
        for query, each in zip(queries, found, strict=False):
            paths = tuple(str(path) for path in each.get("paths", ()))
            if query == LISTING:
                self._is_listed = bool(value.get("is_complete"))
                self._is_listing_refused = not self._is_listed
                self.installed = int(each.get("count", 0))
                self._listing.update(paths)
            else:
                self._answers[query] = (int(each.get("count", 0)), paths)
        for path, stamp in (value.get("stamps") or {}).items():
            if len(stamp) == 2:
                self.stamps[str(path)] = Stamp(int(stamp[0]), float(stamp[1]))
        self.left_out = tuple(dict.fromkeys((*self.left_out, *map(str, value.get("left_out") or ()))))
        if not value.get("is_complete"):
            self.is_searched_whole = False
            self.limits[f"the search over {self.package} ended early, after {value.get('files')} files"] = None

    def _refused(self, queries: Sequence[Query], reply: Reply) -> None:
        self._answers.update({query: (0, ()) for query in queries if query.words})
        if LISTING in queries:
            self._is_listed = reply.status == "absent"
            self._is_listing_refused = not self._is_listed
        if reply.status != "absent":
            self.is_searched_whole = False
            self.limits[f"{self.package} was not searched for words: {reply.reason or reply.status}"] = None


def _query(words: Sequence[str], spelled: re.Pattern[bytes] | None) -> Query:
    most = _MOST_TOUCHING if len(words) == 1 and words[0] in ENVIRONMENT_WORDS else MOST_HOLDING
    return Query(tuple(words), spelled.pattern.decode() if spelled is not None else "", most)
