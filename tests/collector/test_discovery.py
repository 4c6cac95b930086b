"""Finding the service without being told its name: who keeps it running, and where its output goes."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.collector.conftest import executable

from gpuwhy.collector import choosing, left_logs, running, service_log, supervisord
from gpuwhy.collector.probing import Absent, Denied, Failed, Notes


@pytest.mark.parametrize(
    ("text", "kind", "name", "user"),
    [
        ("vllm", choosing.SYSTEM, "vllm.service", ""),
        ("sglang@2.service", choosing.SYSTEM, "sglang@2.service", ""),
        ("user:vllm", choosing.USER, "vllm.service", ""),
        ("user:alice/vllm.service", choosing.USER, "vllm.service", "alice"),
        ("supervisor:vllm", choosing.SUPERVISOR, "vllm", ""),
        ("supervisor:models:vllm_00", choosing.SUPERVISOR, "models:vllm_00", ""),
        ("pid:4711", choosing.PROCESS, "4711", ""),
        ("/var/log/vllm.log", choosing.LOG, "/var/log/vllm.log", ""),
    ],
)
def test_a_name_says_whose_service_is_meant(text: str, kind: str, name: str, user: str) -> None:
    found = choosing.parse(text)
    assert (found.kind, found.name, found.user) == (kind, name, user)
    assert choosing.parse(found.selector).selector == found.selector


@pytest.mark.parametrize(
    "text", ["", "-x", "a b", "user:", "user:../x", "user:a;b/vllm", "supervisor:a b", "pid:x", "pid:", "/a\0b", "x\n"]
)
def test_what_can_be_no_name_is_refused(text: str) -> None:
    with pytest.raises(Failed):
        choosing.parse(text)


def test_the_first_candidate_is_examined_and_a_container_in_its_own_way() -> None:
    first = {"kind": "supervisord program", "name": "vllm", "selector": "supervisor:vllm"}
    assert choosing.chosen({}, [first, {"selector": "sglang"}]).kind == choosing.SUPERVISOR
    with pytest.raises(Absent, match="docker container vllm"):
        choosing.chosen({}, [{"kind": "docker container", "name": "vllm"}, first])
    assert choosing.chosen({"unit": "sglang"}, [first]).name == "sglang.service"
    assert choosing.chosen({"pid": 12}, None).selector == "pid:12"


CONFIGURATION = """\
[unix_http_server]
file=/nowhere/supervisor.sock   ; the socket

[supervisord]
logfile=%(here)s/supervisord.log
childlogdir=%(here)s/children

