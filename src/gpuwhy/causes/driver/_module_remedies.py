"""Remedies for a kernel module that is not in the kernel, by what the kernel or the build said."""

from __future__ import annotations

from gpuwhy.causes._case import Match
from gpuwhy.model.remedy import Remedy

_CHECK = ("cat /proc/driver/nvidia/version", "nvidia-smi -L")


def remedies_for(reason: Match | None) -> tuple[Remedy, ...]:
    """The smallest change first; without a reason, the one command that either mends it or says what is wrong."""
    sign = reason.sign if reason is not None else ""
    if reason is None or sign == "module-not-there":
        if reason is not None and "No such device" in reason.text:
            return (_newer(), _LOAD, _install(is_sure=False))
        return (_HEADERS, _install(is_sure=False)) if reason is not None else (_LOAD, _HEADERS, _install(is_sure=False))
    if sign == "module-not-signed":
        return (_SECURE_BOOT, _SIGNED)
    if sign == "displaced":
        return _against(reason.group("other") or "nouveau")
    if sign == "gpu-not-supported":
        return (_newer(),)
    return (_HEADERS, _newer("it compiles against the running kernel"), _OLDER_KERNEL)


_LOAD = Remedy(
    kind="kernel", name="nvidia", value="load",
    summary="Load the module: it either helps at once, or says why it cannot be loaded",
    commands=("modprobe nvidia", "journalctl -k -b --no-pager | grep -iE 'nvidia|nvrm|nouveau' | tail -20"),
    cost="root", check=_CHECK, is_sure=False, rank=-1,
)  # fmt: skip
_HEADERS = Remedy(
    kind="system-package", name="linux-headers", value="match:kernel",
    summary="Install the headers of the running kernel and build the module for it",
    commands=("apt install linux-headers-$(uname -r)", "dkms autoinstall", "modprobe nvidia"),
    cost="root; a few minutes of compiling", check=_CHECK,
)  # fmt: skip
_SECURE_BOOT = Remedy(
    kind="config", name="Secure Boot", value="enrol the module's key, or off",
    summary="Enrol the key with which DKMS signed the module and confirm it in the blue screen of the next boot; or switch Secure Boot off in the firmware",
    commands=("mokutil --sb-state", "mokutil --import /var/lib/shim-signed/mok/MOK.der"), cost="root, a reboot, and somebody at the console", check=_CHECK,
)  # fmt: skip
_SIGNED = Remedy(
    kind="driver", name="nvidia", value="signed modules of the distribution",
    summary="Install the distribution's signed module packages (Ubuntu: linux-modules-nvidia-NNN-generic), whose key the firmware knows",
    cost="root and a reboot", check=_CHECK,
)  # fmt: skip
_OLDER_KERNEL = Remedy(
    kind="kernel", name="linux", value="older",
    summary="Boot the kernel before, for which the module is there", cost="a reboot", check=_CHECK, is_sure=False,
)  # fmt: skip


def _newer(why: str = "it knows this card") -> Remedy:
    return Remedy(
        kind="driver", name="nvidia", value="newer", summary=f"Install a newer driver: {why}",
        cost="root on the host and a reboot", risk="medium", check=_CHECK,
    )  # fmt: skip


def _install(*, is_sure: bool) -> Remedy:
    return Remedy(
        kind="driver", name="nvidia", value="install", is_sure=is_sure,
        summary="Install the NVIDIA driver on the host (Ubuntu: ubuntu-drivers install; on servers the -server branch), and reboot",
        cost="root on the host and a reboot", check=_CHECK,
    )  # fmt: skip


def _against(other: str) -> tuple[Remedy, ...]:
    if other == "vfio-pci":
        release = Remedy(
            kind="kernel", name="vfio-pci", value="release the card",
            summary="The card is set aside for a virtual machine: take its id out of vfio-pci's ids (kernel command line, /etc/modprobe.d), rebuild the initramfs, reboot",
            cost="root and a reboot", check=_CHECK,
        )  # fmt: skip
        return (release,)
    blacklist = Remedy(
        kind="kernel", name=other, value="blacklist",
        summary=f"Keep {other} from loading, rebuild the initramfs, reboot",
        commands=(f"printf 'blacklist {other}\\noptions {other} modeset=0\\n' > /etc/modprobe.d/blacklist-{other}.conf", "update-initramfs -u"),
        cost="root and a reboot", undo=(f"rm /etc/modprobe.d/blacklist-{other}.conf", "update-initramfs -u"), check=_CHECK,
    )  # fmt: skip
    return (blacklist, _install(is_sure=False))
