"""A container as its engine describes it: how it ended, what it was started with, what was passed into it.

``docker container inspect NAME``; podman and nerdctl print the same shape, with parts left out or spelled otherwise.
"""

import difflib
import json
from typing import Any, Dict, List, Optional

from gpuwhy.collector.container_log import seconds
from gpuwhy.collector.engines import Container, ask, ask_json, items, mapping, number
from gpuwhy.collector.environment import split_variables
from gpuwhy.collector.probing import Absent, Failed, Notes, NoValue
from gpuwhy.redaction.redactor import is_secret_name

LABELS = ("com.docker.compose.", "io.kubernetes.", "PODMAN_SYSTEMD_UNIT", "org.opencontainers.image.", "io.podman.", "nerdctl/", "maintainer", "com.nvidia.")  # fmt: skip
"""Labels that say who started a container and what is in it; anything else may be anybody's."""

EVENTS = ("die", "died", "oom", "kill", "start", "stop", "restart", "health_status", "create", "destroy", "remove")


def state_of(container: Container, notes: Notes) -> Dict[str, Any]:
    """What the engine knows of a container. Raises Absent (with similar names among the remarks), Denied, TimedOut, Failed."""
    try:
        found = ask_json(container, ["container", "inspect", container.name], notes)
    except Absent:
        _remark_similar(container, notes)
        raise
    inspected = mapping(items(found)[0] if items(found) else found)
    if not inspected:
        raise Failed("%s container inspect printed no container" % container.client)
    value = described(container, inspected, notes)
    value["image_details"] = _image(container, value["image_id"] or value["image"], notes)
    if value["state"]["error"]:
        # it could not be started: what the engine knows to start it with then matters
        value["runtimes"] = _runtimes(container, notes)
    return value


def described(container: Container, inspected: Dict[str, Any], notes: Notes) -> Dict[str, Any]:
    """The value of the probe, from one element of what ``inspect`` prints."""
    config, host = mapping(inspected.get("Config")), mapping(inspected.get("HostConfig"))
    state = mapping(inspected.get("State"))
    variables = assignments(items(config.get("Env")), notes)
    shown, hidden = split_variables(variables)
    words = [str(inspected.get("Path") or "")] + [str(each) for each in items(inspected.get("Args"))]
    return {
        "engine": container.engine,
        "name": str(inspected.get("Name") or container.name).lstrip("/"),
        "id": str(inspected.get("Id") or ""),
        "found_by": container.found_by,
        "account": container.account,
        "image": str(inspected.get("ImageName") or config.get("Image") or ""),
        "image_id": str(inspected.get("Image") or ""),
        "created": _text(inspected.get("Created")),
        "state": _state(state, inspected, host),
        "command": [word for word in words if word],
        "directory": _text(config.get("WorkingDir")),
        "user": _text(config.get("User")),
        "variables": shown,
        "other_names": hidden,
        "mounts": [_mount(mapping(each)) for each in items(inspected.get("Mounts"))[:100]],
        "gpus": _gpus(host, variables),
        "limits": _limits(host),
        "network": _text(host.get("NetworkMode")),
        "ipc": _text(host.get("IpcMode")),
        "privileged": bool(host.get("Privileged")),
        "security": [str(each) for each in items(host.get("SecurityOpt"))[:20]],
        "capabilities": [str(each) for each in items(host.get("CapAdd"))[:40]],
        "log_driver": _text(mapping(host.get("LogConfig")).get("Type")),
        "labels": _labels(mapping(config.get("Labels"))),
    }


def assignments(pairs: List[Any], notes: Notes) -> Dict[str, str]:
    """``["A=b", ...]`` as a mapping; values under a telling name are learned as secrets on the way."""
    variables = {}
    for pair in pairs[:2000]:
        name, sign, value = str(pair).partition("=")
        if sign and name:
            variables[name] = value
            if is_secret_name(name):
                notes.secret(value)
    return variables


