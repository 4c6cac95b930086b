"""Whether the model of a host's service fits its GPUs: command, GPUs and memory from the facts, config.json from the host."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from gpuwhy.fit.architecture import read_architecture
from gpuwhy.fit.arguments import read_arguments
from gpuwhy.fit.commands import read_start
from gpuwhy.fit.estimate import estimate
from gpuwhy.fit.hardware import Hardware, hardware_of
from gpuwhy.fit.inventory import computed_inventory, scaled_inventory
from gpuwhy.fit.model import Draft, Model
from gpuwhy.fit.results import Estimate
from gpuwhy.fit.settings import Settings
from gpuwhy.investigate.source import Questioner, lines_of
from gpuwhy.knowledge.gpu_memory_sizes import GpuMemory, memory_of
from gpuwhy.model.fact import Facts, Unknown
from gpuwhy.model.gpu_memory import GpuHolders
from gpuwhy.model.host import Gpus

if TYPE_CHECKING:
    from gpuwhy.targets import Target

GIB = 1 << 30
_LONGEST_CONFIG = 4000
"""Lines."""
_INDEX_HEAD = 60
"""Lines of the index: its sizes stand first, the names of thousands of tensors follow."""
_TOTAL = re.compile(r'"total_size"\s{0,4}:\s{0,4}(\d{1,15})', re.ASCII)
_OWN = re.compile(r"sglang|vllm|EngineCore", re.IGNORECASE)
_LARGEST_TEXT = 4 << 20


class Service(msgspec.Struct, frozen=True):
    """What a start command says. ``model``: a folder of the host, or a name in a hub, as it is typed. ``words``: of the command."""

    engine: str
    model: str
    settings: Settings
    words: tuple[str, ...] = ()


class Fit(msgspec.Struct, frozen=True):
    """``estimate`` None: why not is in ``why``, with the fact that is missing and how to get it."""

    estimate: Estimate | None = None
    service: Service | None = None
    model: Model | None = None
    hardware: Hardware | None = None
    why: str = ""
    key: str = ""
    command: str = ""


_LONGER_CONTEXTS = ("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN")
"""Set, the engine takes a context beyond the model's own."""


def service_of(facts: Facts) -> Service | None:
    """None where no start command of SGLang or vLLM is known."""
    command = facts.value("command")
    if not isinstance(command, str):
        return None
    started = read_start(command)
    if started is None:
        return None
    settings = read_arguments(started.engine, engine_version(facts, started.engine), started.words)
    if any(str(facts.value(f"env.{name}") or "").lower() in ("1", "true") for name in _LONGER_CONTEXTS):
        settings = msgspec.structs.replace(settings, is_context_open=True)
    return Service(started.engine, started.model, settings, started.words)


def engine_version(facts: Facts, engine: str) -> str:
    """Of the installed package; "" when it is not known."""
    return str(facts.value(f"packages.{engine}") or "")


def fit_service(facts: Facts, source: Questioner) -> Fit | None:
    """None where there is no service to judge."""
    service = service_of(facts)
    if service is None:
        return None
    hardware = hardware_on(facts)
    if hardware is None:
        return Fit(service=service, why="the GPUs of the host are not known", key="gpus", command="nvidia-smi --query-gpu=name,memory.total --format=csv")  # fmt: skip
    draft = service.settings.speculation.draft if service.settings.speculation else ""
    model = model_on(source, service.model, draft, facts)
    if model is None:
        return Fit(service=service, hardware=hardware, why=f"config.json of {service.model} could not be read there", key="model", command="gpuwhy fit FOLDER --on HOST [ENGINE FLAGS], with a copy of config.json and of model.safetensors.index.json in FOLDER")  # fmt: skip
    return Fit(estimate(model, hardware, service.settings), service, model, hardware)


def hardware_on(facts: Facts) -> Hardware | None:
    """The GPUs, what processes of others hold of the fullest, and the memory of the host (of its control group, if that is less)."""
    gpus = Gpus.of(facts)
    if isinstance(gpus, Unknown) or not gpus.devices:
        return None
    smallest = min(gpus.devices, key=lambda each: each.memory or 1 << 62)
    memory = _memory_of(smallest.name, smallest.memory)
    if memory is None:
        return None
    sizes = [facts.value(key) for key in ("mem_total_bytes", "memory_limit_bytes")]
    host = min((size / GIB for size in sizes if isinstance(size, int) and size > 0), default=None)
    return hardware_of(memory, len(gpus.devices), taken_on(facts), host)


def _memory_of(name: str, size: int | None) -> GpuMemory | None:
    known = memory_of(name)
    if size is None:
        return known
    mib = size >> 20
    if known is not None and abs(known.smi_mib - mib) < 0.08 * known.smi_mib:
        return msgspec.structs.replace(known, smi_mib=mib)
    return memory_of(f"{name} {mib} MiB") or memory_of(f"{mib} MiB")


class NoHardwareError(Exception):
    """The target tells nothing of GPUs; in words for people."""


