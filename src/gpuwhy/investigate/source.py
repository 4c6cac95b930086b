"""Look up in the installed source what a chain only infers, and the code around the failure itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from gpuwhy.diagnosis import Judgement
from gpuwhy.investigate.record import Record
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.finding import Finding, Link
from gpuwhy.targets import Ask, Reply

LEADING = 3
"""Findings whose chains are looked up; the others are not the answer."""
LINES_READ = 2000
"""Of each file; the modules that hold checks are shorter."""


class Questioner(Protocol):
    """Answers further requests about files of the target: a session, or what a snapshot kept."""

    def ask(self, asks: list[Ask], deadline: float = 10.0) -> list[Reply]: ...


def confirmed(judgement: Judgement, source: Questioner, record: Record) -> Judgement:
    """The judgement with the links of its leading findings shown in the installed source, where that can be read.

    One request for all files. A link that nobody had seen is no longer inferred when its line is there. A file that
    cannot be read leaves its links as they were, and says so in the record.
    """
    checks = {link.source for finding in judgement.findings[:LEADING] for link in finding.chain if link.source}
    wanted = sorted({check.path for check in checks})
    if not wanted:
        return judgement
    replies = source.ask([Ask("read", path, 1, LINES_READ) for path in wanted])
    texts: dict[str, list[str]] = {}
    for path, reply in zip(wanted, replies, strict=False):
        texts[path] = lines_of(reply.value) if reply.status == "ok" else []
        found = [check for check in checks if check.path == path and _line_with(texts[path], check.text) is not None]
        outcome = reply.reason or f"{len(texts[path])} lines; shows {len(found)} links of the chain"
        record.add("what does the installed source say", path, reply.status, outcome)
    leading = tuple(_shown(finding, texts) for finding in judgement.findings[:LEADING])
    return msgspec.structs.replace(judgement, findings=(*leading, *judgement.findings[LEADING:]))


def lines_of(value: Any) -> list[str]:
    """The lines of a ``read`` reply: a mapping that holds them, or a text."""
    text = value.get("lines", value.get("text", "")) if isinstance(value, dict) else value
    if isinstance(text, list):
        return [str(line) for line in text]
    return str(text or "").splitlines()


def _shown(finding: Finding, texts: dict[str, list[str]]) -> Finding:
    return msgspec.structs.replace(finding, chain=tuple(_shown_link(link, texts) for link in finding.chain))


def _shown_link(link: Link, texts: dict[str, list[str]]) -> Link:
    if link.source is None:
        return link
    lines = texts.get(link.source.path, [])
    number = _line_with(lines, link.source.text)
    if number is None:
        return link
    place = Place("file", link.source.path, number)
    installed = Evidence("the installed source", lines[number - 1].strip()[:300], place, Standing.OBSERVED)
    is_open = link.evidence is None or link.evidence.standing is Standing.INFERRED
    return msgspec.structs.replace(link, installed=installed, evidence=installed if is_open else link.evidence)


def _line_with(lines: Sequence[str], text: str) -> int | None:
    for number, line in enumerate(lines, 1):
        if text in line:
            return number
    return None
