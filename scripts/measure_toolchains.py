"""Measure which GPU targets the CUDA toolchain wheels really accept.

No GPU is needed. Every number is produced by running the tool that a wheel ships or by reading its header or
source, never from release notes. Run it from the repository root:

    python -m scripts.measure_toolchains all             everything that is not measured yet
    python -m scripts.measure_toolchains ptxas           nvidia-cuda-nvcc* wheels: ptxas, nvcc
    python -m scripts.measure_toolchains host            the same: limits in crt/host_config.h
    python -m scripts.measure_toolchains nvrtc           nvidia-cuda-nvrtc* wheels
    python -m scripts.measure_toolchains triton          triton wheels: bundled assemblers
    python -m scripts.measure_toolchains extra           cross targets, cubin headers, refused options
    python -m scripts.measure_toolchains flashinfer      flashinfer-python wheels: gate, traceback lines
    python -m scripts.measure_toolchains pins            pins of SGLang and vLLM releases (--versions needed)

Without --versions every released version is measured (triton: the newest patch release of every minor release
from 3.0; extra: the newest version of every CUDA release). --versions takes plain versions ("12.8.93"), exact
requirements ("nvidia-cuda-nvcc==13.5.37") or specifiers (">=13,<14").

Wheels are downloaded one at a time into a temporary folder that is removed again. OUT/TOOL.json is rewritten
after every wheel, so an interrupted run keeps what it has; what is already in it is skipped unless --force.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from packaging.version import Version

from scripts.measuring import flashinfer, nvrtc, pins, toolkit, triton, wheels

MEASURED = Path(__file__).resolve().parent / "sources" / "measured"

NVCC_WHEELS = ["nvidia-cuda-nvcc-cu11", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvcc"]
PACKAGES = {
    "ptxas": NVCC_WHEELS,
    "host": ["nvidia-cuda-nvcc-cu11", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-crt"],
    "nvrtc": ["nvidia-cuda-nvrtc-cu11", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc"],
    "triton": ["triton"],
    "extra": NVCC_WHEELS,
    "flashinfer": ["flashinfer-python"],
}
MEASURE: dict[str, Callable[[Path, Path, dict[str, Any], range], None]] = {
    "ptxas": toolkit.measure_ptxas,
    "host": toolkit.measure_host,
    "nvrtc": nvrtc.measure_wheel,
    "triton": triton.measure_wheel,
    "extra": toolkit.measure_extra,
    "flashinfer": flashinfer.measure_wheel,
}
ENGINES = ["sglang", "vllm"]


def select(tool: str, wanted: list[str] | None) -> list[tuple[str, str]]:
    """(package, version) pairs to measure."""
    pairs = [(package, version) for package in PACKAGES[tool] for version in wheels.released_versions(package)]
    if wanted:
        return wheels.choose(pairs, wanted)
    if tool in ("triton", "extra"):
        return wheels.newest_of_each_release(pairs, oldest="3.0")
    if tool == "flashinfer":  # older releases have no wheel
        return [(package, version) for package, version in pairs if Version(version) >= Version("0.5.0")]
    return pairs


def measure_one(tool: str, package: str, version: str, options: argparse.Namespace) -> dict[str, Any]:
    """One row; a failure is recorded in it and does not end the run."""
    row: dict[str, Any] = {"package": package, "version": version}
    with tempfile.TemporaryDirectory(prefix="measure-", dir=options.tmp) as folder:
        store, work = Path(folder).resolve() / "wheels", Path(folder).resolve() / "work"
        store.mkdir()
        work.mkdir()
        wheel = wheels.download(package, version, store)
        if wheel is None:
            row["error"] = "pip could not download a wheel for this platform"
            return row
        row.update(wheels.describe(wheel))
        try:
            MEASURE[tool](wheel, work, row, options.targets)
        except Exception as error:  # noqa: BLE001 - the row says what failed
            row["error"] = f"{type(error).__name__}: {error}".replace(folder, "TMP")
    return row


def run_tool(tool: str, options: argparse.Namespace, budget: wheels.DownloadBudget) -> None:
    path = Path(options.out) / f"{tool}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    data: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"schema": 2, "rows": []}
    data["host"] = {
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
    }
    order = {package: index for index, package in enumerate(PACKAGES[tool])}
    for package, version in select(tool, options.versions):
        old = [row for row in data["rows"] if (row["package"], row["version"]) == (package, version)]
        if old and "error" not in old[0] and not options.force:
            continue
        if budget.is_spent:
            print(f"download limit reached before {package} {version}", file=sys.stderr)
            break
        row = measure_one(tool, package, version, options)
        budget.add(row.get("wheel_bytes", 0))
        data["rows"] = [r for r in data["rows"] if (r["package"], r["version"]) != (package, version)]
        data["rows"].append(row)
        data["rows"].sort(key=lambda r: (order[r["package"]], Version(r["version"])))
        path.write_text(json.dumps(data, indent=1) + "\n")
        print(f"{package} {version}: {row.get('error') or row.get('provenance')}", flush=True)


def run_pins(options: argparse.Namespace) -> None:
    """Pins come from index metadata: one small request for each release, so only named releases are asked for."""
    if not options.versions:
        sys.exit("pins: name the releases, for example --versions sglang==0.5.23 'vllm>=0.32'")
    path = Path(options.out) / "pins.json"
    data: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"schema": 2, "rows": []}
    pairs = [(engine, version) for engine in ENGINES for version in wheels.released_versions(engine)]
    for engine, version in wheels.choose(pairs, options.versions):
        if not options.force and any((r["engine"], r["version"]) == (engine, version) for r in data["rows"]):
            continue
        row = pins.measure_release(engine, version)
        print(f"{engine} {version}: {row['provenance'] if row else 'no wheel'}", flush=True)
        if row:
            data["rows"] = [r for r in data["rows"] if (r["engine"], r["version"]) != (engine, version)]
            data["rows"].append(row)
            data["rows"].sort(key=lambda r: (r["engine"], Version(r["version"])))
            path.write_text(json.dumps(data, indent=1) + "\n")


def target_range(text: str) -> range:
    first, last = text.split("-")
    return range(int(first), int(last) + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=[*MEASURE, "pins", "all"])
    parser.add_argument("--versions", nargs="+", help="versions, requirements or specifiers")
    parser.add_argument("--out", default=str(MEASURED), help="folder for the results")
    parser.add_argument(
        "--targets", type=target_range, default=range(35, 122), metavar="35-121", help="range of sm numbers to try"
    )
    parser.add_argument("--max-gib", type=float, default=8.0, help="stop downloading after this much")
    parser.add_argument("--tmp", default=None, help="folder for temporary files")
    parser.add_argument("--force", action="store_true", help="measure again what is already there")
    options = parser.parse_args()
    if options.tool == "pins":
        run_pins(options)
        return
    budget = wheels.DownloadBudget(int(options.max_gib * 2**30))
    for tool in MEASURE if options.tool == "all" else [options.tool]:
        run_tool(tool, options, budget)
    print(f"downloaded {budget.used_bytes / 2**30:.2f} GiB", file=sys.stderr)


if __name__ == "__main__":
    main()
