"""An engine made in a Python program: ``LLM(model="Qwen/Qwen3-8B", tensor_parallel_size=4)``, ``sgl.Engine(...)``."""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated import arguments
from gpuwhy.logs.stated._types import Block, Statement, Strength

OPENING = ("LLM(", "Engine(")
_CALL = Pattern(
    r"^\s{0,40}(?:self\.)?(?:\w{1,40} = )?(?:await )?(?:vllm\.LLM|LLM|sgl\.Engine|sglang\.Engine|AsyncEngineArgs|EngineArgs)\((?P<rest>.{0,2000})$"
)
MAX_LINES = 60


def opened(text: str) -> Block | None:
    call = _CALL.match(text)
    return _Call(call["rest"]) if call is not None else None


LITERALS = OPENING


def read(text: str) -> list[Statement]:
    """A call on one line."""
    call = _CALL.match(text[:2200])
    if call is None or _depth(call["rest"]) > 0:
        return []
    return arguments.keywords(call["rest"].rpartition(")")[0], Strength.PROSE)


def _depth(source: str) -> int:
    """How many brackets are open behind ``(`` and ``source``; strings that hold brackets are rare enough."""
    return 1 + sum(source.count(sign) for sign in "([{") - sum(source.count(sign) for sign in ")]}")


class _Call:
    shares = True

    def __init__(self, rest: str) -> None:
        self._parts = [rest]
        self._open = _depth(rest)

    def read(self, text: str) -> list[Statement] | None:
        if self._open <= 0 or len(self._parts) > MAX_LINES:
            return None
        self._parts.append(text)
        self._open += _depth(text) - 1
        if self._open > 0:
            return []
        parts, self._parts = self._parts, []
        source = "\n".join(parts).rpartition(")")[0]
        return [
            Statement(one.key, one.value, one.strength, _back(parts, one.key.partition(".")[2]))
            for one in arguments.keywords(source, Strength.PROSE)
        ]


def _back(parts: list[str], name: str) -> int:
    for at, part in enumerate(parts):
        if name in part:
            return len(parts) - 1 - at
    return 0
