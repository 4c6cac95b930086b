"""container-toolkit-missing: the container engine has no NVIDIA runtime, or one that it cannot run."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.container import _place as place
from gpuwhy.causes.container._place import Surroundings
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_SNAP = lazy_pattern(r"/snap/(?:bin/)?docker|/var/snap/docker|snap(?:d)?[ .]docker|docker.{0,20}\bsnap\b|snap (?:list|install|remove)\b.{0,40}docker", re.IGNORECASE)  # fmt: skip
_DESKTOP = lazy_pattern(r"docker[ -]desktop|desktop-linux|\.docker/desktop", re.IGNORECASE)
_ROOTLESS = lazy_pattern(r"rootless|\.config/docker|/run/user/\d{1,6}/(?:docker|podman)", re.IGNORECASE)


@cause(
    "container-toolkit-missing",
    family="Container",
    leads_to=("container-gpu-not-passed", "no-device-visible",),
    signs=[
        says("no-device-driver", "could not select device driver", r"could not select device driver ?(?:\\?[\"'](?P<driver>\w{0,40})\\?[\"'])?(?: with capabilities)?"),
        says(
            "unknown-runtime",
            ("unknown runtime", "unknown or invalid runtime", "runtimehandler", "no runtime for", "runtime \"nvidia", "runtime 'nvidia", "runtime nvidia", "runtime `nvidia", "runtime handler nvidia", "nvidia runtime"),
            r"[Uu]nknown (?:or invalid )?runtime (?:specified|name):? ?\W{0,3}nvidia|no runtime for \W{0,3}nvidia\W{0,3} is configured|RuntimeHandler \W{0,3}nvidia\W{0,3} not supported|runtime \W{0,3}nvidia\W{0,3} (?:not found|is not (?:configured|installed|registered|known))|unable to find runtime \W{0,3}nvidia|failed to find runtime handler nvidia|default OCI runtime \W{0,3}nvidia\W{0,3} not found|The server is not configured with the nvidia runtime",
        ),
        says(
            "runtime-not-executable",
            ("nvidia-container-runtime", "nvidia-container-cli", "nvidia-container-toolkit", "nvidia-ctk", "nvidia-cdi-hook"),
            r"(?:exec|fork/exec|executable|stat|starting hook|running hook|hook).{0,120}nvidia-(?:container-(?:runtime(?:-hook)?|cli|toolkit)|ctk|cdi-hook)\S{0,40}:? ?(?:executable file not found|no such file or directory|permission denied|not found)|nvidia-(?:container-(?:runtime(?:-hook)?|cli|toolkit)|ctk|cdi-hook)\W{0,4}(?::|,)? ?(?:executable file not found|no such file or directory|command not found)",
        ),
        says(
            "no-cdi-devices",
            ("unresolvable cdi devices", "cdi device injection failed", "failed to inject cdi", "cdi devices from", "gpu vendor", "cannot stat", "stat /usr/lib"),
            r"failed to discover GPU vendor from CDI|no known GPU vendor found|unresolvable CDI devices?(?: (?P<device>\S{1,80}))?|CDI device injection failed|failed to inject (?:CDI )?devices|\bstat \W?/usr/lib\S{0,100}/lib(?:EGL_nvidia|GLX_nvidia|cuda|nvcuvid|nvidia-[\w-]{2,40})\.so\.\d{3}\.[\d.]{2,10}\W{0,3}: [Nn]o such file",
        ),
        says(
            "hook-without-driver",
            ("nvidia-container-cli", "load library failed", "driver rpc error"),
            r"nvidia-container-cli(?:\.real)?: (?:initialization error: )?(?:load library failed: libnvidia-ml\.so|driver rpc error|initialization error: (?:driver (?:rpc )?error|WSL environment detected but no adapters))",
        ),
        says(
            "hook-misconfigured",
            ("nvidia-container-cli", "bpf_prog_query", "cgroup subsystem devices not found", "ldconfig"),
            r"failed to add device rules|bpf_prog_query\(BPF_CGROUP_DEVICE\) failed|cgroup subsystem devices not found|nvidia-container-cli(?:\.real)?: ldcache error|nvidia-container-cli(?:\.real)?: mount error: (?:failed to add device rules|open failed: /sys/fs/cgroup)|nvidia-container-cli(?:\.real)?: (?:container error: (?!stat|open)|permission error: )|open failed: /sbin/ldconfig",
        ),
        says(
            "hook-called-directly",
            "nvidia container runtime hook directly",
            r"invoking the NVIDIA Container Runtime Hook directly .{0,80}is not supported",
        ),
        says("nvml-blocked", "gpu access blocked by the operating system", r"GPU access blocked by the operating system"),
        says(
            "plugin-without-nvml",
            ("could not load nvml library", "detected non-nvml platform", "did you configure the nvidia container toolkit", "incompatible platform detected", "incompatible strategy detected"),
            r"[Cc]ould not load NVML library: libnvidia-ml|did you configure the NVIDIA Container Toolkit|Incompatible (?:platform|strategy) detected|Detected non-NVML platform",
        ),
        says("gpu-not-schedulable", "insufficient nvidia.com/gpu", r"Insufficient nvidia\.com/gpu"),
    ],
)  # fmt: skip
def container_toolkit_missing(case: Case) -> Judgement:
    """The container engine cannot give a GPU to a container: NVIDIA's container toolkit is missing or not configured.

    How it shows itself
      `could not select device driver "" with capabilities: [[gpu]]` from Docker; `unknown or invalid runtime name:
      nvidia`; `exec: "nvidia-container-runtime": executable file not found`; `unresolvable CDI devices
      nvidia.com/gpu=all` (podman, Docker with CDI); Kubernetes: `no runtime for "nvidia" is configured`, a device
      plugin that says `could not load NVML library` and registers no GPU. The hook itself: `nvidia-container-cli:
      initialization error: load library failed: libnvidia-ml.so.1`, `failed to add device rules`.

    Why it happens
      The package nvidia-container-toolkit is not installed; or it is, and the daemon was not told (nvidia-ctk runtime
      configure) or not restarted; or another daemon answers than the one that was configured: Docker from snap, Docker
      Desktop in its virtual machine, a rootless one. On podman no CDI description was generated.

    How to be sure
      `docker info | grep -i runtimes` must list nvidia, `docker context show` and `snap list docker` tell which daemon
      answers, `nvidia-ctk --version` whether the toolkit is there. nvidia-smi on the host works.

    What helps
      Install the toolkit, `nvidia-ctk runtime configure --runtime=docker` (containerd, crio likewise), restart the daemon.
      Remove the snap package of Docker. podman: `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`.

    What does not help
      Reinstalling the driver or CUDA, another image, CUDA inside the image.

    Not to be confused with
      container-gpu-not-passed (the runtime is there and was not asked), container-driver-files-in-image (`file exists`),
      driver-too-old (`unsatisfied condition: cuda>=`), driver-library-mismatch (`nvml error: driver/library version`).
    """
    order = ("no-device-driver", "unknown-runtime", "runtime-not-executable", "no-cdi-devices", "hook-called-directly", "hook-misconfigured", "hook-without-driver", "nvml-blocked")  # fmt: skip
    match = place.earliest(case, *order) or place.earliest(case, "plugin-without-nvml") or place.earliest(case, "gpu-not-schedulable")  # fmt: skip
    if match is None:
        return None
    where = place.read_surroundings(case)
    if match.sign == "gpu-not-schedulable" and (
        where.kind not in ("", "kubernetes") or _is_scheduled_later(case, match)
    ):
        return None
    quoted = case.evidence(match, _MEANING[match.sign])
    runtimes = case.fact("container.runtime")
    if match.sign in ("no-device-driver", "unknown-runtime") and isinstance(runtimes, Fact) and _has_nvidia(str(runtimes.value or "")):  # fmt: skip
        return RuledOut("the engine has the NVIDIA runtime", (runtimes.evidence, quoted))
    certainty, strength = _CERTAINTY[match.sign]
    daemon = _other_daemon(case)
    return Verdict(
        certainty=certainty,
        component=_component(match, daemon),
        title=_title(match, daemon),
        chain=(
            Link(_reason(match, daemon), inferred("nobody asked the daemon for its runtimes") if match.sign in ("no-device-driver", "unknown-runtime") else quoted),
            Link("The container is not started, or gets no GPU", quoted),
        ),
        evidence=(quoted,),
        explains=case.explains(match),
        missing=_missing(case, match),
        rivals=("container-gpu-not-passed", "driver-library-mismatch") if certainty is not Certainty.PROVEN else (),
        remedies=_remedies(match, where, daemon),
        not_remedies=(
            NotARemedy("reinstalling the driver or the CUDA toolkit", "the container engine was refused nothing by them"),
            NotARemedy("another image", "no image is started at all"),
        ),
        strength=strength,
    )  # fmt: skip


_MEANING = {
    "no-device-driver": "the daemon knows no driver that provides GPUs",
    "unknown-runtime": "the engine knows no runtime of that name",
    "runtime-not-executable": "a program of the toolkit is not where the engine looks for it",
    "no-cdi-devices": "no CDI description names these devices",
    "hook-without-driver": "the toolkit finds no driver library where it runs",
    "hook-misconfigured": "the toolkit's settings do not fit this system",
    "hook-called-directly": "this system needs the NVIDIA runtime, not the hook that --gpus calls",
    "nvml-blocked": "the container's rules keep NVML from the devices",
    "plugin-without-nvml": "the device plugin was not given the driver's library",
    "gpu-not-schedulable": "no node offers a GPU",
}
_CERTAINTY = {
    "no-device-driver": (Certainty.PROVEN, 92),
    "unknown-runtime": (Certainty.PROVEN, 90),
    "runtime-not-executable": (Certainty.PROVEN, 88),
    "no-cdi-devices": (Certainty.PROVEN, 86),
    "hook-without-driver": (Certainty.LIKELY, 70),
    "hook-misconfigured": (Certainty.LIKELY, 74),
    "hook-called-directly": (Certainty.LIKELY, 78),
    "nvml-blocked": (Certainty.POSSIBLE, 50),
    "plugin-without-nvml": (Certainty.LIKELY, 70),
    "gpu-not-schedulable": (Certainty.POSSIBLE, 35),
}


def _is_scheduled_later(case: Case, match: Match) -> bool:
    """All GPUs were in use, and then one became free: the pod was placed."""
    return any(
        "Successfully assigned" in line.text and line.number > match.line.number for _, line in place.lines(case)
    )


def _has_nvidia(runtimes: str) -> bool:
    """The list of runtimes holds nvidia. Prose that says it is missing, or names a snap, does not count.

    Nor does the bare name: that is what a start asked for (``--runtime nvidia``), and the daemon just refused it.
    """
    is_list = "nvidia" in runtimes.lower() and "--runtime" not in runtimes and runtimes.strip().lower() != "nvidia"
    return is_list and re.search(r"\b(?:no|not|without|missing|lacks?|only|snap)\b", runtimes, re.IGNORECASE) is None  # fmt: skip


def _other_daemon(case: Case) -> str:
    """``snap``, ``desktop`` or ``rootless`` when the text shows that such a daemon answers."""
    texts = [str(case.facts.value("container.runtime") or ""), *(line.text[: place.LONGEST] for _, line in place.lines(case))]  # fmt: skip
    for name, pattern in (("snap", _SNAP), ("desktop", _DESKTOP), ("rootless", _ROOTLESS)):
        if any(pattern.search(text) for text in texts):
            return name
    return ""


def _component(match: Match, daemon: str) -> str:
    """Docker's own refusals are its daemon's; what the toolkit's programs say is the toolkit's."""
    if match.sign == "no-device-driver" or daemon in ("snap", "desktop"):
        return "container-engine"
    return "nvidia-container-toolkit"


def _title(match: Match, daemon: str) -> str:
    if daemon == "snap":
        return "The Docker that answers is the snap package, which does not see the NVIDIA runtime"
    if daemon == "desktop":
        return "The Docker that answers is Docker Desktop, whose virtual machine has no NVIDIA runtime"
    if match.sign == "hook-misconfigured":
        return "NVIDIA's container toolkit is not configured for this system (control groups or ldconfig)"
    if match.sign == "hook-without-driver":
        return "NVIDIA's container hook finds no driver where the container engine runs"
    return "The container engine has no working NVIDIA runtime"


def _reason(match: Match, daemon: str) -> str:
    if daemon:
        return "Another daemon answers than the one that the toolkit was configured for"
    if match.sign in ("hook-called-directly", "hook-misconfigured", "hook-without-driver", "nvml-blocked"):
        return "NVIDIA's container toolkit is installed, and does not fit the place where it runs"
    return "NVIDIA's container toolkit is not installed, or the engine was not told of it and restarted"


def _missing(case: Case, match: Match) -> tuple[Missing, ...]:
    asked = [
        case.missing("container.runtime", "which daemon answers, and which runtimes it has", "docker info --format '{{json .Runtimes}} {{.OperatingSystem}} {{.DockerRootDir}}'; snap list docker"),
        case.missing("nvidia_smi.host", "whether the driver works on the host", "nvidia-smi"),
    ]  # fmt: skip
    if match.sign == "gpu-not-schedulable":
        asked.append(case.missing("journal", "why the device plugin offers no GPU", "kubectl -n kube-system logs -l name=nvidia-device-plugin-ds"))  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _remedies(match: Match, where: Surroundings, daemon: str) -> tuple[Remedy, ...]:
    if match.sign == "hook-misconfigured":
        return _settings_of_the_hook(match, daemon)
    if match.sign == "hook-called-directly":
        return (Remedy(kind="flag", name="--runtime", value="nvidia", summary="Start with --runtime nvidia (and NVIDIA_VISIBLE_DEVICES=all) instead of --gpus"), _toolkit())  # fmt: skip
    if match.sign == "no-cdi-devices":
        return (_cdi(), _toolkit())
    runtime = where.kind if where.kind in ("docker", "podman") else "docker"
    is_of_cluster = match.sign in ("plugin-without-nvml", "gpu-not-schedulable")
    if where.kind == "kubernetes" or (is_of_cluster and not where.kind):
        runtime = "containerd"
    if runtime == "podman":
        return (_cdi(), _toolkit())
    configure = Remedy(
        kind="config", name=f"{runtime} runtime nvidia", value="nvidia-ctk runtime configure",
        summary=f"Tell the daemon of the NVIDIA runtime, then restart it{' (as default runtime, or with a RuntimeClass nvidia)' if runtime == 'containerd' else ''}",
        commands=(f"nvidia-ctk runtime configure --runtime={runtime}{' --set-as-default' if runtime == 'containerd' else ''}", f"systemctl restart {runtime}"),
        undo=(f"# take the runtime nvidia out of {_SETTINGS.get(runtime, 'its settings')} again", f"systemctl restart {runtime}"),
        cost="running containers of the daemon may stop", check=("docker info | grep -i runtimes",) if runtime == "docker" else (),
    )  # fmt: skip
    restart = Remedy(
        kind="service", name=runtime, value="restart", summary="Restart the daemon: it reads its runtimes at start only",
        commands=(f"systemctl restart {runtime}",), cost="running containers of the daemon may stop",
    )  # fmt: skip
    found = [configure, restart, _toolkit()]
    if match.sign == "gpu-not-schedulable":
        found = [_PLUGIN, *found]
    if daemon == "snap" or (not daemon and match.sign == "no-device-driver"):
        found.append(Remedy(
            kind="system-package", name="docker snap", value="remove (use docker-ce)", is_sure=daemon == "snap", rank=0 if daemon == "snap" else 3,
            summary="Remove the snap package of Docker, and use the distribution's or Docker's own",
            commands=("snap list docker", "snap remove docker"), cost="containers and images of the snap are lost", risk="medium",
            limits=() if daemon == "snap" else ("only when `snap list docker` shows it",),
        ))  # fmt: skip
    if daemon == "desktop":
        found.append(Remedy(kind="config", name="docker context", value="default", summary="Use the Docker Engine of the host: docker context use default", rank=-1))  # fmt: skip
    return tuple(found)


_SETTINGS = {
    "docker": "/etc/docker/daemon.json",
    "containerd": "/etc/containerd/config.toml",
    "crio": "/etc/crio/conf.d",
}
"""Where nvidia-ctk writes the runtime that it adds."""

_PLUGIN = Remedy(
    kind="config", name="NVIDIA device plugin", value="install, or look at its log", rank=-1,
    summary="Look whether the nodes offer GPUs at all; without a device plugin (or GPU Operator) at work on them none does",
    commands=("kubectl describe nodes | grep -E '^Name:|nvidia.com/gpu'", "kubectl get pods -A -o wide | grep -E 'nvidia|gpu-operator'"),
    limits=("nodes that list nvidia.com/gpu have them all in use: free one, or ask for fewer",),
)  # fmt: skip


def _toolkit() -> Remedy:
    return Remedy(
        kind="system-package", name="nvidia-container-toolkit", value="install", rank=1,
        summary="Install NVIDIA's container toolkit on the host (from NVIDIA's package repository)",
        commands=("apt-get install nvidia-container-toolkit",), undo=("apt-get remove nvidia-container-toolkit",), check=("nvidia-ctk --version",), cost="root on the host",
    )  # fmt: skip


def _cdi() -> Remedy:
    return Remedy(
        kind="config", name="CDI specification", value="nvidia-ctk cdi generate",
        summary="Generate the description of the devices (again after every driver update)",
        commands=("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",), undo=("rm /etc/cdi/nvidia.yaml",), check=("nvidia-ctk cdi list",),
    )  # fmt: skip


def _settings_of_the_hook(match: Match, daemon: str) -> tuple[Remedy, ...]:
    newer = Remedy(
        kind="system-package", name="nvidia-container-toolkit", value="newer",
        summary="Upgrade the toolkit: releases from 1.8 on know control groups of version 2, later ones CDI", is_sure=False,
    )  # fmt: skip
    if "ldconfig" in match.text or "ldcache" in match.text:
        path = Remedy(
            kind="config", name="nvidia-container-cli.ldconfig", value="@/sbin/ldconfig",
            summary="In /etc/nvidia-container-runtime/config.toml: name the host's ldconfig (ldconfig.real exists on Ubuntu and Debian only)",
        )  # fmt: skip
        return (path, newer)
    groups = Remedy(
        kind="config", name="nvidia-container-cli.no-cgroups", value="true",
        summary="In /etc/nvidia-container-runtime/config.toml: leave control groups alone (a rootless engine may not change them)",
        limits=("with a root daemon the devices then have to be given by --device as well",), is_sure=daemon == "rootless",
    )  # fmt: skip
    return (groups, _cdi(), newer)
