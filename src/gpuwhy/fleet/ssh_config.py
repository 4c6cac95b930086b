"""What an inventory says about its hosts as a configuration for OpenSSH, before that of the user."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpuwhy.fleet.engines.interface import FleetError
from gpuwhy.fleet.inventory import InventoryHost

_CONFIG = re.compile(r"(?:^|(?<=\s))-F\s*(\S{1,4096})")

USERS, SYSTEMS = "~/.ssh/config", "/etc/ssh/ssh_config"


def config_of(hosts: Sequence[InventoryHost], options: str = "") -> str:
    """The text: a block for each host of which the inventory says something, then the user's and the system's own files,
    or the one that the user's ``options`` for ssh name in their place.

    Raises FleetError for a value that would be more than one word of the configuration.
    """
    blocks = [block for host in hosts if (block := _block(host))]
    # "Host *" ends the last block: an Include inside of one holds for its host alone
    named = _CONFIG.findall(options)
    others = [f"  Include {file}" for file in ([named[-1].strip()] if named else [USERS, SYSTEMS])]
    return "\n".join([*blocks, "Host *", *others, ""])


def without_config(options: str) -> str:
    """The user's options for ssh without the file that :func:`config_of` includes."""
    return _CONFIG.sub(" ", options)


def _block(host: InventoryHost) -> str:
    values = [
        ("HostName", host.address),
        ("User", host.user),
        ("Port", host.port),
        ("IdentityFile", host.key),
        *_options(host),
    ]
    lines = [f"  {key} {_quoted(host, value)}" for key, value in values if value]
    return "\n".join([f"Host {_quoted(host, host.name)}", *lines]) if lines else ""


def _options(host: InventoryHost) -> list[tuple[str, str]]:
    """``ansible_ssh_common_args``: the options that a configuration knows too; anything else would be left out in silence."""
    try:
        words = shlex.split(host.common)
    except ValueError as error:
        raise FleetError(f"the ssh arguments of {host.name} cannot be read: {error}") from error
    found: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        flag, value = word[:2], word[2:] or ""
        if flag not in ("-o", "-J", "-i", "-p", "-l"):
            raise FleetError(f"the inventory gives ssh the argument {word!r} for {host.name}, which is not known here", "-o, -J, -i, -p and -l are")  # fmt: skip
        value = value or next(rest, "")
        if flag == "-o":
            key, _, value = value.partition("=") if "=" in value else value.partition(" ")
            found.append((key.strip(), value.strip()))
        else:
            found.append(({"-J": "ProxyJump", "-i": "IdentityFile", "-p": "Port", "-l": "User"}[flag], value))
    return found


def _quoted(host: InventoryHost, value: str) -> str:
    if any(ord(character) < 32 or character == '"' for character in value):
        raise FleetError(
            f"the inventory has a value for {host.name} that ssh's configuration cannot hold: {value[:80]!r}"
        )
    return value


def written(text: str) -> Path:
    """A configuration in a file for its owner alone, which the caller deletes. Raises OSError."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="gpuwhy-ssh-", suffix=".config", delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
    return Path(file.name)
