"""Ask a ptxas executable which GPU targets and PTX versions it accepts, by assembling empty kernels."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

#: architecture-specific suffixes tried for every target number
SUFFIXES = ("", "a", "f")
#: no single tool call may take longer
CALL_TIMEOUT_S = 120

KERNEL = ".version {isa}\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"


def call(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Exit status and combined output. File names are relative to `folder`, so no path of this machine appears."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CALL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, "timeout"
    return done.returncode, done.stdout + done.stderr


def make_executable(path: Path) -> None:
    """zipfile does not restore permissions."""
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def isa_key(isa: str) -> tuple[int, int]:
    """ "8.7" -> (8, 7), for sorting."""
    major, minor = isa.split(".")
    return int(major), int(minor)


def target_key(target: str) -> tuple[int, str]:
    """ "sm_120a" -> (120, "a"), for sorting."""
    found = re.fullmatch(r"(?:sm_|compute_)?(\d+)([a-z]?)", target)
    if not found:
        raise ValueError(f"not a GPU target: {target}")
    return int(found.group(1)), found.group(2)


def first_line(text: str) -> str:
    return (text.strip().splitlines() or ["(no output)"])[0]


class Assembler:
    """One ptxas executable, and a scratch folder for its input and output."""

    def __init__(self, executable: Path, work: Path) -> None:
        self.executable = executable
        self.work = work
        make_executable(executable)

    def assemble(self, target: str, isa: str, gpu_name: str | None = None) -> tuple[bool, str]:
        """Assemble an empty kernel; accepted means exit status 0 and a cubin that is not empty."""
        gpu_name = gpu_name or target
        stem = f"k-{target}-{gpu_name}-{isa}"
        source, cubin = self.work / f"{stem}.ptx", self.work / f"{stem}.cubin"
        source.write_text(KERNEL.format(isa=isa, target=target))
        status, text = call([str(self.executable), "-arch", gpu_name, source.name, "-o", cubin.name], self.work)
        accepted = status == 0 and cubin.exists() and cubin.stat().st_size > 0
        for path in (source, cubin):
            path.unlink(missing_ok=True)
        return accepted, text.replace(stem, "k")

    def measure(self, numbers: range) -> dict[str, Any]:
        """Version, PTX versions, accepted targets with the lowest PTX version of each, and refusal texts."""
        _, version_text = call([str(self.executable), "--version"], self.work)
        version = re.search(r"release ([\d.]+), V([\d.]+)", version_text)
        build = re.search(r"^Build (\S+)", version_text, re.M)
        help_list, default = self._help()
        # ptxas names its own highest PTX version when it is given one that is too high
        _, refusal = self.assemble(help_list[-1] if help_list else "sm_75", "99.9")
        highest = re.search(r"current version is '([\d.]+)'", refusal)
        if not highest:
            raise RuntimeError("no PTX version in the refusal of .version 99.9")
        isa_max = highest.group(1)
        # a release newer than this script may list targets outside the range that was asked for
        tried = sorted({*numbers, *(target_key(target)[0] for target in help_list)})
        known = self._known_isas(default or help_list[0], isa_max)
        lowest, gaps, refusals = self._targets([f"sm_{n}{s}" for n in tried for s in SUFFIXES], isa_max, known)
        list_status, list_text = call([str(self.executable), "--list-arch"], self.work)
        return {
            "version": version.group(2) if version else None,
            "release": version.group(1) if version else None,
            "build": build.group(1) if build else None,
            "ptx_isa_max": isa_max,
            "ptx_isa_max_refusal": first_line(refusal),
            "ptx_isa_known": known,
            "default_gpu_name": default,
            "assembled_min_ptx": lowest,
            "ptx_isa_gaps": gaps,
            "refusals": refusals,
            "help_list": help_list,
            "help_list_equals_accepted": help_list == sorted(lowest, key=target_key),
            "list_arch_option": list_status == 0,
            "list_arch": re.findall(r"^\D*?(\d+[a-z]?)$", list_text, re.M) if list_status == 0 else None,
        }

    def _help(self) -> tuple[list[str], str | None]:
        """GPU names and the default one, as `--help` lists them."""
        _, text = call([str(self.executable), "--help"], self.work)
        found = re.search(r"--gpu-name.*?(?=\n--[a-z])", text, re.S)
        section = found.group(0) if found else ""
        default = re.search(r"Default value:\s*'(\w+)'", section)
        names = set(re.findall(r"'(sm_\d+[a-z]?)'", section.split("Default value")[0]))
        return sorted(names, key=target_key), default.group(1) if default else None

    def _known_isas(self, target: str, isa_max: str) -> list[str]:
        grid = [f"{a}.{b}" for a in range(1, isa_key(isa_max)[0] + 1) for b in range(10)]
        grid = [isa for isa in grid if isa_key(isa) <= isa_key(isa_max)]
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            texts = list(pool.map(lambda isa: self.assemble(target, isa)[1], grid))
        return [isa for isa, text in zip(grid, texts, strict=True) if "Unsupported .version" not in text]

    def _targets(
        self, candidates: list[str], isa_max: str, known: list[str]
    ) -> tuple[dict[str, str], dict[str, list[str]], dict[str, int]]:
        """Accepted target -> lowest PTX version; the versions above it that are refused; refusal text -> count."""
        lowest: dict[str, str] = {}
        gaps: dict[str, list[str]] = {}
        refusals: dict[str, int] = {}
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            answers = list(pool.map(lambda target: self.assemble(target, isa_max), candidates))
            for target, (accepted, text) in zip(candidates, answers, strict=True):
                if not accepted:
                    line = first_line(text).replace(target, "TARGET")
                    refusals[line] = refusals.get(line, 0) + 1
                    continue
                works = list(pool.map(lambda isa, name=target: self.assemble(name, isa)[0], known))
                good = [isa for isa, ok in zip(known, works, strict=True) if ok]
                lowest[target] = good[0]
                refused = [
                    isa for isa, ok in zip(known, works, strict=True) if not ok and isa_key(isa) > isa_key(good[0])
                ]
                if refused:
                    gaps[target] = refused
        return lowest, gaps, refusals

    def cross_targets(self, base: dict[str, Any]) -> dict[str, Any]:
        """Which PTX target assembles for which GPU name, and the texts of refusals. `base` comes from measure()."""
        targets = list(base["assembled_min_ptx"])
        pairs = [(target, name) for target in targets for name in targets]
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            answers = list(pool.map(lambda pair: self.assemble(pair[0], base["ptx_isa_max"], pair[1]), pairs))
        accepted: dict[str, list[str]] = {target: [] for target in targets}
        refusals: dict[str, dict[str, Any]] = {}
        for (target, name), (ok, text) in zip(pairs, answers, strict=True):
            if ok:
                accepted[target].append(name)
                continue
            line = first_line(text)
            shape = line.replace(f"'{target}'", "'TARGET'").replace(f"'{name}'", "'ARCH'")
            entry = refusals.setdefault(shape, {"count": 0, "example": f"{target} for {name}: {line}"})
            entry["count"] += 1
        return {"cross_target": accepted, "cross_target_refusals": refusals}

    def cubin_headers(self, base: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Target -> the ELF header fields that tell the target of a cubin."""
        headers = {}
        for target in base["assembled_min_ptx"]:
            (self.work / "h.ptx").write_text(KERNEL.format(isa=base["ptx_isa_max"], target=target))
            call([str(self.executable), "-arch", target, "h.ptx", "-o", "h.cubin"], self.work)
            head = (self.work / "h.cubin").read_bytes()[:64]
            headers[target] = {
                "ei_osabi": head[7],
                "ei_abiversion": head[8],
                "e_machine": int.from_bytes(head[18:20], "little"),
                "e_flags": hex(int.from_bytes(head[48:52], "little")),
            }
        return headers

    def static_shared_limits(self, base: dict[str, Any]) -> dict[str, int | None]:
        """Target -> bytes of static shared memory that ptxas allows; None where 1 MiB was accepted."""
        limits: dict[str, int | None] = {}
        for target in base["assembled_min_ptx"]:
            # 49153 bytes exceed the usual limit; 1 MiB makes the others name theirs
            for size in (49153, 1 << 20):
                body = f".shared .b8 b[{size}]; .reg .b32 r; mov.u32 r, b; st.shared.b8 [r], 0; ret;"
                kernel = KERNEL.format(isa=base["ptx_isa_max"], target=target).replace("ret;", body)
                (self.work / "s.ptx").write_text(kernel)
                status, text = call([str(self.executable), "-arch", target, "s.ptx", "-o", "s.cubin"], self.work)
                found = re.search(r"uses too much shared data \(0x\w+ bytes, (0x\w+) max\)", text)
                if found:
                    limits[target] = int(found.group(1), 16)
                    break
                if status:
                    raise RuntimeError(f"static shared memory, {target}: {text.strip()[:200]}")
            else:
                limits[target] = None
        return limits
