"""bootstrap-network: the ranks cannot meet over TCP."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.distributed import _interfaces
from gpuwhy.causes.distributed._hang_order import Order, order
from gpuwhy.causes.distributed._interfaces import LOCAL_ONLY, Choice
from gpuwhy.causes.distributed._log_lines import Seen, first, is_before, of
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_RANKS_MEET = lazy_pattern(
    r"NCCL|ncclSocket|socketStart|socketPoll|c10d|client socket|[Gg]loo|rendezvous|TCPStore|MASTER_ADDR|init_process_group|dist[-_]init|nvshmem|NVSHMEM|Open ?MPI|\bGCS\b|bootstrap|torch[./]distributed|zmq|gethostbyname|to a \(local\) address|addr='tcp",
)
_REFUSAL = lazy_pattern(r"Connection refused", re.IGNORECASE)
_BLOCKS = lazy_pattern(r"(?i)\b(?:drop\w{0,4}|reject\w{0,3}|block\w{0,3}|den(?:y|ies|ied)|filter\w{0,3}|closed)\b")
_WALL_IN_WORDS = lazy_pattern(
    r"(?i)^.{0,80}\b(?:ufw|firewalld|iptables|the firewall|security group)\b[\w ,`'\":]{0,30}\b(?:is (?:on|active|enabled|running)|status: active|blocks?|blocked|blocking|drops?|rejects?|rejected|was the (?:cause|problem|culprit))\b"
)
_OPEN = lazy_pattern(r"(?i)^\s*(?:none|off|inactive|disabled|no (?:rules|firewall)|accept\w*|open\b|not running)")
_SAYS_NOTHING = lazy_pattern(r"hostname of the client socket cannot be retrieved|Address family not supported by protocol|retrying|will retry|closed by (?:remote )?peer|reset by peer|Broken pipe", re.IGNORECASE)  # fmt: skip

_HAD_MET = lazy_pattern(r"unbound_buffer\.cc:\d{1,5}\] Timed out waiting \d{1,12}ms for (?:recv|send) operation")
_LOADS = lazy_pattern(r"Loading (?:safetensors|pt) checkpoint shards:\s{0,3}\d{1,3}%|load weight begin|shards:\s{0,3}\d{1,2}%", re.IGNORECASE)  # fmt: skip

_REASON = lazy_pattern(r"NCCL WARN (?!Call to bind failed)|Cuda failure|Message truncated|Duplicate GPU", re.IGNORECASE)
"""NCCL says itself why; `NCCL WARN` comes before every internal error that has a reason in the log."""


class Lead(msgspec.Struct, frozen=True):
    """What shows that the ranks do not meet.

    ``kind``: ``interface`` (none, or one that does not exist), ``address`` (not this host's, or one that others never
    reach), ``route`` (unreachable, no answer), ``name`` (a host name does not resolve), ``absent`` (others never came),
    ``silent`` (a hang after the bootstrap line).
    """

    seen: Seen
    kind: str
    certainty: Certainty
    strength: int
    library: str


@cause(
    "bootstrap-network",
    family="Distributed",
    signs=[
        says(
            "no-interface",
            ("no socket interface found", "no interface found", "unable to find interface", "unable to find address for", "no usable interface", "no network interface", "no such device (addr", "could not find interface"),
            r"[Nn]o (?:socket |usable |valid |network )?interface(?:s)? found|(?:NET/Socket|Bootstrap) ?: ?no (?:socket )?interface|ifa != nullptr.{0,40}Unable to find (?:address|interface) for: ?(?P<name>\S{1,60})|Unable to find (?:address|interface) for: ?(?P<name2>\S{1,60})|No such device \(addr='tcp",
        ),
        says("no-family", "neither af_inet", r"connecting to address .{0,80}with family \d{1,6} is neither AF_INET"),
        says(
            "not-our-address",
            ("cannot assign requested address", "unique ip address", "to a (local) address", "winerror 10049"),
            r"Cannot assign requested address|Every node should have a unique IP address|(?:Unable to|Cannot) resolve \S{1,80} to a \(local\) address|WinError 10049",
        ),
        says(
            "no-route",
            ("no route to host", "network is unreachable", "connection timed out", "connection refused", "software caused connection abort", "operation now in progress", "exceeded error retry count", "exceeded retries"),
            r"exceeded retries \(\d{1,9}\)|No route to host|Network is unreachable|Connection timed out|Connection refused|Software caused connection abort|Operation now in progress|exceeded error retry count",
        ),
        says(
            "client-timeout",
            ("client socket has timed out", "client socket has failed to connect", "failed to connect to gcs", "unable to connect to gcs", "failed to tcp connect"),
            r"client socket has (?:timed out after|failed to connect to)|(?:Failed|Unable) to connect to GCS|failed to TCP connect to a peer MPI process",
        ),
        says(
            "no-name",
            ("name or service not known", "temporary failure in name resolution", "cannot be retrieved (gai", "getaddrinfo", "nodename nor servname"),
            r"Name or service not known|Temporary failure in name resolution|cannot be retrieved \(gai error|getaddrinfo.{0,40}(?:fail|error)|nodename nor servname provided",
        ),
        says(
            "mesh",
            ("connectfullmesh failed", "gloo/transport/tcp", "corresponding process entry"),
            r"connectFullMesh failed|gloo/transport/tcp/\w{1,30}\.cc:\d{1,5}\]? .{0,200}|cannot find a corresponding process entry",
        ),
        says(
            "absent",
            ("waiting for clients", "rendezvoustimeouterror", "rendezvousconnectionerror", "clients joined"),
            r"Timed out after \d{1,6} seconds waiting for clients|RendezvousTimeoutError|RendezvousConnectionError",
        ),
        says("no-answer", "syn_sent", r"^connection of process \d{1,10} to (?P<host>[\w.:]{2,60}):(?P<port>\d{1,5}): SYN_SENT"),
        says("internal-error", ("internal error - please report", "ncclinternalerror"), r"internal error - please report this issue to the NCCL|ncclInternalError"),
        says("using", ("bootstrap : using", "bootstrap: using", "net/socket : using"), r"(?:Bootstrap ?:|NET/Socket ?:) ?Using"),
    ],
)  # fmt: skip
def bootstrap_network(case: Case) -> Judgement:
    """The ranks cannot meet over TCP: wrong or missing interface, an address others do not reach, or a firewall.

    How it shows itself
      `Bootstrap : no socket interface found`, `connecting to address with family 59936 is neither AF_INET(2) nor AF_INET6(10)`,
      Gloo's `Unable to find address for: eth2`, `The client socket has timed out after 600s while trying to connect to`, `No route
      to host`, `Cannot assign requested address`. Or silence: the log stops after `NCCL INFO Bootstrap : Using eth0:...`.

    Why it happens
      Before any data flows, the ranks exchange addresses over TCP, even inside one host. NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME
      choose the interface; values made for another cluster name one that does not exist or leave only some that are not routed.
      Without a variable the first interface wins, which can be Docker's bridge. A host name that resolves to 127.0.1.1 sends
      everybody home. Firewalls drop the random ports that are used.

    How to be sure
      `ip -br addr` on each node against the interface in the log; `getent hosts $(hostname)`; `nc -zv OTHER_NODE PORT` while
      `nc -l PORT` listens there, on high ports; the firewall's rules.

    What helps
      One concrete interface that carries the node's address, in NCCL_SOCKET_IFNAME and in GLOO_SOCKET_IFNAME. Open the ports
      between the nodes. All ranks on one host: NCCL_SOCKET_IFNAME=lo.

    What does not help
      Installing network plug-ins: `No plugin found` and `NET/IB : No device found` are harmless. A longer time-out.

    Not to be confused with
      port-in-use (the address is taken), rdma-link-fault (they met, the data path failed), p2p-iommu (silence after `Init
      COMPLETE`), startup-timeout, and a peer that died: `Connection closed by peer` and `Connection refused` are then its echo.
    """
    asked = order(case)
    told = _interfaces.told(case)
    lead = _lead(case, asked)
    if lead is None:
        return None
    wall = _firewall(case)
    if lead.kind in ("silent", "absent") and wall is None and _is_open(case):
        opened = case.fact_evidence("firewall")
        return RuledOut("no firewall stands between the ranks", (opened,) if opened is not None else ())
    choice = _guilty(case, told, lead)
    certainty = _certainty(lead, wall, choice, case)
    seen = lead.seen.evidence(_WHAT[lead.kind])
    told_of = wall or _wall_in_words(case)
    evidence = _evidence(case, lead, seen, choice, told_of)
    component = _component(lead, choice, wall)
    return Verdict(
        certainty=certainty,
        component=component,
        title=_title(lead, choice, wall),
        chain=(
            Link(_root(lead), (choice.evidence if choice is not None else None) or wall or inferred("the interfaces, routes and rules of the host were not looked at")),
            Link("The ranks cannot exchange their addresses over TCP", seen),
            Link("The communicator is never made; the others give up or wait"),
        ),
        evidence=evidence,
        explains=_explains(case, lead),
        missing=_missing(case, lead, wall) if certainty is not Certainty.PROVEN or lead.kind == "interface" else (),
        rivals=() if certainty is Certainty.PROVEN else ("p2p-iommu",) if lead.kind == "silent" else ("startup-timeout", "port-in-use"),
        remedies=_remedies(case, lead, choice, told_of),
        not_remedies=_IN_VAIN,
        notes=_notes(lead, told),
        strength=lead.strength + (20 if wall is not None else 0),
    )  # fmt: skip


def _evidence(
    case: Case, lead: Lead, seen: Evidence, choice: Choice | None, wall: Evidence | None
) -> tuple[Evidence, ...]:
    """The line that decides first. An impossible address family says nothing; the variable that led to it does."""
    by_choice = choice.evidence if choice is not None else None
    is_consequence = lead.kind == "interface" and ("family" in lead.seen.text or lead.certainty is Certainty.POSSIBLE)
    ordered = (by_choice, seen) if is_consequence else (seen, by_choice)
    found = (*ordered, wall, case.fact_evidence("net_interfaces"))
    return tuple(dict.fromkeys(each for each in found if each is not None))


_WHAT = {
    "interface": "there is no interface to meet over",
    "address": "the address is not one at which this host is reached",
    "route": "a peer does not answer",
    "name": "the name of a peer does not resolve",
    "absent": "others never came to the meeting point",
    "silent": "an address was chosen, and nothing followed",
}


def _lead(case: Case, asked: Order) -> Lead | None:
    """The line that says most about why they do not meet."""
    interface = case.found("no-interface", "no-family")
    if interface is not None and not interface.is_code:
        return Lead(of(interface), "interface", Certainty.PROVEN if interface.sign == "no-interface" else Certainty.LIKELY, 90, _library(case, interface))  # fmt: skip
    for match in case.all("not-our-address"):
        if "as fallback" in match.text and not case.incident.is_failure:
            continue  # Gloo goes on with the loopback address, which does for ranks of one host
        if not match.is_code and (_is_of_ranks(case, match) or "unique IP" in match.text):
            return Lead(of(match), "address", Certainty.LIKELY, 75, _library(case, match))
    for kind, signs in (("route", ("no-route", "client-timeout", "mesh")), ("name", ("no-name",)), ("absent", ("absent",))):  # fmt: skip
        found = _of_ranks(case, kind, signs)
        if found is not None:
            return found
    return _unanswered(case) or _silence(case, asked) or _unnamed(case)


def _unanswered(case: Case) -> Lead | None:
    """A live process whose connection to the meeting point is not answered: not even refused, so no peer's death."""
    match = case.found("no-answer")
    if match is None or match.place.source != "process":
        return None
    stack = (line.text[:400] for log, line in case.lines() if log.kind == "process" and line.text.startswith("    "))
    is_meeting = any(_RANKS_MEET.search(text) for text in stack)
    is_named = str(case.facts.value("env.MASTER_ADDR")) == match.group("host") or str(case.facts.value("env.MASTER_PORT")) == match.group("port")  # fmt: skip
    return Lead(of(match), "route", Certainty.LIKELY, 65, "network") if is_meeting or is_named else None


def _unnamed(case: Case) -> Lead | None:
    """NCCL's internal error without a reason, below a variable that names an interface: a name that does not exist ends so."""
    failed = next((match for match in case.all("internal-error") if not match.is_code), None)
    if failed is None or _has_reason(case, failed):
        return None
    named = next((choice for choice in _interfaces.told(case) if choice.variable == "NCCL_SOCKET_IFNAME" and not choice.value.startswith("^")), None)  # fmt: skip
    return Lead(of(failed), "interface", Certainty.POSSIBLE, 50, "nccl") if named is not None else None


def _has_reason(case: Case, failed: Match) -> bool:
    near = case.lines_around(failed, 60, 20)
    if any(_REASON.search(line.text[:400]) for line in near):
        return True
    last = next((line.number for line in near if "Last error:" in line.text[:400]), None)
    return last is not None and any(line.number == last + 1 and line.text.strip() for line in near)


def _of_ranks(case: Case, kind: str, signs: tuple[str, ...]) -> Lead | None:
    """The earliest failing line of these signs; what comes after the failure of a process is its echo."""
    candidates: list[tuple[int, bool, Lead]] = []
    for match in sorted(case.all(*signs), key=lambda m: m.line.number):
        if match.is_code or _SAYS_NOTHING.search(match.text[:1600]) or not _is_of_ranks(case, match):
            continue
        if _HAD_MET.search(match.text[:1600]) and first(case, _LOADS, ("oading", "shards", "load weight")) is not None:
            continue  # a connection that was made waits for a rank that still loads: startup-timeout
        if _follows_a_failure(case, match):
            continue
        certainty, strength = _weight(match)
        local = LOCAL_ONLY.search(match.text[:1600]) is not None
        name = "address" if local and kind == "route" else kind
        is_programs_own = match.event is not None and match.event.is_fatal  # a reporter's title quotes it as well
        candidates.append(
            (strength, is_programs_own, Lead(of(match), name, certainty, strength, _library(case, match)))
        )
    return max(candidates, key=lambda each: each[:2])[2] if candidates else None


def _weight(match: Match) -> tuple[Certainty, int]:
    """How much a line says: unreachable is the network's word, refused can be a peer that is gone or not there yet."""
    text = match.text[:1600]
    if re.search(r"No route to host|Network is unreachable|errno: (?:113|101)\b", text):
        return Certainty.LIKELY, 75
    if LOCAL_ONLY.search(text) and match.sign in ("no-route", "mesh"):
        return Certainty.LIKELY, 70
    if match.sign == "no-name":
        return Certainty.LIKELY, 70
    if "TCP connect to a peer MPI" in text or "corresponding process entry" in text:
        return Certainty.LIKELY, 65
    if _REFUSAL.search(text):
        return Certainty.POSSIBLE, 35
    if re.search(
        r"Connection timed out|timed out after|retry count|exceeded retries|connection abort|in progress|errno: 110\b",
        text,
    ):
        return Certainty.LIKELY, 60
    if match.sign == "absent":
        return Certainty.POSSIBLE, 40
    return Certainty.POSSIBLE, 30


def _is_of_ranks(case: Case, match: Match) -> bool:
    """Ranks speak to each other: not a download, not a client of the HTTP server."""
    if re.search(r"https?://|huggingface|HTTPSConnection|Max retries|urllib3|api\.|ProxyError", match.text[:1600]):
        return False
    if _RANKS_MEET.search(match.text[:1600]):
        return True
    if any(_RANKS_MEET.search(f"{frame.path} {frame.function} {frame.code}") for frame in match.frames[-8:]):
        return True
    return any(_RANKS_MEET.search(line.text[:300]) for line in case.lines_around(match, 4, 2)) and not match.frames


def _follows_a_failure(case: Case, match: Match) -> bool:
    for event in case.incident.events:
        if not event.is_fatal or event.is_echo or event.kind == "warning":
            continue
        own = match.event is not None and match.event.id == event.id
        if not own and is_before(event.place, match.place) and not _RANKS_MEET.search(event.text[:2000]):
            return True
    return False


def _silence(case: Case, asked: Order) -> Lead | None:
    """(f) of the order: nothing after the bootstrap line. Only the end of the log, or somebody's word, shows that."""
    if asked.decided_by != "f" or asked.stage != "bootstrap" or asked.stage_line is None:
        return None
    chosen = _interfaces.chosen(case) or asked.stage_line
    if any(event.is_fatal and not event.is_echo and event.kind != "warning" for event in case.incident.events):
        return None
    is_local = LOCAL_ONLY.search(chosen.text) is not None
    return Lead(chosen, "silent", Certainty.POSSIBLE, 60 if asked.hang is not None else 40, "nccl" if is_local else "network")  # fmt: skip


def _library(case: Case, match: Match) -> str:
    text = match.text[:1600]
    if re.search(r"gloo|ifa != nullptr", text, re.IGNORECASE):
        return "gloo"
    if re.search(r"NCCL|nccl|socketStart|socketPoll|AF_INET|Bootstrap", text):
        return "nccl"
    if re.search(r"nvshmem", text, re.IGNORECASE):
        return "nvshmem"
    if "unique IP address" in text or "addr='tcp" in text:
        return case.engine or "vllm"
    return "network"


def _guilty(case: Case, told: tuple[Choice, ...], lead: Lead) -> Choice | None:
    """The variable that makes it go wrong: the one of the library that complains, or one that names what is absent."""
    names = _interfaces.of_host(case)
    for choice in told:
        if _interfaces.is_absent(choice, names) or (choice.is_list and choice.variable != "NCCL_SOCKET_IFNAME"):
            return choice
    if lead.kind not in ("interface", "silent"):
        return None
    wanted = {"gloo": "GLOO_SOCKET_IFNAME", "nccl": "NCCL_SOCKET_IFNAME", "nvshmem": "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME"}.get(lead.library)  # fmt: skip
    return next((choice for choice in told if choice.variable == wanted), None)


def _firewall(case: Case) -> Evidence | None:
    value = case.facts.value("firewall")
    if isinstance(value, str) and _BLOCKS.search(value) and not _OPEN.search(value):
        return case.fact_evidence("firewall", "rules of the host stand between the ranks")
    return None


def _wall_in_words(case: Case) -> Evidence | None:
    """A firewall of which the reporter tells: it orders the remedies, and makes nothing certain."""
    told = first(case, _WALL_IN_WORDS, ("ufw", "firewall", "iptables", "security group"))
    return told.evidence("the reporter tells of a firewall") if told is not None and not told.line.level else None


def _is_open(case: Case) -> bool:
    fact = case.fact("firewall")
    return isinstance(fact, Fact) and (fact.value is None or bool(_OPEN.search(str(fact.value))))


def _certainty(lead: Lead, wall: Evidence | None, choice: Choice | None, case: Case) -> Certainty:
    if wall is not None and lead.kind in ("silent", "route", "absent"):
        return Certainty.PROVEN
    if choice is not None and _interfaces.is_absent(choice, _interfaces.of_host(case)):
        return Certainty.PROVEN
    return lead.certainty


def _component(lead: Lead, choice: Choice | None, wall: Evidence | None) -> str:
    if wall is not None:
        return "network"
    if choice is not None:
        return {"NCCL": "nccl", "GLOO": "gloo", "NVSH": "nvshmem"}.get(choice.variable[:4], "network")
    return lead.library if lead.kind in ("interface", "silent") or lead.library in ("vllm", "sglang") else "network"


def _title(lead: Lead, choice: Choice | None, wall: Evidence | None) -> str:
    if wall is not None:
        return "A firewall keeps the ranks from meeting"
    if choice is not None:
        return f"The ranks cannot meet: {choice.variable}={choice.value} does not fit this host"
    return {
        "interface": "The ranks cannot meet: no interface is usable",
        "address": "The ranks cannot meet: an address is not reachable from the others",
        "route": "The ranks cannot meet: a peer is not reachable over TCP",
        "name": "The ranks cannot meet: a host name does not resolve",
        "absent": "The ranks did not meet: others never came",
        "silent": "The start stands still while the ranks exchange addresses",
    }[lead.kind]


def _root(lead: Lead) -> str:
    return {
        "interface": "The interface that is to be used does not exist here, or none is left",
        "address": "The address leads to this host only, or is not its own",
        "name": "Host names of the nodes do not resolve",
    }.get(lead.kind, "A wrong interface, a missing route or a firewall lies between the ranks")


def _explains(case: Case, lead: Lead) -> tuple[int, ...]:
    ids = set(case.explains(*case.all("no-interface", "no-family", "not-our-address", "no-route", "client-timeout", "no-name", "mesh", "absent", "no-answer")))  # fmt: skip
    primary = case.incident.primary_event
    if primary is not None and (lead.kind == "silent" or "nccl" in primary.text.lower()):
        ids.add(primary.id)
    return tuple(sorted(ids))


def _missing(case: Case, lead: Lead, wall: Evidence | None) -> tuple[Missing, ...]:
    rules = case.missing("firewall", "whether rules drop TCP between the ranks", "sudo iptables -S; sudo nft list ruleset; sudo ufw status") if wall is None else None  # fmt: skip
    interfaces = case.missing("net_interfaces", "which interface carries the node's address", "ip -br addr")
    chosen = case.missing("env.NCCL_SOCKET_IFNAME", "which interface was asked for", "tr '\\0' '\\n' < /proc/PID/environ | grep IFNAME")  # fmt: skip
    wanted = (interfaces, chosen) if lead.kind in ("interface", "address", "name") else (rules, interfaces, chosen)
    return tuple(each for each in wanted if each is not None)


def _remedies(case: Case, lead: Lead, choice: Choice | None, wall: Evidence | None) -> tuple[Remedy, ...]:
    firewall = Remedy(
        kind="service", name="firewall", value="open or disable for the interface",
        summary="Let the nodes reach each other on all TCP ports of that interface", risk="medium", is_sure=wall is not None,
    )  # fmt: skip
    if "unique IP" in lead.seen.text or (lead.kind == "address" and lead.library == "vllm"):
        return (Remedy(kind="env", name="VLLM_HOST_IP", value="address of each node", summary="Set VLLM_HOST_IP on each node to its own address", rank=0), *_by_interface(case, lead, choice))  # fmt: skip
    if lead.kind == "address" and "assign" in lead.seen.text:
        return (Remedy(kind="env", name="MASTER_ADDR", value="address of the first node", summary="Name an address that the first node itself has (--dist-init-addr, --master-addr)", rank=0), *_by_interface(case, lead, choice))  # fmt: skip
    if lead.kind == "route" and "c10d" in lead.seen.text:  # its store takes an address, and no interface
        return (Remedy(kind="env", name="MASTER_ADDR", value="address of the first node", summary="Name an address of the first node that this node reaches (--master-addr, --rdzv-endpoint)"), firewall, *_by_interface(case, lead, choice)[1:])  # fmt: skip
    if "GCS" in lead.seen.text:  # Ray's own server: no variable of NCCL or Gloo reaches it
        address = Remedy(kind="flag", name="--node-ip-address", value="address of each node", rank=1, is_sure=False, summary="Start Ray on every node with an address that the others reach: ray start --node-ip-address (vLLM: the same in VLLM_HOST_IP)")  # fmt: skip
        return (firewall, address)
    if lead.kind == "name":
        return (
            Remedy(kind="env", name="MASTER_ADDR", value="IP address of the first node", summary="Use the address instead of the name"),
            Remedy(kind="files", name="/etc/hosts", value="names of all nodes", summary="Or let every node resolve the others' names, and its own to a routed address"),
        )  # fmt: skip
    return (*_by_interface(case, lead, choice), firewall) if lead.kind != "interface" else _by_interface(case, lead, choice)  # fmt: skip


def _by_interface(case: Case, lead: Lead, choice: Choice | None) -> tuple[Remedy, ...]:
    real = _interfaces.physical(_interfaces.of_host(case))
    value = real or ("lo when all ranks are on one host, else the interface with the node's address" if lead.kind == "silent" else "interface with the default route")  # fmt: skip
    names = [choice.variable] if choice is not None else []
    names += ["GLOO_SOCKET_IFNAME"] if lead.library == "gloo" else []
    names += ["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"]
    ordered = list(dict.fromkeys(names))[:2]
    return tuple(
        Remedy(
            kind="env", name=name, value=value, summary=f"{name}: one concrete interface that exists and carries the node's address",
            check=("ip -br addr",), undo=(f"unset {name}",), rank=rank, is_sure=rank == 0,
        )
        for rank, name in enumerate(ordered)
    )  # fmt: skip


def _notes(lead: Lead, told: tuple[Choice, ...]) -> tuple[str, ...]:
    notes = []
    if lead.kind in ("route", "absent"):
        notes.append("Look at the peer first: one that died or never started refuses connections, too.")
    if any(choice.is_list and choice.variable.startswith("GLOO") for choice in told):
        notes.append("Gloo takes one name only; exclusion lists are NCCL's.")
    return tuple(notes)


_IN_VAIN = (
    NotARemedy("installing an NCCL network plug-in", "'No plugin found' and 'NET/IB : No device found' are harmless"),
    NotARemedy("a longer time-out", "packets that are dropped do not arrive later"),
)
