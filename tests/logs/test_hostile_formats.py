"""Formats that are recognised from the text as a whole cost no more than its length, whatever it holds."""

from __future__ import annotations

import contextlib
import time

import pytest

from gpuwhy.logs import UnreadableLog, find_events, read_bytes

SECONDS = 2.0
STARTS = {
    "verbose": "Sun 2026-11-29 10:07:46.000000 UTC [s=1;i=1;t=6616776fbc080;x=1]\n    MESSAGE=a\n",
    "rich": "[11/30/26 07:41:17] INFO     engine starts                    a.py:66\n",
    "cri": "2026-11-30T07:42:28.3Z stdout P a\n",
    "docker": '{"log":"a","stream":"stdout","time":"x"}\n',
    "pretty": '{\n\t"_BOOT_ID" : "3",\n',
    "server-sent": 'data: {"__REALTIME_TIMESTAMP":"1"}\n',
    "journal": "Nov 29 10:07:46 gpu-host agent[2200]: a\n",
    "compose": "vllm-1  | a\n",
    "stern": "+ vllm-0 › server\n",
    "powershell": "a : b\nAt line:1 char:1\n    + FullyQualifiedErrorId : NativeCommandError\n",
    "numbers": "1: a\n2: b\n3: c\n",
    "colours": "[0m\n",
    "escaped": "Traceback (most recent call last):\\n  File \n",
    "bar": "1it/s]\n",
    "plain": "",
}
PIECES = [
    " ", "a", "a-", "a ", "1", "1: ", "[", "[0m", "[1;", "(", "(a)", "<1>", "<1>1 - - - - - [a", '[a@1 b="', "\\n", "\\\\", ": ", " : ", " | ", "\t",
    "stdout P ", "2026-11-30T07:42:28.3Z stdout P ", '{"log":"', '","stream":"stdout"', "    MESSAGE=", "    A=", "[s=", " + ", "it/s]", "1it/s, ",
    "\u00e2\u20ac\u02dc", "\u9225", "\u9225\u6960", "&gt;", "<p>", "\\_", "```\n", "> ", "Sun 2026-11-29 10:07:46 UTC ", "a.py:1 ", "(pid=", "a - ", "\r",
    "\ufeff", "\u200b", "E1129 ", "[2026-11-29 10:07:46,123 E ", "data: {", "{\n\t", "    + FullyQualifiedErrorId : NativeCommandError\n",
]  # fmt: skip


def cost(data: bytes) -> float:
    begun = time.process_time()
    with contextlib.suppress(UnreadableLog):
        find_events(read_bytes(data, "hostile"))
    return time.process_time() - begun


@pytest.mark.parametrize("start", STARTS)
def test_repetition(start: str) -> None:
    for piece in PIECES:
        for text in (piece * (60_000 // len(piece)), (piece * (600 // len(piece)) + "\n") * 100):
            assert cost((STARTS[start] + text).encode()) < SECONDS, piece


@pytest.mark.parametrize("start", [b"", b"\xff\xfe", b"\xfe\xff", b"narrow text\n", b"w\x00i\x00d\x00e\x00" * 9])
def test_repetition_of_bytes(start: bytes) -> None:
    for piece in (b"\x00", b"a\x00", b"\x00a", b"\xff\xfe", b"\xe2\x80", b"\xd6\xd0", b"\x82\xa0", b"\x81", b"\xc3", b"a\x00" * 12 + b"\x01\x02", b"a" * 32 + b"\x00"):  # fmt: skip
        assert cost(start + piece * (400_000 // len(piece))) < SECONDS, piece
