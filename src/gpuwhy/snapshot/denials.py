"""What the account of the collection was not allowed to read, and the commands that would let it."""

from __future__ import annotations

from gpuwhy.snapshot.document import Denial, Probe, Snapshot

MOST = 12


def denials(snapshot: Snapshot) -> list[str]:
    """A sentence for each thing that could not be read, with every way to allow it."""
    found: dict[str, str] = {}
    for probe in snapshot.probes:
        for denial in probe.denied:
            found.setdefault(denial.what, f"{probe.name}: {denial.what}. {_ways(denial)}")
        if probe.status == "denied" and not probe.denied:
            found.setdefault(probe.reason, f"{probe.name}: {probe.reason or 'it may not be read'} (denied)")
    told = list(found.values())
    return told[:MOST] + (
        [f"{len(told) - MOST} more things may not be read by this account."] if len(told) > MOST else []
    )


def allowed_by(probe: Probe) -> str:
    """``; allowed by --sudo``: behind the reason of a probe that was denied."""
    ways = [way for denial in probe.denied if denial.what == probe.reason for way in denial.allow]
    return "; allowed by " + " or ".join(dict.fromkeys(ways)) if ways and probe.status == "denied" else ""


def _ways(denial: Denial) -> str:
    if not denial.allow:
        return "Not readable by root either: a container or a security module stands between."
    ways = ["gpuwhy with --sudo" if way == "--sudo" else f"`{way}`" for way in denial.allow]
    later = " (a new group counts from the next login on)" if any("usermod" in way for way in ways) else ""
    return f"Not readable by this account; it would be by {' or '.join(ways)}{later}."
