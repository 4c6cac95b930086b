"""A host over the user's own OpenSSH client: their configuration, keys, jump hosts and known hosts are honoured."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence

from gpuwhy.targets.interface import Connection, TargetError
from gpuwhy.targets.pipe import NO_PYTHON, NO_PYTHON_STATUS, PipeConnection, remote_command
from gpuwhy.targets.sudo import refusal

OPTIONS_VARIABLE = "GPUWHY_SSH_OPTIONS"
"""Further options for ``ssh``, split as a shell would: ``-F lab/ssh_config -p 2222``."""

CONNECT_TIMEOUT = 10

ALIVE_INTERVAL = 5

_DESTINATION = re.compile(r"^(?!ssh://-)(?:ssh://)?[^\s\-\x00-\x1f'\"`$;&|<>()][^\s\x00-\x1f'\"`$;&|<>()]*\Z")


_WITH_PORT = re.compile(
    r"(?:[^\s@/\[\]]{1,100}@)?(?:[^\s@/:\[\]]{1,255}(?=:)|\[[0-9A-Fa-f:.]{2,45}(?:%[\w.-]{1,20})?\])(?::(?P<port>\d{1,9}))?\Z"
)
"""Never a bare IPv6 address, whose last group is no port."""


class SshTarget:
    """``destination`` as ssh takes it: ``host``, ``user@host``, an alias of the configuration, ``ssh://user@host:port``; also
    without the ``ssh://``, and an IPv6 address in brackets, which ssh itself takes only behind it.

    With ``sudo`` the collector, and nothing else, has root's rights there; a password is never asked for.
    """

    kind = "ssh"

    def __init__(self, destination: str, sudo: bool = False) -> None:
        if not _DESTINATION.match(destination):
            raise TargetError(
                f"{destination!r} is no SSH destination",
                "Write it as ssh does: host, user@host or ssh://user@host:port.",
            )
        self.name = destination
        self.destination = _as_ssh_takes_it(destination)
        self.sudo = sudo

    def open(self, program: str) -> Connection:
        return PipeConnection(self.command(), program, self.explain)

    def command(self) -> list[str]:
        """The command that starts the collector there. Raises TargetError without an ssh client."""
        client = shutil.which("ssh")
        if client is None:
            raise TargetError(
                "there is no ssh client on this machine",
                "Install OpenSSH's client (package openssh-client or openssh-clients).",
            )
        given = shlex.split(os.environ.get(OPTIONS_VARIABLE, ""))
        # Nobody can answer a question when standard input is no terminal.
        batch = [] if sys.stdin is not None and sys.stdin.isatty() else ["-o", "BatchMode=yes"]
        return [
            client,
            "-T",
            *given,
            *batch,
            *_defaults(client, given, self.destination),
            "--",
            self.destination,
            remote_command(self.sudo),
        ]

    def explain(self, status: int | None, errors: str) -> TargetError:
        """ssh's own words, and what to do about them."""
        return _explain(self.destination, status, errors)


def _as_ssh_takes_it(destination: str) -> str:
    """``root@host:2222`` as ``ssh://root@host:2222``. Raises TargetError for a port that is none."""
    found = _WITH_PORT.match(destination)
    if found is None:
        return destination
    port = found["port"]
    if port is not None and not 0 < int(port) < 65536:
        raise TargetError(f"{destination}: {port} is no port", "A port is a number from 1 to 65535.")
    return f"ssh://{destination}"


