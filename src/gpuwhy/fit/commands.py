"""The start command of a server among what a person, a unit or a container wraps around it."""

from __future__ import annotations

import re
import shlex

from msgspec import Struct

_ENGINES = ("sglang", "vllm")
_MODEL_FLAGS = ("--model-path", "--model")
LONGEST = 20_000
"""Characters."""
_MOST_BEFORE = 60
"""Words before the engine's name: `docker run` with its options, `numactl`, assignments."""
_SHELL = re.compile(r"(?:/usr)?(?:/bin/)?(?:ba|da|z|k)?sh")
_SEPARATORS = frozenset({"&&", "||", ";", "|", "&"})


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command[:LONGEST])
    except ValueError:
        return command[:LONGEST].split()


def _started(words: list[str]) -> list[str]:
    """The command that a shell is given as one word, of several the one that names an engine; else the words as they are."""
    for at, word in enumerate(words[:_MOST_BEFORE]):
        line = next((each for each in words[at + 1 : at + 4] if not each.startswith("-")), "")
        is_line = any(each.startswith("-") and each.endswith("c") for each in words[at + 1 : at + 3])
        if _SHELL.fullmatch(word) and is_line and any(name in line for name in _ENGINES):
            words = _split(line)
            break
    commands: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS:
            commands.append([])
        else:
            commands[-1].append(word)
    return next((each for each in commands if any(name in word for word in each[:_MOST_BEFORE] for name in _ENGINES) and _model_named(each)), words)  # fmt: skip


def _model_named(words: list[str]) -> str:
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in _MODEL_FLAGS:
            return value if equals else words[at + 1] if at + 1 < len(words) else ""
    serve = next((at for at, word in enumerate(words[:_MOST_BEFORE]) if word == "serve"), len(words))
    typed = words[serve + 1] if serve + 1 < len(words) else ""
    return "" if typed.startswith("-") else typed


class Started(Struct, frozen=True):
    """``engine`` and ``model`` as the command names them; ``words``: of the one command that starts it."""

    engine: str
    model: str
    words: tuple[str, ...]


def read_start(command: str) -> Started | None:
    """None where no command of SGLang or vLLM with a model is in the text.

    >>> read_start("/bin/sh -c 'cd /srv && exec vllm serve org/name -tp 2'").model
    'org/name'
    """
    words = _started(_split(command))
    at = next((at for at, word in enumerate(words[:_MOST_BEFORE]) if any(name in word for name in _ENGINES)), None)
    engine = next((name for name in _ENGINES if at is not None and name in words[at]), "")
    model = _model_named(words)
    return Started(engine, model, tuple(words)) if engine and model else None
