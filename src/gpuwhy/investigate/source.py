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

LINES_READ = 2000
"""Of each file; the modules that hold checks are shorter."""


class Questioner(Protocol):
    """Answers further requests about files of the target: a session, or what a snapshot kept."""

    def ask(self, asks: list[Ask], deadline: float = 10.0) -> list[Reply]: ...


def confirmed(judgement: Judgement, source: Questioner, record: Record) -> Judgement:
    """The judgement with those links of its leading findings shown from the source that nobody had seen.

    One request for all files. A file that cannot be read leaves its links inferred, and says so in the record.
    """
    wanted = sorted(
        {
            link.source.path
            for finding in judgement.findings[:3]
            for link in finding.chain
            if _is_open(link) and link.source
        }
    )
    if not wanted:
        return judgement
    replies = source.ask([Ask("read", path, 1, LINES_READ) for path in wanted])
    texts: dict[str, list[str]] = {}
    for path, reply in zip(wanted, replies, strict=False):
        texts[path] = lines_of(reply.value) if reply.status == "ok" else []
        record.add(
            "what does the installed source say", path, reply.status, reply.reason or f"{len(texts[path])} lines"
        )
    findings = tuple(_shown(finding, texts) for finding in judgement.findings)
    return msgspec.structs.replace(judgement, findings=findings)


def lines_of(value: Any) -> list[str]:
    """The lines of a ``read`` reply: a text, or a mapping that holds it."""
    text = value.get("text", "") if isinstance(value, dict) else value
    if isinstance(text, list):
        return [str(line) for line in text]
    return str(text or "").splitlines()


def _is_open(link: Link) -> bool:
    return link.source is not None and (link.evidence is None or link.evidence.standing is Standing.INFERRED)


def _shown(finding: Finding, texts: dict[str, list[str]]) -> Finding:
    chain = tuple(_shown_link(link, texts) if _is_open(link) else link for link in finding.chain)
    return msgspec.structs.replace(finding, chain=chain)


def _shown_link(link: Link, texts: dict[str, list[str]]) -> Link:
    if link.source is None:
        return link
    number = _line_with(texts.get(link.source.path, ()), link.source.text)
    if number is None:
        return link
    line = texts[link.source.path][number - 1].strip()
    evidence = Evidence("the installed source", line[:300], Place("file", link.source.path, number), Standing.OBSERVED)
    return msgspec.structs.replace(link, evidence=evidence)


def _line_with(lines: Sequence[str], text: str) -> int | None:
    for number, line in enumerate(lines, 1):
        if text in line:
            return number
    return None
