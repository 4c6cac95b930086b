"""The cause of this site, asked as gpuwhy asks it."""

from __future__ import annotations

from gpuwhy.investigate import diagnose_log
from gpuwhy.snapshot.given import given

REPORT = b"OSError: /mnt/models/qwen3-32b/config.json does not exist\n"


def test_the_share_leads() -> None:
    assert diagnose_log(REPORT, "report").findings[0].cause == "model-mount-missing"


def test_a_share_that_is_mounted_is_not_to_blame() -> None:
    facts = given({"mount./mnt/models": "rw,relatime"}).facts
    diagnosis = diagnose_log(REPORT, "report", facts)
    assert "model-mount-missing" in [each.cause for each in diagnosis.ruled_out]
