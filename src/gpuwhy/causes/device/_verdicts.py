"""What verdicts on faults of the device have in common: what leads, how sure that makes it, what is asked, the reset."""

from __future__ import annotations

from msgspec import Struct

from gpuwhy.causes._case import Case, inferred
from gpuwhy.causes.device import _faults as faults
from gpuwhy.causes.device._faults import Fault
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.finding import Certainty, Link, Missing
from gpuwhy.model.remedy import NotARemedy, Remedy

FAMILY = "Driver, device and fabric"
_DAY = 86400
FIRST, LITERAL, TYPED, LATER, SYMPTOM = 88, 80, 62, 18, 25
"""Strength: first line of the kernel, a program's literal error, somebody's words, a line after another's, a symptom."""


class Reading(Struct, frozen=True):
    """The faults of a case as one cause sees them. ``own`` is its leading fault, ``first`` the one that leads at all.

    ``is_long_past``: the failure came more than a day after the fault.
    """

    own: Fault
    first: Fault
    all: tuple[Fault, ...]
    own_all: tuple[Fault, ...]
    is_long_past: bool = False

    @property
    def leads(self) -> bool:
        return self.own.part == self.first.part

    @property
    def certainty(self) -> Certainty:
        if not self.leads or self.is_long_past:
            return Certainty.POSSIBLE
        if self.own.is_mild and self.own.is_switch:
            return Certainty.POSSIBLE
        is_weak = self.own.is_hearsay or self.own.is_mild or self.own.sign == faults.SURPRISE.name
        return Certainty.LIKELY if is_weak else Certainty.PROVEN

    @property
    def strength(self) -> int:
        if not self.leads or self.is_long_past:
            return LATER
        if self.own.is_hearsay:
            return TYPED
        if self.own.is_mild:
            return FIRST - 25 if not self.own.is_switch else LATER
        return FIRST if self.own.is_kernels else LITERAL

    @property
    def rivals(self) -> tuple[str, ...]:
        return () if self.leads else (self.first.part,)

    @property
    def against(self) -> tuple[Evidence, ...]:
        return () if self.leads else (self.first.evidence("this fault was reported first"),)

    @property
    def following(self) -> tuple[Fault, ...]:
        """Faults of other kinds that came with it."""
        return tuple(fault for fault in self.all if fault.part != self.own.part)

    def evidence(self, statement: str) -> tuple[Evidence, ...]:
        """The leading line, one more of its kind from another device, and the first of those that followed."""
        others = [fault for fault in self.own_all if fault.text != self.own.text and (fault.device, fault.number) != (self.own.device, self.own.number)]  # fmt: skip
        more = [fault.evidence("the same kind of fault, at another place") for fault in others[:1]]
        after = [fault.evidence("came with it") for fault in self.following[:1] if self.leads]
        return (self.own.evidence(statement), *more, *after)


def read(case: Case, part: str) -> Reading | None:
    """How the faults of the case look to the cause ``part``; None when none is its own."""
    found = faults.read_faults(case)
    own = faults.of_part(found, part)
    first = faults.lead(found)
    if not own or first is None:
        return None
    leader = first if first.part == part else own[0]
    if leader.sign == faults.SURPRISE.name:  # the port's line; the driver's own names the GPU
        leader = next((fault for fault in own if fault.sign != faults.SURPRISE.name), leader)
    return Reading(leader, first, found, own, _is_long_past(case, leader))


def _is_long_past(case: Case, fault: Fault) -> bool:
    """Whether programs went on for more than a day: the first of their failures came later than that."""
    failures = (event for event in case.incident.events if event.is_fatal and event.kind != "kernel" and not event.is_echo)  # fmt: skip
    times = [event.time for event in failures if event.time is not None]
    return bool(times) and fault.time is not None and min(times) - fault.time > _DAY


def chain(reading: Reading, root: str, statement: str) -> tuple[Link, ...]:
    """From the root over the reported line to the program's failure."""
    own = reading.own
    links = [Link(root, None if own.is_kernels else inferred("the kernel log is not shown")), Link(statement, own.evidence(statement))]  # fmt: skip
    if reading.leads and reading.following:
        links.append(Link("Further faults follow from it", reading.following[0].evidence("came with it")))
    links.append(Link("Programs on that GPU fail, or hang"))
    return tuple(links)


def device(fault: Fault) -> str:
    """`` of GPU PCI:0000:61:00``, or nothing."""
    return f" ({fault.device})" if fault.device else ""


def asked(case: Case, reading: Reading, *more: Missing | None) -> tuple[Missing, ...]:
    """The kernel log, where it is not what spoke, and what else would confirm."""
    wanted = [] if reading.leads and reading.own.is_kernels else [faults.kernel_log_missing(case, "which fault the kernel reported first")]  # fmt: skip
    return tuple(each for each in (*wanted, *more) if each is not None)


def reset(rank: int = 0, *, is_sure: bool = True) -> Remedy:
    """A reset of one GPU."""
    return Remedy(
        kind="driver", name="gpu-reset", value="nvidia-smi --gpu-reset -i INDEX", rank=rank, is_sure=is_sure,
        summary="Stop every program on the GPU and reset it (GPUs behind NVSwitch: all of them together, with Fabric Manager stopped)",
        commands=("nvidia-smi --gpu-reset -i INDEX",),
        cost="root; every program on the GPU stops",
        check=("nvidia-smi", "journalctl -k --since '5 min ago' | grep -i xid"),
        limits=("a GPU that has left the bus cannot be reset: reboot",),
    )  # fmt: skip


def reboot(rank: int = 0, *, is_sure: bool = True) -> Remedy:
    return Remedy(
        kind="service", name="host", value="reboot", rank=rank, is_sure=is_sure,
        summary="Reboot the machine, better power it off and on: it clears the state, not what caused it",
        cost="everything on the machine stops", check=("nvidia-smi -L", "journalctl -k -b | grep -i xid"),
    )  # fmt: skip


def newer_driver(why: str, rank: int = 2) -> Remedy:
    return Remedy(
        kind="driver", name="nvidia", value="newer", rank=rank, is_sure=False,
        summary=f"A newer driver of the same branch, or the next branch ({why})",
        cost="root on the host and a reboot", risk="medium", check=("cat /proc/driver/nvidia/version",),
    )  # fmt: skip


def replace(name: str, summary: str, value: str = "replace", rank: int = 0, *, is_sure: bool = False) -> Remedy:
    return Remedy(kind="hardware", name=name, value=value, summary=summary, rank=rank, is_sure=is_sure)


RESTART_ONLY = NotARemedy("restarting the service", "the device keeps its state until it is reset")
SETTINGS = NotARemedy(
    "options of the engine, less memory, another release of the engine", "the fault is below the program"
)
