"""Parts that all reports share."""

from __future__ import annotations

from msgspec.structs import replace

from gpuwhy.investigate import diagnose_log
from gpuwhy.reports.sections import subject_of


def test_the_subject_is_the_unit_and_a_process_without_one_has_no_name() -> None:
    crashed = replace(diagnose_log(b"RuntimeError: no\n", "x"), where="gpu-host")
    named = {unit: subject_of(replace(crashed, incident=replace(crashed.incident, unit=unit))) for unit in ("", "sglang.service", "process/4711")}  # fmt: skip
    assert named == {"": "gpu-host", "sglang.service": "sglang.service on gpu-host", "process/4711": "gpu-host"}
