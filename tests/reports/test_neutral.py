"""Nothing that a log or host says reaches a terminal as more than text."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from gpuwhy.reports import plain
from gpuwhy.reports.neutral import escaped_for_json

BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\ufff9\ufffa\ufffb"
TAGS = "\U000e0001\U000e0041\U000e007f\U000e0100\U000e01ef\ufe00\u034f\u115f\u1160\u3164\uffa0\xad\u180e"
"""Nobody sees them, and a model reads them."""
BREAKING = "\u2028\u2029\x85"


def test_every_control_character_is_written_out() -> None:
    controls = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Cc" and code != 0x09]
    assert len(controls) == 64
    for control in controls:
        assert plain(f"a{control}b") == f"a\\x{ord(control):02x}b"


def test_every_character_that_reorders_hides_or_breaks_is_written_out() -> None:
    for character in BIDIRECTIONAL + INVISIBLE + TAGS + BREAKING:
        assert character not in plain(character)
        assert plain(character).isascii()


def test_a_lone_surrogate_can_be_printed() -> None:
    assert plain("\udc80").encode() == b"\\udc80"


def test_tabs_become_blanks_and_ordinary_text_stays() -> None:
    assert plain("a\tb") == "a    b"
    assert plain("sm_120a — Überlauf, 显存不足, 🔥") == "sm_120a — Überlauf, 显存不足, 🔥"
    assert plain("❤\ufe0f") == "❤\ufe0f"


@given(st.text(alphabet=st.characters()))
def test_the_result_is_one_printable_line(text: str) -> None:
    shown = plain(text)
    shown.encode()
    assert len(shown.splitlines()) <= 1
    assert not any(unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") for each in shown)
    assert not any(each in BIDIRECTIONAL for each in shown)


@given(st.text())
def test_json_says_the_same_with_escapes(text: str) -> None:
    encoded = escaped_for_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(encoded) == text
    assert not any(unicodedata.category(each) == "Cc" or each in BIDIRECTIONAL for each in encoded)
