"""no-device-visible: the driver works, and the process sees no GPU, or too few, because of its environment."""

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.container import _place as place
from gpuwhy.causes.container._place import Surroundings
from gpuwhy.causes.distributed._log_lines import fact_texts
from gpuwhy.causes.driver import _cuda_errors as errors
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.gpu_access import ContainerSetup, GpuAccess
from gpuwhy.model.host import Environment, Gpus, Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_RAY = lazy_pattern(r"\bray::|\((?!EngineCore|Worker[_P]|Worker |VllmWorker|APIServer)\w{1,60} pid=\d{1,9}(?:, ip=[\w.:]{1,60})?\)|site-packages/ray/|ray\.(?:init|remote|get|exceptions|actor)|\bRayWorker\w*|RayActorError|ray_gpu_executor|ray_distributed_executor|raylet|@ray\.remote|\bRay (?:actor|worker|cluster|Data|Serve)", re.IGNORECASE)  # fmt: skip
_RAY_PREFIX = lazy_pattern(r"\((?:_MapWorker|RayWorker\w*|RayTrainWorker|ServeReplica\S*|\w*Actor|WorkerDict|raylet|ActorPool\w*)\b")  # fmt: skip
_VALUE_SEEN = lazy_pattern(r"CUDA_VISIBLE_DEVICES(?:\W{1,4}(?:is|was|to|set|to) ){0,3}\W{0,4}[=:] ?(?P<quote>['\"]?)(?P<value>[\w,:/-]{0,200})(?P=quote)(?=[\s,})\]]|$)")  # fmt: skip


