"""Why a container engine or kubectl could not be asked, and what a person can do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpuwhy.targets.interface import TargetError

CLIENTS = {"k8s": "kubectl"}
"""The client of an engine where it is not called like the engine."""

_LISTING = {"k8s": "kubectl get pods -A lists them."}

_KUBECTL = (
    (re.compile(r"localhost:8080|no configuration has been provided|context .{0,200}(?:does not exist|was not found)|stat .{0,300}no such file|current-context is not set|error loading config", re.I), "kubectl has no usable configuration ({said})", "Set KUBECONFIG, or choose one: kubectl config get-contexts; kubectl config use-context NAME"),
    (re.compile(r"\(NotFound\)|not found in the pod"), "there is no {what}", "{listing}"),
    (re.compile(r"Forbidden|cannot (?:get|list|create) resource", re.I), "this account may not look at {what} ({said})", "Ask for get on pods, pods/log and events, and create on pods/exec: kubectl auth can-i get pods/log"),
    (re.compile(r"Unauthorized|must be logged in|provide credentials|token .{0,40}expired|exec: executable", re.I), "the cluster does not accept kubectl's credentials ({said})", "Log in again; then: kubectl auth whoami"),
    (re.compile(r"x509|certificate", re.I), "kubectl does not trust the cluster's certificate ({said})", "Check the cluster entry of the configuration: kubectl config view --minify"),
    (re.compile(r"connection refused|no such host|Unable to connect|i/o timeout|no route to host|was refused|Client\.Timeout", re.I), "the cluster does not answer ({said})", "Is the VPN up, and the right context chosen? kubectl config current-context; kubectl cluster-info"),
)  # fmt: skip

_CONTAINERS = (
    (re.compile(r"no such (?:container|object)|no container with name or id", re.I), "there is no {what}", "{listing}"),
    (re.compile(r"permission denied", re.I), "this account may not ask {client} ({said})", "Use --sudo, or an account of the group that may ({client} with rootless containers: the account that owns them)."),
    (re.compile(r"cannot connect to the .{0,20}daemon|is the docker daemon running|connection refused|cannot access containerd socket|unable to connect to podman|no such host", re.I), "{client} has no daemon to ask ({said})", "Is it running? systemctl status {unit}; and does {variable} point to it? It is not read from a login shell over SSH."),
)  # fmt: skip


def explain(container: Mapping[str, str], state: Mapping[str, Any], host: str = "") -> TargetError:
    """From what the collector saw of ``container`` on ``host`` (empty: here) to words; ``state`` is its failed probe."""
    engine = container["engine"]
    client = CLIENTS.get(engine, engine)
    said = " ".join(str(state.get("reason", "")).split())[:300]
    where = f" on {host}" if host else ""
    what = _named(container) + where
    if state.get("status") == "timed out":
        return TargetError(f"{client} gave no answer about {what}", f"Does it come back by hand? {_by_hand(container)}")
    if said.startswith(f"there is no {client}"):
        at = host or "this machine"
        advice = (
            "Name the host that has it: --via HOST" if not host else f"Install it there, or leave out --via {host}."
        )
        return TargetError(f"there is no {client} on {at}", advice)
    similar = [str(each) for each in state.get("remarks", ()) if str(each).startswith("it knows ")]
    for pattern, meaning, advice in _KUBECTL if engine == "k8s" else _CONTAINERS:
        if pattern.search(said):
            filled = {
                "what": what,
                "said": said,
                "client": client,
                "unit": "containerd" if engine == "nerdctl" else engine,
                "variable": {"podman": "CONTAINER_HOST", "nerdctl": "CONTAINERD_ADDRESS"}.get(engine, "DOCKER_HOST"),
                "listing": _LISTING.get(engine, f"{client} ps -a lists them."),
            }
            return TargetError("; ".join([meaning.format(**filled), *similar]), advice.format(**filled))
    return TargetError(f"{what}: {said or 'nothing was said'}", f"Does this work by hand? {_by_hand(container)}")


def _named(container: Mapping[str, str]) -> str:
    if container["engine"] != "k8s":
        return f"{container['engine']} container {container['name']}"
    namespace = container.get("namespace")
    pod = f"pod {container['name']}" + (f" in namespace {namespace}" if namespace else "")
    return f"container {container['container']} in {pod}" if container.get("container") else pod


def _by_hand(container: Mapping[str, str]) -> str:
    if container["engine"] != "k8s":
        return f"{container['engine']} inspect {container['name']}"
    namespace = container.get("namespace")
    return f"kubectl get pod {container['name']}" + (f" -n {namespace}" if namespace else "")
