"""Where a failure happened: in a container, of which kind, and whether its start asked for GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.model.event import LogLine
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Fact, Unknown

LONGEST = 1200
_KINDS = (
    ("kubernetes", lazy_pattern(r"\bkubectl\b|\bkubelet\b|kubepods|nvidia\.com/gpu:|\bk8s\b|kubernetes|\bk3s\b|\b(?:in|inside) (?:the|a|my) pod\b|device-plugin|gpu-operator|CreateContainerError|CrashLoopBackOff|containerd task|\bmicrok8s\b", re.IGNORECASE)),
    ("podman", lazy_pattern(r"\bpodman(?:-compose)? (?:run|build|compose|up|play|kube)|\bcrun: |\bconmon\b|podman", re.IGNORECASE)),
    ("apptainer", lazy_pattern(r"\b(?:apptainer|singularity) (?:exec|run|shell|build)\b|\.sif\b|Could not find any nv files", re.IGNORECASE)),
    ("lxc", lazy_pattern(r"\b(?:lxc|pct) (?:exec|enter|start)\b|\blxc\.(?:cgroup|mount)|Proxmox|\bLXC\b|\bincus\b")),
    ("docker", lazy_pattern(
        r"\bdocker(?:-compose| compose)? (?:run|exec|build|up|start|logs|ps|pull|stack)\b|docker: Error|Error response from daemon|/var/lib/docker|docker-compose|Dockerfile|container_linux\.go|OCI runtime|"
        r"root@[0-9a-f]{12}\b|\b(?:nvidia/cuda|vllm/vllm-openai|lmsysorg/sglang|ollama/ollama|pytorch/pytorch|nvcr\.io/nvidia/\w{1,40}|ghcr\.io/[\w.-]{1,60}/[\w./-]{1,80}|openmmlab/lmdeploy|rayproject/ray)(?::\S|\s|$)|"
        r"\bin(?:side)? (?:the |a |my |docker )?(?:docker )?container\b|\bin(?:side)? docker\b|\(container\)|/\.dockerenv|This container was built for|Start this container with|\bdocker image\b|\b(?:with|using|via|through|under|in) docker\b|\bdocker on\b|docker[ -]desktop|\bdockeri[sz]ed\b|entrypoint\.sh", re.IGNORECASE)),
)  # fmt: skip
_STARTED = lazy_pattern(r"\b(?:docker|podman|nerdctl)(?: container)? (?:run|create)\b")
_ASKS_FOR_GPU = lazy_pattern(
    r"--gpus?\b|--runtime[= ]\s?\S{0,40}nvidia|--device[= ]\s?\S{0,40}nvidia|NVIDIA_VISIBLE_DEVICES|driver: nvidia\b|capabilities: \[{1,2} ?[\"']?gpu|runtime: nvidia\b|nvidia\.com/gpu|\bnvidia-docker run|--nv\b|runtimeClassName: nvidia"
)  # fmt: skip
_LISTING = lazy_pattern(r"\|\s{1,3}NVIDIA-SMI (?:version )?\d{3}\.[\d.]{1,12}\s|^GPU 0: .{2,80}\(UUID: ")
_ON_HOST = lazy_pattern(
    r"\(host\)|\bon (?:the )?host\b|\bhost\b.{0,40}nvidia-smi|nvidia-smi.{0,40}\bhost\b", re.IGNORECASE
)
_IN_CONTAINER = lazy_pattern(r"\(container\)|\bdocker (?:run|exec)\b|\bin(?:side)? (?:the |a )?(?:container|pod|docker)\b|root@[0-9a-f]{12}\b|\bkubectl exec\b|podman (?:run|exec)", re.IGNORECASE)  # fmt: skip


_ABOUT_A_CONTAINER = (
    "container.runtime", "container.gpus", "container.capabilities", "container.image_cuda", "nvidia_smi.container", "cuinit.container",
)  # fmt: skip


class Surroundings(Struct, frozen=True):
    """``kind`` is ``docker``, ``kubernetes``, ``podman``, ``apptainer``, ``lxc`` or ``""`` when nothing tells.

    ``is_container`` is None when neither a fact nor the text tells; ``is_sure`` when a fact does. ``asks_for_gpu``: the
    start that is shown asks for GPUs (None: no start is shown). ``start`` quotes that.
    """

    kind: str
    is_container: bool | None
    is_sure: bool
    asks_for_gpu: bool | None
    start: Evidence | None
    mark: Evidence | None


def read_surroundings(case: Case) -> Surroundings:
    """From the facts ``container.*`` and ``command``, else from the words and commands of the text."""
    inside = case.fact("container.in_container")
    runtime = str(case.facts.value("container.runtime") or "").lower()
    kind, mark = _kind(case)
    kind = next((name for name, _ in _KINDS if name in runtime), kind)
    about = any(key in case.facts for key in _ABOUT_A_CONTAINER)
    is_container: bool | None = True if kind or about else None
    is_sure = about
    if isinstance(inside, Fact) and inside.value is not None:
        is_container, is_sure = bool(inside.value), True
    asks, start = _start(case)
    return Surroundings(kind, is_container, is_sure, asks, start, mark)


def earliest(case: Case, *signs: str) -> Match | None:
    """The match in the failure itself, else the one that stands first; quoted source code says nothing."""
    matches = [match for match in case.all(*signs) if not match.is_code]
    return min(
        matches, key=lambda match: (not _is_failure(case, match), match.place.path, match.line.number), default=None
    )


def _is_failure(case: Case, match: Match) -> bool:
    return match.event is not None and match.event.id == case.incident.primary


def lines(case: Case) -> Iterator[tuple[str, LogLine]]:
    """The lines that can tell of the place, with the name of their log."""
    for log, line in case.lines():
        yield log.name, line


def quoted(name: str, line: LogLine, statement: str) -> Evidence:
    """Evidence that quotes a line that no sign declared."""
    return Evidence(statement, line.text.strip()[:400], Place("log", name, line.number))


def listing_on_host(case: Case) -> Evidence | None:
    """A listing of GPUs by nvidia-smi that the report says comes from the host."""
    return _listing(case, _ON_HOST)


def listing_in_container(case: Case) -> Evidence | None:
    """A listing of GPUs by nvidia-smi that the report says comes from the container."""
    return _listing(case, _IN_CONTAINER)


def any_listing(case: Case) -> Evidence | None:
    """A listing of GPUs by nvidia-smi, wherever it was made."""
    return next((quoted(name, line, "nvidia-smi lists the GPUs") for name, line in lines(case) if _LISTING.search(line.text[:200])), None)  # fmt: skip


def _listing(case: Case, where: re.Pattern[str]) -> Evidence | None:
    """A listing within a few lines of words that say where it was made, with no other place named in between."""
    last: re.Pattern[str] | None = None
    at = -100
    for number, (name, line) in enumerate(lines(case)):
        text = line.raw[:LONGEST]
        if _LISTING.search(line.text[:200]):
            if last is where and number - at <= 12:
                return quoted(name, line, "nvidia-smi lists the GPUs")
            continue
        for pattern in (_ON_HOST, _IN_CONTAINER):
            if pattern.search(text):
                last, at = pattern, number
    return None


def _kind(case: Case) -> tuple[str, Evidence | None]:
    seen: dict[str, Evidence] = {}
    for name, line in lines(case):
        text = line.raw[:LONGEST]
        for kind, pattern in _KINDS:
            if kind not in seen and pattern.search(text):
                seen[kind] = quoted(name, line, f"the text is of a {kind} container")
    return next(((kind, seen[kind]) for kind, _ in _KINDS if kind in seen), ("", None))


def _start(case: Case) -> tuple[bool | None, Evidence | None]:
    """Whether the container start that is shown (with its continued lines) asks for GPUs."""
    command = case.fact("command")
    if isinstance(command, Fact) and _STARTED.search(str(command.value)):
        asks = _ASKS_FOR_GPU.search(str(command.value)) is not None
        if not str(command.value).rstrip().endswith("\\") and not asks and not _is_cut(case, str(command.value)):
            return False, command.evidence
    asks_line: Evidence | None = None
    start: Evidence | None = None
    for name, line in lines(case):
        text = line.text[:LONGEST]
        if _ASKS_FOR_GPU.search(text) and "nvidia-container-cli" not in text:
            asks_line = asks_line or quoted(name, line, "GPUs are asked for")
        if start is None and _STARTED.search(text):
            start = quoted(name, line, "how the container was started")
    if asks_line is not None:
        return True, asks_line
    return (False, start) if start is not None else (None, None)


def _is_cut(case: Case, command: str) -> bool:
    """The command goes on in the next line of the text."""
    return any(line.text.strip().startswith(command[:60]) and line.text.rstrip().endswith("\\") for _, line in lines(case))  # fmt: skip


def known(fact: Fact | Unknown) -> bool:
    """The fact is known and not "absent"."""
    return isinstance(fact, Fact) and fact.value is not None
