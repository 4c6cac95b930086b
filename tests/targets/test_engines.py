"""Containers and pods by name, and an engine's own words turned into what a person can do.

The words are those that docker 20.10, podman 4.3 and kubectl 1.32 print; kubectl's about a live cluster are from its source.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpuwhy.targets import TargetError, parse_where
from gpuwhy.targets.container import ContainerTarget, EngineConnection
from gpuwhy.targets.engines import explain
from gpuwhy.targets.local import LocalTarget
from gpuwhy.targets.pods import PodTarget
from gpuwhy.targets.ssh import SshTarget


def failed(reason: str, status: str = "failed", remarks: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"probe": "container_state", "status": status, "reason": reason, "remarks": list(remarks)}


@pytest.mark.parametrize(
    ("engine", "said", "meaning", "advice"),
    [
        ("docker", "Error: No such container: vllm", "no docker container vllm", "docker ps -a"),
        ("podman", "Error: inspecting object: no such container vllm", "no podman container vllm", "podman ps -a"),
        ("docker", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", "has no daemon", "systemctl status docker"),
        ("nerdctl", "cannot access containerd socket \"/run/containerd/containerd.sock\": no such file or directory", "has no daemon", "systemctl status containerd"),
        ("docker", "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock", "may not ask docker", "--sudo"),
        ("docker", "there is no docker on this host", "there is no docker on this machine", "--via"),
        ("docker", "something new", "something new", "docker inspect vllm"),
        ("k8s", 'Error from server (NotFound): pods "vllm" not found', "no pod vllm", "kubectl get pods -A"),
        ("k8s", 'Error from server (Forbidden): pods "vllm" is forbidden: User "a" cannot get resource "pods" in API group "" in the namespace "x"', "may not look at pod vllm", "kubectl auth can-i"),
        ("k8s", "The connection to the server localhost:8080 was refused - did you specify the right host or port?", "no usable configuration", "KUBECONFIG"),
        ("k8s", "Error in configuration: context was not found for specified context: nope", "no usable configuration", "get-contexts"),
        ("k8s", "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?", "does not answer", "cluster-info"),
        ("k8s", "Unable to connect to the server: dial tcp: lookup api.example.org on 10.0.0.2:53: no such host", "does not answer", "VPN"),
        ("k8s", "Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by unknown authority", "certificate", "config view"),
        ("k8s", "error: You must be logged in to the server (Unauthorized)", "credentials", "Log in"),
        ("k8s", "Unable to connect to the server: getting credentials: exec: executable gke-gcloud-auth-plugin not found", "credentials", "Log in"),
        ("k8s", "there is no kubectl on this host", "there is no kubectl on this machine", "--via"),
    ],
)  # fmt: skip
def test_an_engine_that_does_not_tell_is_explained(engine: str, said: str, meaning: str, advice: str) -> None:
    error = explain({"engine": engine, "name": "vllm"}, failed(said))
    assert meaning in error.message
    assert advice in error.advice


def test_similar_names_are_named_and_a_silent_engine_is_told_from_a_missing_container() -> None:
    error = explain({"engine": "docker", "name": "vlm"}, failed("No such container: vlm", "absent", ("it knows vllm",)))
    assert error.message == "there is no docker container vlm; it knows vllm"
    error = explain({"engine": "docker", "name": "vlm"}, failed("docker container inspect vlm gave no answer in 4.0 s", "timed out"))  # fmt: skip
    assert error.message == "docker gave no answer about docker container vlm"


def test_what_a_host_said_names_the_host() -> None:
    error = explain({"engine": "docker", "name": "vllm"}, failed("there is no docker on this host"), "root@gpu-host")
    assert error.message == "there is no docker on root@gpu-host"
    assert "root@gpu-host" in error.advice


@pytest.mark.parametrize(
    ("where", "namespace", "pod", "container"),
    [
        ("k8s:vllm-0", "", "vllm-0", ""),
        ("k8s:llm/vllm-7d9f8c9d6b-x2x5k", "llm", "vllm-7d9f8c9d6b-x2x5k", ""),
        ("k8s:llm/vllm.a/engine", "llm", "vllm.a", "engine"),
    ],
)
def test_a_pod_is_named_by_namespace_pod_and_container(where: str, namespace: str, pod: str, container: str) -> None:
    target = parse_where(where)
    assert isinstance(target, PodTarget)
    assert (target.namespace, target.pod, target.container) == (namespace, pod, container)
    assert (target.kind, target.name) == ("k8s", where)


@pytest.mark.parametrize(
    "where",
    ["k8s:", "k8s:/vllm", "k8s:llm/", "k8s:a/b/c/d", "k8s:-n", "k8s:a/-x", "k8s:A b", "k8s:a/b/$(id)", "k8s:vllm\n", "docker:--privileged", "podman:a/b"],
)  # fmt: skip
def test_what_cannot_be_a_pod_or_container_is_refused_in_words(where: str) -> None:
    with pytest.raises(TargetError) as raised:
        parse_where(where)
    assert raised.value.message
    assert raised.value.advice


def test_via_says_where_the_engine_is() -> None:
    target = parse_where("docker:vllm", via="root@gpu-host", sudo=True)
    assert isinstance(target, ContainerTarget)
    assert isinstance(target.host, SshTarget)
    assert (target.host.destination, target.host.sudo) == ("root@gpu-host", True)
    assert target.name == "docker:vllm on root@gpu-host"
    pod = parse_where("k8s:llm/vllm", via="bastion")
    assert isinstance(pod, PodTarget)
    assert pod.name == "k8s:llm/vllm on bastion"


@pytest.mark.parametrize("where", ["local", "root@gpu-host", "crash.log", "-"])
def test_via_is_for_what_runs_on_a_host(where: str) -> None:
    with pytest.raises(TargetError, match="--via bastion is for"):
        parse_where(where, via="bastion")


class Answering:
    """A connection that answers each collection with one probe."""

    def __init__(self, probe: dict[str, Any]) -> None:
        self.probe = probe
        self.requests: list[dict[str, Any]] = []

    def collect(self, request: Any, on_result: Any, deadline: float) -> dict[str, Any]:
        del deadline
        self.requests.append(dict(request))
        on_result(self.probe)
        return {"python": "3"}

    def ask(self, asks: Any, deadline: float = 10.0) -> list[Any]:
        del deadline
        return list(asks)

    def close(self) -> None:
        return None


def test_the_collector_is_told_which_container_and_its_failure_is_an_error() -> None:
    inner = Answering({"probe": "container_state", "status": "ok"})
    connection = EngineConnection(inner, {"engine": "docker", "name": "vllm"}, LocalTarget())
    assert connection.collect({"deadline": 1}, lambda _: None, 1.0) == {"python": "3"}
    assert inner.requests == [{"deadline": 1, "container": {"engine": "docker", "name": "vllm"}}]
    missing = Answering(failed("No such container: vllm", "absent"))
    with pytest.raises(TargetError, match="there is no docker container vllm"):
        EngineConnection(missing, {"engine": "docker", "name": "vllm"}, LocalTarget()).collect({}, lambda _: None, 1.0)
