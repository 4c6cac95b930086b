"""What a program calls: the verbs of the command line as functions, which the command line and the MCP server call too.

    import gpuwhy
    diagnosis = gpuwhy.diagnose("root@gpu-host", unit="sglang.service")
    print(diagnosis.findings[0].cause, diagnosis.findings[0].remedies[0].commands)

Every function raises UnusableError for what was given to it, and UnreachableError for a place that cannot be examined.
Modules that cost time are imported where they are needed: a program that only diagnoses logs loads nothing else.
"""

from __future__ import annotations

from gpuwhy.api.checking import FORECAST, check
from gpuwhy.api.diagnosing import Outcome, collect, diagnose, outcome_of
from gpuwhy.api.errors import GpuwhyError, UnreachableError, UnusableError
from gpuwhy.api.fleet import Fleet
from gpuwhy.api.inspecting import inspect
from gpuwhy.api.places import PROBES, TIMEOUT, GivenFacts, LogText, OnProbe, Where, facts_of, target_of
from gpuwhy.api.tracing import Traced, trace

__all__ = [
    "FORECAST",
    "PROBES",
    "TIMEOUT",
    "Fleet",
    "GivenFacts",
    "GpuwhyError",
    "LogText",
    "OnProbe",
    "Outcome",
    "Traced",
    "UnreachableError",
    "UnusableError",
    "Where",
    "check",
    "collect",
    "diagnose",
    "facts_of",
    "inspect",
    "outcome_of",
    "target_of",
    "trace",
]
