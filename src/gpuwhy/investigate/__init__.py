"""The loop: collect, judge, fetch what is missing, judge again, conclude; and the record of every question asked."""

from gpuwhy.investigate.log import diagnose_log

__all__ = ["diagnose_log"]
