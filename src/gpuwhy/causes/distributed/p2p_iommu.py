"""p2p-iommu: direct traffic between GPUs does not arrive."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.distributed import _peer_path
from gpuwhy.causes.distributed._hang_order import STANDS_STILL, STANDS_STILL_LITERALS, Order, is_said_of_now, order
from gpuwhy.causes.distributed._log_lines import Seen, of
from gpuwhy.causes.distributed._peer_path import IOMMU_OFF, PeerPath
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_SEVERAL_GPUS = lazy_pattern(
    r"(?i)all[_-]?reduce|\bNCCL\b|nranks|tensor[ _-]parallel|--tp\b|-tp \d|peer|\bP2P\b|NVLINK|Worker_TP|TP\d|\bGPU1\b|torchrun|two-rank|\d ?x (?:RTX|GPU|NVIDIA)|multi-?gpu|device ?1\b"
)
_AFTER_A_FAULT = ("illegal", "xid", "nccl", "unspecified launch")
_OF_A_GPU = lazy_pattern(r"(?i)nvidia|NVRM")
_FAULTING_DEVICE = lazy_pattern(
    r"(?:device|Request device)[ =]\[?(?:[0-9a-fA-F]{4}:)?([0-9a-fA-F]{2}:[0-9a-fA-F]{2})\.\d"
)
_PEERS = lazy_pattern(
    r"(?i)\bP2P\b|peer[- ](?:access|to[- ]peer)|\bNCCL\b|all[_-]?reduce|nvlink|p2pBandwidth|simpleP2P"
)
MOST_WORDS = 8
"""Lines that say that nothing goes on, around which a long log is looked through for several GPUs."""
_OTHER_STAGE = lazy_pattern(
    r"(?i)load(?:ing)? (?:safetensors|checkpoint|weights|model)|tokeniz|download|compil|lock|baton"
)


@cause(
    "p2p-iommu",
    family="Distributed",
    leads_to=("kernel-illegal-address", "startup-timeout", "gpu-xid-other", "custom-allreduce",),
    signs=[
        says("iommu-fault", ("io_page_fault", "dmar:", "fault reason"), r"IO_PAGE_FAULT|DMAR: .{0,60}[Ff]ault|\[fault reason"),
        says("unverified", ("verification error", "test failed!"), r"Verification error @ element|simpleP2P.{0,200}Test failed"),
        says("peer-refused", "peer access is not supported between", r"(?:NCCL WARN|transport/p2p|cudaDeviceEnablePeerAccess|Test CUDA failure).{0,200}peer access is not supported between"),
        says("watchdog", "watchdog caught collective operation timeout"),
        says("initialised", ("init complete", "connected all rings", "connected all trees", "nccl version"), r"Init COMPLETE|Connected all (?:rings|trees)|NCCL version \d|NCCL INFO comm"),
        says("peer-table", ("access peer device", "p2p connectivity matrix", "topo -m"), r"CAN(?:NOT)? Access Peer Device|P2P Connectivity Matrix|nvidia-smi topo"),
        says("switched-off", "nccl_p2p_disable", r"NCCL_P2P_DISABLE"),
        says("acs", "acsctl", r"ACSCtl:.{0,40}(?:SrcValid|ReqRedir|CmpltRedir)\+"),
        says(
            "hang",
            ("hang", "hung", "卡住", "卡死", "挂起", "死锁", "stuck", "frozen", "freez", "deadlock", "no further output", "no output after", "never returns", "never completes", "never ends", "never finishes", *STANDS_STILL_LITERALS),
            rf"{STANDS_STILL}|卡住|卡死|挂起|死锁|\b(?:hangs?|hung|hanging|stuck|frozen|freez\w{1,3}|deadlock\w{0,3})\b|no (?:further|more) output|no output after|never (?:returns|completes|ends|finishes)",
        ),
        says("busy", "100%", r"(?:GPU|SM|utili[sz]ation|util|busy).{0,40}100 ?%|\b100% {1,12}Default|100 ?%.{0,40}(?:GPU|SM|utili[sz]ation|util|busy)"),
    ],
)  # fmt: skip
def p2p_iommu(case: Case) -> Judgement:
    """Direct traffic between GPUs is accepted and does not arrive: IOMMU translation, ACS redirection, a broken peer path.

    How it shows itself
      The first collective never ends: the log stops after `Init COMPLETE` or `vLLM is using nccl==...`, all GPUs stand at
      100 % with little power, often even after the process was killed. Later the watchdog reports SeqNum 1 or 2 with a handful
      of elements. Or data is damaged: `Verification error @ element 0` in a peer-to-peer test, illegal accesses. In the kernel
      log `IO_PAGE_FAULT` (AMD) or `DMAR ... fault` (Intel) for a GPU; it may also stay empty.

    Why it happens
      Without NVLink, GPUs write to each other's memory across PCIe. With ACS redirection on the bridges these writes go up to
      the root complex, and an IOMMU that translates sends them elsewhere or refuses them. Inside virtual machines it is the
      rule. The driver says that the peers can reach each other, so NCCL chooses that path.

    How to be sure
      A two-rank reduction that hangs, and completes with NCCL_P2P_DISABLE=1. `lspci -vvv | grep ACSCtl` with ReqRedir+ or
      SrcValid+ on the bridges above the GPUs; the IOMMU's mode; faults in the kernel log.

    What helps
      NCCL_P2P_DISABLE=1 at once (slower: through host memory); with --disable-custom-all-reduce, as the engine's own kernels
      use peer memory too. Lastingly: ACS off (BIOS, or setpci on the bridges), iommu=pt or IOMMU off.

    What does not help
      NCCL_SHM_DISABLE=1, NCCL_IB_DISABLE=1, other NCCL releases, a longer time-out.

    Not to be confused with
      bootstrap-network (it stops before initialisation completes), startup-timeout (other ranks are compiling), custom-allreduce
      (refused with a message), shm-too-small (the path through host memory fails in a container), a peer that died.
    """
    asked = order(case)
    path = _peer_path.read(case)
    lead = _lead(case, asked, path)
    if lead is None:
        return None
    if path.makes_no_difference is not None and path.fault is None and path.unverified is None:
        return RuledOut("the reduction behaves the same with and without peer access", (path.makes_no_difference,))
    certainty = _certainty(path)
    seen = lead.evidence(_what_it_shows(lead, asked, path))
    evidence = _evidence(seen, path)
    return Verdict(
        certainty=certainty,
        component="iommu",
        title="Direct traffic between the GPUs does not arrive" if certainty is not Certainty.POSSIBLE
        else "The first exchange between the GPUs may not arrive: peer traffic through IOMMU or ACS",
        chain=(
            Link("Peer writes are redirected or translated on their way", path.mechanism or inferred("ACS or IOMMU; nobody looked")),
            Link("NCCL chooses the direct path, because the driver offers it", inferred("its default")),
            Link("The data never arrives, and the kernel waits for ever", path.works_without or seen),
        ),
        evidence=evidence,
        against=() if not path.is_clean else tuple(e for e in (case.fact_evidence("iommu"), case.fact_evidence("pci_acs")) if e is not None),
        explains=_explains(case),
        missing=_missing(case, path),
        rivals=_rivals(asked, certainty),
        remedies=_remedies(case, path),
        not_remedies=_IN_VAIN,
        notes=("In a virtual machine the host decides about ACS and IOMMU; NCCL_P2P_DISABLE=1 works from inside.",),
        strength=_strength(asked, path),
    )  # fmt: skip


def _lead(case: Case, asked: Order, path: PeerPath) -> Seen | None:
    """The line that shows that traffic does not arrive; None when the order of the questions points elsewhere."""
    fault = next((match for match in case.all("iommu-fault") if _is_of_a_gpu(case, match)), None)
    if fault is not None:
        return of(fault)
    unverified = case.found("unverified")
    if unverified is not None:
        return of(unverified)
    refused = case.found("peer-refused")
    if refused is not None:
        return of(refused)
    if asked.decided_by in ("a", "c", "d"):
        return None
    if asked.first_collective is not None:
        return asked.first_collective.seen
    if asked.reports:
        return asked.reports[0].seen if path.works_without is not None else None
    if asked.was_serving or not _has_several_gpus(case):
        return None
    return _hang(case, asked, path)


def _is_of_a_gpu(case: Case, match: Match) -> bool:
    """The driver's name stands in the line, or the GPUs failed too. A fault of a disk controller is another story."""
    if _OF_A_GPU.search(match.text[:1600]):
        return True
    if any(event.tool in ("xid", "nvrm") for event in case.incident.events):
        return True
    device = _FAULTING_DEVICE.search(match.text[:1600])
    if device is not None:
        of_gpu = re.compile(
            rf"(?i)(?:nvidia|NVRM|GPU|VGA|3D controller).{{0,200}}{device[1]}|{device[1]}.{{0,80}}(?:nvidia|VGA|3D controller)"
        )
        if any(of_gpu.search(line.raw[:400]) for _, line in case.lines()):
            return True
        if any(_PEERS.search(line.text[:400]) for _, line in case.lines()):
            return True
    texts = (event.text.lower() for event in case.incident.events if event.is_fatal and event.kind != "kernel")
    return any(word in text for text in texts for word in (*_AFTER_A_FAULT, "cuda", "watchdog"))


