"""An agent mends a crashed service of a real host: what it needs, in three calls, with the user's leave and not without."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lab.fixing import gpuwhy
from tests.lab.gpu_host import GpuHost
from tests.mcp.talking import Call, served, talk_over_http

pytestmark = pytest.mark.lab

UNIT = "sglang.service"
REMEDY = "FLASHINFER_CUDA_ARCH_LIST=12.0a"


def test_from_the_diagnosis_to_the_running_service(
    crashed_host: GpuHost, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = crashed_host
    monkeypatch.setenv("GPUWHY_SSH_OPTIONS", host.ssh_options)
    place = {"where": host.ssh_destination, "unit": UNIT}
    with served(["--folder", str(tmp_path), "--allow", host.ssh_destination, "--allow-apply", "--timeout", "300"]) as (
        url,
        token,
    ):

        def answered(*call: Call) -> dict[str, Any]:
            (answer,) = talk_over_http(url, token, list(call))["answers"]
            assert not answer.get("isError"), answer
            document: dict[str, Any] = answer["structuredContent"]
            return document

        found = answered(("diagnose", place))
        assert (found["cause"], found["certainty"]) == ("toolkit-too-old-for-arch", "proven")
        preview = answered(("propose_fix", {**place, "remedy": REMEDY}))
        assert preview["preview"]["restarts"] == UNIT
        assert host.show(UNIT, "ActiveState")["ActiveState"] != "active"
        result = answered(("propose_fix", {**place, "apply_token": preview["apply_token"]}))["result"]
        assert result["status"] == "verified", result
        assert host.show(UNIT, "ActiveState")["ActiveState"] == "active"
        undone = gpuwhy(host, "undo", host.ssh_destination, result["undo"].split()[-1])
        assert undone.returncode == 0, undone.stderr
