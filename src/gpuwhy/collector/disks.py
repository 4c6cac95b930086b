"""Room and mount options of the places that a GPU service writes to or loads from."""

import os
import re
from typing import Any, Dict, List, Optional, Tuple

from gpuwhy.collector.environment import home_of
from gpuwhy.collector.launching import expand
from gpuwhy.collector.probing import Notes, Request, first_of
from gpuwhy.collector.reading import try_text

OPTIONS = (
    "--model",
    "--model-path",
    "--tokenizer",
    "--tokenizer-path",
    "--download-dir",
    "--speculative-draft-model-path",
    "-m",
    "--hf-cache",
)

FOLDERS = (
    "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "TRITON_CACHE_DIR", "TRITON_HOME", "TORCH_EXTENSIONS_DIR",
    "TORCHINDUCTOR_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE", "FLASHINFER_CUBIN_DIR", "VLLM_CACHE_ROOT", "SGLANG_JIT_CACHE_DIR", "SGLANG_DG_CACHE_DIR",
    "DG_JIT_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR", "CUDA_CACHE_PATH", "MODELSCOPE_CACHE", "VLLM_CONFIG_ROOT", "OLLAMA_MODELS",
)  # fmt: skip


def disks(
    _request: Request,
    notes: Notes,
    unit: Optional[Dict[str, Any]],
    process: Optional[Dict[str, Any]],
    environment: Optional[Dict[str, Any]],
) -> List[Dict[str, Any]]:
    """For each path: bytes and inodes, kind of file system, mount point and options; ``exists`` false: of its parent."""
    variables: Dict[str, str] = first_of(environment, "variables", {})
    pid = first_of(process, "pid")
    mounts = _mounts(try_text("/proc/%s/mountinfo" % (pid or "self"), 1 << 20) or "")
    notes.source("/proc/%s/mountinfo" % (pid or "self"))
    found: List[Dict[str, Any]] = []
    for path, why in _paths(variables, unit, process):
        existing = path
        while not os.path.exists(existing) and existing != "/":
            existing = os.path.dirname(existing)
        try:
            room = os.statvfs(existing)
        except OSError as error:
            notes.remark("%s: %s" % (existing, error.strerror))
            continue
        point, kind, options, source = _mount_of(os.path.realpath(existing), mounts)
        found.append(
            {
                "path": path,
                "why": why,
                "exists": existing == path,
                "size": room.f_frsize * room.f_blocks,
                "available": room.f_frsize * room.f_bavail,
                "inodes": room.f_files or None,
                "inodes_available": room.f_favail if room.f_files else None,
                "mount_point": point,
                "file_system": kind,
                "options": options,
                "device": source,
                "writable": os.access(existing, os.W_OK),
                "owner": _owner(existing),
            }
        )
    return found


def _owner(path: str) -> Optional[int]:
    try:
        return os.stat(path).st_uid
    except OSError:
        return None


def _paths(
    variables: Dict[str, str], unit: Optional[Dict[str, Any]], process: Optional[Dict[str, Any]]
) -> List[Tuple[str, str]]:
    home = home_of(variables)
    cache = variables.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    paths = [
        ("/", "root"),
        ("/dev/shm", "shared memory"),
        (variables.get("TMPDIR") or "/tmp", "temporary files"),
        (home, "home"),
        (cache, "caches"),
    ]
    paths.append(
        (
            os.path.join(variables.get("FLASHINFER_WORKSPACE_BASE") or home, ".cache/flashinfer"),
            "FlashInfer's JIT cache",
        )
    )
    paths.append((variables.get("HF_HOME") or os.path.join(cache, "huggingface"), "Hugging Face cache"))
    paths.append(
        (
            variables.get("TRITON_CACHE_DIR") or os.path.join(variables.get("TRITON_HOME") or home, ".triton"),
            "Triton's cache",
        )
    )
    paths += [(variables[name], name) for name in FOLDERS if variables.get(name, "").startswith("/")]
    words: List[str] = first_of(process, "command") or [
        word for command in first_of(unit, "commands", []) for word in command
    ]
    for at, word in enumerate(words):
        option, sign, value = word.partition("=")
        if option in OPTIONS and not sign and at + 1 < len(words):
            value = words[at + 1]
        elif word == "serve" and at + 1 < len(words):
            option, value = "serve", words[at + 1]
        value = expand(value, variables) or ""
        if (option in OPTIONS or option == "serve") and value.startswith("/"):
            paths.append((value, "model (%s)" % option))
    seen: Dict[str, str] = {}
    for path, why in paths:
        if "\0" not in path:
            seen.setdefault(os.path.normpath(path), why)
    return list(seen.items())[:40]


Mount = Tuple[str, str, str, str]


def _mounts(text: str) -> List[Mount]:
    """``36 35 98:0 / /mnt rw,noatime master:1 - ext3 /dev/root rw,errors=continue``: mount point, kind, options, device."""
    found: List[Mount] = []
    for line in text.splitlines():
        before, sign, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if sign and len(fields) >= 6 and len(rest) >= 3:
            options = ",".join(dict.fromkeys((fields[5] + "," + rest[2]).split(",")))
            found.append((_unescape(fields[4]), rest[0], options, _unescape(rest[1])))
    return found


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), text)


def _mount_of(path: str, mounts: List[Mount]) -> Mount:
    """The mount that holds a path: the longest point, and of equal ones the last, which covers the others."""
    best: Mount = ("", "", "", "")
    for mount in mounts:
        point = mount[0]
        if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best[0]):
            best = mount
    return best
