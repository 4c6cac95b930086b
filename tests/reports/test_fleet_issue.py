"""A fleet in an issue: everything is there, and nothing of a host becomes markup."""

from __future__ import annotations

import re

from tests.reports.html.fleet_sample import fleet

from gpuwhy.reports import Detail, render

PRIVATE = render(fleet(), "markdown", Detail(is_private=True))


def test_the_answer_the_job_the_outliers_and_what_is_not_known_are_there() -> None:
    assert PRIVATE.startswith("## 60 of 64 alike; gpu017: driver 570.86.15 (others 580.95.05); A kernel exists")
    assert "### `sglang.service` failed on 3 nodes together" in PRIVATE
    assert "| 2027-01-15 08:00:00 UTC | `gpu017` |" in PRIVATE
    assert "| +31.5 s | `gpu018` |" in PRIVATE
    assert "is not sure: no line of the logs tells whose clock is right" in PRIVATE
    assert "| 2 | `gpu[040-041]` | `toolkit_resolved.flashinfer`" in PRIVATE
    assert "`LD_LIBRARY_PATH=/usr/local/cuda/compat`" in PRIVATE
    assert "| `env.NCCL_SOCKET_IFNAME` | `eth0` on 30, `eth1` on 20, `bond0` on 12 |" in PRIVATE
    assert "| `gpu[065-066]` | unreachable |" in PRIVATE


def test_text_of_a_host_is_code_and_a_row_stays_a_row() -> None:
    outside = re.sub(r"`[^`\n]*`", "", PRIVATE)
    assert "<script>" in PRIVATE
    assert "<script>" not in outside
    assert "\u202e" not in PRIVATE
    rows = [line for line in PRIVATE.splitlines() if re.match(r"\| \d \|", line)]
    assert len(rows) == 3
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 6 for line in rows)


def test_the_public_is_told_no_name_of_a_node() -> None:
    public = render(fleet(), "markdown")
    assert "gpu0" not in public
    assert re.search(r"`host-\d+`", public)
    assert "570.86.15" in public
