"""port-in-use: a TCP port that the server binds is taken."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._component import GENERIC
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.distributed import _ports
from gpuwhy.causes.distributed._log_lines import fact_texts, is_before, quoted_fact
from gpuwhy.causes.distributed._ports import TakenPort
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_REFUSED = (
    r"address already in use|\bEADDRINUSE\b|\bAddrInUse\b|\[?Errno (?:98|48)\]|WinError 10048|Only one usage of each socket address"
    r"|port is already allocated|Socket '[^']{1,120}' already in use"
    r"|\bport[ :'`\"]{1,4}\d{2,5}['`\"]?,? (?:is |was )?(?:already|currently|being)? ?(?:in use|used by|taken|occupied|allocated|bound)"
    r"|\w{0,40}port at \d{2,5} is not available in|is used by a process already|distributed communication on port .{0,20}but another process"
    r"|Ray is trying to start at .{0,80}but is already running|didn't have free ports for the requested pod ports"
)
_VAGUE = (
    r"couldn't bind (?:to |HTTP )?server socket|Failed to bind to address|No address added out of total \d|Port \d{2,5} is unavailable"
    r"|attempt was made to access a socket in a way forbidden by its access permissions|[Cc]annot find empty port in range|The server socket has failed to listen on any local network address"
)
_GOES_ON = lazy_pattern(
    r"trying (?:the )?(?:next )?(?:another )?port|try(?:ing)? port|using port \d|us(?:ing|e) (?:another|a different|a random|the next)|falling back|instead\b|"
    r"Waiting for \d|switch(?:ed|ing) to|client_support\.cc|Increment",
    re.IGNORECASE,
)
"""The program says that it looks for another port, or it is NCCL's status socket, which nothing needs."""
_OTHER_ERRNO = lazy_pattern(r"errno: (?!98\b)\d{1,3}|code: -(?!98\b)\d{1,3}|Permission denied|Cannot assign requested")


@cause(
    "port-in-use",
    family="Distributed",
    leads_to=("bootstrap-network", "startup-timeout",),
    signs=[
        says(
            "refused",
            (
                "address already in use", "eaddrinuse", "addrinuse", "errno 98", "errno 48", "winerror 10048", "only one usage of each socket", "already allocated",
                "already in use", "in use", "not available in", "used by", "another process is utilizing", "is already running", "free ports for the requested",
                "is taken", "is occupied", "already bound", "already taken", "already occupied",
            ),
            _REFUSED,
        ),
        says(
            "no-socket",
            ("bind http server socket", "bind to server socket", "bind server socket", "failed to bind to address", "no address added", "is unavailable", "empty port in range", "in a way forbidden by its access", "failed to listen on any"),
            _VAGUE,
        ),
    ],
)  # fmt: skip
def port_in_use(case: Case) -> Judgement:
    """A TCP port that the server wants is already bound by another process, or by another part of itself.

    How it shows itself
      `OSError: [Errno 98] Address already in use`, `EADDRINUSE`, `The server socket has failed to listen on any local network
      address` (torch), `zmq.error.ZMQError: Address already in use (addr='tcp://...')` (vLLM's workers), `Port 30000 is
      already in use` (SGLang), `couldn't bind HTTP server socket` (llama.cpp), `bind: address already in use` (ollama),
      `port is already allocated` (Docker). The other ranks then report closed connections, seconds later.

    Why it happens
      An earlier server, or a child it left behind, still runs. Two services were given the same port. Or the port is not
      the one of --port: engines bind more of them, for the rendezvous of the ranks (29500 by default), for queues between
      processes, for KV transfer. Some are constants; some are chosen as free first and bound later, and two workers that
      start from the same number (a fixed VLLM_PORT) choose the same one.

    How to be sure
      `ss -ltnp 'sport = :PORT'` names the process. The first refused bind in time is the cause, on whichever rank or node.

    What helps
      End the process that holds the port, or give this one another. For an internal port, the setting that governs it.

    What does not help
      Changing --port when the number in the message is another one. Waiting: a socket that listens does not expire.

    Not to be confused with
      bootstrap-network (`Cannot assign requested address`: the address is not this host's; a connection is refused). NCCL's
      status socket (ras) meets a taken port without harm. Connections that others closed are consequences.
    """
    match, is_literal = _refused(case)
    if match is None:
        return None
    if _OTHER_ERRNO.search(match.text) and not is_literal:
        return None
    port = _ports.read(case, match)
    is_later = _failed_before(case, match)
    seen = case.evidence(match, "the bind was refused")
    holder = _holder(case, port)
    component = _component(case, match, port)
    certainty = Certainty.PROVEN if is_literal else Certainty.LIKELY
    if is_later:
        certainty = Certainty.POSSIBLE
    where = f" 'sport = :{port.number}'" if port.number else ""
    asked = case.missing("processes", "which process holds the port", f"ss -ltnp{where}")
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{port.name} is taken already",
        chain=(
            Link("A process has bound the port", holder or inferred("the kernel refuses a second listener; who the first is was not looked up")),
            Link("The bind of this process is refused", seen),
            Link("It ends, and the processes that wait for it report closed connections"),
        ),
        evidence=(seen, holder) if holder is not None else (seen,),
        explains=case.explains(match, *case.all("refused", "no-socket")),
        missing=(asked,) if asked is not None and holder is None else (),
        remedies=(*_ports.movers(case, port, component), _ray_stop() if component == "ray" else _stop(port)),
        not_remedies=_in_vain(port),
        notes=("Something failed before that; a server that is started again meets what the first one left behind.",) if is_later else (),
        strength=35 if is_later else 75 if is_literal else 55,
    )  # fmt: skip


