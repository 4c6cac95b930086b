"""Start commands in manifests of Compose and Kubernetes, on one line or as a list.

command: --model Qwen/Qwen3-8B --tensor-parallel-size 2
args: ["--model-path", "Qwen/Qwen3-8B", "--tp", "2"]
args:
- --model=Qwen/Qwen3-8B
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated import launch
from gpuwhy.logs.stated._types import Block, Statement

LITERALS = ("command:", "args:")
OPENING = LITERALS
_LINE = Pattern(
    r"^\s{0,40}(?:- )?(?:command|args):\s{1,4}(?P<words>(?:\[.{2,4000}\]|(?:python3? |vllm |--).{2,4000}))\s*$"
)
_HEADER = Pattern(r"^(?P<indent>\s{0,40})(?:- )?(?:command|args):\s*(?:[>|][+-]?)?\s*$")
_ITEM = Pattern(r"^\s{0,60}- (?P<quote>[\"']?)(?P<word>[^\"'\s].{0,400}?)(?P=quote)\s*$")
_FLAG = Pattern(r"^(?P<flag>--[a-z][\w-]{1,60})(?:[= ](?P<value>\S.{0,300}))?$")


def read(text: str) -> Iterator[Statement]:
    line = _LINE.match(text[:4200])
    if line is not None:
        yield from launch.flags(_words(line["words"]))


def _words(text: str) -> list[str]:
    if not text.startswith("["):
        return launch.split(text)
    return [word.strip().strip("\"'") for word in text[1:-1].split(",")][: launch.MAX_WORDS]


def opened(text: str) -> Block | None:
    header = _HEADER.match(text[:200])
    return _Arguments(len(header["indent"])) if header is not None else None


class _Arguments:
    """Items below ``args:``; a flag whose value is the next item is told with that."""

    shares = True

    def __init__(self, indent: int) -> None:
        self._indent = indent
        self._flag = ""
        self._lines = 0

    def read(self, text: str) -> list[Statement] | None:
        self._lines += 1
        shown = text[:600].rstrip().removesuffix("\\").rstrip()
        if self._lines > 200 or len(shown) - len(shown.lstrip()) < self._indent:
            return None
        item = _ITEM.match(shown)
        word = item["word"] if item is not None else shown.strip()
        flag = _FLAG.match(word)
        if flag is None:
            name, self._flag = self._flag, ""
            if item is None:
                return None if not word or ":" in word.split(" ")[0] else []
            return list(launch.flags([name, word])) if name else []
        statements = list(launch.flags([self._flag])) if self._flag else []
        self._flag = ""
        if flag["value"] is not None:
            return [*statements, *launch.flags([flag["flag"], flag["value"].strip("\"'")])]
        if item is None:
            return [*statements, *launch.flags([flag["flag"]])]
        self._flag = flag["flag"]
        return statements
