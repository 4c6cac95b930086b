"""A collector at the other end of a pipe: real processes, some of which do not behave."""

from __future__ import annotations

import random
import shutil
import string
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.patience import BUSY

from gpuwhy.collector.bundle import program
from gpuwhy.targets import Ask, TargetError
from gpuwhy.targets.local import LocalTarget
from gpuwhy.targets.pipe import BOOTSTRAP, INTERPRETERS, NO_PYTHON, REMOTE_COMMAND, SHELL_LINE, PipeConnection


def explain(status: int | None, errors: str) -> TargetError:
    return TargetError(f"status {status}: {errors.strip()}")


def connect(text: str) -> PipeConnection:
    return PipeConnection([sys.executable, "-I", "-S", "-c", BOOTSTRAP], text, explain)


def collect(connection: PipeConnection, deadline: float = 5.0) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    results: list[dict[str, Any]] = []
    try:
        end = connection.collect({"probes": ["memory"]}, results.append, deadline)
    finally:
        connection.close()
    return results, end


def test_one_connection_carries_the_collection_and_then_requests(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    connection = LocalTarget().open(program())
    results: list[dict[str, Any]] = []
    end = connection.collect({"probes": ["memory", "container"]}, results.append, 60.0)
    assert {"memory", "container"} <= {result["probe"] for result in results}
    assert end["python"]
    replies = connection.ask(
        [Ask("read", str(tmp_path / "a.py"), 2, 2), Ask("list", str(tmp_path)), Ask("read", "/etc/shadow")]
    )
    assert [reply.status for reply in replies] == ["ok", "ok", "denied"]
    assert replies[0].value["lines"] == ["two"]
    connection.close()
    connection.close()
    assert connection.ask([Ask("stat", "/")])[0].status == "failed"


def test_results_come_one_by_one_and_those_before_a_loss_stay() -> None:
    results, end = collect(connect('import os\nprint(\'{"probe":"memory","status":"ok"}\', flush=True)\nos._exit(3)'))
    assert [result["probe"] for result in results] == ["memory"]
    assert end == {}


def test_banners_and_nonsense_between_the_answers_are_passed_over() -> None:
    lines = [
        "Welcome to gpu-host!",
        "[1, 2]",
        "{",
        "null",
        "\\x1b[31m",
        '{"probe": 5}',
        '{"probe":"memory"}',
        '{"end":{"python":"3.6"}}',
    ]
    results, end = collect(connect(f"for line in {lines!r}: print(line, flush=True)"))
    assert [result["probe"] for result in results] == ["memory"]
    assert end == {"python": "3.6"}


def test_a_program_that_dies_at_once_is_explained_by_its_last_words() -> None:
    with pytest.raises(TargetError, match="status 3: so sorry"):
        collect(connect("import sys\nprint('so sorry', file=sys.stderr)\nsys.exit(3)"))


def test_a_program_that_says_nothing_is_given_up_and_ended() -> None:
    connection = connect("import time\ntime.sleep(600)")
    started = time.monotonic()
    with pytest.raises(TargetError):
        collect(connection, deadline=0.3)
    assert time.monotonic() - started < 6 * BUSY
    assert connection._process.poll() is not None


def random_text(size: int) -> str:
    """Text that compressing makes little shorter."""
    return "".join(random.Random(7).choices(string.printable, k=size))


def test_a_program_that_never_reads_does_not_block_us() -> None:
    connection = PipeConnection(
        [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"], random_text(1_000_000), explain
    )
    started = time.monotonic()
    with pytest.raises(TargetError):
        collect(connection, deadline=0.3)
    assert time.monotonic() - started < 6 * BUSY


def test_a_command_that_does_not_exist_is_an_error_in_words() -> None:
    with pytest.raises(TargetError, match="could not be started"):
        PipeConnection(["/nowhere/ssh"], "x", explain)


def test_the_remote_command_means_the_same_to_every_login_shell() -> None:
    inner = REMOTE_COMMAND.removeprefix("exec sh -c '").removesuffix("'")
    assert inner == SHELL_LINE
    assert not set(inner) & set("'\\!\n")


SHELLS = ("sh", "bash", "dash", "zsh", "fish", "tcsh", "csh", "ksh", "mksh")


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
def test_every_login_shell_at_hand_starts_the_program(shell: str) -> None:
    connection = PipeConnection([shell, "-c", REMOTE_COMMAND], program(), explain)
    results, end = collect(connection, 60.0)
    assert end
    assert "memory" in {result["probe"] for result in results}


def test_a_host_without_python_says_so(tmp_path: Path) -> None:
    line = SHELL_LINE.replace(" ".join(INTERPRETERS), "/nowhere/python3 python3")
    assert line != SHELL_LINE
    done = subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, text=True, check=False, env={"PATH": str(tmp_path)}
    )
    assert (done.returncode, done.stderr.strip()) == (127, NO_PYTHON)