def _state(state: Dict[str, Any], inspected: Dict[str, Any], host: Dict[str, Any]) -> Dict[str, Any]:
    policy = mapping(host.get("RestartPolicy"))
    restarts = number(inspected.get("RestartCount"))
    health = mapping(state.get("Health") or state.get("Healthcheck"))
    checks = [mapping(each) for each in items(health.get("Log"))[-3:]]
    status = str(state.get("Status") or ("running" if state.get("Running") else "unknown")).lower()
    return {
        "status": status,
        "is_running": bool(state.get("Running")) and status not in ("restarting", "paused"),
        "exit_code": number(state.get("ExitCode")),
        "oom_killed": state.get("OOMKilled") if isinstance(state.get("OOMKilled"), bool) else None,
        "error": _text(state.get("Error")),
        "started": seconds(state.get("StartedAt")) and _text(state.get("StartedAt")),
        "finished": seconds(state.get("FinishedAt")) and _text(state.get("FinishedAt")),
        "started_at": seconds(state.get("StartedAt")),
        "finished_at": seconds(state.get("FinishedAt")),
        "pid": number(state.get("Pid")) or None,
        "restarts": restarts or 0,
        "restart_policy": _policy(policy),
        "health": _text(health.get("Status")),
        "health_checks": ["%s: %s" % (each.get("ExitCode"), str(each.get("Output") or "")[:500]) for each in checks],
    }


def _policy(policy: Dict[str, Any]) -> str:
    name, most = str(policy.get("Name") or ""), number(policy.get("MaximumRetryCount"))
    return "%s:%d" % (name, most) if name and most else name


def _mount(mount: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "kind": _text(mount.get("Type")),
        "source": _text(mount.get("Source") or mount.get("Name")),
        "destination": _text(mount.get("Destination")),
        "is_writable": bool(mount.get("RW")),
        "options": _text(mount.get("Mode")) or ",".join(str(each) for each in items(mount.get("Options"))),
    }


def _gpus(host: Dict[str, Any], variables: Dict[str, str]) -> Dict[str, Any]:
    """What was asked for: ``--gpus`` (device requests), ``--device``, the runtime, CDI names, NVIDIA_VISIBLE_DEVICES."""
    requests = []
    for each in [mapping(item) for item in items(host.get("DeviceRequests"))[:20]]:
        wanted = [str(one) for one in items(each.get("DeviceIDs"))]
        count = number(each.get("Count"))
        kinds = [str(one) for group in items(each.get("Capabilities")) for one in items(group)]
        requests.append({"driver": _text(each.get("Driver")), "count": count, "devices": wanted, "capabilities": kinds})
    devices = [_text(mapping(each).get("PathOnHost")) for each in items(host.get("Devices"))[:64]]
    return {
        "requests": requests,
        "devices": [device for device in devices if device],
        "runtime": _text(host.get("Runtime")),
        "visible": variables.get("NVIDIA_VISIBLE_DEVICES"),
        "driver_capabilities": variables.get("NVIDIA_DRIVER_CAPABILITIES"),
    }


def _limits(host: Dict[str, Any]) -> Dict[str, Any]:
    """Bytes; None where there is no limit. ``cpus`` in cores."""
    nano = number(host.get("NanoCpus"))
    quota, period = number(host.get("CpuQuota")), number(host.get("CpuPeriod"))
    cores = nano / 1e9 if nano else (float(quota) / period if quota and quota > 0 and period else None)
    ulimits = {}
    for each in [mapping(item) for item in items(host.get("Ulimits"))[:40]]:
        name = str(each.get("Name") or "").upper().replace("RLIMIT_", "").lower()
        soft, hard = number(each.get("Soft")), number(each.get("Hard"))
        if name and soft is not None:
            ulimits[name] = [soft, hard if hard is not None else soft]
    return {
        "memory": number(host.get("Memory")) or None,
        "memory_and_swap": number(host.get("MemorySwap")) or None,
        "shm": number(host.get("ShmSize")) or None,
        "cpus": cores,
        "processes": number(host.get("PidsLimit")) or None,
        "ulimits": ulimits,
    }


