"""Pods and events as `kubectl get -o json` prints them.

There is no cluster on the machines that run the tests: the shapes are those of the Kubernetes API (core/v1 Pod and Event), the
reasons and messages those that kubelet and kube-scheduler write by their own format strings.
"""

from __future__ import annotations

from typing import Any

ID = "containerd://" + "c0ffee" * 10 + "abcd"
IMAGE = "vllm/vllm-openai:v0.10.0"


def pod(state: dict[str, Any], last: dict[str, Any] | None = None, restarts: int = 0, **more: Any) -> dict[str, Any]:
    """A pod `vllm-0` in namespace `llm` with one GPU, whose container `engine` is in `state`; `more` is put into its status."""
    status: dict[str, Any] = {
        "phase": "Running",
        "conditions": [
            {"type": "Initialized", "status": "True"},
            {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "containers with unready status: [engine]"},
            {"type": "PodScheduled", "status": "True"},
        ],
        "containerStatuses": [
            {
                "name": "engine",
                "image": IMAGE,
                "imageID": f"docker.io/{IMAGE}@sha256:0123",
                "containerID": ID,
                "ready": False,
                "restartCount": restarts,
                "started": False,
                "state": state,
                "lastState": last or {},
            },
            {"name": "proxy", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": "2026-05-08T13:00:00Z"}}, "lastState": {}},
        ],
        **more,
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": METADATA, "spec": SPEC, "status": status}


METADATA = {
    "name": "vllm-0",
    "namespace": "llm",
    "uid": "5d3e6f0a-0000-4000-8000-000000000000",
    "creationTimestamp": "2026-05-08T13:00:00Z",
    "ownerReferences": [{"kind": "StatefulSet", "name": "vllm"}],
}

SPEC = {
    "nodeName": "gpu-node-3",
    "restartPolicy": "Always",
    "runtimeClassName": "nvidia",
    "containers": [
        {
            "name": "engine",
            "image": IMAGE,
            "command": ["vllm", "serve"],
            "args": ["org/model", "--tensor-parallel-size", "8"],
            "env": [
                {"name": "NCCL_DEBUG", "value": "INFO"},
                {"name": "API_KEY", "value": "sk-not-to-be-shown-0123456789"},
                {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
            ],
            "resources": {
                "limits": {"nvidia.com/gpu": "8", "memory": "64Gi", "cpu": "1500m"},
                "requests": {"nvidia.com/gpu": "8", "memory": "64Gi"},
            },
            "volumeMounts": [
                {"name": "models", "mountPath": "/models", "readOnly": True},
                {"name": "shm", "mountPath": "/dev/shm"},
            ],
        },
        {"name": "proxy", "image": "envoy:1"},
    ],
    "volumes": [
        {"name": "models", "persistentVolumeClaim": {"claimName": "models-nfs"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
    ],
}

ENDED = {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": "2026-05-08T14:00:00Z", "finishedAt": "2026-05-08T14:02:11Z", "containerID": ID}}  # fmt: skip
KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "startedAt": "2026-05-08T14:00:00Z", "finishedAt": "2026-05-08T14:02:11Z"}}  # fmt: skip
BACKING_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container=engine pod=vllm-0_llm(5d3e6f0a)"}}  # fmt: skip
RUNNING = {"running": {"startedAt": "2026-05-08T14:00:00Z"}}


def crash_looping(last: dict[str, Any] | None = None) -> dict[str, Any]:
    return pod(BACKING_OFF, last or ENDED, restarts=7)


def without_image() -> dict[str, Any]:
    message = f'Back-off pulling image "{IMAGE}": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image'
    return pod({"waiting": {"reason": "ImagePullBackOff", "message": message}}, phase="Pending")


def unschedulable() -> dict[str, Any]:
    """Never placed: no node, and no state of any container."""
    document = pod({})
    message = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available: 3 No preemption victims found."
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    spec = {key: value for key, value in SPEC.items() if key != "nodeName"}
    return {**document, "spec": spec, "status": {"phase": "Pending", "conditions": conditions}}


def events(*told: tuple[str, str, str, str]) -> dict[str, Any]:
    """A list of events, each given as type, reason, component and message."""
    items = [
        {
            "type": kind,
            "reason": reason,
            "message": message,
            "count": 3,
            "source": {"component": component},
            "firstTimestamp": "2026-05-08T13:59:00Z",
            "lastTimestamp": f"2026-05-08T14:0{number}:00Z",
            "involvedObject": {"kind": "Pod", "name": "vllm-0", "namespace": "llm"},
        }
        for number, (kind, reason, component, message) in enumerate(told)
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


NO_ROOM = (
    "Warning",
    "FailedScheduling",
    "default-scheduler",
    "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
)
NO_IMAGE = (
    "Warning",
    "Failed",
    "kubelet",
    f'Failed to pull image "{IMAGE}": rpc error: code = NotFound desc = not found',
)
BACK_OFF = ("Warning", "BackOff", "kubelet", "Back-off restarting failed container engine in pod vllm-0_llm(5d3e6f0a)")
