"""The inside of a running container, through the engine's own client."""

from __future__ import annotations

import re
import shutil

from gpuwhy.targets.interface import Connection, TargetError
from gpuwhy.targets.pipe import NO_PYTHON, SHELL_LINE, PipeConnection

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,200}\Z")


class ContainerTarget:
    """A container of ``engine`` (docker, podman, nerdctl), by name or id. It must run: nothing can be asked in one that exited."""

    def __init__(self, engine: str, container: str) -> None:
        if not _NAME.match(container):
            raise TargetError(f"{container!r} is not the name of a container")
        self.engine = engine
        self.container = container

    @property
    def kind(self) -> str:
        return self.engine

    @property
    def name(self) -> str:
        return f"{self.engine}:{self.container}"

    def open(self, program: str) -> Connection:
        client = shutil.which(self.engine)
        if client is None:
            raise TargetError(f"there is no {self.engine} on this machine")
        return PipeConnection([client, "exec", "-i", self.container, "sh", "-c", SHELL_LINE], program, self.explain)

    def explain(self, status: int | None, errors: str) -> TargetError:
        """The engine's words, and what to do about them."""
        said = next((line for line in reversed(errors.strip().splitlines()) if line.strip()), "")[:300]
        log = f"Diagnose its log instead: {self.engine} logs {self.container} 2>&1 | gpuwhy diagnose -"
        if NO_PYTHON in errors or re.search(r'exec: "sh"|executable file.*not found', errors):
            return TargetError(f"{self.name} has no python3 inside", log)
        if re.search(r"is not running|not running|container state improper|is restarting", errors):
            return TargetError(f"{self.name} does not run, and only a running container can be asked", log)
        if re.search(r"[Nn]o such container|no container with name", errors):
            return TargetError(f"there is no container {self.container}", f"{self.engine} ps -a lists them.")
        if re.search(r"permission denied|Cannot connect to the .* daemon", errors, re.IGNORECASE):
            return TargetError(
                f"{self.engine} cannot be asked: {said}", f"Run gpuwhy as a user who may use {self.engine}."
            )
        return TargetError(f"{self.name}: {self.engine} exec ended with status {status}: {said or 'it said nothing'}")
