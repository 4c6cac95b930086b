"""Services that no one names: of a user's own systemd, of supervisord, started by hand with nohup, logging to files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.gpu_host import GpuHost, booted, wait_for
from tests.lab.reaching import Run, add_account, as_account, gpuwhy

from gpuwhy import snapshot

pytestmark = pytest.mark.lab

CRASH = """\
Traceback (most recent call last):
  File "/srv/serve.py", line 12, in <module>
    engine = load(arguments)
  File "/srv/serve.py", line 8, in load
    raise RuntimeError("{0}: no kernel image is available for execution on the device")
RuntimeError: {0}: no kernel image is available for execution on the device
"""
PROGRAM = """\
import sys, time
print("INFO vllm serve: loading", flush=True)
time.sleep(float(sys.argv[2]))
print({text!r}.format(sys.argv[1]), flush=True)
sys.exit(3)
"""


@pytest.fixture(scope="module")
def host() -> Iterator[GpuHost]:
    with booted("lab-services") as found:
        add_account(found, "alice")
        found.write("/srv/vllm", "#!/usr/bin/python3\n" + PROGRAM.format(text=CRASH), "755")
        yield found


@pytest.fixture(scope="module")
def user_unit(host: GpuHost) -> str:
    """`vllm.service` of alice's own manager, failed."""
    unit = "[Service]\nExecStart=/srv/vllm of-alice 0\nEnvironment=HF_HOME=%h/models\n"
    host.write("/home/alice/.config/systemd/user/vllm.service", unit)
    host.run("chown -R alice /home/alice/.config")
    as_account(host, "alice", "systemctl --user daemon-reload")
    as_account(host, "alice", "systemctl --user start vllm")
    wait_for(lambda: "failed" in as_account(host, "alice", "systemctl --user is-failed vllm", check=False), 20, "it failed")  # fmt: skip
    return "user:alice/vllm.service"


@pytest.fixture(scope="module")
def program(host: GpuHost, user_unit: str) -> str:
    """A program of supervisord that gave up, after alice's unit had failed."""
    del user_unit
    section = "[program:lmdeploy]\ncommand=/srv/vllm of-supervisord 0\nstartretries=1\nstdout_logfile=/var/log/lmdeploy.log\nredirect_stderr=true\nenvironment=CUDA_HOME=\"/usr/local/cuda-12.8\"\n"  # fmt: skip
    host.write("/etc/supervisor/conf.d/lmdeploy.conf", section)
    host.run("systemctl start supervisor")
    wait_for(lambda: "FATAL" in host.run("supervisorctl status", check=False).stdout, 30, "supervisord gives up")
    return "supervisor:lmdeploy"


def primary_of(run: Run) -> str:
    """The first failure of the incident."""
    incident = run.document["incident"]
    return next(str(event) for event in incident["events"] if event["id"] == incident["primary"])


def test_a_unit_of_a_user_is_found_by_root_and_judged(host: GpuHost, user_unit: str) -> None:
    run = gpuwhy(host, "diagnose", "HOST", "--format", "json")
    assert run.status == 1, run.err
    assert "vllm.service was examined" in run.notes
    assert "of-alice" in run.out
    assert run.document["incident"]["unit"] == "vllm.service"
    named = gpuwhy(host, "diagnose", "HOST", "--unit", user_unit, "--format", "json")
    assert "of-alice" in named.out
    assert "systemctl --user" in named.out or not named.document["findings"][0].get("remedies")


def test_its_owner_finds_it_too(host: GpuHost, user_unit: str) -> None:
    del user_unit
    run = gpuwhy(host, "diagnose", "alice@HOST", "--format", "json")
    assert run.status == 1, run.err
    assert "vllm.service was examined" in run.notes
    assert "of-alice" in run.out


def test_a_user_s_unit_that_is_not_there_is_answered_with_those_that_are(host: GpuHost, user_unit: str) -> None:
    del user_unit
    run = gpuwhy(host, "diagnose", "HOST", "--unit", "user:alice/vlm")
    assert "the systemd manager of alice knows no unit vlm.service; it knows vllm.service" in " ".join(run.out.split())


def test_the_program_of_supervisord_that_failed_last_is_judged_by_its_own_log(host: GpuHost, program: str) -> None:
    run = gpuwhy(host, "diagnose", "HOST", "--format", "json")
    assert run.status == 1, run.err
    assert "lmdeploy was examined; also failing here: user:alice/vllm.service" in run.notes
    assert "of-supervisord" in run.out
    facts = {fact["key"]: fact["value"] for fact in run.document["facts"]}
    assert facts["service.supervisor_program"] == "lmdeploy"
    assert facts["env.CUDA_HOME"] == "/usr/local/cuda-12.8"
    assert "systemctl edit" not in run.out
    assert "of-supervisord" in primary_of(run)
    assert "of-supervisord" in primary_of(gpuwhy(host, "diagnose", "HOST", "--unit", program, "--format", "json"))


def test_a_unit_that_appends_to_a_file_is_judged_by_that_file(host: GpuHost) -> None:
    unit = "[Service]\nExecStart=/srv/vllm of-a-file 0\nStandardOutput=append:/var/log/to-file.log\nStandardError=inherit\n"
    host.write("/etc/systemd/system/to-file.service", unit)
    host.run("systemctl daemon-reload; systemctl start to-file")
    wait_for(lambda: host.show("to-file", "ActiveState")["ActiveState"] == "failed", 20, "it failed")
    run = gpuwhy(host, "diagnose", "HOST", "--unit", "to-file", "--format", "json")
    assert run.status == 1, run.err
    assert "of-a-file" in primary_of(run)


def test_what_was_started_by_hand_is_found_while_it_runs_and_after_its_death(host: GpuHost, tmp_path: Path) -> None:
    as_account(host, "alice", "sh -c 'nohup /srv/vllm of-nohup 600 > by-hand-vllm.log 2>&1 &'")
    wait_for(lambda: "loading" in host.run("cat /home/alice/by-hand-vllm.log", check=False).stdout, 20, "it runs")
    pid = as_account(host, "alice", "pgrep -f '^/usr/bin/python3 /srv/vllm of-nohup'").split()[0]
    assert gpuwhy(host, "collect", "HOST", "--unit", f"pid:{pid}", "-o", str(tmp_path / "x.gpuwhy")).status == 0
    taken = snapshot.read(tmp_path / "x.gpuwhy")
    (log,) = snapshot.service_logs(taken)
    assert (log.path, log.text) == ("/home/alice/by-hand-vllm.log", "INFO vllm serve: loading\n")
    assert taken.value("process")["pid"] == int(pid)
    as_account(host, "alice", f"kill {pid}")
    as_account(host, "alice", "sh -c 'nohup /srv/vllm of-nohup 0 > by-hand-vllm.log 2>&1; true'")
    run = gpuwhy(host, "diagnose", "alice@HOST", "--format", "json")
    assert run.status == 1, run.err
    assert "/home/alice/by-hand-vllm.log" in run.notes
    assert "of-nohup" in run.out
    named = gpuwhy(host, "diagnose", "alice@HOST", "--unit", "/home/alice/by-hand-vllm.log")
    assert named.status == 1
    assert "of-nohup" in named.out
