"""The commands that the documents show, as a reader would type them, and the output that is shown of them.

Two kinds of block show commands: one that is indented, whose lines begin with the command and may end in an explanation after two
spaces, and a fenced one of the kind ``console``, whose commands follow a ``$`` and whose other lines are output. In output
a line ``...`` stands for any number of lines, and ``...`` within a line for any text.

A comment before a block says that its commands, or those that contain one of the words in brackets, are not run, and why:

    <!-- not run (root@gpu-host, docker:): another machine; tests/lab/test_diagnose.py has real ones -->

Their arguments are still read by the command's own parser, so that an option that is renamed is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
)
_FENCE = re.compile(r"^(?P<marks>```+)(?P<kind>\w*)\s*$")
_NOT_RUN = re.compile(r"<!-- not run(?: \((?P<words>[^)]+)\))?: (?P<reason>.+?) -->")
_FILE = re.compile(r"(?:^|[\s(])`(?P<name>[\w.-]+\.(?:ya?ml|txt|py))`[^`]*:\s*$")
_PROGRAMS = r"(?:gpuwhy|python3? gpuwhy|printf|make|journalctl|kubectl|docker)"
_INDENTED = re.compile(rf"^    (?P<command>(?:\.venv/bin/)?{_PROGRAMS}\b.*)$")
_ELSEWHERE = re.compile(r"^(?:make|journalctl|kubectl|docker)\b")


@dataclass(frozen=True)
class Shown:
    """A command of a page; ``output`` is empty where none is shown, ``reason`` where it is run."""

    page: Path
    line: int
    command: str
    output: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}: {self.command}"


@dataclass(frozen=True)
class Block:
    """Lines of code of one kind (``indented`` or the word behind the fence), with what the text before says of them."""

    kind: str
    line: int
    lines: tuple[str, ...]
    before: str


def blocks_of(text: str) -> Iterator[Block]:
    """Every block of code of a page."""
    lines = text.split("\n")
    before: list[str] = []
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence:
            end = next(n for n in range(at + 1, len(lines)) if lines[n].strip() == fence["marks"])
            yield Block(fence["kind"], at + 2, tuple(lines[at + 1 : end]), "\n".join(before))
            before, at = [], end + 1
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()) and not _within_list(before):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or _goes_on(lines, end)):
                end += 1
            yield Block("indented", at + 1, tuple(lines[at:end]), "\n".join(before))
            before, at = [], end
        else:
            before.append(lines[at])
            at += 1


def commands_of(page: Path) -> list[Shown]:
    """Every command that a page shows in a block."""
    shown: list[Shown] = []
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.kind == "console":
            shown.extend(_console(page, block))
        elif block.kind in ("indented", "", "sh", "bash"):
            shown.extend(_indented(page, block))
    return shown


def files_of(page: Path) -> dict[str, str]:
    """The files that a page shows: a block after a paragraph that ends in the name, in backquotes, and a colon."""
    found: dict[str, str] = {}
    for block in blocks_of(page.read_text(encoding="utf-8")):
        name = _FILE.search(block.before.rstrip())
        if name and block.kind in ("yaml", "text", "python", "toml"):
            found[name["name"]] = "\n".join(block.lines) + "\n"
    return found


def is_as_shown(shown: tuple[str, ...], printed: str) -> bool:
    """Whether ``printed`` is the output that a page shows, with its omissions."""
    pattern = ""
    for line in shown:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ ]*\n"
    return re.fullmatch(pattern, printed if printed.endswith("\n") else printed + "\n") is not None


def _within_list(before: list[str]) -> bool:
    """A line that is indented under an item of a list goes on with it and is no code."""
    paragraph = [line for line in before if line.strip()]
    return bool(paragraph) and bool(re.match(r"^ {0,3}(?:[*-]|\d{1,2}\.) ", paragraph[-1]))


def _goes_on(lines: list[str], at: int) -> bool:
    return not lines[at].strip() and at + 1 < len(lines) and lines[at + 1].startswith("    ")


def _reason(block: Block, command: str) -> str:
    for mark in _NOT_RUN.finditer(block.before):
        words = [word.strip() for word in (mark["words"] or "").split(",") if word.strip()]
        if not words or any(word in command for word in words):
            return mark["reason"]
    return ""


def _console(page: Path, block: Block) -> Iterator[Shown]:
    at = 0
    while at < len(block.lines):
        assert block.lines[at].startswith("$ "), f"{page.name}:{block.line + at}: output without a command"
        end = at + 1
        while end < len(block.lines) and not block.lines[end].startswith("$ "):
            end += 1
        command = block.lines[at][2:]
        yield Shown(page, block.line + at, command, block.lines[at + 1 : end], _reason(block, command))
        at = end


def _indented(page: Path, block: Block) -> Iterator[Shown]:
    for number, line in enumerate(block.lines, block.line):
        if block.kind != "indented":
            line = "    " + line
        match = _INDENTED.match(line)
        if match:
            command = re.split(r"\s{2,}(?=[^\s])", match["command"], maxsplit=1)[0].strip()
            yield Shown(page, number, command, (), _reason(block, command) or _other_program(command))


def _other_program(command: str) -> str:
    """What belongs to no command of gpuwhy: the targets of make have their own stages."""
    return "a program of others" if _ELSEWHERE.match(command) else ""
