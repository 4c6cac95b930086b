"""Measure the nvcc wheels: contents, ptxas, nvcc's own lists, and the host compiler limits of their headers."""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

from scripts.measuring.assembler import Assembler, call, first_line, make_executable
from scripts.measuring.wheels import read_member

ONE_LINE_KERNEL = 'extern "C" __global__ void k(int *p) { *p = 1; }\n'

CONTENTS = {
    "nvcc": r"/bin/nvcc$",
    "ptxas": r"/bin/ptxas$",
    "cicc": r"/cicc$",
    "cudafe++": r"/cudafe\+\+$",
    "fatbinary": r"/bin/fatbinary$",
    "nvlink": r"/bin/nvlink$",
    "bin2c": r"/bin/bin2c$",
    "libnvvm": r"/libnvvm\.so",
    "libdevice": r"/libdevice[^/]*\.bc$",
    "crt_headers": r"/crt/host_config\.h$",
    "cuda_runtime_h": r"/cuda_runtime\.h$",
}
#: target options put to `nvcc --dryrun`; None in the result means that nvcc did not object
TARGET_OPTIONS = [
    "-gencode arch=compute_70,code=sm_70",
    "-gencode arch=compute_101a,code=sm_101a",
    "-gencode arch=compute_107,code=sm_107",
    "-gencode arch=compute_120a,code=sm_120",
    "-gencode arch=compute_120,code=sm_120 -gencode arch=compute_120a,code=sm_120a",
    "-gencode arch=compute_120,code=sm_120 -gencode arch=compute_120f,code=sm_120f",
    "-arch=native",
]


def measure_ptxas(wheel: Path, work: Path, row: dict[str, Any], numbers: range) -> None:
    """Contents of the wheel, targets of its ptxas, and what its nvcc lists (13.x only)."""
    root = work / "wheel"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        row["contents"] = {part: any(re.search(pattern, name) for name in names) for part, pattern in CONTENTS.items()}
        has_nvcc = row["contents"]["nvcc"]
        archive.extractall(root, None if has_nvcc else [name for name in names if name.endswith("/bin/ptxas")])
    executable = next((path for path in root.rglob("ptxas") if path.is_file()), None)
    row["ptxas"] = Assembler(executable, work).measure(numbers) if executable else None
    row["cuda_release"] = row["ptxas"]["release"] if executable else None
    row["nvcc"] = _measure_nvcc(root, work) if has_nvcc else None
    row["provenance"] = f"measured: ptxas {row['ptxas']['version']}" if executable else "measured: wheel listing"


def measure_extra(wheel: Path, work: Path, row: dict[str, Any], numbers: range) -> None:
    """Cross targets, cubin headers, limits of static shared memory, and target options that nvcc refuses."""
    root = work / "wheel"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        has_nvcc = any(re.search(CONTENTS["nvcc"], name) for name in names)
        archive.extractall(root, None if has_nvcc else [name for name in names if name.endswith("/bin/ptxas")])
    assembler = Assembler(next(path for path in root.rglob("ptxas") if path.is_file()), work)
    base = assembler.measure(numbers)
    row.update(assembler.cross_targets(base))
    row["cubin_header"] = assembler.cubin_headers(base)
    row["static_shared_max"] = assembler.static_shared_limits(base)
    row["nvcc_refusals"] = _nvcc_refusals(root, work) if has_nvcc else None
    row["provenance"] = f"measured: ptxas {base['version']}"


def measure_host(wheel: Path, _work: Path, row: dict[str, Any], _numbers: range) -> None:
    """Host compiler limits stated by crt/host_config.h."""
    with zipfile.ZipFile(wheel) as archive:
        header = read_member(archive, "/crt/host_config.h")
    row["host_compiler"] = host_compiler_limits(header) if header else None
    row["provenance"] = f"measured: crt/host_config.h in {row['package']} {row['version']}"


def host_compiler_limits(header: str) -> dict[str, Any]:
    """Limits from the #if conditions, and those that the messages state: 12.2.128 to 12.3.107 contradict themselves."""

    def number(pattern: str) -> int | None:
        found = re.search(pattern, header)
        return int(found.group(1)) if found else None

    # other blocks of the header limit other clang variants
    block = header.partition("#if defined(__clang__) && !defined(__ibmxl_vrm__)")[2]
    clang = re.search(
        r"#if \(__clang_major__ >= (\d+)\) \|\| \(__clang_major__ < (\d+)\)"
        r"(?: \|\| \(\(__clang_major__ == \2\) && +\(__clang_minor__ < (\d+)\)\))?",
        block,
    )
    stated = re.search(r"unsupported clang version! clang version must be less than (\d+)", block)
    return {
        "gcc_max": number(r"#if __GNUC__ > (\d+)"),
        "gcc_max_in_message": number(r"gcc versions later than (\d+) are not supported"),
        "clang_min": f"{clang.group(2)}.{clang.group(3)}" if clang else None,
        "clang_max": int(clang.group(1)) - 1 if clang else None,
        "clang_max_in_message": int(stated.group(1)) - 1 if stated else None,
        "msvc_min": number(r"Only the versions between (\d{4}) and \d{4}"),
        "msvc_max": number(r"Only the versions between \d{4} and (\d{4})"),
        "msvc_ver_min": number(r"#if _MSC_VER < (\d+) \|\| _MSC_VER >= \d+"),
        "msvc_ver_below": number(r"#if _MSC_VER < \d+ \|\| _MSC_VER >= (\d+)"),
    }


def _find_nvcc(root: Path) -> Path:
    executable = next(path for path in root.rglob("nvcc") if path.parent.name == "bin" and path.is_file())
    for path in executable.parent.iterdir():
        if path.is_file():
            make_executable(path)
    return executable


def _measure_nvcc(root: Path, work: Path) -> dict[str, Any]:
    """nvcc's own target lists, and whether it compiles with nothing but its wheel."""
    nvcc = _find_nvcc(root)
    result: dict[str, Any] = {}
    for option in ("--list-gpu-arch", "--list-gpu-code"):
        status, text = call([str(nvcc), option], work)
        key = option.strip("-").replace("-", "_")
        result[key] = re.findall(r"(?:sm|compute)_\d+[a-z]?", text) if status == 0 else None
    listed = (result["list_gpu_arch"] or []) + (result["list_gpu_code"] or [])
    result["list_options_omit_a_f"] = bool(listed) and not any(target[-1] in "af" for target in listed)
    if not shutil.which("gcc"):
        return {**result, "usable_alone": None, "usable_alone_message": "not tried: no gcc"}
    (work / "k.cu").write_text(ONE_LINE_KERNEL)
    status, text = call([str(nvcc), "-ptx", "k.cu", "-o", "k.out"], work)
    message = None if status == 0 else first_line(text.replace(str(root), "ROOT"))
    return {**result, "usable_alone": status == 0, "usable_alone_message": message}


def _nvcc_refusals(root: Path, work: Path) -> dict[str, str | None]:
    """Target options -> first "nvcc fatal" or "nvcc warning" line, or None."""
    nvcc = _find_nvcc(root)
    (work / "k.cu").write_text(ONE_LINE_KERNEL)
    refusals: dict[str, str | None] = {}
    for options in TARGET_OPTIONS:
        _, text = call([str(nvcc), "--dryrun", *options.split(), "-c", "k.cu", "-o", "k.o"], work)
        lines = [line for line in text.splitlines() if re.match(r"nvcc (fatal|warning|error)", line)]
        refusals[options] = lines[0].strip() if lines else None
    return refusals