@cause(
    "no-device-visible",
    family="Driver, device and fabric",
    signs=[
        says(
            "variable-hides-all",
            ("cuda_visible_devices",),
            r"CUDA_VISIBLE_DEVICES (?:environment variable )?(?:is|was) set to (?:an )?empty(?: string)?|CUDA_VISIBLE_DEVICES ?(?:is|was|=|:)? ?(?:set to )?['\"]?-1['\"]?[^\n]{0,60}(?:hid|disabl|no (?:GPU|CUDA))|possibly because (?:the )?(?:env\w* variable )?CUDA_VISIBLE_DEVICES|user overrode visible devices[^\n]{0,40}CUDA_VISIBLE_DEVICES=['\"]?(?:-1)?['\"]?(?:\s|$)",
        ),
        says(
            "variable-unreadable",
            ("invalid literal for int", "cuda_visible_devices"),
            r"invalid literal for int\(\) with base 10: ['\"](?:GPU|MIG)-[\w/-]{4,80}['\"]|CUDA_VISIBLE_DEVICES[^\n]{0,60}(?:invalid|malformed|out of range|not a valid|could not be parsed)",
        ),
        errors.NO_DEVICE,
        errors.TOLD_BY_TORCH,
        says(
            "no-gpu-found",
            (
                "failed to infer device type", "no supported device detected", "no accelerator (", "no visible gpu devices", "device string must not be empty", "torch.cuda.is_available() is false", "no gpus found", "no gpu found", "no gpus detected", "no gpu detected",
                "no gpus available", "0 active drivers", "has no gpu available", "no nvidia gpu", "cuda is not available", "gpu is not available", "no cuda device", "no nvidia devices detected", "no devices found", "torch is not able to use gpu", "cannot find any torch accelerator", "not able to use the gpu",
            ),
            r"Failed to infer device type|No supported device detected|No accelerator \([^)]{1,80}\) is available|No visible GPU devices|Device string must not be empty|torch\.cuda\.is_available\(\) is False|no GPUs? (?:were )?(?:found|detected|available)\b|\b0 active drivers|has no GPU available|no NVIDIA GPUs? (?:found|detected|available)"
            r"|(?:Error|Exception)\b[^\n]{0,40}(?:CUDA|GPU) is not available|no CUDA[- ]?(?:capable )?devices? (?:found|available|detected)|no nvidia devices detected|[Tt]orch is not able to use (?:the )?GPU|cannot find any torch accelerator",
        ),
        errors.START_FAILS,
        says(
            "driver-itself-missing",
            ("libcuda.so", "nvml shared library not found", "nvidia driver was not detected", "found no nvidia driver", "driver on your system is too old", "driver version is insufficient", "built with cpu", "not compiled with cuda"),
            r"libcuda\.so(?:\.1)?\W{0,3}:? ?(?:cannot open shared object|not found)|NVML Shared Library Not Found|NVIDIA Driver was not detected|Found no NVIDIA driver|driver on your system is too old|CUDA driver version is insufficient|built with CPU|not compiled with CUDA",
        ),
        says(
            "ordinal-out-of-range",
            ("invalid device ordinal", "invaliddevice", "invalid device id", "num_gpus=", "rank is out of bounds", "than the number of available gpus", "than the number of gpus", "cuda_error_invalid_device", "device_count", "is out of bounds"),
            r"CUDA[^\n]{0,40}invalid device ordinal|invalid device ordinal|CUDA_ERROR_INVALID_DEVICE\b|cudaErrorInvalidDevice\b|AssertionError: Invalid device id|device >= 0 && device < num_gpus|local rank \d{0,4} ?is out of bounds|(?:larger|greater|more) than the number of (?:available )?GPUs|Invalid CUDA 'device=|Device index must be \d",
        ),
        says("same-gpu-twice", "duplicate gpu detected", r"Duplicate GPU detected ?: ?rank (?P<one>\d{1,6}) and rank (?P<other>\d{1,6}) both on CUDA device (?P<device>\w{1,16})"),
        says(
            "ray-has-no-gpu",
            ("exceeds the total number of available gpus", "current node has no gpu", "does not allocate any gpus", "required gpus exceeds", "no available node types can fulfill", "every node should have a gpu", "less than total desired gpus", "cannot provide a placement group"),
            r"(?:required )?GPUs exceeds the total number of available GPUs|Current node has no GPU available|Ray does not allocate any GPUs|Every node should have a GPU|Total available GPUs \d{1,5} is less than total desired GPUs|No available node types can fulfill resource requests?[^\n]{0,40}GPU|Cannot provide a placement group[^\n]{0,80}GPU",
        ),
    ],
)  # fmt: skip
def no_device_visible(
    case: Case, access: GpuAccess | Unknown, environment: Environment | Unknown, gpus: Gpus | Unknown, torch: Torch | Unknown, setup: ContainerSetup | Unknown
) -> Judgement:  # fmt: skip
    """The driver works, and this process is shown no GPU (or too few): by CUDA_VISIBLE_DEVICES, or by when it first asked.

    How it shows itself
      `RuntimeError: No CUDA GPUs are available`; `no CUDA-capable device is detected` (100, CUDA_ERROR_NO_DEVICE);
      vLLM's `Failed to infer device type`, SGLang's `No accelerator (CUDA, XPU, HPU) is available`, JAX's `No visible GPU
      devices`. With too few GPUs left: `invalid device ordinal`, `device >= 0 && device < num_gpus`.

    Why it happens
      CUDA_VISIBLE_DEVICES is empty, -1, or names an index that is not there (CUDA stops at the first one that is
      invalid). Ray gives actors without GPUs an empty one; a program that asks torch.cuda anything before its engine
      sets the variable keeps "no device" for ever, even by importing a module that asks.

    How to be sure
      nvidia-smi lists the GPUs (it ignores the variable), and the failing process has the variable:
      `tr '\\0' '\\n' < /proc/PID/environ | grep CUDA_VISIBLE`. Where it is unset and the process runs in a container, the
      container was not given the GPUs.

    What helps
      Unset or correct the variable where the service is started. In Ray: give the actor its GPUs (num_gpus), touch
      torch.cuda only after the engine exists, import the engine inside the actor.

    What does not help
      Reinstalling the driver, CUDA or torch; another model.

    Not to be confused with
      container-gpu-not-passed (the container has no GPU devices), driver-too-old, a torch built without CUDA
      (`Torch not compiled with CUDA enabled`).
    """
    seen = _seen(case, environment, gpus)
    match = place.earliest(case, "variable-hides-all", "variable-unreadable", "same-gpu-twice")
    if match is None:
        match = place.earliest(case, "ordinal-out-of-range", "ray-has-no-gpu", errors.NO_DEVICE.name) or place.earliest(case, "no-gpu-found", errors.START_FAILS.name)  # fmt: skip
    if match is None or _is_of_another(case, match, seen):
        return None
    if match.sign in (errors.NO_DEVICE.name, "no-gpu-found") and not seen.hides_all:
        told = case.found(errors.TOLD_BY_TORCH.name)
        if told is not None:
            return RuledOut("CUDA itself failed before, and torch says with which error", (case.evidence(told, "why CUDA did not start"),))  # fmt: skip
    where = place.read_surroundings(case)
    quoted = case.evidence(match, _MEANING.get(match.sign, "the process is shown no GPU"))  # fmt: skip
    excluded = _excluded(match, access, torch, setup, quoted, seen)
    if excluded is not None:
        return excluded
    is_ray = match.sign == "ray-has-no-gpu" or (match.sign != "same-gpu-twice" and _is_ray(case, match))
    certainty, strength = _certainty(case, match, access, where, seen, is_ray)
    smi = access.shown("nvidia_smi.host", "nvidia_smi.container") if isinstance(access, GpuAccess) else ()
    is_open = certainty is not Certainty.PROVEN
    return Verdict(
        certainty=certainty,
        component="ray" if is_ray else _reads_the_variable(case, match) or "user-program",
        title=f"The process sees no GPU: {_reason(seen, match, is_ray)}",
        chain=(
            Link(_reason(seen, match, is_ray), seen.evidence or (quoted if match.sign.startswith("variable") else inferred("nobody looked at the environment of the process"))),
            Link("CUDA lists no device (or too few) to this process", quoted),
        ),
        evidence=(quoted, *((seen.evidence,) if seen.evidence is not None else ()), *smi),
        explains=case.explains(match),
        missing=_missing(case, is_ray) if is_open else (),
        rivals=("container-gpu-not-passed", "driver-too-old", "driver-uvm-broken") if is_open else (),
        remedies=_remedies(case, match, seen, is_ray),
        not_remedies=(
            NotARemedy("reinstalling the driver, CUDA or torch", "they work; the process is only not shown the device"),
            NotARemedy("another model or fewer layers on the GPU", "no GPU is in use at all"),
        ),
        strength=strength,
    )  # fmt: skip


