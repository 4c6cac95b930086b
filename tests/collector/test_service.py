"""The unit and its environment, from what systemd prints; the Python environments and packages, from files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.collector.conftest import executable

from gpuwhy.collector import commands, environment, failing_services, unit
from gpuwhy.collector.limits import limits, of_process
from gpuwhy.collector.packages import packages
from gpuwhy.collector.probing import Absent, Failed, Notes
from gpuwhy.collector.python_environments import python_environments

SHOWN = """\
Type=simple
Restart=on-failure
MainPID=0
Result=exit-code
NRestarts=3
ExecMainCode=1
ExecMainStatus=1
ExecStart={ path=/opt/sglang/bin/python ; argv[]=/opt/sglang/bin/python -m sglang.launch_server --model-path /m ; ignore_errors=no ; start_time=[Mon 2026-11-30 06:09:17 UTC] ; stop_time=[Mon 2026-11-30 06:09:21 UTC] ; pid=230 ; code=exited ; status=1 }
Environment=HOME=/var/lib/sglang CUDA_HOME=/usr/local/cuda-12.8 "NCCL_DEBUG=INFO WARN"
EnvironmentFiles=ENVFILE (ignore_errors=no)
EnvironmentFiles=/nowhere/else (ignore_errors=yes)
LimitMEMLOCK=infinity
LimitMEMLOCKSoft=8388608
User=
Id=sglang.service
Description=SGLang = the best
LoadState=loaded
ActiveState=failed
SubState=failed
"""  # fmt: skip

ENVIRONMENT_FILE = """\
# a comment
; another
HF_HOME=/models/hf
  QUOTED = "two words \\"x\\""
SINGLE='a $b'
CONTINUED=one \\
two
export IGNORED=1
not a variable
EMPTY=
"""

Answers = Callable[[str, Sequence[str]], tuple[int, str, str]]


@pytest.fixture
def systemd(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answers], None]:
    """Puts prepared output in the place of systemd's tools."""

    def answer_with(answers: Answers) -> None:
        def run(name: str, arguments: Sequence[str] = (), **_: Any) -> commands.Output:
            return commands.Output(name, *answers(name, arguments))

        monkeypatch.setattr(commands, "run", run)

    return answer_with


@pytest.fixture
def seed_unit(systemd: Callable[[Answers], None], tmp_path: Path) -> dict[str, Any]:
    file = tmp_path / "sglang.env"
    file.write_text(ENVIRONMENT_FILE)
    shown = SHOWN.replace("ENVFILE", str(file))
    given = "LANG=C.UTF-8\nPATH=/usr/local/bin:/usr/bin\n"
    systemd(lambda _, arguments: (0, given if "show-environment" in arguments else shown, ""))
    return unit.unit({"unit": "sglang"}, Notes(), None)


def test_a_unit_is_read_with_its_command_and_its_variables(seed_unit: dict[str, Any]) -> None:
    assert seed_unit["name"] == "sglang.service"
    assert seed_unit["commands"] == [["/opt/sglang/bin/python", "-m", "sglang.launch_server", "--model-path", "/m"]]
    assert seed_unit["environment"]["NCCL_DEBUG"] == "INFO WARN"
    assert seed_unit["properties"]["Description"] == "SGLang = the best"
    assert [file["optional"] for file in seed_unit["environment_files"]] == [False, True]


def test_an_environment_file_is_read_as_systemd_does() -> None:
    assert unit.environment_file(ENVIRONMENT_FILE) == {
        "HF_HOME": "/models/hf",
        "QUOTED": 'two words "x"',
        "SINGLE": "a $b",
        "CONTINUED": "one two",
        "EMPTY": "",
    }


def test_a_dead_unit_s_environment_is_what_systemd_would_give_it(seed_unit: dict[str, Any]) -> None:
    found = environment.environment({}, Notes(), seed_unit, None)
    assert found["source"] == "unit"
    assert found["complete"] is True
    assert found["variables"]["PATH"] == "/usr/local/bin:/usr/bin"
    assert found["variables"]["HF_HOME"] == "/models/hf"
    assert found["variables"]["CUDA_HOME"] == "/usr/local/cuda-12.8"


def test_an_environment_file_that_is_missing_makes_it_incomplete(seed_unit: dict[str, Any]) -> None:
    seed_unit["environment_files"][0] = {"path": "/secret", "optional": False, "error": "/secret: Permission denied"}
    assert environment.environment({}, Notes(), seed_unit, None)["complete"] is False


def test_the_limit_of_a_unit_is_the_soft_one(seed_unit: dict[str, Any]) -> None:
    assert limits({}, Notes(), seed_unit, None)["memlock"] == "8388608"


def test_limits_of_a_process() -> None:
    text = "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         65536                unlimited            bytes\nMax open files            1024                 524288               files\n"
    assert of_process(text) == {"memlock": "65536", "nofile": "1024"}


def test_an_unknown_unit_is_absent_and_the_likely_one_is_named(systemd: Callable[[Answers], None]) -> None:
    units = "sglang.service enabled enabled\nvllm.service disabled enabled\n"
    systemd(
        lambda _, arguments: (
            0,
            units if "list-unit-files" in arguments else "LoadState=not-found\nActiveState=inactive\n",
            "",
        )
    )
    with pytest.raises(Absent, match=r"it knows sglang\.service"):
        unit.unit({"unit": "sglagn"}, Notes(), None)


@pytest.mark.parametrize("name", ["-h", "a b", "../x", "a;b", "x\n", "a" * 300])
def test_what_is_no_name_of_a_unit_never_reaches_a_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "run", None)
    with pytest.raises(Failed):
        unit.unit({"unit": name}, Notes(), None)


