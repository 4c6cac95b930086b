"""rdma-link-fault: an InfiniBand or RoCE port or path fails during the job."""

from __future__ import annotations

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.distributed._log_lines import fact_texts, is_before, quoted_fact
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_DEVICE = lazy_pattern(
    r"\b(?P<device>(?:mlx[45]|bnxt_re|irdma|efa|roce|ibp|rocep|hns|ib|rdma)\w{0,20}\d\w{0,10}(?::\d{1,2})?)\b"
)
_IN_KERNEL = lazy_pattern(
    r"mlx5_core .{0,160}(?:[Ll]ink down|Cable (?:unplugged|error)|[Pp]ort module event.{0,60}(?:unplug|error|[Tt]emp)|health (?:compromised|poll failed)|Fatal error \d|firmware (?:internal )?error)"
    r"|\bib\d{1,3}: .{0,40}link (?:down|is not ready)|bond\d{1,3}: .{0,60}link status definitely down|Link (?:is )?Down.{0,40}mlx5",
)
_PEER = lazy_pattern(r"(?:from peer|remote|peer nic|localGid .{0,80}remoteGids?)[ :=]{1,3}(?P<peer>[\w.:<>-]{3,80})")
_NETWORK = lazy_pattern(
    r"(?i)NCCL|RDMA|\bib_?v?|mlx5|NVSHMEM|DeepEP|UCX|NIXL|mooncake|KVTransfer|time[-d]? ?out|connection|network|transport|remote|peer|EngineDead|link|async (?:error )?event"
)


@cause(
    "rdma-link-fault",
    family="Distributed",
    leads_to=("startup-timeout", "bootstrap-network",),
    signs=[
        says(
            "port-error",
            ("got async", "ibv_event_", "async event", "port error", "port_err"),
            r"Got async (?:error )?event ?: ?(?P<what>port error|local (?:work queue )?catastrophic error|device fatal\w*|fatal)|IBV_EVENT_(?:PORT_ERR|DEVICE_FATAL)|(?:received|Received|got) .{0,40}async event.{0,30}port error",
        ),
        says(
            "port-moved",
            ("got async",),
            r"Got async (?:error )?event ?: ?(?:port active|GID table change|LID change|client reregist\w+|P_Key change|SM change)",
        ),
        says(
            "kernel-link",
            ("mlx5_core", "link status definitely down", "ib0:", "ib1:", "cable unplugged", "link down"),
            _IN_KERNEL.pattern,
        ),
        says(
            "no-answer",
            ("with error 12", "status=12", "ibv_wc_retry_exc_err", "retry counter exceeded", "retry count exceeded", "syndrome 0x15", "synd 0x15", "retry exc"),
            r"(?:with|completion) error 12\b|with status=?(?:IBV_WC_RETRY_EXC_ERR|12\b)|status[= ]12\b.{0,80}(?:opcode|vendor)|IBV_WC_RETRY_EXC_ERR|[Tt]ransport retry count(?:er)? exceeded|synd(?:rome)? 0x15",
        ),
        says(
            "no-path",
            ("ibv_modify_qp", "modify_qp"),
            r"ibv_modify_qp (?:failed|to \w{2,4} failed).{0,120}(?:Connection timed out|Network is unreachable|No route to host|No data available|Invalid argument|error \d|timed out|unreachable)|modify_qp .{0,60}(?:timed out|unreachable|INIT.{0,10}RTR)",
        ),
        says(
            "no-queue-pair",
            ("ibgda_", "connect eps failed", "deepep timeout", "deepep error"),
            r"non-zero status: \d{1,4},? ?(?:ibgda_\w{3,40}|connect EPS) failed|ibgda_(?:create_qp|rst2init|init2rtr|rtr2rts)\w{0,10} failed|DeepEP (?:timeout|error)\b.{0,80}(?:RDMA|CPU recv timeout)",
        ),
        says(
            "fabric-silent",
            ("net/ofi", "libfabric", "efa "),
            r"NET/OFI .{0,160}(?:completed with error|unresponsive|[Uu]nreachable remote|RC: 1\d\d)|[Uu]nresponsive receiver|EFA .{0,80}(?:unreachable|unresponsive)",
        ),
    ],
)  # fmt: skip
def rdma_link_fault(case: Case) -> Judgement:
    """An InfiniBand or RoCE port, cable or path fails while the job runs.

    How it shows itself
      `NCCL WARN NET/IB : mlx5_3:1 Got async error event: port error`, often followed by `port active` (a flap); `Got completion
      from peer ... with error 12` or `status=IBV_WC_RETRY_EXC_ERR(12)`; `transport retry counter exceeded` (NVSHMEM, UCX,
      Mooncake); `Port module event: Cable unplugged` in the kernel log. The engine's traceback comes seconds to minutes later.

    Why it happens
      A cable, transceiver, switch port or the card fails or is overheated; a switch restarts; on RoCE a wrong GID, VLAN or flow
      control loses packets. After its retries the card gives the connection up.

    How to be sure
      `port error` is logged by the node whose own port failed. Error 12 is logged by the others and names the peer whose port
      does not answer. `ibstat`, `rdma link`, the counters link_downed and symbol_error, and the switch's log agree with them.

    What helps
      Repair the link; until then keep NCCL off that port (NCCL_IB_HCA=^mlx5_3). NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT bridge a
      short flap. On RoCE the right NCCL_IB_GID_INDEX.

    What does not help
      A longer watchdog time-out, another engine release, less memory.

    Not to be confused with
      bootstrap-network (ranks that never met over TCP), nvlink-fault, ulimit (`ibv_reg_mr ... Cannot allocate memory`), a
      peer process that died: its queue pair goes away, and error 12 follows. Error 5 (flushed) only follows another one.
    """
    own = _own_port(case)
    is_related = _is_of_the_network(case)
    if own is not None and own.sign == "kernel-link" and not _is_felt(case):
        return None
    match = own or case.found("no-answer", "no-path", "fabric-silent", "no-queue-pair")
    if match is None or match.is_code:
        return None
    kernel = _kernel_fact(case)
    failed_first = _failed_first(case, match)
    certainty = _certainty(match, own, kernel, failed_first or not is_related)
    seen = case.evidence(match, _what_it_shows(match))
    further = _further(case, match)
    device = _device(match)
    return Verdict(
        certainty=certainty,
        component="network",
        title=_title(match, device),
        chain=(
            Link("A port, cable or switch fails", kernel or (seen if own is not None else inferred("what failed there, that node and its switch know"))),
            Link("The card gives the connection up after its retries", further or (seen if own is None else None)),
            Link("The collective fails, and the engine with it"),
        ),
        evidence=tuple(each for each in (seen, further, kernel) if each is not None),
        explains=case.explains(match, *case.all("port-error", "no-answer", "port-moved", "kernel-link")) + _aftermath(case, match),
        missing=_missing(case, match, certainty),
        rivals=("bootstrap-network",) if match.sign == "no-path" else (),
        remedies=_remedies(match, device),
        not_remedies=_IN_VAIN,
        notes=_notes(match, failed_first),
        strength=_strength(match, failed_first),
    )  # fmt: skip