def _hang(case: Case, asked: Order, path: PeerPath) -> Seen | None:
    """A hang that is not one of loading, downloading or compiling, and not one of the bootstrap."""
    stuck = next((match for match in case.all("hang", "busy") if _is_of_a_collective(match)), None)
    if stuck is None and path.works_without is None:
        return _last_words(case)
    if asked.stage == "bootstrap" and path.works_without is None and case.facts.value("p2p_test") is None:
        return None
    if _has_own_failure(case) and path.works_without is None:
        return None
    if stuck is not None:
        return of(stuck)
    switched = case.found("switched-off")
    return of(switched) if switched is not None else asked.stage_line


def _last_words(case: Case) -> Seen | None:
    """NCCL's initialisation, where it is the last that a paste with several ranks has and nothing failed.

    A server that goes on always writes more: the next lines were cut off, or never came.
    """
    written = [(log, line) for log, line in case.lines() if line.text.strip()]
    last = written[-1] if written else None
    initialised = case.all("initialised")
    if last is None or not initialised or _has_own_failure(case) or case.incident.primary is not None:
        return None
    match = next((match for match in initialised if match.line is last[1] and not match.is_code), None)
    is_of_several = match is not None and _RANKS.search(match.text[:600]) is not None
    return of(match) if match is not None and is_of_several else None


