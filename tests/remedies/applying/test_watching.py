"""The watch: what is written, what is refused, and how much is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.applier.scratch import UNIT, Scratch

from gpuwhy.remedies.applying.plan import NotApplied, Plan, Restart, WriteFile
from gpuwhy.remedies.applying.site import Site
from gpuwhy.remedies.applying.watching import TEMPLATE, Caps, drop_in_of, plan_install, plan_remove, watched_units
from gpuwhy.reports.recording import prune, record_failure

WORDS = ("/opt/gpuwhy",)
DESCRIPTION = {"kind": "watch", "name": UNIT}


def test_a_unit_is_hooked_without_a_restart_and_unhooked_again(scratch: Scratch, site: Site) -> None:
    (scratch.root / "opt").mkdir()
    (scratch.root / "opt/gpuwhy").write_text("#!/bin/sh\n")
    (scratch.root / "opt/gpuwhy").chmod(0o777)
    assert isinstance(plan_install(UNIT, WORDS, Caps(), site), NotApplied)
    (scratch.root / "opt/gpuwhy").chmod(0o755)
    before = scratch.tree()
    plan = plan_install(UNIT, WORDS, Caps(5, 50, 3), site)
    assert isinstance(plan, Plan), plan
    assert not any(isinstance(step, Restart) for step in plan.steps)
    written = {step.path: step.content for step in plan.steps if isinstance(step, WriteFile)}
    assert set(written) == {TEMPLATE, drop_in_of(UNIT)}
    assert "OnFailure=gpuwhy-watch@%n.service" in written[drop_in_of(UNIT)]
    assert "ExecStart=/opt/gpuwhy watch record %i --keep=5 --megabytes=50\n" in written[TEMPLATE]
    assert "StartLimitBurst=3\n" in written[TEMPLATE]
    assert site.apply(plan, DESCRIPTION).status == "applied"
    assert watched_units(site.history(), site) == (UNIT,)
    again = plan_install(UNIT, WORDS, Caps(5, 50, 3), site)
    assert isinstance(again, Plan)
    assert again.is_in_place
    removal = plan_remove(UNIT, (UNIT,), site)
    assert isinstance(removal, Plan), removal
    assert site.apply(removal, DESCRIPTION).status == "applied"
    assert watched_units(site.history(), site) == ()
    assert [path for path in scratch.tree() if path not in before and "history" not in str(path) and not str(path).endswith(".d")] == []  # fmt: skip


@pytest.mark.parametrize("unit", ["a b.service", "x.timer", "../x.service", "-x.service", "x%n.service"])
def test_what_is_no_service_is_refused(scratch: Scratch, site: Site, unit: str) -> None:
    assert isinstance(plan_install(unit, WORDS, Caps(), site), NotApplied)


@pytest.mark.parametrize("words", [("gpuwhy",), ("/opt/my gpuwhy",), ("/opt/gpuwhy", "%h"), ("/opt/gpuwhy", "$X")])
def test_a_program_that_systemd_would_read_otherwise_is_refused(
    scratch: Scratch, site: Site, words: tuple[str, ...]
) -> None:
    assert isinstance(plan_install(UNIT, words, Caps(), site), NotApplied)


def failures(folder: Path, count: int, size: int) -> None:
    for number in range(count):
        for part in (".gpuwhy", ".json", ".txt"):
            (folder / f"2026010{number}T000000Z-abc{part}").write_bytes(b"x" * size)


def test_the_oldest_failures_go_and_the_newest_stays(tmp_path: Path) -> None:
    failures(tmp_path, 5, 10)
    assert prune(tmp_path, 3, 1 << 20) == 2
    assert sorted({each.stem[:8] for each in tmp_path.iterdir()}) == ["20260102", "20260103", "20260104"]
    assert prune(tmp_path, 3, 65) == 1
    assert prune(tmp_path, 3, 1) == 1
    assert len(list(tmp_path.iterdir())) == 3


def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not the name of a unit"):
        record_failure("../../etc", tmp_path, number=1, most_bytes=1)
