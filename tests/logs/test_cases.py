"""Real reports: the line that shows the cause must end up in an event, and the primary event must not be an echo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuwhy.logs import find_incidents, read_report
from gpuwhy.model.event import Event, Log

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.yaml"))
PRIMARY_AT_LEAST = 0.95
EVENT_AT_LEAST = 0.96
ECHO_AT_MOST = 0.02


def _says(log: Log, event: Event, line: str) -> bool:
    quoted = "\n".join(one.raw for one in log.lines if event.span.first <= one.number <= event.span.last)
    first = event.text.partition("\n")[0]
    return line in quoted or line in event.text or (len(first) > 12 and first in line)


def _cases() -> list[dict[str, Any]]:
    return [yaml.safe_load(path.read_text()) for path in CASES]


@pytest.mark.skipif(not CASES, reason="no cases in this checkout")
def test_decisive_lines() -> None:
    shown = in_event = is_primary = echoes = 0
    for case in _cases():
        line = case["truth"]["decisive_line"]
        if line is None:
            continue
        shown += 1
        log = read_report(case["report"])
        incident = find_incidents([log])
        primary = incident.primary_event
        in_event += any(_says(log, event, line) for event in incident.events)
        if primary is None:
            continue
        is_primary += _says(log, primary, line)
        headline = primary.text.partition("\n")[0]
        secondary = case["truth"].get("secondary_lines") or []
        echoes += line not in headline and any(echo in headline for echo in secondary)
    assert in_event >= EVENT_AT_LEAST * shown
    assert is_primary >= PRIMARY_AT_LEAST * shown
    assert echoes <= ECHO_AT_MOST * shown