def _is_of_the_network(case: Case) -> bool:
    """Whether the failure is one that a link can cause."""
    if case.all("no-answer", "no-path", "fabric-silent", "no-queue-pair"):
        return True
    primary = case.incident.primary_event
    is_cut_off = primary is not None and primary.kind == "exception" and not primary.exceptions[-1].type
    return primary is None or is_cut_off or _NETWORK.search(primary.text[:4000]) is not None


def _is_felt(case: Case) -> bool:
    """Whether a program complains of the network, too. Unused ports without a cable are on every second host."""
    if case.all("port-error", "no-answer", "no-path", "fabric-silent"):
        return True
    return any(event.kind != "kernel" and _NETWORK.search(event.text[:2000]) for event in case.incident.events)


def _own_port(case: Case) -> Match | None:
    """The first line by which a node says that its own port failed."""
    found = [match for match in case.all("port-error", "kernel-link") if not match.is_code]
    return min(found, key=lambda match: match.line.number, default=None)


def _kernel_fact(case: Case) -> Evidence | None:
    fact = case.fact("kernel_log")
    if not isinstance(fact, Fact):
        return None
    text = next((text for text in fact_texts(case, "kernel_log") if _IN_KERNEL.search(text[:1600])), None)
    return quoted_fact(fact, text, "the kernel saw the link fail") if text else None


def _failed_first(case: Case, match: Match) -> bool:
    """Whether a process failed of its own before: then the connection it held broke, not the link."""
    if match.sign not in ("no-answer", "fabric-silent"):
        return False
    return any(
        event.is_fatal and not event.is_echo and event.kind != "warning" and is_before(event.place, match.place)
        and (match.event is None or event.id != match.event.id)
        and "nccl" not in event.text.lower()
        for event in case.incident.events
    )  # fmt: skip


