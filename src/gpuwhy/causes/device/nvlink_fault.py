"""nvlink-fault: NVLink or NVSwitch reports fatal errors, or a link or its board is defective."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.device import _faults as faults
from gpuwhy.causes.device import _verdicts as verdicts
from gpuwhy.causes.device._verdicts import Reading
from gpuwhy.knowledge import xid_origins as origins
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.experiments import Experiments
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_STUCK = lazy_pattern(r"around after SIGKILL|(?:cannot|can't|can not|could not) be killed|\bkill -9 .{0,40}(?:no effect|does not|doesn't)", re.IGNORECASE)  # fmt: skip
_LINKED = lazy_pattern(
    r"\b(?:A100|A800|H100|H800|H200|H20|B100|B200|B300|GB200|GB300|GH200|V100|A40|A6000|RTX ?3090)\b"
)
_CLEAN = lazy_pattern(r"^\W{0,3}(?:0|none|no errors?|all 0|all zero|clean|ok|\[\])\b", re.IGNORECASE)
_COMES_BACK = lazy_pattern(r"comes? back|again|recurs?|returns|only for a while|temporar", re.IGNORECASE)


@cause(
    "nvlink-fault",
    family=verdicts.FAMILY,
    signs=[
        *faults.SIGNS,
        says("stuck", ("after sigkill", "be killed", "kill -9"), _STUCK.pattern),
        says(
            "counters",
            ("replay error", "crc error", "crc flit", "recovery error", "crc data"),
            r"Link \d{1,2}: .{0,12}?(?:Replay|Recovery|CRC \w{0,8} ?|CRC|ECC)\s?Errors?: [1-9]\d{0,18}\b|(?:Replay|Recovery|CRC FLIT|CRC Data) Errors?: {0,20}[1-9]\d{0,18}\b",
        ),
        says("peer-access", ("peer gpu memory over nvlink", "cuda_error_contained", "cudaerrorcontained"), r"cudaErrorContained|[Ii]nvalid access of peer GPU memory over nvlink|CUDA_ERROR_CONTAINED"),
        says("collective", ("cuda failure", "unhandled cuda error"), r"NCCL.{0,120}Cuda failure (?:\d{1,4} )?'?(?:unspecified launch failure|unknown error|an illegal memory access)|NCCL error.{0,160}unhandled cuda error|^Cuda failure (?:\d{1,4} )?'?unspecified launch failure"),
        says("links-down", ("links are inactive", "all links are in", "<inactive>"), r"all links are in-?active|Link \d{1,2}: <inactive>"),
    ],
    leads_to=("gpu-xid-other",),
)  # fmt: skip
def nvlink_fault(case: Case, experiments: Experiments | Unknown) -> Judgement:
    """NVLink or an NVSwitch has fatal errors: a link, its board, bridge or cable is defective, or a peer went away.

    How it shows itself
      Kernel log: Xid 74 (`NVLink: fatal error detected on link 2`), on newer GPUs Xid 144 to 150, NVSwitches `SXid ... Fatal, Link
      60`. Other processes get Xid 45 `caused by previous Xid 149`. CUDA: `uncorrectable NVLink error detected during the
      execution`. Without a look at the kernel log: a collective that hangs, and processes that even SIGKILL does not end.

    Why it happens
      A link cannot carry its traffic: a worn or badly seated bridge, a board or cable of the NVSwitches, heat, or a GPU
      that fails and takes its links along. The driver then tears down the channels of every process that uses the link.

    How to be sure
      `journalctl -k -b | grep -iE 'xid'`: the first line names the GPU and the link. `nvidia-smi nvlink -e` counts errors per link; the
      same link again after a reboot is defective.

    What helps
      A reset of all linked GPUs (Fabric Manager stopped) or a reboot clears it; then the field diagnostics, reseating, and
      replacing the bridge, board or GPU of the link that is named first. Until then run without that GPU.

    What does not help
      NCCL_P2P_DISABLE=1 keeps a job off the links, at the price of speed; fatal errors can come all the same. Another release of NCCL or of the engine.

    Not to be confused with
      gpu-xid-other (a GSP time-out, Xid 119, can follow link errors), gpu-lost (links of the peers fail when a GPU leaves
      the bus): the earliest line decides. fabric-manager-state: error 802, no fatal link errors.
    """
    reading = verdicts.read(case, origins.LINK)
    if reading is not None:
        return _reported(case, reading, experiments)
    if faults.lead(faults.read_faults(case)) is not None:
        return None
    counters = _counters(case)
    signs = ("counters", "stuck", "peer-access", *(("links-down", "collective") if _linked(case) is not None else ()))
    match = next((m for m in case.all(*signs) if not m.is_code), None)
    if match is None and counters is None:
        return None
    return _suspected(case, match, counters, experiments)


def _reported(case: Case, reading: Reading, experiments: Experiments | Unknown) -> Verdict:
    own = reading.own
    counters = _counters(case)
    where = "NVSwitch" if own.is_switch else "NVLink"
    return Verdict(
        certainty=reading.certainty,
        component="nvlink",
        title=f"{where} reports an error{verdicts.device(own)}{f': {own.name}' if own.name else ''}",
        chain=verdicts.chain(reading, "A link, or the board, bridge or cable it runs over, is at fault", f"{where} reports the error"),
        evidence=(*reading.evidence(f"{where} reports an error"), *((counters,) if counters else ())),
        against=reading.against,
        explains=faults.explained(case, reading.own_all),
        missing=verdicts.asked(case, reading, case.missing("nvlink_errors", "which link counts errors", "nvidia-smi nvlink -e")),
        rivals=reading.rivals,
        remedies=_remedies(experiments, is_board=own.is_switch),
        not_remedies=_IN_VAIN,
        notes=("An Xid 45 or 154 beside it only cleans up after this fault.",),
        strength=reading.strength,
    )  # fmt: skip


def _suspected(
    case: Case, match: Match | None, counters: Evidence | None, experiments: Experiments | Unknown
) -> Judgement:
    """Counters that tell of errors; or work that never returns, on GPUs that are linked."""
    seen = case.evidence(match, _STATEMENT[match.sign]) if match is not None else None
    counted = counters or (seen if match is not None and match.sign == "counters" else None)
    linked = _linked(case)
    is_sure = counted is not None
    missing = () if is_sure else _missing(case)
    shown = tuple(each for each in (seen, counters, linked) if each is not None)
    return Verdict(
        certainty=Certainty.LIKELY if is_sure else Certainty.POSSIBLE,
        component="nvlink",
        title="NVLinks count errors" if is_sure else "Work on linked GPUs never returns: an NVLink may be defective",
        chain=(
            Link("A link, or the board or bridge it runs over, is at fault", counted or inferred("nobody looked at the links")),
            Link("Work that crosses it never returns, or its processes are torn down", seen),
        ),
        evidence=shown,
        explains=tuple(sorted({*case.explains(match), *faults.explained(case, ())})),
        missing=missing,
        rivals=() if is_sure else ("fabric-manager-state",) if match is not None and match.sign == "links-down" else ("gpu-xid-other", "gpu-lost"),
        remedies=_remedies(experiments, is_board=True),
        not_remedies=_IN_VAIN,
        strength=60 if is_sure else 28 if match is not None and match.sign == "links-down" else 12 if match is not None and match.sign == "collective" else 40 if linked or match is None or match.sign == "peer-access" else 26,
    )  # fmt: skip


_STATEMENT = {
    "counters": "a link counts errors",
    "links-down": "the links of a GPU that has them are down",
    "stuck": "a process that SIGKILL does not end waits inside the driver",
    "peer-access": "an access to a peer's memory over NVLink failed",
    "collective": "a collective of linked GPUs fails without a reason",
}


def _counters(case: Case) -> Evidence | None:
    """The counters given as a fact, when they tell of errors."""
    fact = case.fact("nvlink_errors")
    if not isinstance(fact, Fact) or not fact.value or _CLEAN.search(str(fact.value)):
        return None
    return Evidence("links count errors", str(fact.value)[:400], fact.evidence.place or Place("facts", fact.key), fact.evidence.standing)  # fmt: skip


def _linked(case: Case) -> Evidence | None:
    """GPUs of a kind that is built with NVLink."""
    for key in ("gpu", "gpus"):
        fact = case.fact(key)
        if isinstance(fact, Fact) and _LINKED.search(str(fact.value)):
            return fact.evidence
    return case.fact_evidence("nvswitch") if case.facts.value("nvswitch") else None


def _missing(case: Case) -> tuple[Missing, ...]:
    asked = (
        faults.kernel_log_missing(case, "whether the driver reported an NVLink error (Xid 74, 144 to 150) or another one"),
        case.missing("nvlink_errors", "whether a link counts errors", "nvidia-smi nvlink -e"),
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _remedies(experiments: Experiments | Unknown, *, is_board: bool) -> tuple[Remedy, ...]:
    tried = experiments.tried if isinstance(experiments, Experiments) else ()
    in_vain = any("reboot" in each.name.lower() and _COMES_BACK.search(each.outcome) for each in tried)
    board = verdicts.replace("NVLink board", "Replace the board, bridge or cable that carries the link", "replace", 0 if is_board else 1)  # fmt: skip
    link = verdicts.replace("NVLink link", "Find the link that is named first: field diagnostics, error counters, reseat its bridge or GPU", "diagnose", 1 if is_board else 0)  # fmt: skip
    card = verdicts.replace(
        "gpu", "Replace the GPU when its links fail with another bridge or board, too", "replace", 2
    )
    clearing = () if in_vain else (verdicts.reboot(), verdicts.reset(is_sure=False))
    return (*clearing, link, board, card)


_IN_VAIN = (
    NotARemedy("another release of NCCL or of the engine", "the link fails below them"),
    verdicts.RESTART_ONLY,
)
