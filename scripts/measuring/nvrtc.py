"""Ask an NVRTC library which targets it compiles for. It is loaded in a child process, with ctypes.

As a program (`python nvrtc.py LIBRARY NUMBER...`) it is that child, and prints one JSON object.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

KERNEL = b'extern "C" __global__ void k(int *p) { *p = 1; }\n'
SUFFIXES = ("", "a", "f")


def measure_wheel(wheel: Path, work: Path, row: dict[str, Any], numbers: range) -> None:
    """Fill `row` with the targets for which both compute_N and sm_N compile."""
    from scripts.measuring.assembler import call

    root = work / "wheel"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(root, [name for name in archive.namelist() if "/libnvrtc" in name])
    libraries = sorted(path for path in root.rglob("libnvrtc.so*") if ".alt." not in path.name)
    if not libraries:
        raise RuntimeError("no libnvrtc in the wheel")
    environment = dict(os.environ, LD_LIBRARY_PATH=str(libraries[0].parent))
    command = [sys.executable, str(Path(__file__).resolve()), str(libraries[0]), *map(str, numbers)]
    status, text = call(command, work, environment)
    if status:
        raise RuntimeError(f"NVRTC child exited {status}: {text.strip().splitlines()[-1:]}")
    result = json.loads(text.strip().splitlines()[-1])
    row.update(result)
    row["compute_equals_sm"] = result["accepted_compute"] == result["accepted_sm"]
    row["accepted_sm_and_compute"] = [t for t in result["accepted_compute"] if t in result["accepted_sm"]]
    row["provenance"] = f"measured: nvrtc {row['version']}"


class Nvrtc:
    """A loaded NVRTC library."""

    def __init__(self, library: str) -> None:
        self.library = ctypes.CDLL(library)
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def compile(self, options: list[str]) -> tuple[int, str, str]:
        """Error code, log, PTX of a one-line kernel."""
        lib = self.library
        program = ctypes.c_void_p()
        lib.nvrtcCreateProgram(ctypes.byref(program), KERNEL, b"k.cu", 0, None, None)
        array = (ctypes.c_char_p * max(len(options), 1))(*[option.encode() for option in options])
        code = int(lib.nvrtcCompileProgram(program, len(options), array))
        log = self._text(program, lib.nvrtcGetProgramLogSize, lib.nvrtcGetProgramLog)
        ptx = self._text(program, lib.nvrtcGetPTXSize, lib.nvrtcGetPTX) if code == 0 else ""
        lib.nvrtcDestroyProgram(ctypes.byref(program))
        return code, log, ptx

    @staticmethod
    def _text(program: ctypes.c_void_p, get_size: Any, get_text: Any) -> str:
        size = ctypes.c_size_t()
        get_size(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        get_text(program, buffer)
        return buffer.value.decode("utf-8", "replace")

    def version(self) -> str:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"

    def announced_targets(self) -> list[int]:
        """What nvrtcGetSupportedArchs reports; it leaves out every a and f target."""
        count = ctypes.c_int()
        self.library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self.library.nvrtcGetSupportedArchs(numbers)
        return list(numbers)


def _measure_library(path: str, numbers: list[int]) -> dict[str, Any]:
    nvrtc = Nvrtc(path)
    announced = nvrtc.announced_targets()
    _, _, ptx = nvrtc.compile([])
    version, target = re.search(r"\.version (\S+)", ptx), re.search(r"\.target (\w+)", ptx)
    accepted: dict[str, list[str]] = {"compute": [], "sm": []}
    refusals: dict[str, int] = {}
    for kind, found in accepted.items():
        for number in sorted({*numbers, *announced}):
            for suffix in SUFFIXES:
                name = f"{kind}_{number}{suffix}"
                code, log, _ = nvrtc.compile([f"--gpu-architecture={name}"])
                if code == 0:
                    found.append(f"{number}{suffix}")
                    continue
                lines = log.strip("\0\n ").splitlines() or ["(no log)"]
                line = next((text for text in lines if "error" in text), lines[0]).replace(name, "TARGET")
                key = f"{nvrtc.library.nvrtcGetErrorString(code).decode()}: {line}"
                refusals[key] = refusals.get(key, 0) + 1
    return {
        "nvrtc_version": nvrtc.version(),
        "supported_archs": announced,
        "accepted_compute": accepted["compute"],
        "accepted_sm": accepted["sm"],
        "ptx_version_emitted": version.group(1) if version else None,
        "default_target": target.group(1) if target else None,
        "refusals": refusals,
    }


if __name__ == "__main__":
    print(json.dumps(_measure_library(sys.argv[1], [int(text) for text in sys.argv[2:]])))
