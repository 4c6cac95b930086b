"""The arguments a server echoes: ``server_args.NAME``.

server_args=ServerArgs(model_path='/models/Kimi-K2.6', attention_backend='triton', sampling_backend=None, ...)
non-default args: {'model': 'Qwen/Qwen3-8B', 'kv_cache_dtype': 'fp8'}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Statement, Strength

if TYPE_CHECKING:
    import ast

LITERALS = ("ServerArgs(", "non-default args:")
_SGLANG = Pattern(r"ServerArgs\((?P<inside>.*)\)", re.DOTALL)
_VLLM = Pattern(r"non-default args: (?P<inside>\{.*\})\s*$", re.DOTALL)
MAX_LENGTH = 32 << 10
MAX_ARGUMENTS = 600
_PLAIN = (str, int, float, bool, list, dict, type(None))


def read(text: str) -> Iterator[Statement]:
    if len(text) > MAX_LENGTH:
        return
    found = _SGLANG.search(text)
    if found is not None:
        yield from _keywords(f"f({found['inside']})")
        return
    found = _VLLM.search(text)
    if found is not None:
        yield from _mapping(found["inside"])


def _keywords(source: str) -> Iterator[Statement]:
    import ast

    call = _parsed(source)
    if isinstance(call, ast.Call):
        for keyword in call.keywords[:MAX_ARGUMENTS]:
            if keyword.arg:
                yield from _statement(keyword.arg, keyword.value)


def _mapping(source: str) -> Iterator[Statement]:
    import ast

    mapping = _parsed(source)
    if isinstance(mapping, ast.Dict):
        for key, value in list(zip(mapping.keys, mapping.values, strict=True))[:MAX_ARGUMENTS]:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield from _statement(key.value, value)


def _parsed(source: str) -> ast.expr | None:
    import ast

    try:
        return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _statement(name: str, node: ast.expr) -> Iterator[Statement]:
    """Values that are plain; objects (``<Enum...>``, ``Config(...)``) are passed over."""
    import ast

    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return
    if isinstance(value, _PLAIN) and (("key" not in name and "token" not in name) or not isinstance(value, str)):
        yield Statement(f"server_args.{name}", value, Strength.PRINTED)
