"""Pages in a real browser, for `make browser`; what it needs is installed by `tests/browser/setup`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.browser.opening import Browser, chromium  # noqa: E402
from tests.reports.html import fleet_sample, samples  # noqa: E402

from gpuwhy.model.diagnosis import Diagnosis  # noqa: E402
from gpuwhy.reports.html import check, diagnosis, fit, fleet, inspection  # noqa: E402
from gpuwhy.reports.interface import Detail  # noqa: E402

PAGES = (
    "seed", "bare", "untimed", "unknown", "hostile", "long", "large", "waiting", "inspected", "checked", "oom", "fitted", "overfull",
    "fleet",
)  # fmt: skip


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """These run when asked for by marker only."""
    here = Path(__file__).parent
    mine = [item for item in items if item.path.is_relative_to(here)]
    if "browser" not in config.option.markexpr.replace("not browser", ""):
        items[:] = [item for item in items if item not in mine]
    for item in mine:
        item.add_marker(pytest.mark.browser)


@functools.cache
def page_of(name: str) -> str:
    """The page called ``name``; see :data:`PAGES`."""
    if name == "inspected":
        return inspection.render(samples.inspected())
    if name == "checked":
        return check.render(samples.checked())
    if name == "fleet":
        return fleet.render(fleet_sample.fleet())
    if name in ("fitted", "overfull"):
        return fit.render(getattr(samples, name)())
    makers: dict[str, Callable[[], Diagnosis]] = {
        "seed": samples.seed,
        "bare": samples.bare,
        "untimed": samples.untimed,
        "unknown": samples.unknown,
        "hostile": samples.hostile,
        "long": lambda: samples.hostile(samples.LONG),
        "large": samples.large,
        "waiting": samples.waiting,
        "oom": samples.out_of_memory,
    }
    return diagnosis.render(makers[name](), Detail())


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened
