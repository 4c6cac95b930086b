"""Mends source lines that redaction cut, so that the rest of the file can still be understood.

The collector takes ``block_token: torch.Tensor`` or ``token = special[token_id]`` for secrets. What it took out stays
out; a name stands in its place, with the brackets that were lost.

    token = <redacted:1>, 0)      token = redacted_1(redacted_1, 0)
"""

from __future__ import annotations

import ast
import re
import warnings

HIDDEN = re.compile(r"<redacted:(\d{1,9})>")
STAND_IN = re.compile(r"\bredacted_\d{1,9}\b")
_MOST = 40
"""Lines of one file; each takes another parse."""
_LARGEST = 1 << 19
_OPENERS = {")": "(", "]": "[", "}": "{"}


def mended(text: str) -> str:
    """The text with names for what was taken out. Line numbers stay; a line that cannot be mended stays as it is."""
    if HIDDEN.search(text) is None:
        return text
    lines = HIDDEN.sub(r"redacted_\1", text).split("\n")
    if len(text) > _LARGEST:
        return "\n".join(lines)
    for _ in range(_MOST):
        error = _error(lines)
        number = _blamed(lines, error) if error is not None else None
        if error is None or number is None:
            break
        changed = _mended_line(lines[number], error.msg or "")
        if changed == lines[number]:
            break
        lines[number] = changed
    return "\n".join(lines)


def _error(lines: list[str]) -> SyntaxError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines))
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


def _blamed(lines: list[str], error: SyntaxError) -> int | None:
    """The nearest line at or above the error from which something was taken."""
    at = min(error.lineno or 0, len(lines)) - 1
    return next((number for number in range(at, max(-1, at - 6), -1) if STAND_IN.search(lines[number])), None)


def _mended_line(line: str, message: str) -> str:
    name = STAND_IN.search(line)
    if name is None:
        return line
    before, tail = line[: name.start()], line[name.end() :]
    lost = _lost_openers(before, tail)
    if lost:
        inside = name.group() if tail.lstrip()[:1] in (",", ")", "]", "}") and lost[-1] != "(" else ""
        if tail.startswith(","):
            inside = name.group()
        return f"{before}{name.group()}{lost}{inside}{tail}"
    if before.rstrip().endswith("=") and not before.rstrip().endswith("==") and before.lstrip().startswith(("if ", "elif ", "while ")):  # fmt: skip
        return f"{before}={tail}"
    if re.match(r"\s+[A-Za-z_\"'(\[{]", tail) and "was never closed" not in message:
        joint = "lambda:" if re.search(r"[\"']\s*:\s*$", before) else f"{name.group()} and"
        return f"{before}{joint}{tail}"
    return line


def _lost_openers(before: str, tail: str) -> str:
    """The brackets that the tail closes and nothing on the line opens, as openers, the outermost first."""
    open_here = [each for each in before if each in "([{"]
    for each in before:
        if each in _OPENERS and open_here:
            open_here.pop()
    depth: list[str] = []
    lost: list[str] = []
    for each in tail:
        if each in "([{":
            depth.append(each)
        elif each in _OPENERS:
            if depth:
                depth.pop()
            elif open_here and open_here[-1] == _OPENERS[each]:
                open_here.pop()
            else:
                lost.append(_OPENERS[each])
    return "".join(reversed(lost))