def facts_on(target: Target, timeout: float, model: str = "", draft: str = "", unit: str = "") -> tuple[Facts, Model | None]:  # fmt: skip
    """What a host or a snapshot says of GPUs, memory and service; and the model there.

    ``model`` "": the one that the service's start command names, with the draft of that command. ``unit``: whose command.
    Raises TargetError, SnapshotError, NoHardwareError.
    """
    from gpuwhy.investigate.examined_service import expect_inside, expect_written
    from gpuwhy.investigate.target import Excerpts
    from gpuwhy.snapshot import Session, decode, facts_of, is_snapshot
    from gpuwhy.targets import FileTarget, HostTarget, TargetError

    if isinstance(target, FileTarget):
        try:
            with target.stream() as stream:
                content = stream.read()
        except OSError as error:
            raise TargetError(f"{target.name}: {error.strerror or error}") from error
        if not is_snapshot(content):
            raise NoHardwareError(f"{target.name} is no snapshot: gpuwhy collect HOST -o {target.name} makes one")
        snapshot = decode(content, target.name)
        expect_written(snapshot, unit, target.name)
        facts = facts_of(snapshot)
        return facts, _model_there(Excerpts(snapshot), model, draft, facts)
    if not isinstance(target, HostTarget):
        raise TargetError(f"{target.name} is no place that can be examined")
    with Session(target, unit, timeout) as session:
        snapshot = session.collect(None, probes=_PROBES)
        expect_inside(snapshot, target.name)
        facts = facts_of(snapshot)
        return facts, _model_there(session, model, draft, facts)


def _model_there(source: Questioner, model: str, draft: str, facts: Facts) -> Model | None:
    if model:
        return model_on(source, model, draft, facts)
    service = service_of(facts)
    if service is None:
        return None
    speculation = service.settings.speculation
    return model_on(source, service.model, draft or (speculation.draft if speculation else ""), facts)


_PROBES = ("gpus", "memory", "process", "unit", "packages", "environment", "container")


def taken_on(facts: Facts) -> float:
    """GiB that processes other than inference servers hold on the fullest GPU; those of a server that runs end with it."""
    holders = GpuHolders.of(facts)
    if isinstance(holders, Unknown):
        return 0.0
    by_gpu: dict[int | None, int] = {}
    for each in holders.holders:
        if not _OWN.search(each.text):
            by_gpu[each.gpu] = by_gpu.get(each.gpu, 0) + (each.memory or 0)
    return max(by_gpu.values(), default=0) / GIB


def model_on(source: Questioner, named: str, draft: str = "", facts: Facts | None = None) -> Model | None:
    """From config.json and the index in a folder of the target, or in its cache of the hub for a name there.

    None when no usable config.json can be read.
    """
    found = _read(source, _folder_of(source, named, facts or Facts()))
    if found is None:
        return None
    drafted = _read(source, _folder_of(source, draft, facts or Facts())) if draft else None
    with_draft = Draft(drafted.shape, drafted.inventory) if drafted is not None else None
    return msgspec.structs.replace(found, draft=with_draft)


_HUB_NAME = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)
_MOST_SNAPSHOTS = 3


def _folder_of(source: Questioner, named: str, facts: Facts) -> str:
    """The folder that is named, or the one in which the hub's cache keeps it; "" where there is none."""
    from gpuwhy.targets import Ask

    if named.startswith("/") or not _HUB_NAME.fullmatch(named):
        return named if named.startswith("/") else ""
    inside = f"models--{named.replace('/', '--')}/snapshots"
    folders = [f"{root}/{inside}" for root in _hub_caches(facts)]
    for folder, reply in zip(folders, source.ask([Ask("list", folder) for folder in folders]), strict=False):
        names = reply.value.get("names", ()) if reply.status == "ok" and isinstance(reply.value, dict) else ()
        for name in names[:_MOST_SNAPSHOTS]:
            return f"{folder}/{str(name).rstrip('/')}"
    return ""


def _hub_caches(facts: Facts) -> tuple[str, ...]:
    """Where huggingface_hub keeps models: as its variables say, else below the home of the service's account."""
    cache, home, own = (str(facts.value(f"env.{name}") or "") for name in ("HF_HUB_CACHE", "HF_HOME", "HOME"))
    roots = (cache, f"{home}/hub" if home else "", f"{own or '/root'}/.cache/huggingface/hub")
    return tuple(dict.fromkeys(root for root in roots if root.startswith("/")))


class Described(msgspec.Struct, frozen=True):
    """What the files of a model on the target say: config.json, its quantisation in a file of its own, bytes of all weights."""

    folder: str
    config: dict[str, object]
    quantization: object | None = None
    total_bytes: int = 0


def described_on(source: Questioner, named: str, facts: Facts) -> Described | None:
    """The files of a model in a folder of the target, or in its cache of the hub. None when no usable config.json can be read."""
    return _described(source, _folder_of(source, named, facts))


def _read(source: Questioner, folder: str) -> Model | None:
    found = _described(source, folder)
    if found is None:
        return None
    shape = read_architecture(found.config, found.quantization)
    inventory = computed_inventory(shape)
    if found.total_bytes:
        inventory = scaled_inventory(inventory, float(found.total_bytes), inventory.largest_file_bytes)
    return Model(name=PurePosixPath(folder).name, shape=shape, inventory=inventory)


def _described(source: Questioner, folder: str) -> Described | None:
    from gpuwhy.targets import Ask

    if not folder.startswith("/"):
        return None
    paths = [str(PurePosixPath(folder) / name) for name in ("config.json", "hf_quant_config.json", "model.safetensors.index.json")]  # fmt: skip
    lasts = (_LONGEST_CONFIG, _LONGEST_CONFIG, _INDEX_HEAD)
    replies = source.ask([Ask("read", path, 1, last) for path, last in zip(paths, lasts, strict=True)])
    texts = ["\n".join(lines_of(reply.value)) if reply.status == "ok" else "" for reply in replies]
    if len(texts) < len(paths):
        return None
    config = _json(texts[0])
    if config is None:
        return None
    total = _TOTAL.search(texts[2][:_LARGEST_TEXT])
    return Described(folder, config, _json(texts[1]), int(total[1]) if total else 0)


def _json(text: str) -> dict[str, object] | None:
    try:
        found: object = msgspec.json.decode(text[:_LARGEST_TEXT].encode("utf-8", "replace")) if text else None
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