def _reads_the_variable(case: Case, match: Match) -> str | None:
    """The program that cannot read the variable's value, where that is the failure: another one could."""
    return case.component_near(match, None) if match.sign == "variable-unreadable" else None


_MEANING = {
    "ordinal-out-of-range": "the process is shown fewer GPUs than it asks for",
    "same-gpu-twice": "two ranks took the same GPU",
}


class Variable(Struct, frozen=True):
    """CUDA_VISIBLE_DEVICES of the failing process. ``value`` None: unset or not known (``is_known``)."""

    is_known: bool
    value: str | None
    evidence: Evidence | None
    beyond: str | None
    """An index in it that does not exist."""

    @property
    def hides_all(self) -> bool:
        return self.value is not None and self.value.strip().lower() in ("", "-1", "none", "void", "nodevfiles")


def _seen(case: Case, environment: Environment | Unknown, gpus: Gpus | Unknown) -> Variable:
    listed = len(gpus.devices) if isinstance(gpus, Gpus) and len(gpus.devices) > 0 and isinstance(case.fact("gpus"), Fact) else None  # fmt: skip
    count = _given_to_container(case) or listed
    if isinstance(environment, Environment):
        value = environment.get(_VARIABLE)
        if not isinstance(value, Unknown):
            return Variable(True, value, environment.evidence.get(_VARIABLE), _beyond(value, count))
    for name, line in place.lines(case):
        text = line.text[: place.LONGEST]
        found = _VALUE_SEEN.search(text) if _VARIABLE in text else None
        if found is not None and not line.text.lstrip().startswith(("#", "if ", "for ")):
            value = found["value"]
            if value or found["quote"]:
                return Variable(True, value, place.quoted(name, line, "the variable as the text shows it"), _beyond(value, count))  # fmt: skip
    return Variable(False, None, None, None)


_GIVEN = lazy_pattern(r"--gpus[= ]\s?['\"\\]{0,4}device=(?P<devices>[\w-]{1,60}(?:,[\w-]{1,60}){0,15})")


def _given_to_container(case: Case) -> int | None:
    """How many GPUs the start of the container names. Inside they count from 0, whatever their numbers are on the host."""
    for _, line in place.lines(case):
        found = _GIVEN.search(line.text[: place.LONGEST]) if "device=" in line.text else None
        if found is not None:
            return len(found["devices"].split(","))
    return None


