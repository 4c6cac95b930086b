"""Causes judged against a case: signs found in one pass, verdicts ranked, what was ruled out, what to ask next."""

from gpuwhy.diagnosis.judging import judge

__all__ = ["judge"]
