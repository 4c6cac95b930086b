"""The failing condition as a part of a diagnosis: limits, failures of its own, other releases, and what a rule says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.investigate.hosts import PACKAGES, Host, traceback_of
from tests.patience import BUSY

from gpuwhy.diagnosis import Judgement
from gpuwhy.investigate import failing_condition
from gpuwhy.investigate.agreeing import weighed
from gpuwhy.investigate.failing_condition import examined
from gpuwhy.investigate.record import Record
from gpuwhy.investigate.source import confirmed
from gpuwhy.logs import find_incidents, read_bytes
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Facts
from gpuwhy.model.finding import Certainty, Finding, Link, SourceCheck
from gpuwhy.model.incident import Incident
from gpuwhy.model.source import SourceAnswer
from gpuwhy.redaction import Redactor
from gpuwhy.source.tracing import trace
from gpuwhy.targets import Ask, Reply

NO_RULE = Judgement(findings=(), ruled_out=(), decides=None)
GATE = """
import os
from engine import probing
from engine.settings import LEVELS

class Gate:
    def __init__(self):
        self.levels = set()
        try:
            self.levels.add(probing.level(os.environ.get("ENGINE_LEVEL", "1")))
        except Exception as e:
            logger.warning(f"Cannot tell the level: {e}.")

gate = Gate()

def check():
    if not gate.levels:
        raise RuntimeError("this machine is too old")
"""
PROBING = """
def level(text):
    api_token: torch.Tensor = None
    if text == "0":
        raise ValueError(f"level {text} is not supported")
    return int(text)
