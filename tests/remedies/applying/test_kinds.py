"""Packages and caches changed for real and taken back: a venv with pip, folders on the disk."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import Setting
from gpuwhy.remedies.applying.plan import MoveAside, NotApplied, Plan
from gpuwhy.remedies.applying.planning import plan_for
from gpuwhy.remedies.applying.site import Site
from gpuwhy.targets.local import LocalTarget


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """The applier on this machine, with its journal below a folder of the test's."""
    (tmp_path / "root").mkdir()
    with Site(LocalTarget(), root=str(tmp_path / "root")) as opened:
        yield opened


@pytest.fixture
def caches(site: Site, tmp_path: Path) -> Path:
    folder = tmp_path / "root" / "home" / ".cache" / "flashinfer"
    folder.mkdir(parents=True)
    return folder


def remedy(kind: str, name: str, value: str) -> Remedy:
    return Remedy(kind=kind, name=name, value=value, summary="")


def test_a_truncated_library_goes_aside_with_its_cache_and_comes_back(site: Site, caches: Path) -> None:
    library = caches / "0.6.18" / "120a" / "cached_ops" / "sampling" / "sampling.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"\x7fELF truncated")
    setting = Setting(kind="shell", variables={"FLASHINFER_WORKSPACE_BASE": "/home"})
    plan = plan_for(remedy("cache", "flashinfer JIT cache", "delete"), setting, site)
    assert isinstance(plan, Plan), plan
    assert list(plan.commands()) == ["mv /home/.cache/flashinfer /home/.cache/flashinfer.before-gpuwhy"]
    outcome = site.apply(plan, {})
    assert outcome.status == "applied", outcome
    assert not caches.exists()
    caches.mkdir()  # as the service does, when it builds anew
    (caches / "new").write_text("built anew")
    assert site.undo().status == "undone"
    assert library.read_bytes() == b"\x7fELF truncated"
    assert (caches.parent / "flashinfer.before-gpuwhy.after" / "new").read_text() == "built anew"


def test_a_stale_lock_goes_aside_alone_and_a_second_time_under_another_name(site: Site, caches: Path) -> None:
    lock = caches / "sampling.lock"
    for taken in ("", "-2"):
        lock.write_text("4711")
        plan = plan_for(remedy("cache", "/home/.cache/flashinfer/sampling.lock", "remove"), Setting(kind="shell"), site)
        assert isinstance(plan, Plan), plan
        (step,) = plan.steps
        assert isinstance(step, MoveAside)
        assert step.to == f"/home/.cache/flashinfer/sampling.lock.before-gpuwhy{taken}"
        assert site.apply(plan, {}).status == "applied"
        assert not lock.exists()


@pytest.mark.parametrize("name", ["/etc", "/home/.cache/../../etc", "unheard-of", "/home/.cache/absent"])
def test_what_is_no_cache_or_is_not_there_is_not_moved(site: Site, caches: Path, name: str) -> None:
    assert isinstance(plan_for(remedy("cache", name, "delete"), Setting(kind="shell"), site), NotApplied)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real environment that holds one small package in an old version."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip(folder, "install", "--quiet", "--no-deps", "iniconfig==2.0.0")
    return folder


def pip(folder: Path, *arguments: str) -> str:
    asked = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout


def installed(folder: Path) -> dict[str, str]:
    lines = (line.partition("==") for line in pip(folder, "list", "--format=freeze").splitlines())
    return {name: version for name, _, version in lines if name not in ("pip", "setuptools")}


def test_a_package_is_moved_to_what_the_resolver_says_and_back_to_what_it_was(site: Site, environment: Path) -> None:
    setting = Setting(kind="shell", python=str(environment / "bin" / "python"), packages={"iniconfig": "2.0.0"})
    plan = plan_for(remedy("package", "iniconfig", "==2.1.0"), setting, site)
    assert isinstance(plan, Plan), plan
    assert plan.title == "iniconfig 2.0.0 → 2.1.0"
    assert installed(environment) == {"iniconfig": "2.0.0"}
    assert site.apply(plan, {}).status == "applied"
    assert installed(environment) == {"iniconfig": "2.1.0"}
    assert site.undo().status == "undone"
    assert installed(environment) == {"iniconfig": "2.0.0"}


def test_what_comes_anew_with_a_package_goes_with_the_undo(site: Site, environment: Path) -> None:
    setting = Setting(kind="shell", python=str(environment / "bin" / "python"))
    plan = plan_for(remedy("package", "markdown-it-py", "==3.0.0"), setting, site)
    assert isinstance(plan, Plan), plan
    assert site.apply(plan, {}).status == "applied"
    assert installed(environment) == {"iniconfig": "2.0.0", "markdown-it-py": "3.0.0", "mdurl": "0.1.2"}
    assert site.undo().status == "undone"
    assert installed(environment) == {"iniconfig": "2.0.0"}


def test_a_release_that_does_not_exist_is_refused_in_the_installers_words(site: Site, environment: Path) -> None:
    setting = Setting(kind="shell", python=str(environment / "bin" / "python"))
    refused = plan_for(remedy("package", "iniconfig", "==99.1"), setting, site)
    assert isinstance(refused, NotApplied)
    assert "pip cannot resolve iniconfig==99.1" in refused.why
    assert isinstance(plan_for(remedy("package", "iniconfig; rm", "==1"), setting, site), NotApplied)
