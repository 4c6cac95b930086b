"""``/proc/PID/environ`` as it is: ``NAME=value`` NUL ``NAME=value`` NUL, all on one line."""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern

_SEPARATORS = ("\x00", "^@", "\ufffd", "\\x00", "\\u0000", "\\0")
"""NUL, as terminals, browsers and programs that print strings show it."""
_VARIABLE = Pattern(r"[A-Za-z_][\w.%()]{0,200}=")


def one_a_line(text: str) -> str:
    """``text`` with one variable a line where a line is such a dump; everything else stays as it is."""
    separators = [separator for separator in _SEPARATORS if separator in text]
    if not separators or "=" not in text:
        return text
    lines = text.split("\n")
    is_open = False  # a value of several lines is not at its end
    for at, line in enumerate(lines):
        for separator in separators:
            if separator not in line:
                continue
            parts = line.split(separator)
            if _is_dump(parts, is_open):
                is_open = bool(parts[-1])
                lines[at] = "\n".join(part for part in parts if part)
                break
    return "\n".join(lines)


def _is_dump(parts: list[str], is_open: bool) -> bool:
    """What stands before the first NUL may be the rest of another variable's value, behind the last one a prompt."""
    if not all(_VARIABLE.match(part) for part in parts[1:-1] if part):
        return False
    return is_open or sum(_VARIABLE.match(part) is not None for part in parts) >= 2
