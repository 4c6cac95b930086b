"""What the kernel or the manager says of another unit is no sign of this one's failure."""

from __future__ import annotations

from gpuwhy.diagnosis import judge
from gpuwhy.diagnosis.belonging import of_others
from gpuwhy.logs import find_incidents, journal_lines
from gpuwhy.model.event import Event, Log, Span
from gpuwhy.model.evidence import Place
from gpuwhy.model.fact import Facts
from gpuwhy.model.incident import Incident


def event(identity: int, line: int, unit: str = "", tool: str = "oom", kind: str = "kernel") -> Event:
    return Event(id=identity, kind=kind, text="x", place=Place("log", "k", line), span=Span("k", line, line), tool=tool, unit=unit)  # fmt: skip


def others(*events: Event, unit: str = "sglang.service") -> frozenset[int]:
    return of_others(Incident(logs=(), events=events, unit=unit))


def test_kills_of_another_service_are_its_own() -> None:
    assert others(event(0, 5, "eagle.service"), event(1, 9, "sglang.service")) == {0}


def test_lines_of_a_kill_without_a_unit_go_with_the_nearest_one() -> None:
    told = (event(0, 5), event(1, 6, "eagle.service"), event(2, 40, "sglang.service"), event(3, 41))
    assert others(*told) == {0, 1}


def test_a_kill_of_nobody_s_and_a_container_s_scope_may_be_this_one_s() -> None:
    assert others(event(0, 5), event(1, 6, tool="xid")) == frozenset()
    assert others(event(0, 5, "docker-0123.scope")) == frozenset()


def test_starts_and_exits_of_other_units_are_theirs() -> None:
    assert others(event(0, 5, "eagle.service", "", "unit"), event(1, 6, "sglang.service", "", "unit")) == {0}
    assert others(event(0, 5, "eagle.service"), unit="") == frozenset()


KILL = (
    "sglang::schedul invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0",
    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/system.slice/eagle.service,task=sglang::schedul,pid=18231,uid=0",
    "Out of memory: Killed process 18231 (sglang::schedul) total-vm:702345120kB, anon-rss:431992012kB, file-rss:1204kB, shmem-rss:8192kB, UID:0 pgtables:861204kB oom_score_adj:0",
)


def journal(unit: str, *messages: str, begin: int = 1_790_000_000) -> Log:
    writer = (
        {"_TRANSPORT": "kernel"} if unit == "kernel" else {"_SYSTEMD_UNIT": unit, "_PID": "7", "_TRANSPORT": "stdout"}
    )
    return journal_lines(
        [{"__REALTIME_TIMESTAMP": str((begin + at) * 1_000_000), "MESSAGE": said, **writer} for at, said in enumerate(messages)],
        unit,
    )  # fmt: skip


def causes_of(unit: str, *logs: Log) -> list[str]:
    return [finding.cause for finding in judge(find_incidents(logs, unit), Facts()).findings]


def test_a_unit_is_not_blamed_for_the_kill_of_another_whenever_that_was() -> None:
    healthy = journal(
        "ok.service", "server_args=ServerArgs(model_path='m')", "The server is fired up and ready to roll!"
    )
    failed = journal("ok.service", "server_args=ServerArgs(model_path='m')", "RuntimeError: the frobnicator is empty")
    for begin in (1_789_000_000, 1_789_999_990, 1_790_000_001, 1_790_001_000):
        kernel = journal("kernel", *KILL, begin=begin)
        assert "host-oom-kill" not in causes_of("ok.service", healthy, kernel)
        assert "host-oom-kill" not in causes_of("ok.service", failed, kernel)


def test_its_own_kill_counts() -> None:
    failed = journal("eagle.service", "server_args=ServerArgs(model_path='m')", "loading")
    assert causes_of("eagle.service", failed, journal("kernel", *KILL, begin=1_790_000_005))[0] == "host-oom-kill"


def test_a_kill_outside_of_any_unit_before_a_life_without_failure_is_no_finding() -> None:
    healthy = journal(
        "ok.service", "server_args=ServerArgs(model_path='m')", "The server is fired up and ready to roll!"
    )
    outside = [line.replace("/system.slice/eagle.service", "/sandbox").replace("Out of memory", "Memory cgroup out of memory") for line in KILL]  # fmt: skip
    assert causes_of("ok.service", healthy, journal("kernel", *outside, begin=1_789_999_990)) == []