def _beyond(value: str | None, count: int | None) -> str | None:
    if not value or count is None:
        return None
    return next((index for index in value.split(",") if index.strip().isdigit() and int(index) >= count), None)


def _is_ray(case: Case, match: Match) -> bool:
    texts = [match.line.raw[:500], match.text[:500], *(frame.path for frame in match.frames)]
    if any(_RAY.search(text) for text in texts):
        return True
    processes = " ".join(map(str, case.facts.value("processes") or ()))
    return bool(re.search(r"\bRay\b", processes)) or any(_RAY_PREFIX.search(line.raw[:300]) or _RAY.search(line.text[:300]) for line in case.lines_around(match, 60, 30) if "(EngineCore" not in line.raw)  # fmt: skip


def _excluded(
    match: Match, access: GpuAccess | Unknown, torch: Torch | Unknown, setup: ContainerSetup | Unknown, quoted: Evidence, seen: Variable
) -> RuledOut | None:  # fmt: skip
    if isinstance(torch, Torch) and torch.is_cpu_only and match.sign == "no-gpu-found":
        return RuledOut("this torch was built without CUDA", (*torch.evidence, quoted))
    if seen.hides_all:
        return None
    if isinstance(setup, ContainerSetup) and (setup.has_no_gpus or setup.lacks_compute):
        return RuledOut("the container was not given the GPUs", (*setup.shown("container.gpus", "container.capabilities"), quoted))  # fmt: skip
    if isinstance(access, GpuAccess):
        if access.is_libcuda_known and access.libcuda is None:
            return RuledOut("there is no libcuda in this place", (*access.shown("libcuda_path"), quoted))
        if access.smi_host is False:
            return RuledOut("the driver does not work on the host either", (*access.shown("nvidia_smi.host"), quoted))
        if access.smi_container is False:
            return RuledOut("nvidia-smi, which ignores the variable, fails in the container too", (*access.shown("nvidia_smi.container"), quoted))  # fmt: skip
    if seen.is_known and seen.value is None and match.sign == errors.NO_DEVICE.name and isinstance(setup, ContainerSetup):  # fmt: skip
        return RuledOut("CUDA_VISIBLE_DEVICES is not set in the failing process", (quoted,))
    return None


def _certainty(
    case: Case, match: Match, access: GpuAccess | Unknown, where: Surroundings, seen: Variable, is_ray: bool
) -> tuple[Certainty, int]:  # fmt: skip
    works = isinstance(access, GpuAccess) and (access.smi_host or access.smi_container)
    if match.sign == "variable-hides-all":
        return Certainty.LIKELY, 82
    if match.sign == "variable-unreadable":
        return Certainty.LIKELY, 76
    if match.sign == "same-gpu-twice":
        return Certainty.LIKELY, 72
    if seen.hides_all or seen.beyond is not None:
        is_fact = isinstance(case.fact(f"env.{_VARIABLE}"), Fact)
        return (Certainty.PROVEN if works and is_fact else Certainty.LIKELY), 80
    if match.sign == "ray-has-no-gpu":
        return Certainty.POSSIBLE, 52
    if match.sign == "ordinal-out-of-range":
        return Certainty.POSSIBLE, 50
    is_listed = works or place.any_listing(case) is not None
    strength = 50 if match.sign == errors.NO_DEVICE.name else 40
    if is_ray:
        strength += 12
    elif is_listed:
        strength += 6
    elif where.is_container:
        strength -= 10
    return Certainty.POSSIBLE, strength


def _reason(seen: Variable, match: Match, is_ray: bool) -> str:
    if seen.hides_all:
        return f"CUDA_VISIBLE_DEVICES is {seen.value!r} in the failing process"
    if seen.beyond is not None:
        return f"CUDA_VISIBLE_DEVICES names GPU {seen.beyond}, which does not exist"
    if match.sign == "variable-hides-all":
        return "CUDA_VISIBLE_DEVICES hides every GPU from it"
    if match.sign == "variable-unreadable":
        return "CUDA_VISIBLE_DEVICES holds a value that the program cannot read"
    if match.sign == "same-gpu-twice":
        return "two ranks chose the same one: each has to set its device from its local rank, and the host needs a GPU for each"
    if is_ray:
        return "Ray gave the actor no GPU, or CUDA was asked before the engine set CUDA_VISIBLE_DEVICES"
    return "its environment hides the GPUs (CUDA_VISIBLE_DEVICES), or it asked CUDA too early"


