"""The unit that a process belongs to."""

from __future__ import annotations

import pytest

from gpuwhy.collector.unit_of_process import unit_of_group


@pytest.mark.parametrize(
    ("group", "unit"),
    [
        ("/system.slice/vllm.service", "vllm.service"),
        ("/system.slice/system-vllm.slice/vllm@70b.service", "vllm@70b.service"),
        ("/system.slice/sglang.service/worker", "sglang.service"),
        ("/user.slice/user-0.slice/user@0.service/app.slice/vllm.service", "user:root/vllm.service"),
        ("/user.slice/user-1000.slice/session-3.scope", None),
        ("/system.slice/docker-0123456789abcdef.scope", None),
        ("/system.slice/ssh.service", None),
        ("/system.slice/cron.service", None),
        ("/user.slice/user-0.slice/user@0.service/init.scope", None),
        ("/docker/0123456789abcdef", None),
        ("/", None),
        ("", None),
    ],
)
def test_the_unit_of_a_control_group(group: str, unit: str | None) -> None:
    assert unit_of_group(group) == unit
