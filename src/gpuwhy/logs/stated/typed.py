"""Commands in a shell whose answer means nothing without them.

$ which nvcc                           $ /usr/local/cuda-12.8/bin/nvcc --version
/usr/bin/nvcc                          Cuda compilation tools, release 12.8, V12.8.93
$ ls /usr/local | grep cuda            $ echo $CUDA_HOME
cuda-12.8                              /usr/local/cuda-12.8
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Block, Statement, Strength
from gpuwhy.logs.stated.environment import is_interesting, variable

LITERALS = ("nvcc: command not found", "nvcc: not found", "Runtimes: ")
OPENING = (
    "which nvcc",
    "nvcc --version",
    "nvcc -V",
    "ls /usr/local",
    "ls -l /usr/local",
    "ls -al /usr/local",
    "ls -la /usr/local",
    "echo $",
)
_NO_NVCC = Pattern(
    r"^(?:-?(?:ba|z|da)?sh: (?:line )?(?:\d{1,6}: )?)nvcc: (?:command )?not found\s*$|^zsh: command not found: nvcc\s*$"
)
_RUNTIMES = Pattern(r"^\s{0,8}Runtimes: (?P<names>[\w. -]{2,200})$")
_COMMAND = r"(?:^|[$#>❯] )"
_WHICH = Pattern(rf"{_COMMAND}which nvcc\s*$")
_COMPILER = Pattern(rf"{_COMMAND}(?P<root>/[\w./+-]{{1,200}})/bin/nvcc (?:--version|-V)\s*$")
_LIST = Pattern(
    rf"{_COMMAND}ls (?:-\w{{1,6}} )?/usr/local/?(?:\s*\|\s*grep (?:-i )?[\"']?cuda[\"']?|/cuda\*)?(?: -\w{{1,6}})?\s*$"
)
_ECHO = Pattern(rf"{_COMMAND}echo [\"']?\$\{{?(?P<name>[A-Z_][A-Z0-9_]{{1,80}})\}}?[\"']?\s*$")
_PATH = Pattern(r"^(?P<path>/[\w./+-]{1,300}/nvcc)\s*$")
_NONE = Pattern(r"^(?:/usr/bin/which: no nvcc in \(|nvcc not found)")
_RELEASE = Pattern(r"Cuda compilation tools, release (?P<version>\d{1,2}\.\d{1,2})\b")
_FOLDER = Pattern(
    r"^(?:[dl][rwx-]{9}\S?\s.{10,100}?\s)?(?:/usr/local/)?(?P<name>cuda(?:-\d{1,2}(?:\.\d{1,2})?)?)(?: -> (?P<target>\S{1,200}?)/?)?/?:?\s*$"
)
_VALUE = Pattern(r"^(?P<value>[\w/.:,;+=-]{1,2000})\s*$")
MAX_LINES = 60


def read(text: str) -> Iterator[Statement]:
    if _NO_NVCC.match(text[:200]):
        yield Statement("nvcc_path", None, Strength.REPORTED)
    runtimes = _RUNTIMES.match(text[:300]) if "Runtimes" in text else None
    if runtimes is not None:
        yield Statement("container.runtimes", runtimes["names"].split(), Strength.REPORTED)


def opened(text: str) -> Block | None:
    shown = text[-300:].strip()
    if _WHICH.search(shown):
        return _Answer("which", "")
    compiler = _COMPILER.search(shown)
    if compiler is not None:
        return _Answer("compiler", compiler["root"])
    if _LIST.search(shown):
        return _Answer("list", "")
    echo = _ECHO.search(shown)
    return _Answer("echo", echo["name"]) if echo is not None and is_interesting(echo["name"]) else None


class _Answer:
    """The lines below a command."""

    def __init__(self, kind: str, subject: str) -> None:
        self._kind = kind
        self._subject = subject
        self._lines = 0
        self.shares = kind == "list"

    def read(self, text: str) -> list[Statement] | None:
        self._lines += 1
        shown = text[:2100]
        if not self._kind or self._lines > MAX_LINES or shown[:2] in ("$ ", "# "):
            return None
        if self._kind == "list":
            return _folder(shown) if shown.strip() else None
        if self._kind == "compiler":
            return self._release(shown)
        kind, self._kind = self._kind, ""
        if kind == "echo":
            value = _VALUE.match(shown)
            return list(variable(self._subject, value["value"], Strength.REPORTED)) if value is not None else None
        path = _PATH.match(shown)
        if path is not None:
            return [Statement("nvcc_path", path["path"], Strength.REPORTED)]
        return [Statement("nvcc_path", None, Strength.REPORTED)] if _NONE.match(shown) else None

    def _release(self, shown: str) -> list[Statement] | None:
        release = _RELEASE.search(shown)
        if release is None:
            return [] if self._lines < 5 else None
        self._kind = ""
        return [Statement(f"other_toolkits.{self._subject}", release["version"], Strength.REPORTED)]


def _folder(shown: str) -> list[Statement]:
    folder = _FOLDER.match(shown)
    if folder is None:
        return []
    target = f"a link to {folder['target']}" if folder["target"] else "a directory"
    is_sure = bool(folder["target"]) or shown[:1] in "dl"  # names alone do not tell a link from a directory
    return [Statement(f"files./usr/local/{folder['name']}", target, Strength.REPORTED if is_sure else Strength.PRINTED)]