def _certainty(match: Match, own: Match | None, kernel: Evidence | None, failed_first: bool) -> Certainty:
    if failed_first:
        return Certainty.POSSIBLE
    if own is not None and not match.text.endswith("port active"):
        return Certainty.PROVEN
    if match.sign in ("fabric-silent", "no-queue-pair") and kernel is None:
        return Certainty.POSSIBLE
    return Certainty.LIKELY


def _strength(match: Match, failed_first: bool) -> int:
    if failed_first:
        return 30
    return {"port-error": 90, "kernel-link": 80, "no-answer": 75, "no-path": 65, "no-queue-pair": 40}.get(
        match.sign, 45
    )


def _what_it_shows(match: Match) -> str:
    match match.sign:
        case "port-error" | "kernel-link":
            return "this node's own port failed"
        case "no-answer":
            return "a peer did not answer any retry of the card: the path to it, or its port, is down"
        case "no-path":
            return "the card finds no path to the peer"
        case "no-queue-pair":
            return "NVSHMEM has no working connection over the card"
        case _:
            return "the fabric reports that the peer does not answer"


def _further(case: Case, match: Match) -> Evidence | None:
    other = next((m for m in case.all("no-answer", "port-moved") if m.line.number != match.line.number), None)
    if other is None:
        return None
    return case.evidence(
        other, "the port came back: it flaps" if other.sign == "port-moved" else "and a peer did not answer"
    )


def _device(match: Match) -> str | None:
    found = _DEVICE.search(match.text[:1600])
    return found["device"] if found and "mlx5_core" not in found["device"] else None


def _title(match: Match, device: str | None) -> str:
    name = f" {device}" if device else ""
    if match.sign in ("port-error", "kernel-link"):
        return f"The RDMA port{name} failed during the job"
    return f"RDMA traffic over{name or ' a port'} does not reach its peer"


def _aftermath(case: Case, match: Match) -> tuple[int, ...]:
    """What failed after the port did: NCCL errors and cut-off tracebacks are its consequence."""
    if match.sign not in ("port-error", "kernel-link") and "DeepEP timeout" not in match.text:
        return ()
    primary = case.incident.primary_event
    own = match.event is not None and primary is not None and primary.id == match.event.id
    if primary is None or own or not is_before(match.place, primary.place):
        return ()
    return (primary.id,)


def _missing(case: Case, match: Match, certainty: Certainty) -> tuple[Missing, ...]:
    if certainty is Certainty.PROVEN:
        return ()
    peer = _PEER.search(match.text[:1600])
    where = f" on the node of {peer['peer']}" if peer else " on both nodes"
    asked = case.missing("kernel_log", f"whether a port went down{where}", "journalctl -k -b | grep -iE 'mlx5|link|port module'; ibstat")  # fmt: skip
    return (asked,) if asked is not None else ()


def _remedies(match: Match, device: str | None) -> tuple[Remedy, ...]:
    repair = Remedy(
        kind="hardware", name="RDMA port or link", value="repair",
        summary="Repair or replace what fails: cable, transceiver, switch port, card", cost="that node leaves the job",
        check=("ibstat", "rdma link"),
    )  # fmt: skip
    without = Remedy(
        kind="env", name="NCCL_IB_HCA", value=f"^{device}" if device else "exclude the port",
        summary="Keep NCCL off that port until it is repaired", cost="less bandwidth", undo=("unset NCCL_IB_HCA",), rank=0,
    )  # fmt: skip
    patience = Remedy(
        kind="env", name="NCCL_IB_TIMEOUT", value="22", summary="Let the card retry longer, to bridge a short flap",
        limits=("a link that stays down is not bridged",), is_sure=False, rank=2,
    )  # fmt: skip
    gid = Remedy(
        kind="env", name="NCCL_IB_GID_INDEX", value="index of the RoCE v2 address", summary="On RoCE: choose the GID that is routed (show_gids)",
        is_sure=False, rank=1,
    )  # fmt: skip
    if match.sign == "no-path":
        return (gid, msgspec.structs.replace(without, rank=2), repair)
    return (without, patience, repair)


def _notes(match: Match, failed_first: bool) -> tuple[str, ...]:
    if failed_first:
        return ("A process failed before: error 12 may only tell that it is gone.",)
    if match.sign == "no-answer":
        return ("Error 12 is printed by the healthy side; the peer it names is the one to look at.",)
    return ()


_IN_VAIN = (
    NotARemedy("a longer watchdog time-out", "the card has given the connection up already"),
    NotARemedy("another release of the engine", "its traceback is where the broken link surfaced"),
)
