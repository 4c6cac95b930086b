"""A pod as Kubernetes describes it, from ``kubectl get pod -o json`` and its events: why it does not run, and how it ended.

status.containerStatuses[].state.waiting.reason           CrashLoopBackOff, ImagePullBackOff, CreateContainerError ...
status.containerStatuses[].lastState.terminated           exitCode, reason (OOMKilled, Error), message
status.conditions[type=PodScheduled]                      reason Unschedulable, with the scheduler's sentence
"""

import difflib
from typing import Any, Dict, List, Optional, Tuple

from gpuwhy.collector.container_log import seconds
from gpuwhy.collector.engines import Container, ask, ask_json, items, mapping, number
from gpuwhy.collector.environment import split_variables
from gpuwhy.collector.probing import Absent, Failed, Notes, NoValue
from gpuwhy.redaction.redactor import is_secret_name

GPU_RESOURCES = ("nvidia.com/", "amd.com/gpu", "gpu.intel.com/")


def state_of(container: Container, notes: Notes) -> Dict[str, Any]:
    """The pod and the container in it that is examined: the one that was named, else the one that fails, else the first.

    Raises Absent (with similar names among the remarks), Denied, TimedOut, Failed. Settles ``container.inner``.
    """
    try:
        pod = mapping(ask_json(container, ["get", "pod", container.name, "-o", "json"] + container.scope(), notes, 6.0))
    except Absent:
        _remark_similar(container, notes)
        raise
    return described(container, pod, notes)


def described(container: Container, pod: Dict[str, Any], notes: Notes) -> Dict[str, Any]:
    """The value of the probe from the pod's JSON."""
    metadata, spec, status = mapping(pod.get("metadata")), mapping(pod.get("spec")), mapping(pod.get("status"))
    specified = [mapping(each) for each in items(spec.get("initContainers")) + items(spec.get("containers"))]
    states = {}
    for each in items(status.get("initContainerStatuses")) + items(status.get("containerStatuses")):
        states[str(mapping(each).get("name"))] = mapping(each)
    names = [str(each.get("name")) for each in specified]
    if container.inner and container.inner not in names:
        notes.remark("it knows " + ", ".join(names[:10]))
        raise Absent('container "%s" not found in the pod' % container.inner)
    main = [str(mapping(each).get("name")) for each in items(spec.get("containers"))]
    inner = container.inner or _failing(names, states) or (main[0] if main else "")
    if not inner:
        raise Failed("kubectl get pod printed no container")
    container.inner = inner
    container.namespace = container.namespace or str(metadata.get("namespace") or "")
    chosen = next((each for each in specified if each.get("name") == inner), {})
    variables, unknown = _variables(chosen, notes)
    shown, hidden = split_variables(variables)
    limits = mapping(mapping(chosen.get("resources")).get("limits"))
    words = [str(each) for each in items(chosen.get("command")) + items(chosen.get("args"))]
    return {
        "engine": container.engine,
        "name": container.name,
        "namespace": container.namespace,
        "container": inner,
        "others": [_other(name, states.get(name, {})) for name in names if name != inner],
        "found_by": container.found_by,
        "id": str(mapping(states.get(inner)).get("containerID") or "").rpartition("/")[2],
        "pod_id": str(metadata.get("uid") or ""),
        "image": str(chosen.get("image") or ""),
        "image_id": str(mapping(states.get(inner)).get("imageID") or ""),
        "created": metadata.get("creationTimestamp"),
        "node": spec.get("nodeName"),
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "message": status.get("message"),
        "conditions": _conditions(items(status.get("conditions"))),
        "owners": ["%s/%s" % (mapping(each).get("kind"), mapping(each).get("name")) for each in items(metadata.get("ownerReferences"))[:5]],
        "state": _state(mapping(states.get(inner)), spec),
        "command": words,
        "variables": shown,
        "other_names": sorted(set(hidden) | set(unknown)),
        "is_environment_complete": False,
        "mounts": _mounts(chosen, spec),
        "gpus": {
            "limits": {name: str(value) for name, value in limits.items() if str(name).startswith(GPU_RESOURCES)},
            "runtime": spec.get("runtimeClassName"),
            "visible": variables.get("NVIDIA_VISIBLE_DEVICES"),
        },
        "limits": {
            "memory": quantity(limits.get("memory")),
            "cpus": quantity(limits.get("cpu"), is_cores=True),
            "storage": quantity(limits.get("ephemeral-storage")),
            "shm": _shared_memory(chosen, spec),
            "ulimits": {},
        },
        "requests": {str(name): str(value) for name, value in mapping(mapping(chosen.get("resources")).get("requests")).items()},
        "network": "host" if spec.get("hostNetwork") else None,
        "ipc": "host" if spec.get("hostIPC") else None,
        "privileged": bool(mapping(chosen.get("securityContext")).get("privileged")),
        "node_selector": {str(key): str(value) for key, value in mapping(spec.get("nodeSelector")).items()},
    }  # fmt: skip


