"""How long an agent waits for ``gpuwhy mcp``: from its start to the list of tools, and what the seed session costs.

``python -m benchmarks.bench_mcp [STARTS]`` prints the median and the worst of the starts (processor time beside them: on a machine
that is busy with other work, that is what the start costs), the size of the list, and the calls and bytes of the session.
Exits with 1 when a bar is missed: 1 s to the list, 6 KB of list, 3 calls, 20 KB of answers.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from scripts.record_agent_session import CALLS, ROOT
from tests.mcp.talking import talk_over_stdio

STARTS = 10
MOST_SECONDS, MOST_LIST, MOST_CALLS, MOST_ANSWERED = 1.0, 6 * 1024, 3, 20_000
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
_ASKED = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
]


def start() -> tuple[float, float, int]:
    """Seconds on the clock and of the processor until the list has come, and the bytes of the list."""
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "gpuwhy", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in _ASKED))
        server.stdin.flush()
        server.stdout.readline()
        listed = json.loads(server.stdout.readline())["result"]["tools"]
        passed = time.perf_counter() - begun
        ticks = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
        server.stdin.close()
    return passed, (int(ticks[11]) + int(ticks[12])) / 100, len(json.dumps({"tools": listed}, separators=(",", ":")))


def main() -> int:
    starts = [start() for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else STARTS)]
    seconds, processor = (sorted(each[which] for each in starts) for which in (0, 1))
    size = starts[0][2]
    answers = talk_over_stdio(["--folder", str(ROOT / "tests" / "data" / "logs")], CALLS)["answers"]
    answered = sum(each["bytes"] for each in answers)
    text = sum(len(each["content"][0]["text"].encode()) for each in answers)
    median = statistics.median(seconds)
    print(
        f"start to list of tools: median {median:.2f} s, worst {seconds[-1]:.2f} s; processor {statistics.median(processor):.2f} s (bar {MOST_SECONDS} s)"
    )
    print(f"list of tools: {size} bytes (bar {MOST_LIST})")
    print(
        f"seed case: {len(CALLS)} calls (bar {MOST_CALLS}), {answered} bytes over the wire (bar {MOST_ANSWERED}), {text} of them as text"
    )
    is_met = median < MOST_SECONDS and size < MOST_LIST and len(CALLS) <= MOST_CALLS and answered < MOST_ANSWERED
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