def _missing(case: Case, is_ray: bool) -> tuple[Missing, ...]:
    asked = (
        case.missing(f"env.{_VARIABLE}", "whether the variable hides the GPUs", f"tr '\\0' '\\n' < /proc/PID/environ | grep {_VARIABLE}"),
        case.missing("nvidia_smi.host", "whether the driver lists the GPUs", "nvidia-smi -L"),
        case.missing("nvidia_smi.container", "whether the container has the GPUs", "docker exec NAME nvidia-smi -L") if not is_ray else None,
        case.missing("processes", "who asked CUDA first, and in which process", "ray list actors --detail") if is_ray else None,
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _remedies(case: Case, match: Match, seen: Variable, is_ray: bool) -> tuple[Remedy, ...]:
    variable = Remedy(
        kind="env", name=_VARIABLE, value="unset" if seen.beyond is None else "existing indices",
        summary="Take the variable out of the service's environment, or name the GPUs that exist (nvidia-smi -L counts from 0)",
        check=("python -c 'import torch; print(torch.cuda.device_count())'",), is_sure=seen.hides_all or seen.beyond is not None,
    )  # fmt: skip
    if not is_ray:
        early = Remedy(
            kind="patch", name="user program", value="set CUDA_VISIBLE_DEVICES before torch is imported",
            summary="Set the variable before the first import that asks CUDA, and start worker processes by spawn", is_sure=False,
        )  # fmt: skip
        if match.sign == "same-gpu-twice":
            own = Remedy(kind="patch", name="user program", value="torch.cuda.set_device(LOCAL_RANK)", summary="Let each rank take the GPU of its local rank before it joins the group", is_sure=False)  # fmt: skip
            each = Remedy(kind="env", name=_VARIABLE, value="one GPU for each rank", summary="Show the processes as many GPUs as there are ranks on the host (none twice)", is_sure=False)  # fmt: skip
            return (own, each, _fewer_ranks(case, match, is_sure=False))
        if match.sign == "ordinal-out-of-range":
            return (variable, _fewer_ranks(case, match), early)
        return (variable, early)
    gpus = Remedy(
        kind="config", name="num_gpus", value="the GPUs the actor needs", is_sure=match.sign == "ray-has-no-gpu",
        summary="Ask Ray for the actor's GPUs (num_gpus of @ray.remote or of the pool; ray start --num-gpus on every node)",
    )  # fmt: skip
    late = Remedy(
        kind="patch", name="user program", value="no torch.cuda call before the engine exists",
        summary="In the actor: import the engine inside __init__, and call nothing of torch.cuda before it exists",
    )  # fmt: skip
    if match.sign == "ray-has-no-gpu" and ("exceeds" in match.text or "desired" in match.text):
        return (_fewer_ranks(case, match), gpus)
    asked_early = any("torch.cuda" in text for text in fact_texts(case, "processes"))
    return (late,) if asked_early else (gpus, late)


_RANKS = {"vllm": "--tensor-parallel-size", "sglang": "--tp-size", "tensorrt-llm": "--tp_size", "lmdeploy": "--tp", "llama.cpp": "--main-gpu"}  # fmt: skip


def _fewer_ranks(case: Case, match: Match, *, is_sure: bool = True) -> Remedy:
    """One rank for each GPU that is visible."""
    return Remedy(
        kind="flag", name="--data-parallel-size-local" if "DP adjusted" in match.text else _RANKS.get(case.engine, "--tensor-parallel-size"), value="lower",
        summary="Start no more ranks on this machine than GPUs are visible to the process (times pipeline and data parallel size)",
        is_sure=is_sure,
    )  # fmt: skip


def _is_of_another(case: Case, match: Match, seen: Variable) -> bool:
    """The text says that the driver itself is missing; or it is a remark beside another failure: programs go on with the CPU."""
    is_plain = match.sign in ("no-gpu-found", errors.NO_DEVICE.name, errors.START_FAILS.name)
    if is_plain and not seen.hides_all and case.found("driver-itself-missing") is not None:
        return True
    return match.sign == "no-gpu-found" and match.event is None and case.incident.primary is not None
