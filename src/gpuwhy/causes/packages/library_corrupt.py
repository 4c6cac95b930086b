"""library-corrupt: an installed shared library or a downloaded binary is truncated or damaged."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.causes.toolchain import _jit_caches as caches
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_FILE = r"[\w./+@~-]{1,300}"
_WEIGHTS = lazy_pattern(r"\.(?:safetensors|gguf|bin|pt|pth|ckpt|onnx|json)\b", re.IGNORECASE)
_DAMAGED = lazy_pattern(
    r"(?i)truncat|smaller|short|corrupt|damag|differ|mismatch|wrong (?:size|checksum)|incomplete|0 bytes|empty"
)
_WHOLE = lazy_pattern(r"(?i)^(?:ok|intact|complete|whole|matches|checksum ok|same size)\b")
_OF_THE_DRIVER = lazy_pattern(r"(?:^|/)lib(?:cuda|nvidia-[\w-]{1,40}|nvcuvid)\.so")
"""Libraries of the driver: an empty one is a mount point that an image kept, or a driver's installation to repair."""
_ROOM = 64 * 2**20


@cause(
    "library-corrupt",
    family="Packages",
    leads_to=("startup-timeout",),
    signs=[
        says("too-short", ("file too short", "is not a valid win32 application"), rf"(?P<file>{_FILE}): (?:cannot open shared object file: )?file too short|not a valid Win32 application\. Error loading \"(?P<file2>[^\"\n]{{3,300}})\""),
        says(
            "no-elf",
            ("invalid elf header", "elf load command", "elf file's phentsize", "cannot read file data", "file data: input/output error", "wrong elf class", "not properly aligned"),
            rf"(?P<file>{_FILE}): (?:invalid ELF header|ELF load command (?:past end of file|address/offset not properly aligned|alignment not page-aligned)|ELF file's phentsize not the expected size|cannot read file data(?:: (?P<reason>[\w/ ]{{3,40}}))?|file data: Input/output error)",
        ),
        says(
            "damaged-archive",
            ("badzipfile", "bad crc-32", "do not match the hashes", "while decompressing data", "crc check failed", "filesystem layer verification failed", "failed to register layer", "failed to extract layer", "failed size validation", "unexpected commit digest", "failed commit on ref"),
            rf"Bad CRC-32 for file '(?P<file>{_FILE})'|BadZipFile: (?P<what>.{{3,80}})|THESE PACKAGES DO NOT MATCH THE HASHES|Error -3 while decompressing data|CRC check failed|filesystem layer verification failed|failed to (?:register|extract) layer.{{0,200}}?(?:unexpected EOF|invalid|corrupt|checksum)|failed size validation|unexpected commit digest",
        ),
        says(
            "damaged-module",
            ("marshal data too short", "bad marshal data", "bad magic number in", "cannot contain null bytes", "null bytes"),
            rf"marshal data too short|bad marshal data|bad magic number in '(?P<module>[\w.]{{2,100}})'|source code (?:string )?cannot contain null bytes(?: \((?P<file>{_FILE}))?",
        ),
        says(
            "checksum",
            ("checksum", "sha256", "hash mismatch"),
            rf"(?:checksum|sha256|hash)(?: sum)? (?:mismatch|does not match|verification failed|check failed).{{0,120}}?(?P<file>{_FILE}\.(?:so[\d.]{{0,16}}|cubin|whl|zip|tar\.gz))|(?P<file2>{_FILE}\.(?:so[\d.]{{0,16}}|cubin|whl|zip|tar\.gz)).{{0,80}}?(?:checksum|sha256|hash) (?:mismatch|does not match)|(?:invalid|wrong|bad|mismatched) (?:checksum|sha256|hash) (?:for|of) (?P<file3>{_FILE})",
        ),
        says("loading", (".so", "dlopen"), rf"(?:[Ll]oad(?:ing|ed)|[Oo]pening|dlopen|mapping|importing)\b.{{0,60}}?(?P<file>(?:/|~/|\./)?{_FILE}\.so(?:\.\d{{1,5}}){{0,4}})"),
        says("bus-error", ("bus error", "sigbus"), r"\bBus error\b|\bSIGBUS\b|signal 7\b"),
    ],
)  # fmt: skip
def library_corrupt(case: Case) -> Judgement:
    """An installed shared library or a downloaded binary is truncated or damaged.

    How it shows itself
      `ImportError: .../lib.so: file too short`, `invalid ELF header`, `ELF load command past end of file`; a wheel with `Bad
      CRC-32`, an image layer with `verification failed`. A library that was cut off is also mapped without complaint, and the first
      touch of the missing part ends the process with `Bus error (core dumped)`: the last line before it names the library.

    Why it happens
      A download or a copy was interrupted, the disk was full, two processes wrote one file at once, or Git LFS left a pointer in
      place of the file. A package manager does not look at a file again once it is there.

    How to be sure
      `ls -l FILE` against the size in the package (`python -m pip show -f NAME`), `readelf -h FILE`, a fresh copy's checksum.
      For a bus error also `df /dev/shm`: with room there, and a library named just before, it is the library.

    What helps
      Delete the file and install again without pip's cache (`pip install --force-reinstall --no-cache-dir --no-deps NAME`).

    What does not help
      Installing again while the damaged download is in the cache; a larger /dev/shm when there is room in it.

    Not to be confused with
      shm-too-small (the usual source of "Bus error"), weights-missing-or-corrupt (model files), cache-dir-unusable (`failed to
      map segment`), library-missing.
    """
    for sign in ("too-short", "no-elf", "damaged-archive", "checksum", "damaged-module"):
        for match in case.all(sign):
            if not match.is_code and not _is_weights(match):
                return _stated(case, match)
    return _bus_error(case)


