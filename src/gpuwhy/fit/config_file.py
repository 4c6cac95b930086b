"""The YAML file that ``--config`` names: both engines read flags from it, and those on the command line win."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LARGEST_FILE = 1 << 20
_MOST_FLAGS = 400
_MOST_VALUES = 1000


def with_config_file(words: Sequence[str]) -> tuple[str, ...]:
    """The words with those of the file in front, in place of ``--config FILE``.

    A file that is not here, or is no mapping, changes nothing: the flag stays among the words, and the settings say that
    what it sets is not counted.
    """
    for number, word in enumerate(words):
        name, equals, path = word.partition("=")
        if name not in ("--config", "-config"):
            continue
        rest = number + 1 if equals else number + 2
        path = path if equals else next(iter(words[number + 1 : rest]), "")
        read = _words_of(Path(path).expanduser()) if path else None
        if read is not None:
            return (*read, *words[:number], *words[rest:])
    return tuple(words)


def _words_of(file: Path) -> tuple[str, ...] | None:
    import yaml

    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST_FILE)
        document = yaml.safe_load(content)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    return words_of(document)


def words_of(document: Any) -> tuple[str, ...] | None:
    """What a user would type for the mapping of such a file. None: it is no mapping."""
    if not isinstance(document, dict):
        return None
    found: list[str] = []
    for name, value in list(document.items())[:_MOST_FLAGS]:
        if value is None or value is False:
            continue
        found.append("--" + str(name)[:80].lstrip("-").replace("_", "-"))
        if isinstance(value, dict):
            found.append(json.dumps(value, default=str))
        elif isinstance(value, list):
            found += [json.dumps(each, default=str) if isinstance(each, dict) else str(each) for each in value[:_MOST_VALUES]]  # fmt: skip
        elif value is not True:
            found.append(str(value))
    return tuple(found)
