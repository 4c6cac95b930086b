"""disk-full: the file system of a cache, an image, a model or temporary files is full."""

# ruff: noqa: S108 - names of mounts in messages; nothing is written there

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.storage import _space as space
from gpuwhy.causes.storage._space import Space
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_ENOUGH = 20 * space.GIB
_LITTLE = 5 * space.GIB
_MEGABYTE = 10**6


class Holder(Struct, frozen=True):
    """What writes there: how it shows itself, what its place is called, and how it is moved."""

    name: str
    pattern: re.Pattern[str]
    variable: str
    volume: str


_HOLDERS = (
    Holder("docker", lazy_pattern(r"/var/lib/(?:docker|containerd|containers)|failed to register layer|failed to (?:extract|pull|copy|export|solve|unpack)|GetImageBlob|overlay2|\bdocker (?:pull|build|load|run)\b|ImagePull|buildkit|Error (?:response from daemon|processing tar file|committing)|containers/storage", re.IGNORECASE), "", "docker data-root"),
    Holder("pod", lazy_pattern(r"ephemeral[- ](?:local )?storage|DiskPressure|\bevict", re.IGNORECASE), "", "ephemeral-storage"),
    Holder("ollama", lazy_pattern(r"\.ollama\b|ollama/models|ollama (?:pull|create|run)\b", re.IGNORECASE), "OLLAMA_MODELS", "model volume"),
    Holder("pip", lazy_pattern(r"\bpip\d?\b|Could not install packages|\buv (?:pip|sync|add)\b|\.whl\b|wheel", re.IGNORECASE), "TMPDIR", "temporary files"),
    Holder("saving", lazy_pattern(r"[Ee]rror while serializing|PytorchStreamWriter|inline_container|torch\.save|save_pretrained|save_file\b|saving (?:the )?(?:model|checkpoint)", re.IGNORECASE), "", "output volume"),
    Holder("ray", lazy_pattern(r"/tmp/ray|raylet|object_spilling|file_system_monitor|object store", re.IGNORECASE), "RAY_TMPDIR", "/tmp/ray"),
    Holder("vllm", lazy_pattern(r"\.cache/vllm\b|VLLM_CACHE_ROOT", re.IGNORECASE), "VLLM_CACHE_ROOT", "vllm cache"),
    Holder("hub", lazy_pattern(r"huggingface|hf_hub|hf_xet|hf_transfer|snapshot_download|models--|\bxet\b|CAS service|blobs/|safetensors|modelscope|file_download|Fetching \d", re.IGNORECASE), "HF_HOME", "cache volume"),
    Holder("triton", lazy_pattern(r"triton/runtime/cache|\.triton\b|TRITON_CACHE", re.IGNORECASE), "TRITON_CACHE_DIR", "triton cache"),
    Holder("inductor", lazy_pattern(r"torchinductor|_inductor|torch_compile_cache", re.IGNORECASE), "TORCHINDUCTOR_CACHE_DIR", "inductor cache"),
    Holder("flashinfer", lazy_pattern(r"\.cache/flashinfer|flashinfer/jit", re.IGNORECASE), "FLASHINFER_WORKSPACE_BASE", "flashinfer cache"),
    Holder("extensions", lazy_pattern(r"torch_extensions|cpp_extension", re.IGNORECASE), "TORCH_EXTENSIONS_DIR", "torch_extensions"),
    Holder("checkpoint", lazy_pattern(r"PytorchStreamWriter|checkpoint|torch\.save|save_pretrained|\.pt\b|serialization\.py|engine\.plan|rank\d\.engine", re.IGNORECASE), "", "output volume"),
    Holder("temporary", lazy_pattern(r"(?:^|[\s'\"=<])/(?:var/)?tmp\b|tempfile|nvcc|cicc|tmpxft|ld: |cc1plus|temporary", re.IGNORECASE), "TMPDIR", "temporary files"),
)  # fmt: skip
_ANY = Holder("", lazy_pattern("$^"), "", "volume")
_WARNED = lazy_pattern(r"expected file size is: (?P<need>[\d.]{1,16}) MB\.? .{0,400}?only has (?P<has>[\d.]{1,16}) MB free", re.IGNORECASE)  # fmt: skip


