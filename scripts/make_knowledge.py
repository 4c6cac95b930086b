"""Make the package data of gpuwhy.knowledge from measurements and documented tables.

    python -m scripts.make_knowledge               from scripts/sources, into src/gpuwhy/knowledge/data
    python -m scripts.make_knowledge --measure     measure every new wheel first (downloads; see README.md)
    python -m scripts.make_knowledge --check       write nothing; exit 1 if the data would change

Each table is checked against the type that reads it, and documented ranges against the wheels that were measured.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from packaging.version import Version

from gpuwhy.knowledge import drivers, dtypes, flashinfer, gpus, pins, toolkits, torch, triton
from gpuwhy.knowledge.tables import DATA

SOURCES = Path(__file__).resolve().parent / "sources"
Document = dict[str, Any]


class Sources:
    """The measured and documented files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def measured(self, name: str) -> list[Document]:
        """Rows of a result of measure_toolchains that did not fail."""
        rows: list[Document] = json.loads((self.folder / "measured" / f"{name}.json").read_text())["rows"]
        return [row for row in rows if "error" not in row]

    def documented(self, name: str) -> Document:
        table: Document = json.loads((self.folder / "documented" / f"{name}.json").read_text())
        return table


def cuda_key(release: str) -> tuple[int, int]:
    major, minor = release.split(".")[:2]
    return int(major), int(minor)


def target_key(target: str) -> tuple[int, str]:
    found = re.fullmatch(r"sm_(\d+)([a-z]?)", target)
    if not found:
        raise ValueError(f"not a target: {target}")
    return int(found[1]), found[2]


