"""A service in a container: neither its environment nor its command can be changed, only a new container's."""

from __future__ import annotations

import json
import re
import shlex

from gpuwhy.remedies.change import Change
from gpuwhy.remedies.container_run import is_option_of_run
from gpuwhy.remedies.setting import Setting


class Container:
    """A container started with ``docker run`` (podman, nerdctl likewise) in a way that is not known."""

    def __init__(self, setting: Setting) -> None:
        self._engine = setting.engine
        self._name = shlex.quote(setting.container)
        self._kept_name = shlex.quote(f"{setting.container}-before-gpuwhy")

    def set_variable(self, name: str, value: str) -> Change:
        option = f"--env={name}={value}"
        return self._recreated(
            f"with {shlex.quote(option)} added",
            "without that option",
            f"{self._engine} exec {self._name} printenv {name}",
        )

    def unset_variable(self, name: str) -> Change:
        return self._recreated(
            f"without its --env {name} (and with --env={name}= when the image sets it)",
            "with it",
            f"! {self._engine} exec {self._name} printenv {name} | grep .",
        )

    def set_option(self, option: str, value: str) -> Change:
        typed = f"{option}={value}" if value else option
        if is_option_of_run(option, value):
            return self._recreated(f"with {shlex.quote(typed)} before the image's name", "without that option")
        typed = shlex.join([option, value] if value else [option])
        return self._recreated(f"with {typed} at the end, after the image's name", "without that option")

    def remove_option(self, option: str) -> Change:
        return self._recreated(f"without {option}", "with it")

    def restart(self) -> tuple[str, ...]:
        return (f"{self._engine} restart {self._name}",)

    def inside(self, command: str) -> str:
        return f"{self._engine} exec {self._name} sh -c {shlex.quote(command)}"

    def _recreated(self, change: str, back: str, *check: str) -> Change:
        return Change(
            commands=(
                f"{self._engine} inspect --format '{{{{json .Config}}}} {{{{json .HostConfig}}}}' {self._name}  # how it was started",
                f"{self._engine} stop {self._name}",
                f"{self._engine} rename {self._name} {self._kept_name}",
                f"# run the same `{self._engine} run` again, {change}",
            ),
            undo=(
                f"{self._engine} rm --force {self._name}  # the new one; the one that is kept was started {back}",
                f"{self._engine} rename {self._kept_name} {self._name}",
                f"{self._engine} start {self._name}",
            ),
            check=check,
        )


class ComposeService:
    """A service of a compose project: an override file beside the project's own, which compose reads by itself."""

    def __init__(self, setting: Setting) -> None:
        self._engine = setting.engine
        self._container = shlex.quote(setting.container)
        self._service = setting.compose_service
        self._folder = shlex.quote(setting.compose_directory or ".")

    def set_variable(self, name: str, value: str) -> Change:
        # YAML's double quotes take JSON's escapes; compose expands $ and takes $$ for one.
        return self._overridden(
            f"    environment: {{{name}: {_yaml(value)}}}", f"{self._engine} exec {self._container} printenv {name}"
        )

    def unset_variable(self, name: str) -> Change:
        return Change(
            commands=(f"# take {name} out of the service's environment: and env_file: in {self._folder}", self._up()),
            undo=(f"# put {name} back", self._up()),
            check=(f"! {self._engine} exec {self._container} printenv {name}",),
        )

    def set_option(self, option: str, value: str) -> Change:
        if is_option_of_run(option, value):
            line = compose_line(option, value)
            if line:
                return self._overridden(f"    {line}")
            typed = shlex.quote(f"{option}={value}" if value else option)
            return self._by_hand(f"give the service what {typed} is to `{self._engine} run`")
        typed = shlex.join([option, value] if value else [option])
        return self._by_hand(f"add {typed} to the service's command:")

    def remove_option(self, option: str) -> Change:
        return self._by_hand(f"take {option} out of the service's command:")

    def restart(self) -> tuple[str, ...]:
        return (f"cd {self._folder} && {self._engine} compose restart {shlex.quote(self._service)}",)

    def inside(self, command: str) -> str:
        return f"{self._engine} exec {self._container} sh -c {shlex.quote(command)}"

    def _by_hand(self, instruction: str) -> Change:
        return Change(
            commands=(f"# {instruction}, in the compose file in {self._folder}", self._up()),
            undo=("# change it back", self._up()),
        )

    def _overridden(self, line: str, *check: str) -> Change:
        lines = " ".join(shlex.quote(part) for part in ("services:", f"  {_yaml(self._service)}:", line))
        return Change(
            commands=(
                f"cd {self._folder} && test ! -e compose.gpuwhy.yaml && printf '%s\\n' {lines} > compose.gpuwhy.yaml",
                f"{self._engine} compose -f compose.yaml -f compose.gpuwhy.yaml up -d {shlex.quote(self._service)}",
            ),
            undo=("rm compose.gpuwhy.yaml", self._up()),
            check=check,
            limits=("compose.yaml stands for the project's own file, where it has another name",),
        )

    def _up(self) -> str:
        return f"cd {self._folder} && {self._engine} compose up -d {shlex.quote(self._service)}"


_COMPOSE_KEYS = {
    "--shm-size": "shm_size", "--ipc": "ipc", "--runtime": "runtime", "--user": "user", "--memory": "mem_limit",
    "--memory-swap": "memswap_limit", "--network": "network_mode", "--pid": "pid", "--pids-limit": "pids_limit",
    "--entrypoint": "entrypoint", "--cpuset-cpus": "cpuset", "--restart": "restart", "--cgroupns": "cgroup",
}  # fmt: skip
_COMPOSE_LISTS = {
    "--cap-add": "cap_add", "--security-opt": "security_opt", "--volume": "volumes", "--device": "devices",
    "--group-add": "group_add", "--dns": "dns", "--add-host": "extra_hosts", "--publish": "ports",
}  # fmt: skip
_COMPOSE_SWITCHES = {"--privileged": "privileged", "--init": "init"}
"""What an option of ``docker run`` is called in a compose file (the Compose Specification)."""


