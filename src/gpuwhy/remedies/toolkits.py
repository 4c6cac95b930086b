"""Installing a CUDA toolkit beside the one that is there, and pointing the service at it.

Package names and the folder are those of NVIDIA's own repositories: ``cuda-toolkit-12-9``, ``/usr/local/cuda-12.9``.
"""

from __future__ import annotations

import re

from gpuwhy.remedies.change import Change, ServicePlace
from gpuwhy.remedies.setting import Setting

_INSTALLERS = (
    (("debian", "ubuntu", "mint", "pop!_os"), "apt-get install --yes {package}", "apt-get remove --yes {package}"),
    (("red hat", "rhel", "rocky", "alma", "centos", "fedora", "oracle", "amazon"), "dnf install -y {package}", "dnf remove -y {package}"),
    (("suse", "sles"), "zypper --non-interactive install {package}", "zypper --non-interactive remove {package}"),
)  # fmt: skip


def change_toolkit(setting: Setting, place: ServicePlace, value: str) -> Change:
    """For a minimum such as ``>=12.9``: install that release and set CUDA_HOME. Empty for any other value or system."""
    found = re.fullmatch(r">=(1[1-9])\.(\d{1,2})", value)
    if not found or setting.is_container:
        return Change(
            limits=("in a container the toolkit belongs into the image: use a -devel image of that CUDA release",)
            if found
            else ()
        )
    major, minor = found.groups()
    package, root = f"cuda-toolkit-{major}-{minor}", f"/usr/local/cuda-{major}.{minor}"
    for names, install, remove in _INSTALLERS:
        if any(name in setting.os.lower() for name in names):
            chosen = place.set_variable("CUDA_HOME", root)
            return Change(
                commands=(install.format(package=package), *chosen.commands),
                undo=(*chosen.undo, remove.format(package=package)),
                check=(f"{root}/bin/nvcc --version", *chosen.check),
                limits=("the package comes from NVIDIA's own repository, which must be set up on this system",),
            )
    return Change()
