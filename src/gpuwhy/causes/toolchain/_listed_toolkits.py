"""Toolkits that a report itself shows: what ``ls``, ``which nvcc`` or a link in a listing printed, or a sentence tells."""

from __future__ import annotations

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import Sign, says

LISTED: Sign = says(
    "toolkit-listed",
    ("/usr/local/cuda", "cuda-1", "cuda-9"),
    r"^(?P<folders>/usr/local/cuda(?:-\d{1,2}(?:\.\d)?)?/?(?:(?:[ \t]{1,8}|/)(?:/usr/local/)?cuda(?:-\d{1,2}(?:\.\d)?)?/?){0,11})$"
    r"|^(?P<names>cuda(?:-\d{1,2}(?:\.\d)?)?(?:[ \t]{1,8}cuda-\d{1,2}(?:\.\d)?){1,11})$"
    r"|^(?P<name>cuda-\d{1,2}\.\d)$"
    r"|^[ld-][rwx-]{9}\S? .{0,120}\bcuda(?:-\d{1,2})? -> (?P<link>/?\S{0,60}cuda-\d{1,2}\.\d)/?$"
    r"|^(?P<nvcc>/usr/local/cuda-\d{1,2}\.\d)/bin/nvcc$"
    r"|(?P<told>/usr/local/cuda-\d{1,2}\.\d)[`'\"/]{0,2} (?:exists\b|(?:is|was)(?: also| already| both| still)? (?:installed|present|available|there)\b)"
    r"|(?<!not )(?<!never )\b(?:installed|located|lives?|sits?) (?:in|at|under|to) [`'\"]{0,2}(?P<told2>/usr/local/cuda-\d{1,2}\.\d)",
)
_RELEASE = lazy_pattern(r"cuda-(\d{1,2}\.\d)")
_ROOTS = "/usr/local/cuda-"


class ListedToolkit(msgspec.Struct, frozen=True):
    """A folder named after a release of the toolkit, as a listing in the report shows it; nobody looked inside."""

    root: str
    version: str
    match: Match


def listed_toolkits(case: Case) -> tuple[ListedToolkit, ...]:
    """The toolkits that the report lists, each root once, in the order of the report."""
    found: dict[str, ListedToolkit] = {}
    for match in case.all(LISTED.name):
        if match.is_code or (match.event is not None and match.event.kind == "exception"):
            continue
        text = next(
            (
                match.groups[name]
                for name in ("folders", "names", "name", "link", "nvcc", "told", "told2")
                if name in match.groups
            ),
            "",
        )
        for version in _RELEASE.findall(text):
            found.setdefault(version, ListedToolkit(_ROOTS + version, version, match))
    return tuple(found.values())
