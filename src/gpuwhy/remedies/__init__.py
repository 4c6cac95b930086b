"""What to do: remedies in order, smallest intervention first, each with its exact commands for the place at hand."""

from gpuwhy.remedies.ordering import order
from gpuwhy.remedies.prescribing import prescribe
from gpuwhy.remedies.setting import Setting, setting_of
from gpuwhy.remedies.writing import written_for

__all__ = ["Setting", "order", "prescribe", "setting_of", "written_for"]
