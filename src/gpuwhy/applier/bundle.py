"""Makes the one program that is sent to a target. Runs on our side (Python >= 3.10), and is not sent itself."""

from __future__ import annotations

from functools import cache

from gpuwhy.collector.bundle import bundled

PACKAGES = ("applier", "redaction")

NOT_SENT = frozenset({"bundle", "__main__"})

ABOUT = "gpuwhy's applier: performs one previewed plan and journals it. Made from the files of gpuwhy/applier."


@cache
def program() -> str:
    """The text of the applier: every module of it and of the redaction, with a loader in front."""
    return bundled(ABOUT, "gpuwhy.applier.program", PACKAGES, NOT_SENT)
