"""A pod of Kubernetes, through the user's own kubectl: their contexts, credentials and proxies are honoured."""

from __future__ import annotations

import re

from gpuwhy.targets.container import EngineConnection, via
from gpuwhy.targets.interface import Connection, HostTarget, TargetError
from gpuwhy.targets.local import LocalTarget

_LABEL = re.compile(r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_POD = re.compile(r"^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\Z")
FORM = "Write it as k8s:POD, k8s:NAMESPACE/POD or k8s:NAMESPACE/POD/CONTAINER."


class PodTarget:
    """``[NAMESPACE/]POD[/CONTAINER]``. Without a namespace kubectl's current one is meant, without a container the one
    that fails, else the first. ``host`` is where kubectl is run.
    """

    kind = "k8s"

    def __init__(self, words: str, host: HostTarget | None = None) -> None:
        parts = words.split("/")
        if not 1 <= len(parts) <= 3 or not all(parts):
            raise TargetError(f"k8s:{words} names no pod", FORM)
        self.container = parts[2] if len(parts) == 3 else ""
        self.namespace = parts[0] if len(parts) > 1 else ""
        self.pod = parts[1] if len(parts) > 1 else parts[0]
        for part, pattern in ((self.pod, _POD), (self.namespace, _LABEL), (self.container, _LABEL)):
            if not pattern.match(part) and (part or part is self.pod):
                raise TargetError(f"{part!r} is no name in Kubernetes (small letters, digits and -)", FORM)
        self.words = words
        self.host = host or LocalTarget()

    @property
    def name(self) -> str:
        return f"k8s:{self.words}" + via(self.host)

    def open(self, program: str) -> Connection:
        request = {"engine": "k8s", "name": self.pod, "namespace": self.namespace, "container": self.container}
        return EngineConnection(self.host.open(program), request, self.host)