[include]
files = conf.d/*.conf
"""
PROGRAMS = """\
[group:models]
programs=vllm

[program:vllm]
command=/opt/venv/bin/vllm serve M --port 80%(process_num)02d  ; with a comment
process_name=%(program_name)s_%(process_num)02d
numprocs=2
stdout_logfile=%(here)s/%(program_name)s-%(process_num)d.log
redirect_stderr=true
environment=HF_HOME="/models/hf, big",CUDA_HOME=/usr/local/cuda-12.8,EMPTY=""
user=serve

[program:plain]
command=/opt/plain
stderr_logfile=NONE
"""
LOG = """\
2026-11-30 06:00:00,100 INFO supervisord started with pid 9
2026-11-30 06:00:00,200 WARN exited: plain (exit status 1; not expected)
2026-11-30 06:09:17,388 INFO supervisord started with pid 82
2026-11-30 06:09:18,397 INFO spawned: 'vllm_00' with pid 84
2026-11-30 06:09:19,409 WARN exited: vllm_00 (exit status 1; not expected)
2026-11-30 06:09:19,422 INFO spawned: 'vllm_00' with pid 85
2026-11-30 06:09:20,433 INFO exited: vllm_00 (terminated by SIGKILL; not expected)
2026-11-30 06:09:20,433 INFO gave up: vllm_00 entered FATAL state, too many start retries too quickly
2026-11-30 06:09:21,000 INFO success: plain entered RUNNING state, process has stayed up for > than 1 seconds (startsecs)
"""


@pytest.fixture
def supervised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the configuration of a supervisord that does not run."""
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "children").mkdir()
    (tmp_path / "supervisord.conf").write_text(CONFIGURATION.replace("%(here)s", str(tmp_path)))
    (tmp_path / "conf.d/models.conf").write_text(PROGRAMS)
    (tmp_path / "supervisord.log").write_text(LOG)
    (tmp_path / "vllm-0.log").write_text("RuntimeError: it is over\n")
    (tmp_path / "children/plain-stdout---supervisor-abc.log").write_text("fine\n")
    monkeypatch.setattr(supervisord, "CONFIGURATIONS", (str(tmp_path / "supervisord.conf"),))
    monkeypatch.setattr(supervisord, "all_processes", list)
    return tmp_path


def test_programs_of_supervisord_are_read_from_its_configuration_and_log(supervised: Path) -> None:
    found = {each.full_name: each for each in supervisord.programs(Notes())}
    assert set(found) == {"models:vllm_00", "models:vllm_01", "plain"}
    first = found["models:vllm_00"]
    assert first.command == ["/opt/venv/bin/vllm", "serve", "M", "--port", "8000"]
    assert (first.state, first.crashes, first.is_failing) == ("FATAL", 2, True)
    assert "06:09:20" in first.detail
    assert first.logs == [f"{supervised}/vllm-0.log"]
    assert supervisord.variables_of(first) == {
        "HF_HOME": "/models/hf, big",
        "CUDA_HOME": "/usr/local/cuda-12.8",
        "EMPTY": "",
    }
    assert found["plain"].state == "RUNNING"
    assert not found["plain"].is_failing
    assert found["plain"].logs == [f"{supervised}/children/plain-stdout---supervisor-abc.log"]


def test_a_program_that_supervisord_does_not_have_is_absent_with_those_that_it_has(supervised: Path) -> None:
    assert supervisord.program_named("vllm_00", Notes()).full_name == "models:vllm_00"
    with pytest.raises(Absent, match="plain"):
        supervisord.program_named("sglang", Notes())


def test_a_configuration_that_is_none_says_so(supervised: Path) -> None:
    (supervised / "conf.d/broken.conf").write_text("no section\n")
    notes = Notes()
    assert supervisord.programs(notes)
    assert any("broken.conf" in remark for remark in notes.remarks)


def test_supervisorctl_is_asked_where_supervisord_runs(supervised: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = (
        "#!/bin/sh\necho 'models:vllm_00  RUNNING   pid 99, uptime 0:00:10'\necho 'plain  EXITED  Nov 30 06:09 AM'\n"
    )
    executable(supervised / "supervisorctl", client)
    monkeypatch.setattr(supervisord, "all_processes", lambda: [5])
    words = ["/usr/bin/python3", f"{supervised}/supervisord", "-c", f"{supervised}/supervisord.conf"]
    monkeypatch.setattr(supervisord, "arguments", lambda _pid: words)
    found = {each.full_name: each for each in supervisord.programs(Notes())}
    assert (found["models:vllm_00"].state, found["models:vllm_00"].pid) == ("RUNNING", 99)
    assert found["models:vllm_00"].is_failing  # up again, after it had died twice
    assert found["plain"].is_failing


Started = Any


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Started]:
    """Starts what looks like an engine, as somebody would type it; ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(line: str) -> None:
        executable(
            tmp_path / "vllm", f"#!{sys.executable} -ISB\nimport time\nprint('up', flush=True)\ntime.sleep(60)\n"
        )
        process = subprocess.Popen(["/bin/sh", "-c", line], cwd=tmp_path, start_new_session=True)
        started.append(process)

    yield start
    for process in started:
        os.killpg(process.pid, 9)
        process.wait()


def found_engine(folder: Path) -> running.Engine:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = [each for each in running.engines(Notes()) if str(folder) in " ".join(each.command)]
        if found:
            return found[0]
        time.sleep(0.05)
    raise AssertionError("the engine was not found")


def test_an_engine_started_with_nohup_is_found_with_its_log(engine: Started, tmp_path: Path) -> None:
    engine(f"nohup {tmp_path}/vllm serve M > run.log 2>&1")
    found = found_engine(tmp_path)
    assert found.log == str(tmp_path / "run.log")
    assert found.user == pwd.getpwuid(os.geteuid()).pw_name
    candidate = running.as_candidate(found)
    assert (candidate["selector"], candidate["is_failing"]) == (f"pid:{found.pid}", False)
    while not (tmp_path / "run.log").read_text():
        time.sleep(0.05)
    read = service_log.service_log({"unit": f"pid:{found.pid}"}, Notes(), None, None, None)
    assert read["files"][0]["path"] == str(tmp_path / "run.log")
    assert read["files"][0]["head"] == "up\n"


def test_an_engine_behind_tee_is_found_with_the_file_that_tee_writes(engine: Started, tmp_path: Path) -> None:
    engine(f"{tmp_path}/vllm serve M 2>&1 | tee run.log > /dev/null")
    found_engine(tmp_path)
    while not (tmp_path / "run.log").exists():
        time.sleep(0.05)
    assert found_engine(tmp_path).log == str(tmp_path / "run.log")


def test_output_that_nothing_keeps_is_named(engine: Started, tmp_path: Path) -> None:
    engine(f"{tmp_path}/vllm serve M > /dev/null 2>&1")
    found = found_engine(tmp_path)
    assert (found.log, found.output) == ("", "its output is thrown away (/dev/null)")


@pytest.mark.parametrize(
    ("command", "is_one"),
    [
        (["/opt/venv/bin/python", "-m", "sglang.launch_server"], True),
        (["/opt/venv/bin/python", "/opt/venv/bin/vllm", "serve"], True),
        (["/usr/local/bin/llama-server", "-m", "x.gguf"], True),
        (["tail", "-f", "/var/log/vllm.log"], False),
        (["bash", "start_vllm.sh"], False),
        (["docker", "run", "vllm/vllm-openai"], False),
        (["/usr/bin/python3", "/usr/bin/supervisord", "-c", "/etc/vllm.conf"], False),
        (["tmux:", "server", "vllm"], False),
        ([], False),
    ],
)
def test_a_tool_that_only_names_an_engine_is_none(command: list[str], is_one: bool) -> None:
    assert running.is_engine(command) is is_one


def test_only_a_recent_log_that_ends_in_a_failure_is_left_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_logs, "_folders", lambda: [str(tmp_path)])
    crash = "Traceback (most recent call last):\nRuntimeError: no\n"
    (tmp_path / "nohup.out").write_text("INFO vllm starts\n" + crash)
    (tmp_path / "sglang-server.log").write_text(crash)
    (tmp_path / "vllm-fine.log").write_text("INFO: Application startup complete.\n")
    (tmp_path / "other.log").write_text(crash)
    (tmp_path / "vllm-old.log").write_text(crash)
    os.utime(tmp_path / "vllm-old.log", (1, 1))
    with (tmp_path / "vllm-open.log").open("w") as output:
        output.write(crash)
        output.flush()
        sleeper = subprocess.Popen(["sleep", "60"], stdout=output)
    try:
        found = left_logs.left_logs(Notes())
    finally:
        sleeper.kill()
        sleeper.wait()
    assert sorted(Path(each["name"]).name for each in found) == ["nohup.out", "sglang-server.log"]
    assert all(each["selector"] == each["name"] and each["when"] for each in found)


def test_of_a_long_log_both_ends_are_taken_in_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_log, "HEAD_BYTES", 100)
    monkeypatch.setattr(service_log, "TAIL_BYTES", 200)
    log = tmp_path / "x.log"
    log.write_text("".join(f"line {number}\n" for number in range(1000)))
    file = service_log.service_log({"unit": str(log)}, Notes(), None, None, None)["files"][0]
    assert file["head"].startswith("line 0\n")
    assert file["head"].endswith("\n")
    assert file["tail"].startswith("line ")
    assert file["tail"].endswith("line 999\n")
    assert len(file["head"]) + file["left_out"] + len(file["tail"]) == log.stat().st_size


def test_a_log_that_is_none_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="No such file"):
        service_log.service_log({"unit": str(tmp_path / "none.log")}, Notes(), None, None, None)
    (tmp_path / "core.log").write_bytes(b"\x7fELF\0\0\0")
    with pytest.raises(Failed, match="not a text"):
        service_log.service_log({"unit": str(tmp_path / "core.log")}, Notes(), None, None, None)
    with pytest.raises(Denied):
        service_log.service_log({"unit": "/etc/shadow"}, Notes(), None, None, None)
    os.mkfifo(tmp_path / "pipe.log")
    with pytest.raises(Failed, match="not a regular file"):
        service_log.service_log({"unit": str(tmp_path / "pipe.log")}, Notes(), None, None, None)


def test_the_files_of_a_unit_are_those_of_its_properties_and_its_shell_line() -> None:
    fragment = {"path": "/x", "text": "[Service]\nStandardOutput=append:/var/log/old.log\nStandardError=inherit\n"}
    drop_in = {"path": "/y", "text": "[Service]\n  StandardOutput = append:%h/%N-%i%%.log \n"}
    read = service_log.of_unit_files("vllm@2.service", [fragment, drop_in], "/srv")
    assert read == ["/srv/vllm@2-2%.log"]
    assert service_log.of_unit_files("vllm.service", [fragment]) == ["/var/log/old.log"]
    assert service_log.of_unit_files("vllm.service", [{"path": "/z", "text": "StandardOutput=journal\n"}]) == []
    line = "/bin/sh -c exec vllm serve M >> logs/run.log 2>&1"
    assert service_log.of_command(line, {}, "/srv/vllm") == ["/srv/vllm/logs/run.log"]
    assert service_log.of_command("vllm serve M 2>&1 | tee -a $LOGS/x.log", {"LOGS": "/l"}, "/") == ["/l/x.log"]
    assert service_log.of_command("vllm serve M > /dev/null 2>&1", {}, "/") == []
