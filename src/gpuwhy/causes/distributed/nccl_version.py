"""nccl-version: the NCCL library that is loaded is unfit."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.distributed._hang_order import order
from gpuwhy.causes.distributed._log_lines import SHOWN, Seen, first, holding
from gpuwhy.knowledge import nccl
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.host import Gpus, Packages, Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

_PRINTED = lazy_pattern(r"NCCL (?:library )?version:? ?(?P<version>\d{1,2}\.\d{1,3}(?:\.\d{1,3})?(?:\+cuda[\d.]{2,6})?)|using nccl==(?P<version2>[\d.]{4,10})")  # fmt: skip
_PRINTED_BY_RANK = lazy_pattern(r"(?P<host>[\w.-]{1,80}):\d{1,9}:\d{1,9} (?:\[\d{1,4}\] )?NCCL INFO NCCL version (?P<version>\d{1,2}\.\d{1,3}(?:\.\d{1,3})?)")  # fmt: skip
_OTHER_REASON = lazy_pattern(r"out of memory|peer access|illegal memory|uncorrectable|nvls\.cc|system not yet initialized|busy or unavailable|initialization error|launch failure|ECC", re.IGNORECASE)  # fmt: skip
_NEEDS_NEWER_DRIVER = lazy_pattern(r"NCCL WARN .{0,60}Cuda failure.{0,20}driver version is insufficient", re.IGNORECASE)
"""Said by NCCL itself: for torch, which starts CUDA first, the driver was new enough."""
_EXPANDABLE = lazy_pattern(r"expandable_segments[:=]\s{0,3}True", re.IGNORECASE)


class Unfit(msgspec.Struct, frozen=True):
    """Why the loaded library does not do."""

    match: Match
    version: str | None
    why: str
    certainty: Certainty
    strength: int
    wanted: str
    """A constraint for the package: ``>=2.19.3``, ``match:torch``."""
    proof: Evidence | None = None
    is_mixed: bool = False
    """Ranks or processes load different releases."""


@cause(
    "nccl-version",
    family="Distributed",
    signs=[
        says(
            "refused-config",
            "invalid config",
            r"Invalid config (?:blocking|cgaClusterSize|minCTAs|maxCTAs|splitShare|netName|trafficClass|collnetEnable|CTAPolicy|shrinkShare|nvlsCTAs|\w{3,30}) attribute",
        ),
        says(
            "mixed-releases",
            ("mismatched nccl version", "nccl version mismatch", "bootstrap : message truncated", "different nccl version", "bootstrap: message truncated"),
            r"[Mm]ismatched NCCL version(?:s)? detected|NCCL version mismatch|Bootstrap ?: Message truncated|different NCCL versions?",
        ),
        says(
            "greeting-of-other-size",
            "message truncated",
            r"NCCL WARN Message truncated ?: received (?P<got>\d{1,9}) bytes instead of (?P<want>\d{1,9})",
        ),
        says(
            "lacks-function",
            ("undefined symbol: nccl", "undefined symbol:nccl", "symbol nccl", "pncclcomm", "has no attribute 'nccl", "no attribute 'nccl"),
            r"undefined symbol: ?p?(?P<function>nccl[A-Z]\w{2,40})|symbol lookup error.{0,300}\bp?(?P<function2>nccl[A-Z]\w{2,40})|symbol p?(?P<function3>nccl[A-Z]\w{2,40})[, ].{0,80}not (?:found|defined)",
        ),
        says(
            "call-failed",
            ("unhandled cuda error", "invalid argument, nccl version", "ncclunhandledcudaerror", "ncclinvalidargument", "nccl error: unhandled cuda"),
            r"unhandled cuda error|invalid argument, NCCL version|ncclUnhandledCudaError|ncclInvalidArgument",
        ),
        says(
            "closed-while-meeting",
            ("nccl warn",),
            r"NCCL WARN .{0,40}(?:socketProgress|Bootstrap|bootstrap|Connection closed by remote peer|connection closed|unexpected)",
        ),
        says("cuda-failure", "cuda failure", r"Cuda failure(?: \d{1,4})? ?'(?P<what>[^']{3,120})'|Cuda failure \d{1,4} '?(?P<what2>[\w ]{3,80})"),
        says(
            "not-loaded",
            ("load nccl library", "libnccl.so", "vllm_nccl_so_path", "libnccl"),
            r"Failed to load NCCL library from (?P<path>\S{1,300})|libnccl\.so(?:\.2)?: (?:cannot open shared object|wrong ELF class|invalid ELF header)|VLLM_NCCL_SO_PATH",
        ),
    ],
)  # fmt: skip
def nccl_version(case: Case, torch: Torch | Unknown, packages: Packages | Unknown, gpus: Gpus | Unknown) -> Judgement:
    """The NCCL library that is loaded is unfit: a second copy, a build for another CUDA, or a release with a known fault.

    How it shows itself
      `Invalid config blocking attribute value -2147483648`, `Mismatched NCCL version detected`, `undefined symbol:
      ncclCommWindowRegister`, `unhandled cuda error ... NCCL version 2.18.1` with `Cuda failure 'invalid argument'`, `Failed to
      load NCCL library from libnccl.so.2`.

    Why it happens
      torch is built against one release and loads whatever libnccl.so.2 is found first: a second package (nvidia-nccl-cu11
      beside -cu12, -cu12 beside -cu13 share one folder), a system or conda copy in LD_LIBRARY_PATH, a path in
      VLLM_NCCL_SO_PATH. An older one lacks functions or does not know torch's configuration. Some releases have bugs.

    How to be sure
      The version in the message or in `NCCL version 2.x` at the start, against the one that torch requires (`pip show torch`,
      `python -c 'import torch; print(torch.cuda.nccl.version())'`); `pip list | grep nccl`; `grep libnccl /proc/PID/maps`.

    What helps
      Remove the surplus copy and install the release that torch requires again; or the release that has the fix.

    What does not help
      Network settings, NCCL_P2P_DISABLE, another engine release with the same libraries.

    Not to be confused with
      custom-allreduce (the message is that of custom_all_reduce.cuh), fabric-manager-state (`invalid argument` in nvls.cc),
      package-conflict, gpu-oom-* (`Cuda failure 'out of memory'`), driver-too-old, cuda-major-mismatch (libcudart.so.NN).
    """
    unfit = _unfit(case, torch, gpus)
    if unfit is None:
        return None
    seen = case.evidence(unfit.match, unfit.why)
    surplus = _surplus(packages)
    name = f"NCCL {unfit.version}" if unfit.version else "The NCCL that is loaded"
    expected = _expected(torch)
    return Verdict(
        certainty=unfit.certainty,
        component="nccl",
        title=f"{name} does not fit: {unfit.why}",
        chain=(
            Link("Another NCCL than the one torch was built for is loaded, or one with a fault", surplus or unfit.proof or inferred("which file is loaded was not looked at")),
            Link(f"{name}: {unfit.why}", seen),
            Link("The communicator cannot be made"),
        ),
        evidence=tuple(each for each in (seen, unfit.proof, surplus) if each is not None),
        explains=case.explains(unfit.match, *case.all("call-failed", "cuda-failure", "refused-config")),
        missing=_missing(case, packages) if unfit.certainty is not Certainty.PROVEN and surplus is None else (),
        rivals=() if unfit.certainty is Certainty.PROVEN else ("custom-allreduce", "p2p-iommu"),
        remedies=_remedies(unfit, packages, expected),
        not_remedies=_IN_VAIN,
        strength=unfit.strength,
    )  # fmt: skip


def _unfit(case: Case, torch: Torch | Unknown, gpus: Gpus | Unknown) -> Unfit | None:
    mixed = case.found("mixed-releases")
    if mixed is not None and not mixed.is_code:
        return Unfit(mixed, None, "the ranks load different releases of NCCL", Certainty.PROVEN, 90, "match:torch", is_mixed=True)  # fmt: skip
    lacking = _lacks_function(case)
    if lacking is not None:
        return lacking
    differing = _differing_ranks(case)
    if differing is not None:
        return differing
    version = _printed(case)
    refused = case.found("refused-config")
    if refused is not None and not refused.is_code:
        return _refused_config(case, refused, version, torch)
    failed = _cuda_failure(case, version, torch, gpus)
    if failed is not None:
        return failed
    return _not_loaded(case)


def _lacks_function(case: Case) -> Unfit | None:
    match = next((m for m in case.all("lacks-function") if not m.is_code), None)
    if match is None:
        return None
    function = match.group("function") or match.group("function2") or match.group("function3") or ""
    since = nccl.FIRST_RELEASE_OF.get(function)
    why = f"it lacks {function}, which came with {since}" if since else f"it lacks {function}"
    return Unfit(match, _printed(case), why, Certainty.PROVEN if since else Certainty.LIKELY, 90, f">={since}" if since else "match:torch")  # fmt: skip


def _refused_config(case: Case, refused: Match, version: str | None, torch: Torch | Unknown) -> Unfit:
    """The configuration structure of a newer program. The line with the version decides, as it names the library."""
    call = next((m for m in case.all("call-failed") if not m.is_code), refused)
    known = nccl.fault(version, refused.text) if version else None
    expected = _expected(torch)
    is_older = _is_older(version, expected)
    why = known.what if known is not None else "it does not know the configuration that is passed to it"
    proof = _against(torch, version, expected) if is_older else case.evidence(refused, "the attribute that it refuses")
    return Unfit(call, version, why, Certainty.PROVEN if known is not None or is_older else Certainty.LIKELY, 90, f">={expected}" if expected else "match:torch", proof)  # fmt: skip


def _cuda_failure(case: Case, version: str | None, torch: Torch | Unknown, gpus: Gpus | Unknown) -> Unfit | None:
    """NCCL's own call of CUDA failed: a known fault of that release, or one that is not torch's."""
    call = next((m for m in case.all("call-failed", "cuda-failure") if not m.is_code), None)
    if call is None:
        return None
    details = " ".join([call.text[:1600], *(m.text[:400] for m in case.all("cuda-failure")), *(line.text[:200] for line in case.lines_around(call, 12, 12))])  # fmt: skip
    if _OTHER_REASON.search(details) or _EXPANDABLE.search(details) or _is_expandable(case):
        return None
    expected = _expected(torch)
    if case.found("cuda-failure") is None:
        return _bare(case, call, version, torch)
    known = nccl.fault(version, details, gpus.capability if isinstance(gpus, Gpus) else None) if version else None
    if known is not None:
        certainty = Certainty.LIKELY if known.fixed != "2.26.5" else Certainty.POSSIBLE
        return Unfit(call, version, known.what, certainty, 70, f">={known.fixed}", derived(f"a fault of releases up to {known.last}", "release notes and settled reports"))  # fmt: skip
    own = next((m for m in case.all("cuda-failure") if _NEEDS_NEWER_DRIVER.search(m.line.raw[:600])), None)
    if own is not None:
        why = "it was built for a newer CUDA than the driver has, while torch, which began before it, runs"
        return Unfit(own, version, why, Certainty.LIKELY, 72, "match:torch")
    if re.search(
        r"driver version is insufficient|unsupported toolchain|no kernel image|named symbol not found|invalid device function",
        details,
        re.IGNORECASE,
    ):
        why = "it is a build for another CUDA or for other GPUs"
        return Unfit(call, version, why, Certainty.POSSIBLE, 40, "match:torch")
    if version and expected and nccl.parse(version) != nccl.parse(expected):
        return Unfit(call, version, f"torch requires {expected}", Certainty.POSSIBLE, 50, "match:torch", _against(torch, version, expected))  # fmt: skip
    if re.search(r"invalid argument", details, re.IGNORECASE):
        return Unfit(call, version, "its call of CUDA is refused", Certainty.POSSIBLE, 35, "match:torch")
    return None


def _bare(case: Case, call: Match, version: str | None, torch: Torch | Unknown) -> Unfit | None:
    """A paste that ends at the line with the version, without `Last error:`. The release alone makes it more or less likely."""
    if version is None or call.sign != "call-failed" or order(case).other_failure is not None:
        return None
    expected = _expected(torch)
    if expected is not None and nccl.parse(version) == nccl.parse(expected):
        return None
    against = _against(torch, version, expected)
    if re.search(r"invalid argument, NCCL version|ncclInvalidArgument", call.text[:1600]):
        return Unfit(call, version, "it refuses an argument that is passed to it", Certainty.POSSIBLE, 50, f"=={expected}" if expected else "match:torch", against)  # fmt: skip
    known = nccl.suspected(version)
    if known is None and against is None:
        return None
    why = f"perhaps {known.what}" if known is not None else f"torch requires {expected}"
    return Unfit(call, version, why, Certainty.POSSIBLE, 35, f">={known.fixed}" if known else "match:torch", against)


def _differing_ranks(case: Case) -> Unfit | None:
    """Ranks that meet, and greet each other in messages of different sizes, or print different releases before they fail."""
    greeting = next((m for m in case.all("greeting-of-other-size") if not m.is_code), None)
    found: dict[str, Seen] = {}
    hosts: set[str] = set()
    for seen in holding(case, ("NCCL version",)):
        by_rank = _PRINTED_BY_RANK.search(seen.line.raw[:SHOWN])
        if by_rank is not None and by_rank["version"] not in found:
            found[by_rank["version"]] = seen
            hosts.add(by_rank["host"])
    printed = list(found.items()) if len(hosts) > 1 else []
    if greeting is not None:
        proof = printed[1][1].evidence(f"{printed[1][0]} here, {printed[0][0]} elsewhere") if len(printed) > 1 else None
        return Unfit(greeting, None, "a rank's greeting has another size than this release expects", Certainty.PROVEN if proof else Certainty.LIKELY, 80, "match:torch", proof, is_mixed=True)  # fmt: skip
    refused = case.found("closed-while-meeting")
    if len(printed) < 2 or refused is None or refused.is_code:
        return None
    proof = printed[1][1].evidence(f"{printed[1][0]} here, {printed[0][0]} elsewhere")
    return Unfit(refused, None, "the ranks load different releases of NCCL", Certainty.LIKELY, 65, "match:torch", proof, is_mixed=True)  # fmt: skip


def _not_loaded(case: Case) -> Unfit | None:
    match = next((m for m in case.all("not-loaded") if not m.is_code and ("Failed to load" in m.text or "libnccl.so" in m.text)), None)  # fmt: skip
    if match is None:
        return None
    return Unfit(match, None, "the library cannot be loaded", Certainty.POSSIBLE, 50, "match:torch")


def _is_expandable(case: Case) -> bool:
    value = case.facts.value("env.PYTORCH_CUDA_ALLOC_CONF")
    return isinstance(value, str) and bool(_EXPANDABLE.search(value))


def _printed(case: Case) -> str | None:
    """The release that the failing message names, else that NCCL printed at its start."""
    for match in case.all("call-failed", "refused-config"):
        found = _PRINTED.search(match.text[:1600])
        if found is not None:
            return found["version"] or found["version2"]
    seen = first(case, _PRINTED, ("NCCL version", "nccl==", "NCCL library version"))
    return (seen.groups.get("version") or seen.groups.get("version2")) if seen is not None else None


def _expected(torch: Torch | Unknown) -> str | None:
    return nccl.of_torch(torch.version) if isinstance(torch, Torch) and torch.version else None


def _is_older(version: str | None, expected: str | None) -> bool:
    one, other = nccl.parse(version or ""), nccl.parse(expected or "")
    return one is not None and other is not None and one < other


def _against(torch: Torch | Unknown, version: str | None, expected: str | None) -> Evidence | None:
    if not isinstance(torch, Torch) or version is None or expected is None:
        return None
    return derived(f"torch {torch.version} requires NCCL {expected}; {version} is loaded", "requirements of the torch wheel")  # fmt: skip


def _packages(packages: Packages | Unknown) -> dict[str, str]:
    if isinstance(packages, Unknown):
        return {}
    return {name: version for name, version in packages.versions.items() if version and re.fullmatch(r"(?:nvidia|vllm)-nccl(?:-cu\d\d)?", name)}  # fmt: skip


def _surplus(packages: Packages | Unknown) -> Evidence | None:
    """Two packages that put a libnccl.so.2 into one folder."""
    found = _packages(packages)
    if len(found) < 2 or isinstance(packages, Unknown):
        return None
    listed = ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
    return msgspec.structs.replace(packages.evidence[min(found)], statement=f"two NCCL packages are installed: {listed}")  # fmt: skip


def _missing(case: Case, packages: Packages | Unknown) -> tuple[Missing, ...]:
    if _packages(packages):
        return ()
    wanted = (
        case.missing("packages.nvidia-nccl-cu12", "which NCCL packages are installed", "python -m pip list | grep -i nccl"),
        case.missing("torch", "which release torch requires"),
    )  # fmt: skip
    return tuple(each for each in wanted if each is not None)


def _remedies(unfit: Unfit, packages: Packages | Unknown, expected: str | None) -> tuple[Remedy, ...]:
    found = _packages(packages)
    wanted = unfit.wanted if unfit.wanted.startswith(">=") else (f"=={expected}" if expected else unfit.wanted)
    remedies = [
        Remedy(
            kind="package", name="nvidia-nccl", value=wanted,
            summary="Remove surplus NCCL packages and install the fitting one again"
            + (f" ({', '.join(sorted(found))} are installed)" if len(found) > 1 else f" (nvidia-nccl-cu12 or -cu13, {wanted.replace('match:torch', 'the one that torch requires')})"),
            check=("python -m pip list | grep -i nccl", "python -c 'import torch; print(torch.cuda.nccl.version())'"),
            risk="medium",
        ),
        Remedy(kind="package", name="torch", value="newer", summary="Or a torch that brings a fitting release", cost="compiled extensions must be replaced too", risk="medium", is_sure=False, rank=5),
    ]  # fmt: skip
    if unfit.match.sign in ("not-loaded", "lacks-function"):
        remedies.insert(0, Remedy(kind="env", name="LD_LIBRARY_PATH", value="without the other NCCL", summary="Let no older copy come first: look at LD_LIBRARY_PATH, LD_PRELOAD, VLLM_NCCL_SO_PATH", is_sure=False))  # fmt: skip
        if "VLLM_NCCL_SO_PATH" in unfit.match.text or "Failed to load NCCL" in unfit.match.text:
            remedies.insert(0, Remedy(kind="env", name="VLLM_NCCL_SO_PATH", value="path of libnccl.so.2", summary="Name the library to load (or unset a wrong value)", rank=-1))  # fmt: skip
    if unfit.wanted == ">=2.26.5":
        remedies.insert(0, Remedy(kind="env", name="NCCL_CUMEM_HOST_ENABLE", value="0", summary="Let NCCL allocate host memory in the old way", is_sure=False))  # fmt: skip
    if unfit.is_mixed:
        remedies.insert(0, Remedy(kind="container", name="image", value="the same on all nodes", summary="Run the same image, or the same packages, on every node"))  # fmt: skip
    return tuple(remedies)


_IN_VAIN = (
    NotARemedy("network settings", "the library fails before it sends anything"),
    NotARemedy("NCCL_P2P_DISABLE=1", "it changes the path of the data, not the library"),
)
