"""The maintainers' programs in scripts/ are not installed; the tests of the data import them from the checkout."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
