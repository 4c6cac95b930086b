"""Packages go into the service's own environment, caches are moved aside; both can be taken back."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import Setting, written_for

VENV = Setting(
    kind="systemd",
    unit="sglang.service",
    python="/opt/sglang/bin/python",
    packages={"flashinfer-python": "0.6.17", "flashinfer-cubin": "0.6.16", "torch": "2.9.0+cu128", "xformers": None},
)
UV = Setting(kind="shell", python="/srv/a b/bin/python", is_uv_managed=True)


def package(name: str, value: str, setting: Setting = VENV) -> Remedy:
    return written_for(Remedy(kind="package", name=name, value=value, summary=""), setting)


def cache(name: str, setting: Setting) -> Remedy:
    return written_for(Remedy(kind="cache", name=name, value="delete", summary=""), setting)


def test_what_was_installed_is_listed_before_and_restored_by_undo() -> None:
    written = package("sglang", ">=0.5.22")
    assert written.commands == (
        '/opt/sglang/bin/python -m pip freeze > "$HOME"/before-sglang.txt',
        "/opt/sglang/bin/python -m pip install 'sglang>=0.5.22'",
        "systemctl reset-failed sglang.service",
        "systemctl restart sglang.service",
    )
    assert written.undo[0] == '/opt/sglang/bin/python -m pip install -r "$HOME"/before-sglang.txt'
    assert written.check == ("/opt/sglang/bin/python -m pip show sglang", "/opt/sglang/bin/python -m pip check")


@pytest.mark.parametrize(
    ("name", "value", "arguments"),
    [
        ("flashinfer-python", ">=0.7.1", "'flashinfer-python>=0.7.1' 'flashinfer-cubin>=0.7.1'"),
        ("flashinfer-python", "newer", "--upgrade flashinfer-python flashinfer-cubin"),
        ("flashinfer-cubin", "match:flashinfer-python", "flashinfer-cubin==0.6.17"),
        ("torch", "==2.7.1", "torch==2.7.1"),
        ("torch", "older", "'torch<2.9.0+cu128'"),
    ],
)
def test_what_is_installed(name: str, value: str, arguments: str) -> None:
    assert package(name, value).commands[1] == f"/opt/sglang/bin/python -m pip install {arguments}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("flash-attn", "match:torch"),  # built for torch, and not of the same number
        ("vllm", "with PR 21406"),
        ("llama.cpp", "newer"),
        ("x; reboot", "newer"),
        ("--index-url=http://evil", "newer"),
        ("torch", "==1; reboot"),
        ("flashinfer-jit-cache", "match:flashinfer"),
    ],
)
def test_what_pip_cannot_do_gets_no_command(name: str, value: str) -> None:
    assert package(name, value).commands == ()


def test_torch_for_another_cuda_comes_from_the_index_of_that_name() -> None:
    setting = msgspec.structs.replace(VENV, packages={"torch": "2.8.0+cu128", "torchvision": "0.23.0"})
    written = package("torch", "cu126 build", setting)
    assert written.commands[1].endswith(
        "-m pip install --upgrade torch==2.8.0+cu126 torchvision --index-url https://download.pytorch.org/whl/cu126"
    )
    assert "--extra-index-url https://download.pytorch.org/whl/cu128 -r" in written.undo[0]
    old = msgspec.structs.replace(VENV, packages={"torch": "2.6.0"})  # there was no such build of it
    assert (
        package("torch", "cu128 build", old)
        .commands[1]
        .endswith("-m pip install --upgrade torch --index-url https://download.pytorch.org/whl/cu128")
    )
    assert package("vllm", "cu128 build").commands == ()


def test_what_an_engine_pins_is_installed_by_its_number() -> None:
    setting = msgspec.structs.replace(VENV, packages={"sglang": "0.5.15"})
    assert (
        package("sgl-kernel", "match:sglang", setting)
        .commands[1]
        .endswith("-m pip install --force-reinstall --no-deps sglang-kernel==0.4.4")
    )
    unknown = msgspec.structs.replace(VENV, packages={"sglang": "9.9.9"})
    assert package("sgl-kernel", "match:sglang", unknown).commands == ()
    assert package("sgl-kernel", "match:sglang", msgspec.structs.replace(VENV, packages={})).commands == ()


def test_a_package_that_was_absent_goes_again_and_a_removed_one_is_gone() -> None:
    assert package("xformers", "newer").undo[0] == "/opt/sglang/bin/python -m pip uninstall --yes xformers"
    assert package("flashinfer-cubin", "remove").check[0].startswith("! ")


def test_an_environment_of_uv_has_no_pip() -> None:
    written = package("torch", ">=2.7", UV)
    assert written.commands[1] == "uv pip install --python '/srv/a b/bin/python' 'torch>=2.7'"
    assert written.check[1] == "uv pip check --python '/srv/a b/bin/python'"
    assert package("torch", "remove", UV).commands[1] == "uv pip uninstall --python '/srv/a b/bin/python' torch"


def test_without_an_interpreter_it_is_said_whose_is_meant() -> None:
    assert any(
        "interpreter that runs the service" in limit
        for limit in package("torch", "newer", Setting(kind="shell")).limits
    )


def test_in_a_container_the_image_changes() -> None:
    written = package("torch", ">=2.7", Setting(kind="docker", container="c"))
    assert "RUN python3 -m pip install 'torch>=2.7'" in written.commands[0]


@pytest.mark.parametrize(
    ("name", "variables", "path"),
    [
        ("flashinfer", {}, "/home/svc/.cache/flashinfer"),
        ("flashinfer", {"FLASHINFER_WORKSPACE_BASE": "/data"}, "/data/.cache/flashinfer"),
        ("triton", {"TRITON_CACHE_DIR": "/data/t"}, "/data/t"),
        ("deep_gemm kernels", {}, "/home/svc/.deep_gemm"),
        ("/var/lib/x/.cache/vllm/", {}, "/var/lib/x/.cache/vllm"),
    ],
)
def test_caches_are_found_where_their_library_keeps_them(name: str, variables: dict[str, str], path: str) -> None:
    written = cache(name, Setting(kind="shell", home="/home/svc", variables=variables))
    assert written.commands[0] == f"mv -T {path} {path}.before-gpuwhy"


@pytest.mark.parametrize(
    ("version", "variables", "path"),
    [
        ("0.5.17", {}, "/home/svc/.triton/cache"),
        ("0.5.18", {}, "/home/svc/.cache/sglang/triton"),
        ("0.5.18", {"SGLANG_CACHE_DIR": "/data"}, "/data/triton"),
        ("0.5.18", {"TRITON_CACHE_DIR": "/data/t"}, "/data/t"),
    ],
)
def test_sglang_gathers_the_caches_of_others(version: str, variables: dict[str, str], path: str) -> None:
    service = Setting(kind="shell", home="/home/svc", variables=variables, packages={"sglang": version})
    assert cache("triton", service).commands[0] == f"mv -T {path} {path}.before-gpuwhy"


@pytest.mark.parametrize(
    "name", ["/", "/usr", "/usr/lib", "/home/svc", "/x/cache/../../etc", "/etc/jit\n", "some cache"]
)
def test_folders_of_the_system_are_never_moved(name: str) -> None:
    assert cache(name, Setting(kind="shell")).commands == ()


def test_a_cache_is_really_moved_and_put_back(tmp_path: Path) -> None:
    home = tmp_path / "ho me"
    (home / ".cache" / "flashinfer" / "old").mkdir(parents=True)
    written = cache("flashinfer", Setting(kind="shell", home=str(home), command=("true",)))
    environment = {"PATH": os.environ["PATH"]}
    subprocess.run(["sh", "-eu", "-c", "\n".join(written.commands)], check=True, env=environment)
    assert not (home / ".cache" / "flashinfer").exists()
    (home / ".cache" / "flashinfer" / "new").mkdir(parents=True)
    subprocess.run(["sh", "-eu", "-c", "\n".join((*written.check, *written.undo))], check=True, env=environment)
    assert [path.name for path in (home / ".cache" / "flashinfer").iterdir()] == ["old"]
