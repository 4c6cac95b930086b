"""host-kernel-bug: a release of the host's kernel breaks pinning, RDMA or DMA although limits and driver are right."""

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.device._verdicts import FAMILY
from gpuwhy.causes.storage import _pinning as pinning
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.experiments import Experiments
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_CMA = lazy_pattern(r"\bCma(?P<what>Total|Free): {0,20}(?P<kilobytes>\d{1,12}) kB", re.IGNORECASE)
_RELEASE = lazy_pattern(r"\b\d{1,2}\.\d{1,3}(?:\.\d{1,3})?(?:-[\w.+~]{1,40}){0,4}\b")
_OF_KERNEL = lazy_pattern(r"\bkernel[ -](?:release |version |image |to |of )?v?\d{1,2}\.\d{1,3}|linux-image-\d|\bLinux version \d|\bLinux \S{1,60} \d{1,2}\.\d{1,3}\.", re.IGNORECASE)  # fmt: skip
_OLDER_WORKS = lazy_pattern(
    r"(?:works?|worked|fine|ok|no (?:issue|problem|error)s?|goes away|disappears?|resolved|fixed|solved)\b.{0,60}?\b(?:on|with|under|by|in|after|using|(?:booting|downgrad\w{2,4}|revert\w{2,4}|roll\w{2,5} back)(?: back)? (?:to|into)?)\b.{0,20}?\b(?:the )?(?:older |previous |old |earlier |stock )?(?:linux |ubuntu |hwe )?kernel\b"
    r"|(?:downgrad|revert|roll)\w{0,4}(?: back)? (?:the )?(?:linux )?kernel\b.{0,80}(?:fix|work|solve|help|resolve)|(?:after|since) (?:the |a |an )?(?:linux |ubuntu )?(?:kernel )(?:update|upgrade)|kernel regression|regression in (?:the )?(?:linux )?kernel|\bkernel \d\S{0,30} (?:breaks?|broke|is broken|introduced)",
    re.IGNORECASE,
)
_OOPS = r"BUG: (?:unable to handle|kernel NULL|soft lockup|Bad page|scheduling while)|kernel BUG at (?P<at>\S{1,80})|general protection fault.{0,80}|\bOops: |Unable to handle kernel|WARNING: CPU: \d{1,4} PID: \d{1,9} at (?P<warned>\S{1,80})"
_PINNING_CODE = lazy_pattern(r"mm/(?:gup|memory|migrate|cma|hmm|rmap|huge_memory|mmu_notifier)|pin_user_pages|\bib_(?:umem|uverbs|core)|\bumem|nvidia_p2p|dma_(?:map|buf)|iommu_|nvidia[-_]peermem|mlx5_ib|uvm_hmm|hmm_range", re.IGNORECASE)  # fmt: skip
_PEERMEM = r"nvidia_p2p_get_pages|pin_user_pages\w{0,10}.{0,60}(?:fail|returned|error|-\d)|get_user_pages\w{0,10}.{0,60}(?:fail|returned -)|ib_umem_get\w{0,10}.{0,60}(?:fail|-\d)|nv_?peer_?mem.{0,80}(?:Unknown symbol|disagrees|fail)"


class Contradiction(Struct, frozen=True):
    """CmaFree above CmaTotal: memory that the kernel gave to CMA behind its own accounting."""

    free: int
    total: int
    evidence: Evidence


