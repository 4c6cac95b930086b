"""Services that run and do not get on, on a real host: by process over ssh, and by unit when it is silent.

The locks are the real filelock's and the real torch's; the host has no py-spy, so that all is told from /proc.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collector import live_processes as live
from tests.lab.conftest import MOUNTS
from tests.lab.examine import diagnose_inside, diagnose_over_ssh
from tests.lab.gpu_host import LAB, GpuHost, booted, wait_for
from tests.patience import until

from gpuwhy.collector import hangs as collector
from gpuwhy.investigate import examine, hangs
from gpuwhy.investigate.hang_lines import log_of
from gpuwhy.investigate.hang_states import waiting_of
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.hang import Waiting
from gpuwhy.snapshot.hangs import observation_of
from gpuwhy.targets import parse_where

pytestmark = pytest.mark.lab

PYTHON = "/opt/sglang/bin/python"
LOCK = "/root/.cache/flashinfer/0.6.18.post1/120a/cached_ops/tmp/sampling.lock"
BATON = "/root/.cache/torch_extensions/py311_cu128/fused/lock"

HOLDER = """
import fcntl, os, signal, sys, time
os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(file, fcntl.LOCK_EX)
os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(600)
"""

WAITER = "import sys; from filelock import FileLock; open('/run/waits', 'w'); FileLock(sys.argv[1], thread_local=False).acquire()\n"

BATON_WAITER = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("file_baton", "/opt/sglang/lib/python3.11/site-packages/torch/utils/file_baton.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.FileBaton(sys.argv[1]).wait()
"""

MEETING = "import socket, os; socket.create_connection((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])))\n"

SERVER = "import http.server; http.server.HTTPServer(('127.0.0.1', 30000), http.server.SimpleHTTPRequestHandler).serve_forever()\n"


@pytest.fixture(scope="module")
def host() -> Iterator[GpuHost]:
    with booted("lab-hangs", MOUNTS) as host:
        programs = {"holder": HOLDER, "waiter": WAITER, "baton": BATON_WAITER, "meeting": MEETING, "server": SERVER}
        for name, program in programs.items():
            host.write(f"/opt/hangs/{name}.py", program)
        yield host


def start(host: GpuHost, unit: str, program: str, *arguments: str, **variables: str) -> int:
    """Starts a program as a unit of its own; its process number in the host."""
    settings = " ".join(f"--setenv={name}={value}" for name, value in {"HOME": "/root", **variables}.items())
    host.run(f"systemd-run --quiet --unit={unit} {settings} {PYTHON} /opt/hangs/{program}.py {' '.join(arguments)}")
    return int(host.show(unit, "MainPID")["MainPID"])


def state_of(host: GpuHost, pid: int) -> str:
    return host.run(f"cat /proc/{pid}/stat").stdout.rpartition(")")[2].split()[0]


@pytest.fixture(scope="module")
def held(host: GpuHost) -> tuple[int, int]:
    """The holder of a lock of FlashInfer's cache, stopped, and a service that waits for it."""
    holder = start(host, "holder.service", "holder", LOCK)
    wait_for(lambda: state_of(host, holder) == "T", 20, "the holder is stopped")
    waiter = start(host, "vllm.service", "waiter", LOCK)
    wait_for(lambda: host.run("test -e /run/waits", check=False).returncode == 0, 20, "the waiter waits")
    return holder, waiter


def test_a_service_behind_a_held_lock_by_its_process_over_ssh(host: GpuHost, held: tuple[int, int]) -> None:
    holder, waiter = held
    examined = diagnose_over_ssh(host, "--pid", str(waiter))
    waiting = examined.document["waiting"]
    assert examined.status == 1
    assert (waiting["state"], waiting["what"]) == ("stuck", "lock")
    assert f"waits for the lock file {LOCK}, held by process {holder}" in waiting["headline"]
    assert any("py-spy is not on this target" in remark for remark in waiting["remarks"])
    assert (examined.first["cause"], examined.first["component"]) == ("jit-cache-stale", "flashinfer")
    # systemd-nspawn lets nobody use fanotify: that somebody opens the lock is seen, and not who
    assert examined.first["certainty"] == "likely"
    assert any(f"kill -CONT {holder}" in command for command in examined.first["remedies"][0]["commands"])
    assert examined.document["incident"]["unit"] == "vllm.service", "the process' unit is found by its group"


