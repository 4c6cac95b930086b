"""What live processes wait for, told apart: locks left and held, slow builds, slow weights, dead peers, spinning GPUs."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.collector import live_processes as live
from tests.patience import until

from gpuwhy.collector import hangs as collector
from gpuwhy.investigate import examine, hangs
from gpuwhy.investigate.hang_lines import amount_of, duration, log_of, named
from gpuwhy.investigate.hang_states import waiting_of
from gpuwhy.investigate.record import Record
from gpuwhy.model.event import Log, LogLine
from gpuwhy.model.fact import Facts
from gpuwhy.model.finding import Certainty
from gpuwhy.model.hang import Observation, Waiting
from gpuwhy.model.incident import Incident
from gpuwhy.remedies import prescribe
from gpuwhy.reports import Detail
from gpuwhy.reports.writing import render
from gpuwhy.snapshot import encode
from gpuwhy.snapshot.hangs import observation_of
from gpuwhy.targets import HostTarget, TargetError, parse_where


def local() -> HostTarget:
    target = parse_where("local")
    assert isinstance(target, HostTarget)
    return target


def seen_of(pid: int) -> Observation:
    """What the collector sees, through JSON as it travels."""
    observation = observation_of(json.loads(json.dumps(collector.look(pid))))
    assert observation is not None
    return observation


def waiting(seen: Observation) -> Waiting:
    return waiting_of(seen, log_of(seen, 1000.0))


def observed(**parts: Any) -> Observation:
    """An observation as the collector writes it, of a process that sleeps; ``parts`` in place of what it saw."""
    process = {"pid": 7, "name": "python", "command": ["python", "serve.py"], "state": "S", "age": 400.0, "own": True}
    return msgspec.convert({"pid": 7, "processes": [process], **parts}, Observation)


def test_a_lock_of_a_stopped_process(tmp_path: Path) -> None:
    lock = live.flashinfer_lock(tmp_path)
    program = live.waiter_of_filelock(tmp_path, lock)
    with (
        live.python(live.HOLDER, str(lock)) as holder,
        live.python(program, environment={"HOME": str(tmp_path)}) as pid,
    ):
        live.stop(holder)
        found = waiting(seen_of(pid))
    assert (found.state, found.what, found.pid) == ("stuck", "lock", pid)
    assert f"{lock}, held by process {holder} (python -c " in found.headline
    assert "which is stopped" in found.headline
    assert found.since is not None
    assert found.since_is == "at most"


def test_a_lock_whose_holder_compiles_is_no_hang(tmp_path: Path) -> None:
    lock = live.flashinfer_lock(tmp_path)
    compiler = tmp_path / "bin/cicc"
    compiler.parent.mkdir()
    shutil.copy(shutil.which("sleep") or "/bin/sleep", compiler)
    builder = live.HOLDER.replace("time.sleep(600)", f"import subprocess; subprocess.call([{str(compiler)!r}, '600'])")
    program = live.waiter_of_filelock(tmp_path, lock)
    with live.python(builder, str(lock)) as holder, live.python(program, environment={"HOME": str(tmp_path)}) as pid:
        until(lambda: seen_of(pid).compilers)
        found = waiting(seen_of(pid))
    assert (found.state, found.what) == ("progressing", "lock")
    assert f"held by process {holder}" in found.headline
    assert "which compiles (cicc)" in found.headline


def test_a_baton_that_a_killed_build_left_behind(tmp_path: Path) -> None:
    lock = tmp_path / "torch_extensions/py311_cu128/fused/lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    environment = {"TORCH_EXTENSIONS_DIR": str(tmp_path / "torch_extensions")}
    with live.python(live.waiter_of_baton(tmp_path, lock), environment=environment) as pid:
        found = waiting(seen_of(pid))
    assert (found.state, found.what) == ("stuck", "lock")
    assert str(lock) in found.headline
    assert "that nobody holds" in found.headline
    assert any("file_baton.py" in frame for frame in found.stack)


def polling(wakes: int = 10, **of_lock: Any) -> Waiting:
    """A process that sleeps by the clock some times a second, and a lock of its cache that a stopped process holds."""
    thread = {"tid": 7, "state": "S", "call": "clock_nanosleep"}
    process = {
        "pid": 7,
        "command": ["python", "serve.py"],
        "state": "S",
        "own": True,
        "wakes": wakes,
        "threads": [thread],
    }
    holder = {"pid": 5, "command": ["python", "build.py"], "state": "T"}
    lock = {"path": "/c/sampling.lock", "kind": "flock", "holders": [holder], **of_lock}
    return waiting(observed(processes=[process], locks=[lock]))


def test_a_lock_that_another_process_wants_is_not_what_this_one_waits_for() -> None:
    assert polling(is_tried=True, openers=[99]).what == "unknown"
    assert polling(waiters=[99]).what == "unknown"
    assert polling().what == "unknown"
    assert polling(is_tried=True, openers=[7]).headline.startswith("process 7 (python serve.py) waits for the lock")
    assert "most likely waits" in polling(wakes=19, is_tried=True).headline, "who opens it was not told"
    assert polling(wakes=10, is_tried=True).what == "unknown", "filelock tries twenty times a second"


def test_a_baton_is_only_claimed_where_the_polling_fits() -> None:
    left: dict[str, Any] = {"kind": "baton", "path": "/c/lock", "holders": []}
    assert polling(**left).what == "lock"
    thread = {"tid": 7, "state": "S", "call": "clock_nanosleep"}
    process = {"pid": 7, "command": ["python", "serve.py"], "state": "S", "own": True, "wakes": 1, "threads": [thread]}
    assert waiting(observed(processes=[process], locks=[left])).what == "unknown"


def test_a_real_compilation_that_computes_is_progress(tmp_path: Path) -> None:
    # many templates keep a real cc1plus busy for longer than the look takes
    deep = "template<int N> struct F { static const int v = (F<N-1>::v + F<N-2>::v + N) % 1000; };\n"
    deep += "template<> struct F<0> { static const int v = 0; };\ntemplate<> struct F<1> { static const int v = 1; };\n"
    body = "\n".join(f"template<int N> struct G{n} {{ int a[(F<N>::v % 7) + 1]; }}; G{n}<{800 - n % 50}> g{n};" for n in range(40_000))  # fmt: skip
    (tmp_path / "slow.cpp").write_text(deep + body + "\nint main() {}\n")
    program = "import subprocess, sys; p = subprocess.Popen(sys.argv[1:]); print('ready', flush=True); p.wait()"
    with live.python(program, "g++", "-O2", "-c", str(tmp_path / "slow.cpp"), "-o", str(tmp_path / "slow.o")) as pid:
        until(lambda: any(each.tool == "cc1plus" for each in seen_of(pid).compilers))
        found = waiting(seen_of(pid))
    assert (found.state, found.what) == ("progressing", "compiling")
    assert "cc1plus" in found.headline


def test_a_compiler_that_never_uses_the_cpu_is_not_called_progress(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "never.h")
    (tmp_path / "kernel.cpp").write_text('#include "never.h"\n')
    program = "import subprocess, sys; p = subprocess.Popen(sys.argv[1:]); print('ready', flush=True); p.wait()"
    with live.python(program, "g++", "-c", str(tmp_path / "kernel.cpp")) as pid:
        until(lambda: any(each.tool == "cc1plus" for each in seen_of(pid).compilers))
        found = waiting(seen_of(pid))
    assert (found.state, found.what) == ("unclear", "compiling")
    assert "none of them used the CPU" in found.headline


def test_how_far_a_build_is_and_that_it_gets_on() -> None:
    ninja = {"pid": 8, "tool": "ninja", "age": 70.0, "state": "S", "build": {"folder": "/c", "steps": 9, "finished": 3, "last_finished": 4.0}}  # fmt: skip
    seen = observed(
        processes=[
            {"pid": 7, "command": ["python", "serve.py"], "state": "S", "age": 100.0, "own": True},
            {"pid": 8, "parent": 7, "state": "S", "own": True},
            {"pid": 9, "parent": 8, "state": "R", "cpu_used": 0.97, "own": True},
        ],
        compilers=[ninja, {"pid": 9, "tool": "cicc", "age": 60.0, "cpu": 58.0, "state": "R"}],
    )
    found = waiting(seen)
    assert (found.state, found.since, found.since_is) == ("progressing", 70.0, "at least")
    assert "3 of 9 steps finished" in found.headline
    assert "cicc (58 s of CPU)" in found.headline


def test_weights_that_are_read_slowly_are_progress_with_rate_and_rest(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"model-0000{number}-of-00002.safetensors").write_bytes(b"\0" * (200 << 20))
    with live.python(live.READING, str(tmp_path / "model-00001-of-00002.safetensors")) as pid:
        found = waiting(seen_of(pid))
    assert (found.state, found.what) == ("progressing", "loading")
    assert "file 1 of 2" in found.headline
    assert "MiB a second" in found.headline
    assert "left at this rate" in found.headline


def test_a_peer_that_accepts_and_never_answers_is_named() -> None:
    answers_never = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print('ready', flush=True); print(s.getsockname()[1], flush=True); c = s.accept(); time.sleep(600)"  # fmt: skip
    asking = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); print('ready', flush=True); s.recv(10)"
    with live.running("python3", "-c", answers_never) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        port = server.stdout.readline().strip()
        with live.python(asking, port) as pid:
            alive = waiting(seen_of(pid))
            live.stop(server.pid)
            stopped = waiting(seen_of(pid))
    assert (alive.state, alive.what) == ("stuck", "peer")
    assert f"127.0.0.1:{port}, where process {server.pid}" in alive.headline
    assert "does not answer" in alive.headline
    assert "is stopped" in stopped.headline


def test_an_idle_server_is_not_stuck() -> None:
    serving = "import asyncio\nasync def main():\n    s = await asyncio.start_server(lambda r, w: None, '127.0.0.1', 0)\n    print('ready', flush=True)\n    await s.serve_forever()\nasyncio.run(main())\n"  # fmt: skip
    with live.python(serving) as pid:
        found = waiting(seen_of(pid))
    assert (found.state, found.what) == ("idle", "requests")


@pytest.mark.parametrize(
    ("call", "state"), [("epoll_wait", "idle"), ("futex", "unclear"), ("clock_nanosleep", "unclear")]
)
def test_what_listens_is_only_called_idle_in_the_call_of_an_event_loop(call: str, state: str) -> None:
    """A rank that waits for the others listens too."""
    thread = {"tid": 7, "state": "S", "call": call}
    process = {"pid": 7, "command": ["python", "serve.py"], "state": "S", "own": True, "threads": [thread]}
    listening = {"pid": 7, "inode": 4, "state": "LISTEN", "local": "0.0.0.0:29500", "peer": "0.0.0.0:0"}
    assert waiting(observed(processes=[process], connections=[listening])).state == state


def test_a_word_in_the_path_of_a_frame_is_no_sign() -> None:
    frames = [
        {"function": "all_reduce", "path": "/v/torch/distributed/distributed_c10d.py", "line": 3252},
        {"function": "<module>", "path": "/srv/hang/NCCL/deadlock_100%_GPU1.py", "line": 8},
    ]
    seen = observed(stacks=[{"pid": 7, "threads": [{"tid": 7, "name": "MainThread", "frames": frames}]}])
    log = log_of(seen, 1000.0)
    look = hangs.Look(seen, log, waiting_of(seen, log), 600.0)
    diagnosis = hangs.concluded("local", look, Incident(logs=(), events=(), is_failure=False), Facts(), Record(), [])
    assert diagnosis.waiting is not None
    assert (diagnosis.waiting.state, diagnosis.waiting.what) == ("stuck", "collective")
    assert not diagnosis.findings
    assert diagnosis.incident.is_failure


def test_a_server_that_does_not_accept_its_callers_is_stuck() -> None:
    deaf = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print('ready', flush=True); print(s.getsockname()[1], flush=True); time.sleep(600)"  # fmt: skip
    with live.running("python3", "-c", deaf) as server:
        assert server.stdout is not None
        server.stdout.readline()
        with socket.create_connection(("127.0.0.1", int(server.stdout.readline()))):
            found = waiting(seen_of(server.pid))
    assert (found.state, found.what) == ("stuck", "callers")
    assert "1 connections to 127.0.0.1" in found.headline


def test_a_thread_that_spins_does_not_wait() -> None:
    with live.python(live.SPINNING) as pid:
        until(lambda: waiting(seen_of(pid)).stack)
        found = waiting(seen_of(pid))
    assert (found.state, found.what) == ("unclear", "computing")
    assert "computes in circle" in found.headline


def test_a_stopped_process() -> None:
    with live.python("import time; print('ready', flush=True); time.sleep(600)") as pid:
        live.stop(pid)
        found = waiting(seen_of(pid))
    assert (found.state, found.what) == ("stuck", "stopped")


def gpu(
    index: int, used: int = 100, memory: int = 0, power: float = 180.0, pids: tuple[int, ...] = (7,)
) -> dict[str, Any]:
    """A GPU as NVML tells of it; there is none on this machine."""
    return {"index": index, "gpu": [used] * 4, "memory": [memory] * 4, "power": [power] * 4, "power_limit": 700.0, "pids": list(pids), "own": 7 in pids}  # fmt: skip


def test_gpus_that_wait_for_each_other() -> None:
    found = waiting(observed(gpus=[gpu(0), gpu(1), gpu(2, pids=(99,))]))
    assert (found.state, found.what) == ("stuck", "collective")
    assert "GPU0, GPU1 wait for each other" in found.headline


def test_the_rank_that_does_not_take_part_is_named() -> None:
    found = waiting(observed(gpus=[gpu(0), gpu(1), gpu(2, used=0, power=90.0)]))
    assert "GPU2 of the same process does not take part" in found.headline


@pytest.mark.parametrize("busy", [gpu(1, memory=45), gpu(1, power=690.0), gpu(1, used=60)])
def test_gpus_that_work_are_no_hang(busy: dict[str, Any]) -> None:
    found = waiting(observed(gpus=[{**busy, "index": 0}, busy]))
    assert (found.state, found.what) == ("progressing", "computing")


def test_storage_that_does_not_answer() -> None:
    thread = {
        "tid": 7,
        "state": "D",
        "wchan": "rpc_wait_bit_killable",
        "call": "read",
        "on": "/mnt/models/w.safetensors",
    }
    process = {"pid": 7, "command": ["python", "serve.py"], "state": "D", "age": 90.0, "threads": [thread], "own": True}
    found = waiting(observed(processes=[process]))
    assert (found.state, found.what) == ("stuck", "kernel")
    assert (
        "a network file system (rpc_wait_bit_killable), on /mnt/models/w.safetensors; for at most 1 min 30 s"
        in found.headline
    )


def test_a_meeting_point_that_does_not_answer_is_told_with_how_long_at_least() -> None:
    connection = {
        "pid": 7,
        "inode": 5,
        "state": "SYN_SENT",
        "local": "10.0.0.1:4000",
        "peer": "10.0.0.2:29500",
        "retransmits": 5,
    }
    found = waiting(observed(connections=[connection]))
    assert (found.state, found.what, found.since, found.since_is) == ("stuck", "peer", 31.0, "at least")


def test_what_is_not_shaped_as_the_collector_writes_it_is_no_observation() -> None:
    values: list[Any] = [None, [], {}, {"pid": 7, "processes": []}, {"pid": "x", "processes": [{}]}, {"pid": 7, "processes": [{"pid": 7, "threads": 3}]}]  # fmt: skip
    for value in values:
        assert observation_of(value) is None


def test_durations_amounts_and_names_are_for_people() -> None:
    assert [duration(s) for s in (0, 45, 412, 3600, 7380, 200_000, 400_000)] == ["0 s", "45 s", "6 min 52 s", "1 h", "2 h 3 min", "2 d 7 h", "4 d 15 h"]  # fmt: skip
    assert [amount_of(n) for n in (0, 65536, 3 << 29)] == ["0 bytes", "64.0 KiB", "1.5 GiB"]
    assert (
        named(["/opt/venv/bin/python", "-m", "sglang.launch_server", "--tp", "8"]) == "python -m sglang.launch_server"
    )
    assert named([], "kworker") == "kworker"


def test_the_whole_diagnosis_of_a_held_lock_and_again_from_its_snapshot(tmp_path: Path) -> None:
    lock = live.flashinfer_lock(tmp_path)
    program = live.waiter_of_filelock(tmp_path, lock)
    with (
        live.python(live.HOLDER, str(lock)) as holder,
        live.python(program, environment={"HOME": str(tmp_path)}) as pid,
    ):
        live.stop(holder)
        examination = examine(local(), pid=pid)
    diagnosis = examination.diagnosis
    (finding,) = diagnosis.findings
    assert (finding.cause, finding.component, finding.certainty) == ("jit-cache-stale", "flashinfer", Certainty.PROVEN)
    assert any(f"kill -CONT {holder}" in command for remedy in prescribe(diagnosis).findings[0].remedies for command in remedy.commands)  # fmt: skip
    text = render(prescribe(diagnosis), "text", Detail())
    assert str(lock) in " ".join(text.split("\n")[:4])
    document = json.loads(render(diagnosis, "json", Detail()))
    assert (document["waiting"]["state"], document["waiting"]["what"]) == ("stuck", "lock")
    assert examination.snapshot is not None
    file = tmp_path / "host.gpuwhy"
    file.write_bytes(encode(examination.snapshot))
    again = examine(parse_where(str(file))).diagnosis
    assert again.waiting == diagnosis.waiting
    assert again.findings == diagnosis.findings


def test_a_process_that_gets_on_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(b"\0" * (300 << 20))
    with live.python(live.READING, str(tmp_path / "model-00001-of-00002.safetensors")) as pid:
        diagnosis = examine(local(), pid=pid).diagnosis
    assert not diagnosis.findings
    assert not diagnosis.incident.is_failure
    assert diagnosis.waiting is not None
    assert diagnosis.waiting.what == "loading"


def test_a_process_that_is_not_there_is_said_so() -> None:
    with pytest.raises(TargetError, match="there is no process 4194303"):
        examine(local(), pid=4194303)


def test_a_collective_that_never_ends_is_seen_by_nvml_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real reader of NVML, in a process of its own, over a STAND-IN for libnvidia-ml: there is no GPU here."""
    package = tmp_path / "site-packages/torch/distributed"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package.parent / "__init__.py").touch()
    (package / "distributed_c10d.py").write_text(
        "import time\ndef all_reduce():\n    print('ready', flush=True)\n    while True:\n        time.sleep(1)\n"
    )
    program = f"import sys; sys.path.insert(0, {str(package.parents[1])!r})\nfrom torch.distributed.distributed_c10d import all_reduce\nall_reduce()\n"  # fmt: skip
    source = Path(__file__).parents[1] / "lab/stand_ins/nvml.c"
    with live.python(program) as pid:
        library = tmp_path / "libnvidia-ml.so.1"
        flags = ["-DSPINNING", f"-DOWNER={pid}", "-shared", "-fPIC", "-w"]
        subprocess.run(["gcc", *flags, "-o", str(library), str(source)], check=True)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        until(lambda: seen_of(pid).stacks[0].threads)
        diagnosis = examine(local(), pid=pid).diagnosis
    found = diagnosis.waiting
    assert found is not None
    assert (found.state, found.what) == ("stuck", "collective")
    assert (
        "GPU0, GPU1 wait for each other in a collective operation (in all_reduce, distributed_c10d.py:"
        in found.headline
    )
    first = diagnosis.findings[0]
    # whether traffic between the GPUs is lost, or a rank elsewhere is: nobody can know without a test
    assert (first.cause, first.certainty) == ("p2p-iommu", Certainty.POSSIBLE)
    assert diagnosis.decides is not None


def test_what_the_kernel_did_to_others_is_no_failure_of_a_process_without_a_unit() -> None:
    killed = "Memory cgroup out of memory: Killed process 99 (python3) total-vm:42kB, anon-rss:40kB"
    lost = "NVRM: Xid (PCI:0000:17:00): 79, pid=7, GPU has fallen off the bus."
    lines = [
        LogLine(number, text, text, time=time)
        for number, (time, text) in enumerate([(10.0, lost), (700.0, killed), (710.0, lost)], 1)
    ]
    log = Log("kernel log", "journal", tuple(lines))
    seen = observed()
    look = hangs.Look(seen, log_of(seen, 1000.0), waiting(seen), 600.0)
    (own,) = hangs.of_this_life([log], look, "")
    assert [line.text for line in own.lines] == [lost]
    (of_unit,) = hangs.of_this_life([log], look, "vllm.service")
    assert [line.text for line in of_unit.lines] == [killed, lost]
    assert hangs.of_this_life([log], None, "") == [log]
