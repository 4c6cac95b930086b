"""Looks into named binaries where they lie: which GPUs they have code for, and what would come of loading them.

The readers touch headers only, one to twenty megabytes of a library of hundreds, and load nothing.
"""

import os
import stat
import time
from typing import Any, Dict, List, Optional

from gpuwhy.binaries.code_sets import code_sets
from gpuwhy.binaries.examining import CUBIN, UNKNOWN, Binary, examine
from gpuwhy.binaries.ld_cache import read_ld_cache
from gpuwhy.binaries.linker import Surroundings, package_folder_of, program_of
from gpuwhy.binaries.needs import explain_loading
from gpuwhy.binaries.owner import owner_of
from gpuwhy.binaries.plain import plain
from gpuwhy.binaries.reading import FileSource, Unreadable
from gpuwhy.collector.probing import Failed, first_of, why_unreadable

SEARCHED_BYTES = 8 << 20
"""Of ordinary data, as much is searched for bare cubins and an embedded runtime: the target is not ours to keep busy."""

SECONDS = 6.0

MOST_FILES = 400

LIBRARIES = (".so", ".cubin", ".fatbin", ".a", ".o")

Values = Dict[str, Any]
"""What the probes of this run brought, by their names."""


def inspect(path: str, _request: Dict[str, Any], _values: Values) -> Dict[str, Any]:
    """``{"files": [...], "left_out": n}``: the file at the path, or the libraries of a folder."""
    if not os.path.isdir(path):
        return {"path": path, "files": [_file(path)], "left_out": 0}
    deadline = time.monotonic() + SECONDS
    files: List[Dict[str, Any]] = []
    left_out = 0
    for found in _libraries_in(path):
        if len(files) >= MOST_FILES or time.monotonic() > deadline:
            left_out += 1
            continue
        try:
            file = _file(found)
        except Exception:
            left_out += 1
            continue
        if file["kind"] != UNKNOWN or found.endswith(".so"):
            files.append(file)
    return {"path": path, "files": files, "left_out": left_out}


def loading(path: str, _request: Dict[str, Any], values: Values) -> Dict[str, Any]:
    """What would come of loading the file as the service would: with its LD_LIBRARY_PATH, interpreter and packages."""
    try:
        told: Dict[str, Any] = plain(explain_loading(path, surroundings(path, values)))
    except Unreadable as error:
        raise _why(path, error)
    return told


def surroundings(path: str, values: Values) -> Surroundings:
    """In what the service loads a file, as far as the probes tell; else the environment that the file lies in."""
    variables: Dict[str, str] = first_of(values.get("environment"), "variables", {})
    environments = values.get("python_environments") or []
    own = package_folder_of(path)
    folders = [folder for each in environments for folder in each["folders"]]
    mine = next((each for each in environments if own in [os.path.abspath(f) for f in each["folders"]]), None)
    chosen = mine or (environments[0] if environments and not own else None)
    program = str(chosen["real_interpreter"]) if chosen else program_of(own)
    return Surroundings(
        variables.get("LD_LIBRARY_PATH", ""),
        variables.get("LD_PRELOAD", ""),
        program if _is_python_of(path, own, folders) else "",
        tuple(folders[:50]),
        read_ld_cache(),
    )


def _is_python_of(path: str, own: str, folders: List[str]) -> bool:
    """Whether it is a Python program that loads the file: for a program of its own there is no interpreter."""
    return bool(own) or any(path.startswith(folder + "/") for folder in folders) or ".so" in os.path.basename(path)


def _libraries_in(folder: str) -> List[str]:
    found: List[str] = []
    for directory, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            if (name.endswith(LIBRARIES) or ".so." in name) and len(found) < 20 * MOST_FILES:
                found.append(os.path.join(directory, name))
    return found


def _file(path: str) -> Dict[str, Any]:
    try:
        with FileSource(path) as source:
            binary = examine(source, path, SEARCHED_BYTES)
            status = os.fstat(source.descriptor)
    except Unreadable as error:
        raise _why(path, error)
    told = _told(binary)
    told["modified"] = round(status.st_mtime, 3)
    told["owner"] = None if binary.kind == CUBIN else _owner(path)
    return told


def _told(binary: Binary) -> Dict[str, Any]:
    """The readers' answer without what can be told from the rest; sets of equal containers in place of each one."""
    sets = [
        {
            "member": each.member,
            "section": each.section,
            "role": each.role,
            "containers": each.containers,
            "offset": each.offset,
            "images": [list(code) for code in each.codes],
        }
        for each in code_sets(binary)[:2000]
    ]
    return {
        "path": binary.name,
        "kind": binary.kind,
        "machine": binary.machine,
        "size": binary.size,
        "complete": binary.is_complete,
        "problems": list(binary.problems + binary.device.problems)[:20],
        "registered": binary.device.wrappers,
        "sets": sets,
        "dynamic": plain(binary.dynamic),
        "runtime": plain(binary.runtime),
        "torch": plain(binary.torch),
        "build_id": binary.build_id,
        "other_gpus": list(binary.other_gpus),
    }


def _owner(path: str) -> Optional[Dict[str, Any]]:
    found = owner_of(path, package_folder_of(path))
    told: Optional[Dict[str, Any]] = plain(found)
    return told


def _why(path: str, error: Unreadable) -> Exception:
    """The outcome of a file whose bytes cannot be had, as other requests tell it."""
    try:
        if stat.S_ISREG(os.stat(path).st_mode):
            os.close(os.open(path, os.O_RDONLY))
    except OSError as why:
        return why_unreadable(why, path)
    return Failed(str(error))
