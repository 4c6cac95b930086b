"""Whether a remedy can be carried out as it is printed: every line a command, none of them a template.

Strictly: there are commands; no line is an instruction to a person (``# run the same `docker run` again``); each line is a
whole shell line; and no word of it is a stand-in that somebody would have to fill in (``MODEL``, ``<path>``, ``...``). The one
instruction that is passed over is the last line ``# start the service again from this shell``: a report does not tell who
starts the service, on a host that line is a command. An option that is to be added to a start command which the case does not
give counts as not executable.
"""

from __future__ import annotations

import re
import shlex

from gpuwhy.model.remedy import Remedy

_STAND_IN = re.compile(r"[A-Z][A-Z_-]{1,40}|N|<[a-zA-Z][\w ./-]{0,60}>|\[[A-Z][A-Z_]{1,40}\]|\.\.\.|…")
_IN_PATH = re.compile(
    r"(?:^|/)(?:PATH|DIR|FILE|MODEL|NAME|VERSION|FOLDER|USER|HOST)(?:/|$)|<[a-zA-Z][\w -]{0,40}>|/\.\.\./"
)
_IN_BRACKETS = re.compile(r"<[a-zA-Z][\w .-]{0,40}>")
_NAMES_VARIABLES = frozenset({"export", "unset", "printenv", "-u", "env"})
_OPERATORS = re.compile(r"&&|\|\||[|;&<>()]+")
_OF_COMMANDS = frozenset(
    {"FORWARD", "ACCEPT", "DROP", "INPUT", "OUTPUT", "SIGKILL", "SIGTERM", "HEAD", "KILL", "TERM", "RUN"}
)
"""Words in capitals that mean themselves."""


_STARTED_AGAIN = "# start the service again"


def is_executable(remedy: Remedy) -> bool:
    """True when the remedy's commands can be typed as they stand."""
    lines = [line for line in remedy.commands if not line.startswith(_STARTED_AGAIN)]
    return bool(lines) and all(_is_whole(line, remedy.name) for line in lines)


def _is_whole(line: str, name: str) -> bool:
    if line.lstrip().startswith("#") or _IN_BRACKETS.search(line):
        return False
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        words = list(lexer)
    except ValueError:  # a quote that is never closed
        return False
    return bool(words) and not any(_is_stand_in(word, before, name) for before, word in zip(["", *words], words, strict=False))  # fmt: skip


def _is_stand_in(word: str, before: str, name: str) -> bool:
    if word == name or before in _NAMES_VARIABLES or word in _OF_COMMANDS or _OPERATORS.fullmatch(word):
        return False
    value = word.partition("=")[2] if word.startswith("--") and "=" in word else word
    return _STAND_IN.fullmatch(value) is not None or (" " not in value and _IN_PATH.search(value) is not None)