@cause(
    "host-kernel-bug",
    family=FAMILY,
    leads_to=("rdma-link-fault", "startup-timeout",),
    signs=[
        *pinning.SIGNS,
        says("cma", ("cmafree", "cmatotal"), r"\bCma(?:Free|Total): {0,20}\d{1,12} kB"),
        says("oops", ("bug: ", "kernel bug at", "general protection fault", "oops: ", "unable to handle kernel", "warning: cpu:"), _OOPS),
        says("peer-pages", ("p2p_get_pages", "pin_user_pages", "get_user_pages", "ib_umem_get", "peer_mem", "peermem"), _PEERMEM),
        says("older-kernel-works", "kernel", _OLDER_WORKS.pattern),
        says("release", ("kernel", "linux-image", "linux version"), _OF_KERNEL.pattern),
        says("registration", ("ibv_reg_mr", "reg_dmabuf_mr", "cudahostregister", "cuda_host_register", "hostregister"), r"ibv_reg_\w{2,14}\b.{0,120}(?:Bad address|Invalid argument|errno (?:14|22))|(?:cudaHostRegister|cuMemHostRegister)\b.{0,120}(?:fail|error|invalid|not supported)"),
    ],
)  # fmt: skip
def host_kernel_bug(case: Case, experiments: Experiments | Unknown) -> Judgement:
    """A release of the host's kernel breaks pinning of memory, RDMA or DMA, although limits and driver are right.

    How it shows itself
      `ibv_reg_mr_iova2 failed with error Cannot allocate memory` while `ulimit -l` is unlimited and memory is free; a job that ran
      until the kernel was upgraded. /proc/meminfo contradicts itself (`CmaFree` above `CmaTotal`). Or the kernel log has an Oops or
      `kernel BUG at mm/gup.c` on the way through pinning, HMM or peer memory.

    Why it happens
      Pinning pages for a device moves them out of movable memory first. A kernel that counts such memory wrongly (kexec
      handover, KHO, gives its scratch pages to CMA) finds no room for them and refuses, whatever the limits say.

    How to be sure
      `uname -r`, `grep Cma /proc/meminfo`, the limit of the process in /proc/PID/limits, and the same job under the kernel of before.

    What helps
      The kernel of before, or one with the correction; where kexec handover is what takes the memory, `kho=off` on the kernel's command line.

    What does not help
      memlock, which is unlimited already; lower GPU memory fractions; shorter contexts.

    Not to be confused with
      ulimit (the limit of the process is low: the usual case of the same message), rdma-link-fault, p2p-iommu, host-oom-kill.
    """
    cma = _contradiction(case)
    pinned = next((match for match in case.all(pinning.VERBS.name) if not match.is_code), None)
    oops = next((match for match in case.all("oops") if not match.is_code and _is_on_the_way(case, match)), None)
    said = next((match for match in case.all("older-kernel-works") if not match.is_code), None)
    refused = pinned or next((m for m in case.all("peer-pages", "registration") if not m.is_code), None)
    is_mapping = refused is not None and refused.sign == "registration" and "ibv" not in refused.text
    if is_mapping and said is None and _older_works(experiments) is None:
        return None  # cudaHostRegister has many reasons of its own
    if refused is None and oops is None and not (cma is not None and case.incident.is_failure):
        return None
    limit, known = _memlock(case)
    if pinned is not None and isinstance(limit, int) and cma is None:
        seen = case.evidence(pinned, "memory could not be pinned")
        return RuledOut("the limit of locked memory of the process is low: that explains it", (*known, seen))
    older = _older_works(experiments)
    return _verdict(case, refused, oops, said, cma, limit, known, older)


def _verdict(
    case: Case, refused: Match | None, oops: Match | None, said: Match | None, cma: Contradiction | None,
    limit: int | str | None, known: tuple[Evidence, ...], older: Evidence | None,
) -> Judgement:  # fmt: skip
    is_pinning = refused is not None and refused.sign == pinning.VERBS.name
    symptom = refused or oops
    seen = case.evidence(symptom, "memory could not be pinned" if refused else "the kernel itself failed") if symptom else None  # fmt: skip
    certainty, strength = _certainty(refused, oops, said, cma, limit, older)
    release = case.fact_evidence("kernel_release", "the running kernel")
    told = case.evidence(said, "it came with another kernel") if said is not None else None
    reasons = [each for each in (cma.evidence if cma else None, older, told) if each is not None]
    shown = (*reasons, seen, *known, release) if cma is not None else (seen, *reasons, *known, release)
    return Verdict(
        certainty=certainty,
        component="kernel-linux",
        title="The kernel refuses to pin memory although no limit stands against it" if is_pinning else "The host's kernel fails under the driver or the network card",
        chain=(
            Link("The kernel counts memory as movable (CMA) that nobody reserved" if cma is not None else "A release of the kernel has a fault", reasons[0] if reasons else inferred("the release of the kernel is to be tried")),
            Link("Pages cannot be pinned for the device", seen),
            Link("The transport fails, and the engine with it"),
        ),
        evidence=tuple(each for each in shown if each is not None),
        explains=case.explains(refused, oops, *case.all(pinning.VERBS.name)),
        missing=() if certainty is Certainty.PROVEN else _missing(case, is_pinning=is_pinning),
        rivals=() if certainty is not Certainty.POSSIBLE else ("ulimit",) if is_pinning else ("gpu-xid-other", "p2p-iommu"),
        remedies=_remedies(case, cma),
        not_remedies=_IN_VAIN,
        strength=strength,
    )  # fmt: skip


def _certainty(
    refused: Match | None, oops: Match | None, said: Match | None, cma: Contradiction | None, limit: int | str | None, older: Evidence | None
) -> tuple[Certainty, int]:  # fmt: skip
    if cma is not None and refused is not None:
        return Certainty.PROVEN, 86
    if older is not None:
        return Certainty.PROVEN, 82
    if oops is not None:
        return (Certainty.LIKELY, 66) if said is not None else (Certainty.POSSIBLE, 48)
    if said is not None:
        return Certainty.LIKELY, 66
    if limit == "unlimited" and refused is not None and refused.sign == pinning.VERBS.name:
        return Certainty.LIKELY, 58
    return Certainty.POSSIBLE, 40 if cma is not None else 30


