"""A container in a snapshot: which answers are the host's and which the container's, its log, and what its engine says.

Under its plain name stands what holds for the service. Of a container that is what its inside told, or its engine; what
the engine's host told of itself stands under ``host.NAME`` where it does not hold inside (packages, toolkits, limits).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gpuwhy.snapshot.document import Snapshot
from gpuwhy.snapshot.logs import entries_in

STATE, LOG, EVENTS, INSIDE = "container_state", "container_log", "container_events", "inside"

OF_HOST = "host."
"""Before the name of a probe: the answer of the engine's host, where that of the container is another."""

_ALWAYS_OF_HOST = frozenset({STATE, LOG, EVENTS, INSIDE, "failing_services", "unit", "journal"})
"""What only the host asks, or asks for the container."""

_OF_BOTH = frozenset({"gpus", "nvidia_smi", "pci", "driver", "gpu_services", "kernel_log", "memory"})
"""One kernel and one driver serve host and container: where the inside told nothing, the host's answer holds."""


def arranged(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Probes as they came, each under the name under which its value holds for the service."""
    state = next((each for each in results if each.get("probe") == STATE and each.get("status") == "ok"), None)
    if state is None:
        return results
    subject = str(state.get("subject") or "")
    inside = {str(each.get("probe")): _of_container(each, subject) for each in results if each.get("inside")}
    told = {name for name, each in inside.items() if each.get("status") == "ok"}
    placed: list[dict[str, Any]] = []
    for each in results:
        name = str(each.get("probe"))
        if each.get("inside"):
            continue
        if name in _ALWAYS_OF_HOST:
            placed.append(each)
            inside.pop(name, None)
        elif name in _OF_BOTH and name not in told:
            placed.append(_without_group(each) if name == "memory" else each)
            inside.pop(name, None)
        elif each.get("status") == "ok":
            placed.append({**each, "probe": OF_HOST + name})
    return [*placed, *inside.values()]


def _without_group(result: dict[str, Any]) -> dict[str, Any]:
    """The host's memory without the limits of the collector's own control group."""
    value = result.get("value")
    return {**result, "value": {**value, "group": None}} if isinstance(value, dict) else result


def _of_container(result: dict[str, Any], subject: str) -> dict[str, Any]:
    plain = {key: value for key, value in result.items() if key != "inside"}
    return {**plain, "subject": subject} if plain.get("subject", "host") == "host" else plain


def container_name(snapshot: Snapshot) -> str:
    """What people call the examined container: ``docker container vllm``; empty where none was."""
    state = snapshot.value(STATE)
    if not isinstance(state, dict):
        return ""
    if state.get("engine") == "k8s":
        return f"container {state.get('container')} of pod {state.get('namespace')}/{state.get('name')}"
    return f"{state.get('engine')} container {state.get('name')}"


def container_id(snapshot: Snapshot) -> str:
    state = snapshot.value(STATE)
    return str(state.get("id") or "") if isinstance(state, dict) else ""


def log_name(snapshot: Snapshot) -> str:
    """The command that shows the same log."""
    probe = snapshot.probe(LOG)
    state = snapshot.value(STATE)
    if not isinstance(state, dict):
        return ""
    if state.get("engine") == "k8s":
        return f"kubectl logs -n {state.get('namespace')} {state.get('name')} -c {state.get('container')}"
    return f"{state.get('engine')} logs {state.get('name')}" if probe is not None else ""


def report_name(snapshot: Snapshot) -> str:
    """The command that shows what the engine says."""
    state = snapshot.value(STATE)
    if not isinstance(state, dict):
        return ""
    if state.get("engine") == "k8s":
        return f"kubectl describe pod -n {state.get('namespace')} {state.get('name')}"
    return f"{state.get('engine')} inspect {state.get('name')}"


def container_entries(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """The lines that the container printed, oldest first."""
    found = snapshot.value(LOG)
    if isinstance(found, dict):
        yield from entries_in(found, "")


def engine_entries(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """What the engine says of a container that has ended or never ran, in the words in which its own commands print it."""
    state = snapshot.value(STATE)
    if not isinstance(state, dict) or not isinstance(state.get("state"), dict):
        return
    lines = _of_pod(snapshot, state) if state.get("engine") == "k8s" else _of_engine(state)
    for time, text in lines:
        entry: dict[str, Any] = {"MESSAGE": text, "_TRANSPORT": "stdout", "SYSLOG_IDENTIFIER": ""}
        if isinstance(time, (int, float)):
            entry["__REALTIME_TIMESTAMP"] = str(round(time * 1e6))
        yield entry


def _of_engine(found: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """``docker inspect``: only how it ended. A container that runs says nothing here."""
    state = found["state"]
    if state.get("is_running"):
        return
    ended = state.get("finished_at")
    if state.get("error"):
        yield ended, f"Error response from daemon: {state['error']}"
    if state.get("oom_killed"):
        yield ended, '"OOMKilled": true,'
    code = state.get("exit_code")
    if isinstance(code, int) and code:
        yield ended, f'"ExitCode": {code},'


def _of_pod(snapshot: Snapshot, found: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """``kubectl describe pod``: how its container ended or what it waits for, and the events."""
    state = found["state"]
    if found.get("reason") or found.get("message"):
        yield None, "Status:         Failed"
        yield None, f"Reason:         {found.get('reason')}"
        yield None, f"Message:        {found.get('message')}"
    if isinstance(state.get("exit_code"), int) and state["exit_code"]:
        ended = state.get("finished_at")
        yield ended, "    Last State:     Terminated"
        yield ended, f"      Reason:       {state.get('ended_by') or 'Error'}"
        if state.get("error"):
            yield ended, f"      Message:      {state['error']}"
        yield ended, f"      Exit Code:    {state['exit_code']}"
    if state.get("waiting") and state["waiting"] not in ("PodInitializing", "ContainerCreating"):
        yield None, "    State:          Waiting"
        yield None, f"      Reason:       {state['waiting']}"
        if state.get("waiting_message"):
            yield None, f"      Message:      {state['waiting_message']}"
    for event in _listed(snapshot.value(EVENTS)):
        text = " ".join(str(event.get("message") or "").split())
        yield event.get("time"), f"  {event.get('kind')}  {event.get('reason')}  {event.get('by')}  {text}"


def kernel_entries_for(snapshot: Snapshot, entries: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The host's kernel lines without what it says of processes elsewhere: kills for lack of memory, segmentation faults.

    The kernel tells of one kill in many lines; one of them names the control group, which holds the container's id.
    Of a segmentation fault it names none, nor before 4.19 of a kill that no limit brought about: there the moments at
    which the container ended decide.
    """
    state = snapshot.value(STATE)
    identity = container_id(snapshot)
    if not identity:
        yield from entries
        return
    lines = list(entries)
    moments = [_time(line) for line in lines if identity in str(line.get("MESSAGE"))]
    ends = _ends(snapshot, state)
    if not any(_PLACED.search(str(line.get("MESSAGE"))) for line in lines):
        moments += ends
    for line in lines:
        text = str(line.get("MESSAGE"))
        is_kill, is_fault = _OUT_OF_MEMORY.search(text), _FAULT.search(text)
        if (not is_kill and not is_fault) or _is_near(_time(line), moments if is_kill else ends):
            yield line


def _ends(snapshot: Snapshot, state: dict[str, Any]) -> list[float | None]:
    """When the lives of the container ended, as far as its engine remembers."""
    last = state.get("state")
    finished = last.get("finished_at") if isinstance(last, dict) else None
    died = [
        event.get("time") for event in _listed(snapshot.value(EVENTS)) if str(event.get("reason")).startswith("die")
    ]
    return [float(each) for each in (finished, *died) if isinstance(each, (int, float))]


def _is_near(time: float | None, moments: list[float | None]) -> bool:
    return time is not None and any(moment is not None and abs(moment - time) <= _ONE_KILL for moment in moments)


_ONE_KILL = 5.0
"""Seconds within which the kernel has told all of one kill."""

_OUT_OF_MEMORY = re.compile(r"oom[-_ ]|Out of memory|Killed process|Memory cgroup|Tasks? (?:state|in /)", re.IGNORECASE)
_FAULT = re.compile(r"segfault|general protection|traps?:|trap (?:invalid|divide|int3)", re.IGNORECASE)
_PLACED = re.compile(r"task_memcg=|Task in /[^ ]{0,600} killed as a result of limit")


def _time(line: dict[str, Any]) -> float | None:
    stamp = str(line.get("__REALTIME_TIMESTAMP", ""))
    return int(stamp) / 1e6 if stamp.isdigit() and len(stamp) < 20 else None


def container_notes(snapshot: Snapshot) -> list[str]:
    """What a reader must know: which container, how it was found, and what of it could not be seen."""
    state, inside = snapshot.value(STATE), snapshot.probe(INSIDE)
    if not isinstance(state, dict):
        return []
    name = container_name(snapshot)
    notes = [f"{name} was examined: {state['found_by']}."] if state.get("found_by") else []
    if inside is not None and inside.status != "ok":
        notes.append(
            f"The inside of {name} was not visible ({inside.reason}): examined from outside, by its log and its engine."
        )
    if state.get("engine") == "k8s":
        node = state.get("node") or "none yet"
        notes.append(f"The node ({node}) was not visible: its kernel log, driver and GPUs are seen on the node itself.")
    for probe in (snapshot.probe(LOG), snapshot.probe(EVENTS) if state.get("engine") == "k8s" else None):
        if probe is not None and probe.status in ("denied", "timed out", "failed"):
            notes.append(f"{probe.name}: {probe.reason} ({probe.status})")
    return notes


def _listed(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
