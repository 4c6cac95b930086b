"""Find, choose and download wheels of one package with pip, and describe a downloaded one."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version


class DownloadBudget:
    """Bytes that may still be downloaded in this run."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0

    def add(self, size_bytes: int) -> None:
        self.used_bytes += size_bytes

    @property
    def is_spent(self) -> bool:
        return self.used_bytes >= self.limit_bytes


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pip", *arguments, "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        check=False,
    )


def released_versions(package: str) -> list[str]:
    """Every version that pip can see, oldest first. Place holders (0.0.*) are left out."""
    found = re.search(r"Available versions:\s*(.+)", _pip("index", "versions", "--pre", package).stdout)
    if not found:
        return []
    versions = [version.strip() for version in found.group(1).split(",")]
    return [version for version in sorted(versions, key=Version) if Version(version).release[:2] != (0, 0)]


def choose(pairs: list[tuple[str, str]], wanted: list[str]) -> list[tuple[str, str]]:
    """The (package, version) pairs that a version, a specifier or a requirement in `wanted` names."""
    chosen: list[tuple[str, str]] = []
    for item in wanted:
        chosen += [pair for pair in pairs if _is_named_by(item.strip(), *pair) and pair not in chosen]
    return chosen


def _is_named_by(item: str, package: str, version: str) -> bool:
    try:
        return Version(item) == Version(version)
    except InvalidVersion:
        pass
    try:
        return SpecifierSet(item).contains(version, prereleases=True)
    except InvalidSpecifier:
        pass
    try:
        requirement = Requirement(item)
    except InvalidRequirement:
        return False
    return requirement.name == package and requirement.specifier.contains(version, prereleases=True)


def newest_of_each_release(pairs: list[tuple[str, str]], oldest: str) -> list[tuple[str, str]]:
    """The newest final version of every major.minor release from `oldest` on."""
    newest: dict[tuple[int, ...], tuple[str, str]] = {}
    for package, version in pairs:
        parsed = Version(version)
        if parsed >= Version(oldest) and not parsed.is_prerelease:
            newest[parsed.release[:2]] = (package, version)
    return list(newest.values())


def download(package: str, version: str, folder: Path) -> Path | None:
    """The wheel file, or None. Falls back to wheels for other Python versions, which can be read all the same."""
    command = ["download", "--quiet", "--no-deps", "--no-cache-dir", "--pre", "--only-binary=:all:"]
    command += ["--dest", str(folder), f"{package}=={version}"]
    for tag in ([], *(["--python-version", f"3.{minor}"] for minor in range(14, 7, -1))):
        _pip(*command, *tag)
        wheels = sorted(folder.glob("*.whl"))
        if wheels:
            return wheels[0]
    return None


def describe(wheel: Path) -> dict[str, Any]:
    """Name, size, digest and requirements of a wheel file."""
    digest = hashlib.sha256()
    with wheel.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        headers = Parser().parsestr(archive.read(metadata).decode("utf-8", "replace"), headersonly=True)
    return {
        "wheel": wheel.name,
        "wheel_bytes": wheel.stat().st_size,
        "wheel_sha256": digest.hexdigest(),
        "requires_dist": headers.get_all("Requires-Dist") or [],
    }


def read_member(archive: zipfile.ZipFile, ending: str) -> str | None:
    """Text of the first member whose name ends like this, or None."""
    for name in archive.namelist():
        if name.endswith(ending):
            return archive.read(name).decode("utf-8", "replace")
    return None


def published_metadata(package: str, version: str) -> dict[str, Any] | None:
    """Core metadata of a release as pip resolves it, without keeping the wheel; None if pip finds nothing."""
    with tempfile.TemporaryDirectory(prefix="measure-") as folder:
        report = Path(folder) / "report.json"
        _pip(
            "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--only-binary=:all:",
            "--report", str(report), f"{package}=={version}",
        )  # fmt: skip
        if not report.exists():
            return None
        installs = json.loads(report.read_text())["install"]
    metadata: dict[str, Any] = installs[0]["metadata"]
    return metadata
