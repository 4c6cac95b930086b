"""The same session with the SDK's older major, client and server, in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path

import pytest
from tests.mcp.test_serving import CALLS, LOGS, judge

pytestmark = pytest.mark.soak
ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
def test_both_transports(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*install, str(ROOT), "mcp<2"], check=True)
    for transport in ("stdio", "http"):
        command = [python, str(ROOT / "tests/mcp/talking.py"), transport, str(LOGS)]
        spoken = subprocess.run(command, input=json.dumps(CALLS), capture_output=True, text=True, check=True)
        judge(json.loads(spoken.stdout))
