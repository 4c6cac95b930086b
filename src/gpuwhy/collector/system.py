"""Kernel, distribution, C library, compiler, and who is asking."""

import os
import platform
import pwd
import re
import socket
import sys
from typing import Any, Dict, Optional

from gpuwhy.collector import commands
from gpuwhy.collector.environment import is_here
from gpuwhy.collector.launching import which
from gpuwhy.collector.probing import Notes, NoValue, Request, first_of
from gpuwhy.collector.reading import key_values, try_line, try_list, try_text


def system(_request: Request, notes: Notes) -> Dict[str, Any]:
    """What the machine is, apart from its GPUs."""
    release = key_values(try_text("/etc/os-release") or try_text("/usr/lib/os-release") or "")
    for place in ("/etc/os-release", "/proc/cmdline", "uname"):
        notes.source(place)
    cpu = re.search(r"^model name\s*:\s*(.+)$", try_text("/proc/cpuinfo", 1 << 14) or "", re.M)
    return {
        "host": socket.gethostname(),
        "kernel": platform.release(),
        "kernel_version": platform.version(),
        "kernel_command_line": try_line("/proc/cmdline"),
        "machine": platform.machine(),
        "os": release.get("PRETTY_NAME", "").strip('"'),
        "glibc": _glibc(),
        "cpus": os.cpu_count(),
        "cpu": cpu.group(1) if cpu else None,
        "uptime": _uptime(),
        "hypervisor": _hypervisor(),
        "iommu": _iommu(),
        "user": _user(),
        "is_root": os.geteuid() == 0,
        "python": ".".join(map(str, sys.version_info[:3])),
        "selinux": try_line("/sys/fs/selinux/enforce"),
        "kernel_settings": _kernel_settings(),
        "network_interfaces": try_list("/sys/class/net")[:64],
    }


def compilers(_request: Request, notes: Notes, environment: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """The host compiler that the service's environment gives to JIT builds, and the other build tools by path."""
    variables: Dict[str, str] = first_of(environment, "variables", {})
    names = {
        "cc": variables.get("CC") or "gcc",
        "cxx": variables.get("CXX") or "g++",
        "ninja": "ninja",
        "ld": "ld",
        "cmake": "cmake",
    }
    found: Dict[str, Any] = {}
    for key, name in names.items():
        path = which(name.split()[0], variables) if name.strip() else None
        found[key] = {"name": name, "path": path}
        if path and key in ("cc", "cxx"):
            found[key]["version"] = _compiler_version(path, notes)
    headers = [
        path for path in ("/usr/include/python3", "/usr/include/python3.%d" % sys.version_info[1]) if is_here(path)
    ]
    found["python_headers"] = headers
    return found


def _compiler_version(path: str, notes: Notes) -> Optional[str]:
    """``gcc (Debian 12.2.0-14) 12.2.0`` as 12.2.0; clang says it in words."""
    try:
        output = commands.run(path, ["--version"], timeout=2.5, most=1 << 14)
    except NoValue as why:
        notes.remark(why.reason)
        return None
    notes.source(path + " --version")
    first = output.out.split("\n", 1)[0]
    found = re.search(r"(?:\)|version) (\d+\.\d+(?:\.\d+)?)", first) or re.search(r"(\d+\.\d+\.\d+)\s*$", first)
    return found.group(1) if found else None


def _glibc() -> Optional[str]:
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError, AttributeError):
        return None
    return text.split()[-1] if text else None


def _uptime() -> Optional[float]:
    words = (try_line("/proc/uptime") or "").split()
    return float(words[0]) if words else None


def _hypervisor() -> Optional[str]:
    if os.path.isdir("/proc/xen"):
        return "xen"
    if "microsoft" in platform.release().lower():
        return "wsl"
    vendor, product = try_line("/sys/class/dmi/id/sys_vendor"), try_line("/sys/class/dmi/id/product_name")
    named = "%s %s" % (vendor or "", product or "")
    found = re.search(
        r"QEMU|KVM|VMware|VirtualBox|Xen|Amazon EC2|Google Compute|Microsoft Corporation Virtual|OpenStack|Nutanix",
        named,
    )
    return found.group() if found else None


def _iommu() -> str:
    """``off``, ``passthrough`` or ``translated``, as far as the kernel shows it."""
    groups = try_list("/sys/kernel/iommu_groups", 4096)
    if not groups:
        return "off"
    kinds = {try_line("/sys/kernel/iommu_groups/%s/type" % group) for group in groups}
    if kinds & {"DMA", "DMA-FQ"}:
        return "translated"
    return "passthrough" if "identity" in kinds else "translated"


def _kernel_settings() -> Dict[str, str]:
    """Settings that decide what processes and debuggers may do, by the names of sysctl."""
    names = (
        "kernel.dmesg_restrict", "kernel.yama.ptrace_scope", "kernel.numa_balancing", "kernel.pid_max", "kernel.threads-max",
        "vm.max_map_count", "vm.swappiness", "vm.overcommit_memory", "vm.nr_hugepages", "fs.file-max", "fs.inotify.max_user_instances",
        "fs.inotify.max_user_watches", "kernel.shmmax", "kernel.shmall", "net.core.somaxconn",
    )  # fmt: skip
    found = {name: try_line("/proc/sys/" + name.replace(".", "/")) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
