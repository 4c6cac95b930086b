"""Which values of a remedy can be typed as they are, and which only describe what to look for."""

from __future__ import annotations

import re

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_OPTION = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9_.-]{0,200}")
_DIRECTIONS = frozenset(
    {"lower", "higher", "larger", "smaller", "newer", "older", "longer", "fewer", "override", "token", "another", "other",
     "different", "more", "less", "free", "add", "delete", "changed", "match"}
)  # fmt: skip
_PATH_VARIABLES = re.compile(r".*_(?:HOME|PATH|DIR|ROOT|BASE)|HOME|CC|CXX|CUDAHOSTCXX")


def is_variable(name: str) -> bool:
    """True for the name of an environment variable."""
    return _VARIABLE.fullmatch(name) is not None


def is_option(name: str) -> bool:
    """True for the name of a command-line option, with its dashes."""
    return _OPTION.fullmatch(name) is not None


def is_literal(name: str, value: str) -> bool:
    """True when ``value`` can be typed as it is: ``12.0a``, and not ``lower``, ``>=12.9`` or ``toolkit with nvcc``.

    Values with control characters are never literal: no program expects one, a log may hold one.
    """
    if not value.isprintable() or len(value) > 4000 or value in _DIRECTIONS or value[:1] in ("<", ">"):
        return False
    if value.startswith(("match:", "not ", "with ", "without ")):
        return False
    if _PATH_VARIABLES.fullmatch(name) and not value.startswith("/") and name not in ("CC", "CXX"):
        return False
    words = value.split()
    return len(words) < 2 or value.startswith("{") or all(re.search(r"[\d=:/]", word) for word in words)
