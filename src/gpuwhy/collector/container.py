"""Whether this is the inside of a container, which one, and what of the GPUs was passed into it."""

import os
import re
from typing import Any, Dict, List, Optional

from gpuwhy.collector.probing import Notes, Request
from gpuwhy.collector.reading import try_line, try_text


def container(_request: Request, notes: Notes) -> Dict[str, Any]:
    """``inside``, the ``runtime`` as far as its marks tell, and the marks themselves."""
    marks: List[str] = []
    runtime: Optional[str] = None
    for path, name in (
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/var/run/secrets/kubernetes.io", "kubernetes"),
    ):
        if os.path.exists(path):
            marks.append(path)
            runtime = name
    systemd_says = try_line("/run/systemd/container")
    if systemd_says:
        marks.append("/run/systemd/container: %s" % systemd_says)
        runtime = runtime or systemd_says
    groups = try_text("/proc/1/cgroup", 8192) or try_text("/proc/self/cgroup", 8192) or ""
    found = re.search(r"(docker|kubepods|containerd|libpod|lxc|crio|garden|buildkit|ecs|slurm)", groups)
    if found:
        marks.append("cgroup of process 1: %s" % groups.strip().split("\n")[-1][:200])
        runtime = runtime or {"libpod": "podman", "kubepods": "kubernetes"}.get(found.group(1), found.group(1))
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        marks.append("KUBERNETES_SERVICE_HOST is set")
        runtime = "kubernetes"
    if os.path.isdir("/.singularity.d"):
        marks.append("/.singularity.d")
        runtime = "apptainer"
    own_root = try_line("/proc/1/comm")
    inside = bool(marks) and runtime != "slurm"
    for path in ("/.dockerenv", "/run/.containerenv", "/run/systemd/container", "/proc/1/cgroup"):
        notes.source(path)
    return {
        "inside": inside,
        "runtime": runtime,
        "marks": marks,
        "first_process": own_root,
        "gpus": os.environ.get("NVIDIA_VISIBLE_DEVICES"),
        "capabilities": os.environ.get("NVIDIA_DRIVER_CAPABILITIES"),
        "image_cuda": os.environ.get("CUDA_VERSION"),
    }
