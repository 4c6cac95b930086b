"""Fleets made up from one recorded host: every node differs in fifty harmless ways, and a few in what was planted.

The shapes are those that the collector writes; a seed makes the same fleet every time.
"""

from __future__ import annotations

import copy
import random
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gpuwhy import __version__
from gpuwhy.fleet.store import Node, Store
from gpuwhy.snapshot import Probe, Snapshot, Subject

LOGS = Path(__file__).parents[1] / "data" / "logs"
UNIT = "sglang.service"
BEGUN = 1796000000.0
GIB = 1 << 30
CUDA = "/usr/local/cuda-13.0"

Values = dict[str, Any]


class Place(NamedTuple):
    """A node of the fleet that is being made, and the chance that decides about it."""

    name: str
    number: int
    chance: random.Random

    def hexadecimal(self, length: int) -> str:
        return f"{self.chance.getrandbits(4 * length):0{length}x}"

    def identity(self) -> str:
        return str(uuid.UUID(int=self.chance.getrandbits(128)))

    def address(self) -> str:
        return f"10.{self.number >> 16 & 255}.{self.number >> 8 & 255}.{self.number & 255}"


def base(seed: int = 0) -> Values:
    """The values of a healthy host with eight H100 that serves with SGLang."""
    chance = random.Random(seed)
    packages = {
        "torch": "2.11.0+cu130", "flashinfer-python": "0.6.12", "flashinfer-cubin": "0.6.12", "sglang": "0.5.15", "sglang-kernel": "0.4.4",
        "triton": "3.6.0", "nvidia-nccl-cu13": "2.27.5", "nvidia-cudnn-cu13": "9.10.2.21", "transformers": "5.12.1", "numpy": "2.2.6", "xgrammar": "0.2.1",
    }  # fmt: skip
    packages |= {f"library-{n}": f"{chance.randrange(9)}.{chance.randrange(30)}.{n % 7}" for n in range(90)}
    command = ["/opt/venv/bin/python", "-m", "sglang.launch_server", "--model-path", "/models/kimi", "--tp", "8", "--nnodes", "2", "--node-rank", "0", "--host", "10.0.0.1", "--port", "30000", "--dist-init-addr", "10.0.0.1:5000"]  # fmt: skip
    variables = {"CUDA_HOME": CUDA, "PATH": f"/opt/venv/bin:{CUDA}/bin:/usr/bin", "HF_HOME": "/models/hf", "NCCL_SOCKET_IFNAME": "bond0", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "NCCL_IB_HCA": "mlx5", "SGLANG_LOG_LEVEL": "info", "TMPDIR": "/tmp"}  # fmt: skip
    lines = (LOGS / "healthy" / "sglang-tp8.log").read_text().splitlines()
    chosen = {"root": CUDA, "version": "13.0", "by": "CUDA_HOME", "steps": [f"CUDA_HOME={CUDA}"]}
    return {
        "gpus": {"source": "nvml", "driver": "580.95.05", "driver_cuda": "13.0", "processes": [], "gpus": [{"index": n, "name": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0", "memory_total": 80 * GIB, "uuid": "GPU-x", "serial": "1", "pci": "00000000:1B:00.0"} for n in range(8)]},
        "driver": {"loaded": "580.95.05", "installed": "580.95.05", "library": "580.95.05", "text": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05", "libraries": [{"path": "/usr/lib/x86_64-linux-gnu/libcuda.so.1"}]},
        "nvidia_smi": {"verdict": "ok", "driver_cuda": "13.0"},
        "pci": {"devices": [{"address": f"0000:{27 + n:02x}:00.0", "kind": "gpu", "driver": "nvidia"} for n in range(8)], "nvswitches": 4},
        "pci_bridges": {"bridges": [{"address": "0000:15:01.0", "acs": "none", "on": []}], "unread": []},
        "cuda_start": {"code": 0, "name": "CUDA_SUCCESS", "library": "libcuda.so.1"},
        "fabric": {"version": "580.95.05", "gpus": [{"gpu": n, "state": "completed", "status": "success"} for n in range(8)]},
        "gpu_services": {"nvidia-fabricmanager.service": {"ActiveState": "active", "SubState": "running"}, "nvidia-persistenced.service": {"ActiveState": "active", "SubState": "running"}},
        "toolkits": [{"root": CUDA, "version": "13.0", "has_nvcc": True, "has_headers": True, "has_curand": True, "aliases": ["/usr/local/cuda"], "note": ""}],
        "resolutions": {"nvcc_on_path": f"{CUDA}/bin/nvcc", "consumers": {"flashinfer": chosen, "torch": chosen, "triton": chosen}},
        "assemblers": [{"path": "/opt/venv/lib/python3.12/site-packages/triton/backends/nvidia/bin/ptxas", "version": "12.8", "full_version": "12.8.93", "note": ""}],
        "packages": [{"prefix": "/opt/venv", "versions": packages, "origins": {}, "shadowed": [], "torch": {"version": "2.11.0+cu130", "cuda": "13.0", "path": "/opt/venv/lib/python3.12/site-packages/torch/version.py"}}],
        "python_environments": [{"version": "3.12.3", "interpreter": "/opt/venv/bin/python", "prefix": "/opt/venv", "via": "the unit's start command", "made_by_uv": False}],
        "environment": {"source": "unit", "complete": True, "variables": variables, "other_names": ["EDITOR"], "steps": []},
        "unit": {"name": UNIT, "properties": {"ActiveState": "active", "SubState": "running", "Result": "success", "NRestarts": "0", "ExecMainStatus": "0", "FragmentPath": f"/etc/systemd/system/{UNIT}", "User": "svc"}, "commands": [command], "environment_files": [], "files": [{"path": f"/etc/systemd/system/{UNIT}", "text": "[Service]\nUser=svc\nLimitMEMLOCK=infinity\nRestart=always\n"}]},
        "memory": {"total": 2015 * GIB, "available": 1500 * GIB, "swap_total": 8 * GIB, "numa_nodes": 2, "group": {"folder": "/sys/fs/cgroup/system.slice/sglang.service", "limit": None, "used": GIB, "oom_kills": 0}},
        "limits": {"memlock": "unlimited", "nofile": "1048576", "nproc": "8255832", "sigpending": "8255832", "stack": "8388608", "core": "0"},
        "disks": [
            {"path": "/", "why": "root", "exists": True, "size": 900 * GIB, "available": 500 * GIB, "options": "rw,relatime", "file_system": "ext4", "mount_point": "/"},
            {"path": "/dev/shm", "why": "shared memory", "exists": True, "size": 1007 * GIB, "available": 1000 * GIB, "options": "rw,nosuid,nodev", "file_system": "tmpfs", "mount_point": "/dev/shm"},
            {"path": "/models/kimi", "why": "model (--model-path)", "exists": True, "size": 90000 * GIB, "available": 40000 * GIB, "options": "rw,vers=4.2,rsize=1048576", "file_system": "nfs4", "mount_point": "/models"},
        ],
        "jit_cache": {"flashinfer": {"root": "/home/svc/.cache/flashinfer", "levels": [{"path": "/home/svc/.cache/flashinfer/0.6.12/90a", "architectures": "90a", "modules": [{"name": "sampling", "state": "built", "size": 500000}]}]}},
        "system": {"host": "host", "kernel": "6.8.0-79-generic", "kernel_command_line": "BOOT_IMAGE=/boot/vmlinuz-6.8.0-79-generic ro iommu=pt", "glibc": "2.39", "iommu": "passthrough", "os": "Ubuntu 24.04.3 LTS", "network_interfaces": ["lo", "eno1", *(f"ib{n}" for n in range(8))]},
        "compilers": {"cc": {"name": "gcc", "path": "/usr/bin/gcc", "version": "13.3.0"}, "ninja": {"path": "/opt/venv/bin/ninja"}},
        "container": {"inside": False, "marks": []},
        "journal": {"unit": UNIT, "fields": [], "entries": [[BEGUN - 900 + n, 700, "python", 6, "stdout", line] for n, line in enumerate(lines)], "cut": "", "gap_after": None},
        "kernel_log": {"entries": [[BEGUN - 5000, None, "kernel", 6, "kernel", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05"]], "scanned": 900},
        "at_work": {"processes": [], "complete": True},
    }  # fmt: skip


Vary = Callable[[Values, Place], None]


def _variable(name: str, value: Callable[[Place], str]) -> Vary:
    def vary(values: Values, place: Place) -> None:
        values["environment"]["variables"][name] = value(place)

    return vary


def _hostname(values: Values, place: Place) -> None:
    values["system"]["host"] = place.name


def _service_address(values: Values, place: Place) -> None:
    command = values["unit"]["commands"][0]
    command[command.index("--host") + 1] = place.address()


def _node_rank(values: Values, place: Place) -> None:
    command = values["unit"]["commands"][0]
    command[command.index("--node-rank") + 1] = str(place.number)


def _root_disk(values: Values, place: Place) -> None:
    values["system"]["kernel_command_line"] += f" root=UUID={place.identity()}"


def _resume_disk(values: Values, place: Place) -> None:
    values["system"]["kernel_command_line"] += f" resume=UUID={place.identity()} rd.luks.uuid=luks-{place.identity()}"


def _memory_of_firmware(values: Values, place: Place) -> None:
    values["memory"]["total"] -= place.chance.randrange(4 << 30)


def _memory_in_use(values: Values, place: Place) -> None:
    values["memory"]["available"] = place.chance.randrange(100 * GIB, 1900 * GIB)


def _swap(values: Values, place: Place) -> None:
    values["memory"]["swap_total"] -= place.chance.randrange(1 << 24)


def _room(values: Values, place: Place) -> None:
    values["disks"][0]["available"] = place.chance.randrange(100 * GIB, 800 * GIB)


def _disk_size(values: Values, place: Place) -> None:
    values["disks"][0]["size"] = place.chance.choice((894, 900, 931)) * GIB


def _room_of_models(values: Values, place: Place) -> None:
    values["disks"][2]["available"] = place.chance.randrange(30000 * GIB, 50000 * GIB)


def _shared_memory_size(values: Values, place: Place) -> None:
    values["disks"][1]["size"] -= place.chance.randrange(2 << 30)
    values["disks"][1]["options"] += (
        f",size={values['disks'][1]['size'] >> 10}k,nr_inodes={place.chance.randrange(10**8)}"
    )


def _client_address(values: Values, place: Place) -> None:
    values["disks"][2]["options"] += f",clientaddr={place.address()},addr=10.200.0.{place.number % 4}"


def _layers(values: Values, place: Place) -> None:
    path = f"/var/lib/containers/{place.hexadecimal(64)}/merged"
    values["disks"].append({"path": path, "why": "root", "exists": True, "size": GIB, "available": GIB // 2, "options": f"rw,lowerdir=/l/{place.hexadecimal(26)},upperdir=/u/{place.hexadecimal(26)}", "file_system": "overlay", "mount_point": path})  # fmt: skip


def _slots(values: Values, place: Place) -> None:
    shift = place.chance.randrange(60)
    for n, device in enumerate(values["pci"]["devices"]):
        device["address"] = f"0000:{20 + shift + n:02x}:00.0"


def _ethernet_names(values: Values, place: Place) -> None:
    values["system"]["network_interfaces"][1] = f"enp{place.chance.randrange(200)}s0f{place.chance.randrange(2)}np0"


def _container_interfaces(values: Values, place: Place) -> None:
    names = [f"veth{place.hexadecimal(7)}" for _ in range(place.chance.randrange(4))]
    values["system"]["network_interfaces"] += [*names, "docker0", f"br-{place.hexadecimal(12)}"][
        : place.chance.randrange(5)
    ]


def _holders(values: Values, place: Place) -> None:
    values["gpus"]["processes"] = [{"gpu": n, "pid": place.chance.randrange(1 << 22), "memory": place.chance.randrange(70 * GIB), "command": ["sglang::scheduler"]} for n in range(8)]  # fmt: skip


def _at_work(values: Values, place: Place) -> None:
    values["at_work"]["processes"] = [{"pid": place.chance.randrange(1 << 22), "user": "svc", "elapsed": place.chance.random() * 1e6, "cpu": place.chance.random() * 1e5, "command": ["sglang::scheduler"]}]  # fmt: skip


def _cards(values: Values, place: Place) -> None:
    for gpu in values["gpus"]["gpus"]:
        gpu |= {"uuid": f"GPU-{place.identity()}", "serial": str(place.chance.randrange(10**13)), "pci": f"00000000:{place.hexadecimal(2).upper()}:00.0"}  # fmt: skip


def _fabric_order(values: Values, place: Place) -> None:
    place.chance.shuffle(values["fabric"]["gpus"])


def _build_of_driver(values: Values, place: Place) -> None:
    values["driver"]["text"] += f"  Tue Sep 23 10:{place.number % 60:02d}:{place.number % 59:02d} UTC 2025"


def _moments(values: Values, place: Place) -> None:
    moved = place.chance.random() * 1e5
    for entry in values["journal"]["entries"]:
        entry[0] += moved


def _processes(values: Values, place: Place) -> None:
    pid = place.chance.randrange(1 << 22)
    for entry in values["journal"]["entries"]:
        entry[1] = pid


def _throughput(values: Values, place: Place) -> None:
    last = values["journal"]["entries"][-1][0]
    values["journal"]["entries"] += [
        [last + n, 700, "python", 6, "stdout", f"[2026-11-29 10:{n % 60:02d}:00 TP0] Decode batch. #running-req: {place.chance.randrange(200)}, #token: {place.chance.randrange(10**6)}, token usage: {place.chance.random():.2f}, gen throughput (token/s): {place.chance.random() * 9000 + 100:.2f}, #queue-req: 0,"]
        for n in range(40)
    ]  # fmt: skip


def _requests(values: Values, place: Place) -> None:
    last = values["journal"]["entries"][-1][0]
    values["journal"]["entries"] += [
        [last + n, 700, "python", 6, "stdout", f'INFO:     {place.address()}:{place.chance.randrange(1024, 65000)} - "POST /v1/chat/completions HTTP/1.1" 200 OK']
        for n in range(40)
    ]  # fmt: skip


def _links(values: Values, place: Place) -> None:
    values["kernel_log"]["entries"].append([BEGUN - 4000 + place.chance.random() * 1000, None, "kernel", 6, "kernel", f"mlx5_core 0000:{place.hexadecimal(2)}:00.0: Port module event: module {place.number % 4}, Cable plugged"])  # fmt: skip


def _restarts(values: Values, place: Place) -> None:
    values["unit"]["properties"]["NRestarts"] = str(place.chance.randrange(4))


def _last_status(values: Values, place: Place) -> None:
    values["unit"]["properties"]["ExecMainStatus"] = str(place.chance.choice((0, 0, 0, 143)))


def _built_modules(values: Values, place: Place) -> None:
    modules = values["jit_cache"]["flashinfer"]["levels"][0]["modules"]
    modules += [{"name": f"batch_decode_{place.chance.randrange(12)}_{n}", "state": "built", "size": place.chance.randrange(10**6)} for n in range(place.chance.randrange(6))]  # fmt: skip


def _unused_cache(values: Values, place: Place) -> None:
    if place.chance.random() < 0.1:
        values["jit_cache"]["flashinfer"]["levels"] = []


def _torch_extensions(values: Values, place: Place) -> None:
    if place.chance.random() < 0.3:
        values["jit_cache"]["torch_extensions"] = {"root": f"/tmp/torchinductor_{place.number}", "modules": []}


def _most_processes(values: Values, place: Place) -> None:
    values["limits"]["nproc"] = str(8255832 - place.chance.randrange(20000))


def _most_signals(values: Values, place: Place) -> None:
    values["limits"]["sigpending"] = str(8255832 - place.chance.randrange(20000))


def _group(values: Values, place: Place) -> None:
    values["memory"]["group"] |= {"folder": f"/sys/fs/cgroup/{place.hexadecimal(32)}", "used": place.chance.randrange(900 * GIB)}  # fmt: skip


def _former_kills(values: Values, place: Place) -> None:
    values["memory"]["group"]["oom_kills"] = place.chance.choice((0, 0, 0, 1))


def _generated_unit(values: Values, place: Place) -> None:
    file = values["unit"]["files"][0]
    file["text"] = (
        f"# generated for {place.name} at 2026-11-{1 + place.number % 28:02d}T08:{place.number % 60:02d}:11Z\n{file['text']}"
    )


def _environment_file(values: Values, place: Place) -> None:
    values["unit"]["environment_files"] = [{"path": f"/run/sglang/{place.name}.env"}]


HARMLESS: tuple[Vary, ...] = (
    _hostname, _service_address, _node_rank, _root_disk, _resume_disk, _memory_of_firmware, _memory_in_use, _swap, _room, _disk_size, _room_of_models,
    _shared_memory_size, _client_address, _layers, _slots, _ethernet_names, _container_interfaces, _holders, _at_work, _cards, _fabric_order,
    _build_of_driver, _moments, _processes, _throughput, _requests, _links, _restarts, _last_status, _built_modules, _unused_cache, _torch_extensions,
    _most_processes, _most_signals, _group, _former_kills, _generated_unit, _environment_file,
    _variable("HOSTNAME", lambda place: place.name),
    _variable("NODE_RANK", lambda place: str(place.number)),
    _variable("VLLM_HOST_IP", Place.address),
    _variable("INVOCATION_ID", lambda place: place.hexadecimal(32)),
    _variable("JOURNAL_STREAM", lambda place: f"8:{place.chance.randrange(10**6)}"),
    _variable("SLURM_NODEID", lambda place: str(place.number)),
    _variable("SLURM_PROCID", lambda place: str(place.number)),
    _variable("RAY_NODE_ID", lambda place: place.hexadecimal(56)),
    _variable("CUDA_VISIBLE_DEVICES", lambda place: ",".join(f"GPU-{place.identity()}" for _ in range(8))),
    _variable("TMPDIR", lambda place: f"/tmp/job.{place.chance.randrange(10**6)}"),
    _variable("SGLANG_LOG_FILE", lambda place: f"/var/log/sglang/{place.name}.log"),
    _variable("TRITON_CACHE_DIR", lambda place: f"/scratch/{place.chance.randrange(10**5)}/triton"),
)  # fmt: skip
"""Fifty ways in which nodes of a healthy fleet differ."""


class Fault(NamedTuple):
    """A planted deviation: ``keys`` are the facts one of which must be told."""

    name: str
    keys: frozenset[str]
    plant: Callable[[Values], None]


def _put(*path: str | int, to: Any) -> Callable[[Values], None]:
    def plant(values: Values) -> None:
        inner: Any = values
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = to

    return plant


def _older_driver(values: Values) -> None:
    values["gpus"] |= {"driver": "570.86.15", "driver_cuda": "12.8"}
    values["driver"] |= {"loaded": "570.86.15", "installed": "570.86.15", "library": "570.86.15"}
    values["nvidia_smi"]["driver_cuda"] = "12.8"


def _not_rebooted(values: Values) -> None:
    values["driver"] |= {"installed": "580.105.08", "library": "580.105.08"}


def _lost_gpu(values: Values) -> None:
    values["gpus"]["gpus"][5] = {"index": 5, "error": "GPU is lost"}


def _other_gpus(values: Values) -> None:
    for gpu in values["gpus"]["gpus"]:
        gpu["name"] = "NVIDIA H200"


def _other_toolkit(values: Values) -> None:
    chosen = {"root": "/usr/local/cuda-12.4", "version": "12.4", "by": "CUDA_HOME", "steps": []}
    values["resolutions"]["consumers"] |= {"flashinfer": chosen, "torch": chosen, "triton": chosen}
    values["environment"]["variables"]["CUDA_HOME"] = "/usr/local/cuda-12.4"


def _package(name: str, version: str) -> Callable[[Values], None]:
    return lambda values: values["packages"][0]["versions"].__setitem__(name, version)


def _more_arguments(values: Values) -> None:
    values["unit"]["commands"][0] += ["--attention-backend", "fa3"]


def _missing_link(values: Values) -> None:
    values["system"]["network_interfaces"].remove("ib5")


def _no_models(values: Values) -> None:
    values["disks"][2]["exists"] = False


def _broken_module(values: Values) -> None:
    values["jit_cache"]["flashinfer"]["levels"] = [{"path": "/home/svc/.cache/flashinfer/0.6.12/90a", "architectures": "90a", "modules": [{"name": "sampling", "state": "truncated", "size": 12}]}]  # fmt: skip


def _full_disk(values: Values) -> None:
    values["disks"][0]["available"] = GIB


def _redirecting_bridge(values: Values) -> None:
    values["pci_bridges"]["bridges"][0] |= {"acs": "SrcValid+ ReqRedir+", "on": ["SrcValid", "ReqRedir"]}


def _fault(name: str, keys: str, plant: Callable[[Values], None]) -> Fault:
    return Fault(name, frozenset(keys.split()), plant)


_ENV = ("environment", "variables")
FAULTS = (
    _fault("older driver", "driver driver_cuda driver_installed driver_library", _older_driver),
    _fault("driver replaced, not loaded", "driver_installed driver_library", _not_rebooted),
    _fault("GPU lost", "gpus gpu_errors", _lost_gpu),
    _fault("other GPUs", "gpus", _other_gpus),
    _fault("other toolkit", "toolkit_resolved.flashinfer env.CUDA_HOME", _other_toolkit),
    _fault("older torch", "packages.torch", _package("torch", "2.10.0+cu130")),
    _fault("older flashinfer", "packages.flashinfer-python", _package("flashinfer-python", "0.5.3")),
    _fault("other NCCL", "packages.nvidia-nccl-cu13", _package("nvidia-nccl-cu13", "2.21.5")),
    _fault("other library", "packages.library-7", _package("library-7", "99.1")),
    _fault("architecture list", "env.FLASHINFER_CUDA_ARCH_LIST", _put(*_ENV, "FLASHINFER_CUDA_ARCH_LIST", to="8.0")),
    _fault("NCCL without peers", "env.NCCL_P2P_DISABLE", _put(*_ENV, "NCCL_P2P_DISABLE", to="1")),
    _fault("loader path", "env.LD_LIBRARY_PATH", _put(*_ENV, "LD_LIBRARY_PATH", to="/usr/local/cuda/compat")),
    _fault("other head", "env.MASTER_ADDR", _put(*_ENV, "MASTER_ADDR", to="10.9.9.9")),
    _fault("no socket name", "env.NCCL_SOCKET_IFNAME", lambda values: values["environment"]["variables"].pop("NCCL_SOCKET_IFNAME")),
    _fault("other cache", "env.HF_HOME", _put(*_ENV, "HF_HOME", to="/home/svc/hf")),
    _fault("other kernel", "kernel_release", _put("system", "kernel", to="6.8.0-55-generic")),
    _fault("IOMMU", "iommu", _put("system", "iommu", to="translated")),
    _fault("other glibc", "glibc", _put("system", "glibc", to="2.35")),
    _fault("fewer InfiniBand ports", "net_interfaces", _missing_link),
    _fault("locked memory", "memlock", _put("limits", "memlock", to="65536")),
    _fault("open files", "ulimit.nofile", _put("limits", "nofile", to="1024")),
    _fault("shared memory", "shm_bytes", _put("disks", 1, "size", to=64 << 20)),
    _fault("half the memory", "mem_total_bytes", _put("memory", "total", to=1007 * GIB)),
    _fault("memory limit", "memory_limit_bytes", _put("memory", "group", "limit", to=64 * GIB)),
    _fault("other Python", "python", _put("python_environments", 0, "version", to="3.10.12")),
    _fault("older compiler", "gcc", _put("compilers", "cc", "version", to="9.4.0")),
    _fault("other arguments", "command service.exec_start", _more_arguments),
    _fault("other unit", f"unit_file./etc/systemd/system/{UNIT}", _put("unit", "files", 0, "text", to="[Service]\nUser=root\n")),
    _fault("models missing", "files./models/kimi fs./models/kimi", _no_models),
    _fault("disk full", "df./", _full_disk),
    _fault("broken kernel", "jit_cache./home/svc/.cache/flashinfer/0.6.12/90a", _broken_module),
    _fault("fabric manager", "system_packages.nvidia-fabricmanager", _put("fabric", "version", to="570.86.15")),
    _fault("fabric manager stopped", "unit_state.nvidia-fabricmanager", _put("gpu_services", "nvidia-fabricmanager.service", to={"ActiveState": "failed", "SubState": "failed"})),
    _fault("CUDA does not start", "cuinit.host", _put("cuda_start", to={"code": 802, "name": "CUDA_ERROR_SYSTEM_NOT_READY", "library": "libcuda.so.1"})),
    _fault("redirecting bridge", "pci_acs", _redirecting_bridge),
    _fault("other assembler", "assemblers./opt/venv/lib/python3.12/site-packages/triton/backends/nvidia/bin/ptxas", _put("assemblers", 0, "version", to="12.4")),
)  # fmt: skip
"""What differs on the node that fails."""


class Planted(NamedTuple):
    """A fault and the nodes that have it."""

    fault: Fault
    nodes: tuple[str, ...]


def snapshot(values: Values, place: Place) -> Snapshot:
    """The snapshot of a node with these values."""
    probes = tuple(
        Probe(name=name, status="ok", value=value, sources=(f"/from/{name}",)) for name, value in values.items()
    )
    started = BEGUN + place.chance.random() * 60
    return Snapshot(
        gpuwhy_version=__version__, target=Subject("ssh", f"root@{place.name}", UNIT), started=started, probes=probes
    )


def plan(seed: int, nodes: Sequence[str], faults: Sequence[Fault] = FAULTS) -> list[Planted]:
    """One to five faults, each on one to three nodes."""
    chance = random.Random(seed)
    chosen = chance.sample(list(faults), chance.randint(1, 5))
    return [
        Planted(fault, tuple(sorted(chance.sample(list(nodes), min(len(nodes), chance.choice((1, 1, 1, 2, 3)))))))
        for fault in chosen
    ]


PTX_CRASH = (
    "[2026-11-29 10:30:00 TP0] Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 3210, in run_scheduler_process',
    "    scheduler.event_loop_overlap()",
    '  File "/opt/venv/lib/python3.12/site-packages/flashinfer/sampling.py", line 812, in top_k_top_p_sampling_from_probs',
    "    return get_sampling_module().top_p_sampling_from_probs(probs, indices, top_p, deterministic, generator)",
    "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
    "",
)
"""What a service says whose driver is older than the code that it loads; the error is CUDA's own text (cudaErrorUnsupportedPtxVersion)."""


def say(values: Values, lines: Sequence[str], after: float = 60.0) -> None:
    """The service of the node writes ``lines``, so many seconds after what it wrote so far, and ends."""
    last = max(entry[0] for entry in values["journal"]["entries"])
    values["journal"]["entries"] += [
        [last + after + n / 1000, 700, "python", 6, "stdout", line] for n, line in enumerate(lines)
    ]
    values["unit"]["properties"] |= {"ActiveState": "failed", "SubState": "failed", "Result": "exit-code"}


def crash(values: Values) -> None:
    """The service of a node crashed: its driver is too old for a kernel."""
    _older_driver(values)
    say(values, PTX_CRASH)


def generate(folder: Path, count: int, seed: int, planted: Sequence[Planted] = (), crashes: int = 0) -> None:
    """Writes a fleet of ``count`` nodes, gpu00001 and so on; the services of ``crashes`` of them have crashed."""
    original = base()
    by_node: dict[str, list[Fault]] = {}
    for each in planted:
        for name in each.nodes:
            by_node.setdefault(name, []).append(each.fault)
    crashed = set(random.Random(seed + 1).sample(range(count), crashes))
    with Store(folder, create=True) as store:
        for number, name in enumerate(names(count)):
            place = Place(name, number, random.Random(seed * 1_000_003 + number))
            values = copy.deepcopy(original)
            # a fault keeps what it says; chance varies the rest around it
            for vary in HARMLESS:
                vary(values, place)
            for fault in by_node.get(name, ()):
                fault.plant(values)
            if number in crashed:
                crash(values)
            store.keep(
                Node(name=name, status="ok", seconds=1.0, bytes=40_000, engine="made up", unit=UNIT),
                snapshot(values, place),
            )


def names(count: int) -> list[str]:
    """The names of the nodes."""
    return [f"gpu{number + 1:05d}" for number in range(count)]
