"""Writes ``dist/``: wheel, sdist, the single file ``gpuwhy.pyz`` and its wheelhouse. Run: ``python -m scripts.make_dist``.

The single file holds the native libraries of every supported Python for one machine type, so that it runs with whatever
``python3`` a host has. The wheelhouse is a zip of the same wheels, for ``pip install --no-index``. Both come out byte for byte
the same from the same commit and wheels.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
BOOTSTRAP = ROOT / "scripts" / "dist" / "unpacked_main.py"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
MANYLINUX = ("manylinux2014", "manylinux_2_17", "manylinux_2_28")
SHEBANG = b"#!/usr/bin/env python3\n"
SITE = "site-packages/"
LEFT_OUT = ("zstandard/_cffi",)
"""zstandard's second backend, for PyPy: half of its size, never loaded by CPython (its ``__init__`` takes the C backend)."""

INSTALL = """Installs gpuwhy without a network:

    unzip {name}.zip
    python3 -m venv gpuwhy
    gpuwhy/bin/pip install --no-index --find-links {name} gpuwhy
    gpuwhy/bin/gpuwhy --version
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder to write to")
    parser.add_argument(
        "--machine", choices=("x86_64", "aarch64"), default=platform.machine(), help="for which machines"
    )
    given = parser.parse_args(arguments)
    for made in build(given.output, given.machine):
        print(f"{made.stat().st_size:>12,} {made}")


def build(output: Path, machine: str) -> list[Path]:
    """Everything that a release has. Raises CalledProcessError, with the tool's own words on standard error."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        packages = _packages(Path(work) / "packages")
        wheels = _wheels(Path(work) / "wheels", packages, machine)
        version = next(each for each in packages if each.suffix == ".whl").name.split("-")[1]
        house = f"gpuwhy-{version}-linux-{machine}-wheelhouse"
        made = [output / each.name for each in packages]
        for source, target in zip(packages, made, strict=True):
            target.write_bytes(source.read_bytes())
        single = output / (f"gpuwhy-{version}-linux-{machine}.pyz")
        _write_single_file(single, wheels)
        _write_zip(
            output / f"{house}.zip",
            {
                f"{house}/README.txt": INSTALL.format(name=house).encode(),
                **{f"{house}/{each.name}": each.read_bytes() for each in wheels},
            },
            zipfile.ZIP_STORED,
        )
    return [*made, single, output / f"{house}.zip"]


def _packages(folder: Path) -> list[Path]:
    _run("-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    made = sorted(folder.iterdir())
    _run("-m", "twine", "check", "--strict", *map(str, made))
    return made


def _wheels(folder: Path, packages: Iterable[Path], machine: str) -> list[Path]:
    """gpuwhy's wheel and those of all that it needs, for every Python: what is pinned in ``constraints.txt``."""
    wheel = next(each for each in packages if each.suffix == ".whl")
    platforms = [part for name in MANYLINUX for part in ("--platform", f"{name}_{machine}")]
    for python in PYTHONS:
        _run(
            *("-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet", "--only-binary=:all:"),
            *("--python-version", python, "--implementation", "cp", *platforms),
            *("--constraint", str(ROOT / "constraints.txt"), "--dest", str(folder), str(wheel)),
        )
    return sorted(folder.iterdir())


def _write_single_file(path: Path, wheels: Iterable[Path]) -> None:
    members: dict[str, bytes] = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            for name in opened.namelist():
                if not name.endswith("/") and not name.startswith(LEFT_OUT):
                    members[SITE + name] = opened.read(name)
    digest = hashlib.sha256()
    for name in sorted(members):
        digest.update(name.encode() + b"\0" + hashlib.sha256(members[name]).digest())
    members["identity"] = digest.hexdigest()[:32].encode()
    members["__main__.py"] = BOOTSTRAP.read_bytes()
    _write_zip(path, members, zipfile.ZIP_DEFLATED, SHEBANG)
    path.chmod(0o755)


def _write_zip(path: Path, members: Mapping[str, bytes], method: int, before: bytes = b"") -> None:
    """Sorted, and with one date for all: the same content gives the same bytes."""
    making = path.with_name(path.name + ".making")
    with making.open("wb") as file:
        file.write(before)
        with zipfile.ZipFile(file, "w", method) as archive:
            for name in sorted(members):
                member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                member.external_attr = 0o644 << 16
                archive.writestr(member, members[name], method)
    making.rename(path)


def _run(*arguments: str) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": _committed()}
    subprocess.run([sys.executable, *arguments], check=True, env=environment, stdout=sys.stderr, cwd=ROOT)


def _committed() -> str:
    """Seconds since 1970 of the commit; what is built outside a clone has a fixed date."""
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "315532800"


if __name__ == "__main__":
    main()