def _file_of(match: Match) -> str | None:
    return match.group("file") or match.group("file2") or match.group("file3")


def _is_weights(match: Match) -> bool:
    named = _file_of(match)
    return _WEIGHTS.search(named if named is not None else match.text) is not None


def _stated(case: Case, match: Match) -> Judgement:
    path = _file_of(match)
    quoted = case.evidence(match, "the file is not what it should be")
    known = _fact_of(case, path)
    if known is not None and _WHOLE.search(str(known.value)):
        return RuledOut(f"{path} is whole", (quoted, known.evidence))
    is_failure = parts.is_failure(case, match)
    is_plain = match.sign in ("too-short", "damaged-archive", "checksum") or "past end of file" in match.text
    if "Win32" in match.text:
        is_plain = False  # a 32-bit Python beside 64-bit libraries reads the same
    if match.sign == "damaged-archive" and not is_failure and case.incident.primary is not None:
        is_plain = False
    component = (
        parts.component_of(path) if path is not None and parts.component_of(path) not in ("cuda-toolkit",) else None
    )
    if path is not None and _OF_THE_DRIVER.search(path):
        return _verdict(case, match, quoted, path, "driver", Certainty.POSSIBLE, (), 40)
    component = component or _of_image(match) or case.component_near(match, case.engine or None)
    is_damaged = known is not None and _DAMAGED.search(str(known.value)) is not None
    if path is not None and caches.cache_of_path(path) is not None:  # what no package installed: jit-cache-stale
        return _verdict(case, match, quoted, path, component, Certainty.LIKELY, (), 45)
    is_shown = is_damaged or (is_plain and (is_failure or known is not None))
    certainty = Certainty.PROVEN if is_shown else Certainty.LIKELY
    seen = (known.evidence,) if known is not None and is_damaged else ()
    return _verdict(case, match, quoted, path, component, certainty, seen, 82 if is_plain or is_damaged else 66)


def _of_image(match: Match) -> str | None:
    return "container-image" if re.search(r"layer|size validation|commit digest|commit on ref", match.text) else None


def _bus_error(case: Case) -> Judgement:
    """A bus error right after a library was named as being loaded."""
    died = next((match for match in case.all("bus-error") if not match.is_code), None)
    if died is None:
        return None
    loading = _last_loaded(case, died)
    if loading is None:
        return None
    path = _file_of(loading)
    quoted = case.evidence(loading, "the last thing that was done before the bus error: this library was loaded")
    end = case.evidence(died, "a mapped page had nothing behind it")
    known = _fact_of(case, path)
    if known is not None and _WHOLE.search(str(known.value)):
        return RuledOut(f"{path} is whole", (quoted, known.evidence))
    is_damaged = known is not None and _DAMAGED.search(str(known.value)) is not None
    certainty = Certainty.PROVEN if is_damaged else Certainty.LIKELY if _shm_has_room(case) else Certainty.POSSIBLE
    seen = (end, *((known.evidence,) if known is not None else ()))
    return _verdict(
        case, loading, quoted, path, parts.component_of(path), certainty, seen, 75 if is_damaged else 58, died
    )


