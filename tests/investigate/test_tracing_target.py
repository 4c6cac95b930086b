"""Tracing packages that stand on a target: little comes, nothing is claimed of what did not."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from tests.investigate.hosts import PACKAGES, Host
from tests.source.packages import release

from gpuwhy.investigate import tracing_package
from gpuwhy.investigate.installed_files import Clock
from gpuwhy.investigate.tracing_target import Answered, Wish, _Tracing, answer_on
from gpuwhy.snapshot import Snapshot, Subject, write
from gpuwhy.snapshot.document import Excerpt, Probe
from gpuwhy.source import Cache, Trace
from gpuwhy.source.answering import Asked
from gpuwhy.source.answers import Absence, Moved
from gpuwhy.source.asking import QuestionError
from gpuwhy.targets import Ask, PathTarget, Reply

ENVIRONMENT = Probe(name="python_environments", status="ok", value=[{"folders": [PACKAGES]}])
CORE = """\
import os
from engine import gate

def check():
    if not gate.levels():
        raise RuntimeError("no level is left")
"""
GATE = """\
import os

def levels():
    return [each for each in os.environ.get("ENGINE_LEVELS", "").split(",") if each]
"""


class CountingHost(Host):
    """Counts what is asked for: the first answer of a round is one trip."""

    def paths(self, ask: str) -> list[str]:
        return [each.path.removeprefix(f"{PACKAGES}/") for asks in self.rounds for each in asks if each.ask == ask]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package of which two files matter, among many."""
    site = tmp_path / "site"
    (site / "engine").mkdir(parents=True)
    (site / "engine-3.1.dist-info").mkdir()
    (site / "engine" / "__init__.py").write_text("")
    (site / "engine" / "core.py").write_text(CORE)
    (site / "engine" / "gate.py").write_text(GATE)
    for number in range(90):
        (site / "engine" / f"model_{number}.py").write_text(f"def forward(x):\n    return x.shape[{number}]\n")
    return site


def traced(host: Host, *probes: Probe, unit: str = "", **asked: object) -> Answered:
    snapshot = Snapshot(target=Subject("ssh", "gpu"), started=0.0, probes=(ENVIRONMENT, *probes))
    wish = Wish(msgspec.convert(asked, Asked), unit)
    return _Tracing(snapshot, host, "gpu", wish, Clock(60), Cache.of_user(), None, is_live=True).answer()


def trace_of(host: Host, *probes: Probe, unit: str = "", **asked: object) -> Trace:
    answer = traced(host, *probes, unit=unit, **asked).answer
    assert isinstance(answer, Trace)
    return answer


def test_only_the_files_on_the_way_come(folder: Path) -> None:
    host = CountingHost(folder)
    answer = trace_of(host, question="engine.core:check")
    assert answer.guard is not None
    assert answer.guard.requires[0].text == "not gate.levels()"
    assert [each.name for each in answer.switches] == ["ENGINE_LEVELS"]
    (package,) = answer.scope.packages
    assert (package.name, package.version, package.files, package.installed) == ("engine", "3.1", 3, 93)
    assert package.place == f"gpu:{PACKAGES}"
    assert answer.scope.fetched is not None
    assert answer.scope.fetched.trips == len(host.rounds) <= 5


def test_the_second_time_stamps_are_asked_for_and_no_file(folder: Path) -> None:
    first = trace_of(CountingHost(folder), question="engine.core:check")
    host = CountingHost(folder)
    again = trace_of(host, question="engine.core:check")
    assert again.guard == first.guard
    assert len(host.rounds) == 2
    assert host.paths("read") == []
    assert sorted(host.paths("stat")) == ["engine/__init__.py", "engine/core.py", "engine/gate.py"]


def test_a_file_that_was_changed_comes_again(folder: Path) -> None:
    trace_of(CountingHost(folder), question="engine.core:check")
    (folder / "engine" / "core.py").write_text(CORE.replace("no level", "no LEVEL"))
    os.utime(folder / "engine" / "core.py", (1800000000, 1800000000))
    host = CountingHost(folder)
    answer = trace_of(host, question="engine.core:check")
    assert answer.guard is not None
    assert answer.guard.message == "no LEVEL is left"
    assert host.paths("read") == ["engine/core.py"]


def test_two_targets_do_not_share_what_is_known_of_their_files(folder: Path) -> None:
    trace_of(CountingHost(folder), question="engine.core:check")
    snapshot = Snapshot(target=Subject("ssh", "other"), started=0.0, probes=(ENVIRONMENT,))
    host = CountingHost(folder)
    wish = Wish(Asked(question="engine.core:check"))
    _Tracing(snapshot, host, "other", wish, Clock(60), Cache.of_user(), None, is_live=True).answer()
    assert "engine/core.py" in host.paths("read")


def test_files_that_hold_a_word_and_were_not_looked_at_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing_package, "MOST_HOLDING", 1)
    (folder / "engine" / "ending.py").write_text("def give_up():\n    raise RuntimeError('no way on')\n")
    for name in ("one", "two"):
        (folder / "engine" / f"{name}.py").write_text("from engine.ending import give_up\ngive_up()\n")
    answer = trace_of(CountingHost(folder), question="engine.ending:give_up")
    assert any("hold give_up" in cut and "not looked at" in cut for cut in answer.scope.cuts)