def _labels(labels: Dict[str, Any]) -> Dict[str, str]:
    return {str(name): str(labels[name])[:500] for name in sorted(map(str, labels)) if str(name).startswith(LABELS)}


def _image(container: Container, image: str, notes: Notes) -> Dict[str, Any]:
    """When the image was made, by whom it says it was made, and the last steps of its making; empty where not told."""
    if not image or image.startswith("-"):
        return {}
    try:
        found = ask_json(container, ["image", "inspect", image], notes, 2.0)
    except NoValue as why:
        notes.remark("the image is not described: " + why.reason)
        return {}
    first = mapping(items(found)[0] if items(found) else found)
    config = mapping(first.get("Config"))
    return {
        "tags": [str(each) for each in items(first.get("RepoTags"))[:5]],
        "digests": [str(each) for each in items(first.get("RepoDigests"))[:5]],
        "created": _text(first.get("Created")),
        "architecture": _text(first.get("Architecture")),
        "size": number(first.get("Size")),
        "entrypoint": [str(each) for each in items(config.get("Entrypoint"))[:50]],
        "labels": _labels(mapping(config.get("Labels"))),
    }


def _runtimes(container: Container, notes: Notes) -> Optional[List[str]]:
    """The runtimes that docker knows (``nvidia`` among them once the toolkit is set up); None where it does not tell."""
    if container.engine != "docker":
        return None
    try:
        found = ask_json(container, ["info", "--format", "{{json .Runtimes}}"], notes, 2.0)
    except NoValue as why:
        notes.remark(why.reason)
        return None
    return sorted(map(str, found)) if isinstance(found, dict) else None


def _remark_similar(container: Container, notes: Notes) -> None:
    """Remarks the containers of a like name, for who mistyped it."""
    try:
        known = ask(container, ["ps", "--all", "--format", "{{.Names}}"], notes, 2.0).split()
    except NoValue:
        return
    like = [name for name in known if container.name.lower() in name.lower()]
    like += difflib.get_close_matches(container.name, known, n=3, cutoff=0.5)
    shown = list(dict.fromkeys(like))[:5] or known[:5]
    if shown:
        notes.remark("it knows " + ", ".join(shown))


def _text(value: Any) -> Optional[str]:
    return value[:2000] if isinstance(value, str) and value else None


def events_of(container: Container, notes: Notes) -> List[Dict[str, Any]]:
    """The newest events of a container's lives, oldest first: ``oom``, ``die`` with its exit code, ``start``."""
    # podman takes "0s" for the end of its own start; docker without an end would wait for more events
    end = ["--stream=false"] if container.engine == "podman" else ["--until", "0s"]
    options = ["events", "--since", "24h"] + end + ["--filter", "container=" + container.name, "--format", "{{json .}}"]
    found = []
    for line in ask(container, options, notes, 2.5).splitlines()[-2000:]:
        try:
            event = mapping(json.loads(line))
        except (ValueError, RecursionError):
            continue
        name = str(event.get("status") or event.get("Status") or event.get("Action") or "")
        if name.split(":")[0] not in EVENTS:
            continue
        attributes = mapping(mapping(event.get("Actor")).get("Attributes")) or mapping(event.get("Attributes"))
        code = attributes.get("exitCode", event.get("ContainerExitCode"))
        found.append(
            {
                "time": _moment(event),
                "reason": name,
                "message": "exit code %s" % code if code is not None and name.startswith("die") else "",
            }
        )
    return found[-200:]


def _moment(event: Dict[str, Any]) -> Optional[float]:
    nano = number(event.get("timeNano"))
    plain = number(event.get("time"))
    return round(nano / 1e9, 6) if nano else float(plain) if plain else seconds(event.get("Time"))
