"""Container engines and Kubernetes: why a container did not start, or how it ended.

docker: Error response from daemon: ... OCI runtime create failed: runc create failed: unable to start container process: ...
nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file
0123456789ab   vllm   "vllm"   2 minutes ago   Exited (137) 1 minute ago   vllm-1      docker ps -a
      Reason:       OOMKilled                                                          kubectl describe pod
  Warning  FailedScheduling  2m  default-scheduler  0/3 nodes are available: 1 Insufficient nvidia.com/gpu.
2m    Warning   Evicted   pod/vllm-0   The node was low on resource: ephemeral-storage.    kubectl get events
"""

from __future__ import annotations

import msgspec

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    "nvidia-container-cli", "OCI runtime", "docker: Error", "Error response from daemon", "nresolvable CDI devices", "unable to start container process", "OOMKilled", "TaskOOM",
    "CrashLoopBackOff", "Back-off ", "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainer", "RunContainerError", "ContainerCannotRun", "StartError", "FailedScheduling",
    "Insufficient ", "Normal ", "Evicted", "low on resource", "FailedCreatePodSandBox", "FailedMount", "FailedAttachVolume", "Unhealthy", "probe failed", "UnexpectedAdmissionError", "Exit Code:",
    "Exited (", " exited with code ", "OutOfmemory", "DeadlineExceeded", "NodeNotReady", "ContainerStatusUnknown", "Preempt", "FailedPreStopHook", "failed to create shim", "Error: crun", "Error: runc", "Error: stat /dev",
    "no runtime for", "kubelet ", "default-scheduler", "container_oom", '"ExitCode":', "FailedKillPod", "SystemOOM", "Status:         Failed",
)  # fmt: skip
_ENGINE = Pattern(
    r"nvidia-container-cli: |OCI runtime (?:create|exec) failed|^docker: Error|Error response from daemon|unresolvable CDI devices|unable to start container process|failed to create shim task|^Error: (?:crun|runc|setting up CDI devices|OCI runtime|stat /dev/)"
    r"|no runtime for \".{1,60}\" is configured"
)
_HOOK = Pattern(
    r"error running (?P<hook>prestart|createRuntime|createContainer|startContainer|poststart) hook #?\d*|(?P<cli>nvidia-container-cli): |(?P<cdi>unresolvable CDI devices)"
)
_STATUS_IN_MESSAGE = Pattern(r"exit status (\d{1,3})")
_REASON = Pattern(r"^\s*(?:-\s)?\"?[Rr]eason\"?:\s{1,20}\"?(?P<reason>[A-Z]\w{2,60})\"?,?\s*$")
_REASONS: dict[str, tuple[str, bool]] = {
    "OOMKilled": ("oom-kill", False),
    "CrashLoopBackOff": ("CrashLoopBackOff", True),
    "Error": ("exit-code", True),
    "ContainerCannotRun": ("ContainerCannotRun", False),
    "StartError": ("StartError", False),
    "RunContainerError": ("RunContainerError", False),
    "CreateContainerError": ("CreateContainerError", False),
    "CreateContainerConfigError": ("CreateContainerConfigError", False),
    "ImagePullBackOff": ("ImagePullBackOff", True),
    "ErrImagePull": ("ErrImagePull", False),
    "InvalidImageName": ("InvalidImageName", False),
    "Evicted": ("Evicted", False),
    "DeadlineExceeded": ("DeadlineExceeded", False),
    "NodeLost": ("NodeLost", False),
    "ContainerStatusUnknown": ("ContainerStatusUnknown", True),
    "UnexpectedAdmissionError": ("UnexpectedAdmissionError", False),
    "OutOfmemory": ("OutOfmemory", False),
}
"""What Kubernetes gives as a reason: our result, and whether it only tells of something earlier."""
_EVENT = Pattern(
    r"^\s*(?:\S{1,40}\s{1,20})?(?P<type>Warning|Normal)\s{1,20}(?P<reason>[A-Z]\w{2,40})\s{1,40}(?P<rest>\S.{0,1500})$"
)
_EVENTS: dict[str, tuple[str, bool]] = {
    "FailedScheduling": ("FailedScheduling", False),
    "Evicted": ("Evicted", False),
    "BackOff": ("BackOff", True),
    "Failed": ("Failed", False),
    "ErrImagePull": ("ErrImagePull", False),
    "FailedCreatePodSandBox": ("FailedCreatePodSandBox", False),
    "FailedMount": ("FailedMount", False),
    "FailedAttachVolume": ("FailedAttachVolume", False),
    "Unhealthy": ("Unhealthy", True),
    "OOMKilling": ("oom-kill", False),
    "SystemOOM": ("oom-kill", False),
    "UnexpectedAdmissionError": ("UnexpectedAdmissionError", False),
    "Preempted": ("Preempted", False),
    "NodeNotReady": ("NodeNotReady", False),
    "FailedKillPod": ("FailedKillPod", True),
}
_OBJECT = Pattern(r"(?:^|\s)(?P<object>pod/[\w.-]{1,200}|node/[\w.-]{1,200})(?:\s|$)")
_CONTAINER = Pattern(
    r"(?:container (?P<container>[\w.-]{1,100}) in pod |failed container=?(?P<other>[\w.-]{1,100}))(?P<pod>[\w.-]{1,200})?"
)
_INSUFFICIENT = Pattern(r"Insufficient (?P<resource>[\w./-]{1,80})")
_EXIT_CODE = Pattern(r"^\s*\"?[Ee]xit ?[Cc]ode\"?: {1,20}(?P<code>\d{1,3})\b")
_STATE = Pattern(r"^\s*(?P<key>Exit Code|Signal|Message|Started|Finished): {1,20}(?P<value>.{0,300}?)\s*$")
_DOCKER_PS = Pattern(r"\bExited \((?P<code>\d{1,3})\) .{0,40}\bago\b")
_COMPOSE = Pattern(r"^(?P<name>[\w.-]{1,120}) exited with code (?P<code>\d{1,3})\b")
_INSPECTED = Pattern(r"\"OOMKilled\": ?true")
_TASK_OOM = Pattern(r"TaskOOM event|\bcontainer_oom\b")
_ID = Pattern(r"container_id:?\\?\"?[:=]?\\?\"?(?P<id>[0-9a-f]{12,64})")
_LOOP = Pattern(
    r"(?P<reason>CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled(?!\"?: ?false)|Back-off restarting failed container|CreateContainerError|RunContainerError)"
)
_TABLE = Pattern(
    r"^(?:\S{1,100}\s{1,20})?\S{1,200}\s{1,20}\d{1,3}/\d{1,3}\s{1,20}(?:Init:)?(?P<reason>OOMKilled|CrashLoopBackOff|Error|ImagePullBackOff|ErrImagePull|Evicted|CreateContainer\w*Error|RunContainerError|UnexpectedAdmissionError|ContainerStatusUnknown)\s{1,20}(?P<restarts>\d{1,9})"
)
LONGEST = 2000


