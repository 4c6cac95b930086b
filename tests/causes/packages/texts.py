"""What the tests of this family share: short names for the fixtures, and tracebacks as Python prints them."""

from __future__ import annotations

from collections.abc import Callable

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
SITE = "/opt/venv/lib/python3.12/site-packages"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def ruled_out(judgement: Judgement) -> list[str]:
    return [excluded.cause for excluded in judgement.ruled_out]


def remedies(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


def traceback(error: str, *frames: tuple[str, str, str]) -> str:
    """A traceback of frames (path, function, code), the innermost last."""
    lines = ["Traceback (most recent call last):"]
    for path, function, code in frames:
        lines += [f'  File "{path}", line 12, in {function}', f"    {code}"]
    return "\n".join([*lines, error, ""])
