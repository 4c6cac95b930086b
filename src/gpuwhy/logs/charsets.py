"""Text that is not, or not only, UTF-8: code pages of Windows, UTF-16 in parts, and UTF-8 that was misread on its way.

`cl.exe` and `link.exe` write in the code page of the system while Python beside them writes UTF-8, so that one log holds
both. PowerShell's `>` writes UTF-16, and what another shell appends behind it is narrow.
"""

from __future__ import annotations

import functools
import re

from gpuwhy.logs.patterns import Pattern

SAMPLE = 1 << 16
"""Bytes of foreign lines by which their code page is known."""
DAMAGED = 0.5
"""A line of whose high bytes fewer than this are wrong is UTF-8 with damage, not another encoding."""

_NARROW = rb"[\t\n\r -~]{32,}"
_WIDE = (
    rb"(?:\xff\xfe)?(?:[\t\n\r -~]\x00){12,}"
    rb"(?:(?:[\x00-\xff][\x01-\xd7\xf9-\xff]){1,80}(?:[\t\n\r -~]\x00){2,})*"
)
_HIGH_RUN = rb"[\x80-\xff]+"
_NAMES = {"gb18030": "GBK", "cp932": "Shift-JIS", "cp949": "EUC-KR", "cp1251": "Windows-1251", "cp1252": "Windows-1252"}


@functools.cache
def _compiled(source: bytes) -> re.Pattern[bytes]:
    """Few logs need any of these."""
    return re.compile(source, re.DOTALL)


def from_wide(data: bytes, encoding: str) -> str:
    """UTF-16 (without its mark) in which another program may have written narrow lines."""
    parts: list[str] = []
    at = 0
    for found in _compiled(_NARROW).finditer(data) if encoding == "utf-16-le" else ():
        begin, end = found.span()
        if data[end : end + 1] == b"\x00":
            end -= 1  # the first byte of the next wide character
        if begin > at:
            parts.append(data[at:begin].decode(encoding, "replace"))
        parts.append(data[begin:end].decode("ascii"))
        at = end
    parts.append(data[at:].decode(encoding, "replace"))
    return "".join(parts)


def narrowed(data: bytes) -> bytes:
    """Mostly narrow ``data`` with its stretches of UTF-16 turned into UTF-8."""
    return _compiled(_WIDE).sub(
        lambda found: found.group().removeprefix(b"\xff\xfe").decode("utf-16-le", "replace").encode(), data
    )


def from_foreign(data: bytes, notes: list[str]) -> str:
    """``data`` that is not UTF-8 throughout, line by line. What was assumed goes into ``notes``."""
    lines = data.split(b"\n")
    texts: list[str | None] = [_as_utf8(line) for line in lines]
    strange = [at for at, text in enumerate(texts) if text is None]
    foreign = [at for at in strange if _is_foreign(lines[at])]
    is_mixed = any(text is not None and not text.isascii() for text in texts)
    if foreign and is_mixed and sum(map(_high, (lines[at] for at in foreign))) <= 3:
        foreign = []  # a character that was cut in two is no sign of another encoding
    if foreign:
        encoding = code_page(b"\n".join(lines[at] for at in foreign)[:SAMPLE])
        for at in foreign:
            texts[at] = lines[at].decode(encoding, "replace")
        name = _NAMES.get(encoding, "Latin-1")
        is_whole = len(foreign) == len(strange) and not is_mixed
        notes.append(
            f"not UTF-8; read as {name}" if is_whole else f"{len(foreign)} lines that are not UTF-8 read as {name}"
        )
    damaged = [lines[at].decode("utf-8", "replace") if text is None else text for at, text in enumerate(texts)]
    wrong = sum(damaged[at].count("\ufffd") for at in strange if texts[at] is None)
    if wrong:
        notes.append(f"{wrong} bytes that are not UTF-8 replaced")
    return "\n".join(damaged)


def _as_utf8(line: bytes) -> str | None:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _is_foreign(line: bytes) -> bool:
    return line.decode("utf-8", "replace").count("\ufffd") >= DAMAGED * _high(line)


def _high(line: bytes) -> int:
    return len(line) - len(line.translate(None, _HIGH_BYTES))


_HIGH_BYTES = bytes(range(0x80, 0x100))


def code_page(sample: bytes) -> str:
    """The code page that makes language of ``sample``: its high bytes come in patterns that few others have."""
    if _is_japanese(sample):
        return "cp932"
    pairs = _pairs(sample)
    if len(pairs) >= 2 and all(trail >= 0xA1 for _, trail in pairs):
        leads = [lead for lead, _ in pairs]
        if len(leads) >= 8 and all(0xB0 <= lead <= 0xC8 or lead <= 0xA3 for lead in leads):
            return "cp949"  # Hangul ends where the first third of the Chinese characters does
        if sum(0xA1 <= lead <= 0xA3 or 0xB0 <= lead <= 0xD7 for lead in leads) >= 0.85 * len(leads):
            return "gb18030"
    runs = [run for run in _compiled(_HIGH_RUN).findall(sample) if len(run) > 2]
    if sum(map(len, runs)) > 0.8 * _high(sample) and all(
        byte >= 0xC0 or byte in b"\xa8\xb8" for run in runs for byte in run
    ):
        return "cp1251"
    if any(0x80 <= byte <= 0x9F for byte in sample) and not any(byte in _UNDEFINED_1252 for byte in sample):
        return "cp1252"
    return "latin-1"


