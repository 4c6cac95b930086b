"""Boards on which the GPU and the host share one memory, so that their limits are one."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case
from gpuwhy.causes._lazy_patterns import lazy_pattern

_BOARDS = lazy_pattern(r"\bGB10\b|DGX Spark|\bspark-vllm|\bJetson\b|\bThor\b|\bOrin\b|unified memory", re.IGNORECASE)


def is_unified(case: Case) -> bool:
    """Whether a fact or the log names such a board."""
    facts = [str(case.facts.value(key) or "") for key in ("gpu", "gpus", "os")]
    if any(_BOARDS.search(text[:500]) for text in facts):
        return True
    return any(_BOARDS.search(line.text[:600]) for _, line in case.lines())