def _refused(case: Case) -> tuple[Match | None, bool]:
    """The first line that is a refusal, and whether it says why."""
    for match in sorted(case.all("refused"), key=lambda m: (m.is_code, m.line.number)):
        if not match.is_code and not _is_survived(case, match):
            return match, True
    for match in sorted(case.all("no-socket"), key=lambda m: (m.is_code, m.line.number)):
        if not match.is_code and not _GOES_ON.search(match.text):
            return match, False
    return None, False


def _is_survived(case: Case, match: Match) -> bool:
    if _GOES_ON.search(match.text[:1600]):
        return True
    return any(
        _GOES_ON.search(line.text[:300]) for line in case.lines_around(match, 0, 1) if "port" in line.text.lower()
    )


def _failed_before(case: Case, match: Match) -> bool:
    """Whether another failure came first: then the taken port is what a restart met."""
    primary = case.incident.primary_event
    if primary is None or primary.kind == "warning" or (match.event is not None and primary.id == match.event.id):
        return False
    return not re.search(_REFUSED, primary.text[:4000], re.IGNORECASE) and is_before(primary.place, match.place)


def _holder(case: Case, port: TakenPort) -> Evidence | None:
    """The process that a given fact names for this port."""
    fact = case.fact("processes")
    if not isinstance(fact, Fact):
        return None
    for text in fact_texts(case, "processes"):
        if port.number and re.search(rf"(?<!\d){port.number}(?!\d)", text[:1000]):
            return quoted_fact(fact, text, "this process holds the port")
    return None


def _component(case: Case, match: Match, port: TakenPort) -> str | None:
    """The product that binds: its choice of the port is what a fix changes."""
    if port.role == "container":
        return "container-engine"
    if case.engine in _ports.TRITON_SERVER or re.search(r"failed to start (?:HTTP|GRPC|Metrics) service", match.text):
        return _ports.TRITON_SERVER[0]
    if case.engine:
        return case.engine
    if "Ray is trying to start" in match.text:
        return "ray"
    if "HTTP server socket" in match.text:  # the words of llama.cpp's server, and nobody else's
        return "llama.cpp"
    near = case.component_near(match)
    return "other-process" if near is None or near in GENERIC else near


def _stop(port: TakenPort) -> Remedy:
    where = f" 'sport = :{port.number}'" if port.number else ""
    return Remedy(
        kind="service",
        name="process that holds the port",
        value="stop",
        summary="End the process that listens there: an earlier server, or a child that it left behind",
        commands=(f"ss -ltnp{where}",),
        cost="whoever uses that process loses it",
        limits=("does not help when the server's own workers collide with each other",),
        is_sure=port.role != "queue",
    )


def _ray_stop() -> Remedy:
    """Ray's own processes of an earlier start hold its ports, and only its command finds them all."""
    return Remedy(
        kind="service", name="ray", value="stop", summary="Stop the Ray that runs here already, or join it instead of starting another",
        commands=("ray status", "ray stop"), cost="everything that runs in it ends",
    )  # fmt: skip


def _in_vain(port: TakenPort) -> tuple[NotARemedy, ...]:
    waiting = NotARemedy("waiting", "a socket that listens does not expire")
    if port.role in ("queue", "rendezvous"):
        return (NotARemedy("changing --port", "the refused port is an internal one; --port is the HTTP port"), waiting)
    return (waiting,)
