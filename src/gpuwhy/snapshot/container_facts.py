"""Facts of a container from what its engine says of it: how it ended, what it was given, what it may use."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Fact
from gpuwhy.snapshot.document import Probe, Snapshot

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a mount point


def state_facts(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    """Of ``container_state``. What the inside tells itself (limits, shared memory, its command) is left to it."""
    value, state = probe.value, probe.value["state"]
    limits, gpus = value["limits"], value["gpus"]
    yield _fact(probe, "container.name", _name(value), f"the examined container is {_name(value)}")
    yield _fact(probe, "container.in_container", True, f"the service runs in a container of {value['engine']}")
    if value.get("image"):
        yield _fact(
            probe, "container.image", value["image"], f"its image is {value['image']}", value.get("image_id") or ""
        )
    yield _fact(probe, "container.state", _state(state), f"it is {_state(state)}")
    yield _fact(probe, "container.restarts", state["restarts"], f"it was restarted {state['restarts']} times")
    if state.get("exit_code") is not None and not (state["is_running"] and not state["restarts"]):
        code = state["exit_code"]
        yield _fact(probe, "container.exit_code", code, f"it ended with exit code {code}", f"ExitCode={code}")
    if state.get("oom_killed") is not None and not state["is_running"]:
        killed = state["oom_killed"]
        said = "the kernel killed it for lack of memory" if killed else "its engine saw no kill for lack of memory"
        yield _fact(probe, "container.oom_killed", killed, said, f"OOMKilled={str(killed).lower()}")
    if state.get("error"):
        yield _fact(probe, "container.error", state["error"], "its engine could not start it", state["error"])
    if value.get("command"):
        line = shlex.join(value["command"])
        yield _fact(probe, "container.arguments", line, "it is started with this", line)
        yield _fact(probe, "command", line, "the container's command", line)
    yield from _gpus(probe, value, gpus)
    if limits.get("memory") or value["engine"] != "k8s":
        limit = limits.get("memory")
        said = f"it may use {limit} bytes of memory" if limit else "its engine sets no memory limit"
        yield _fact(probe, "memory_limit_bytes", limit, said, f"Memory={limit or 0}")
    if limits.get("shm") and value.get("ipc") not in ("host",) and not _has_own_shm(value):
        yield _fact(
            probe, "shm_bytes", limits["shm"], f"its /dev/shm has {limits['shm']} bytes", f"ShmSize={limits['shm']}"
        )
    for name, (soft, _) in limits["ulimits"].items():
        shown = "unlimited" if soft == -1 else soft
        yield _fact(probe, f"ulimit.{name}", shown, f"its limit of {name} is {shown}")
        if name == "memlock":
            yield _fact(probe, "memlock", str(shown), f"it may lock {shown} bytes of memory")
    for mount in value["mounts"]:
        if mount.get("destination"):
            said = f"{mount['destination']} is {mount.get('source') or 'a volume'} ({mount.get('kind')})"
            yield _fact(probe, f"container.mount.{mount['destination']}", mount.get("source"), said)


def host_facts(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    """Of ``host.nvidia_smi``: whether the driver's own tool works where the container does not stand in between."""
    verdict = str(probe.value["verdict"])
    said = "nvidia-smi works on the engine's host" if verdict == "ok" else "nvidia-smi fails on the engine's host"
    yield _fact(probe, "nvidia_smi.host", verdict, said, verdict)


def _gpus(probe: Probe, value: dict[str, Any], gpus: dict[str, Any]) -> Iterator[Fact]:
    if gpus.get("runtime"):
        yield _fact(probe, "container.runtime", gpus["runtime"], f"its runtime is {gpus['runtime']}")
    for key in ("visible", "driver_capabilities"):
        if gpus.get(key):
            name = "gpus" if key == "visible" else "capabilities"
            yield _fact(probe, f"container.{name}", gpus[key], f"its environment asks for {gpus[key]}")
    if value.get("runtimes"):
        known = value["runtimes"]
        yield _fact(probe, "container.runtimes", known, f"the engine knows the runtimes {', '.join(known)}")
    if value["engine"] == "k8s":
        wanted = gpus.get("limits") or {}
        text = ", ".join(f"{name}: {count}" for name, count in wanted.items())
        yield _fact(probe, "container.gpu_limits", text or None, f"it is given {text or 'no GPU'}", text)
        return
    requests = gpus.get("requests") or []
    shown = [
        f"{each.get('driver') or 'gpu'} {','.join(each.get('devices') or []) or each.get('count')}" for each in requests
    ]
    devices = [*shown, *(gpus.get("devices") or [])]
    said = f"it was started with {', '.join(devices)}" if devices else "it was started without any request for GPUs"
    yield _fact(
        probe, "container.device_requests", devices or None, said, f"DeviceRequests={', '.join(devices) or 'null'}"
    )


def _state(state: dict[str, Any]) -> str:
    waiting = f" ({state['waiting']})" if state.get("waiting") else ""
    health = f", {state['health']}" if state.get("health") not in (None, "none", "starting", "healthy") else ""
    return f"{state['status']}{waiting}{health}"


def _has_own_shm(value: dict[str, Any]) -> bool:
    """Whether something else is mounted over the engine's own shared memory."""
    return value["engine"] != "k8s" and any(mount.get("destination") == SHARED_MEMORY for mount in value["mounts"])


def _name(value: dict[str, Any]) -> str:
    parts = [value.get("namespace"), value["name"], value.get("container")]
    return f"{value['engine']}:{'/'.join(str(part) for part in parts if part)}"


def _fact(probe: Probe, key: str, value: Any, statement: str, quote: str = "") -> Fact:
    place = Place("command", probe.sources[0] if probe.sources else probe.name)
    return Fact(key, value, Evidence(statement, quote, place), probe.subject)
