"""A log that grows: each failure is told once, when it is complete, across rotation and truncation."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.patience import AT_MOST

from gpuwhy.investigate.following import APART, FollowedLog, Watch, follow_log, follow_unit
from gpuwhy.investigate.log import diagnose_log
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.targets import TargetError
from gpuwhy.targets.growing import GrowingFile, GrowingOutput, GrowingPipe

SEED = (Path(__file__).parents[1] / "data" / "logs" / "sglang.log").read_bytes()
LIVELY = b"INFO: served a request\n"


def crash(name: str) -> bytes:
    return (
        b'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in main\n    f()\n'
        + f"MoonPhaseError: {name}\n".encode()
    )


def primary(diagnosis: Diagnosis) -> str:
    event = diagnosis.incident.primary_event
    assert event is not None
    return f"{event.text} at {event.place.line}"


# what is new


def test_a_failure_is_told_once_with_its_lines_in_the_file() -> None:
    log = FollowedLog("a.log")
    log.add(LIVELY * 5 + crash("one"), 0.0)
    first = log.new_failure()
    assert first is not None
    assert primary(first) == "MoonPhaseError: one at 9"
    assert log.new_failure() is None
    log.add(LIVELY, 1.0)
    assert log.new_failure() is None


def test_what_other_ranks_say_of_it_later_is_no_new_failure() -> None:
    log = FollowedLog("a.log")
    log.add(crash("one"), 0.0)
    assert log.new_failure() is not None
    log.add(b"RuntimeError: Engine process failed to start. See stack trace for the root cause.\n" + crash("two"), 3.0)
    assert log.new_failure() is None


def test_after_a_long_silence_it_is_another_one() -> None:
    log = FollowedLog("a.log")
    log.add(crash("one"), 0.0)
    assert log.new_failure() is not None
    log.add(LIVELY + crash("two"), APART + 1)
    second = log.new_failure()
    assert second is not None
    assert primary(second) == "MoonPhaseError: two at 9"


def test_a_life_that_began_anew_and_failed_is_another_one() -> None:
    log = FollowedLog("sglang.log")
    log.add(SEED, 0.0)
    assert log.new_failure() is not None
    start = b"[2026-11-30 10:00:00] server_args=ServerArgs(model_path='x', tp_size=1)\n"
    log.add(start + crash("after the restart"), 5.0)
    second = log.new_failure()
    assert second is not None
    assert primary(second).startswith("MoonPhaseError: after the restart")


def test_a_log_of_any_length_keeps_its_line_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuwhy.investigate.following.KEPT", 4096)
    log = FollowedLog("a.log")
    for _ in range(100):
        log.add(LIVELY * 20, 0.0)
    log.add(crash("late"), 1.0)
    found = log.new_failure()
    assert found is not None
    assert primary(found) == "MoonPhaseError: late at 2004"


def test_a_line_is_looked_at_when_it_is_complete() -> None:
    log = FollowedLog("a.log")
    log.add(LIVELY + b"torch.OutOfMemoryError: CUDA out of", 0.0)
    assert log.new_failure() is None
    log.add(b" memory. Tried to allocate 2.00 GiB\n", 0.1)
    found = log.new_failure()
    assert found is not None
    assert "Tried to allocate 2.00 GiB" in primary(found)


# when to look


def test_a_look_is_due_after_silence_and_not_for_a_healthy_log() -> None:
    watch = Watch(settled=2.0)
    watch.saw(LIVELY, 0.0)
    assert not watch.is_due(100.0)
    watch.saw(crash("x"), 100.0)
    assert not watch.is_due(101.0)
    assert watch.is_due(102.5)
    watch.looked()
    assert not watch.is_due(200.0)


def test_a_log_that_is_never_silent_is_looked_at_all_the_same() -> None:
    watch = Watch(settled=2.0)
    watch.saw(crash("x"), 0.0)
    for second in range(1, 15):
        watch.saw(LIVELY, float(second))
        assert not watch.is_due(float(second))
    watch.saw(LIVELY, 16.0)
    assert watch.is_due(16.0)


# files


def gathered(path: Path, acts: Sequence[Callable[[], object]], expected: int) -> list[str]:
    """What is told while ``acts`` happen to the file, each after the failure before it was told."""
    source = GrowingFile(path)
    found: list[str] = []
    steps = iter(acts)
    try:
        threading.Timer(0.3, next(steps)).start()
        for diagnosis in follow_log(source, path.name, settled=0.3):
            found.append(primary(diagnosis))
            if len(found) == expected:
                return found
            threading.Timer(0.3, next(steps, lambda: None)).start()
    finally:
        source.close()
    return found


def appended(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_across_rotation_the_rest_of_the_old_file_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    path.write_bytes(LIVELY)

    def rotate() -> None:
        old = path.open("ab")
        path.rename(tmp_path / "engine.log.1")
        old.write(crash("at the end of the old one"))
        old.close()
        path.write_bytes(crash("in the new one"))

    assert gathered(path, [rotate], 2) == [
        "MoonPhaseError: at the end of the old one at 5",
        "MoonPhaseError: in the new one at 4",
    ]


def test_across_truncation_it_begins_again(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    path.write_bytes(LIVELY * 3)
    longer = LIVELY * 50
    acts = [
        lambda: appended(path, crash("one")),
        lambda: path.write_bytes(crash("two")),  # shorter than what was read
        lambda: path.write_bytes(
            b"INFO: begins otherwise\n" + longer + crash("three")
        ),  # longer: known by its beginning
    ]
    assert gathered(path, acts, 3) == [
        "MoonPhaseError: one at 7",
        "MoonPhaseError: two at 4",
        "MoonPhaseError: three at 55",
    ]


def test_a_failure_that_is_there_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    path.write_bytes(SEED)
    assert gathered(path, [lambda: None], 1)[0].endswith("at 1")


def test_a_file_that_is_not_there_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no such file"):
        GrowingFile(tmp_path / "none.log")
    with pytest.raises(TargetError, match="no file that grows"):
        GrowingFile(tmp_path)


# pipes and commands


def test_a_pipe_is_followed_to_its_end() -> None:
    ours, theirs = os.pipe()
    is_told = threading.Event()

    def write() -> None:
        os.write(theirs, crash("one"))
        is_told.wait(AT_MOST)
        os.write(theirs, LIVELY)
        os.close(theirs)

    threading.Thread(target=write).start()
    found = []
    for each in follow_log(GrowingPipe(ours), "standard input", settled=0.2):
        found.append(primary(each))
        is_told.set()
    os.close(ours)
    assert found == ["MoonPhaseError: one at 4"]


def test_a_unit_is_examined_at_first_and_whenever_its_journal_tells_of_a_failure(tmp_path: Path) -> None:
    answers = [diagnose_log(LIVELY, "a"), diagnose_log(crash("one"), "a"), diagnose_log(crash("one"), "a")]
    asked = "{ until test -e %s; do sleep 0.05; done; }"
    first, second, third = (asked % (tmp_path / number) for number in "123")
    shell = (
        f"echo Started; {first}; echo 'Main process exited, status=1/FAILURE'; {second}; echo 'Failed again'; {third}"
    )
    source = GrowingOutput(["sh", "-c", shell], "the journal")

    def examined() -> Diagnosis:
        (tmp_path / str(4 - len(answers))).touch()  # the journal goes on
        return answers.pop(0)

    def told() -> Iterator[str]:
        for diagnosis in follow_unit(source, examined, settled=0.2):
            yield primary(diagnosis)

    stream = told()
    assert next(stream) == "MoonPhaseError: one at 4"
    with pytest.raises(TargetError, match="the journal ended with status 0"):
        next(stream)
    source.close()
    assert not answers