def recognise(text: str, level: str = "") -> Recognised | None:
    shown = text[:LONGEST]
    if _TASK_OOM.search(shown):
        found = _ID.search(shown)
        return _ended("containerd", "oom-kill", container=found["id"] if found is not None else "")
    if level in ("info", "debug"):
        return None
    if _INSPECTED.search(shown):
        return _ended("docker", "oom-kill")
    return _of_engine(shown) or _of_kubernetes(shown) or _exited(shown)


def _of_engine(text: str) -> Recognised | None:
    if _ENGINE.search(text):
        detail = {}
        hook = _HOOK.search(text)
        if hook is not None:
            detail["hook"] = hook["hook"] or hook["cli"] or "cdi"
        status = _STATUS_IN_MESSAGE.search(text)
        if status is not None:
            detail["exit_code"] = status.group(1)
        return Recognised("crash", "container", detail, is_fatal=True, takes_more=True)
    return None


def _exited(text: str) -> Recognised | None:
    found = _EXIT_CODE.search(text) or _DOCKER_PS.search(text) or _COMPOSE.search(text)
    if found is None or int(found["code"]) == 0:
        return None
    return Recognised("death", "container", _exit_status(int(found["code"])), is_echo=True, is_fatal=True)


def _of_kubernetes(text: str) -> Recognised | None:
    found = _REASON.match(text)
    if found is not None:
        known = _REASONS.get(found["reason"])
        if known is None:
            return None
        return msgspec.structs.replace(_ended("kubernetes", known[0], is_echo=known[1]), takes_more=True)
    found = _EVENT.match(text)
    if found is not None:
        return _of_event(found["type"], found["reason"], found["rest"])
    found = _TABLE.match(text)
    if found is not None:
        result, is_echo = _REASONS[found["reason"]] if found["reason"] in _REASONS else (found["reason"], False)
        return _ended("kubernetes", result, is_echo=is_echo, restarts=found["restarts"])
    found = _LOOP.search(text)
    if found is None:
        return None
    result, is_echo = _REASONS.get(found["reason"], (found["reason"], True))
    return _ended("kubernetes", result, is_echo=is_echo)


