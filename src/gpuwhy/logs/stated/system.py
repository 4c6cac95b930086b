"""The operating system, its kernel and its compilers, line by line.

OS: Ubuntu 24.04.1 LTS (x86_64)                                   collect_env
Python platform: Linux-6.8.0-45-generic-x86_64-with-glibc2.39
Linux node1 5.15.0-25-generic #25-Ubuntu SMP Wed Mar 30 15:54:22 UTC 2022 x86_64 GNU/Linux        uname -a
NUMA node(s):                            2                        lscpu
gcc (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0                         gcc --version
PRETTY_NAME="Ubuntu 22.04.4 LTS"                                  /etc/os-release
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Statement, Strength

_KERNEL = r"\d{1,2}\.\d{1,3}\.\d{1,3}[\w.+-]{0,80}"
_LINES = (
    ("Linux-", "kernel_release", Pattern(rf"^(?:Python platform|Platform) {{0,40}}: Linux-(?P<value>{_KERNEL}?)-(?:x86_64|aarch64|ppc64le)(?:-with-|$)")),
    ("Linux ", "kernel_release", Pattern(rf"^Linux \S{{1,100}} (?P<value>{_KERNEL}) #\d{{1,5}}\S{{0,60}} .{{0,200}}(?:GNU/Linux|x86_64|aarch64)\s*$")),
    ("Linux version ", "kernel_release", Pattern(rf"^(?:\[ {{0,6}}\d{{1,9}}\.\d{{1,9}}\] )?Linux version (?P<value>{_KERNEL}) \(")),
    ("OS", "os", Pattern(r"^OS {0,40}: (?P<value>(?:Ubuntu|Debian|Red Hat|Rocky|Alma|CentOS|Fedora|openSUSE|SUSE|Arch|Amazon|Oracle|Pop!_OS|Linux Mint|NixOS|Microsoft|Windows|macOS)[^()\n]{0,80}?)\s*(?:\(\w{1,40}\)(?: \(\w{1,12}\))?)?\s*$")),
    ("PRETTY_NAME=", "os", Pattern(r"^PRETTY_NAME=\"(?P<value>[^\"]{2,80})\"\s*$")),
    ("Description:", "os", Pattern(r"^Description:\s{1,12}(?P<value>(?:Ubuntu|Debian|Red Hat|Rocky|Alma|CentOS|Fedora).{2,60}?)\s*$")),
    ("Operating System:", "os", Pattern(r"^\s{0,24}Operating System: (?P<value>(?:Ubuntu|Debian|Red Hat|Rocky|Alma|CentOS|Fedora|Amazon).{2,60}?)\s*$")),
    ("Kernel Version:", "kernel_release", Pattern(rf"^\s{{0,12}}Kernel Version: {{1,20}}(?P<value>{_KERNEL})\s*$")),
    ("Kernel: Linux", "kernel_release", Pattern(rf"^\s{{0,24}}Kernel: Linux (?P<value>{_KERNEL})\s*$")),
    ("with-glibc", "glibc", Pattern(r"^(?:Python platform|Platform) {0,40}: .{0,120}-with-glibc(?P<value>2\.\d{1,2})\s*$")),
    ("libc ", "glibc", Pattern(r"^libc {2,30}: glibc (?P<value>2\.\d{1,2})\s*$")),
    ("gcc (", "gcc", Pattern(r"^gcc \([^)]{1,80}\) (?P<value>\d{1,2}\.\d{1,2}\.\d{1,2})(?: \d{8})?(?: \(.{1,60}\))?\s*$")),
    ("NUMA node(s):", "numa_nodes", Pattern(r"^NUMA node\(s\): {1,40}(?P<value>\d{1,3})\s*$")),
    ("Hypervisor vendor:", "hypervisor", Pattern(r"^Hypervisor vendor:\s{1,40}(?P<value>\w[\w .-]{0,40}?)\s*$")),
    ("BOOT_IMAGE=", "kernel_cmdline", Pattern(r"^(?:\[ {0,6}\d{1,9}\.\d{1,9}\] )?(?:(?:Kernel )?[Cc]ommand line: )?(?P<value>BOOT_IMAGE=\S{1,200} .{1,1500}?)\s*$")),
)  # fmt: skip
_COULD_NOT = Pattern(r"^CUDA runtime version {0,40}: Could not collect\s*$")
_IOMMU = Pattern(r"^(?:\[ {0,6}\d{1,9}\.\d{1,9}\] )?iommu: Default domain type: (?P<type>Translated|Passthrough)\b")
LITERALS = (*(literal for literal, _, _ in _LINES), "CUDA runtime version", "Default domain type")
LONGEST = 2000


def read(text: str) -> Iterator[Statement]:
    shown = text[:LONGEST]
    for literal, key, pattern in _LINES:
        found = pattern.match(shown) if literal in shown else None
        if found is not None:
            value = int(found["value"]) if key == "numa_nodes" else found["value"]
            yield Statement(key, value, Strength.REPORTED)
    if "CUDA runtime version" in shown and _COULD_NOT.match(shown):
        yield Statement("nvcc_path_version", None, Strength.REPORTED)
    domain = _IOMMU.match(shown) if "Default domain type" in shown else None
    if domain is not None:
        yield Statement("iommu", domain["type"].lower(), Strength.REPORTED)
