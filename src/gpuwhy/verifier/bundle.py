"""Makes the one program that is sent to a target. Runs on our side (Python >= 3.10), and is not sent itself."""

from __future__ import annotations

from functools import cache

from gpuwhy.collector.bundle import NOT_SENT, bundled

PACKAGES = ("verifier", "applier", "collector", "redaction", "binaries")

ABOUT = "gpuwhy's verifier: tries a change in a process of its own, changes nothing. Made from the files of gpuwhy/verifier."


@cache
def program() -> str:
    """The text of the verifier, with what it uses to know a service and to read binaries."""
    return bundled(ABOUT, "gpuwhy.verifier.program", PACKAGES, NOT_SENT)