@cause(
    "disk-full",
    family=space.FAMILY,
    signs=[
        space.NO_SPACE,
        says("hub-warns", ("free disk space", "expected file size"), r"Not enough free disk space to download the file"),
        says(
            "pod-evicted",
            ("ephemeral", "diskpressure", "disk pressure", "disk-pressure"),
            r"low on resource: (?:ephemeral-storage|nodefs|imagefs)|ephemeral local storage usage exceeds|[Ee]xceeded.{0,40}ephemeral|condition: \[?DiskPressure|node\.kubernetes\.io/disk-pressure|NodeHasDiskPressure|exceeds? (?:its |the )?.{0,30}ephemeral-storage|Insufficient ephemeral-storage",
        ),
        says(
            "writer-fails",
            ("pytorchstreamwriter", "file write failed", "unexpected pos", "failed to write", "short write", "error writing"),
            r"PytorchStreamWriter failed writing|inline_container\.cc.{0,80}(?:unexpected pos|file write failed)|(?:fatal|cannot|error)\W{1,4}(?:writing|write).{0,80}No space|(?:short write|failed to write).{0,80}(?:space|disk)",
        ),
        says(
            "nearly-full",
            ("over 95% full", "is full", "out of disk", "usable temporary directory", "disk usage", "100% /"),
            r"is over 95% full, available space: (?P<free>\d{1,15}(?:\.\d{1,6})?)(?: (?P<unit>GB))?;|(?:disk|volume|partition|file ?system|/\S{1,80}|drive) (?:is|was|got|became) (?:completely )?full\b|[Oo]ut of disk(?: space)?|No usable temporary directory found|^\S{1,80}\s{1,20}\S{1,12}\s{1,12}\S{1,12}\s{1,12}\S{1,8}\s{1,8}100% /(?!dev/shm|snap|sys|proc)",
        ),
    ],
    leads_to=("library-corrupt", "weights-missing-or-corrupt", "jit-cache-stale"),
)  # fmt: skip
def disk_full(case: Case) -> Judgement:
    """The file system of the model cache, the images, a build or temporary files is full.

    How it shows itself
      `OSError: [Errno 28] No space left on device`, `(os error 28)` from Rust parts (safetensors, hf-xet), `write ...: no space left on
      device` from Go (docker, ollama), `There is not enough space on the disk (os error 112)` on Windows, `Disk quota exceeded`. The hub's
      client only warns: `Not enough free disk space to download the file`, and goes on. A pod is `Evicted` for ephemeral storage.

    Why it happens
      Weights of some hundred GB go below the home directory, which is often the smallest disk; the download of a file and its
      copy, layers of an image and their unpacked form exist at the same time; /tmp holds what compilers and pip unpack.

    How to be sure
      `df -h PATH; df -i PATH` for the path that is named, where the process runs (in its container); a quota: `quota -s`.

    What helps
      Free space, or move that cache: HF_HOME, OLLAMA_MODELS, TMPDIR, docker's data-root, a larger volume of the pod. Then
      delete the half-written file, otherwise it is taken for whole.

    What does not help
      Starting the download again: it fills up again. Space on another disk than the one of the path.

    Not to be confused with
      shm-too-small (`No space left` from shared memory), cache-dir-unusable (`Permission denied`, `Read-only file system`),
      ulimit (`no space left` of inotify watches), weights-missing-or-corrupt and library-corrupt, which can follow.
    """
    match = _decisive(case)
    if match is None:
        return None
    path = space.path_of(match)
    known = space.space_of(case, path) if path else None
    seen = case.evidence(match, _STATEMENT.get(match.sign, "the file system has no space left"))
    if known is not None and known.available is not None and known.available > _ENOUGH and match.sign != "hub-warns":
        return RuledOut(f"{known.path} has {space.shown(known.available)} free", (known.evidence, seen))
    holder = _holder(case, match, path)
    certainty, strength = _certainty(case, match, path, known, holder)
    shm = space.shared_memory(case)
    against = (shm.evidence,) if not path and shm is not None and (shm.available or shm.size or space.GIB) < space.GIB else ()  # fmt: skip
    if against and certainty is not Certainty.PROVEN:
        certainty, strength = Certainty.POSSIBLE, strength - 20
    return Verdict(
        certainty=certainty,
        component="storage",
        title=_title(match, path, known),
        chain=(
            Link("The file system is full" + (f": {known.path}" if known is not None else ""), known.evidence if known is not None else seen),
            Link("What is written there is cut off, or refused", seen if known is not None else None),
        ),
        evidence=(seen, *((known.evidence,) if known is not None else ())),
        against=against,
        explains=case.explains(match, *(m for m in case.all(space.NO_SPACE.name) if not space.is_shared(m))),
        missing=() if certainty is Certainty.PROVEN else _missing(case, path),
        rivals=() if certainty is Certainty.PROVEN else ("shm-too-small", "cache-dir-unusable") if not path else ("cache-dir-unusable",),
        remedies=_remedies(holder, path),
        not_remedies=_IN_VAIN,
        notes=("Delete what was written half: the next start takes it for whole.",),
        strength=strength,
    )  # fmt: skip


_STATEMENT = {
    "hub-warns": "the file is larger than what is free there",
    "pod-evicted": "the pod used more of the node's disk than it may",
    "writer-fails": "a file could not be written to its end",
    "nearly-full": "the file system is full",
}


def _decisive(case: Case) -> Match | None:
    """The first refusal that is of a disk; then what only tells that it is nearly full."""
    refused = [
        match for match in case.all("hub-warns", space.NO_SPACE.name, "pod-evicted")
        if not match.is_code and match.line.level != "debug" and not space.is_of_other_tables(match)
        and (match.sign != space.NO_SPACE.name or not space.is_shared(match))
    ]  # fmt: skip
    if refused:
        return min(refused, key=lambda match: (match.place.path, match.line.number))
    weak = (m for m in case.all("writer-fails", "nearly-full") if not m.is_code and m.line.level != "debug")
    return next((match for match in weak if not _has_space(match) and not space.is_of_other_tables(match)), None)