def _of_event(kind: str, reason: str, rest: str) -> Recognised | None:
    if kind == "Normal" and reason == "Scheduled":
        return Recognised("unit", "kubernetes", {"state": "scheduled"})
    if kind == "Normal" and reason not in ("BackOff", "Preempted", "NodeNotReady"):
        return None
    known = _EVENTS.get(reason)
    if known is None:
        return None
    result, is_echo = known
    detail: dict[str, str] = {}
    about = _OBJECT.search(rest)
    if about is not None:
        detail["object"] = about["object"]
    container = _CONTAINER.search(rest)
    if container is not None:
        detail["container"] = container["container"] or container["other"]
        if container["pod"]:
            detail["pod"] = container["pod"].partition("_")[0]
    lacking = _INSUFFICIENT.findall(rest)
    if lacking:
        detail["insufficient"] = ", ".join(dict.fromkeys(resource.rstrip(".,") for resource in lacking))
    if reason == "Failed" and ("ImagePullBackOff" in rest or "Error: " in rest):
        is_echo = "ImagePullBackOff" in rest or "ErrImagePull" in rest
    ended = _ended("kubernetes", result, is_echo=is_echo, reason=reason, **detail)
    if reason == "Unhealthy" and ("Readiness" in rest or "Startup" in rest):  # a model that loads has some of these
        return msgspec.structs.replace(ended, is_fatal=False)
    return ended


def is_part_of_state(text: str) -> bool:
    """Whether a line belongs to the state of a container that begins with its reason (``kubectl describe``)."""
    return _STATE.match(text) is not None


def details_of_state(text: str) -> dict[str, str]:
    """``exit_code``, ``signal``, ``started`` and ``finished`` of the lines below a reason."""
    detail: dict[str, str] = {}
    for line in text.split("\n")[1:]:
        found = _STATE.match(line)
        if found is not None and found["value"]:
            detail[found["key"].lower().replace(" ", "_")] = found["value"]
    if detail.get("exit_code", "").isdigit():
        detail = _exit_status(int(detail["exit_code"])) | detail
    return detail


def _ended(tool: str, result: str, *, is_echo: bool = False, **detail: str) -> Recognised:
    told = {"state": "failed", "result": result, **{key: value for key, value in detail.items() if value}}
    return Recognised("unit", tool, told, is_echo=is_echo, is_fatal=True)


def _exit_status(code: int) -> dict[str, str]:
    return {"exit_code": str(code)} | ({"signal": str(code - 128)} if 128 < code < 193 else {})
