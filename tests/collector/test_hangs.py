"""What is seen of real processes that wait: locks, compilers, files, connections, stacks. Nothing is sent to them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest
from tests.collector import live_processes as live
from tests.collector.conftest import collect
from tests.patience import BUSY, until

from gpuwhy.collector import hangs, hangs_compilers, hangs_locks, hangs_processes, hangs_sockets, hangs_stacks
from gpuwhy.collector.probing import Absent


def test_a_sleeping_process_shows_where_it_sleeps() -> None:
    with live.python("import time; print('ready', flush=True); time.sleep(600)") as pid:
        until(lambda: live.state(pid) == "S", "it sleeps")
        seen = hangs.look(pid)
    process = seen["processes"][0]
    assert process["pid"] == pid
    assert process["own"]
    assert process["state"] == "S"
    assert process["cpu_used"] < 0.1
    assert process["threads"][0]["call"] in ("clock_nanosleep", "select", "pselect6")


def test_a_thread_that_spins_is_told_by_its_cpu_time() -> None:
    with live.python(live.SPINNING) as pid:
        seen = hangs.look(pid)
    thread = seen["processes"][0]["threads"][0]
    assert thread["tid"] == pid
    assert thread["cpu_used"] > 0.2 / BUSY * seen["processes"][0]["seconds"]


def test_a_held_lock_of_a_cache_is_found_with_its_holder_and_its_waiter(tmp_path: Path) -> None:
    lock = live.flashinfer_lock(tmp_path)
    home = {"HOME": str(tmp_path)}
    program = live.waiter_of_filelock(tmp_path, lock)
    with live.python(live.HOLDER, str(lock)) as holder, live.python(program, environment=home) as waiter:
        live.stop(holder)
        seen = hangs.look(waiter)
    (found,) = seen["locks"]
    assert found["path"] == str(lock)
    assert found["kind"] == "flock"
    assert found["is_tried"]
    if os.geteuid() == 0:
        assert found["openers"] == [waiter], "the kernel tells root who opens it"
    assert [(each["pid"], each["state"], each["own"]) for each in found["holders"]] == [(holder, "T", False)]
    assert holder in [each["pid"] for each in seen["processes"]], "the holder is looked at too: does it get on?"


def test_a_process_that_blocks_in_the_kernel_for_a_lock_is_named(tmp_path: Path) -> None:
    lock = live.flashinfer_lock(tmp_path)
    blocking = "import fcntl, sys; f = open(sys.argv[1]); print('ready', flush=True); fcntl.flock(f, fcntl.LOCK_EX)"
    with live.python(live.HOLDER, str(lock)) as holder, live.python(blocking, str(lock)) as waiter:
        until(lambda: any(each.waits and each.pid == waiter for each in hangs_locks.read_kernel_locks()))
        seen = hangs.look(waiter)
    (found,) = seen["locks"]
    assert found["waiters"] == [waiter]
    assert [each["pid"] for each in found["holders"]] == [holder]
    assert seen["processes"][0]["threads"][0]["on"] == str(lock)


def test_a_baton_is_left_over_when_nobody_has_it_open(tmp_path: Path) -> None:
    folder = tmp_path / "torch_extensions/py311_cu128/fused"
    folder.mkdir(parents=True)
    lock = folder / "lock"
    lock.touch()
    program = live.waiter_of_baton(tmp_path, lock)
    with live.python(program, environment={"TORCH_EXTENSIONS_DIR": str(tmp_path / "torch_extensions")}) as waiter:
        (left,) = hangs.look(waiter)["locks"]
        builds = "import sys, time; f = open(sys.argv[1]); print('ready', flush=True); time.sleep(600)"
        with live.python(builds, str(lock)) as builder:
            (held,) = hangs.look(waiter)["locks"]
    assert (left["kind"], left["holders"]) == ("baton", [])
    assert [each["pid"] for each in held["holders"]] == [builder]


def test_lines_of_the_kernels_list_of_locks() -> None:
    text = (
        "1: FLOCK  ADVISORY  WRITE 77 fd:01:1311768 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 99 fd:01:1311768 0 EOF\n"
        "2: POSIX  ADVISORY  READ  12 00:1c:44 128 128\n3: LEASE  ACTIVE    READ  5 fd:01:9 0 EOF\ngarbage\n"
    )
    found = [(each.kind, each.pid, each.inode, each.waits) for each in hangs_locks.kernel_locks(text)]
    assert found == [("FLOCK", 77, 1311768, False), ("FLOCK", 99, 1311768, True), ("POSIX", 12, 44, False)]


def test_a_real_compiler_below_a_process_is_told_with_what_it_writes(tmp_path: Path) -> None:
    # the preprocessor waits for the pipe's writer: a real cc1plus that stays for as long as the test needs it
    pipe = tmp_path / "slow.h"
    os.mkfifo(pipe)
    (tmp_path / "kernel.cpp").write_text('#include "slow.h"\nint main() {}\n')
    compiler = shutil.which("g++") or "g++"
    program = "import subprocess, sys; p = subprocess.Popen(sys.argv[1:]); print('ready', flush=True); p.wait()"
    with live.python(program, compiler, "-c", str(tmp_path / "kernel.cpp"), "-o", str(tmp_path / "kernel.o")) as pid:
        until(lambda: "cc1plus" in [each["tool"] for each in hangs.look(pid)["compilers"]])
        seen = hangs.look(pid)
    tools = {each["tool"]: each for each in seen["compilers"]}
    driver = next(each for name, each in tools.items() if name != "cc1plus")
    assert driver["output"] == str(tmp_path / "kernel.o")
    assert tools["cc1plus"]["age"] >= 0
    assert tools["cc1plus"]["pid"] in [each["pid"] for each in seen["processes"]]


def test_the_progress_of_a_build_of_ninja(tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text(
        "rule cuda\n  command = nvcc\nbuild a.cuda.o: cuda a.cu\nbuild b.cuda.o: cuda $\n    b.cu\n"
        "build x.so: link a.cuda.o b.cuda.o\nbuild all: phony x.so\n"
    )
    (tmp_path / ".ninja_log").write_text("# ninja log v6\n0\t4100\t1764500000000000000\ta.cuda.o\tabc\n")
    (tmp_path / "a.cuda.o").touch()
    found = hangs_compilers.build_progress(os.getpid(), str(tmp_path))
    assert found is not None
    assert (found["steps"], found["finished"]) == (3, 1)
    assert found["last_finished"] < 60


@pytest.mark.parametrize(
    ("command", "executable", "tool"),
    [
        (["/usr/local/cuda/bin/nvcc", "-c", "x.cu"], "/usr/local/cuda-13.0/bin/nvcc", "nvcc"),
        (["/bin/sh", "/usr/local/cuda/bin/nvcc", "-c", "x.cu"], "/usr/bin/dash", "nvcc"),
        (["/opt/venv/bin/python", "/opt/venv/bin/ninja", "-v"], "/usr/bin/python3.11", "ninja"),
        (["cicc"], "/usr/local/cuda/nvvm/bin/cicc", "cicc"),
        (["/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus"], "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", "cc1plus"),
        (["python", "serve.py"], "/usr/bin/python3.11", ""),
        (["/bin/sh", "-c", "sleep 5"], "/usr/bin/dash", ""),
        ([], "", ""),
    ],
)
def test_compilers_are_known_by_their_program(command: list[str], executable: str, tool: str) -> None:
    assert hangs_compilers.tool_of(command, executable) == tool


def test_a_weight_file_that_is_read_shows_how_far(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"model-0000{number}-of-00002.safetensors").write_bytes(b"\0" * (40 << 20))
    with live.python(live.READING, str(tmp_path / "model-00002-of-00002.safetensors")) as pid:
        seen = hangs.look(pid)
    (file,) = seen["files"]
    assert (file["number"], file["count"]) == (2, 2)
    assert file["before"] == 40 << 20
    assert file["total"] == 80 << 20
    assert 0 < file["position"] <= 40 << 20
    assert seen["processes"][0]["rchar"] > 1 << 20


def test_a_connection_that_nobody_accepts_is_told_with_its_other_end() -> None:
    connecting = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); print('ready', flush=True); s.recv(10)"
    with socket.create_server(("127.0.0.1", 0)) as server, live.python(connecting, str(server.getsockname()[1])) as pid:
        seen = hangs.look(pid)
        port = server.getsockname()[1]
    (connection,) = seen["connections"]
    assert connection["state"] == "ESTABLISHED"
    assert connection["peer"] == f"127.0.0.1:{port}"
    assert connection["accepted"] is False
    assert connection["peer_process"]["pid"] == os.getpid()
    assert seen["processes"][0]["threads"][0]["on"] == f"socket:[{connection['inode']}]"


def test_rows_of_the_tables_of_sockets() -> None:
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    four = "   3: 0100007F:A1B2 0200000A:7337 02 00000001:00000000 01:00000064 00000003     0        0 4242 2 0\n"
    six = "   0: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 7 1 0\n"
    found, listening = hangs_sockets.rows(head + four)[0], hangs_sockets.rows(head + six)[0]
    assert (found.state, found.peer, found.retransmits, found.inode) == ("SYN_SENT", ("10.0.0.2", 29495), 3, 4242)
    assert (listening.state, listening.local, listening.unread) == ("LISTEN", ("127.0.0.1", 8080), 3)
    assert hangs_sockets.rows(head + "nonsense\n" + "x " * 20) == []


def test_the_stack_of_python_is_read_by_py_spy(tmp_path: Path) -> None:
    lock = live.flashinfer_lock(tmp_path)
    with live.python(live.HOLDER, str(lock)), live.python(live.waiter_of_filelock(tmp_path, lock)) as waiter:
        until(lambda: hangs.look(waiter)["stacks"][0].get("threads"))
        (stacks,) = hangs.look(waiter)["stacks"]
        assert live.state(waiter) == "S", "it was not stopped"
    frames = [(each["function"].rpartition(".")[2], Path(each["path"]).name) for each in stacks["threads"][0]["frames"]]
    assert ("acquire", "_unix.py") in frames
    assert stacks["threads"][0]["tid"] == waiter


def test_a_py_spy_that_any_other_user_could_have_written_is_not_run(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python").symlink_to(sys.executable)
    spy = folder / "py-spy"
    spy.write_text("#!/bin/sh\n")
    spy.chmod(0o755)
    program = "import time; print('ready', flush=True); time.sleep(600)"
    with live.running(str(folder / "python"), "-c", program) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert hangs_stacks.find(process.pid) is not None
        if os.geteuid() == 0:
            os.chown(spy, 65534, 65534)
            assert hangs_stacks.find(process.pid) != str(spy)


def test_what_py_spy_says_wrong_is_a_problem_and_no_stack(tmp_path: Path) -> None:
    spy = tmp_path / "py-spy"
    spy.write_text('#!/bin/sh\necho \'{"not": "a list of threads"}\'\n')
    spy.chmod(0o755)
    assert hangs_stacks.dump(os.getpid(), str(spy))["problem"]
    spy.write_text("#!/bin/sh\necho 'Permission denied (os error 13)' >&2; exit 1\n")
    assert hangs_stacks.dump(os.getpid(), str(spy))["problem"] == "Permission denied (os error 13)"


def test_children_are_looked_at_with_their_parent() -> None:
    program = "import subprocess; p = subprocess.Popen(['sleep', '600']); print('ready', flush=True); p.wait()"
    with live.python(program) as pid:
        seen = hangs.look(pid)
    assert [each["command"][0] for each in seen["processes"]][1:] == ["sleep"]
    assert seen["processes"][1]["parent"] == pid


def test_there_is_no_such_process() -> None:
    with pytest.raises(Absent, match="there is no process 4194303"):
        hangs.look(4194303)


def test_a_name_with_blanks_and_parentheses_does_not_shift_the_fields(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text(
        "7 (a) b (c) S 1 7 7 0 -1 4194560 10 0 3 0 150 50 0 0 20 0 1 0 12345 1000 10 18446744073709551615\n"
    )
    stat = hangs_processes.stat_of(str(tmp_path))
    assert stat is not None
    assert (stat.state, stat.parent, stat.cpu, stat.major_faults) == ("S", 1, 200 / hangs_processes.TICKS, 3)


def test_the_program_that_is_sent_answers_the_same_without_secrets_and_in_time() -> None:
    secret = "sk-proj-Zk3v9QpL7mXw2RtYb8NcUd5HsJ4gAfE1"
    program = "import time; print('ready', flush=True); time.sleep(600)"
    with live.python(program, "--api-key", secret) as pid:
        asks = json.dumps({"id": 1, "ask": "waiting", "path": f"/proc/{pid}"}) + "\n"
        asks += json.dumps({"id": 2, "ask": "waiting", "path": "/etc/shadow"}) + "\n"
        run = collect({"probes": ["system"]}, asks.encode())
    answers = {line["id"]: line for line in run.lines if "id" in line}
    assert answers[1]["status"] == "ok"
    assert answers[1]["value"]["processes"][0]["pid"] == pid
    assert secret not in run.raw
    assert answers[2]["status"] == "failed"
    assert run.seconds < 15 * BUSY