def _has_space(match: Match) -> bool:
    """Ray warns at 95 percent, which can be terabytes."""
    free = match.group("free")
    if free is None:
        return False
    return float(free) * (10**9 if match.group("unit") or float(free) < 10**6 else 1) > _LITTLE


def _holder(case: Case, match: Match, path: str) -> Holder:
    texts = [path, match.text, *(frame.path for frame in match.frames), *(line.text[:400] for line in case.lines_around(match, 6, 3))]  # fmt: skip
    for text in texts:
        found = next((holder for holder in _HOLDERS if text and holder.pattern.search(text[:1600])), None)
        if found is not None:
            return found
    return _ANY


def _certainty(case: Case, match: Match, path: str, known: Space | None, holder: Holder) -> tuple[Certainty, int]:
    is_failure = case.incident.primary is None or (match.event is not None and match.event.id == case.incident.primary)
    if match.sign == "hub-warns":
        warned = _WARNED.search(" ".join((match.text, *(line.text for line in case.lines_around(match, 0, 2)))))
        is_short = warned is None or float(warned["need"]) > float(warned["has"])
        return (Certainty.PROVEN, 70) if is_short else (Certainty.POSSIBLE, 30)
    if match.sign == "pod-evicted":
        return Certainty.PROVEN, 76
    is_full = known is not None and known.available is not None and known.available < space.GIB
    if match.sign in ("writer-fails", "nearly-full"):
        is_writer = match.sign == "writer-fails" and "PytorchStreamWriter" in match.text
        return (Certainty.LIKELY, 62) if is_full or is_writer else (Certainty.POSSIBLE, 44)
    if is_full or path or holder.name or "os error 112" in match.text or "quota" in match.text.lower():
        return (Certainty.PROVEN, 80) if is_failure or is_full else (Certainty.LIKELY, 72)
    return Certainty.LIKELY, 58


def _title(match: Match, path: str, known: Space | None) -> str:
    if known is not None and known.available is not None:
        return f"{known.path} is full ({space.shown(known.available)} free)"
    if match.sign == "pod-evicted":
        return "The pod used up its share of the node's disk"
    return f"The file system of {path} is full" if path else "A file system is full"


def _missing(case: Case, path: str) -> tuple[Missing, ...]:
    place = path or "/"
    asked = (
        case.missing(f"df.{place}", "how much is free where the process writes", f"df -B1 {path or '/ /tmp ~'}"),
        None if path else case.missing("df./dev/shm", "whether it is shared memory that is full", "df -B1 /dev/shm"),
    )
    return tuple(each for each in asked if each is not None)


def _remedies(holder: Holder, path: str) -> tuple[Remedy, ...]:
    where = path.rpartition("/")[0] if path.count("/") > 1 else path
    free = Remedy(
        kind="files", name=holder.volume, value="free space",
        summary=f"Free space on the file system{f' of {where}' if where else ''}, and delete the half-written file",
        commands=(f"df -h {where or '/'}",), cost="check what is deleted",
    )  # fmt: skip
    found: list[Remedy] = []
    if holder.variable:
        found.append(Remedy(kind="env", name=holder.variable, value="larger volume", summary=f"Point {holder.variable} at a larger volume, in the environment of the service", check=(f"df -h ${holder.variable}",)))  # fmt: skip
    if holder.name == "pip":
        found.append(Remedy(kind="flag", name="--no-cache-dir", value="set", summary="Install without pip's cache, which doubles what is stored", is_sure=False, rank=2))  # fmt: skip
    if holder.name == "docker":
        found.append(Remedy(kind="config", name="data-root", value="larger volume", summary="Move docker's data (data-root in /etc/docker/daemon.json) to a larger volume", cost="the daemon restarts; images are loaded anew", rank=1))  # fmt: skip
        found.append(Remedy(kind="container", name="image", value="prune", summary="Remove images, containers and build caches that are not used", commands=("docker system df", "docker system prune -a"), cost="what is removed is downloaded again"))  # fmt: skip
    if holder.name == "pod":
        found.append(Remedy(kind="config", name="ephemeral-storage", value="higher", summary="A higher limit of ephemeral storage, or a volume for the cache", rank=0))  # fmt: skip
        found.append(Remedy(kind="config", name="cache volume", value="persistent volume", summary="Mount a volume for the model cache", rank=1))  # fmt: skip
    if holder.name in ("", "checkpoint", "saving"):
        found.append(Remedy(kind="hardware", name="storage", value="larger", summary="A larger disk or volume", is_sure=False))  # fmt: skip
    return (*found, free)


_IN_VAIN = (
    NotARemedy("starting the download or build again", "it fills the same file system again"),
    NotARemedy("space on another disk", "the file system of the path is what counts"),
)
