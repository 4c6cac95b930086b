"""Which engine and release a user means: ``sglang==0.5.23``, ``vllm 0.19``, ``vLLM``."""

from __future__ import annotations

import re

_SPELLED = re.compile(r"\s{0,9}(sglang|vllm)\s{0,3}(?:[=:@ v]{0,4}\s{0,3}([0-9][\w.+!-]{0,60}))?\s{0,9}", re.IGNORECASE | re.ASCII)  # fmt: skip
NAMES = {"sglang": "SGLang", "vllm": "vLLM"}


def read_engine(text: str) -> tuple[str, str] | None:
    """("sglang", "0.5.23"); the release is "" when none is given. None: neither of the two."""
    found = _SPELLED.fullmatch(text[:200])
    return (found[1].lower(), found[2] or "") if found else None
