"""The same session with the SDK's older major, client and server, in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from tests.mcp.test_serving import CALLS, LOGS, judge

pytestmark = pytest.mark.soak
ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("sdk", ["mcp>=1,<2", "mcp==1.10.1"])
def test_both_transports(sdk: str, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt"), sdk if "==" not in sdk else "pip", str(ROOT)], check=True)  # fmt: skip
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", sdk], check=True)
    for transport in ("stdio", "http"):
        spoken = subprocess.run([python, str(ROOT / "tests/mcp/talking.py"), transport, str(LOGS)], input=json.dumps(CALLS), capture_output=True, text=True, check=True)  # fmt: skip
        judge(json.loads(spoken.stdout))
    assert sys.executable != python
