"""What logs and reports print about the machine, by kind: each module reads one kind of line into statements."""

from __future__ import annotations