def _defaults(client: str, given: Sequence[str], destination: str) -> list[str]:
    """A time-out for connecting, and one for a connection that fell silent, where the configuration has none."""
    try:
        done = subprocess.run(
            [client, *given, "-G", "--", destination],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
            stdin=subprocess.DEVNULL,
            errors="replace",
        )
        configured = dict(line.lower().split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    except (OSError, subprocess.TimeoutExpired):
        configured = {}
    options: list[str] = []
    if configured.get("connecttimeout", "none") in ("none", "0"):
        options += ["-o", f"ConnectTimeout={CONNECT_TIMEOUT}"]
    if configured.get("serveraliveinterval", "0") == "0":
        options += ["-o", f"ServerAliveInterval={ALIVE_INTERVAL}"]
    return options


_KNOWN = (
    (re.compile(r"REMOTE HOST IDENTIFICATION HAS CHANGED"), "its host key is not the one known", "Make sure that the host was reinstalled and nobody stands between; then: ssh-keygen -R {host}"),
    (re.compile(r"Host key verification failed|No \S+ host key is known"), "its host key is not known yet", "Connect once by hand and compare the key: ssh {destination}"),
    (re.compile(r"Permission denied|Too many authentication failures|no mutual signature|No supported authentication methods", re.I), "it refused the login", "Check user and key with: ssh -v {destination} true (ssh-add -l lists the keys that are offered)"),
    (re.compile(r"Could not resolve hostname|Name or service not known|nodename nor servname", re.I), "its name cannot be resolved", "Check the spelling, or the Host entry in ~/.ssh/config."),
    (re.compile(r"Connection refused", re.I), "nothing listens on its SSH port", "Is sshd running there, and on this port? Another one is named as user@host:PORT, or in ~/.ssh/config; further options go into {variable}."),
    (re.compile(r"timed out|Operation timed out|Connection to .* timed out during banner", re.I), "it does not answer", "Is it switched on, and reachable from here (VPN, firewall, jump host)? Try: ssh -v {destination} true"),
    (re.compile(r"No route to host|Network is unreachable|Host is down", re.I), "there is no way to it from here", "Check the network, the VPN or the jump host."),
    (re.compile(r"Bad owner or permissions|Bad configuration option|terminating, \d+ bad configuration|no argument after keyword", re.I), "ssh does not accept its configuration", "Fix the line that ssh names, or the options in {variable}."),
    (re.compile(r"Connection (?:closed|reset)|kex_exchange_identification|Broken pipe", re.I), "it closed the connection", "Its sshd log tells why (MaxStartups, an address that is not allowed, an account without a shell)."),
)  # fmt: skip


def _explain(destination: str, status: int | None, errors: str) -> TargetError:
    host = re.sub(r"^ssh://", "", destination).rpartition("@")[2]
    if destination.startswith("ssh://"):
        host = re.sub(r"\A\[?([^\[\]]{1,255}?)\]?:(\d{1,5})\Z", r"'[\1]:\2'", host)  # as known_hosts has it
    said = _last_words(errors)
    refused = refusal(destination, errors)
    if refused is not None:
        return refused
    if NO_PYTHON in errors or (status == NO_PYTHON_STATUS and "sh" in errors and "not found" in errors):
        return TargetError(
            f"{destination} has no python3 (3.6 or later), which reading it needs",
            "Install one there (apt-get install python3-minimal, or dnf install python3); "
            "or save the log there and diagnose the file: journalctl -u UNIT -o json > unit.log",
        )
    for pattern, meaning, advice in _KNOWN:
        if pattern.search(errors):
            filled = advice.format(destination=destination, host=host, variable=OPTIONS_VARIABLE)
            return TargetError(f"{destination}: {meaning} ({said})" if said else f"{destination}: {meaning}", filled)
    if status is None:
        return TargetError(
            f"{destination} gave no answer in time",
            f"Does a command come back, and how soon? ssh {destination} true   (--timeout gives it longer)",
        )
    if "gpuwhy" in errors or "Traceback" in errors:
        return TargetError(f"the collector failed on {destination}: {said}")
    advice = f"Check that the account may run commands: ssh {destination} true"
    return TargetError(
        f"{destination}: ssh ended with status {status}" + (f": {said}" if said else " and said nothing"), advice
    )


def _last_words(errors: str) -> str:
    """The line of ssh's output that says most: the last one that is not decoration."""
    lines = [" ".join(line.split()) for line in errors.splitlines() if line.strip(" @\r\n")]
    return lines[-1][:300] if lines else ""
