"""Compilers that run below a process: which, on what, for how long, and how far the build has come.

``.ninja_log`` has a line for each finished step, ``build.ninja`` one ``build`` statement for each that there is:

    0	41873	1764500000000000000	sampling.cuda.o	a1b2c3d4
    build sampling.cuda.o: cuda_compile /opt/venv/.../sampling.cu
"""

import os
import re
import time
from typing import Any, Dict, List, Optional

from gpuwhy.collector.hangs_processes import brief
from gpuwhy.collector.process import arguments
from gpuwhy.collector.reading import try_text

TOOLS = re.compile(
    r"^(?:nvcc|cicc|ptxas(?:-blackwell)?|cudafe\+\+|fatbinary|nvlink|tileiras|ninja|cmake|ctest|make|cc1|cc1plus|lto1|collect2|ld(?:\.\w{1,10})?|as|"
    r"(?:[\w.]{1,30}-){0,3}(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(?:-[\d.]{1,6})?|rustc|cargo|hipcc)$"
)
"""Programs of a build, by the name of their file."""

MOST_BUILD_FILE = 4 << 20


def tool_of(command: List[str], executable: str) -> str:
    """The name of the compiler that a process runs, ``""`` for any other program."""
    for name in (os.path.basename(executable), os.path.basename(command[0] if command else "")):
        if TOOLS.match(name):
            return name
    # a wrapper script: `/bin/sh /usr/local/cuda/bin/nvcc ...`
    if len(command) > 1 and os.path.basename(command[0]) in ("sh", "bash", "dash") or _is_ninja_of_python(command):
        name = os.path.basename(command[1])
        return name if TOOLS.match(name) else ""
    return ""


def _is_ninja_of_python(command: List[str]) -> bool:
    """The ninja of PyPI is started by a script of Python: ``/opt/venv/bin/python /opt/venv/bin/ninja -v``."""
    return (
        len(command) > 1
        and os.path.basename(command[0]).startswith("python")
        and os.path.basename(command[1]) in ("ninja", "cmake")
    )


def compilers(pids: List[int]) -> List[Dict[str, Any]]:
    """Those of the processes that compile, with what they write, for how long, and with how much CPU."""
    found: List[Dict[str, Any]] = []
    for pid in pids:
        command = arguments(pid)
        tool = tool_of(command, _link("/proc/%d/exe" % pid))
        if tool:
            folder = _link("/proc/%d/cwd" % pid)
            each = dict(brief(pid), pid=pid, tool=tool, folder=folder)
            each.pop("command", None)
            output = output_of(command)
            if output:
                each["output"] = os.path.join(folder, output)[:500]
            source = next((word for word in reversed(command) if re.search(r"\.(?:cu|cpp|cc|cxx|c|ptx)$", word)), None)
            if source:
                each["source"] = source[-300:]
            if tool == "ninja":
                each["build"] = build_progress(pid, _build_folder(command, folder))
            found.append(each)
    return found


def output_of(command: List[str]) -> Optional[str]:
    for at, word in enumerate(command):
        if word in ("-o", "--output-file", "--orig_src_path_name") and word != "--orig_src_path_name":
            return command[at + 1] if at + 1 < len(command) else None
        if word.startswith("--output-file="):
            return word.partition("=")[2]
    return None


def _build_folder(command: List[str], folder: str) -> str:
    for at, word in enumerate(command[:-1]):
        if word == "-C":
            return os.path.join(folder, command[at + 1])
    return folder


def build_progress(pid: int, folder: str) -> Optional[Dict[str, Any]]:
    """``steps`` of the build, and how many are ``finished`` (by the log, in this or an earlier run); None without a build.ninja."""
    inside = "/proc/%d/root%s" % (pid, folder)
    root = inside if os.path.isdir(inside) else folder
    text = try_text(os.path.join(root, "build.ninja"), MOST_BUILD_FILE)
    if text is None:
        return None
    outputs = steps_of(text)
    logged = logged_outputs(try_text(os.path.join(root, ".ninja_log"), MOST_BUILD_FILE) or "")
    finished = [name for name in outputs if name in logged and os.path.exists(os.path.join(root, name))]
    newest = 0.0
    for name in finished:
        try:
            newest = max(newest, os.stat(os.path.join(root, name)).st_mtime)
        except OSError:
            continue
    found: Dict[str, Any] = {"folder": folder[:500], "steps": len(outputs), "finished": len(finished)}
    if newest:
        found["last_finished"] = round(max(0.0, time.time() - newest), 1)
    return found


def steps_of(text: str) -> List[str]:
    """The first output of each step of a ``build.ninja``; names that stand for a group are no steps."""
    outputs: List[str] = []
    for line in text.replace("$\n", " ").splitlines():
        found = re.match(r"build ([^:|]{1,2000}?)(?: \|[^:]{1,2000})?: (\w{1,80})", line)
        if found and found.group(2) != "phony":
            outputs.append(found.group(1).strip().split(" ")[0])
    return outputs


def logged_outputs(text: str) -> "frozenset[str]":
    """The outputs of finished steps in a ``.ninja_log``."""
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return frozenset(row[3] for row in rows if len(row) >= 4)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
