"""Causes judged against a case: signs found in one pass, verdicts ranked, what was ruled out, what to ask next."""

from gpuwhy.diagnosis.completing import completed
from gpuwhy.diagnosis.judging import Judgement, judge, sign_literals

__all__ = ["Judgement", "completed", "judge", "sign_literals"]
