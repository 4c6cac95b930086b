"""The ``run`` command that makes a container anew as it is, with one thing changed: for a person to look at and to run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from gpuwhy.model.remedy import Remedy
from gpuwhy.redaction.patterns import TOKEN
from gpuwhy.remedies.applying.site import Inspected
from gpuwhy.remedies.container_run import is_option_of_run
from gpuwhy.remedies.values import is_literal, is_option, is_variable

_DEFAULT_SHM = 64 << 20


def recreated(found: Inspected, engine: str, remedy: Remedy) -> tuple[str, ...]:
    """Stop, keep the old one under another name, and run a new one. Empty where the change cannot be typed.

    A variable whose value was cut out as a secret is taken over from the shell that runs the command.
    """
    options, command = list(_options(found)), [*_entry(found)[1:], *found.command]
    if remedy.kind == "env" and is_variable(remedy.name):
        options = [each for each in options if each != f"--env={remedy.name}" and not each.startswith(f"--env={remedy.name}=")]  # fmt: skip
        if remedy.value != "unset":
            if not is_literal(remedy.name, remedy.value):
                return ()
            options.append(f"--env={remedy.name}={remedy.value}")
    elif is_option(remedy.name) and is_literal(remedy.name, remedy.value or "set"):
        value = "" if remedy.value in ("set", "") else remedy.value
        if is_option_of_run(remedy.name, value):
            options.append(f"{remedy.name}={value}" if value else remedy.name)
        elif value in ("remove", "unset"):
            return ()
        else:
            command += [remedy.name, *([value] if value else [])]
    else:
        return ()
    name = str(found.container.get("name") or "")
    kept = f"{name}-before-gpuwhy"
    run = [engine, "run", "--detach", "--name", name, *options, str(found.config.get("Image")), *command]
    cut = [each.removeprefix("--env=") for each in options if each.startswith("--env=") and "=" not in each[6:]]
    first = (f"# set these in the shell first, their values were cut out: {', '.join(cut)}",) if cut else ()
    return (*first, shlex.join([engine, "stop", name]), shlex.join([engine, "rename", name, kept]), shlex.join(run))


def _options(found: Inspected) -> Iterator[str]:
    config, host, image = found.config, found.host, found.image
    policy = host.get("RestartPolicy") or {}
    if policy.get("Name") not in (None, "", "no"):
        most = policy.get("MaximumRetryCount")
        yield f"--restart={policy['Name']}" + (f":{most}" if most else "")
    yield from _requested_gpus(host)
    for option, key, usual in (
        ("--runtime", "Runtime", ("", "runc")), ("--ipc", "IpcMode", ("", "private", "shareable")),
        ("--pid", "PidMode", ("", "private")), ("--network", "NetworkMode", ("", "default", "bridge")),
    ):  # fmt: skip
        if (host.get(key) or "") not in usual:
            yield f"{option}={host[key]}"
    if host.get("ShmSize") not in (None, 0, _DEFAULT_SHM):
        yield f"--shm-size={host['ShmSize']}"
    if host.get("Memory"):
        yield f"--memory={host['Memory']}"
    for option, key in (("--privileged", "Privileged"), ("--init", "Init"), ("--rm", "AutoRemove")):
        if host.get(key):
            yield option
    for option, key in (
        ("--cap-add", "CapAdd"), ("--security-opt", "SecurityOpt"), ("--group-add", "GroupAdd"),
        ("--add-host", "ExtraHosts"), ("--volume", "Binds"),
    ):  # fmt: skip
        yield from (f"{option}={value}" for value in host.get(key) or ())
    for device in host.get("Devices") or ():
        yield f"--device={device.get('PathOnHost')}:{device.get('PathInContainer')}"
    for limit in host.get("Ulimits") or ():
        yield f"--ulimit={limit.get('Name')}={limit.get('Soft')}:{limit.get('Hard')}"
    for port, bindings in sorted((host.get("PortBindings") or {}).items()):
        for binding in bindings or ():
            address = f"{binding['HostIp']}:" if binding.get("HostIp") else ""
            yield f"--publish={address}{binding.get('HostPort', '')}:{port}"
    if config.get("User") and config.get("User") != image.get("User"):
        yield f"--user={config['User']}"
    if config.get("WorkingDir") and config.get("WorkingDir") != image.get("WorkingDir"):
        yield f"--workdir={config['WorkingDir']}"
    entry = _entry(found)
    if entry:
        yield f"--entrypoint={entry[0]}"
    yield from _variables(config, image)


def _entry(found: Inspected) -> list[str]:
    """The entry point, where it is not the image's own: its first word is an option, the others stand before the command."""
    entry = list(map(str, found.config.get("Entrypoint") or ()))
    return [] if entry == list(found.image.get("Entrypoint") or ()) else entry


def _requested_gpus(host: Mapping[str, Any]) -> Iterator[str]:
    for request in host.get("DeviceRequests") or ():
        devices = request.get("DeviceIDs")
        if devices:
            yield f'--gpus="device={",".join(devices)}"'
        elif request.get("Count"):
            yield "--gpus=all" if request["Count"] == -1 else f"--gpus={request['Count']}"


def _variables(config: Mapping[str, Any], image: Mapping[str, Any]) -> Iterator[str]:
    own = set(image.get("Env") or ())
    for variable in config.get("Env") or ():
        if variable not in own:
            yield f"--env={variable.partition('=')[0] if TOKEN.search(variable) else variable}"