def compose_line(option: str, value: str) -> str:
    """What an option of ``docker run`` is in a compose file; empty where there is no such thing."""
    if option in _COMPOSE_SWITCHES:
        return f"{_COMPOSE_SWITCHES[option]}: true"
    if not value:
        return ""
    if option in _COMPOSE_KEYS:
        return f"{_COMPOSE_KEYS[option]}: {_yaml(value)}"
    if option in _COMPOSE_LISTS:
        return f"{_COMPOSE_LISTS[option]}: [{_yaml(value)}]"
    name, _, limit = value.partition("=")
    if option == "--ulimit" and limit:
        soft, _, hard = limit.partition(":")
        same = soft if not hard or hard == soft else f"{{soft: {soft}, hard: {hard}}}"
        return f"ulimits: {{{_yaml(name)}: {same}}}" if re.fullmatch(r"-?\d{1,12}(?::-?\d{1,12})?", limit) else ""
    if option == "--gpus" and value == "all":
        return "deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}}"
    return ""


def _pod_words(option: str, value: str) -> str:
    """What an option of ``docker run`` is in a pod's specification, in words."""
    forms = {
        "--shm-size": "add an emptyDir volume with medium: Memory, mounted at /dev/shm"
        + (f", sizeLimit {value.upper().rstrip('B')}i" if re.fullmatch(r"\d{1,6}[gGmM][bB]?", value) else ""),
        "--gpus": "ask for GPUs in the container's resources: limits: {nvidia.com/gpu: 1} (or how many it uses)",
        "--ipc": "set hostIPC: true in the pod's spec",
        "--pid": "set hostPID: true in the pod's spec",
        "--network": "set hostNetwork: true in the pod's spec",
        "--privileged": "set securityContext: {privileged: true} for the container",
        "--cap-add": f"add {value} to the container's securityContext: capabilities: add:",
        "--user": f"set securityContext: {{runAsUser: {value}}} for the container",
        "--memory": f"raise the container's resources: limits: memory: to {value}",
        "--runtime": f"set runtimeClassName: {value} in the pod's spec",
        "--entrypoint": f"set command: to {value} for the container",
        "--volume": f"add a volume for {value} and its volumeMount",
        "--env": f"add {value} to the container's env:",
        "--ulimit": f"a pod has no ulimit: raise {value} for the container runtime on the node (Limit...= of containerd)",
    }
    return forms.get(option, f"give the container what {option} is to docker run")


class Pod:
    """A pod: the change goes to the workload that made it, which then makes new pods."""

    def __init__(self, setting: Setting) -> None:
        namespace, _, rest = setting.container.rpartition("/")
        pod, _, container = rest.partition(":")
        self._kubectl = f"kubectl -n {shlex.quote(namespace)}" if namespace else "kubectl"
        self._pod = pod
        self._container = f" -c {shlex.quote(container)}" if container else ""
        self._workload = _workload(pod)

    def set_variable(self, name: str, value: str) -> Change:
        return self._environment(f"{name}={value}", f"printenv {name}")

    def unset_variable(self, name: str) -> Change:
        return self._environment(f"{name}-", f"! printenv {name}")

    def set_option(self, option: str, value: str) -> Change:
        if is_option_of_run(option, value):
            return self._edited(_pod_words(option, value))
        typed = shlex.join([option, value] if value else [option])
        return self._edited(f"add {typed} to the container's args")

    def remove_option(self, option: str) -> Change:
        return self._edited(f"take {option} out of the container's args")

    def restart(self) -> tuple[str, ...]:
        return (f"{self._kubectl} rollout restart {shlex.quote(self._workload)}",)

    def inside(self, command: str) -> str:
        return f"{self._kubectl} exec {shlex.quote(self._pod)}{self._container} -- sh -c {shlex.quote(command)}"

    def _environment(self, change: str, check: str) -> Change:
        workload = shlex.quote(self._workload)
        target = f"{self._kubectl} set env {workload}{self._container}"
        return Change(
            commands=(f"{target} {shlex.quote(change)}", f"{self._kubectl} rollout status {workload}"),
            undo=(f"{self._kubectl} rollout undo {workload}",),
            check=(f"{self._kubectl} exec {workload}{self._container} -- sh -c {shlex.quote(check)}",),
            limits=("a variable that the chart or GitOps tool owns comes back at its next run: change it there too",),
        )

    def _edited(self, instruction: str) -> Change:
        workload = shlex.quote(self._workload)
        return Change(
            commands=(f"{self._kubectl} edit {workload}  # {instruction}",),
            undo=(f"{self._kubectl} rollout undo {workload}",),
        )


def _workload(pod: str) -> str:
    """The workload that made a pod, by the names that Kubernetes gives: ``NAME-HASH-ID`` or ``NAME-ORDINAL``."""
    made_by_deployment = re.fullmatch(r"(.+)-[a-z0-9]{6,10}-[a-z0-9]{5}", pod)
    if made_by_deployment:
        return f"deployment/{made_by_deployment.group(1)}"
    made_by_set = re.fullmatch(r"(.+)-\d+", pod)
    return f"statefulset/{made_by_set.group(1)}" if made_by_set else f"pod/{pod}"


def _yaml(value: str) -> str:
    return json.dumps(value).replace("$", "$$")
