"""Read a FlashInfer wheel: its compute capability gate, and the lines that appear in its tracebacks.

Nothing is imported or run: the source is parsed. The lines of a few functions date a traceback that names no
version; the gate tells which toolkit a release asks for.
"""

from __future__ import annotations

import ast
import hashlib
import re
import zipfile
from pathlib import Path
from typing import Any

from scripts.measuring.wheels import read_member

#: file of the package -> functions whose lines are recorded ("Class.method" for methods)
TRACED_FUNCTIONS = {
    "compilation_context.py": [
        "CompilationContext.__init__",
        "CompilationContext._normalize_cuda_arch",
        "CompilationContext.get_nvcc_flags_list",
    ],
    "jit/core.py": ["check_cuda_arch", "gen_jit_spec", "JitSpec.build", "JitSpec.build_and_load"],
    "jit/cpp_ext.py": ["get_cuda_path", "get_cuda_version", "run_ninja", "generate_ninja_build_for_op"],
    "jit/sampling.py": ["gen_sampling_module"],
    "sampling.py": ["get_sampling_module", "top_k_top_p_sampling_from_probs", "top_p_sampling_from_probs"],
}
#: nvcc options that only some toolkits know
WATCHED_OPTIONS = ["--compress-mode=size", "-static-global-template-stub=false"]


def measure_wheel(wheel: Path, _work: Path, row: dict[str, Any], _numbers: range) -> None:
    """Fill `row` with what the wheel's source says."""
    with zipfile.ZipFile(wheel) as archive:
        sources = {file: read_member(archive, f"flashinfer/{file}") for file in TRACED_FUNCTIONS}
    context = sources["compilation_context.py"]
    row["compilation_context_md5"] = hashlib.md5(context.encode()).hexdigest() if context else None
    row["gate_messages"] = gate_messages(context) if context else None
    row["lines"] = {
        file: traced_lines(source, TRACED_FUNCTIONS[file]) for file, source in sources.items() if source is not None
    }
    build = (sources["jit/core.py"] or "") + (sources["jit/cpp_ext.py"] or "")
    row["nvcc_options"] = [option for option in WATCHED_OPTIONS if option in build]
    row["provenance"] = f"measured: source of the flashinfer-python {row['version']} wheel"


def gate_messages(source: str) -> list[str]:
    """Texts that _normalize_cuda_arch raises, in source order; empty where a release has no gate."""
    return re.findall(r'raise RuntimeError\("(SM [^"]+)"\)', source)


def traced_lines(source: str, functions: list[str]) -> dict[str, list[int]]:
    """Function -> lines at which a frame of it can stand: its raise statements and its calls."""
    found: dict[str, list[int]] = {}
    for node in ast.parse(source).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for member in members:
            if isinstance(member, ast.FunctionDef) and prefix + member.name in functions:
                found[prefix + member.name] = sorted(
                    {part.lineno for part in ast.walk(member) if isinstance(part, (ast.Call, ast.Raise, ast.Assign))}
                )
    return found
