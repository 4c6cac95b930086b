"""From a snapshot to facts: what the probes brought, under the keys of ``--facts`` files, each with its evidence.

A probe that brought nothing leaves its keys unknown, with its reason: nothing that could not be looked at reads as
absent. A value that is not shaped as the collector writes it (the file was edited) is treated the same way.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Any

from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.model.host import Gpu, Resolution, ToolkitInstall
from gpuwhy.snapshot.container_facts import host_facts, state_facts
from gpuwhy.snapshot.denials import allowed_by
from gpuwhy.snapshot.document import Probe, Snapshot

Reader = Callable[[Probe, Snapshot], Iterator[Fact]]


def facts_of(snapshot: Snapshot) -> Facts:
    """The facts of the target, and for what is not known the reason and the command that would tell."""
    found: dict[str, Fact] = {}
    unknown: dict[str, Unknown] = {}
    for name, (read, keys) in _READERS.items():
        probe = snapshot.probe(name)
        why = _why_nothing(probe)
        if probe is not None and not why:
            try:
                for fact in list(read(probe, snapshot)):
                    found.setdefault(fact.key, fact)
            except (TypeError, ValueError, KeyError, AttributeError, IndexError):
                why = f"the snapshot's {name} is not shaped as the collector writes it"
        elif probe is not None and probe.status == "absent":
            for fact in _absences(probe):
                found.setdefault(fact.key, fact)
        for key in keys:
            if key not in found and (why or key not in _GROUPS):
                unknown.setdefault(key, Unknown(why or "the target did not tell", key, _COMMANDS.get(key, "")))
    for hidden in _hidden_variables(snapshot):
        unknown.setdefault(f"env.{hidden}", Unknown("it is set, and its value is not collected", f"env.{hidden}"))
    return Facts(found, {key: why for key, why in unknown.items() if key not in found})


def _why_nothing(probe: Probe | None) -> str:
    if probe is None:
        return "not asked"
    if probe.status == "ok":
        return ""
    return f"{probe.reason or 'no answer'} ({probe.status}{allowed_by(probe)})"


def _fact(
    probe: Probe, key: str, value: Any, statement: str, quote: str = "", source: str = "", subject: str = ""
) -> Fact:
    where = source or (probe.sources[0] if probe.sources else probe.name)
    kind = "command" if " " in where or not where.startswith("/") else "file"
    return Fact(key, value, Evidence(statement, quote, Place(kind, where)), subject or probe.subject)


def _absences(probe: Probe) -> Iterator[Fact]:
    """Probes whose "absent" is itself an answer."""
    if probe.name == "driver":
        yield _fact(probe, "driver", None, "no NVIDIA driver is loaded or installed", probe.reason)
    elif probe.name == "toolkits":
        yield _fact(probe, "toolkits", (), "no CUDA toolkit was found on the host", probe.reason)


def _gpus(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    devices = [
        Gpu(each.get("index"), str(each.get("name") or ""), each.get("compute_capability"), each.get("memory_total"))
        for each in probe.value["gpus"]
        if "error" not in each
    ]
    shown = _shown(devices)
    yield _fact(probe, "gpus", tuple(devices), f"the driver lists {len(devices)} GPU{'s' * (len(devices) != 1)}", shown)
    names, capabilities = {each.name for each in devices}, {each.compute_capability for each in devices}
    if len(names) == 1:
        yield _fact(probe, "gpu", devices[0].name, f"every GPU is a {devices[0].name}", shown)
    if len(capabilities) == 1 and devices[0].compute_capability:
        capability = devices[0].compute_capability
        yield _fact(probe, "cc", capability, f"every GPU has compute capability {capability}", shown)
    lost = [each for each in probe.value["gpus"] if "error" in each]
    if lost:
        text = "; ".join(f"GPU {each.get('index')}: {each['error']}" for each in lost)
        yield _fact(probe, "gpu_errors", [text], "the driver cannot reach every GPU", text)
    holders = [
        f"GPU {each['gpu']}: process {each['pid']} ({' '.join(each.get('command') or []) or 'unknown'})"
        + (f" holds {each['memory'] >> 20} MiB" if each.get("memory") else "")
        for each in probe.value.get("processes") or []
    ]
    yield _fact(
        probe, "gpu_processes", holders, f"{len(holders)} processes hold memory on the GPUs", "; ".join(holders[:4])
    )
    if probe.value.get("driver"):
        yield _fact(probe, "driver", probe.value["driver"], f"the driver is {probe.value['driver']}")
    if probe.value.get("driver_cuda"):
        version = probe.value["driver_cuda"]
        yield _fact(probe, "driver_cuda", version, f"the driver supports CUDA up to {version}")


def _shown(devices: list[Gpu]) -> str:
    """``8 x NVIDIA H100 80GB HBM3 (9.0)``: equal cards once, in the order of their first."""
    kinds = [f"{each.name} ({each.compute_capability or 'capability unknown'})" for each in devices]
    return "; ".join(f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds))


def _driver(probe: Probe, snapshot: Snapshot) -> Iterator[Fact]:
    loaded, installed = probe.value["loaded"], probe.value["installed"]
    if loaded or not snapshot.value("gpus"):
        text = str(probe.value.get("text") or "")
        said = f"the loaded kernel module is {loaded}" if loaded else "no NVIDIA kernel module is loaded"
        yield _fact(probe, "driver", loaded, said, text)
    if installed:
        yield _fact(
            probe,
            "driver_installed",
            installed,
            f"the kernel module on disk is {installed}",
            source="modinfo -F version nvidia",
        )
    if probe.value.get("library"):
        yield _fact(
            probe,
            "driver_library",
            probe.value["library"],
            f"libcuda on disk belongs to driver {probe.value['library']}",
        )
    mapped = [path for path in (snapshot.value("process") or {}).get("libraries", []) if "/libcuda.so" in path]
    libraries = [each["path"] for each in probe.value["libraries"]]
    if mapped:
        yield _fact(probe, "libcuda_path", mapped[0], "the process has this libcuda mapped", mapped[0])
    elif libraries:
        yield _fact(probe, "libcuda_path", libraries[0], "libcuda.so.1 on this host", libraries[0])


def _nvidia_smi(probe: Probe, snapshot: Snapshot) -> Iterator[Fact]:
    place = "container" if (snapshot.value("container") or {}).get("inside") else "host"
    verdict = str(probe.value["verdict"])
    yield _fact(
        probe, f"nvidia_smi.{place}", verdict, "nvidia-smi works" if verdict == "ok" else "nvidia-smi fails", verdict
    )
    if probe.value.get("driver_cuda"):
        version = probe.value["driver_cuda"]
        yield _fact(
            probe, "driver_cuda", version, f"the driver supports CUDA up to {version}", f"CUDA Version: {version}"
        )


def _pci(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    devices = probe.value["devices"]
    gpus = [each for each in devices if each["kind"] == "gpu"]
    text = "; ".join(f"{each['address']} ({each.get('driver') or 'no driver'})" for each in devices)
    yield _fact(probe, "pci_gpus", [each["address"] for each in gpus], f"the PCI bus has {len(gpus)} NVIDIA GPUs", text)
    has_switch = bool(probe.value["nvswitches"])
    yield _fact(probe, "nvswitch", has_switch, f"the PCI bus has {probe.value['nvswitches']} NVSwitches", text)


def _pci_bridges(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    """ACS bits that redirect what goes from GPU to GPU, a text for each bridge; [] where all were read and none is on."""
    bridges, unread = probe.value["bridges"], probe.value["unread"]
    on = [each for each in bridges if {"SrcValid", "ReqRedir", "CmpltRedir"} & set(each["on"])]
    if unread and not on:
        return
    texts = [f"{each['address']}: {each['acs']}" for each in on]
    quote = "; ".join(texts[:4]) or f"read: {', '.join(each['address'] for each in bridges[:8])}"
    said = f"{len(on)} of {len(bridges)} PCI bridges above the GPUs redirect what goes between them (ACS)"
    yield _fact(probe, "pci_acs", texts, said, quote, "/sys/bus/pci/devices/*/config")


def _cuda_start(probe: Probe, snapshot: Snapshot) -> Iterator[Fact]:
    place = "container" if (snapshot.value("container") or {}).get("inside") else "host"
    code, name = int(probe.value["code"]), str(probe.value["name"])
    said = "CUDA starts" if code == 0 else f"CUDA does not start: {name}"
    quote = f"cuInit(0) = {code} ({name}), by {probe.value['library']}"
    yield _fact(probe, f"cuinit.{place}", str(code), said, quote)


def _fabric(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    version = probe.value["version"]
    if version:
        said = f"Fabric Manager is {version}"
        yield _fact(probe, "system_packages.nvidia-fabricmanager", version, said, source="nv-fabricmanager --version")
    states = [f"GPU {each['gpu']}: {each['state']}, {each['status']}" for each in probe.value["gpus"]]
    if states:
        ready = sum(1 for each in probe.value["gpus"] if each["state"] == "completed" and each["status"] == "success")
        said = f"{ready} of {len(states)} GPUs have joined the NVLink fabric"
        yield _fact(probe, "fabric_state", states, said, "; ".join(states[:4]), "libnvidia-ml.so.1")


def _at_work(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    """What runs now: for a service that is dead, after its death."""
    texts = [
        f"process {each['pid']} ({each['user'] or 'unknown'}; {each['elapsed'] or 0:.0f} s, {each['cpu'] or 0:.0f} s of CPU): "
        + " ".join(map(str, each["command"]))
        for each in probe.value["processes"]
    ]
    said = f"{len(texts)} engines, parts of engines and compilers run"
    yield _fact(probe, "processes", texts, said, "; ".join(texts[:3])[:600])


def _torch_targets(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    if probe.value["complete"]:
        targets = [str(each) for each in probe.value["targets"]]
        quote = f"{probe.value['containers']} containers of device code: {' '.join(targets)}"
        said = f"torch was compiled for {' '.join(targets)}"
        yield _fact(probe, "torch_arch_list", targets, said, quote, str(probe.value["library"]))


def _toolkits(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    installs = [
        ToolkitInstall(each["root"], each["version"], bool(each["has_nvcc"]), _toolkit_note(each))
        for each in probe.value
    ]
    text = "; ".join(f"{each.root}: {each.version or 'unknown version'}" for each in installs)
    yield _fact(probe, "toolkits", tuple(installs), f"{len(installs)} CUDA toolkits are on the host", text)


def _toolkit_note(found: dict[str, Any]) -> str:
    lacks = [
        name for name in ("headers", "cudart", "cicc", "curand", "libcuda_stub") if not found.get(f"has_{name}", True)
    ]
    parts = [str(found.get("note") or "")]
    if lacks:
        parts.append("lacks " + ", ".join(lacks))
    if found.get("aliases"):
        parts.append("also " + ", ".join(found["aliases"]))
    return "; ".join(part for part in parts if part)


def _resolutions(probe: Probe, snapshot: Snapshot) -> Iterator[Fact]:
    subject = (snapshot.probe("environment") or probe).subject
    consumers = probe.value["consumers"]
    for consumer, found in consumers.items():
        version, root, by = found["version"], found["root"], found["by"]
        takes = f"{consumer} takes {root or 'no toolkit'}" + (f" (by {by})" if root else "")
        believes = f" and sees CUDA {version}" if version else " and sees no CUDA version"
        evidence = Evidence(
            takes + believes,
            "; ".join(found["steps"]),
            Place("command", f"{root}/bin/nvcc --version" if root else "environment"),
        )
        resolution = Resolution(consumer, version, root, by, evidence)
        yield Fact(f"toolkit_resolved.{consumer}", resolution, evidence, subject)
    first = consumers["flashinfer"]
    real = first["version"] if first["by"] != "torch.version.cuda" else None
    steps = "; ".join(first["steps"])
    said = f"the nvcc that the service resolves is {real}" if real else "the service resolves no usable nvcc"
    yield _fact(probe, "cuda_toolkit", real, said, steps, f"{first['root']}/bin/nvcc --version", subject)
    yield _fact(
        probe,
        "cuda_home",
        first["root"],
        f"the service resolves {first['root'] or 'no toolkit folder'}",
        steps,
        "environment",
        subject,
    )
    on_path = probe.value["nvcc_on_path"]
    yield _fact(
        probe, "nvcc_path", on_path, f"PATH gives {on_path or 'no nvcc'}", source="environment", subject=subject
    )


def _packages(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    first = probe.value[0]
    subject = f"environment:{first['prefix']}"
    for name, version in first["versions"].items():
        origin = first["origins"].get(name)
        note = f", from {origin}" if origin else ""
        yield _fact(
            probe,
            f"packages.{name}",
            version,
            f"{name} {version} is installed in {first['prefix']}{note}",
            source=first["prefix"],
            subject=subject,
        )
    torch = first["torch"]
    if torch:
        cuda = torch["cuda"]
        quote = f"__version__ = '{torch['version']}'; cuda = {cuda!r}"
        yield _fact(probe, "torch", torch["version"], f"torch is {torch['version']}", quote, torch["path"], subject)
        built = f"torch was built for CUDA {cuda}" if cuda else "torch was built without CUDA"
        yield _fact(probe, "torch_cuda", cuda, built, quote, torch["path"], subject)
    doubled = [f"{each['name']} {each['version']} in {each['folder']}" for each in first["shadowed"]]
    if doubled:
        yield _fact(
            probe,
            "packages_shadowed",
            doubled,
            "packages are installed twice; the first on the path is used",
            "; ".join(doubled[:5]),
        )


def _python(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    first = probe.value[0]
    yield _fact(
        probe,
        "python",
        first["version"],
        f"the service runs Python {first['version']}",
        first["interpreter"],
        first["prefix"],
    )
    yield _fact(
        probe, "service.python", first["interpreter"], f"found by {first['via']}", first["interpreter"], first["prefix"]
    )
    yield _fact(
        probe,
        "service.is_uv_managed",
        bool(first.get("made_by_uv")),
        "as its pyvenv.cfg says",
        source=f"{first['prefix']}/pyvenv.cfg",
    )


def _environment(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    for name, value in probe.value["variables"].items():
        yield _fact(probe, f"env.{name}", value, f"{name} is set for the service", f"{name}={value}")
    complete = bool(probe.value["complete"])
    said = (
        "the whole environment of the service is known" if complete else "the environment may hold more than is known"
    )
    yield _fact(probe, "environment_complete", complete, said, "; ".join(probe.remarks))


def _hidden_variables(snapshot: Snapshot) -> list[str]:
    value = snapshot.value("environment")
    names = value.get("other_names") if isinstance(value, dict) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _unit(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    properties, name = probe.value["properties"], probe.value["name"]
    state = f"{properties.get('ActiveState', 'unknown')} ({properties.get('SubState', 'unknown')})"
    result = f", result {properties['Result']}" if properties.get("Result") else ""
    yield _fact(
        probe,
        f"unit_state.{name.removesuffix('.service')}",
        state,
        f"{name} is {state}{result}",
        f"ActiveState={properties.get('ActiveState')} Result={properties.get('Result')} NRestarts={properties.get('NRestarts')}",
    )
    manager = str(probe.value.get("manager") or "system")
    if manager == "supervisord":
        yield from _supervised(probe, properties, name)
        return
    yield _fact(probe, "service.unit", name, f"the examined unit is {name}")
    yield _fact(probe, "service.result", properties.get("Result"), f"its result is {properties.get('Result')}")
    yield _fact(
        probe,
        "service.exit_status",
        properties.get("ExecMainStatus"),
        f"its main process ended with {properties.get('ExecMainStatus')}",
        f"ExecMainCode={properties.get('ExecMainCode')} ExecMainStatus={properties.get('ExecMainStatus')}",
    )
    yield _fact(
        probe,
        "service.restarts",
        int(properties.get("NRestarts") or 0),
        f"systemd restarted it {properties.get('NRestarts') or 0} times",
    )
    yield _fact(
        probe,
        "service.fragment",
        properties.get("FragmentPath"),
        "where the unit is defined",
        source=properties.get("FragmentPath") or "systemctl show",
    )
    yield _fact(probe, "service.drop_ins", shlex.split(properties.get("DropInPaths", "")), "its drop-ins")
    yield _fact(
        probe,
        "service.environment_files",
        [each["path"] for each in probe.value["environment_files"]],
        "its environment files",
    )
    owner = manager.removeprefix("user:") if manager.startswith("user:") else ""
    whose = f"a unit of the systemd manager of {owner}" if owner else "a unit of the system manager"
    yield _fact(probe, "service.is_user", bool(owner), whose)
    user = owner or properties.get("User") or "root"
    yield _fact(probe, "service.user", user, f"it runs as {user}")
    yield from _start_command(probe, "unit's")


def _supervised(probe: Probe, properties: dict[str, str], name: str) -> Iterator[Fact]:
    yield _fact(probe, "service.supervisor_program", name, f"the examined service is supervisord's program {name}")
    user = properties.get("User")
    if user:
        yield _fact(probe, "service.user", user, f"it runs as {user}")
    yield from _start_command(probe, "program's")


def _start_command(probe: Probe, whose: str) -> Iterator[Fact]:
    if probe.value["commands"]:
        line = shlex.join(probe.value["commands"][-1])
        yield _fact(probe, "service.exec_start", line, "its start command", line)
        yield _fact(probe, "command", line, f"the {whose} start command", line)


def _process(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    if probe.value["command"]:
        line = shlex.join(probe.value["command"])
        yield _fact(probe, "command", line, "the running process's command", line)


def _memory(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    for key, field, words in (
        ("mem_total_bytes", "total", "host memory"),
        ("mem_available_bytes", "available", "host memory available now"),
        ("swap_total_bytes", "swap_total", "swap"),
        ("numa_nodes", "numa_nodes", "NUMA nodes"),
    ):
        value = probe.value.get(field)
        if value is not None:
            yield _fact(probe, key, value, f"{words}: {value}", f"{field}: {value}")
    group = probe.value.get("group")
    if group:
        limit = group["limit"]
        yield _fact(
            probe,
            "memory_limit_bytes",
            limit,
            f"the control group may use {limit} bytes" if limit else "the control group has no memory limit",
            source=group["folder"],
        )
        if group.get("oom_kills") is not None:
            yield _fact(
                probe,
                "memory_limit_kills",
                group["oom_kills"],
                f"the kernel killed {group['oom_kills']} of its processes for lack of memory",
                source=group["folder"],
            )


def _disks(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    for each in probe.value:
        path = each["path"]
        is_chosen = each["why"].startswith("model") or each["why"].isupper()
        if not each["exists"]:
            # A cache that was never used is no news; a folder that the service names is.
            if is_chosen:
                yield _fact(probe, f"files.{path}", None, f"{path} ({each['why']}) does not exist")
            continue
        quote = f"{each['file_system']} on {each['mount_point']} ({each['options']}), {each['available']} of {each['size']} bytes available"
        yield _fact(
            probe,
            f"df.{path}",
            {"size_bytes": each["size"], "avail_bytes": each["available"]},
            f"{path} ({each['why']}) has {each['available'] >> 20} MiB available",
            quote,
        )
        yield _fact(probe, f"mount.{path}", each["options"], f"{path} is mounted with {each['options']}", quote)
        yield _fact(probe, f"fs.{path}", each["file_system"], f"{path} lies on {each['file_system']}", quote)
        if each["why"] == "shared memory":
            yield _fact(probe, "shm_bytes", each["size"], f"{path} has {each['size']} bytes", quote)


def _limits(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    if "memlock" in probe.value:
        memlock = str(probe.value["memlock"])
        yield _fact(
            probe,
            "memlock",
            memlock,
            f"the process may lock {memlock}{'' if memlock == 'unlimited' else ' bytes'} of memory",
        )
    for name, value in probe.value.items():
        yield _fact(probe, f"ulimit.{name}", value, f"the limit of {name} is {value}")


def _jit_cache(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    flashinfer = probe.value.get("flashinfer") or {"levels": []}
    for level in flashinfer["levels"]:
        path = level["path"]
        if level["architectures"] is None:
            found = "FlashInfer wrote here without an architecture level: it had found no target"
            quote = "cached_ops, generated or flashinfer_jit.log directly below the version"
        else:
            found = f"FlashInfer's cache for {level['architectures']}, {len(level['modules'])} modules"
            quote = ", ".join(each["name"] for each in level["modules"][:8])
        yield _fact(probe, f"files.{path}", found, found, quote, path)
        yield from _modules(probe, level["modules"], path + "/cached_ops")
    extensions = probe.value.get("torch_extensions")
    if extensions:
        yield from _modules(probe, extensions["modules"], extensions["root"])


def _modules(probe: Probe, modules: list[dict[str, Any]], folder: str) -> Iterator[Fact]:
    """Only modules that are broken or unfinished: one that is built is no news."""
    for each in modules:
        if each["state"] not in ("built", "unbuilt"):
            path = f"{folder}/{each['name']}/{each['name']}.so"
            said = f"the JIT library is {each['state']} ({each['size']} bytes)"
            yield _fact(probe, f"files.{path}", said, said, source=path)
        elif each["state"] == "unbuilt" and each.get("cuda_home"):
            path = f"{folder}/{each['name']}"
            said = f"a build was begun with {each['cuda_home']} and not finished"
            yield _fact(probe, f"files.{path}", said, said, f"cuda_home = {each['cuda_home']}", f"{path}/build.ninja")


def _system(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    for key, field, words in (
        ("glibc", "glibc", "the C library is glibc"),
        ("kernel_release", "kernel", "the kernel is"),
        ("kernel_cmdline", "kernel_command_line", "the kernel was started with"),
        ("iommu", "iommu", "the IOMMU is"),
        ("net_interfaces", "network_interfaces", "network interfaces:"),
        ("os", "os", "the system is"),
        ("hypervisor", "hypervisor", "it runs under"),
    ):
        value = probe.value.get(field)
        if value:
            yield _fact(probe, key, value, f"{words} {value if isinstance(value, str) else ', '.join(value)}")


def _compilers(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    compiler = probe.value["cc"]
    version = compiler.get("version")
    if version or compiler["path"] is None:
        said = (
            f"{compiler['name']} is {compiler['path']}, version {version}"
            if version
            else f"{compiler['name']} is not on the service's PATH"
        )
        yield _fact(probe, "gcc", version, said, source=f"{compiler['path'] or compiler['name']} --version")
    ninja = probe.value["ninja"]["path"]
    yield _fact(probe, "ninja_path", ninja, f"the service's PATH gives {ninja or 'no ninja'}", source="environment")


def _container(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    inside = bool(probe.value["inside"])
    marks = "; ".join(probe.value["marks"])
    yield _fact(
        probe, "container.in_container", inside, "inside a container" if inside else "not inside a container", marks
    )
    for key in ("runtime", "gpus", "capabilities", "image_cuda"):
        if inside and probe.value.get(key):
            yield _fact(
                probe, f"container.{key}", probe.value[key], f"{key.replace('_', ' ')}: {probe.value[key]}", marks
            )


def _gpu_services(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    for name, found in probe.value.items():
        state = f"{found.get('ActiveState')} ({found.get('SubState')})"
        yield _fact(probe, f"unit_state.{name.removesuffix('.service')}", state, f"{name} is {state}")
    if "nvidia-fabricmanager.service" not in probe.value:
        yield _fact(
            probe, "unit_state.nvidia-fabricmanager", "not-found", "systemd knows no nvidia-fabricmanager.service"
        )


def _assemblers(probe: Probe, _: Snapshot) -> Iterator[Fact]:
    for each in probe.value:
        key = f"assemblers.{each['path']}"
        said = f"{each['path']} is {each['full_version'] or each['version'] or 'unusable: ' + str(each['note'])}"
        yield _fact(probe, key, each["version"], said, source=f"{each['path']} --version")


_READERS: dict[str, tuple[Reader, tuple[str, ...]]] = {
    "gpus": (_gpus, ("gpus", "gpu", "cc", "gpu_processes")),
    "driver": (_driver, ("driver", "libcuda_path")),
    "nvidia_smi": (_nvidia_smi, ("nvidia_smi.host", "driver_cuda")),
    "pci": (_pci, ("nvswitch",)),
    "pci_bridges": (_pci_bridges, ("pci_acs",)),
    "cuda_start": (_cuda_start, ("cuinit.host",)),
    "fabric": (_fabric, ()),
    "at_work": (_at_work, ("processes",)),
    "torch_targets": (_torch_targets, ("torch_arch_list",)),
    "toolkits": (_toolkits, ("toolkits",)),
    "resolutions": (_resolutions, ("cuda_toolkit", "cuda_home", "nvcc_path")),
    "packages": (_packages, ("torch", "torch_cuda", "packages")),
    "python_environments": (_python, ("python", "service.python")),
    "environment": (_environment, ("env",)),
    "process": (_process, ()),
    "unit": (_unit, ("command",)),
    "memory": (_memory, ("mem_total_bytes", "mem_available_bytes", "swap_total_bytes")),
    "disks": (_disks, ("shm_bytes",)),
    "limits": (_limits, ("memlock",)),
    "jit_cache": (_jit_cache, ()),
    "system": (_system, ("glibc", "kernel_release", "kernel_cmdline", "iommu")),
    "compilers": (_compilers, ("gcc",)),
    "container": (_container, ("container.in_container",)),
    "gpu_services": (_gpu_services, ("unit_state.nvidia-fabricmanager",)),
    "assemblers": (_assemblers, ()),
    "container_state": (state_facts, ()),
    "host.nvidia_smi": (host_facts, ()),
    "kernel_log": (lambda *_: iter(()), ("kernel_log",)),
    "journal": (lambda *_: iter(()), ("journal",)),
}  # fmt: skip
"""Who reads which probe, and the keys that are unknown when it brought nothing. Of two facts the earlier one stays."""

_GROUPS = frozenset({"packages", "env", "kernel_log", "journal"})
"""Keys that stand for many facts, or for a log: known once their probe brought anything."""

_COMMANDS = {
    "gpus": "nvidia-smi --query-gpu=index,name,compute_cap --format=csv",
    "gpu": "nvidia-smi --query-gpu=index,name,compute_cap --format=csv",
    "cc": "nvidia-smi --query-gpu=index,name,compute_cap --format=csv",
    "driver": "cat /proc/driver/nvidia/version",
    "driver_cuda": "nvidia-smi",
    "cuda_toolkit": "nvcc --version",
    "toolkits": "ls -d /usr/local/cuda*/bin/nvcc",
    "torch": "python -c 'import torch; print(torch.__version__, torch.version.cuda)'",
    "torch_cuda": "python -c 'import torch; print(torch.version.cuda)'",
    "packages": "python -m pip list",
    "env": "tr '\\0' '\\n' < /proc/PID/environ",
    "command": "systemctl show UNIT -p ExecStart",
    "memlock": "grep 'locked memory' /proc/PID/limits",
    "shm_bytes": "df /dev/shm",
    "gcc": "gcc --version",
    "kernel_log": "journalctl -k -b",
    "pci_acs": "sudo lspci -vvv | grep -E '^[0-9a-f]|ACSCtl'",
    "cuinit.host": "python3 -c \"import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))\"",
    "processes": "ps -eo pid,user,etime,time,args",
    "torch_arch_list": "python -c 'import torch; print(torch.cuda.get_arch_list())'",
}