def grouped(rows: Iterable[Document], key: Callable[[Document], str]) -> dict[str, list[Document]]:
    groups: dict[str, list[Document]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def make_toolkits(sources: Sources) -> Document:
    documented = sources.documented("toolkits")
    by_release = grouped(sources.measured("ptxas"), lambda row: str(row["cuda_release"]))
    nvrtc = grouped(sources.measured("nvrtc"), lambda row: str(row["nvrtc_version"]))
    rows = []
    for cuda in sorted(by_release, key=cuda_key):
        measured = by_release[cuda]
        target_sets = {tuple(sorted(row["ptxas"]["assembled_min_ptx"], key=target_key)) for row in measured}
        isas = {row["ptxas"]["ptx_isa_max"] for row in measured}
        if len(target_sets) != 1 or len(isas) != 1:
            raise ValueError(f"the versions of CUDA {cuda} differ; the table holds one row for each release")
        targets = next(iter(target_sets))
        for row in nvrtc.get(cuda, []):
            if {f"sm_{target}" for target in row["accepted_sm_and_compute"]} != set(targets):
                raise ValueError(f"nvrtc {row['version']} accepts other targets than ptxas {cuda}")
        rows.append(
            {
                "cuda": cuda,
                "ptx_isa_max": next(iter(isas)),
                "targets": targets,
                "versions": [row["version"] for row in measured],
                "nvrtc_versions": [row["version"] for row in nvrtc.get(cuda, [])],
                "provenance": "measured: ptxas " + ", ".join(row["ptxas"]["version"] for row in measured),
            }
        )
    return {
        "toolkits": rows,
        "first_releases": documented["first_releases"],
        "options": documented["options"],
        "target_combinations": [
            {
                "options": options,
                "cuda": ".".join(row["version"].split(".")[:2]),
                "message": message,
                "provenance": f"measured: nvcc {row['version']}",
            }
            for row in sources.measured("extra")
            for options, message in (row["nvcc_refusals"] or {}).items()
        ],
        "host_compilers": make_host_compilers(sources),
    }


def make_host_compilers(sources: Sources) -> list[Document]:
    """Measured headers where there are wheels, the documented table before."""
    rows = [{**row, "clang_max": None} for row in sources.documented("host_compilers")["rows"]]
    by_release = grouped(sources.measured("host"), lambda row: ".".join(row["version"].split(".")[:2]))
    for cuda, measured in by_release.items():
        newest = max(measured, key=lambda row: Version(row["version"]))["host_compiler"]
        if len({row["host_compiler"]["gcc_max"] for row in measured}) != 1:
            raise ValueError(f"the headers of CUDA {cuda} have different gcc limits")
        versions = ", ".join(row["version"] for row in measured)
        rows.append(
            {
                "cuda": cuda,
                "gcc_max": newest["gcc_max"],
                "clang_max": newest["clang_max"],
                "provenance": f"measured: crt/host_config.h in {measured[-1]['package']} {versions}",
            }
        )
    measured_releases = set(by_release)
    return sorted(
        (row for row in rows if "measured" in row["provenance"] or row["cuda"] not in measured_releases),
        key=lambda row: cuda_key(row["cuda"]),
    )


def make_triton(sources: Sources) -> Document:
    rows = []
    for row in sorted(sources.measured("triton"), key=lambda row: Version(row["version"])):
        second_from = row["blackwell_used_from_sm"]
        mapping = row["compiler_py"].get("ptx_version_for_ptxas_release") or {}
        agreed = [release for release, version in mapping.items() if isinstance(version, int)]
        rows.append(
            {
                "version": row["version"],
                "assemblers": [
                    {
                        "name": name,
                        "version": row["assemblers"][name]["version"],
                        "ptx_isa_max": row["assemblers"][name]["ptx_isa_max"],
                        "targets": sorted(row["assemblers"][name]["assembled_min_ptx"], key=target_key),
                    }
                    for name in sorted(row["assemblers"])
                ],
                "second_from": f"{second_from // 10}.{second_from % 10}" if second_from else None,
                # releases before 3.3 have no helper that names the target: they add "a" for 9.0 only
                "suffix_only_90": row["compiler_py"].get("target_for_cc") is None,
                "override_variables": row["override_env"],
                "newest_ptxas": max(agreed, key=cuda_key) if agreed else None,
                "provenance": row["provenance"],
            }
        )
    return {"releases": rows}


def make_pins(sources: Sources) -> Document:
    """Measured METADATA first; older releases from the hand-kept table."""
    rows = {
        (row["engine"], row["version"]): {
            "engine": row["engine"],
            "version": row["version"],
            "requirements": row["pins"],
            "provenance": row["provenance"],
        }
        for row in sources.measured("pins")
    }
    with (sources.folder / "documented" / "pins.tsv").open(newline="") as file:
        for line in csv.DictReader(file, delimiter="\t"):
            rows.setdefault(
                (line["package"], line["version"]),
                {
                    "engine": line["package"],
                    "version": line["version"],
                    "requirements": list(read_pin_columns(line)),
                    "provenance": f"measured once: METADATA of {line['package']} {line['version']}",
                },
            )
    return {"releases": sorted(rows.values(), key=lambda row: (row["engine"], Version(row["version"])))}


def read_pin_columns(line: dict[str, str]) -> Iterable[Document]:
    """Cells such as "==2.5.1 (extra srt) |  (extra srt-hip)", "[cu13]==0.6.12", "sgl-kernel==0.3.5"; "-" is none."""
    columns = {
        "torch": "torch",
        "flashinfer_python": "flashinfer-python",
        "flashinfer_cubin": "flashinfer-cubin",
        "sgl_kernel": "sgl-kernel",
        "nvidia_cutlass_dsl": "nvidia-cutlass-dsl",
        "apache_tvm_ffi": "apache-tvm-ffi",
    }
    for column, package in columns.items():
        name = package
        for cell in line[column].split("|"):
            found = re.fullmatch(
                r"\s*(?P<name>[a-z][a-z-]*)?(?:\[\w+\])?(?P<specifier>[^(]*?)\s*(?:\(extra (?P<extra>[\w-]+)\))?\s*",
                cell,
            )
            if cell.strip() == "-" or not found:
                continue
            name = found["name"] or name
            yield {"package": name, "specifier": found["specifier"], "extra": found["extra"]}


def make_flashinfer(sources: Sources) -> Document:
    """Documented epochs, each checked against the wheels that were read, and the lines of those wheels."""
    documented = sources.documented("flashinfer")
    measured = [
        row for row in sources.measured("flashinfer") if not Version(row["version"]).is_prerelease and row.get("lines")
    ]
    measured.sort(key=lambda row: Version(row["version"]))
    for epoch in documented["epochs"]:
        inside = [
            row for row in measured if Version(epoch["first"]) <= Version(row["version"]) <= Version(epoch["last"])
        ]
        expected = list(dict.fromkeys(rule["message"] for rule in epoch["rules"]))
        for row in inside:
            if row["gate_messages"] != expected:
                raise ValueError(f"flashinfer {row['version']} raises {row['gate_messages']}, the epoch {expected}")
        epoch["wheels_read"] = [row["version"] for row in inside]
    layouts: list[list[Document]] = []
    releases = []
    for row in documented.pop("tagged_lines"):
        layouts.append([{key: row[key] for key in ("file", "function", "lines")}])
        releases.append(
            {
                "version": row["version"],
                "nvcc_options": None,
                "layout": len(layouts) - 1,
                "provenance": row["provenance"],
            }
        )
    for row in measured:
        layout = [
            {"file": file, "function": function, "lines": lines}
            for file, functions in row["lines"].items()
            for function, lines in functions.items()
        ]
        if layout not in layouts:
            layouts.append(layout)
        releases.append(
            {
                "version": row["version"],
                "nvcc_options": [option for option in row["nvcc_options"] if option == "--compress-mode=size"],
                "layout": layouts.index(layout),
                "provenance": row["provenance"],
            }
        )
    return {**documented, "releases": releases, "layouts": layouts}


TABLES: dict[str, tuple[type[msgspec.Struct], Callable[[Sources], Document]]] = {
    "toolkits": (toolkits.ToolkitTable, make_toolkits),
    "triton": (triton.TritonTable, make_triton),
    "pins": (pins.PinTable, make_pins),
    "flashinfer": (flashinfer.FlashinferTable, make_flashinfer),
    "gpus": (gpus.GpuTable, lambda sources: sources.documented("gpus")),
    "drivers": (drivers.DriverTable, lambda sources: sources.documented("drivers")),
    "torch": (torch.TorchTable, lambda sources: sources.documented("torch")),
    "number_formats": (dtypes.NumberFormats, lambda sources: sources.documented("number_formats")),
}


def as_text(document: Document) -> str:
    """JSON with one row a line: small, and readable as a diff."""
    tables = []
    for name, rows in document.items():
        lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
        tables.append(f"{json.dumps(name)}: [\n{lines}\n]")
    return "{\n" + ",\n".join(tables) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, default=SOURCES, help="folder with measured/ and documented/")
    parser.add_argument("--out", type=Path, default=DATA, help="folder of the package data")
    parser.add_argument("--measure", action="store_true", help="measure wheels that are not measured yet, first")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the data would change")
    options = parser.parse_args()
    if options.measure:
        command = [
            sys.executable,
            "-m",
            "scripts.measure_toolchains",
            "all",
            "--out",
            str(options.sources / "measured"),
        ]
        subprocess.run(command, check=True)
    sources = Sources(options.sources)
    changed = []
    for name, (kind, make) in TABLES.items():
        document = make(sources)
        text = as_text(document)
        msgspec.json.decode(text, type=kind)
        path = options.out / f"{name}.json"
        if not path.exists() or path.read_text() != text:
            changed.append(name)
        if not options.check:
            path.write_text(text)
    print("changed: " + (", ".join(changed) or "nothing"))
    if options.check and changed:
        sys.exit(1)


if __name__ == "__main__":
    main()
