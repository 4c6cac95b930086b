"""Reports: the diagnosis for a person in a terminal, or as one JSON document for a program."""

from gpuwhy.reports.interface import Detail
from gpuwhy.reports.neutral import plain
from gpuwhy.reports.writing import FORMATS, render, write

__all__ = ["FORMATS", "Detail", "plain", "render", "write"]