def test_that_a_variable_is_not_read_is_said_of_the_whole_package(folder: Path) -> None:
    answer = traced(CountingHost(folder), question="engine", reads="OTHER_LEVELS").answer
    assert isinstance(answer, Absence)
    assert (answer.is_absent, answer.is_decided, answer.files) == (True, True, 93)
    found = traced(CountingHost(folder), question="engine", reads="ENGINE_LEVELS").answer
    assert isinstance(found, Absence)
    assert [(each.spot.path, each.spot.line) for each in found.occurrences] == [("engine/gate.py", 4)]


class MuteHost(CountingHost):
    """A target on which a search does not come to its end."""

    def ask(self, asks: list[Ask], deadline: float = 10.0) -> list[Reply]:
        return [
            Reply(status="timed out", reason="it took too long") if ask.ask == "search" else reply
            for ask, reply in zip(asks, super().ask(asks, deadline), strict=True)
        ]


def test_nothing_is_said_to_be_absent_where_the_target_was_not_searched(folder: Path) -> None:
    answer = traced(MuteHost(folder), question="engine", reads="OTHER_LEVELS").answer
    assert isinstance(answer, Absence)
    assert (answer.is_absent, answer.is_decided) == (False, False)
    assert any("engine was not searched for words: it took too long" in each for each in answer.caveats)
    traced_anyway = trace_of(MuteHost(folder), question="engine.core:check")
    assert [each.name for each in traced_anyway.switches] == ["ENGINE_LEVELS"]
    assert any("was not searched" in cut for cut in traced_anyway.scope.cuts)


def test_where_a_name_went(folder: Path) -> None:
    (folder / "engine" / "moved.py").write_text("def probe_all():\n    pass\n")
    answer = traced(CountingHost(folder), imported="engine.gate:probe_all").answer
    assert isinstance(answer, Moved)
    assert [each.dotted for each in answer.elsewhere] == ["engine.moved.probe_all"]


def test_the_failure_of_the_unit_is_what_is_asked_for(folder: Path) -> None:
    lines = [
        "Traceback (most recent call last):",
        f'  File "{PACKAGES}/engine/core.py", line 6, in check',
        '    raise RuntimeError("no level is left")',
        "RuntimeError: no level is left",
    ]
    entries = [[100.0 + number, 7, "python", 3, "stdout", line] for number, line in enumerate(lines)]
    fields = ["time", "pid", "process", "priority", "origin", "text"]
    journal = Probe(name="journal", status="ok", value={"unit": "engine.service", "fields": fields, "entries": entries})
    for unit in ("engine.service", "engine"):  # as systemd calls it, and as people do
        answer = trace_of(CountingHost(folder), journal, unit=unit, follow=("engine",))
        assert answer.guard is not None
        assert str(answer.guard.spot.line) == "6"
    with pytest.raises(QuestionError, match="no Python exception"):
        trace_of(CountingHost(folder), unit="engine.service", follow=("engine",))


def test_a_snapshot_answers_from_the_files_that_it_holds(folder: Path, tmp_path: Path) -> None:
    path = f"{PACKAGES}/flashinfer/core.py"
    value = {"path": path, "first": 1, "lines": CORE.replace("engine", "flashinfer").splitlines(), "count": 6}
    snapshot = Snapshot(
        target=Subject("ssh", "gpu"), started=0.0, excerpts=(Excerpt("read", path, "ok", value, first=1, last=4000),)
    )
    write(snapshot, tmp_path / "gpu.gpuwhy")
    answered = answer_on(PathTarget(str(tmp_path / "gpu.gpuwhy")), Wish(Asked(question="flashinfer.core:check")), 120.0)
    assert isinstance(answered.answer, Trace)
    assert answered.answer.guard is not None
    assert answered.answer.guard.message == "no level is left"
    assert not answered.answer.scope.packages[0].is_complete
    assert answered.answer.scope.wanted
    reads = answer_on(
        PathTarget(str(tmp_path / "gpu.gpuwhy")), Wish(Asked(question="flashinfer", reads="FLASHINFER_X")), 10.0
    ).answer
    assert isinstance(reads, Absence)
    assert (reads.is_absent, reads.is_decided) == (False, False)


@pytest.fixture(scope="module")
def flashinfer() -> Path:
    return release("flashinfer-python", "0.6.18.post1")


def test_the_seed_is_answered_as_if_the_package_were_here(flashinfer: Path) -> None:
    from gpuwhy.source.roots import packages_in
    from gpuwhy.source.tracing import Question, trace

    here = trace(dict(packages_in(flashinfer)), Question(symbol="flashinfer.jit.core:check_cuda_arch"))
    there = trace_of(CountingHost(flashinfer), question="flashinfer.jit.core:check_cuda_arch")
    assert there.guard == here.guard
    assert {each.name for each in there.switches} == {each.name for each in here.switches}
    assert there.swallowed == here.swallowed
    assert there.users == here.users
    assert there.scope.fetched is not None
    assert there.scope.fetched.trips <= 7
    assert there.scope.fetched.files <= 30
