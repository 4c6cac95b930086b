"""The environment variables of the failing process: never those of a login shell."""

import os
import pwd
import re
from typing import Any, Dict, List, Optional, Tuple

from gpuwhy.collector.launching import Launch, launch_of
from gpuwhy.collector.probing import Absent, Denied, Notes, Request, first_of
from gpuwhy.collector.reading import read_bytes
from gpuwhy.redaction.redactor import is_secret_name

PREFIXES = (
    "CUDA", "TORCH", "PYTORCH", "FLASHINFER", "TRITON", "NCCL", "GLOO", "HF_", "HUGGING", "TRANSFORMERS", "VLLM", "SGLANG", "SGL_", "NVIDIA",
    "NVCC", "NVRTC", "NVSHMEM", "LD_", "PATH", "PYTHON", "HOME", "USER", "LOGNAME", "SHELL", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV",
    "UV_", "MAX_JOBS", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "NINJA", "CMAKE", "TMP", "TEMP", "XDG_", "OMP_", "MKL_", "KMP_", "OPENBLAS",
    "UCX_", "FI_", "MPI", "OMPI", "PMI", "SLURM", "RAY_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_", "NODE_RANK", "DG_",
    "DEEP", "TVM_", "TILELANG", "TL_", "CUTE", "CUTLASS", "CUBLAS", "CUDNN", "LMCACHE", "MOONCAKE", "NIXL", "GGML", "LLAMA", "OLLAMA", "GPUSTACK",
    "TOKENIZERS", "SAFETENSORS", "XFORMERS", "FLASH_ATTENTION", "FLASH_ATTN", "KINETO", "NUMA", "JAX", "XLA", "TENSORRT", "TRT", "TRTLLM", "MALLOC_", "PROTOCOL_BUFFERS",
    "no_proxy", "http_proxy", "https_proxy", "NO_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "LANG", "LC_", "TERM", "GPU", "DEVICE", "LMDEPLOY", "EXLLAMA",
    "MODELSCOPE", "MODEL", "CONTAINER", "container", "KUBERNETES_SERVICE_HOST", "INVOCATION_ID", "QUACK", "AITER", "MARLIN", "ACCELERATE", "DS_", "FAKE_",
)  # fmt: skip
"""Variables that a GPU stack reads, or that decide where it looks. Of all others only the names are collected."""


def environment(
    _request: Request, notes: Notes, unit: Optional[Dict[str, Any]], process: Optional[Dict[str, Any]]
) -> Dict[str, Any]:
    """Variables by name; ``complete`` tells whether a variable that is not listed is certainly unset."""
    if process is not None:
        try:
            variables = of_process(process["pid"])
        except Denied as error:
            notes.remark(error.reason + " (root may read it)")
            notes.deny("the environment of process %d, which is another user's" % process["pid"])
        except Absent as error:
            notes.remark(error.reason)
        else:
            notes.subject = "process:%d" % process["pid"]
            notes.source("/proc/%d/environ" % process["pid"])
            return _chosen(variables, "process", True, [], notes)
    if unit is None:
        raise Absent("neither a unit nor a process to read the environment of")
    notes.subject = "unit:" + unit["name"]
    notes.source("systemctl show %s -p Environment,EnvironmentFiles" % unit["name"])
    variables = of_unit(unit)
    launch = _launch(unit, variables)
    variables.update(launch.variables)
    unread = [each["path"] for each in unit["environment_files"] if "error" in each and not each.get("optional")]
    is_complete = not launch.is_opaque and not unread and bool(unit["manager_environment"])
    if launch.is_opaque:
        notes.remark("the start script may set more variables: %s" % launch.opaque_reason)
    return _chosen(variables, "unit", is_complete, launch.steps, notes)


def of_process(pid: int) -> Dict[str, str]:
    """The environment a process was started with. Raises Absent, Denied, Failed."""
    raw = read_bytes("/proc/%d/environ" % pid, 4 << 20)
    if not raw:
        raise Absent("/proc/%d/environ is empty" % pid)
    pairs = (entry.decode("utf-8", "replace").partition("=") for entry in raw.split(b"\0"))
    return {name: value for name, sign, value in pairs if sign and name}


def of_unit(unit: Dict[str, Any]) -> Dict[str, str]:
    """What systemd would start the unit with: its own environment, the user's names, Environment=, then the files."""
    variables: Dict[str, str] = {}
    manager = unit["manager_environment"]
    if "PATH" in manager:
        variables["PATH"] = manager["PATH"]
    for name in ("LANG",) + tuple(str(first_of(unit["properties"], "PassEnvironment", "")).split()):
        if name in manager:
            variables[name] = manager[name]
    variables.update(account(str(first_of(unit["properties"], "User", ""))))
    variables.update(unit["environment"])
    for file in unit["environment_files"]:
        variables.update(file.get("variables", {}))
    for word in str(first_of(unit["properties"], "UnsetEnvironment", "")).split():
        name, sign, value = word.partition("=")
        if not sign or variables.get(name) == value:
            variables.pop(name, None)
    return variables


def account(user: str) -> Dict[str, str]:
    """HOME and the names of a unit's user. systemd sets none of them for a service that runs as root without User=."""
    if not user:
        return {}
    try:
        entry = pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)
    except (KeyError, ValueError, OverflowError):
        return {"USER": user, "LOGNAME": user}
    return {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name, "SHELL": entry.pw_shell}


def home_of(variables: Dict[str, str]) -> str:
    """What ``~`` means in the process: HOME, else the home of the account (Python looks it up the same way)."""
    home = variables.get("HOME")
    if home:
        return home
    try:
        return pwd.getpwnam(variables["USER"]).pw_dir if "USER" in variables else pwd.getpwuid(0).pw_dir
    except KeyError:
        return "/root"


def _launch(unit: Dict[str, Any], variables: Dict[str, str]) -> Launch:
    command: List[str] = unit["commands"][-1] if unit["commands"] else []
    return launch_of(command, variables, str(first_of(unit["properties"], "WorkingDirectory", "")).lstrip("!-"))


def _chosen(
    variables: Dict[str, str], source: str, is_complete: bool, steps: List[str], notes: Notes
) -> Dict[str, Any]:
    for name, value in variables.items():
        if is_secret_name(name):
            notes.secret(value)
    shown, hidden = split_variables(variables)
    return {"source": source, "complete": is_complete, "variables": shown, "other_names": hidden, "steps": steps}


def split_variables(variables: Dict[str, str]) -> Tuple[Dict[str, str], List[str]]:
    """Those whose values are collected, and the names of all others."""
    pattern = re.compile("|".join(re.escape(prefix) for prefix in PREFIXES))
    shown = {name: value[:32768] for name, value in sorted(variables.items()) if pattern.match(name)}
    return shown, sorted(set(variables) - set(shown))[:500]


def is_here(path: str) -> bool:
    """Whether a path exists, without an error for one that cannot be (NUL inside, too long)."""
    try:
        return os.path.exists(path)
    except (OSError, ValueError):
        return False
