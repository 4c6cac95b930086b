"""Where the threads of a Python process stand, by ``py-spy dump``, when the target has it. It is never installed by us.

``py-spy dump --nonblocking --json --pid N`` prints a list of threads, innermost frame first:

    [{"pid": 7, "thread_id": 1, "thread_name": "MainThread", "os_thread_id": 7, "active": false, "owns_gil": false,
      "frames": [{"name": "acquire", "filename": "/opt/venv/lib/.../filelock/_api.py", "line": 312, ...}, ...]}]

``--nonblocking`` reads the memory of the process and does not stop it. No signal is ever sent: a process that has not
registered a handler dies of SIGUSR1, and nobody outside can know whether it has.
"""

import json
import os
import sys
from typing import Any, Dict, List, Optional

from gpuwhy.collector import commands
from gpuwhy.collector.probing import NoValue

MOST_THREADS = 24

MOST_FRAMES = 40

TIMEOUT = 4.0

BROKEN = "py-spy's answer is no list of threads"


def find(pid: int) -> Optional[str]:
    """A py-spy that may be run: in a folder of the system or of PATH, beside this Python, or beside that of the process.

    One that belongs to another user than root and the one who looks is left alone: root must not run what anybody wrote.
    """
    folders: List[str] = list(commands.DIRECTORIES)
    folders += [folder for folder in os.environ.get("PATH", "").split(":") if folder.startswith("/")]
    folders.append(os.path.dirname(sys.executable or "/usr/bin/python3"))
    try:
        folders.append(os.path.dirname(os.readlink("/proc/%d/exe" % pid)))
    except OSError:
        pass
    folders += _of_environment(pid)
    for folder in folders:
        path = os.path.join(folder, "py-spy")
        try:
            owner = os.stat(path).st_uid
        except OSError:
            continue
        if owner in (0, os.geteuid()) and os.access(path, os.X_OK):
            return path
    return None


def _of_environment(pid: int) -> List[str]:
    """The environment's own programs: a virtual environment's Python is a link to elsewhere, its first argument is not."""
    from gpuwhy.collector.process import arguments

    first = (arguments(pid) or [""])[0]
    folder = os.path.dirname(first)
    return [folder] if folder.startswith("/") else []


def is_python(pid: int) -> bool:
    """Whether the process runs Python: by its program, or by the library of the interpreter that it has mapped."""
    try:
        if os.path.basename(os.readlink("/proc/%d/exe" % pid)).startswith(("python", "pypy")):
            return True
    except OSError:
        pass
    try:
        with open("/proc/%d/maps" % pid, "rb") as file:
            return b"/libpython3" in file.read(1 << 20)
    except OSError:
        return False


def dump(pid: int, py_spy: str) -> Dict[str, Any]:
    """``threads`` of the process, or ``problem``: why there are none."""
    try:
        output = commands.run(py_spy, ["dump", "--nonblocking", "--json", "--pid", str(pid)], timeout=TIMEOUT)
    except NoValue as why:
        return {"pid": pid, "problem": why.reason}
    if output.status != 0:
        return {"pid": pid, "problem": " ".join(output.err.split())[:300] or "exit status %d" % output.status}
    try:
        told = json.loads(output.out)
        threads = [_thread(each) for each in told[:MOST_THREADS]]
    except (ValueError, TypeError, KeyError, AttributeError):
        return {"pid": pid, "problem": BROKEN}
    return {"pid": pid, "threads": threads}


def _thread(told: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "tid": told.get("os_thread_id"),
        "name": str(told.get("thread_name") or "")[:100],
        "active": bool(told.get("active")),
        "holds_gil": bool(told.get("owns_gil")),
        "frames": [
            {
                "function": str(frame.get("name") or "")[:200],
                "path": str(frame.get("filename") or "")[:500],
                "line": int(frame.get("line") or 0),
            }
            for frame in (told.get("frames") or [])[:MOST_FRAMES]
        ],
    }
