"""Options of a command given as a list of words."""

from __future__ import annotations

from collections.abc import Sequence

_TAKE_NO_VALUE = ("--enable-", "--disable-", "--no-", "--trust-remote-code", "--enforce-eager", "--skip-")


def takes_value(option: str) -> bool:
    """False for options that engines declare as plain switches; by their usual names."""
    return not option.startswith(_TAKE_NO_VALUE)


def position_of(words: Sequence[str], option: str) -> int | None:
    """The index of the last word that gives ``option`` (``--x`` or ``--x=v``; dashes and underscores are one)."""
    wanted = _normal(option)
    for index in reversed(range(len(words))):
        if _normal(words[index].partition("=")[0]) == wanted:
            return index
    return None


def extent_of(words: Sequence[str], at: int, option: str) -> int:
    """How many words the option at index ``at`` takes: 1, or 2 with its value in the next word."""
    if "=" in words[at] or not takes_value(option):
        return 1
    has_value = at + 1 < len(words) and not words[at + 1].startswith("-")
    return 2 if has_value else 1


def with_option(words: Sequence[str], option: str, value: str) -> list[str]:
    """The words with the option set: in place when it is given already, else at the end."""
    added = [option, value] if value else [option]
    at = position_of(words, option)
    if at is None:
        return [*words, *added]
    return [*words[:at], *added, *words[at + extent_of(words, at, option) :]]


def without_option(words: Sequence[str], option: str) -> list[str]:
    """The words without the option and its value."""
    at = position_of(words, option)
    if at is None:
        return list(words)
    return [*words[:at], *words[at + extent_of(words, at, option) :]]


def _normal(option: str) -> str:
    return option.replace("_", "-")
