"""From the word that the user gives as WHERE to a target."""

from __future__ import annotations

import os

from gpuwhy.targets.container import ENGINES, ContainerTarget
from gpuwhy.targets.file import PathTarget, StandardInputTarget
from gpuwhy.targets.interface import HostTarget, Target, TargetError
from gpuwhy.targets.local import LocalTarget
from gpuwhy.targets.pods import PodTarget
from gpuwhy.targets.ssh import SshTarget


def parse_where(where: str, via: str = "", sudo: bool = False) -> Target:
    """``-`` is standard input; an existing path a file (``./name`` forces one); then ``local``, ``docker:NAME``,
    ``podman:NAME``, ``nerdctl:NAME``, ``k8s:[NAMESPACE/]POD[/CONTAINER]``; anything else an SSH destination.

    ``via`` is the SSH destination on which a container's engine or kubectl is run, in place of this machine; ``sudo``
    is for whatever is run, here or there. Raises TargetError for what is none of them.
    """
    scheme, colon, rest = where.partition(":")
    is_engine = bool(colon) and scheme in (*ENGINES, "k8s")
    if via and not is_engine:
        raise TargetError(
            f"--via {via} is for what runs on a host: docker:NAME, podman:NAME, nerdctl:NAME or k8s:POD",
            f"Name the host alone to examine it: {via}"
            if where in ("", "local")
            else "Jump hosts go into ~/.ssh/config.",
        )
    if where == "-":
        return StandardInputTarget()
    if not via and _names_a_file(where):
        return PathTarget(where)
    if where == "local":
        return LocalTarget(sudo)
    if is_engine:
        host: HostTarget = SshTarget(via, sudo) if via else LocalTarget(sudo)
        return PodTarget(rest, host) if scheme == "k8s" else ContainerTarget(scheme, rest, host)
    if not where:
        raise TargetError("WHERE is empty", "It is a file, -, local, a container, a pod, or an SSH destination.")
    return SshTarget(where, sudo)


def _names_a_file(where: str) -> bool:
    """A typed path is a file even when it is missing: no one means a host by ``./crash.log`` or ``/var/log/x``."""
    if where.startswith(("./", "../", "/", "~/")) or where in (".", ".."):
        return True
    try:
        return os.path.lexists(where)
    except ValueError:
        return False