_RANKS = lazy_pattern(r"\bnranks (?!1\b)\d{1,5}\b|Connected all (?:rings|trees)")
"""Of a communicator with more than one rank."""


def _is_of_a_collective(match: Match) -> bool:
    if match.sign == "hang" and match.place.source == "process":
        return False  # the name of a file in a stack; what was seen of a process is said of its GPUs
    return not match.is_code and is_said_of_now(match.text) and not _OTHER_STAGE.search(match.text[:400])


def _has_own_failure(case: Case) -> bool:
    """A fatal event that has words of its own: then it did not hang."""
    return any(event.is_fatal and not event.is_echo and "imeout" not in event.text[:400] for event in case.incident.events)  # fmt: skip


def _has_several_gpus(case: Case) -> bool:
    if case.facts.value("p2p_test") is not None or case.facts.value("pci_acs") is not None:
        return True
    if any(_SEVERAL_GPUS.search(line.text[:300]) for _, line in case.lines()):
        return True
    told = [match for match in case.all("hang", "switched-off") if _is_of_a_collective(match)][:MOST_WORDS]
    near = (line for match in told for line in (match.line, *case.lines_around(match, 40, 40)))
    return case.found("initialised") is not None or any(_SEVERAL_GPUS.search(line.text[:300]) for line in near)


def _certainty(path: PeerPath) -> Certainty:
    if path.is_clean and path.fault is None:
        return Certainty.LIKELY if path.works_without is not None else Certainty.POSSIBLE
    if path.works_without is not None:
        return Certainty.PROVEN if path.mechanism is not None else Certainty.LIKELY
    if path.fault is not None or path.unverified is not None:
        return Certainty.LIKELY
    return Certainty.LIKELY if path.redirected is not None and path.translated is not None else Certainty.POSSIBLE


def _strength(asked: Order, path: PeerPath) -> int:
    if path.works_without is not None or path.fault is not None or path.unverified is not None:
        return 80
    if asked.first_collective is not None:
        return 60
    return 55 if asked.stage == "initialised" else 40


def _what_it_shows(lead: Seen, asked: Order, path: PeerPath) -> str:
    if path.fault is not None and lead.text == path.fault.quote:
        return "the IOMMU refused an access of a device"
    if path.unverified is not None and lead.text == path.unverified.quote:
        return "what one GPU reads of another is not what was written"
    if asked.first_collective is not None:
        return f"the first tiny collective ({asked.first_collective.call}) never completed"
    return "nothing goes on"


def _evidence(seen: Evidence, path: PeerPath) -> tuple[Evidence, ...]:
    found = [seen, path.works_without, path.fault, path.redirected, path.translated, path.unverified]
    kept: list[Evidence] = []
    for each in found:
        if each is not None and each.quote not in [known.quote for known in kept if known.quote]:
            kept.append(each)
    return tuple(kept)


def _explains(case: Case) -> tuple[int, ...]:
    """The watchdog's and the hang's events; after a fault of the IOMMU also the illegal accesses that follow it."""
    ids = set(case.explains(*case.all("iommu-fault", "watchdog", "unverified", "hang")))
    primary = case.incident.primary_event
    if primary is not None and primary.kind == "warning":
        ids.add(primary.id)
    follows = primary is not None and any(word in primary.text.lower() for word in _AFTER_A_FAULT)
    if primary is not None and follows and case.found("iommu-fault") is not None:
        ids.add(primary.id)
    return tuple(sorted(ids))


