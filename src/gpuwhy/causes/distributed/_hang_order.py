"""The order in which a collective time-out or hang is decided: six questions, asked one after another.

| step | question | points to |
| --- | --- | --- |
| a | do two ranks submit different calls under one sequence number? | collective-mismatch; the network is left alone |
| b | is it the first tiny collective, right after the communicator was made? | p2p-iommu |
| c | did a rank fail before the first watchdog line? | that failure; "the peer died" is no answer |
| d | did an RDMA port or path fail, perhaps many seconds earlier? | rdma-link-fault |
| e | are others still compiling, or reading weights, with no request served yet? | startup-timeout |
| f | no watchdog at all: where did the output stop? | bootstrap-network after "Bootstrap : Using", p2p-iommu after "Init COMPLETE" |

Raising a limit helps in (e) only, so (e) is an answer only when (a) to (d) are answered with no.
"""

from __future__ import annotations

import msgspec

from gpuwhy.causes._case import Case
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes.distributed._log_lines import Seen, fact_texts, first, holding, is_before, matching
from gpuwhy.causes.distributed._watchdog import Mismatch, Report, mismatch, reports
from gpuwhy.model.event import Event

FIRST_SEQUENCES = 2
"""Sequence numbers of a first collective: engines send one warm-up reduction or a barrier right after initialisation."""
TINY = 1024
"""Elements of a warm-up tensor or a barrier; a layer's activation has more."""
_INITIALISED = lazy_pattern(r"Init COMPLETE|Connected all (?:rings|trees)|Connected binomial trees")
_BOOTSTRAPPING = lazy_pattern(r"Bootstrap ?: Using|NET/\w{1,20} ?: Using|Using network \w+|NCCL version \d")
_LINK = lazy_pattern(
    r"Got async (?:error )?event ?: ?(?:port error|local catastrophic|device fatal)|with error 12\b|status=12\b|IBV_WC_RETRY_EXC_ERR|IBV_EVENT_PORT_ERR|"
    r"transport retry counter exceeded|Transport retry count exceeded|mlx5_core .{0,80}(?:[Ll]ink down|Cable (?:unplugged|error))"
)
_COMPILING = lazy_pattern(
    r"Entering DeepGEMM JIT Pre-Compile|DeepGEMM (?:JIT|warmup)|DeepGEMM.{0,40}[Cc]ompil|\b(?:nvcc|cicc|ptxas|cudafe\+\+)\b.{0,80}(?:running|children|busy|CPU|%)|Compiling (?:kernels?|a graph|the graph)|"
    r"torch\.compile .{0,40}(?:takes|start)|[Aa]utotun(?:e|ing) (?:process|start|in progress)|Start(?:ing)? to (?:compile|autotune)|JIT[- ]compil\w{0,4} .{0,40}(?:take|minutes)|"
    r"Dynamo bytecode transform|ninja .{0,60}(?:running|-j)|Building extension module|flashinfer\.jit: Loading JIT"
)
_COMPILERS = lazy_pattern(r"\b(?:nvcc|cicc|ptxas|cudafe\+\+|ninja|cc1plus|compile_worker|inductor)\b")
_SERVING = lazy_pattern(
    r"\"(?:POST|GET) /(?:v1/(?:chat/)?completions|generate)\S{0,40} HTTP/1\.\d\" 200|Decode batch[.,\[ ].{0,300}gen throughput|Avg generation throughput: [1-9]"
)
_HYPOTHETICAL = lazy_pattern(
    r"(?i)\b(?:may|might|can|could|would|will|should|potential\w{0,2}|avoid|prevent|if|when|causes?|lead(?:s|ing)? to)\b.{0,40}\b(?:hang|stuck|deadlock|freez)"
)
"""Advice and warnings speak of hangs that did not happen."""
STANDS_STILL = (
    r"\b(?:just|only|simply) (?:sits|sit|waits)\b|\bsits there\b|\bnothing (?:more |else )?happens\b|\bnever (?:starts|loads|gets (?:past|beyond|further)|proceeds|continues|responds)\b"
    r"|\b(?:does|do|did|will|would)(?:n['’]t| not) (?:proceed|continue|respond|go on|go any further|get (?:past|beyond|further|any further)|move on)\b"
    r"|\bno progress\b|\bstall(?:s|ed)\b|\b(?:logs?|output|it|everything) (?:stops|ends) (?:here|there|at|after|right)\b"
)
"""Words of people whose program stands still and prints nothing."""
STANDS_STILL_LITERALS = (
    "just sit", "only sit", "simply sit", "just wait", "only wait", "simply wait", "sits there", "nothing happens", "nothing more happens", "nothing else happens", "never starts", "never loads",
    "never gets", "never proceeds", "never continues", "never responds", " proceed", " continue", " respond", " go on", "any further", "get past", "get beyond", "get further", "move on",
    "no progress", "stalls", "stalled", "stops here", "stops there", "stops at", "stops after", "stops right", "ends here", "ends there", "ends at", "ends after",
)  # fmt: skip
_HANGS = lazy_pattern(
    rf"(?i){STANDS_STILL}|卡住|卡死|挂起|死锁|(?:^|\W)(?:hangs?|hung|hanging|stuck|freezes|frozen|deadlocks?|never (?:returns|ends|completes|finishes)|no (?:further|more) output|no output after|waits? forever|blocks? (?:forever|indefinitely))(?:\W|$)"
)