def test_the_same_inside_and_nothing_was_changed(host: GpuHost, held: tuple[int, int]) -> None:
    holder, waiter = held
    before = host.run(f"stat -c '%i %s %Y %Z' {LOCK}").stdout
    inside = diagnose_inside(host, "--pid", str(waiter))
    assert inside.first["cause"] == "jit-cache-stale"
    assert host.run(f"stat -c '%i %s %Y %Z' {LOCK}").stdout == before
    assert (state_of(host, holder), state_of(host, waiter)) == ("T", "S")


def examined_unit(host: GpuHost, unit: str, monkeypatch: pytest.MonkeyPatch, silent: float) -> Diagnosis:
    monkeypatch.setenv("GPUWHY_SSH_OPTIONS", host.ssh_options)
    monkeypatch.setattr(hangs, "SILENT", silent)
    return examine(parse_where(host.ssh_destination), unit=unit).diagnosis


def test_a_unit_that_is_active_and_silent_is_looked_at(
    host: GpuHost, held: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    diagnosis = examined_unit(host, "vllm.service", monkeypatch, 0.5)
    assert diagnosis.waiting is not None
    assert diagnosis.waiting.what == "lock"
    assert diagnosis.findings[0].cause == "jit-cache-stale"


def test_a_unit_that_has_just_written_is_not_looked_at(
    host: GpuHost, held: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    diagnosis = examined_unit(host, "vllm.service", monkeypatch, 3600.0)
    assert diagnosis.waiting is None
    assert not diagnosis.incident.is_failure
    assert not any("wait for" in step.question for step in diagnosis.investigation.steps)


def test_a_baton_that_torch_left_behind(host: GpuHost) -> None:
    host.run(f"mkdir -p $(dirname {BATON}) && touch {BATON}")
    waiter = start(host, "sglang-jit.service", "baton", BATON)
    wait_for(lambda: state_of(host, waiter) == "S", 20, "the waiter sleeps")
    document = diagnose_over_ssh(host, "--pid", str(waiter)).document
    assert f"waits for the lock file {BATON}, that nobody holds" in document["waiting"]["headline"]
    finding = document["findings"][0]
    # without a Python stack nothing shows that it is this file it waits for
    assert (finding["cause"], finding["component"], finding["certainty"]) == ("jit-cache-stale", "torch", "likely")


def test_a_meeting_point_that_never_answers(host: GpuHost) -> None:
    # an interface behind which there is nobody: what is sent is neither answered nor refused
    host.run(
        "ip link add lab0 type veth peer name lab1 && ip addr add 10.99.0.1/24 dev lab0 && ip link set lab0 up && ip link set lab1 up"
    )
    host.run("ip neigh add 10.99.0.2 lladdr 02:00:00:00:00:02 dev lab0")
    pid = start(host, "rank1.service", "meeting", MASTER_ADDR="10.99.0.2", MASTER_PORT="29500")
    wait_for(lambda: "SYN-SENT" in host.run("ss -tan").stdout, 20, "it connects")
    document = diagnose_over_ssh(host, "--pid", str(pid)).document
    assert (document["waiting"]["state"], document["waiting"]["what"]) == ("stuck", "peer")
    assert "10.99.0.2:29500, which does not answer" in document["waiting"]["headline"]
    finding = document["findings"][0]
    assert (finding["cause"], finding["certainty"]) == ("bootstrap-network", "likely")


def test_a_silent_server_without_work_is_no_failure(host: GpuHost, monkeypatch: pytest.MonkeyPatch) -> None:
    start(host, "server.service", "server")
    wait_for(lambda: ":30000" in host.run("ss -tln").stdout, 20, "it listens")
    time.sleep(0.6)  # it is silent for longer than that from here on
    diagnosis = examined_unit(host, "server.service", monkeypatch, 0.5)
    assert diagnosis.waiting is not None
    assert (diagnosis.waiting.state, diagnosis.waiting.what) == ("idle", "requests")
    assert not diagnosis.incident.is_failure
    assert not diagnosis.findings


def test_from_outside_the_container_that_it_runs_in(host: GpuHost, held: tuple[int, int]) -> None:
    """The machine that runs the host sees its processes under other numbers, and their files in another root."""
    holder, waiter = (host.outer_pid(pid) for pid in held)
    diagnosis = examine(parse_where("local"), pid=waiter).diagnosis
    assert diagnosis.waiting is not None
    assert diagnosis.waiting.what == "lock"
    assert f"waits for the lock file {LOCK}, held by process {holder}" in diagnosis.waiting.headline
    finding = diagnosis.findings[0]
    # here fanotify is allowed: the kernel tells who opens the lock
    assert (finding.cause, finding.certainty.value) == ("jit-cache-stale", "proven")


def test_an_ordinary_user_is_told_what_is_not_shown_to_him(host: GpuHost, held: tuple[int, int]) -> None:
    _, waiter = held
    as_nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups env PYTHONPATH=/opt/gpuwhy-source HOME=/tmp /opt/gpuwhy/bin/python"
    done = host.run(f"{as_nobody} -m gpuwhy diagnose local --pid {waiter} --format json", check=False)
    waiting = json.loads(done.stdout)["waiting"]
    assert waiting["state"] == "unclear", "what holds it up is in files that he may not look into"
    assert f"the open files, memory and system calls of process {waiter} are only for its user and for root" in waiting["remarks"]  # fmt: skip


RANK = """
import sys, time, datetime, torch, torch.distributed as distributed
limit = datetime.timedelta(seconds=600)
distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{sys.argv[2]}", world_size=2, rank=int(sys.argv[1]), timeout=limit)
print("met", flush=True)
if sys.argv[1] == "1":
    distributed.all_reduce(torch.ones(4))
time.sleep(600)
"""


def test_real_ranks_of_torch_that_wait_for_each_other(tmp_path: Path) -> None:
    """On the machine itself: py-spy stands beside the Python of these tests."""
    seed_python = str(LAB / "seed/bin/python")
    script = tmp_path / "hang_rank.py"
    script.write_text(RANK)
    environment = {"GLOO_SOCKET_IFNAME": "lo", "PYTHONUNBUFFERED": "1"}
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = str(unused.getsockname()[1])
    with live.running(seed_python, str(script), "0", port, environment=environment) as first:
        until(lambda: "other ranks" in told(first.pid).headline)
        alone = told(first.pid)
        with live.running(seed_python, str(script), "1", port, environment=environment) as second:
            assert first.stdout is not None
            assert first.stdout.readline() == "met\n"
            until(lambda: "all_reduce" in told(second.pid).headline)
            reducing = examine(parse_where("local"), pid=second.pid).diagnosis
    assert (alone.state, alone.what) == ("stuck", "peer")
    assert "waits for the other ranks to come (in _create_c10d_store, rendezvous.py:" in alone.headline
    assert f"it listens on port {port}" in alone.headline
    assert reducing.waiting is not None
    assert (reducing.waiting.state, reducing.waiting.what) == ("stuck", "collective")
    assert any(f"process {first.pid} (python " in each.quote for each in reducing.waiting.evidence), "the other rank"
    assert not reducing.findings, "no GPU takes part, and nothing says why the other rank does not come"


def told(pid: int) -> Waiting:
    """What a process of this machine waits for, without the other questions."""
    seen = observation_of(json.loads(json.dumps(collector.look(pid))))
    assert seen is not None
    return waiting_of(seen, log_of(seen, None))
