"""Regular expressions of the replayed code, run only when they end soon: Python's matcher cannot be interrupted."""

from __future__ import annotations

import re
import sys
from typing import Any

from gpuwhy.source.replay.stops import NotModelledError

if sys.version_info >= (3, 11):
    from re import _constants as sre
    from re import _parser as parser
else:
    import sre_constants as sre
    import sre_parse as parser

_MAX_COST = 50_000_000
_MAX_PATTERN = 5_000
_REPEATS = tuple(getattr(sre, name) for name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") if hasattr(sre, name))


def ends_soon(pattern: str | bytes | re.Pattern[Any], text: str | bytes, flags: int = 0) -> int:
    """What a match costs at most, in characters gone through. Stops unless the number of ways to match is small: repeats multiply by the longest run that each can take.

    A repeat whose body repeats or branches is refused, since such ones can take exponential time.
    """
    source: Any = pattern.pattern if isinstance(pattern, re.Pattern) else pattern
    if len(source) > _MAX_PATTERN:
        raise NotModelledError("a very long regular expression")
    flags = pattern.flags if isinstance(pattern, re.Pattern) else flags
    try:
        parsed = parser.parse(source, flags & ~re.DEBUG)
    except (re.error, ValueError, TypeError, OverflowError, RecursionError):
        # compiling it raises the exception that the program would see
        return 0
    cost = len(text) + 1
    for part in _repeats(parsed):
        cost *= part if isinstance(part, int) else _longest_run(part, text) + 1
        if cost > _MAX_COST:
            raise NotModelledError(f"the regular expression {source!r:.60} on a text of {len(text)} characters")
    return cost // 10


def _repeats(parsed: Any) -> list[Any]:
    """Bodies of what repeats, anywhere in the expression, and of what may be one of several its number of choices."""
    found: list[Any] = []
    for operation, argument in parsed:
        if operation in _REPEATS:
            least, most, body = argument
            if int(most) > 1:
                if not _is_simple(body):
                    raise NotModelledError("a regular expression with a repeat inside a repeat")
                found.append(body)
            else:
                found += [2 - int(least), *_repeats(body)]
        elif operation is sre.SUBPATTERN:
            found += _repeats(argument[-1])
        elif operation is sre.BRANCH:
            found.append(len(argument[1]))
            for branch in argument[1]:
                found += _repeats(branch)
        elif operation in (sre.ASSERT, sre.ASSERT_NOT):
            found += _repeats(argument[1])
        elif operation is sre.GROUPREF_EXISTS:
            for branch in argument[1:]:
                found += _repeats(branch) if branch else []
        elif getattr(sre, "ATOMIC_GROUP", None) is operation:
            found += _repeats(argument)
    return found


def _is_simple(body: Any) -> bool:
    for operation, argument in body:
        if operation in (*_REPEATS, sre.BRANCH, sre.GROUPREF, sre.GROUPREF_EXISTS, sre.ASSERT, sre.ASSERT_NOT):
            return False
        if operation is sre.SUBPATTERN and not _is_simple(argument[-1]):
            return False
    return True


def _longest_run(body: Any, text: str | bytes) -> int:
    """How often the body can match in a row: for one class of digits, blanks and the like it is counted."""
    if len(body) == 1 and body[0][0] is sre.IN and len(body[0][1]) == 1:
        operation, argument = body[0][1][0]
        if operation is sre.CATEGORY and isinstance(text, str):
            test = {sre.CATEGORY_DIGIT: str.isdigit, sre.CATEGORY_SPACE: str.isspace}.get(argument)
            if test is not None:
                return _run(text, test)
        if operation is sre.RANGE and isinstance(text, str):
            low, high = argument
            return _run(text, lambda character: low <= ord(character) <= high)
    return len(text)


def _run(text: str, test: Any) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if test(character) else 0
        longest = max(longest, run)
    return longest