_OF_THE_WAIT = lazy_pattern(
    r"(?i)watchdog|NCCL|time[-d]? ?out|terminate called|what\(\)|DistBackend|DistStore|DeepEP|Aborted|signal 6|SIGABRT"
)


class Order(msgspec.Struct, frozen=True):
    """The answers to the six questions; None or empty means no."""

    reports: tuple[Report, ...]
    mismatch: Mismatch | None
    """(a)"""
    first_collective: Report | None
    """(b)"""
    earlier_failure: Event | None
    """(c)"""
    other_failure: Event | None
    """A failure with words of its own anywhere in the logs: of ranks without a common clock nobody knows which was first."""
    link: Seen | None
    """(d)"""
    compiling: Seen | None
    """(e), as far as the log shows it"""
    compilers: str
    """(e), an entry of the fact ``processes`` that is a compiler"""
    was_serving: bool
    stage: str
    """(f): ``bootstrap``, ``initialised`` or empty, how far NCCL came"""
    stage_line: Seen | None
    hang: Seen | None
    """Where somebody says that nothing goes on."""

    @property
    def decided_by(self) -> str:
        """The letter of the first step that answers yes; empty when none does."""
        answers = (
            ("a", self.mismatch is not None),
            ("b", self.first_collective is not None),
            ("c", self.earlier_failure is not None),
            ("d", self.link is not None),
            ("e", (self.compiling is not None or bool(self.compilers)) and not self.was_serving),
            ("f", not self.reports and bool(self.stage) and not self.was_serving),
        )
        return next((letter for letter, is_yes in answers if is_yes), "")


def order(case: Case) -> Order:
    """Ask all six questions of an incident."""
    timed_out = reports(case)
    stage, stage_line = _stage(case)
    return Order(
        reports=timed_out,
        mismatch=mismatch(timed_out),
        first_collective=_first_collective(timed_out),
        earlier_failure=_earlier_failure(case, timed_out),
        other_failure=_other_failure(case),
        link=first(case, _LINK, ("async", "error 12", "status=12", "IBV_", "etry count", "mlx5_core")),
        compiling=first(case, _COMPILING, ("DeepGEMM", "nvcc", "cicc", "ptxas", "cudafe", "ompil", "utotun", "Dynamo", "ninja", "Building ext", "JIT")),
        compilers=next((each for each in fact_texts(case, "processes") if _COMPILERS.search(each[:400])), ""),
        was_serving=first(case, _SERVING, ("HTTP/1", "throughput")) is not None,
        stage=stage,
        stage_line=stage_line,
        hang=_hang(case),
    )  # fmt: skip


def _first_collective(of: tuple[Report, ...]) -> Report | None:
    """The earliest report, when it is of the first tiny collective of its group."""
    if not of:
        return None
    earliest = of[0]
    is_first = earliest.sequence is not None and earliest.sequence <= FIRST_SEQUENCES
    return earliest if is_first and bool(earliest.sizes) and max(earliest.sizes) <= TINY else None


def _earlier_failure(case: Case, of: tuple[Report, ...]) -> Event | None:
    """A fatal event of its own before the first watchdog line: that rank is why the others waited."""
    if not of:
        return None
    begun = of[0].seen
    for event in case.incident.events:
        if event.is_echo or not event.is_fatal or "Watchdog caught" in event.text:
            continue
        if event.time is not None and begun.line.time is not None:
            if event.time < begun.line.time:
                return event
        elif is_before(event.place, begun.place):
            return event
    return None


def _other_failure(case: Case) -> Event | None:
    for event in case.incident.events:
        is_cut_off = event.kind == "exception" and not event.exceptions[-1].type
        if not event.is_fatal or event.is_echo or event.kind == "warning" or is_cut_off:
            continue
        if not _OF_THE_WAIT.search(event.text[:2000]):
            return event
    return None


def _stage(case: Case) -> tuple[str, Seen | None]:
    """How far NCCL came: the communicator was made, or only the first address was chosen."""
    bootstrapping: Seen | None = None
    for seen in holding(case, ("NCCL", "Bootstrap")):
        text = seen.line.text[:600]
        if _INITIALISED.search(text):
            return "initialised", seen
        if bootstrapping is None and _BOOTSTRAPPING.search(text):
            bootstrapping = seen
    return ("bootstrap", bootstrapping) if bootstrapping is not None else ("", None)


def _hang(case: Case) -> Seen | None:
    words = ("hang", "Hang", "hung", "stuck", "Stuck", "free", "froz", "eadlock", "never", "output", "forever", "indefinitely", "卡", "挂起", "死锁", *STANDS_STILL_LITERALS)  # fmt: skip
    return next((seen for seen in matching(case, _HANGS, words) if is_said_of_now(seen.text)), None)


def is_said_of_now(text: str) -> bool:
    """Whether a line that speaks of a hang tells of one, and does not warn of one."""
    return _HYPOTHETICAL.search(text[:400]) is None
