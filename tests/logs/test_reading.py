"""What can be read, what is refused and how, and what is noted."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zstandard

from gpuwhy.logs import UnreadableLog, kernel_lines, open_log, read_bytes, read_report, reading, sifting

TEXT = "first line\nRuntimeError: boom — ü\nlast line\n"


def gzipped(data: bytes) -> bytes:
    """Without the time of day, so that parallel runs name their tests alike."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    "packed",
    [
        gzipped(TEXT.encode()),
        gzipped(TEXT[:20].encode()) + gzipped(TEXT[20:].encode()),
        lzma.compress(TEXT.encode()),
        bz2.compress(TEXT.encode()),
        zstandard.ZstdCompressor().compress(TEXT.encode()),
        gzipped(lzma.compress(TEXT.encode())),
        b"\xef\xbb\xbf" + TEXT.encode(),
        TEXT.encode("utf-16"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        TEXT.replace("—", "-").replace("ü", "u").encode("utf-16-le"),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace("\n", "\r").encode(),
    ],
    ids=[
        "gzip",
        "gzip members",
        "xz",
        "bzip2",
        "zstd",
        "xz in gzip",
        "utf-8 mark",
        "utf-16",
        "utf-16 be",
        "utf-16 bare",
        "crlf",
        "cr",
    ],
)
def test_same_lines_however_wrapped(packed: bytes) -> None:
    lines = [line.text for line in read_bytes(packed, "x").lines]
    assert [line.replace("—", "-").replace("ü", "u") for line in lines] == [
        "first line",
        "RuntimeError: boom - u",
        "last line",
    ]


def test_latin_1() -> None:
    log = read_bytes("Zugriff verweigert für Gerät größer\n".encode("latin-1"), "x")
    assert log.lines[0].text == "Zugriff verweigert für Gerät größer"
    assert log.notes == ("not UTF-8; read as Latin-1",)


def test_broken_utf8_is_replaced_and_noted() -> None:
    data = ("größe — " * 50).encode() + b"\xff\xfe bad\n"
    log = read_bytes(data, "x")
    assert log.lines[0].text.endswith("\ufffd\ufffd bad")
    assert log.notes == ("2 bytes that are not UTF-8 replaced",)


def test_nul_bytes_are_left_out_and_noted() -> None:
    log = read_bytes(b"before the power cut\n" + b"\x00" * 5000 + b"after\n", "x")
    assert [line.text for line in log.lines] == ["before the power cut", "after"]
    assert log.notes == ("5000 NUL bytes left out",)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"\x00" * 100, "nothing but NUL bytes"),
        (b"\x7fELF\x02\x01\x01" + bytes(64), "an ELF binary"),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), "a PNG image"),
        (b"PK\x03\x04" + bytes(64), "a zip archive; unpack it first"),
        (b"LPKSHHRH" + bytes(64), "a binary journal; print it with"),
        (bytes(range(1, 256)) * 40 + bytes(range(9)) * 900, "binary data"),
        (gzipped(b"\x7fELF\x02\x01"), "an ELF binary"),
        (gzipped(gzipped(gzipped(gzipped(b"x")))), "compressed more than 3 times"),
    ],
)
def test_refused_with_one_line_for_people(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableLog) as caught:
        read_bytes(data, "crash.log")
    message = str(caught.value)
    assert message.startswith("crash.log: ")
    assert reason in message
    assert "\n" not in message


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(UnreadableLog, match="no such file"):
        open_log(tmp_path / "missing")
    with pytest.raises(UnreadableLog, match="a directory"):
        open_log(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UnreadableLog, match="no regular file"):
        open_log(pipe)
    with pytest.raises(UnreadableLog):
        open_log("with\x00nul")


