"""What `make dist` makes, used as a host without a network would: a namespace of its own, no cache, no index."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from scripts.make_dist import build
from tests.collector.conftest import interpreters

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests" / "data" / "logs" / "sglang.log"
SUPPORTED = {"3.10", "3.11", "3.12", "3.13", "3.14"}

pytestmark = [pytest.mark.dist, pytest.mark.timeout(900)]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What was built: by `make dist` where GPUWHY_DIST names its folder, else here."""
    named = os.environ.get("GPUWHY_DIST")
    paths = sorted(Path(named).iterdir()) if named else build(tmp_path_factory.mktemp("dist"), os.uname().machine)
    return {"wheelhouse" if "wheelhouse" in path.name else path.suffix.lstrip("."): path for path in paths}


def offline(command: Sequence[str], home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run without a network where that can be had (as root), with a home of its own."""
    alone = ["unshare", "--net"] if os.geteuid() == 0 else []
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), **variables}
    return subprocess.run([*alone, *command], env=environment, capture_output=True, text=True, check=False, timeout=300)


def pythons() -> list[str]:
    """One interpreter of each supported release that this machine has."""
    found = {
        subprocess.run([each, "-V"], capture_output=True, text=True, check=True).stdout: each for each in interpreters()
    }
    return [path for version, path in found.items() if ".".join(version.split()[-1].split(".")[:2]) in SUPPORTED]


@pytest.mark.parametrize("python", pythons())
def test_the_single_file_diagnoses_with_every_python_at_hand(
    made: dict[str, Path], tmp_path: Path, python: str
) -> None:
    done = offline([python, "-I", str(made["pyz"]), "diagnose", str(LOG)], tmp_path)
    assert done.returncode == 1, done.stderr
    assert "toolkit-too-old-for-arch" in done.stdout


def test_the_single_file_unpacks_once_and_for_one_python(made: dict[str, Path], tmp_path: Path) -> None:
    for _ in range(2):
        assert offline([sys.executable, str(made["pyz"]), "causes"], tmp_path).returncode == 0
    folders = list((tmp_path / ".cache" / "gpuwhy" / "pyz").iterdir())
    assert len(folders) == 1
    natives = {path.name.split(".")[1] for path in folders[0].rglob("*.cpython-*.so")}
    assert natives == {f"cpython-{sys.version_info[0]}{sys.version_info[1]}-{os.uname().machine}-linux-gnu"}


def test_nothing_is_executed_from_a_folder_that_others_can_write_to(made: dict[str, Path], tmp_path: Path) -> None:
    cache = tmp_path / "gpuwhy" / "pyz"
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    done = offline([sys.executable, str(made["pyz"]), "cause", "no-such-cause"], tmp_path, XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 2
    assert not list(cache.iterdir())


def test_the_wheelhouse_installs_without_an_index(made: dict[str, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(made["wheelhouse"]) as opened:
        opened.extractall(tmp_path)
    house = tmp_path / made["wheelhouse"].stem
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    pip = str(tmp_path / "venv" / "bin" / "pip")
    done = offline([pip, "install", "--no-index", "--find-links", str(house), "gpuwhy"], tmp_path)
    assert done.returncode == 0, done.stderr
    started = offline([str(tmp_path / "venv" / "bin" / "gpuwhy"), "diagnose", str(LOG)], tmp_path)
    assert started.returncode == 1, started.stderr
    assert "toolkit-too-old-for-arch" in started.stdout


def test_the_sdist_builds_the_same_package(made: dict[str, Path], tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "-q", "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(made["gz"])],
        check=True,
    )  # fmt: skip
    again = next(tmp_path.glob("*.whl"))
    with zipfile.ZipFile(again) as first, zipfile.ZipFile(made["whl"]) as second:
        assert sorted(first.namelist()) == sorted(second.namelist())
