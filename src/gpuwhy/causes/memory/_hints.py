"""What engines advise when memory ran out, found where the failure stands: it is answered, not repeated."""

from __future__ import annotations

from msgspec import Struct

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern

_RAISE = lazy_pattern(r"[Tt]ry (?:to )?increas(?:e|ing) [`'\"]?(?:--mem-fraction-static|gpu_memory_utilization)[`'\"]?|Raise --mem-fraction-static")  # fmt: skip
_LOWER = lazy_pattern(
    r"set --mem-fraction-static to a smaller value|[Tt]ry lowering .{0,40}?gpu[-_]memory[-_]utilization|Decrease GPU memory utilization|decreas(?:e|ing) [`'\"]?(?:--)?gpu[-_]memory[-_]utilization"
)
_EXAMPLES = lazy_pattern(r"--mem-fraction-static to a smaller value \(e\.g\.,? (0\.\d{1,3})(?: or (0\.\d{1,3}))?\)")
ABOVE, BELOW = 3, 12


class Hint(Struct, frozen=True):
    """``raises``, ``lowers``: the words in which the engine proposes another fraction, "" where it does not.

    ``examples``: the values that it names for a lower one.
    """

    raises: str = ""
    lowers: str = ""
    examples: tuple[float, ...] = ()


def hint_of(case: Case, match: Match, message: str = "") -> Hint:
    """The advice in the failure's own lines."""
    texts = [message[:4000], match.text[:4000], *(line.text[:1000] for line in case.lines_around(match, ABOVE, BELOW))]
    raises = next((found[0] for text in texts if (found := _RAISE.search(text))), "")
    lowers = next((found[0] for text in texts if (found := _LOWER.search(text))), "")
    examples = next((found for text in texts if (found := _EXAMPLES.search(text))), None)
    return Hint(raises, lowers, tuple(float(each) for each in examples.groups() if each) if examples else ())
