"""The catalogue of root causes: a folder per family, a module per cause; a cause is one function that judges a case."""

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._registry import CauseEntry, catalogue, cause
from gpuwhy.causes._signs import Sign, kernel, raised, says

__all__ = ["Case", "CauseEntry", "Match", "Sign", "catalogue", "cause", "kernel", "raised", "says"]
