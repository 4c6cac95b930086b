"""What ``gpuwhy fit`` answers: the estimate, and the settings that fit where they were searched for."""

from __future__ import annotations

import msgspec

from gpuwhy.fit.results import Estimate
from gpuwhy.fit.search import Search


class FitAnswer(msgspec.Struct, frozen=True):
    """``search`` is that of ``--optimise``."""

    estimate: Estimate
    search: Search | None = None
