"""The same report in other clothes: what must not change the answer.

| variation | what it does |
| --- | --- |
| renumbered | other times, dates, process ids, addresses in memory and source line numbers |
| compose, containerd, engine, rank | another writer's prefix before every line |
| buried | 5,000 lines of healthy services before, 200 after |
| cut | the last fifth is missing |
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

Variation = Callable[[str], str]
HEALTHY_BEFORE, HEALTHY_AFTER = 5_000, 200

_CLOCK = re.compile(r"\b([01]\d|2[0-3]):([0-5]\d):([0-5]\d)\b")
_DATE = re.compile(r"\b(20\d\d)-(\d\d)-(\d\d)\b")
_PID = re.compile(r"\b(?P<word>pid[=: ]{1,2}|PID[=: ]{1,2}|Killed process |process )(?P<pid>\d{2,7})\b")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{8,16}\b")
_SOURCE_LINE = re.compile(r"(?P<before>\", line |\.(?:py|cu|cuh|cpp|cc|h|hpp|inl)[:(])(?P<line>\d{1,5})\b")


def renumbered(text: str) -> str:
    """Numbers that say nothing of the cause, changed; equal ones stay equal."""
    text = _CLOCK.sub(lambda m: f"{(int(m[1]) + 5) % 24:02}:{m[2]}:{m[3]}", text)
    text = _DATE.sub(lambda m: f"{int(m[1]) - 1}-{m[2]}-{m[3]}", text)
    text = _PID.sub(lambda m: f"{m['word']}{(int(m['pid']) * 7 + 13) % 4_000_000 + 100}", text)
    text = _ADDRESS.sub(lambda m: f"0x{(int(m[0], 16) * 31 + 4096) % (1 << 48):012x}", text)
    return _SOURCE_LINE.sub(lambda m: m["before"] + str(int(m["line"]) + 37), text)


def compose(text: str) -> str:
    return _before_each(text, "inference-server-1  | ")


def containerd(text: str) -> str:
    return _before_each(text, "2026-11-29T10:05:09.123456789Z stderr F ")


def engine(text: str) -> str:
    return _before_each(text, "(EngineCore_0 pid=90210) ")


def rank(text: str) -> str:
    return _before_each(text, "[rank3]: ")


def _before_each(text: str, prefix: str) -> str:
    return "\n".join(prefix + line for line in text.rstrip("\n").split("\n")) + "\n"


def buried(text: str) -> str:
    """Between the ordinary lines of other services of the same machine."""
    ordinary = random.Random(7)
    before = [_ordinary(ordinary, n) for n in range(HEALTHY_BEFORE)]
    after = [_ordinary(ordinary, n) for n in range(HEALTHY_BEFORE, HEALTHY_BEFORE + HEALTHY_AFTER)]
    return "\n".join([*before, text.rstrip("\n"), *after]) + "\n"


def _ordinary(rng: random.Random, n: int) -> str:
    stamp = f"Nov 29 09:{n // 90 % 60:02}:{n * 2 // 3 % 60:02} gpu-host"
    kind = rng.randrange(6)
    if kind == 0:
        return f'{stamp} dockerd[812]: time="2026-11-29T09:00:00Z" level=info msg="ignoring event" container={rng.getrandbits(64):x} topic=/tasks/exit'
    if kind == 1:
        return f"{stamp} kernel: eth0: link is up at {rng.choice((10000, 25000))} Mbps, full duplex, {n} packets"
    if kind == 2:
        return f'{stamp} prometheus-node-exporter[901]: level=info msg="scrape served" duration={rng.random():.4f}s'
    if kind == 3:
        return (
            f"{stamp} CRON[{n + 1000}]: (root) CMD (test -x /usr/sbin/anacron || run-parts --report /etc/cron.hourly)"
        )
    if kind == 4:
        return f"{stamp} sshd[{n + 2000}]: Accepted publickey for deploy from 192.0.2.{n % 250} port {rng.randrange(1024, 65000)} ssh2"
    return f"{stamp} chronyd[700]: Selected source 192.0.2.{n % 250} (pool.ntp.example)"


def cut(text: str) -> str:
    """Without its last fifth, cut at the end of a line."""
    kept = text[: len(text) * 4 // 5]
    return kept[: kept.rfind("\n") + 1] or kept


VARIATIONS: Mapping[str, Variation] = {
    "renumbered": renumbered,
    "compose": compose,
    "containerd": containerd,
    "engine": engine,
    "rank": rank,
    "buried": buried,
    "cut": cut,
}


def is_decided_by(varied: str, decisive: str | None, name: str) -> bool:
    """Whether a varied report still holds the line that decides (cutting can take it away)."""
    if not decisive:
        return True
    line = renumbered(decisive) if name == "renumbered" else decisive
    return _letters(line) in _letters(varied)


def _letters(text: str) -> str:
    """Wrapped lines got prefixes between their words: spaces and prefixes do not count."""
    for prefix in ("inference-server-1  | ", "2026-11-29T10:05:09.123456789Z stderr F ", "(EngineCore_0 pid=90210) ", "[rank3]: "):  # fmt: skip
        text = text.replace(prefix, "")
    return "".join(text.split())