def events_of(container: Container, notes: Notes) -> List[Dict[str, Any]]:
    """What the cluster tells of the pod, oldest first: scheduling, image, mounts, probes, restarts."""
    fields = "involvedObject.kind=Pod,involvedObject.name=" + container.name
    arguments = ["get", "events", "--field-selector", fields, "-o", "json"] + container.scope()
    found = mapping(ask_json(container, arguments, notes, 5.0))
    return events_in(found)


def events_in(found: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The items of an event list, by the time at which each was last seen."""
    events = []
    for each in [mapping(item) for item in items(found.get("items"))[:1000]]:
        source = mapping(each.get("source"))
        series = mapping(each.get("series"))
        stamp = (
            series.get("lastObservedTime")
            or each.get("lastTimestamp")
            or each.get("eventTime")
            or each.get("firstTimestamp")
        )
        events.append(
            {
                "time": seconds(stamp),
                "kind": str(each.get("type") or ""),
                "reason": str(each.get("reason") or ""),
                "by": str(source.get("component") or each.get("reportingComponent") or ""),
                "count": number(series.get("count")) or number(each.get("count")) or 1,
                "message": str(each.get("message") or "")[:2000],
            }
        )  # fmt: skip
    return sorted(events, key=lambda event: event["time"] or 0.0)


def quantity(value: Any, is_cores: bool = False) -> Any:
    """Bytes (or cores) of a Kubernetes quantity: ``64Gi``, ``1500m``, ``2e9``, ``"4"``; None for none."""
    text = str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    factors = (
        ("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("Ti", 1 << 40), ("Pi", 1 << 50), ("Ei", 1 << 60),
        ("m", 1e-3), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15), ("E", 1e18),
    )  # fmt: skip
    factor = 1.0
    for suffix, each in factors:
        if text.endswith(suffix):
            text, factor = text[: -len(suffix)], float(each)
            break
    try:
        found = float(text) * factor
        return found if is_cores else int(found)
    except (ValueError, OverflowError):
        return None


def _failing(names: List[str], states: Dict[str, Dict[str, Any]]) -> str:
    """The container that does not run, or has died: of several the first, as init containers hold up all others."""
    for name in names:
        state = mapping(mapping(states.get(name)).get("state"))
        ended, waiting = mapping(state.get("terminated")), mapping(state.get("waiting"))
        if number(ended.get("exitCode")) or waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            return name
    for name in names:
        if mapping(mapping(states.get(name)).get("lastState")).get("terminated"):
            return name
    return ""


def _state(status: Dict[str, Any], spec: Dict[str, Any]) -> Dict[str, Any]:
    state, last = mapping(status.get("state")), mapping(status.get("lastState"))
    waiting, running = mapping(state.get("waiting")), mapping(state.get("running"))
    ended = mapping(state.get("terminated")) or mapping(last.get("terminated"))
    name = "running" if running else "waiting" if waiting else "exited" if state.get("terminated") else "unknown"
    started = running.get("startedAt") or ended.get("startedAt")
    return {
        "status": name,
        "is_running": bool(running),
        "waiting": waiting.get("reason"),
        "waiting_message": waiting.get("message"),
        "exit_code": number(ended.get("exitCode")),
        "signal": number(ended.get("signal")),
        "ended_by": ended.get("reason"),
        "oom_killed": ended.get("reason") == "OOMKilled" if ended else None,
        "error": ended.get("message"),
        "started": started,
        "started_at": seconds(started),
        "finished_at": seconds(ended.get("finishedAt")),
        "restarts": number(status.get("restartCount")) or 0,
        "restart_policy": spec.get("restartPolicy"),
        "is_ready": bool(status.get("ready")),
    }


def _other(name: str, status: Dict[str, Any]) -> Dict[str, Any]:
    state = mapping(status.get("state"))
    word = next(iter(state), "unknown")
    reason = mapping(state.get(word)).get("reason")
    return {"name": name, "state": word, "reason": reason, "restarts": number(status.get("restartCount")) or 0}


def _conditions(conditions: List[Any]) -> List[Dict[str, Any]]:
    """Those that do not hold: a pod that runs has none."""
    found = [mapping(each) for each in conditions[:20]]
    return [
        {"name": each.get("type"), "reason": each.get("reason"), "message": str(each.get("message") or "")[:2000]}
        for each in found
        if each.get("status") == "False" and (each.get("reason") or each.get("message"))
    ]


def _variables(container: Dict[str, Any], notes: Notes) -> Tuple[Dict[str, str], List[str]]:
    """Variables with a value of their own, and the names of those that come from elsewhere (a secret, the node)."""
    known: Dict[str, str] = {}
    unknown: List[str] = []
    for each in [mapping(item) for item in items(container.get("env"))[:1000]]:
        name, value = str(each.get("name") or ""), each.get("value")
        if not isinstance(value, str):
            unknown.append(name)
            continue
        known[name] = value
        if is_secret_name(name):
            notes.secret(value)
    return known, unknown


def _mounts(container: Dict[str, Any], spec: Dict[str, Any]) -> List[Dict[str, Any]]:
    volumes = {str(mapping(each).get("name")): mapping(each) for each in items(spec.get("volumes"))}
    found = []
    for each in [mapping(item) for item in items(container.get("volumeMounts"))[:100]]:
        volume = volumes.get(str(each.get("name")), {})
        kind = next((key for key in volume if key != "name"), "")
        details = mapping(volume.get(kind))
        source = details.get("path") or details.get("claimName") or details.get("medium")
        found.append(
            {
                "kind": kind or None,
                "source": source if isinstance(source, str) else str(each.get("name")),
                "destination": each.get("mountPath"),
                "is_writable": not each.get("readOnly"),
                "options": details.get("sizeLimit"),
            }
        )
    return found


def _shared_memory(container: Dict[str, Any], spec: Dict[str, Any]) -> Optional[int]:
    """The size of a memory volume at /dev/shm; without any it has the 64 MiB of the container runtimes."""
    for mount in _mounts(container, spec):
        if mount["destination"] == "/dev/shm":
            return quantity(mount["options"]) if mount["kind"] == "emptyDir" else None
    return None if spec.get("hostIPC") else 64 << 20


def _remark_similar(container: Container, notes: Notes) -> None:
    """Remarks the pods of a like name, for who mistyped it or named an older one of a deployment."""
    try:
        known = ask(container, ["get", "pods", "-o", "name"] + container.scope(), notes, 4.0).split()
    except NoValue:
        return
    names = [each.rpartition("/")[2] for each in known]
    stem = container.name.split("-")[0]
    like = [name for name in names if container.name in name]
    like += difflib.get_close_matches(container.name, names, n=3, cutoff=0.5)
    like += [name for name in names if name.startswith(stem)]
    if like:
        notes.remark("it knows " + ", ".join(list(dict.fromkeys(like))[:5]))