"""
FRAMES = (("engine/gate.py", 'raise RuntimeError("this machine is too old")'),)
ERROR = "RuntimeError: this machine is too old"
WARNED = "2026-11-29 10:04:20 WARNING Cannot tell the level: level 0 is not supported.\n"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = tmp_path / "site-packages"
    (site / "engine").mkdir(parents=True)
    for name, text in {"__init__": "", "gate": GATE, "probing": PROBING, "settings": "LEVELS = ()\n"}.items():
        (site / "engine" / f"{name}.py").write_text(text)
    return site


def incident(folder: Path, before: str = WARNED) -> Incident:
    return find_incidents([read_bytes((before + traceback_of([folder], FRAMES, ERROR)).encode(), "crash.log")])


def steps(record: Record) -> Iterator[tuple[str, str]]:
    yield from ((step.outcome, step.found) for step in record.closed().steps if step.question.startswith("under which"))


def examine(
    folder: Path, host: object = None, seconds: float = 10.0, record: Record | None = None
) -> SourceAnswer | None:
    source = host or Host(folder)
    return examined(incident(folder), Facts(), NO_RULE, source, record or Record(), seconds)  # type: ignore[arg-type]


def test_the_condition_the_swallowed_cause_and_the_switch(folder: Path) -> None:
    answer = examine(folder)
    assert answer is not None
    assert [each.text for each in answer.conditions] == ["not gate.levels"]
    cause = answer.shown_cause
    assert cause is not None
    assert (cause.value, cause.place.line) == ("level 0 is not supported", 1)
    assert cause.raised_at is not None
    assert str(cause.raised_at.place) == "engine/probing.py:5"
    (switch,) = [each for each in answer.switches if each.kind == "environment"]
    assert (switch.name, switch.default) == ("ENGINE_LEVEL", '"1"')
    assert [(str(each.at), each.is_swallowed) for each in answer.speakers] == [("engine/gate.py:12", True)]


def test_files_come_in_a_few_rounds_and_each_once(folder: Path) -> None:
    host = Host(folder)
    examine(folder, host)
    asked = [ask.path for asks in host.rounds for ask in asks]
    assert len(host.rounds) <= 4
    assert len(asked) == len(set(asked))
    assert set(asked[:1]) == {f"{PACKAGES}/engine/gate.py"}


def test_the_names_of_a_program_are_not_taken_out(folder: Path) -> None:
    (reply,) = Host(folder).ask([Ask("read", f"{PACKAGES}/engine/probing.py")])
    assert reply.value["lines"] == (folder / "engine/probing.py").read_text().splitlines()


class OlderHost(Host):
    """A host whose collector took names for secrets, as in snapshots of earlier releases."""

    def ask(self, asks: list[Ask], deadline: float = 10.0) -> list[Reply]:
        return [
            msgspec.structs.replace(reply, value={**reply.value, "lines": Redactor().value(reply.value["lines"])})
            if reply.status == "ok" and "lines" in reply.value
            else reply
            for reply in super().ask(asks, deadline)
        ]


def test_what_an_earlier_release_took_out_leaves_a_file_that_can_be_read(folder: Path) -> None:
    (reply,) = OlderHost(folder).ask([Ask("read", f"{PACKAGES}/engine/probing.py")])
    assert "<redacted:" in str(reply.value)
    answer = examine(folder, OlderHost(folder))
    assert answer is not None
    assert not [limit for limit in answer.limits if "not understood" in limit]


def test_nothing_is_said_where_no_source_can_be_reached(folder: Path, tmp_path: Path) -> None:
    record = Record()
    assert examine(folder, Host(tmp_path), record=record) is None
    assert [outcome for outcome, _ in steps(record)] == ["absent"]


def test_nothing_is_asked_without_frames(folder: Path) -> None:
    host, record = Host(folder), Record()
    plain = find_incidents([read_bytes(b"Segmentation fault (core dumped)\n", "x")])
    assert examined(plain, Facts(), NO_RULE, host, record) is None
    assert not host.rounds
    assert not record.closed().steps


def test_a_failure_of_its_own_is_recorded_and_costs_nothing(folder: Path) -> None:
    class Broken:
        def ask(self, asks: list[Ask], deadline: float = 10.0) -> list[Reply]:
            raise ValueError("the connection speaks nonsense")

    record = Record()
    assert examine(folder, Broken(), record=record) is None
    assert list(steps(record)) == [("failed", "ValueError: the connection speaks nonsense")]


def test_a_target_that_answers_slowly_is_left_when_the_time_is_over(folder: Path) -> None:
    class Slow(Host):
        def ask(self, asks: list[Ask], deadline: float = 10.0) -> list[Reply]:
            if self.rounds:
                time.sleep(0.8)
            return super().ask(asks, deadline)

    record = Record()
    begun = time.monotonic()
    answer = examine(folder, Slow(folder), 0.5, record)
    assert time.monotonic() - begun < 2.5 * BUSY
    assert answer is None or answer.place is not None
    assert list(steps(record))


def test_a_search_that_never_ends_is_ended_with_what_it_has(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def endless(*args: object) -> object:
        trace(*args)  # type: ignore[arg-type]
        while True:
            sum(range(1000))

    monkeypatch.setattr(failing_condition, "trace", endless)
    begun = time.monotonic()
    answer = examine(folder, seconds=2.0)
    assert time.monotonic() - begun < 5 * BUSY
    assert answer is not None
    assert [each.text for each in answer.conditions] == ["not gate.levels"]
    assert any("want of time" in limit for limit in answer.limits)


def test_another_release_than_the_one_that_failed_is_told(folder: Path) -> None:
    failed = incident(folder)
    (folder / "engine" / "gate.py").write_text("# a line more\n" + GATE)
    answer = examined(failed, Facts(), NO_RULE, Host(folder), Record(), 10.0)
    assert answer is not None
    assert "another release or a changed file" in answer.disagreements[0]


def test_lines_that_redaction_cut_are_no_other_release(folder: Path) -> None:
    token = "def norm(tokens):\n    api_token = lookup[tokens[0]]\n    raise RuntimeError('no such operator here')\n"
    (folder / "engine" / "ops.py").write_text(token + "\n\ndef use(tokens):\n    token = norm(tokens, 0)\n")
    frames = (("engine/ops.py", "token = norm(tokens, 0)"), ("engine/ops.py", "raise RuntimeError('no such"))
    text = traceback_of([folder], frames, "RuntimeError: no such operator here")
    for said in (text, Redactor().text(text)):
        found = find_incidents([read_bytes(said.encode(), "crash.log")])
        answer = examined(found, Facts(), NO_RULE, Host(folder), Record(), 10.0)
        assert answer is not None
        assert (str(answer.place), answer.disagreements) == ("engine/ops.py:3", ())


def test_what_came_after_a_kill_is_not_the_failure(folder: Path) -> None:
    killed = "[1.0] Out of memory: Killed process 7 (python) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB\n"
    found = find_incidents([read_bytes((killed + traceback_of([folder], FRAMES, ERROR)).encode(), "crash.log")])
    assert found.primary_event is not None
    assert found.primary_event.kind == "kernel"
    host = Host(folder)
    assert examined(found, Facts(), NO_RULE, host, Record()) is None
    assert not host.rounds


def finding(text: str, evidence: Evidence | None) -> Judgement:
    chain = (Link("the level cannot be told", evidence, source=SourceCheck(f"{PACKAGES}/engine/gate.py", text)),)
    found = Finding(
        cause="x", family="x", component=None, certainty=Certainty.PROVEN, title="x", chain=chain, evidence=()
    )
    return Judgement(findings=(found,), ruled_out=(), decides=None)


def test_a_link_that_the_installed_source_shows_keeps_the_certainty(folder: Path) -> None:
    judgement = confirmed(finding("Cannot tell the level", None), Host(folder), Record())
    (installed,) = [link.installed for link in judgement.findings[0].chain]
    assert installed is not None
    assert installed.place == Place("file", f"{PACKAGES}/engine/gate.py", 12)
    assert weighed(judgement, None, Host(folder)) == judgement


def test_a_link_that_it_does_not_show_lowers_the_certainty(folder: Path) -> None:
    inferred = Evidence("usual", standing=Standing.INFERRED)
    judgement = weighed(finding("a text of another release", inferred), None, Host(folder))
    assert judgement.findings[0].certainty is Certainty.LIKELY
    assert "no line with 'a text of another release'" in judgement.findings[0].against[0].statement


def test_a_link_that_the_log_shows_keeps_it_and_the_change_is_told(folder: Path) -> None:
    shown = Evidence("seen", "quote", Place("log", "crash.log", 1))
    judgement = weighed(finding("a text of another release", shown), None, Host(folder))
    assert judgement.findings[0].certainty is Certainty.PROVEN
    assert len(judgement.findings[0].against) == 1


def test_a_file_that_cannot_be_read_says_nothing_against_a_rule(tmp_path: Path) -> None:
    judgement = finding("a text", None)
    assert weighed(judgement, None, Host(tmp_path)) == judgement


def test_the_answer_survives_json(folder: Path) -> None:
    answer = examine(folder)
    assert msgspec.json.decode(msgspec.json.encode(answer), type=SourceAnswer) == answer


def test_files_that_the_log_names_are_found_by_the_record_of_their_package(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "vllm" / "platforms").mkdir(parents=True)
    (site / "vllm-9.9.dist-info").mkdir()
    (site / "vllm-9.9.dist-info" / "RECORD").write_text("vllm/ops.py,sha256=x,1\nvllm/platforms/cuda.py,sha256=x,1\n")
    (site / "vllm" / "ops.py").write_text("def norm():\n    raise RuntimeError('no such operator here')\n")
    loads = "def load():\n    try:\n        import vllm._C\n    except ImportError as e:\n        logger.warning('Cannot import the kernels: %r', e)\n"  # fmt: skip
    (site / "vllm" / "platforms" / "cuda.py").write_text(loads)
    failed = traceback_of([site], (("vllm/ops.py", "raise RuntimeError"),), "RuntimeError: no such operator here")
    warned = "WARNING 11-29 10:04:20 [cuda.py:5] Cannot import the kernels: ImportError('libcudart.so.12')\n"
    found = find_incidents([read_bytes((warned + failed).encode(), "crash.log")])
    answer = examined(found, Facts(), NO_RULE, Host(site), Record(), 10.0)
    assert answer is not None
    assert [(str(each.at), each.is_swallowed) for each in answer.speakers] == [("vllm/platforms/cuda.py:5", True)]


def test_a_log_that_names_places_which_write_something_else_is_of_another_release(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "vllm" / "platforms").mkdir(parents=True)
    (site / "vllm-9.9.dist-info").mkdir()
    (site / "vllm-9.9.dist-info" / "RECORD").write_text("vllm/ops.py,sha256=x,1\nvllm/platforms/cuda.py,sha256=x,1\n")
    (site / "vllm" / "ops.py").write_text("def norm():\n    raise RuntimeError('no such operator here')\n")
    (site / "vllm" / "platforms" / "cuda.py").write_text("logger.warning('a text of this release')\n")
    failed = traceback_of([site], (("vllm/ops.py", "raise RuntimeError"),), "RuntimeError: no such operator here")
    warned = "WARNING 11-29 10:04:20 [cuda.py:240] Cannot import the kernels: ImportError('libcudart.so.12')\n"
    found = find_incidents([read_bytes((warned + failed).encode(), "crash.log")])
    answer = examined(found, Facts(), NO_RULE, Host(site), Record(), 10.0)
    assert answer is not None
    assert answer.disagreements[0].startswith(
        "1 of 1 places that the log names write something else in the installed vllm"
    )
