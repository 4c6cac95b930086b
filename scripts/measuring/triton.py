"""Measure a Triton wheel: its bundled assemblers, which GPUs they can serve, which variables replace them."""

from __future__ import annotations

import ast
import functools
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from scripts.measuring.assembler import Assembler

#: compute capabilities (times ten) for which a release is asked whether it can serve them
CAPABILITIES = [75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121]
#: ptxas releases for which a Triton release is asked for its PTX version
PTXAS_RELEASES = [
    "11.8",
    "12.0",
    "12.4",
    "12.5",
    "12.6",
    "12.7",
    "12.8",
    "12.9",
    "13.0",
    "13.1",
    "13.2",
    "13.3",
    "13.4",
    "13.5",
    "13.9",
    "14.0",
]


def measure_wheel(wheel: Path, work: Path, row: dict[str, Any], numbers: range) -> None:
    """Run each bundled ptxas like any other; call the pure helpers of backends/nvidia/compiler.py."""
    root = work / "wheel"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        tools = [name for name in names if re.fullmatch(r"ptxas[\w-]*", name.rsplit("/", 1)[-1])]
        archive.extractall(root, tools)
        sources = {name: archive.read(name).decode("utf-8", "replace") for name in names if name.endswith(".py")}
    row["override_env"] = _override_variables(sources, tools)
    assemblers = {name.rsplit("/", 1)[-1]: Assembler(root / name, work).measure(numbers) for name in tools}
    row["assemblers"] = assemblers
    row["ptxas"] = assemblers.get("ptxas", {}).get("version")
    row["ptxas_blackwell"] = assemblers.get("ptxas-blackwell", {}).get("version")
    compiler = next((text for name, text in sources.items() if name.endswith("/backends/nvidia/compiler.py")), None)
    row["compiler_py"] = info = _ask_compiler(compiler) if compiler else {}
    row["llvm_ptx_cap"] = info.get("llvm_ptx_cap")
    picked: dict[str, str] = info.get("assembler_for_cc") or {}
    newer = [number for number in CAPABILITIES if picked.get(str(number)) == "ptxas-blackwell"]
    row["blackwell_used_from_sm"] = min(newer) if newer and row["ptxas_blackwell"] else None
    row["ccs_refused_by_bundled_ptxas"] = _refused(assemblers, picked, info.get("target_for_cc") or {})
    row["provenance"] = "measured: " + ", ".join(f"{name} {m['version']}" for name, m in sorted(assemblers.items()))


def _override_variables(sources: dict[str, str], tools: list[str]) -> list[str]:
    """Names of the variables that replace an assembler: spelt out, or made from the name of the tool."""
    pattern = r"TRITON_\w*PTXAS|TRITON_\{|env_nvidia_tool\(|PTXAS_BLACKWELL"
    lines = {line.strip() for text in sources.values() for line in text.splitlines() if re.search(pattern, line)}
    names = {name for line in lines for name in re.findall(r"TRITON_PTXAS\w*PATH", line)}
    for line in lines:
        for tool in re.findall(r"""env_nvidia_tool\(['"]([\w-]+)['"]\)""", line):
            if tool.startswith("ptxas"):
                names.add(f"TRITON_{tool.upper().replace('-', '_')}_PATH")
    # 3.3 builds the name without replacing the hyphen
    if any("TRITON_{binary.upper()}_PATH" in line for line in lines):
        names |= {f"TRITON_{tool.rsplit('/', 1)[-1].upper()}_PATH" for tool in tools}
    return sorted(names)


def _refused(assemblers: dict[str, Any], picked: dict[str, str], targets: dict[str, str]) -> list[str]:
    """Compute capabilities whose target the assembler that would be run does not accept."""
    refused = []
    for number in CAPABILITIES:
        # releases before 3.3 have no helper: "a" is added for 9.0 only
        target = targets[str(number)] if targets else f"sm_{number}{'a' if number == 90 else ''}"
        name = picked[str(number)] if picked else "ptxas"
        if name not in assemblers:
            raise RuntimeError(f"get_ptxas for {number}: {name}")
        if target not in assemblers[name]["assembled_min_ptx"]:
            refused.append(f"{number // 10}.{number % 10}")
    return refused


def _ask_compiler(text: str) -> dict[str, Any]:
    """Cut functions out of compiler.py and call them; importing Triton would need its native library."""
    # stand-ins that answer with the name of the assembler that would be run
    tools = SimpleNamespace(nvidia=SimpleNamespace(ptxas="ptxas", ptxas_blackwell="ptxas-blackwell"))
    pick = _cut_out(text, "get_ptxas", knobs=tools, _path_to_binary=lambda name: name)
    mapping = _cut_out(text, "ptx_get_version")
    name_of = _cut_out(text, "sm_arch_from_capability")
    cap = re.search(r"min\((\d+), *ptx_version\)", text)
    return {
        "ptx_version_for_ptxas_release": {release: _attempt(mapping, release) for release in PTXAS_RELEASES}
        if mapping
        else None,
        "target_for_cc": {str(n): _attempt(name_of, n) for n in CAPABILITIES} if name_of else None,
        "assembler_for_cc": {str(n): _attempt(pick, *[n][: pick.__code__.co_argcount]) for n in CAPABILITIES}
        if pick
        else None,
        "llvm_ptx_cap": int(cap.group(1)) if cap else None,
    }


def _cut_out(text: str, name: str, **names: Any) -> Callable[..., Any] | None:
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name == name]
    if not nodes:
        return None
    node = nodes[0]
    node.decorator_list = []
    node.returns = None
    for argument in node.args.args:
        argument.annotation = None
    scope: dict[str, Any] = {"functools": functools, "re": re, **names}
    exec(compile(ast.Module([node], []), name, "exec"), scope)
    function: Callable[..., Any] = scope[name]
    return function


def _attempt(function: Callable[..., Any] | None, *arguments: Any) -> Any:
    if function is None:
        return None
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001 - the refusal is the result
        return f"{type(error).__name__}: {error}"
