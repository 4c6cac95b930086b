"""The probes of a container or pod from outside: nothing can be run in one that has ended."""

from typing import Any, Dict, List, Optional

from gpuwhy.collector import container_log as logs
from gpuwhy.collector import container_state as states
from gpuwhy.collector import pods
from gpuwhy.collector.allowing import joining
from gpuwhy.collector.container_of import container_of
from gpuwhy.collector.engines import KUBERNETES, Container, mapping
from gpuwhy.collector.probing import Absent, Denied, Notes, Request

OUTSIDE = ("container_state", "container_log", "container_events")

OF_HOST = ("gpus", "nvidia_smi", "pci", "driver", "gpu_services", "kernel_log", "system", "memory")
"""What the engine's host tells beside: the rest of it is not what the service in the container sees."""


def container_state(
    request: Request, notes: Notes, unit: Optional[Dict[str, Any]], candidates: Optional[List[Dict[str, Any]]]
) -> Dict[str, Any]:
    """What the engine knows of the container that was named, or that the failing unit runs."""
    container = container_of(request, notes, unit, candidates)
    notes.subject = container.subject
    try:
        value = pods.state_of(container, notes) if container.engine == KUBERNETES else states.state_of(container, notes)
    except Denied:
        if container.engine != KUBERNETES:
            notes.deny("the containers of %s" % container.engine, *joining(container.engine))
        raise
    notes.subject = container.subject
    return value


def container_log(_request: Request, notes: Notes, state: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """What the container printed."""
    container = known(state)
    notes.subject = container.subject
    if state is not None and state.get("log_driver") == "none":
        raise Absent("its log driver is none: what it prints is kept nowhere")
    return logs.log_of(container, mapping((state or {}).get("state")).get("started"), notes)


def container_events(_request: Request, notes: Notes, state: Optional[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """What the engine or the cluster tells of the container's lives; docker keeps its last 256 events in memory."""
    container = known(state)
    notes.subject = container.subject
    if container.engine == KUBERNETES:
        found = pods.events_of(container, notes)
    elif container.engine == "nerdctl":
        raise Absent("nerdctl shows events only as they come")
    else:
        found = states.events_of(container, notes)
    if not found:
        raise Absent("no event of it is kept")
    return found


def known(state: Optional[Dict[str, Any]]) -> Container:
    """The container that ``container_state`` found. Raises Absent when it found none."""
    if state is None:
        raise Absent("no container is examined")
    if state["engine"] == KUBERNETES:
        return Container(KUBERNETES, state["name"], state["namespace"], state["container"])
    return Container(state["engine"], state["name"], account=str(state.get("account") or ""))
