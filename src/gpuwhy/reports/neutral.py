"""Makes text from logs and hosts harmless for a terminal: nothing in it moves the cursor, rings, or reorders."""

from __future__ import annotations

import re
from typing import Any

_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""C0, DEL, C1, bidirectional and invisible format characters, separators that break lines, lone surrogates."""


def plain(text: str) -> str:
    """One line with every control character written out (``\\x1b``, ``\\u202e``); tabs become blanks."""
    return _CONTROLS.sub(_written_out, text.replace("\t", "    "))


def _written_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def escaped_for_json(text: str) -> str:
    """A JSON text with the same characters as ``\\u`` escapes: they can only stand inside its strings."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def encodable(value: Any) -> Any:
    """A document with the lone surrogates of broken encodings written out, as UTF-8 cannot hold them."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {encodable(str(key)): encodable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [encodable(each) for each in value]
    return value
