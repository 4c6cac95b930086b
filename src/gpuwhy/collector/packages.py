"""Versions of installed packages, read from their metadata: nothing is imported.

A folder ``flashinfer_python-0.6.18.post1.dist-info`` names the package and its version; ``torch/version.py`` holds
lines such as ``cuda: Optional[str] = '12.8'``.
"""

import os
import re
from typing import Any, Dict, List, Optional

from gpuwhy.collector.probing import Absent, Notes, Request
from gpuwhy.collector.reading import try_list, try_text

MOST = 5000

TORCH_FIELD = re.compile(
    r"^(__version__|cuda|hip|git_version|debug)\s*(?::[^=\n]+)?=\s*(?:'([^'\n]*)'|\"([^\"\n]*)\"|(None|True|False))",
    re.M,
)


def packages(_request: Request, notes: Notes, environments: Optional[List[Dict[str, Any]]]) -> List[Dict[str, Any]]:
    """The packages of each environment; the first folder on the path wins, later copies are listed as ``shadowed``."""
    if not environments:
        raise Absent("no Python environment is known")
    notes.subject = "environment:" + environments[0]["prefix"]
    found = [_of_environment(each, notes) for each in environments]
    if not any(each["versions"] for each in found):
        raise Absent("no package is installed in %s" % ", ".join(each["prefix"] for each in environments))
    return found


def _of_environment(environment: Dict[str, Any], notes: Notes) -> Dict[str, Any]:
    versions: Dict[str, str] = {}
    places: Dict[str, str] = {}
    shadowed: List[Dict[str, str]] = []
    local: Dict[str, str] = {}
    for folder in environment["folders"]:
        notes.source(folder)
        for entry in try_list(folder, MOST):
            distribution = _distribution(folder, entry)
            if distribution is None:
                continue
            name, version = canonical(distribution[0]), distribution[1]
            if name in versions:
                if len(shadowed) < 200:
                    shadowed.append({"name": name, "version": version, "folder": folder})
                continue
            versions[name] = version
            places[name] = folder
            origin = _origin(os.path.join(folder, entry))
            if origin:
                local[name] = origin
    torch = _torch(environment["folders"])
    return {
        "prefix": environment["prefix"],
        "versions": versions,
        "folders": sorted(set(places.values())),
        "shadowed": shadowed,
        "origins": local,
        "torch": torch,
    }


def canonical(name: str) -> str:
    """The name as package indexes compare it: ``flashinfer_python`` is ``flashinfer-python``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _distribution(folder: str, entry: str) -> "Optional[tuple[str, str]]":
    found = re.match(r"^(?P<name>.+?)-(?P<version>\d[^-]*)(?:-py\d.*)?\.(?:dist-info|egg-info)$", entry)
    if found and not entry.startswith("~"):
        return found.group("name"), found.group("version")
    if entry.endswith((".dist-info", ".egg-info")) and not entry.startswith("~"):
        path = os.path.join(folder, entry)
        text = try_text(
            os.path.join(path, "METADATA" if entry.endswith(".dist-info") else "PKG-INFO"), 1 << 16
        ) or try_text(path, 1 << 16)
        fields = dict(re.findall(r"^(Name|Version): *(\S+)", (text or "").split("\n\n", 1)[0], re.M))
        if "Name" in fields and "Version" in fields:
            return fields["Name"], fields["Version"]
    return None


def _origin(path: str) -> Optional[str]:
    """Where a package that came from no index was installed from: a checkout, a file, a repository."""
    text = try_text(os.path.join(path, "direct_url.json"), 1 << 14)
    if text is None:
        return None
    url = re.search(r'"url"\s*:\s*"([^"]{1,500})"', text)
    kind = "editable " if re.search(r'"editable"\s*:\s*true', text) else ""
    return kind + (url.group(1) if url else "unknown place")


def _torch(folders: List[str]) -> Optional[Dict[str, Any]]:
    """The installed torch and the CUDA it was built for. ``cuda`` None: built without CUDA."""
    for folder in folders:
        path = os.path.join(folder, "torch", "version.py")
        text = try_text(path, 1 << 16)
        if text is None:
            continue
        fields: Dict[str, Optional[str]] = {}
        for name, single, double, word in TORCH_FIELD.findall(text):
            fields[name] = (single or double) if not word else (None if word == "None" else word)
        if "__version__" in fields:
            return {
                "version": fields["__version__"],
                "cuda": fields.get("cuda"),
                "hip": fields.get("hip"),
                "git": fields.get("git_version"),
                "path": path,
            }
    return None
