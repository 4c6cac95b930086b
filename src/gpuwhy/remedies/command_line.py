"""Options of a command given as a list of words."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.knowledge import switches

_TAKE_NO_VALUE = ("--enable-", "--disable-", "--no-", "--trust-remote-code", "--enforce-eager", "--skip-")


def takes_value(option: str) -> bool:
    """False for plain switches: as the servers of all releases declare them, or by the usual names."""
    return not switches.is_switch(option) and not option.startswith(_TAKE_NO_VALUE)


def position_of(words: Sequence[str], option: str, start: int = 0, end: int | None = None) -> int | None:
    """The index of the last word from ``start`` to before ``end`` that gives ``option``.

    ``--x``, ``--x=v``; dashes and underscores are one, and so are the spellings that a server takes for one argument
    (``-tp``, ``--tensor-parallel-size``).
    """
    wanted = {_normal(option), *switches.same_argument(option)}
    for index in reversed(range(start, len(words) if end is None else end)):
        given = _normal(words[index].partition("=")[0])
        if given.startswith("-") and (given in wanted or any(switches.is_short_for(given, name) for name in wanted)):
            return index
    return None


def extent_of(words: Sequence[str], at: int, option: str) -> int:
    """How many words the option at index ``at`` takes: 1, or 2 with its value in the next word."""
    if "=" in words[at] or not takes_value(option):
        return 1
    has_value = at + 1 < len(words) and not words[at + 1].startswith("--")
    return 2 if has_value else 1


def value_of(words: Sequence[str], option: str, start: int = 0) -> str | None:
    """The value that the words give the option, ``""`` for a switch; None when they do not give it."""
    at = position_of(words, option, start)
    if at is None:
        return None
    _, _, joined = words[at].partition("=")
    return joined or (words[at + 1] if extent_of(words, at, option) == 2 else "")


def with_option(words: Sequence[str], option: str, value: str, start: int = 0) -> list[str]:
    """The words with the option set: in place when it is given already from ``start`` on, else at the end."""
    added = [option, value] if value else [option]
    at = position_of(words, option, start)
    if at is None:
        return [*words, *added]
    return [*words[:at], *added, *words[at + extent_of(words, at, option) :]]


def without_option(words: Sequence[str], option: str, start: int = 0) -> list[str]:
    """The words without the option and its value, as far as they stand from ``start`` on."""
    at = position_of(words, option, start)
    if at is None:
        return list(words)
    return [*words[:at], *words[at + extent_of(words, at, option) :]]


def _normal(option: str) -> str:
    return option.replace("_", "-")