_UNDEFINED_1252 = b"\x81\x8d\x8f\x90\x9d"


def _pairs(sample: bytes) -> list[tuple[int, int]]:
    """The double-byte characters of ``sample`` when its high bytes come in pairs; else none."""
    runs = _compiled(_HIGH_RUN).findall(sample)
    even = [run for run in runs if len(run) % 2 == 0]
    if sum(map(len, even)) < 0.9 * sum(map(len, runs)):
        return []
    return [(run[at], run[at + 1]) for run in even for at in range(0, len(run), 2)]


def _is_japanese(sample: bytes) -> bool:
    """Shift-JIS shows by its kana, whose first byte is 0x82 or 0x83 and which every sentence has."""
    text = sample.decode("cp932", "replace")
    letters = [character for character in text if character > "\x7f"]
    kana = sum("\u3040" <= character <= "\u30ff" for character in letters)
    wrong = sum(character == "\ufffd" or "\uff61" <= character <= "\uff9f" for character in letters)
    return kana >= max(2, 0.2 * len(letters)) and wrong <= 0.1 * len(letters)


_MISREAD_1252 = Pattern(
    "(?:[\u00c2\u00c3\u00d0\u00d1][{t}]|[\u00e2-\u00ef][{t}]{{2}}|\u00f0[{t}]{{3}})".format(
        t="\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013\u2014\u2018-\u201e\u2020-\u2022\u2026\u2030\u2039\u203a\u20ac\u2122"
    )
)
_MARKS_1252 = ("\u00e2", "\u00c3", "\u00c2", "\u00ef", "\u00f0", "\u00d0", "\u00e3", "\u00e5", "\u00e4", "\u00e6")
_MISREAD_QUOTE = Pattern("\u9225(.)")
_MARKS_GBK = (
    "\u9225",
    "\u951b",
    "\u9286",
    "\u9428",
    "\u95bf",
    "\u7487",
    "\u6d93",
    "\u7f02",
    "\u93c2",
    "\u93c8",
    "\u9359",
)
"""What the commonest first bytes of UTF-8 (quotes, Chinese punctuation and particles) look like when read as GBK."""
_QUOTES = {
    0x98: "\u2018",
    0x99: "\u2019",
    0x9C: "\u201c",
    0x9D: "\u201d",
    0xA6: "\u2026",
    0x93: "\u2013",
    0x94: "\u2014",
}


def repaired(text: str, notes: list[str]) -> str:
    """``text`` where UTF-8 that some program read as Windows-1252 or GBK and wrote again is what it was.

    ``\u00e2\u20ac\u02dcint\u00e2\u20ac\u2122`` gives the quotes of gcc, and so does what a Chinese console makes of them.
    """
    if text.isascii():
        return text
    result = text
    if any(mark in text for mark in _MARKS_1252):
        result = _MISREAD_1252.sub(_from_1252, result)
    if any(mark in text for mark in _MARKS_GBK):
        result = "\n".join(
            line if line.isascii() else _from_gbk(line) if any(mark in line for mark in _MARKS_GBK) else line
            for line in result.split("\n")
        )
    if result != text:
        notes.append("UTF-8 that had been read in another encoding repaired")
    return result


def _from_1252(found: re.Match[str]) -> str:
    raw = bytes(
        ord(character) if ord(character) < 0x100 else character.encode("cp1252")[0] for character in found.group()
    )
    return _as_utf8(raw) or found.group()


def _from_gbk(line: str) -> str:
    try:
        whole = line.encode("gb18030").decode("utf-8")
    except UnicodeError:
        return _MISREAD_QUOTE.sub(_quote, line)
    return whole if all(character.isascii() or _is_plausible(character) for character in whole) else line


def _is_plausible(character: str) -> bool:
    """What CJK text and compilers are made of; two bytes that happen to be UTF-8 give other scripts."""
    import unicodedata  # most logs need none

    return character >= "\u2010" and unicodedata.category(character)[0] in "LPSN"


def _quote(found: re.Match[str]) -> str:
    if found.group(1) in "?\ufffd":
        return "\u2019"
    raw = found.group(1).encode("gb18030")
    if len(raw) == 2 and raw[0] in _QUOTES and raw[1] < 0x80:
        return _QUOTES[raw[0]] + chr(raw[1])
    return found.group()
