"""One module for each kind of thing that a line can say. Each has ``recognise(text) -> Recognised | None``.

The lines they are shown are those that one pass for their literals (:data:`LITERALS`) picked out.
"""

from __future__ import annotations
