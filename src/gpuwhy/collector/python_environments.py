"""The Python environments that the service uses: prefix, version, the folders its packages are imported from."""

import os
import re
from typing import Any, Dict, List, Optional

from gpuwhy.collector.environment import home_of
from gpuwhy.collector.launching import interpreter_in, launch_of, which
from gpuwhy.collector.probing import Absent, Notes, Request, first_of
from gpuwhy.collector.reading import key_values, try_list, try_text


def python_environments(
    request: Request,
    notes: Notes,
    unit: Optional[Dict[str, Any]],
    process: Optional[Dict[str, Any]],
    environment: Optional[Dict[str, Any]],
) -> List[Dict[str, Any]]:
    """Environments in the order of their importance: the first one is where the service's own code is imported from."""
    variables: Dict[str, str] = first_of(environment, "variables", {})
    found: List[Dict[str, Any]] = []
    if request.get("python"):
        _add(found, str(request["python"]), variables, "named by the user")
    if process is not None and process.get("command"):
        _from_process(found, process, variables)
    if unit is not None:
        for command in reversed(unit["commands"]):
            launch = launch_of(
                command, variables, str(first_of(unit["properties"], "WorkingDirectory", "")).lstrip("!-")
            )
            for step in launch.steps:
                notes.remark(step)
            if launch.interpreter:
                _add(found, launch.interpreter, variables, "the unit's start command")
            elif launch.prefix:
                _add(
                    found,
                    interpreter_in(launch.prefix) or launch.prefix + "/bin/python",
                    variables,
                    "activated by the start command",
                )
            if launch.container:
                notes.remark("the unit starts a container with %s: its packages are inside" % launch.container)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = variables.get(name)
        if prefix:
            _add(found, interpreter_in(prefix) or prefix + "/bin/python", variables, name)
    if not found and variables.get("PATH") and not (unit or process):
        python = which("python3", variables)
        if python:
            _add(found, python, variables, "the first python3 on PATH")
    if not found:
        raise Absent("no Python belongs to what was examined")
    notes.subject = "environment:" + found[0]["prefix"]
    for each in found:
        notes.source(each["prefix"])
    return found


def _from_process(found: List[Dict[str, Any]], process: Dict[str, Any], variables: Dict[str, str]) -> None:
    command: List[str] = process["command"]
    launch = launch_of(command, variables, process.get("directory") or "/")
    if launch.interpreter:
        _add(found, launch.interpreter, variables, "the running process")
    executable = process.get("executable") or ""
    if os.path.basename(executable).startswith("python"):
        # A process that renamed itself (`sglang::scheduler`) has no interpreter in its command line.
        if not launch.interpreter:
            _add(found, executable, variables, "the running process")


def _add(found: List[Dict[str, Any]], interpreter: str, variables: Dict[str, str], via: str) -> None:
    described = describe(interpreter, variables, via)
    if described is not None and all(each["prefix"] != described["prefix"] for each in found):
        found.append(described)


def describe(interpreter: str, variables: Dict[str, str], via: str) -> Optional[Dict[str, Any]]:
    """What belongs to an interpreter, by the rules of ``site``: a virtual environment is known by its ``pyvenv.cfg``."""
    if os.path.isdir(interpreter):
        interpreter = interpreter_in(interpreter) or os.path.join(interpreter, "bin", "python3")
    if not os.path.isabs(interpreter):
        return None
    prefix, settings = _virtual(interpreter)
    real = os.path.realpath(interpreter)
    base = os.path.dirname(os.path.dirname(real))
    kind = "virtual environment"
    if not settings:
        prefix = base
        kind = "conda environment" if os.path.isdir(os.path.join(base, "conda-meta")) else "installation"
    version = _version(interpreter, prefix, settings)
    minor = ".".join((version or "").split(".")[:2])
    folders = _folders(prefix, minor, kind, settings, base, variables)
    return {
        "prefix": prefix,
        "interpreter": interpreter,
        "real_interpreter": real,
        "exists": os.path.exists(interpreter),
        "kind": kind,
        "base": base,
        "version": version,
        "folders": folders,
        "made_by_uv": "uv" in settings,
        "via": via,
    }


def _virtual(interpreter: str) -> "tuple[str, Dict[str, str]]":
    """The prefix and settings of the virtual environment that the path (or a link on its way) lies in."""
    current = interpreter
    for _ in range(10):
        prefix = os.path.dirname(os.path.dirname(current))
        for candidate in (prefix, os.path.dirname(current)):
            text = try_text(os.path.join(candidate, "pyvenv.cfg"), 1 << 16)
            if text is not None:
                return candidate, {key.lower(): value for key, value in key_values(text).items()}
        if not os.path.islink(current):
            break
        current = os.path.normpath(os.path.join(os.path.dirname(current), os.readlink(current)))
    return os.path.dirname(os.path.dirname(interpreter)), {}


def _version(interpreter: str, prefix: str, settings: Dict[str, str]) -> Optional[str]:
    for key in ("version_info", "version"):
        found = re.match(r"\d+\.\d+(?:\.\d+)?", settings.get(key, ""))
        if found:
            return found.group()
    for path in (interpreter, os.path.realpath(interpreter)):
        found = re.search(r"python(\d\.\d+)", os.path.basename(path))
        if found:
            return found.group(1)
    for folder in try_list(os.path.join(prefix, "lib")):
        found = re.match(r"python(\d\.\d+)t?$", folder)
        if found:
            return found.group(1)
    return None


def _folders(
    prefix: str, minor: str, kind: str, settings: Dict[str, str], base: str, variables: Dict[str, str]
) -> List[str]:
    """The folders on ``sys.path`` that hold packages, first one first, as far as they exist."""
    folders = [path for path in variables.get("PYTHONPATH", "").split(":") if path.startswith("/")]
    sees_system = (
        kind != "virtual environment" or settings.get("include-system-site-packages", "false").lower() == "true"
    )
    if sees_system and not variables.get("PYTHONNOUSERSITE") and minor:
        user_base = variables.get("PYTHONUSERBASE") or os.path.join(home_of(variables), ".local")
        folders.append("%s/lib/python%s/site-packages" % (user_base, minor))
    roots = [prefix] + ([base] if sees_system and base != prefix else [])
    for root in roots:
        for library in ("lib", "lib64"):
            folders.append("%s/%s/python%s/site-packages" % (root, library, minor))
        if root in ("/usr", "/"):
            folders += ["/usr/local/lib/python%s/dist-packages" % minor, "/usr/lib/python3/dist-packages"]
        elif root == "/usr/local":
            folders.append("/usr/local/lib/python%s/dist-packages" % minor)
    chosen: List[str] = []
    seen = set()
    for folder in folders:
        real = os.path.realpath(folder)
        if real not in seen and os.path.isdir(folder):
            seen.add(real)
            chosen.append(folder)
    return chosen
