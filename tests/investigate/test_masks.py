"""From the last words of real releases to what hides behind them, without a rule: the source is all that is known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.investigate.hosts import Host, traceback_of
from tests.investigate.masks import MASKS, Mask
from tests.source.packages import release

from gpuwhy.diagnosis import Judgement
from gpuwhy.investigate.failing_condition import ROUNDS, examined
from gpuwhy.investigate.record import Record
from gpuwhy.logs import find_incidents, read_bytes
from gpuwhy.model.fact import Facts
from gpuwhy.model.source import SourceAnswer

NO_RULE = Judgement(findings=(), ruled_out=(), decides=None)
PATIENCE = 120.0
"""Seconds; these machines are busy, and the time limit has a test of its own."""


def answer_to(mask: Mask, installed: Path) -> SourceAnswer:
    folders = [release(*each) for each in mask.releases]
    log = read_bytes((mask.before + traceback_of(folders, mask.frames, mask.error)).encode(), "crash.log")
    host = Host(*folders, recorded(folders[0], installed))
    answer = examined(find_incidents([log]), Facts(), NO_RULE, host, Record(), PATIENCE)
    assert answer is not None
    assert len(host.rounds) <= ROUNDS + 5
    return answer


def recorded(folder: Path, installed: Path) -> Path:
    """What pip writes beside a package: the list of its files."""
    (described,) = folder.glob("*.dist-info")
    record = installed / described.name / "RECORD"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("".join(f"{path.relative_to(folder)},sha256=x,1\n" for path in sorted(folder.rglob("*.py"))))
    return installed


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.mark.parametrize("mask", [mask for mask in MASKS if not mask.is_open], ids=lambda mask: mask.id)
def test_what_hides_behind_the_last_words(mask: Mask, tmp_path: Path) -> None:
    answer = answer_to(mask, tmp_path)
    assert answer.place is not None
    assert mask.condition in "\n".join(each.text for each in answer.conditions)
    if mask.what_if:
        assert mask.what_if in [value for each in answer.what_ifs if each.outcome == "always" for value in each.values]
    seen = [seen for each in answer.swallowed for seen in each.seen]
    assert mask.seen in "\n".join(each.text for each in seen)
    assert mask.raised in "\n".join(str(each.raised_at.place) for each in seen if each.raised_at)
    assert mask.swallowed in "\n".join(str(each.place) for each in answer.swallowed)
    assert set(mask.switches) <= {each.name for each in answer.switches}
    assert mask.origin in "\n".join(each.text for each in answer.origin)
    assert mask.speaker in "\n".join(str(each.at) for each in answer.speakers)
    assert answer.limits
    assert not answer.disagreements


@pytest.mark.parametrize("mask", [mask for mask in MASKS if mask.is_open], ids=lambda mask: mask.id)
def test_where_the_cause_is_not_found_the_condition_is_and_the_limits_are_told(mask: Mask, tmp_path: Path) -> None:
    answer = answer_to(mask, tmp_path)
    assert answer.place is not None
    assert answer.shown_cause is None
    assert answer.limits
    assert not answer.disagreements
