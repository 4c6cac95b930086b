"""A folder that stands for the site-packages of a host: questions about files there are answered as the collector does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from gpuwhy.collector import serving
from gpuwhy.redaction import Redactor
from gpuwhy.targets import Ask, Reply

PACKAGES = "/opt/venv/lib/python3.12/site-packages"


class Host:
    """Files of the folders appear below :data:`PACKAGES`; secrets are redacted on the way, as they are by the collector."""

    def __init__(self, *folders: Path) -> None:
        self.folders = folders
        self.rounds: list[list[Ask]] = []
        self._redactor = Redactor()

    def ask(self, asks: list[Ask], deadline: float = 10.0) -> list[Reply]:
        self.rounds.append(asks)
        return [self._answer(ask) for ask in asks]

    def _answer(self, ask: Ask) -> Reply:
        if not ask.path.startswith(PACKAGES):
            return Reply(status="absent", reason=f"{ask.path}: no such file")
        below = ask.path[len(PACKAGES) + 1 :]
        path = next((folder / below for folder in self.folders if (folder / below).exists()), self.folders[0] / below)
        answered = serving.answer({"id": 1, **msgspec.to_builtins(ask), "path": str(path)})
        value = answered["value"]
        if isinstance(value, dict) and "path" in value:
            value = {**value, "path": ask.path}
        value = self._redactor.value(value)
        return Reply(status=answered["status"], reason=answered["reason"], value=value)


def traceback_of(folders: Sequence[Path], frames: Sequence[tuple[str, str]], error: str) -> str:
    """A traceback as Python prints it, through the lines of the installed files that hold the given texts."""
    lines = ["Traceback (most recent call last):"]
    for path, code in frames:
        number, line, function = _found(folders, path, code)
        lines += [f'  File "{PACKAGES}/{path}", line {number}, in {function}', f"    {line.strip()}"]
    return "\n".join([*lines, error]) + "\n"


def _found(folders: Sequence[Path], path: str, code: str) -> tuple[int, str, str]:
    file = next(folder / path for folder in folders if (folder / path).is_file())
    text = file.read_text().split("\n")
    number = next((number for number, line in enumerate(text, 1) if code in line), None)
    if number is None:
        raise LookupError(f"{path} has no line with {code!r}")
    indent = len(text[number - 1]) - len(text[number - 1].lstrip())
    for line in reversed(text[: number - 1]):
        stripped = line.lstrip()
        if stripped.startswith(("def ", "async def ")) and len(line) - len(stripped) < indent:
            return number, text[number - 1], stripped.partition("def ")[2].partition("(")[0]
    return number, text[number - 1], "<module>"
