"""What one prefix tells."""

from __future__ import annotations

from gpuwhy.model.event import Process

Peeled = tuple[str, "Process | None", "float | None", str]
"""The rest of the line, the process, the time and the level: as far as this prefix tells."""
