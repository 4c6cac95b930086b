"""Process groups: NCCL's warnings, watchdogs, Gloo, and the meeting of torch.distributed's ranks.

node1:100:120 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.2<40001> failed : Software caused connection abort
[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600001 milliseconds
[PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected by watchdog at work sequence id: 7 PG status: last enqueued work: 7, last completed work: 6
[c10d] The client socket has failed to connect to [node0]:29500 (errno: 111 - Connection refused).
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    "NCCL WARN", "Watchdog caught", "failure detected by watchdog", "[c10d]", "endezvous", "gloo/transport", "Unable to find address for", "last enqueued work", "TCPStore",
    "Last NCCL warning", "c10d::", "Monitored barrier",
)  # fmt: skip
_NCCL = Pattern(
    r"(?:(?P<site>[\w/]{1,60}\.(?:cc|h|cu)):(?P<line>\d{1,6}) )?(?:\(\w{1,60}\) )?NCCL WARN (?P<message>.{0,600})|Last NCCL warning"
)
_PEER = Pattern(r"(?:peer|to|from) (?P<peer>[\w.:-]{3,64}<\d{1,5}>)")
_COMPLETION = Pattern(r"status[= ](?P<status>\d{1,3}).{0,80}?vendor err (?P<vendor>\d{1,5})")
_WATCHDOG = Pattern(
    r"Watchdog caught collective operation timeout: Work\w{1,20}\(SeqNum=(?P<sequence>\d{1,12}), OpType=(?P<collective>\w{1,40})(?:, NumelIn=(?P<numel_in>\d{1,15}), NumelOut=(?P<numel_out>\d{1,15}))?"
    r"(?:, Timeout\(ms\)=(?P<timeout_ms>\d{1,12}))?\)(?: ran for (?P<ran_ms>\d{1,12}))?"
)
_RANK = Pattern(r"\bRank (?P<rank>\d{1,6})\]")
_GROUP = Pattern(r"\bPG (?:ID (?P<id>\d{1,6}) )?(?:PG )?GUID (?P<group>[^\]]{1,80}?) Rank ")
_STATUS = Pattern(
    r"failure detected by watchdog at work sequence id: (?P<sequence>-?\d{1,12}).{0,80}?last enqueued work: (?P<enqueued>-?\d{1,12}), last completed work: (?P<completed>-?\d{1,12})"
)
_RENDEZVOUS = Pattern(
    r"\[c10d\].{0,200}(?:failed to (?:connect|listen|bind)|timed out|cannot be (?:resolved|retrieved))|[Rr]endezvous.{0,120}(?:[Tt]imed? ?out|failed|closed|Error)|Timed out .{0,40}waiting for clients"
    r"|client socket has (?:timed out|failed)|TCPStore.{0,120}(?:failed|timed out)"
)
_SERVER = Pattern(r"(?:connect to|reach|listen on) [\[(]?(?P<host>[\w.:-]{1,120}?)[\])]?(?:,|:) ?(?P<port>\d{1,5})\b")
_GLOO = Pattern(r"gloo/transport/|Gloo connectFullMesh|Unable to find address for: ")
_HARMLESS = Pattern(r"The IPv6 network addresses of|hostname of the client socket cannot be retrieved")
_FATAL_LEVELS = frozenset({"", "error", "critical"})
LONGEST = 2000


def recognise(text: str, level: str = "") -> Recognised | None:
    shown = text[:LONGEST]
    found = _NCCL.search(shown)
    if found is not None:
        return Recognised("warning", "nccl", {"level": "warning", **_of_warning(shown)}, takes_more=True)
    detail = watchdog(shown)
    if detail:
        return Recognised("crash", "nccl", detail, is_fatal=level in _FATAL_LEVELS)
    if "Watchdog caught collective operation timeout" in shown:
        return Recognised("crash", "nccl", is_fatal=level in _FATAL_LEVELS)
    status = _STATUS.search(shown)
    if status is not None:
        detail = {"level": level or "error", **_rank_and_group(shown)}
        detail |= {"sequence": status["sequence"], "enqueued": status["enqueued"], "completed": status["completed"]}
        return Recognised("warning", "nccl", detail, is_echo=True)
    if level not in ("info", "debug") and (_RENDEZVOUS.search(shown) or _GLOO.search(shown)):
        tool = "gloo" if _GLOO.search(shown) else "rendezvous"
        detail = {"level": level} if level else {}
        return Recognised("warning", tool, detail | server(shown), is_echo=_HARMLESS.search(shown) is not None)
    return None


def library_of(text: str) -> str:
    """``nccl``, ``gloo`` or ``rendezvous`` when the message of an exception is theirs."""
    shown = text[:LONGEST]
    if _GLOO.search(shown):
        return "gloo"
    if _RENDEZVOUS.search(shown):
        return "rendezvous"
    return "nccl" if "NCCL error" in shown or "ncclComm" in shown or "NCCL Error" in shown else ""


def server(text: str) -> dict[str, str]:
    """``host`` and ``port`` of the store that a rank wanted to reach."""
    found = _SERVER.search(text[:LONGEST])
    return {} if found is None else {"host": found["host"], "port": found["port"]}


def watchdog(text: str) -> dict[str, str]:
    """What a rank was in when its watchdog ended it: ``rank``, ``sequence``, ``collective``, ``numel_in`` ..."""
    found = _WATCHDOG.search(text)
    if found is None:
        return {}
    return _rank_and_group(text) | {key: value for key, value in found.groupdict().items() if value is not None}


def _rank_and_group(text: str) -> dict[str, str]:
    detail = {}
    rank = _RANK.search(text)
    if rank is not None:
        detail["rank"] = rank["rank"]
    group = _GROUP.search(text)
    if group is not None:
        detail["group"] = group["group"]
    return detail


def _of_warning(text: str) -> dict[str, str]:
    detail = {}
    found = _NCCL.search(text)
    if found is not None and found["site"]:
        detail["site"] = f"{found['site']}:{found['line']}"
    peer = _PEER.search(text)
    if peer is not None:
        detail["peer"] = peer["peer"]
    completion = _COMPLETION.search(text)
    if completion is not None:
        detail |= {"status": completion["status"], "vendor_error": completion["vendor"]}
    return detail
