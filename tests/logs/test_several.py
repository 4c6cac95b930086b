"""Several logs of one failure: one clock, one time line, ranks by the names of their files."""

from __future__ import annotations

import pytest

from gpuwhy.logs import find_incidents, journal_lines, kernel_lines, read_bytes
from gpuwhy.logs.several import joined
from gpuwhy.model.event import Log

ENGINE = b"""\
2026-11-29 18:03:10,100 INFO engine: loading weights of the model from /models/kimi-k2
2026-11-29 18:05:00,000 ERROR engine: worker 3 exited with code -9 before it was ready to serve
RuntimeError: Worker 3 died
"""
KERNEL = """\
[ 8000.000001] eth0: link becomes ready after renegotiation with the switch
[ 8123.000002] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/system.slice/llm.service,task=python3,pid=4711,uid=0
[ 8123.000003] Out of memory: Killed process 4711 (python3) total-vm:900000kB, anon-rss:800000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1000kB oom_score_adj:0
"""
UTC_10_03 = 1_795_946_590.0


def journal(*messages: tuple[float, str], transport: str = "stdout") -> Log:
    return journal_lines(
        [
            {"__REALTIME_TIMESTAMP": str(int(time * 1e6)), "MESSAGE": message, "_TRANSPORT": transport, "_PID": "7"}
            for time, message in messages
        ],
        "journal of llm",
    )


def test_a_log_in_local_time_is_moved_to_the_clock_of_the_journal() -> None:
    engine = read_bytes(ENGINE, "engine.log")
    raws = [line.raw for line in engine.lines]
    told = journal((UTC_10_03, raws[0]), (UTC_10_03 + 110, raws[1]))
    moved = joined([engine, told])[0]
    assert abs((moved.lines[0].time or 0) - UTC_10_03) < 1
    assert "its clock was moved by -8 h: 2 lines of it also stand in journal of llm" in moved.notes[-1]


def test_seconds_since_the_boot_become_times_where_the_journal_shares_a_line() -> None:
    dmesg = kernel_lines(KERNEL, "dmesg.txt")
    told = journal((UTC_10_03, "eth0: link becomes ready after renegotiation with the switch"), transport="kernel")
    moved = joined([told, dmesg])[1]
    assert moved.lines[1].time == pytest.approx(UTC_10_03 + 123, abs=0.01)


def test_logs_that_share_nothing_keep_their_clocks() -> None:
    engine = read_bytes(ENGINE, "engine.log")
    other = read_bytes(ENGINE.replace(b"18:0", b"11:0").replace(b"weights", b"shards").replace(b"exited", b"left"), "b")
    assert joined([engine, other]) == (engine, other)


def test_one_short_line_is_no_proof_and_lines_that_disagree_are_none() -> None:
    engine = read_bytes(b"2026-11-29 18:03:10 INFO a line of 26 characters\n", "engine.log")
    assert joined([engine, journal((5.0, "a line of 26 characters"))])[0] == engine
    many = read_bytes(
        b"".join(b"2026-11-29 18:0%d:10 INFO this line number %d is long enough\n" % (n, n) for n in range(6)), "many"
    )
    told = journal(*((n * 1000.0 * n, f"this line number {n} is long enough") for n in range(6)))
    assert joined([many, told])[0] == many


def test_a_file_named_after_a_rank_gives_its_lines_to_that_rank() -> None:
    logs = [read_bytes(b"nothing special\n", name) for name in ("out/nccl.rank3.txt", "TP5.log", "engine.log")]
    ranks = [None if log.lines[0].process is None else log.lines[0].process.rank for log in joined(logs)]
    assert ranks == [3, 5, None]


def test_the_same_log_given_twice_counts_once() -> None:
    engine = read_bytes(ENGINE, "engine.log")
    assert len(joined([engine, engine])) == 1


def test_the_kernel_comes_first_when_its_clock_is_known() -> None:
    told = journal((UTC_10_03, "eth0: link becomes ready after renegotiation with the switch"), transport="kernel")
    engine = journal((UTC_10_03 + 124, "RuntimeError: Worker 3 died"))
    incident = find_incidents([Log("engine.log", "log", engine.lines), told, kernel_lines(KERNEL, "dmesg.txt")])
    assert incident.primary_event is not None
    assert incident.primary_event.tool == "oom"
    assert any("seconds since the boot" in note for log in incident.logs for note in log.notes)
