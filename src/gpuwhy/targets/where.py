"""From the word that the user gives as WHERE to a target."""

from __future__ import annotations

import os

from gpuwhy.targets.container import ContainerTarget
from gpuwhy.targets.file import PathTarget, StandardInputTarget
from gpuwhy.targets.interface import Target, TargetError
from gpuwhy.targets.local import LocalTarget
from gpuwhy.targets.ssh import SshTarget

ENGINES = ("docker", "podman", "nerdctl")


def parse_where(where: str) -> Target:
    """``-`` is standard input; an existing path a file (``./name`` forces one); then ``local``, ``docker:NAME``,
    ``podman:NAME``, ``nerdctl:NAME``; anything else an SSH destination.

    Raises TargetError for what is none of them.
    """
    if where == "-":
        return StandardInputTarget()
    if _names_a_file(where):
        return PathTarget(where)
    if where == "local":
        return LocalTarget()
    scheme, colon, rest = where.partition(":")
    if colon and scheme in ENGINES:
        return ContainerTarget(scheme, rest)
    if colon and scheme == "k8s":
        raise TargetError(
            "pods (k8s:) cannot be examined yet", "Diagnose the log: kubectl logs POD --previous | gpuwhy diagnose -"
        )
    if not where:
        raise TargetError("WHERE is empty", "It is a file, -, local, or an SSH destination.")
    return SshTarget(where)


def _names_a_file(where: str) -> bool:
    """A typed path is a file even when it is missing: no one means a host by ``./crash.log`` or ``/var/log/x``."""
    if where.startswith(("./", "../", "/", "~/")) or where in (".", ".."):
        return True
    try:
        return os.path.lexists(where)
    except ValueError:
        return False
