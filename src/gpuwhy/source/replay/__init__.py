"""Functions of installed Python source, interpreted from their syntax tree with facts in place of the outside.

Nothing of the traced package is imported or executed by Python, so it is safe on source of any origin. A question to the
outside that no fact answers, and whatever is not modelled, ends the replay and says so: it never guesses. See
``docs/replay.md``.
"""

from gpuwhy.source.replay.outcome import (
    Assumed,
    Branch,
    Caught,
    FactUsed,
    LogLine,
    NeedsFact,
    NotModelled,
    Outcome,
    Place,
    Raised,
    Replay,
    Returned,
)
from gpuwhy.source.replay.run import replay
from gpuwhy.source.replay.sources import FolderSource, ModuleSource, SourceOfModules
from gpuwhy.source.replay.trees_source import TreesSource

__all__ = [
    "Assumed",
    "Branch",
    "Caught",
    "FactUsed",
    "FolderSource",
    "LogLine",
    "ModuleSource",
    "NeedsFact",
    "NotModelled",
    "Outcome",
    "Place",
    "Raised",
    "Replay",
    "Returned",
    "SourceOfModules",
    "TreesSource",
    "replay",
]