def _contradiction(case: Case) -> Contradiction | None:
    """CmaFree above CmaTotal, from the log or from the fact ``files./proc/meminfo``."""
    sizes: dict[str, int] = {}
    shown: dict[str, Evidence] = {}
    for match in case.all("cma"):
        for found in _CMA.finditer(match.text[:800]):
            what = found["what"].lower()
            sizes[what] = int(found["kilobytes"])
            shown[what] = Evidence("more of CMA is free than there is", match.text, match.place)
    fact = case.fact("files./proc/meminfo")
    if isinstance(fact, Fact) and fact.value:
        for found in _CMA.finditer(str(fact.value)[:4000]):
            what = found["what"].lower()
            sizes[what] = int(found["kilobytes"])
            shown[what] = Evidence("more of CMA is free than there is", found[0], fact.evidence.place or Place("facts", fact.key), fact.evidence.standing)  # fmt: skip
    if "free" not in sizes or "total" not in sizes or sizes["free"] <= sizes["total"]:
        return None
    return Contradiction(sizes["free"], sizes["total"], shown["free"])


def _memlock(case: Case) -> tuple[int | str | None, tuple[Evidence, ...]]:
    for key in ("memlock", "ulimit.memlock", "ulimit.l", "ulimit.-l"):
        fact = case.fact(key)
        if isinstance(fact, Fact) and fact.value is not None:
            return pinning.limit_in_bytes(str(fact.value)), (fact.evidence,)
    return None, ()


def _is_on_the_way(case: Case, match: Match) -> bool:
    """The kernel failed in what pins and maps memory, and not somewhere."""
    near = (match.text, *(line.text[:400] for line in case.lines_around(match, 2, 40)))
    return any(_PINNING_CODE.search(text) for text in near)


def _older_works(experiments: Experiments | Unknown) -> Evidence | None:
    """Another kernel, or an option of its command line, was tried and cured it."""
    if not isinstance(experiments, Experiments):
        return None
    return next((each.evidence for each in experiments.good if re.search(r"\bkernel\b|\bkho\b|linux[ -]\d|\b[4-7]\.\d{1,2}[.\d]*-", each.name, re.IGNORECASE)), None)  # fmt: skip


def _missing(case: Case, *, is_pinning: bool) -> tuple[Missing, ...]:
    asked = (
        case.missing("memlock", "the limit of locked memory of the failing process", "grep 'locked memory' /proc/PID/limits") if is_pinning else None,
        case.missing("kernel_release", "which kernel runs", "uname -r"),
        case.missing("files./proc/meminfo", "whether CmaFree is above CmaTotal", "grep Cma /proc/meminfo"),
        case.missing("tests.older kernel", "whether it works with the kernel of before", ""),
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _remedies(case: Case, cma: Contradiction | None) -> tuple[Remedy, ...]:
    cmdline = str(case.facts.value("kernel_cmdline") or "")
    running = str(case.facts.value("kernel_release") or "")
    handover = Remedy(
        kind="kernel", name="kho", value="off", is_sure=cma is not None, rank=0,
        summary="Boot with kho=off on the kernel's command line: without kexec handover the memory is not given to CMA",
        cost="root and a reboot", check=("grep Cma /proc/meminfo", "cat /proc/cmdline"),
    )  # fmt: skip
    older = Remedy(
        kind="kernel", name="linux", value="older", rank=1, is_sure=False,
        summary=f"Boot the kernel of before{f' (not {running})' if running else ''}, and hold its package until a corrected one is out",
        cost="root and a reboot", check=("uname -r",), limits=("the driver's module must exist for that kernel (DKMS)",),
    )  # fmt: skip
    if _is_of_hmm(case):
        hmm = Remedy(kind="kernel", name="uvm_disable_hmm", value="1", summary="Load nvidia_uvm with uvm_disable_hmm=1: it then keeps off the kernel's HMM", cost="root; the module is reloaded", is_sure=False)  # fmt: skip
        return (hmm, older)
    return (handover, older) if cma is not None and "kho=off" not in cmdline else (older,)


def _is_of_hmm(case: Case) -> bool:
    """The kernel failed in what lets the GPU reach pageable memory (HMM)."""
    lines = [line.text for match in case.all("oops")[:3] for line in (match.line, *case.lines_around(match, 2, 40))]
    return any(re.search(r"uvm_hmm|hmm_range", text[:400]) for text in lines)


_IN_VAIN = (
    NotARemedy("ulimit memlock unlimited", "the limit is not what refuses"),
    NotARemedy("lower GPU memory utilisation, a shorter context", "what is refused is the pinning of host memory"),
)
