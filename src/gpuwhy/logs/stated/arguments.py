"""The arguments a server echoes: ``server_args.NAME``.

server_args=ServerArgs(model_path='/models/Kimi-K2.6', attention_backend='triton', sampling_backend=None, ...)
non-default args: {'model': 'Qwen/Qwen3-8B', 'kv_cache_dtype': 'fp8'}
args: Namespace(host=None, port=8000, model='Qwen/Qwen3-8B', tensor_parallel_size=4)
Initializing a V1 LLM engine (v0.10.0) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16, enforce_eager=False, ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Statement, Strength

if TYPE_CHECKING:
    import ast

LITERALS = ("ServerArgs(", "non-default args:", "args: Namespace(", "LLM engine (v")
_SGLANG = Pattern(r"ServerArgs\((?P<inside>.*)\)", re.DOTALL)
_VLLM = Pattern(r"non-default args: (?P<inside>\{.*\})\s*$", re.DOTALL)
_NAMESPACE = Pattern(r"\bargs: Namespace\((?P<inside>.*)\)\s*$", re.DOTALL)
_ENGINE = Pattern(r"Initializing an? (?:V1 )?LLM engine \(v[\w.+-]{1,60}\) with config: (?P<inside>.*)$", re.DOTALL)
_NAMED = Pattern(r"\s*(?P<name>[a-z_]{2,60})=(?P<value>.*)", re.DOTALL)
_WORD = Pattern(r"(?:torch\.)?(?P<word>[a-z][\w.-]{0,60})")
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
        return
    found = _NAMESPACE.search(text) or _ENGINE.search(text)
    if found is not None:
        yield from _loosely(found["inside"])


def keywords(source: str, strength: Strength) -> list[Statement]:
    """The arguments of a call whose inside is ``source``, as far as they are plain."""
    return [Statement(one.key, one.value, strength) for one in _keywords(f"f({source})")]


def _loosely(inside: str) -> Iterator[Statement]:
    """``name=value`` parts of what no parser takes as a whole; values that are objects are passed over."""
    for part in _parts(inside)[:MAX_ARGUMENTS]:
        named = _NAMED.fullmatch(part)
        if named is None:
            continue
        value = _parsed(named["value"].strip())
        if value is not None:
            read = list(_statement(named["name"], value))
            yield from read
            if read:
                continue
        word = _WORD.fullmatch(named["value"].strip())
        if word is not None and named["value"].strip() not in ("None", "True", "False"):
            yield Statement(f"server_args.{named['name']}", word["word"], Strength.PRINTED)


def _parts(inside: str) -> list[str]:
    """``inside`` cut at the commas that lie in no bracket and no string."""
    parts: list[str] = []
    begun = depth = 0
    quote = ""
    for at, sign in enumerate(inside):
        if quote:
            quote = "" if sign == quote and inside[at - 1] != "\\" else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(inside[begun:at])
            begun = at + 1
    parts.append(inside[begun:])
    return parts


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
