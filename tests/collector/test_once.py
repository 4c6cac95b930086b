"""The program as a fleet runs it: asked once, framed answers, and an end by itself whatever becomes of the other side."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.patience import AT_MOST

from gpuwhy.collector.bundle import program
from gpuwhy.collector.framing import LINE, LONG_LINE, MARK, Framer
from gpuwhy.fleet.answers import read_answers
from gpuwhy.fleet.collecting import Asked, payload
from gpuwhy.fleet.engines.interface import Payload
from gpuwhy.targets.pipe import framed, shell_line


def start(line: str, **more: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sh", "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more
    )


@pytest.fixture
def ray_payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Payload:
    monkeypatch.setenv("GPUWHY_RAY_LOGS", str(tmp_path))
    (tmp_path / "worker-0dea1df8-ffffffff-29870.err").write_text(":job_id:01\nRuntimeError: no such KV cache\n")
    (tmp_path / "worker-77015eb2-ffffffff-30469.out").write_text(":job_id:01\nall is well\n")
    (tmp_path / "dashboard.log").write_text("Traceback (most recent call last):\n")
    return payload(Asked(deadline=6.0), "ray")


def test_it_answers_once_and_ends(ray_payload: Payload) -> None:
    process = start(ray_payload.line)
    output, errors = process.communicate(ray_payload.stdin, timeout=60)
    assert (process.returncode, errors) == (0, b"")
    answers = read_answers(b"Welcome to this host\n" + output)
    assert answers.is_whole
    assert answers.end["python"]
    found = {each["probe"]: each for each in answers.results}
    assert found["system"]["status"] == "ok"
    assert [Path(file["path"]).name for file in found["ray_log"]["value"]["files"]] == [
        "worker-0dea1df8-ffffffff-29870.err"
    ]
    assert max(map(len, output.splitlines())) <= LONG_LINE + len(MARK)


def test_slurm_gets_lines_that_it_carries_whole() -> None:
    asked = payload(Asked(deadline=3.0), "slurm")
    output, _ = start(asked.line).communicate(asked.stdin, timeout=60)
    assert read_answers(output).is_whole
    assert max(map(len, output.splitlines())) <= LINE + len(MARK)


def test_it_ends_also_when_its_input_stays_open(ray_payload: Payload) -> None:
    process = start(ray_payload.line)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(ray_payload.stdin)
    process.stdin.flush()
    assert read_answers(process.stdout.read()).is_whole
    process.wait(AT_MOST)


def test_one_that_waits_for_its_text_is_ended_by_the_system() -> None:
    process = start(shell_line(life=2))
    assert process.wait(AT_MOST) == -signal.SIGALRM


def test_one_whose_reader_is_gone_ends_at_once() -> None:
    process = start(shell_line(life=60))
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(framed(program()) + b'{"is_once":true,"deadline":30,"life":60}\n')
    process.stdin.flush()
    process.stdout.read(1)
    process.stdout.close()
    process.wait(20)  # by itself it would go on for 30


def test_one_whose_reader_does_not_read_ends_when_its_life_is_over() -> None:
    """An engine that stops between the node and us leaves the pipe open, and full."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 65536)
    except BlockingIOError:
        os.set_blocking(writer, True)
    process = subprocess.Popen(
        ["sh", "-c", shell_line(life=60)], stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    process.stdin.write(framed(program()) + b'{"is_once":true,"deadline":1,"life":3}\n')
    process.stdin.flush()
    process.wait(AT_MOST / 2)
    os.close(reader)
    os.close(writer)


def test_what_came_before_a_cut_is_read() -> None:
    framer = Framer()
    lines = [
        framer.pack(b'{"probe":"p%d","status":"ok","value":"%s"}\n' % (n, os.urandom(900).hex().encode()))
        for n in range(4)
    ]
    whole = b"".join(lines) + framer.pack(b'{"end":{"python":"3"}}\n') + framer.finish()
    assert [len(read_answers(whole).results), read_answers(whole).is_whole] == [4, True]
    for cut in range(0, len(whole), 97):
        answers = read_answers(whole[:cut])
        assert not answers.is_whole
        assert len(answers.results) >= sum(cut >= len(b"".join(lines[: n + 1])) for n in range(4))


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b"gpuwhy:",
        b"gpuwhy:####\n",
        b"gpuwhy:AAAA\n",
        b"\0\xff" * 500,
        MARK + b"A" * 100001,
        Framer().pack(b"[1,2,3]\nnull\n{\"probe\":5}\n{\"end\":7}\n{\"probe\":\"x\"}\n" + b"[" * 90000),
    ],
)  # fmt: skip
def test_what_is_no_answer_of_ours_is_none(output: bytes) -> None:
    answers = read_answers(output)
    assert (answers.results, answers.end, answers.is_whole) == ([], {}, False)


def test_a_small_output_does_not_unpack_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuwhy.fleet.answers.MOST_BYTES", 1 << 20)
    framer = Framer()
    bomb = b"".join(framer.pack(b'{"probe":"p","status":"ok"}\n' * 5000) for _ in range(40)) + framer.finish()
    answers = read_answers(bomb)
    assert not answers.is_whole
    assert len(answers.results) < 60000
