"""What a report format is: a function from a diagnosis to text. A new format is one module with such a function."""

from __future__ import annotations

from typing import Protocol

import msgspec

from gpuwhy.model.diagnosis import Diagnosis


class Detail(msgspec.Struct, frozen=True):
    """How much is shown. ``width`` in columns; 0: no wrapping."""

    verbose: bool = False
    show_work: bool = False
    width: int = 100


class Format(Protocol):
    """Renders a diagnosis. The result ends with a newline and holds no control character but newlines."""

    def __call__(self, diagnosis: Diagnosis, detail: Detail) -> str: ...
