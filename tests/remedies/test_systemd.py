"""Remedies for a systemd unit: drop-ins that say what is meant, and leave no trace when undone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import Setting, unit_file, written_for

UNIT = Setting(kind="systemd", unit="sglang.service")
SERVE = "/opt/sglang/bin/python -m sglang.launch_server --model-path /models/K2 --tp-size 8"


def env(name: str, value: str) -> Remedy:
    return Remedy(kind="env", name=name, value=value, summary="")


def flag(name: str, value: str = "") -> Remedy:
    return Remedy(kind="flag", name=name, value=value, summary="")


def test_a_variable_is_a_drop_in_a_reload_and_a_restart() -> None:
    written = written_for(env("FLASHINFER_CUDA_ARCH_LIST", "12.0a"), UNIT)
    assert written.commands == (
        "install -d /etc/systemd/system/sglang.service.d",
        (
            "printf '%s\\n' '[Service]' 'Environment=\"FLASHINFER_CUDA_ARCH_LIST=12.0a\"' "
            "> /etc/systemd/system/sglang.service.d/50-gpuwhy-FLASHINFER_CUDA_ARCH_LIST.conf"
        ),
        "systemctl daemon-reload",
        "systemctl reset-failed sglang.service",
        "systemctl restart sglang.service",
    )
    assert written.undo[:2] == (
        "rm /etc/systemd/system/sglang.service.d/50-gpuwhy-FLASHINFER_CUDA_ARCH_LIST.conf",
        "rmdir --ignore-fail-on-non-empty /etc/systemd/system/sglang.service.d",
    )
    assert written.undo[2:] == written.commands[2:]
    assert "show sglang.service -p Environment" in written.check[0]
    assert "grep -xF FLASHINFER_CUDA_ARCH_LIST=12.0a" in written.check[1]


def test_an_environment_file_beats_environment_so_the_value_goes_into_a_later_file() -> None:
    setting = Setting(kind="systemd", unit="vllm.service", environment_files=("/etc/default/vllm",))
    written = written_for(env("MAX_JOBS", "4"), setting)
    text = "\n".join(written.commands)
    assert 'Environment="' not in text
    assert "EnvironmentFile=/etc/systemd/system/vllm.service.d/50-gpuwhy-MAX_JOBS.env" in text
    assert "'MAX_JOBS=\"4\"' > /etc/systemd/system/vllm.service.d/50-gpuwhy-MAX_JOBS.env" in text
    assert written.undo[0].endswith("50-gpuwhy-MAX_JOBS.conf /etc/systemd/system/vllm.service.d/50-gpuwhy-MAX_JOBS.env")


def test_unset_is_the_last_word_of_systemd() -> None:
    written = written_for(env("TORCH_CUDA_ARCH_LIST", "unset"), UNIT)
    assert "UnsetEnvironment=TORCH_CUDA_ARCH_LIST" in written.commands[1]
    assert written.check[0].startswith("! ")


def test_a_users_unit_is_changed_by_the_users_manager() -> None:
    written = written_for(env("X", "1"), Setting(kind="systemd", unit="a.service", is_user_unit=True))
    assert written.commands[0] == "install -d ~/.config/systemd/user/a.service.d"
    assert written.commands[-1] == "systemctl --user restart a.service"


def test_a_start_command_that_sets_the_variable_itself_is_named() -> None:
    setting = Setting(kind="systemd", unit="a.service", exec_start=f"/usr/bin/env MAX_JOBS=64 {SERVE}")
    assert any(
        "ExecStart= sets MAX_JOBS itself" in limit for limit in written_for(env("MAX_JOBS", "4"), setting).limits
    )


def test_an_option_repeats_the_start_command_with_the_option() -> None:
    setting = Setting(kind="systemd", unit="a.service", exec_start=SERVE)
    written = written_for(flag("--sampling-backend", "pytorch"), setting)
    assert f"ExecStart= 'ExecStart={SERVE} --sampling-backend pytorch'" in written.commands[1]


def test_an_option_in_a_script_is_left_to_the_person() -> None:
    for start in ("/opt/start.sh --now", '/bin/bash -c "exec vllm serve m"', ""):
        written = written_for(flag("--max-num-seqs", "64"), Setting(kind="systemd", unit="a.service", exec_start=start))
        assert written.commands[0].startswith("# give the engine --max-num-seqs 64")
        assert "systemctl restart a.service" in written.commands


def test_a_unit_that_starts_a_container_passes_the_variable_on() -> None:
    start = "/usr/bin/docker run --rm --gpus all vllm/vllm-openai --model m"
    setting = Setting(kind="systemd", unit="a.service", exec_start=start)
    written = written_for(env("MAX_JOBS", "4"), setting)
    assert "ExecStart=/usr/bin/docker run --env=MAX_JOBS=4 --rm" in written.commands[1]
    larger = written_for(flag("--shm-size", "16g"), setting)
    assert "ExecStart=/usr/bin/docker run --shm-size=16g --rm" in larger.commands[1]


@pytest.mark.parametrize(
    ("start", "option", "value", "expected"),
    [
        ("/b --tp-size 8 --x", "--tp-size", "4", "/b --tp-size 4 --x"),
        ("/b --tp_size=8 --x", "--tp-size", "4", "/b --tp-size 4 --x"),
        ("/b --x", "--enforce-eager", "", "/b --x --enforce-eager"),
        ('/b --name "a b" $OPTS', "--y", "50%", '/b --name "a b" $OPTS --y "50%%"'),
        ("/b \\\n  --x 1", "--x", "2", "/b \\\n  --x 2"),
        ("/b --c '{\"a\": 1}' z", "--c", '{"a": 2}', '/b --c "{\\"a\\": 2}" z'),
    ],
)
def test_options_are_edited_in_place(start: str, option: str, value: str, expected: str) -> None:
    assert unit_file.with_option(start, option, value) == expected


@pytest.mark.parametrize(
    ("start", "option", "expected"),
    [
        ("/b --speculative-config '{\"a\": 1}' --x", "--speculative-config", "/b --x"),
        ("/b serve --enable-prefix-caching model", "--enable-prefix-caching", "/b serve model"),
        ("/b --x=1", "--x", "/b"),
    ],
)
def test_options_are_taken_out(start: str, option: str, expected: str) -> None:
    assert unit_file.without_option(start, option) == expected


def test_a_description_is_not_a_value() -> None:
    for name, value in [
        ("CUDA_HOME", "toolkit >= 12.9"),
        ("NCCL_SOCKET_IFNAME", "interface that exists"),
        ("X", "a\nb"),
    ]:
        assert written_for(env(name, value), UNIT).commands == ()
    assert written_for(flag("--gpu-memory-utilization", "lower"), UNIT).commands == ()


def test_cuda_home_is_checked_for_its_compiler() -> None:
    written = written_for(env("CUDA_HOME", "/usr/local/cuda-12.9"), UNIT)
    assert written.check[0] == "test -x /usr/local/cuda-12.9/bin/nvcc"


def test_a_check_that_asks_the_services_python_runs_in_the_services_environment() -> None:
    remedy = Remedy(kind="env", name="X", value="1", summary="", check=("/v/bin/python -c 'print(1)'",))
    assert written_for(remedy, UNIT).check[-1].startswith("xargs -0 -a")


def test_that_line_really_carries_the_environment(tmp_path: Path) -> None:
    environ = tmp_path / "environ"
    environ.write_bytes(b"A=1 2\0B='$(touch x)'\0PATH=/usr/bin:/bin\0")
    line = written_for(
        Remedy(
            kind="env",
            name="X",
            value="1",
            summary="",
            check=("python3 -c 'import os; print(sorted(os.environ.items())[:2])'",),
        ),
        UNIT,
    ).check[-1]
    begin, end = line.index('"/proc'), line.index('/environ"') + len('/environ"')
    line = line[:begin] + str(environ) + line[end:]
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == """[('A', '1 2'), ('B', "'$(touch x)'")]"""


HOSTILE = [
    "$(touch pwned)", "`touch pwned`", "'; touch pwned; '", '"; touch pwned; "', "a\\", "%n%i", "$HOME", "&&touch", "|tee", "x>pwned",
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("files", [(), ("/etc/default/x",)])
def test_no_value_reaches_the_shell(value: str, files: tuple[str, ...], tmp_path: Path) -> None:
    """The commands are run for real, with systemctl and the system's folder replaced: only the drop-in appears."""
    setting = Setting(kind="systemd", unit="a.service", environment_files=files)
    written = written_for(env("X", value), setting)
    if not written.commands:
        assert " " in value or value.startswith(">")  # read as a description
        return
    script = "\n".join(written.commands).replace("/etc/systemd/system", str(tmp_path)).replace("systemctl", "true")
    subprocess.run(["sh", "-eu", "-c", script], cwd=tmp_path, check=True)
    names = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert names == (["50-gpuwhy-X.conf", "50-gpuwhy-X.env"] if files else ["50-gpuwhy-X.conf"])
    if not files:
        text = (tmp_path / "a.service.d" / names[0]).read_text()
        assert unit_file.words(text.splitlines()[1].partition("=")[2])[0].text == f"X={value}".replace("%", "%%")


def test_a_limit_is_a_drop_in_of_the_unit_and_none_where_the_unit_starts_a_container() -> None:
    limit = Remedy(kind="config", name="LimitMEMLOCK", value="infinity", summary="")
    written = written_for(limit, UNIT)
    assert written.commands[1].startswith(
        "printf '%s\\n' '[Service]' LimitMEMLOCK=infinity > /etc/systemd/system/sglang.service.d/"
    )
    assert written.check == ("systemctl show sglang.service -p LimitMEMLOCK",)
    assert written.undo[0].startswith("rm /etc/systemd/system/sglang.service.d/50-gpuwhy-LimitMEMLOCK.conf")
    docker = Setting(kind="systemd", unit="a.service", exec_start="/usr/bin/docker run --rm vllm/vllm-openai")
    assert written_for(limit, docker).commands == ()
    assert written_for(limit, Setting(kind="shell")).commands == ()
    assert written_for(msgspec.structs.replace(limit, value="1; reboot"), UNIT).commands == ()
