"""A host with an environment of real binaries, asked through the collector's own answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from tests.binaries.writing import EXACT, PTX, Part, container, entry, library

from gpuwhy.collector import serving
from gpuwhy.diagnosis import Judgement, completed, sign_literals
from gpuwhy.investigate.binaries_asked import binary_facts, judged_again
from gpuwhy.investigate.log import judged
from gpuwhy.investigate.record import Record
from gpuwhy.logs import facts_in, read_bytes
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.model.finding import Finding
from gpuwhy.snapshot import Probe, Snapshot
from gpuwhy.snapshot.document import Subject
from gpuwhy.targets import Ask, Reply


def coded(*archs: str, containers: int = 3, ptx: tuple[int, int] = (8, 0), **more: Any) -> bytes:
    """A library with device code: ``coded("sm_80", "sm_90a", "compute_90")``."""
    images = []
    for arch in archs:
        kind, _, number = arch.partition("_")
        flags = EXACT if number.endswith("a") else 0
        digits = int(number.rstrip("af"))
        images.append(
            entry(PTX, digits, flags, ptx, b"x" * 64) if kind == "compute" else entry(arch=digits, flags=flags)
        )
    fatbin = Part(".nv_fatbin", container(*images) * containers)
    return library(extra=(fatbin, Part(".nvFatBinSegment", bytes(24 * containers))), **more)


class Host:
    """Answers as the collector on a target does, and remembers what it was asked."""

    def __init__(self, packages: Path, variables: dict[str, str] | None = None, caches: Any = None) -> None:
        self.packages = packages
        self.asked: list[Ask] = []
        self.values: dict[str, Any] = {
            "environment": {"variables": variables or {}},
            "python_environments": [{"folders": [str(packages)], "real_interpreter": "/none", "prefix": str(packages)}],
        }
        if caches is not None:
            self.values["jit_cache"] = caches

    def ask(self, asks: list[Ask], deadline: float = 10.0) -> list[Reply]:
        self.asked += asks
        answers = [serving.answer(msgspec.to_builtins(ask), self.values) for ask in asks]
        return [Reply(status=each["status"], reason=each["reason"], value=each["value"]) for each in answers]

    def snapshot(self) -> Snapshot:
        probes = tuple(Probe(name=name, status="ok", value=value) for name, value in self.values.items())
        return Snapshot(target=Subject("local", "here"), started=0.0, probes=probes)


class Answer(msgspec.Struct, frozen=True):
    """The judgement before and after the binaries were asked, with what they said."""

    before: Judgement
    after: Judgement
    facts: Facts

    @property
    def leader(self) -> Finding:
        return self.after.findings[0]

    def finding(self, cause: str) -> Finding:
        return next(finding for finding in self.after.findings if finding.cause == cause)

    @property
    def excluded(self) -> list[str]:
        return [each.cause for each in self.after.ruled_out]


def diagnosed(host: Host, log: str, **facts: Any) -> Answer:
    """What is made of a log on that host. ``facts``: what was collected otherwise, ``packages__torch`` for a dotted key."""
    known = {name.replace("__", ".", 1): value for name, value in facts.items()}
    places = {"torch": str(host.packages / "torch/version.py")}
    collected = Facts({key: Fact(key, value, Evidence(f"{key} is {value}", str(value), Place("file", places.get(key, key)))) for key, value in known.items()})  # fmt: skip
    read = read_bytes(log.encode(), "journal", sign_literals())
    record = Record()
    incident, before, dating = judged([read], facts_in(read).merged(collected), record)
    more = binary_facts(incident, before, host.snapshot(), completed(dating.facts), host, record)
    after = judged_again(incident, before, dating.facts.merged(more), more, record) if len(more) else before
    return Answer(before, after, more)