def _missing(case: Case, path: PeerPath) -> tuple[Missing, ...]:
    wanted = []
    if path.works_without is None:
        wanted.append(case.missing("p2p_test", "whether a two-rank reduction completes without peer access", "NCCL_P2P_DISABLE=1 torchrun --nproc-per-node 2 ALL_REDUCE_TEST.py  # then without the variable"))  # fmt: skip
    if path.mechanism is None:
        wanted.append(case.missing("pci_acs", "whether the bridges redirect peer traffic", "sudo lspci -vvv | grep -E '^[0-9a-f]|ACSCtl'"))  # fmt: skip
        wanted.append(case.missing("iommu", "whether the IOMMU translates", "cat /sys/kernel/iommu_groups/*/type | sort | uniq -c"))  # fmt: skip
    return tuple(each for each in wanted if each is not None)


def _rivals(asked: Order, certainty: Certainty) -> tuple[str, ...]:
    if certainty is Certainty.PROVEN:
        return ()
    return ("startup-timeout", "custom-allreduce") if asked.reports else ("bootstrap-network", "custom-allreduce")


def _remedies(case: Case, path: PeerPath) -> tuple[Remedy, ...]:
    cmdline = str(case.facts.value("kernel_cmdline") or "")
    cpu = (
        "amd"
        if path.fault is not None and "AMD-Vi" in path.fault.quote
        else "intel"
        if "DMAR" in (path.fault.quote if path.fault else "")
        else ""
    )
    remedies = [
        Remedy(
            kind="env", name="NCCL_P2P_DISABLE", value="1", summary="Let NCCL go through host memory", cost="slower reductions",
            check=("grep -m1 'via SHM' LOG  # written with NCCL_DEBUG=INFO",), undo=("unset NCCL_P2P_DISABLE",),
            limits=("cures NCCL only: an engine's own all-reduce uses peer memory too",),
        )
    ]  # fmt: skip
    if path.fault is not None:
        return (*remedies, *_translation_off(cpu, has_parameter=bool(IOMMU_OFF.search(cmdline))))
    if case.engine in ("vllm", "sglang", ""):
        remedies.append(Remedy(kind="flag", name="--disable-custom-all-reduce", summary="With the above: keep the engine's own kernels off peer memory", cost="a little latency", is_sure=False))  # fmt: skip
    if not path.is_clean:
        remedies += [
            Remedy(kind="config", name="BIOS ACS", value="off", summary="Switch ACS off in the firmware set-up", cost="a reboot; devices are no longer isolated from each other", risk="medium"),
            Remedy(kind="config", name="BIOS VT-d", value="off", summary="Or the IOMMU as a whole (VT-d, AMD-Vi)", cost="a reboot; no device pass-through to virtual machines", risk="medium", rank=1),
            Remedy(kind="kernel", name="PCI bridges ACSCtl", value="0 (setpci)", summary="At run time: clear ACSCtl on every bridge above the GPUs: setpci -s BRIDGE ECAP_ACS+6.w=0000", cost="until the next boot", risk="medium", rank=0),
        ]  # fmt: skip
        if not IOMMU_OFF.search(cmdline):
            remedies.append(_boot_parameter(cpu))
        remedies.append(Remedy(kind="kernel", name="iommu", value="pt", summary="Or pass-through only: iommu=pt (faults end, ACS may still redirect)", cost="a reboot", is_sure=False, rank=2))  # fmt: skip
    return tuple(remedies)


def _translation_off(cpu: str, *, has_parameter: bool) -> tuple[Remedy, ...]:
    """The IOMMU itself refused: it has to be off, or to let the addresses through. ACS alone would not do it."""
    unit = "BIOS IOMMU (AMD-Vi)" if cpu == "amd" else "BIOS VT-d"
    firmware = Remedy(kind="config", name=unit, value="off", summary="Switch the IOMMU off in the firmware set-up", cost="a reboot; no device pass-through to virtual machines", risk="medium", is_sure=False)  # fmt: skip
    through = Remedy(kind="kernel", name="iommu", value="pt", summary="Or pass-through only: boot with iommu=pt", cost="a reboot", is_sure=False, rank=2)  # fmt: skip
    return (firmware, through) if has_parameter else (firmware, _boot_parameter(cpu), through)


def _boot_parameter(cpu: str) -> Remedy:
    name = f"{cpu or 'intel'}_iommu"
    return Remedy(
        kind="kernel",
        name=name,
        value="off",
        summary=f"Boot with {name}=off" + ("" if cpu else " (AMD: amd_iommu=off)"),
        cost="a reboot; no device pass-through to virtual machines",
        risk="medium",
        rank=1,
    )


_IN_VAIN = (
    NotARemedy("NCCL_SHM_DISABLE=1", "it closes the path that works"),
    NotARemedy("NCCL_IB_DISABLE=1, another interface", "the traffic between GPUs of one host does not use the network"),
    NotARemedy("a longer time-out", "what is lost never arrives"),
)