LISTED = "sglang.service loaded failed failed SGLang\ncron.service loaded active running cron\nvllm.service loaded activating auto-restart vLLM\nbackup.service loaded failed failed Backup\n"


def properties(name: str, active: str, sub: str, when: int, argv: str) -> str:
    return f"Id={name}\nActiveState={active}\nSubState={sub}\nNRestarts=0\nExecStart={{ path={argv.split()[0]} ; argv[]={argv} ; ignore_errors=no }}\nStateChangeTimestampMonotonic={when}000000\n"


def test_failing_services_are_found_the_engine_that_failed_last_first(
    systemd: Callable[[Answers], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failing_services, "engines", lambda _notes: [])
    monkeypatch.setattr(failing_services, "left_logs", lambda _notes: [])
    shown = "\n".join(
        [
            properties("sglang.service", "failed", "failed", 100, "/opt/v/bin/python -m sglang.launch_server"),
            properties("cron.service", "active", "running", 400, "/usr/sbin/cron"),
            properties("vllm.service", "activating", "auto-restart", 200, "/opt/v/bin/vllm serve"),
            properties("backup.service", "failed", "failed", 300, "/usr/bin/rsync"),
        ]
    )
    systemd(
        lambda name, arguments: (0, LISTED if "list-units" in arguments else shown if name == "systemctl" else "", "")
    )
    found = failing_services.failing_services({}, Notes())
    assert [each["name"] for each in found] == ["vllm.service", "sglang.service", "backup.service"]


def test_an_exited_container_is_a_candidate_and_one_that_ended_well_is_not() -> None:
    line = '{"Names":"vllm","Image":"vllm/vllm-openai:v0.25.1","Command":"\\"vllm serve\\"","Status":"Exited (%s) 3 minutes ago"}'
    failed = failing_services._container("docker", line % "1")
    assert failed is not None
    assert (failed["name"], failed["status"], failed["is_engine"]) == ("vllm", "1", True)
    assert failing_services._container("docker", line % "0") is None
    assert failing_services._container("docker", "not json") is None
    assert failing_services._container("docker", "[]") is None


@pytest.fixture(scope="module")
def real_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real virtual environment with the metadata of a few packages in it."""
    root = tmp_path_factory.mktemp("real") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    site = root / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    for name in ("flashinfer_python-0.6.18.post1", "sgl_kernel-0.3.21+cu128", "torch-2.11.0+cu130", "My.Odd_Name-1.0"):
        (site / f"{name}.dist-info").mkdir()
    (site / "sgl_kernel-0.3.21+cu128.dist-info/direct_url.json").write_text(
        '{"url": "file:///src/sgl", "dir_info": {"editable": true}}'
    )
    (site / "unversioned.dist-info").mkdir()
    (site / "unversioned.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: unversioned\nVersion: 7\n\nName: wrong\n"
    )
    (site / "~orch-1.0.dist-info").mkdir()
    (site / "torch").mkdir()
    (site / "torch/version.py").write_text(
        "from typing import Optional\n__version__ = '2.11.0+cu130'\ndebug = False\ncuda: Optional[str] = '13.0'\ngit_version = 'abc'\nhip: Optional[str] = None\n"
    )
    (site / "torch/__init__.py").write_text("raise SystemExit('torch must not be imported')\n")
    return root


def of_command(command: list[str], **variables: str) -> list[dict[str, Any]]:
    described = {"name": "x.service", "properties": {}, "commands": [command]}
    return python_environments({}, Notes(), described, None, {"variables": {"PATH": "/usr/bin:/bin", **variables}})


def test_the_environment_of_a_unit_is_the_one_of_its_interpreter(real_venv: Path) -> None:
    executable(real_venv / "bin/vllm", f"#!{real_venv}/bin/python\n")
    for command in ([f"{real_venv}/bin/python"], [f"{real_venv}/bin/vllm", "serve"]):
        first = of_command(command)[0]
        assert (first["prefix"], first["kind"]) == (str(real_venv), "virtual environment")
        assert first["version"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}")
        assert all(folder.startswith(str(real_venv)) for folder in first["folders"])


def test_packages_are_read_without_importing_anything(real_venv: Path) -> None:
    first = packages({}, Notes(), of_command([f"{real_venv}/bin/python"]))[0]
    assert first["versions"] == {
        "flashinfer-python": "0.6.18.post1",
        "sgl-kernel": "0.3.21+cu128",
        "torch": "2.11.0+cu130",
        "my-odd-name": "1.0",
        "unversioned": "7",
    }
    assert first["origins"] == {"sgl-kernel": "editable file:///src/sgl"}
    assert (first["torch"]["version"], first["torch"]["cuda"], first["torch"]["hip"]) == ("2.11.0+cu130", "13.0", None)


def test_of_two_copies_the_first_on_the_path_counts(real_venv: Path, tmp_path: Path) -> None:
    (tmp_path / "torch-2.9.0.dist-info").mkdir()
    first = packages({}, Notes(), of_command([f"{real_venv}/bin/python"], PYTHONPATH=str(tmp_path)))[0]
    assert first["versions"]["torch"] == "2.9.0"
    assert [(each["name"], each["version"]) for each in first["shadowed"]] == [("torch", "2.11.0+cu130")]


def test_without_a_python_there_is_nothing_to_say() -> None:
    with pytest.raises(Absent):
        of_command(["/usr/local/bin/llama-server", "-m", "x"])
