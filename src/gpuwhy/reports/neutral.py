"""Makes text from logs and hosts harmless for a terminal: nothing in it moves the cursor, rings, or reorders."""

from __future__ import annotations

import re
from typing import Any

_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""C0, DEL, C1, bidirectional and invisible format characters, blanks that are letters, tags and variation selectors (which can
hide a text in another for a model that reads it), separators that break lines, lone surrogates. What makes an emoji of a
symbol (U+FE0F) stays."""


def plain(text: str) -> str:
    """One line with every control character written out (``\\x1b``, ``\\u202e``); tabs become blanks."""
    return _CONTROLS.sub(_written_out, text.replace("\t", "    "))


def _written_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escaped_for_json(text: str) -> str:
    """A JSON text with the same characters as ``\\u`` escapes: they can only stand inside its strings."""
    return _CONTROLS.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def encodable(value: Any) -> Any:
    """A document with the lone surrogates of broken encodings written out, as UTF-8 cannot hold them."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {encodable(str(key)): encodable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [encodable(each) for each in value]
    return value
