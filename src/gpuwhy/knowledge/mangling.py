"""Mangled C++ names: the readable name of a function, and what the name tells about who compiled it.

Only as much of the Itanium C++ ABI as is needed to say whose function it is: scopes and names, not parameter types.
Source of the grammar: the public ABI document, section 5.1.
"""

from __future__ import annotations

import functools
import re

from msgspec import Struct

LONGEST = 4000
"""Mangled names are seldom longer; the rest of one adds parameter types only."""
_STANDARD = {
    "Sa": ("std", "allocator"),
    "Sb": ("std", "basic_string"),
    "Ss": ("std", "string"),
    "Si": ("std", "istream"),
    "So": ("std", "ostream"),
    "Sd": ("std", "iostream"),
}
_SPECIAL = {"TV": "vtable for ", "TI": "typeinfo for ", "TS": "typeinfo name for ", "TT": "VTT for ", "GV": "guard variable for "}  # fmt: skip
_PREFIX = re.compile(r"_{1,4}Z(?P<special>T[VIST]|GV|Th\w{0,12}_|Tv\w{0,24}_)?(?P<rest>\S+)", re.ASCII)
_NAME = re.compile(r"(\d{1,4})", re.ASCII)
_SUBSTITUTION = re.compile(r"S[0-9A-Z]{0,4}_", re.ASCII)
_OPENERS = frozenset("NIJXFL")


class CppName(Struct, frozen=True):
    """A function or object of C++.

    ``scopes`` are its name's parts, outermost first (``("c10", "Error", "Error")``). ``old_strings`` is True when its
    types hold std::string of before C++11 (``Ss``), ``new_strings`` when they hold that of C++11 (``__cxx11``): the
    two are different types, and a function that takes one is not found under the name of the other.
    """

    text: str
    scopes: tuple[str, ...]
    old_strings: bool
    new_strings: bool

    @property
    def root(self) -> str:
        """The outermost namespace, or the name itself."""
        return self.scopes[0] if self.scopes else ""


@functools.lru_cache(256)
def demangle(symbol: str) -> CppName | None:
    """``_ZN3c105ErrorC2ENS_14SourceLocationESs`` as ``c10::Error::Error``; None for a name that is not of C++."""
    found = _PREFIX.match(symbol[:LONGEST])
    if found is None:
        return None
    rest = found["rest"]
    scopes, end = _nested(rest) if rest.startswith("N") else _plain(rest)
    if not scopes:
        return None
    special = _SPECIAL.get(found["special"] or "", "")
    types = _types_of(rest[end:])
    return CppName(
        text=special + "::".join(scopes),
        scopes=scopes,
        old_strings="Ss" in types,
        new_strings="__cxx11" in rest,
    )


def _nested(text: str) -> tuple[tuple[str, ...], int]:
    """The parts of ``N ... E``, and where the parameters begin."""
    at = 1
    while at < len(text) and text[at] in "rVKRO":
        at += 1
    scopes: list[str] = []
    while at < len(text) and text[at] != "E":
        at = _part(text, at, scopes)
    return tuple(scopes), at + 1


def _plain(text: str) -> tuple[tuple[str, ...], int]:
    """A name without a namespace (``6memcpy``), or directly in std (``St...``), or local to a function (``Z...``)."""
    scopes: list[str] = []
    at = 0
    locals_ = len(text) - len(text.lstrip("Z"))  # not one call for each: a hostile name can have thousands
    if locals_:
        inner, end = _nested(text[locals_:]) if text[locals_ : locals_ + 1] == "N" else _plain(text[locals_:])
        return inner, locals_ + end
    at = _part(text, at, scopes)
    if scopes == ["std"] and at < len(text):
        at = _part(text, at, scopes)
    if at < len(text) and text[at] == "I":
        at = _after_group(text, at)
    return tuple(scopes), at


def _part(text: str, at: int, scopes: list[str]) -> int:
    """Read one part of a name into ``scopes``; where the next begins. At the end of the text there is none."""
    if at >= len(text):
        return at
    number = _NAME.match(text, at)
    if number is not None:
        begin = number.end()
        end = min(len(text), begin + int(number[1]))
        scopes.append(_readable(text[begin:end]))
        return end
    two = text[at : at + 2]
    if two == "St":
        scopes.append("std")
        return at + 2
    if two in _STANDARD:
        scopes.extend(_STANDARD[two])
        return at + 2
    substitution = _SUBSTITUTION.match(text, at)
    if substitution is not None:
        return substitution.end()
    if text[at] in "IJX":
        return _after_group(text, at)
    if text[at] == "L":  # a name of internal linkage
        return at + 1
    if two[:1] in "CD" and two[1:].isdigit() and scopes:
        scopes.append(("~" if two[0] == "D" else "") + scopes[-1])
        return at + 2
    if two[:1] == "B":  # an ABI tag
        tagged: list[str] = []
        return _part(text, at + 1, tagged) if _NAME.match(text, at + 1) else at + 1
    if two.isalpha() and two.islower():
        scopes.append("operator")
        return at + 2
    return at + 1


def _readable(name: str) -> str:
    return "(anonymous namespace)" if name.startswith("_GLOBAL__N_") else name


def _after_group(text: str, at: int) -> int:
    """The place behind the group that opens at ``at`` (template arguments, a nested name, a literal ...)."""
    depth = 0
    while at < len(text):
        token, at = _token(text, at)
        if token in _OPENERS:
            depth += 1
        elif token == "E":  # noqa: S105 - a letter of the grammar
            depth -= 1
        if depth <= 0:
            break
    return at


def _types_of(text: str) -> frozenset[str]:
    """The tokens of the parameter types."""
    seen = set()
    at = 0
    while at < len(text):
        token, at = _token(text, at)
        seen.add(token)
    return frozenset(seen)


def _token(text: str, at: int) -> tuple[str, int]:
    """One token of the grammar, with a whole name or substitution taken as one."""
    number = _NAME.match(text, at)
    if number is not None:
        end = min(len(text), number.end() + int(number[1]))
        return "name", max(end, number.end())
    substitution = _SUBSTITUTION.match(text, at)
    if substitution is not None:
        return "substitution", substitution.end()
    if text[at : at + 2] in _STANDARD or text[at : at + 2] == "St":
        return text[at : at + 2], at + 2
    if text[at : at + 2] in ("Dt", "DT"):
        return "X", at + 2
    if text[at] == "L":
        return _literal(text, at)
    return text[at], at + 1


def _literal(text: str, at: int) -> tuple[str, int]:
    """``Lb1E`` or ``Li0E`` as a whole: the digits are a value, and not the length of a name."""
    whole = re.compile(r"L[a-z]n?\d{0,20}E").match(text, at)
    return ("literal", whole.end()) if whole is not None else ("L", at + 1)
