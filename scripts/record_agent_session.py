"""Writes docs/agent-session.json: an agent's session with ``gpuwhy mcp`` that solves the seed case.

Its test repeats the session and compares. Run it again when answers have changed for the better:
``python -m scripts.record_agent_session``.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.mcp.talking import Call, talk_over_stdio

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "agent-session.json"

CALLS: list[Call] = [
    ("diagnose", {"where": "incident.export"}),
    # what the first answer says is missing, as its commands tell it on the host
    ("diagnose", {"where": "incident.export", "facts": {"cuda_toolkit": "12.8", "cc": "12.0", "packages.flashinfer-python": "0.6.12"}}),
    ("propose_fix", {"where": "incident.export", "remedy": "FLASHINFER_CUDA_ARCH_LIST=12.0a"}),
]  # fmt: skip


def main() -> None:
    session = talk_over_stdio(["--folder", str(ROOT / "tests" / "data" / "logs")], CALLS)
    steps = [
        {"tool": name, "arguments": arguments, "bytes": answer["bytes"], "answer": answer["structuredContent"]}
        for (name, arguments), answer in zip(CALLS, session["answers"], strict=True)
    ]
    FILE.write_text(json.dumps(steps, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