def _last_loaded(case: Case, died: Match) -> Match | None:
    """The library named last before the process died, within a few lines."""
    before = [m for m in case.all("loading") if m.place.path == died.place.path and 0 < died.line.number - m.line.number <= 5]  # fmt: skip
    return max(before, key=lambda match: match.line.number, default=None)


def _shm_has_room(case: Case) -> bool:
    room = case.facts.value("df./dev/shm")
    available = room.get("avail_bytes") if isinstance(room, dict) else None
    return isinstance(available, int) and available > _ROOM


def _fact_of(case: Case, path: str | None) -> Fact | None:
    """What was found at the path, by its whole name or its last part."""
    files = case.facts.group("files")
    if path is None:
        return None
    for known, fact in files.items():
        if known == path or known.rpartition("/")[2] == path.rpartition("/")[2]:
            return fact if fact.value is not None else None
    return None


def _verdict(
    case: Case, match: Match, quoted: Evidence, path: str | None, component: str | None, certainty: Certainty,
    seen: tuple[Evidence, ...], strength: int, symptom: Match | None = None,
) -> Judgement:  # fmt: skip
    name = (path or "").rpartition("/")[2] or "a file"
    subject = f"A file of {component}" if component else "A file"
    certainty = parts.capped(case, match, certainty, symptom)
    rivals = (
        () if certainty is Certainty.PROVEN else ("shm-too-small",) if symptom is not None else ("package-conflict",)
    )
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{name if path else subject} is truncated or damaged",
        chain=(
            Link(f"{name} was not written whole", seen[-1] if certainty is Certainty.PROVEN and seen else inferred("how it came about is not in the log")),
            Link("the loader maps or reads it, and fails", quoted),
            *((Link("the process ends with a bus error", seen[0]),) if symptom is not None and seen else ()),
        ),
        evidence=(quoted, *seen),
        explains=case.explains(match, symptom),
        missing=() if certainty is Certainty.PROVEN else _missing(case, path, is_bus_error=symptom is not None),
        rivals=rivals,
        remedies=_remedies(path, component, match),
        not_remedies=(
            NotARemedy("installing again with the damaged download in the cache", "the same bytes come from the cache: --no-cache-dir, or a fresh pull"),
        ),
        strength=strength,
    )  # fmt: skip


def _missing(case: Case, path: str | None, *, is_bus_error: bool) -> tuple[Missing, ...]:
    asked = [case.missing(f"files.{path}", "its size and checksum against the published file", f"ls -l {path}; sha256sum {path}")] if path else []  # fmt: skip
    if is_bus_error:
        asked.append(case.missing("df./dev/shm", "a full /dev/shm gives the same error", "df -B1 /dev/shm"))
    return tuple(each for each in asked if each is not None)


def _remedies(path: str | None, component: str | None, match: Match) -> tuple[Remedy, ...]:
    if component == "container-image":
        return (Remedy(kind="container", name="image", value="removed and pulled again", summary="Remove the image and pull it again", commands=("docker image rm IMAGE && docker pull IMAGE",)),)  # fmt: skip
    remedies = []
    name = (path or "").rpartition("/")[2]
    if path is not None and component == "nccl" and "/vllm/" in path:
        remedies.append(Remedy(kind="env", name="VLLM_NCCL_SO_PATH", value="libnccl.so.2 of nvidia-nccl-cu12", summary="Use the NCCL that torch requires, in place of the downloaded one"))  # fmt: skip
    if component is not None and component != "nccl" and (path is None or "packages/" in path or match.sign == "damaged-module"):  # fmt: skip
        package = parts.distribution_of(component)
        remedies.append(Remedy(kind="package", name=package, value="reinstall", summary=f"Install {package} again, without pip's cache", commands=(f"python -m pip install --force-reinstall --no-cache-dir --no-deps {package}",), check=(f"python -m pip show -f {package}",)))  # fmt: skip
    if name:
        remedies.append(Remedy(kind="files", name=name, value="delete and install again", summary=f"Delete {path}, and let it be installed or fetched again", check=(f"ls -l {path}",)))  # fmt: skip
    elif not remedies:
        remedies.append(Remedy(kind="cache", name="pip", value="delete", summary="Empty the installer's cache, and fetch the file again", commands=("python -m pip cache purge",)))  # fmt: skip
    return tuple(remedies)
