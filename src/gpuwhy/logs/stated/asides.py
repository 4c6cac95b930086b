"""Parts of a report that speak of something else than the failing machine as it was: proposals, diffs, other machines.

### Workaround
Fixed it with:
diff --git a/Dockerfile b/Dockerfile
## Works on
"""

from __future__ import annotations

import re
from typing import Protocol

from gpuwhy.logs.patterns import Pattern

OPENING = (
    "olution", "orkaround", "ork around", "ork-around", "Fix", "fix", "uggest", "roposed", "roposal", "orks", "orking", "olve", "xpected", "lternative",
    "ou can ", "ou could ", "ou should ", "ou may ", "ou might ", "ry ", "avoid ", "onsider", "nstead", "conflict is caused by", "other machine", "another machine", "different machine", "diff --git ", "@@ -", "解决", "修复", "建议", "正常的", "期望", "另一台",
)  # fmt: skip
_MARK = r"(?:#{1,6} {0,3}|\*\*|__|\d{1,2}[.)] |[-*] )?"
_WORDS = (
    r"(?:(?:possible |potential |proposed |suggested |quick |temporary |current |my |the |a |known )?(?:fix(?:es)?|solutions?|work-?arounds?|work around|resolution|proposal|patch)"
    r"|(?:i |we )?(?:fixed|solved|resolved)\b.{0,60}|(?:the )?(?:fix|solution|workaround) (?:is|was|for)\b.{0,80}|how (?:to|i) (?:fix|solve)\w*.{0,60}|suggest(?:ed|ion|ions)\b.{0,40}|expected (?:behaviou?r|result|output)"
    r"|(?:what )?works?(?:ing)?(?: fine| well)?(?: environment| setup| config(?:uration)?| version| combination| on| with| if| when| after)?\b.{0,60}|(?:on )?(?:an|the)?other machine\b.{0,60}|(?:a |on a )?different machine\b.{0,60}|alternatives?\b.{0,40}"
    r"|(?:临时)?解决(?:方案|办法|方法)?|修复(?:方案|方法)?|建议.{0,20}|期望.{0,20}|正常的.{0,20}|另一台.{0,20})"
)
_ADVICE = r"(?:you (?:can|could|should|may|might) .{0,80}|try .{0,60}|to (?:fix|avoid|work ?around|solve) .{0,80}|consider .{0,80}|instead\b.{0,60})"
_HEADING = Pattern(
    rf"^\s{{0,3}}(?P<mark>#{{2,6}} {{0,3}}|\*\*|__)\W{{0,4}}{_WORDS}\s*[:：]?\s*(?:\*\*|__)?\s*[:：]?\s*$",
    re.IGNORECASE,
)
_INTRODUCTION = Pattern(rf"^\s{{0,3}}{_MARK}(?:{_WORDS}|{_ADVICE})\s*(?:\*\*)?[:：](?:\*\*)?\s*$", re.IGNORECASE)
_ANY_HEADING = Pattern(r"^\s{0,3}(?:#{1,6} {0,3}\S|\*\*[^*]{1,100}\*\*[:：]?\s*$|__[^_]{1,100}__[:：]?\s*$)")
_DIFF = Pattern(r"^\s{0,3}(?:diff --git a/|@@ -\d{1,7}(?:,\d{1,7})? \+\d{1,7}(?:,\d{1,7})? @@)")
LONGEST_HEADING = 160


class Aside(Protocol):
    """A part that is passed over."""

    def covers(self, text: str) -> bool:
        """Whether the next line still belongs to it."""
        ...


_RESOLVER = "The conflict is caused by:"
"""What pip lists below are releases that it may or may not take, not installed ones."""


def opened(text: str) -> Aside | None:
    """The aside that ``text`` begins."""
    if len(text) > LONGEST_HEADING and not text.startswith("diff "):
        return None
    if text.strip() == _RESOLVER:
        return _Paragraph()
    if _DIFF.match(text[:LONGEST_HEADING]):
        return _Diff()
    heading = _HEADING.match(text)
    if heading is not None:
        return _Section(heading["mark"].count("#"))
    return _Paragraph() if _INTRODUCTION.match(text) else None


class _Section:
    """Up to the next heading that does not lie below its own."""

    def __init__(self, level: int) -> None:
        self._level = level

    def covers(self, text: str) -> bool:
        if len(text) > LONGEST_HEADING or not _ANY_HEADING.match(text):
            return True
        below = len(text.lstrip()) - len(text.lstrip().lstrip("#"))
        return 0 < self._level < below


class _Paragraph:
    """What a line that ends in a colon introduces: blank lines, then lines up to the next blank one."""

    def __init__(self) -> None:
        self._has_begun = False

    def covers(self, text: str) -> bool:
        if text.strip():
            self._has_begun = True
            return not _ANY_HEADING.match(text[:LONGEST_HEADING])
        return not self._has_begun


class _Diff:
    def covers(self, text: str) -> bool:
        return text.startswith(("+", "-", " ", "@@", "\\", "diff ", "index ", "new file", "deleted file", "similarity"))
