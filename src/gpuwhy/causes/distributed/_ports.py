"""What a refused bind says: which port, what it serves, and which settings move it."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.model.remedy import Remedy

_PORT = tuple(
    lazy_pattern(pattern, re.IGNORECASE)
    for pattern in (
        r"\baddr='tcp://[^' ]{0,120}:(\d{1,5})'",
        r"\bport: ?(\d{2,5}), useIpv6",
        r"\bbind on address \([^)]{0,120}?, ?(\d{2,5})\)",
        r"\bport[ =:'`\"]{1,4}(\d{2,5})\b",
        r"\bport at (\d{2,5})\b",
        r"(?:listen|bind) (?:tcp[46]?|udp[46]?) \S{0,120}:(\d{2,5})\b",
        r"(?:bind to|bind for|bind host port for|address|endpoint|socket|start at|start on)[^:]{0,30} ['\"(]?\S{0,120}?:(\d{2,5})\b",
        r":::(\d{2,5})\b",
        r"\]:(\d{2,5})\b",
        r"\b(?:\d{1,3}\.){3}\d{1,3}:(\d{2,5})\b",
    )
)
_CONTAINER = lazy_pattern(
    r"port is already allocated|userland proxy|programming external connectivity|rootlessport|bind host port for|free ports for the requested",
    re.IGNORECASE,
)
_MESSAGE_QUEUE = lazy_pattern(r"ZMQError|zmq[./]|addr='(?:tcp|ipc)://", re.IGNORECASE)
_RENDEZVOUS = lazy_pattern(
    r"c10d|server socket has failed|TCPStore|rendezvous|init_process_group|distributed communication on port|DistNetworkError|nccl_port|dist_init|master_port|gloo",
    re.IGNORECASE,
)
_LAUNCHER = (
    ("accelerate", lazy_pattern(r"main_process_port|accelerate[ /]launch|accelerate/commands")),
    ("torchrun", lazy_pattern(r"torchrun|torch\.distributed\.(?:run|launch)|torch/distributed/(?:run|launch|elastic)")),
    ("deepspeed", lazy_pattern(r"deepspeed(?:/launcher| --)|deepspeed\.launcher")),
)
TRITON_SERVER = ("triton-inference-server", "triton-server", "tritonserver")
"""Names under which the server stands in logs, images and reports; the project's comes first."""
OLD_INTERNAL_PORT = "5570"
"""The constant port between vLLM's front end and its engine in 0.5.3 and 0.5.4."""


class TakenPort(msgspec.Struct, frozen=True):
    """``role``: ``http``, ``queue`` (a message queue inside the engine), ``rendezvous`` (torch's store) or ``container``."""

    number: str | None
    role: str
    launcher: str = ""

    @property
    def name(self) -> str:
        what = {
            "queue": "an internal channel",
            "rendezvous": "the rendezvous of the ranks",
            "container": "a published container port",
        }.get(self.role, "the server")
        return f"Port {self.number} ({what})" if self.number else f"The port of {what}"


def read(case: Case, match: Match) -> TakenPort:
    """Read it from the line, the frames of its exception, and the lines around it."""
    number = next((found.group(1) for pattern in _PORT if (found := pattern.search(match.text[:1600]))), None)
    if number is None:
        near = case.lines_around(match, 6, 4)
        number = next(
            (found.group(1) for line in near for p in _PORT[:5] if (found := p.search(line.text[:400])) and "bind" in line.text),
            None,
        )  # fmt: skip
    frames = " ".join(frame.path for frame in match.frames[-6:])
    said = f"{match.text[:1600]} {frames}"
    if _CONTAINER.search(said):
        return TakenPort(number, "container")
    if _MESSAGE_QUEUE.search(said):
        return TakenPort(number, "queue")
    if _RENDEZVOUS.search(said):
        around = " ".join(line.text[:300] for line in case.lines_around(match, 80, 40))
        return TakenPort(
            number, "rendezvous", next((name for name, p in _LAUNCHER if p.search(f"{said} {around}")), "")
        )
    return TakenPort(number, "http")


def movers(case: Case, port: TakenPort, component: str | None) -> tuple[Remedy, ...]:
    """What gives the server another port, by what the port serves."""
    match port.role:
        case "container":
            return (_publish(),)
        case "queue":
            return _of_queue(case, port, component)
        case "rendezvous":
            return _of_rendezvous(case, port)
        case _:
            return _of_http(case, component)


def _publish() -> Remedy:
    return Remedy(
        kind="flag",
        name="--publish",
        value="another host port",
        summary="Publish the container on a host port that is free: -p FREE:PORT_INSIDE",
        cost="clients must use the new port",
        check=("docker ps --format '{{.Names}} {{.Ports}}'",),
    )


