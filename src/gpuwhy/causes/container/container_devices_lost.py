"""container-devices-lost: a running container loses access to its GPU devices, while the host keeps them."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.container import _place as place
from gpuwhy.causes.container._place import Surroundings
from gpuwhy.causes.driver import _cuda_errors as errors
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.gpu_access import GpuAccess
from gpuwhy.model.remedy import NotARemedy, Remedy

_RELOAD = lazy_pattern(r"daemon-reload|systemd\[1\]: Reloading\.|Reloading requested from client|systemd.{0,20}Reloading|systemctl (?:reload|enable|disable|mask)|unattended-upgrade|kubelet.{0,40}cgroup|needrestart", re.IGNORECASE)  # fmt: skip
_LATER = lazy_pattern(r"\b(?:after (?:an? |some |several |about |\d{1,3} )?(?:few |couple of )?(?:while|time|hours?|days?|minutes?|weeks?)|(?:loses?|lost|losing|disappear\w{0,4}|randomly|suddenly|intermittent\w{0,2}|stops? working|no longer)\b.{0,40}\b(?:gpus?|access|devices?|working|nvml|cuda)|works? (?:fine |well )?(?:at first|initially|for)|restart(?:ing)? the (?:container|pod)\b.{0,30}(?:fix|help|work|solve|resolve))", re.IGNORECASE)  # fmt: skip


@cause(
    "container-devices-lost",
    family="Container",
    signs=[
        says(
            "nvml-unknown-error",
            ("failed to initialize nvml: unknown error", "nvmlerror_unknown", "nvml: unknown error", "nvml_error_unknown", "nvml error: unknown error", "nvml vram init failure: 999", "nvml init failure: 999", "could not initialize nvml: unknown error", "nvmlinit"),
            r"Failed to initialize NVML: Unknown Error|NVMLError_Unknown\b|NVML_ERROR_UNKNOWN\b|[Nn]vml(?: error)?: [Uu]nknown [Ee]rror|nvml (?:vram )?init failure: ?999|nvmlInit\w{0,10}\W{1,4}.{0,40}[Uu]nknown [Ee]rror|initialize NVML: Unknown Error",
        ),
        errors.UNKNOWN_ERROR,
        says("device-not-permitted", ("/dev/nvidia",), r"/dev/nvidia(?:\d{1,2}|ctl|-uvm\S{0,10})\W{1,4}[^\n]{0,40}Operation not permitted|(?:open|access)\w{0,8}[^\n]{0,40}/dev/nvidia(?:\d{1,2}|ctl|-uvm)\b[^\n]{0,60}(?:Operation not permitted|EPERM)"),
    ],
)  # fmt: skip
def container_devices_lost(case: Case, access: GpuAccess | Unknown) -> Judgement:
    """A container that had its GPUs loses them while it runs: the host rewrote its device rules.

    How it shows itself
      `Failed to initialize NVML: Unknown Error` from nvidia-smi inside the container, hours or days after a good start;
      new CUDA processes in it get `CUDA unknown error` (999). nvidia-smi on the host works. Restarting the process
      inside changes nothing, a new container works.

    Why it happens
      With systemd as manager of control groups, the NVIDIA hook adds the devices to a container behind systemd's back.
      Any `systemctl daemon-reload` (a package update does one, often at night) makes systemd write the container's device
      rules again, without /dev/nvidia*. runc and kubelet updates of a running container (CPU manager) do the same.

    How to be sure
      In the container nvidia-smi fails and `ls -l /dev/nvidia*` still lists the files; on the host nvidia-smi works;
      `journalctl | grep -i reloading` shows a reload shortly before. `docker run` of the same image works.

    What helps
      Recreate the container. For good: CDI (mode "cdi" of the NVIDIA runtime, `--device nvidia.com/gpu=all`), or the
      devices given explicitly (--device /dev/nvidia0 ...), or `nvidia-ctk system create-dev-char-symlinks --create-all`, or
      cgroupfs as cgroup driver of Docker.

    What does not help
      Restarting the process inside the container, reinstalling the driver, CUDA_VISIBLE_DEVICES.

    Not to be confused with
      driver-uvm-broken (CUDA fails on the host too, NVML works), container-gpu-not-passed (never had the GPUs), gpu-lost
      (the host lost the card: `Unable to determine the device handle`).
    """
    match = place.earliest(case, "nvml-unknown-error", "device-not-permitted")
    if match is None:
        return _by_cuda(case, access)
    where = place.read_surroundings(case)
    quoted = case.evidence(match, "NVML cannot open the devices")
    excluded = _excluded(match, where, access, quoted)
    if excluded is not None:
        return excluded
    host = _host_works(case, access)
    reload = _reload(case)
    if host is not None and (where.is_container or _container_fails(access)):
        certainty, strength = Certainty.PROVEN if reload is not None or _says_container(match, where) else Certainty.LIKELY, 88  # fmt: skip
    elif where.is_container:
        certainty, strength = Certainty.LIKELY, 74 if reload is not None or _comes_later(case) else 66
    else:
        certainty, strength = Certainty.POSSIBLE, 52
    return _verdict(case, match, quoted, where, host, reload, certainty, strength)


def _by_cuda(case: Case, access: GpuAccess | Unknown) -> Judgement:
    """999 in a container: this cause only when the host works and the container does not."""
    match = place.earliest(case, errors.UNKNOWN_ERROR.name)
    if match is None:
        return None
    where = place.read_surroundings(case)
    quoted = case.evidence(match, "CUDA fails in the container")
    excluded = _excluded(match, where, access, quoted)
    if excluded is not None:
        return excluded
    host_cuda = isinstance(access, GpuAccess) and access.cuinit_host is True
    fails = _container_fails(access)
    host = _host_works(case, access)
    certainty, strength = Certainty.POSSIBLE, 28
    if where.is_container:
        strength = 58 if _comes_later(case) or _reload(case) else 44
    if fails and (host_cuda or host is not None):
        certainty, strength = Certainty.LIKELY, 80
    elif host_cuda and where.is_container:
        certainty, strength = Certainty.LIKELY, 66
    return _verdict(case, match, quoted, where, host, _reload(case), certainty, strength)


def _excluded(match: Match, where: Surroundings, access: GpuAccess | Unknown, quoted: Evidence) -> RuledOut | None:
    if where.is_container is False and where.is_sure:
        return RuledOut("it did not happen in a container", (quoted,))
    if not isinstance(access, GpuAccess):
        return None
    if access.smi_host is False:
        return RuledOut("nvidia-smi fails on the host as well", (*access.shown("nvidia_smi.host"), quoted))
    if access.cuinit_host is False:
        return RuledOut("CUDA fails on the host as well", (*access.shown("cuinit.host"), quoted))
    if access.smi_container and match.sign != "nvml-unknown-error":
        return RuledOut("nvidia-smi works in the container: it has its devices", (*access.shown("nvidia_smi.container"), quoted))  # fmt: skip
    return None


def _host_works(case: Case, access: GpuAccess | Unknown) -> Evidence | None:
    if isinstance(access, GpuAccess) and access.smi_host:
        return access.evidence["nvidia_smi.host"]
    if isinstance(access, GpuAccess) and access.cuinit_host:
        return access.evidence["cuinit.host"]
    return place.listing_on_host(case)


def _container_fails(access: GpuAccess | Unknown) -> bool:
    return isinstance(access, GpuAccess) and access.smi_container is False


def _says_container(match: Match, where: Surroundings) -> bool:
    return where.is_sure or (where.mark is not None and match.sign == "nvml-unknown-error")


def _comes_later(case: Case) -> bool:
    return any(_LATER.search(line.text[:500]) for _, line in place.lines(case))


def _reload(case: Case) -> Evidence | None:
    """A reload of systemd, in the journal or told in the report."""
    for key in ("journal", "kernel_log"):
        fact = case.fact(key)
        if isinstance(fact, Fact) and isinstance(fact.value, list | tuple):
            found = next((str(line) for line in fact.value if _RELOAD.search(str(line)[:500])), None)
            if found is not None:
                return Evidence("systemd was reloaded", found[:400], fact.evidence.place, fact.evidence.standing)
    return next((place.quoted(name, line, "systemd was reloaded") for name, line in place.lines(case) if _RELOAD.search(line.text[:500])), None)  # fmt: skip


def _verdict(
    case: Case, match: Match, quoted: Evidence, where: Surroundings, host: Evidence | None, reload: Evidence | None, certainty: Certainty, strength: int
) -> Verdict:  # fmt: skip
    is_open = certainty is not Certainty.PROVEN
    return Verdict(
        certainty=certainty,
        component="nvidia-container-toolkit",
        title="The running container has lost its GPU devices; the host still has them",
        chain=(
            Link("The host reloaded its units, and systemd wrote the container's device rules again", reload or inferred("the usual reason; no journal was shown")),
            Link("The rules no longer hold /dev/nvidia*, which the NVIDIA hook had added", host or inferred("nobody compared with the host")),
            Link("NVML and CUDA cannot open the devices in the container", quoted),
        ),
        evidence=(quoted, *(e for e in (host, reload) if e is not None)),
        explains=case.explains(match, *case.all(errors.UNKNOWN_ERROR.name)[:1]),
        missing=_missing(case) if is_open else (),
        rivals=("driver-uvm-broken", "container-gpu-not-passed") if is_open else (),
        remedies=_remedies(where),
        not_remedies=(
            NotARemedy("restarting the process inside the container", "the rules belong to the container"),
            NotARemedy("reinstalling the driver or torch", "the host works; only this container is locked out"),
        ),
        strength=strength,
    )  # fmt: skip


def _missing(case: Case) -> tuple[Missing, ...]:
    asked = (
        case.missing("nvidia_smi.host", "whether the host still has the GPUs", "nvidia-smi -L"),
        case.missing("nvidia_smi.container", "whether nvidia-smi fails in the container", "docker exec NAME nvidia-smi -L"),
        case.missing("journal", "whether units were reloaded shortly before", "journalctl -b | grep -i 'reloading'"),
        case.missing("cuinit.host", "whether CUDA works on the host", "python3 -c \"import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))\""),
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _remedies(where: Surroundings) -> tuple[Remedy, ...]:
    """What brings the devices back is sure and comes first; what keeps them is the engine's and the toolkit's release's."""
    what = "pod" if where.kind == "kubernetes" else "container"
    again = Remedy(
        kind="container", name="restart", value=f"recreate the {what}",
        summary=f"Recreate the {what}: the hook adds the devices again (until the next reload)", cost="the service in it stops", rank=0,
    )  # fmt: skip
    cdi = Remedy(
        kind="config", name="nvidia-container-runtime mode", value="cdi",
        summary="For good: give the devices by CDI, which the engine tells systemd of",
        commands=("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml", "nvidia-ctk config --in-place --set nvidia-container-runtime.mode=cdi"),
        undo=("nvidia-ctk config --in-place --set nvidia-container-runtime.mode=auto",), check=("nvidia-ctk cdi list",),
        is_sure=False, limits=("needs a container toolkit and an engine that know CDI",), cost="the container has to be created again",
    )  # fmt: skip
    links = Remedy(
        kind="config", name="nvidia-ctk create-dev-char-symlinks", value="--create-all", rank=1, is_sure=False,
        summary="Make the links in /dev/char by which systemd and runc find the devices (at every boot)",
        commands=("nvidia-ctk system create-dev-char-symlinks --create-all",),
    )  # fmt: skip
    driver = Remedy(
        kind="config", name="cgroup driver", value="cgroupfs", rank=2, is_sure=False,
        summary="Let the engine manage control groups itself: native.cgroupdriver=cgroupfs in /etc/docker/daemon.json", cost="the daemon is restarted",
    )  # fmt: skip
    devices = Remedy(
        kind="flag", name="--device", value="/dev/nvidia0", is_sure=False,
        summary="For good: give the devices explicitly as well: --device /dev/nvidia0 --device /dev/nvidiactl --device /dev/nvidia-uvm ...",
        cost="the container has to be created again",
    )  # fmt: skip
    if where.kind == "kubernetes":
        return (again, cdi, links)
    return (again, cdi, links, driver, devices)
