from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.applier.scratch import Scratch

from gpuwhy.remedies.applying.site import Site
from gpuwhy.targets.local import LocalTarget


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path)


@pytest.fixture
def site(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The applier as the real process that it is, on the scratch root."""
    monkeypatch.setenv("PATH", f"{scratch.systemd}/bin:{os.environ['PATH']}")
    with Site(LocalTarget(), root=str(scratch.root)) as opened:
        yield opened
