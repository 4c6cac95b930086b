"""What is known of the GPUs, as evidence beside a quoted line."""

from __future__ import annotations

from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.host import Gpus


def of_gpus(gpus: Gpus | Unknown, quoted: Evidence) -> tuple[Evidence, ...]:
    """The evidence of the GPUs that does not stand in the quoted line itself."""
    if not isinstance(gpus, Gpus):
        return ()
    return tuple(evidence for evidence in gpus.evidence if evidence.quote.strip() not in quoted.quote)
