"""The statuses of a fleet from what OpenSSH and the shell on a node say, in their own words (OpenSSH 9.2)."""

from __future__ import annotations

import pytest

from gpuwhy.fleet.engines.words import of_ssh, of_task

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Host key verification failed.
"""


@pytest.mark.parametrize(
    ("status", "errors", "expected", "said"),
    [
        (0, "Warning: Permanently added 'a'", "ok", ""),
        (255, "ssh: connect to host 10.0.0.5 port 22: Connection refused", "refused", "nothing listens"),
        (255, "ssh: connect to host 10.0.0.5 port 22: Connection timed out", "unreachable", "does not answer"),
        (255, "Connection timed out during banner exchange", "unreachable", "does not answer"),
        (255, "ssh: connect to host 10.0.0.5 port 22: No route to host", "unreachable", "no way to it"),
        (255, "ssh: Could not resolve hostname x: Name or service not known", "unreachable", "cannot be resolved"),
        (255, "root@a: Permission denied (publickey).", "denied", "refused the login"),
        (255, CHANGED, "denied", "host key"),
        (255, "kex_exchange_identification: read: Connection reset by peer", "refused", "closed the connection"),
        (127, "gpuwhy: no python3 here", "no python", "python3"),
        (1, "sudo: a password is required", "denied", "sudo"),
        (None, "", "timed out", "no answer in time"),
        (3, "", "failed", "status 3"),
    ],
)
def test_ssh(status: int | None, errors: str, expected: str, said: str) -> None:
    found, reason = of_ssh("gpu1", status, errors)
    assert found == expected
    assert said in reason
    assert "\n" not in reason


def test_a_name_that_is_no_destination_has_a_reason_as_well() -> None:
    assert of_ssh("-oX", 255, "odd") == ("failed", "ssh ended with status 255")


def test_a_task() -> None:
    assert of_task(0, "whatever") == ("ok", "")
    assert of_task(127, "gpuwhy: no python3 here")[0] == "no python"
    assert of_task(1, "Traceback\nMemoryError\n") == ("failed", "the collector ended with status 1: MemoryError")