def _of_queue(case: Case, port: TakenPort, component: str | None) -> tuple[Remedy, ...]:
    engine = component or case.engine
    if engine != "vllm":
        return (Remedy(kind="package", name=engine or "engine", value="newer", summary="A release that binds a port at the moment it chooses it", is_sure=False),)  # fmt: skip
    if port.number == OLD_INTERNAL_PORT:
        return (
            Remedy(kind="flag", name="--disable-frontend-multiprocessing", summary="Run the engine inside the front end: no internal port", is_sure=False, limits=("0.5.x only; some setups of that release still fail",)),
            Remedy(kind="package", name="vllm", value="newer", summary="From 0.5.5 on this channel is a socket file of each server, no TCP port"),
        )  # fmt: skip
    side_channel = Remedy(kind="env", name="VLLM_NIXL_SIDE_CHANNEL_PORT", value="one of its own for each server", summary="Give each server another base port for its KV transfer", rank=0)  # fmt: skip
    unset = Remedy(
        kind="env",
        name="VLLM_PORT",
        value="unset",
        summary="Let each worker choose its own free port: a constant VLLM_PORT is the same start value for all of them",
        check=("! tr '\\0' '\\n' < /proc/PID/environ | grep ^VLLM_PORT=",),
        rank=1,
    )
    newer = Remedy(kind="package", name="vllm", value="newer", summary="A release that binds a port at the moment it chooses it", is_sure=False)  # fmt: skip
    is_transfer = port.number in ("5557", "5600") or "nixl" in " ".join(
        each.text.lower() for each in case.all("refused")
    )
    return (side_channel, unset, newer) if is_transfer else (unset, newer)


def _of_rendezvous(case: Case, port: TakenPort) -> tuple[Remedy, ...]:
    if port.launcher == "accelerate":
        return (
            Remedy(kind="flag", name="--main_process_port", value="0", summary="Let accelerate choose a free port"),
        )
    if port.launcher == "deepspeed":
        return (Remedy(kind="flag", name="--master_port", value="a free port", summary="Give this job a rendezvous port of its own"),)  # fmt: skip
    other = Remedy(kind="env", name="MASTER_PORT", value="a free port", summary="Give this job a rendezvous port of its own", rank=1)  # fmt: skip
    if port.launcher == "torchrun":
        return (
            Remedy(kind="flag", name="--master-port", value="a free port", summary="Give this job a rendezvous port of its own (or --rdzv-endpoint=localhost:0)"),
            other,
        )  # fmt: skip
    if case.engine == "text-generation-inference":
        return (Remedy(kind="flag", name="--master-port", value="a free port", summary="Give the shards of this server a rendezvous port of their own"),)  # fmt: skip
    if case.engine == "sglang":
        return (
            Remedy(kind="flag", name="--nccl-port", value="a free port", summary="Choose the port over which the ranks of this server meet"),
            Remedy(kind="flag", name="--dist-init-addr", value="a free port of the first node", summary="On several nodes: the same on all of them", rank=1),
        )  # fmt: skip
    if case.engine == "vllm":
        unset = Remedy(kind="env", name="VLLM_PORT", value="unset", summary="Let vLLM choose a free port for each group of workers", rank=2)  # fmt: skip
        return (other, unset)
    return (other,)


def _of_http(case: Case, component: str | None) -> tuple[Remedy, ...]:
    engine = component or case.engine
    if engine == "ollama":
        return (Remedy(kind="env", name="OLLAMA_HOST", value="127.0.0.1:11435", summary="Let this server listen elsewhere, or use the one that runs", cost="clients need the same OLLAMA_HOST"),)  # fmt: skip
    if engine == "ray":
        return (Remedy(kind="flag", name="--port", value="a free port", summary="Or start the head with another port: ray start --head --port=FREE", is_sure=False, cost="the other nodes must name it too"),)  # fmt: skip
    if engine in TRITON_SERVER:
        texts = " ".join(each.text[:400] for each in case.all("refused"))
        name = (
            "--grpc-port"
            if "GRPC service" in texts
            else "--metrics-port"
            if "Metrics service" in texts
            else "--http-port"
        )
        return (Remedy(kind="flag", name=name, value="a free port", summary="Choose other ports (--http-port, --grpc-port, --metrics-port)"),)  # fmt: skip
    name = "--server-port" if engine == "lmdeploy" else "--port"
    return (Remedy(kind="flag", name=name, value="a free port", summary="Choose a port that is free", cost="clients must use the new port"),)  # fmt: skip