@contextmanager
def an_ordinary_user() -> Iterator[None]:
    """Root reads everything: it takes the rights of nobody meanwhile."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_file_without_permission(tmp_path: Path) -> None:
    secret = tmp_path / "secret.log"
    secret.write_text("x")
    secret.chmod(stat.S_IWUSR)
    with an_ordinary_user(), pytest.raises(UnreadableLog, match="Permission denied"):
        open_log(secret)


def test_damaged_gzip_is_read_as_far_as_it_goes() -> None:
    import random

    text = "".join(f"line {random.Random(at).random()}\n" for at in range(20_000))
    packed = gzip.compress(text.encode())
    log = read_bytes(packed[: len(packed) // 2], "x")
    assert log.lines[0].text == text.split("\n")[0]
    assert log.notes == ("gzip data ends early",)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, zstandard.ZstdCompressor().compress])
def test_what_unpacks_to_more_than_is_read_whole_keeps_its_ends_and_its_numbers(
    pack: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WHOLE", 100_000)
    monkeypatch.setattr(sifting, "HEAD", 1000)
    monkeypatch.setattr(sifting, "TAIL", 2000)
    lines = [f"line {at}" for at in range(150_000)]
    packed = pack("\n".join(lines).encode())  # type: ignore[operator]
    log = read_bytes(packed, "x")
    assert log.lines[0].text == "line 0"
    assert (log.lines[-1].number, log.lines[-1].text) == (150_000, "line 149999")
    assert len(log.lines) < 600, "few: both ends, and the few numbers that some sign can begin with"
    assert "150000 lines: searched whole" in log.notes[0]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, zstandard.ZstdCompressor().compress])
def test_members_one_after_the_other_are_one_log(pack: object) -> None:
    packed = b"".join(pack(f"line {at}\n".encode()) for at in range(5))  # type: ignore[operator]
    assert [line.text for line in read_bytes(packed, "x").lines] == [f"line {at}" for at in range(5)]


def test_long_lines_keep_both_ends() -> None:
    log = read_bytes(b"a" * 100_000 + b"END\nnext\n", "x")
    assert len(log.lines[0].text) < 70_000
    assert log.lines[0].text.endswith("END")
    assert log.lines[1].text == "next"
    assert log.notes == ("1 lines longer than 64 KiB shortened in their middle, the first is line 1",)


def test_terminal_escapes_are_harmless() -> None:
    hostile = (
        "\x1b]0;title\x07\x1b[31mred\x1b[0m \x9b2J\u202ereversed\x07 \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ end\n"
    )
    (line,) = read_bytes(hostile.encode(), "x").lines
    assert line.text == "red \ufffdreversed\ufffd link end"


REPORT = """### Describe the bug

<details><summary>log</summary>

```text
    Traceback (most recent call last):
      File "a.py", line 1, in &lt;module&gt;
    RuntimeError: boom
```
</details>

> quoted one
> quoted two
> ValueError: inner
"""


def test_report_is_unwrapped_in_place() -> None:
    log = read_report(REPORT)
    assert log.kind == "report"
    by_number = {line.number: line.text for line in log.lines}
    assert by_number[6] == "Traceback (most recent call last):"
    assert by_number[7] == '  File "a.py", line 1, in <module>'
    assert by_number[8] == "RuntimeError: boom"
    assert by_number[14] == "ValueError: inner"
    assert read_bytes(REPORT.encode(), "x").kind == "report"


def test_shell_prompts_are_no_quotes() -> None:
    text = "> cmake -B build\n-- ok\n>cmake --build build\n"
    log = read_bytes(text.encode(), "x")
    assert log.kind == "log"
    assert log.lines[0].text == "> cmake -B build"


def test_kernel_log() -> None:
    text = "[    5.000000] Linux version 6\n[ 2882.100153] Out of memory: Killed process 1 (x)\n"
    assert read_bytes(text.encode(), "x").kind == "kernel log"
    log = kernel_lines(text, boot_time=1_000_000.0)
    assert log.kind == "kernel log"
    assert log.lines[1].time == pytest.approx(1_002_882.100153)
    assert kernel_lines(text.splitlines()).lines[1].text == "Out of memory: Killed process 1 (x)"
