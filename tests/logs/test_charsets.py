"""Code pages of Windows, UTF-16 in parts, and UTF-8 that was misread on its way."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwhy.logs import UnreadableLog, read_bytes
from gpuwhy.logs.charsets import code_page, repaired

CHINESE = "ImportError: DLL load failed while importing _C: 找不到指定的模块。"
JAPANESE = "ImportError: DLL load failed while importing _C: 指定されたモジュールが見つかりません。"
KOREAN = "ImportError: DLL load failed while importing _C: 지정된 모듈을 찾을 수 없습니다."
RUSSIAN = "OSError: [WinError 126] Не найден указанный модуль"
GERMAN = "OSError: [WinError 126] Das angegebene Modul wurde nicht gefunden – „torch“ überprüfen"
GCC = "x.cu(3): error: ‘int8x’ was not declared in this scope; did you mean ‘int8_t’?"


def texts(data: bytes) -> list[str]:
    return [line.text for line in read_bytes(data, "x").lines]


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        (CHINESE, "gbk", "GBK"),
        ("x.cu(3): fatal error C1083: 无法打开包括文件: “cuda.h”", "gbk", "GBK"),
        ("拒绝访问", "gb18030", "GBK"),
        (JAPANESE, "cp932", "Shift-JIS"),
        (KOREAN, "cp949", "EUC-KR"),
        (RUSSIAN, "cp1251", "Windows-1251"),
        (GERMAN, "cp1252", "Windows-1252"),
        ("Le module spécifié est introuvable. Accès refusé.", "cp1252", "Latin-1"),
    ],
)
def test_code_pages(text: str, encoding: str, name: str) -> None:
    log = read_bytes(f"start\r\n{text}\r\nend\r\n".encode(encoding), "x")
    assert [line.text for line in log.lines] == ["start", text, "end"]
    assert log.notes == (f"not UTF-8; read as {name}",)


def test_one_program_wrote_gbk_and_another_utf_8() -> None:
    data = "größe — ok\n".encode() + CHINESE.encode("gbk") + b"\n" + "fertig ✓\n".encode()
    log = read_bytes(data, "x")
    assert [line.text for line in log.lines] == ["größe — ok", CHINESE, "fertig ✓"]
    assert log.notes == ("1 lines that are not UTF-8 read as GBK",)


def test_a_character_cut_in_two_is_damage_and_no_encoding() -> None:
    log = read_bytes("größe — ok\nund größ".encode()[:-1], "x")
    assert log.lines[1].text == "und gr\xf6\ufffd"
    assert log.notes == ("1 bytes that are not UTF-8 replaced",)


@pytest.mark.parametrize("mark", ["\ufeff", ""])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_chinese_in_it(mark: str, encoding: str) -> None:
    assert texts(f"{mark}start\r\n{CHINESE}\r\n".encode(encoding)) == ["start", CHINESE]


def test_powershell_began_and_another_shell_went_on() -> None:
    narrow = b"RuntimeError: written by a shell that knows no UTF-16\r\nand more of it, in a second line\r\n"
    data = f"\ufeffpowershell\r\n{CHINESE}\r\n".encode("utf-16-le") + narrow + "again wide\r\n".encode("utf-16-le")
    assert texts(data) == ["powershell", CHINESE, *narrow.decode().splitlines(), "again wide"]


def test_powershell_appended_to_a_narrow_log() -> None:
    data = b"narrow\n" + f"RuntimeError: wide and with {CHINESE}\r\n".encode("utf-16-le") * 9
    assert texts(data) == ["narrow", *[f"RuntimeError: wide and with {CHINESE}"] * 9]


def test_marks_of_files_that_were_joined() -> None:
    assert texts("\ufefffirst\n\ufeffINFO 08-03 17:45:53 [x.py:3] second\n".encode()) == ["first", "second"]


def misread(text: str, encoding: str) -> str:
    if encoding == "cp1252":  # a browser's: bytes without a character keep their number
        return "".join(
            chr(byte) if byte in b"\x81\x8d\x8f\x90\x9d" else bytes([byte]).decode("cp1252") for byte in text.encode()
        )
    return text.encode().decode(encoding, "replace")


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "gbk"])
def test_quotes_of_gcc_that_were_misread(encoding: str) -> None:
    data = misread(GCC, encoding).encode()
    assert texts(data) == [GCC]
    assert "repaired" in read_bytes(data, "x").notes[0]


def test_a_progress_bar_that_was_misread() -> None:
    assert texts(misread("Loading: 50%|█████     | 1/2", "cp1252").encode()) == ["Loading: 50%|█████     | 1/2"]


def test_chinese_that_was_misread_as_gbk() -> None:
    assert texts(misread("错误错误找不到模块", "gb18030").encode("utf-8", "replace"))[0] in {
        "错误错误找不到模块",
        misread("错误错误找不到模块", "gb18030"),  # an odd number of bytes: some are lost for good
    }
    assert texts("閿欒閿欒".encode()) == ["閿欒閿欒"] or texts("閿欒閿欒".encode())[0].startswith("错")


@pytest.mark.parametrize(
    "text", [CHINESE, JAPANESE, KOREAN, RUSSIAN, GERMAN, GCC, "Å Ångström à la naïve «É»", "50 °C, 3 µs, ± 2 §"]
)
def test_what_is_right_stays(text: str) -> None:
    assert texts(text.encode()) == [text]
    assert read_bytes(text.encode(), "x").notes == ()


@given(st.binary(max_size=300))
def test_any_bytes_have_a_code_page(sample: bytes) -> None:
    sample.decode(code_page(sample), "replace")


@given(st.text(max_size=200))
def test_any_text_can_be_repaired(text: str) -> None:
    notes: list[str] = []
    assert bool(notes) == (repaired(text, notes) != text) or notes


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes_are_no_text_of_any_code_page(seed: int) -> None:
    noise = random.Random(seed).randbytes(3000 * (seed + 1))
    with pytest.raises(UnreadableLog, match="not a log but binary data"):
        read_bytes(noise, "core.1234")
